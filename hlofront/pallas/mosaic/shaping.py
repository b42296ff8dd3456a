"""Mosaic rules of operations that move elements, or make arrays of their indices."""

from collections.abc import Callable, Sequence

import numpy as np

from hlofront.base.elements import bool_, float32, int32
from hlofront.base.typing import DType
from hlofront.bridge.mlir import Value, Values, ir
from hlofront.core.aval import ShapedArray
from hlofront.lowering.core.types import attribute, i32
from hlofront.pallas.mosaic.builder import KernelBuilder, Shape
from hlofront.pallas.mosaic.elementwise import EQUAL, compared, converted, kind_of
from hlofront.pallas.mosaic.rules import mosaic
from hlofront.pallas.mosaic.types import value_type
from hlofront.primitives.arrays.creation import iota_p
from hlofront.primitives.arrays.gathering import GatherDimensionNumbers, GatherScatterMode, gather_p
from hlofront.primitives.arrays.shaping import broadcast_in_dim_p, reshape_p, squeeze_p, transpose_p
from hlofront.primitives.arrays.slicing import (
    concatenate_p,
    pad_p,
    slice_p,
    split_p,
    stack_p,
    unstack_p,
)
from hlofront.primitives.arrays.tiling import tile_p


def array_attribute(numbers: Sequence[int], bits: int) -> ir.Attribute:
    """Return the attribute of an array of integers of `bits` bits."""
    listed = f": {', '.join(map(str, numbers))}" if numbers else ""
    return attribute(f"array<i{bits}{listed}>")


def _stored(dtype: DType) -> DType:
    return float32 if dtype == bool_ else dtype


def as_numbers(
    build: KernelBuilder,
    x: Value,
    aval: ShapedArray,
    out: ShapedArray,
    move: Callable[[Value, ir.Type], Value],
) -> Value:
    """Move the elements of an array; booleans, which are masks, as the numbers 0 and 1.

    Args:
      move: a function of an array and the type of the result that returns the result.
    """
    stored = _stored(aval.dtype)
    number = converted(build, x, aval.shape, aval.dtype, stored)
    moved = move(number, value_type(out.shape, stored))
    return converted(build, moved, out.shape, stored, out.dtype)


@mosaic(broadcast_in_dim_p)
def _(
    build: KernelBuilder,
    x: Value,
    *,
    shape: Shape,
    broadcast_dimensions: tuple[int, ...],
    **_: object,
) -> Value:
    aval = build.avals_in[0]
    return build.broadcast(x, aval.dtype, aval.shape, tuple(shape), broadcast_dimensions)


@mosaic(reshape_p, squeeze_p)
def _(build: KernelBuilder, x: Value, **params: object) -> Value:
    if params.get("dimensions") is not None and "new_sizes" in params:
        build.refuse("reshape with `dimensions` in a kernel: transpose first", NotImplementedError)
    aval, out = build.avals_in[0], build.avals_out[0]

    if aval.shape[-2:] == out.shape[-2:] and min(aval.ndim, out.ndim) > 1:
        # Masks keep their rows and columns.
        return build.reshape(x, aval.dtype, aval.shape, out.shape)

    def reshaped(number: Value, type_: ir.Type) -> Value:
        return build.reshape(number, _stored(aval.dtype), aval.shape, out.shape)

    return as_numbers(build, x, aval, out, reshaped)


@mosaic(transpose_p)
def _(build: KernelBuilder, x: Value, *, permutation: tuple[int, ...]) -> Value:
    aval = build.avals_in[0]
    if tuple(permutation) == tuple(range(aval.ndim)):
        return x
    order = array_attribute(permutation, 64)
    return as_numbers(
        build,
        x,
        aval,
        build.avals_out[0],
        lambda number, type_: build.op("tpu.transpose", (number,), type_, permutation=order),
    )


@mosaic(iota_p)
def _(build: KernelBuilder, *, dtype: DType, shape: Shape, dimension: int, **_: object) -> Value:
    # Mosaic has no indices of a single axis: number the columns of one row.
    known = shape if len(shape) > 1 else (1, *shape)
    axis = dimension + len(known) - len(shape)
    type_ = value_type(known, int32)
    x = build.op("tpu.iota", (), type_, dimensions=array_attribute((axis,), 32))
    return converted(build, build.reshape(x, int32, known, shape), shape, int32, dtype)


# ---- parts ---------------------------------------------------------------------------------------


def concatenated(build: KernelBuilder, parts: Values, axis: int, result: ShapedArray) -> Value:
    """Return the parts one behind the other along an axis."""
    if len(parts) == 1:
        return parts[0]
    return build.op("tpu.concatenate", parts, build.type_of(result), dimension=i32(axis))


def sliced(
    build: KernelBuilder, x: Value, starts: Sequence[int], result: ShapedArray, old: Shape
) -> Value:
    """Return the part of x that begins at `starts` and has the shape of the result."""
    if old == result.shape:
        return x
    return build.op(
        "vector.extract_strided_slice",
        (x,),
        build.type_of(result),
        offsets=_numbers(starts),
        sizes=_numbers(result.shape),
        strides=_numbers([1] * len(starts)),
    )


def _numbers(numbers: Sequence[int]) -> ir.Attribute:
    return attribute(f"[{', '.join(map(str, numbers))}]")


@mosaic(concatenate_p)
def _(build: KernelBuilder, *parts: Value, dimension: int) -> Value:
    return concatenated(build, parts, dimension, build.avals_out[0])


