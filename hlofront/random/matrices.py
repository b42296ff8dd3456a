"""Random vectors of a given covariance, and random orthogonal matrices."""

import numpy as np

from hlofront.base.boundary import boundary
from hlofront.base.dtypes import check_user_dtype_supported, issubdtype
from hlofront.core.aval import typeof
from hlofront.core.dimensions import canonical_shape
from hlofront.numpy.einsum import einsum
from hlofront.numpy.linalg.decompositions import cholesky, eigh, qr, svd
from hlofront.numpy.matrices import diagonal
from hlofront.numpy.promotion import promote_dtypes_inexact
from hlofront.primitives.elementwise import mul, sign, sqrt
from hlofront.primitives.shaping import expand_dims
from hlofront.random.arguments import checked_key, checked_shape, floating
from hlofront.random.continuous import _normal, canonical
from hlofront.runtime.operation import operation

_METHODS = ("svd", "eigh", "cholesky")


@boundary
def multivariate_normal(
    key, mean, cov, shape=None, dtype=None, method="cholesky", *, out_sharding=None
):
    """Normal vectors of a given mean and covariance.

    Args:
      key: a random key.
      mean: of shape (..., n).
      cov: of shape (..., n, n); symmetric, positive definite or for the methods "svd" and "eigh"
        semidefinite.
      shape: of the result without its last axis, of n; by default that of `mean` and `cov`
        together.
      dtype: of floats; by default float32, with x64 float64.
      method: how the covariance is factored: "cholesky", "eigh" or "svd".
      out_sharding: None.

    Raises:
      ValueError: if the mean or the covariance has too few axes or they do not fit each other or
        the shape, the dtype or method is another, or there are several keys.
      TypeError: if `key` is no key.
    """
    key = checked_key("multivariate_normal", key, out_sharding)
    dtype = floating("multivariate_normal", dtype)
    if method not in _METHODS:
        raise ValueError(f"method must be one of {', '.join(_METHODS)}; got {method!r}")
    shape = None if shape is None else canonical_shape(shape)
    mean, cov = promote_dtypes_inexact(mean, cov)
    return _multivariate_normal(key, mean, cov, shape, dtype, method)


@operation(static_argnames=("shape", "dtype", "method"), nested=True)
def _multivariate_normal(key, mean, cov, shape, dtype, method):
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
    # Their batch axes, as arrays that have no others.
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
    numbers = _normal(key, (*shape, n), dtype)
    return mean + einsum("...ij,...j->...i", factor, numbers)


@boundary
def orthogonal(key, n, shape=(), dtype=None, m=None, *, out_sharding=None):
    """Orthogonal or unitary matrices, uniform by Haar's measure.

    By Mezzadri, "How to generate random matrices from the classical compact groups" (2007).

    Args:
      key: a random key.
      n: the number of rows.
      shape: of the result without its last two axes.
      dtype: of floats or complex numbers; by default float32, with x64 float64.
      m: the number of columns, by default as many as rows. The shorter of both are orthonormal.
      out_sharding: None.

    Raises:
      ValueError: if the dtype is another, or there are several keys.
      TypeError: if `key` is no key, or n or m no integer.
    """
    key = checked_key("orthogonal", key, out_sharding)
    dtype = check_user_dtype_supported(float if dtype is None else dtype, "orthogonal")
    if not issubdtype(dtype, np.inexact):
        raise ValueError(
            f"dtype argument to `orthogonal` must be a float or complex dtype, got {dtype}"
        )
    (n, m) = canonical_shape((n, n if m is None else m))
    return _orthogonal(key, n, canonical(shape, "orthogonal"), dtype, m)


@operation(static_argnames=("n", "shape", "dtype", "m"), nested=True)
def _orthogonal(key, n, shape, dtype, m):
    numbers = _normal(key, (*shape, max(n, m), min(n, m)), dtype)
    q, r = qr(numbers)
    signs = sign(diagonal(r, 0, -2, -1))
    # R with a positive diagonal makes the factorization unique, and Q uniform.
    matrices = mul(q, expand_dims(signs, (len(shape),)))
    return matrices.mT if n < m else matrices
