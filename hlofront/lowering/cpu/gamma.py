"""Replacements of lgamma and digamma on CPUs: formulas in float64.

From 1 to 7 both are rational functions times factors for their zeros; above, they use Stirling's
series (DLMF 5.11.1 and 5.11.2), below 1 the recurrence (5.5.1 and 5.5.2), and below 0 the
reflection (5.5.3 and 5.5.4). XLA's code loses most digits near the zeros. The errors of these
formulas are at most 0.52 ulp in float32 and 5 ulp in float64, and larger only near negative zeros.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from hlofront.base.elements import float32, float64
from hlofront.base.named_tuple import NamedTuple
from hlofront.lowering.core.formulas import Formula, parallel_polynomial, rounded, where
from hlofront.lowering.cpu.elementwise import replaced_by_formula
from hlofront.lowering.cpu.float_bits import filled_like, magnitude, narrow, sign_bit
from hlofront.lowering.cpu.log import logarithm
from hlofront.lowering.special import gamma_approximations as approximations
from hlofront.lowering.special.gamma_approximations import BERNOULLI, Approximation
from hlofront.primitives.elementwise import elementwise as e
from hlofront.primitives.elementwise import special as s

# Stirling's series is valid from here on. From the limit on, all its terms except the first vanish.
_LARGE = 7.0
_LIMIT = 1e14

# The positive zero of digamma is the sum of these.
_DIGAMMA_ZERO, _DIGAMMA_ZERO_REST = 1.4616321449683622, 9.549995429965697e-17


_MORE_EXACT = "A formula that keeps its precision near the zeros, where XLA's loses most digits."


@replaced_by_formula(s.lgamma_p, float32, description=_MORE_EXACT)
def _logarithm_of_gamma(x: Formula) -> Formula:
    return narrow(_lgamma(magnitude(x), ~sign_bit(x).equals(0), approximations.SINGLE))


@replaced_by_formula(s.lgamma_p, float64, description=_MORE_EXACT)
def _logarithm_of_gamma_of_float64(x: Formula) -> Formula:
    return _lgamma(abs(x), x < 0, approximations.DOUBLE)


@replaced_by_formula(s.digamma_p, float32)
def _digamma_of_narrow(x: Formula) -> Formula:
    return narrow(_digamma(magnitude(x), ~sign_bit(x).equals(0), approximations.SINGLE))


@replaced_by_formula(s.digamma_p, float64)
def _digamma_of_float64(x: Formula) -> Formula:
    return _digamma(abs(x), x < 0, approximations.DOUBLE)


def _lgamma(distance: Formula, is_negative: Formula, known: Approximation) -> Formula:
    """Return lgamma, in float64, of numbers with this distance from zero and this sign."""
    is_small = is_negative | (distance < known.least)
    # gamma(x) = gamma(1 + x) / x, and gamma(-x) gamma(1 + x) = -pi / sin(pi x)
    point = where(is_small, distance + 1, distance)
    from_integer = distance - rounded(distance)
    sine = abs(from_integer) * parallel_polynomial(from_integer * from_integer, known.sine)
    divisor = where(is_negative, sine, where(is_small, distance, 1))
    of_divisor = where(divisor.equals(0), -np.inf, logarithm(divisor))

    numerator, denominator = (
        parallel_polynomial(point, coefficients) for coefficients in known.lgamma
    )
    numerator = numerator * ((point - 1) * (point - 2))
    is_large = point >= _LARGE
    series = [number / (2 * k * (2 * k - 1)) for k, number in enumerate(BERNOULLI, 1)]
    tail = _tail(point, series[: known.terms])
    numerator = where(is_large, tail.numerator, numerator)
    denominator = where(is_large, tail.power * tail.point, denominator)
    of_point = numerator / denominator
    stirling = (point - 0.5) * logarithm(point) - point + math.log(2 * math.pi) / 2
    of_point = of_point + where(is_large, stirling, 0)
    result = where(is_negative, -of_point, of_point) - of_divisor
    return where(distance < np.inf, result, distance)


def _digamma(distance: Formula, is_negative: Formula, known: Approximation) -> Formula:
    """Return digamma, in float64, of numbers with this distance from zero and this sign."""
    is_small = is_negative | (distance < 1)
    # digamma(x) = digamma(1 + x) - 1 / x, and digamma(-x) = digamma(1 + x) + pi / tan(pi x)
    point = where(is_small, distance + 1, distance)
    from_integer = distance - rounded(distance)
    square = from_integer * from_integer
    cosine = (0.25 - square) * parallel_polynomial(square, known.cosine)
    sine = from_integer * parallel_polynomial(square, known.sine)

    numerator, denominator = (
        parallel_polynomial(point, coefficients) for coefficients in known.digamma
    )
    # XLA would add up the two constants in point - zero - rest.
    numerator = numerator * (point - _DIGAMMA_ZERO) - numerator * _DIGAMMA_ZERO_REST
    is_large = point >= _LARGE
    series = [-number / (2 * k) for k, number in enumerate(BERNOULLI, 1)]
    tail = _tail(point, series[: known.terms])
    numerator = where(is_large, tail.numerator - tail.power * tail.point * 0.5, numerator)
    denominator = where(is_large, tail.power * (tail.point * tail.point), denominator)
    # Add the other fraction, so that there is only one quotient.
    minus_one = filled_like(distance, -1, distance.dtype)
    other_numerator = where(is_negative, cosine, where(is_small, minus_one, 0))
    other_denominator = where(is_negative, sine, where(is_small, distance, 1))
    numerator = numerator * other_denominator + denominator * other_numerator
    denominator = denominator * other_denominator
    result = where(is_large, logarithm(point), 0) + numerator / denominator
    result = where(other_denominator.equals(0), np.nan, result)
    # digamma(infinity) is infinity, and digamma(-infinity) is undefined.
    return where(distance < np.inf, result, where(is_negative, np.nan, distance))


class _Tail(NamedTuple):
    """The terms of Stirling's series in 1 / x**2, times the greatest power of x**2 in them."""

    point: Formula
    """The number x, or the limit if that is less."""
    power: Formula
    numerator: Formula


def _tail(point: Formula, coefficients: Sequence[Fraction]) -> _Tail:
    point = where(point < _LIMIT, point, _LIMIT)
    square = point * point
    numerator = parallel_polynomial(square, [float(x) for x in reversed(coefficients)])
    power = Formula(e.integer_pow(square.value, len(coefficients) - 1))
    return _Tail(point, power, numerator)
