"""The normal distribution: functions of arrays that broadcast."""

from __future__ import annotations

import hlofront.numpy as jnp
from hlofront.base.lazy import dir_of
from hlofront.base.typing import Array, ArrayLike
from hlofront.numpy.support.promotion import check_arraylike
from hlofront.primitives.elementwise.weak_types import strong_cotangents
from hlofront.scipy.special.error_functions import log_ndtr, ndtr, ndtri
from hlofront.scipy.stats.arguments import (
    exp_of,
    functions_of,
    strongly_typed,
)

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]
__dir__ = dir_of(__name__)

_LOG_ROOT = 0.9189385332046727  # The constant is log(2 pi) / 2.
_of_norm = functions_of("norm")
# q must have a dtype that `ndtri` accepts; the result has the default floating dtype.
_of_norm_as_given = functions_of("norm", promoted=False)


@_of_norm
@strongly_typed
def logpdf(x: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    y = (x - loc) / scale
    return -0.5 * jnp.square(y) - (_LOG_ROOT + 0.5 * jnp.log(jnp.square(scale)))


pdf = exp_of(logpdf)


@_of_norm
def cdf(x: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    return ndtr((x - loc) / scale)


@_of_norm
def logcdf(x: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    return log_ndtr((x - loc) / scale)


@_of_norm
def sf(x: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    return ndtr(-((x - loc) / scale))


@_of_norm
def logsf(x: Array, loc: Array | int = 0, scale: Array | int = 1) -> Array:
    return log_ndtr(-((x - loc) / scale))


@_of_norm_as_given
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    check_arraylike("norm.ppf", q, loc, scale)
    return jnp.asarray(ndtri(q) * scale + loc, float)


@_of_norm_as_given
def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    check_arraylike("norm.isf", q, loc, scale)
    # The quantile comes from the other tail, so that small q stay accurate.
    q = strong_cotangents(q) if jnp.ndim(q) else q
    return jnp.asarray(-ndtri(q) * scale + loc, float)
