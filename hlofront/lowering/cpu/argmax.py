"""Replacements of argmin and argmax on CPUs: by blocks, or by packed integers.

XLA's CPU code reduces elements and indices together sequentially, with a branch at each element,
whereas the maximum of an array of integers is vectorized. So a rule packs each float, as a 32-bit
integer with the order of the floats, and the index of the element, counted down so that the first
of equal elements is the largest, into a 64-bit integer.

Long lines along the last axis are cut into blocks of about the square root of their length: the
first block with the most extreme element contains the result, and only its elements are searched
for the index. The maximum of each block is a loop of vector instructions over equal parts of it,
and then the maximum of the remaining elements. XLA's own maximum of rows of floats is as fast, but
on CPUs it ignores NaNs, and elements before them, for 4,096 elements and more (jaxlib 0.10.2).

Other lines are cut into at most 40 slices. The extremes over the first elements of all slices, over
the second elements, and so on, are a loop of vector instructions, and so is the search for the
first slices that contain them.

Small arrays keep XLA's reduction, which is faster to compile.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from hlofront.base.dtypes import issubdtype
from hlofront.base.elements import float32, int32, int64
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import Array
from hlofront.bridge.mlir import Value
from hlofront.core.aval import ShapedArray
from hlofront.lowering.core.builder import Builder
from hlofront.lowering.core.types import NumPyDType
from hlofront.lowering.cpu.float_bits import floats_of_ordered, ordered_integers
from hlofront.lowering.cpu.sort import in_order_of_floats
from hlofront.lowering.min_sizes import MIN_SIZES
from hlofront.lowering.ops.reduce import emit_reduce, max_body
from hlofront.lowering.ops.sort import canonical_float
from hlofront.lowering.replacements import Candidate, Emit, is_narrow_float, replaces, traced
from hlofront.primitives.arrays import reducing as r
from hlofront.primitives.arrays.creation import broadcasted_iota, full, full_like
from hlofront.primitives.arrays.gathering import GatherDimensionNumbers, GatherScatterMode, gather
from hlofront.primitives.arrays.shaping import broadcast_in_dim, reshape
from hlofront.primitives.arrays.slicing import index_in_dim, slice_in_dim
from hlofront.primitives.calls.barriers import optimization_barrier
from hlofront.primitives.elementwise import compare as c
from hlofront.primitives.elementwise import elementwise as e
from hlofront.primitives.elementwise.converting import convert

# Shorter lines are not cut into slices.
_MIN_LENGTH_OF_SLICES = 64
# The numbers of float32 in a vector of AVX-512.
_LANES = 16
# The maximum number of parts of a block or slices of a line, which each take time to compile, and
# the minimum number of parts.
_MAX_PARTS = 40
_MIN_PARTS = 8


def _is_sliced(equation: Candidate) -> bool:
    """Return whether lines along the last axis are reduced by slices."""
    (aval,), params = equation.avals_in, equation.params
    is_narrow = issubdtype(aval.dtype, np.integer) and aval.dtype.itemsize <= 4
    if not (is_narrow or issubdtype(aval.dtype, np.floating)) or params["axes"][0] < aval.ndim - 1:
        return False
    return aval.size >= MIN_SIZES["argmax"]["slices"] and aval.shape[-1] >= _MIN_LENGTH_OF_SLICES


@replaces(r.argmin_p, r.argmax_p, sizes="argmax")
def _(equation: Candidate) -> Emit | None:
    """By blocks of long lines, by slices of short ones, or as packed integers."""
    (aval,) = equation.avals_in
    axes: Sequence[int] = equation.params["axes"]
    if aval.size < MIN_SIZES["argmax"]["packed"] or aval.shape[axes[0]] > np.iinfo(np.int32).max:
        return None
    is_max = equation.primitive is r.argmax_p
    if (blocks := _blocks(equation)) is not None:
        return partial(_by_blocks, shape=blocks)
    if _is_sliced(equation):
        dtype = equation.avals_out[0].dtype
        return traced(partial(_by_slices, dtype=dtype, is_max=is_max))
    return partial(_by_packed_integers, axes=axes) if is_narrow_float(aval.dtype) else None


# ---- blocks ----------------------------------------------------------------------------------


class _Blocks(NamedTuple):
    """The shape into which lines along the last axis are cut."""

    lines: int
    blocks: int
    parts: int
    size: int


def _blocks(equation: Candidate) -> _Blocks | None:
    """Return the blocks into which the lines of the operand are cut, or None if they are not."""
    (aval,), params = equation.avals_in, equation.params
    axis: int = params["axes"][0]
    length = aval.shape[axis]
    if axis != aval.ndim - 1 or length < MIN_SIZES["argmax"]["line of blocks"]:
        return None
    if not is_narrow_float(aval.dtype) and aval.dtype not in (np.int32, np.float64):
        return None
    parts = next(count for count in range(_MAX_PARTS, 0, -1) if length % count == 0)
    if parts < _MIN_PARTS:
        return None
    # The largest size of parts with which blocks are not longer than the square root.
    part_length = length // parts
    size = next(
        count
        for count in range(max(math.isqrt(length) // parts, 1), 0, -1)
        if part_length % count == 0
    )
    return _Blocks(aval.size // length, part_length // size, parts, size)


def _by_blocks(build: Builder, x: Value, shape: _Blocks) -> Value:
    """Return the index of the first most extreme element in each line, by blocks of parts."""
    (aval,), (result,) = build.avals_in, build.avals_out
    is_max = build.primitive is r.argmax_p
    lines, blocks, parts, size = shape

    def of_parts(x: Array) -> Array:
        x = reshape(x, shape)
        if is_narrow_float(aval.dtype):
            x = convert(x, float32, False)
        slices = [index_in_dim(x, i, 2, keepdims=False) for i in range(parts)]
        extreme = _of_pairs(e.max if is_max else e.min, slices)
        # NaN remains the most extreme. Complements have the opposite order of integers.
        if is_max:
            return extreme
        return e.neg(extreme) if issubdtype(x.dtype, np.floating) else e.bitwise_not(extreme)

    dtype = float32 if is_narrow_float(aval.dtype) else aval.dtype
    maxima = ShapedArray((lines, blocks, size), dtype)
    (ordered,) = build.barrier(build.by_tracing(of_parts, [x]), [maxima])
    if issubdtype(dtype, np.floating):
        ordered, maxima = in_order_of_floats(build, canonical_float(build, ordered, maxima), maxima)
    least = build.constant(np.iinfo(maxima.dtype).min, maxima.dtype)
    out = maxima.update(shape=(lines, blocks))
    greatest = emit_reduce(build, [ordered], [least], [out], (2,), max_body(out))
    (greatest,) = build.barrier(greatest, [out])

    def in_block(x: Array, greatest: Array) -> Array:
        block = r.argmax(greatest, 1, int32)
        dimensions = GatherDimensionNumbers((1,), (1,), (1,), (0,), (0,))
        rows = reshape(x, (lines, blocks, parts * size))
        sizes = (1, 1, parts * size)
        mode = GatherScatterMode.PROMISE_IN_BOUNDS
        first = gather(rows, reshape(block, (lines, 1)), dimensions, sizes, mode=mode)
        inside = (r.argmax if is_max else r.argmin)(first, 1, int32)
        index = e.add(e.mul(block, full_like(block, parts * size)), inside)
        return convert(reshape(index, result.shape), result.dtype, False)

    return build.by_tracing(in_block, [x, greatest], [aval, out])[0]


def _of_pairs(combine: Callable[[Array, Array], Array], values: Sequence[Array]) -> Array:
    """Combine values in pairs, then the results in pairs, and so on."""
    while len(values) > 1:
        pairs = [combine(x, y) for x, y in zip(values[::2], values[1::2])]
        values = [*pairs, *values[len(pairs) * 2 :]]
    return values[0]


# ---- slices ----------------------------------------------------------------------------------


def _by_slices(x: Array, dtype: NumPyDType, is_max: bool) -> Array:
    """Return the index of the first most extreme element in each line along the last axis.

    Lines are cut into slices of equal size; the last one may overlap the previous one. Numbers at
    the same position of all slices are compared first, each position in its own lane.
    """
    length = x.shape[-1]
    lines = reshape(x, (x.size // length, length))
    if is_narrow_float(x.dtype):
        lines = convert(lines, float32, False)
    size = _LANES * math.ceil(length / _MAX_PARTS / _LANES)
    starts = [min(start, length - size) for start in range(0, length, size)]
    slices = [slice_in_dim(lines, start, start + size, axis=1) for start in starts]
    (lanes,) = optimization_barrier((_of_pairs(e.max if is_max else e.min, slices),))
    (extreme,) = optimization_barrier((_of_lanes(lanes, is_max),))
    wide = broadcast_in_dim(extreme, lanes.shape, (0,))
    nowhere = full(lanes.shape, np.iinfo(int32).max, int32)
    first = nowhere
    for start, each in zip(reversed(starts), reversed(slices)):
        # There are NaNs only if the extreme is NaN.
        is_extreme = e.bitwise_or(c.eq(each, wide), c.ne(each, each))
        first = c.select(is_extreme, full_like(first, start), first)
    index = e.add(first, broadcasted_iota(int32, lanes.shape, 1))
    (index,) = optimization_barrier((c.select(c.eq(first, nowhere), nowhere, index),))
    return convert(reshape(r.reduce_min(index, (1,)), x.shape[:-1]), dtype, False)


def _of_lanes(x: Array, is_max: bool) -> Array:
    """Return the greatest or the least element of each line, or NaN if it contains one."""
    if not issubdtype(x.dtype, np.floating):
        return (r.reduce_max if is_max else r.reduce_min)(x, (1,))
    ordered = ordered_integers(x if is_max else e.neg(x))
    extreme = floats_of_ordered(r.reduce_max(ordered, (1,)), x.dtype)
    return extreme if is_max else e.neg(extreme)


# ---- packed integers -------------------------------------------------------------------------


def _by_packed_integers(build: Builder, x: Value, axes: Sequence[int]) -> Value:
    """Return the index of the first most extreme float along the axis."""
    (aval,), (result,) = build.avals_in, build.avals_out
    wide = aval.update(dtype=float32, weak_type=False)
    x = build.convert(x, wide)
    if build.primitive is r.argmin_p:
        x = build.op("stablehlo.negate", (x,), wide)  # NaN stays the most extreme.
    ordered, _ = in_order_of_floats(build, canonical_float(build, x, wide), wide)

    packed = wide.update(dtype=int64)
    high = build.op(
        "stablehlo.shift_left", (build.convert(ordered, packed), build.full(32, packed)), packed
    )
    last = aval.shape[axes[0]] - 1
    low = build.op(
        "stablehlo.subtract", (build.full(last, packed), build.iota(packed, axes[0])), packed
    )
    key = build.op("stablehlo.or", (high, low), packed)
    out = result.update(dtype=int64, weak_type=False)
    least = build.constant(np.iinfo(int64).min, int64)
    (greatest,) = emit_reduce(build, [key], [least], [out], axes, max_body(out))
    low = build.op("stablehlo.and", (greatest, build.full(0xFFFF_FFFF, out)), out)
    index = build.op("stablehlo.subtract", (build.full(last, out), low), out)
    return build.convert(index, result)
