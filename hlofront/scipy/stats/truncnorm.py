"""The normal distribution between a and b standard deviations of loc."""

from typing import Any

import hlofront.numpy as jnp
from hlofront.scipy.special.entropies import log1p
from hlofront.scipy.special.error_functions import log_ndtr, ndtr
from hlofront.scipy.stats import norm
from hlofront.scipy.stats.arguments import exp_of, functions_of, log_of_rest

_of_truncnorm = functions_of(
    "truncnorm",
    a="the lower end, in standard deviations.",
    b="the upper end, in standard deviations.",
)


def _log_mass(a: Any, b: Any) -> Any:
    """The logarithm of the normal probability from a to b, in the tail that they are in."""
    right = a > 0
    low, high = jnp.where(right, -b, a), jnp.where(right, -a, b)
    tail = high <= 0
    near, far = (log_ndtr(jnp.where(tail, x, y)) for x, y in ((high, -1.0), (low, -2.0)))
    of_tail = near + log_of_rest(near - far)
    of_middle = log1p(-ndtr(low) - ndtr(-high))
    return jnp.where(tail, of_tail, of_middle)


def _part(x: Any, a: Any, b: Any, upper: bool) -> Any:
    """The logarithm of the probability of what is above x, or below."""
    inside = (x > a) & (x < b)
    middle = jnp.where(inside, x, (jnp.maximum(a, -1e3) + jnp.minimum(b, 1e3)) / 2)
    mass = _log_mass(a, b)
    this = (_log_mass(middle, b) if upper else _log_mass(a, middle)) - mass
    other = (_log_mass(a, middle) if upper else _log_mass(middle, b)) - mass
    # What is nearly everything is what the other leaves.
    close = this > -0.1
    found = jnp.where(close, log1p(-jnp.exp(jnp.where(close, other, -1.0))), this)
    beyond, before = (-jnp.inf, 0.0) if upper else (0.0, -jnp.inf)
    if upper:
        found = jnp.where(x <= a, before, jnp.where(x >= b, beyond, found))
    else:
        found = jnp.where(x >= b, beyond, jnp.where(x <= a, before, found))
    return jnp.where((a >= b) | (x != x), jnp.nan, found)


@_of_truncnorm
def logpdf(x, a, b, loc=0, scale=1):
    y = (x - loc) / scale
    found = norm.logpdf(x, loc, scale) - _log_mass(a, b)
    found = jnp.where((y < a) | (y > b), -jnp.inf, found)
    return jnp.where(a >= b, jnp.nan, found)


pdf = exp_of(logpdf, undefined=True)


@_of_truncnorm
def logcdf(x, a, b, loc=0, scale=1):
    return _part((x - loc) / scale, a, b, upper=False)


cdf = exp_of(logcdf, undefined=True)


@_of_truncnorm
def logsf(x, a, b, loc=0, scale=1):
    return _part((x - loc) / scale, a, b, upper=True)


sf = exp_of(logsf, undefined=True)
