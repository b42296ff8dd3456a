"""Taking elements by index, and putting others in their place: take, put, insert, delete."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from hlofront.base.dtypes import issubdtype, python_scalar_dtype
from hlofront.core.aval import typeof
from hlofront.core.dimensions import canonical_axis
from hlofront.core.trace import Tracer
from hlofront.numpy import promotion
from hlofront.numpy.index_entries import from_start, int32
from hlofront.numpy.like import like
from hlofront.numpy.promotion import as_operand, check_arraylike, with_shape
from hlofront.numpy.selecting import (
    euclidean_remainder,
    host_value,
    in_dtype,
    take_rows,
    true_positions,
    truth,
)
from hlofront.numpy.shape import as_array, static_axes
from hlofront.numpy.ufuncs import refuse_out
from hlofront.numpy.updating import AtIndex, static_fill_value
from hlofront.primitives import (
    creating,
    cumulative,
    elementwise,
    shaping,
    slicing,
    sorting,
)
from hlofront.primitives.converting import convert
from hlofront.primitives.gathering import GatherDimensionNumbers, GatherScatterMode, gather
from hlofront.primitives.scattering import ScatterDimensionNumbers, scatter
from hlofront.primitives.shaping import ascending, broadcast_shapes
from hlofront.runtime.operation import operation

_bool = np.dtype(np.bool_)
_FILL = GatherScatterMode.FILL_OR_DROP


def _as_indices(x: Any) -> Any:
    """Indices as an array: scalars of the host as one of NumPy."""
    x = as_operand(x)
    if isinstance(x, bool | np.bool_):
        x = int(x)
    if isinstance(x, int) and not isinstance(x, np.generic):
        return np.asarray(x, python_scalar_dtype(int))
    return np.asarray(x) if isinstance(x, np.generic) else x


def _flattened(x: Any) -> Any:
    return shaping.reshape(x, (typeof(x).size,))


def _is_integer(dtype: Any) -> bool:
    return issubdtype(dtype, np.integer)


# ---- take --------------------------------------------------------------------------------------


@operation(static_argnames=("axis", "mode", "unique", "ascend", "fill_value"))
def _take(a, indices, axis, mode, unique, ascend, fill_value):
    check_arraylike("take", a, indices)
    a, indices = as_operand(a), _as_indices(indices)
    dtype = typeof(indices).dtype
    if dtype == _bool:
        indices, dtype = convert(indices, int32, False), int32
    if not _is_integer(dtype):
        raise ValueError(f"indices must have an integer type, got {dtype}")
    if axis is None:
        a, axis = _flattened(a), 0
    shape, given = typeof(a).shape, typeof(indices).shape
    axis = canonical_axis(axis, len(shape))
    before, size, after = shape[:axis], shape[axis], shape[axis + 1 :]
    if not size:
        if typeof(indices).size:
            raise IndexError(
                f"Cannot do a non-empty jnp.take() from an empty axis: axis {axis} of shape {shape}"
            )
        return creating.full((*before, *given, *after), 0, typeof(a).dtype)
    if mode == "wrap":
        indices = euclidean_remainder(indices, size)
        mode = "promise_in_bounds"
    elif mode != "clip":
        indices = from_start(indices, size)
    rank = len(given)
    return gather(
        a,
        shaping.broadcast_in_dim(indices, (*given, 1), ascending(rank)),
        GatherDimensionNumbers(
            tuple([i if i < axis else i + rank for i in range(len(shape) - 1)]), (axis,), (axis,)
        ),
        (*before, 1, *after),
        unique_indices=unique,
        indices_are_sorted=ascend,
        mode=mode,
        fill_value=fill_value if mode == "fill" else None,
    )


@like(np.take)
def take(
    a: Any,
    indices: Any,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: Any = None,
) -> Any:
    """The slices at indices along an axis; without an axis, elements of the flattened array.

    Args:
      a: an array.
      indices: integers, of any shape. Negative ones count from the end, except by mode "clip".
      axis: along which to take.
      out: None.
      mode: what is read out of bounds: "fill", the default, fills in `fill_value`; "wrap" takes
        indices modulo the size of the axis; "clip" reads what is nearest.
      unique_indices: a promise that no index is given twice. It is not checked.
      indices_are_sorted: a promise that the indices ascend. It is not checked.
      fill_value: by default NaN, or the least integer of a signed and the greatest of an unsigned
        dtype, or True.

    Raises:
      ValueError: if the indices are no integers, or the mode is unknown.
      IndexError: if the axis is empty, and the indices are not.
    """
    refuse_out("take", out)
    if mode is None:
        mode = "fill"
    elif mode not in ("fill", "wrap", "clip"):
        if mode == "raise":
            raise NotImplementedError(  # the class that JAX raises
                "The 'raise' mode to jnp.take is not supported: a device cannot raise errors. Use "
                "'fill', 'wrap' or 'clip'."
            )
        raise ValueError(f"Invalid mode {mode!r} for np.take: wanted 'fill', 'wrap' or 'clip'")
    if fill_value is not None:
        fill_value = static_fill_value(fill_value)
    axis = static_axes(axis)
    return _take(a, indices, axis, mode, unique_indices, indices_are_sorted, fill_value)


# ---- along an axis -----------------------------------------------------------------------------


@operation(static_argnames=("axis", "mode", "fill_value", "wrap"))
def _take_along_axis(arr, indices, axis, mode, fill_value, wrap):
    name = "take_along_axis"
    check_arraylike(name, arr, indices)
    arr, indices = as_operand(arr), _as_indices(indices)
    _check_indices(name, indices)
    if axis is None:
        if typeof(indices).ndim != 1:
            raise ValueError(
                f"{name} indices must be 1D if axis=None, got shape {typeof(indices).shape}"
            )
        arr, axis = _flattened(arr), 0
    shape, given = typeof(arr).shape, typeof(indices).shape
    if len(given) != len(shape):
        raise ValueError(
            "indices and arr must have the same number of dimensions; "
            f"{len(given)} vs. {len(shape)}"
        )
    axis = canonical_axis(axis, len(shape))
    # The other axes broadcast.
    wanted = list(broadcast_shapes((*given[:axis], 1, *given[axis + 1 :]), _but(shape, axis)))
    wanted[axis] = given[axis]
    if not shape[axis] or 0 in wanted:
        return creating.full(wanted, 0, typeof(arr).dtype)
    if wrap:
        indices = from_start(indices, shape[axis])
    # Each axis is one of these: looked up, a batch of both, of the array alone, or of the indices.
    offset, collapsed, sizes, batch, batch_of_indices, index_shape = [], [], [], [], [], []
    for i, (size, other) in enumerate(zip(shape, given, strict=True)):
        if i == axis:
            collapsed.append(i)
        elif size == other != 1:
            batch.append(i)
            batch_of_indices.append(len(index_shape))
        elif other == 1:
            offset.append(i)
            sizes.append(size)
            continue
        else:
            collapsed.append(i)
        sizes.append(1)
        index_shape.append(other)
    return gather(
        arr,
        shaping.reshape(indices, (*index_shape, 1)),
        GatherDimensionNumbers(
            tuple(offset), tuple(collapsed), (axis,), tuple(batch), tuple(batch_of_indices)
        ),
        tuple(sizes),
        mode=mode,
        fill_value=fill_value if mode is _FILL else None,
    )


def _but(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return (*shape[:axis], 1, *shape[axis + 1 :])


def _check_indices(name: str, indices: Any) -> None:
    dtype = typeof(indices).dtype
    if not _is_integer(dtype):
        raise TypeError(f"{name} indices must be of integer type, got {dtype}")


@like(np.take_along_axis)
def take_along_axis(
    arr: Any,
    indices: Any,
    axis: int | None = -1,
    mode: Any = None,
    fill_value: Any = None,
    *,
    wrap_negative_indices: bool | None = None,
) -> Any:
    """Elements along an axis, at indices of their own for each position along the other axes.

    Args:
      arr: an array.
      indices: integers, of as many axes; those other than `axis` broadcast with `arr`.
      axis: along which to take; None for the flattened array and indices of one axis.
      mode: what is read out of bounds: "fill", the default, fills in `fill_value`; "clip" reads
        what is nearest; "promise_in_bounds" promises that none is. Or a `lax.GatherScatterMode`.
      fill_value: as of take.
      wrap_negative_indices: whether negative indices count from the end, as they do by default.

    Raises:
      TypeError: if the indices are no integers.
      ValueError: if the shapes do not broadcast.
    """
    mode = _FILL if mode is None else GatherScatterMode.from_any(mode)
    if fill_value is not None:
        fill_value = static_fill_value(fill_value)
    wrap = wrap_negative_indices is not False
    return _take_along_axis(arr, indices, static_axes(axis), mode, fill_value, wrap)


@operation(static_argnames=("axis", "mode"))
def _put_along_axis(arr, indices, values, axis, mode):
    name = "put_along_axis"
    check_arraylike(name, arr, indices, values)
    arr, indices = as_array(as_operand(arr)), _as_indices(indices)
    _check_indices(name, indices)
    full_shape = typeof(arr).shape
    if axis is None:
        arr, axis = _flattened(arr), 0
    shape, given = typeof(arr).shape, typeof(indices).shape
    if len(given) != len(shape):
        raise ValueError(
            f"put_along_axis arguments 'arr' and 'indices' must have same ndim. Got {len(shape)} "
            f"and {len(given)}."
        )
    axis = canonical_axis(axis, len(shape))
    wanted = list(broadcast_shapes(_but(given, axis), _but(shape, axis)))
    wanted[axis] = given[axis]
    if wanted != [size if i != axis else given[axis] for i, size in enumerate(shape)]:
        raise ValueError(f"put_along_axis indices of shape {given} do not fit into shape {shape}")
    if 0 in wanted:
        return shaping.reshape(arr, full_shape)
    index = [
        as_array(with_shape(indices, given, tuple(wanted)))
        if i == axis
        else creating.broadcasted_iota(int32, wanted, i)
        for i in range(len(shape))
    ]
    return shaping.reshape(AtIndex(arr, tuple(index)).set(values, mode=mode), full_shape)


@like(np.put_along_axis)
def put_along_axis(
    arr: Any,
    indices: Any,
    values: Any,
    axis: int | None,
    inplace: bool = True,
    *,
    mode: str | None = None,
) -> Any:
    """The array with values at indices along an axis: what take_along_axis reads is written.

    Args:
      arr: an array.
      indices: integers, of as many axes; those other than `axis` broadcast with `arr`.
      values: what broadcasts with the indices.
      axis: along which to put; None for the flattened array.
      inplace: must be False: arrays are immutable.
      mode: what happens out of bounds, as of `x.at[index].set`.
    """
    _refuse_inplace("put_along_axis", inplace)
    return _put_along_axis(arr, indices, values, static_axes(axis), mode)


def _refuse_inplace(name: str, inplace: bool) -> None:
    if inplace:
        raise ValueError(
            f"jax.numpy.{name} cannot modify arrays in-place, because JAX arrays are immutable. "
            "Pass inplace=False to instead return an updated array."
        )


# ---- put and place -----------------------------------------------------------------------------


@operation(static_argnames=("mode",))
def _put(a, ind, v, mode):
    check_arraylike("put", a, ind, v)
    a, ind = as_array(as_operand(a)), _as_indices(ind)
    ind, v = _flattened(ind), _flattened(as_operand(v))
    count = typeof(ind).size
    if not typeof(a).size or not count or not typeof(v).size:
        return a
    if mode == "wrap":
        ind = euclidean_remainder(ind, typeof(a).size)
    v = in_dtype(cycled(v, count), typeof(a).dtype)
    flat = AtIndex(_flattened(a), as_array(ind)).set(v, mode="clip")
    return shaping.reshape(flat, typeof(a).shape)


def cycled(v: Any, count: int) -> Any:
    """So many elements of an array of one axis: after the last one comes the first again."""
    size = typeof(v).size
    if size == count:
        return v
    if size < count:
        v = slicing.concatenate([v] * -(-count // size), 0)
    return slicing.slice_in_dim(v, 0, count)


@like(np.put)
def put(a: Any, ind: Any, v: Any, mode: str | None = None, *, inplace: bool = True) -> Any:
    """The array with values at indices of its flattened form; values are repeated if too few.

    Args:
      a: an array.
      ind: integers.
      v: values.
      mode: what happens out of bounds: "clip", the default, puts at the nearest; "wrap" takes
        indices modulo the size. By both, negative indices count from the end.
      inplace: must be False: arrays are immutable.
    """
    _refuse_inplace("put", inplace)
    if mode == "raise":
        raise NotImplementedError(  # the class that JAX raises
            "The 'raise' mode to jnp.put is not supported: a device cannot raise errors. Use "
            "'wrap' or 'clip'."
        )
    if mode not in (None, "wrap", "clip"):
        raise ValueError(f"mode should be one of 'wrap' or 'clip'; got {mode!r}")
    return _put(a, ind, v, mode)


@operation
def _place(arr, mask, vals):
    check_arraylike("place", arr, mask, vals)
    arr, mask, vals = as_operand(arr), as_operand(mask), as_operand(vals)
    if typeof(arr).size != typeof(mask).size:
        raise ValueError(
            "place: arr and mask must be the same size, got shapes "
            f"{typeof(arr).shape} and {typeof(mask).shape}"
        )
    vals = _flattened(vals)
    count = typeof(vals).size
    if not count:
        raise ValueError("Cannot place values from an empty array")
    if not typeof(arr).size:
        return as_array(arr)
    flat = _flattened(truth(mask))
    # The value for the n-th true element is the n-th one.
    before = elementwise.sub(cumulative.cumsum(convert(flat, int32, False), 0), np.int32(1))
    chosen = take_rows(vals, euclidean_remainder(before, count), 0)
    chosen = in_dtype(chosen, typeof(arr).dtype)
    return shaping.reshape(
        promotion.choose("place", flat, chosen, _flattened(arr)), typeof(arr).shape
    )


@like(np.place)
def place(arr: Any, mask: Any, vals: Any, *, inplace: bool = True) -> Any:
    """The array with values where a mask is true, in order, repeated if they are too few.

    `inplace` must be False: arrays are immutable.
    """
    _refuse_inplace("place", inplace)
    return _place(arr, mask, vals)


@operation
def _fill_diagonal(a, val):
    check_arraylike("fill_diagonal", a, val)
    a = as_array(as_operand(a))
    shape = typeof(a).shape
    if len(shape) < 2:
        raise ValueError(f"array must be at least 2-d, got shape {shape}")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise ValueError(f"All dimensions of input must be of equal length, got shape {shape}")
    count = min(shape)
    if not count or not typeof(val).size:
        return a
    val = in_dtype(cycled(_flattened(as_operand(val)), count), typeof(a).dtype)
    steps = np.arange(count, dtype=np.int32)
    return AtIndex(a, (steps,) * len(shape)).set(val, unique_indices=True)


@like(np.fill_diagonal)
def fill_diagonal(a: Any, val: Any, wrap: bool = False, *, inplace: bool = True) -> Any:
    """The array with values on its main diagonal; those of an array are repeated if too few.

    `inplace` must be False, as arrays are immutable, and `wrap` as well.
    """
    if inplace:
        raise NotImplementedError(  # the class that JAX raises
            "JAX arrays are immutable, must use inplace=False"
        )
    if wrap:
        raise NotImplementedError(  # the class that JAX raises
            "wrap=True is not implemented, must use wrap=False: begin a second diagonal with "
            "a[n + 1:]"
        )
    return _fill_diagonal(a, val)


# ---- insert and delete -------------------------------------------------------------------------


@operation(static_argnames=("axis",))
def _insert(arr, indices, values, axis):
    """Values before the elements that were at indices, which are of one axis or scalar."""
    shape = typeof(arr).shape
    n = shape[axis]
    values = in_dtype(values, typeof(arr).dtype)
    given = typeof(values).shape
    values = shaping.reshape(values, (1,) * (len(shape) - len(given)) + given)
    if not typeof(indices).ndim:
        values = _to_axis(values, axis)
    count = typeof(indices).size
    if not typeof(indices).ndim or count == 1:
        count = typeof(values).shape[axis]
        indices = shaping.broadcast_in_dim(shaping.reshape(indices, ()), (count,), ())
    wanted = (*shape[:axis], count, *shape[axis + 1 :])
    values = with_shape(values, typeof(values).shape, wanted)
    indices = elementwise.clamp(
        np.int32(0), from_start(convert(indices, int32, False), n), np.int32(n)
    )
    # A stable sort of where they belong: inserted ones, which are first here, come first.
    where = slicing.concatenate([indices, creating.iota(int32, n)], 0)
    order = sorting.sort_key_val(where, creating.iota(int32, count + n))[1]
    return take_rows(slicing.concatenate([values, arr], axis), order, axis)


def _to_axis(values: Any, axis: int) -> Any:
    """Move the first axis to where `axis` is."""
    order = [*range(1, axis + 1), 0, *range(axis + 1, typeof(values).ndim)]
    return shaping.transpose(values, order) if axis else values


@like(np.insert)
def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
    """Insert values along an axis, or into the flattened array, before the elements at indices.

    Args:
      arr: an array.
      obj: an integer, an array of integers of one axis, or a slice. Those out of bounds are moved
        to the nearest.
      values: what broadcasts to the slices that are inserted; in the dtype of the array.
      axis: along which to insert.

    Raises:
      ValueError: if the indices are no integers, or have more axes than one.
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
        indices: Any = np.arange(*obj.indices(typeof(arr).shape[axis]), dtype=np.int32)
    else:
        indices = _as_indices(obj)
    aval = typeof(indices)
    if not _is_integer(aval.dtype):
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
def _ravelled(arr):
    return _flattened(arr)


