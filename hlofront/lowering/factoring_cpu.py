"""The lowering rule for CPUs of the permutation that exchanges of rows result in.

Elsewhere each exchange compares all rows with its two, which is one step for a vector unit. Here it
reads and writes two elements. The time in microseconds by all rows, by elements, and of jax, on an
Intel Xeon: 128 exchanges of 128 rows 55, 15 and 18, 1,000 of 1,000 1,180, 130 and 455, 3,000 of
3,000 7,700, 550 and 1,580; 100 of 100 in each of 64 permutations 603, 220 and 189, 8 of 8 in each
of 256 22, 16 and 47. To compile it takes 125 to 200 ms for 180 to 240.
"""

import math
from collections.abc import Sequence

import numpy as np

from hlofront.base.typing import Array
from hlofront.bridge.mlir import Value
from hlofront.core.aval import ShapedArray
from hlofront.lowering.builder import Builder
from hlofront.lowering.cpu_formulas import Candidate, formula_on_cpu
from hlofront.lowering.loops import count_up
from hlofront.primitives import factoring as f
from hlofront.primitives.creating import broadcasted_iota, full
from hlofront.primitives.dynamic_slicing import (
    dynamic_slice_in_dim,
    dynamic_update_slice_in_dim,
)
from hlofront.primitives.elementwise import add, mul
from hlofront.primitives.gathering import GatherDimensionNumbers, GatherScatterMode, gather
from hlofront.primitives.scattering import ScatterDimensionNumbers, scatter
from hlofront.primitives.shaping import reshape

_int32 = np.dtype(np.int32)


def _has_exchanges(equation: Candidate) -> bool:
    return equation.avals_in[0].size > 0


@formula_on_cpu(f.lu_pivots_to_permutation_p, when=_has_exchanges)
def _(build: Builder, pivots: Value, *, permutation_size: int) -> Value:
    (aval,), (result,) = build.avals_in, build.avals_out
    count, batch = aval.shape[-1], math.prod(aval.shape[:-1])
    rows = ShapedArray((batch, permutation_size), _int32)
    flat = aval.update(shape=(batch, count))
    (order,) = build.by_tracing(lambda: broadcasted_iota(_int32, rows.shape, 1), (), ())
    step = _step_of_one if batch == 1 else _step_of_many
    first = build.constant(0, _int32)
    values = build.reshape(pivots, flat), order
    _, order = count_up(build, first, count, step, values, (flat, rows))
    return build.reshape(order, result)


def _step_of_one(i: Array, pivots: Array, order: Array) -> Sequence[Array]:
    """Exchange two elements of one permutation, the only row of `order`."""
    mine, other = _at(order, i), _at(order, reshape(_at(pivots, i), ()))
    order = _with(order, other, i)
    order = _with(order, mine, reshape(_at(pivots, i), ()))
    return [add(i, np.int32(1)), pivots, order]


def _step_of_many(i: Array, pivots: Array, order: Array) -> Sequence[Array]:
    """Exchange two elements of each row of `order`."""
    batch, size = order.shape
    mine = _at(order, i)
    starts = mul(broadcasted_iota(_int32, (batch, 1), 0), full((batch, 1), size, _int32))
    there = add(starts, _at(pivots, i))
    in_bounds = GatherScatterMode.PROMISE_IN_BOUNDS
    numbers = GatherDimensionNumbers((), (0,), (0,))
    other = gather(reshape(order, (batch * size,)), there, numbers, (1,), mode=in_bounds)
    order = _with(order, reshape(other, (batch, 1)), i)
    order = scatter(
        reshape(order, (batch * size,)),
        there,
        reshape(mine, (batch,)),
        ScatterDimensionNumbers((), (0,), (0,)),
        unique_indices=True,
        mode=in_bounds,
    )
    return [add(i, np.int32(1)), pivots, reshape(order, (batch, size))]


def _at(rows: Array, i: Array) -> Array:
    """Return the element at an index of each row."""
    return dynamic_slice_in_dim(rows, i, 1, 1, allow_negative_indices=False)


def _with(rows: Array, elements: Array, i: Array) -> Array:
    """Return rows with other elements at an index."""
    return dynamic_update_slice_in_dim(rows, elements, i, 1, allow_negative_indices=False)
