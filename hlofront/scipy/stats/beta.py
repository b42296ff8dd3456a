"""The beta distribution: functions of arrays that broadcast."""

from __future__ import annotations

import hlofront.numpy as jnp
from hlofront.base.lazy import dir_of
from hlofront.base.typing import Array
from hlofront.scipy.special import gamma_functions
from hlofront.scipy.special.entropies import xlog1py, xlogy
from hlofront.scipy.stats.arguments import (
    exp_of,
    functions_of,
    log_of_share,
    nan_unless,
    with_constants,
)

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]
__dir__ = dir_of(__name__)

_of_beta = functions_of(
    "beta", a="the first shape parameter, positive.", b="the second shape parameter, positive."
)


def _has_ends(a: Array, b: Array) -> Array:
    """Return a mask of the shapes for which `betainc` is 0 at 0 and 1 at 1; one may be 0."""
    return (a >= 0) & (b >= 0) & (a + b > 0)


def _share(a: Array, b: Array, y: Array) -> Array:
    """Return betainc(a, b, y), and outside (0, 1) its value at the nearer end, with slopes of 0."""
    below, above = y <= 0, y >= 1
    share = gamma_functions.betainc(a, b, jnp.where(below | above, 0.5, y))
    share = jnp.where(below, 0, jnp.where(above, 1, share))
    return share * nan_unless(_has_ends(a, b))


def _log_share(a: Array, b: Array, y: Array) -> Array:
    """Return the logarithm of `_share`, with slopes of 0 even where it is minus infinity."""
    below = y <= 0
    inside = jnp.where(below, 0.5, y)
    logarithm = log_of_share(_share(a, b, inside), _share(b, a, 1 - inside))
    return jnp.where(below, -jnp.inf, logarithm) * nan_unless(_has_ends(a, b))


def _log_rest(a: Array, b: Array, y: Array) -> Array:
    """Return the logarithm of 1 - `_share`, with slopes of 0 even where it is minus infinity."""
    above = y >= 1
    inside = jnp.where(above, 0.5, y)
    logarithm = log_of_share(_share(b, a, 1 - inside), _share(a, b, inside))
    return jnp.where(above, -jnp.inf, logarithm) * nan_unless(_has_ends(a, b))


@_of_beta
@with_constants
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
@with_constants
def cdf(x: Array, a: Array, b: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    return _share(a, b, (x - loc) / scale)


@_of_beta
@with_constants
def logcdf(x: Array, a: Array, b: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    return _log_share(a, b, (x - loc) / scale)


@_of_beta
@with_constants
def sf(x: Array, a: Array, b: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    return _share(b, a, 1 - (x - loc) / scale)


@_of_beta
@with_constants
def logsf(x: Array, a: Array, b: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    return _log_rest(a, b, (x - loc) / scale)
