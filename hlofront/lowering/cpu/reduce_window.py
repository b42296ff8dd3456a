"""Replacements of sliding windows on CPUs: combinations of shifted slices.

XLA's CPU code reduces one window at a time, element by element. The sum or maximum of slices, one
for each position in the window, is a loop of vector instructions. The derivative of a maximum,
select_and_scatter, also visits one window at a time; here each element finds the windows that
selected it.
"""

import itertools
import math
from functools import partial, reduce

import numpy as np

from hlofront.base.dtypes import is_complex
from hlofront.base.typing import Array, ArrayLike, Shape
from hlofront.core.primitive import Primitive
from hlofront.lowering.min_sizes import MIN_SIZES
from hlofront.lowering.ops.reduce import zero
from hlofront.lowering.replacements import Candidate, Emit, replaces, traced
from hlofront.primitives.arrays import reducing
from hlofront.primitives.arrays import windowed as w
from hlofront.primitives.arrays.creation import full_like
from hlofront.primitives.arrays.shaping import ascending
from hlofront.primitives.arrays.slicing import pad, slice_along
from hlofront.primitives.calls.barriers import optimization_barrier
from hlofront.primitives.elementwise import compare
from hlofront.primitives.elementwise import elementwise as e
from hlofront.primitives.elementwise.compare import select

# Windows of more elements keep XLA's operation, because each element takes time to compile.
_MAX_POSITIONS = 64
_MIN_OVERLAP = 3
_MIN_SIZES = MIN_SIZES["reduce_window"]


def _are_small_and_many(positions: int, windows: Shape, min_size: int) -> bool:
    """Return whether windows have few positions, and many elements are computed."""
    return 1 < positions <= _MAX_POSITIONS and positions * math.prod(windows) >= min_size


# ---- reductions ------------------------------------------------------------------------------

_COMBINATIONS = {
    w.reduce_window_sum_p: (e.add, zero),
    w.reduce_window_max_p: (e.max, reducing.least_value),
    w.reduce_window_min_p: (e.min, reducing.greatest_value),
}


@replaces(*_COMBINATIONS, form="windows", sizes="reduce_window", needs_barriers=True)
def _(equation: Candidate) -> Emit | None:
    """Combine shifted slices, one for each position in the window, if windows overlap enough."""
    (result,), windows = equation.avals_out, w.Windows(**equation.params)
    combine, start = _COMBINATIONS[equation.primitive]
    positions = math.prod(windows.window_dimensions)
    between = math.prod(windows.window_strides) * math.prod(windows.base_dilation)
    are_many = _are_small_and_many(positions, result.shape, _MIN_SIZES["windows"])
    # If few windows share an element, XLA's code is as fast, and faster for large arrays.
    if positions < _MIN_OVERLAP * between or not are_many:
        return None

    def of_array(x: Array) -> Array:
        return reduce(combine, _shifted(x, start(x.dtype), windows, result.shape))

    return traced(of_array, is_stored=True)


def _shifted(x: Array, filling: ArrayLike, windows: w.Windows, shape: Shape) -> list[Array]:
    """Return, for each position in a window, row by row, an array of the elements there."""
    dimensions, strides, padding, base_dilation, dilation = windows
    config = [(*pads, step - 1) for pads, step in zip(padding, base_dilation, strict=True)]
    padded = pad(x, filling, config)
    results: list[Array] = []
    for position in itertools.product(*map(range, dimensions)):
        starts = [index * step for index, step in zip(position, dilation, strict=True)]
        results.append(slice_along(padded, ascending(x.ndim), starts, shape, strides))
    return results


# ---- the derivative of maxima and minima -----------------------------------------------------


_COMPARISONS = {
    compare.ge_p: (compare.ge, reducing.least_value),
    compare.le_p: (compare.le, reducing.greatest_value),
}


@replaces(w.select_and_scatter_add_p, form="gradients", sizes="reduce_window", needs_barriers=True)
def _(equation: Candidate) -> Emit | None:
    """Each element finds the small windows that selected it.

    XLA's operation also orders complex numbers, unlike the comparison primitives.
    """
    source, params = equation.avals_in[0], equation.params
    positions = math.prod(params["window_dimensions"])
    are_many = _are_small_and_many(positions, source.shape, _MIN_SIZES["gradients"])
    if is_complex(source.dtype) or not are_many:
        return None
    return traced(partial(_scattered, **params), is_stored=True)


def _scattered(
    source: Array,
    operand: Array,
    select_prim: Primitive,
    window_dimensions: Shape,
    window_strides: Shape,
    padding: w.Pads,
) -> Array:
    """Return, for each element of the operand, the sum of the sources of windows that select it."""
    keeps, start = _COMPARISONS[select_prim]
    ones = (1,) * operand.ndim
    windows = w.Windows(window_dimensions, window_strides, padding, ones, ones)
    best, *others = _shifted(operand, start(operand.dtype), windows, source.shape)
    selected = full_like(best, 0, dtype=np.int32)
    for number, other in enumerate(others, 1):
        is_kept = keeps(best, other)
        best = select(is_kept, best, other)
        selected = select(is_kept, selected, full_like(selected, number))
    # Each element reads the selections of several windows, which XLA would recompute for each.
    (selected,) = optimization_barrier((selected,))
    total: Array | None = None
    nothing = full_like(source, 0)
    for number, position in enumerate(itertools.product(*map(range, window_dimensions))):
        part = select(compare.eq(selected, full_like(selected, number)), source, nothing)
        config: list[tuple[int, int, int]] = []
        for size, index, stride, (before, _), count in zip(
            operand.shape, position, window_strides, padding, source.shape, strict=True
        ):
            low = index - before
            config.append((low, size - low - (count - 1) * stride - 1, stride - 1))
        part = pad(part, np.zeros((), source.dtype), config)
        total = part if total is None else e.add(total, part)
    assert total is not None
    return total
