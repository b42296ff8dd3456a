"""Reading and writing of elements by index along an axis: take, put, place."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hlofront.base.dtypes import issubdtype, python_scalar_dtype
from hlofront.base.elements import bool_
from hlofront.base.typing import Array, ArrayLike, Axis
from hlofront.core.aval import typeof
from hlofront.core.sizes.dimensions import canonical_axis
from hlofront.numpy.arrays.shape import as_array, static_axes
from hlofront.numpy.elementwise.ufuncs import refuse_out
from hlofront.numpy.indexing.entries import from_start, int32
from hlofront.numpy.indexing.selecting import (
    clamped,
    euclidean_remainder,
    in_dtype,
    take_rows,
    truth,
)
from hlofront.numpy.indexing.updating import AtIndex, static_fill_value
from hlofront.numpy.support import promotion
from hlofront.numpy.support.like import like
from hlofront.numpy.support.naming import named
from hlofront.numpy.support.promotion import as_operand, check_arraylike, with_shape
from hlofront.primitives.arrays import creation, cumulative, shaping, slicing
from hlofront.primitives.arrays.gathering import GatherDimensionNumbers, GatherScatterMode, gather
from hlofront.primitives.arrays.shaping import ascending, broadcast_shapes
from hlofront.primitives.elementwise import elementwise
from hlofront.primitives.elementwise.converting import convert
from hlofront.runtime.dispatch.operation import operation

_FILL = GatherScatterMode.FILL_OR_DROP


def as_indices(x: ArrayLike) -> ArrayLike:
    """Return an index as an array; host scalars become NumPy arrays."""
    x = as_operand(x)
    if isinstance(x, bool | np.bool_):
        x = int(x)
    if isinstance(x, int) and not isinstance(x, np.generic):
        return np.asarray(x, python_scalar_dtype(int))
    return np.asarray(x) if isinstance(x, np.generic) else x


def flattened(x: ArrayLike) -> Array:
    return shaping.reshape(x, (typeof(x).size,))


def is_integer(dtype: np.dtype) -> bool:
    return issubdtype(dtype, np.integer)


# ---- take --------------------------------------------------------------------------------------


@operation(static_argnames=("axis", "mode", "unique", "ascend", "fill_value"))
def _take(
    a: ArrayLike,
    indices: ArrayLike,
    axis: Axis,
    mode: str | None,
    unique: bool,
    ascend: bool,
    fill_value: ArrayLike | None,
) -> Array:
    check_arraylike("take", a, indices)
    a, indices = as_operand(a), as_indices(indices)
    dtype = typeof(indices).dtype
    if dtype == bool_:
        indices, dtype = convert(indices, int32, False), int32
    if not is_integer(dtype):
        raise ValueError(f"indices must have an integer type, got {dtype}")
    if axis is None:
        a, axis = flattened(a), 0
    shape, index_shape = typeof(a).shape, typeof(indices).shape
    axis = canonical_axis(axis, len(shape))
    before, size, after = shape[:axis], shape[axis], shape[axis + 1 :]
    if not typeof(indices).size:
        return creation.full_like(a, 0, shape=(*before, *index_shape, *after))
    if not size:
        raise IndexError(
            f"Cannot do a non-empty jnp.take() from an empty axis: axis {axis} of shape {shape}"
        )
    if mode == "wrap":
        indices = euclidean_remainder(indices, size)
        mode = "promise_in_bounds"
    elif mode != "clip":
        indices = from_start(indices, size)
    rank = len(index_shape)
    return gather(
        a,
        shaping.broadcast_in_dim(indices, (*index_shape, 1), ascending(rank)),
        GatherDimensionNumbers(
            tuple([i if i < axis else i + rank for i in range(len(shape) - 1)]), (axis,), (axis,)
        ),
        (*before, 1, *after),
        unique_indices=unique,
        indices_are_sorted=ascend,
        mode=_FILL if mode is None else mode,
        fill_value=fill_value if mode in (None, "fill") else None,
    )


@like(np.take)
def take(
    a: ArrayLike,
    indices: ArrayLike,
    axis: Axis = None,
    out: None = None,
    mode: str | GatherScatterMode | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Take slices at indices along an axis, or elements of the flattened array.

    Args:
      a: an array.
      indices: integers, of any shape. Negative ones count from the end, except with mode "clip".
      axis: the axis to read along.
      out: must be None.
      mode: the value read out of bounds: "fill", the default, fills in `fill_value`; "wrap" takes
        indices modulo the size of the axis; "clip" reads the nearest element.
      unique_indices: a promise that no index occurs twice. It is not checked.
      indices_are_sorted: a promise that the indices ascend. It is not checked.
      fill_value: by default NaN, or the least integer of a signed and the greatest of an unsigned
        dtype, or True.

    Raises:
      ValueError: if the indices are not integers, or the mode is unknown.
      IndexError: if the axis is empty, and the indices are not.

    Example:
      >>> jnp.take(jnp.array([10, 20, 30]), jnp.array([2, 0]))
      Array([30, 10], dtype=int32)
    """
    refuse_out("take", out)
    if mode not in (None, "fill", "wrap", "clip"):
        if mode == "raise":
            raise NotImplementedError(  # JAX raises this class.
                "The 'raise' mode to jnp.take is not supported: a device cannot raise errors. Use "
                "'fill', 'wrap' or 'clip'."
            )
        raise ValueError(f"Invalid mode {mode!r} for np.take: expected 'fill', 'wrap' or 'clip'")
    if fill_value is not None:
        fill_value = static_fill_value(fill_value)
    return _take(
        a, indices, static_axes(axis), mode, unique_indices, indices_are_sorted, fill_value
    )


