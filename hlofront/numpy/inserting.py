"""Arrays with elements left out, or put in between."""

import operator
from typing import Any

import numpy as np

from hlofront.base.dtypes import issubdtype
from hlofront.base.errors import ConcretizationTypeError
from hlofront.core.aval import typeof
from hlofront.core.dimensions import canonical_axis
from hlofront.core.trace import Tracer, process
from hlofront.numpy import creation
from hlofront.numpy.index_entries import from_start, int32
from hlofront.numpy.like import like
from hlofront.numpy.promotion import check_arraylike
from hlofront.primitives import comparing, cumulative, elementwise, reducing, shaping, slicing
from hlofront.primitives.comparing import select_n_p
from hlofront.primitives.converting import convert
from hlofront.primitives.creating import full, full_like, iota
from hlofront.primitives.gathering import GatherDimensionNumbers, gather
from hlofront.primitives.scattering import ScatterDimensionNumbers, scatter
from hlofront.primitives.sorting import sort, sort_key_val
from hlofront.runtime.operation import operation


def _taken(a: Any, indices: Any, axis: int) -> Any:
    """The parts of an array at indices in bounds, along an axis."""
    shape = typeof(a).shape
    count = typeof(indices).shape[0]
    if 0 in shape[:axis] + shape[axis + 1 :] or not count or not shape[axis]:
        return full((*shape[:axis], count, *shape[axis + 1 :]), 0, typeof(a).dtype)
    return gather(
        a,
        shaping.reshape(convert(indices, int32, False), (count, 1)),
        GatherDimensionNumbers(
            tuple([i for i in range(len(shape)) if i != axis]), (axis,), (axis,)
        ),
        (*shape[:axis], 1, *shape[axis + 1 :]),
        mode="clip",
    )


def _flat(arr: Any, axis: int | None) -> tuple[Any, int]:
    arr = creation.asarray(arr)
    if axis is None:
        return shaping.reshape(arr, (typeof(arr).size,)), 0
    return arr, canonical_axis(axis, typeof(arr).ndim)


# ---- delete ------------------------------------------------------------------------------------


@operation(static_argnames=("axis",))
def _take_along(arr, indices, axis):
    return _taken(arr, indices, axis)


@operation(static_argnames=("axis",))
def _delete_unique(arr, obj, axis):
    """Without the parts at different indices, which are computed."""
    size = typeof(arr).shape[axis]
    obj = convert(from_start(obj, size), int32, False)
    count = typeof(obj).size
    left = size - count
    obj = shaping.reshape(obj, (count,))
    # What is k-th of those left out, ascending, comes after its own index less k of those kept.
    before = elementwise.sub(sort(obj), iota(int32, count))
    kept = iota(int32, left)
    passed = comparing.le(
        shaping.broadcast_in_dim(before, (left, count), (1,)),
        shaping.broadcast_in_dim(kept, (left, count), (0,)),
    )
    skipped = reducing.reduce_sum(convert(passed, int32, False), (1,))
    return _taken(arr, elementwise.add(kept, skipped), axis)


@like(np.delete)
def delete(
    arr: Any, obj: Any, axis: int | None = None, *, assume_unique_indices: bool = False
) -> Any:
    """An array without the parts at some indices along an axis.

    Args:
      obj: an integer, which may be traced; a slice; or an array of integers or booleans, which
        decides the size of the result and so cannot be traced.
      assume_unique_indices: a promise that no index is given twice, also as its negative. Then the
        array of indices may be traced.
    """
    check_arraylike("delete", arr, 0 if isinstance(obj, slice) else obj)
    arr, axis = _flat(arr, axis)
    size = typeof(arr).shape[axis]
    if isinstance(obj, slice):
        kept = np.delete(np.arange(size, dtype=np.int32), obj)
        return _take_along(arr, kept, axis)
    aval = typeof(obj)
    integer = issubdtype(aval.dtype, np.integer)
    if not integer and aval.dtype != np.bool_:
        raise ValueError(
            f"np.delete(arr, obj): got obj.dtype={aval.dtype}; must be integer or bool."
        )
    if isinstance(obj, Tracer) and obj.to_concrete_value() is None:
        if integer and (not aval.shape or assume_unique_indices):
            return _delete_unique(arr, obj, axis)
        raise ConcretizationTypeError(
            obj,
            "The array of indices given to jnp.delete decides the shape of the result. If no "
            "index is given twice, pass assume_unique_indices=True.",
        )
    indices = np.asarray(obj)
    if not integer:
        if indices.shape != (size,):
            raise ValueError(
                f"np.delete(arr, obj): for boolean indices, obj must be one-dimensional with the "
                f"size of the axis, {size}; got shape {indices.shape}"
            )
        (indices,) = indices.nonzero()
    indices = indices.astype(np.int64)
    if ((indices < -size) | (indices >= size)).any():
        if not indices.shape:
            raise np.exceptions.AxisError(
                f"np.delete: index {indices} is out of bounds for an axis of size {size}"
            )
        # As on a device: what is out of bounds is not there, and nothing is left out for it.
        indices = indices[(indices >= -size) & (indices < size)]
    kept = np.delete(np.arange(size, dtype=np.int32), indices)
    return _take_along(arr, kept, axis)


