"""The lowering rules of sliding windows for CPUs: combinations of shifted slices.

XLA's CPU code reduces one window after the other, element by element. The sum or the maximum of one
slice for each position in the window is a loop of vector instructions. The derivative of a maximum,
select_and_scatter, visits each window too; here each element finds the windows that selected it.

The processor time of 8 x 56 x 56 x 64 numbers of float32 in milliseconds, as XLA's operation and
so, on an AMD EPYC of 2 cores by AVX-512: maxima of 3 x 3 7.2 and 1.7, with strides of 2 2.1 and
0.8, sums 4.4 and 1.3, 1.3 and 0.7; gradients of the squares of maxima of 3 x 3 113 and 59, with
strides of 2 42 and 3.6, of 2 x 2 with strides of 2 31 and 1.2. To compile it takes 90 to 165 ms
for 30, and for the gradients 116 to 330 for 360 to 530.

YNNPACK's kernel for maxima and minima ignores NaNs (lowering/reducing_cpu.py), in windows, too,
also where they do not overlap. As slices maxima of 2 x 2 with strides of 2 take 393 us for 422
there, with channels first 429 for 1,874, of 3 x 3 with strides of 3 333 for 390, of 8 x 8 461 for
356, on an Intel Xeon. Other windows are reduced by a comparison and a selection, which the kernel
is not taken for, and a window of whole axes as a reduction.
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hlofront.base.dtypes import is_complex
from hlofront.base.typing import Array, ArrayLike, Shape
from hlofront.bridge.mlir import Value
from hlofront.core.aval import ShapedArray
from hlofront.core.primitive import Primitive
from hlofront.lowering.builder import Builder
from hlofront.lowering.cpu_formulas import Candidate, formula_on_cpu
from hlofront.lowering.reducing import zero
from hlofront.lowering.reducing_cpu import extreme_of_integers, ignores_nans, selection_of
from hlofront.lowering.windowed import emit_reduce_window
from hlofront.primitives import comparing, reducing
from hlofront.primitives import elementwise as e
from hlofront.primitives import windowed as w
from hlofront.primitives.barriers import optimization_barrier
from hlofront.primitives.comparing import select
from hlofront.primitives.creating import full_like
from hlofront.primitives.shaping import ascending, reshape
from hlofront.primitives.slicing import pad, slice_along

# Windows of more elements keep one operation: each element takes 2 to 15 ms to compile.
_MOST_POSITIONS = 64
# So do windows of fewer elements in all.
_FEWEST = 16_384


def _are_small_and_many(positions: int, windows: Shape) -> bool:
    """Return whether windows of so many elements are small, and there are many."""
    return 1 < positions <= _MOST_POSITIONS and positions * math.prod(windows) >= _FEWEST


def _stored(build: Builder, values: Sequence[Value]) -> Value:
    """Return a result that XLA stores, as it does those of its operations, and computes once."""
    return build.barrier(values, build.avals_out)[0]


# ---- reductions ------------------------------------------------------------------------------


def _are_shifted_slices(equation: Candidate) -> bool:
    """Return whether windows are combined as shifted slices.

    Sums of windows that do not overlap are not, as XLA's code for them is as fast.
    """
    (result,), windows = equation.avals_out, w.Windows(**equation.params)
    positions = math.prod(windows.window_dimensions)
    between = math.prod(windows.window_strides) * math.prod(windows.base_dilation)
    return positions >= 2 * between and _are_small_and_many(positions, result.shape)


def _are_shifted_slices_of_extremes(equation: Candidate) -> bool:
    """Return whether windows, of which maxima or minima are asked, are combined as slices."""
    (aval,), (result,), windows = *equation[:2], w.Windows(**equation.params)
    if not ignores_nans(aval):
        return _are_shifted_slices(equation)
    positions = math.prod(windows.window_dimensions)
    are_few = _are_small_and_many(positions, result.shape)
    return are_few and not _covers_axes(aval, result, windows)


def _may_ignore_nans(equation: Candidate) -> bool:
    return ignores_nans(equation.avals_in[0])


@formula_on_cpu(
    w.reduce_window_max_p, w.reduce_window_min_p, when=_may_ignore_nans, elementwise=True
)
def _(build: Builder, x: Value, **windows: Any) -> Value:
    """Lower the maxima or minima of windows over several devices, and of unknown sizes."""
    is_maximum = build.primitive is w.reduce_window_max_p

    def maxima(integers: Array) -> Array:
        # Windows of padding alone would have the least integer, which stands for a NaN.
        lowest = np.array(-np.inf, build.avals_in[0].dtype).view(integers.dtype)
        lowest ^= np.iinfo(integers.dtype).max
        result = w.reduce_window_max(integers, *w.Windows(**windows))
        return e.max(result, full_like(result, lowest))

    def reduced(x: Array) -> Array:
        return extreme_of_integers(x, maxima, is_maximum)

    return build.by_tracing(reduced, [x])[0]


@formula_on_cpu(w.reduce_window_max_p, w.reduce_window_min_p, when=_may_ignore_nans)
def _(build: Builder, x: Value, **params: Any) -> Value:
    """Lower the maxima or minima of large or few windows of floats, which propagate NaNs."""
    (aval,), (result,), windows = build.avals_in, build.avals_out, w.Windows(**params)
    is_maximum = build.primitive is w.reduce_window_max_p
    if _covers_axes(aval, result, windows):
        axes = [axis for axis, size in enumerate(windows.window_dimensions) if size > 1]
        reduce = reducing.reduce_max if is_maximum else reducing.reduce_min

        def reduced(x: Array) -> Array:
            return reshape(reduce(x, axes), result.shape)

        return build.by_tracing(reduced, [x])[0]
    start = reducing.least_value if is_maximum else reducing.greatest_value
    initial = build.constant(start(result.dtype), result.dtype)
    body = selection_of(is_maximum, result)
    return emit_reduce_window(build, [x], [initial], [result], windows, body)[0]


def _covers_axes(aval: ShapedArray, result: ShapedArray, windows: w.Windows) -> bool:
    """Return whether there is one window along some axes, and elements by themselves on others."""
    is_dense = all(step == 1 for step in (*windows.base_dilation, *windows.window_dilation))
    return is_dense and all(
        pads == (0, 0) and (window == size if window > 1 else count == size)
        for size, count, window, pads in zip(
            aval.shape, result.shape, windows.window_dimensions, windows.padding, strict=True
        )
    )


_COMBINATIONS = {
    w.reduce_window_sum_p: (e.add, zero),
    w.reduce_window_max_p: (e.max, reducing.least_value),
    w.reduce_window_min_p: (e.min, reducing.greatest_value),
}


@formula_on_cpu(w.reduce_window_sum_p, when=_are_shifted_slices, stored=True)
@formula_on_cpu(
    w.reduce_window_max_p,
    w.reduce_window_min_p,
    when=_are_shifted_slices_of_extremes,
    stored=True,
)
def _(build: Builder, x: Value, **windows: Any) -> Value:
    combine, start = _COMBINATIONS[build.primitive]
    (result,) = build.avals_out

    def of_array(x: Array) -> Array:
        shifted = _shifted(x, start(x.dtype), w.Windows(**windows), result.shape)
        total, *others = shifted
        for other in others:
            total = combine(total, other)
        return total

    return _stored(build, build.by_tracing(of_array, [x]))


def _shifted(x: Array, filling: ArrayLike, windows: w.Windows, shape: Shape) -> list[Array]:
    """Return for each position in the windows, row by row, an array of their elements there."""
    dimensions, strides, padding, base_dilation, dilation = windows
    config = [(*pads, step - 1) for pads, step in zip(padding, base_dilation, strict=True)]
    padded = pad(x, filling, config)
    results: list[Array] = []
    for position in itertools.product(*map(range, dimensions)):
        starts = [index * step for index, step in zip(position, dilation, strict=True)]
        results.append(slice_along(padded, ascending(x.ndim), starts, shape, strides))
    return results


# ---- the derivative of maxima and minima -----------------------------------------------------


def _scatters_many(equation: Candidate) -> bool:
    """Return whether each of many real sources goes to an element of a small window.

    XLA's operation also orders complex numbers, which the primitives of comparisons do not.
    """
    (source, _), _, params = equation
    positions = math.prod(params["window_dimensions"])
    return not is_complex(source.dtype) and _are_small_and_many(positions, source.shape)


_COMPARISONS = {
    comparing.ge_p: (comparing.ge, reducing.least_value),
    comparing.le_p: (comparing.le, reducing.greatest_value),
}


@formula_on_cpu(w.select_and_scatter_add_p, when=_scatters_many, stored=True)
def _(build: Builder, *operands: Value, select_prim: Primitive, **params: Any) -> Value:
    def of_arrays(source: Array, operand: Array) -> Array:
        return _scattered(source, operand, select_prim, **params)

    return _stored(build, build.by_tracing(of_arrays, operands))


def _scattered(
    source: Array,
    operand: Array,
    select_prim: Primitive,
    window_dimensions: Shape,
    window_strides: Shape,
    padding: w.Pads,
) -> Array:
    """Return the sum, for each element of the operand, of the sources of windows that select it."""
    keeps, start = _COMPARISONS[select_prim]
    ones = (1,) * operand.ndim
    windows = w.Windows(window_dimensions, window_strides, padding, ones, ones)
    best, *others = _shifted(operand, start(operand.dtype), windows, source.shape)
    selected = full_like(best, 0, dtype=np.int32)
    for number, other in enumerate(others, 1):
        is_kept = keeps(best, other)
        best = select(is_kept, best, other)
        selected = select(is_kept, selected, full_like(selected, number))
    # Each element reads the selections of several windows: XLA would make them again for each.
    (selected,) = optimization_barrier((selected,))
    total: Array | None = None
    nothing = full_like(source, 0)
    for number, position in enumerate(itertools.product(*map(range, window_dimensions))):
        part = select(comparing.eq(selected, full_like(selected, number)), source, nothing)
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
