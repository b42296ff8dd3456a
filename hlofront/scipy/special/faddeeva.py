"""The Faddeeva function, and its real parts: the scaled error function and Dawson's integral."""

from __future__ import annotations

import functools
import math

import numpy as np

import hlofront.numpy as jnp
from hlofront.base.dtypes import is_complex, to_complex_dtype
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.higher_order.custom_jvp import custom_jvp
from hlofront.primitives.elementwise import elementwise
from hlofront.primitives.elementwise.converting import convert, strong
from hlofront.primitives.elementwise.weak_types import times_one
from hlofront.runtime.dispatch.operation import operation
from hlofront.scipy.special import quotients
from hlofront.scipy.special.arguments import in_float32, inexact_arrays, strong_floats
from hlofront.scipy.special.quotients import paired_polynomial
from hlofront.scipy.special.series import polynomial

# The numbers of terms of Weideman's series, and of the asymptotic series for abs(z) > 7.
_TERMS = {"float32": (20, 9), "float64": (40, 26)}


# The real and the imaginary part.
_Parts = tuple[Array, Array]


@functools.cache
def _weideman(count: int) -> tuple[float, tuple[float, ...]]:
    """Return the scale and the `count` coefficients of Weideman's expansion (1994).

    The highest power comes first.
    """
    points = 4 * count
    scale = math.sqrt(count / math.sqrt(2))
    tangent = scale * np.tan(np.arange(1 - points // 2, points // 2) * np.pi / points)
    values = np.concatenate([[0.0], np.exp(-(tangent**2)) * (scale**2 + tangent**2)])
    coefficients = np.real(np.fft.fft(np.fft.fftshift(values))) / points
    return scale, tuple(coefficients[count:0:-1].tolist())


def _product(z: _Parts, w: _Parts) -> _Parts:
    return z[0] * w[0] - z[1] * w[1], z[0] * w[1] + z[1] * w[0]


def _complex_polynomial(coefficients: list[Array], z: _Parts) -> _Parts:
    """Return the polynomial of z with real coefficients, from the highest power down.

    It is the sum of four polynomials of z**4, which a processor computes in parallel.
    """
    square = _product(z, z)
    fourth = _product(square, square)
    powers: list[_Parts] = []
    for k in range(4):
        first, *others = coefficients[k::4]
        total: _Parts = first, 0.0 * first
        for coefficient in others:
            total = _product(total, fourth)
            total = total[0] + coefficient, total[1]
        powers.append(total)
    total = powers[0]
    for power in powers[1:]:
        total = _product(total, z)
        total = total[0] + power[0], total[1] + power[1]
    return total


def _upper(x: Array, y: Array) -> _Parts:
    """Return the parts of the Faddeeva function of x + i y for finite x and nonnegative y."""
    dtype = typeof(x).dtype
    terms, far_terms = _TERMS[dtype.name]
    scale, near_series = _weideman(terms)
    # The asymptotic series DLMF 7.12.1 in 1 / z^2, for w(z) / (i / z).
    far_series = [1 / math.sqrt(math.pi)]
    for k in range(1, far_terms):
        far_series.append(far_series[-1] * (k - 0.5))
    far = jnp.square(x) + jnp.square(y) > 49
    # The squares of great numbers would be infinite.
    great, less = (2.0**60, 2.0**-80) if dtype == np.float32 else (2.0**500, 2.0**-600)
    shrink = jnp.where(jnp.maximum(jnp.abs(x), y) > great, less, 1.0)
    # The inverse of L - i z, or of z.
    real = jnp.where(far, x * shrink, scale + y)
    imaginary = jnp.where(far, y * shrink, -x)
    inverse = 1 / (jnp.square(real) + jnp.square(imaginary))
    real, imaginary = real * inverse * shrink, -imaginary * inverse * shrink
    # The variables of the series are (L + i z) / (L - i z), and 1 / z^2.
    ratio = ((scale - y) * (scale + y) - jnp.square(x)) * inverse
    a = jnp.where(far, (real - imaginary) * (real + imaginary), ratio)
    b = jnp.where(far, 2 * real * imaginary, 2 * scale * x * inverse)
    padding = [0.0] * (terms - far_terms)
    pairs = zip(near_series, [*padding, *reversed(far_series)], strict=True)
    series = [jnp.where(far, far_term, 2 * near_term) for near_term, far_term in pairs]
    total = _complex_polynomial(series, (a, b))
    near_real, near_imaginary = _product(total, (real, imaginary))
    total_real = jnp.where(far, -total[1], near_real + 1 / math.sqrt(math.pi))
    total_imaginary = jnp.where(far, total[0], near_imaginary)
    return _product((total_real, total_imaginary), (real, imaginary))


@custom_jvp
def _wofz(z: Array) -> Array:
    x, y = jnp.real(z), jnp.imag(z)
    is_infinite = jnp.isinf(x) | jnp.isinf(y)
    below = y < 0
    real, imaginary = _upper(jnp.where(below, -x, x), jnp.abs(y))
    depth = jnp.minimum(y, 0.0)
    # On the real axis the real part is exp(-z^2), below it w(z) = 2 exp(-z^2) - w(-z).
    power = jnp.exp((depth - x) * (depth + x))
    real = jnp.where(y == 0, power, jnp.where(is_infinite, 0.0, real))
    imaginary = jnp.where(is_infinite, 0.0, imaginary)
    size, angle = 2 * power, -2 * jnp.where(below, x, 0.0) * depth
    real = jnp.where(below, size * jnp.cos(angle) - real, real)
    imaginary = jnp.where(below, size * jnp.sin(angle) - imaginary, imaginary)
    return elementwise.complex(real, imaginary)


_wofz.defjvps(lambda t, result, z: t * (2j / math.sqrt(math.pi) - 2 * z * result))


@operation
def wofz(z: ArrayLike) -> Array:
    """Compute elementwise the Faddeeva function, exp(-z^2) erfc(-i z).

    The method is that of Weideman, "Computation of the complex error function" (1994), and far from
    0 the asymptotic series.

    Args:
      z: an array of complex or real numbers.

    Returns:
      An array of complex numbers.
    """
    (z,) = inexact_arrays("wofz", z)
    return _wofz(convert(z, to_complex_dtype(typeof(z).dtype), False))


# ---- of real numbers -----------------------------------------------------------------------------


def _exp_of_square(x: Array) -> Array:
    """Return exp(x^2) for x up to 30, with what the rounding of the square loses."""
    bits = 6 if typeof(x).dtype == np.float32 else 20
    # A number with so few bits has an exact square.
    first = jnp.round(x * 2.0**bits) * 2.0**-bits
    square = jnp.square(x)
    lost = (jnp.square(first) - square) + (x - first) * (x + first)
    return jnp.exp(square) * (1 + lost)


def _erfcx_quotient(x: Array) -> tuple[Array, Array]:
    """Return a numerator and a denominator of exp(x^2) erfc(x) for positive numbers."""
    quotient = quotients.ERFCX[typeof(x).dtype.name]
    # Beyond, the first term of the asymptotic series DLMF 7.12.1 is exact.
    limit = 1e4 if typeof(x).dtype == np.float32 else 1e9
    is_huge = x > limit
    near = jnp.where(is_huge, limit, x)
    above = jnp.where(is_huge, 1 / math.sqrt(math.pi), paired_polynomial(quotient.above, near))
    return above, jnp.where(is_huge, x, paired_polynomial(quotient.below, near))


def erfcx_of_positive(x: Array) -> Array:
    """Return exp(x^2) erfc(x) of positive float32 or float64 numbers."""
    above, below = _erfcx_quotient(x)
    return above / below


@custom_jvp
def real_erfcx(x: Array) -> Array:
    """Return exp(x^2) erfc(x) of float32 or float64 numbers."""
    size, is_negative = jnp.abs(x), x < 0
    above, below = _erfcx_quotient(size)
    # The sign goes into the numerator: a quotient that is read twice would be stored in memory.
    upper = jnp.where(is_negative, -above, above) / below
    # For x < -30 the result overflows.
    power = jnp.where(size < 30, 2 * _exp_of_square(jnp.minimum(size, 30)), jnp.inf)
    return jnp.where(is_negative, power, 0.0) + upper


def _slope_of_erfcx(x: Array, result: Array) -> Array:
    # For large x the two terms cancel; the asymptotic series DLMF 7.12.1 does not.
    far = x > 25
    square = 1 / jnp.square(jnp.where(far, x, 25.0))
    tail = 1 - square * (1.5 - square * (3.75 - square * (13.125 - square * 59.0625)))
    near = 2 * jnp.where(far, 0.0, x) * result - 2 / math.sqrt(math.pi)
    return jnp.where(far, -square * tail / math.sqrt(math.pi), near)


real_erfcx.defjvps(lambda t, result, x: t * _slope_of_erfcx(x, result))


@operation
def erfcx(x: ArrayLike) -> Array:
    """Compute elementwise the scaled complementary error function, exp(x^2) erfc(x).

    For real numbers the method is a quotient of polynomials; for complex ones it is `wofz`.

    Args:
      x: real or complex numbers; integers and booleans are converted to the default float dtype.

    Returns:
      An array of the shape and inexact dtype of x.
    """
    (x,) = inexact_arrays("erfcx", x)
    if is_complex(typeof(x).dtype):
        x = times_one(x)
        return _wofz(elementwise.complex(-jnp.imag(x), jnp.real(x)))
    return in_float32(real_erfcx, strong(x))


@custom_jvp
def _dawsn(x: Array) -> Array:
    dtype = typeof(x).dtype
    near, far = quotients.DAWSON_NEAR[dtype.name], quotients.DAWSON_FAR[dtype.name]
    border, limit = (4.0, 1e4) if dtype == np.float32 else (6.5, 1e9)
    size = jnp.abs(x)
    is_near, is_huge = size < border, size > limit
    square = jnp.square(jnp.where(is_huge, limit, size))
    # Beyond the limit the first term of the asymptotic series DLMF 7.12 is exact.
    above = jnp.where(is_huge, 0.5, paired_polynomial(far.above, square))
    below = x * jnp.where(is_huge, 1.0, paired_polynomial(far.below, square))
    above = jnp.where(is_near, x * polynomial(near.above, square), above)
    return above / jnp.where(is_near, polynomial(near.below, square), below)


_dawsn.defjvps(lambda t, result, x: t * (1 - 2 * x * result))


@operation
def dawsn(x: ArrayLike) -> Array:
    """Compute elementwise Dawson's integral, exp(-x^2) times the integral of exp(t^2) from 0 to x.

    The method is x times a quotient of polynomials of x^2, and for large x another one over x.

    Args:
      x: real numbers; integers and booleans are converted to the default float dtype.

    Returns:
      An array of the shape and floating-point dtype of x.

    Raises:
      ValueError: if x is complex.
    """
    return in_float32(_dawsn, *strong_floats("dawsn", x))
