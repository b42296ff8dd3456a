"""The Bernoulli distribution of 0 and 1: functions of arrays that broadcast."""

from __future__ import annotations

import hlofront.numpy as jnp
from hlofront.base.lazy import dir_of
from hlofront.base.typing import Array
from hlofront.scipy.special.entropies import xlog1py, xlogy
from hlofront.scipy.stats.arguments import (
    cotangents,
    exp_of,
    functions_of,
    outside,
    strongly_typed,
    with_constants,
)

__all__ = ["cdf", "logpmf", "pmf", "ppf"]
__dir__ = dir_of(__name__)

_of_bernoulli = functions_of("bernoulli", real=True, p="a probability.")


@_of_bernoulli
@with_constants
@cotangents(strong="k loc")
def logpmf(k: Array, p: Array, loc: Array | int = 0) -> Array:
    x = k - loc
    logarithm = xlogy(x, p) + xlog1py(1 - x, -p)
    return jnp.where((x < 0) | (x > 1), -jnp.inf, logarithm)


pmf = exp_of(logpmf)


@_of_bernoulli
@strongly_typed
def cdf(k: Array, p: Array) -> Array:
    probability = jnp.where(k < 0, 0, jnp.where(k < 1, 1 - p, 1))
    return jnp.where(outside(p) | (k != k), jnp.nan, probability)


@_of_bernoulli
@strongly_typed
def ppf(q: Array, p: Array) -> Array:
    return jnp.where(outside(q) | outside(p), jnp.nan, jnp.where(q <= 1 - p, 0, jnp.ones_like(q)))
