"""The gamma distribution, and the distributions derived from it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hlofront.base.elements import host_number
from hlofront.base.typing import Array, ArrayLike, DType, DTypeLike, Shape
from hlofront.core.aval import typeof
from hlofront.higher_order.random_gamma import random_gamma
from hlofront.numpy.statistics import reductions
from hlofront.primitives.elementwise.converting import stop_gradient
from hlofront.primitives.elementwise.elementwise import abs, add, div, exp, max, mul, sqrt, sub
from hlofront.random.approximate import checked_method, gamma_approx
from hlofront.random.arguments import (
    broadcast_to_shape,
    checked_shape,
    in_dtype,
    parts,
    safely,
    whole_shape,
    whole_size,
)
from hlofront.random.continuous import exponential, maxwell, normal
from hlofront.random.discrete import rademacher
from hlofront.random.sampler import sampler
from hlofront.runtime.dispatch.operation import operation


@sampler(nested=False, method=checked_method)
def gamma(
    key: ArrayLike,
    a: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    method: str = "exact",
) -> Array:
    """Return random numbers from the gamma distribution of scale one, differentiable in `a`.

    Args:
      a: the shape parameter, positive, which broadcasts to the shape.
      method: "exact", by rejection in a loop, or "approximate", which is faster as it has no loop,
        with a small bias. Their derivatives with respect to `a` differ, as they draw differently.

    Example:
      >>> jax.eval_shape(jax.random.gamma, jax.random.key(0), jnp.array([1.0, 10.0]))
      ShapeDtypeStruct(shape=(2,), dtype=float32)
    """
    draw = _gamma if method == "exact" else gamma_approx
    return draw(key, a, shape=shape, dtype=dtype, log_space=False)


@sampler(nested=False, method=checked_method)
def loggamma(
    key: ArrayLike,
    a: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    method: str = "exact",
) -> Array:
    """Return logarithms of gamma random numbers, exact where the numbers underflow to 0.

    Args:
      a: the shape parameter, positive, which broadcasts to the shape.
      method: "exact" or "approximate", as for `gamma`.

    Example:
      >>> jax.eval_shape(jax.random.loggamma, jax.random.key(0), jnp.array([1e-3, 1.0]))
      ShapeDtypeStruct(shape=(2,), dtype=float32)
    """
    draw = _gamma if method == "exact" else gamma_approx
    return draw(key, a, shape=shape, dtype=dtype, log_space=True)


@operation(static_argnames=("shape", "dtype", "log_space"), nested=True)
def _gamma(key: Array, a: ArrayLike, shape: Shape, dtype: DType, log_space: bool) -> Array:
    return random_gamma(key, broadcast_to_shape(in_dtype(a, dtype), shape), log_space)


@sampler(method=checked_method)
def beta(
    key: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    method: str = "exact",
) -> Array:
    """Return random numbers from the beta distribution.

    Args:
      a, b: the shape parameters, positive, which broadcast to the shape.
      method: "exact" or "approximate", as for `gamma`.

    Example:
      >>> jax.eval_shape(jax.random.beta, jax.random.key(0), jnp.ones((3, 1)), jnp.ones((1, 2)))
      ShapeDtypeStruct(shape=(3, 2), dtype=float32)
    """
    a, b = safely("beta", dtype, a, b)
    a_key, b_key = parts(key)
    a, b = broadcast_to_shape(a, shape), broadcast_to_shape(b, shape)
    log_a = loggamma(a_key, a, shape, dtype, method=method)
    log_b = loggamma(b_key, b, shape, dtype, method=method)
    greater = max(log_a, log_b)
    scaled_a = exp(sub(log_a, greater))
    return div(scaled_a, add(scaled_a, exp(sub(log_b, greater))))


@sampler(method=checked_method)
def chisquare(
    key: ArrayLike,
    df: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    method: str = "exact",
) -> Array:
    """Return random numbers from the chi-square distribution.

    Args:
      df: the degrees of freedom, positive, which broadcast to the shape.
      method: "exact" or "approximate", as for `gamma`.

    Example:
      >>> jax.eval_shape(jax.random.chisquare, jax.random.key(0), jnp.array([1.0, 10.0]))
      ShapeDtypeStruct(shape=(2,), dtype=float32)
    """
    (df,) = safely("chisquare", dtype, df)
    two = host_number(2, dtype)
    return mul(exp(loggamma(key, div(df, two), shape, dtype, method=method)), two)


@sampler(shape=whole_shape)
def dirichlet(
    key: ArrayLike,
    alpha: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Return random vectors from the Dirichlet distribution, whose elements sum to one.

    Args:
      alpha: the concentrations, positive, an array of shape (..., n).
      shape: the shape of the result without its last axis of size n; by default that of `alpha`
        without its last axis.

    Example:
      >>> jax.eval_shape(jax.random.dirichlet, jax.random.key(0), jnp.ones((5, 3)))
      ShapeDtypeStruct(shape=(5, 3), dtype=float32)
    """
    size = typeof(alpha).shape
    if not size:
        raise ValueError(
            "dirichlet requires alpha.ndim >= 1, got alpha.ndim == 0: the last axis of alpha is "
            "that of the parameters"
        )
    first = np.empty(size[:-1], np.bool_)
    shape = (*checked_shape("dirichlet", shape, first), size[-1])
    logs = loggamma(key, in_dtype(alpha, dtype), shape, dtype)
    greatest = reductions.max(logs, axis=-1, keepdims=True, initial=-np.inf)
    numbers = exp(sub(logs, stop_gradient(greatest)))
    return div(numbers, reductions.sum(numbers, axis=-1, keepdims=True))


