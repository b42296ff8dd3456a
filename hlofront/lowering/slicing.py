"""Taking arrays apart and putting them together, as StableHLO."""

from hlofront.core.rules import lower
from hlofront.lowering import types
from hlofront.primitives import slicing as p


@lower(p.slice_p)
def _(build, x, *, start_indices, limit_indices, strides):
    return _slice(build, x, start_indices, limit_indices, strides, build.avals_out[0])


def _slice(build, x, start, limit, strides, result):
    return build.op(
        "stablehlo.slice",
        (x,),
        result,
        start_indices=types.i64_array(start),
        limit_indices=types.i64_array(limit),
        strides=types.i64_array((1,) * len(start) if strides is None else strides),
    )


@lower(p.concatenate_p)
def _(build, *operands, dimension):
    return build.op("stablehlo.concatenate", operands, dimension=types.i64(dimension))


@lower(p.stack_p)
def _(build, *operands, axis):
    aval = build.avals_in[0]
    member = aval.update(shape=(*aval.shape[:axis], 1, *aval.shape[axis:]))
    axes = [i for i in range(member.ndim) if i != axis]
    return build.op(
        "stablehlo.concatenate",
        [build.broadcast(x, member, axes) for x in operands],
        dimension=types.i64(axis),
    )


@lower(p.unstack_p)
def _(build, x, *, axis):
    shape = build.avals_in[0].shape
    results = []
    for i, result in enumerate(build.avals_out):
        part = result.update(shape=p.with_entry(shape, axis, 1))
        start = p.with_entry((0,) * len(shape), axis, i)
        limit = p.with_entry(shape, axis, i + 1)
        results.append(build.reshape(_slice(build, x, start, limit, None, part), result))
    return results


@lower(p.split_p)
def _(build, x, *, sizes, axis):
    shape = build.avals_in[0].shape
    results, at = [], 0
    for size, result in zip(sizes, build.avals_out, strict=True):
        start = p.with_entry((0,) * len(shape), axis, at)
        at += size
        limit = p.with_entry(shape, axis, at)
        results.append(_slice(build, x, start, limit, None, result))
    return results


@lower(p.pad_p)
def _(build, x, value, *, padding_config):
    before, after, between = zip(*padding_config, strict=True) if padding_config else ((),) * 3
    return build.op(
        "stablehlo.pad",
        (x, value),
        edge_padding_low=types.i64_array(before),
        edge_padding_high=types.i64_array(after),
        interior_padding=types.i64_array(between),
    )
