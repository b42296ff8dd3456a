"""The uniform distribution from loc to loc + scale: functions of arrays that broadcast."""

from typing import Any

import hlofront.numpy as jnp
from hlofront.runtime.operation import operation
from hlofront.scipy.special.arguments import strong
from hlofront.scipy.stats.arguments import arrays, outside


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
    x, loc, scale = arrays("uniform.logpdf", x, loc, scale)
    inside = (x >= loc) & (x <= loc + scale)
    found = jnp.where(inside, -jnp.log(scale), -jnp.inf)
    return jnp.where(x != x, x, found)


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
    x, loc, scale = arrays("uniform.cdf", x, loc, scale)
    return strong(jnp.clip((x - loc) / scale, 0.0, 1.0))


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
    q, loc, scale = arrays("uniform.ppf", q, loc, scale)
    return jnp.where(outside(q), jnp.nan, q * scale + loc)
