"""Replacements of logarithms and inverse hyperbolic functions on CPUs in float64.

XLA's CPU code calls a scalar function of the C library for each logarithm. The formulas here are a
quotient of polynomials of the fraction; the first terms of the series are compensated sums. The
errors are at most 0.67 ulp for log (XLA's operation: 0.52 ulp), and 0.67, 2.5 and 1.4 ulp for
log1p, acosh and atanh (XLA's operations: 128, 3.4 and 129 ulp).
"""

import math

import numpy as np

from hlofront.base.elements import float64
from hlofront.base.named_tuple import NamedTuple
from hlofront.lowering.core.formulas import Formula, parallel_polynomial, sqrt, where
from hlofront.lowering.cpu.elementwise import replaced_by_formula
from hlofront.lowering.cpu.float_bits import filled_like, without_last_bits
from hlofront.lowering.cpu.powers_of_two import in_powers_of_two
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
# The squares of numbers from here on may overflow.
_LARGE = 2.0**500


def logarithm(x: Formula, rest: Formula | float = 0.0) -> Formula:
    """Return log(x) + rest of positive normal float64 numbers and small rests."""
    exponent, fraction = in_powers_of_two(x)
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


def one_more(x: Formula) -> _Sum:
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


@replaced_by_formula(e.log_p, float64)
def _log(x: Formula) -> Formula:
    return _with_ends(x, logarithm(x))


@replaced_by_formula(e.log1p_p, float64)
def _log1p(x: Formula) -> Formula:
    total, rest = one_more(x)
    # For 0 the result is x, which has the right sign.
    return where(x.equals(0), x, _with_ends(total, logarithm(total, rest)))


@replaced_by_formula(e.acosh_p, float64)
def _inverse_cosine(x: Formula) -> Formula:
    is_large = x > _LARGE
    above = where(is_large, 1.0, x - 1)
    total, rest = one_more(where(is_large, x, above + sqrt(above * (above + 2))))
    result = _with_ends(total, logarithm(total, rest + where(is_large, math.log(2), total * 0)))
    return where(x < 1, np.nan, result)


@replaced_by_formula(e.atanh_p, float64)
def _inverse_tangent(x: Formula) -> Formula:
    size = abs(x)
    total, rest = one_more(size * 2 / (1 - size))
    result = _with_ends(total, logarithm(total, rest)) * 0.5
    return where(x.equals(0), x, where(x < 0, -result, result))
