"""The replacement of select_and_scatter, the derivative of maxima of windows, on CPUs.

XLA's CPU code visits one window at a time, element by element. Here each element finds the windows
that selected it: a loop of vector instructions over one slice for each position in the window.
"""

import itertools
import math
from functools import partial

import numpy as np

from hlofront.base.dtypes import is_complex
from hlofront.base.typing import Array, Shape
from hlofront.core.primitive import Primitive
from hlofront.lowering.min_sizes import MIN_SIZES
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

# Windows of more elements keep one operation: each element takes time to compile.
_MAX_POSITIONS = 64

_COMPARISONS = {
    compare.ge_p: (compare.ge, reducing.least_value),
    compare.le_p: (compare.le, reducing.greatest_value),
}


@replaces(w.select_and_scatter_add_p, form="windows", needs_barriers=True)
def _(equation: Candidate) -> Emit | None:
    """Each element finds the small windows that selected it.

    XLA's operation also orders complex numbers, which the primitives of comparisons do not.
    """
    source, params = equation.avals_in[0], equation.params
    positions = math.prod(params["window_dimensions"])
    min_size = MIN_SIZES["select_and_scatter_add"]["windows"]
    is_large = positions * math.prod(source.shape) >= min_size
    if is_complex(source.dtype) or not (1 < positions <= _MAX_POSITIONS and is_large):
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
    """Return the sum, for each element of the operand, of the sources of windows that select it."""
    keeps, start = _COMPARISONS[select_prim]
    padded = pad(operand, start(operand.dtype), [(*pads, 0) for pads in padding])
    positions = list(itertools.product(*map(range, window_dimensions)))
    # The elements at each position of the windows, row by row.
    best, *others = [
        slice_along(padded, ascending(operand.ndim), position, source.shape, window_strides)
        for position in positions
    ]
    selected = full_like(best, 0, dtype=np.int32)
    for number, other in enumerate(others, 1):
        is_kept = keeps(best, other)
        best = select(is_kept, best, other)
        selected = select(is_kept, selected, full_like(selected, number))
    # Each element reads the selections of several windows: XLA would make them again for each.
    (selected,) = optimization_barrier((selected,))
    total: Array | None = None
    nothing = full_like(source, 0)
    for number, position in enumerate(positions):
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
