"""Numbers from the gamma distribution, and from those that are made of it."""

import numpy as np

from hlofront.base.boundary import boundary
from hlofront.core.aval import typeof
from hlofront.core.dimensions import canonical_shape
from hlofront.higher_order.random_gamma import random_gamma
from hlofront.numpy import reductions
from hlofront.primitives.converting import stop_gradient
from hlofront.primitives.elementwise import abs, add, div, exp, max, mul, sqrt, sub
from hlofront.random.arguments import (
    checked_key,
    checked_shape,
    floating,
    in_dtype,
    parts,
    spread,
)
from hlofront.random.continuous import _exponential, _maxwell, _normal, canonical
from hlofront.random.discrete import _rademacher
from hlofront.runtime.operation import operation

_sampler = operation(static_argnames=("shape", "dtype"), nested=True)


@boundary
def gamma(key, a, shape=None, dtype=None, *, out_sharding=None):
    """Numbers from the gamma distribution of scale one. They are differentiable with respect to a.

    Args:
      key: a random key.
      a: the parameter of the distribution, positive, which broadcasts to the shape.
      shape: of the result; by default that of `a`.
      dtype: of floats; by default float32, with x64 float64.
      out_sharding: None.

    Raises:
      ValueError: if the dtype is another, `a` does not fit the shape, or there are several keys.
      TypeError: if `key` is no key.
    """
    key = checked_key("gamma", key, out_sharding)
    dtype = floating("gamma", dtype)
    shape = None if shape is None else checked_shape("gamma", shape, a)
    return _gamma(key, a, shape=shape, dtype=dtype, log_space=False)


@boundary
def loggamma(key, a, shape=None, dtype=None, *, out_sharding=None):
    """Logarithms of numbers from the gamma distribution; exact where those would be rounded to 0.

    Args:
      key: a random key.
      a: the parameter of the distribution, positive, which broadcasts to the shape.
      shape: of the result; by default that of `a`.
      dtype: of floats; by default float32, with x64 float64.
      out_sharding: None.

    Raises:
      ValueError: if the dtype is another, `a` does not fit the shape, or there are several keys.
      TypeError: if `key` is no key.
    """
    key = checked_key("loggamma", key, out_sharding)
    dtype = floating("loggamma", dtype)
    shape = None if shape is None else checked_shape("loggamma", shape, a)
    return _gamma(key, a, shape=shape, dtype=dtype, log_space=True)


@operation(static_argnames=("shape", "dtype", "log_space"), nested=True)
def _gamma(key, a, shape, dtype, log_space):
    shape = checked_shape("gamma", shape, a)
    return random_gamma(key, spread(in_dtype(a, dtype), shape), log_space)


def _loggamma(key, a, shape, dtype):
    return _gamma(key, a, shape=shape, dtype=dtype, log_space=True)


@boundary
def beta(key, a, b, shape=None, dtype=None, *, out_sharding=None):
    """Numbers from the beta distribution.

    Args:
      key: a random key.
      a, b: the parameters of the distribution, positive, which broadcast to the shape.
      shape: of the result; by default that of `a` and `b` together.
      dtype: of floats; by default float32, with x64 float64.
      out_sharding: None.

    Raises:
      ValueError: if the dtype is another, the parameters do not fit the shape, or there are several
        keys.
      TypeError: if `key` is no key.
    """
    key = checked_key("beta", key, out_sharding)
    dtype = floating("beta", dtype)
    shape = None if shape is None else checked_shape("beta", shape, a, b)
    return _beta(key, a, b, shape, dtype)


@_sampler
def _beta(key, a, b, shape, dtype):
    shape = checked_shape("beta", shape, a, b)
    a, b = in_dtype(a, dtype), in_dtype(b, dtype)
    a_key, b_key = parts(key)
    a, b = spread(a, shape), spread(b, shape)
    log_a = _loggamma(a_key, a, shape, dtype)
    log_b = _loggamma(b_key, b, shape, dtype)
    greater = max(log_a, log_b)
    scaled_a = exp(sub(log_a, greater))
    return div(scaled_a, add(scaled_a, exp(sub(log_b, greater))))


