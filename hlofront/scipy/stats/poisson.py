"""The Poisson distribution: functions of arrays that broadcast."""

from __future__ import annotations

import hlofront.numpy as jnp
from hlofront.base.lazy import dir_of
from hlofront.base.typing import Array
from hlofront.primitives.elementwise.weak_types import weak_tangents
from hlofront.scipy.special.arguments import strong
from hlofront.scipy.special.entropies import xlogy
from hlofront.scipy.special.gamma_functions import gammaincc, gammaln
from hlofront.scipy.stats.arguments import (
    cotangents,
    exp_of,
    functions_of,
    nan_unless,
    strongly_typed,
)

__all__ = ["cdf", "entropy", "logpmf", "pmf"]
__dir__ = dir_of(__name__)

# The number of terms in the entropy's sum for means below a bound; above it the asymptotic series
# is accurate.
_FAR, _TERMS = 300, 512
_of_poisson = functions_of("poisson", mu="the mean, not negative.")


@_of_poisson
@cotangents(weak="k mu loc")
def logpmf(k: Array, mu: Array, loc: Array | int = 0) -> Array:
    x = k - loc
    whole = (x >= 0) & (x == jnp.floor(x)) & ((x < jnp.inf) | (mu == jnp.inf))
    inner = jnp.where(whole | (x != x), x, 0)
    logarithm = xlogy(inner, mu) - gammaln(inner + 1) - mu
    outer = (x < 0) | (k != jnp.round(k))
    # A negative or NaN mean gives NaN even if k is not an integer.
    beyond = jnp.where(mu >= 0, -jnp.inf, jnp.nan)
    logarithm = jnp.where(whole | (x != x), logarithm, beyond)
    return weak_tangents(jnp.where(outer, -jnp.inf, logarithm) * nan_unless(k == k))


pmf = exp_of(logpmf)


@_of_poisson
@strongly_typed
def cdf(k: Array, mu: Array, loc: Array | int = 0) -> Array:
    x = jnp.floor(k - loc)
    inside = ~((x < 0) | (x == jnp.inf))
    probability = gammaincc(jnp.where(inside, x, 0) + 1, mu)
    probability = jnp.where(inside, probability, jnp.where(mu >= 0, 1, jnp.nan))
    return jnp.where(x < 0, 0, probability)


@_of_poisson
def entropy(mu: Array, loc: Array | int = 0) -> Array:
    mu = strong(jnp.broadcast_to(mu, jnp.broadcast_shapes(jnp.shape(mu), jnp.shape(loc))))
    near = (mu > 0) & (mu < _FAR)
    small = jnp.where(near, mu, 1)[..., None]
    counts = jnp.arange(_TERMS, dtype=small.dtype)
    counts = counts.reshape((1,) * mu.ndim + (-1,))
    logarithms = counts * jnp.log(small) - small - gammaln(counts + 1)
    summed = -jnp.sum(jnp.exp(logarithms) * logarithms, axis=-1)
    inverse = 1 / jnp.where(mu >= _FAR, mu, _FAR)
    series = inverse * (1 / 12 + inverse * (1 / 24 + inverse * (19 / 360)))
    far = 0.5 * jnp.log(2 * jnp.pi * jnp.e * mu) - series
    result = jnp.where(near, summed, jnp.where(mu >= _FAR, far, jnp.nan))
    return jnp.where(mu == 0, 0, result)
