"""The Hurwitz zeta function of one whole order for CPUs, in float64, as sums of reciprocals.

The first terms are one fraction, and the others Euler and Maclaurin's series (DLMF 25.11.5). Below
0 the sum over all integers is taken, which is a derivative of the cotangent (DLMF 5.15.6).
"""

import functools
import math
from fractions import Fraction

from hlofront.base.named_tuple import NamedTuple
from hlofront.lowering import gamma_approximations as approximations
from hlofront.lowering.formulas import Formula, parallel_polynomial, rounded, where
from hlofront.lowering.gamma_approximations import BERNOULLI, Approximation
from hlofront.lowering.narrow_floats_cpu import filled_like, reciprocal
from hlofront.primitives import elementwise as e

GREATEST_ORDER = 12
# The inverses of more are subnormal.
_LIMIT = 1e300


class Accuracy(NamedTuple):
    """The numbers of terms and steps for one bound of the errors."""

    shift: int
    """The number of terms that are summed one by one."""
    terms: int
    """The number of terms of the series for the others."""
    newton: int
    """The steps of reciprocals."""
    near: Approximation


# Errors are below 1e-9, and 1e-15.
SINGLE = Accuracy(4, 7, 4, approximations.SINGLE)
DOUBLE = Accuracy(7, 13, 5, approximations.DOUBLE)


def zeta_of_whole(order: int, x: Formula, factor: Fraction, accuracy: Accuracy) -> Formula:
    """Return factor * zeta(order, x) for an order of at least 2."""
    is_odd = order % 2 == 1
    is_negative = x < 0
    other, is_pole = _over_all(order, x, factor, accuracy.near)
    result = _of_positive(order, where(is_negative, 1 - x, x), factor, accuracy)
    # (-1)**order zeta(order, 1 - x) is the sum over the negative integers.
    opposite = result if is_odd else -result
    result = where(is_negative, other + opposite, result)
    return where(is_pole, math.nan if is_odd else math.copysign(math.inf, factor), result)


def _of_positive(order: int, x: Formula, factor: Fraction, accuracy: Accuracy) -> Formula:
    shift = accuracy.shift
    # From here on the series needs no terms before it.
    enough = shift + order
    is_near = x < enough
    near = where(is_near, x, enough)
    numerator, denominator = filled_like(x, 0, x.dtype), filled_like(x, 1, x.dtype)
    # At last the first term, the greatest: the others may be infinitely less.
    for k in reversed(range(shift)):
        power = _power(near + k if k else near, order)
        numerator, denominator = denominator + power * numerator, denominator * power
    numerator = where(is_near, numerator * float(factor), 0)
    start = where(is_near, near + shift, x)
    inverse = reciprocal(where(start < _LIMIT, start, _LIMIT), accuracy.newton)
    square = inverse * inverse
    later = square * parallel_polynomial(square, _series(order, factor, accuracy.terms))
    later = later + inverse * float(factor / 2) + float(factor / (order - 1))
    return numerator / denominator + later / _power(start, order - 1)


def _power(x: Formula, exponent: int) -> Formula:
    return Formula(e.integer_pow(x.value, exponent))


def _series(order: int, factor: Fraction, terms: int) -> list[float]:
    """Return factor * B(2k) / (2k)! * order * (order + 1) * ... * (order + 2k - 2), from k = 1."""
    coefficients: list[float] = []
    rising = factor * order
    for k, number in enumerate(BERNOULLI[:terms], 1):
        coefficients.append(float(number / math.factorial(2 * k) * rising))
        rising *= (order + 2 * k - 1) * (order + 2 * k)
    return coefficients


def _over_all(
    order: int, x: Formula, factor: Fraction, known: Approximation
) -> tuple[Formula, Formula]:
    """Return the sum of factor / (x + k)**order over all integers k, and the poles up to zero."""
    nearest = rounded(x)
    from_integer = x - nearest
    square = from_integer * from_integer
    # sin(pi x) / pi, and cos(pi x).
    first, *others = known.sine
    series = (first - 1) + square * parallel_polynomial(square, others)
    sine = from_integer + from_integer * series
    cosine = (0.25 - square) * parallel_polynomial(square, known.cosine)
    scale = factor / math.factorial(order - 1)
    above = parallel_polynomial(cosine * cosine, [float(scale * k) for k in _cosines(order)])
    if order % 2:
        above = above * cosine
    return above / _power(sine, order), nearest.equals(x) & (x <= 0)


@functools.cache
def _cosines(order: int) -> list[int]:
    """Return the coefficients of cos**2 of a polynomial, and, if the order is odd, times cos.

    Divided by sin**order it is the derivative of the cotangent of that order less 1, but for signs.
    """
    # The derivative of the cotangent c is -(1 + c**2): polynomials of c have such ones of c.
    row = [0, 1]
    for _ in range(order - 1):
        slope = [k * number for k, number in enumerate(row)][1:]
        row = [a + b for a, b in zip([*slope, 0, 0], [0, 0, *slope], strict=True)]
    # c**k sin**order is the product of cos**k and powers of sin**2, which is 1 - cos**2.
    result = [0] * (order // 2 + 1)
    for k in range(order % 2, order + 1, 2):
        count = (order - k) // 2
        for j in range(count + 1):
            result[k // 2 + j] += row[k] * math.comb(count, j) * (-1) ** j
    return result
