"""The Pareto distribution, from loc + scale on: functions of arrays that broadcast."""

from typing import Any

import hlofront.numpy as jnp
from hlofront.scipy.special.entropies import log1p
from hlofront.scipy.stats.arguments import exp_of, functions_of, log_of_rest, outside

_of_pareto = functions_of("pareto", real=True, b="the exponent, positive.")


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
    return jnp.where(below, -jnp.inf, jnp.log(b / scale) - (b + 1) * logarithm)


pdf = exp_of(logpdf)


@_of_pareto
def cdf(x, b, loc=0, scale=1):
    logarithm, below = _logarithm(x, loc, scale)
    return jnp.where(below, 0, -jnp.expm1(-b * logarithm))


@_of_pareto
def logcdf(x, b, loc=0, scale=1):
    logarithm, below = _logarithm(x, loc, scale)
    return jnp.where(below, -jnp.inf, _log_of_rest(b, logarithm, (x - loc) / scale))


@_of_pareto
def sf(x, b, loc=0, scale=1):
    # The power of 1 has a derivative there, and what it stands for may have none.
    return jnp.where(x < loc + scale, 1, (x - loc) / scale) ** -b


@_of_pareto
def logsf(x, b, loc=0, scale=1):
    logarithm, below = _logarithm(x, loc, scale)
    return jnp.where(below, 0, -b * logarithm)


@_of_pareto
def ppf(q, b, loc=0, scale=1):
    # The remainder is exact where it is small; where it is not, its logarithm is.
    power = jnp.where(q < 0.5, jnp.exp(-jnp.log1p(-q) / b), (1 - q) ** (-1 / b))
    found = loc + scale * power
    return jnp.where(outside(q), jnp.nan, found)