@operation(static_argnames=("axis",))
def _deleted(arr, indices, axis):
    """All but the slices at indices of one axis, none of which is given twice."""
    n = typeof(arr).shape[axis]
    (count,) = typeof(indices).shape
    indices = from_start(convert(indices, int32, False), n)
    kept = scatter(
        creating.full((n,), True, _bool),
        shaping.reshape(indices, (count, 1)),
        creating.full((count,), False, _bool),
        ScatterDimensionNumbers((), (0,), (0,)),
        mode="drop",
    )
    return take_rows(arr, true_positions(kept, n - count, n), axis)


_rows_at = operation(take_rows, static_argnames=("axis",))


@like(np.delete)
def delete(
    arr: Any, obj: Any, axis: int | None = None, *, assume_unique_indices: bool = False
) -> Any:
    """All but the slices at indices along an axis, or elements of the flattened array.

    Args:
      arr: an array.
      obj: an integer, integers, a slice, or a mask of the size of the axis. It must be known while
        tracing, unless the indices are unique.
      axis: along which to delete.
      assume_unique_indices: a promise that no index is given twice, nor is out of bounds. The shape
        of the result is then known where `obj` is traced.

    Raises:
      IndexError: if an index is out of bounds.
      ValueError: if `obj` holds neither integers nor booleans, or a mask has another size.
      ConcretizationTypeError: if it is traced, without that promise.
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
        if not _is_integer(dtype) and dtype != _bool:
            raise ValueError(
                f"np.delete(arr, obj): got obj.dtype={dtype}; must be integer or bool."
            )
        if assume_unique_indices and isinstance(obj, Tracer) and dtype != _bool:
            return _deleted(arr, _ravelled(obj), axis)
    kept = np.ones(n, np.bool_)
    if isinstance(obj, slice):
        kept[obj] = False
    else:
        values = host_value(
            obj,
            "'obj' array argument of jnp.delete(). Indices that are traced must be unique: "
            "say so with assume_unique_indices=True.",
        )
        if values.dtype == _bool and values.shape != (n,):
            raise ValueError(
                "np.delete(arr, obj): for boolean indices, obj must be one-dimensional with length "
                f"matching specified axis: got shape {values.shape} for size {n}."
            )
        if not values.ndim:
            values = np.asarray(canonical_axis_index(operator.index(values.item()), axis, n))
        kept[values] = False
    return _rows_at(arr, kept.nonzero()[0].astype(np.int32), axis)


def canonical_axis_index(index: int, axis: int, size: int) -> int:
    """One index along an axis, checked.

    Raises the ValueError and IndexError that JAX raises if it is out of bounds.
    """
    if -size <= index < size:
        return index
    raise np.exceptions.AxisError(f"index {index} is out of bounds for axis {axis} of size {size}")


def _method_take(
    self: Any,
    indices: Any,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: Any = None,
) -> Any:
    """The slices at indices along an axis."""
    return take(self, indices, axis, out, mode, unique_indices, indices_are_sorted, fill_value)


_method_take.__name__ = "take"

ARRAY_METHODS: dict[str, Callable[..., Any]] = {"take": _method_take}
