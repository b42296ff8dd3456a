"""The beta-binomial distribution: functions of arrays that broadcast."""

import hlofront.numpy as jnp
from hlofront.primitives.converting import stop_gradient
from hlofront.scipy.special.gamma_functions import betaln
from hlofront.scipy.stats.arguments import exp_of, functions_of

_of_betabinom = functions_of(
    "betabinom",
    n="how many trials.",
    a="the first shape parameter, positive.",
    b="the second shape parameter, positive.",
)


@_of_betabinom
def logpmf(k, n, a, b, loc=0):
    x = jnp.floor(k) - loc
    # Below zero the formula is what parameters that are NaN give.
    known = (a == a) & (b == b)
    outer = (x > n) | (x < -loc) | ((x < 0) & known)
    undefined = (n < 0) | (a <= 0) | (b <= 0)
    alone = (x == 0) & (n == 0)
    inner = jnp.where(outer | undefined, 0, x)
    ways = -jnp.log1p(n) - betaln(n - inner + 1, inner + 1)
    # There is one way, of which the logarithm is zero to all digits; not so its derivatives.
    ways = ways - stop_gradient(jnp.where((inner == 0) | (inner == n), ways, 0))
    found = ways + betaln(inner + a, n - inner + b) - betaln(a, b)
    found = jnp.where(outer, -jnp.inf, jnp.where(alone & ~known, 0, found))
    return jnp.where(undefined, jnp.nan, found)


pmf = exp_of(logpmf, undefined=True)
