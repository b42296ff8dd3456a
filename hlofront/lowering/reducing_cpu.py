"""The lowering rules of reductions for CPUs: adjacent elements go to lanes.

XLA's CPU code for a reduction along the last axis combines one element after the other, unless the
library YNNPACK has a kernel for it. So the last reduced axes are cut into rows of a few lanes: the
rows are combined first, which is one loop of vector instructions, then their lanes. The time in
microseconds, as one reduction and so, on an Intel Xeon of 2 cores of which one was used:

                                  one line of 10^6   1,000 x 1,000   10,000 x 100
    the maximum of int32                  774, 255        776, 240       920, 388
    any of bool                           127,  26        121,  31       116,  60
    the sum of bool as int32              479,  79        420,  74       569, 569 (is not cut)

Such sums along the first axis of 1,000 x 1,000 take 453 and 57. To compile it takes 50 to 90 ms
there for 50 to 110.

YNNPACK's kernel for maxima and minima of float32 and float64 ignores NaNs, and elements next to
them, in operands of 4,096 elements and more (jaxlib 0.10.2 to 0.12). XLA does not take it for a
reduction by a comparison and a selection. By lanes that takes 204 us for 10^6, 195 and 255 for rows
where the kernel takes 168, 158 and 190, and 50 to 80 ms longer to compile; of |x - 1| 328, 302 and
335 for 396, 342 and 373, of exp(x) 647, 601 and 988 for 464, 401 and 461. In programs over several
devices, and of unknown sizes, such extremes are those of integers in the order of the floats.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from hlofront.base.dtypes import issubdtype
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import Array
from hlofront.bridge.mlir import Value
from hlofront.core.aval import ShapedArray
from hlofront.core.symbolic_sizes import has_symbolic_size
from hlofront.lowering.builder import Builder
from hlofront.lowering.cpu_formulas import Candidate, formula_on_cpu
from hlofront.lowering.reducing import Body, emit_reduce, monoid_of
from hlofront.lowering.selecting_cpu import floats_of_ordered, ordered_integers
from hlofront.lowering.types import i64
from hlofront.primitives import elementwise as e
from hlofront.primitives import reducing as r

# XLA's code for operands of fewer elements is right and fast enough.
_FEWEST = 4_096
# Fewer lanes of lines are not cut into rows once more.
_FEWEST_LANES = 4_096
# The lanes of a row of long and of short lines, and the length of the shortest long line.
_LANES, _FEW_LANES, _LONG = 32, 16, 512
# Other numbers of lanes are better than elements that are left, where operations are fused.
_NUMBERS_OF_LANES = (16, 32, 48, 64, 24, 40, 56, 20, 28, 36, 25, 27, 30, 33, 35)
# LLVM unrolls a loop over as many rows, so that the innermost loop is the one over lanes.
_MOST_ROWS, _FEWEST_ROWS = 32, 4
# Sums of shorter lines take longer by lanes.
_SHORTEST_SUM = 256


class _Lines(NamedTuple):
    """The last reduced axes that follow each other, from `start` to `stop`, exclusive.

    A line has `length` elements along these, each of which is `width` numbers of later axes.
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
    """Return the lines of an operand of many integers or booleans; None for others."""
    (aval,), _, params = equation
    is_integer = issubdtype(aval.dtype, np.integer) or aval.dtype == np.bool_
    if not is_integer or aval.size < _FEWEST or not params["axes"]:
        return None
    return _lines_of(aval.shape, params["axes"])


def _is_combined_in_turns(equation: Candidate) -> bool:
    """Return whether XLA combines adjacent integers one after the other."""
    lines = _integer_lines(equation)
    if lines is None or lines.width > _LANES:
        return False
    return lines.length * lines.width >= 2 * _FEW_LANES


def _is_long_sum(equation: Candidate) -> bool:
    """Return whether long lines of integers are added, which XLA mostly converts one by one."""
    lines = _integer_lines(equation)
    return lines is not None and lines.length >= _SHORTEST_SUM


def ignores_nans(aval: ShapedArray) -> bool:
    """Return whether XLA may take its kernel for a maximum or minimum of an operand."""
    if aval.dtype not in (np.float32, np.float64):
        return False
    return has_symbolic_size(aval.shape) or aval.size >= _FEWEST


def extreme_of_integers(x: Array, reduce: Callable[[Array], Array], is_maximum: bool) -> Array:
    """Return a maximum or minimum of floats, which is NaN where one of them is.

    Args:
      x: the floats.
      reduce: returns the maximum of integers, which stand for the floats in their order.
      is_maximum: whether the maximum is asked for.
    """
    extreme = floats_of_ordered(reduce(ordered_integers(x if is_maximum else e.neg(x))), x.dtype)
    return extreme if is_maximum else e.neg(extreme)


def _is_extreme_with_nans(equation: Candidate) -> bool:
    (aval,), _, params = equation
    return ignores_nans(aval) and bool(params["axes"])


