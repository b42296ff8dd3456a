"""Lowering rules of gathers and scatters."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from hlofront.base.dtypes import iinfo
from hlofront.base.elements import bool_, int32, int64
from hlofront.base.named_tuple import NamedTuple
from hlofront.bridge.mlir import Value, Values, ir
from hlofront.core.aval import ShapedArray, SymbolicSize
from hlofront.core.jaxpr import Jaxpr
from hlofront.core.rules import lower
from hlofront.core.sizes.symbolic import has_symbolic_size
from hlofront.lowering.core import types, unknown_sizes
from hlofront.lowering.core.builder import Builder
from hlofront.lowering.ops.reduce import emit_reduce, one_op
from hlofront.primitives.arrays import gathering as g
from hlofront.primitives.arrays import scattering as s
from hlofront.primitives.arrays.creation import scalar_of
from hlofront.primitives.arrays.gathering import GatherScatterMode


@lower(g.gather_p)
def _(
    build: Builder,
    operand: Value,
    indices: Value,
    *,
    dimension_numbers: g.GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: g.GatherScatterMode,
    fill_value: bool | float | None,
) -> Value:
    aval, index_aval = build.avals_in
    result = build.avals_out[0]
    if not result.size:
        return build.full(0, result)
    numbers = dimension_numbers
    masked = mode in (g.GatherScatterMode.FILL_OR_DROP, g.GatherScatterMode.ONE_HOT)
    mask = None
    if masked:
        bounds = [aval.shape[axis] - slice_sizes[axis] for axis in numbers.start_index_map]
        wide = wide_indices(build, Indices(indices, index_aval), bounds)
        indices, index_aval = wide
        mask = _within(build, wide, bounds)
    # Without a mask, the operation itself clamps.
    attributes = {
        "dimension_numbers": gather_numbers(numbers, index_aval.ndim - 1),
        "indices_are_sorted": types.boolean(indices_are_sorted),
    }
    if build.module.size_variables and has_symbolic_size(slice_sizes):
        sizes = unknown_sizes.vector(build, slice_sizes)
        gathered = build.op("stablehlo.dynamic_gather", (operand, indices, sizes), **attributes)
    else:
        gathered = build.op(
            "stablehlo.gather",
            (operand, indices),
            slice_sizes=types.i64_array(slice_sizes),
            **attributes,
        )
    if mask is None:
        return gathered
    batch = [axis for axis in range(result.ndim) if axis not in numbers.offset_dims]
    mask = build.broadcast(mask, result.update(dtype=bool_, weak_type=False), batch)
    fill = scalar_of(0 if fill_value is None else fill_value, result.dtype)
    return build.select(mask, gathered, build.full(fill, result), result)


class Indices(NamedTuple):
    """Index vectors along the last axis of an array, and its aval."""

    value: Value
    aval: ShapedArray


def wide_indices(build: Builder, indices: Indices, bounds: Sequence[int]) -> Indices:
    """Return the indices in a signed dtype that can represent them and these bounds."""
    dtype = indices.aval.dtype
    if dtype.itemsize == 8 or any(
        # Unknown sizes are computed in the default integer dtype.
        not isinstance(bound, SymbolicSize) and bound > np.iinfo(int32).max
        for bound in bounds
    ):
        wide = int64
    else:
        # uint32 indices that become negative were out of bounds.
        wide = int32
    if dtype == wide:
        return indices
    aval = indices.aval.update(dtype=wide, weak_type=False)
    return Indices(build.convert(indices.value, aval), aval)


def _within(build: Builder, indices: Indices, bounds: Sequence[int]) -> Value:
    """Return, for each index vector, whether all its indices are from 0 to their bounds."""
    value, aval = indices
    flags = aval.update(dtype=bool_, weak_type=False)
    zero = build.full(0, aval)
    if build.module.size_variables and has_symbolic_size(bounds):
        limits = unknown_sizes.vector(build, bounds)
        limits = build.convert(limits, ShapedArray((len(bounds),), aval.dtype))
    else:
        limits = build.constant(np.asarray(bounds, aval.dtype))
    upper = build.broadcast(limits, aval, (aval.ndim - 1,))
    within = build.op(
        "stablehlo.and",
        (build.compare("GE", value, zero, aval), build.compare("LE", value, upper, aval)),
        flags,
    )
    result = flags.update(shape=aval.shape[:-1])
    if len(bounds) == 1:
        return build.reshape(within, result)
    fold = one_op("stablehlo.and")(result)
    axes = (aval.ndim - 1,)
    return emit_reduce(build, [within], [build.constant(True)], [result], axes, fold)[0]


def gather_numbers(numbers: g.GatherDimensionNumbers, index_vector_dim: int) -> ir.Attribute:
    fields = (
        ("offset_dims", numbers.offset_dims),
        ("collapsed_slice_dims", numbers.collapsed_slice_dims),
        ("operand_batching_dims", numbers.operand_batching_dims),
        ("start_indices_batching_dims", numbers.start_indices_batching_dims),
        ("start_index_map", numbers.start_index_map),
    )
    return types.attribute(f"#stablehlo.gather<{dimension_fields(fields, index_vector_dim)}>")


def dimension_fields(fields: Iterable[tuple[str, Sequence[int]]], index_vector_dim: int) -> str:
    """Return dimension numbers as text, without empty fields: "offset_dims = [1], ..."."""
    texts = [f"{name} = [{', '.join(map(str, axes))}]" for name, axes in fields if axes]
    return ", ".join((*texts, f"index_vector_dim = {index_vector_dim}"))


# ---- scatters ------------------------------------------------------------------------------------


@lower(
    s.scatter_p,
    s.scatter_add_p,
    s.scatter_sub_p,
    s.scatter_mul_p,
    s.scatter_min_p,
    s.scatter_max_p,
)
def _(
    build: Builder,
    operand: Value,
    indices: Value,
    updates: Value,
    *,
    update_jaxpr: Jaxpr | None,
    update_consts: Sequence[object],
    dimension_numbers: s.ScatterDimensionNumbers,
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: GatherScatterMode,
) -> Value:
    aval, index_aval, update_aval = build.avals_in
    if mode == GatherScatterMode.CLIP:
        windows = s.window_sizes(dimension_numbers, aval.shape, update_aval.shape)
        indices = _clamped(build, indices, index_aval, aval, dimension_numbers, windows)
    # Other modes need no clamping: the operation drops updates outside the array.
    if "tpu" in build.module.platforms and _may_be_one(index_aval, update_aval):
        (indices,) = build.barrier([indices], [index_aval])

    def update(inner: Builder, old: Value, new: Value) -> Values:
        if update_jaxpr is None:
            return (new,)
        inner.origin = inner.loc
        with inner.module.scalar_region():
            return inner.inline(update_jaxpr, update_consts, (old, new))

    attributes = {
        "scatter_dimension_numbers": _numbers(dimension_numbers, index_aval.ndim - 1),
        "indices_are_sorted": types.boolean(indices_are_sorted),
        "unique_indices": types.boolean(unique_indices),
    }
    scalar = ShapedArray((), aval.dtype)
    operands = operand, indices, updates
    return build.with_region(
        "stablehlo.scatter", operands, build.avals_out, attributes, (scalar, scalar), update
    )[0]


def _may_be_one(indices: ShapedArray, updates: ShapedArray) -> bool:
    """Return whether XLA may see that indices and updates are the same value, as a row of ones.

    XLA's TPU compiler aborts the process if they are the same and can be fused into the scatter; a
    barrier keeps them apart. (Seen with libtpu 0.0.52.)
    """
    return indices.dtype == updates.dtype and indices.size == updates.size > 0


def _clamped(
    build: Builder,
    indices: Value,
    aval: ShapedArray,
    operand: ShapedArray,
    numbers: s.ScatterDimensionNumbers,
    windows: Mapping[int, int],
) -> Value:
    """Return the indices, clamped so that the updates lie within the operand."""
    greatest = int(iinfo(aval.dtype).max)
    bounds = [
        min(operand.shape[axis] - windows.get(axis, 1), greatest)
        for axis in numbers.scatter_dims_to_operand_dims
    ]
    upper = build.constant(np.asarray(bounds).astype(aval.dtype))
    upper = build.broadcast(upper, aval, (aval.ndim - 1,))
    return build.op("stablehlo.clamp", (build.full(0, aval), indices, upper), aval)


def _numbers(numbers: s.ScatterDimensionNumbers, index_vector_dim: int) -> ir.Attribute:
    fields = (
        ("update_window_dims", numbers.update_window_dims),
        ("inserted_window_dims", numbers.inserted_window_dims),
        ("input_batching_dims", numbers.operand_batching_dims),
        ("scatter_indices_batching_dims", numbers.scatter_indices_batching_dims),
        ("scatter_dims_to_operand_dims", numbers.scatter_dims_to_operand_dims),
    )
    return types.attribute(f"#stablehlo.scatter<{dimension_fields(fields, index_vector_dim)}>")
