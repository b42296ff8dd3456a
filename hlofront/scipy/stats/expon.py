"""The exponential distribution: functions of arrays that broadcast."""

from typing import Any

import hlofront.numpy as jnp
from hlofront.runtime.operation import operation
from hlofront.scipy.stats.arguments import arrays, log_of_rest, outside


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
    x, loc, scale = arrays("expon.logpdf", x, loc, scale)
    y = (x - loc) / scale
    return jnp.where(x < loc, -jnp.inf, -y - jnp.log(scale))


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
    x, loc, scale = arrays("expon.cdf", x, loc, scale)
    y = (x - loc) / scale
    return jnp.where(x < loc, 0, -jnp.expm1(-y))


@operation
def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """Logarithm of the distribution function.

    Args:
      x: where, real numbers.
      loc: what the variable is shifted by.
      scale: what it is stretched by, positive.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    x, loc, scale = arrays("expon.logcdf", x, loc, scale)
    y = (x - loc) / scale
    return jnp.where(x < loc, -jnp.inf, log_of_rest(y))


@operation
def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """Survival function, 1 - cdf.

    Args:
      x: where, real numbers.
      loc: what the variable is shifted by.
      scale: what it is stretched by, positive.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    x, loc, scale = arrays("expon.sf", x, loc, scale)
    y = (x - loc) / scale
    return jnp.where(x < loc, 1, jnp.exp(-y))


@operation
def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """Logarithm of the survival function.

    Args:
      x: where, real numbers.
      loc: what the variable is shifted by.
      scale: what it is stretched by, positive.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    x, loc, scale = arrays("expon.logsf", x, loc, scale)
    y = (x - loc) / scale
    return jnp.where(x < loc, 0, -y)


@operation
def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """Quantile: the inverse of cdf.

    Args:
      q: probabilities, from 0 to 1.
      loc: what the variable is shifted by.
      scale: what it is stretched by, positive.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    q, loc, scale = arrays("expon.ppf", q, loc, scale)
    return jnp.where(outside(q), jnp.nan, loc - scale * jnp.log1p(-q))
