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
    if found.dtype.kind != "c":
        _assert_allclose(found.astype(np.float64), wanted.astype(np.float64), allowed)
        return
    # NumPy compares complex infinities exactly, also their finite parts: those are compared alone.
    whole = np.isfinite(found) & np.isfinite(wanted)
    _assert_allclose(found[whole].astype(complex), wanted[whole].astype(complex), allowed)
    for part in (np.real, np.imag):
        _assert_allclose(part(found[~whole]), part(wanted[~whole]), allowed)


def _assert_allclose(actual, desired, allowed):
    np.testing.assert_allclose(actual, desired, rtol=allowed, atol=allowed)


def assert_close_to_reference(found, wanted, ulps):
    """Close, and zeros of one sign."""
    assert_close(found, wanted, ulps)
    if found.dtype.kind == "f" or (found.dtype.kind == "V" and hasattr(found.dtype, "name")):
        zeros = (found == 0) & (wanted == 0)
        np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(wanted[zeros]))
