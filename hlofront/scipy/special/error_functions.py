"""The error function, its inverse, and the normal distribution."""

from __future__ import annotations

import math

import numpy as np

import hlofront.numpy as jnp
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.core.trace import Tracer
from hlofront.higher_order.custom_rules.custom_jvp import as_custom_jvp, custom_jvp
from hlofront.numpy.support.promotion import check_arraylike
from hlofront.primitives.elementwise import special
from hlofront.primitives.elementwise.weak_types import times_one
from hlofront.runtime.dispatch.operation import operation
from hlofront.scipy.special.arguments import (
    float32_or_64,
    floats,
    in_float32,
    inexact_arrays,
)
from hlofront.scipy.special.faddeeva import erfcx_of_positive, real_erfcx
from hlofront.scipy.special.series import polynomial, table


@operation
def erf(x: ArrayLike) -> Array:
    """Compute elementwise the error function, of real numbers.

    Args:
      x: real numbers; integers and booleans are converted to the default float dtype.

    Returns:
      An array of the shape and floating-point dtype of x.

    Raises:
      TypeError: if x is complex.
    """
    return special.erf(*inexact_arrays("erf", x))


@operation
def erfc(x: ArrayLike) -> Array:
    """Compute elementwise the complementary error function, 1 - erf(x).

    Args:
      x: real numbers; integers and booleans are converted to the default float dtype.

    Returns:
      An array of the shape and floating-point dtype of x.

    Raises:
      TypeError: if x is complex.
    """
    return special.erfc(*inexact_arrays("erfc", x))


@operation
def erfinv(x: ArrayLike) -> Array:
    """Compute elementwise the inverse of the error function.

    Args:
      x: real numbers; integers and booleans are converted to the default float dtype.

    Returns:
      An array of the shape and floating-point dtype of x.

    Raises:
      TypeError: if x is complex.
    """
    return special.erf_inv(*inexact_arrays("erfinv", x))


# ---- the normal distribution ---------------------------------------------------------------------


def _ndtr(x: Array) -> Array:
    scaled = x * math.sqrt(0.5)
    size = jnp.abs(scaled)
    tail = special.erfc(size)
    outer = jnp.where(scaled > 0, 2 - tail, tail)
    return 0.5 * jnp.where(size < math.sqrt(0.5), 1 + special.erf(scaled), outer)


@operation
def ndtr(x: ArrayLike) -> Array:
    """Compute elementwise the distribution function of the normal distribution.

    Args:
      x: an array of float32 or float64.

    Raises:
      TypeError: if x has another dtype.

    Example:
      >>> jax.scipy.special.ndtr(jnp.array([0.0, jnp.inf]))
      Array([0.5, 1. ], dtype=float32)
    """
    return _ndtr(float32_or_64("ndtr", x))


# The rational approximations of algorithm AS 241, PPND16 (Wichura 1988): a numerator and a
# denominator each, from the highest power on.
_CENTER = (
    table("""
        2.5090809287301226727e3 3.3430575583588128105e4 6.7265770927008700853e4
        4.5921953931549871457e4 1.3731693765509461125e4 1.9715909503065514427e3
        1.3314166789178437745e2 3.3871328727963666080e0
    """),
    table("""
        5.2264952788528545610e3 2.8729085735721942674e4 3.9307895800092710610e4
        2.1213794301586595867e4 5.3941960214247511077e3 6.8718700749205790830e2
        4.2313330701600911252e1 1.0
    """),
)
_MIDDLE = (
    table("""
        7.74545014278341407640e-4 2.27238449892691845833e-2 2.41780725177450611770e-1
        1.27045825245236838258e0 3.64784832476320460504e0 5.76949722146069140550e0
        4.63033784615654529590e0 1.42343711074968357734e0
    """),
    table("""
        1.05075007164441684324e-9 5.47593808499534494600e-4 1.51986665636164571966e-2
        1.48103976427480074590e-1 6.89767334985100004550e-1 1.67638483018380384940e0
        2.05319162663775882187e0 1.0
    """),
)
_FAR = (
    table("""
        2.01033439929228813265e-7 2.71155556874348757815e-5 1.24266094738807843860e-3
        2.65321895265761230930e-2 2.96560571828504891230e-1 1.78482653991729133580e0
        5.46378491116411436990e0 6.65790464350110377720e0
    """),
    table("""
        2.04426310338993978564e-15 1.42151175831644588870e-7 1.84631831751005468180e-5
        7.86869131145613259100e-4 1.48753612908506148525e-2 1.36929880922735805310e-1
        5.99832206555887937690e-1 1.0
    """),
)


def _quotient(tables: tuple[tuple[float, ...], tuple[float, ...]], x: Array) -> Array:
    above, below = tables
    return polynomial(above, x) / polynomial(below, x)


def _quantile(middle: Array, log_tail: Array) -> Array:
    """Return the quantile of the normal distribution for the probability p, by AS 241.

    Args:
      middle: p - 1/2.
      log_tail: the logarithm of the lesser of p and 1 - p.
    """
    near = middle * _quotient(_CENTER, 0.180625 - jnp.square(middle))
    root = jnp.sqrt(-log_tail)
    far = jnp.where(
        root <= 5, _quotient(_MIDDLE, jnp.minimum(root, 5) - 1.6), _quotient(_FAR, root - 5)
    )
    return jnp.where(jnp.abs(middle) <= 0.425, near, jnp.where(middle < 0, -far, far))


def _inverse(y: Array, end: int, inner: Array, at_end: float) -> Array:
    """Return `inner` for y inside (0, end), infinities at the ends, and NaN outside them."""
    edge = jnp.where(y == 0, -at_end, jnp.where(y == end, at_end, jnp.nan))
    return jnp.where((y > 0) & (y < end), inner, edge)


