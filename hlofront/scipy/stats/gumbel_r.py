"""The right-skewed Gumbel distribution: functions of arrays that broadcast."""

from typing import Any

import hlofront.numpy as jnp
from hlofront.runtime.operation import operation
from hlofront.scipy.stats.arguments import arrays, log_of_rest, outside


def _standard(name: str, x: Any, loc: Any, scale: Any) -> tuple[Any, Any]:
    """Minus the standardized variable, NaN where the scale is not positive; and the scale."""
    x, loc, scale = arrays(name, x, loc, scale)
    return jnp.where(scale > 0, (loc - x) / scale, jnp.nan), scale


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
    y, scale = _standard("gumbel_r.logpdf", x, loc, scale)
    return jnp.where(y == jnp.inf, -jnp.inf, y - jnp.exp(y) - jnp.log(scale))


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
    y, _ = _standard("gumbel_r.cdf", x, loc, scale)
    return jnp.exp(-jnp.exp(y))


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
    y, _ = _standard("gumbel_r.logcdf", x, loc, scale)
    return -jnp.exp(y)


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
    y, _ = _standard("gumbel_r.sf", x, loc, scale)
    return -jnp.expm1(-jnp.exp(y))


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
    y, _ = _standard("gumbel_r.logsf", x, loc, scale)
    return log_of_rest(jnp.exp(y))


@operation
def ppf(p: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """Quantile: the inverse of cdf.

    Args:
      p: probabilities, from 0 to 1.
      loc: what the variable is shifted by.
      scale: what it is stretched by, positive.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    p, loc, scale = arrays("gumbel_r.ppf", p, loc, scale)
    return jnp.where(outside(p) | (scale <= 0), jnp.nan, loc - scale * jnp.log(-jnp.log(p)))
