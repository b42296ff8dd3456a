"""The Cauchy distribution: functions of arrays that broadcast."""

from typing import Any

import hlofront.numpy as jnp
from hlofront.scipy.special.entropies import log1p
from hlofront.scipy.stats.arguments import exp_of, functions_of

_PI = 3.141592653589793
_of_cauchy = functions_of("cauchy")


def _logarithm(p: Any, rest: Any) -> Any:
    """log(p), by what is left to 1 where that is less."""
    return jnp.where(rest < 0.5, log1p(-rest), jnp.log(p))


def _quantile(q: Any) -> Any:
    """tan(pi (q - 1/2)), from the nearer end."""
    low, high = q < 0.25, q > 0.75
    edge = jnp.where(low, q, jnp.where(high, 1 - q, 0.5))
    angle = _PI * edge
    far = 1 / jnp.where(angle < 1e-10, angle, jnp.tan(angle))
    found = jnp.where(low, -far, jnp.where(high, far, jnp.tan(_PI * (q - 0.5))))
    return jnp.where((q < 0) | (q > 1), jnp.nan, found)


@_of_cauchy
def logpdf(x, loc=0, scale=1):
    y = (x - loc) / scale
    return -jnp.log(_PI * scale) - jnp.log1p(jnp.square(y))


pdf = exp_of(logpdf)


@_of_cauchy
def cdf(x, loc=0, scale=1):
    y = (x - loc) / scale
    return jnp.arctan2(jnp.ones_like(y), -y) / _PI


@_of_cauchy
def logcdf(x, loc=0, scale=1):
    return _logarithm(cdf(x, loc, scale), sf(x, loc, scale))


@_of_cauchy
def sf(x, loc=0, scale=1):
    y = (x - loc) / scale
    return jnp.arctan2(jnp.ones_like(y), y) / _PI


@_of_cauchy
def logsf(x, loc=0, scale=1):
    return _logarithm(sf(x, loc, scale), cdf(x, loc, scale))


@_of_cauchy
def ppf(q, loc=0, scale=1):
    return loc + scale * _quantile(q)


@_of_cauchy
def isf(q, loc=0, scale=1):
    return loc - scale * _quantile(q)
