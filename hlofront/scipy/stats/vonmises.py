"""The von Mises distribution on a circle: functions of arrays that broadcast."""

from __future__ import annotations

import hlofront.numpy as jnp
from hlofront.base.lazy import dir_of
from hlofront.base.typing import Array
from hlofront.scipy.special.bessel import i0e
from hlofront.scipy.stats.arguments import exp_of, functions_of

__all__ = ["logpdf", "pdf"]
__dir__ = dir_of(__name__)

_of_vonmises = functions_of("vonmises", kappa="the concentration, positive.")


@_of_vonmises
def logpdf(x: Array, kappa: Array) -> Array:
    # 2 sin(x / 2)^2 is 1 - cos(x) without cancellation.
    half = jnp.sin(x / 2)
    logarithm = -2 * kappa * (half * half) - jnp.log(2 * jnp.pi * i0e(kappa))
    return jnp.where(kappa > 0, logarithm, jnp.nan)


pdf = exp_of(logpdf, undefined=True)
