"""The left-skewed Gumbel distribution: functions of arrays that broadcast."""

from __future__ import annotations

import hlofront.numpy as jnp
from hlofront.base.lazy import dir_of
from hlofront.base.typing import Array
from hlofront.scipy.stats.arguments import (
    cotangents,
    exp_of,
    exp_or_nan,
    functions_of,
    log_of_rest,
    outside,
)

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]
__dir__ = dir_of(__name__)

_of_gumbel_l = functions_of("gumbel_l", real=True, p="probabilities, from 0 to 1.")


def _where_positive(scale: Array | int, value: Array | float) -> Array:
    """Return `value`, and NaN where `scale` is not positive."""
    return jnp.where(scale > 0, value, jnp.nan)


@_of_gumbel_l
def logpdf(x: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    y = (x - loc) / scale
    logarithm = jnp.where(y == jnp.inf, -jnp.inf, y - jnp.exp(y) - jnp.log(scale))
    return _where_positive(scale, logarithm)


pdf = exp_of(logpdf, undefined=True)


@_of_gumbel_l
@cotangents(strong="scale")
def cdf(x: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    y = (x - loc) / scale
    return -jnp.expm1(-jnp.exp(y)) * _where_positive(scale, 1.0)


@_of_gumbel_l
def logcdf(x: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    y = (x - loc) / scale
    return _where_positive(scale, log_of_rest(jnp.exp(y)))


@_of_gumbel_l
def logsf(x: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    y = (x - loc) / scale
    return _where_positive(scale, -jnp.exp(y))


@_of_gumbel_l
@cotangents(strong="scale")
def sf(x: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    return exp_or_nan(logsf(x, loc, scale))


@_of_gumbel_l
def ppf(p: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    return jnp.where(outside(p), jnp.nan, loc + scale * jnp.log(-jnp.log1p(-p)))
