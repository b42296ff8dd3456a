"""Comparison of results with NumPy's in double precision."""

import numpy as np


def wide(x):
    """Return an array in float64 or complex128."""
    return np.asarray(x).astype(np.complex128 if np.iscomplexobj(x) else np.float64)


def check(found, wanted, rtol=1e-5, atol=2e-5):
    """Compare a result with NumPy's, which was computed in double precision."""
    assert found.shape == np.shape(wanted)
    dtype = np.complex128 if np.iscomplexobj(wanted) else np.float64
    np.testing.assert_allclose(np.asarray(found).astype(dtype), wanted, rtol=rtol, atol=atol)
