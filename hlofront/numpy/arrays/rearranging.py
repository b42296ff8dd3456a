"""The rearrangement of elements: flip, roll, rotate, tile, repeat, resize, trim zeros."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

import numpy as np

from hlofront.base.boundary import boundary
from hlofront.base.dtypes import issubdtype
from hlofront.base.elements import host_number, int32
from hlofront.base.typing import Array, ArrayLike, Axes, Axis, Shape, ShapeLike
from hlofront.core.aval import typeof
from hlofront.core.sharding.requested_shardings import entry_of, sharding_of
from hlofront.core.sizes.dimensions import as_size, canonical_axes, canonical_axis, canonical_shape
from hlofront.core.trace import Tracer, process
from hlofront.higher_order.shard_map.axis_types import with_sharding
from hlofront.numpy.arrays.shape import as_array, static_axes
from hlofront.numpy.elementwise.ufuncs import any_operand
from hlofront.numpy.indexing.selecting import host_value
from hlofront.numpy.support.annotations import OutSharding
from hlofront.numpy.support.like import like
from hlofront.numpy.support.promotion import check_arraylike
from hlofront.primitives.arrays import cumulative, shaping, slicing, tiling
from hlofront.primitives.arrays.creation import full, full_like
from hlofront.primitives.arrays.dynamic_slicing import dynamic_slice_p
from hlofront.primitives.arrays.gathering import GatherDimensionNumbers, gather
from hlofront.primitives.arrays.scattering import ScatterDimensionNumbers, scatter_add
from hlofront.primitives.elementwise import elementwise
from hlofront.primitives.elementwise.converting import convert
from hlofront.runtime.dispatch.operation import operation

# ---- flip and rotate ---------------------------------------------------------------------------


@operation(static_argnames=("axis",))
def _flip(m: ArrayLike, axis: Axes = None) -> Array:
    m = any_operand("flip", m)
    ndim = typeof(m).ndim
    axes = tuple(range(ndim)) if axis is None else canonical_axes(axis, ndim)
    return shaping.rev(m, axes) if axes else as_array(m)


@boundary
@like(np.flip)
def flip(m: ArrayLike, axis: Axes = None) -> Array:
    """Return an array with the order of its elements reversed along all axes, or along `axis`.

    Raises:
      ValueError: if there is no such axis.

    Example:
      >>> jnp.flip(jnp.array([1, 2, 3]))
      Array([3, 2, 1], dtype=int32)
    """
    return _flip(m) if axis is None else _flip(m, static_axes(axis))


@boundary
@like(np.fliplr)
def fliplr(m: ArrayLike) -> Array:
    """Reverse the order of elements along axis 1.

    Example:
      >>> jnp.fliplr(jnp.array([[1, 2], [3, 4]]))
      Array([[2, 1],
             [4, 3]], dtype=int32)
    """
    return _flip(m, 1)


@boundary
@like(np.flipud)
def flipud(m: ArrayLike) -> Array:
    """Reverse the order of elements along axis 0.

    Example:
      >>> jnp.flipud(jnp.array([[1, 2], [3, 4]]))
      Array([[3, 4],
             [1, 2]], dtype=int32)
    """
    return _flip(m, 0)


@operation(static_argnames=("k", "axes"))
def _rot90(m: ArrayLike, k: int, axes: tuple[int, ...]) -> Array:
    m = any_operand("rot90", m)
    shape = typeof(m).shape
    if len(shape) < 2:
        raise ValueError(
            "rot90 requires its first argument to have ndim at least two, but got first argument "
            f"of shape {shape}, which has ndim {len(shape)}"
        )
    first, second = canonical_axes(axes, len(shape))
    if first == second:
        raise ValueError(f"Axes must be different: rot90 got {axes}")
    swapped = list(range(len(shape)))
    swapped[first], swapped[second] = second, first
    if k == 0:
        return as_array(m)
    if k == 1:
        return shaping.transpose(shaping.rev(m, (second,)), swapped)
    if k == 2:
        return shaping.rev(m, (first, second))
    return shaping.rev(shaping.transpose(m, swapped), (second,))


@boundary
@like(np.rot90)
def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """Rotate an array by k quarter turns in the plane of two axes, from the first to the second.

    Raises:
      ValueError: if there are not two axes, or the array does not have them.

    Example:
      >>> jnp.rot90(jnp.array([[1, 2], [3, 4]]))
      Array([[2, 4],
             [1, 3]], dtype=int32)
    """
    return _rot90(m, operator.index(k) % 4, static_axes(axes))


# ---- roll --------------------------------------------------------------------------------------


@operation(static_argnames=("shift", "axis"))
def _roll_static(a: ArrayLike, shift: int | tuple[int, ...], axis: Axes) -> Array:
    a = any_operand("roll", a)
    shape = typeof(a).shape
    if axis is None:
        flat = shaping.reshape(a, (typeof(a).size,))
        return shaping.reshape(_roll_static.when_traced(flat, shift, 0), shape)
    axes = canonical_axes(axis, len(shape))
    shifts = shift if type(shift) is tuple else (shift,)
    pairs = list(zip(*np.broadcast_arrays(shifts, axes), strict=True)) if axes and shifts else []
    for by, along in pairs:
        along = int(along)
        size = shape[along]
        by = int(by) % size if size else 0
        if by:
            if typeof(a).weak_type:
                # As in JAX, the cotangent is not weakly typed, because cotangents of slices are
                # not.
                start = slicing.slice_in_dim(a, 0, size - by, axis=along)
                end = slicing.slice_in_dim(a, size - by, size, axis=along)
            else:
                # The cotangent of two parts is a roll as well: the cotangent of slices is a sum of
                # padded parts.
                start, end = slicing.split(a, (size - by, by), along)
            a = slicing.concatenate([end, start], along)
    return as_array(a)


@operation(static_argnames=("axis",))
def _roll(a: ArrayLike, shift: ArrayLike, axis: Axes = None) -> Array:
    a, shift = any_operand("roll", a), any_operand("roll", shift)
    aval = typeof(a)
    shape = aval.shape
    if axis is None:
        flat = shaping.reshape(a, (aval.size,))
        return shaping.reshape(_roll.when_traced(flat, shift, 0), shape)
    axes = canonical_axes(axis, len(shape))
    count = np.broadcast_shapes(typeof(shift).shape, (len(axes),))
    if len(count) > 1:
        raise ValueError("'shift' and 'axis' arguments to roll must be scalars or 1D arrays")
    dtype = typeof(shift).dtype
    if not issubdtype(dtype, np.integer) or dtype.itemsize < 4:
        shift, dtype = convert(shift, int32, False), int32
    shifts = shaping.broadcast_in_dim(shift, count, range(len(count))[1 - typeof(shift).ndim :])
    for i, along in enumerate(np.broadcast_to(axes, count)):
        along = int(along)
        size = shape[along]
        if not size:
            continue
        by = slicing.index_in_dim(shifts, i, keepdims=False)
        # The remainder is computed first, so that the narrowed number fits.
        by = convert(elementwise.rem(by, host_number(size, dtype)), int32, False)
        # The result is a slice, from the new first element on, of the array joined
        # to itself.
        doubled = slicing.concatenate([a, a], along)
        start = elementwise.rem(elementwise.sub(np.int32(2 * size), by), np.int32(size))
        starts = [np.int32(0)] * len(shape)
        starts[along] = start
        a = process(dynamic_slice_p, (doubled, *starts), {"slice_sizes": shape})
    return as_array(a)


@boundary
@like(np.roll)
def roll(a: ArrayLike, shift: ArrayLike | Sequence[int], axis: Axes = None) -> Array:
    """Roll elements by `shift` positions along axes; the last elements reenter at the start.

    Without an axis the array is flattened, rolled, and reshaped back.

    Example:
      >>> jnp.roll(jnp.arange(4), 1)
      Array([3, 0, 1, 2], dtype=int32)
    """
    axis = static_axes(axis)
    if type(shift) is int:
        return _roll_static(a, shift, axis)
    if isinstance(shift, float | np.floating):
        shift = int(shift)
    if isinstance(shift, int | np.integer | np.ndarray | list | tuple):
        if not isinstance(shift, list | tuple) or not any(isinstance(s, Tracer) for s in shift):
            return _roll_static(a, _static_shift(shift), axis)
        shift = slicing.stack(list(shift))
    return _roll(a, shift, axis)


def _static_shift(shift: ArrayLike | Sequence[int]) -> int | tuple[int, ...] | None:
    array = np.asarray(shift)
    return int(array) if not array.ndim else tuple(array.astype(int).tolist())


# ---- tile and repeat ---------------------------------------------------------------------------


@operation(static_argnames=("reps",))
def _tile(A: ArrayLike, reps: tuple[int, ...]) -> Array:
    A = any_operand("tile", A)
    shape = typeof(A).shape
    rank = max(len(shape), len(reps))
    if rank > len(shape):
        new_axes = (1,) * (rank - len(shape))
        A = shaping.broadcast_in_dim(A, new_axes + shape, range(len(new_axes), rank))
    reps = (1,) * (rank - len(reps)) + reps
    return as_array(A) if all(count == 1 for count in reps) else tiling.tile(A, reps)


@boundary
@like(np.tile)
def tile(A: ArrayLike, reps: int | Sequence[int]) -> Array:
    """Repeat the whole array along each axis by the counts `reps`.

    Example:
      >>> jnp.tile(jnp.array([1, 2]), 2)
      Array([1, 2, 1, 2], dtype=int32)
    """
    reps = canonical_shape(reps)
    if min(reps, default=0) < 0:
        raise ValueError(f"reps of tile must not be negative, got {reps}")
    return _tile(A, reps)


@operation(static_argnames=("repeats", "axis"))
def _repeat_evenly(a: ArrayLike, repeats: int, axis: Axis) -> Array:
    a = any_operand("repeat", a)
    if axis is None:
        a, axis = shaping.reshape(a, (typeof(a).size,)), 0
    shape = typeof(a).shape
    axis = canonical_axis(axis, len(shape))
    before, size, after = shape[:axis], shape[axis], shape[axis + 1 :]
    dims = [i + (i > axis) for i in range(len(shape))]
    copies = shaping.broadcast_in_dim(a, (*before, size, repeats, *after), dims)
    return shaping.reshape(copies, (*before, size * repeats, *after))


@operation(static_argnames=("axis", "length"))
def _repeat(a: ArrayLike, repeats: ArrayLike, axis: Axis, length: int) -> Array:
    """Repeat each element by its count in `repeats`; cut off or extend the result to `length`."""
    a = any_operand("repeat", a)
    if axis is None:
        a, axis = shaping.reshape(a, (typeof(a).size,)), 0
    shape = typeof(a).shape
    axis = canonical_axis(axis, len(shape))
    size = shape[axis]
    result_shape = (*shape[:axis], length, *shape[axis + 1 :])
    if not size or not length:
        return full(result_shape, 0, typeof(a).dtype)
    repeats = shaping.broadcast_in_dim(repeats, (size,), (0,) * typeof(repeats).ndim)
    # Element i of the result is element j if i is between the cumulative repeats before and
    # after j. So ones are scattered to the cumulative sums, and then summed up.
    ends = cumulative.cumsum(convert(repeats, int32, False), 0)
    starts = scatter_add(
        full((length,), 0, int32),
        shaping.reshape(ends, (size, 1)),
        full((size,), 1, int32),
        ScatterDimensionNumbers((), (0,), (0,)),
        mode="drop",
    )
    source = elementwise.min(cumulative.cumsum(starts, 0), host_number(size - 1, int32))
    return gather(
        a,
        shaping.reshape(source, (length, 1)),
        GatherDimensionNumbers(
            tuple([i for i in range(len(shape)) if i != axis]), (axis,), (0 + axis,)
        ),
        (*shape[:axis], 1, *shape[axis + 1 :]),
        indices_are_sorted=True,
        mode="clip",
    )


@boundary
@like(np.repeat)
def repeat(
    a: ArrayLike,
    repeats: ArrayLike,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Repeat each element along an axis; `repeats` is one number, or one for each element.

    Args:
      total_repeat_length: the size of the result along the axis, which is required where
        `repeats` is traced. Elements beyond it are cut off; missing ones repeat the last element.
      out_sharding: how the result is split over a mesh; by default like `a`, which must then not be
        split along the axis.

    Example:
      >>> jnp.repeat(jnp.array([1, 2]), 2)
      Array([1, 1, 2, 2], dtype=int32)
    """
    check_arraylike("repeat", a, repeats)
    if out_sharding is None and typeof(a).spec is not None:
        if axis is None:
            a, axis = shaping.reshape(a, (typeof(a).size,)), 0
        aval = typeof(a)
        if entry_of(aval, canonical_axis(axis, aval.ndim)) is not None:
            raise ValueError(
                f"jnp.repeat of an array of type {aval.str_short()} along its axis {axis}, which "
                "is split, does not say how its result is split: give it out_sharding=..."
            )
        out_sharding = sharding_of(aval)
    if not isinstance(repeats, Tracer):

        def repeated(a: ArrayLike) -> Array:
            return _repeated(a, repeats, axis, total_repeat_length)

        return with_sharding("repeat", repeated, (a,), out_sharding)

    def repeated_by(repeats: ArrayLike, a: ArrayLike) -> Array:
        return _repeated(a, repeats, axis, total_repeat_length)

    return with_sharding("repeat", repeated_by, (repeats, a), out_sharding)


