"""The chi-square distribution: functions of arrays that broadcast."""

import hlofront.numpy as jnp
from hlofront.scipy.special.entropies import xlogy
from hlofront.scipy.special.gamma_functions import gammainc, gammaincc, gammaln
from hlofront.scipy.stats.arguments import exp_of, functions_of, log_of

_of_chi2 = functions_of("chi2", df="degrees of freedom, positive.")


@_of_chi2
def logpdf(x, df, loc=0, scale=1):
    y = (x - loc) / (2 * scale)
    inside = (y >= 0) & (y < jnp.inf)
    part = jnp.where(inside, y, 1)
    found = xlogy(df / 2 - 1, part) - part - gammaln(df / 2) - jnp.log(2 * scale)
    return jnp.where(inside, found, jnp.where(y != y, y, -jnp.inf))


pdf = exp_of(logpdf)


@_of_chi2
def cdf(x, df, loc=0, scale=1):
    found = gammainc(df / 2, jnp.maximum((x - loc) / (2 * scale), 0))
    return jnp.where(df > 0, found, jnp.nan)


@_of_chi2
def logcdf(x, df, loc=0, scale=1):
    y = (x - loc) / (2 * scale)
    # At 0 and below the logarithm has no derivative.
    found = jnp.log(gammainc(df / 2, jnp.where(y <= 0, 1, y)))
    return jnp.where(df > 0, jnp.where(y <= 0, -jnp.inf, found), jnp.nan)


@_of_chi2
def sf(x, df, loc=0, scale=1):
    found = gammaincc(df / 2, jnp.maximum((x - loc) / (2 * scale), 0))
    return jnp.where(df > 0, found, jnp.nan)


logsf = log_of(sf)
