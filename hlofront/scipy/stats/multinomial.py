"""The multinomial distribution of the number of times that each outcome occurs."""

from __future__ import annotations

import numpy as np

import hlofront.numpy as jnp
from hlofront.base.dtypes import issubdtype
from hlofront.base.lazy import dir_of
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.numpy.support.promotion import check_arraylike, promote_args_inexact
from hlofront.runtime.dispatch.operation import operation
from hlofront.scipy.special.entropies import xlogy
from hlofront.scipy.special.gamma_functions import gammaln

__all__ = ["logpmf", "pmf"]
__dir__ = dir_of(__name__)


@operation
def logpmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """Compute the log probability of counts x; minus infinity where x does not sum to n.

    Args:
      x: the number of times that each outcome is seen, integers along the last axis.
      n: the number of trials, an integer.
      p: the probability of each outcome, along the last axis.

    Returns:
      An array of the shape that x and p broadcast to, without the last axis.

    Raises:
      ValueError: if x or n is not of integers, or the shapes do not broadcast.
    """
    check_arraylike("multinomial.logpmf", x, n, p)
    (p,) = promote_args_inexact("multinomial.logpmf", p)
    if not all(issubdtype(typeof(value).dtype, np.integer) for value in (x, n)):
        raise ValueError(
            f"x and n must be of integer type; got x.dtype={typeof(x).dtype}, "
            f"n.dtype={typeof(n).dtype}"
        )
    dtype = typeof(p).dtype
    counts, trials = jnp.asarray(x, dtype), jnp.asarray(n, dtype)
    possible = jnp.equal(jnp.sum(x, axis=-1), n) & jnp.all(jnp.greater_equal(x, 0), axis=-1)
    terms = jnp.sum(xlogy(counts, p) - gammaln(counts + 1), axis=-1)
    return jnp.where(possible, gammaln(trials + 1) + terms, -jnp.inf)


@operation
def pmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """Compute the probability of counts x; 0 where x does not sum to n.

    Args:
      x: the number of times that each outcome is seen, integers along the last axis.
      n: the number of trials, an integer.
      p: the probability of each outcome, along the last axis.

    Raises:
      ValueError: if x or n is not of integers, or the shapes do not broadcast.
    """
    return jnp.exp(logpmf(x, n, p))
