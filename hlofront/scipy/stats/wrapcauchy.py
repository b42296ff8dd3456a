"""The wrapped Cauchy distribution, from 0 to 2 pi: functions of arrays that broadcast."""

from __future__ import annotations

import hlofront.numpy as jnp
from hlofront.base.lazy import dir_of
from hlofront.base.typing import Array
from hlofront.scipy.stats.arguments import exp_of, functions_of

__all__ = ["logpdf", "pdf"]
__dir__ = dir_of(__name__)

_of_wrapcauchy = functions_of("wrapcauchy", real=True, c="the concentration, between 0 and 1.")


@_of_wrapcauchy
def logpdf(x: Array, c: Array) -> Array:
    # The divisor is 1 + c^2 - 2 c cos(x) without cancellation.
    one_minus_c, half = 1 - c, jnp.sin(x / 2)
    divisor = one_minus_c * one_minus_c + 4 * c * (half * half)
    logarithm = jnp.log(one_minus_c * (1 + c)) - jnp.log(2 * jnp.pi) - jnp.log(divisor)
    logarithm = jnp.where((x < 0) | (x > 2 * jnp.pi), -jnp.inf, logarithm)
    return jnp.where((c > 0) & (c < 1), logarithm, jnp.nan)


pdf = exp_of(logpdf, undefined=True)
