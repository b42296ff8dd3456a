"""Batch rules of collectives, which become operations on arrays over the axis that vmap maps."""

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from hlofront.base.typing import Array, ArrayLike, ArrayLikes, is_tuple_or_list
from hlofront.core.aval import typeof
from hlofront.core.axes import AxisData, axis_size
from hlofront.core.futures import AbstractFuture
from hlofront.core.primitive import Primitive
from hlofront.core.rules import BatchResult, BatchRuleWithAxis, batch, batch_with_axis
from hlofront.core.sizes.dimensions import canonical_axis
from hlofront.core.symbolic_zeros import BatchAxes, BatchAxis, Batched
from hlofront.core.trace import process
from hlofront.primitives.arrays.creation import iota, scalar_of
from hlofront.primitives.arrays.gathering import GatherDimensionNumbers, GatherScatterMode, gather
from hlofront.primitives.arrays.reducing import reduce_max, reduce_min, reduce_sum
from hlofront.primitives.arrays.shaping import broadcast_in_dim, reshape, transpose
from hlofront.primitives.arrays.slicing import index_in_dim
from hlofront.primitives.collectives import collectives as c
from hlofront.primitives.collectives import exchanges, futures
from hlofront.primitives.collectives.collectives import Groups
from hlofront.primitives.elementwise.compare import select_n
from hlofront.primitives.elementwise.elementwise import mul
from hlofront.primitives.rules.batching import move_axis, to_front, with_new_axis
from hlofront.primitives.rules.derivatives import zeros_of


def rows(x: ArrayLike, indices: np.ndarray) -> Array:
    """Return `x[indices]` along the first axis, for an integer array of known indices."""
    rank, count = typeof(x).ndim, indices.ndim
    numbers = GatherDimensionNumbers(
        offset_dims=tuple(range(count, count + rank - 1)),
        collapsed_slice_dims=(0,),
        start_index_map=(0,),
    )
    return gather(
        x,
        indices[..., None].astype(np.int32),
        numbers,
        (1, *typeof(x).shape[1:]),
        mode=GatherScatterMode.PROMISE_IN_BOUNDS,
    )


def _group_of(groups: Sequence[Sequence[int]]) -> np.ndarray:
    """Return an int32 array with the group number of each index along the mapped axis."""
    group_indices = np.zeros(sum(map(len, groups)), np.int32)
    for number, group in enumerate(groups):
        group_indices[list(group)] = number
    return group_indices


def _in_group(groups: Sequence[Sequence[int]]) -> np.ndarray:
    """Return an int32 array with the position of each mapped index within its group."""
    positions = np.zeros(sum(map(len, groups)), np.int32)
    for group in groups:
        positions[list(group)] = np.arange(len(group))
    return positions


# ---- reductions ----------------------------------------------------------------------------------


def _reduction(primitive: Primitive, fold: Callable[..., Array]) -> None:
    def rule(
        data: AxisData,
        values: ArrayLikes,
        batch_axes: BatchAxes,
        /,
        *,
        axes: tuple[Hashable, ...],
        axis_index_groups: Groups,
    ) -> tuple[list[ArrayLike], list[BatchAxis]]:
        batched: list[ArrayLike] = []
        found_axes: list[int | None] = []
        for x, batch_axis in zip(values, batch_axes, strict=True):
            result, axis = _reduced(primitive, fold, data, x, batch_axis, axes, axis_index_groups)
            batched.append(result)
            found_axes.append(axis)
        return batched, found_axes

    rule.__name__ = rule.__qualname__ = f"{primitive.name}_batch"
    batch_with_axis(primitive)(rule)


