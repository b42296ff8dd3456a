"""The chi-square distribution: functions of arrays that broadcast."""

from __future__ import annotations

import hlofront.numpy as jnp
from hlofront.base.lazy import dir_of
from hlofront.base.typing import Array
from hlofront.scipy.special.entropies import xlogy
from hlofront.scipy.special.gamma_functions import gammaincc, gammaln
from hlofront.scipy.stats import gamma
from hlofront.scipy.stats.arguments import (
    at_infinity,
    exp_of,
    functions_of,
    log_of,
    nan_unless,
    with_constants,
)

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]
__dir__ = dir_of(__name__)

_of_chi2 = functions_of("chi2", df="degrees of freedom, positive.")


@_of_chi2
@with_constants
def logpdf(x: Array, df: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    y = (x - loc) / (2 * scale)
    outer = x < loc
    part = jnp.where(outer, 1, y)
    # At infinity the power is nothing beside the exponential.
    base = jnp.where((part == jnp.inf) & (scale > 0) & (df < jnp.inf), 1, part)
    logarithm = xlogy(df / 2 - 1, base) - part - gammaln(df / 2) - jnp.log(2 * scale)
    return jnp.where(outer, -jnp.inf, logarithm)


pdf = exp_of(logpdf)


@_of_chi2
@with_constants
def cdf(x: Array, df: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    return gamma.cdf(x, df / 2, loc, 2 * scale)


@_of_chi2
@with_constants
def logcdf(x: Array, df: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    return gamma.logcdf(x, df / 2, loc, 2 * scale)


@_of_chi2
@with_constants
def sf(x: Array, df: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    y = (x - loc) / (2 * scale)
    # At 0 the derivative is that from below, as in JAX.
    outer, above = y <= 0, at_infinity(df, y)
    rest = gammaincc(df / 2, jnp.where(outer | above, 1, y))
    rest = jnp.where(outer, 1, jnp.where(above, 0, rest))
    return rest * nan_unless((df > 0) | ((df == 0) & ~outer))


logsf = log_of(sf)
