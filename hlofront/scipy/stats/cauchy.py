"""The Cauchy distribution: functions of arrays that broadcast."""

from typing import Any

import hlofront.numpy as jnp
from hlofront.runtime.operation import operation
from hlofront.scipy.special.entropies import log1p
from hlofront.scipy.stats.arguments import arrays

_PI = 3.141592653589793


def _logarithm(p: Any, rest: Any) -> Any:
    """log(p), by what is left to 1 where that is less."""
    return jnp.where(rest < 0.5, log1p(-rest), jnp.log(p))


def _quantile(q: Any) -> Any:
    """tan(pi (q - 1/2)), from the nearer end."""
    low, high = q < 0.25, q > 0.75
    edge = jnp.where(low, q, jnp.where(high, 1 - q, 0.5))
    angle = _PI * edge
    far = 1 / jnp.where(angle < 1e-10, angle, jnp.tan(angle))
    found = jnp.where(low, -far, jnp.where(high, far, jnp.tan(_PI * (q - 0.5))))
    return jnp.where((q < 0) | (q > 1), jnp.nan, found)


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
    x, loc, scale = arrays("cauchy.logpdf", x, loc, scale)
    y = (x - loc) / scale
    return -jnp.log(_PI * scale) - jnp.log1p(jnp.square(y))


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
    x, loc, scale = arrays("cauchy.cdf", x, loc, scale)
    y = (x - loc) / scale
    return jnp.arctan2(jnp.ones_like(y), -y) / _PI


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
    return _logarithm(cdf(x, loc, scale), sf(x, loc, scale))


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
    x, loc, scale = arrays("cauchy.sf", x, loc, scale)
    y = (x - loc) / scale
    return jnp.arctan2(jnp.ones_like(y), y) / _PI


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
    return _logarithm(sf(x, loc, scale), cdf(x, loc, scale))


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
    q, loc, scale = arrays("cauchy.ppf", q, loc, scale)
    return loc + scale * _quantile(q)


@operation
def isf(q: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """Inverse of the survival function.

    Args:
      q: probabilities, from 0 to 1.
      loc: what the variable is shifted by.
      scale: what it is stretched by, positive.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    q, loc, scale = arrays("cauchy.isf", q, loc, scale)
    return loc - scale * _quantile(q)