def _reduced(
    primitive: Primitive,
    fold: Callable[..., Array],
    data: AxisData,
    x: ArrayLike,
    batch_axis: BatchAxis,
    axes: tuple[Hashable, ...],
    groups: Groups,
) -> tuple[ArrayLike, int | None]:
    rank = typeof(x).ndim - (batch_axis is not None)
    is_mapped_axis = data.name is not None and data.name in axes
    if batch_axis is None:
        if is_mapped_axis and primitive is c.psum_p:
            count = data.size if groups is None else len(groups[0])
            x = _times(x, count)
        axes = tuple([a for a in axes if not is_mapped_axis or a != data.name])
        return _bound(primitive, x, axes, groups), None
    if is_mapped_axis and groups is not None:
        if len(axes) > 1:
            raise NotImplementedError(  # JAX raises this class.
                "axis_index_groups over several named axes do not identify the indices of one of "
                "them: reduce over one axis at a time."
            )
        x = move_axis(x, batch_axis, 0)
        parts = [fold(rows(x, np.array(group)), (0,)) for group in groups]
        whole = with_rows(parts)
        return rows(whole, _group_of(groups)), 0
    # Positional axes, counted with the batch axis.
    shifted = [
        a
        if a not in c.positional(axes)
        else canonical_axis(a, rank) + (batch_axis <= canonical_axis(a, rank))
        for a in axes
    ]
    if is_mapped_axis:
        shifted = [batch_axis if a == data.name else a for a in shifted]
        return _bound(primitive, x, tuple(shifted), groups), None
    gone = sum(a < batch_axis for a in c.positional(shifted))
    return _bound(primitive, x, tuple(shifted), groups), batch_axis - gone


def with_rows(parts: ArrayLikes) -> Array:
    """Stack arrays of equal shape along a new first axis."""
    result: Any = None
    count = len(parts)
    for number, part in enumerate(parts):
        row = with_new_axis(part, count)
        if result is None:
            result = row
            continue
        shape = typeof(row).shape
        here = broadcast_in_dim(np.arange(count) == number, shape, (0,))
        result = select_n(here, result, row)
    return result  # pyrefly: ignore[bad-return]


def _times(x: ArrayLike, count: int) -> Array:
    """Return the sum of `count` equal arrays, weakly typed if they are."""
    return mul(x, scalar_of(count, typeof(x).dtype, typeof(x).weak_type))


def _bound(
    primitive: Primitive, x: ArrayLike, axes: tuple[Hashable, ...], groups: Groups
) -> ArrayLike:
    if not axes:
        return x
    return process(primitive, (x,), {"axes": axes, "axis_index_groups": groups})[0]


_reduction(c.psum_p, reduce_sum)
_reduction(c.pmax_p, reduce_max)
_reduction(c.pmin_p, reduce_min)


# ---- exchanges -----------------------------------------------------------------------------------


def _one_name(names: Sequence[Hashable], what: str) -> None:
    if len(names) > 1:
        raise NotImplementedError(  # JAX raises this class.
            f"{what} over several named axes, {tuple(names)}, is not supported if vmap maps one of "
            "them: apply it to one axis at a time."
        )


def _names(axis_name: object) -> tuple[Hashable, ...]:
    return tuple(axis_name) if is_tuple_or_list(axis_name) else (axis_name,)


@batch_with_axis(exchanges.all_gather_p)
def _(
    data: AxisData,
    values: ArrayLikes,
    batch_axes: BatchAxes,
    /,
    *,
    all_gather_dimension: int,
    tiled: bool,
    **params: Any,
) -> Batched:
    (x,), (batch_axis,) = values, batch_axes
    names, groups = params["axis_name"], params["axis_index_groups"]
    if data.name not in names:
        params.update(all_gather_dimension=all_gather_dimension, tiled=tiled)
        return _gather_of_batch(exchanges.all_gather_p, x, batch_axis, **params)
    if len(names) > 1:
        return _gather_over_all(data, x, batch_axis, all_gather_dimension, tiled, names, groups)
    if batch_axis is None:
        size = params["axis_size"]
        return _joined(with_new_axis(x, size, all_gather_dimension), all_gather_dimension, tiled), (
            None
        )
    x = move_axis(x, batch_axis, 0)
    if groups is None:
        return _joined(move_axis(x, 0, all_gather_dimension), all_gather_dimension, tiled), None
    of_group = rows(x, np.array(groups)[_group_of(groups)])
    moved = move_axis(of_group, 1, 1 + all_gather_dimension)
    return _joined(moved, 1 + all_gather_dimension, tiled), 0


def _gather_of_batch(
    primitive: Primitive,
    x: ArrayLike,
    batch_axis: BatchAxis,
    *,
    all_gather_dimension: int,
    tiled: bool,
    **params: object,
) -> Batched:
    """Return the gather, along an axis that vmap does not map, of a batch of arrays."""
    # A batch axis before the gathered axis shifts it, and one after it is shifted.
    shift = batch_axis is not None and (
        batch_axis <= all_gather_dimension if tiled else batch_axis < all_gather_dimension
    )
    at = all_gather_dimension + shift
    result = process(primitive, (x,), {**params, "all_gather_dimension": at, "tiled": tiled})
    if batch_axis is None:
        return result, None
    return result, batch_axis + (not tiled and at <= batch_axis)