@boundary
def chisquare(key, df, shape=None, dtype=None, *, out_sharding=None):
    """Numbers from the chi-square distribution.

    Args:
      key: a random key.
      df: the degrees of freedom, positive, which broadcast to the shape.
      shape: of the result; by default that of `df`.
      dtype: of floats; by default float32, with x64 float64.
      out_sharding: None.

    Raises:
      ValueError: if the dtype is another, `df` does not fit the shape, or there are several keys.
      TypeError: if `key` is no key.
    """
    key = checked_key("chisquare", key, out_sharding)
    dtype = floating("chisquare", dtype)
    shape = None if shape is None else checked_shape("chisquare", shape, df)
    return _chisquare(key, df, shape, dtype)


@_sampler
def _chisquare(key, df, shape, dtype):
    df = in_dtype(df, dtype)
    shape = checked_shape("chisquare", shape, df)
    two = dtype.type(2)
    return mul(exp(_loggamma(key, div(df, two), shape, dtype)), two)


@boundary
def dirichlet(key, alpha, shape=None, dtype=None, *, out_sharding=None):
    """Vectors from the Dirichlet distribution, whose elements sum to one.

    Args:
      key: a random key.
      alpha: its parameters, an array of shape (..., n).
      shape: of the result without its last axis, of n; by default that of `alpha` without it.
      dtype: of floats; by default float32, with x64 float64.
      out_sharding: None.

    Raises:
      ValueError: if `alpha` is a scalar or does not fit the shape, the dtype is another, or there
        are several keys.
      TypeError: if `key` is no key.
    """
    key = checked_key("dirichlet", key, out_sharding)
    dtype = floating("dirichlet", dtype)
    shape = None if shape is None else canonical_shape(shape)
    return _dirichlet(key, alpha, shape, dtype)


@_sampler
def _dirichlet(key, alpha, shape, dtype):
    size = typeof(alpha).shape
    if not size:
        raise ValueError(
            "dirichlet requires alpha.ndim >= 1, got alpha.ndim == 0: the last axis of alpha is "
            "that of the parameters"
        )
    first = np.empty(size[:-1], np.bool_)
    shape = (*checked_shape("dirichlet", shape, first), size[-1])
    logs = _loggamma(key, in_dtype(alpha, dtype), shape, dtype)
    greatest = reductions.max(logs, axis=-1, keepdims=True, initial=-np.inf)
    numbers = exp(sub(logs, stop_gradient(greatest)))
    return div(numbers, reductions.sum(numbers, axis=-1, keepdims=True))


@boundary
def f(key, dfnum, dfden, shape=None, dtype=None, *, out_sharding=None):
    """Numbers from the F distribution.

    Args:
      key: a random key.
      dfnum, dfden: the degrees of freedom of the numerator and of the denominator, positive, which
        broadcast to the shape.
      shape: of the result; by default that of the parameters together.
      dtype: of floats; by default float32, with x64 float64.
      out_sharding: None.

    Raises:
      ValueError: if the dtype is another, the parameters do not fit the shape, or there are several
        keys.
      TypeError: if `key` is no key.
    """
    key = checked_key("f", key, out_sharding)
    dtype = floating("f", dtype)
    shape = None if shape is None else checked_shape("f", shape, dfnum, dfden)
    return _f(key, dfnum, dfden, shape, dtype)


@_sampler
def _f(key, dfnum, dfden, shape, dtype):
    shape = checked_shape("f", shape, dfnum, dfden)
    dfden, dfnum = in_dtype(dfden, dtype), in_dtype(dfnum, dtype)
    denominator_key, numerator_key = parts(key)
    numerator = _chisquare(numerator_key, dfnum, shape, dtype)
    denominator = _chisquare(denominator_key, dfden, shape, dtype)
    return div(div(numerator, dfnum), div(denominator, dfden))


