"""How close results must be: by their dtype."""

import ml_dtypes
import numpy as np

from tests import on_platforms


def assert_same_type(found, wanted):
    """Of two (shape, dtype, weak, ...)."""
    assert found[:3] == wanted[:3], f"shape, dtype, weak: {found[:3]}, and the other {wanted[:3]}"


def assert_close(found, wanted, ulps):
    """Equal, or for inexact dtypes off by so many units in the last place, or of those of 1."""
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    name = found.dtype.name
    if found.dtype.kind in "biu" or name.startswith(("int", "uint")):
        np.testing.assert_array_equal(found, wanted)
        return
    eps = float(ml_dtypes.finfo(found.dtype).eps)
    # Narrow dtypes have few bits to differ in.
    allowed = eps * (ulps * on_platforms.slack() if eps < 1e-5 else min(ulps, 4))
    type_ = np.complex128 if found.dtype.kind == "c" else np.float64
    np.testing.assert_allclose(
        found.astype(type_), wanted.astype(type_), rtol=allowed, atol=allowed
    )


def assert_close_to_reference(found, wanted, ulps):
    """Close, and zeros of one sign."""
    assert_close(found, wanted, ulps)
    if found.dtype.kind == "f" or (found.dtype.kind == "V" and hasattr(found.dtype, "name")):
        zeros = (found == 0) & (wanted == 0)
        np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(wanted[zeros]))