@batch_with_axis(exchanges.all_gather_invariant_p)
def _(data: AxisData, values: ArrayLikes, batch_axes: BatchAxes, /, **params: Any) -> Batched:
    return _gather_of_batch(exchanges.all_gather_invariant_p, values[0], batch_axes[0], **params)


@batch_with_axis(exchanges.all_gather_reduced_p)
def _(data: AxisData, values: ArrayLikes, batch_axes: BatchAxes, /, **params: Any) -> Batched:
    return _gather_of_batch(exchanges.all_gather_reduced_p, values[0], batch_axes[0], **params)


def _gather_over_all(
    data: AxisData,
    x: ArrayLike,
    batch_axis: BatchAxis,
    dimension: int,
    tiled: bool,
    names: Sequence[Hashable],
    groups: Groups,
) -> tuple[ArrayLike, int | None]:
    """Return an all_gather over several named axes, one of them mapped, and the batch axis None.

    Gather the innermost name first, each along a new first axis, and then merge the new axes.
    """
    if groups is not None:
        _one_name(names, "all_gather with axis_index_groups")
    sizes: list[int] = []
    for name in reversed(names):
        if name == data.name:
            x = to_front(x, batch_axis, data.size)
            sizes.insert(0, data.size)
            batch_axis = None
            continue
        x = exchanges.all_gather(x, name)
        batch_axis = None if batch_axis is None else batch_axis + 1
        sizes.insert(0, typeof(x).shape[0])
    shape = typeof(x).shape
    x = reshape(x, (int(np.prod(sizes)), *shape[len(sizes) :]))
    return _joined(move_axis(x, 0, dimension), dimension, tiled), None


def _joined(x: ArrayLike, dimension: int, tiled: bool) -> ArrayLike:
    """Merge axes `dimension` and `dimension + 1` if `tiled`, the first as the major part."""
    if not tiled:
        return x
    shape = typeof(x).shape
    joined = shape[dimension] * shape[dimension + 1]
    return reshape(x, (*shape[:dimension], joined, *shape[dimension + 2 :]))


@batch_with_axis(exchanges.reduce_scatter_p)
def _(
    data: AxisData,
    values: ArrayLikes,
    batch_axes: BatchAxes,
    /,
    *,
    scatter_dimension: int,
    tiled: bool,
    **params: Any,
) -> Batched:
    (x,), (batch_axis,) = values, batch_axes
    names, groups, size = params["axis_name"], params["axis_index_groups"], params["axis_size"]
    if data.name not in names:
        params.update(scatter_dimension=scatter_dimension, tiled=tiled)
        return _scatter_of_batch(exchanges.reduce_scatter_p, x, batch_axis, **params)
    _one_name(names, "psum_scatter")
    if batch_axis is not None and groups is None and not tiled:
        total = reduce_sum(x, (batch_axis,))
        return move_axis(total, scatter_dimension, 0), 0
    if batch_axis is None:
        x = _times(x, size)
        shares = move_axis(_shared_out(x, scatter_dimension, size), scatter_dimension, 0)
        if groups is not None:
            shares = rows(shares, _in_group(groups))
    elif groups is None:
        total = reduce_sum(x, (batch_axis,))
        shares = move_axis(_shared_out(total, scatter_dimension, size), scatter_dimension, 0)
    else:
        x = move_axis(x, batch_axis, 0)
        totals = with_rows([reduce_sum(rows(x, np.array(g)), (0,)) for g in groups])
        by_position = rows(totals, _group_of(groups))
        shared = move_axis(
            _shared_out(by_position, 1 + scatter_dimension, size), 1 + scatter_dimension, 1
        )
        # Each index along the mapped axis gets its own share.
        flat = reshape(shared, (data.size * size, *typeof(shared).shape[2:]))
        shares = rows(flat, np.arange(data.size) * size + _in_group(groups))
    if not tiled:
        # The scattered axis remains, with size 1.
        shape = list(typeof(shares).shape)
        del shape[1 + scatter_dimension]
        shares = reshape(shares, shape)
    return shares, 0


