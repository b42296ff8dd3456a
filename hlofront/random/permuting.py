"""The random permutations, and random choices among elements."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from hlofront.base.boundary import boundary
from hlofront.base.dtypes import default_dtype, issubdtype
from hlofront.base.elements import host_number
from hlofront.base.typing import Array, ArrayLike, Shape
from hlofront.core.aval import ShapedArray, is_value, typeof
from hlofront.higher_order.shard_map.axis_types import with_sharding
from hlofront.numpy.arrays import creation, ranges
from hlofront.numpy.arrays.sorting import searchsorted
from hlofront.numpy.indexing.selecting import host_value
from hlofront.numpy.indexing.taking import take
from hlofront.numpy.statistics import cumulative
from hlofront.numpy.support.annotations import OutSharding
from hlofront.numpy.support.promotion import promote_dtypes_inexact
from hlofront.primitives.arrays.creation import full
from hlofront.primitives.arrays.shaping import reshape, squeeze
from hlofront.primitives.arrays.slicing import slice_in_dim
from hlofront.primitives.arrays.sorting import sort_key_val, top_k
from hlofront.primitives.elementwise.elementwise import add, log, mul, sub
from hlofront.primitives.random.keys import is_key, random_bits
from hlofront.random.arguments import checked_key, own_shape, parts
from hlofront.random.continuous import checked_mode, gumbel, uniform
from hlofront.random.discrete import randint
from hlofront.runtime.dispatch.operation import operation


def _checked_array(name: str, x: ArrayLike) -> ArrayLike:
    if not is_value(x) and not hasattr(x, "__jax_array__"):
        raise TypeError(
            f"{name} requires ndarray or scalar arguments, got {type(x)} at position 0."
        )
    return x if is_value(x) else creation.asarray(x)


def _checked_axis(name: str, axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise ValueError(f"{name}: axis {axis} is out of bounds for array of dimension {rank}")
    return axis % rank


# ---- permutations --------------------------------------------------------------------------------


@boundary
def permutation(
    key: ArrayLike,
    x: ArrayLike,
    axis: int = 0,
    independent: bool = False,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Return the elements of an array along an axis in random order.

    Args:
      key: a random key.
      x: an array; or an integer, for the range from 0 to `x` exclusive.
      axis: the axis along which the elements are permuted.
      independent: whether each row along the axis has its own order.
      out_sharding: how the result is split over a mesh.

    Returns:
      An array like `x`.

    Raises:
      TypeError: if `x` is neither an array with axes nor an integer, or `key` is not a key.
      ValueError: if the axis does not exist, or `key` is an array of several keys.

    Example:
      >>> jax.random.permutation(jax.random.key(1), 5)
      Array([3, 2, 0, 1, 4], dtype=int32)
    """
    key = checked_key("permutation", key)
    x = _checked_array("permutation", x)
    axis = _checked_axis("permutation", axis, typeof(x).ndim or 1)
    if out_sharding is None:
        return _permuted(key, x, axis, independent)
    if not typeof(x).ndim:
        # A size is a static argument.
        return with_sharding(
            "permutation", lambda key: _permuted(key, x, axis, independent), (key,), out_sharding
        )
    return with_sharding(
        "permutation", lambda *a: _permuted(*a, axis, independent), (key, x), out_sharding
    )


def _permuted(key: Array, x: ArrayLike, axis: int, independent: bool) -> Array:
    aval = typeof(x)
    if not aval.ndim:
        if not issubdtype(aval.dtype, np.integer):
            raise TypeError("x must be an integer or at least 1-dimensional")
        size = host_value(x, "It arose in the jax.random.permutation argument 'x', a number.")
        return _shuffle(key, ranges.arange(int(size)), 0)
    # Arrays of keys cannot be operands of a sort.
    if (independent or aval.ndim == 1) and not is_key(aval):
        return _shuffle(key, x, axis)
    if independent:
        raise TypeError("permutation: random keys cannot be exchanged independently")
    order = _shuffle(key, ranges.arange(aval.shape[axis]), 0)
    return take(x, order, axis, unique_indices=True)


# With 32-bit sort keys this number of rounds makes ties so rare that orders are uniform.
_EXPONENT = 3


@operation(static_argnames=("axis",), nested=True)
def _shuffle(key: Array, x: Array, axis: int) -> Array:
    size = max(1, typeof(x).size)
    rounds = int(np.ceil(_EXPONENT * np.log(size) / np.log(np.iinfo(np.uint32).max)))
    for _ in range(rounds):
        key, subkey = parts(key)
        _, x = sort_key_val(random_bits(subkey, 32, typeof(x).shape), x, axis)
    return x


