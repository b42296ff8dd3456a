"""Replacements of reductions on CPUs: adjacent elements are mapped to vector lanes.

XLA's CPU code for a reduction along the last axis combines elements sequentially, unless the
library YNNPACK has a kernel for it. So the last reduced axes are cut into rows of a few lanes: the
rows are combined first, which is one loop of vector instructions, then their lanes.

YNNPACK's kernel for maxima and minima of floats ignores NaNs. XLA does not use it for a reduction
by a comparison and a select.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from hlofront.base.dtypes import issubdtype
from hlofront.base.named_tuple import NamedTuple
from hlofront.bridge.mlir import Value
from hlofront.core.aval import ShapedArray
from hlofront.core.primitive import Primitive
from hlofront.lowering.core.builder import Builder
from hlofront.lowering.core.types import i64
from hlofront.lowering.cpu.maxima import is_fault_lowered
from hlofront.lowering.min_sizes import MIN_SIZES
from hlofront.lowering.ops.reduce import Body, emit_reduce, monoid_of
from hlofront.lowering.replacements import Candidate, Emit, replaces
from hlofront.primitives.arrays import reducing as r

# Lanes of fewer lines are not cut into rows again.
_MIN_LANES = 4_096
# The number of lanes for long and for short lines, and the length of the shortest long line.
_LANES, _FEW_LANES, _LONG = 32, 16, 512
# If operations are fused, other numbers of lanes are better than leftover elements.
_NUMBERS_OF_LANES = (16, 32, 48, 64, 24, 40, 56, 20, 28, 36, 25, 27, 30, 33, 35)
# LLVM unrolls a loop over this many rows, which makes the loop over lanes the innermost one.
_MAX_ROWS, _MIN_ROWS = 16, 4
# Sums of shorter lines are slower by lanes.
_MIN_LENGTH_OF_SUM = 256


class _Lines(NamedTuple):
    """The last consecutive reduced axes, from `start` to `stop`, exclusive.

    A line has `length` elements along these axes; each element is `width` numbers of later axes.
    """

    start: int
    stop: int
    length: int
    width: int


def _lines_of(shape: Sequence[int], axes: Sequence[int]) -> _Lines:
    start = stop = max(axes) + 1
    while start - 1 in axes:
        start -= 1
    return _Lines(start, stop, math.prod(shape[start:stop]), math.prod(shape[stop:]))


def _integer_lines(equation: Candidate) -> _Lines | None:
    """Return the lines of large operands of integers or booleans to reduce by lanes, or None."""
    (aval,) = equation.avals_in
    is_integer = issubdtype(aval.dtype, np.integer) or aval.dtype == np.bool_
    axes: Sequence[int] = equation.params["axes"]
    if not is_integer or aval.size < MIN_SIZES["reduce"]["integers"] or not axes:
        return None
    return _lines_of(aval.shape, axes)


def _is_combined_in_turns(equation: Candidate) -> bool:
    """Return whether XLA combines adjacent integers sequentially."""
    lines = _integer_lines(equation)
    if lines is None or lines.width > _LANES:
        return False
    return lines.length * lines.width >= 2 * _FEW_LANES


def _is_long_sum(equation: Candidate) -> bool:
    """Return whether long lines of integers are summed, which XLA mostly converts one at a time."""
    lines = _integer_lines(equation)
    return lines is not None and lines.length >= _MIN_LENGTH_OF_SUM


def _has_slow_extreme(equation: Candidate) -> bool:
    """Return whether XLA combines elements sequentially, or by a kernel that skips NaNs."""
    aval = equation.avals_in[0]
    if issubdtype(aval.dtype, np.floating):
        if not is_fault_lowered() or aval.dtype not in (np.float32, np.float64):
            return False
        return bool(equation.params["axes"]) and aval.size >= MIN_SIZES["reduce"]["floats"]
    # XLA uses vector instructions for one-byte integers.
    return aval.dtype.itemsize > 1 and _is_combined_in_turns(equation)


_IS_SLOW: dict[Primitive, Callable[[Candidate], bool]] = {
    r.reduce_and_p: _is_combined_in_turns,
    r.reduce_or_p: _is_combined_in_turns,
    r.reduce_xor_p: _is_combined_in_turns,
    r.reduce_max_p: _has_slow_extreme,
    r.reduce_min_p: _has_slow_extreme,
    r.reduce_sum_p: _is_long_sum,
}


@replaces(*_IS_SLOW, sizes="reduce")
def _(equation: Candidate) -> Emit | None:
    """Rows of vector lanes."""
    return _by_lanes_of if _IS_SLOW[equation.primitive](equation) else None


def _by_lanes_of(build: Builder, x: Value) -> Value:
    (aval,), (result,) = build.avals_in, build.avals_out
    if issubdtype(aval.dtype, np.floating):
        body = _selection(build.primitive is r.reduce_max_p, result)
    else:
        body = monoid_of(build.primitive).body(result)
    return _by_lanes(build, x, aval, build.current.params["axes"], body)


def _selection(is_maximum: bool, aval: ShapedArray) -> Body:
    """Return the region that selects a NaN, or else the extreme, of two numbers."""
    scalar, truth = aval.update(shape=()), ShapedArray((), np.dtype(np.bool_))
    direction = "GT" if is_maximum else "LT"

    def body(inner: Builder, x: Value, y: Value) -> list[Value]:
        is_first = inner.compare(direction, x, y, scalar)
        is_nan = inner.compare("NE", x, x, scalar)
        return [inner.select(inner.op("stablehlo.or", (is_first, is_nan), truth), x, y, scalar)]

    return body


class _Rows(NamedTuple):
    """The division of a line into parts of rows of lanes, and leftover elements."""

    parts: int
    rows: int
    lanes: int
    left: int


def _rows_of(lines: _Lines) -> _Rows | None:
    """Return the division of lines, or None if they are too short for two rows."""
    length, width = lines.length, lines.width
    usual = max((_LANES if length * width >= _LONG else _FEW_LANES) // width, 1)
    if length < 2 * usual:
        return None
    whole = [count for count in _NUMBERS_OF_LANES if count >= usual and length % count == 0]
    for lanes in whole if width == 1 else ():
        rows = max(n for n in range(1, _MAX_ROWS + 1) if length % (lanes * n) == 0)
        if rows >= _MIN_ROWS:
            return _Rows(length // (lanes * rows), rows, lanes, 0)
    # Leave over as few elements as possible.
    most = min(length // usual, _MAX_ROWS)
    rows = min(range(most, most // 2, -1), key=lambda rows: length % (rows * usual))
    parts, left = divmod(length, rows * usual)
    return _Rows(parts, rows, usual, left)


def _by_lanes(
    build: Builder, x: Value, aval: ShapedArray, axes: Sequence[int], body: Body
) -> Value:
    """Return the reduction of x with its last axes cut into rows of lanes."""
    lines = _lines_of(aval.shape, axes)
    cut = _rows_of(lines)
    if cut is None:
        return _at_once(build, x, aval, axes, body)
    axis = lines.start
    before, after = aval.shape[:axis], aval.shape[lines.stop :]

    def line(length: int) -> ShapedArray:
        return aval.update(shape=(*before, length, *after))

    def elements(x: Value, start: int, stop: int) -> Value:
        starts, limits = [0] * aval_of_line.ndim, list(aval_of_line.shape)
        starts[axis], limits[axis] = start, stop
        return build.slice(x, starts, limits, None, line(stop - start))

    aval_of_line, whole = line(lines.length), lines.length - cut.left
    x = x if aval.ndim == aval_of_line.ndim else build.reshape(x, aval_of_line)
    left = elements(x, whole, lines.length) if cut.left else None
    x = elements(x, 0, whole) if cut.left else x
    rows = aval.update(shape=(*before, cut.parts, cut.rows, cut.lanes, *after))
    x = _at_once(build, build.reshape(x, rows), rows, (axis + 1,), body)
    # After a reshape the loop would be one over elements.
    lanes = aval.update(shape=(*before, cut.parts, cut.lanes, *after))
    (x,) = build.barrier([x], [lanes])
    combined = line(cut.parts * cut.lanes)
    x = build.reshape(x, combined)
    if left is not None:
        combined = line(cut.parts * cut.lanes + cut.left)
        x = build.op("stablehlo.concatenate", (x, left), combined, dimension=i64(axis))
    outer = tuple(other_axis for other_axis in axes if other_axis < axis)
    if outer:
        x = _by_lanes(build, x, combined, outer, body)
        combined = combined.update(shape=r.without_axes(combined.shape, outer))
        axis -= len(outer)
    reduce = _by_lanes if combined.size >= _MIN_LANES else _at_once
    return reduce(build, x, combined, (axis,), body)


def _at_once(build: Builder, x: Value, aval: ShapedArray, axes: Sequence[int], body: Body) -> Value:
    """Return the reduction of x over axes as one operation."""
    out = aval.update(shape=r.without_axes(aval.shape, axes))
    initial = monoid_of(build.primitive).initial(build, aval.dtype)
    return emit_reduce(build, [x], [initial], [out], axes, body)[0]
