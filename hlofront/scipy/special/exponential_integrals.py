"""The exponential integrals E1, Ei and En, and the dilogarithm."""

from __future__ import annotations

import math

import numpy as np

import hlofront.numpy as jnp
from hlofront.base.dtypes import finfo
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.higher_order.control_flow.library_loops import fori_loop
from hlofront.higher_order.custom_rules.custom_jvp import as_custom_jvp, custom_jvp
from hlofront.numpy.arrays.creation import asarray
from hlofront.primitives.elementwise import special
from hlofront.primitives.elementwise.weak_types import times_one
from hlofront.runtime.dispatch.operation import operation
from hlofront.scipy.special import series
from hlofront.scipy.special.arguments import float32_or_64, in_float32, strong_floats
from hlofront.scipy.special.entropies import log1p
from hlofront.scipy.special.series import chebyshev_sum, polynomial

# The zero of Ei, and its value as a sum of two floats, which is more accurate.
_ZERO = 0.37250741078136663
_ZERO_HIGH = 0.37250518798828125
_ZERO_LOW = 2.22279308535334461991866580e-6


def _far_e1(x: Array) -> Array:
    """Return x exp(x) E1(x) for x >= 1, by a Chebyshev series."""
    return chebyshev_sum(series.E1_LARGE, 1 - 2 * ((x - 1) / (x + 2)))


@custom_jvp
def _exp1(x: Array) -> Array:
    near = (x > 0) & (x < 1)
    small = jnp.where(near, x, 0.5)
    ein = small * chebyshev_sum(series.EIN, 2 * small - 1)
    by_series = ein - np.euler_gamma - jnp.log(small)
    far = (x >= 1) & (x < jnp.inf)
    large = jnp.where(far, x, 1.0)
    beyond = jnp.exp(-large) * _far_e1(large) / large
    edge = jnp.where(x == 0, jnp.inf, jnp.where(x == jnp.inf, 0.0, jnp.nan))
    return jnp.where(near, by_series, jnp.where(far, beyond, edge))


_exp1.defjvps(lambda t, result, x: -t * jnp.exp(-x) / x)


@operation
def exp1(x: ArrayLike) -> Array:
    """Compute elementwise the exponential integral E1: exp(-t) / t from x to infinity.

    The result is NaN for x < 0.
    The method is a Chebyshev series, of DLMF 6.2.3 for x < 1 and in a fraction of x beyond.

    Args:
      x: real numbers; integers and booleans are converted to the default float dtype.

    Returns:
      An array of the shape and floating-point dtype of x.

    Raises:
      ValueError: if x is complex.
    """
    return in_float32(_exp1, *strong_floats("exp1", x, by=times_one))


@custom_jvp
def _expi(x: Array) -> Array:
    near = (x > 0) & (x < 6)
    small = jnp.where(near, x, 1.0)
    distance = (small - _ZERO_HIGH) - _ZERO_LOW
    close = jnp.abs(distance) < 0.1
    logarithm = jnp.where(
        close, jnp.log1p(jnp.where(close, distance, 0.0) / _ZERO), jnp.log(small / _ZERO)
    )
    by_series = logarithm + distance * chebyshev_sum(series.EI_SMALL, small / 3 - 1)
    far = (x >= 6) & (x < jnp.inf)
    # Beyond 1e4 the result overflows anyway; the bound keeps the inverse nonzero.
    large = jnp.where(far, jnp.minimum(x, 1e4), 6.0)
    inverse = 1 / large
    middle = chebyshev_sum(series.EI_MIDDLE, jnp.clip(24 * inverse - 3, -1, 1))
    high = chebyshev_sum(series.EI_HIGH, jnp.clip(48 * inverse - 3, -1, 1))
    beyond = chebyshev_sum(series.EI_LARGE, jnp.clip(48 * inverse - 1, -1, 1))
    factor = jnp.where(large < 12, middle, jnp.where(large < 24, high, beyond))
    # exp(x) is applied as two factors, as it overflows slightly before the result does.
    half = jnp.exp(large / 2)
    beyond = half * (half * inverse * factor)
    below = -_exp1(jnp.where(x < 0, -x, 1.0))
    edge = jnp.where(x == 0, -jnp.inf, x)
    return jnp.where(near, by_series, jnp.where(far, beyond, jnp.where(x < 0, below, edge)))


_expi.defjvps(lambda t, result, x: t * jnp.exp(x) / x)


@as_custom_jvp
@operation
def expi(x: ArrayLike) -> Array:
    """Compute elementwise the exponential integral Ei, the integral of exp(t) / t up to x.

    The integral is a principal value. The method is Chebyshev series in the intervals of Cody and
    Thacher, "Chebyshev approximations for the exponential integral Ei(x)" (1969).

    Args:
      x: real numbers; integers and booleans are converted to the default float dtype.

    Returns:
      An array of the shape and floating-point dtype of x.

    Raises:
      ValueError: if x is complex.
    """
    return in_float32(_expi, *strong_floats("expi", x, by=times_one))


# ---- En, of any order ----------------------------------------------------------------------------

# The numbers of terms of the power series for x <= 1, and of the continued fraction for x > 1, and
# how many of these have one quotient.
_TERMS = {"float32": (12, 30, 30), "float64": (22, 110, 10)}


