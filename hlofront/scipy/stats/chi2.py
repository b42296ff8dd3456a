"""The chi-square distribution: functions of arrays that broadcast."""

from __future__ import annotations

from hlofront.base.lazy import dir_of
from hlofront.base.typing import Array
from hlofront.scipy.stats import gamma
from hlofront.scipy.stats.arguments import (
    exp_of,
    functions_of,
    log_of_share,
    nan_unless,
    with_constants,
)
from hlofront.scipy.stats.gamma import log_density, survival

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]
__dir__ = dir_of(__name__)

_of_chi2 = functions_of("chi2", df="degrees of freedom, positive.")


@_of_chi2
@with_constants
def logpdf(x: Array, df: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    return log_density(x < loc, (x - loc) / (2 * scale), df / 2, 2 * scale)


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
    outer = y <= 0
    return survival(outer, y, df / 2) * nan_unless((df > 0) | ((df == 0) & ~outer))


@_of_chi2
@with_constants
def logsf(x: Array, df: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    return log_of_share(sf(x, df, loc, scale), cdf(x, df, loc, scale))
