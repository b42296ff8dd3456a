"""The generalized normal distribution, with densities like exp(-abs(x)**beta)."""

from typing import Any

import hlofront.numpy as jnp
from hlofront.runtime.operation import operation
from hlofront.scipy.special.gamma_functions import gammaincc, gammaln
from hlofront.scipy.stats.arguments import arrays


@operation
def logpdf(x: Any, beta: Any) -> Any:
    """Logarithm of the density.

    Args:
      x: where, real numbers.
      beta: the exponent, positive.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    x, beta = arrays("gennorm.logpdf", x, beta)
    return jnp.log(0.5 * beta) - gammaln(1 / beta) - jnp.abs(x) ** beta


@operation
def pdf(x: Any, beta: Any) -> Any:
    """Density.

    Args:
      x: where, real numbers.
      beta: the exponent, positive.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    return jnp.exp(logpdf(x, beta))


@operation
def cdf(x: Any, beta: Any) -> Any:
    """Distribution function.

    Args:
      x: where, real numbers.
      beta: the exponent, positive.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    x, beta = arrays("gennorm.cdf", x, beta)
    tail = 0.5 * gammaincc(1 / beta, jnp.abs(x) ** beta)
    found = jnp.where(x <= 0, tail, 1 - tail)
    return jnp.where(beta > 0, found, jnp.nan)