def _repeated(
    a: ArrayLike, repeats: ArrayLike, axis: int | None, total_repeat_length: int | None
) -> Array:
    axis = None if axis is None else operator.index(axis)
    if total_repeat_length is None:
        counts = host_value(
            repeats,
            "The total number of repeats of jnp.repeat must be known while tracing: either give "
            "`repeats` as a static value, or the number as `total_repeat_length`.",
        )
        if counts.dtype.kind not in "iub":
            raise TypeError(f"repeats of jnp.repeat must be integers, got {counts.dtype}")
        if counts.size == 1:
            count = int(counts.reshape(()))
            if count < 0:
                raise TypeError(f"repeats of jnp.repeat must not be negative, got {count}")
            return _repeat_evenly(a, count, axis)
        size = _size_along(a, axis)
        if counts.shape != (size,):
            raise ValueError(
                f"repeats of jnp.repeat must be a number or have shape ({size},), one for each "
                f"element along the axis; got shape {counts.shape}"
            )
        if counts.size and counts.min() < 0:
            raise ValueError("repeats of jnp.repeat must not be negative")
        total_repeat_length = int(counts.sum())
        repeats = counts.astype(np.int32)
    length = as_size(total_repeat_length)
    ndim = typeof(repeats).ndim
    if ndim > 1 or (ndim and typeof(repeats).shape[0] not in (1, _size_along(a, axis))):
        raise ValueError(
            f"repeats of jnp.repeat must be a number or one for each element along the axis; got "
            f"shape {typeof(repeats).shape}"
        )
    return _repeat(a, repeats, axis, length)


