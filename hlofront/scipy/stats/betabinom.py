"""The beta-binomial distribution: functions of arrays that broadcast."""

from typing import Any

import hlofront.numpy as jnp
from hlofront.runtime.operation import operation
from hlofront.scipy.special.gamma_functions import betaln
from hlofront.scipy.stats.arguments import arrays


@operation
def logpmf(k: Any, n: Any, a: Any, b: Any, loc: Any = 0) -> Any:
    """Logarithm of the probability.

    Args:
      k: whole numbers.
      n: how many trials.
      a: the first shape parameter, positive.
      b: the second shape parameter, positive.
      loc: what the variable is shifted by.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    k, n, a, b, loc = arrays("betabinom.logpmf", k, n, a, b, loc)
    x = jnp.floor(k - loc)
    outer = (x < 0) | (x > n)
    undefined = (n < 0) | (a <= 0) | (b <= 0)
    inner = jnp.where(outer | undefined, 0, x)
    ways = -jnp.log1p(n) - betaln(n - inner + 1, inner + 1)
    # There is one way, of which the logarithm is zero to all digits.
    ways = jnp.where((inner == 0) | (inner == n), 0, ways)
    found = ways + betaln(inner + a, n - inner + b) - betaln(a, b)
    return jnp.where(undefined, jnp.nan, jnp.where(outer, -jnp.inf, found))


@operation
def pmf(k: Any, n: Any, a: Any, b: Any, loc: Any = 0) -> Any:
    """Probability.

    Args:
      k: whole numbers.
      n: how many trials.
      a: the first shape parameter, positive.
      b: the second shape parameter, positive.
      loc: what the variable is shifted by.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    return jnp.exp(logpmf(k, n, a, b, loc))
