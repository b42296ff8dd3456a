"""Replacements of trigonometric functions on CPUs: polynomials in float64.

XLA's CPU code calls a scalar function of the C library for each sine, cosine, tangent and arc
tangent. The formulas here have no branches or calls, so LLVM vectorizes them. They compute in
float64, from operands of at most 32 bits, so rounding to the operands' dtype is nearly their only
error: 0.502 ulp in float32, where XLA has up to 2.3 (asin), 2.1 (acos) and 1.4 ulp (tan).
"""

import math

from hlofront.base.elements import float32, float64, int64
from hlofront.base.named_tuple import NamedTuple
from hlofront.lowering.core.formulas import Formula, clip, polynomial, rounded, sqrt, where
from hlofront.lowering.cpu.elementwise import replaced_by_formula
from hlofront.lowering.cpu.float_bits import (
    filled_like,
    is_subnormal,
    last_bits,
    narrow,
    odd,
    reciprocal,
    reinterpreted,
    shifted_left,
    sign_bit,
    wide,
    with_sign,
)
from hlofront.primitives.elementwise import elementwise as e

# Interpolations at Chebyshev's points, as polynomials of the square: sin(2 pi x) / x to 1/4,
# tan(2 pi x) / x to 1/8, a numerator and a denominator, arcsin(x) / x to 1/2, and arctan(x) / x to
# tan(pi / 8). Their errors are below 3e-11.
_SINE = [
    6.283185307072264,
    -41.341702116744,
    81.60522617402967,
    -76.70427987604262,
    42.009779303153906,
    -14.393966295455941,
]
_TANGENT = (
    [6.283185307294141, -27.62205091503576, 10.52538025697117],
    [1.0, -17.55565841823986, 24.892281394787922],
)
_ARC_SINE = [
    0.9999999999863537,
    0.16666667364186447,
    0.07499941908754719,
    0.04466113930866896,
    0.03010250689966149,
    0.024650862660604088,
    0.0074010072390753795,
    0.0347484248080839,
]
_ARC_TANGENT = [
    0.9999999999783987,
    -0.33333332097609386,
    0.19999883856551304,
    -0.14281588772654125,
    0.1104048922721824,
    -0.08456192886940496,
    0.0470734814196802,
]


# ---- angles in turns -------------------------------------------------------------------------


def _pi(bits: int) -> int:
    """Return pi * 2**bits as an integer, by Machin's formula."""
    guard = 32

    def inverse_tangent(x: int) -> int:
        """Return arctan(1 / x) * 2**(bits + guard), by its power series."""
        power = total = (1 << bits + guard) // x
        n = 1
        while power:
            power //= -x * x
            n += 2
            total += power // n
        return total

    return 4 * (4 * inverse_tangent(5) - inverse_tangent(239)) >> guard


HALF_PI_BITS = 320
HALF_PI = _pi(HALF_PI_BITS - 1)
"""Pi/2 times 2**320."""


def in_parts(x: int, exponent: int, *widths: int) -> list[float]:
    """Return x * 2**exponent as a sum of numbers; the first have these numbers of bits."""
    parts: list[int] = []
    for width in widths:
        dropped = max(x.bit_length() - width, 0)
        parts.append(x >> dropped << dropped)
        x -= parts[-1]
    return [math.ldexp(part, exponent) for part in (*parts, x)]


class _Range(NamedTuple):
    """The range of float32 angles that starts at a power of two."""

    least: float
    turns: list[float]
    """The turns of an angle of 1, modulo whole turns of all angles of the range, in three parts.

    The first two parts have 28 bits, so that their products with angles are exact in float64.
    """


def _range(least: float, unit: int) -> _Range:
    """Return the range from a number on, whose angles are multiples of 2**unit unless it is 0.

    Whole turns of the unit are whole turns of its multiples.
    """
    turns = (1 << unit + 2 * HALF_PI_BITS - 2) // HALF_PI
    return _Range(least, in_parts(turns % (1 << HALF_PI_BITS), -HALF_PI_BITS - unit, 28, 28))


_FLOAT32_WIDTH = 24
# Angles of a range are less than 2**49 units, so the products with the third part are small.
_RANGES = [
    _range(0.0, 0),
    *(_range(2.0**exponent, exponent + 1 - _FLOAT32_WIDTH) for exponent in (28, 53, 78, 103)),
]


class _Angle(NamedTuple):
    """An angle as a multiple of a part of a turn, and a remainder of at most half of that part."""

    multiple: Formula
    """The multiple as int64, whose last bits are correct."""
    rest: Formula
    """The remainder in turns, in float64."""


