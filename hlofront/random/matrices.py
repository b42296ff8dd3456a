"""The multivariate normal distribution and random orthogonal matrices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hlofront.base.typing import Array, ArrayLike, DTypeLike
from hlofront.core.aval import typeof
from hlofront.numpy.einsum import einsum
from hlofront.numpy.linalg.decompositions import cholesky, eigh, qr, svd
from hlofront.numpy.products.matrices import diagonal
from hlofront.numpy.support.promotion import promote_dtypes_inexact
from hlofront.primitives.arrays.shaping import expand_dims, reshape
from hlofront.primitives.elementwise.elementwise import mul, sign, sqrt
from hlofront.random.arguments import checked_shape, inexact, whole_shape, whole_size
from hlofront.random.continuous import normal
from hlofront.random.sampler import sampler

_METHODS = ("svd", "eigh", "cholesky")


def _method(_: str, method: str) -> str:
    if method not in _METHODS:
        raise ValueError(f"method must be one of {', '.join(_METHODS)}; got {method!r}")
    return method


@sampler(shape=whole_shape, method=_method)
def multivariate_normal(
    key: ArrayLike,
    mean: ArrayLike,
    cov: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    method: str = "cholesky",
) -> Array:
    """Return random normal vectors with a mean and a covariance matrix.

    Args:
      mean: an array of shape (..., n).
      cov: an array of shape (..., n, n), symmetric and positive definite, or semidefinite for the
        methods "svd" and "eigh".
      shape: the shape of the result without its last axis of size n; by default the broadcast
        batch shape of `mean` and `cov`.
      method: the factorization of the covariance: "cholesky", "eigh" or "svd".

    Example:
      >>> mean, cov = jnp.ones((5, 2)), jnp.eye(2)
      >>> jax.eval_shape(jax.random.multivariate_normal, jax.random.key(0), mean, cov)
      ShapeDtypeStruct(shape=(5, 2), dtype=float32)
    """
    mean, cov = promote_dtypes_inexact(mean, cov)
    mean_shape, cov_shape = typeof(mean).shape, typeof(cov).shape
    if not mean_shape:
        raise ValueError("multivariate_normal requires mean.ndim >= 1, got mean.ndim == 0")
    if len(cov_shape) < 2:
        raise ValueError(
            f"multivariate_normal requires cov.ndim >= 2, got cov.ndim == {len(cov_shape)}"
        )
    n = mean_shape[-1]
    if cov_shape[-2:] != (n, n):
        raise ValueError(
            f"multivariate_normal requires cov.shape == (..., n, n) for n={n}, but got cov.shape "
            f"== {cov_shape}."
        )
    # Arrays whose axes are only the batch axes of the mean and the covariance.
    batches = [np.empty(axes, np.bool_) for axes in (mean_shape[:-1], cov_shape[:-2])]
    shape = checked_shape("multivariate_normal", shape, *batches)
    if method == "cholesky":
        factor = cholesky(cov)
    elif method == "eigh":
        values, vectors = eigh(cov)
        factor = vectors * sqrt(values[..., None, :])
    else:
        vectors, values, _ = svd(cov)
        factor = vectors * sqrt(values[..., None, :])
    numbers = normal(key, (*shape, n), dtype)
    deviations = einsum("...ij,...j->...i", factor, numbers)
    return (
        reshape(mean, (1,) * (typeof(deviations).ndim - len(mean_shape)) + mean_shape) + deviations
    )


def _columns(_: str, m: int | None) -> int | None:
    return None if m is None else whole_size(_, m)


@sampler(n=whole_size, dtype=inexact, m=_columns)
def orthogonal(
    key: ArrayLike,
    n: int,
    shape: Sequence[int] = (),
    dtype: DTypeLike | None = None,
    m: int | None = None,
) -> Array:
    """Return random orthogonal or unitary matrices, uniform in the Haar measure.

    The method is by Mezzadri, "How to generate random matrices from the classical compact groups"
    (2007).

    Args:
      n: the number of rows.
      m: the number of columns, by default `n`. The rows or columns, whichever are fewer, are
        orthonormal.
      shape: the shape of the result without its last two axes.
      dtype: a floating-point or complex dtype; by default float32, with x64 float64.

    Example:
      >>> q = jax.random.orthogonal(jax.random.key(0), 2)
      >>> jnp.abs(q @ q.T).round(3)
      Array([[1., 0.],
             [0., 1.]], dtype=float32)
    """
    m = n if m is None else m
    numbers = normal(key, (*shape, max(n, m), min(n, m)), dtype)
    q, r = qr(numbers)
    signs = sign(diagonal(r, 0, -2, -1))
    # A positive diagonal of R makes the factorization unique, and Q uniform.
    matrices = mul(q, expand_dims(signs, (len(shape),)))
    return matrices.mT if n < m else matrices
