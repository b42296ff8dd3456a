"""The Pareto distribution, from loc + scale on: functions of arrays that broadcast."""

from typing import Any

import hlofront.numpy as jnp
from hlofront.scipy.special.entropies import log1p
from hlofront.scipy.stats.arguments import exp_of, functions_of, log_of_rest, outside

_of_pareto = functions_of("pareto", real=True, b="the exponent, positive.")


def _regular(b: Any, ratio: Any) -> Any:
    """Whether ratio**-b is what the logarithm of the ratio says: both are of the distribution."""
    return (ratio > 0) & (ratio < jnp.inf) & (jnp.abs(b) < jnp.inf)


def _logarithm(x: Any, loc: Any, scale: Any) -> tuple[Any, Any]:
    """The logarithm of the standardized variable, and whether it is below the support."""
    below = x < loc + scale
    return jnp.log((x - loc) / scale), below


def _log_of_rest(b: Any, logarithm: Any, ratio: Any) -> Any:
    """log(1 - ratio**-b), where that power is small from it and not from its logarithm."""
    far = b * logarithm > 1
    power = jnp.where(far, ratio, 2.0) ** -b
    return jnp.where(far, log1p(-jnp.where(far, power, 0.0)), log_of_rest(b * logarithm))


@_of_pareto
def logpdf(x, b, loc=0, scale=1):
    logarithm, below = _logarithm(x, loc, scale)
    return jnp.where(below, -jnp.inf, -jnp.log(scale / b) - (b + 1) * logarithm)


pdf = exp_of(logpdf)


@_of_pareto
def cdf(x, b, loc=0, scale=1):
    logarithm, below = _logarithm(x, loc, scale)
    ratio = (x - loc) / scale
    regular = _regular(b, ratio)
    power = jnp.where(regular | below, 1, ratio) ** -b
    found = jnp.where(regular, -jnp.expm1(-b * logarithm), 1 - power)
    return jnp.where(below, 0, found)


@_of_pareto
def logcdf(x, b, loc=0, scale=1):
    logarithm, below = _logarithm(x, loc, scale)
    ratio = (x - loc) / scale
    regular = _regular(b, ratio)
    power = jnp.where(regular | below, 0.5, ratio) ** -b
    found = jnp.where(regular, _log_of_rest(b, logarithm, ratio), jnp.log1p(-power))
    return jnp.where(below, -jnp.inf, found)


@_of_pareto
def sf(x, b, loc=0, scale=1):
    below = x < loc + scale
    ratio = (x - loc) / scale
    regular = _regular(b, ratio) & ~below
    # The power of 1 and its logarithm have derivatives, and what it stands for may have none.
    power = jnp.where(regular, ratio, 1) ** -b
    other = jnp.exp(-b * jnp.log(jnp.where(regular | below, 1, ratio)))
    return jnp.where(regular, power, jnp.where(below, 1, other))


@_of_pareto
def logsf(x, b, loc=0, scale=1):
    logarithm, below = _logarithm(x, loc, scale)
    return jnp.where(below, 0, -b * logarithm)


@_of_pareto
def ppf(q, b, loc=0, scale=1):
    # The remainder is exact where it is small; where it is not, its logarithm is.
    low = (q < 0.5) & (jnp.abs(b) > 0)
    of_logarithm = jnp.exp(-jnp.log1p(-jnp.where(low, q, 0)) / b)
    power = jnp.where(low, of_logarithm, (1 - q) ** (-1 / b))
    found = loc + scale * power
    return jnp.where(outside(q), jnp.nan, found)
