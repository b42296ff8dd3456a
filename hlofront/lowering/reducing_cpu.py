"""The lowering rules of argmin and argmax for CPUs: the maximum of one integer for each element.

XLA's CPU code for a reduction of elements and indices at once runs one element after the other, and
branches at each. The maximum of an array of integers is vectorized. So this rule packs each float,
as the integer of 32 bits whose order is that of the floats, and the index of the element, counted
down so that the first of equal elements is the greatest, in an integer of 64 bits.

The time of float32 in microseconds, as a reduction of two arrays and as packed integers, on an AMD
EPYC of 2 cores by AVX-512: 10^6 elements 5,200 and 1,000, 1,000 lines of 1,000 5,500 and 1,000, or
3,400 and 410 along the first axis, 30,000 lines of 32 3,000 and 270, 100,000 of 10 270 and 220; by
AVX2: 1,350 and 1,010, 1,400 and 970, 1,430 and 920, 1,660 and 190, 260 and 290. To compile it takes
35 to 110 ms for 30: so small arrays keep the reduction of two.
"""

from collections.abc import Sequence

import numpy as np

from hlofront.bridge.mlir import Value
from hlofront.lowering.builder import Builder
from hlofront.lowering.cpu_formulas import Candidate, formula_on_cpu, is_narrow_float
from hlofront.lowering.reducing import emit_reduce, max_body
from hlofront.lowering.sorting import canonical_float
from hlofront.lowering.sorting_cpu import in_order_of_floats
from hlofront.lowering.types import NumPyDType
from hlofront.primitives import reducing as r

_int64, _float32 = np.dtype(np.int64), np.dtype(np.float32)

# Arrays of fewer elements are reduced with their indices.
_FEWEST = 16_384


def _pays(equation: Candidate) -> bool:
    """Return whether the operand is reduced as packed integers: many floats of 32 bits or less."""
    (aval,), _, params = equation
    axis: int = params["axes"][0]
    is_large = aval.size >= _FEWEST and aval.shape[axis] <= np.iinfo(np.int32).max
    return is_large and is_narrow_float(aval.dtype)


@formula_on_cpu(r.argmin_p, r.argmax_p, when=_pays)
def _(build: Builder, x: Value, *, axes: Sequence[int], index_dtype: NumPyDType) -> Value:
    (aval,), (result,) = build.avals_in, build.avals_out
    wide = aval.update(dtype=_float32, weak_type=False)
    x = build.convert(x, wide)
    if build.primitive is r.argmin_p:
        x = build.op("stablehlo.negate", (x,), wide)  # NaN stays the most extreme.
    ordered, _ = in_order_of_floats(build, canonical_float(build, x, wide), wide)

    packed = wide.update(dtype=_int64)
    high = build.op(
        "stablehlo.shift_left", (build.convert(ordered, packed), build.full(32, packed)), packed
    )
    last = aval.shape[axes[0]] - 1
    low = build.op(
        "stablehlo.subtract", (build.full(last, packed), build.iota(packed, axes[0])), packed
    )
    key = build.op("stablehlo.or", (high, low), packed)
    out = result.update(dtype=_int64, weak_type=False)
    least = build.constant(np.iinfo(_int64).min, _int64)
    (greatest,) = emit_reduce(build, [key], [least], [out], axes, max_body(out))
    low = build.op("stablehlo.and", (greatest, build.full(0xFFFF_FFFF, out)), out)
    index = build.op("stablehlo.subtract", (build.full(last, out), low), out)
    return build.convert(index, result)
