"""Primitives that cut and join arrays: slice, concatenate, stack, unstack, split, pad."""

import itertools
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from hlofront.base.boundary import boundary
from hlofront.base.typing import Array, ArrayLike
from hlofront.core import rules
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.dimensions import canonical_axis, check_nonnegative, integers
from hlofront.core.primitive import Primitive
from hlofront.core.rules import infer
from hlofront.core.symbolic_zeros import Cotangent, Operand, Tangent, Zero
from hlofront.core.trace import is_eager, process
from hlofront.primitives.batching import with_new_axis, with_same_axis
from hlofront.primitives.comparing import select_n
from hlofront.primitives.creating import full, scalar_of
from hlofront.primitives.derivatives import (
    aval_of_operand,
    instantiate,
    is_linear,
    linear,
    zeros_of,
)
from hlofront.primitives.elementwise import sub
from hlofront.primitives.families import check_same_dtypes
from hlofront.primitives.reducing import reduce_sum
from hlofront.primitives.shaping import ascending, broadcast_in_dim, expand_dims, squeeze_p

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
      start_indices, limit_indices: one each per axis, `0 <= start <= limit <= size`.
      strides: the step between elements along each axis; None means 1 for every axis.

    Raises:
      TypeError: if an argument has not one number per axis, or one is out of range or traced.
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


linear(slice_p)


@rules.transpose(slice_p)
def _(cotangent, operand, *, start_indices, limit_indices, strides):
    aval = operand.aval
    steps = (1,) * aval.ndim if strides is None else strides
    rows = []
    for size, taken, start, step in zip(
        aval.shape, typeof(cotangent).shape, start_indices, steps, strict=True
    ):
        end = start + step * (taken - 1) + 1 if taken else start
        rows.append((start, size - end, step - 1))
    return [_pad_with_zeros(cotangent, rows, aval.weak_type)]


@rules.batch(slice_p)
def _(values, axes, *, start_indices, limit_indices, strides):
    (operand,), (axis,) = values, axes
    size = typeof(operand).shape[axis]
    params = {
        "start_indices": _with_new(start_indices, axis, 0),
        "limit_indices": _with_new(limit_indices, axis, size),
        "strides": None if strides is None else _with_new(strides, axis, 1),
    }
    return process(slice_p, (operand,), params), axis


def _with_new(values: tuple[Any, ...], axis: int, value: Any) -> tuple[Any, ...]:
    """Return values, one per axis, with the value of a new axis inserted at `axis`."""
    return (*values[:axis], value, *values[axis:])


@boundary
def slice_in_dim(
    operand: ArrayLike,
    start_index: int | None,
    limit_index: int | None,
    stride: int = 1,
    axis: int = 0,
) -> Array:
    """Slice an array along one axis; negative indices count from its end; None is its start or end.

    Raises:
      numpy.exceptions.AxisError: if the axis is out of range.
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


def with_entry(values: tuple[Any, ...], axis: int, value: Any) -> tuple[Any, ...]:
    """Return values, one per axis, with that of `axis` replaced by `value`."""
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
    """
    shape = typeof(operand).shape
    axis = canonical_axis(axis, len(shape))
    index, size = operator.index(index), shape[axis]
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
      operands: arrays of one dtype whose shapes agree except along the axis; or one array, which
        is unstacked along its first axis.
      dimension: the axis, not negative.

    Raises:
      ValueError: if there are no arrays.
      TypeError: if shapes or dtypes differ, or the axis is out of range.
    """
    operands = sequence_of(operands)
    if not operands:
        raise ValueError("concatenate requires a non-empty sequences of arrays")
    if len(operands) == 1 and hasattr(operands[0], "aval"):
        return operands[0]
    return process(concatenate_p, tuple(operands), {"dimension": operator.index(dimension)})


def sequence_of(operands: Any) -> Sequence[Any]:
    """Return a sequence of arrays from any iterable; one array is unstacked on its first axis."""
    if isinstance(operands, tuple | list):
        return operands
    if hasattr(operands, "aval"):
        return unstack(operands) if is_eager() else members(operands)
    return list(operands)


def members(array: Array) -> list[Array]:
    """Return the list of an array's slices along its first axis, each without that axis."""
    return [index_in_dim(array, i, 0, keepdims=False) for i in range(array.shape[0])]


@infer(concatenate_p)
def _(*operands: ShapedArray, dimension: int) -> ShapedArray:
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


@rules.jvp(concatenate_p)
def _(operands, tangents, *, dimension):
    result = process(concatenate_p, tuple(operands), {"dimension": dimension})
    return result, _end_to_end(tangents, dimension)


@rules.transpose(concatenate_p)
def _(cotangent: ArrayLike, *operands: Operand, dimension: int) -> Sequence[Cotangent | None]:
    sizes = tuple([aval_of_operand(operand).shape[dimension] for operand in operands])
    parts = process(split_p, (cotangent,), {"sizes": sizes, "axis": dimension})
    return [p if is_linear(x) else None for p, x in zip(parts, operands, strict=True)]


