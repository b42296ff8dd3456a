"""The chi-square distribution: functions of arrays that broadcast."""

from typing import Any

import hlofront.numpy as jnp
from hlofront.runtime.operation import operation
from hlofront.scipy.special.entropies import xlogy
from hlofront.scipy.special.gamma_functions import gammainc, gammaincc, gammaln
from hlofront.scipy.stats.arguments import arrays


@operation
def logpdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """Logarithm of the density.

    Args:
      x: where, real numbers.
      df: degrees of freedom, positive.
      loc: what the variable is shifted by.
      scale: what it is stretched by, positive.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    x, df, loc, scale = arrays("chi2.logpdf", x, df, loc, scale)
    y = (x - loc) / (2 * scale)
    inside = (y >= 0) & (y < jnp.inf)
    part = jnp.where(inside, y, 1)
    found = xlogy(df / 2 - 1, part) - part - gammaln(df / 2) - jnp.log(2 * scale)
    return jnp.where(inside, found, jnp.where(y != y, y, -jnp.inf))


@operation
def pdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """Density.

    Args:
      x: where, real numbers.
      df: degrees of freedom, positive.
      loc: what the variable is shifted by.
      scale: what it is stretched by, positive.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    return jnp.exp(logpdf(x, df, loc, scale))


@operation
def cdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """Distribution function.

    Args:
      x: where, real numbers.
      df: degrees of freedom, positive.
      loc: what the variable is shifted by.
      scale: what it is stretched by, positive.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    x, df, loc, scale = arrays("chi2.cdf", x, df, loc, scale)
    return gammainc(df / 2, jnp.maximum((x - loc) / (2 * scale), 0))


@operation
def logcdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """Logarithm of the distribution function.

    Args:
      x: where, real numbers.
      df: degrees of freedom, positive.
      loc: what the variable is shifted by.
      scale: what it is stretched by, positive.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    return jnp.log(cdf(x, df, loc, scale))


@operation
def sf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """Survival function, 1 - cdf.

    Args:
      x: where, real numbers.
      df: degrees of freedom, positive.
      loc: what the variable is shifted by.
      scale: what it is stretched by, positive.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    x, df, loc, scale = arrays("chi2.sf", x, df, loc, scale)
    found = gammaincc(df / 2, jnp.maximum((x - loc) / (2 * scale), 0))
    return jnp.where(df > 0, found, jnp.nan)


@operation
def logsf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """Logarithm of the survival function.

    Args:
      x: where, real numbers.
      df: degrees of freedom, positive.
      loc: what the variable is shifted by.
      scale: what it is stretched by, positive.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    return jnp.log(sf(x, df, loc, scale))
