"""Primitives that cut and join arrays: slice, concatenate, stack, unstack, split, pad."""

import operator
from collections.abc import Sequence
from typing import Any, TypeVar

from hlofront.base.boundary import boundary
from hlofront.base.typing import Array, ArrayLike, Shape, is_tuple_or_list
from hlofront.core import rules
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.primitive import Primitive
from hlofront.core.rules import infer
from hlofront.core.sizes.dimensions import as_size, canonical_axis, check_nonnegative, integers
from hlofront.core.sizes.symbolic import max_dim
from hlofront.core.trace import is_eager, process
from hlofront.primitives.arrays.shaping import squeeze_p
from hlofront.primitives.elementwise.families import check_same_dtypes

T = TypeVar("T")

# ---- slice ---------------------------------------------------------------------------------------

slice_p = Primitive("slice")


@boundary
def slice(
    operand: ArrayLike,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Array:
    """Return the part of an array from a start up to, not including, a limit along each axis.

    Args:
      operand: the array to slice.
      start_indices, limit_indices: integers per axis, where `0 <= start <= limit <= size`.
      strides: the step between elements along each axis; None means 1 for every axis.

    Raises:
      TypeError: if an argument does not have one number per axis, or one is out of range or traced.

    Example:
      >>> lax.slice(jnp.arange(10), (1,), (8,), (3,))
      Array([1, 4, 7], dtype=int32)
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
def _(
    operand: ShapedArray, *, start_indices: Shape, limit_indices: Shape, strides: Shape | None
) -> ShapedArray:
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
    result = tuple([(limit - start + stride - 1) // stride for start, limit, stride in ranges])
    return ShapedArray(result, operand.dtype, operand.weak_type)


@boundary
def slice_in_dim(
    operand: ArrayLike,
    start_index: int | None,
    limit_index: int | None,
    stride: int = 1,
    axis: int = 0,
) -> Array:
    """Slice an array along one axis.

    Args:
      operand: an array.
      start_index: the index of the first element; a negative one counts from the end, None is 0.
      limit_index: the index after the last element; a negative one counts from the end, None is the
        end.
      stride: the distance between two elements of the result, positive.
      axis: the axis to slice; a negative one counts from the end.

    Raises:
      numpy.exceptions.AxisError: if the axis is out of range.
      TypeError: if an index is out of range, which Python's slices allow.

    Example:
      >>> lax.slice_in_dim(jnp.array([[1, 2, 3], [4, 5, 6]]), 1, None, axis=1)
      Array([[2, 3],
             [5, 6]], dtype=int32)
    """
    shape = typeof(operand).shape
    axis = canonical_axis(axis, len(shape))
    size = shape[axis]
    start = 0 if start_index is None else as_size(start_index)
    limit = size if limit_index is None else as_size(limit_index)
    return process(
        slice_p,
        (operand,),
        {
            "start_indices": with_entry((0,) * len(shape), axis, start + size * (start < 0)),
            "limit_indices": with_entry(shape, axis, limit + size * (limit < 0)),
            "strides": with_entry((1,) * len(shape), axis, as_size(stride)),
        },
    )


def slice_along(
    x: Array, axes: Sequence[int], starts: Sequence[int], sizes: Sequence[int], steps: Sequence[int]
) -> Array:
    """Slice an array by starts, sizes and steps along some axes; the other axes stay whole."""
    first, limits, strides = [0] * x.ndim, list(x.shape), [1] * x.ndim
    for axis, start, size, step in zip(axes, starts, sizes, steps, strict=True):
        first[axis], limits[axis], strides[axis] = start, start + (size - 1) * step + 1, step
    return slice(x, first, limits, strides)


def with_entry(values: tuple[T, ...], axis: int, value: T) -> tuple[T, ...]:
    """Return values, one per axis, with the one of `axis` replaced by `value`."""
    return (*values[:axis], value, *values[axis + 1 :])


@boundary
def index_in_dim(operand: ArrayLike, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """Return the slice of an array at one index along an axis.

    Args:
      operand: the array to slice.
      index: the index along the axis; negative ones count from its end.
      axis: the axis; negative ones count from the last.
      keepdims: whether the result has the axis, with size 1.

    Raises:
      IndexError: if the index or the axis is out of range.

    Example:
      >>> lax.index_in_dim(jnp.array([[1, 2], [3, 4]]), 1, axis=1, keepdims=False)
      Array([2, 4], dtype=int32)
    """
    shape = typeof(operand).shape
    axis = canonical_axis(axis, len(shape))
    index, size = as_size(index), shape[axis]
    if not -size <= index < size:
        raise IndexError(f"index {index} is out of bounds for axis {axis} with size {size}")
    index += size * (index < 0)
    result = slice_in_dim(operand, index, index + 1, 1, axis)
    return result if keepdims else process(squeeze_p, (result,), {"dimensions": (axis,)})


# ---- concatenate, stack and split ----------------------------------------------------------------

concatenate_p = Primitive("concatenate")


@boundary
def concatenate(operands: object, dimension: int) -> Array:
    """Concatenate arrays along one of their axes.

    Args:
      operands: arrays of equal dtype whose shapes agree except along the axis; or one array, which
        is unstacked along its first axis.
      dimension: the axis, not negative.

    Raises:
      ValueError: if there are no arrays.
      TypeError: if shapes or dtypes differ, or the axis is out of range.

    Example:
      >>> lax.concatenate([jnp.array([[1, 2]]), jnp.array([[3, 4]])], dimension=0)
      Array([[1, 2],
             [3, 4]], dtype=int32)
    """
    members = sequence_of(operands)
    if not members:
        raise ValueError("concatenate requires a non-empty sequences of arrays")
    if len(members) == 1 and hasattr(members[0], "aval"):
        return members[0]
    return process(concatenate_p, tuple(members), {"dimension": operator.index(dimension)})


def sequence_of(operands: Any) -> Sequence[Any]:
    """Return a sequence of arrays from an iterable; an array is unstacked along its first axis."""
    if is_tuple_or_list(operands):
        return operands
    if hasattr(operands, "aval"):
        return unstack(operands) if is_eager() else slices_of_first_axis(operands)
    return list(operands)


def slices_of_first_axis(array: Array) -> list[Array]:
    """Return the list of an array's slices along its first axis, each without that axis."""
    return [index_in_dim(array, i, 0, keepdims=False) for i in range(array.shape[0])]


@infer(concatenate_p)
def _(*operands: ShapedArray, dimension: int) -> ShapedArray:
    shape = concatenated_shape([operand.shape for operand in operands], dimension)
    check_same_dtypes("concatenate", operands)
    return ShapedArray(shape, operands[0].dtype, all(operand.weak_type for operand in operands))


def concatenated_shape(shapes: Sequence[Shape], dimension: int) -> Shape:
    """Return the shape of the concatenation of arrays of these shapes along a dimension.

    Raises:
      TypeError: if there is no such dimension, or the shapes differ along other dimensions.
    """
    shown = ", ".join(map(str, shapes))
    if any(len(shape) != len(shapes[0]) for shape in shapes):
        raise TypeError(
            f"Cannot concatenate arrays with different numbers of dimensions: got {shown}."
        )
    if not 0 <= dimension < len(shapes[0]):
        raise TypeError(
            f"concatenate dimension out of bounds: dimension {dimension} for shapes {shown}."
        )
    off_axis_shapes = [shape[:dimension] + shape[dimension + 1 :] for shape in shapes]
    if any(other != off_axis_shapes[0] for other in off_axis_shapes):
        raise TypeError(
            "Cannot concatenate arrays with shapes that differ in dimensions other than the one "
            f"being concatenated: concatenating along dimension {dimension} for shapes {shown}."
        )
    return with_entry(shapes[0], dimension, sum(shape[dimension] for shape in shapes))


stack_p = Primitive("stack")


@boundary
def stack(operands: object, axis: int = 0) -> Array:
    """Stack arrays of equal shape and dtype along a new axis.

    Args:
      operands: the arrays; or one array, which is unstacked along its first axis.
      axis: the position of the new axis in the result; negative ones count from its end.

    Raises:
      ValueError: if there are no arrays, the axis is out of range, or the shapes differ.
      TypeError: if the dtypes differ.
    """
    members = sequence_of(operands)
    if not members:
        raise _NothingToStack("stack requires a non-empty sequence of arrays, got none")
    first: ArrayLike = members[0]
    axis = canonical_axis(axis, typeof(first).ndim + 1)
    return process(stack_p, tuple(members), {"axis": axis})


class _NothingToStack(ValueError, IndexError):
    """The error of `stack` for an empty sequence, which is a ValueError and an IndexError."""


@infer(stack_p)
def _(*operands: ShapedArray, axis: int) -> ShapedArray:
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
def unstack(x: ArrayLike, axis: int = 0) -> tuple[Array, ...]:
    """Return the tuple of an array's slices along an axis, each without that axis.

    Args:
      x: an array.
      axis: the axis; a negative one counts from the end.

    Raises:
      ValueError: if the axis is out of range.
    """
    return tuple(process(unstack_p, (x,), {"axis": canonical_axis(axis, typeof(x).ndim)}))


@infer(unstack_p)
def _(x: ShapedArray, *, axis: int) -> list[ShapedArray]:
    shape = x.shape
    member = ShapedArray(shape[:axis] + shape[axis + 1 :], x.dtype, x.weak_type)
    return [member] * shape[axis]


split_p = Primitive("split", multiple_results=True)


@boundary
def split(operand: ArrayLike, sizes: Sequence[int], axis: int = 0) -> list[Array]:
    """Split an array along an axis into a list of arrays with `sizes` along it.

    Args:
      operand: an array.
      sizes: the sizes of the parts along the axis, whose sum is that of the array.
      axis: the axis; a negative one counts from the end.

    Raises:
      ValueError: if the axis is out of range, a size is negative, or their sum is not the axis's.

    Example:
      >>> lax.split(jnp.arange(5), (2, 3))
      [Array([0, 1], dtype=int32), Array([2, 3, 4], dtype=int32)]
    """
    params = {
        "sizes": integers(sizes, "sizes of split"),
        "axis": canonical_axis(axis, typeof(operand).ndim),
    }
    return list(process(split_p, (operand,), params))


@infer(split_p)
def _(operand: ShapedArray, *, sizes: tuple[int, ...], axis: int) -> list[ShapedArray]:
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
def pad(
    operand: ArrayLike, padding_value: ArrayLike, padding_config: Sequence[Sequence[int]]
) -> Array:
    """Pad an array with a value before, after and between its elements.

    Args:
      operand: the array to pad.
      padding_value: a scalar of the operand's dtype.
      padding_config: for each axis the numbers (before, after, between two elements). Negative
        numbers before or after remove elements, after interior padding.

    Raises:
      TypeError: if the dtypes differ, or a number is not an integer.
      ValueError: if the configuration does not have three numbers per axis, interior padding is
        negative, the size of an axis would be negative, or the value is not a scalar.

    Example:
      >>> lax.pad(jnp.array([1, 2]), 0, [(1, 2, 1)])
      Array([0, 1, 0, 2, 0, 0], dtype=int32)
    """
    if len(padding_config) != typeof(operand).ndim:
        # The infer rule raises an error; it must run before the rows are read.
        rules.infer[pad_p](typeof(operand), typeof(padding_value), padding_config=padding_config)
    config = tuple([_padding(row) for row in padding_config])
    return process(pad_p, (operand, padding_value), {"padding_config": config})


def _padding(row: Sequence[int]) -> tuple[int, int, int]:
    numbers = integers(row, "each of padding_config")
    if len(numbers) != 3:
        raise ValueError(
            "each of padding_config must be three numbers (before, after, between), got "
            f"{len(numbers)}: {numbers}"
        )
    return numbers


@infer(pad_p)
def _(
    operand: ShapedArray, padding_value: ShapedArray, *, padding_config: PaddingConfig
) -> ShapedArray:
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
            before + after + size + between * max_dim(size - 1, 0)
            for size, (before, after, between) in zip(operand.shape, padding_config, strict=True)
        ]
    )
    if any(size < 0 for size in shape):
        raise ValueError(
            f"Dimension size after padding is not at least 0, got result shape {shape}, for "
            f"padding_config {padding_config} and operand shape {operand.shape}"
        )
    return ShapedArray(shape, operand.dtype, operand.weak_type and padding_value.weak_type)
