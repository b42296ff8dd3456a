"""The distributions of integers, booleans and categories."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from hlofront.base.dtypes import finfo, iinfo, issubdtype
from hlofront.base.elements import host_number
from hlofront.base.typing import Array, ArrayLike, DType, DTypeLike, Shape
from hlofront.core.aval import typeof
from hlofront.numpy.arrays import creation
from hlofront.numpy.elementwise.rounding import clip
from hlofront.numpy.indexing import selecting
from hlofront.numpy.statistics.reductions import argmax
from hlofront.numpy.support.promotion import promote_dtypes_inexact
from hlofront.primitives.arrays.creation import full_like
from hlofront.primitives.arrays.shaping import broadcast_to_rank, expand_dims, reshape
from hlofront.primitives.arrays.sorting import top_k
from hlofront.primitives.elementwise.compare import gt, le, select
from hlofront.primitives.elementwise.converting import convert_element_type
from hlofront.primitives.elementwise.elementwise import (
    add,
    bitwise_and,
    div,
    floor,
    log,
    log1p,
    mul,
    neg,
    rem,
    sub,
)
from hlofront.primitives.random.keys import random_bits
from hlofront.random.arguments import (
    any_dtype,
    as_passed,
    broadcast_to_shape,
    checked_shape,
    in_dtype,
    integral,
    parts,
    whole_shape,
)
from hlofront.random.continuous import checked_mode, gumbel, uniform
from hlofront.random.sampler import sampler
from hlofront.runtime.dispatch.operation import operation

# ---- booleans and signs --------------------------------------------------------------------------


def _low_or_high(_: str, mode: str) -> str:
    if mode not in ("high", "low"):
        raise ValueError(f"got {mode=}, expected 'high' or 'low'")
    return mode


@sampler(mode=_low_or_high, nested=False)
def bernoulli(
    key: ArrayLike, p: ArrayLike = 0.5, shape: Sequence[int] | None = None, mode: str = "low"
) -> Array:
    """Return random booleans that are True with a probability.

    Args:
      p: the probability, a float, which broadcasts to the shape; other dtypes raise TypeError.
      mode: "low", or "high" for twice the bits at twice the work, which is more exact for small
        probabilities.

    Example:
      >>> jax.random.bernoulli(jax.random.key(1), 0.5, (4,))
      Array([ True, False,  True,  True], dtype=bool)
    """
    dtype = typeof(p).dtype
    if not issubdtype(dtype, np.floating):
        raise TypeError(f"bernoulli probability `p` must have a floating dtype, got {dtype}.")
    return _bernoulli(key, host_number(p, dtype) if type(p) is float else p, shape, mode)


@operation(static_argnames=("shape", "mode"), nested=True)
def _bernoulli(key: Array, p: ArrayLike, shape: Shape, mode: str) -> Array:
    dtype = typeof(p).dtype
    if mode == "low":
        return uniform(key, shape, dtype, 0.0, 1.0) < p
    first, second = list(uniform(key, (2, *shape), dtype, 0.0, 1.0))
    # The second bits are digits below those of the first.
    second = second * host_number(2.0 ** -finfo(dtype).nmant, dtype)
    return second < p - first


@sampler(dtype=any_dtype)
def rademacher(key: ArrayLike, shape: Sequence[int] = (), dtype: DTypeLike | None = None) -> Array:
    """Return random numbers that are 1 or -1.

    Args:
      dtype: the dtype of the result; by default int32, with x64 int64.

    Example:
      >>> jax.random.rademacher(jax.random.key(0), (4,))
      Array([-1, -1,  1,  1], dtype=int32)
    """
    ones = convert_element_type(bernoulli(key, 0.5, shape), dtype)
    # In a boolean dtype 1 and -1 both become True.
    return in_dtype(2 * ones - 1, dtype)


# ---- integers ------------------------------------------------------------------------------------


def _integers_alone(name: str, dtype: DTypeLike | None) -> DType:
    checked = any_dtype(name, dtype)
    if not issubdtype(checked, np.integer):
        raise TypeError(f"randint only accepts integer dtypes, got {checked}")
    return checked


@sampler(dtype=_integers_alone, nested=False)
def randint(
    key: ArrayLike,
    shape: Sequence[int],
    minval: ArrayLike,
    maxval: ArrayLike,
    dtype: DTypeLike | None = None,
) -> Array:
    """Return random integers drawn uniformly from [minval, maxval).

    Args:
      minval, maxval: the bounds, which broadcast to the shape. Where `maxval` is not above
        `minval` the result is `minval`; bounds beyond the dtype are clipped to its range. Python
        integers that the default dtype cannot hold raise OverflowError.
      dtype: an integer dtype; by default int32, with x64 int64. Others raise TypeError.

    Example:
      >>> jax.random.randint(jax.random.key(0), (4,), 0, 10)
      Array([9, 0, 2, 3], dtype=int32)
    """
    if dtype.itemsize >= 4:
        return _randint(key, shape, minval, maxval, dtype)
    info = iinfo(dtype)
    int32 = np.dtype(np.int32)
    bounds = [_as_wide(minval, int32), _as_wide(maxval, int32)]
    low = clip(bounds[0], min=int(info.min), max=int(info.max))
    high = clip(bounds[1], min=int(info.min), max=int(info.max) + 1)
    return convert_element_type(_randint(key, shape, low, high, int32), dtype)


def _as_wide(x: ArrayLike, dtype: DType) -> ArrayLike:
    operand_dtype = typeof(x).dtype
    return x if operand_dtype.itemsize >= dtype.itemsize else convert_element_type(x, dtype)


def _clipped(x: ArrayLike, dtype: DType) -> Array:
    """Convert integers to another integer dtype, clipped to its range."""
    aval = typeof(x)
    operand_limits, other = iinfo(aval.dtype), iinfo(dtype)
    low, high = (
        max(int(operand_limits.min), int(other.min)),
        min(int(operand_limits.max), int(other.max)),
    )
    x = clip(x, host_number(low, aval.dtype), host_number(high, aval.dtype))
    return in_dtype(x, dtype)


@operation(static_argnames=("shape", "dtype"), nested=True)
def _randint(key: Array, shape: Shape, minval: ArrayLike, maxval: ArrayLike, dtype: DType) -> Array:
    minval, maxval = _integers(minval), _integers(maxval)
    info = iinfo(dtype)
    # The number of all values of the dtype is one more than the dtype holds.
    greatest = creation.array(int(info.max), dtype)
    beyond = gt(*_ranked(maxval, _clipped(greatest, typeof(maxval).dtype)))
    minval, maxval = _clipped(minval, dtype), _clipped(maxval, dtype)
    minval = broadcast_to_rank(minval, len(shape))
    maxval = broadcast_to_rank(maxval, len(shape))
    width = info.bits
    unsigned = np.dtype(f"uint{width}")
    first_key, second_key = parts(key)
    high = random_bits(first_key, width, shape)
    low = random_bits(second_key, width, shape)
    span = convert_element_type(sub(maxval, minval), unsigned)
    span = select(le(maxval, minval), full_like(span, 1), span)
    is_whole = bitwise_and(*_ranked(beyond, gt(maxval, minval)))
    span = select(is_whole, add(span, host_number(1, unsigned)), span)
    # (high * 2**width + low) % span without overflow, for numbers of twice the dtype's bits.
    step = rem(host_number(2 ** (width // 2), unsigned), span)
    step = rem(mul(step, step), span)
    offset = rem(add(mul(rem(high, span), step), rem(low, span)), span)
    return add(minval, convert_element_type(offset, dtype))


def _integers(x: ArrayLike) -> ArrayLike:
    if issubdtype(typeof(x).dtype, np.integer):
        return x
    return convert_element_type(x, int)


def _ranked(x: ArrayLike, y: ArrayLike) -> tuple[ArrayLike, ArrayLike]:
    """Return two arrays expanded to equal rank with leading axes, except for scalars."""
    ranks = typeof(x).ndim, typeof(y).ndim
    if 0 in ranks:
        return x, y
    return broadcast_to_rank(x, max(ranks)), broadcast_to_rank(y, max(ranks))


@sampler(dtype=integral)
def geometric(
    key: ArrayLike, p: ArrayLike, shape: Sequence[int] | None = None, dtype: DTypeLike | None = None
) -> Array:
    """Return random numbers of trials up to the first success, from the geometric distribution.

    Args:
      p: the probability of success, which broadcasts to the shape.
      dtype: an integer dtype; by default int32, with x64 int64.

    Example:
      >>> jax.random.geometric(jax.random.key(0), jnp.array([1.0, 0.1]))[0]
      Array(1, dtype=int32)
    """
    (p,) = promote_dtypes_inexact(p)
    u = uniform(key, shape, typeof(p).dtype, 0.0, 1.0)
    log_u = log(selecting.where(u == 0, 1, u))
    failures = floor(div(log_u, broadcast_to_shape(log1p(neg(p)), shape)))
    return convert_element_type(add(failures, host_number(1, typeof(u).dtype)), dtype)


# ---- categories ----------------------------------------------------------------------------------


@sampler(axis=as_passed, shape=whole_shape, replace=as_passed, mode=checked_mode, nested=False)
def categorical(
    key: ArrayLike,
    logits: ArrayLike,
    axis: int = -1,
    shape: Sequence[int] | None = None,
    replace: bool = True,
    mode: str | None = None,
) -> Array:
    """Return random categories with probabilities proportional to exp(logits), as int32.

    Args:
      logits: an array of floats, with one element per category along `axis`.
      axis: the axis of the categories.
      shape: the shape of the result; by default that of `logits` without `axis`, which must
        broadcast to the last sizes of `shape`.
      replace: whether a category may repeat along the leading axes that `shape` adds; if not,
        their size is at most the number of categories.
      mode: "low" or "high", the mode of `gumbel`.

    Example:
      >>> logits = jnp.log(jnp.array([0.1, 0.2, 0.7]))
      >>> jax.random.categorical(jax.random.key(0), logits, shape=(5,))
      Array([1, 2, 2, 1, 2], dtype=int32)
    """
    aval = typeof(logits)
    batch_shape = tuple([aval.shape[i] for i in np.delete(np.arange(aval.ndim), axis)])
    if shape is None:
        shape = batch_shape
    else:
        shape = checked_shape("categorical", shape, np.empty(batch_shape, np.bool_))
    before = shape[: len(shape) - len(batch_shape)]
    if replace:
        axis -= aval.ndim if axis >= 0 else 0
        of_logits = list(shape[len(before) :])
        of_logits.insert(axis % aval.ndim, aval.shape[axis])
        noise = gumbel(key, (*before, *of_logits), aval.dtype, mode)
        if before:
            logits = expand_dims(logits, range(len(before)))
        return argmax(noise + logits, axis=axis)
    axis %= aval.ndim
    count = math.prod(before)
    if count > aval.shape[axis]:
        raise ValueError(
            f"Number of samples without replacement ({count}) cannot exceed number of categories "
            f"({aval.shape[axis]})."
        )
    noisy = add(logits, gumbel(key, aval.shape, aval.dtype, mode))
    _, chosen = top_k(noisy, count, axis=axis)
    order = (axis, *[i for i in range(aval.ndim) if i != axis])
    return reshape(chosen, shape, dimensions=order)