def _reduced(x: Formula, parts: int, shift: float = 0.0) -> _Angle:
    """Return float32 angles as multiples of a part of a turn, and remainders.

    Source: M. H. Payne and R. N. Hanek, Radian Reduction for Trigonometric Functions (1983), for
    the digits of the ratio that an exponent needs. Here a few ranges of exponents share them.

    Args:
      x: the angles in radians.
      parts: the number of parts of a turn.
      shift: a number to add to the angle, in parts.
    """
    products: list[Formula] = []
    for each in zip(*(known.turns for known in _RANGES)):
        factor = filled_like(x, each[0], float64)
        for known, part in zip(_RANGES[1:], each[1:]):
            factor = where(abs(x) >= known.least, part, factor)
        products.append(wide(x) * factor)
    first, second, third = products
    first = first - rounded(first)
    second = second - rounded(second) + third
    multiple = rounded((first + second) * parts + shift)
    return _Angle(last_bits(multiple), first - (multiple - shift) * (1 / parts) + second)


# ---- functions -------------------------------------------------------------------------------


@replaced_by_formula(e.sin_p, float32)
def _sine(x: Formula) -> Formula:
    return where(is_subnormal(x), x, narrow(_sine_of(_reduced(x, 2))))


@replaced_by_formula(e.cos_p, float32)
def _cosine(x: Formula) -> Formula:
    return narrow(_sine_of(_reduced(x, 2, shift=0.5)))


def _sine_of(angle: _Angle) -> Formula:
    """Return the sine of an angle in halves of a turn."""
    sine = reinterpreted(angle.rest * polynomial(angle.rest * angle.rest, _SINE), int64)
    opposite = shifted_left(angle.multiple, 63)
    return reinterpreted(Formula(e.bitwise_xor(sine.value, opposite.value)), float64)


@replaced_by_formula(e.tan_p, float32)
def _tangent(x: Formula) -> Formula:
    angle = _reduced(x, 4)
    numerator, denominator = (
        polynomial(angle.rest * angle.rest, coefficients) for coefficients in _TANGENT
    )
    numerator = numerator * angle.rest
    is_even = (angle.multiple & 1).equals(0)
    ratio = where(is_even, numerator, -denominator) / where(is_even, denominator, numerator)
    return where(is_subnormal(x), x, narrow(ratio))


@replaced_by_formula(e.atan_p, float32)
def _arc_tangent(x: Formula) -> Formula:
    return odd(x, narrow(_angle_between(wide(abs(x)), wide(filled_like(x, 1, float32)))))


@replaced_by_formula(e.atan2_p, float32)
def _arc_tangent_of_ratio(y: Formula, x: Formula) -> Formula:
    """Return the angle of the point (x, y), with the sign of y."""
    angle = _angle_between(wide(abs(y)), wide(abs(x)))
    angle = where(sign_bit(x).equals(0), angle, math.pi - angle)
    return with_sign(narrow(angle), sign_bit(y))


@replaced_by_formula(e.asin_p, float32)
def _arc_sine(x: Formula) -> Formula:
    is_steep, angle = _angle_of_sine(abs(x))
    return odd(x, narrow(where(is_steep, math.pi / 2 - angle * 2, angle)))


@replaced_by_formula(e.acos_p, float32)
def _arc_cosine(x: Formula) -> Formula:
    is_steep, angle = _angle_of_sine(abs(x))
    is_negative = ~sign_bit(x).equals(0)
    angle = where(is_negative, -angle, angle)
    steep = angle * 2 + where(is_negative, math.pi, angle * 0)
    return narrow(where(is_steep, steep, math.pi / 2 - angle))


def _angle_of_sine(sine: Formula) -> tuple[Formula, Formula]:
    """Return whether a sine is above 1/2, and its angle or, if so, half of the angle to pi/2."""
    sine = wide(sine)
    is_steep = sine > 0.5
    # 1 - sin(a) = 2 sin((pi/2 - a) / 2)**2
    square = where(is_steep, (1 - sine) * 0.5, sine * sine)
    return is_steep, where(is_steep, sqrt(square), sine) * polynomial(square, _ARC_SINE)


def _angle_between(y: Formula, x: Formula) -> Formula:
    """Return the angle from 0 to pi/2 of a point (x, y) with coordinates that are not negative."""
    is_steep = y > x
    # Bounds far beyond the range of float32 make 0 / 0 equal 0, and infinity / infinity equal 1.
    short = clip(0, where(is_steep, x, y), _GREATEST)
    long = clip(1 / _GREATEST, where(is_steep, y, x), _GREATEST)
    # arctan(t) = pi/4 + arctan((t - 1) / (t + 1)): the argument of the series is at most tan(pi/8).
    is_wide = short > long * math.tan(math.pi / 8)
    denominator = where(is_wide, short + long, long)
    ratio = where(is_wide, short - long, short) * reciprocal(denominator)
    series = polynomial(ratio * ratio, _ARC_TANGENT)
    angle = series * ratio + where(is_wide, math.pi / 4, ratio * 0)
    return where(is_steep, math.pi / 2 - angle, angle)


_GREATEST = 1e300
