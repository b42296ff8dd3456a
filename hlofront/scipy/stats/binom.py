"""The binomial distribution: functions of arrays that broadcast."""

from typing import Any

import hlofront.numpy as jnp
from hlofront.runtime.operation import operation
from hlofront.scipy.special.entropies import xlog1py, xlogy
from hlofront.scipy.special.gamma_functions import betaln
from hlofront.scipy.stats.arguments import arrays


@operation
def logpmf(k: Any, n: Any, p: Any, loc: Any = 0) -> Any:
    """Logarithm of the probability.

    Args:
      k: whole numbers.
      n: how many trials.
      p: the probability of each.
      loc: what the variable is shifted by.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    k, n, p, loc = arrays("binom.logpmf", k, n, p, loc)
    x = k - loc
    outer = (x < 0) | (x > n)
    x = jnp.where(outer, 0, x)
    ways = -jnp.log1p(n) - betaln(n - x + 1, x + 1)
    # There is one way, of which the logarithm is zero to all digits.
    ways = jnp.where((x == 0) | (x == n), 0, ways)
    return jnp.where(outer, -jnp.inf, ways + xlogy(x, p) + xlog1py(n - x, -p))


@operation
def pmf(k: Any, n: Any, p: Any, loc: Any = 0) -> Any:
    """Probability.

    Args:
      k: whole numbers.
      n: how many trials.
      p: the probability of each.
      loc: what the variable is shifted by.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    return jnp.exp(logpmf(k, n, p, loc))
