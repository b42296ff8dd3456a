"""The negative binomial distribution, of failures before the n-th success."""

import hlofront.numpy as jnp
from hlofront.primitives.converting import stop_gradient
from hlofront.scipy.special.entropies import xlog1py, xlogy
from hlofront.scipy.special.gamma_functions import betaln
from hlofront.scipy.stats.arguments import exp_of, functions_of

_of_nbinom = functions_of("nbinom", n="how many successes, positive.", p="the probability of each.")


@_of_nbinom
def logpmf(k, n, p, loc=0):
    x = k - loc
    # There is one way where x is 0: its logarithm is zero to all digits; not so its derivatives.
    ways = -betaln(n, x + 1) - jnp.log(jnp.abs(n + x))
    ways = ways - stop_gradient(jnp.where(x == 0, ways, 0))
    return jnp.where(x < 0, -jnp.inf, ways + xlogy(n, p) + xlog1py(x, -p))


pmf = exp_of(logpmf)
