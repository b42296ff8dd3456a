"""The normal distribution truncated to the interval from loc + a * scale to loc + b * scale."""

from __future__ import annotations

import hlofront.numpy as jnp
from hlofront.base.lazy import dir_of
from hlofront.base.typing import Array
from hlofront.scipy.special.entropies import log1p
from hlofront.scipy.special.error_functions import log_ndtr, ndtr
from hlofront.scipy.stats import norm
from hlofront.scipy.stats.arguments import exp_of, functions_of, log_of_rest

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]
__dir__ = dir_of(__name__)

_of_truncnorm = functions_of(
    "truncnorm",
    a="the lower end, in standard deviations.",
    b="the upper end, in standard deviations.",
)


def _log_mass(a: Array, b: Array) -> Array:
    """Return the log of the normal probability between a and b, computed in their tail."""
    right = a > 0
    low, high = jnp.where(right, -b, a), jnp.where(right, -a, b)
    tail = high <= 0
    near, far = (log_ndtr(jnp.where(tail, x, y)) for x, y in ((high, -1.0), (low, -2.0)))
    of_tail = near + log_of_rest(near - far)
    of_middle = log1p(-ndtr(low) - ndtr(-high))
    return jnp.where(tail, of_tail, of_middle)


def _part(x: Array, a: Array, b: Array, upper: bool) -> Array:
    """Return the log of the truncated probability above x if `upper`, else below x."""
    inside = (x > a) & (x < b)
    middle = jnp.where(inside, x, (jnp.maximum(a, -1e3) + jnp.minimum(b, 1e3)) / 2)
    mass = _log_mass(a, b)
    this = (_log_mass(middle, b) if upper else _log_mass(a, middle)) - mass
    other = (_log_mass(a, middle) if upper else _log_mass(middle, b)) - mass
    # A probability near 1 is computed from its complement.
    close = this > -0.1
    logarithm = jnp.where(close, log1p(-jnp.exp(jnp.where(close, other, -1.0))), this)
    beyond, before = (-jnp.inf, 0.0) if upper else (0.0, -jnp.inf)
    if upper:
        logarithm = jnp.where(x <= a, before, jnp.where(x >= b, beyond, logarithm))
    else:
        logarithm = jnp.where(x >= b, beyond, jnp.where(x <= a, before, logarithm))
    return jnp.where((a >= b) | (x != x), jnp.nan, logarithm)


@_of_truncnorm
def logpdf(x: Array, a: Array, b: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    y = (x - loc) / scale
    logarithm = norm.logpdf(x, loc, scale) - _log_mass(a, b)
    logarithm = jnp.where((y < a) | (y > b), -jnp.inf, logarithm)
    return jnp.where(a >= b, jnp.nan, logarithm)


pdf = exp_of(logpdf, undefined=True)


@_of_truncnorm
def logcdf(x: Array, a: Array, b: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    return _part((x - loc) / scale, a, b, upper=False)


cdf = exp_of(logcdf, undefined=True)


@_of_truncnorm
def logsf(x: Array, a: Array, b: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    return _part((x - loc) / scale, a, b, upper=True)


sf = exp_of(logsf, undefined=True)
