"""The geometric distribution of the number of trials up to the first success."""

from __future__ import annotations

import hlofront.numpy as jnp
from hlofront.base.lazy import dir_of
from hlofront.base.typing import Array
from hlofront.scipy.special.entropies import xlog1py
from hlofront.scipy.stats.arguments import cotangents, exp_of, functions_of, with_constants

__all__ = ["logpmf", "pmf"]
__dir__ = dir_of(__name__)

_of_geom = functions_of("geom", real=True, p="a probability.")


@_of_geom
@with_constants
@cotangents(strong="k loc", weak="p")
def logpmf(k: Array, p: Array, loc: Array | int = 0) -> Array:
    x = k - loc
    return jnp.where(x <= 0, -jnp.inf, xlog1py(x - 1, -p) + jnp.log(p))


pmf = exp_of(logpmf)
