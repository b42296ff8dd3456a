"""Replacements of exponentials and logarithms of complex numbers on CPUs.

XLA's CPU code calls scalar functions of the C library for sines and angles. Formulas for complex64
compute in float64, so rounding is nearly their only error. Logarithms of numbers of absolute value
near 1 are computed with 106 bits.
"""

import math

import numpy as np

from hlofront.base.elements import float32, float64
from hlofront.lowering.core.formulas import Formula, clip, polynomial, where
from hlofront.lowering.cpu import trig as narrow_angles
from hlofront.lowering.cpu import trig_f64 as wide_angles
from hlofront.lowering.cpu.elementwise import replaced_by_formula
from hlofront.lowering.cpu.exp_f64 import exponential_parts
from hlofront.lowering.cpu.float_bits import (
    as_dtype,
    filled_like,
    magnitude,
    narrow,
    sign_bit,
    wide,
    with_sign,
    with_sign_of,
    without_last_bits,
)
from hlofront.lowering.cpu.log import logarithm, one_more
from hlofront.lowering.cpu.powers_of_two import binary_logarithm, power_of_two
from hlofront.primitives.elementwise import elementwise as e

_complex64, _complex128 = np.dtype(np.complex64), np.dtype(np.complex128)


Parts = tuple[Formula, Formula]


def parts_of(x: Formula) -> Parts:
    return Formula(e.real(x.value)), Formula(e.imag(x.value))


def of_parts(real: Formula, imag: Formula) -> Formula:
    return Formula(e.complex(real.value, imag.value))


@replaced_by_formula(e.exp_p, _complex64)
def _exponential(x: Formula) -> Formula:
    real, imag = parts_of(x)
    size = power_of_two(clip(-1000, wide(real) * (1 / math.log(2)), 1000))
    sine, cosine = narrow_angles.sine_and_cosine(imag)
    return of_parts(narrow(size * cosine), where(imag.equals(0), imag, narrow(size * sine)))


@replaced_by_formula(e.log_p, _complex64)
def _logarithm(x: Formula) -> Formula:
    real, imag = parts_of(x)
    one, other = magnitude(real), magnitude(imag)
    is_steep = other > one
    long, short = where(is_steep, other, one), where(is_steep, one, other)
    # The products are exact for numbers near 1 in absolute value.
    square, less_one = one * one + other * other, (long - 1) * (long + 1) + short * short
    size = logarithm_of_one_more(less_one, square) * 0.5
    size = where(square.equals(0), -np.inf, where(square < np.inf, size, square))
    size = where(one.equals(np.inf) | other.equals(np.inf), np.inf, size)
    return of_parts(narrow(size), narrow_angles.in_quadrant(imag, real, other, one))


def _exponential_less_one(x: Formula) -> Formula:
    real, imag = parts_of(x)
    angles = narrow_angles if real.dtype == float32 else wide_angles
    sine, cosine = angles.sine_and_cosine(imag)
    first, second, less_one = exponential_parts(wide(real))
    # 1 - cos(b) is sin(b)**2 / (1 + cos(b)).
    rest = where(cosine > 0, sine * sine / (1 + cosine), 1 - cosine)
    one, other = less_one * cosine * second - rest, first * sine * second
    one, other = (as_dtype(part, real.dtype) for part in (one, other))
    return of_parts(one, where(imag.equals(0), imag, other))


replaced_by_formula(e.expm1_p, _complex64)(_exponential_less_one)


def _sum(x: Formula, y: Formula) -> tuple[Formula, Formula]:
    """Return a rounded sum, and its rounding error."""
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def logarithm_of_one_more(x: Formula, total: Formula) -> Formula:
    """Return log(1 + x) of float64 numbers x, given 1 + x, rounded or more precise."""
    # The logarithms of numbers this close to 1 lose bits. The series is NaN if x is.
    series = x * polynomial(x, [1.0, -1 / 2, 1 / 3])
    return where(abs(x) > 1e-4, binary_logarithm(total) * math.log(2), series)


