"""gather as StableHLO, with a mask where a mode asks for one."""

import numpy as np

from hlofront.core.aval import ShapedArray
from hlofront.core.rules import lower
from hlofront.lowering import types
from hlofront.primitives import gathering as g
from hlofront.primitives.creating import scalar_of

_BOOL = np.dtype(np.bool_)
_INT32, _INT64 = np.dtype(np.int32), np.dtype(np.int64)


@lower(g.gather_p)
def _(
    build,
    operand,
    indices,
    *,
    dimension_numbers,
    slice_sizes,
    indices_are_sorted,
    unique_indices,
    mode,
    fill_value,
):
    aval, index_aval = build.avals_in
    result = build.avals_out[0]
    if not result.size:
        return build.full(0, result)
    numbers = dimension_numbers
    masked = mode in (g.GatherScatterMode.FILL_OR_DROP, g.GatherScatterMode.ONE_HOT)
    mask = None
    if masked:
        bounds = [aval.shape[axis] - slice_sizes[axis] for axis in numbers.start_index_map]
        indices, index_aval = wide_indices(build, indices, index_aval, bounds)
        mask = _within(build, indices, index_aval, bounds)
    # Where no mask is asked for, the operation clamps by itself.
    gathered = build.op(
        "stablehlo.gather",
        (operand, indices),
        dimension_numbers=_numbers(numbers, index_aval.ndim - 1),
        slice_sizes=types.i64_array(slice_sizes),
        indices_are_sorted=types.boolean(indices_are_sorted),
    )
    if mask is None:
        return gathered
    batch = [axis for axis in range(result.ndim) if axis not in numbers.offset_dims]
    mask = build.broadcast(mask, result.update(dtype=_BOOL, weak_type=False), batch)
    fill = scalar_of(0 if fill_value is None else fill_value, result.dtype)
    return build.op("stablehlo.select", (mask, gathered, build.full(fill, result)))


def wide_indices(build, indices, aval, bounds):
    """The indices in a signed dtype that holds them and these bounds."""
    dtype = aval.dtype
    if dtype.itemsize == 8 or any(bound > np.iinfo(_INT32).max for bound in bounds):
        wide = _INT64
    else:
        # Of uint32, what becomes negative was beyond these bounds.
        wide = _INT32
    if dtype == wide:
        return indices, aval
    result = aval.update(dtype=wide, weak_type=False)
    return build.convert(indices, result), result


def _within(build, indices, aval, bounds):
    """For each vector of indices, whether all of them are from 0 to their bound."""
    flags = aval.update(dtype=_BOOL, weak_type=False)
    zero = build.full(0, aval)
    upper = build.broadcast(build.constant(np.asarray(bounds, aval.dtype)), aval, (aval.ndim - 1,))
    within = build.op(
        "stablehlo.and",
        (build.compare("GE", indices, zero, aval), build.compare("LE", indices, upper, aval)),
        flags,
    )
    if len(bounds) == 1:
        return build.reshape(within, flags.update(shape=aval.shape[:-1]))
    scalar = ShapedArray((), _BOOL)
    reduced = build.operation(
        "stablehlo.reduce",
        (within, build.constant(True)),
        (flags.update(shape=aval.shape[:-1]),),
        1,
        {"dimensions": types.i64_array((aval.ndim - 1,))},
    )
    build.region(
        reduced,
        0,
        (scalar, scalar),
        lambda inner, x, y: (inner.op("stablehlo.and", (x, y), scalar),),
    )
    return reduced.results[0]


def _numbers(numbers, index_vector_dim):
    fields = (
        ("offset_dims", numbers.offset_dims),
        ("collapsed_slice_dims", numbers.collapsed_slice_dims),
        ("operand_batching_dims", numbers.operand_batching_dims),
        ("start_indices_batching_dims", numbers.start_indices_batching_dims),
        ("start_index_map", numbers.start_index_map),
    )
    return types.attribute(f"#stablehlo.gather<{dimension_fields(fields, index_vector_dim)}>")


def dimension_fields(fields, index_vector_dim):
    """`offset_dims = [1], start_index_map = [0], index_vector_dim = 1`, without empty ones."""
    texts = [f"{name} = [{', '.join(map(str, axes))}]" for name, axes in fields if axes]
    return ", ".join((*texts, f"index_vector_dim = {index_vector_dim}"))
