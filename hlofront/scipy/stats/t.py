"""Student's t distribution: functions of arrays that broadcast."""

from __future__ import annotations

import hlofront.numpy as jnp
from hlofront.base.lazy import dir_of
from hlofront.base.typing import Array
from hlofront.scipy.special.gamma_functions import betaln
from hlofront.scipy.stats.arguments import (
    exp_of,
    functions_of,
    with_constants,
)

__all__ = ["logpdf", "pdf"]
__dir__ = dir_of(__name__)

_of_t = functions_of("t", df="degrees of freedom, positive.")


@_of_t
@with_constants
def logpdf(x: Array, df: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    y = (x - loc) / scale
    norm = (
        betaln(df / 2, jnp.full_like(df, 0.5))
        + 0.5 * jnp.log(df)
        + 0.5 * jnp.log(jnp.square(scale))
    )
    return -(df + 1) / 2 * jnp.log1p(jnp.square(y) / df) - norm


pdf = exp_of(logpdf)