@mosaic(slice_p)
def _(
    build: KernelBuilder,
    x: Value,
    *,
    start_indices: Shape,
    limit_indices: Shape,
    strides: Shape | None,
) -> Value:
    if strides is not None and any(step != 1 for step in strides):
        build.refuse(
            f"a slice of a value with strides {tuple(strides)}: only reads of references have "
            "them, as in ref[pl.ds(start, size, stride)]",
            NotImplementedError,
        )
    return sliced(build, x, start_indices, build.avals_out[0], build.avals_in[0].shape)


@mosaic(split_p)
def _(build: KernelBuilder, x: Value, *, sizes: tuple[int, ...], axis: int) -> list[Value]:
    starts = [0] * build.avals_in[0].ndim
    parts: list[Value] = []
    for size, aval in zip(sizes, build.avals_out, strict=True):
        parts.append(sliced(build, x, starts, aval, build.avals_in[0].shape))
        starts[axis] += size
    return parts


@mosaic(unstack_p)
def _(build: KernelBuilder, x: Value, *, axis: int) -> list[Value]:
    aval = build.avals_in[0]
    thin = aval.update(shape=(*aval.shape[:axis], 1, *aval.shape[axis + 1 :]))
    parts: list[Value] = []
    for number, out in enumerate(build.avals_out):
        starts = [number if place == axis else 0 for place in range(aval.ndim)]
        part = sliced(build, x, starts, thin, aval.shape)
        parts.append(build.reshape(part, aval.dtype, thin.shape, out.shape))
    return parts


@mosaic(stack_p)
def _(build: KernelBuilder, *parts: Value, axis: int) -> Value:
    out = build.avals_out[0]
    thin = (*out.shape[:axis], 1, *out.shape[axis + 1 :])
    rows = [
        build.reshape(x, aval.dtype, aval.shape, thin)
        for x, aval in zip(parts, build.avals_in, strict=True)
    ]
    return concatenated(build, rows, axis, out)


@mosaic(tile_p)
def _(build: KernelBuilder, x: Value, *, reps: tuple[int, ...]) -> Value:
    aval = build.avals_in[0]
    shape = list(aval.shape)
    for axis, count in enumerate(reps):
        shape[axis] *= count
        x = concatenated(build, [x] * count, axis, aval.update(shape=tuple(shape)))
    return x


@mosaic(pad_p)
def _(
    build: KernelBuilder,
    x: Value,
    filling: Value,
    *,
    padding_config: Sequence[tuple[int, int, int]],
) -> Value:
    aval = build.avals_in[0]
    if any(low < 0 or high < 0 or interior for low, high, interior in padding_config):
        build.refuse(
            f"pad by {tuple(padding_config)}: kernels of TPUs pad only before and after the "
            "elements, by 0 or more. Join slices and zeros by jnp.concatenate",
            NotImplementedError,
        )
    shape = list(aval.shape)
    for axis, (low, high, _) in enumerate(padding_config):
        edges = [
            [build.broadcast(filling, aval.dtype, (), (*shape[:axis], count, *shape[axis + 1 :]))]
            if count
            else []
            for count in (low, high)
        ]
        parts = [*edges[0], x, *edges[1]]
        shape[axis] += low + high
        x = concatenated(build, parts, axis, aval.update(shape=tuple(shape)))
    return x


@mosaic(gather_p)
def _(
    build: KernelBuilder,
    x: Value,
    indices: Value,
    *,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Shape,
    mode: GatherScatterMode,
    fill_value: float | None,
    **_: object,
) -> Value:
    """Emit jnp.take_along_axis: replace each element by one at another index along an axis."""
    aval, of = build.avals_in
    numbers = dimension_numbers
    axes = numbers.start_index_map
    others = tuple([axis for axis in range(aval.ndim) if axis not in axes])
    is_along_axis = (
        len(axes) == 1
        and of.shape == (*aval.shape, 1)
        and numbers.collapsed_slice_dims == axes
        and numbers.operand_batching_dims == numbers.start_indices_batching_dims == others
        and not numbers.offset_dims
    )
    if not is_along_axis:
        build.refuse(
            f"a gather of {aval.str_short()} by indices {of.str_short()}: kernels of TPUs gather "
            "by jnp.take_along_axis, with indices of the shape of the operand",
            NotImplementedError,
        )
    size = aval.shape[axes[0]]
    places = build.reshape(indices, of.dtype, of.shape, aval.shape)
    places = converted(build, places, aval.shape, of.dtype, int32)
    low, high = (build.constant(end, int32, aval.shape) for end in (0, size - 1))
    within = value_type(aval.shape, int32)
    if mode is GatherScatterMode.PROMISE_IN_BOUNDS:
        inside = places
    else:
        inside = build.op("arith.maxsi", (places, low), within)
        inside = build.op("arith.minsi", (inside, high), within)
    result = build.op("tpu.dynamic_gather", (x, inside), dimensions=array_attribute(axes, 32))
    if mode is not GatherScatterMode.FILL_OR_DROP:
        return result
    is_inside = compared(build, EQUAL, places, inside, aval.shape, int32)
    if fill_value is None:
        fill_value = np.nan if not kind_of(aval.dtype) else 0
    filling = build.broadcast(build.constant(fill_value, aval.dtype), aval.dtype, (), aval.shape)
    return build.op("arith.select", (is_inside, result, filling))
