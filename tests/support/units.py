"""Distances between floating-point numbers in units in the last place (ulp)."""

import numpy as np


class Units(dict[str, int]):
    """A tolerance in units in the last place, by the name of a real floating-point dtype.

    A program's `tolerance` may be `Units(float32=8, float16=4)`. It is for numbers that are made by
    elementary functions of exact ones, such as random samples: XLA's approximations of those
    functions differ by a few units between processors, with the width of vectors, fused
    multiply-adds and arithmetic in float16.
    """

    def of(self, dtype: np.dtype) -> int:
        """Return the units that are allowed for arrays of a real or complex dtype."""
        return self[{"complex64": "float32", "complex128": "float64"}.get(dtype.name, dtype.name)]


def ordered(x: np.ndarray) -> np.ndarray:
    """Map floating-point numbers to Python-sized integers that count the representable numbers.

    Args:
      x: an array of any floating-point dtype of 8 to 64 bits, without NaN.

    Returns:
      int64 array of the same shape: neighbouring numbers differ by one, and -0.0 and 0.0 are 0.
    """
    bits = x.view(f"u{x.itemsize}").astype(np.uint64)
    sign = np.uint64(1 << (8 * x.itemsize - 1))
    magnitude = (bits & ~sign).astype(np.int64)
    return np.where(bits & sign, -magnitude, magnitude)


def distance(x: np.ndarray, y: np.ndarray) -> int:
    """Return the largest number of units in the last place between two arrays, element by element.

    NaN is at distance 0 of NaN, and infinitely far (the dtype's whole range) from numbers. The
    parts of complex numbers are compared separately.

    Args:
      x, y: arrays of one shape and one floating-point or complex dtype.
    """
    if x.dtype.kind == "c":
        return max(distance(x.real.copy(), y.real.copy()), distance(x.imag.copy(), y.imag.copy()))
    nan = np.isnan(x)
    if (nan != np.isnan(y)).any():
        return 1 << 62
    # Unsigned, because numbers of opposite signs in float64 may lie further apart than an int64.
    x, y = (ordered(np.where(nan, np.zeros_like(z), z)) for z in (x, y))
    between = np.where(x > y, x, y).astype(np.uint64) - np.where(x > y, y, x).astype(np.uint64)
    return int(between.max(initial=0))
