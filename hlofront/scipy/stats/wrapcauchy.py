"""The wrapped Cauchy distribution, from 0 to 2 pi: functions of arrays that broadcast."""

from typing import Any

import hlofront.numpy as jnp
from hlofront.runtime.operation import operation
from hlofront.scipy.stats.arguments import arrays


@operation
def logpdf(x: Any, c: Any) -> Any:
    """Logarithm of the density.

    Args:
      x: where, real numbers.
      c: the concentration, between 0 and 1.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    x, c = arrays("wrapcauchy.logpdf", x, c)
    # 1 + c^2 - 2 c cos(x), to all digits.
    divisor = jnp.square(1 - c) + 4 * c * jnp.square(jnp.sin(x / 2))
    found = jnp.log((1 - c) * (1 + c)) - jnp.log(2 * jnp.pi) - jnp.log(divisor)
    found = jnp.where((x < 0) | (x > 2 * jnp.pi), -jnp.inf, found)
    return jnp.where((c > 0) & (c < 1), found, jnp.nan)


@operation
def pdf(x: Any, c: Any) -> Any:
    """Density.

    Args:
      x: where, real numbers.
      c: the concentration, between 0 and 1.

    Raises:
      TypeError: if an argument is neither array nor scalar.
    """
    return jnp.exp(logpdf(x, c))
