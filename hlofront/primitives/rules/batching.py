"""Makers of batch rules, with helpers that move, add and match batch axes."""

from collections.abc import Sequence
from typing import cast

from hlofront.base.dtypes import float0
from hlofront.base.typing import ArrayLike, ArrayLikes
from hlofront.core import rules
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.axes import split_batch_axis, unmapped_aval
from hlofront.core.primitive import Primitive
from hlofront.core.rules import BatchResult
from hlofront.core.symbolic_zeros import BatchAxes, BatchAxis
from hlofront.core.trace import process
from hlofront.primitives.arrays.shaping import (
    broadcast_in_dim,
    broadcast_in_dim_p,
    expand_dims,
    reshape,
    transpose,
)
from hlofront.primitives.rules.derivatives import add_any_p, zeros_of


def move_axis(x: ArrayLike, source: int, destination: int) -> ArrayLike:
    """Return `x` with axis `source` moved to `destination`; the other axes keep their order."""
    if source == destination:
        return x
    order = [i for i in range(typeof(x).ndim) if i != source]
    order.insert(destination, source)
    return transpose(x, order)


def to_front(x: ArrayLike, axis: BatchAxis, size: int) -> ArrayLike:
    """Return `x` with its batch axis first, or broadcast along a new axis 0 if `axis` is None."""
    return with_new_axis(x, size) if axis is None else move_axis(x, axis, 0)


def only_axis(axes: BatchAxes) -> int:
    """Return the batch axis of the only operand of an operation, which always has one."""
    (axis,) = axes
    assert axis is not None
    return axis


def with_new_axis(x: ArrayLike, size: int, axis: int = 0) -> ArrayLike:
    """Return `x` repeated `size` times along a new axis inserted at `axis`."""
    aval = typeof(x)
    shape = (*aval.shape[:axis], size, *aval.shape[axis:])
    if aval.dtype == float0:
        return zeros_of(aval.update(shape))
    order = shifted(range(aval.ndim), axis)
    if split_batch_axis() is None:
        return broadcast_in_dim(x, shape, order)
    sharding = _with_batch_axis(aval, size, axis).sharding
    params = {"shape": shape, "broadcast_dimensions": order, "sharding": sharding}
    return process(broadcast_in_dim_p, (x,), params)


def _with_batch_axis(aval: ShapedArray, size: int, axis: int) -> ShapedArray:
    """Return the type of an array repeated along a batch axis that is split like vmap's axis."""
    batch = split_batch_axis()
    if batch is None or batch.size != size:
        return cast(ShapedArray, unmapped_aval(size, axis, aval))
    mapped = unmapped_aval(size, axis, aval, batch.explicit_mesh_axis, batch.mesh)
    return cast(ShapedArray, mapped)


def shifted(axes: Sequence[int], new: int) -> tuple[int, ...]:
    """Return the positions of axes after a new axis is inserted at `new`."""
    return tuple([axis + (axis >= new) for axis in axes])


def batch_size(values: ArrayLikes, axes: Sequence[int | None]) -> int:
    """Return the size of the batch axis that the operands of a batch rule share."""
    return next(
        typeof(x).shape[axis] for x, axis in zip(values, axes, strict=True) if axis is not None
    )


def with_same_axis(
    values: ArrayLikes, axes: Sequence[int | None]
) -> tuple[tuple[ArrayLike, ...], int]:
    """Return the operands with a common batch axis, and that axis.

    It is 0 unless all operands already share another one; unbatched operands are broadcast.
    """
    if axes[0] is not None and all(axis == axes[0] for axis in axes):
        return tuple(values), axes[0]
    size = batch_size(values, axes)
    return tuple([to_front(x, axis, size) for x, axis in zip(values, axes, strict=True)]), 0


# Primitives whose result elements depend only on operand elements at the same position.
elementwise: set[Primitive] = set()


def batch_elementwise(*primitives: Primitive) -> None:
    """Register the batch rule of elementwise primitives of any number of operands.

    Operands broadcast: each has the full shape, is a scalar, or has size 1 where others have more.
    """
    elementwise.update(primitives)
    for primitive in primitives:
        _register(primitive)