def _size_along(a: Array, axis: int | None) -> int:
    aval = typeof(a)
    return aval.size if axis is None else aval.shape[canonical_axis(axis, aval.ndim)]


# ---- resize and trim ---------------------------------------------------------------------------


@operation(static_argnames=("new_shape",))
def _resize(a: ArrayLike, new_shape: Shape) -> Array:
    a = any_operand("resize", a)
    old, new = typeof(a).size, math.prod(new_shape)
    flat = shaping.reshape(a, (old,))
    if not old or not new:
        return full_like(a, 0, shape=new_shape)
    copies = -(-new // old)
    if copies > 1:
        flat = tiling.tile(flat, (copies,))
    if copies * old > new:
        flat = slicing.slice_in_dim(flat, 0, new)
    return shaping.reshape(flat, new_shape)


@boundary
@like(np.resize)
def resize(a: ArrayLike, new_shape: ShapeLike) -> Array:
    """Return an array of another shape, whose elements repeat in row order, or are cut off.

    Example:
      >>> jnp.resize(jnp.array([1, 2, 3]), (2, 4))
      Array([[1, 2, 3, 1],
             [2, 3, 1, 2]], dtype=int32)
    """
    new_shape = canonical_shape(new_shape)
    if min(new_shape, default=0) < 0:
        raise ValueError(f"all elements of `new_shape` must be non-negative, got {new_shape}")
    return _resize(a, new_shape)


@boundary
@like(np.trim_zeros)
def trim_zeros(filt: ArrayLike, trim: str = "fb", axis: Axes = None) -> Array:
    """Trim the zeros at the front ("f") and back ("b") of an array along axes, by default all.

    The shape of the result depends on the values.

    Raises:
      ConcretizationTypeError: if `filt` is traced.

    Example:
      >>> jnp.trim_zeros(jnp.array([0, 1, 0, 2, 0]), trim="f")
      Array([1, 0, 2, 0], dtype=int32)
    """
    check_arraylike("trim_zeros", filt)
    values = host_value(filt, "How much jnp.trim_zeros cuts off must be known while tracing.")
    axes = range(values.ndim) if axis is None else canonical_axes(axis, values.ndim)
    if len(set(axes)) != len(axes):
        raise ValueError(f"repeated axis: {axis}")
    sides = trim.lower()
    index = [slice(None)] * values.ndim
    for along in axes:
        other_axes = tuple([i for i in range(values.ndim) if i != along])
        (nonzero,) = np.nonzero((values != 0).any(other_axes))
        size = values.shape[along]
        start = (nonzero[0] if nonzero.size else size) if "f" in sides else 0
        stop = (nonzero[-1] + 1 if nonzero.size else 0) if "b" in sides else size
        index[along] = slice(int(start), max(int(start), int(stop)))
    return as_array(filt)[tuple(index)]


ARRAY_METHODS = {"repeat": repeat}
