"""What the distributions share: their arguments as arrays, and logarithms of what is left."""

import math
from typing import Any

import hlofront.numpy as jnp
from hlofront.core.trace import as_array
from hlofront.numpy.promotion import promote_args_inexact
from hlofront.scipy.special.entropies import log1p


def arrays(name: str, *args: Any) -> list[Any]:
    """The arguments as arrays of their common inexact dtype and rank.

    Raises:
      TypeError: if one is neither array nor scalar.
    """
    return [as_array(x) for x in promote_args_inexact(name, *args)]


def log_of_rest(x: Any) -> Any:
    """log(1 - exp(-x)) for x >= 0, to all digits."""
    near = x < math.log(2)
    small, large = jnp.where(near, x, 1.0), jnp.where(near, 1.0, x)
    return jnp.where(near, jnp.log(-jnp.expm1(-small)), log1p(-jnp.exp(-large)))


def outside(p: Any) -> Any:
    """Whether what should be a probability is none."""
    return ~((p >= 0) & (p <= 1))