def _tail(y: Array, end: int) -> Array:
    """Return the distance of y to the nearer end of (0, end), and end / 4 for y outside."""
    return jnp.where((y > 0) & (y < end), jnp.minimum(y, end - y), end / 4)


@custom_jvp
def _ndtri(p: Array) -> Array:
    return _inverse(p, 1, _quantile(p - 0.5, jnp.log(_tail(p, 1))), jnp.inf)


def _ndtri_slope(t: Array, result: Array, p: Array) -> Array:
    # The slope at 0 and 1, which is infinite, is 0 as JAX's: gradients of clipped p stay finite.
    at_end = jnp.isinf(result)
    inner = jnp.where(at_end, 0.0, result)
    return t * jnp.where(at_end, 0.0, math.sqrt(2 * math.pi) * jnp.exp(jnp.square(inner) / 2))


_ndtri.defjvps(_ndtri_slope)


@custom_jvp
def _erfcinv(y: Array) -> Array:
    # y / 2 is the probability that a normal variable is above sqrt(2) erfcinv(y). The logarithm is
    # taken of y rather than of y / 2, which is less precise where it is a subnormal number.
    log_tail = jnp.log(_tail(y, 2)) - math.log(2)
    return _inverse(y, 2, _quantile((1 - y) / 2, log_tail) * math.sqrt(0.5), -jnp.inf)


_erfcinv.defjvps(lambda t, result, y: t * (-math.sqrt(math.pi) / 2 * jnp.exp(jnp.square(result))))


@operation
def erfcinv(y: ArrayLike) -> Array:
    """Compute elementwise the inverse of the complementary error function, of real numbers.

    The result is infinite at 0 and -infinite at 2, and NaN where y is outside [0, 2]. It is
    accurate next to 0, where `erfinv(1 - y)` is not. The method is that of `ndtri`.

    Args:
      y: real numbers; integers and booleans are converted to the default float dtype.

    Returns:
      An array of the shape and floating-point dtype of y.

    Raises:
      ValueError: if y is complex.

    Example:
      >>> jax.scipy.special.erfcinv(jnp.array([0.0, 0.5, 1.0]))
      Array([      inf, 0.4769363, 0.       ], dtype=float32)
    """
    return in_float32(_erfcinv, *floats("erfcinv", y))


@operation
def ndtri(p: ArrayLike) -> Array:
    """Compute elementwise the inverse of `ndtr`: NaN where p is outside [0, 1].

    The method is that of Wichura, "Algorithm AS 241: The percentage points of the normal
    distribution" (1988).

    Args:
      p: an array of float32 or float64.

    Raises:
      TypeError: if p has another dtype.

    Example:
      >>> jax.scipy.special.ndtri(jnp.array([0.0, 2.0]))
      Array([-inf,  nan], dtype=float32)
    """
    check_arraylike("ndtri", p)
    return _ndtri(float32_or_64("ndtri", p))


@custom_jvp
def _log_ndtr(x: Array) -> Array:
    scaled = x * math.sqrt(0.5)
    is_tail = x < -1
    # Each branch receives only arguments of its own side, so that it does not overflow.
    half = erfcx_of_positive(jnp.where(is_tail, -scaled, 1.0)) / 2
    less = -0.5 * special.erfc(jnp.where(is_tail, -1.0, scaled))
    # In float64 log1p(x) of XLA loses two digits for x from -1/2 to -0.3.
    by_log = is_tail | (less < -0.25) if typeof(x).dtype == np.float64 else is_tail
    logarithm = jnp.log(jnp.where(is_tail, half, jnp.where(by_log, 1 + less, 1.0)))
    shift = jnp.where(is_tail, jnp.square(jnp.where(is_tail, x, -1.0)) / 2, 0.0)
    return jnp.where(by_log, logarithm - shift, jnp.log1p(jnp.where(by_log, 0.0, less)))


@custom_jvp
def _density_over_ndtr(x: Array) -> Array:
    """Return the normal density divided by `ndtr`, without underflow of either."""
    return math.sqrt(2 / math.pi) / real_erfcx(x * -math.sqrt(0.5))


# Where the quotient has become 0 its derivative is 0, also where x is infinite.
_density_over_ndtr.defjvps(
    lambda t, result, x: t * jnp.where(result == 0, 0.0, -result * (x + result))
)
_log_ndtr.defjvps(lambda t, result, x: t * _density_over_ndtr(x))


@as_custom_jvp
def log_ndtr(x: ArrayLike, series_order: int = 3) -> Array:
    """Compute elementwise the logarithm of `ndtr`, which does not underflow.

    Args:
      x: an array of float32 or float64.
      series_order: an integer from 0 to 30, which has no effect: the tail is computed from `erfcx`,
        exact to the dtype's precision, and not from an asymptotic series.

    Raises:
      TypeError: if x has another dtype, or series_order is not an integer.
      ValueError: if series_order is out of its range.

    Example:
      >>> jax.scipy.special.log_ndtr(jnp.array([-100.0])).round()
      Array([-5006.], dtype=float32)
    """
    if not isinstance(series_order, int) or isinstance(series_order, Tracer):
        raise TypeError(
            f"series_order must be a Python integer, got {series_order!r} of type "
            f"{type(series_order)}."
        )
    if series_order < 0:
        raise ValueError(f"series_order must be non-negative, got {series_order}.")
    if series_order > 30:
        raise ValueError(f"series_order must be <= 30, got {series_order}.")
    return _log_ndtr_operation(x)


@operation
def _log_ndtr_operation(x: ArrayLike) -> Array:
    return _log_ndtr(float32_or_64("log_ndtr", x, by=times_one))
