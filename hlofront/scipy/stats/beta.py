"""The beta distribution: functions of arrays that broadcast."""

from typing import Any

import hlofront.numpy as jnp
from hlofront.scipy.special import gamma_functions
from hlofront.scipy.special.entropies import xlog1py, xlogy
from hlofront.scipy.stats.arguments import between, exp_of, functions_of, log_of

_of_beta = functions_of(
    "beta", a="the first shape parameter, positive.", b="the second shape parameter, positive."
)


def _unit(x: Any, loc: Any, scale: Any) -> Any:
    """The standardized variable, taken to the end of [0, 1] that it is beyond."""
    return between(0, (x - loc) / scale, 1)


@_of_beta
def logpdf(x, a, b, loc=0, scale=1):
    y = (x - loc) / scale
    outer = (x < loc) | (x > loc + scale)
    # What rounding puts beyond an end is at it, and has the derivative that is there.
    unit = jnp.where(outer, 0.5, jnp.where(y < 0, 0.0, jnp.where(y > 1, 1.0, y)))
    powers = xlogy(a - 1, unit) + xlog1py(b - 1, -unit)
    found = powers - gamma_functions.betaln(a, b) - jnp.log(scale)
    found = jnp.where(outer, -jnp.inf, found)
    return jnp.where((a <= 0) | (b <= 0) | (scale <= 0), jnp.nan, found)


pdf = exp_of(logpdf, undefined=True)


@_of_beta
def cdf(x, a, b, loc=0, scale=1):
    return gamma_functions.betainc(a, b, _unit(x, loc, scale))


logcdf = log_of(cdf)


@_of_beta
def sf(x, a, b, loc=0, scale=1):
    return gamma_functions.betainc(b, a, 1 - _unit(x, loc, scale))


logsf = log_of(sf)
