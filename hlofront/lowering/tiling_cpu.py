"""The lowering rule of tile for CPUs: a few copies of a whole array are concatenated.

XLA's CPU code computes for each element of the result which one of the operand it is. Joined copies
are copied as blocks of memory, also where other operations are fused with them. The time of float32
in microseconds, as a broadcast and so, on an Intel Xeon of 2 cores: three times 10^6 elements 2,000
and 830, with exp and a product 2,200 and 1,160; eight times 100,000 395 and 167, and 860 and 470;
three times 1,000 rows of 1,000 1,060 and 1,020, and 1,620 and 1,020. Copies side by side of shorter
lines, as along the last axis of 1,000 x 1,000, take longer with other operations, 3,000 for 2,100.

A slice of the copies, as jnp.resize has, would again be computed for each element. It is made of
the copies that it has whole and of parts of others. The time as a slice of a concatenation and so,
and of a broadcast, as jax has it: 350,000 elements of 100,000 277, 109 and 263, before exp 504, 248
and 1,210; 1,500,000 of 10^6 1,400, 499 and 1,055, and 2,040, 1,160 and 6,170.
"""

import math
from collections.abc import Sequence
from typing import Any

from hlofront.base.typing import Array
from hlofront.bridge.mlir import Value
from hlofront.lowering import types
from hlofront.lowering.builder import Builder
from hlofront.lowering.cpu_formulas import Candidate, formula_on_cpu
from hlofront.primitives.slicing import concatenate, slice_p, with_entry
from hlofront.primitives.tiling import tile_p

# Smaller arrays gain little, and more copies take longer to compile.
_FEWEST = 4096
_MOST_COPIES = 8


def _pays(equation: Candidate) -> bool:
    """Return whether the result is a few copies of a large array, one after the other."""
    (aval,), _, params = equation
    reps: tuple[int, ...] = params["reps"]
    repeated = [axis for axis, count in enumerate(reps) if count != 1]
    if len(repeated) != 1 or math.prod(aval.shape[: repeated[0]]) != 1:
        return False
    return aval.size >= _FEWEST and 1 < reps[repeated[0]] <= _MOST_COPIES


@formula_on_cpu(tile_p, when=_pays, in_place=True)
def _(build: Builder, x: Value, *, reps: Sequence[int]) -> Value:
    (axis,) = [axis for axis, count in enumerate(reps) if count > 1]

    def copies(x: Array) -> Array:
        return concatenate([x] * reps[axis], axis)

    return build.by_tracing(copies, [x])[0]


def _may_pay(equation: Candidate) -> bool:
    """Return whether many elements of an array are taken, in a row along each axis."""
    _, (result,), params = equation
    strides = params["strides"]
    return result.size >= _FEWEST and (strides is None or set(strides) == {1})


@formula_on_cpu(slice_p, when=_may_pay, in_place=True)
def _(
    build: Builder,
    x: Value,
    *,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None,
) -> Value:
    joined: Any = x.owner
    if not _is_copies(joined):
        return build.slice(x, start_indices, limit_indices, strides)
    (aval,), (result,) = build.avals_in, build.avals_out
    (axis,) = [i for i in range(aval.ndim) if joined.attributes["dimension"] == types.i64(i)]
    size = aval.shape[axis] // len(joined.operands)
    parts: list[Value] = []
    for number in range(len(joined.operands)):
        start = max(start_indices[axis] - number * size, 0)
        limit = min(limit_indices[axis] - number * size, size)
        if start < limit:
            starts = with_entry(tuple(start_indices), axis, start)
            limits = with_entry(tuple(limit_indices), axis, limit)
            part = result.update(shape=with_entry(result.shape, axis, limit - start))
            is_whole = part.shape == with_entry(aval.shape, axis, size)
            copy = joined.operands[number]
            parts.append(copy if is_whole else build.slice(copy, starts, limits, strides, part))
    if len(parts) == 1:
        return parts[0]
    return build.op("stablehlo.concatenate", parts, result, dimension=types.i64(axis))


def _is_copies(operation: Any) -> bool:
    """Return whether an operation of a module joins copies of one array."""
    if getattr(operation, "name", None) != "stablehlo.concatenate":
        return False
    copies = list(operation.operands)
    return len(copies) > 1 and all(copy == copies[0] for copy in copies)
