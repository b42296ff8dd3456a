"""The binomial distribution: functions of arrays that broadcast."""

from __future__ import annotations

import hlofront.numpy as jnp
from hlofront.base.lazy import dir_of
from hlofront.base.typing import Array
from hlofront.primitives.elementwise.converting import stop_gradient
from hlofront.primitives.elementwise.weak_types import weak_tangents
from hlofront.scipy.special.entropies import xlog1py, xlogy
from hlofront.scipy.special.gamma_functions import betaln
from hlofront.scipy.stats.arguments import exp_of, functions_of

__all__ = ["logpmf", "pmf"]
__dir__ = dir_of(__name__)

_of_binom = functions_of(
    "binom", n="the number of trials.", p="the probability of success of each."
)


@_of_binom
def logpmf(k: Array, n: Array, p: Array, loc: Array | int = 0) -> Array:
    x = k - loc
    outer = (k == k) & ~((k >= loc) & (k < loc + n + 1))
    x = jnp.where(outer, 0, x)
    ways = -jnp.log1p(n) - betaln(n - x + 1, x + 1)
    # Where only one outcome exists, its logarithm is exactly zero, but its derivatives are not.
    ways = ways - stop_gradient(jnp.where((x == 0) | (x == n), ways, 0))
    logarithm = ways + xlogy(x, p) + xlog1py(n - x, -p)
    return weak_tangents(jnp.where(outer, -jnp.inf, logarithm))


pmf = exp_of(logpmf)
