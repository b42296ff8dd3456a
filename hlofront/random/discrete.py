"""Integers, booleans and categories."""

import math

import numpy as np

from hlofront.base.boundary import boundary
from hlofront.base.dtypes import (
    check_user_dtype_supported,
    finfo,
    iinfo,
    issubdtype,
)
from hlofront.core.aval import typeof
from hlofront.numpy import creation, selecting
from hlofront.numpy.reductions import argmax
from hlofront.numpy.rounding import clip
from hlofront.primitives.comparing import gt, le, select
from hlofront.primitives.converting import convert_element_type
from hlofront.primitives.creating import full_like
from hlofront.primitives.elementwise import (
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
from hlofront.primitives.keys import random_bits
from hlofront.primitives.shaping import broadcast_to_rank, expand_dims, reshape
from hlofront.primitives.sorting import top_k
from hlofront.random.arguments import checked_key, checked_shape, in_dtype, integral, parts, spread
from hlofront.random.continuous import _gumbel, _uniform, canonical, checked_mode
from hlofront.runtime.operation import operation

# ---- booleans and signs --------------------------------------------------------------------------


@boundary
def bernoulli(key, p=0.5, shape=None, mode="low", *, out_sharding=None):
    """Booleans that are True with this probability.

    Args:
      key: a random key.
      p: the probability, which broadcasts to the shape.
      shape: of the result; by default that of `p`.
      mode: "low", or "high" for twice the digits at twice the work, which tells small
        probabilities apart.
      out_sharding: None.

    Raises:
      TypeError: if `p` is no float, or `key` is no key.
      ValueError: if the mode is another, `p` does not fit the shape, or there are several keys.
    """
    if mode not in ("high", "low"):
        raise ValueError(f"got {mode=}, expected 'high' or 'low'")
    key = checked_key("bernoulli", key, out_sharding)
    dtype = typeof(p).dtype
    if not issubdtype(dtype, np.floating):
        raise TypeError(f"bernoulli probability `p` must have a floating dtype, got {dtype}.")
    shape = None if shape is None else checked_shape("bernoulli", shape, p)
    return _bernoulli(key, np.asarray(p, dtype)[()] if type(p) is float else p, shape, mode)


@operation(static_argnames=("shape", "mode"), nested=True)
def _bernoulli(key, p, shape, mode):
    dtype = typeof(p).dtype
    shape = checked_shape("bernoulli", shape, p)
    if mode == "low":
        return _uniform(key, shape, dtype, 0.0, 1.0) < p
    first, second = list(_uniform(key, (2, *shape), dtype, 0.0, 1.0))
    # The second gives digits below those of the first.
    second = second * dtype.type(2.0 ** -finfo(dtype).nmant)
    return second < p - first


@boundary
def rademacher(key, shape=(), dtype=None, *, out_sharding=None):
    """Ones and minus ones.

    Args:
      key: a random key.
      shape: of the result.
      dtype: of the result; by default int32, with x64 int64.
      out_sharding: None.

    Raises:
      ValueError: if there are several keys.
      TypeError: if `key` is no key.
    """
    key = checked_key("rademacher", key, out_sharding)
    dtype = check_user_dtype_supported(int if dtype is None else dtype, "rademacher")
    return _rademacher(key, canonical(shape, "rademacher"), dtype)


@operation(static_argnames=("shape", "dtype"), nested=True)
def _rademacher(key, shape, dtype):
    ones = convert_element_type(bernoulli(key, 0.5, shape), dtype)
    return sub(mul(dtype.type(2), ones), dtype.type(1))


# ---- integers ------------------------------------------------------------------------------------


@boundary
def randint(key, shape, minval, maxval, dtype=None, *, out_sharding=None):
    """Uniform integers from `minval` on to below `maxval`.

    Args:
      key: a random key.
      shape: of the result.
      minval, maxval: the bounds, which broadcast to the shape. Where `maxval` is not above
        `minval`, that is the result; bounds beyond the dtype are moved to its limits.
      dtype: of integers; by default int32, with x64 int64.
      out_sharding: None.

    Raises:
      TypeError: if the dtype is another, or `key` is no key.
      ValueError: if the bounds do not fit the shape, or there are several keys.
      OverflowError: if a bound is an integer of Python's that the default dtype does not hold.
    """
    key = checked_key("randint", key, out_sharding)
    dtype = check_user_dtype_supported(int if dtype is None else dtype, "randint")
    if not issubdtype(dtype, np.integer):
        raise TypeError(f"randint only accepts integer dtypes, got {dtype}")
    shape = checked_shape("randint", shape, minval, maxval)
    if dtype.itemsize < 4:
        return _small_randint(key, minval, maxval, shape, dtype)
    return _randint(key, shape, minval, maxval, dtype)


@operation(static_argnames=("shape", "dtype"))
def _small_randint(key, minval, maxval, shape, dtype):
    info = iinfo(dtype)
    int32 = np.dtype(np.int32)
    bounds = [_as_wide(minval, int32), _as_wide(maxval, int32)]
    low = clip(bounds[0], min=int(info.min), max=int(info.max))
    high = clip(bounds[1], min=int(info.min), max=int(info.max) + 1)
    return convert_element_type(_randint(key, shape, low, high, int32), dtype)


def _as_wide(x, dtype):
    found = typeof(x).dtype
    return x if found.itemsize >= dtype.itemsize else convert_element_type(x, dtype)


def _clipped(x, dtype):
    """x in another dtype of integers, moved to its limits."""
    aval = typeof(x)
    own, other = iinfo(aval.dtype), iinfo(dtype)
    low, high = max(int(own.min), int(other.min)), min(int(own.max), int(other.max))
    x = clip(x, aval.dtype.type(low), aval.dtype.type(high))
    return in_dtype(x, dtype)


@operation(static_argnames=("shape", "dtype"), nested=True)
def _randint(key, shape, minval, maxval, dtype):
    minval, maxval = _integers(minval), _integers(maxval)
    info = iinfo(dtype)
    # The span of all values of the dtype is one more than it holds.
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
    span = select(is_whole, add(span, unsigned.type(1)), span)
    # (high * 2**width + low) % span, without overflow: twice as many bits as the dtype has.
    step = rem(unsigned.type(2 ** (width // 2)), span)
    step = rem(mul(step, step), span)
    offset = rem(add(mul(rem(high, span), step), rem(low, span)), span)
    return add(minval, convert_element_type(offset, dtype))


def _integers(x):
    if issubdtype(typeof(x).dtype, np.integer):
        return x
    return convert_element_type(x, int)


def _ranked(x, y):
    """Both with as many axes as the other, but for scalars."""
    ranks = typeof(x).ndim, typeof(y).ndim
    if 0 in ranks:
        return x, y
    return broadcast_to_rank(x, max(ranks)), broadcast_to_rank(y, max(ranks))


@boundary
def geometric(key, p, shape=None, dtype=None, *, out_sharding=None):
    """How many trials there are up to the first success, of this probability.

    Args:
      key: a random key.
      p: the probability, which broadcasts to the shape.
      shape: of the result; by default that of `p`.
      dtype: of integers; by default int32, with x64 int64.
      out_sharding: None.

    Raises:
      ValueError: if the dtype is another, `p` does not fit the shape, or there are several keys.
      TypeError: if `key` is no key.
    """
    key = checked_key("geometric", key, out_sharding)
    dtype = integral("geometric", dtype)
    shape = None if shape is None else checked_shape("geometric", shape, p)
    return _geometric(key, p, shape, dtype)


@operation(static_argnames=("shape", "dtype"), nested=True)
def _geometric(key, p, shape, dtype):
    shape = checked_shape("geometric", shape, p)
    u = _uniform(key, shape, typeof(p).dtype, 0.0, 1.0)
    log_u = log(selecting.where(u == 0, 1, u))
    failures = floor(div(log_u, spread(log1p(neg(p)), shape)))
    return convert_element_type(add(failures, typeof(u).dtype.type(1)), dtype)


# ---- categories ----------------------------------------------------------------------------------


@boundary
def categorical(key, logits, axis=-1, shape=None, replace=True, mode=None, *, out_sharding=None):
    """Categories, whose probabilities are proportional to exp(logits).

    Args:
      key: a random key.
      logits: an array of floats; its elements along `axis` are of the categories.
      axis: the axis of the categories.
      shape: of the result; by default that of `logits` without the axis. That shape, or what
        broadcasts to it, must be its last part.
      replace: whether a category may come up again along the axes that `shape` has in front.
      mode: "low" or "high"; see `gumbel`.
      out_sharding: None.

    Returns:
      An array of int32, the numbers of categories.

    Raises:
      ValueError: if the shape does not fit the logits, there are more samples without replacement
        than categories, or several keys.
      TypeError: if `key` is no key.
    """
    key = checked_key("categorical", key, out_sharding)
    shape = None if shape is None else canonical_of(shape)
    return _categorical(key, logits, axis, shape, bool(replace), checked_mode(mode))


def canonical_of(shape):
    return canonical(shape, "categorical")


@operation(static_argnames=("axis", "shape", "replace", "mode"))
def _categorical(key, logits, axis, shape, replace, mode):
    aval = typeof(logits)
    batch_shape = tuple(np.delete(np.asarray(aval.shape, np.int64), axis).tolist())
    if shape is None:
        shape = batch_shape
    else:
        shape = checked_shape("categorical", shape, np.empty(batch_shape, np.bool_))
    before = shape[: len(shape) - len(batch_shape)]
    if replace:
        axis -= aval.ndim if axis >= 0 else 0
        of_logits = list(shape[len(before) :])
        of_logits.insert(axis % aval.ndim, aval.shape[axis])
        noise = _gumbel(key, (*before, *of_logits), aval.dtype, mode)
        return argmax(noise + expand_dims(logits, range(len(before))), axis=axis)
    axis %= aval.ndim
    count = math.prod(before)
    if count > aval.shape[axis]:
        raise ValueError(
            f"Number of samples without replacement ({count}) cannot exceed number of categories "
            f"({aval.shape[axis]})."
        )
    noisy = add(logits, _gumbel(key, aval.shape, aval.dtype, mode))
    _, found = top_k(noisy, count, axis=axis)
    order = (axis, *[i for i in range(aval.ndim) if i != axis])
    return reshape(found, shape, dimensions=order)