# ---- along an axis -----------------------------------------------------------------------------


@operation(static_argnames=("axis", "mode", "fill_value", "wrap"), nested=True)
@named("take_along_axis")
def _take_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    axis: Axis,
    mode: GatherScatterMode | None,
    fill_value: ArrayLike | None,
    wrap: bool,
) -> Array:
    name = "take_along_axis"
    check_arraylike(name, arr, indices)
    arr, indices = as_operand(arr), as_indices(indices)
    _check_indices(name, indices)
    if axis is None:
        if typeof(indices).ndim != 1:
            raise ValueError(
                f"{name} indices must be 1D if axis=None, got shape {typeof(indices).shape}"
            )
        arr, axis = flattened(arr), 0
    shape, index_shape = typeof(arr).shape, typeof(indices).shape
    if len(index_shape) != len(shape):
        raise ValueError(
            "indices and arr must have the same number of dimensions; "
            f"{len(index_shape)} vs. {len(shape)}"
        )
    axis = canonical_axis(axis, len(shape))
    # The other axes broadcast.
    result_shape = list(broadcast_shapes(_but(index_shape, axis), _but(shape, axis)))
    result_shape[axis] = index_shape[axis]
    if not shape[axis]:
        return creation.full(result_shape, 0, typeof(arr).dtype)
    if 0 in result_shape:
        return creation.full_like(arr, 0, shape=result_shape)
    if wrap:
        indices = from_start(indices, shape[axis])
    # Each axis is either indexed, a batch axis of both, or an axis of only the array or only the
    # indices.
    offset, collapsed, sizes, batch, batch_of_indices, gather_shape = [], [], [], [], [], []
    for i, (size, other) in enumerate(zip(shape, index_shape, strict=True)):
        if i == axis:
            collapsed.append(i)
        elif size == other != 1:
            batch.append(i)
            batch_of_indices.append(len(gather_shape))
        elif other == 1:
            offset.append(i)
            sizes.append(size)
            continue
        else:
            collapsed.append(i)
        sizes.append(1)
        gather_shape.append(other)
    return gather(
        arr,
        shaping.reshape(indices, (*gather_shape, 1)),
        GatherDimensionNumbers(
            tuple(offset), tuple(collapsed), (axis,), tuple(batch), tuple(batch_of_indices)
        ),
        tuple(sizes),
        mode=_FILL if mode is None else mode,
        fill_value=fill_value if mode in (None, _FILL) else None,
    )


