"""Lowering rules of dynamic_slice and dynamic_update_slice."""

from collections.abc import Sequence

from hlofront.bridge.mlir import Value
from hlofront.core.rules import lower
from hlofront.lowering import types
from hlofront.lowering.builder import Builder
from hlofront.primitives import dynamic_slicing as p


@lower(p.dynamic_slice_p)
def _(build: Builder, x: Value, *starts: Value, slice_sizes: Sequence[int]) -> Value:
    return build.op(
        "stablehlo.dynamic_slice", (x, *starts), slice_sizes=types.i64_array(slice_sizes)
    )


@lower(p.dynamic_update_slice_p)
def _(build: Builder, x: Value, update: Value, *starts: Value) -> Value:
    return build.op("stablehlo.dynamic_update_slice", (x, update, *starts))
