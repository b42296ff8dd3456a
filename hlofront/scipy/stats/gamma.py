"""The gamma distribution: functions of arrays that broadcast."""

from __future__ import annotations

import hlofront.numpy as jnp
from hlofront.base.lazy import dir_of
from hlofront.base.typing import Array
from hlofront.scipy.special.entropies import xlogy
from hlofront.scipy.special.gamma_functions import gammainc, gammaincc, gammaln
from hlofront.scipy.stats.arguments import (
    exp_of,
    functions_of,
    log_of,
    nan_unless,
    with_constants,
)

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]
__dir__ = dir_of(__name__)

_of_gamma = functions_of("gamma", a="the shape parameter, positive.")


@_of_gamma
@with_constants
def logpdf(x: Array, a: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    y = (x - loc) / scale
    inside = (x >= loc) & ((y != jnp.inf) | (scale <= 0))
    part = jnp.where(inside, y, 1)
    logarithm = xlogy(a - 1, part) - part - gammaln(a) - jnp.log(scale)
    return jnp.where(inside, logarithm, -jnp.inf) * nan_unless(x == x)


pdf = exp_of(logpdf)


@_of_gamma
@with_constants
def cdf(x: Array, a: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    y = (x - loc) / scale
    # At 0 the derivative is that from below, as in JAX.
    outer = y <= 0
    return jnp.where(outer, 0, gammainc(a, jnp.where(outer, 1, y))) * nan_unless(a > 0)


@_of_gamma
@with_constants
def logcdf(x: Array, a: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    y = (x - loc) / scale
    # At 0 and below the logarithm has no derivative, so that another argument replaces x.
    logarithm = jnp.log(gammainc(a, jnp.where(y <= 0, 1, y)))
    return jnp.where(y <= 0, jnp.where(a > 0, -jnp.inf, jnp.nan), logarithm)


@_of_gamma
def sf(x: Array, a: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    y = (x - loc) / scale
    # At 0 the derivative is that from above, as in JAX.
    outer = y < 0
    return jnp.where(outer, 1, gammaincc(a, jnp.where(outer, 1, y)))


logsf = log_of(sf)
