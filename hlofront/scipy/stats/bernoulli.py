"""The Bernoulli distribution of 0 and 1: functions of arrays that broadcast."""

from typing import Any

import hlofront.numpy as jnp
from hlofront.runtime.operation import operation
from hlofront.scipy.special.entropies import xlog1py, xlogy
from hlofront.scipy.stats.arguments import arrays, outside


@operation
def logpmf(k: Any, p: Any, loc: Any = 0) -> Any:
    """Logarithm of the probability.

    Args:
      k: whole numbers.
      p: a probability.
      loc: what the variable is shifted by.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    k, p, loc = arrays("bernoulli.logpmf", k, p, loc)
    x = k - loc
    found = xlogy(x, p) + xlog1py(1 - x, -p)
    return jnp.where((x < 0) | (x > 1), -jnp.inf, found)


@operation
def pmf(k: Any, p: Any, loc: Any = 0) -> Any:
    """Probability.

    Args:
      k: whole numbers.
      p: a probability.
      loc: what the variable is shifted by.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    return jnp.exp(logpmf(k, p, loc))


@operation
def cdf(k: Any, p: Any) -> Any:
    """Distribution function.

    Args:
      k: whole numbers.
      p: a probability.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    k, p = arrays("bernoulli.cdf", k, p)
    found = jnp.where(k < 0, 0, jnp.where(k < 1, 1 - p, 1))
    return jnp.where(outside(p) | (k != k), jnp.nan, found)


@operation
def ppf(q: Any, p: Any) -> Any:
    """Quantile: the inverse of cdf.

    Args:
      q: probabilities, from 0 to 1.
      p: a probability.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    q, p = arrays("bernoulli.ppf", q, p)
    return jnp.where(outside(q) | outside(p), jnp.nan, jnp.where(q <= 1 - p, 0, jnp.ones_like(q)))
