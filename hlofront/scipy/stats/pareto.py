"""The Pareto distribution, from loc + scale on: functions of arrays that broadcast."""

from typing import Any

import hlofront.numpy as jnp
from hlofront.runtime.operation import operation
from hlofront.scipy.special.entropies import log1p
from hlofront.scipy.stats.arguments import arrays, log_of_rest, outside


def _logarithm(x: Any, loc: Any, scale: Any) -> tuple[Any, Any]:
    """The logarithm of the standardized variable, and whether it is below the support."""
    below = x < loc + scale
    return jnp.log((x - loc) / scale), below


def _log_of_rest(b: Any, logarithm: Any, ratio: Any) -> Any:
    """log(1 - ratio**-b), where that power is small from it and not from its logarithm."""
    far = b * logarithm > 1
    power = jnp.where(far, ratio, 2.0) ** -b
    return jnp.where(far, log1p(-jnp.where(far, power, 0.0)), log_of_rest(b * logarithm))


@operation
def logpdf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """Logarithm of the density.

    Args:
      x: where, real numbers.
      b: the exponent, positive.
      loc: what the variable is shifted by.
      scale: what it is stretched by, positive.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    x, b, loc, scale = arrays("pareto.logpdf", x, b, loc, scale)
    logarithm, below = _logarithm(x, loc, scale)
    return jnp.where(below, -jnp.inf, jnp.log(b / scale) - (b + 1) * logarithm)


@operation
def pdf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """Density.

    Args:
      x: where, real numbers.
      b: the exponent, positive.
      loc: what the variable is shifted by.
      scale: what it is stretched by, positive.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    return jnp.exp(logpdf(x, b, loc, scale))


@operation
def cdf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """Distribution function.

    Args:
      x: where, real numbers.
      b: the exponent, positive.
      loc: what the variable is shifted by.
      scale: what it is stretched by, positive.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    x, b, loc, scale = arrays("pareto.cdf", x, b, loc, scale)
    logarithm, below = _logarithm(x, loc, scale)
    return jnp.where(below, 0, -jnp.expm1(-b * logarithm))


@operation
def logcdf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """Logarithm of the distribution function.

    Args:
      x: where, real numbers.
      b: the exponent, positive.
      loc: what the variable is shifted by.
      scale: what it is stretched by, positive.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    x, b, loc, scale = arrays("pareto.logcdf", x, b, loc, scale)
    logarithm, below = _logarithm(x, loc, scale)
    return jnp.where(below, -jnp.inf, _log_of_rest(b, logarithm, (x - loc) / scale))


@operation
def sf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """Survival function, 1 - cdf.

    Args:
      x: where, real numbers.
      b: the exponent, positive.
      loc: what the variable is shifted by.
      scale: what it is stretched by, positive.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    x, b, loc, scale = arrays("pareto.sf", x, b, loc, scale)
    _, below = _logarithm(x, loc, scale)
    return jnp.where(below, 1, ((x - loc) / scale) ** -b)


@operation
def logsf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """Logarithm of the survival function.

    Args:
      x: where, real numbers.
      b: the exponent, positive.
      loc: what the variable is shifted by.
      scale: what it is stretched by, positive.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    x, b, loc, scale = arrays("pareto.logsf", x, b, loc, scale)
    logarithm, below = _logarithm(x, loc, scale)
    return jnp.where(below, 0, -b * logarithm)


@operation
def ppf(q: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """Quantile: the inverse of cdf.

    Args:
      q: probabilities, from 0 to 1.
      b: the exponent, positive.
      loc: what the variable is shifted by.
      scale: what it is stretched by, positive.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    q, b, loc, scale = arrays("pareto.ppf", q, b, loc, scale)
    # The remainder is exact where it is small; where it is not, its logarithm is.
    power = jnp.where(q < 0.5, jnp.exp(-jnp.log1p(-q) / b), (1 - q) ** (-1 / b))
    found = loc + scale * power
    return jnp.where(outside(q), jnp.nan, found)
