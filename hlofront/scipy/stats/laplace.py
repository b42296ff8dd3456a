"""The Laplace distribution: functions of arrays that broadcast."""

from __future__ import annotations

import hlofront.numpy as jnp
from hlofront.base.lazy import dir_of
from hlofront.base.typing import Array
from hlofront.scipy.stats.arguments import (
    exp_of,
    functions_of,
    with_constants,
)

__all__ = ["cdf", "logpdf", "pdf"]
__dir__ = dir_of(__name__)

_of_laplace = functions_of("laplace", real=True)


@_of_laplace
@with_constants
def logpdf(x: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    return -jnp.abs(x - loc) / scale - jnp.log(2 * scale)


pdf = exp_of(logpdf)


@_of_laplace
@with_constants
def cdf(x: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    y = (x - loc) / scale
    tail = 0.5 * jnp.exp(-jnp.abs(y))
    return jnp.where(y < 0, tail, 1 - tail)
