"""The negative binomial distribution of the number of failures before the n-th success."""

from __future__ import annotations

import hlofront.numpy as jnp
from hlofront.base.lazy import dir_of
from hlofront.base.typing import Array
from hlofront.primitives.elementwise.converting import stop_gradient
from hlofront.scipy.special.entropies import xlog1py, xlogy
from hlofront.scipy.special.gamma_functions import betaln
from hlofront.scipy.stats.arguments import cotangents, exp_of, functions_of, with_constants

__all__ = ["logpmf", "pmf"]
__dir__ = dir_of(__name__)

_of_nbinom = functions_of(
    "nbinom", n="the number of successes, positive.", p="the probability of success of each trial."
)


@_of_nbinom
@with_constants
@cotangents(strong="p")
def logpmf(k: Array, n: Array, p: Array, loc: Array | int = 0) -> Array:
    x = k - loc
    # Where x is 0, the logarithm is exactly zero, but its derivatives are not.
    ways = -betaln(n, x + 1) - jnp.log(jnp.abs(n + x))
    ways = ways - stop_gradient(jnp.where(x == 0, ways, 0))
    return jnp.where(x < 0, -jnp.inf, ways + xlogy(n, p) + xlog1py(x, -p))


pmf = exp_of(logpmf)