def _scatter_of_batch(
    primitive: Primitive,
    x: ArrayLike,
    batch_axis: BatchAxis,
    *,
    scatter_dimension: int,
    tiled: bool,
    **params: object,
) -> Batched:
    """Return the reduce_scatter, along an axis that vmap does not map, of a batch of arrays."""
    at = scatter_dimension + (batch_axis is not None and batch_axis <= scatter_dimension)
    result = process(primitive, (x,), {**params, "scatter_dimension": at, "tiled": tiled})
    if batch_axis is None:
        return result, None
    return result, batch_axis - (not tiled and at < batch_axis)


@batch_with_axis(exchanges.unreduced_reduce_scatter_p)
def _(data: AxisData, values: ArrayLikes, batch_axes: BatchAxes, /, **params: Any) -> Batched:
    return _scatter_of_batch(
        exchanges.unreduced_reduce_scatter_p, values[0], batch_axes[0], **params
    )


def _start_batched(primitive: Primitive, start: Primitive) -> BatchRuleWithAxis:
    """Return the batch rule of a primitive that starts a collective.

    Along an axis that vmap maps there is nothing to wait for: the result is available immediately.
    """

    def rule(
        data: AxisData, values: ArrayLikes, batch_axes: BatchAxes, /, **params: Any
    ) -> BatchResult:
        if data.name in params["axis_name"]:
            return batch_with_axis[primitive](data, values, batch_axes, **params)
        return _scatter_of_batch(start, values[0], batch_axes[0], **params)

    return rule


for _primitive, _start in futures.starts.items():
    batch_with_axis(_start)(_start_batched(_primitive, _start))


@batch(futures.reduce_scatter_done_p)
def _(values: ArrayLikes, batch_axes: Sequence[int]) -> Batched:
    (value,), (axis,) = values, batch_axes
    if isinstance(typeof(value), AbstractFuture):
        value = process(futures.reduce_scatter_done_p, (value,), {})
    return value, axis


