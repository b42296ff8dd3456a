"""The Laplace distribution: functions of arrays that broadcast."""

from typing import Any

import hlofront.numpy as jnp
from hlofront.runtime.operation import operation
from hlofront.scipy.stats.arguments import arrays


@operation
def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """Logarithm of the density.

    Args:
      x: where, real numbers.
      loc: what the variable is shifted by.
      scale: what it is stretched by, positive.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    x, loc, scale = arrays("laplace.logpdf", x, loc, scale)
    y = (x - loc) / scale
    return -jnp.abs(y) - jnp.log(2 * scale)


@operation
def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """Density.

    Args:
      x: where, real numbers.
      loc: what the variable is shifted by.
      scale: what it is stretched by, positive.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    return jnp.exp(logpdf(x, loc, scale))


@operation
def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """Distribution function.

    Args:
      x: where, real numbers.
      loc: what the variable is shifted by.
      scale: what it is stretched by, positive.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    x, loc, scale = arrays("laplace.cdf", x, loc, scale)
    y = (x - loc) / scale
    tail = 0.5 * jnp.exp(-jnp.abs(y))
    return jnp.where(y <= 0, tail, 1 - tail)
