"""The lowering rule of pow for CPUs in float64: 2**(y log2 x), in sums of two numbers.

The logarithm has 62 bits: its first terms are exact products of 26-bit numbers, and the remaining
bits are added to the later terms. The errors are at most 0.65 ulp, and 0.85 ulp for results beyond
10^200; XLA's operation has 0.52 ulp. Roots of subnormal numbers are right, unlike XLA's.
"""

import numpy as np

from hlofront.base.named_tuple import NamedTuple
from hlofront.lowering.core.formulas import (
    Formula,
    clip,
    floor,
    parallel_polynomial,
    rounded,
    where,
)
from hlofront.lowering.cpu.elementwise import replaced_by_formula
from hlofront.lowering.cpu.float_bits import (
    filled_like,
    reinterpreted,
    shifted_left,
    without_last_bits,
)
from hlofront.lowering.cpu.pow import in_powers_of_two
from hlofront.primitives.elementwise import elementwise as e

_float64, _int64 = np.dtype(np.float64), np.dtype(np.int64)

_MANTISSA_WIDTH = 52
_MANTISSA = (1 << _MANTISSA_WIDTH) - 1
# The bits of a number from 2**52 to 2**53 are those of 2**52 and the distance from it.
_BIG = 2.0**_MANTISSA_WIDTH
_BITS_OF_BIG = int(np.float64(_BIG).view(_int64))
_LEAST_EXPONENT, _LEAST_SUBNORMAL_EXPONENT, _GREATEST_EXPONENT = -1022, -1074, 1024
# Products of numbers without so many last bits are exact.
_DROPPED = 27
# The powers of all numbers but 1 with greater exponents are zero or infinite.
_GREATEST = 2e19

# 2 / log(2) and 2 / (3 log(2)): the first 26 bits and the rest.
_FIRST, _FIRST_REST = 2.885390043258667, 3.851925982253235e-08
_THIRD, _THIRD_REST = 0.9617966860532761, 7.872699542894897e-09
# Interpolations at Chebyshev's points: of the later terms of log2((1 + z) / (1 - z)) over z**5, as
# a polynomial of z**2, to z = tan(pi / 8)**2 with an error of 6e-20 in the sum, and of
# (2**x - 1 - x log(2)) / x**2 to 1/2 with one of 3e-18.
_LATER = [
    0.5770780163555858,
    0.4121985831098338,
    0.3205988986801571,
    0.2623080459898803,
    0.2219669203303985,
    0.19167599099449428,
    0.18630236736174838,
]
_EXPONENTIAL = [
    0.24022650695910072,
    0.0555041086648216,
    0.009618129107628479,
    0.0013333558146416936,
    0.00015403530393375914,
    1.525273382983612e-05,
    1.321548680290394e-06,
    1.0178062445845677e-07,
    7.054899956368358e-09,
    4.4549605982058487e-10,
    2.572508058447406e-11,
]
# The first 26 bits of log(2), and the rest.
_LOG_2, _LOG_2_REST = 0.6931471675634384, 1.2996506893889889e-08


class Parts(NamedTuple):
    """A sum of two numbers."""

    first: Formula
    """A number whose last bits are zeros."""
    rest: Formula


