"""The logistic distribution: functions of arrays that broadcast."""

import hlofront.numpy as jnp
from hlofront.scipy.special.entropies import expit, logit
from hlofront.scipy.stats.arguments import exp_of, functions_of

_of_logistic = functions_of("logistic")


@_of_logistic
def logpdf(x, loc=0, scale=1):
    size = jnp.abs((x - loc) / scale)
    return -size - 2 * jnp.log1p(jnp.exp(-size)) - jnp.log(scale)


pdf = exp_of(logpdf)


@_of_logistic
def cdf(x, loc=0, scale=1):
    y = (x - loc) / scale
    return expit(y)


@_of_logistic
def sf(x, loc=0, scale=1):
    y = (x - loc) / scale
    return expit(-y)


@_of_logistic
def ppf(x, loc=0, scale=1):
    return logit(x) * scale + loc


@_of_logistic
def isf(x, loc=0, scale=1):
    return -logit(x) * scale + loc
