"""The Pareto distribution, from loc + scale on: functions of arrays that broadcast."""

from __future__ import annotations

import hlofront.numpy as jnp
from hlofront.base.lazy import dir_of
from hlofront.base.typing import Array
from hlofront.primitives.elementwise.weak_types import weak_tangents
from hlofront.scipy.special.entropies import log1p
from hlofront.scipy.stats.arguments import (
    cotangents,
    exp_of,
    functions_of,
    log_of_rest,
    outside,
    strongly_typed,
    with_constants,
)

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]
__dir__ = dir_of(__name__)

_of_pareto = functions_of("pareto", real=True, b="the exponent, positive.")


def _regular(b: Array, ratio: Array) -> Array:
    """Return a mask where ratio**-b can be computed by a logarithm: ratio > 0, both finite."""
    return (ratio > 0) & (ratio < jnp.inf) & (jnp.abs(b) < jnp.inf)


def _logarithm(x: Array, loc: Array | int, scale: Array | int) -> tuple[Array, Array]:
    """Return the log of (x - loc) / scale, 0 below the support, and a mask of x below it."""
    below = x < loc + scale
    return jnp.log(jnp.where(below, 1, (x - loc) / scale)), below


def _log_of_rest(b: Array, logarithm: Array, ratio: Array) -> Array:
    """Return log(1 - ratio**-b), where a small power is computed directly, not by its logarithm."""
    far = b * logarithm > 1
    power = jnp.where(far, ratio, 2.0) ** -b
    return jnp.where(far, log1p(-jnp.where(far, power, 0.0)), log_of_rest(b * logarithm))


@_of_pareto
@with_constants
def logpdf(x: Array, b: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    logarithm, below = _logarithm(x, loc, scale)
    return jnp.where(below, -jnp.inf, -jnp.log(scale / b) - (b + 1) * logarithm)


pdf = exp_of(logpdf)


@_of_pareto
@strongly_typed
def cdf(x: Array, b: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    below = x < loc + scale
    ratio = (x - loc) / scale
    regular = _regular(b, ratio)
    power = jnp.where(regular | below, 1, ratio) ** -b
    logarithm = jnp.log(jnp.where(regular & ~below, ratio, 1))
    probability = jnp.where(regular, -jnp.expm1(-b * logarithm), 1 - power)
    return jnp.where(below, 0, probability)


@_of_pareto
@cotangents(weak="b")
def logcdf(x: Array, b: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    below = x < loc + scale
    # Below the support another ratio has derivatives.
    ratio = jnp.where(below, 2.0, (x - loc) / scale)
    regular = _regular(b, ratio)
    power = jnp.where(regular, 0.5, ratio) ** -b
    ratio = jnp.where(regular, ratio, 2.0)
    result = jnp.where(regular, _log_of_rest(b, jnp.log(ratio), ratio), jnp.log1p(-power))
    return weak_tangents(jnp.where(below, -jnp.inf, result))


@_of_pareto
@strongly_typed
@cotangents(weak="x b loc scale")
def sf(x: Array, b: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    below = x < loc + scale
    ratio = (x - loc) / scale
    regular = _regular(b, ratio) & ~below
    # Unselected branches get the ratio 1, whose power has derivatives.
    power = jnp.where(regular, ratio, 1) ** -b
    other = jnp.exp(-b * jnp.log(jnp.where(regular | below, 1, ratio)))
    return jnp.where(regular, power, jnp.where(below, 1, other))


@_of_pareto
@strongly_typed
def logsf(x: Array, b: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    logarithm, below = _logarithm(x, loc, scale)
    return jnp.where(below, 0, -b * logarithm)


@_of_pareto
@with_constants
@cotangents(strong="b")
def ppf(q: Array, b: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    # 1 - q is exact where it is small; elsewhere log1p(-q) is more accurate.
    low = (q < 0.5) & (jnp.abs(b) > 0)
    of_logarithm = jnp.exp(-jnp.log1p(-jnp.where(low, q, 0)) / b)
    power = jnp.where(low, of_logarithm, (1 - q) ** (-1 / b))
    quantile = loc + scale * power
    return jnp.where(outside(q), jnp.nan, quantile)
