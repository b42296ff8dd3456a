"""The continuous distributions that are functions of uniform and normal numbers."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import numpy as np

from hlofront.base.config import options
from hlofront.base.dtypes import finfo, issubdtype
from hlofront.base.elements import host_number
from hlofront.base.typing import Array, ArrayLike, DType, DTypeLike, Shape
from hlofront.core.aval import typeof
from hlofront.higher_order.control_flow.library_loops import cond
from hlofront.numpy.elementwise import ufuncs
from hlofront.numpy.elementwise.rounding import clip
from hlofront.numpy.indexing import selecting
from hlofront.numpy.statistics import reductions
from hlofront.primitives.arrays.creation import full_like
from hlofront.primitives.arrays.shaping import broadcast_shapes
from hlofront.primitives.elementwise.compare import ge, le, lt, select
from hlofront.primitives.elementwise.converting import stop_gradient
from hlofront.primitives.elementwise.elementwise import (
    abs,
    add,
    bitwise_or,
    div,
    exp,
    log,
    log1p,
    mul,
    neg,
    nextafter,
    sign,
    sqrt,
    sub,
    tan,
)
from hlofront.primitives.elementwise.special import erf, erf_inv
from hlofront.primitives.random.floats import uniforms
from hlofront.primitives.random.keys import random_bits
from hlofront.random.arguments import broadcast_to_shape, in_dtype, inexact, parts, safely, unsigned
from hlofront.random.sampler import sampler
from hlofront.runtime.dispatch.operation import operation

_high_dynamic_range = options["jax_high_dynamic_range_gumbel"]

# ---- bits, uniform and normal --------------------------------------------------------------------


@sampler(dtype=unsigned, nested=False)
def bits(key: ArrayLike, shape: Sequence[int] = (), dtype: DTypeLike | None = None) -> Array:
    """Return uniformly random bits, as unsigned integers.

    Args:
      dtype: an unsigned integer dtype; by default uint32, with x64 uint64.

    Example:
      >>> jax.random.bits(jax.random.key(0), (3,), jnp.uint8)
      Array([167, 146,  40], dtype=uint8)
    """
    return random_bits(key, dtype.itemsize * 8, shape)


@sampler
def uniform(
    key: ArrayLike,
    shape: Sequence[int] = (),
    dtype: DTypeLike | None = None,
    minval: ArrayLike = 0.0,
    maxval: ArrayLike = 1.0,
) -> Array:
    """Return floats drawn uniformly from [minval, maxval).

    Args:
      minval, maxval: the bounds, which broadcast to the shape.

    Example:
      >>> jax.random.uniform(jax.random.key(0), (3,), minval=-1, maxval=1)
      Array([ 0.895334  ,  0.95715976, -0.33541703], dtype=float32)
    """
    return uniforms(key, shape, dtype, in_dtype(minval, dtype), in_dtype(maxval, dtype))


def between(key: Array, shape: Shape, dtype: DType, minval: ArrayLike, maxval: ArrayLike) -> Array:
    """Return floats drawn uniformly from [minval, maxval), with scalar bounds."""
    return uniform.unchecked(key, shape=shape, dtype=dtype, minval=minval, maxval=maxval)


@sampler(dtype=inexact)
def normal(key: ArrayLike, shape: Sequence[int] = (), dtype: DTypeLike | None = None) -> Array:
    """Return random numbers from the standard normal distribution.

    Args:
      dtype: a floating-point or complex dtype; by default float32, with x64 float64. Complex
        numbers have variance one: a half for each part.

    Example:
      >>> jax.random.normal(jax.random.key(0), (3,))
      Array([ 1.6226422 ,  2.0252647 , -0.43359444], dtype=float32)
    """
    if not issubdtype(dtype, np.complexfloating):
        return _normal_real(key, shape, dtype)
    real_dtype = np.dtype(f"float{dtype.itemsize * 4}")
    real_key, imaginary_key = parts(key)
    real = in_dtype(_normal_real(real_key, shape, real_dtype), dtype)
    imaginary = in_dtype(_normal_real(imaginary_key, shape, real_dtype), dtype)
    return div(add(real, mul(host_number(1j, dtype), imaginary)), host_number(np.sqrt(2), dtype))


@operation(static_argnames=("shape", "dtype"), nested=True)
def _normal_real(key: Array, shape: Shape, dtype: DType) -> Array:
    low = np.nextafter(np.array(-1, dtype), np.array(0, dtype), dtype=dtype)[()]
    uniform_numbers = uniform(key, shape, dtype, host_number(low, dtype), host_number(1, dtype))
    return mul(host_number(np.sqrt(2), dtype), erf_inv(uniform_numbers))


@sampler
def truncated_normal(
    key: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Return random numbers from the standard normal distribution truncated to two bounds.

    Args:
      lower, upper: the bounds, scalars or arrays that broadcast to the shape.
    """
    sqrt2 = host_number(np.sqrt(2), dtype)
    lower, upper = in_dtype(lower, dtype), in_dtype(upper, dtype)
    low = erf(div(lower, sqrt2))
    high = erf(div(upper, sqrt2))
    numbers = mul(sqrt2, erf_inv(uniform(key, shape, dtype, low, high)))
    # In a tail differences of erf lose their digits: erf is 1 beyond 4 in float32.
    start = host_number(_TAIL.get(finfo(dtype).dtype.itemsize, 2.0), dtype)

    def with_tails() -> Array:
        first, last = broadcast_to_shape(lower, shape), broadcast_to_shape(upper, shape)
        in_upper, in_lower = ge(first, start), le(last, neg(start))
        u = uniform(key, shape, dtype, 0.0, 1.0)
        tail = _numbers_of_tail(
            u, select(in_upper, first, neg(last)), select(in_upper, last, neg(first))
        )
        signed = select(in_upper, tail, neg(tail))
        return select(bitwise_or(in_upper, in_lower), signed, numbers)

    any_in_tail = bitwise_or(
        reductions.any(ge(lower, start)), reductions.any(le(upper, neg(start)))
    )
    result = cond(any_in_tail, with_tails, lambda: numbers)
    infinity = host_number(np.inf, dtype)
    return clip(
        result,
        nextafter(stop_gradient(lower), infinity),
        nextafter(stop_gradient(upper), -infinity),
    )


