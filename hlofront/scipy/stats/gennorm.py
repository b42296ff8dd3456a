"""The generalized normal distribution, with density proportional to exp(-abs(x)**beta)."""

from __future__ import annotations

import hlofront.numpy as jnp
from hlofront.base.lazy import dir_of
from hlofront.base.typing import Array
from hlofront.scipy.special.gamma_functions import gammaincc, gammaln
from hlofront.scipy.stats.arguments import exp_of, functions_of, nan_unless

__all__ = ["cdf", "logpdf", "pdf"]
__dir__ = dir_of(__name__)

_of_gennorm = functions_of("gennorm", beta="the exponent, positive.")


@_of_gennorm
def logpdf(x: Array, beta: Array) -> Array:
    return jnp.log(0.5 * beta) - gammaln(1 / beta) - jnp.abs(x) ** beta


pdf = exp_of(logpdf)


@_of_gennorm
def cdf(x: Array, beta: Array) -> Array:
    tail = 0.5 * gammaincc(1 / beta, jnp.abs(x) ** beta)
    probability = jnp.where(x <= 0, tail, 1 - tail)
    return probability * nan_unless(beta > 0)
