"""The uniform distribution from loc to loc + scale: functions of arrays that broadcast."""

import hlofront.numpy as jnp
from hlofront.scipy.special.arguments import strong
from hlofront.scipy.stats.arguments import exp_of, functions_of, outside

_of_uniform = functions_of("uniform", real=True)


@_of_uniform
def logpdf(x, loc=0, scale=1):
    outer = (x < loc) | (x > loc + scale)
    found = jnp.where(outer, -jnp.inf, -jnp.log(scale))
    return jnp.where(x != x, x, found)


pdf = exp_of(logpdf)


@_of_uniform
def cdf(x, loc=0, scale=1):
    y = (x - loc) / scale
    # At the ends it has the derivative that it has between them.
    return strong(jnp.where(x < loc, 0.0, jnp.where(x > loc + scale, 1.0, y)))


@_of_uniform
def ppf(q, loc=0, scale=1):
    return jnp.where(outside(q), jnp.nan, q * scale + loc)
