"""The geometric distribution, of trials up to the first success."""

from typing import Any

import hlofront.numpy as jnp
from hlofront.runtime.operation import operation
from hlofront.scipy.special.entropies import xlog1py
from hlofront.scipy.stats.arguments import arrays


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
    k, p, loc = arrays("geom.logpmf", k, p, loc)
    x = k - loc
    return jnp.where(x <= 0, -jnp.inf, xlog1py(x - 1, -p) + jnp.log(p))


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
