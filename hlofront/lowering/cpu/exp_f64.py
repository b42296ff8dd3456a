"""Replacements of sinh, cosh and expm1 on CPUs in float64: functions of x - n log(2).

The remainder r is at most log(2) / 2 in absolute value, so few terms of the power series of sinh(r)
and cosh(r) are enough. The errors are at most 2.2, 1.6 and 3.1 ulp. XLA's sinh and cosh, which add
the logarithm of 1/2 to the operand, have errors of up to 495 ulp. exp keeps XLA's operation, which
is faster for arrays of medium size.
"""

import math

from hlofront.base.elements import float64
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import Array
from hlofront.lowering.core.formulas import (
    Formula,
    clip,
    parallel_polynomial,
    polynomial,
    rounded,
    where,
)
from hlofront.lowering.cpu.elementwise import replaced_by_formula
from hlofront.lowering.cpu.float_bits import whole_power_of_two, with_sign_of
from hlofront.lowering.cpu.log import LOG_2, LOG_2_REST
from hlofront.lowering.min_sizes import MIN_SIZES
from hlofront.lowering.replacements import (
    Candidate,
    Emit,
    has_default_accuracy,
    is_large,
    replaces,
    traced,
)
from hlofront.primitives.elementwise import elementwise as e

# The hyperbolic functions of larger numbers are infinite.
_GREATEST = 710.6

# sinh(r) / r - 1 and cosh(r) - 1, divided by r**2, as polynomials of r**2: with errors of 3e-19.
_SINE = [1 / math.factorial(k) for k in range(3, 14, 2)]
_COSINE = [1 / math.factorial(k) for k in range(2, 13, 2)]


def _reduced(x: Formula) -> tuple[Formula, Formula]:
    """Return n and r of x = n log(2) + r."""
    whole = rounded(x * (1 / math.log(2)))
    return whole, (x - whole * LOG_2) - whole * LOG_2_REST


class _OfRemainder(NamedTuple):
    """The number n in x = n log(2) + r, and the hyperbolic functions of r."""

    whole: Formula
    sine: Formula
    cosine: Formula
    """The hyperbolic cosine, less 1."""


def _of_remainder(x: Formula) -> _OfRemainder:
    whole, rest = _reduced(x)
    square = rest * rest
    sine = rest + rest * (square * parallel_polynomial(square, _SINE))
    return _OfRemainder(whole, sine, square * parallel_polynomial(square, _COSINE))


class _Parts(NamedTuple):
    """The hyperbolic functions of n log(2), divided by 2, and those of the remainder."""

    sine: Formula
    cosine: Formula
    sine_of_rest: Formula
    cosine_of_rest: Formula
    """The hyperbolic cosine, less 1."""


def _parts(x: Formula) -> _Parts:
    """Return the parts of the hyperbolic functions of |x|, which themselves may overflow."""
    whole, sine, cosine = _of_remainder(clip(0, abs(x), _GREATEST))
    power = whole_power_of_two(whole - 2)
    # For larger numbers the inverse is less than half a unit in the last place.
    inverse = whole_power_of_two(-2 - clip(0, whole, 100))
    return _Parts(power - inverse, power + inverse, sine, cosine)


@replaced_by_formula(e.sinh_p, float64)
def _hyperbolic_sine(x: Formula) -> Formula:
    sine, cosine, sine_of_rest, cosine_of_rest = _parts(x)
    half = sine + (sine * cosine_of_rest + cosine * sine_of_rest)
    return with_sign_of(x, half + half)


@replaced_by_formula(e.cosh_p, float64)
def _hyperbolic_cosine(x: Formula) -> Formula:
    sine, cosine, sine_of_rest, cosine_of_rest = _parts(x)
    half = cosine + (cosine * cosine_of_rest + sine * sine_of_rest)
    return half + half


# ---- parts of other functions --------------------------------------------------------------------

# The exponentials of larger numbers overflow even in products with the least normal numbers.
_MAX_FACTOR_EXPONENT = 1418.5


def powers_of_two(exponent: Formula) -> tuple[Formula, Formula]:
    """Return two finite factors of 2**n, for integers n of up to 2046 in absolute value."""
    half = rounded(exponent * 0.5)
    return whole_power_of_two(half), whole_power_of_two(exponent - half)


class ExponentialParts(NamedTuple):
    """Two factors of exp(x) that do not overflow, unlike the product for large x."""

    first: Formula
    second: Formula
    less_one: Formula
    """exp(x) - 1, divided by the second factor."""


def exponential_parts(x: Formula) -> ExponentialParts:
    # For smaller numbers the exponential is zero, even if its second factor is not.
    whole, sine, cosine = _of_remainder(clip(-740, x, _MAX_FACTOR_EXPONENT))
    first, second = powers_of_two(whole)
    terms = first * (sine + cosine)
    return ExponentialParts(first + terms, second, (first - 1 / second) + terms)


# ---- expm1 ---------------------------------------------------------------------------------------

# An interpolation at Chebyshev's points of r / tanh(r / 2) to log(2) / 2, as a polynomial of the
# square: with a relative error of 2e-17.
_QUOTIENT = [
    2.0,
    0.16666666666666574,
    -0.0027777777776883134,
    6.613756295849671e-05,
    -1.6533880703937878e-06,
    4.137481768308834e-08,
]
# The exponentials of larger numbers are infinite, those of smaller ones at most half an ulp of 1.
_RANGE = -40.0, 710.0
# Below this the result is the operand; subnormal products would lack the last bits.
_LEAST = 1e-290


@replaces(e.expm1_p, form="float64", splits=True)
def _(equation: Candidate) -> Emit | None:
    """A vectorized formula."""
    (aval,) = equation.avals_in
    if aval.dtype != float64 or not has_default_accuracy(equation):
        return None
    return traced(_of_array) if is_large(aval, MIN_SIZES["expm1"]["float64"]) else None


def _of_array(x: Array) -> Array:
    return _less_one(Formula(x)).value


def _less_one(x: Formula) -> Formula:
    """Return exp(x) - 1 as a quotient, which XLA never recomputes, so it needs no barrier."""
    least, greatest = _RANGE
    whole, rest = _reduced(clip(least, x, greatest))
    quotient = (rest + rest) / (polynomial(rest * rest, _QUOTIENT) - rest)
    power = whole_power_of_two(whole - 1)
    half = (power - 0.5) + power * quotient
    return where(abs(x) < _LEAST, x, half + half)
