"""The exponential distribution: functions of arrays that broadcast."""

import hlofront.numpy as jnp
from hlofront.scipy.stats.arguments import exp_of, functions_of, log_of_rest, outside

_of_expon = functions_of("expon", real=True)


@_of_expon
def logpdf(x, loc=0, scale=1):
    y = (x - loc) / scale
    return jnp.where(x < loc, -jnp.inf, -y - jnp.log(scale))


pdf = exp_of(logpdf)


@_of_expon
def cdf(x, loc=0, scale=1):
    y = (x - loc) / scale
    return jnp.where(x < loc, 0, -jnp.expm1(-y))


@_of_expon
def logcdf(x, loc=0, scale=1):
    y = (x - loc) / scale
    return jnp.where(x < loc, -jnp.inf, log_of_rest(y))


@_of_expon
def sf(x, loc=0, scale=1):
    y = (x - loc) / scale
    return jnp.where(x < loc, 1, jnp.exp(-y))


@_of_expon
def logsf(x, loc=0, scale=1):
    y = (x - loc) / scale
    return jnp.where(x < loc, 0, -y)


@_of_expon
def ppf(q, loc=0, scale=1):
    return jnp.where(outside(q), jnp.nan, loc - scale * jnp.log1p(-q))
