"""Lowering rules of trigonometric and hyperbolic functions of complex numbers for CPUs.

The sines and exponentials of both parts are computed once for both parts of the result. Those of
complex64 are computed in float64: the errors are 0.5 units in the last place of a part. In
complex128 they are at most 2.5, those of tan and tanh 4.2, and logistic has 3.6 in the last place
of the size. XLA's operations lose all bits of some parts: of sinh(x) and cosh(x) of small real
parts, of tan(x) and tanh(x) near multiples of pi/2, and of logistic near its poles. Else they
err by up to 25 units in complex64, 495 in complex128, sin and cos by 5.2 and 3.7; and these are
infinite where the exponential is.

The processor time of 100,000 elements in nanoseconds each, as XLA's operation and so, on a loaded
Intel Xeon of 2 cores: of complex64 by AVX-512 sinh and cosh 18.8 and 4.9, the others 11.3 and 4.7,
by AVX2 17.5 and 6.7, 10.7 and 7.6; of complex128 sinh and cosh 36.7 and 9.3, the others 23.6 and
9.3, by AVX2 36.2 and 9.3, 23 and 10.3. To compile them takes 38 ms for 62, and 40 for 150 of
complex128, whose huge angles have XLA's operation.
"""

import numpy as np

from hlofront.core.primitive import Primitive
from hlofront.lowering import trigonometric_cpu as narrow_angles
from hlofront.lowering import wide_trigonometric_cpu as wide_angles
from hlofront.lowering.complex_cpu import OfParts, Parts, by_parts, parts_of, turned
from hlofront.lowering.formulas import Formula, where
from hlofront.lowering.many_numbers_cpu import FEWEST, of_many
from hlofront.lowering.narrow_floats_cpu import as_dtype, filled_like, wide, with_sign_of
from hlofront.lowering.wide_exponentials_cpu import powers_of_two, scaled_parts
from hlofront.primitives import elementwise as e

_complex64, _complex128 = np.dtype(np.complex64), np.dtype(np.complex128)
_float32 = np.dtype(np.float32)


def _sine_and_cosine(angle: Formula) -> Parts:
    angles = narrow_angles if angle.dtype == _float32 else wide_angles
    return angles.sine_and_cosine(angle)


def _hyperbolic_sine(real: Formula, imag: Formula) -> Parts:
    """Return sinh(a) cos(b) and cosh(a) sin(b)."""
    sine, cosine = _sine_and_cosine(imag)
    of_real = scaled_parts(wide(real))
    first, second = powers_of_two(of_real.exponent)
    one = with_sign_of(wide(real), of_real.sine) * first * cosine * second
    other = of_real.cosine * first * sine * second
    return as_dtype(one, real.dtype), where(imag.equals(0), imag, as_dtype(other, real.dtype))


def _hyperbolic_cosine(real: Formula, imag: Formula) -> Parts:
    """Return cosh(a) cos(b) and sinh(a) sin(b)."""
    sine, cosine = _sine_and_cosine(imag)
    of_real = scaled_parts(wide(real))
    first, second = powers_of_two(of_real.exponent)
    one = of_real.cosine * first * cosine * second
    other = where(imag.equals(0), wide(imag), of_real.sine * first * sine * second)
    sign = with_sign_of(wide(real), filled_like(one, 1, one.dtype))
    other = other * where(real.equals(real), sign, 1.0)
    return as_dtype(one, real.dtype), as_dtype(other, real.dtype)


def _hyperbolic_tangent(real: Formula, imag: Formula) -> Parts:
    """Return sinh(a) cosh(a) and sin(b) cos(b), divided by sinh(a)**2 + cos(b)**2."""
    sine, cosine = _sine_and_cosine(imag)
    # The tangent of infinity is 1, even if the angle is unknown.
    is_known = cosine.equals(cosine) | ~abs(real).equals(np.inf)
    sine, cosine = (where(is_known, each, 1.0) for each in (sine, cosine))
    of_real = scaled_parts(wide(real))
    square = of_real.inverse_square
    denominator = of_real.sine * of_real.sine + square * cosine * cosine
    one = with_sign_of(wide(real), of_real.sine * of_real.cosine / denominator)
    other = square * sine * cosine / denominator
    return as_dtype(one, real.dtype), where(imag.equals(0), imag, as_dtype(other, real.dtype))


def _logistic(real: Formula, imag: Formula) -> Parts:
    """Return 1 / (1 + exp(-x)), which is half of 1 + tanh(x / 2)."""
    sine, cosine = _sine_and_cosine(imag)
    of_real = scaled_parts(wide(real) * 0.5)
    square, total = of_real.inverse_square, of_real.sine + of_real.cosine
    # 1 + cos(b) is sin(b)**2 / (1 - cos(b)).
    one_more = where(cosine < 0, sine * sine / (1 - cosine), 1 + cosine)
    size = (of_real.sine * of_real.sine * 2 + square * one_more) * 2
    # Where a < 0 there is a difference, of small terms if a is small, else with few roundings.
    power = total * total
    near, far = power * one_more - of_real.sine * total * 2, square + cosine * power
    left, right = where(square < 1, far, near), size * 0.5 + of_real.sine * of_real.cosine * 2
    is_left = wide(real) < 0
    quotient = where(is_left, left, right) / (size * where(is_left, power, 1.0))
    one = quotient * where(is_left, square, 1.0)
    other = square * sine / size
    return as_dtype(one, real.dtype), where(imag.equals(0), imag, as_dtype(other, real.dtype))


def _cosine(real: Formula, imag: Formula) -> Parts:
    """Return cosh(i (a + bi))."""
    return _hyperbolic_cosine(-imag, real)


def _register(
    primitive: Primitive, function: OfParts, part_of_angle: int, fewest: int = FEWEST
) -> None:
    """Register a function whose angle is the real part, 0, or the imaginary one, 1.

    `fewest` is the least number of elements of complex64 for which the formula takes less time.
    """

    def is_huge(x: Formula) -> Formula:
        return wide_angles.is_huge(parts_of(x)[part_of_angle])

    of_many(primitive, _complex64, fewest=fewest)(by_parts(function))
    of_many(primitive, _complex128, is_huge)(by_parts(function))


_register(e.sinh_p, _hyperbolic_sine, 1)
_register(e.cosh_p, _hyperbolic_cosine, 1)
_register(e.tanh_p, _hyperbolic_tangent, 1, fewest=16_384)
_register(e.logistic_p, _logistic, 1, fewest=16_384)
_register(e.sin_p, turned(_hyperbolic_sine), 0)
_register(e.cos_p, _cosine, 0)
_register(e.tan_p, turned(_hyperbolic_tangent), 0, fewest=16_384)
