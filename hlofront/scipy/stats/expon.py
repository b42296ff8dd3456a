"""The exponential distribution: functions of arrays that broadcast."""

from __future__ import annotations

import hlofront.numpy as jnp
from hlofront.base.lazy import dir_of
from hlofront.base.typing import Array
from hlofront.scipy.stats.arguments import exp_of, functions_of, log_of_rest, outside

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]
__dir__ = dir_of(__name__)

_of_expon = functions_of("expon", real=True)


def _standard(x: Array, loc: Array | int, scale: Array | int) -> tuple[Array, Array]:
    """Return (x - loc) / scale, 1 below the support, and a mask of x below it."""
    below = x < loc
    return jnp.where(below, 1, (x - loc) / scale), below


@_of_expon
def logpdf(x: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    y = (x - loc) / scale
    return jnp.where(x < loc, -jnp.inf, -y - jnp.log(scale))


pdf = exp_of(logpdf)


@_of_expon
def cdf(x: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    y, below = _standard(x, loc, scale)
    return jnp.where(below, 0, -jnp.expm1(-y))


@_of_expon
def logcdf(x: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    y, below = _standard(x, loc, scale)
    return jnp.where(below, -jnp.inf, log_of_rest(y))


@_of_expon
def sf(x: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    y, below = _standard(x, loc, scale)
    return jnp.where(below, 1, jnp.exp(-y))


@_of_expon
def logsf(x: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    y = (x - loc) / scale
    return jnp.where(x < loc, 0, -y)


@_of_expon
def ppf(q: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    return jnp.where(outside(q), jnp.nan, loc - scale * jnp.log1p(-q))
