"""The Dirichlet distribution, of vectors that are positive and add up to 1."""

from __future__ import annotations

import hlofront.numpy as jnp
from hlofront.base.lazy import dir_of
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.numpy.linalg.matrices import inexact
from hlofront.runtime.dispatch.operation import operation
from hlofront.scipy.special.entropies import xlogy
from hlofront.scipy.special.gamma_functions import gammaln

__all__ = ["logpdf", "pdf"]
__dir__ = dir_of(__name__)


@operation
def logpdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """Compute the log density of the Dirichlet distribution; -inf where x is not on the simplex.

    Args:
      x: vectors along the first axis, as long as alpha; or without their last element, which is
        1 minus the sum of the others.
      alpha: the parameters, positive, of shape (k,).

    Returns:
      An array of the shape of x without its first axis.

    Raises:
      ValueError: if the shapes do not fit.
    """
    x, alpha = inexact("dirichlet.logpdf", x, alpha)
    shape, sizes = typeof(x).shape, typeof(alpha).shape
    if len(sizes) != 1:
        raise ValueError(f"`alpha` must be one-dimensional; got alpha.shape={sizes}")
    if not shape or shape[0] not in (sizes[0], sizes[0] - 1):
        raise ValueError(
            "`x` must have either the same number of entries as `alpha` or one entry fewer; got "
            f"x.shape={shape}, alpha.shape={sizes}"
        )
    if shape[0] != sizes[0]:
        x = jnp.concatenate([x, 1 - jnp.sum(x, axis=0, keepdims=True)])
    inside = jnp.all(x > 0, axis=0) & (jnp.abs(jnp.sum(x, axis=0) - 1) < 1e-6)
    column = alpha.reshape((-1,) + (1,) * (len(shape) - 1))
    normalizer = jnp.sum(gammaln(alpha)) - gammaln(jnp.sum(alpha))
    logarithm = jnp.sum(xlogy(column - 1, jnp.where(inside, x, 0.5)), axis=0) - normalizer
    return jnp.where(jnp.all(alpha > 0), jnp.where(inside, logarithm, -jnp.inf), jnp.nan)


@operation
def pdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """Compute the density of the Dirichlet distribution; 0 where x is not on the simplex.

    Args:
      x: vectors along the first axis, as long as alpha; or without their last element.
      alpha: the parameters, positive, of shape (k,).

    Raises:
      ValueError: if the shapes do not fit.
    """
    return jnp.exp(logpdf(x, alpha))
