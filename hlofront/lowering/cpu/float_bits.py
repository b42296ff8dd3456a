"""Elementwise functions of narrow floats on CPUs, by formulas in float64.

Simple formulas in float64 have hardly more error than rounding to float32. XLA never computes a
quotient twice: if several operations read it, it is materialized, which ends a fused loop. So
quotients here are products with `reciprocal`.
"""

import numpy as np

from hlofront.base.elements import float32, float64, int32, int64
from hlofront.base.typing import Array
from hlofront.lowering.core.formulas import Formula, where
from hlofront.lowering.core.types import NumPyDType
from hlofront.primitives.arrays.creation import full_like
from hlofront.primitives.elementwise import compare as c
from hlofront.primitives.elementwise import elementwise as e
from hlofront.primitives.elementwise.converting import bitcast_convert_type, convert

# ---- dtypes and bits -------------------------------------------------------------------------


def as_dtype(x: Formula, dtype: NumPyDType) -> Formula:
    return Formula(convert(x.value, dtype, False))


def reinterpreted(x: Formula, dtype: NumPyDType) -> Formula:
    """Reinterpret the bits of numbers as another dtype of equal size."""
    return Formula(bitcast_convert_type(x.value, dtype))


def wide(x: Formula) -> Formula:
    return as_dtype(x, float64)


def narrow(x: Formula) -> Formula:
    return as_dtype(x, float32)


def filled_like(x: Formula, value: float, dtype: NumPyDType) -> Formula:
    return Formula(full_like(x.value, value, dtype=dtype))


def bits_of(x: Formula) -> Formula:
    """Return the bits of float32 numbers as int32."""
    return reinterpreted(x, int32)


def is_subnormal(x: Formula) -> Formula:
    """Return whether float32 numbers are subnormal, which XLA's CPU arithmetic treats as zero."""
    return bits_of(abs(x)) < int(np.finfo(float32).smallest_normal.view(int32))


def magnitude(x: Formula) -> Formula:
    """Return the absolute values of float32 numbers, including subnormal ones, in float64."""
    # The bits of a subnormal number are its multiple of the least number.
    unit = float(np.finfo(float32).smallest_subnormal)
    subnormal = as_dtype(bits_of(abs(x)), float64) * unit
    return where(is_subnormal(x), subnormal, wide(abs(x)))


def sign_bit(x: Formula) -> Formula:
    """Return the sign bits of float32 numbers, as int32 whose other bits are zero."""
    return bits_of(x) & np.iinfo(int32).min


def odd(x: Formula, of_magnitude: Formula) -> Formula:
    """Return an odd function, with slope 1 at zero, from its values at |x|."""
    return where(is_subnormal(x), x, with_sign(of_magnitude, sign_bit(x)))


def with_sign(x: Formula, sign_bit: Formula) -> Formula:
    """Return float32 numbers with their signs inverted where the sign bit is set."""
    return reinterpreted(Formula(e.bitwise_xor(bits_of(x).value, sign_bit.value)), float32)


def shifted_left(x: Formula, count: int) -> Formula:
    return Formula(e.shift_left(x.value, filled_like(x, count, x.dtype).value))


def shifted_right(x: Formula, count: int) -> Formula:
    """Return integers shifted right, filled with zeros."""
    return Formula(e.shift_right_logical(x.value, filled_like(x, count, x.dtype).value))


def last_bits(x: Formula) -> Formula:
    """Return int64 numbers with the last 32 bits of float64 integers below 2**51."""
    return reinterpreted(x + 1.5 * 2.0**52, int64)


def whole_power_of_two(exponent: Formula) -> Formula:
    """Return 2**n in float64, for float64 integers n from -1022 to 1023."""
    # The last bits of the sum are the exponent as an integer.
    biased = reinterpreted(exponent + (1.5 * 2.0**52 + 1023), int64)
    return reinterpreted(shifted_left(biased, 52), float64)


def without_last_bits(x: Formula, count: int) -> Formula:
    """Return float64 numbers whose last bits are zeros."""
    return reinterpreted(reinterpreted(x, int64) & -(1 << count), float64)


def with_sign_of(x: Formula, magnitude: Formula) -> Formula:
    """Return nonnegative float64 numbers with the signs of others."""
    sign = reinterpreted(x, int64) & np.iinfo(int64).min
    return reinterpreted(reinterpreted(magnitude, int64) | sign, float64)


# ---- the order of floats ---------------------------------------------------------------------


def ordered_integers(x: Array) -> Array:
    """Return integers in the order of floats; all NaNs are the same largest integer."""
    integers = np.dtype(f"int{8 * x.dtype.itemsize}")
    nan = np.array(np.nan, x.dtype).view(integers)
    return where(Formula(c.ne(x, x)), int(nan), Formula(ordered_bits(x))).value


def ordered_bits(x: Array) -> Array:
    """Return integers in the order of floats; NaNs are first or last depending on their sign."""
    return _inverted(bitcast_convert_type(x, np.dtype(f"int{8 * x.dtype.itemsize}")))


def floats_of_ordered(x: Array, dtype: NumPyDType) -> Array:
    """Return the floats for integers that `ordered_bits` returned."""
    return bitcast_convert_type(_inverted(x), dtype)


def _inverted(bits: Array) -> Array:
    """Invert all bits except the sign of negative floats; this is its own inverse."""
    limits = np.iinfo(bits.dtype)
    sign = e.shift_right_arithmetic(bits, np.array(limits.bits - 1, bits.dtype)[()])
    return e.bitwise_xor(bits, e.bitwise_and(sign, np.array(limits.max, bits.dtype)[()]))


# ---- arithmetic that fuses -------------------------------------------------------------------


def reciprocal(x: Formula, steps: int = 4) -> Formula:
    """Return 1 / x for positive finite float64 x, by Newton's method.

    The bits of a float, as an integer, are nearly its logarithm: the first guess negates them. The
    constant minimizes its greatest error, which is 1/8.
    """
    opposite = Formula(e.neg(reinterpreted(x, int64).value)) + 0x7FDE623822FC16E6
    guess = reinterpreted(opposite, float64)
    for _ in range(steps):
        guess = guess * (2 - x * guess)
    return guess
