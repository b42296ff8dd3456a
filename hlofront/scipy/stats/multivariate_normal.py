"""The multivariate normal distribution."""

from __future__ import annotations

import math

import hlofront.numpy as jnp
from hlofront.base.lazy import dir_of
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.numpy.linalg.matrices import inexact
from hlofront.primitives.linalg.factoring import cholesky
from hlofront.primitives.linalg.solving import triangular_solve
from hlofront.runtime.dispatch.operation import operation

__all__ = ["logpdf", "pdf"]
__dir__ = dir_of(__name__)


def logpdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike, allow_singular: None = None) -> Array:
    """Compute the log density of the multivariate normal distribution.

    Args:
      x: vectors along the last axis, or numbers.
      mean: the mean of the distribution, of shape (..., n), or a number.
      cov: the covariance, of shape (..., n, n), or a number for a multiple of the identity.
      allow_singular: must be None.

    Returns:
      An array of the shape that the leading axes of the arguments broadcast to.

    Raises:
      ValueError: if the shapes do not fit.
      NotImplementedError: if allow_singular is passed.
    """
    if allow_singular is not None:
        raise NotImplementedError(  # JAX raises this class.
            "allow_singular argument of multivariate_normal.logpdf is not supported: leave it out, "
            "and give a covariance that is not singular."
        )
    return _logpdf(x, mean, cov)


@operation
def _logpdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike) -> Array:
    x, mean, cov = inexact("multivariate_normal.logpdf", x, mean, cov)
    mean_shape, covariance_shape = typeof(mean).shape, typeof(cov).shape
    if not mean_shape:
        return -0.5 * jnp.square(x - mean) / cov - 0.5 * (math.log(2 * math.pi) + jnp.log(cov))
    size = mean_shape[-1]
    difference = x - mean
    constant = size / 2 * math.log(2 * math.pi)
    if not covariance_shape:
        squares = jnp.sum(jnp.square(difference), axis=-1)
        return -0.5 * squares / cov - constant - size / 2 * jnp.log(cov)
    if covariance_shape[-2:] != (size, size):
        raise ValueError(
            "multivariate_normal.logpdf got incompatible shapes: the mean has shape "
            f"{mean_shape}, and the covariance {covariance_shape}; its last two axes must be "
            f"{(size, size)}"
        )
    lower = cholesky(cov)
    batch = jnp.broadcast_shapes(typeof(difference).shape[:-1], covariance_shape[:-2])
    if len(covariance_shape) == 2:
        # With a single covariance all vectors are columns of one system.
        columns = difference.reshape((-1, size)).T
        solved = triangular_solve(lower, columns, left_side=True, lower=True)
        squares = jnp.sum(jnp.square(solved), axis=0).reshape(batch)
    else:
        lower = jnp.broadcast_to(lower, (*batch, size, size))
        columns = jnp.broadcast_to(difference, (*batch, size))[..., None]
        solved = triangular_solve(lower, columns, left_side=True, lower=True)
        squares = jnp.sum(jnp.square(solved), axis=(-2, -1))
    diagonal = jnp.diagonal(lower, axis1=-2, axis2=-1)
    return -0.5 * squares - constant - jnp.sum(jnp.log(diagonal), axis=-1)


@operation
def pdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike) -> Array:
    """Compute the density of the multivariate normal distribution.

    Args:
      x: vectors along the last axis, or numbers.
      mean: the mean of the distribution, of shape (..., n), or a number.
      cov: the covariance, of shape (..., n, n), or a number for a multiple of the identity.

    Raises:
      ValueError: if the shapes do not fit.
    """
    return jnp.exp(_logpdf(x, mean, cov))
