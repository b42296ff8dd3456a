"""Binary logarithms and powers of two in float64, for other formulas.

Their errors are far below an ulp of float32.
"""

import numpy as np

from hlofront.base.elements import float64, int64
from hlofront.lowering.core.formulas import Formula, parallel_polynomial, rounded
from hlofront.lowering.cpu.float_bits import (
    reinterpreted,
    shifted_left,
    shifted_right,
    times_power_of_two,
)


def _bits(x: float) -> int:
    """Return the bits of a float64 number."""
    return int(np.float64(x).view(np.int64))


_MANTISSA_WIDTH = 52
_ONE = _bits(1.0)
_MIN_MANTISSA = _bits(0.5**0.5)
# The last bits of its sum with a whole number are those of that number as an integer.
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
    """Return n and f of positive normal float64 numbers 2**n (1 + f).

    1 + f is from sqrt(1/2) to sqrt(2). For zero, infinity and NaN the results are finite.
    """
    bits = reinterpreted(x, int64)
    biased = shifted_right(bits + (_ONE - _MIN_MANTISSA), _MANTISSA_WIDTH)
    mantissa = reinterpreted(bits - shifted_left(biased, _MANTISSA_WIDTH) + _ONE, float64)
    exponent = reinterpreted(biased + _bits(_BIG), float64) - (_BIG + 1023)
    return exponent, mantissa - 1


def binary_logarithm(x: Formula) -> Formula:
    """Return log2(x) of positive normal float64 numbers, with a relative error of 5e-13."""
    exponent, fraction = in_powers_of_two(x)
    return exponent + fraction * parallel_polynomial(fraction, _LOGARITHM)


def power_of_two(x: Formula) -> Formula:
    """Return 2**x for float64 numbers from -1000 to 1000, with a relative error of 1e-12."""
    whole = rounded(x)
    return times_power_of_two(parallel_polynomial(x - whole, _EXPONENTIAL), whole)
