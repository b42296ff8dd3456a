"""Partial sorts on CPUs, for programs that read only a few elements of a sort, such as medians.

The k-th smallest number of a line is found by bisection, bit by bit, as an integer in the order of
the floats: a bit is set if at most k elements are less than the number with that bit set.
Each count is one loop of vector instructions over equal parts of the line.

The results are elements at these positions of the sorted line. Among numbers that the sort treats
as equal, negative zeros come first here, and subnormal numbers are in order; NaNs come last.
"""

import itertools
import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from hlofront.base.dtypes import issubdtype
from hlofront.base.elements import float32, float64, int32, int64
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import Array, Shape
from hlofront.core.aval import ShapedArray
from hlofront.core.jaxpr import Atom, Equation
from hlofront.higher_order.while_loop import while_loop
from hlofront.lowering.core.formulas import Formula, where
from hlofront.lowering.cpu.float_bits import as_dtype, floats_of_ordered, ordered_integers
from hlofront.lowering.min_sizes import MIN_SIZES
from hlofront.lowering.replacements import Candidate, Emit, traced
from hlofront.primitives.arrays.creation import full
from hlofront.primitives.arrays.gathering import GatherDimensionNumbers, GatherScatterMode, gather_p
from hlofront.primitives.arrays.reducing import reduce_max, reduce_sum
from hlofront.primitives.arrays.shaping import broadcast_in_dim, reshape, transpose
from hlofront.primitives.arrays.slicing import concatenate, index_in_dim, pad, slice_in_dim, slice_p
from hlofront.primitives.calls.barriers import optimization_barrier
from hlofront.primitives.elementwise import compare as c
from hlofront.primitives.elementwise import elementwise as e
from hlofront.primitives.elementwise.converting import convert

# Shorter lines are sorted.
_SHORTEST = 512
# Longer lines are also sorted: two counts of their elements would not fit into a float64 exactly.
_LONGEST_BITS = 26
_LONGEST = 1 << _LONGEST_BITS
# The maximum number of parts of a line in one counting loop.
_MAX_PARTS = 16
# Half of an integer, which holds the count over the elements of all parts at one position.
_HALF_BITS = 16
_HALF = 1 << _HALF_BITS


def selection(equation: Candidate) -> Emit | None:
    """Return the rule that selects the elements of a sort that are read, or None to sort.

    The rule is for one large array of floats, if only a few positions of its lines are read.
    """
    aval, params = equation.avals_in[0], equation.params
    if len(equation.avals_in) > 1 or aval.size < MIN_SIZES["sort"]["selection"]:
        return None
    if not issubdtype(aval.dtype, np.floating) or aval.dtype.itemsize == 1:
        return None
    axis: int = params["dimension"]
    length = aval.shape[axis]
    if not _SHORTEST <= length < _LONGEST or equation.group is None:
        return None
    readers = equation.group.readers
    gathers = [reader for reader in readers if _gathers_elements(reader, axis)]
    ends = [reader for reader in readers if _slices_end(reader, axis)]
    if len(gathers) + len(ends) < len(readers):
        return None
    positions = sum(_aval(gather.outvars[0]).size for gather in gathers) * length // aval.size
    if not 0 < positions <= _most_positions(length):
        return None
    return traced(partial(_selected, readers=readers, axis=axis), is_wide=True)


def _most_positions(length: int) -> int:
    """Return the maximum number of positions in a line for which selection beats sorting.

    The time of a sort grows with the logarithm of the length, that of selection with the number of
    positions.
    """
    return length.bit_length() - 6


def _aval(atom: Atom) -> ShapedArray:
    """Return the aval of an operand or a result that is an array."""
    aval: Any = atom.aval
    return aval


def _others(axis: int, ndim: int) -> tuple[int, ...]:
    return tuple(i for i in range(ndim) if i != axis)


def _gathers_elements(equation: Equation, axis: int) -> bool:
    """Return whether an equation gathers single elements from each line along an axis."""
    if equation.primitive is not gather_p:
        return False
    params, aval = equation.params, _aval(equation.invars[0])
    numbers: GatherDimensionNumbers = params["dimension_numbers"]
    single = (axis, *numbers.operand_batching_dims)
    sizes = tuple(1 if i in single else size for i, size in enumerate(aval.shape))
    return (
        params["mode"] in (GatherScatterMode.PROMISE_IN_BOUNDS, GatherScatterMode.CLIP)
        and numbers.collapsed_slice_dims == (axis,)
        and numbers.start_index_map == (axis,)
        and params["slice_sizes"] == sizes
    )


def _slices_end(equation: Equation, axis: int) -> bool:
    """Return whether an equation slices the last element of each line along an axis."""
    if equation.primitive is not slice_p:
        return False
    shape, result = _aval(equation.invars[0]).shape, _aval(equation.outvars[0])
    start = [size - 1 if i == axis else 0 for i, size in enumerate(shape)]
    ones = [1 if i == axis else size for i, size in enumerate(shape)]
    is_end = list(equation.params["start_indices"]) == start
    return is_end and list(result.shape) == ones


# ---- the selection -------------------------------------------------------------------------------


