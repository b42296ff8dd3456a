"""Lowering rules of log1p and atanh for CPUs in float64, and a logarithm for other formulas.

XLA's CPU code calls a scalar function of the C library for each logarithm. The formulas here are a
quotient of polynomials of the fraction; the first terms of the series are sums to which the part
that rounding lost is added again. The errors of log1p and atanh are at most 0.67 and 1.4 ulp, where
XLA's operations have 128 and 129 ulp.
"""

import numpy as np

from hlofront.base.elements import float64, int64
from hlofront.base.named_tuple import NamedTuple
from hlofront.lowering.core.formulas import Formula, parallel_polynomial, where
from hlofront.lowering.cpu.elementwise import replaced_by_formula
from hlofront.lowering.cpu.float_bits import (
    filled_like,
    reinterpreted,
    shifted_left,
    shifted_right,
    without_last_bits,
)
from hlofront.primitives.elementwise import elementwise as e

# An interpolation at Chebyshev's points of (log(1 + x) - x + x**2 / 2) / x**3 from sqrt(1/2) - 1 to
# sqrt(2) - 1, a numerator and a denominator, with an error of 5e-16.
_LOGARITHM = (
    [
        0.3333333333333333,
        0.8858108172106093,
        0.8656942129158384,
        0.3790261760192077,
        0.07144484732597503,
        0.00434038119699182,
    ],
    [
        1.0,
        3.407432451631829,
        4.552656977471392,
        3.0071117901818436,
        1.01321899537606,
        0.15966861120572465,
        0.008691087636233464,
    ],
)
# The products of this part of log(2) and exponents are exact in float64.
LOG_2 = 0.693147180369123816490
LOG_2_REST = 1.90821492927058770002e-10


def _bits(x: float) -> int:
    """Return the bits of a float64 number."""
    return int(np.float64(x).view(np.int64))


_MANTISSA_WIDTH = 52
_ONE = _bits(1.0)
_MIN_MANTISSA = _bits(0.5**0.5)
# The last bits of the sum of it and a whole number are those of that number as an integer.
_BIG = 2.0**_MANTISSA_WIDTH


def _in_powers_of_two(x: Formula) -> tuple[Formula, Formula]:
    """Return n and f of positive normal numbers 2**n (1 + f) of float64, where 1 + f is near 1.

    It is from sqrt(1/2) to sqrt(2). For zero, infinity and NaN the results are finite.
    """
    bits = reinterpreted(x, int64)
    biased = shifted_right(bits + (_ONE - _MIN_MANTISSA), _MANTISSA_WIDTH)
    mantissa = reinterpreted(bits - shifted_left(biased, _MANTISSA_WIDTH) + _ONE, float64)
    exponent = reinterpreted(biased + _bits(_BIG), float64) - (_BIG + 1023)
    return exponent, mantissa - 1


def logarithm(x: Formula, rest: Formula | float = 0.0) -> Formula:
    """Return log(x) + rest of positive normal numbers of float64, and small rests."""
    exponent, fraction = _in_powers_of_two(x)
    # The square of the first bits is exact.
    first = without_last_bits(fraction, 30)
    half_square = first * first * 0.5
    half_square_rest = (fraction - first) * (fraction + first) * 0.5
    numerator, denominator = (
        parallel_polynomial(fraction, coefficients) for coefficients in _LOGARITHM
    )
    terms = fraction * fraction * fraction * numerator / denominator - half_square_rest
    whole = exponent * LOG_2
    total = whole + fraction
    lost = (whole - total) + fraction
    less = total - half_square
    lost = lost + ((total - less) - half_square)
    return less + (lost + (terms + rest + exponent * LOG_2_REST))


class _Sum(NamedTuple):
    """A rounded sum, and its rounding error divided by the sum."""

    total: Formula
    rest: Formula


def _one_more(x: Formula) -> _Sum:
    """Return 1 + x for x > -1."""
    total = x + 1
    # XLA would simplify (x + 1) - 1 to x.
    is_small = abs(x) < 1
    greater, lesser = where(is_small, 1.0, x), where(is_small, x, 1.0)
    return _Sum(total, (lesser - (total - greater)) / total)


def _with_ends(x: Formula, result: Formula) -> Formula:
    """Return the logarithm of any x from the logarithm for positive numbers."""
    result = where(x > 0, result, where(x.equals(0), filled_like(x, -np.inf, float64), np.nan))
    return where(x < np.inf, result, x)


@replaced_by_formula(e.log1p_p, float64)
def _log1p(x: Formula) -> Formula:
    total, rest = _one_more(x)
    # If x is 0 the result is x, which has the right sign.
    return where(x.equals(0), x, _with_ends(total, logarithm(total, rest)))


@replaced_by_formula(e.atanh_p, float64)
def _inverse_tangent(x: Formula) -> Formula:
    size = abs(x)
    total, rest = _one_more(size * 2 / (1 - size))
    result = _with_ends(total, logarithm(total, rest)) * 0.5
    return where(x.equals(0), x, where(x < 0, -result, result))
