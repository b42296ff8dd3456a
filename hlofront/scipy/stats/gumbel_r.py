"""The right-skewed Gumbel distribution: functions of arrays that broadcast."""

from __future__ import annotations

import hlofront.numpy as jnp
from hlofront.base.lazy import dir_of
from hlofront.base.typing import Array
from hlofront.scipy.stats import gumbel_l
from hlofront.scipy.stats.arguments import (
    exp_of,
    functions_of,
    outside,
    with_constants,
)

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]
__dir__ = dir_of(__name__)

_of_gumbel_r = functions_of("gumbel_r", real=True, p="probabilities, from 0 to 1.")

# The distribution mirrors gumbel_l: x here is -x there.


@_of_gumbel_r
def logpdf(x: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    return gumbel_l.logpdf(-x, -loc, scale)


pdf = exp_of(logpdf, undefined=True)


@_of_gumbel_r
def cdf(x: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    return gumbel_l.sf(-x, -loc, scale)


@_of_gumbel_r
def logcdf(x: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    return gumbel_l.logsf(-x, -loc, scale)


@_of_gumbel_r
@with_constants
def sf(x: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    y = (x - loc) / scale
    return jnp.where(scale > 0, -jnp.expm1(-jnp.exp(-y)), jnp.nan)


@_of_gumbel_r
def logsf(x: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    return gumbel_l.logcdf(-x, -loc, scale)


@_of_gumbel_r
def ppf(p: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    return jnp.where(outside(p), jnp.nan, loc - scale * jnp.log(-jnp.log(p)))