def _but(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return (*shape[:axis], 1, *shape[axis + 1 :])


def _check_indices(name: str, indices: ArrayLike) -> None:
    dtype = typeof(indices).dtype
    if not is_integer(dtype):
        raise TypeError(f"{name} indices must be of integer type, got {dtype}")


@like(np.take_along_axis)
def take_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    axis: int | None = -1,
    mode: str | GatherScatterMode | None = None,
    fill_value: ArrayLike | None = None,
    *,
    wrap_negative_indices: bool | None = None,
) -> Array:
    """Take elements along an axis, at separate indices for each position along the other axes.

    Args:
      arr: an array.
      indices: integers, of as many axes; those other than `axis` broadcast with `arr`.
      axis: the axis to read along; None for the flattened array and indices of one axis.
      mode: the value read out of bounds: "fill", the default, fills in `fill_value`; "clip" reads
        the nearest element; "promise_in_bounds" promises that none is. Or a
        `lax.GatherScatterMode`.
      fill_value: see `take`.
      wrap_negative_indices: whether negative indices count from the end; by default they do,
        except with "promise_in_bounds".

    Raises:
      TypeError: if the indices are not integers.
      ValueError: if the shapes do not broadcast.

    Example:
      >>> jnp.take_along_axis(jnp.array([[3, 1]]), jnp.array([[1, 0]]), axis=1)
      Array([[1, 3]], dtype=int32)
    """
    if mode is not None:
        mode = GatherScatterMode.from_any(mode).chosen
    if fill_value is not None:
        fill_value = static_fill_value(fill_value)
    wrap = wrap_negative_indices
    if wrap is None:
        # Negative indices are out of bounds: the caller promises that none occur.
        wrap = mode != GatherScatterMode.PROMISE_IN_BOUNDS
    return _take_along_axis(arr, indices, static_axes(axis), mode, fill_value, wrap)


@operation(static_argnames=("axis", "mode"))
def _put_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    values: ArrayLike,
    axis: Axis,
    mode: str | GatherScatterMode | None,
) -> Array:
    name = "put_along_axis"
    check_arraylike(name, arr, indices, values)
    arr, indices = as_array(as_operand(arr)), as_indices(indices)
    _check_indices(name, indices)
    full_shape = typeof(arr).shape
    if axis is None:
        arr, axis = flattened(arr), 0
    shape, index_shape = typeof(arr).shape, typeof(indices).shape
    if len(index_shape) != len(shape):
        raise ValueError(
            f"put_along_axis arguments 'arr' and 'indices' must have same ndim. Got {len(shape)} "
            f"and {len(index_shape)}."
        )
    axis = canonical_axis(axis, len(shape))
    result_shape = list(broadcast_shapes(_but(index_shape, axis), _but(shape, axis)))
    result_shape[axis] = index_shape[axis]
    if result_shape != [size if i != axis else index_shape[axis] for i, size in enumerate(shape)]:
        raise ValueError(
            f"put_along_axis indices of shape {index_shape} do not fit into shape {shape}"
        )
    if 0 in result_shape:
        return shaping.reshape(arr, full_shape)
    index = [
        as_array(with_shape(indices, index_shape, tuple(result_shape)))
        if i == axis
        else creation.broadcasted_iota(int32, result_shape, i)
        for i in range(len(shape))
    ]
    return shaping.reshape(AtIndex(arr, tuple(index)).set(values, mode=mode), full_shape)


