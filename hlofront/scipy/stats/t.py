"""Student's t distribution: functions of arrays that broadcast."""

from typing import Any

import hlofront.numpy as jnp
from hlofront.runtime.operation import operation
from hlofront.scipy.special.gamma_functions import betaln
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
    x, df, loc, scale = arrays("t.logpdf", x, df, loc, scale)
    y = (x - loc) / scale
    norm = (
        betaln(df / 2, jnp.full_like(df, 0.5))
        + 0.5 * jnp.log(df)
        + 0.5 * jnp.log(jnp.square(scale))
    )
    return -(df + 1) / 2 * jnp.log1p(jnp.square(y) / df) - norm


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
