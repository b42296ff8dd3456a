"""Slices at computed places, as StableHLO."""

from hlofront.core.rules import lower
from hlofront.lowering import types
from hlofront.primitives import dynamic_slicing as p


@lower(p.dynamic_slice_p)
def _(build, x, *starts, slice_sizes):
    return build.op(
        "stablehlo.dynamic_slice", (x, *starts), slice_sizes=types.i64_array(slice_sizes)
    )


@lower(p.dynamic_update_slice_p)
def _(build, x, update, *starts):
    return build.op("stablehlo.dynamic_update_slice", (x, update, *starts))
