"""The normal distribution: functions of arrays that broadcast."""

import hlofront.numpy as jnp
from hlofront.numpy.promotion import check_arraylike
from hlofront.scipy.special.error_functions import log_ndtr, ndtr, ndtri
from hlofront.scipy.stats.arguments import exp_of, functions_of

_LOG_ROOT = 0.9189385332046727  # log(2 pi) / 2
_of_norm = functions_of("norm")
# The dtype of q is one of ndtri's, and the result has the default one.
_of_norm_as_given = functions_of("norm", promoted=False)


@_of_norm
def logpdf(x, loc=0, scale=1):
    y = (x - loc) / scale
    return -0.5 * jnp.square(y) - (_LOG_ROOT + 0.5 * jnp.log(jnp.square(scale)))


pdf = exp_of(logpdf)


@_of_norm
def cdf(x, loc=0, scale=1):
    return ndtr((x - loc) / scale)


@_of_norm
def logcdf(x, loc=0, scale=1):
    return log_ndtr((x - loc) / scale)


@_of_norm
def sf(x, loc=0, scale=1):
    return ndtr(-((x - loc) / scale))


@_of_norm
def logsf(x, loc=0, scale=1):
    return log_ndtr(-((x - loc) / scale))


@_of_norm_as_given
def ppf(q, loc=0, scale=1):
    check_arraylike("norm.ppf", q, loc, scale)
    return jnp.asarray(ndtri(q) * scale + loc, float)


@_of_norm_as_given
def isf(q, loc=0, scale=1):
    check_arraylike("norm.isf", q, loc, scale)
    # From the other side, so that small q keep their digits.
    return jnp.asarray(-ndtri(q) * scale + loc, float)