@rules.batch(concatenate_p)
def _(values, axes, *, dimension):
    values, axis = with_same_axis(values, axes)
    return process(concatenate_p, values, {"dimension": dimension + (dimension >= axis)}), axis


def _end_to_end(tangents: Sequence[Tangent], axis: int) -> Array:
    """Concatenate tangents, of which some are Zero: adjacent ones are merged, outer ones padded."""
    present = [i for i, tangent in enumerate(tangents) if type(tangent) is not Zero]
    first, last = present[0], present[-1]
    weak = _weak_zeros(tangents)
    parts: list[Any] = []
    for zero, group in itertools.groupby(tangents[first : last + 1], lambda x: type(x) is Zero):
        aval = typeof(tangents[first])
        if zero:
            shape = with_entry(aval.shape, axis, _extent(group, axis))
            parts.append(zeros_of(aval.update(shape, weak_type=weak)))
        else:
            parts += group
    whole = concatenate(parts, axis) if len(parts) > 1 else parts[0]
    before, after = _extent(tangents[:first], axis), _extent(tangents[last + 1 :], axis)
    return _pad_along(whole, axis, before, after, weak)


def _extent(zeros: Iterable[Any], axis: int) -> int:
    return sum(zero.aval.shape[axis] for zero in zeros)


def _weak_zeros(tangents: Sequence[Tangent]) -> bool:
    return all(x.aval.weak_type for x in tangents if type(x) is Zero)


stack_p = Primitive("stack")


@boundary
def stack(operands: object, axis: int = 0) -> Array:
    """Stack arrays of one shape and dtype along a new axis.

    Args:
      operands: the arrays; or one array, which is unstacked along its first axis.
      axis: the position of the new axis in the result; negative ones count from its end.

    Raises:
      ValueError: if there are no arrays, the axis is out of range, or the shapes differ.
      TypeError: if the dtypes differ.
    """
    operands = sequence_of(operands)
    if not operands:
        raise _NothingToStack("stack requires a non-empty sequence of arrays, got none")
    axis = canonical_axis(axis, typeof(operands[0]).ndim + 1)
    return process(stack_p, tuple(operands), {"axis": axis})


class _NothingToStack(ValueError, IndexError):
    """The error of `stack` for an empty sequence, a ValueError and an IndexError."""


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


@rules.jvp(stack_p)
def _(operands, tangents, *, axis):
    return process(stack_p, tuple(operands), {"axis": axis}), _stacked(tangents, axis)


@rules.transpose(stack_p)
def _(cotangent: ArrayLike, *operands: Operand, axis: int) -> Sequence[Cotangent | None]:
    members = process(unstack_p, (cotangent,), {"axis": axis})
    return [member if is_linear(x) else None for member, x in zip(members, operands, strict=True)]


@rules.batch(stack_p)
def _(values, axes, *, axis):
    values, own = with_same_axis(values, axes)
    return process(stack_p, values, {"axis": axis + (own <= axis)}), own + (own > axis)


def _stacked(tangents: Sequence[Tangent], axis: int) -> Array:
    """Stack tangents, of which some are Zero, along a new axis."""
    present = [i for i, tangent in enumerate(tangents) if type(tangent) is not Zero]
    weak = _weak_zeros(tangents)
    if len(present) == 1 < len(tangents):
        (index,) = present
        member = expand_dims(tangents[index], (axis,))
        return _pad_along(member, axis, index, len(tangents) - 1 - index, weak)
    if len(present) < len(tangents):
        zeros = zeros_of(typeof(tangents[present[0]]).update(weak_type=weak))
        tangents = [zeros if type(tangent) is Zero else tangent for tangent in tangents]
    return process(stack_p, tuple(tangents), {"axis": axis})


unstack_p = Primitive("unstack", multiple_results=True)


@boundary
def unstack(x: ArrayLike, axis: int = 0) -> tuple[Any, ...]:
    """Return the tuple of an array's slices along an axis, each without that axis.

    Raises:
      ValueError: if the axis is out of range.
    """
    return tuple(process(unstack_p, (x,), {"axis": canonical_axis(axis, typeof(x).ndim)}))


@infer(unstack_p)
def _(x: ShapedArray, *, axis: int) -> list[ShapedArray]:
    shape = x.shape
    member = ShapedArray(shape[:axis] + shape[axis + 1 :], x.dtype, x.weak_type)
    return [member] * shape[axis]


linear(unstack_p)


@rules.transpose(unstack_p)
def _(cotangents: Sequence[Cotangent], x: Operand, *, axis: int) -> Sequence[Cotangent | None]:
    return [_stacked(cotangents, axis)]


@rules.batch(unstack_p)
def _(values, axes, *, axis):
    (own,) = axes
    members = process(unstack_p, tuple(values), {"axis": axis + (axis >= own)})
    return members, [own - (axis < own)] * len(members)