@formula_on_cpu(r.reduce_max_p, r.reduce_min_p, when=_is_extreme_with_nans, elementwise=True)
def _(build: Builder, x: Value, *, axes: Sequence[int], **_: object) -> Value:
    """Lower the extremes of floats over several devices, and of unknown sizes."""
    is_maximum = build.primitive is r.reduce_max_p

    def reduced(x: Array) -> Array:
        return extreme_of_integers(x, lambda integers: r.reduce_max(integers, axes), is_maximum)

    return build.by_tracing(reduced, [x])[0]


def _is_slow_or_wrong(equation: Candidate) -> bool:
    """Return whether XLA's maximum or minimum ignores NaNs or combines one after the other."""
    aval = equation.avals_in[0]
    if issubdtype(aval.dtype, np.floating):
        return _is_extreme_with_nans(equation)
    # XLA has vector instructions for integers of a byte.
    return aval.dtype.itemsize > 1 and _is_combined_in_turns(equation)


@formula_on_cpu(r.reduce_and_p, r.reduce_or_p, r.reduce_xor_p, when=_is_combined_in_turns)
@formula_on_cpu(r.reduce_max_p, r.reduce_min_p, when=_is_slow_or_wrong)
@formula_on_cpu(r.reduce_sum_p, when=_is_long_sum)
def _(build: Builder, x: Value, *, axes: Sequence[int], **_: object) -> Value:
    (aval,), (result,) = build.avals_in, build.avals_out
    if issubdtype(aval.dtype, np.floating):
        body = selection_of(build.primitive is r.reduce_max_p, result)
    else:
        body = monoid_of(build.primitive).body(result)
    return _by_lanes(build, x, aval, axes, body)


def selection_of(is_maximum: bool, aval: ShapedArray) -> Body:
    """Return the region that selects, of two numbers, a NaN or else the extreme."""
    scalar, truth = aval.update(shape=()), ShapedArray((), np.dtype(np.bool_))
    direction = "GT" if is_maximum else "LT"

    def body(inner: Builder, x: Value, y: Value) -> list[Value]:
        is_first = inner.compare(direction, x, y, scalar)
        is_nan = inner.compare("NE", x, x, scalar)
        return [inner.select(inner.op("stablehlo.or", (is_first, is_nan), truth), x, y, scalar)]

    return body


class _Rows(NamedTuple):
    """The cut of a line: into parts of rows of lanes, and some elements that are left."""

    parts: int
    rows: int
    lanes: int
    left: int


def _rows_of(lines: _Lines) -> _Rows | None:
    """Return how lines are cut; None if they are too short for two rows."""
    length, width = lines.length, lines.width
    usual = max((_LANES if length * width >= _LONG else _FEW_LANES) // width, 1)
    if length < 2 * usual:
        return None
    whole = [each for each in _NUMBERS_OF_LANES if each >= usual and length % each == 0]
    for lanes in whole if width == 1 else ():
        rows = max(n for n in range(1, _MOST_ROWS + 1) if length % (lanes * n) == 0)
        if rows >= _FEWEST_ROWS:
            return _Rows(length // (lanes * rows), rows, lanes, 0)
    # As few elements are left as possible.
    most = min(length // usual, _MOST_ROWS)
    rows = min(range(most, most // 2, -1), key=lambda rows: length % (rows * usual))
    parts, left = divmod(length, rows * usual)
    return _Rows(parts, rows, usual, left)


def _by_lanes(
    build: Builder, x: Value, aval: ShapedArray, axes: Sequence[int], body: Body
) -> Value:
    """Return the reduction of x, of which the last axes are cut into rows of lanes."""
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
    # Behind a reshape the loop would be one over elements.
    lanes = aval.update(shape=(*before, cut.parts, cut.lanes, *after))
    (x,) = build.barrier([x], [lanes])
    combined = line(cut.parts * cut.lanes)
    x = build.reshape(x, combined)
    if left is not None:
        combined = line(cut.parts * cut.lanes + cut.left)
        x = build.op("stablehlo.concatenate", (x, left), combined, dimension=i64(axis))
    outer = tuple(each for each in axes if each < axis)
    if outer:
        x = _by_lanes(build, x, combined, outer, body)
        combined = combined.update(shape=r.without_axes(combined.shape, outer))
        axis -= len(outer)
    reduce = _by_lanes if combined.size >= _FEWEST_LANES else _at_once
    return reduce(build, x, combined, (axis,), body)


def _at_once(build: Builder, x: Value, aval: ShapedArray, axes: Sequence[int], body: Body) -> Value:
    """Return the reduction of x over axes, as one operation."""
    out = aval.update(shape=r.without_axes(aval.shape, axes))
    initial = monoid_of(build.primitive).initial(build, aval.dtype)
    return emit_reduce(build, [x], [initial], [out], axes, body)[0]
