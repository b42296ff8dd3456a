"""The lowering rules of argmin and argmax for CPUs: by blocks, or by one integer for each element.

XLA's CPU code for a reduction of elements and indices at once runs one element after the other, and
branches at each. The maximum of an array of integers is vectorized. So a rule packs each float, as
the integer of 32 bits whose order is that of the floats, and the index of the element, counted down
so that the first of equal elements is the greatest, in an integer of 64 bits.

Long lines along the last axis are cut into blocks of about the square root of their length: the
first block with the most extreme element has the result, and only its elements are compared with
their indices. The maximum of each block is that of equal parts of it, which is one loop of vector
instructions, and of what is left. XLA's maximum of rows of float32 and float64 is as fast, but on
CPUs ignores NaNs, and elements before them, in 4,096 elements and more (jaxlib 0.10.2).

The time of float32 in microseconds, as a reduction of two arrays and as packed integers, on an AMD
EPYC of 2 cores by AVX-512: 10^6 elements 5,200 and 1,000, 1,000 lines of 1,000 5,500 and 1,000, or
3,400 and 410 along the first axis, 30,000 lines of 32 3,000 and 270, 100,000 of 10 270 and 220; by
AVX2: 1,350 and 1,010, 1,400 and 970, 1,430 and 920, 1,660 and 190, 260 and 290. To compile it takes
35 to 110 ms for 30: so small arrays keep the reduction of two.

As packed integers and by blocks, on a loaded Intel Xeon of 2 cores by AVX-512: 10^7 elements
115,000 and 6,800 (NumPy 3,800), 10^6 2,640 and 390 (160), 10^5 190 and 54 (8), 32,768 56 and 36, 8
lines of 10^5 2,320 and 340. By a reduction of two and by blocks, 10^6 of float64 3,780 and 1,280
(410), of int32 1,120 and 300 (160). To compile it takes 170 to 280 ms there for 110 to 240 as
packed integers and 35 as a reduction of two.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from hlofront.base.dtypes import issubdtype
from hlofront.base.typing import Array
from hlofront.bridge.mlir import Value
from hlofront.core.aval import ShapedArray
from hlofront.lowering.builder import Builder
from hlofront.lowering.cpu_formulas import Candidate, candidate, formula_on_cpu, is_narrow_float
from hlofront.lowering.reducing import emit_reduce, max_body
from hlofront.lowering.sorting import canonical_float
from hlofront.lowering.sorting_cpu import in_order_of_floats
from hlofront.lowering.types import NumPyDType
from hlofront.primitives import elementwise as e
from hlofront.primitives import reducing as r
from hlofront.primitives.converting import convert
from hlofront.primitives.creating import full_like
from hlofront.primitives.gathering import GatherDimensionNumbers, GatherScatterMode, gather
from hlofront.primitives.shaping import reshape
from hlofront.primitives.slicing import index_in_dim

_int32, _int64, _float32 = np.dtype(np.int32), np.dtype(np.int64), np.dtype(np.float32)

# Arrays of fewer elements are reduced with their indices,
_FEWEST = 16_384
# and lines of fewer elements are not cut into blocks.
_SHORTEST = 32_768
# The most parts of a block, each of which takes about 2 ms to compile, and the fewest.
_MOST_PARTS = 40
_FEWEST_PARTS = 8


def _pays(equation: Candidate) -> bool:
    """Return whether the operand is reduced by blocks or as packed integers."""
    (aval,), _, params = equation
    axis: int = params["axes"][0]
    if aval.size < _FEWEST or aval.shape[axis] > np.iinfo(np.int32).max:
        return False
    return _blocks(equation) is not None or is_narrow_float(aval.dtype)


@formula_on_cpu(r.argmin_p, r.argmax_p, when=_pays)
def _(build: Builder, x: Value, *, axes: Sequence[int], index_dtype: NumPyDType) -> Value:
    blocks = _blocks(candidate(build))
    if blocks is None:
        return _by_packed_integers(build, x, axes)
    return _by_blocks(build, x, blocks)


# ---- blocks ----------------------------------------------------------------------------------


class _Blocks(NamedTuple):
    """The shape that lines along the last axis are cut into."""

    lines: int
    blocks: int
    parts: int
    size: int


def _blocks(equation: Candidate) -> _Blocks | None:
    """Return the blocks that the lines of the operand are cut into; None if they are not."""
    (aval,), _, params = equation
    axis: int = params["axes"][0]
    length = aval.shape[axis]
    if axis != aval.ndim - 1 or length < _SHORTEST:
        return None
    if not is_narrow_float(aval.dtype) and aval.dtype not in (np.int32, np.float64):
        return None
    parts = next(each for each in range(_MOST_PARTS, 0, -1) if length % each == 0)
    if parts < _FEWEST_PARTS:
        return None
    # The greatest size of parts of which blocks are not longer than the square root.
    rest = length // parts
    size = next(
        each for each in range(max(math.isqrt(length) // parts, 1), 0, -1) if rest % each == 0
    )
    return _Blocks(aval.size // length, rest // size, parts, size)


def _by_blocks(build: Builder, x: Value, shape: _Blocks) -> Value:
    """Return the index in each line of the first most extreme element, by blocks of parts."""
    (aval,), (result,) = build.avals_in, build.avals_out
    is_max = build.primitive is r.argmax_p
    lines, blocks, parts, size = shape

    def of_parts(x: Array) -> Array:
        x = reshape(x, shape)
        if is_narrow_float(aval.dtype):
            x = convert(x, _float32, False)
        slices = [index_in_dim(x, i, 2, keepdims=False) for i in range(parts)]
        extreme = _of_pairs(e.max if is_max else e.min, slices)
        # NaN stays the most extreme. The complement is in the opposite order of integers.
        if is_max:
            return extreme
        return e.neg(extreme) if issubdtype(x.dtype, np.floating) else e.bitwise_not(extreme)

    dtype = _float32 if is_narrow_float(aval.dtype) else aval.dtype
    maxima = ShapedArray((lines, blocks, size), dtype)
    (ordered,) = build.barrier(build.by_tracing(of_parts, [x]), [maxima])
    if issubdtype(dtype, np.floating):
        ordered, maxima = in_order_of_floats(build, canonical_float(build, ordered, maxima), maxima)
    least = build.constant(np.iinfo(maxima.dtype).min, maxima.dtype)
    out = maxima.update(shape=(lines, blocks))
    greatest = emit_reduce(build, [ordered], [least], [out], (2,), max_body(out))
    (greatest,) = build.barrier(greatest, [out])

    def in_block(x: Array, greatest: Array) -> Array:
        block = r.argmax(greatest, 1, _int32)
        dimensions = GatherDimensionNumbers((1,), (1,), (1,), (0,), (0,))
        rows = reshape(x, (lines, blocks, parts * size))
        sizes = (1, 1, parts * size)
        mode = GatherScatterMode.PROMISE_IN_BOUNDS
        first = gather(rows, reshape(block, (lines, 1)), dimensions, sizes, mode=mode)
        inside = (r.argmax if is_max else r.argmin)(first, 1, _int32)
        index = e.add(e.mul(block, full_like(block, parts * size)), inside)
        return convert(reshape(index, result.shape), result.dtype, False)

    return build.by_tracing(in_block, [x, greatest], [aval, out])[0]


def _of_pairs(combine: Callable[[Array, Array], Array], values: Sequence[Array]) -> Array:
    """Return all values combined in pairs, the results of these in pairs, and so on."""
    while len(values) > 1:
        pairs = [combine(x, y) for x, y in zip(values[::2], values[1::2])]
        values = [*pairs, *values[len(pairs) * 2 :]]
    return values[0]


# ---- packed integers -------------------------------------------------------------------------


def _by_packed_integers(build: Builder, x: Value, axes: Sequence[int]) -> Value:
    """Return the index along the axis of the first most extreme element, of floats."""
    (aval,), (result,) = build.avals_in, build.avals_out
    wide = aval.update(dtype=_float32, weak_type=False)
    x = build.convert(x, wide)
    if build.primitive is r.argmin_p:
        x = build.op("stablehlo.negate", (x,), wide)  # NaN stays the most extreme.
    ordered, _ = in_order_of_floats(build, canonical_float(build, x, wide), wide)

    packed = wide.update(dtype=_int64)
    high = build.op(
        "stablehlo.shift_left", (build.convert(ordered, packed), build.full(32, packed)), packed
    )
    last = aval.shape[axes[0]] - 1
    low = build.op(
        "stablehlo.subtract", (build.full(last, packed), build.iota(packed, axes[0])), packed
    )
    key = build.op("stablehlo.or", (high, low), packed)
    out = result.update(dtype=_int64, weak_type=False)
    least = build.constant(np.iinfo(_int64).min, _int64)
    (greatest,) = emit_reduce(build, [key], [least], [out], axes, max_body(out))
    low = build.op("stablehlo.and", (greatest, build.full(0xFFFF_FFFF, out)), out)
    index = build.op("stablehlo.subtract", (build.full(last, out), low), out)
    return build.convert(index, result)
