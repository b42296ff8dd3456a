"""Lowering rules of operations on shapes: new shapes, slices, padding, joins, iota, sizes."""

from collections.abc import Sequence

from hlofront.base.dtypes import iinfo
from hlofront.base.typing import DType
from hlofront.bridge.mlir import Value, Values
from hlofront.core.aval import MemorySpace, ShapedArray
from hlofront.core.rules import lower
from hlofront.core.sizes.symbolic import SizeExpression, has_symbolic_size, min_dim
from hlofront.lowering.core import types
from hlofront.lowering.core.builder import Builder
from hlofront.lowering.core.mesh_attributes import is_unreduced
from hlofront.primitives.arrays import creation as c
from hlofront.primitives.arrays import dynamic_slicing, slicing
from hlofront.primitives.arrays import shaping as p
from hlofront.primitives.arrays.sizes import dim_as_value_p
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


# ---- slices, padding and joins -------------------------------------------------------------------


@lower(slicing.slice_p)
def _(
    build: Builder,
    x: Value,
    *,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None,
) -> Value:
    return build.slice(x, start_indices, limit_indices, strides)


@lower(slicing.concatenate_p)
def _(build: Builder, *operands: Value, dimension: int) -> Value:
    return build.concatenate(operands, build.avals_in, dimension, *build.avals_out)


@lower(slicing.stack_p)
def _(build: Builder, *operands: Value, axis: int) -> Value:
    aval = build.avals_in[0]
    member = aval.update(shape=(*aval.shape[:axis], 1, *aval.shape[axis:]))
    axes = [i for i in range(member.ndim) if i != axis]
    members = [build.broadcast(x, member, axes) for x in operands]
    (result,) = build.avals_out
    if is_unreduced(result):
        # XLA would assume that values between two constraints are whole.
        member = result.update(shape=member.shape, sharding=result.split)
        members = [build.split_by_type(x, member) for x in members]
    return build.concatenate(members, [member] * len(members), axis, result)


@lower(slicing.unstack_p)
def _(build: Builder, x: Value, *, axis: int) -> list[Value]:
    shape = build.avals_in[0].shape
    results: list[Value] = []
    for i, result in enumerate(build.avals_out):
        part = result.update(shape=slicing.with_entry(shape, axis, 1))
        start = slicing.with_entry((0,) * len(shape), axis, i)
        limit = slicing.with_entry(shape, axis, i + 1)
        results.append(build.reshape(build.slice(x, start, limit, None, part), result))
    return results


@lower(slicing.split_p)
def _(build: Builder, x: Value, *, sizes: Sequence[int], axis: int) -> list[Value]:
    shape = build.avals_in[0].shape
    results: list[Value] = []
    at = 0
    for size, result in zip(sizes, build.avals_out, strict=True):
        start = slicing.with_entry((0,) * len(shape), axis, at)
        at += size
        limit = slicing.with_entry(shape, axis, at)
        results.append(build.slice(x, start, limit, None, result))
    return results


@lower(slicing.pad_p)
def _(build: Builder, x: Value, value: Value, *, padding_config: Sequence[Sequence[int]]) -> Value:
    (aval, _), (result,) = build.avals_in, build.avals_out
    edges = [edge for axis in padding_config for edge in axis]
    is_known = not has_symbolic_size((*aval.shape, *edges))
    if is_known and max(map(abs, edges), default=0) > _LARGEST_EDGE:
        # XLA pads with all elements before it cuts, and aborts the process if that overflows.
        parts = [
            _cut_and_padding(*sizes)
            for sizes in zip(aval.shape, result.shape, padding_config, strict=True)
        ]
        if any(start == stop for start, stop, _ in parts):
            return build.broadcast(value, result, ())
        starts, stops, padding_config = zip(*parts, strict=True)
        aval = aval.update(shape=tuple(b - a for a, b in zip(starts, stops, strict=True)))
        x = build.slice(x, starts, stops, None, aval)
    before, after, between = zip(*padding_config, strict=True) if padding_config else ((),) * 3
    return build.pad(x, value, before, after, between)


_LARGEST_EDGE = 2**31


def _cut_and_padding(
    size: int, result: int, edges: Sequence[int]
) -> tuple[int, int, tuple[int, int, int]]:
    """Return the range of elements along an axis that remain in a padded result, and their padding.

    Args:
      size, result: the numbers of elements before and after.
      edges: the padding before, after and between elements; negative if elements are cut.
    """
    before, _, between = edges
    step = between + 1
    start = min(max(-(before // step), 0), size)
    stop = max(min(-((before - result) // step), size), start)
    first = before + start * step
    last = first + (stop - start - 1) * step
    return start, stop, (first, result - last - 1, between if stop - start > 1 else 0)


_GPUS = frozenset(("cuda", "rocm"))


@lower(dynamic_slicing.dynamic_slice_p)
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


@lower(dynamic_slicing.dynamic_update_slice_p)
def _(build: Builder, x: Value, update: Value, *starts: Value) -> Value:
    inside = _in_bounds(build, starts, build.avals_in[1].shape)
    return build.op("stablehlo.dynamic_update_slice", (x, update, *inside))


# ---- arrays without operands ---------------------------------------------------------------------


@lower(c.iota_p)
def _(
    build: Builder, *, dtype: DType, shape: Sequence[int], dimension: int, sharding: object
) -> Value:
    return build.iota(build.avals_out[0], dimension)


@lower(c.empty_p)
def _(build: Builder, *, shape: Sequence[int], dtype: DType, out_sharding: object) -> Value:
    return build.full(0, build.avals_out[0])


@lower(c.empty2_p)
def _(build: Builder, *, dtype: DType, memory_space: MemorySpace) -> Value:
    return build.full(0, build.avals_out[0])


@lower(dim_as_value_p)
def _(build: Builder, *, dim: SizeExpression) -> Value:
    return build.size(dim, build.avals_out[0])
