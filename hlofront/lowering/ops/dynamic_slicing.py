"""Lowering rules of dynamic_slice and dynamic_update_slice."""

from collections.abc import Sequence

from hlofront.base.dtypes import iinfo
from hlofront.bridge.mlir import Value, Values
from hlofront.core.aval import ShapedArray
from hlofront.core.rules import lower
from hlofront.core.sizes.symbolic import min_dim
from hlofront.lowering.core.builder import Builder
from hlofront.primitives.arrays import dynamic_slicing as p

_GPUS = frozenset(("cuda", "rocm"))


@lower(p.dynamic_slice_p)
def _(build: Builder, x: Value, *starts: Value, slice_sizes: Sequence[int]) -> Value:
    inside = _in_bounds(build, starts, slice_sizes)
    return build.dynamic_slice(x, build.avals_in[0], inside, build.avals_out[0])


def _in_bounds(build: Builder, starts: Values, sizes: Sequence[int]) -> Values:
    """Return the starts of a slice of the first operand, moved so that it is inside of the array.

    On one device the operation clamps. XLA's partitioner clamps each shard's part separately, so
    slices that are out of bounds of the array but in bounds of a shard are wrong. XLA's GPU
    compiler does not clamp starts that are constants or depend on a loop's index: with starts out
    of bounds it writes to other memory (jaxlib 0.10.2 to 0.11.2).
    """
    if not build.module.several_devices and _GPUS.isdisjoint(build.module.platforms):
        return starts
    moved: list[Value] = []
    for start, length, size in zip(starts, build.avals_in[0].shape, sizes, strict=True):
        aval = ShapedArray((), build.avals_in[len(build.avals_in) - len(starts) + len(moved)].dtype)
        last = min_dim(length - size, int(iinfo(aval.dtype).max))
        bounds = [build.constant(bound, aval.dtype) for bound in (0, last)]
        moved.append(build.op("stablehlo.clamp", (bounds[0], start, bounds[1]), aval))
    return moved


@lower(p.dynamic_update_slice_p)
def _(build: Builder, x: Value, update: Value, *starts: Value) -> Value:
    inside = _in_bounds(build, starts, build.avals_in[1].shape)
    return build.op("stablehlo.dynamic_update_slice", (x, update, *inside))
