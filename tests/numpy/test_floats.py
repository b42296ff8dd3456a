"""The parts of floats at odd numbers: signed zeros, infinities, and dtypes of their own."""

import ml_dtypes
import numpy as np
import pytest

import hlofront.numpy as jnp

# Minus zero is left out: its distance has its sign in JAX, and not in NumPy.
NUMBERS = (-1, 1, 0, 2.5, -2.5, -6e-8, 65504, -65504, np.nan, np.inf)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32])
def test_spacing_is_numpys(dtype):
    """Float16's is positive, that of other floats has the sign of the number."""
    x = np.array(NUMBERS, dtype)
    with np.errstate(all="ignore"):
        wanted = np.spacing(x)
    found = np.asarray(jnp.spacing(x)).astype(np.float32)
    np.testing.assert_array_equal(found, wanted.astype(np.float32))


def test_spacing_of_dtypes_without_infinity():
    with pytest.raises(NotImplementedError, match="has an infinity, got float8_e4m3fn"):
        jnp.spacing(np.ones(2, ml_dtypes.float8_e4m3fn))
