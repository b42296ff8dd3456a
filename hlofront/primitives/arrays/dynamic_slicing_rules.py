"""Batch rules of dynamic slices: unchanged for shared start indices, else gather and scatter."""

from collections.abc import Sequence

import numpy as np

from hlofront.base.elements import host_number
from hlofront.base.typing import Array, ArrayLike, ArrayLikes, Shape
from hlofront.core import rules
from hlofront.core.aval import typeof
from hlofront.core.sizes.symbolic import min_dim
from hlofront.core.symbolic_zeros import BatchAxes, Batched
from hlofront.core.trace import process
from hlofront.primitives.arrays.dynamic_slicing import dynamic_slice_p, dynamic_update_slice_p
from hlofront.primitives.arrays.gathering import GatherDimensionNumbers, GatherScatterMode, gather
from hlofront.primitives.arrays.scattering import ScatterDimensionNumbers, scatter
from hlofront.primitives.arrays.shaping import ascending, broadcast, expand_dims
from hlofront.primitives.arrays.slicing import stack
from hlofront.primitives.rules.batching import batch_size, shifted, with_new_axis, with_same_axis


@rules.batch(dynamic_slice_p)
def _(values: ArrayLikes, axes: BatchAxes, *, slice_sizes: Shape) -> Batched:
    (operand, *indices), (axis, *index_axes) = values, axes
    whole = _without(typeof(operand).shape, axis)
    movable = _movable(whole, slice_sizes)
    if not _differ(movable, index_axes):
        indices = _for_all(indices, index_axes, axis)
        if axis is not None:
            slice_sizes = _with_new(slice_sizes, axis, typeof(operand).shape[axis])
        return process(dynamic_slice_p, (operand, *indices), {"slice_sizes": slice_sizes}), axis
    size = batch_size(values, axes)
    numbers = GatherDimensionNumbers(
        offset_dims=ascending(len(whole) + 1)[1:],
        collapsed_slice_dims=(),
        start_index_map=movable if axis is None else shifted(movable, axis),
        operand_batching_dims=() if axis is None else (axis,),
        start_indices_batching_dims=() if axis is None else (0,),
    )
    # Either each index slices an array of its own, or all indices slice the same array.
    indices_batched = axis is not None
    result = gather(
        operand,
        _index_vectors(indices, index_axes, movable, size),
        numbers,
        _with_new(slice_sizes, axis, min_dim(size, 1)) if indices_batched else slice_sizes,
        unique_indices=indices_batched,
        indices_are_sorted=indices_batched,
        mode=GatherScatterMode.CLIP,
    )
    return result, 0


@rules.batch(dynamic_update_slice_p)
def _(values: ArrayLikes, axes: BatchAxes) -> Batched:
    (operand, update, *indices), (axis, update_axis, *index_axes) = values, axes
    sizes = _without(typeof(update).shape, update_axis)
    whole = _without(typeof(operand).shape, axis)
    movable = _movable(whole, sizes)
    # As in JAX, the scatter's result is weakly typed if the operand is.
    if not _differ(movable, index_axes) and not typeof(operand).weak_type:
        both = (operand, update)
        if axis is not None or update_axis is not None:
            both, axis = with_same_axis(both, (axis, update_axis))
        indices = _for_all(indices, index_axes, axis)
        return process(dynamic_update_slice_p, (*both, *indices), {}), axis
    size = batch_size(values, axes)
    if axis is None:
        operand, axis = with_new_axis(operand, size), 0
    if update_axis is None:
        update, update_axis = with_new_axis(update, size), 0
    numbers = ScatterDimensionNumbers(
        update_window_dims=_without(ascending(len(sizes) + 1), update_axis),
        inserted_window_dims=(),
        scatter_dims_to_operand_dims=shifted(movable, axis),
        operand_batching_dims=(axis,),
        scatter_indices_batching_dims=(0,),
    )
    result = scatter(
        operand,
        _index_vectors(indices, index_axes, movable, size),
        update,
        numbers,
        indices_are_sorted=True,
        unique_indices=True,
        mode=GatherScatterMode.CLIP,
    )
    return result, axis


def _movable(whole: Sequence[int], sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the axes along which a slice's start matters: those along which it is not whole."""
    both = zip(whole, sizes, strict=True)
    return tuple([axis for axis, (available, taken) in enumerate(both) if taken < available])


def _differ(axes: Sequence[int], index_axes: BatchAxes) -> bool:
    """Return whether start indices along any of some axes are batched."""
    return any(index_axes[axis] is not None for axis in axes)


def _for_all(indices: ArrayLikes, index_axes: BatchAxes, axis: int | None) -> list[ArrayLike]:
    """Return start indices without batch axes: 0 for batched ones, and 0 along the batch axis.

    Batched indices are only along axes that the slice spans, where any start is clamped to 0.
    """
    zero = host_number(0, typeof(indices[0]).dtype) if indices else np.int32(0)
    same = [zero if own is not None else i for i, own in zip(indices, index_axes, strict=True)]
    if axis is not None:
        same.insert(axis, zero)
    return same


def _index_vectors(
    indices: ArrayLikes, index_axes: BatchAxes, axes: Sequence[int], size: int
) -> Array:
    """Return the start indices along some axes: integers of shape (batch, len(axes))."""
    columns = [
        with_new_axis(indices[i], size) if index_axes[i] is None else indices[i] for i in axes
    ]
    if not columns:
        # The slices span whole arrays, so no start matters.
        return broadcast(np.int32(0), (size, 0))
    return stack(columns, 1) if len(columns) > 1 else expand_dims(columns[0], (1,))


def _without(values: tuple[int, ...], axis: int | None) -> tuple[int, ...]:
    return values if axis is None else values[:axis] + values[axis + 1 :]


def _with_new(values: tuple[int, ...], axis: int, value: int) -> tuple[int, ...]:
    return (*values[:axis], value, *values[axis:])
