"""Primitives that take arrays apart and put them together: slice, pad, concatenate, split."""

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from hlofront.base.dtypes import canonicalize_dtype, default_dtype, issubdtype
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.dimensions import (
    canonical_axis,
    canonical_shape,
    check_nonnegative,
    integers,
)
from hlofront.core.primitive import Primitive
from hlofront.core.rules import infer
from hlofront.core.trace import is_eager, process
from hlofront.primitives.comparing import lt_p, select_n_p
from hlofront.primitives.converting import convert_element_type
from hlofront.primitives.elementwise import add_p
from hlofront.primitives.families import check_same_dtypes
from hlofront.primitives.shaping import broadcast_in_dim, squeeze_p

# ---- slice ---------------------------------------------------------------------------------------

slice_p = Primitive("slice")


def slice(
    operand: Any,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Any:
    """The part of an array from a start up to, not including, a limit along each axis.

    Args:
      operand: the array.
      start_indices, limit_indices: one each per axis, `0 <= start <= limit <= size`.
      strides: every how manyth element is taken along each axis; None: every one.

    Raises:
      TypeError: if there is not one number per axis, or one is out of range or traced.
    """
    return process(
        slice_p,
        (operand,),
        {
            "start_indices": integers(start_indices, "start_indices of slice"),
            "limit_indices": integers(limit_indices, "limit_indices of slice"),
            "strides": None if strides is None else integers(strides, "strides of slice"),
        },
    )


@infer(slice_p)
def _(operand, *, start_indices, limit_indices, strides):
    shape = operand.shape
    for what, indices in (("start_indices", start_indices), ("limit_indices", limit_indices)):
        if len(indices) != len(shape):
            raise TypeError(
                f"slice {what} must have length equal to the number of dimensions of the operand, "
                f"got indices {indices} for operand shape {shape}."
            )
        check_nonnegative("slice", what, indices)
    if any(limit > size for limit, size in zip(limit_indices, shape, strict=True)):
        raise TypeError(
            "slice limit_indices must be less than or equal to operand shape, got limit_indices "
            f"{limit_indices} for operand shape {shape}."
        )
    if any(start > limit for start, limit in zip(start_indices, limit_indices, strict=True)):
        raise TypeError(
            "slice limit_indices must be greater than or equal to start_indices, got start_indices "
            f"{start_indices} and limit_indices {limit_indices}."
        )
    if strides is None:
        result = tuple([b - a for a, b in zip(start_indices, limit_indices, strict=True)])
        return ShapedArray(result, operand.dtype, operand.weak_type)
    if len(strides) != len(shape):
        raise TypeError(
            "slice strides must have length equal to the number of dimensions of the operand, got "
            f"strides {strides} for operand shape {shape}."
        )
    check_nonnegative("slice", "strides", strides)
    if 0 in strides:
        raise TypeError(f"slice strides must have every element be positive, got {strides}.")
    ranges = zip(start_indices, limit_indices, strides, strict=True)
    result = tuple([-((start - limit) // stride) for start, limit, stride in ranges])
    return ShapedArray(result, operand.dtype, operand.weak_type)


def slice_in_dim(
    operand: Any,
    start_index: int | None,
    limit_index: int | None,
    stride: int = 1,
    axis: int = 0,
) -> Any:
    """Slice along one axis; negative indices count from its end, and None is its start or end.

    Raises:
      IndexError: if there is no such axis.
      TypeError: if an index is out of range, unlike in Python.
    """
    shape = typeof(operand).shape
    axis = canonical_axis(axis, len(shape))
    size = shape[axis]
    start = 0 if start_index is None else operator.index(start_index)
    limit = size if limit_index is None else operator.index(limit_index)
    return process(
        slice_p,
        (operand,),
        {
            "start_indices": with_entry((0,) * len(shape), axis, start + size * (start < 0)),
            "limit_indices": with_entry(shape, axis, limit + size * (limit < 0)),
            "strides": with_entry((1,) * len(shape), axis, operator.index(stride)),
        },
    )


def with_entry(values: tuple[int, ...], axis: int, value: int) -> tuple[int, ...]:
    """These values, but for the one of an axis."""
    return (*values[:axis], value, *values[axis + 1 :])


def index_in_dim(operand: Any, index: int, axis: int = 0, keepdims: bool = True) -> Any:
    """Slice one index out of one axis; negative ones count from its end.

    Args:
      operand: the array.
      index: along the axis.
      axis: which.
      keepdims: whether the axis stays, with size 1.

    Raises:
      IndexError: if there is no such axis or index.
    """
    shape = typeof(operand).shape
    axis = canonical_axis(axis, len(shape))
    index, size = operator.index(index), shape[axis]
    if not -size <= index < size:
        raise IndexError(f"index {index} is out of bounds for axis {axis} with size {size}")
    index += size * (index < 0)
    result = slice_in_dim(operand, index, index + 1, 1, axis)
    return result if keepdims else process(squeeze_p, (result,), {"dimensions": (axis,)})


# ---- slices whose place is computed --------------------------------------------------------------

dynamic_slice_p = Primitive("dynamic_slice")


def dynamic_slice(
    operand: Any,
    start_indices: Any,
    slice_sizes: Any,
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Any:
    """The part of an array of these sizes, from a start that may be computed.

    A start from which the slice would not lie within the array is moved until it does.

    Args:
      operand: the array.
      start_indices: one integer per axis: a sequence of scalars, or an array of one axis. All of
        one dtype; Python's are of the default one.
      slice_sizes: the shape of the result.
      allow_negative_indices: whether negative starts count from the end of the axis, for all axes
        or for each. Where they cannot be negative, False saves the computation.

    Raises:
      TypeError: if an index is no integer or no scalar, or a size out of range.
      ValueError: if there is not one index per axis.
    """
    indices = _dynamic_indices(operand, start_indices, allow_negative_indices)
    return process(
        dynamic_slice_p, (operand, *indices), {"slice_sizes": canonical_shape(slice_sizes)}
    )


def _dynamic_indices(operand: Any, indices: Any, allow_negative: Any) -> list[Any]:
    """One scalar per axis of the operand; what may be negative is counted from the start."""
    shape = typeof(operand).shape
    ndim = getattr(indices, "ndim", None)
    if ndim is not None:
        if ndim != 1:
            raise (ValueError if ndim else TypeError)(f"Slice indices must be a 1D sequence, got {indices.shape}")
        count = indices.shape[0]
    else:
        count = len(indices)
    if count != len(shape):
        raise ValueError(
            f"Length of slice indices must match number of operand dimensions ({count} vs {shape})"
        )
    if ndim is not None and hasattr(indices, "aval"):
        indices = unstack(indices) if is_eager() else _members(indices)
    if allow_negative is True or allow_negative is False:
        return [_from_start(i, n, allow_negative) for i, n in zip(indices, shape, strict=True)]
    return [
        _from_start(i, n, allowed)
        for i, n, allowed in zip(indices, shape, allow_negative, strict=True)
    ]


def _members(array: Any) -> list[Any]:
    return [index_in_dim(array, i, 0, keepdims=False) for i in range(array.shape[0])]


def _from_start(index: Any, size: int, allow_negative: bool) -> Any:
    """An index along an axis of this size, counted from its start."""
    type_ = type(index)
    if type_ is int:
        return _static(index, default_dtype("i"), size, allow_negative)
    aval = typeof(index)
    dtype = aval.dtype
    if not hasattr(index, "aval") and not aval.shape and issubdtype(dtype, np.integer):
        return _static(int(index), dtype, size, allow_negative)
    if not allow_negative or not issubdtype(dtype, np.signedinteger):
        return index
    # The size may be beyond what the dtype holds: then both it and the sum wrap around.
    scalar_type = dtype.type
    negative = process(lt_p, (index, scalar_type(0)), {})
    if aval.weak_type:
        moved = convert_element_type(index, dtype)
    else:
        moved = index
    moved = process(add_p, (moved, np.asarray(size).astype(dtype)[()]), {})
    return process(select_n_p, (negative, index, moved), {})


def _static(index: int, dtype: Any, size: int, allow_negative: bool) -> Any:
    if index < 0:
        if not allow_negative:
            raise ValueError(
                f"Index {index} is out of bounds for dimension {size} if "
                "allow_negative_indices=False"
            )
        index += size
    try:
        return dtype.type(index)
    except OverflowError:
        # Beyond any array: what is computed from it is the same for the furthest index there is.
        limits = np.iinfo(dtype)
        return dtype.type(min(max(index, limits.min), limits.max))


def _check_indices(name: str, what: str, indices: tuple[ShapedArray, ...]) -> None:
    dtypes = [index.dtype for index in indices]
    if dtypes and not (
        issubdtype(dtypes[0], np.integer) and all(dtype == dtypes[0] for dtype in dtypes)
    ):
        raise TypeError(
            f"index arguments to {name} must be integers of the same type, got: "
            f"{', '.join(map(str, dtypes))}"
        )
    if any(index.shape for index in indices):
        raise TypeError(f"{what} arguments to {name} must be scalars, got indices {tuple(indices)}")


@infer(dynamic_slice_p)
def _(operand, *start_indices, slice_sizes):
    shape = operand.shape
    if len(slice_sizes) != len(shape):
        raise ValueError(
            "dynamic_slice slice_sizes must have length equal to the number of dimensions of the "
            f"operand, got slice_sizes {slice_sizes} for operand shape {shape}."
        )
    if any(size > whole for size, whole in zip(slice_sizes, shape, strict=True)):
        raise TypeError(
            "slice slice_sizes must be less than or equal to operand shape, got slice_sizes "
            f"{slice_sizes} for operand shape {shape}."
        )
    if any(size < 0 for size in slice_sizes):
        raise TypeError(
            "slice slice_sizes must be greater than or equal to zero, got slice_sizes of "
            f"{slice_sizes}."
        )
    _check_indices("dynamic_slice", "start_indices", start_indices)
    return ShapedArray(slice_sizes, operand.dtype, operand.weak_type)


def dynamic_slice_in_dim(
    operand: Any,
    start_index: Any,
    slice_size: int,
    axis: int = 0,
    *,
    allow_negative_indices: bool = True,
) -> Any:
    """dynamic_slice along one axis, whole along the others.

    Raises IndexError if there is no such axis; otherwise as dynamic_slice.
    """
    shape = typeof(operand).shape
    axis = canonical_axis(axis, len(shape))
    return dynamic_slice(
        operand,
        _with_zeros(start_index, axis, len(shape)),
        with_entry(shape, axis, operator.index(slice_size)),
        allow_negative_indices=allow_negative_indices,
    )


def _with_zeros(index: Any, axis: int, ndim: int) -> list[Any]:
    """An index for every axis: 0 for all but one, of its dtype."""
    zero = 0 if type(index) is int else canonicalize_dtype(typeof(index).dtype).type(0)
    indices = [zero] * ndim
    indices[axis] = index
    return indices


def dynamic_index_in_dim(
    operand: Any,
    index: Any,
    axis: int = 0,
    keepdims: bool = True,
    *,
    allow_negative_indices: bool = True,
) -> Any:
    """Slice one index out of one axis, where the index may be computed; see dynamic_slice.

    `keepdims` is whether the axis stays, with size 1.
    """
    result = dynamic_slice_in_dim(
        operand, index, 1, axis, allow_negative_indices=allow_negative_indices
    )
    if keepdims:
        return result
    axis = canonical_axis(axis, typeof(operand).ndim)
    return process(squeeze_p, (result,), {"dimensions": (axis,)})


dynamic_update_slice_p = Primitive("dynamic_update_slice")


def dynamic_update_slice(
    operand: Any,
    update: Any,
    start_indices: Any,
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Any:
    """The array, with `update` in the place of the part that begins at a start.

    A start from which the update would not lie within the array is moved until it does.

    Args:
      operand: the array.
      update: of the operand's dtype and number of axes, no larger than it along any.
      start_indices, allow_negative_indices: as for dynamic_slice.

    Raises:
      TypeError: if the update does not fit, or an index is no integer or no scalar.
      ValueError: if there is not one index per axis.
    """
    indices = _dynamic_indices(operand, start_indices, allow_negative_indices)
    return process(dynamic_update_slice_p, (operand, update, *indices), {})


@infer(dynamic_update_slice_p)
def _(operand, update, *start_indices):
    check_same_dtypes("dynamic_update_slice", (operand, update))
    if operand.ndim != update.ndim:
        raise TypeError(
            "dynamic_update_slice update must have the same rank as operand, got update shape "
            f"{update.shape} for operand shape {operand.shape}."
        )
    if any(size > whole for size, whole in zip(update.shape, operand.shape, strict=True)):
        raise TypeError(
            "dynamic_update_slice update shape must be smaller than operand shape, got update "
            f"shape {update.shape} for operand shape {operand.shape}."
        )
    _check_indices("dynamic_update_slice", "start_indices", start_indices)
    weak = operand.weak_type and update.weak_type and all(i.weak_type for i in start_indices)
    return ShapedArray(operand.shape, operand.dtype, weak)


def dynamic_update_slice_in_dim(
    operand: Any,
    update: Any,
    start_index: Any,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Any:
    """dynamic_update_slice whose start is 0 along all axes but one."""
    ndim = typeof(operand).ndim
    axis = canonical_axis(axis, ndim)
    return dynamic_update_slice(
        operand,
        update,
        _with_zeros(start_index, axis, ndim),
        allow_negative_indices=allow_negative_indices,
    )


def dynamic_update_index_in_dim(
    operand: Any,
    update: Any,
    index: Any,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Any:
    """The array, with `update` at one index of one axis.

    `update` has all axes of the operand, that one with size 1; or all but that one.

    Raises TypeError if it has another number of axes; otherwise as dynamic_update_slice.
    """
    ndim, update_ndim = typeof(operand).ndim, typeof(update).ndim
    axis = canonical_axis(axis, ndim)
    if update_ndim == ndim - 1:
        shape = typeof(update).shape
        update = broadcast_in_dim(
            update,
            (*shape[:axis], 1, *shape[axis:]),
            tuple([i for i in range(ndim) if i != axis]),
        )
    return dynamic_update_slice_in_dim(
        operand, update, index, axis, allow_negative_indices=allow_negative_indices
    )


# ---- together and apart --------------------------------------------------------------------------

concatenate_p = Primitive("concatenate")


def concatenate(operands: Any, dimension: int) -> Any:
    """Arrays end to end along an axis that they have, counted from 0.

    Args:
      operands: arrays of one dtype whose shapes agree but along that axis; or one array, whose
        members along its first axis are meant.
      dimension: the axis.

    Raises:
      ValueError: if there are no arrays.
      TypeError: if shapes or dtypes differ, or there is no such axis.
    """
    operands = _sequence(operands)
    if not operands:
        raise ValueError("concatenate requires a non-empty sequences of arrays")
    if len(operands) == 1 and hasattr(operands[0], "aval"):
        return operands[0]
    return process(concatenate_p, tuple(operands), {"dimension": operator.index(dimension)})


def _sequence(operands: Any) -> Sequence[Any]:
    if isinstance(operands, tuple | list):
        return operands
    if hasattr(operands, "aval"):
        return unstack(operands) if is_eager() else _members(operands)
    return list(operands)


@infer(concatenate_p)
def _(*operands, dimension):
    shapes = [operand.shape for operand in operands]
    shown = ", ".join(map(str, shapes))
    if any(len(shape) != len(shapes[0]) for shape in shapes):
        raise TypeError(
            f"Cannot concatenate arrays with different numbers of dimensions: got {shown}."
        )
    if not 0 <= dimension < len(shapes[0]):
        raise TypeError(
            f"concatenate dimension out of bounds: dimension {dimension} for shapes {shown}."
        )
    others = [shape[:dimension] + shape[dimension + 1 :] for shape in shapes]
    if any(other != others[0] for other in others):
        raise TypeError(
            "Cannot concatenate arrays with shapes that differ in dimensions other than the one "
            f"being concatenated: concatenating along dimension {dimension} for shapes {shown}."
        )
    check_same_dtypes("concatenate", operands)
    total = sum(shape[dimension] for shape in shapes)
    return ShapedArray(
        with_entry(shapes[0], dimension, total),
        operands[0].dtype,
        all(operand.weak_type for operand in operands),
    )


stack_p = Primitive("stack")


def stack(operands: Any, axis: int = 0) -> Any:
    """Arrays of one shape and dtype, side by side along a new axis.

    Args:
      operands: the arrays; or one array, whose members along its first axis are meant.
      axis: where the new axis is in the result; negative ones count from its end.

    Raises:
      ValueError: if there are no arrays, there is no such axis, or the shapes differ.
      TypeError: if the dtypes differ.
    """
    operands = _sequence(operands)
    if not operands:
        raise _NothingToStack("stack requires a non-empty sequence of arrays, got none")
    axis = canonical_axis(axis, typeof(operands[0]).ndim + 1)
    return process(stack_p, tuple(operands), {"axis": axis})


class _NothingToStack(ValueError, IndexError):
    """No arrays were given."""


@infer(stack_p)
def _(*operands, axis):
    shapes = [operand.shape for operand in operands]
    shown = ", ".join(map(str, shapes))
    if any(len(shape) != len(shapes[0]) for shape in shapes):
        raise ValueError(f"Cannot stack arrays with different numbers of dimensions: got {shown}.")
    if any(shape != shapes[0] for shape in shapes):
        raise ValueError(f"Cannot stack arrays with different shapes: got {shown}.")
    check_same_dtypes("stack", operands)
    return ShapedArray(
        (*shapes[0][:axis], len(operands), *shapes[0][axis:]),
        operands[0].dtype,
        all(operand.weak_type for operand in operands),
    )


unstack_p = Primitive("unstack", multiple_results=True)


def unstack(x: Any, axis: int = 0) -> tuple[Any, ...]:
    """The members of an array along an axis, which they do not have: a tuple of arrays.

    Raises:
      ValueError: if there is no such axis.
    """
    return tuple(process(unstack_p, (x,), {"axis": canonical_axis(axis, typeof(x).ndim)}))


@infer(unstack_p)
def _(x, *, axis):
    shape = x.shape
    member = ShapedArray(shape[:axis] + shape[axis + 1 :], x.dtype, x.weak_type)
    return [member] * shape[axis]


split_p = Primitive("split", multiple_results=True)


def split(operand: Any, sizes: Sequence[int], axis: int = 0) -> list[Any]:
    """An array cut along an axis into parts of these sizes: a list of arrays.

    Raises:
      ValueError: if there is no such axis, a size is negative, or they do not make up the axis.
    """
    params = {
        "sizes": integers(sizes, "sizes of split"),
        "axis": canonical_axis(axis, typeof(operand).ndim),
    }
    return list(process(split_p, (operand,), params))


@infer(split_p)
def _(operand, *, sizes, axis):
    shape = operand.shape
    if any(size < 0 for size in sizes):
        raise ValueError(f"Sizes passed to split must be nonnegative, got {list(sizes)}")
    if sum(sizes) != shape[axis]:
        raise ValueError(
            f"Sum of sizes {sum(sizes)} must be equal to dimension {axis} of the operand shape "
            f"{list(shape)}"
        )
    return [
        ShapedArray(with_entry(shape, axis, size), operand.dtype, operand.weak_type)
        for size in sizes
    ]


# ---- pad -----------------------------------------------------------------------------------------

pad_p = Primitive("pad")

PaddingConfig = tuple[tuple[int, int, int], ...]


def pad(operand: Any, padding_value: Any, padding_config: Any) -> Any:
    """Put copies of a value around the array, and between its elements.

    Args:
      operand: the array.
      padding_value: a scalar of its dtype.
      padding_config: for each axis how many go before it, after it, and between each two of its
        elements. Negative numbers before or after take elements away instead, after the interior
        has been filled.

    Raises:
      TypeError: if the dtypes differ, or a number is no integer.
      ValueError: if there are not three numbers per axis, the interior is negative, nothing would
        be left of an axis and less, or the value is no scalar.
    """
    config = tuple([_padding(row) for row in padding_config])
    return process(pad_p, (operand, padding_value), {"padding_config": config})


def _padding(row: Any) -> tuple[int, int, int]:
    numbers = integers(row, "each of padding_config")
    if len(numbers) != 3:
        raise ValueError(
            "each of padding_config must be three numbers (before, after, between), got "
            f"{len(numbers)}: {numbers}"
        )
    return numbers


@infer(pad_p)
def _(operand, padding_value, *, padding_config):
    if operand.dtype != padding_value.dtype:
        raise TypeError(
            "pad operand and padding_value must be same dtype: got "
            f"{operand.dtype} and {padding_value.dtype}."
        )
    if padding_value.shape:
        raise ValueError(
            f"padding_value must be a scalar; got np.shape(padding_value)={padding_value.shape}"
        )
    if len(padding_config) != operand.ndim:
        raise ValueError(
            "length of padding_config must equal the number of axes of operand, got "
            f"padding_config {padding_config} for operand shape {operand.shape}"
        )
    if any(between < 0 for _, _, between in padding_config):
        raise ValueError(
            "interior padding in padding_config must be nonnegative, got padding_config "
            f"{padding_config}"
        )
    shape = tuple(
        [
            before + after + size + between * max(size - 1, 0)
            for size, (before, after, between) in zip(operand.shape, padding_config, strict=True)
        ]
    )
    if any(size < 0 for size in shape):
        raise ValueError(
            f"Dimension size after padding is not at least 0, got result shape {shape}, for "
            f"padding_config {padding_config} and operand shape {operand.shape}"
        )
    return ShapedArray(shape, operand.dtype, operand.weak_type and padding_value.weak_type)
