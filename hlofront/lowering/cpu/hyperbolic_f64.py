"""Lowering rules of sinh and cosh for CPUs in float64: functions of x - n log(2).

That remainder r is at most log(2) / 2 in size, so that few terms of the power series of sinh(r) and
cosh(r) are enough. The errors are at most 2.2 and 1.6 ulp. XLA's operations, which add the
logarithm of 1/2 to the operand, have errors of up to 495 ulp.
"""

import math

from hlofront.base.elements import float64
from hlofront.base.named_tuple import NamedTuple
from hlofront.lowering.core.formulas import Formula, clip, parallel_polynomial, rounded
from hlofront.lowering.cpu.elementwise import replaced_by_formula
from hlofront.lowering.cpu.float_bits import whole_power_of_two, with_sign_of
from hlofront.lowering.cpu.log import LOG_2, LOG_2_REST
from hlofront.primitives.elementwise import elementwise as e

# The hyperbolic functions of more are infinite.
_GREATEST = 710.6

# sinh(r) / r - 1 and cosh(r) - 1, divided by r**2, as polynomials of r**2: with errors of 3e-19.
_SINE = [1 / math.factorial(k) for k in range(3, 14, 2)]
_COSINE = [1 / math.factorial(k) for k in range(2, 13, 2)]


class _Parts(NamedTuple):
    """The hyperbolic functions of n log(2), divided by 2, and those of the remainder."""

    sine: Formula
    cosine: Formula
    sine_of_rest: Formula
    cosine_of_rest: Formula
    """The hyperbolic cosine, less 1."""


def _parts(x: Formula) -> _Parts:
    """Return the parts of the hyperbolic functions of |x|; the functions may overflow."""
    x = clip(0, abs(x), _GREATEST)
    whole = rounded(x * (1 / math.log(2)))
    rest = (x - whole * LOG_2) - whole * LOG_2_REST
    square = rest * rest
    sine = rest + rest * (square * parallel_polynomial(square, _SINE))
    cosine = square * parallel_polynomial(square, _COSINE)
    power = whole_power_of_two(whole - 2)
    # Of more the inverse is less than half of a unit in the last place.
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
