"""The beta distribution: functions of arrays that broadcast."""

from __future__ import annotations

import hlofront.numpy as jnp
from hlofront.base.lazy import dir_of
from hlofront.base.typing import Array
from hlofront.scipy.special import gamma_functions
from hlofront.scipy.special.entropies import xlog1py, xlogy
from hlofront.scipy.stats.arguments import between, exp_of, functions_of, log_of

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]
__dir__ = dir_of(__name__)

_of_beta = functions_of(
    "beta", a="the first shape parameter, positive.", b="the second shape parameter, positive."
)


def _unit(x: Array, loc: Array | int, scale: Array | int) -> Array:
    """Return the standardized variable (x - loc) / scale, clipped to [0, 1]."""
    return between(0, (x - loc) / scale, 1)


@_of_beta
def logpdf(x: Array, a: Array, b: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    y = (x - loc) / scale
    outer = (x < loc) | (x > loc + scale)
    # Arguments that rounding moves past an end count as that end.
    unit = jnp.where(outer, 0.5, jnp.where(y < 0, 0.0, jnp.where(y > 1, 1.0, y)))
    powers = xlogy(a - 1, unit) + xlog1py(b - 1, -unit)
    logarithm = powers - gamma_functions.betaln(a, b) - jnp.log(scale)
    logarithm = jnp.where(outer, -jnp.inf, logarithm)
    return jnp.where((a <= 0) | (b <= 0) | (scale <= 0), jnp.nan, logarithm)


pdf = exp_of(logpdf, undefined=True)


@_of_beta
def cdf(x: Array, a: Array, b: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    return gamma_functions.betainc(a, b, _unit(x, loc, scale))


logcdf = log_of(cdf)


@_of_beta
def sf(x: Array, a: Array, b: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    return gamma_functions.betainc(b, a, 1 - _unit(x, loc, scale))


logsf = log_of(sf)
