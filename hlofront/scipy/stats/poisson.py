"""The Poisson distribution: functions of arrays that broadcast."""

from typing import Any

import hlofront.numpy as jnp
from hlofront.runtime.operation import operation
from hlofront.scipy.special.arguments import strong
from hlofront.scipy.special.entropies import xlogy
from hlofront.scipy.special.gamma_functions import gammaincc, gammaln
from hlofront.scipy.stats.arguments import arrays

# Below this mean so many terms are summed; beyond, the asymptotic series has all digits.
_FAR, _TERMS = 300, 512


@operation
def logpmf(k: Any, mu: Any, loc: Any = 0) -> Any:
    """Logarithm of the probability.

    Args:
      k: whole numbers.
      mu: the mean, not negative.
      loc: what the variable is shifted by.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    k, mu, loc = arrays("poisson.logpmf", k, mu, loc)
    x = k - loc
    whole = (x >= 0) & (x == jnp.floor(x)) & (x < jnp.inf)
    inner = jnp.where(whole, x, 0)
    found = xlogy(inner, mu) - gammaln(inner + 1) - mu
    return jnp.where(whole, found, jnp.where(x != x, x, -jnp.inf))


@operation
def pmf(k: Any, mu: Any, loc: Any = 0) -> Any:
    """Probability.

    Args:
      k: whole numbers.
      mu: the mean, not negative.
      loc: what the variable is shifted by.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    return jnp.exp(logpmf(k, mu, loc))


@operation
def cdf(k: Any, mu: Any, loc: Any = 0) -> Any:
    """Distribution function.

    Args:
      k: whole numbers.
      mu: the mean, not negative.
      loc: what the variable is shifted by.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    k, mu, loc = arrays("poisson.cdf", k, mu, loc)
    x = jnp.floor(k - loc)
    inside = (x >= 0) & (x < jnp.inf)
    found = gammaincc(jnp.where(inside, x, 0) + 1, mu)
    return jnp.where(x < 0, 0, jnp.where(x == jnp.inf, 1, jnp.where(x != x, x, found)))


@operation
def entropy(mu: Any, loc: Any = 0) -> Any:
    """Entropy.

    Args:
      mu: the mean, not negative.
      loc: what the variable is shifted by.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    (mu,) = arrays("poisson.entropy", mu)
    mu = strong(mu)
    near = (mu > 0) & (mu < _FAR)
    small = jnp.where(near, mu, 1)[..., None]
    counts = jnp.arange(_TERMS, dtype=small.dtype)
    logarithms = counts * jnp.log(small) - small - gammaln(counts + 1)
    summed = -jnp.sum(jnp.exp(logarithms) * logarithms, axis=-1)
    inverse = 1 / jnp.where(mu >= _FAR, mu, _FAR)
    series = inverse * (1 / 12 + inverse * (1 / 24 + inverse * (19 / 360)))
    far = 0.5 * jnp.log(2 * jnp.pi * jnp.e * mu) - series
    found = jnp.where(near, summed, jnp.where(mu >= _FAR, far, jnp.nan))
    return jnp.where(mu == 0, 0, found)
