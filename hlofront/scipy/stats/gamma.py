"""The gamma distribution: functions of arrays that broadcast."""

from __future__ import annotations

import hlofront.numpy as jnp
from hlofront.base.lazy import dir_of
from hlofront.base.typing import Array
from hlofront.scipy.special.entropies import xlogy
from hlofront.scipy.special.gamma_functions import gammainc, gammaincc, gammaln
from hlofront.scipy.stats.arguments import (
    at_infinity,
    cotangents,
    exp_of,
    functions_of,
    log_of_share,
    nan_unless,
    with_constants,
)


def log_density(outer: Array, y: Array, a: Array, scale: Array | int) -> Array:
    """Return the logarithm of the density at y = (x - loc) / scale, and -inf where `outer` is."""
    part = jnp.where(outer, 1, y)
    # At infinity the power is negligible compared with the exponential.
    base = jnp.where((part == jnp.inf) & (scale > 0) & (a < jnp.inf), 1, part)
    logarithm = xlogy(a - 1, base) - part - gammaln(a) - jnp.log(scale)
    return jnp.where(outer, -jnp.inf, logarithm)


def survival(outer: Array, y: Array, a: Array) -> Array:
    """Return gammaincc(a, y), which is 1 where `outer` is, and 0 at infinity."""
    above = at_infinity(a, y)
    rest = gammaincc(a, jnp.where(outer | above, 1, y))
    return jnp.where(outer, 1, jnp.where(above, 0, rest))


__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]
__dir__ = dir_of(__name__)

_of_gamma = functions_of("gamma", a="the shape parameter, positive.")


def _share(a: Array, y: Array) -> Array:
    """Return gammainc(a, y), and outside (0, inf) its value at the nearer end, with slopes of 0."""
    below, above = y <= 0, at_infinity(a, y)
    share = gammainc(a, jnp.where(below | above, 1, y))
    share = jnp.where(below, 0, jnp.where(above, 1, share))
    return share * nan_unless(_has_share(a, y))


def _has_share(a: Array, y: Array) -> Array:
    """Return a mask of where `_share` is a number: for a shape of 0, it is 1 right of 0."""
    return (a > 0) | ((a == 0) & (y > 0))


@_of_gamma
@with_constants
def logpdf(x: Array, a: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    inside = x >= loc
    return log_density(~inside, (x - loc) / scale, a, scale) * nan_unless(x == x)


pdf = exp_of(logpdf)


@_of_gamma
@with_constants
def cdf(x: Array, a: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    # At 0 the derivative is that from below, as in JAX.
    return _share(a, (x - loc) / scale)


@_of_gamma
@with_constants
@cotangents(weak="a")
def logcdf(x: Array, a: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    y = (x - loc) / scale
    # At 0 and below the logarithm has no derivative, so that another argument replaces x.
    inside = jnp.where(y <= 0, 1, y)
    logarithm = log_of_share(_share(a, inside), survival(inside < 0, inside, a))
    return jnp.where(y <= 0, -jnp.inf, logarithm) * nan_unless(_has_share(a, y))


@_of_gamma
def sf(x: Array, a: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    y = (x - loc) / scale
    # At 0 the derivative is that from above, as in JAX.
    return survival(y < 0, y, a)


@_of_gamma
def logsf(x: Array, a: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    y = (x - loc) / scale
    below, above = y < 0, at_infinity(a, y)
    share = gammainc(a, jnp.where(below | above, 1, y))
    share = jnp.where(below, 0, jnp.where(above, 1, share))
    # At 0 the slope of the survival function may be infinite: another argument replaces y.
    return log_of_share(survival(below, jnp.where(share < 0.5, 1, y), a), share)
