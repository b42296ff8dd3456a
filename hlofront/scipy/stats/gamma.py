"""The gamma distribution: functions of arrays that broadcast."""

from typing import Any

import hlofront.numpy as jnp
from hlofront.runtime.operation import operation
from hlofront.scipy.special.entropies import xlogy
from hlofront.scipy.special.gamma_functions import gammainc, gammaincc, gammaln
from hlofront.scipy.stats.arguments import arrays


@operation
def logpdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """Logarithm of the density.

    Args:
      x: where, real numbers.
      a: the shape parameter, positive.
      loc: what the variable is shifted by.
      scale: what it is stretched by, positive.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    x, a, loc, scale = arrays("gamma.logpdf", x, a, loc, scale)
    y = (x - loc) / scale
    inside = (y >= 0) & (y < jnp.inf)
    part = jnp.where(inside, y, 1)
    found = xlogy(a - 1, part) - part - gammaln(a) - jnp.log(scale)
    return jnp.where(inside, found, jnp.where(y != y, y, -jnp.inf))


@operation
def pdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """Density.

    Args:
      x: where, real numbers.
      a: the shape parameter, positive.
      loc: what the variable is shifted by.
      scale: what it is stretched by, positive.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    return jnp.exp(logpdf(x, a, loc, scale))


@operation
def cdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """Distribution function.

    Args:
      x: where, real numbers.
      a: the shape parameter, positive.
      loc: what the variable is shifted by.
      scale: what it is stretched by, positive.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    x, a, loc, scale = arrays("gamma.cdf", x, a, loc, scale)
    return gammainc(a, jnp.maximum((x - loc) / scale, 0))


@operation
def logcdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """Logarithm of the distribution function.

    Args:
      x: where, real numbers.
      a: the shape parameter, positive.
      loc: what the variable is shifted by.
      scale: what it is stretched by, positive.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    return jnp.log(cdf(x, a, loc, scale))


@operation
def sf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """Survival function, 1 - cdf.

    Args:
      x: where, real numbers.
      a: the shape parameter, positive.
      loc: what the variable is shifted by.
      scale: what it is stretched by, positive.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    x, a, loc, scale = arrays("gamma.sf", x, a, loc, scale)
    found = gammaincc(a, jnp.maximum((x - loc) / scale, 0))
    return jnp.where(a > 0, found, jnp.nan)


@operation
def logsf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """Logarithm of the survival function.

    Args:
      x: where, real numbers.
      a: the shape parameter, positive.
      loc: what the variable is shifted by.
      scale: what it is stretched by, positive.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    return jnp.log(sf(x, a, loc, scale))