# By size in bytes of a dtype, the bound beyond which it has too few numbers between erf and 1.
_TAIL = {4: 3.0, 8: 6.5}


def _mills_ratio(x: Array) -> Array:
    """Return the probability of a standard normal number above x over the density at x >= 2."""
    one = host_number(1, x.dtype)
    fraction = x
    for level in range(12, 0, -1):
        fraction = add(x, div(host_number(level, x.dtype), fraction))
    return div(one, fraction)


def _numbers_of_tail(u: Array, lower: Array, upper: Array) -> Array:
    """Return standard normal numbers between bounds in the upper tail, from uniform numbers.

    A number lower + d has the quantile u. Newton's method finds d from the logarithm of the
    probability beyond lower + d relative to that beyond lower, starting at the leading term of that
    logarithm, -d (lower + d / 2).
    """
    half = host_number(0.5, u.dtype)
    at_lower = _mills_ratio(lower)

    def log_beyond(distance: Array, x: Array) -> Array:
        leading = mul(distance, add(lower, mul(half, distance)))
        return sub(log(div(_mills_ratio(x), at_lower)), leading)

    # An infinite upper bound has nothing beyond it.
    ends = lt(upper, host_number(np.inf, u.dtype))
    last = select(ends, sub(upper, lower), full_like(u, 1))
    beyond_upper = select(ends, exp(log_beyond(last, add(lower, last))), full_like(u, 0))
    target = log1p(neg(mul(u, sub(host_number(1, u.dtype), beyond_upper))))
    double = neg(add(target, target))
    distance = div(double, add(lower, sqrt(add(mul(lower, lower), double))))
    for _ in range(4):
        x = add(lower, distance)
        step = mul(sub(log_beyond(distance, x), target), _mills_ratio(x))
        distance = add(distance, step)
    return add(lower, distance)