def binary_logarithm(x: Formula, more: Formula | float = 0.0) -> Parts:
    """Return log2(x) + more of positive normal numbers, for a whole number `more`."""
    exponent, fraction = in_powers_of_two(x)
    exponent = exponent + more
    # z of log(1 + x) = log(1 + z) - log(1 - z) is x / (x + 2).
    below = fraction + 2
    below_first = without_last_bits(below, _DROPPED)
    below_rest = fraction - (below_first - 2)
    inverse = 1 / below
    rounded_z = fraction * inverse
    z = without_last_bits(rounded_z, _DROPPED)
    z_rest = ((fraction - z * below_first) - z * below_rest) * inverse
    square = rounded_z * rounded_z
    later = square * square * rounded_z * parallel_polynomial(square, _LATER)
    # The cube of the sum of z and its rest.
    square = z * z
    square_first = without_last_bits(square, _DROPPED)
    cube = z * square_first
    cube_first = without_last_bits(cube, _DROPPED)
    cube_rest = z * (square - square_first) + 3 * (z * rounded_z) * z_rest + (cube - cube_first)
    linear, cubic = z * _FIRST, cube_first * _THIRD
    rest = z_rest * (_FIRST + _FIRST_REST) + z * _FIRST_REST
    rest = rest + (cube_rest * (_THIRD + _THIRD_REST) + cube_first * _THIRD_REST) + later
    first = without_last_bits(exponent + (linear + (cubic + rest)), _DROPPED)
    return Parts(first, (((exponent - first) + linear) + cubic) + rest)


def power_of_two(logarithm: Parts, y: Formula, more: Formula | float = 0.0) -> Formula:
    """Return 2**(y * logarithm + more), or zero if it is subnormal; y and `more` are finite."""
    y_first = without_last_bits(y, _DROPPED)
    product = y_first * logarithm.first + more
    rest = (y - y_first) * logarithm.first + y * logarithm.rest
    exponent = product + rest
    whole = rounded(clip(_LEAST_EXPONENT, exponent, _GREATEST_EXPONENT))
    fraction = product - whole
    # The product of the first bits and those of log(2) is exact, and its sum with 1 too.
    first = rounded(fraction * 2.0**26) * 2.0**-26
    rest = (fraction - first) + rest
    fraction = first + rest
    later = fraction * fraction * parallel_polynomial(fraction, _EXPONENTIAL)
    later = first * _LOG_2_REST + rest * (_LOG_2 + _LOG_2_REST) + later
    mantissa = reinterpreted((1 + first * _LOG_2) + later, _int64)
    # The last bits of the sum are those of an integer.
    shift = shifted_left(reinterpreted(whole + 1.5 * _BIG, _int64), _MANTISSA_WIDTH)
    result = reinterpreted(mantissa + shift, _float64)
    result = where(exponent < _GREATEST_EXPONENT, result, np.inf)
    return where(exponent < _LEAST_EXPONENT, 0, result)


@replaced_by_formula(e.pow_p, _float64)
def _power(x: Formula, y: Formula) -> Formula:
    bits, y_bits = reinterpreted(x, _int64), reinterpreted(y, _int64)
    # To XLA's arithmetic subnormal numbers are zeros. Their last bits count their units.
    units = reinterpreted((bits & _MANTISSA) + _BITS_OF_BIG, _float64) - _BIG
    is_small, y_is_small = x.equals(0), y.equals(0)
    base = where(is_small, units, abs(x))
    unit = filled_like(x, _LEAST_SUBNORMAL_EXPONENT, _float64)
    logarithm = binary_logarithm(base, where(is_small, unit, 0))
    result = power_of_two(logarithm, clip(-_GREATEST, y, _GREATEST))
    is_infinite = base.equals(np.inf)
    is_end = base.equals(0) | is_infinite
    vanishes = Formula(e.bitwise_xor((y_bits > 0).value, is_infinite.value))
    result = where(is_end, where(vanishes, filled_like(x, 0, _float64), np.inf), result)
    half = y * 0.5
    is_whole = floor(y).equals(y) & ~y_is_small
    is_odd = is_whole & ~floor(half).equals(half)
    sign = where(is_odd, bits & np.iinfo(_int64).min, 0)
    result = reinterpreted(reinterpreted(result, _int64) | sign, _float64)
    has_root = is_whole | is_end | (bits >= 0)
    result = where(has_root & y.equals(y) & x.equals(x), result, np.nan)
    is_zero = y_is_small & (y_bits & _MANTISSA).equals(0)
    return where(is_zero | x.equals(1), 1, result)