@sampler
def f(
    key: ArrayLike,
    dfnum: ArrayLike,
    dfden: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Return random numbers from the F distribution.

    Args:
      dfnum, dfden: the degrees of freedom of the numerator and of the denominator, positive, which
        broadcast to the shape.

    Example:
      >>> jax.eval_shape(jax.random.f, jax.random.key(0), jnp.ones((3, 1)), jnp.ones((1, 2)))
      ShapeDtypeStruct(shape=(3, 2), dtype=float32)
    """
    dfden, dfnum = safely("f", dtype, dfden, dfnum)
    denominator_key, numerator_key = parts(key)
    numerator = chisquare(numerator_key, dfnum, shape, dtype)
    denominator = chisquare(denominator_key, dfden, shape, dtype)
    return div(div(numerator, dfnum), div(denominator, dfden))


@sampler
def t(
    key: ArrayLike,
    df: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Return random numbers from Student's t distribution.

    Args:
      df: the degrees of freedom, positive, which broadcast to the shape.

    Example:
      >>> jax.eval_shape(jax.random.t, jax.random.key(0), jnp.array([1.0, 10.0]))
      ShapeDtypeStruct(shape=(2,), dtype=float32)
    """
    (df,) = safely("t", dtype, df)
    normal_key, gamma_key = parts(key)
    numbers = normal(normal_key, shape, dtype)
    half = div(df, host_number(2, dtype))
    return mul(numbers, sqrt(div(half, gamma(gamma_key, half, shape, dtype))))


# ---- with random signs ---------------------------------------------------------------------------


@sampler
def generalized_normal(
    key: ArrayLike, p: ArrayLike, shape: Sequence[int] = (), dtype: DTypeLike | None = None
) -> Array:
    """Return random numbers with a density proportional to exp(-abs(x)**p).

    Args:
      p: the exponent, positive.
    """
    gamma_key, sign_key = parts(key)
    lengths = gamma(gamma_key, 1 / p, shape, dtype)
    signs = rademacher(sign_key, shape, dtype)
    return signs * lengths ** (1 / p)


@sampler(d=whole_size)
def ball(
    key: ArrayLike,
    d: int,
    p: ArrayLike = 2,
    shape: Sequence[int] = (),
    dtype: DTypeLike | None = None,
) -> Array:
    """Return random points, uniform in the d-dimensional unit ball of the p-norm.

    The method is by Barthe, Guedon, Mendelson and Naor, "A Probabilistic Approach to the Geometry
    of the l_p^n Ball" (2005).

    Args:
      d: the number of dimensions.
      p: the exponent of the norm.
      shape: the shape of the result without its last axis of size d.
    """
    normal_key, length_key = parts(key)
    points = generalized_normal(normal_key, p, (*shape, d), dtype)
    lengths = exponential(length_key, shape, dtype)
    total = reductions.sum(abs(points) ** p, -1) + lengths
    return points / (total ** (1 / p))[..., None]


@sampler(has_out_sharding=False)
def double_sided_maxwell(
    key: ArrayLike,
    loc: ArrayLike,
    scale: ArrayLike,
    shape: Sequence[int] = (),
    dtype: DTypeLike | None = None,
) -> Array:
    """Return random numbers from the Maxwell distribution with random signs, shifted and scaled.

    Args:
      loc: the offset of the numbers.
      scale: the factor by which numbers are multiplied before `loc` is added.
      shape: the leading axes of the result, before the broadcast shape of `loc` and `scale`; ()
        repeats that shape.
    """
    together = checked_shape("double_sided_maxwell", None, loc, scale)
    shape = (*(shape or together), *together)
    length_key, sign_key = parts(key)
    lengths = maxwell(length_key, shape, dtype)
    signs = rademacher(sign_key, shape, dtype)
    return signs * lengths * scale + loc
