"""The gamma distribution: functions of arrays that broadcast."""

import hlofront.numpy as jnp
from hlofront.scipy.special.entropies import xlogy
from hlofront.scipy.special.gamma_functions import gammainc, gammaincc, gammaln
from hlofront.scipy.stats.arguments import exp_of, functions_of, log_of

_of_gamma = functions_of("gamma", a="the shape parameter, positive.")


@_of_gamma
def logpdf(x, a, loc=0, scale=1):
    y = (x - loc) / scale
    inside = (y >= 0) & (y < jnp.inf)
    part = jnp.where(inside, y, 1)
    found = xlogy(a - 1, part) - part - gammaln(a) - jnp.log(scale)
    return jnp.where(inside, found, jnp.where(y != y, y, -jnp.inf))


pdf = exp_of(logpdf)


@_of_gamma
def cdf(x, a, loc=0, scale=1):
    found = gammainc(a, jnp.maximum((x - loc) / scale, 0))
    return jnp.where(a > 0, found, jnp.nan)


@_of_gamma
def logcdf(x, a, loc=0, scale=1):
    y = (x - loc) / scale
    # At 0 and below the logarithm has no derivative.
    found = jnp.log(gammainc(a, jnp.where(y <= 0, 1, y)))
    return jnp.where(a > 0, jnp.where(y <= 0, -jnp.inf, found), jnp.nan)


@_of_gamma
def sf(x, a, loc=0, scale=1):
    found = gammaincc(a, jnp.maximum((x - loc) / scale, 0))
    return jnp.where(a > 0, found, jnp.nan)


logsf = log_of(sf)