def _shared_out(x: ArrayLike, dimension: int, size: int) -> Array:
    """Reshape axis `dimension` into two axes: `size` shares, and the elements of each share."""
    shape = typeof(x).shape
    return reshape(x, (*shape[:dimension], size, shape[dimension] // size, *shape[dimension + 1 :]))


@batch_with_axis(exchanges.all_to_all_p)
def _(
    data: AxisData,
    values: ArrayLikes,
    batch_axes: BatchAxes,
    /,
    *,
    split_axis: int,
    concat_axis: int,
    tiled: bool,
    **params: Any,
) -> Batched:
    (x,), (batch_axis,) = values, batch_axes
    names, groups = _names(params["axis_name"]), params["axis_index_groups"]
    if data.name not in names:
        if batch_axis is None:
            tiling = {"split_axis": split_axis, "concat_axis": concat_axis, "tiled": tiled}
            return process(exchanges.all_to_all_p, (x,), {**params, **tiling}), None
        # With the batch axis last, the numbers of the other axes are unchanged.
        rank = typeof(x).ndim
        x = move_axis(x, batch_axis, rank - 1)
        tiling = {"split_axis": split_axis, "concat_axis": concat_axis, "tiled": tiled}
        return process(exchanges.all_to_all_p, (x,), {**params, **tiling}), rank - 1
    if len(names) > 1:
        if groups is not None:
            _one_name(names, "all_to_all with axis_index_groups")
        return _all_to_all_over_several(
            data, x, batch_axis, names, split_axis, concat_axis, tiled
        ), 0
    x = to_front(x, batch_axis, data.size)
    size = data.size if groups is None else len(groups[0])
    # (sender, ..., receiver, share, ...) -> (receiver, ..., sender at concat_axis, ...)
    x = _shared_out(x, 1 + split_axis, size)
    if groups is None:
        x = _exchanged(x, split_axis)
    else:
        parts = [_exchanged(rows(x, np.array(group)), split_axis) for group in groups]
        order = np.argsort([i for group in groups for i in group])
        joined = reshape(with_rows(parts), (data.size, *typeof(parts[0]).shape[1:]))
        x = rows(joined, order)
    # Now (receiver, senders at 1 + split_axis, share, ...).
    if not tiled:
        shape = list(typeof(x).shape)
        del shape[2 + split_axis]
        return move_axis(reshape(x, shape), 1 + split_axis, 1 + concat_axis), 0
    x = move_axis(x, 1 + split_axis, 1 + concat_axis)
    return _joined(x, 1 + concat_axis, True), 0


def _all_to_all_over_several(
    data: AxisData,
    x: ArrayLike,
    batch_axis: BatchAxis | None,
    names: tuple[Hashable, ...],
    split_axis: int,
    concat_axis: int,
    tiled: bool,
) -> Array:
    """Return an all_to_all over several named axes; the mapped one is first in the result.

    The last name varies fastest, so an exchange over all names is a sequence of exchanges over each
    name, along the part of the split axis that belongs to that name.
    """
    x = to_front(x, batch_axis, data.size)
    number = names.index(data.name)
    other_names = names[:number] + names[number + 1 :]
    after = math.prod(axis_size(name) for name in names[number + 1 :])
    others = after * math.prod(axis_size(name) for name in names[:number])
    shape, split = typeof(x).shape, 1 + split_axis
    share = shape[split] // (others * data.size)
    parts = (others // after, data.size, after)
    x = reshape(x, (*shape[:split], *parts, share, *shape[split + 1 :]))
    # (receiver, sender, ..., indices along the other names, share, ...)
    order = [split + 1, 0, *[i for i in range(1, typeof(x).ndim) if i != split + 1]]
    x = transpose(x, order)
    shape = typeof(x).shape
    # Without tiles a share has one element, and its axis is absent from the result.
    received_axes = (others, share) if tiled else (others,)
    x = reshape(x, (*shape[: split + 1], *received_axes, *shape[split + 4 :]))
    joined = 2 + concat_axis
    params = {
        "axis_index_groups": None,
        "axis_name": other_names,
        "split_axis": split + 1,
        "concat_axis": joined,
        "tiled": False,
    }
    x = process(exchanges.all_to_all_p, (x,), params)
    shape = typeof(x).shape
    x = reshape(x, (*shape[:joined], others // after, after, *shape[joined + 1 :]))
    x = move_axis(x, 1, joined)
    shape = typeof(x).shape
    last = joined + 2
    count = others * data.size
    if tiled:
        count, last = count * shape[last], last + 1
    return reshape(x, (*shape[: joined - 1], count, *shape[last:]))


def _exchanged(x: ArrayLike, split_axis: int) -> Array:
    """Exchange the axis of senders, which is first, with the axis of receivers."""
    order = list(range(typeof(x).ndim))
    order[0], order[1 + split_axis] = order[1 + split_axis], order[0]
    return transpose(x, order)


@batch_with_axis(exchanges.ppermute_p)
def _(
    data: AxisData,
    values: ArrayLikes,
    batch_axes: BatchAxes,
    /,
    *,
    axis_name: Sequence[Hashable],
    perm: tuple[tuple[int, int], ...],
) -> Batched:
    (x,), (batch_axis,) = values, batch_axes
    if data.name not in axis_name:
        return process(
            exchanges.ppermute_p, (x,), {"axis_name": axis_name, "perm": perm}
        ), batch_axis
    _one_name(axis_name, "ppermute")
    source = np.full(data.size, -1)
    for sender, receiver in perm:
        source[receiver] = sender
    if batch_axis is None and (source >= 0).all():
        return x, None  # Each place receives the same value.
    x = to_front(x, batch_axis, data.size)
    moved = rows(x, np.maximum(source, 0))
    if (source < 0).any():
        aval = typeof(x)
        sent = broadcast_in_dim(source >= 0, aval.shape, (0,))
        moved = select_n(sent, zeros_of(aval), moved)
    return moved, 0


@batch_with_axis(c.axis_index_p)
def _(
    data: AxisData, values: ArrayLikes, batch_axes: BatchAxes, /, *, axis_name: Sequence[Hashable]
) -> Batched:
    if data.name != axis_name:
        return process(c.axis_index_p, (), {"axis_name": axis_name}), None
    return iota(np.dtype(np.int32), data.size), 0


@batch_with_axis(exchanges.pbroadcast_p)
def _(
    data: AxisData,
    values: ArrayLikes,
    batch_axes: BatchAxes,
    /,
    *,
    axis_name: Sequence[Hashable],
    source: int,
) -> Batched:
    (x,), (batch_axis,) = values, batch_axes
    names = _names(axis_name)
    if data.name not in names:
        params = {"axis_name": axis_name, "source": source}
        return process(exchanges.pbroadcast_p, (x,), params), batch_axis
    _one_name(names, "pbroadcast")
    if batch_axis is None:
        return x, None
    return index_in_dim(x, source, batch_axis, keepdims=False), None