@boundary
def t(key, df, shape=None, dtype=None, *, out_sharding=None):
    """Numbers from Student's t distribution.

    Args:
      key: a random key.
      df: the degrees of freedom, positive, which broadcast to the shape.
      shape: of the result; by default that of `df`.
      dtype: of floats; by default float32, with x64 float64.
      out_sharding: None.

    Raises:
      ValueError: if the dtype is another, `df` does not fit the shape, or there are several keys.
      TypeError: if `key` is no key.
    """
    key = checked_key("t", key, out_sharding)
    dtype = floating("t", dtype)
    return _t(key, df, None if shape is None else checked_shape("t", shape, df), dtype)


@_sampler
def _t(key, df, shape, dtype):
    shape = checked_shape("t", shape, df)
    df = in_dtype(df, dtype)
    normal_key, gamma_key = parts(key)
    numbers = _normal(normal_key, shape, dtype)
    half = div(df, dtype.type(2))
    return mul(
        numbers, sqrt(div(half, _gamma(gamma_key, half, shape=shape, dtype=dtype, log_space=False)))
    )


# ---- with random signs ---------------------------------------------------------------------------


@boundary
def generalized_normal(key, p, shape=(), dtype=None, *, out_sharding=None):
    """Numbers whose density is proportional to exp(-abs(x)**p).

    Args:
      key: a random key.
      p: the exponent, positive.
      shape: of the result.
      dtype: of floats; by default float32, with x64 float64.
      out_sharding: None.

    Raises:
      ValueError: if the dtype is another, or there are several keys.
      TypeError: if `key` is no key.
    """
    key = checked_key("generalized_normal", key, out_sharding)
    dtype = floating("generalized_normal", dtype)
    return _generalized_normal(key, p, canonical(shape, "generalized_normal"), dtype)


@_sampler
def _generalized_normal(key, p, shape, dtype):
    gamma_key, sign_key = parts(key)
    lengths = _gamma(gamma_key, 1 / p, shape=shape, dtype=dtype, log_space=False)
    signs = _rademacher(sign_key, shape, dtype)
    return signs * lengths ** (1 / p)


@boundary
def ball(key, d, p=2, shape=(), dtype=None, *, out_sharding=None):
    """Points that are uniform in the unit ball of the norm of exponent p.

    By Barthe, Guedon, Mendelson and Naor, "A Probabilistic Approach to the Geometry of the l_p^n
    Ball" (2005).

    Args:
      key: a random key.
      d: the number of dimensions.
      p: the exponent of the norm.
      shape: of the result without its last axis, of d.
      dtype: of floats; by default float32, with x64 float64.
      out_sharding: None.

    Raises:
      ValueError: if the dtype is another, or there are several keys.
      TypeError: if `key` is no key.
    """
    key = checked_key("ball", key, out_sharding)
    dtype = floating("ball", dtype)
    return _ball(key, p, d, canonical(shape, "ball"), dtype)


@operation(static_argnames=("d", "shape", "dtype"), nested=True)
def _ball(key, p, d, shape, dtype):
    normal_key, length_key = parts(key)
    points = _generalized_normal(normal_key, p, (*shape, d), dtype)
    lengths = _exponential(length_key, shape, dtype)
    total = reductions.sum(abs(points) ** p, -1) + lengths
    return points / (total ** (1 / p))[..., None]


@boundary
def double_sided_maxwell(key, loc, scale, shape=(), dtype=None):
    """Numbers from the Maxwell distribution with random signs, shifted and scaled.

    Args:
      key: a random key.
      loc: what is added to the numbers.
      scale: what they are multiplied by.
      shape: of the result, without the axes of `loc` and `scale` together.
      dtype: of floats; by default float32, with x64 float64.

    Raises:
      ValueError: if the dtype is another, or there are several keys.
      TypeError: if `key` is no key.
    """
    key = checked_key("double_sided_maxwell", key)
    dtype = floating("double_sided_maxwell", dtype)
    shape = canonical(shape, "double_sided_maxwell")
    return _double_sided_maxwell(key, loc, scale, shape, dtype)


@_sampler
def _double_sided_maxwell(key, loc, scale, shape, dtype):
    shape = shape + checked_shape("double_sided_maxwell", None, loc, scale)
    length_key, sign_key = parts(key)
    lengths = _maxwell(length_key, shape, dtype)
    signs = _rademacher(sign_key, shape, dtype)
    return signs * lengths * scale + loc