# ---- choices -------------------------------------------------------------------------------------


@boundary
def choice(
    key: ArrayLike,
    a: ArrayLike,
    shape: Sequence[int] = (),
    replace: bool = True,
    p: ArrayLike | None = None,
    axis: int = 0,
    mode: str | None = None,
) -> Array:
    """Return random elements of an array along an axis.

    Args:
      key: a random key.
      a: an array; or an integer, for the range from 0 to `a` exclusive.
      shape: the shape of the sample, which replaces `axis` in the shape of `a`. A sample without
          elements has exactly this shape, whatever the other axes of `a`.
      replace: whether an element may be chosen repeatedly.
      p: the probabilities of the elements, an array of rank 1; by default uniform.
      axis: the axis along which elements are chosen.
      mode: "low" or "high", the mode of `gumbel`, used with `p` and without replacement.

    Raises:
      TypeError: if `a` or `p` is not an array, `shape` is not a sequence, or `key` is not a key.
      ValueError: if `a` has no elements, or too few to choose without replacement, if its size is
        not that of `p`, or if `key` is an array of several keys.

    Example:
      >>> jax.random.choice(jax.random.key(0), jnp.array([10, 20, 30]), (2,), replace=False)
      Array([10, 20], dtype=int32)
    """
    key = checked_key("choice", key)
    elements: ArrayLike | None = _checked_array("choice", a)
    if not isinstance(shape, Sequence):
        raise TypeError(f"choice: the shape must be a sequence of sizes, got {shape}")
    shape = own_shape("choice", shape)
    aval = typeof(elements)
    if aval.ndim:
        axis = _checked_axis("choice", axis, aval.ndim)
        population = aval.shape[axis]
    else:
        population = int(elements)
        elements = None
    count = math.prod(shape)
    if not count:
        return full(shape, 0, aval.dtype)
    if population < 1:
        raise ValueError("a must be greater than 0 unless no samples are taken")
    if not replace and count > population:
        raise ValueError(
            f"Cannot take a larger sample (size {count}) than population (size {population}) when "
            "'replace=False'"
        )
    if p is not None:
        (p,) = promote_dtypes_inexact(_checked_array("choice", p))
        if typeof(p).shape != (population,):
            raise ValueError(
                "p must be None or a 1D vector with the same size as a.shape[axis]. p has shape "
                f"{typeof(p).shape} and a.shape[axis] is {population}."
            )
    if p is None and not replace:
        chosen = permutation(key, population if elements is None else elements, axis)
        chosen = _first(chosen, count, 0 if elements is None else axis)
        return _shaped(chosen, aval, shape, axis, elements is None)
    if p is None:
        indices = randint(key, shape, 0, population)
    elif replace:
        indices = _weighted(key, p, shape)
    else:
        indices = _weighted_once(key, p, count, checked_mode("choice", mode))
    if elements is None:
        return _shaped(indices, aval, shape, axis, True)
    chosen = take(elements, indices, axis)
    return _shaped(chosen, aval, shape, axis, False)


def _first(x: Array, count: int, axis: int) -> Array:
    return x if typeof(x).shape[axis] == count else slice_in_dim(x, 0, count, axis=axis)


def _shaped(chosen: Array, aval: ShapedArray, shape: Shape, axis: int, of_integer: bool) -> Array:
    if not of_integer:
        shape = (*aval.shape[:axis], *shape, *aval.shape[axis + 1 :])
    return chosen if typeof(chosen).shape == shape else reshape(chosen, shape)


@operation(static_argnames=("shape",))
def _weighted(key: Array, p: Array, shape: Shape) -> Array:
    total = cumulative.cumsum(p)
    last = squeeze(slice_in_dim(total, typeof(total).size - 1, typeof(total).size), (0,))
    dtype = typeof(total).dtype
    heights = mul(last, sub(host_number(1, dtype), uniform(key, shape, dtype, 0.0, 1.0)))
    return searchsorted(total, heights).astype(default_dtype("i"))


@operation(static_argnames=("count", "mode"))
def _weighted_once(key: Array, p: Array, count: int, mode: str) -> Array:
    aval = typeof(p)
    noise = gumbel(key, aval.shape, aval.dtype, mode)
    _, indices = top_k(add(noise, log(p)), count)
    return indices.astype(default_dtype("i"))
