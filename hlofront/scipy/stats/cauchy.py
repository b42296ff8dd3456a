"""The Cauchy distribution: functions of arrays that broadcast."""

from __future__ import annotations

import hlofront.numpy as jnp
from hlofront.base.lazy import dir_of
from hlofront.base.typing import Array
from hlofront.scipy.stats.arguments import (
    exp_of,
    functions_of,
    log_of_share,
    strongly_typed,
    with_constants,
)

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]
__dir__ = dir_of(__name__)

_PI = 3.141592653589793
_of_cauchy = functions_of("cauchy")


def _quantile(q: Array) -> Array:
    """Return the Cauchy quantile tan(pi (q - 1/2)), computed from the nearer end of [0, 1]."""
    low, high = q < 0.25, q > 0.75
    edge = jnp.where(low, q, jnp.where(high, 1 - q, 0.5))
    angle = _PI * edge
    far = 1 / jnp.where(angle < 1e-10, angle, jnp.tan(angle))
    quantile = jnp.where(low, -far, jnp.where(high, far, jnp.tan(_PI * (q - 0.5))))
    return jnp.where((q < 0) | (q > 1), jnp.nan, quantile)


@_of_cauchy
@strongly_typed
def logpdf(x: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    y = (x - loc) / scale
    return -jnp.log(_PI * scale) - jnp.log1p(jnp.square(y))


pdf = exp_of(logpdf)


@_of_cauchy
@with_constants
def cdf(x: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    y = (x - loc) / scale
    return jnp.arctan2(jnp.ones_like(y), -y) / _PI


@_of_cauchy
@with_constants
def logcdf(x: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    return log_of_share(cdf(x, loc, scale), sf(x, loc, scale))


@_of_cauchy
@with_constants
def sf(x: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    y = (x - loc) / scale
    return jnp.arctan2(jnp.ones_like(y), y) / _PI


@_of_cauchy
@with_constants
def logsf(x: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    return log_of_share(sf(x, loc, scale), cdf(x, loc, scale))


@_of_cauchy
@strongly_typed
def ppf(q: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    return loc + scale * _quantile(q)


@_of_cauchy
@strongly_typed
def isf(q: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    return loc - scale * _quantile(q)
