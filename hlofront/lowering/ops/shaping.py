"""Lowering rules of broadcasts, reshapes and transposes."""

from collections.abc import Sequence

from hlofront.bridge.mlir import Value
from hlofront.core.aval import ShapedArray
from hlofront.core.rules import lower
from hlofront.lowering.core import types
from hlofront.lowering.core.builder import Builder
from hlofront.primitives.arrays import shaping as p
from hlofront.primitives.arrays.tiling import tile_p


@lower(p.broadcast_in_dim_p)
def _(build: Builder, x: Value, *, broadcast_dimensions: Sequence[int], **_: object) -> Value:
    return build.broadcast(x, build.avals_out[0], broadcast_dimensions)


@lower(p.reshape_p)
def _(build: Builder, x: Value, *, dimensions: Sequence[int] | None, **_: object) -> Value:
    if dimensions is not None:
        x = _transpose(build, x, build.avals_in[0], dimensions)
    return build.reshape(x, build.avals_out[0])


@lower(p.squeeze_p)
def _(build: Builder, x: Value, *, dimensions: Sequence[int]) -> Value:
    return build.reshape(x, build.avals_out[0])


@lower(p.transpose_p)
def _(build: Builder, x: Value, *, permutation: Sequence[int]) -> Value:
    return _transpose(build, x, build.avals_in[0], permutation)


def _transpose(build: Builder, x: Value, aval: ShapedArray, permutation: Sequence[int]) -> Value:
    result = aval.update(shape=tuple([aval.shape[i] for i in permutation]))
    return build.op("stablehlo.transpose", (x,), result, permutation=types.i64_array(permutation))


@lower(p.rev_p)
def _(build: Builder, x: Value, *, dimensions: Sequence[int]) -> Value:
    return build.op("stablehlo.reverse", (x,), dimensions=types.i64_array(dimensions))


@lower(tile_p)
def _(build: Builder, x: Value, *, reps: Sequence[int]) -> Value:
    # Each axis becomes two: one for the repetitions, which is broadcast, and one for its size.
    aval, result = build.avals_in[0], build.avals_out[0]
    split = [size for old in aval.shape for size in (1, old)]
    filled = [size for pair in zip(reps, aval.shape, strict=True) for size in pair]
    x = build.reshape(x, aval.update(shape=tuple(split)))
    x = build.broadcast(x, aval.update(shape=tuple(filled)), range(len(filled)))
    return build.reshape(x, result)
