"""The sine and cosine integrals, the Fresnel integrals, and Owen's T function."""

from __future__ import annotations

import math

import numpy as np

import hlofront.numpy as jnp
from hlofront.base.dtypes import is_complex
from hlofront.base.elements import float32
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.higher_order.custom_rules.custom_jvp import as_custom_jvp, custom_jvp
from hlofront.numpy.support.near_zero import sine_over
from hlofront.numpy.support.promotion import check_arraylike
from hlofront.primitives.elementwise import special
from hlofront.primitives.elementwise.converting import convert, reduce_precision
from hlofront.primitives.elementwise.weak_types import times_one
from hlofront.runtime.dispatch.operation import operation
from hlofront.scipy.special import series
from hlofront.scipy.special.arguments import in_float32, strong_floats
from hlofront.scipy.special.series import chebyshev_sum

# A pair of values: sine and cosine, or the integrals of both.
Pair = tuple[Array, Array]

# ---- sine and cosine integrals -------------------------------------------------------------------


@custom_jvp
def _sici(x: Array) -> Pair:
    size = jnp.abs(x)
    near = size <= 4
    small = jnp.where(near, size, 1.0)
    square = jnp.square(small)
    variable = square / 8 - 1
    sine_integral = small * chebyshev_sum(series.SINE, variable)
    entire = square * chebyshev_sum(series.COSINE, variable)
    cosine_integral = np.euler_gamma + jnp.log(small) - entire
    finite = size < jnp.inf
    large = jnp.where(near | ~finite, 4.0, size)
    variable = 1 - 2 * ((large - 4) / (large + 4))
    f = chebyshev_sum(series.SINE_LARGE, variable) / large
    g = chebyshev_sum(series.COSINE_LARGE, variable) / large / large
    sine, cosine = jnp.sin(large), jnp.cos(large)
    far_sine = jnp.where(finite, math.pi / 2 - f * cosine - g * sine, math.pi / 2)
    far_cosine = jnp.where(finite, f * sine - g * cosine, 0.0)
    sine_integral = jnp.where(near, sine_integral, far_sine)
    cosine_integral = jnp.where(near, cosine_integral, far_cosine)
    cosine_integral = jnp.where(x == -jnp.inf, jnp.nan, cosine_integral)
    negative = jnp.signbit(x)
    undefined = x != x
    return (
        jnp.where(undefined, x, jnp.where(negative, -sine_integral, sine_integral)),
        jnp.where(undefined, x, cosine_integral),
    )


@_sici.defjvp
def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Pair, Pair]:
    (x,), (t,) = primals, tangents
    return _sici(x), (t * sine_over(x), t * jnp.cos(x) / x)


@as_custom_jvp
@operation
def sici(x: ArrayLike) -> Pair:
    """Compute elementwise the sine integral Si(x) and the cosine integral Ci(x).

    The method is Chebyshev series, of the integrals for abs(x) <= 4 and of the auxiliary functions
    of DLMF 6.2(iii) beyond.

    Args:
      x: real numbers. The cosine integral of a negative number is that of its absolute value.

    Returns:
      (the sine integral, the cosine integral).

    Raises:
      ValueError: if x is complex.
    """
    return in_float32(_sici, *strong_floats("sici", x, by=times_one))


# ---- Fresnel's integrals -------------------------------------------------------------------------


def _quarter_turns(x: Array) -> Pair:
    """Return sine and cosine of pi x^2 / 2, with whole turns subtracted before rounding."""
    # Each part has half the digits, so that products and their remainders are exact.
    wide = typeof(x).dtype.itemsize == 8
    high = reduce_precision(x, *((11, 25) if wide else (8, 11)))
    low = x - high
    rest = sum(jnp.fmod(part, 4) for part in (high * high, 2 * high * low, low * low))
    angle = (math.pi / 2) * rest
    return jnp.sin(angle), jnp.cos(angle)


@custom_jvp
def _fresnel(x: Array) -> Pair:
    size = jnp.abs(x)
    near = size <= 1.6
    small = jnp.where(near, size, 1.0)
    square = jnp.square(small)
    variable = jnp.clip(2 * jnp.square(square / 2.56) - 1, -1, 1)
    near_sine = small * square * chebyshev_sum(series.FRESNEL_SINE, variable)
    near_cosine = small * chebyshev_sum(series.FRESNEL_COSINE, variable)
    # Where the square would overflow, the integrals are at their limit.
    finite = size < 1e18
    large = jnp.where(near | ~finite, 1.6, size)
    square = jnp.square(large)
    variable = jnp.clip(1 - 2 * ((square - 2.56) / (square + 1.5)), -1, 1)
    f = chebyshev_sum(series.FRESNEL_F, variable) / (math.pi * large)
    g = chebyshev_sum(series.FRESNEL_G, variable) / (math.pi**2 * large) / square
    sine, cosine = _quarter_turns(large)
    far_sine = jnp.where(finite, 0.5 - f * cosine - g * sine, 0.5)
    far_cosine = jnp.where(finite, 0.5 + f * sine - g * cosine, 0.5)
    found_sine = jnp.where(near, near_sine, far_sine)
    found_cosine = jnp.where(near, near_cosine, far_cosine)
    negative = jnp.signbit(x)
    undefined = x != x
    return (
        jnp.where(undefined, x, jnp.where(negative, -found_sine, found_sine)),
        jnp.where(undefined, x, jnp.where(negative, -found_cosine, found_cosine)),
    )


