"""Derivative and batch rules of slice, concatenate, stack, unstack, split and pad."""

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from hlofront.base.typing import ArrayLike, ArrayLikes, Shape
from hlofront.core import rules
from hlofront.core.aval import typeof
from hlofront.core.rules import BatchResult
from hlofront.core.symbolic_zeros import (
    BatchAxes,
    Cotangent,
    Cotangents,
    Dual,
    Operand,
    Tangent,
    Tangents,
    UndefinedPrimal,
    Zero,
)
from hlofront.core.trace import process
from hlofront.primitives.arrays.creation import full, scalar_of
from hlofront.primitives.arrays.reducing import reduce_sum
from hlofront.primitives.arrays.shaping import ascending, broadcast_in_dim, expand_dims
from hlofront.primitives.arrays.slicing import (
    PaddingConfig,
    concatenate,
    concatenate_p,
    pad_p,
    slice,
    slice_p,
    split_p,
    stack_p,
    unstack_p,
    with_entry,
)
from hlofront.primitives.elementwise.compare import select_n
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.elementwise.elementwise import sub
from hlofront.primitives.rules.batching import with_new_axis, with_same_axis
from hlofront.primitives.rules.derivatives import (
    aval_of_operand,
    instantiate,
    is_linear,
    linear,
    zeros_of,
)

T = TypeVar("T")

# ---- slice ---------------------------------------------------------------------------------------

linear(slice_p)


@rules.transpose(slice_p)
def _(
    cotangent: ArrayLike,
    operand: UndefinedPrimal,
    *,
    start_indices: Shape,
    limit_indices: Shape,
    strides: Shape | None,
) -> Cotangents:
    aval = operand.aval
    steps = (1,) * aval.ndim if strides is None else strides
    rows: list[tuple[int, int, int]] = []
    for size, taken, start, step in zip(
        aval.shape, typeof(cotangent).shape, start_indices, steps, strict=True
    ):
        end = start + step * (taken - 1) + 1 if taken else start
        rows.append((start, size - end, step - 1))
    return [_pad_with_zeros(cotangent, rows, weak=False)]


@rules.batch(slice_p)
def _(
    values: ArrayLikes,
    axes: Sequence[int],
    *,
    start_indices: Shape,
    limit_indices: Shape,
    strides: Shape | None,
) -> BatchResult:
    (operand,), (axis,) = values, axes
    size = typeof(operand).shape[axis]
    params = {
        "start_indices": _with_new(start_indices, axis, 0),
        "limit_indices": _with_new(limit_indices, axis, size),
        "strides": None if strides is None else _with_new(strides, axis, 1),
    }
    return process(slice_p, (operand,), params), axis


def _with_new(values: tuple[T, ...], axis: int, value: T) -> tuple[T, ...]:
    """Return values, one per axis, with the value of a new axis inserted at `axis`."""
    return (*values[:axis], value, *values[axis:])


# ---- concatenate, stack and split ----------------------------------------------------------------


@rules.jvp(concatenate_p)
def _(operands: ArrayLikes, tangents: Tangents, *, dimension: int) -> Dual:
    result = process(concatenate_p, tuple(operands), {"dimension": dimension})
    return result, _end_to_end(tangents, dimension)


@rules.transpose(concatenate_p)
def _(cotangent: ArrayLike, *operands: Operand, dimension: int) -> Cotangents:
    sizes = tuple([aval_of_operand(operand).shape[dimension] for operand in operands])
    parts = process(split_p, (cotangent,), {"sizes": sizes, "axis": dimension})
    return [p if is_linear(x) else None for p, x in zip(parts, operands, strict=True)]


@rules.batch(concatenate_p)
def _(values: ArrayLikes, axes: BatchAxes, *, dimension: int) -> BatchResult:
    values, axis = with_same_axis(values, axes)
    return process(concatenate_p, values, {"dimension": dimension + (dimension >= axis)}), axis


def _end_to_end(tangents: Tangents, axis: int) -> ArrayLike:
    """Concatenate tangents some of which are Zero: adjacent ones are merged, outer ones padded."""
    present = [i for i, tangent in enumerate(tangents) if type(tangent) is not Zero]
    first, last = present[0], present[-1]
    weak = _weak_zeros(tangents)
    parts: list[Any] = []
    for zero, group in itertools.groupby(tangents[first : last + 1], lambda x: type(x) is Zero):
        aval = typeof(instantiate(tangents[first]))
        if zero:
            shape = with_entry(aval.shape, axis, _extent(group, axis))
            parts.append(zeros_of(aval.update(shape, weak_type=weak)))
        else:
            parts += group
    whole = concatenate(parts, axis) if len(parts) > 1 else parts[0]
    before, after = _extent(tangents[:first], axis), _extent(tangents[last + 1 :], axis)
    return _pad_along(whole, axis, before, after, weak)


def _extent(zeros: Iterable[Tangent], axis: int) -> int:
    """Return the total size of symbolic zeros along an axis."""
    return sum(zero.aval.shape[axis] for zero in zeros if type(zero) is Zero)


def _weak_zeros(tangents: Tangents) -> bool:
    return all(x.aval.weak_type for x in tangents if type(x) is Zero)


@rules.jvp(stack_p)
def _(operands: ArrayLikes, tangents: Tangents, *, axis: int) -> Dual:
    return process(stack_p, tuple(operands), {"axis": axis}), _stacked(tangents, axis)


