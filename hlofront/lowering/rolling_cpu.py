"""The lowering rules of rolled arrays for CPUs: the end of an array joined to its start.

XLA's CPU code computes each element of a concatenation of slices by itself, but copies vectors
whole. To concatenate a vector with itself and to take its middle is the faster way for large
vectors alone: 10^7 of float32 take 22 ms for 89 so and 2 * 10^7 255 ms for 507, but 4 * 10^6 2.5 ms
for 2.6, and 10^6 0.77 ms for 0.34 (rolled by 5, on an Intel Xeon of 2 cores).

Along the last axis of other arrays the two slices are padded, and one is selected for each element,
which XLA fuses with other operations into one loop; concatenations along an axis of 128 elements or
more it stores. The time of the difference of an array and its roll so, as a share of that with a
concatenation: 1,000 x 1,000 of float32 rolled by 1 0.3, by 125 0.5, of float64 0.1 and 0.2,
256 x 256 of float32 rolled by 1 0.5, by 2 1.3. Numbers of 16 bits or less take up to four times as
long. Along other axes it is no faster by itself, 0.2 to 0.6 in sums of several rolls.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hlofront.base.dtypes import issubdtype
from hlofront.base.typing import Array
from hlofront.bridge.mlir import Value
from hlofront.lowering import types
from hlofront.lowering.builder import Builder
from hlofront.lowering.cpu_formulas import Candidate, formula_on_cpu
from hlofront.primitives.comparing import lt, select
from hlofront.primitives.creating import broadcasted_iota, full_like, scalar_of
from hlofront.primitives.slicing import concatenate_p, pad, with_entry

# Smaller vectors are concatenated from their slices.
_FEWEST_BYTES_OF_VECTORS = 1 << 24
# So are arrays with shorter lines or fewer elements,
_SHORTEST = 128
_FEWEST = 1 << 15
# and, unless they are rolled by one element, with fewer than this.
_FEWEST_BY_MORE = 1 << 19


def _may_pay(equation: Candidate) -> bool:
    """Return whether two operands may be the end and the start of an array that is large enough."""
    operands, (result,), params = equation
    axis = result.ndim - 1
    if len(operands) != 2 or params["dimension"] != axis:
        return False
    if not axis:
        return result.size * result.dtype.itemsize >= _FEWEST_BYTES_OF_VECTORS
    is_real = issubdtype(result.dtype, np.integer) or issubdtype(result.dtype, np.floating)
    if not is_real or result.dtype.itemsize < 4 or result.shape[axis] < _SHORTEST:
        return False
    by_one = min(operand.shape[axis] for operand in operands) == 1
    return result.size >= (_FEWEST if by_one else _FEWEST_BY_MORE)


@formula_on_cpu(concatenate_p, when=_may_pay, in_place=True)
def _(build: Builder, *operands: Value, dimension: int) -> Value:
    array = _rolled(build, operands, dimension)
    if array is None:
        return build.op("stablehlo.concatenate", operands, dimension=types.i64(dimension))
    if dimension:
        return build.as_function(_by_selection, operands, {})
    return build.as_function(_of_doubled, (array,), {}, build.avals_out)


def _by_selection(build: Builder, *operands: Value) -> Value:
    return build.by_tracing(_selected, operands)[0]


def _of_doubled(build: Builder, array: Value) -> Value:
    (aval,), start = build.avals_out, build.avals_in[1].shape[0]
    twice = aval.update(shape=(2 * aval.size,))
    doubled = build.op("stablehlo.concatenate", (array, array), twice, dimension=types.i64(0))
    return build.slice(doubled, (start,), (start + aval.size,), None, aval)


def _rolled(build: Builder, operands: Sequence[Value], axis: int) -> Value | None:
    """Return the array that the operands are the end and the start of along the last axis."""
    slices: list[Any] = [operand.owner for operand in operands]
    if any(getattr(each, "name", None) != "stablehlo.slice" for each in slices):
        return None
    (result,) = build.avals_out
    array = slices[0].operands[0]
    if array != slices[1].operands[0] or array.type.shape != [*result.shape]:
        return None
    border = build.avals_in[1].shape[axis]
    for each, start, limit in zip(slices, (border, 0), (result.shape[axis], border), strict=True):
        wanted = {
            "start_indices": with_entry((0,) * result.ndim, axis, start),
            "limit_indices": with_entry(result.shape, axis, limit),
            "strides": (1,) * result.ndim,
        }
        for name, value in wanted.items():
            if each.attributes[name] != types.i64_array(value):
                return None
    return array


def _selected(end: Array, start: Array) -> Array:
    """Return the end and the start of an array, joined along the last axis."""
    axis, nothing = end.ndim - 1, ((0, 0, 0),) * end.ndim
    zero = scalar_of(0, end.dtype)
    at_front = pad(end, zero, with_entry(nothing, axis, (0, start.shape[axis], 0)))
    at_back = pad(start, zero, with_entry(nothing, axis, (end.shape[axis], 0, 0)))
    positions = broadcasted_iota(np.int32, at_front.shape, axis)
    return select(lt(positions, full_like(positions, end.shape[axis])), at_front, at_back)
