"""The normal distribution: functions of arrays that broadcast."""

from typing import Any

import hlofront.numpy as jnp
from hlofront.numpy.promotion import check_arraylike
from hlofront.runtime.operation import operation
from hlofront.scipy.special.error_functions import log_ndtr, ndtr, ndtri
from hlofront.scipy.stats.arguments import arrays

_LOG_ROOT = 0.9189385332046727  # log(2 pi) / 2


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
    x, loc, scale = arrays("norm.logpdf", x, loc, scale)
    y = (x - loc) / scale
    return -0.5 * jnp.square(y) - (_LOG_ROOT + 0.5 * jnp.log(jnp.square(scale)))


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
    x, loc, scale = arrays("norm.cdf", x, loc, scale)
    y = (x - loc) / scale
    return ndtr(y)


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
    x, loc, scale = arrays("norm.logcdf", x, loc, scale)
    y = (x - loc) / scale
    return log_ndtr(y)


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
    x, loc, scale = arrays("norm.sf", x, loc, scale)
    y = (x - loc) / scale
    return ndtr(-y)


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
    x, loc, scale = arrays("norm.logsf", x, loc, scale)
    y = (x - loc) / scale
    return log_ndtr(-y)


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
    check_arraylike("norm.ppf", q, loc, scale)
    return ndtri(q) * scale + loc


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
    check_arraylike("norm.isf", q, loc, scale)
    # From the other side, so that small q keep their digits.
    return -ndtri(q) * scale + loc
