"""Replacements of powers and hyperbolic sines of narrow floats on CPUs.

They are made of the binary logarithm and the powers of two in float64: x**y is 2**(y log2(x)).
"""

import math

import numpy as np

from hlofront.lowering.core.formulas import (
    Formula,
    clip,
    floor,
    parallel_polynomial,
    polynomial,
    rounded,
    where,
)
from hlofront.lowering.cpu.elementwise import replaced_by_formula
from hlofront.lowering.cpu.float_bits import (
    bits_of,
    filled_like,
    is_subnormal,
    magnitude,
    narrow,
    odd,
    reinterpreted,
    shifted_left,
    shifted_right,
    sign_bit,
    wide,
    with_sign,
)
from hlofront.primitives.elementwise import elementwise as e

_int32, _int64 = np.dtype(np.int32), np.dtype(np.int64)
_float32, _float64 = np.dtype(np.float32), np.dtype(np.float64)


def _bits(x: float) -> int:
    """Return the bits of a float64 number."""
    return int(np.float64(x).view(np.int64))


_MANTISSA_WIDTH = 52
_ONE = _bits(1.0)
_LEAST_MANTISSA = _bits(0.5**0.5)
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
    bits = reinterpreted(x, _int64)
    biased = shifted_right(bits + (_ONE - _LEAST_MANTISSA), _MANTISSA_WIDTH)
    mantissa = reinterpreted(bits - shifted_left(biased, _MANTISSA_WIDTH) + _ONE, _float64)
    exponent = reinterpreted(biased + _bits(_BIG), _float64) - (_BIG + 1023)
    return exponent, mantissa - 1


def binary_logarithm(x: Formula) -> Formula:
    """Return log2(x) of positive normal numbers of float64, with a relative error of 5e-13."""
    exponent, fraction = in_powers_of_two(x)
    return exponent + fraction * parallel_polynomial(fraction, _LOGARITHM)


def power_of_two(x: Formula) -> Formula:
    """Return 2**x for float64 numbers from -1000 to 1000, with a relative error of 1e-12."""
    whole = rounded(x)
    exponent = shifted_left(reinterpreted(whole + 1.5 * _BIG, _int64), _MANTISSA_WIDTH)
    mantissa = reinterpreted(parallel_polynomial(x - whole, _EXPONENTIAL), _int64)
    return reinterpreted(mantissa + exponent, _float64)


@replaced_by_formula(e.pow_p, _float32)
def _power(x: Formula, y: Formula) -> Formula:
    base = magnitude(x)
    # To XLA's arithmetic subnormal numbers are zeros, whose powers are 1.
    is_tiny = is_subnormal(y) & ~bits_of(abs(y)).equals(0)
    tiny = filled_like(y, float(np.finfo(np.float32).smallest_normal), y.dtype)
    y = where(is_tiny, with_sign(tiny, sign_bit(y)), y)
    logarithm = binary_logarithm(base)
    # The products of all exponents but zero and this one are beyond the range of float32.
    logarithm = where(base.equals(0), -_GREATEST, logarithm)
    logarithm = where(base.equals(np.inf), _GREATEST, logarithm)
    logarithm = where(base.equals(base), logarithm, base)
    exponent = clip(-_GREATEST, wide(y), _GREATEST)
    result = narrow(power_of_two(clip(-1000, exponent * logarithm, 1000)))
    half = y * 0.5
    is_whole = floor(y).equals(y)
    is_odd = is_whole & ~floor(half).equals(half)
    sign = sign_bit(x)
    result = with_sign(result, where(is_odd, sign, filled_like(sign, 0, _int32)))
    result = where(y.equals(0) | x.equals(1), 1, result)
    has_root = is_whole | sign.equals(0) | base.equals(0) | base.equals(np.inf)
    return where(has_root, result, np.nan)


_GREATEST = 1e50


@replaced_by_formula(e.sinh_p, _float32)
def _hyperbolic_sine(x: Formula) -> Formula:
    size = wide(abs(x))
    square = size * size
    # The difference of the powers loses the bits of small numbers, whose power series is short.
    series = size * square * polynomial(square, [1 / math.factorial(n) for n in (3, 5, 7)])
    exponent = clip(-2, size * (1 / math.log(2)) - 1, 200)
    difference = power_of_two(exponent) - power_of_two(-2 - exponent)
    return odd(x, narrow(where(size < 0.3, size + series, difference)))
