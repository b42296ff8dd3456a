"""The beta distribution: functions of arrays that broadcast."""

from typing import Any

import hlofront.numpy as jnp
from hlofront.runtime.operation import operation
from hlofront.scipy.special import gamma_functions
from hlofront.scipy.special.entropies import xlog1py, xlogy
from hlofront.scipy.stats.arguments import arrays


def _unit(x: Any, loc: Any, scale: Any) -> Any:
    """The standardized variable, taken to the end of [0, 1] that it is beyond."""
    return jnp.clip((x - loc) / scale, 0, 1)


@operation
def logpdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """Logarithm of the density.

    Args:
      x: where, real numbers.
      a: the first shape parameter, positive.
      b: the second shape parameter, positive.
      loc: what the variable is shifted by.
      scale: what it is stretched by, positive.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    x, a, b, loc, scale = arrays("beta.logpdf", x, a, b, loc, scale)
    y = (x - loc) / scale
    inside = (y >= 0) & (y <= 1)
    unit = jnp.where(inside, y, 0.5)
    powers = xlogy(a - 1, unit) + xlog1py(b - 1, -unit)
    found = powers - gamma_functions.betaln(a, b) - jnp.log(scale)
    found = jnp.where(inside, found, jnp.where(y != y, y, -jnp.inf))
    return jnp.where((a > 0) & (b > 0), found, jnp.nan)


@operation
def pdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """Density.

    Args:
      x: where, real numbers.
      a: the first shape parameter, positive.
      b: the second shape parameter, positive.
      loc: what the variable is shifted by.
      scale: what it is stretched by, positive.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    return jnp.exp(logpdf(x, a, b, loc, scale))


@operation
def cdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """Distribution function.

    Args:
      x: where, real numbers.
      a: the first shape parameter, positive.
      b: the second shape parameter, positive.
      loc: what the variable is shifted by.
      scale: what it is stretched by, positive.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    x, a, b, loc, scale = arrays("beta.cdf", x, a, b, loc, scale)
    return gamma_functions.betainc(a, b, _unit(x, loc, scale))


@operation
def logcdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """Logarithm of the distribution function.

    Args:
      x: where, real numbers.
      a: the first shape parameter, positive.
      b: the second shape parameter, positive.
      loc: what the variable is shifted by.
      scale: what it is stretched by, positive.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    return jnp.log(cdf(x, a, b, loc, scale))


@operation
def sf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """Survival function, 1 - cdf.

    Args:
      x: where, real numbers.
      a: the first shape parameter, positive.
      b: the second shape parameter, positive.
      loc: what the variable is shifted by.
      scale: what it is stretched by, positive.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    x, a, b, loc, scale = arrays("beta.sf", x, a, b, loc, scale)
    return gamma_functions.betainc(b, a, 1 - _unit(x, loc, scale))


@operation
def logsf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """Logarithm of the survival function.

    Args:
      x: where, real numbers.
      a: the first shape parameter, positive.
      b: the second shape parameter, positive.
      loc: what the variable is shifted by.
      scale: what it is stretched by, positive.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    return jnp.log(sf(x, a, b, loc, scale))
