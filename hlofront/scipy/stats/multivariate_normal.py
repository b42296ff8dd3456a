"""The multivariate normal distribution."""

import math
from typing import Any

import hlofront.numpy as jnp
from hlofront.core.aval import typeof
from hlofront.core.trace import as_array
from hlofront.numpy.promotion import check_arraylike, promote_dtypes_inexact
from hlofront.primitives.factoring import cholesky
from hlofront.primitives.solving import triangular_solve
from hlofront.runtime.dispatch.operation import operation


def logpdf(x: Any, mean: Any, cov: Any, allow_singular: None = None) -> Any:
    """Logarithm of the density.

    Args:
      x: vectors along the last axis, or numbers.
      mean: their mean, of shape (..., n), or a number.
      cov: their covariance, of shape (..., n, n), or a number, that times the identity.
      allow_singular: None.

    Returns:
      An array of the shape that the leading axes broadcast to.

    Raises:
      TypeError: if an argument is neither array nor scalar.
      ValueError: if the shapes do not fit.
      NotImplementedError: if allow_singular is given.
    """
    if allow_singular is not None:
        raise NotImplementedError(  # the class that JAX raises
            "allow_singular argument of multivariate_normal.logpdf is not supported: leave it out, "
            "and give a covariance that is not singular."
        )
    return _logpdf(x, mean, cov)


@operation
def _logpdf(x: Any, mean: Any, cov: Any) -> Any:
    check_arraylike("multivariate_normal.logpdf", x, mean, cov)
    x, mean, cov = (as_array(value) for value in promote_dtypes_inexact(x, mean, cov))
    centre, spread = typeof(mean).shape, typeof(cov).shape
    if not centre:
        return -0.5 * jnp.square(x - mean) / cov - 0.5 * (math.log(2 * math.pi) + jnp.log(cov))
    size = centre[-1]
    apart = x - mean
    constant = size / 2 * math.log(2 * math.pi)
    if not spread:
        squares = jnp.sum(jnp.square(apart), axis=-1)
        return -0.5 * squares / cov - constant - size / 2 * jnp.log(cov)
    if spread[-2:] != (size, size):
        raise ValueError(
            "multivariate_normal.logpdf got incompatible shapes: the mean has shape "
            f"{centre}, and the covariance {spread}; its last two axes must be {(size, size)}"
        )
    lower = cholesky(cov)
    batch = jnp.broadcast_shapes(typeof(apart).shape[:-1], spread[:-2])
    if len(spread) == 2:
        # One factor: the vectors are columns of one system.
        columns = apart.reshape((-1, size)).T
        solved = triangular_solve(lower, columns, left_side=True, lower=True)
        squares = jnp.sum(jnp.square(solved), axis=0).reshape(batch)
    else:
        lower = jnp.broadcast_to(lower, (*batch, size, size))
        columns = jnp.broadcast_to(apart, (*batch, size))[..., None]
        solved = triangular_solve(lower, columns, left_side=True, lower=True)
        squares = jnp.sum(jnp.square(solved), axis=(-2, -1))
    diagonal = jnp.diagonal(lower, axis1=-2, axis2=-1)
    return -0.5 * squares - constant - jnp.sum(jnp.log(diagonal), axis=-1)


@operation
def pdf(x: Any, mean: Any, cov: Any) -> Any:
    """Density.

    Args:
      x: vectors along the last axis, or numbers.
      mean: their mean, of shape (..., n), or a number.
      cov: their covariance, of shape (..., n, n), or a number, that times the identity.

    Raises:
      TypeError: if an argument is neither array nor scalar.
      ValueError: if the shapes do not fit.
    """
    return jnp.exp(_logpdf(x, mean, cov))
