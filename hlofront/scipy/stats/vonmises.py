"""The distribution of von Mises, on a circle: functions of arrays that broadcast."""

from typing import Any

import hlofront.numpy as jnp
from hlofront.runtime.operation import operation
from hlofront.scipy.special.bessel import i0e
from hlofront.scipy.stats.arguments import arrays


@operation
def logpdf(x: Any, kappa: Any) -> Any:
    """Logarithm of the density.

    Args:
      x: where, real numbers.
      kappa: the concentration, positive.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    x, kappa = arrays("vonmises.logpdf", x, kappa)
    # 2 sin(x / 2)^2 is 1 - cos(x), to all digits.
    found = -2 * kappa * jnp.square(jnp.sin(x / 2)) - jnp.log(2 * jnp.pi * i0e(kappa))
    return jnp.where(kappa > 0, found, jnp.nan)


@operation
def pdf(x: Any, kappa: Any) -> Any:
    """Density.

    Args:
      x: where, real numbers.
      kappa: the concentration, positive.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    return jnp.exp(logpdf(x, kappa))