@sampler(dtype=inexact, nested=False)
def lognormal(
    key: ArrayLike,
    sigma: ArrayLike = np.float32(1.0),
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Return log-normal random numbers: exp(sigma * x) of standard normal x.

    Args:
      sigma: the standard deviation of the logarithm, which broadcasts to the shape.
      dtype: a floating-point or complex dtype; by default float32, with x64 float64.

    Example:
      >>> jax.eval_shape(jax.random.lognormal, jax.random.key(0), jnp.ones((3, 1)))
      ShapeDtypeStruct(shape=(3, 1), dtype=float32)
    """
    (sigma,) = safely("lognormal", dtype, sigma)
    return exp(ufuncs.multiply(normal(key, shape, dtype), sigma))


# ---- by inverting the distribution function ------------------------------------------------------


@sampler
def cauchy(key: ArrayLike, shape: Sequence[int] = (), dtype: DTypeLike | None = None) -> Array:
    """Return random numbers from the standard Cauchy distribution."""
    u = uniform(key, shape, dtype, finfo(dtype).eps, 1.0)
    return tan(mul(host_number(np.pi, dtype), sub(u, host_number(0.5, dtype))))


@sampler
def exponential(key: ArrayLike, shape: Sequence[int] = (), dtype: DTypeLike | None = None) -> Array:
    """Return random numbers from the exponential distribution of mean one."""
    return neg(log1p(neg(uniform(key, shape, dtype, 0.0, 1.0))))


def checked_mode(_: str, mode: str | None) -> str:
    """Return the mode of `gumbel`, by default the option's; raise ValueError for unknown ones."""
    if mode is None:
        mode = "high" if _high_dynamic_range.value else "low"
    if mode == "highest":
        mode = "high"
    if mode not in ("high", "low"):
        raise ValueError(f"Must provide valid mode for Gumbel got: {mode}; expected high or low")
    return mode


@sampler(mode=checked_mode)
def gumbel(
    key: ArrayLike,
    shape: Sequence[int] = (),
    dtype: DTypeLike | None = None,
    mode: str | None = None,
) -> Array:
    """Return random numbers from the standard Gumbel distribution.

    Args:
      mode: "low", or "high" for a wider range of values at twice the work; by default the
        option jax_high_dynamic_range_gumbel.
    """
    if mode == "low":
        tiny = finfo(dtype).smallest_normal
        return neg(log(neg(log(between(key, shape, dtype, host_number(tiny, dtype), 1.0)))))
    first, second = list(between(key, (2, *shape), dtype, 0.0, 1.0))
    # The second bits add digits to small numbers.
    digits = mul(host_number(2.0 ** -finfo(dtype).nmant, dtype), second)
    fine = add(add(first, digits), host_number(finfo(dtype).smallest_normal, dtype))
    x = selecting.where(ge(first, host_number(0.5, dtype)), first, fine)
    return neg(log(neg(log1p(neg(x)))))


@sampler
def laplace(key: ArrayLike, shape: Sequence[int] = (), dtype: DTypeLike | None = None) -> Array:
    """Return random numbers from the standard Laplace distribution."""
    low = np.array(-1, dtype) + np.array(finfo(dtype).epsneg, dtype)
    u = uniform(key, shape, dtype, host_number(low, dtype), 1.0)
    return mul(sign(u), log1p(neg(abs(u))))


@sampler
def logistic(key: ArrayLike, shape: Sequence[int] = (), dtype: DTypeLike | None = None) -> Array:
    """Return random numbers from the standard logistic distribution."""
    u = uniform(key, shape, dtype, host_number(finfo(dtype).smallest_normal, dtype), 1.0)
    return sub(log(u), log1p(neg(u)))


@sampler
def pareto(
    key: ArrayLike, b: ArrayLike, shape: Sequence[int] | None = None, dtype: DTypeLike | None = None
) -> Array:
    """Return random numbers from the Pareto distribution on [1, inf) with density b / x**(b + 1).

    Args:
      b: the exponent, which broadcasts to the shape.

    Example:
      >>> jax.eval_shape(jax.random.pareto, jax.random.key(0), jnp.array([1.0, 10.0]))
      ShapeDtypeStruct(shape=(2,), dtype=float32)
    """
    (b,) = safely("pareto", dtype, b)
    return exp(ufuncs.divide(exponential(key, shape, dtype), b))


@sampler
def rayleigh(
    key: ArrayLike,
    scale: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Return random numbers from the Rayleigh distribution: lengths of normal vectors in the plane.

    Args:
      scale: the standard deviation of the vectors' components, which broadcasts to the shape.

    Example:
      >>> jax.eval_shape(jax.random.rayleigh, jax.random.key(0), jnp.array([1.0, 10.0]))
      ShapeDtypeStruct(shape=(2,), dtype=float32)
    """
    u = uniform(key, shape, dtype, 0.0, 1.0)
    scale = broadcast_to_shape(*safely("rayleigh", dtype, scale), shape)
    return mul(scale, sqrt(mul(log(u), host_number(-2, dtype))))


@sampler(nested=False)
def triangular(
    key: ArrayLike,
    left: ArrayLike,
    mode: ArrayLike,
    right: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Return random numbers from the triangular distribution on [left, right] with peak at `mode`.

    Args:
      left, mode, right: the lower bound, the peak and the upper bound, which broadcast to the
        shape.
    """
    left, right, mode = (
        broadcast_to_shape(*safely("triangular", dtype, x), shape) for x in (left, right, mode)
    )
    at_peak = div(sub(mode, left), sub(right, left))
    u = uniform(key, shape, dtype, 0.0, 1.0)
    rising = add(left, sqrt(mul(mul(u, sub(right, left)), sub(mode, left))))
    complement = sub(host_number(1, dtype), u)
    falling = sub(right, sqrt(mul(mul(complement, sub(right, left)), sub(right, mode))))
    return select(lt(u, at_peak), rising, falling)


@sampler(has_out_sharding=False)
def weibull_min(
    key: ArrayLike,
    scale: ArrayLike,
    concentration: ArrayLike,
    shape: Sequence[int] = (),
    dtype: DTypeLike | None = None,
) -> Array:
    """Return random numbers from the Weibull distribution of minima.

    As in JAX, `shape` is the shape of the numbers drawn; they broadcast with the parameters. A
    warning is issued where results share a number.

    Args:
      scale: the scale of the distribution, which broadcasts with the shape.
      concentration: the exponent, which broadcasts with the shape.
    """
    full = broadcast_shapes(shape, typeof(scale).shape, typeof(concentration).shape)
    if math.prod(full) > math.prod(shape):
        warnings.warn(
            f"random.weibull_min draws numbers of shape {shape} for parameters that broadcast to "
            f"{full}, so that several results share a number: pass shape={full} to draw a number "
            "for each",
            UserWarning,
            stacklevel=2,
        )
    numbers = neg(log1p(neg(uniform(key, shape, dtype, 0, 1))))
    return ufuncs.multiply(numbers ** (1.0 / concentration), scale)


# ---- distributions of several numbers ------------------------------------------------------------


@sampler
def maxwell(key: ArrayLike, shape: Sequence[int] = (), dtype: DTypeLike | None = None) -> Array:
    """Return random numbers from the Maxwell distribution: lengths of normal vectors in space."""
    return norm(normal(key, (*shape, 3), dtype))


@operation(nested=True)
def norm(x: Array) -> Array:
    """Return the Euclidean norm of an array along its last axis."""
    return sqrt(reductions.sum(mul(x, x), axis=-1))


@sampler
def wald(
    key: ArrayLike,
    mean: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Return random numbers from the Wald (inverse Gaussian) distribution of scale one.

    The method is by Michael, Schucany and Haas, "Generating Random Variates Using Transformations
    with Multiple Roots" (1976).

    Args:
      mean: the mean, which broadcasts to the shape.

    Example:
      >>> jax.eval_shape(jax.random.wald, jax.random.key(0), jnp.array([1.0, 10.0]))
      ShapeDtypeStruct(shape=(2,), dtype=float32)
    """
    normal_key, uniform_key = parts(key)
    mean = broadcast_to_shape(*safely("wald", dtype, mean), shape)
    v = normal(normal_key, shape, dtype)
    z = uniform(uniform_key, shape, dtype, 0.0, 1.0)
    y = v**2
    y_squared = y**2
    mean_squared = mean**2
    root = sqrt(host_number(4, dtype) * mean * y + mean_squared * y_squared)
    x = mean + mean_squared * y / host_number(2, dtype) - mean / host_number(2, dtype) * root
    return select(le(z, div(mean, add(mean, x))), x, div(mean_squared, x))