def _expn_by_series(n: Array, x: Array) -> Array:
    """Return En(x) for 0 < x <= 1, by the power series DLMF 8.19.8."""
    terms, _, _ = _TERMS[typeof(x).dtype.name]
    special_term = special.digamma(n) - jnp.log(x)
    term, total = jnp.ones_like(x), jnp.zeros_like(x)
    for k in range(terms):
        distance = k - (n - 1)
        share = jnp.where(distance == 0, special_term, -1 / jnp.where(distance == 0, 1.0, distance))
        total = total + term * share
        term = term * (-x / (k + 1))
    return total


def _expn_by_fraction(n: Array, x: Array) -> Array:
    """Return exp(x) En(x) for x > 1, by the even part of the continued fraction DLMF 8.19.17.

    All levels are divided by x + n, so that the products of several do not overflow.
    """
    _, levels, count = _TERMS[typeof(x).dtype.name]
    scale = 1 / (x + n)
    other = (n - 1) * scale

    def step(k: Array, below: Array) -> Array:
        above, divisor = below, jnp.ones_like(below)
        for j in range(count):
            share = (1.0 * (levels - k * count) - j) * scale
            level = (1 + 2 * (share - scale)) * above - share * (other + share) * divisor
            above, divisor = level, above
        return above / divisor

    return scale / fori_loop(0, levels // count, step, 1 + 2 * levels * scale)


@custom_jvp
def _expn(n: Array, x: Array) -> Array:
    valid = (n >= 0) & (n == jnp.floor(n)) & (x >= 0)
    order = jnp.where(valid & (n >= 1), n, 1.0)
    near = valid & (x > 0) & (x <= 1)
    far = valid & (x > 1) & (x < jnp.inf)
    by_series = _expn_by_series(order, jnp.where(near, x, 1.0))
    large = jnp.where(far, x, 2.0)
    by_fraction = jnp.exp(-large) * _expn_by_fraction(order, large)
    of_zero = jnp.where(n > 1, 1 / jnp.where(n > 1, n - 1, 1.0), jnp.inf)
    result = jnp.where(near, by_series, jnp.where(far, by_fraction, of_zero))
    result = jnp.where((n == 0) & (x > 0), jnp.exp(-x) / x, result)
    result = jnp.where(x == jnp.inf, 0.0, result)
    return jnp.where(valid, result, jnp.nan)


def _change_of_expn(t: Array, result: Array, n: Array, x: Array) -> Array:
    # Of order 0 it is exp(-x) / x, whose derivative is of an order that `_expn` does not know.
    lower = _expn(jnp.where(n == 0, 1.0, n) - 1, x)
    return -t * jnp.where(n == 0, result * (1 + 1 / x), lower)


_expn.defjvps(None, _change_of_expn)


@as_custom_jvp
@operation
def expn(n: ArrayLike, x: ArrayLike) -> Array:
    """Compute elementwise the exponential integral En: exp(-x t) / t**n from t = 1 to infinity.

    The result is NaN where n is not a whole number, or n or x is negative.

    Args:
      n: whole numbers; the derivative with respect to n is returned as zero.
      x: real numbers that broadcast with n.

    Raises:
      ValueError: if an argument is complex.
    """
    return in_float32(_expn, *strong_floats("expn", asarray(n), asarray(x), by=times_one))


# ---- the dilogarithm -----------------------------------------------------------------------------


@custom_jvp
def _spence(x: Array) -> Array:
    inside = (x > 0) & (x < jnp.inf)
    # XLA's logarithm of subnormal numbers is minus infinity.
    inside = inside & (x >= float(finfo(typeof(x).dtype).tiny) * 2)
    base = jnp.where(inside, x, 1.0)
    inverted = base > 1.5
    # DLMF 25.12.4 maps larger arguments to (0, 1), and 25.12.6 maps those near the ends to the
    # middle.
    unit = jnp.where(inverted, 1 / base, base)
    reflected = unit < 0.5
    # The expression is 1 - unit to full accuracy, also where `unit` is an inverse.
    other = jnp.where(inverted, (base - 1) / base, 1 - base)
    argument = jnp.where(reflected, unit, other)
    result = argument * chebyshev_sum(series.DILOGARITHM, 2 * argument)
    logarithm = jnp.log(base)
    sign = jnp.where(inverted, -1, 1)
    product = sign * logarithm * log1p(-jnp.where(reflected, unit, 0.0))
    result = jnp.where(reflected, math.pi**2 / 6 - product - result, result)
    result = jnp.where(inverted, -0.5 * jnp.square(logarithm) - result, result)
    least = jnp.where((x >= 0) & (x < 1), math.pi**2 / 6, jnp.nan)
    edge = jnp.where(x == jnp.inf, -jnp.inf, least)
    return jnp.where(inside, result, edge)


def _slope_of_spence(x: Array) -> Array:
    close = jnp.abs(x - 1) < 0.5
    near, far = jnp.where(close, x, 1.0), jnp.where(close, 2.0, x)
    # Near 1 the logarithm is twice the series of the inverse hyperbolic tangent of (x-1) / (x+1).
    square = jnp.square((near - 1) / (near + 1))
    total = polynomial([1 / (2 * k + 1) for k in reversed(range(24))], square)
    return jnp.where(close, -2 * total / (near + 1), -jnp.log(far) / (far - 1))


_spence.defjvps(lambda t, result, x: t * _slope_of_spence(x))


@operation
def spence(x: ArrayLike) -> Array:
    """Compute elementwise Spence's function, Li2(1 - x).

    It is the integral of log(t) / (1 - t) from 1 to x.
    The result is NaN for negative x.

    Args:
      x: an array of float32 or float64.

    Raises:
      TypeError: if x has another dtype.
    """
    return _spence(float32_or_64("spence", x))