def _register(primitive: Primitive) -> None:
    def rule(values: ArrayLikes, axes: BatchAxes, **params: object) -> BatchResult:
        values, axis = match_axes(values, axes)
        return process(primitive, tuple(values), params), axis

    rule.__name__ = rule.__qualname__ = f"{primitive.name}_batch"
    rules.batch(primitive)(rule)


def match_axes(values: ArrayLikes, axes: Sequence[int | None]) -> tuple[list[ArrayLike], int]:
    """Return the operands of an elementwise operation with aligned batch axes, and the batch axis.

    Operands without a batch axis get one of size 1, except for scalars, which are unchanged.
    """
    if len(values) == 1:
        return list(values), axes[0]  # type: ignore[return-value]
    shapes = [typeof(x).shape for x in values]
    batched = [(s, a) for s, a in zip(shapes, axes, strict=True) if a is not None]
    first = batched[0]
    if all(b == first for b in batched) and all(
        a is not None or not s for s, a in zip(shapes, axes, strict=True)
    ):
        return list(values), first[1]
    rank = max(len(s) - (a is not None) for s, a in zip(shapes, axes, strict=True))
    axis = first[1] if all(a in (None, first[1]) for a in axes) else 0
    matched: list[ArrayLike] = []
    for x, shape, own in zip(values, shapes, axes, strict=True):
        if own is None:
            # A scalar without a batch axis broadcasts unchanged.
            matched.append(expand_dims(x, (axis,)) if shape else x)
        elif len(shape) - 1 == rank:
            matched.append(move_axis(x, own, axis))
        else:  # A scalar per example of the batch.
            matched.append(reshape(x, [1] * axis + [shape[own]] + [1] * (rank - axis)))
    return matched, axis


def match_shapes(
    values: ArrayLikes, axes: Sequence[int | None], may_be_scalars: Sequence[int] = ()
) -> tuple[list[ArrayLike], int]:
    """Return the operands of a batch rule broadcast to the same shape, and their batch axis.

    Args:
      values: the operands, at least one of them batched.
      axes: the batch axis of each operand, or None.
      may_be_scalars: positions of operands that stay scalars if they are not batched.
    """
    shapes = [typeof(x).shape for x in values]
    rank = max(len(s) - (a is not None) for s, a in zip(shapes, axes, strict=True))
    # The most frequent batch axis of the operands of full rank, and their shape.
    whole = [(a, x) for a, x in zip(axes, values, strict=True) if a is not None and _rank(x) > rank]
    if whole:
        mapped_axes = [a for a, _ in whole]
        axis = min(mapped_axes, key=lambda a: (-mapped_axes.count(a), a))
        full = typeof(dict(whole)[axis])
    else:
        unmapped = next(
            typeof(x) for a, x in zip(axes, values, strict=True) if a is None and _rank(x) == rank
        )
        full, axis = _with_batch_axis(unmapped, batch_size(values, axes), 0), 0
    size, sharding = full.shape[axis], None if full.spec is None else full.sharding
    matched: list[ArrayLike] = []
    for index, (x, shape, own) in enumerate(zip(values, shapes, axes, strict=True)):
        if own is not None and len(shape) > rank:
            matched.append(move_axis(x, own, axis))
        elif own is None and len(shape) == rank > 0:
            matched.append(with_new_axis(x, size, axis))
        elif own is None and index in may_be_scalars:
            matched.append(x)
        else:  # A scalar for the whole batch, or one per example.
            dimensions = () if own is None else (axis,)
            matched.append(broadcast_in_dim(x, full.shape, dimensions, out_sharding=sharding))
    return matched, axis


def _rank(x: ArrayLike) -> int:
    return len(typeof(x).shape)


def batch_of_one_shape(primitive: Primitive, may_be_scalars: Sequence[int] = ()) -> None:
    """Register the batch rule of an elementwise primitive whose operands must have equal shapes.

    Args:
      primitive: the primitive.
      may_be_scalars: positions of operands that may be scalars nevertheless.
    """

    def rule(values: ArrayLikes, axes: BatchAxes, **params: object) -> BatchResult:
        values, axis = match_shapes(values, axes, may_be_scalars)
        return process(primitive, tuple(values), params), axis

    rule.__name__ = rule.__qualname__ = f"{primitive.name}_batch"
    rules.batch(primitive)(rule)


batch_of_one_shape(add_any_p)
