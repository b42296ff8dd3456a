"""The replacement of gathers of one element per row on TPUs: a maximum of selected elements.

XLA's TPU code writes the indices of a gather in several steps, each a separate kernel, and reads
the operand from memory. A comparison of each position with the row's index becomes part of the
kernel that computes the operand, such as the logits of a cross entropy.
"""

import numpy as np

from hlofront.base.dtypes import issubdtype
from hlofront.base.typing import Array
from hlofront.lowering.replacements import Candidate, Emit, replaces, traced
from hlofront.primitives.arrays.creation import full_like, index_like
from hlofront.primitives.arrays.gathering import GatherDimensionNumbers, GatherScatterMode, gather_p
from hlofront.primitives.arrays.reducing import least_value, reduce_max
from hlofront.primitives.arrays.shaping import broadcast_in_dim, reshape
from hlofront.primitives.elementwise.compare import eq, select_n
from hlofront.primitives.elementwise.elementwise import clamp

# Longer rows are not read completely.
_LONGEST = 1024


@replaces(gather_p, platform="tpu")
def _(equation: Candidate) -> Emit | None:
    """One element of each short row by int32 indices, as the maximum of a selection."""
    operand, indices = equation.avals_in
    (result,), params = equation.avals_out, equation.params
    numbers: GatherDimensionNumbers = params["dimension_numbers"]
    if not issubdtype(operand.dtype, np.floating) or operand.dtype.itemsize not in (2, 4):
        return None
    if len(numbers.start_index_map) != 1 or numbers.offset_dims or indices.dtype != np.int32:
        return None
    (axis,) = numbers.start_index_map
    rows = tuple(other for other in range(operand.ndim) if other != axis)
    if numbers.operand_batching_dims != rows or not 0 < operand.shape[axis] <= _LONGEST:
        return None
    batching = numbers.start_indices_batching_dims
    free_sizes = [size for i, size in enumerate(indices.shape) if i not in batching]
    if list(batching) != sorted(batching) or set(free_sizes) != {1}:
        return None
    fill_value: float | None = params["fill_value"]
    is_filled = params["mode"] in (GatherScatterMode.FILL_OR_DROP, GatherScatterMode.ONE_HOT)

    def gathered(x: Array, indices: Array) -> Array:
        last = np.int32(x.shape[axis] - 1)
        indices = reshape(indices, tuple(x.shape[row] for row in rows))
        inside = clamp(np.int32(0), indices, last)
        positions = broadcast_in_dim(inside, x.shape, rows)
        is_chosen = eq(index_like(x, axis), positions)
        # A maximum keeps NaN and the sign of zero.
        least = full_like(x, least_value(x.dtype))
        chosen = reduce_max(select_n(is_chosen, least, x), (axis,))
        if is_filled:
            fill = full_like(chosen, 0 if fill_value is None else fill_value)
            chosen = select_n(eq(indices, inside), fill, chosen)
        return reshape(chosen, result.shape)

    return traced(gathered)
