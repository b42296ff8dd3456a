"""Binary logarithms and powers of two in float64, for other formulas.

The first two have errors far below a unit of float32. The precise ones are sums of two numbers: the
logarithm has 62 bits, since its first terms are exact products of 26-bit numbers, and the remaining
bits are added to the later terms. Then the errors of powers are at most 0.65 ulp, and 0.85 ulp for
results beyond 10^200.
"""

import numpy as np

from hlofront.base.elements import float64, int64
from hlofront.base.named_tuple import NamedTuple
from hlofront.lowering.core.formulas import Formula, clip, parallel_polynomial, rounded, where
from hlofront.lowering.cpu.float_bits import (
    reinterpreted,
    shifted_left,
    shifted_right,
    times_power_of_two,
    without_last_bits,
)


def _bits(x: float) -> int:
    """Return the bits of a float64 number."""
    return int(np.float64(x).view(np.int64))


_MANTISSA_WIDTH = 52
_ONE = _bits(1.0)
_MIN_MANTISSA = _bits(0.5**0.5)
# The last bits of the sum of it and a whole number are those of that number as an integer.
_BIG = 2.0**_MANTISSA_WIDTH

# Interpolations at Chebyshev's points: log2(1 + x) / x from sqrt(1/2) - 1 to sqrt(2) - 1 with an
# error of 5e-13, and 2**x from -1/2 to 1/2 with one of 1e-12.
_LOGARITHM = [
    1.4426950408892767,
    -0.7213475204230224,
    0.4808983466468056,
    -0.36067376647095917,
    0.2885390630797365,
    -0.24044867672015177,
    0.20609559789891455,
    -0.180352394846402,
    0.16041922068856115,
    -0.14408723643734014,
    0.12918126251416429,
    -0.11999522531685416,
    0.12624166234975334,
    -0.12216563305671267,
    0.06164348424505577,
]
_EXPONENTIAL = [
    1.0,
    0.6931471805459335,
    0.2402265069581299,
    0.05550410941205933,
    0.009618129159402558,
    0.0013333450568000645,
    0.00015403455852453838,
    1.5310079402249296e-05,
    1.3255224878668827e-06,
]


def in_powers_of_two(x: Formula) -> tuple[Formula, Formula]:
    """Return n and f of positive normal numbers 2**n (1 + f) of float64, where 1 + f is near 1.

    It is from sqrt(1/2) to sqrt(2). For zero, infinity and NaN the results are finite.
    """
    bits = reinterpreted(x, int64)
    biased = shifted_right(bits + (_ONE - _MIN_MANTISSA), _MANTISSA_WIDTH)
    mantissa = reinterpreted(bits - shifted_left(biased, _MANTISSA_WIDTH) + _ONE, float64)
    exponent = reinterpreted(biased + _bits(_BIG), float64) - (_BIG + 1023)
    return exponent, mantissa - 1


def binary_logarithm(x: Formula) -> Formula:
    """Return log2(x) of positive normal numbers of float64, with a relative error of 5e-13."""
    exponent, fraction = in_powers_of_two(x)
    return exponent + fraction * parallel_polynomial(fraction, _LOGARITHM)


def power_of_two(x: Formula) -> Formula:
    """Return 2**x for float64 numbers from -1000 to 1000, with a relative error of 1e-12."""
    whole = rounded(x)
    return times_power_of_two(parallel_polynomial(x - whole, _EXPONENTIAL), whole)


# ---- in sums of two numbers ----------------------------------------------------------------------

_MIN_EXPONENT, _MAX_EXPONENT = -1022, 1024
# Products of float64 numbers are exact if this many of the last bits of both are zero.
_DROPPED = 27

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
_PRECISE_EXPONENTIAL = [
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


def precise_logarithm(x: Formula) -> Parts:
    """Return log2(x) of positive normal numbers."""
    exponent, fraction = in_powers_of_two(x)
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


def precise_power(logarithm: Parts, y: Formula, more: Formula) -> Formula:
    """Return 2**(y * logarithm + more), or zero if it is subnormal; y and `more` are finite."""
    y_first = without_last_bits(y, _DROPPED)
    product = y_first * logarithm.first + more
    rest = (y - y_first) * logarithm.first + y * logarithm.rest
    exponent = product + rest
    whole = rounded(clip(_MIN_EXPONENT, exponent, _MAX_EXPONENT))
    fraction = product - whole
    # The product of the first bits and those of log(2) is exact, and its sum with 1 too.
    first = rounded(fraction * 2.0**26) * 2.0**-26
    rest = (fraction - first) + rest
    fraction = first + rest
    later = fraction * fraction * parallel_polynomial(fraction, _PRECISE_EXPONENTIAL)
    later = first * _LOG_2_REST + rest * (_LOG_2 + _LOG_2_REST) + later
    result = times_power_of_two((1 + first * _LOG_2) + later, whole)
    result = where(exponent < _MAX_EXPONENT, result, np.inf)
    return where(exponent < _MIN_EXPONENT, 0, result)
