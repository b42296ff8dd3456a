"""The normal distribution between a and b standard deviations of loc."""

from typing import Any

import hlofront.numpy as jnp
from hlofront.runtime.operation import operation
from hlofront.scipy.special.entropies import log1p
from hlofront.scipy.special.error_functions import log_ndtr, ndtr
from hlofront.scipy.stats import norm
from hlofront.scipy.stats.arguments import arrays, log_of_rest


def _standard(name: str, x: Any, a: Any, b: Any, loc: Any, scale: Any) -> tuple[Any, ...]:
    x, a, b, loc, scale = arrays(name, x, a, b, loc, scale)
    return (x - loc) / scale, a, b, scale


def _log_mass(a: Any, b: Any) -> Any:
    """The logarithm of the normal probability from a to b, in the tail that they are in."""
    right = a > 0
    low, high = jnp.where(right, -b, a), jnp.where(right, -a, b)
    tail = high <= 0
    near, far = (log_ndtr(jnp.where(tail, x, y)) for x, y in ((high, -1.0), (low, -2.0)))
    of_tail = near + log_of_rest(near - far)
    of_middle = log1p(-ndtr(low) - ndtr(-high))
    return jnp.where(tail, of_tail, of_middle)


def _part(x: Any, a: Any, b: Any, upper: bool) -> Any:
    """The logarithm of the probability of what is above x, or below."""
    inside = (x > a) & (x < b)
    middle = jnp.where(inside, x, (jnp.maximum(a, -1e3) + jnp.minimum(b, 1e3)) / 2)
    mass = _log_mass(a, b)
    this = (_log_mass(middle, b) if upper else _log_mass(a, middle)) - mass
    other = (_log_mass(a, middle) if upper else _log_mass(middle, b)) - mass
    # What is nearly everything is what the other leaves.
    close = this > -0.1
    found = jnp.where(close, log1p(-jnp.exp(jnp.where(close, other, -1.0))), this)
    beyond, before = (-jnp.inf, 0.0) if upper else (0.0, -jnp.inf)
    found = jnp.where(x >= b, beyond, jnp.where(x <= a, before, found))
    return jnp.where((a < b) & (x == x), found, jnp.nan)


@operation
def logpdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """Logarithm of the density.

    Args:
      x: where, real numbers.
      a: the lower end, in standard deviations.
      b: the upper end, in standard deviations.
      loc: what the variable is shifted by.
      scale: what it is stretched by, positive.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    x, a, b, scale = _standard("truncnorm.logpdf", x, a, b, loc, scale)
    found = norm.logpdf(x) - jnp.log(scale) - _log_mass(a, b)
    found = jnp.where((x < a) | (x > b), -jnp.inf, found)
    return jnp.where(a < b, found, jnp.nan)


@operation
def pdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """Density.

    Args:
      x: where, real numbers.
      a: the lower end, in standard deviations.
      b: the upper end, in standard deviations.
      loc: what the variable is shifted by.
      scale: what it is stretched by, positive.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    return jnp.exp(logpdf(x, a, b, loc, scale))


@operation
def logcdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """Logarithm of the distribution function.

    Args:
      x: where, real numbers.
      a: the lower end, in standard deviations.
      b: the upper end, in standard deviations.
      loc: what the variable is shifted by.
      scale: what it is stretched by, positive.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    x, a, b, _ = _standard("truncnorm.logcdf", x, a, b, loc, scale)
    return _part(x, a, b, upper=False)


@operation
def cdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """Distribution function.

    Args:
      x: where, real numbers.
      a: the lower end, in standard deviations.
      b: the upper end, in standard deviations.
      loc: what the variable is shifted by.
      scale: what it is stretched by, positive.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    return jnp.exp(logcdf(x, a, b, loc, scale))


@operation
def logsf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """Logarithm of the survival function.

    Args:
      x: where, real numbers.
      a: the lower end, in standard deviations.
      b: the upper end, in standard deviations.
      loc: what the variable is shifted by.
      scale: what it is stretched by, positive.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    x, a, b, _ = _standard("truncnorm.logsf", x, a, b, loc, scale)
    return _part(x, a, b, upper=True)


@operation
def sf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """Survival function, 1 - cdf.

    Args:
      x: where, real numbers.
      a: the lower end, in standard deviations.
      b: the upper end, in standard deviations.
      loc: what the variable is shifted by.
      scale: what it is stretched by, positive.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    return jnp.exp(logsf(x, a, b, loc, scale))
