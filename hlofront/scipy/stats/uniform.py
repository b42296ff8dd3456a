"""The uniform distribution from loc to loc + scale: functions of arrays that broadcast."""

from __future__ import annotations

import hlofront.numpy as jnp
from hlofront.base.lazy import dir_of
from hlofront.base.typing import Array
from hlofront.scipy.special.arguments import strong
from hlofront.scipy.stats.arguments import exp_of, functions_of, nan_unless, outside

__all__ = ["cdf", "logpdf", "pdf", "ppf"]
__dir__ = dir_of(__name__)

_of_uniform = functions_of("uniform", real=True)


@_of_uniform
def logpdf(x: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    outer = (x < loc) | (x > loc + scale)
    return jnp.where(outer, -jnp.inf, -jnp.log(scale)) * nan_unless(x == x)


pdf = exp_of(logpdf)


@_of_uniform
def cdf(x: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    y = (x - loc) / scale
    # At the interval's ends the derivative is that of its inside.
    return strong(jnp.where(x < loc, 0.0, jnp.where(x > loc + scale, 1.0, y)))


@_of_uniform
def ppf(q: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    return jnp.where(outside(q), jnp.nan, q * scale + loc)
