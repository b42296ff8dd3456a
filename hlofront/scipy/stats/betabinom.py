"""The beta-binomial distribution: functions of arrays that broadcast."""

from __future__ import annotations

import hlofront.numpy as jnp
from hlofront.base.lazy import dir_of
from hlofront.base.typing import Array
from hlofront.primitives.elementwise.converting import stop_gradient
from hlofront.scipy.special.gamma_functions import betaln
from hlofront.scipy.stats.arguments import (
    exp_of,
    functions_of,
    with_constants,
)

__all__ = ["logpmf", "pmf"]
__dir__ = dir_of(__name__)

_of_betabinom = functions_of(
    "betabinom",
    n="the number of trials.",
    a="the first shape parameter, positive.",
    b="the second shape parameter, positive.",
)


@_of_betabinom
@with_constants
def logpmf(k: Array, n: Array, a: Array, b: Array, loc: Array | int = 0) -> Array:
    x = jnp.floor(k) - loc
    # Below zero the result is minus infinity, but NaN where a or b is NaN.
    known = (a == a) & (b == b)
    outer = (x > n) | (x < -loc) | ((x < 0) & known)
    undefined = (n < 0) | (a <= 0) | (b <= 0)
    alone = (x == 0) & (n == 0)
    inner = jnp.where(outer | undefined, 0, x)
    ways = -jnp.log1p(n) - betaln(n - inner + 1, inner + 1)
    # Where only one outcome exists, its logarithm is exactly zero, but its derivatives are not.
    ways = ways - stop_gradient(jnp.where((inner == 0) | (inner == n), ways, 0))
    logarithm = ways + betaln(inner + a, n - inner + b) - betaln(a, b)
    logarithm = jnp.where(outer, -jnp.inf, jnp.where(alone & ~known, 0, logarithm))
    return jnp.where(undefined, jnp.nan, logarithm)


pmf = exp_of(logpmf, undefined=True)
