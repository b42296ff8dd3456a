"""The lowering rule of scatter, with indices clamped for the modes that clamp."""

from collections.abc import Mapping, Sequence

import numpy as np

from hlofront.base.dtypes import iinfo
from hlofront.bridge.mlir import Value, Values, ir
from hlofront.core.aval import ShapedArray
from hlofront.core.jaxpr import Jaxpr
from hlofront.core.rules import lower
from hlofront.lowering.core import types
from hlofront.lowering.core.builder import Builder
from hlofront.lowering.ops.gather import dimension_fields
from hlofront.primitives.arrays import scattering as s
from hlofront.primitives.arrays.gathering import GatherScatterMode


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