split_p = Primitive("split", multiple_results=True)


@boundary
def split(operand: ArrayLike, sizes: Sequence[int], axis: int = 0) -> list[Any]:
    """Split an array along an axis into a list of arrays with `sizes` along it.

    Raises:
      ValueError: if the axis is out of range, a size is negative, or their sum is not the axis's.
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


linear(split_p)


@rules.transpose(split_p)
def _(cotangents, operand, *, sizes, axis):
    return [_end_to_end(cotangents, axis)]


@rules.batch(split_p)
def _(values, axes, *, sizes, axis):
    (own,) = axes
    params = {"sizes": sizes, "axis": axis + (axis >= own)}
    return process(split_p, tuple(values), params), [own] * len(sizes)


# ---- pad -----------------------------------------------------------------------------------------

pad_p = Primitive("pad")

PaddingConfig = tuple[tuple[int, int, int], ...]


@boundary
def pad(operand: Any, padding_value: Any, padding_config: Any) -> Any:
    """Pad an array with a value before, after and between its elements.

    Args:
      operand: the array to pad.
      padding_value: a scalar of the operand's dtype.
      padding_config: for each axis the numbers (before, after, between two elements). Negative
        numbers before or after remove elements, after interior padding.

    Raises:
      TypeError: if the dtypes differ, or a number is no integer.
      ValueError: if the configuration has not three numbers per axis, interior padding is
        negative, the size of an axis would be negative, or the value is no scalar.
    """
    if len(padding_config) != np.ndim(operand):  # the infer rule raises, before rows are read
        rules.infer[pad_p](typeof(operand), typeof(padding_value), padding_config=padding_config)
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


@rules.jvp(pad_p)
def _(primals, tangents, *, padding_config):
    result = process(pad_p, tuple(primals), {"padding_config": padding_config})
    tangent, value_tangent = tangents
    if type(value_tangent) is Zero:
        aval = value_tangent.aval
        value_tangent = scalar_of(0, aval.dtype, aval.weak_type)
    operands = (instantiate(tangent), value_tangent)
    return result, process(pad_p, operands, {"padding_config": padding_config})


def _pad_with_zeros(operand: ArrayLike, rows: Any, weak: bool = True) -> Array:
    """Pad an array with zeros of its dtype; return the array itself if no padding is nonzero."""
    rows = tuple(rows)
    if not any(map(any, rows)):
        return operand
    aval = typeof(operand)
    zero = scalar_of(0, aval.dtype, aval.weak_type and weak)
    return process(pad_p, (operand, zero), {"padding_config": rows})


def _pad_along(operand: ArrayLike, axis: int, before: int, after: int, weak: bool) -> Array:
    nothing = ((0, 0, 0),) * typeof(operand).ndim
    return _pad_with_zeros(operand, with_entry(nothing, axis, (before, after, 0)), weak)


@rules.transpose(pad_p)
def _(cotangent, operand, padding_value, *, padding_config):
    inside = _without_padding(cotangent, padding_config)
    outside = None
    if is_linear(padding_value):
        axes = ascending(len(padding_config))
        outside = sub(reduce_sum(cotangent, axes), reduce_sum(inside, axes))
    return [inside if is_linear(operand) else None, outside]


def _without_padding(cotangent: ArrayLike, rows: PaddingConfig) -> Array:
    """Return the cotangent of pad's operand: drop the padding, and zeros for removed elements."""
    starts, limits = [0] * len(rows), list(typeof(cotangent).shape)
    if any(before < 0 or after < 0 for before, after, _ in rows):
        cotangent = _pad_with_zeros(cotangent, [(-row[0], -row[1], 0) for row in rows])
        limits = list(typeof(cotangent).shape)
    else:
        starts = [before for before, _, _ in rows]
        limits = [limit - after for limit, (_, after, _) in zip(limits, rows, strict=True)]
    steps = [between + 1 for _, _, between in rows]
    if tuple(limits) == typeof(cotangent).shape and not any(starts) and set(steps) <= {1}:
        return cotangent
    return slice(cotangent, starts, limits, steps)


@rules.batch(pad_p)
def _(values, axes, *, padding_config):
    (operand, value), (axis, value_axis) = values, axes
    if value_axis is not None and axis is None:
        axis = 0
        operand = with_new_axis(operand, typeof(value).shape[0])
    params = {"padding_config": _with_new(padding_config, axis, (0, 0, 0))}
    if value_axis is None:
        return process(pad_p, (operand, value), params), axis
    aval = typeof(operand)
    result = process(pad_p, (operand, scalar_of(0, aval.dtype)), params)
    inside = process(pad_p, (full(aval.shape, True), np.False_), params)
    outside = broadcast_in_dim(value, typeof(result).shape, (axis,))
    return select_n(inside, outside, result), axis
