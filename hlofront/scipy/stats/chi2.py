"""The chi-square distribution: functions of arrays that broadcast."""

from __future__ import annotations

import hlofront.numpy as jnp
from hlofront.base.lazy import dir_of
from hlofront.base.typing import Array
from hlofront.scipy.special.entropies import xlogy
from hlofront.scipy.special.gamma_functions import gammainc, gammaincc, gammaln
from hlofront.scipy.stats.arguments import between, exp_of, functions_of, log_of

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]
__dir__ = dir_of(__name__)

_of_chi2 = functions_of("chi2", df="degrees of freedom, positive.")


@_of_chi2
def logpdf(x: Array, df: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    y = (x - loc) / (2 * scale)
    outer = (x < loc) | ((y == jnp.inf) & (scale > 0))
    part = jnp.where(outer, 1, y)
    logarithm = xlogy(df / 2 - 1, part) - part - gammaln(df / 2) - jnp.log(2 * scale)
    return jnp.where(outer, -jnp.inf, logarithm)


pdf = exp_of(logpdf)


@_of_chi2
def cdf(x: Array, df: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    return gammainc(df / 2, between(0, (x - loc) / (2 * scale), jnp.inf))


@_of_chi2
def logcdf(x: Array, df: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    y = (x - loc) / (2 * scale)
    # At 0 and below the logarithm has no derivative, so that another argument replaces x.
    logarithm = jnp.log(gammainc(df / 2, jnp.where(y <= 0, 1, y)))
    return jnp.where(y <= 0, jnp.where(df > 0, -jnp.inf, jnp.nan), logarithm)


@_of_chi2
def sf(x: Array, df: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    return gammaincc(df / 2, between(0, (x - loc) / (2 * scale), jnp.inf))


logsf = log_of(sf)
