"""The logistic distribution: functions of arrays that broadcast."""

from __future__ import annotations

import hlofront.numpy as jnp
from hlofront.base.lazy import dir_of
from hlofront.base.typing import Array
from hlofront.scipy.special.entropies import expit, logit
from hlofront.scipy.stats.arguments import cotangents, exp_of, functions_of, with_constants

__all__ = ["cdf", "isf", "logpdf", "pdf", "ppf", "sf"]
__dir__ = dir_of(__name__)

_of_logistic = functions_of("logistic")


@_of_logistic
@with_constants
def logpdf(x: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    size = jnp.abs((x - loc) / scale)
    return -size - 2 * jnp.log1p(jnp.exp(-size)) - jnp.log(scale)


pdf = exp_of(logpdf)


@_of_logistic
def cdf(x: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    y = (x - loc) / scale
    return expit(y)


@_of_logistic
def sf(x: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    y = (x - loc) / scale
    return expit(-y)


@_of_logistic
@with_constants
@cotangents(strong="loc scale")
def ppf(x: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    return logit(x) * scale + loc


@_of_logistic
@with_constants
@cotangents(strong="loc scale")
def isf(x: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    return -logit(x) * scale + loc
