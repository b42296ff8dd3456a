"""Lowering rules of slicing, concatenation, splitting and padding."""

from collections.abc import Sequence

from hlofront.bridge.mlir import Value
from hlofront.core.rules import lower
from hlofront.core.sizes.symbolic import has_symbolic_size
from hlofront.lowering.core.builder import Builder
from hlofront.lowering.core.mesh_attributes import is_unreduced
from hlofront.primitives.arrays import slicing as p


@lower(p.slice_p)
def _(
    build: Builder,
    x: Value,
    *,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None,
) -> Value:
    return build.slice(x, start_indices, limit_indices, strides)


@lower(p.concatenate_p)
def _(build: Builder, *operands: Value, dimension: int) -> Value:
    return build.concatenate(operands, build.avals_in, dimension, *build.avals_out)


@lower(p.stack_p)
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


@lower(p.unstack_p)
def _(build: Builder, x: Value, *, axis: int) -> list[Value]:
    shape = build.avals_in[0].shape
    results: list[Value] = []
    for i, result in enumerate(build.avals_out):
        part = result.update(shape=p.with_entry(shape, axis, 1))
        start = p.with_entry((0,) * len(shape), axis, i)
        limit = p.with_entry(shape, axis, i + 1)
        results.append(build.reshape(build.slice(x, start, limit, None, part), result))
    return results


@lower(p.split_p)
def _(build: Builder, x: Value, *, sizes: Sequence[int], axis: int) -> list[Value]:
    shape = build.avals_in[0].shape
    results: list[Value] = []
    at = 0
    for size, result in zip(sizes, build.avals_out, strict=True):
        start = p.with_entry((0,) * len(shape), axis, at)
        at += size
        limit = p.with_entry(shape, axis, at)
        results.append(build.slice(x, start, limit, None, result))
    return results


@lower(p.pad_p)
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
