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
from hlofront.primitives import elementwise
from hlofront.primitives.converting import convert, strong
from hlofront.primitives.weak_types import times_one
from hlofront.runtime.dispatch.operation import operation
from hlofront.scipy.special import series
from hlofront.scipy.special.arguments import in_float32, inexact_arrays, strong_floats
from hlofront.scipy.special.series import chebyshev_sum, polynomial

# The numbers of terms of Weideman's series, and of the continued fraction for abs(z) > 7.
_TERMS = {"complex64": (20, 6), "complex128": (40, 12)}


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


def _upper(z: Array) -> Array:
    """Return the Faddeeva function of complex numbers with nonnegative imaginary part."""
    terms, levels = _TERMS[typeof(z).dtype.name]
    scale, coefficients = _weideman(terms)
    far = jnp.abs(z) > 7
    near_z = jnp.where(far, 0.0, z)
    turned = 1j * near_z
    divisor = scale - turned
    fraction = (scale + turned) / divisor
    near = (2 * polynomial(coefficients, fraction) / divisor + 1 / math.sqrt(math.pi)) / divisor
    # Far from 0, Laplace's continued fraction DLMF 7.9.3 is exact.
    far_z = jnp.where(far, z, 8.0)
    below = far_z
    for level in range(levels, 0, -1):
        below = far_z - (level / 2) / below
    result = jnp.where(far, (1j / math.sqrt(math.pi)) / below, near)
    result = jnp.where(jnp.isinf(jnp.real(z)) | jnp.isinf(jnp.imag(z)), 0.0, result)
    real = jnp.where(jnp.imag(z) == 0, jnp.exp(-jnp.square(jnp.real(z))), jnp.real(result))
    return elementwise.complex(real, jnp.imag(result))


@custom_jvp
def _wofz(z: Array) -> Array:
    below = jnp.imag(z) < 0
    upper = _upper(jnp.where(below, -z, z))
    # Below the real axis w(z) = 2 exp(-z^2) - w(-z).
    inside = jnp.where(below, z, 0.0)
    real, imaginary = jnp.real(inside), jnp.imag(inside)
    size = 2 * jnp.exp((imaginary - real) * (imaginary + real))
    angle = -2 * real * imaginary
    other = elementwise.complex(size * jnp.cos(angle), size * jnp.sin(angle))
    return jnp.where(below, other - upper, upper)


_wofz.defjvps(lambda t, result, z: t * (2j / math.sqrt(math.pi) - 2 * z * result))


@operation
def wofz(z: ArrayLike) -> Array:
    """Compute elementwise the Faddeeva function, exp(-z^2) erfc(-i z).

    The method is that of Weideman, "Computation of the complex error function" (1994), and far from
    0 by Laplace's continued fraction.

    Args:
      z: an array of complex or real numbers.

    Returns:
      An array of complex numbers.

    Raises:
      TypeError: if z is neither array nor scalar.
    """
    (z,) = inexact_arrays("wofz", z)
    return _wofz(convert(z, to_complex_dtype(typeof(z).dtype), False))


# ---- of real numbers -----------------------------------------------------------------------------


def _exp_of_square(x: Array) -> Array:
    """Return exp(x^2) accurately: the square is split into an exact part and a small one."""
    high = jnp.round(x * 16) / 16
    return jnp.exp(jnp.square(high)) * jnp.exp((x - high) * (x + high))


def erfcx_of_positive(x: Array) -> Array:
    """Return exp(x^2) erfc(x) of positive float32 or float64 numbers, by a Chebyshev series."""
    finite = jnp.where(x < jnp.inf, x, 0.0)
    t = jnp.where(x < jnp.inf, (3.5 - finite) / (3.5 + finite), -1.0)
    return chebyshev_sum(series.ERFCX, t) / (3.5 + x)


@custom_jvp
def real_erfcx(x: Array) -> Array:
    """Return exp(x^2) erfc(x) of float32 or float64 numbers."""
    size = jnp.abs(x)
    upper = erfcx_of_positive(size)
    # For x < -30 the result overflows; the bound keeps the product from being NaN.
    negative = jnp.where(size < 30, 2 * _exp_of_square(jnp.minimum(size, 30)) - upper, jnp.inf)
    return jnp.where(x < 0, negative, jnp.where(x != x, x, upper))


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

    For real numbers the method is a Chebyshev series in (a - x) / (a + x); for complex ones it is
    `wofz`.

    Args:
      x: real or complex numbers; integers and booleans are taken for default floats.

    Returns:
      An array of the shape and inexact dtype of x.

    Raises:
      TypeError: if x is neither array nor scalar.
    """
    (x,) = inexact_arrays("erfcx", x)
    if is_complex(typeof(x).dtype):
        x = times_one(x)
        return _wofz(elementwise.complex(-jnp.imag(x), jnp.real(x)))
    return in_float32(real_erfcx, strong(x))


@custom_jvp
def _dawsn(x: Array) -> Array:
    square = jnp.square(jnp.where(jnp.abs(x) < 8, x, 0.0))
    middle = chebyshev_sum(series.DAWSON, (20.25 - square) / (20.25 + square)) / (20.25 + square)
    # Near 0 the power series DLMF 7.6.2 is used, and for large x the asymptotic one of 7.12.
    small = jnp.where(square < 1.3, square, 0.0)
    near_terms, far_terms = (12, 5) if typeof(x).dtype == np.float32 else (23, 17)
    near: Array | float = 1.0
    for k in range(near_terms, 0, -1):
        near = 1 - small * near * (2 / (2 * k + 1))
    inverse = jnp.where(jnp.abs(x) < 8, 0.0, 1 / x)
    far: Array | float = 1.0
    for k in range(far_terms, 0, -1):
        far = 1 + jnp.square(inverse) * far * (k - 0.5)
    inner = x * jnp.where(square < 1.3, near, middle)
    return jnp.where(jnp.abs(x) < 8, inner, 0.5 * inverse * far)


_dawsn.defjvps(lambda t, result, x: t * (1 - 2 * x * result))


@operation
def dawsn(x: ArrayLike) -> Array:
    """Compute elementwise Dawson's integral, exp(-x^2) times the integral of exp(t^2) from 0 to x.

    The method is a Chebyshev series in (a^2 - x^2) / (a^2 + x^2); near 0 and for large x it is the
    series of DLMF 7.6.2 and 7.12.

    Args:
      x: real numbers; integers and booleans are taken for default floats.

    Returns:
      An array of the shape and floating-point dtype of x.

    Raises:
      TypeError: if x is neither array nor scalar.
      ValueError: if x is complex.
    """
    return in_float32(_dawsn, *strong_floats("dawsn", x))