# ---- insert ------------------------------------------------------------------------------------


@operation(static_argnames=("axis",))
def _insert(arr, indices, values, axis):
    aval = typeof(arr)
    shape = aval.shape
    size = shape[axis]
    scalar = not typeof(indices).shape
    indices = convert(from_start(indices, size), int32, False)
    indices = elementwise.clamp(np.int32(0), indices, np.int32(size))
    values = shaping.broadcast_to_rank(convert(values, aval.dtype, False), len(shape))
    if scalar:
        # One index takes all of the values, whose first axis is then the one inserted along.
        order = [i + (i >= axis) for i in range(len(shape) - 1)]
        order = tuple([*range(1, axis + 1), 0, *range(axis + 1, len(shape))])
        values = shaping.transpose(values, order)
        count = typeof(values).shape[axis]
        indices = full((count,), indices)
    else:
        indices = shaping.reshape(indices, (typeof(indices).size,))
        count = typeof(indices).size
    inner = (*shape[:axis], count, *shape[axis + 1 :])
    values = shaping.broadcast_in_dim(values, inner, range(len(shape)))
    if not count:
        return arr
    # In the order of their indices each comes one later for every one before it.
    indices, rank = sort_key_val(indices, iota(int32, count))
    places = elementwise.add(indices, iota(int32, count))
    total = size + count
    taken = scatter(
        full((total,), 0, int32),
        shaping.reshape(places, (count, 1)),
        full((count,), 1, int32),
        ScatterDimensionNumbers((), (0,), (0,)),
        unique_indices=True,
        mode="promise_in_bounds",
    )
    before = cumulative.cumsum(taken, 0)
    of_old = elementwise.sub(iota(int32, total), before)
    of_new = elementwise.max(elementwise.sub(before, full_like(before, 1)), full_like(before, 0))
    old = _taken(arr, of_old, axis)
    new = _taken(_taken(values, rank, axis), of_new, axis)
    mask = shaping.broadcast_in_dim(
        comparing.ne(taken, full_like(taken, 0)), typeof(old).shape, (axis,)
    )
    return process(select_n_p, (mask, old, new), {})


@like(np.insert)
def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
    """An array with values inserted along an axis, each before the part that has its index.

    `obj` is an integer or an array of integers, which may be traced, or a slice; booleans are not
    masks but numbers.
    """
    check_arraylike("insert", arr, 0 if isinstance(obj, slice) else obj, values)
    arr, axis = _flat(arr, axis)
    if isinstance(obj, slice):
        obj = np.arange(*obj.indices(typeof(arr).shape[axis]), dtype=np.int32)
    aval = typeof(obj)
    if not issubdtype(aval.dtype, np.integer):
        raise ValueError(f"jnp.insert(): index array must be integer typed; got {obj}")
    if aval.ndim > 1:
        raise ValueError("jnp.insert(): obj must be a slice, a one-dimensional array, or a scalar.")
    if aval.shape == (1,):
        obj = obj[0] if isinstance(obj, np.ndarray) else shaping.reshape(obj, ())
        # An array of one index takes the values as they are.
        values = creation.asarray(values)
        ndim = typeof(arr).ndim
        if typeof(values).ndim:
            values = shaping.broadcast_to_rank(values, ndim)
            values = shaping.transpose(
                values, (axis, *[i for i in range(ndim) if i != axis])
            )
    if isinstance(obj, int):
        obj = operator.index(obj)
    return _insert(arr, obj, values, axis)