def _selected(x: Array, *indices: Array, readers: Sequence[Equation], axis: int) -> list[Array]:
    """Return the results of equations that gather from, or slice the end of, a sorted array."""
    lines, length, other_axes = x.size // x.shape[axis], x.shape[axis], _others(axis, x.ndim)
    rows = reshape(transpose(x, (*other_axes, axis)), (lines, length))
    gathers = [reader for reader in readers if reader.primitive is gather_p]
    ranks: list[Array] = []
    shapes: list[Shape] = []
    layouts: list[_Layout] = []
    for index, gather in zip(indices, gathers, strict=True):
        layout = _Layout.of(gather.params["dimension_numbers"], index.ndim - 1, other_axes)
        index = reshape(index, index.shape[:-1])
        order = sorted(range(index.ndim), key=layout.of_indices.__getitem__)
        rest = [index.shape[i] for i in order if layout.of_indices[i] >= len(other_axes)]
        shape = (*(x.shape[i] for i in other_axes), *rest)
        axes = [layout.of_indices[i] for i in order]
        index = broadcast_in_dim(transpose(index, order), shape, axes)
        ranks.append(convert(reshape(index, (lines, index.size // lines)), int32, False))
        shapes.append(shape)
        layouts.append(layout)
    elements = _elements(rows, concatenate(ranks, 1))
    gathered: list[Array] = []
    start = 0
    for rank, shape, layout in zip(ranks, shapes, layouts, strict=True):
        limit = start + rank.shape[1]
        part = reshape(slice_in_dim(elements, start, limit, axis=1), shape)
        gathered.append(transpose(part, layout.of_result))
        start = limit
    results = iter(gathered)
    return [
        next(results) if reader in gathers else reshape(_last(rows), _aval(reader.outvars[0]).shape)
        for reader in readers
    ]


class _Layout(NamedTuple):
    """The correspondence of axes to the axes of lines, followed by those of positions in a line.

    Attributes:
      of_indices: the numbers for each axis of a gather's indices.
      of_result: the numbers for each axis of its result.
    """

    of_indices: list[int]
    of_result: list[int]

    @classmethod
    def of(cls, numbers: GatherDimensionNumbers, rank: int, other_axes: Sequence[int]) -> "_Layout":
        """Return the layout of a gather from lines along `other_axes` by indices of this rank."""
        batch = dict(zip(numbers.start_indices_batching_dims, numbers.operand_batching_dims))
        count = itertools.count(len(other_axes))
        of_indices = [
            other_axes.index(batch[i]) if i in batch else next(count) for i in range(rank)
        ]
        windows = iter([i for i in other_axes if i not in numbers.operand_batching_dims])
        from_indices = iter(of_indices)
        of_result = [
            other_axes.index(next(windows)) if i in numbers.offset_dims else next(from_indices)
            for i in range(rank + len(numbers.offset_dims))
        ]
        return cls(of_indices, of_result)


def _last(rows: Array) -> Array:
    """Return the greatest element of each row, or NaN if it contains one."""
    # XLA's maximum of many elements on a CPU ignores NaNs (jaxlib 0.10.2).
    greatest = Formula(reduce_max(rows, (1,)))
    missing = reduce_sum(convert(c.ne(rows, rows), float32, False), (1,))
    return where(Formula(missing) > 0, np.nan, greatest).value


def _elements(rows: Array, ranks: Array) -> Array:
    """Return the elements of rows (lines, length) at ranks (lines, k) of the sorted rows."""
    (lines, length), count = rows.shape, ranks.shape[1]
    ranks = e.clamp(np.int32(0), ranks, np.int32(length - 1))
    pairs = (count + 1) // 2
    if count % 2:
        ranks = concatenate([ranks, slice_in_dim(ranks, count - 1, count, axis=1)], 1)
    keys = ordered_integers(rows)
    dtype, limits = keys.dtype, np.iinfo(keys.dtype)
    parts = min(_MAX_PARTS, length)
    size = math.ceil(length / parts)
    # The greatest integer is not less than any candidate.
    filling = dtype.type(limits.max)
    filled = pad(keys, filling, ((0, 0, 0), (0, parts * size - length, 0)))
    (keys,) = optimization_barrier((reshape(filled, (lines, parts, size)),))
    shape = (lines, pairs, size)

    def counted(candidates: Array) -> Array:
        """Return the number of elements of each row that are less than its candidates."""
        halves = [slice_in_dim(candidates, i, i + pairs, axis=1) for i in (0, pairs)]
        first, second = (Formula(broadcast_in_dim(half, shape, (0, 1))) for half in halves)
        counts: list[Formula] = []
        for part in range(parts):
            own = index_in_dim(keys, part, 1, keepdims=False)
            own = Formula(broadcast_in_dim(own, shape, (0, 2)))
            # The counts for two candidates are in the halves of one integer.
            ones, others = (as_dtype(own < bound, int32) for bound in (first, second))
            counts.append(ones + others * _HALF)
        while len(counts) > 1:
            sums = [x + y for x, y in zip(counts[::2], counts[1::2])]
            counts = [*sums, *counts[2 * len(sums) :]]
        (both,) = counts
        first = as_dtype(both & (_HALF - 1), float64)
        second = as_dtype(Formula(e.shift_right_logical(both.value, np.int32(_HALF_BITS))), float64)
        (by_lane,) = optimization_barrier(((first + second * _LONGEST).value,))
        total = as_dtype(Formula(reduce_sum(by_lane, (2,))), int64)
        first = total & (_LONGEST - 1)
        second = Formula(e.shift_right_logical(total.value, np.int64(_LONGEST_BITS)))
        return convert(concatenate([first.value, second.value], 1), int32, False)

    def step(state: tuple[Array, Array]) -> tuple[Array, Array]:
        bit, least = state
        candidates = e.add(least, bit)
        least = c.select(c.le(counted(candidates), ranks), candidates, least)
        return e.shift_right_logical(bit, dtype.type(1)), least

    # The least integer is also the sign bit.
    start = full((), limits.min, dtype), full(ranks.shape, limits.min, dtype)
    _, selected = while_loop(lambda state: c.ne(state[0], dtype.type(0)), step, start)
    selected = slice_in_dim(selected, 0, count, axis=1)
    return floats_of_ordered(selected, rows.dtype)