@replaced_by_formula(e.log1p_p, _complex64)
def _logarithm_of_one_more(x: Formula) -> Formula:
    real, imag = parts_of(x)
    one, other = with_sign_of(wide(real), magnitude(real)), magnitude(imag)
    # |1 + a + b i|**2 is 1 more than this sum of exact products.
    total, lost = _sum(one * 2, one * one)
    total, rest = _sum(total, other * other)
    square = (1 + one) * (1 + one) + other * other
    size = logarithm_of_one_more(total + (lost + rest), square) * 0.5
    size = where(square.equals(0), -np.inf, size)
    size = where(other.equals(np.inf) | abs(one).equals(np.inf), np.inf, size)
    angle = narrow_angles.angle_between(other, abs(1 + one))
    angle = where(one < -1, math.pi - angle, angle)
    return of_parts(narrow(size), with_sign(narrow(angle), sign_bit(imag)))


def _is_huge(x: Formula) -> Formula:
    return wide_angles.is_huge(parts_of(x)[1])


replaced_by_formula(e.expm1_p, _complex128, _is_huge)(_exponential_less_one)


@replaced_by_formula(e.exp_p, _complex128, _is_huge)
def _exponential_of_wide(x: Formula) -> Formula:
    return _exponential_of_wide_parts(*parts_of(x))


def _exponential_of_wide_parts(real: Formula, imag: Formula) -> Formula:
    first, second, _ = exponential_parts(real)
    sine, cosine = wide_angles.sine_and_cosine(imag)
    return of_parts(first * cosine * second, where(imag.equals(0), imag, first * sine * second))


def _square_less_one(x: Formula, y: Formula) -> Formula:
    """Return x**2 + y**2 - 1, accurate to the last bits if x**2 + y**2 is near 1."""
    first, other_first = (without_last_bits(z, 27) for z in (x, y))
    rest, other_rest = x - first, y - other_first
    # The products are exact.
    high, lost = _sum(first * first - 1, other_first * other_first)
    middle, lost_of_middle = _sum(first * rest * 2, other_first * other_rest * 2)
    total, lost_of_total = _sum(high, middle)
    low = rest * rest + other_rest * other_rest
    return total + (lost_of_total + (lost + lost_of_middle + low))


def _norm_less_one(real: Formula, imag: Formula) -> Formula:
    """Return |1 + a + b i|**2 - 1, accurate to the last bits where it is small."""
    first, other_first = (without_last_bits(z, 27) for z in (real, imag))
    rest, other_rest = real - first, imag - other_first
    # The products are exact.
    high, lost = _sum(real * 2, first * first)
    high, lost_of_high = _sum(high, other_first * other_first)
    middle, lost_of_middle = _sum(first * rest * 2, other_first * other_rest * 2)
    total, lost_of_total = _sum(high, middle)
    low = rest * rest + other_rest * other_rest
    return total + (lost_of_total + (lost + lost_of_high + lost_of_middle + low))


@replaced_by_formula(e.log_p, _complex128)
def _logarithm_of_wide(x: Formula) -> Formula:
    real, imag = parts_of(x)
    return of_parts(_logarithm_of_size(real, imag), wide_angles.angle_of_point(imag, real))


@replaced_by_formula(e.log1p_p, _complex128)
def _logarithm_of_one_more_wide(x: Formula) -> Formula:
    real, imag = parts_of(x)
    size = _logarithm_of_size(1 + real, imag, _norm_less_one(real, imag))
    return of_parts(size, wide_angles.angle_of_point(imag, 1 + real))


def _logarithm_of_size(real: Formula, imag: Formula, less_one: Formula | None = None) -> Formula:
    """Return log |a + b i|, from a precise |a + b i|**2 - 1 if it is known."""
    is_steep = abs(imag) > abs(real)
    long, short = where(is_steep, abs(imag), abs(real)), where(is_steep, abs(real), abs(imag))
    # Scale extreme numbers, so that their squares are normal.
    is_small, is_large = long < 2.0**-500, long > 2.0**500
    one = filled_like(long, 1, float64)
    scale = where(is_small, one * 2.0**600, where(is_large, 2.0**-600, one))
    exponent = where(is_small, one * -600, where(is_large, 600, one * 0))
    long, short = long * scale, short * scale
    difference = _square_less_one(long, short) if less_one is None else less_one
    total, rest = one_more(where(abs(difference) < 0.5, difference, 0))
    square = where(abs(difference) < 0.5, total, long * long + short * short)
    rest = where(abs(difference) < 0.5, rest, 0)
    size = logarithm(square, rest) * 0.5 + exponent * math.log(2)
    size = where(long.equals(0), -np.inf, where(square < np.inf, size, square))
    size = where(real.equals(real) & imag.equals(imag), size, np.nan)
    return where(abs(real).equals(np.inf) | abs(imag).equals(np.inf), np.inf, size)
