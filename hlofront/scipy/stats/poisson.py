"""The Poisson distribution: functions of arrays that broadcast."""

import hlofront.numpy as jnp
from hlofront.scipy.special.arguments import strong
from hlofront.scipy.special.entropies import xlogy
from hlofront.scipy.special.gamma_functions import gammaincc, gammaln
from hlofront.scipy.stats.arguments import exp_of, functions_of

# Below this mean so many terms are summed; beyond, the asymptotic series has all digits.
_FAR, _TERMS = 300, 512
_of_poisson = functions_of("poisson", mu="the mean, not negative.")


@_of_poisson
def logpmf(k, mu, loc=0):
    x = k - loc
    whole = (x >= 0) & (x == jnp.floor(x)) & (x < jnp.inf)
    inner = jnp.where(whole, x, 0)
    found = xlogy(inner, mu) - gammaln(inner + 1) - mu
    outer = (x < 0) | (k != jnp.round(k))
    # Elsewhere it is no number if the mean is none.
    found = jnp.where(whole, found, jnp.where((x == x) & (mu >= 0), -jnp.inf, jnp.nan))
    return jnp.where(k != k, k, jnp.where(outer, -jnp.inf, found))


pmf = exp_of(logpmf)


@_of_poisson
def cdf(k, mu, loc=0):
    x = jnp.floor(k - loc)
    inside = (x >= 0) & (x < jnp.inf)
    found = gammaincc(jnp.where(inside, x, 0) + 1, mu)
    found = jnp.where(inside, found, jnp.where((x == x) & (mu >= 0), 1, jnp.nan))
    return jnp.where(x < 0, 0, found)


@_of_poisson
def entropy(mu, loc=0):
    mu = strong(jnp.broadcast_to(mu, jnp.broadcast_shapes(mu.shape, loc.shape)))
    near = (mu > 0) & (mu < _FAR)
    small = jnp.where(near, mu, 1)[..., None]
    counts = jnp.arange(_TERMS, dtype=small.dtype)
    counts = counts.reshape((1,) * mu.ndim + (-1,))
    logarithms = counts * jnp.log(small) - small - gammaln(counts + 1)
    summed = -jnp.sum(jnp.exp(logarithms) * logarithms, axis=-1)
    inverse = 1 / jnp.where(mu >= _FAR, mu, _FAR)
    series = inverse * (1 / 12 + inverse * (1 / 24 + inverse * (19 / 360)))
    far = 0.5 * jnp.log(2 * jnp.pi * jnp.e * mu) - series
    found = jnp.where(near, summed, jnp.where(mu >= _FAR, far, jnp.nan))
    return jnp.where(mu == 0, 0, found)
