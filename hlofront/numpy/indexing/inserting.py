"""Insertion and deletion of slices along an axis: insert and delete."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

import numpy as np

from hlofront.base.dtypes import iinfo
from hlofront.base.elements import bool_, host_number
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.core.sizes.dimensions import canonical_axis
from hlofront.core.trace import Tracer
from hlofront.numpy.indexing.entries import from_start, int32
from hlofront.numpy.indexing.selecting import host_value, take_rows, true_positions
from hlofront.numpy.indexing.taking import as_indices, flattened, is_integer
from hlofront.numpy.support.like import like
from hlofront.numpy.support.promotion import as_operand, check_arraylike, with_shape
from hlofront.primitives.arrays import creation, shaping, slicing, sorting
from hlofront.primitives.arrays.scattering import ScatterDimensionNumbers, scatter
from hlofront.primitives.elementwise import elementwise
from hlofront.primitives.elementwise.converting import convert
from hlofront.runtime.dispatch.operation import operation


@operation(static_argnames=("axis",))
def _insert(arr: ArrayLike, indices: ArrayLike, values: ArrayLike, axis: int) -> Array:
    """Insert values before the elements at indices (a scalar or a vector) along an axis."""
    shape = typeof(arr).shape
    n = shape[axis]
    aval = typeof(arr)
    values = convert(values, aval.dtype, aval.weak_type)
    values_shape = typeof(values).shape
    values = shaping.reshape(values, (1,) * (len(shape) - len(values_shape)) + values_shape)
    if not typeof(indices).ndim:
        values = _to_axis(values, axis)
    count = typeof(indices).size
    if not typeof(indices).ndim or count == 1:
        count = typeof(values).shape[axis]
        indices = shaping.broadcast_in_dim(shaping.reshape(indices, ()), (count,), ())
    new_shape = (*shape[:axis], count, *shape[axis + 1 :])
    values = with_shape(values, typeof(values).shape, new_shape)
    indices = elementwise.clamp(np.int32(0), _int32_from_start(indices, n), np.int32(n))
    # The sort is stable, so that the inserted values, listed first, precede the elements.
    where = slicing.concatenate([indices, creation.iota(int32, n)], 0)
    order = sorting.sort_key_val(where, creation.iota(int32, count + n))[1]
    return take_rows(slicing.concatenate([values, arr], axis), order, axis)


def _int32_from_start(indices: ArrayLike, size: int) -> Array:
    """Return integer indices as int32, counting negative ones from the end of an axis.

    Indices that int32 cannot hold stay out of bounds instead of wrapping around.
    """
    dtype = typeof(indices).dtype
    if not np.can_cast(dtype, int32):
        smallest = max(-size - 1, int(iinfo(dtype).min))
        indices = elementwise.clamp(host_number(smallest, dtype), indices, host_number(size, dtype))
    return from_start(convert(indices, int32, False), size)


def _to_axis(values: Array, axis: int) -> Array:
    """Return the array with its first axis moved to the position `axis`."""
    order = [*range(1, axis + 1), 0, *range(axis + 1, typeof(values).ndim)]
    return shaping.transpose(values, order) if axis else values


@like(np.insert)
def insert(
    arr: ArrayLike, obj: ArrayLike | slice, values: ArrayLike, axis: int | None = None
) -> Array:
    """Insert values along an axis, or into the flattened array, before the elements at indices.

    Args:
      arr: an array.
      obj: an integer, an array of integers of one axis, or a slice. Indices out of bounds are moved
        to the nearest one.
      values: an array that broadcasts to the inserted slices, converted to the dtype of `arr`.
      axis: the axis to insert along.

    Raises:
      ValueError: if the indices are not integers, or have more axes than one.

    Example:
      >>> jnp.insert(jnp.array([[1, 2], [3, 4]]), 1, 9, axis=1)
      Array([[1, 9, 2],
             [3, 9, 4]], dtype=int32)
    """
    if isinstance(obj, slice):
        check_arraylike("insert", arr, 0, values)
    else:
        check_arraylike("insert", arr, obj, values)
    arr, values = as_operand(arr), as_operand(values)
    if axis is None:
        arr, axis = _ravelled(arr), 0
    axis = canonical_axis(axis, typeof(arr).ndim)
    if isinstance(obj, slice):
        indices = np.arange(*obj.indices(typeof(arr).shape[axis]), dtype=np.int32)
    else:
        indices = as_indices(obj)
    aval = typeof(indices)
    if not is_integer(aval.dtype):
        raise ValueError(
            f"jnp.insert(): index array must be integer typed; got {obj}. Of a mask, "
            "jnp.flatnonzero gives the indices."
        )
    if aval.ndim > 1:
        raise ValueError(
            f"jnp.insert(): obj must be an integer or have one axis, got shape {aval.shape}"
        )
    return _insert(arr, indices, values, axis)


@operation
def _ravelled(arr: ArrayLike) -> Array:
    return flattened(arr)


@operation(static_argnames=("axis",))
def _deleted(arr: ArrayLike, indices: ArrayLike, axis: int) -> Array:
    """Return the array without the slices at unique indices along an axis."""
    n = typeof(arr).shape[axis]
    (count,) = typeof(indices).shape
    indices = _int32_from_start(indices, n)
    remaining = scatter(
        creation.full((n,), True, bool_),
        shaping.reshape(indices, (count, 1)),
        creation.full((count,), False, bool_),
        ScatterDimensionNumbers((), (0,), (0,)),
        mode="drop",
    )
    return take_rows(arr, true_positions(remaining, n - count, n), axis)


_rows_at = operation(take_rows, static_argnames=("axis",))


@like(np.delete)
def delete(
    arr: ArrayLike,
    obj: ArrayLike | slice,
    axis: int | None = None,
    *,
    assume_unique_indices: bool = False,
) -> Array:
    """Delete the slices at indices along an axis, or elements of the flattened array.

    Args:
      arr: an array.
      obj: an integer, integers, a slice, or a mask of the size of the axis. It must be known while
        tracing, unless the indices are unique.
      axis: the axis to delete along.
      assume_unique_indices: a promise that no index occurs twice or is out of bounds. The shape
        of the result is then known where `obj` is traced.

    Raises:
      IndexError: if an index is out of bounds.
      ValueError: if `obj` holds neither integers nor booleans, or a mask has another size.
      ConcretizationTypeError: if it is traced, without that promise.

    Example:
      >>> jnp.delete(jnp.array([[1, 2, 3], [4, 5, 6]]), 1, axis=1)
      Array([[1, 3],
             [4, 6]], dtype=int32)
    """
    if isinstance(obj, slice):
        check_arraylike("delete", arr)
    else:
        check_arraylike("delete", arr, obj)
    arr = as_operand(arr)
    if axis is None:
        arr, axis = _ravelled(arr), 0
    axis = canonical_axis(axis, typeof(arr).ndim)
    n = typeof(arr).shape[axis]
    if not isinstance(obj, slice):
        dtype = typeof(obj).dtype
        if not is_integer(dtype) and dtype != bool_:
            raise ValueError(
                f"np.delete(arr, obj): got obj.dtype={dtype}; must be integer or bool."
            )
        if assume_unique_indices and isinstance(obj, Tracer) and dtype != bool_:
            return _deleted(arr, _ravelled(obj), axis)
    remaining = np.ones(n, np.bool_)
    if isinstance(obj, slice):
        remaining[obj] = False
    else:
        values = host_value(
            obj,
            "'obj' array argument of jnp.delete(). Indices that are traced must be unique: "
            "say so with assume_unique_indices=True.",
        )
        if values.dtype == bool_ and values.shape != (n,):
            raise ValueError(
                "np.delete(arr, obj): for boolean indices, obj must be one-dimensional with length "
                f"matching specified axis: got shape {values.shape} for size {n}."
            )
        if not values.ndim:
            values = np.asarray(canonical_axis_index(operator.index(values.item()), axis, n))
        remaining[values] = False
    rows = remaining.nonzero()[0].astype(np.int32)
    # Outside of programs one compiled gather serves all indices of an axis.
    if isinstance(arr, Tracer) and rows.size and _is_copied_in_blocks(arr, axis):
        runs = np.split(rows, np.flatnonzero(np.diff(rows) != 1) + 1)
        if len(runs) <= _MAX_RUNS:
            return _joined_runs(arr, [(int(run[0]), int(run[-1]) + 1) for run in runs], axis)
    return _rows_at(arr, rows, axis)


# An integer and a slice without a step leave two runs of rows at most.
_MAX_RUNS = 2
# Of fewer elements, as in short rows that a function is mapped over, a gather is as fast.
_MIN_ELEMENTS = 256


def _is_copied_in_blocks(arr: Array, axis: int) -> bool:
    """Return whether rows in a run along an axis are a large block of memory."""
    shape = typeof(arr).shape
    return math.prod(shape[:axis]) == 1 and math.prod(shape[axis:]) >= _MIN_ELEMENTS


def _joined_runs(arr: Array, runs: Sequence[tuple[int, int]], axis: int) -> Array:
    """Return the concatenation of slices, from starts to stops, along an axis.

    On CPUs this is faster than a gather of rows: XLA copies slices as blocks of memory and fuses
    other operations with them.
    """
    parts = [slicing.slice_in_dim(arr, start, stop, axis=axis) for start, stop in runs]
    return parts[0] if len(parts) == 1 else slicing.concatenate(parts, axis)


def canonical_axis_index(index: int, axis: int, size: int) -> int:
    """Return an index along an axis, counted from 0.

    Raises:
      numpy.exceptions.AxisError: if the index is out of bounds, a ValueError and IndexError.
    """
    if -size <= index < size:
        return index
    raise np.exceptions.AxisError(f"index {index} is out of bounds for axis {axis} of size {size}")
