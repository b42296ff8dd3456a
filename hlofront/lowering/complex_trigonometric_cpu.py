"""Lowering rules of trigonometric and hyperbolic functions of complex numbers for CPUs.

The sines and exponentials of both parts are computed once for both parts of the result. Those of
complex64 are computed in float64: the errors are 0.5 units in the last place of a part. In
complex128 they are at most 2.5, and those of quotients 4.2. XLA's operations lose all bits of some
parts: of sinh(x) and cosh(x) of small real parts, and of tan(x) and tanh(x) beside multiples of
pi/2. Else they err by up to 25 units in complex64, 495 in complex128, sin and cos by 5.2 and 3.7;
and these are infinite where the exponential is.

The processor time of 100,000 elements in nanoseconds each, as XLA's operation and so, on a loaded
Intel Xeon of 2 cores: of complex64 by AVX-512 sinh and cosh 18.8 and 4.9, tanh, sin, cos and tan
11.3 and 4.6, by AVX2 17.5 and 6.7, 10.7 and 7.6; of complex128 sinh and cosh 36.7 and 9.3, the
others 23.6 and 8.9, by AVX2 36.2 and 9.3, 23 and 10.1. To compile them takes 38 ms for 62, and 40
for 160 of complex128, whose huge angles have XLA's operation.
"""

from collections.abc import Callable

import numpy as np

from hlofront.core.primitive import Primitive
from hlofront.lowering import trigonometric_cpu as narrow_angles
from hlofront.lowering import wide_trigonometric_cpu as wide_angles
from hlofront.lowering.complex_cpu import of_parts, parts_of
from hlofront.lowering.formulas import Formula, where
from hlofront.lowering.many_numbers_cpu import of_many
from hlofront.lowering.narrow_floats_cpu import as_dtype, filled_like, wide, with_sign_of
from hlofront.lowering.wide_exponentials_cpu import powers_of_two, scaled_parts
from hlofront.primitives import elementwise as e

_complex64, _complex128 = np.dtype(np.complex64), np.dtype(np.complex128)
_float32 = np.dtype(np.float32)

_Parts = tuple[Formula, Formula]


def _sine_and_cosine(angle: Formula) -> _Parts:
    angles = narrow_angles if angle.dtype == _float32 else wide_angles
    return angles.sine_and_cosine(angle)


def _hyperbolic_sine(real: Formula, imag: Formula) -> _Parts:
    """Return sinh(a) cos(b) and cosh(a) sin(b)."""
    sine, cosine = _sine_and_cosine(imag)
    of_real = scaled_parts(wide(real))
    first, second = powers_of_two(of_real.exponent)
    one = with_sign_of(wide(real), of_real.sine) * first * cosine * second
    other = of_real.cosine * first * sine * second
    return as_dtype(one, real.dtype), where(imag.equals(0), imag, as_dtype(other, real.dtype))


def _hyperbolic_cosine(real: Formula, imag: Formula) -> _Parts:
    """Return cosh(a) cos(b) and sinh(a) sin(b)."""
    sine, cosine = _sine_and_cosine(imag)
    of_real = scaled_parts(wide(real))
    first, second = powers_of_two(of_real.exponent)
    one = of_real.cosine * first * cosine * second
    other = where(imag.equals(0), wide(imag), of_real.sine * first * sine * second)
    sign = with_sign_of(wide(real), filled_like(one, 1, one.dtype))
    other = other * where(real.equals(real), sign, 1.0)
    return as_dtype(one, real.dtype), as_dtype(other, real.dtype)


def _hyperbolic_tangent(real: Formula, imag: Formula) -> _Parts:
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


def _register(of_real: Primitive, of_imag: Primitive, function: Callable[..., _Parts]) -> None:
    """Register a hyperbolic function f, and the trigonometric function f(iz) / i of it or f(iz)."""
    is_odd = function is not _hyperbolic_cosine

    def hyperbolic(x: Formula) -> Formula:
        return of_parts(*function(*parts_of(x)))

    def trigonometric(x: Formula) -> Formula:
        real, imag = parts_of(x)
        if not is_odd:
            return of_parts(*function(-imag, real))
        other, one = function(imag, real)
        return of_parts(one, other)

    def angle_is_huge(index: int) -> Callable[[Formula], Formula]:
        return lambda x: wide_angles.is_huge(parts_of(x)[index])

    of_many(of_real, _complex64)(hyperbolic)
    of_many(of_real, _complex128, angle_is_huge(1))(hyperbolic)
    of_many(of_imag, _complex64)(trigonometric)
    of_many(of_imag, _complex128, angle_is_huge(0))(trigonometric)


_register(e.sinh_p, e.sin_p, _hyperbolic_sine)
_register(e.cosh_p, e.cos_p, _hyperbolic_cosine)
_register(e.tanh_p, e.tan_p, _hyperbolic_tangent)
