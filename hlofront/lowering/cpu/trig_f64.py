"""The lowering rules of inverse trigonometric functions for CPUs in float64.

XLA's CPU code calls a scalar function of the C library for each element. The formulas here have no
branches: quotients of polynomials, plus what rounding loses. The errors are at most 0.91 ulp; XLA's
asin and acos have 1.4 ulp.
"""

import math

import numpy as np

from hlofront.base.elements import float64, int64
from hlofront.base.named_tuple import NamedTuple
from hlofront.lowering.core.formulas import Formula, parallel_polynomial, sqrt, where
from hlofront.lowering.cpu.elementwise import replaced_by_formula
from hlofront.lowering.cpu.float_bits import (
    filled_like,
    reciprocal,
    reinterpreted,
    with_sign_of,
    without_last_bits,
)
from hlofront.lowering.cpu.trig import HALF_PI, HALF_PI_BITS, in_parts
from hlofront.primitives.elementwise import elementwise as e

# An interpolation at Chebyshev's points of (arcsin(x) / x - 1) / x**2 to 1/2, a numerator and a
# denominator that are polynomials of the square, with an error of 6e-17.
_ARC_SINE = (
    [
        0.16666666666666666,
        -0.32506281072499676,
        0.20050098243982578,
        -0.039804643833901816,
        0.0007824047361233684,
        3.4197032079123224e-05,
    ],
    [
        1.0,
        -2.4003768643499854,
        2.0153183407399062,
        -0.6850546943675666,
        0.07648737359869638,
    ],
)
# An interpolation of (arctan(x) / x - 1) / x**2 to tan(pi / 8), with an error of 6e-17.
_ARC_TANGENT = (
    [
        -0.3333333333333333,
        -0.5573737280760701,
        -0.27549428869408615,
        -0.038172263637594336,
        -0.00018011040540759092,
    ],
    [
        1.0,
        2.2721211842282067,
        1.7611841480482893,
        0.5307943912300589,
        0.0488702160298866,
    ],
)
# The angles of smaller sines are the sines; the last bits of some would be subnormal.
_LEAST = 1e-250
# Pi/2 is the sum of these.
_HALF_PI, _HALF_PI_REST = in_parts(HALF_PI, -HALF_PI_BITS, 53)


class _AngleOfSine(NamedTuple):
    """The angle of a sine from 0 to 1, or half of the angle's distance from pi/2, as a sum."""

    is_steep: Formula
    """Whether the sine is above 1/2, so that this is half of the distance."""
    first: Formula
    """A number of 26 bits."""
    rest: Formula


def _angle_of_sine(sine: Formula) -> _AngleOfSine:
    is_steep = sine > 0.5
    # 1 - sin(a) = 2 sin((pi/2 - a) / 2)**2
    square = where(is_steep, (1 - sine) * 0.5, sine * sine)
    root = where(is_steep, sqrt(square), sine)
    first = without_last_bits(root, 27)
    # For the root of zero there is no quotient.
    lost = (square - first * first) / (root + first + _LEAST)
    lost = where(is_steep, lost, root - first)
    numerator, denominator = (
        parallel_polynomial(square, coefficients) for coefficients in _ARC_SINE
    )
    return _AngleOfSine(is_steep, first, root * (square * numerator / denominator) + lost)


@replaced_by_formula(e.asin_p, float64)
def _arc_sine(x: Formula) -> Formula:
    is_steep, first, rest = _angle_of_sine(abs(x))
    steep = (_HALF_PI - first * 2) - (rest * 2 - _HALF_PI_REST)
    angle = where(is_steep, steep, first + rest)
    return where(abs(x) < _LEAST, x, where(x < 0, -angle, angle))


@replaced_by_formula(e.acos_p, float64)
def _arc_cosine(x: Formula) -> Formula:
    is_steep, first, rest = _angle_of_sine(abs(x))
    first, rest = (where(x < 0, -part, part) for part in (first, rest))
    whole = where(x < 0, 2.0, first * 0) * _HALF_PI
    whole_rest = where(x < 0, 2.0, first * 0) * _HALF_PI_REST
    steep = (whole + first * 2) + (rest * 2 + whole_rest)
    return where(is_steep, steep, _HALF_PI - (first + (rest - _HALF_PI_REST)))


@replaced_by_formula(e.atan2_p, float64)
def _angle_of_point(y: Formula, x: Formula) -> Formula:
    """Return the angle of the point (x, y), with the sign of y."""
    eighths, first, rest = _angle_between(abs(y), abs(x))
    is_left = reinterpreted(x, int64) < 0
    eighths = where(is_left, 4 - eighths, eighths)
    first, rest = (where(is_left, -part, part) for part in (first, rest))
    angle = with_sign_of(y, _in_radians(_AngleInParts(eighths, first, rest)))
    return where(x.equals(x) & y.equals(y), angle, np.nan)


class _AngleInParts(NamedTuple):
    """An angle as a number of eighths of a turn, up to 4, plus a sum in radians."""

    eighths: Formula
    first: Formula
    rest: Formula


# The product of the first part and a number of eighths is exact.
_EIGHTH, _EIGHTH_REST = in_parts(HALF_PI, -HALF_PI_BITS - 1, 50)


def _in_radians(angle: _AngleInParts) -> Formula:
    whole = angle.eighths * _EIGHTH
    total = whole + angle.first
    lost = (whole - total) + angle.first
    return total + (lost + (angle.rest + angle.eighths * _EIGHTH_REST))


def _angle_between(y: Formula, x: Formula) -> _AngleInParts:
    """Return the angle from 0 to pi/2 of a point (x, y) with nonnegative coordinates."""
    is_steep = y > x
    short, long = where(is_steep, x, y), where(is_steep, y, x)
    # Scale extreme coordinates, so that sums are finite and rounding errors are not subnormal.
    one = filled_like(x, 1, float64)
    scale = where(long < 2.0**400, 2.0**100, one * 2.0**-100)
    scale = where(long < 2.0**-400, 2.0**600, scale)
    short, long = short * scale, long * scale
    # The angle of infinite coordinates is pi/4, that of zeros is 0.
    is_infinite = long.equals(np.inf)
    short = where(is_infinite, where(short < np.inf, 0.0, one), short)
    long = where(is_infinite | long.equals(0), 1.0, long)
    # arctan(t) = pi/4 + arctan((t - 1) / (t + 1)): the argument of the series is at most tan(pi/8).
    is_wide = short > long * math.tan(math.pi / 8)
    difference, total = short - long, short + long
    lost_of_difference = where(is_wide, short - (difference + long), 0.0)
    lost_of_total = where(is_wide, short - (total - long), 0.0)
    numerator, denominator = where(is_wide, difference, short), where(is_wide, total, long)
    # The first bits of the ratio, whose product with those of the denominator is exact.
    inverse = reciprocal(denominator)
    guess = numerator * inverse
    # The last bits of smaller numbers would be subnormal.
    first = where(abs(guess) < _LEAST, guess, without_last_bits(guess, 27))
    bits = without_last_bits(denominator, 27)
    left = (numerator - first * bits) - first * ((denominator - bits) + lost_of_total)
    lost = (left + lost_of_difference) * inverse
    ratio = first + lost
    square = ratio * ratio
    above, below = (parallel_polynomial(square, coefficients) for coefficients in _ARC_TANGENT)
    rest = lost + ratio * square * above / below
    eighths = where(is_wide, 1.0, where(is_steep, 2.0, one * 0))
    first, rest = (where(is_steep, -part, part) for part in (first, rest))
    return _AngleInParts(eighths, first, rest)