@_fresnel.defjvp
def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Pair, Pair]:
    (x,), (t,) = primals, tangents
    sine, cosine = _quarter_turns(x)
    return _fresnel(x), (t * sine, t * cosine)


@as_custom_jvp
@operation
def fresnel(x: ArrayLike) -> Pair:
    """Compute elementwise the Fresnel integrals of sin(pi t^2 / 2), cos(pi t^2 / 2) from 0 to x.

    The method is Chebyshev series, of the integrals for abs(x) <= 1.6 and of the auxiliary
    functions of DLMF 7.2(iv) beyond.

    Args:
      x: real numbers.

    Returns:
      (the sine integral, the cosine integral).

    Raises:
      NotImplementedError: if x is complex.
    """
    check_arraylike("fresnel", x)
    if is_complex(typeof(x).dtype):
        raise NotImplementedError(  # JAX raises this class.
            "fresnel: complex-valued inputs are not supported. Give it the real part, x.real."
        )
    return in_float32(_fresnel, *strong_floats("fresnel", x, by=times_one))


# ---- Owen's T ------------------------------------------------------------------------------------


def _t_by_quadrature(h: Array, a: Array) -> Array:
    """Return T(h, a) for h >= 0 and 0 <= a <= 1, by Gauss-Legendre quadrature."""
    dtype = typeof(h).dtype
    nodes, weights = np.polynomial.legendre.leggauss(16 if dtype == float32 else 36)
    # Beyond this many standard deviations the integrand is numerically zero.
    width = 6.0 if dtype == float32 else 8.7
    end = jnp.minimum(a, width / jnp.where(h > 1, h, 1.0))
    half_square = jnp.square(h) / 2
    total: Array | float = 0.0
    for node, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
        square = jnp.square(end * float(node))
        total = total + float(weight) * jnp.exp(-half_square * square) / (1 + square)
    return jnp.exp(-half_square) * end * total / (2 * math.pi)


@custom_jvp
def _owens_t(h: Array, a: Array) -> Array:
    height, slope = jnp.abs(h), jnp.abs(a)
    steep = slope > 1
    finite = height < 1e18
    product = jnp.where(steep & finite, height, 0.0) * jnp.where(steep, slope, 1.0)
    product = jnp.where(height == 0, 0.0, product)
    inner = jnp.where(steep, product, height)
    inner = jnp.where(inner < 1e18, inner, 0.0)
    unit = jnp.where(steep, 1 / jnp.where(steep, slope, 1.0), slope)
    unit = jnp.where(product < 1e18, unit, 0.0)
    result = _t_by_quadrature(inner, unit)
    tails = [0.5 * special.erfc(x * math.sqrt(0.5)) for x in (height, product)]
    # Owen (1956): T(h, a) + T(a h, 1 / a) equals this expression.
    both = 0.5 * (tails[0] + tails[1]) - tails[0] * tails[1]
    result = jnp.where(steep, both - result, result)
    result = jnp.where(finite, result, 0.0)
    result = jnp.where(a < 0, -result, result)
    return jnp.where((h != h) | (a != a), jnp.nan, result)


def _density(x: Array) -> Array:
    return jnp.exp(-jnp.square(x) / 2) / math.sqrt(2 * math.pi)


_owens_t.defjvps(
    lambda t, result, h, a: -t * (0.5 * _density(h) * special.erf(a * h * math.sqrt(0.5))),
    lambda t, result, h, a: (
        t * jnp.exp(-jnp.square(h) * (1 + jnp.square(a)) / 2) / (2 * math.pi * (1 + jnp.square(a)))
    ),
)


@operation
def owens_t(h: ArrayLike, a: ArrayLike) -> Array:
    """Compute elementwise Owen's T function: the normal probability of X > h and 0 < Y < a X.

    The method is Gauss-Legendre quadrature for abs(a) <= 1; other results follow from
    T(a h, 1 / a), by Owen, "Tables for computing bivariate normal probabilities" (1956).

    Args:
      h, a: arrays of real numbers that broadcast.

    Raises:
      ValueError: if an argument is complex.
    """
    h, a = strong_floats("owens_t", h, a)
    if typeof(h).dtype.itemsize < 4:
        h, a = (convert(x, float32, False) for x in (h, a))
    return _owens_t(h, a)
