"""Primitives that take arrays apart and put them together: slice, pad, concatenate, split."""

import operator
from collections.abc import Sequence
from typing import Any

from hlofront.base.boundary import boundary
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.dimensions import canonical_axis, check_nonnegative, integers
from hlofront.core.primitive import Primitive
from hlofront.core.rules import infer
from hlofront.core.trace import is_eager, process
from hlofront.primitives.families import check_same_dtypes
from hlofront.primitives.shaping import squeeze_p

# ---- slice ---------------------------------------------------------------------------------------

slice_p = Primitive("slice")


@boundary
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


@boundary
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


@boundary
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


# ---- together and apart --------------------------------------------------------------------------

concatenate_p = Primitive("concatenate")


@boundary
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
    operands = sequence_of(operands)
    if not operands:
        raise ValueError("concatenate requires a non-empty sequences of arrays")
    if len(operands) == 1 and hasattr(operands[0], "aval"):
        return operands[0]
    return process(concatenate_p, tuple(operands), {"dimension": operator.index(dimension)})


def sequence_of(operands: Any) -> Sequence[Any]:
    """Arrays that are given as a sequence, or as one array of which they are the members."""
    if isinstance(operands, tuple | list):
        return operands
    if hasattr(operands, "aval"):
        return unstack(operands) if is_eager() else members(operands)
    return list(operands)


def members(array: Any) -> list[Any]:
    """The members of an array along its first axis, each sliced out of it."""
    return [index_in_dim(array, i, 0, keepdims=False) for i in range(array.shape[0])]


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


@boundary
def stack(operands: Any, axis: int = 0) -> Any:
    """Arrays of one shape and dtype, side by side along a new axis.

    Args:
      operands: the arrays; or one array, whose members along its first axis are meant.
      axis: where the new axis is in the result; negative ones count from its end.

    Raises:
      ValueError: if there are no arrays, there is no such axis, or the shapes differ.
      TypeError: if the dtypes differ.
    """
    operands = sequence_of(operands)
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


@boundary
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


@boundary
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


@boundary
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