@like(np.put_along_axis)
def put_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    values: ArrayLike,
    axis: int | None,
    inplace: bool = True,
    *,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """Write values at indices along an axis, at the elements that take_along_axis reads.

    Args:
      arr: an array.
      indices: integers, of as many axes; those other than `axis` broadcast with `arr`.
      values: an array that broadcasts with the indices.
      axis: the axis to write along; None for the flattened array.
      inplace: must be False: arrays are immutable.
      mode: the treatment of indices out of bounds, the option `mode` of `x.at[index].set`.

    Example:
      >>> x, i = jnp.zeros((2, 3), int), jnp.array([[2], [0]])
      >>> jnp.put_along_axis(x, i, 7, axis=1, inplace=False)
      Array([[0, 0, 7],
             [7, 0, 0]], dtype=int32)
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
def _put(a: ArrayLike, ind: ArrayLike, v: ArrayLike, mode: str | None) -> Array:
    check_arraylike("put", a, ind, v)
    a, ind = as_array(as_operand(a)), as_indices(ind)
    ind, v = flattened(ind), flattened(as_operand(v))
    if typeof(ind).dtype == bool_:
        # Here booleans are the positions 0 and 1 rather than a mask, as in NumPy.
        ind = in_dtype(ind, int32)
    count = typeof(ind).size
    if not typeof(a).size or not count or not typeof(v).size:
        return a
    if mode == "wrap":
        ind = euclidean_remainder(ind, typeof(a).size)
    elif mode == "clip":
        ind = clamped(ind, 0, typeof(a).size - 1)
    v = in_dtype(cycled(v, count), typeof(a).dtype)
    flat = AtIndex(flattened(a), as_array(ind)).set(v, mode="clip")
    return shaping.reshape(flat, typeof(a).shape)


def cycled(v: Array, count: int) -> Array:
    """Return `count` elements of a vector, restarting after its last element."""
    size = typeof(v).size
    if size == count:
        return v
    if size < count:
        v = slicing.concatenate([v] * -(-count // size), 0)
    return slicing.slice_in_dim(v, 0, count)


@like(np.put)
def put(
    a: ArrayLike, ind: ArrayLike, v: ArrayLike, mode: str | None = None, *, inplace: bool = True
) -> Array:
    """Write values at indices of the flattened array; too few values are repeated.

    Args:
      a: an array.
      ind: integers.
      v: values.
      mode: treatment out of bounds: "clip" writes at the nearest, which is the first one for
        negative indices; "wrap" takes indices modulo the size. By default negative ones count from
        the end, and others are clipped.
      inplace: must be False: arrays are immutable.

    Example:
      >>> jnp.put(jnp.zeros((2, 2), int), jnp.array([0, 3]), jnp.array([7, 8]), inplace=False)
      Array([[7, 0],
             [0, 8]], dtype=int32)
    """
    _refuse_inplace("put", inplace)
    if mode == "raise":
        raise NotImplementedError(  # JAX raises this class.
            "The 'raise' mode to jnp.put is not supported: a device cannot raise errors. Use "
            "'wrap' or 'clip'."
        )
    if mode not in (None, "wrap", "clip"):
        raise ValueError(f"mode should be one of 'wrap' or 'clip'; got {mode!r}")
    return _put(a, ind, v, mode)


@operation
def _write_where(arr: ArrayLike, mask: ArrayLike, vals: ArrayLike) -> Array:
    check_arraylike("place", arr, mask, vals)
    arr, mask, vals = as_operand(arr), as_operand(mask), as_operand(vals)
    if typeof(arr).size != typeof(mask).size:
        raise ValueError(
            "place: arr and mask must be the same size, got shapes "
            f"{typeof(arr).shape} and {typeof(mask).shape}"
        )
    vals = flattened(vals)
    count = typeof(vals).size
    if not count:
        raise ValueError("Cannot place values from an empty array")
    if not typeof(arr).size:
        return as_array(arr)
    flat = flattened(truth(mask))
    # The n-th true element receives the n-th value.
    before = elementwise.sub(cumulative.cumsum(convert(flat, int32, False), 0), np.int32(1))
    chosen = take_rows(vals, euclidean_remainder(before, count), 0)
    chosen = in_dtype(chosen, typeof(arr).dtype, typeof(arr).weak_type)
    return shaping.reshape(
        promotion.choose("place", flat, chosen, flattened(arr)), typeof(arr).shape
    )


@like(np.place)
def place(arr: ArrayLike, mask: ArrayLike, vals: ArrayLike, *, inplace: bool = True) -> Array:
    """Write values, in order, where a mask is true; too few values are repeated.

    `inplace` must be False: arrays are immutable.

    Example:
      >>> x = jnp.arange(4)
      >>> jnp.place(x, x != 1, jnp.array([7, 8]), inplace=False)
      Array([7, 1, 8, 7], dtype=int32)
    """
    _refuse_inplace("place", inplace)
    return _write_where(arr, mask, vals)


@operation
def _fill_diagonal(a: ArrayLike, val: ArrayLike) -> Array:
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
    val = in_dtype(cycled(flattened(as_operand(val)), count), typeof(a).dtype)
    steps = np.arange(count, dtype=np.int32)
    return AtIndex(a, (steps,) * len(shape)).set(val, unique_indices=True)


@like(np.fill_diagonal)
def fill_diagonal(
    a: ArrayLike, val: ArrayLike, wrap: bool = False, *, inplace: bool = True
) -> Array:
    """Write values on the main diagonal of an array; too few values are repeated.

    `inplace` must be False, as arrays are immutable, and `wrap` as well.

    Example:
      >>> jnp.fill_diagonal(jnp.zeros((2, 3), int), jnp.array([7, 8]), inplace=False)
      Array([[7, 0, 0],
             [0, 8, 0]], dtype=int32)
    """
    if inplace:
        raise NotImplementedError(  # JAX raises this class.
            "JAX arrays are immutable, must use inplace=False"
        )
    if wrap:
        raise NotImplementedError(  # JAX raises this class.
            "wrap=True is not implemented, must use wrap=False: begin a second diagonal with "
            "a[n + 1:]"
        )
    return _fill_diagonal(a, val)


ARRAY_METHODS: dict[str, Callable[..., Array]] = {"take": take}