@rules.transpose(stack_p)
def _(cotangent: ArrayLike, *operands: Operand, axis: int) -> Cotangents:
    members = process(unstack_p, (cotangent,), {"axis": axis})
    return [member if is_linear(x) else None for member, x in zip(members, operands, strict=True)]


@rules.batch(stack_p)
def _(values: ArrayLikes, axes: BatchAxes, *, axis: int) -> BatchResult:
    values, batch_axis = with_same_axis(values, axes)
    result = process(stack_p, values, {"axis": axis + (batch_axis <= axis)})
    return result, batch_axis + (batch_axis > axis)


def _stacked(tangents: Tangents, axis: int) -> ArrayLike:
    """Stack tangents, some of which are Zero, along a new axis."""
    present = [i for i, tangent in enumerate(tangents) if type(tangent) is not Zero]
    weak = _weak_zeros(tangents)
    if len(present) == 1 < len(tangents):
        (index,) = present
        member = expand_dims(instantiate(tangents[index]), (axis,))
        return _pad_along(member, axis, index, len(tangents) - 1 - index, weak)
    if len(present) < len(tangents):
        zeros = zeros_of(typeof(instantiate(tangents[present[0]])).update(weak_type=weak))
        tangents = [zeros if type(tangent) is Zero else tangent for tangent in tangents]
    return process(stack_p, tuple(tangents), {"axis": axis})


linear(unstack_p)


@rules.transpose(unstack_p)
def _(cotangents: Sequence[Cotangent], x: Operand, *, axis: int) -> Cotangents:
    return [_stacked(cotangents, axis)]


@rules.batch(unstack_p)
def _(values: ArrayLikes, axes: Sequence[int], *, axis: int) -> BatchResult:
    (batch_axis,) = axes
    members = process(unstack_p, tuple(values), {"axis": axis + (axis >= batch_axis)})
    return members, [batch_axis - (axis < batch_axis)] * len(members)


linear(split_p)


@rules.transpose(split_p)
def _(cotangents: Sequence[Cotangent], operand: Operand, *, sizes: Shape, axis: int) -> Cotangents:
    return [_end_to_end(cotangents, axis)]


@rules.batch(split_p)
def _(values: ArrayLikes, axes: Sequence[int], *, sizes: Shape, axis: int) -> BatchResult:
    (batch_axis,) = axes
    params = {"sizes": sizes, "axis": axis + (axis >= batch_axis)}
    return process(split_p, tuple(values), params), [batch_axis] * len(sizes)


# ---- pad -----------------------------------------------------------------------------------------


@rules.jvp(pad_p)
def _(primals: ArrayLikes, tangents: Tangents, *, padding_config: PaddingConfig) -> Dual:
    result = process(pad_p, tuple(primals), {"padding_config": padding_config})
    tangent, value_tangent = tangents
    if type(value_tangent) is Zero:
        aval = value_tangent.aval
        value_tangent = scalar_of(0, aval.dtype, aval.weak_type)
    operands = (instantiate(tangent), value_tangent)
    return result, process(pad_p, operands, {"padding_config": padding_config})


def _pad_with_zeros(
    operand: ArrayLike, rows: Sequence[tuple[int, int, int]], weak: bool = True
) -> ArrayLike:
    """Pad an array with zeros of its dtype; return the array itself if no padding is nonzero."""
    rows = tuple(rows)
    if not any(map(any, rows)):
        return operand
    aval = typeof(operand)
    zero = scalar_of(0, aval.dtype, aval.weak_type and weak)
    return process(pad_p, (operand, zero), {"padding_config": rows})


def _pad_along(operand: ArrayLike, axis: int, before: int, after: int, weak: bool) -> ArrayLike:
    nothing = ((0, 0, 0),) * typeof(operand).ndim
    return _pad_with_zeros(operand, with_entry(nothing, axis, (before, after, 0)), weak)


@rules.transpose(pad_p)
def _(
    cotangent: ArrayLike, operand: Operand, padding_value: Operand, *, padding_config: PaddingConfig
) -> Cotangents:
    inside = _without_padding(cotangent, padding_config)
    # As in JAX, a tangent is padded with strongly typed zeros.
    if padding_config and typeof(inside).weak_type:
        inside = convert(inside, typeof(inside).dtype, False)
    outside = None
    if is_linear(padding_value):
        axes = ascending(len(padding_config))
        outside = sub(reduce_sum(cotangent, axes), reduce_sum(inside, axes))
    return [inside if is_linear(operand) else None, outside]


def _without_padding(cotangent: ArrayLike, rows: PaddingConfig) -> ArrayLike:
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
def _(values: ArrayLikes, axes: BatchAxes, *, padding_config: PaddingConfig) -> BatchResult:
    (operand, value), (axis, value_axis) = values, axes
    if axis is None:
        axis = 0
        operand = with_new_axis(operand, typeof(value).shape[0])
    params = {"padding_config": _with_new(padding_config, axis, (0, 0, 0))}
    if value_axis is None:
        return process(pad_p, (operand, value), params), axis
    aval = typeof(operand)
    result: ArrayLike = process(pad_p, (operand, scalar_of(0, aval.dtype)), params)
    inside = process(pad_p, (full(aval.shape, True), np.False_), params)
    outside = broadcast_in_dim(value, typeof(result).shape, (axis,))
    return select_n(inside, outside, result), axis
