"""The negative binomial distribution, of failures before the n-th success."""

from typing import Any

import hlofront.numpy as jnp
from hlofront.runtime.operation import operation
from hlofront.scipy.special.entropies import xlog1py
from hlofront.scipy.special.gamma_functions import betaln
from hlofront.scipy.stats.arguments import arrays


@operation
def logpmf(k: Any, n: Any, p: Any, loc: Any = 0) -> Any:
    """Logarithm of the probability.

    Args:
      k: whole numbers.
      n: how many successes, positive.
      p: the probability of each.
      loc: what the variable is shifted by.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    k, n, p, loc = arrays("nbinom.logpmf", k, n, p, loc)
    x = k - loc
    # There is one way where x is 0, of which the logarithm is zero to all digits.
    ways = jnp.where(x == 0, 0, -betaln(n, x + 1) - jnp.log(n + x))
    return jnp.where(x < 0, -jnp.inf, ways + n * jnp.log(p) + xlog1py(x, -p))


@operation
def pmf(k: Any, n: Any, p: Any, loc: Any = 0) -> Any:
    """Probability.

    Args:
      k: whole numbers.
      n: how many successes, positive.
      p: the probability of each.
      loc: what the variable is shifted by.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    return jnp.exp(logpmf(k, n, p, loc))
