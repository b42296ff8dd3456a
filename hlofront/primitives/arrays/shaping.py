"""Primitives of shape and order: broadcast, reshape, transpose, squeeze, reverse."""

import math
from collections.abc import Sequence

import numpy as np

from hlofront.base.boundary import boundary
from hlofront.base.dtypes import default_dtype
from hlofront.base.typing import Array, ArrayLike, ArrayLikes, Shape, ShapeLike
from hlofront.bridge.jaxlib_types import NamedSharding
from hlofront.core import rules
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.primitive import Primitive
from hlofront.core.rules import infer
from hlofront.core.sharding.requested_shardings import (
    cotangent_sharding,
    permuted,
    requested,
    with_batch_axis,
)
from hlofront.core.sizes.dimensions import (
    canonical_axes,
    canonical_axis,
    canonical_shape,
    check_nonnegative,
    integers,
)
from hlofront.core.symbolic_zeros import Batched, Cotangents, Operand, UndefinedPrimal
from hlofront.core.trace import as_array, process
from hlofront.primitives.rules.derivatives import linear
from hlofront.primitives.sharding.resharding import bind_reshard

_ascending = tuple(tuple(range(n)) for n in range(33))


def ascending(n: int) -> tuple[int, ...]:
    """Return `(0, 1, ..., n - 1)`, the axes of an array of rank n in order."""
    return _ascending[n] if n < 33 else tuple(range(n))


# ---- broadcast -----------------------------------------------------------------------------------

broadcast_in_dim_p = Primitive("broadcast_in_dim")


@boundary
def broadcast_in_dim(
    operand: ArrayLike,
    shape: ShapeLike,
    broadcast_dimensions: Sequence[int],
    *,
    out_sharding: object = None,
) -> Array:
    """Repeat an array along new axes, and along its own axes of size 1.

    Args:
      operand: the array to broadcast.
      shape: the shape of the result.
      broadcast_dimensions: the axis of the result that each axis of the operand becomes, in any
        order. Corresponding sizes are equal, or the operand's is 1.
      out_sharding: the sharding of the result over axes of type Explicit; None for that of the
        operand.

    Raises:
      TypeError: if sizes conflict, or `broadcast_dimensions` are not distinct axes of the result.

    Example:
      >>> lax.broadcast_in_dim(jnp.array([1, 2]), (2, 3), broadcast_dimensions=(0,))
      Array([[1, 1, 1],
             [2, 2, 2]], dtype=int32)
    """
    shape = canonical_shape(shape)
    dimensions = integers(broadcast_dimensions, "broadcast_dimensions")
    requested_sharding = None
    if out_sharding is not None:
        requested_sharding = requested("broadcast_in_dim", out_sharding)
    aval = getattr(operand, "aval", None)
    if dimensions == ascending(len(shape)):
        if requested_sharding is not None and typeof(operand).shape == shape:
            return bind_reshard(operand, requested_sharding)
        if aval is None:
            if typeof(operand).shape == shape:
                return as_array(operand)
        elif aval.shape == shape:
            return operand  # pyright: ignore[reportReturnType]  # Only arrays have avals.
    return process(
        broadcast_in_dim_p,
        (operand,),
        {"shape": shape, "broadcast_dimensions": dimensions, "sharding": requested_sharding},
    )


@infer(broadcast_in_dim_p)
def _(
    operand: ShapedArray, *, shape: Shape, broadcast_dimensions: tuple[int, ...], sharding: object
) -> ShapedArray:
    from_shape = operand.shape
    check_nonnegative("broadcast_in_dim", "shape", shape)
    if len(broadcast_dimensions) != len(from_shape):
        raise TypeError(
            "broadcast_in_dim broadcast_dimensions must have length equal to operand ndim; got "
            f"broadcast_dimensions {broadcast_dimensions} for operand ndim {len(from_shape)}."
        )
    check_nonnegative("broadcast_in_dim", "broadcast_dimensions", broadcast_dimensions)
    if len(shape) < len(from_shape):
        raise TypeError(
            "broadcast_in_dim target broadcast shape must have equal or higher rank to the operand "
            f"shape; got operand ndim {len(from_shape)} and target broadcast ndim {len(shape)}."
        )
    if any(axis >= len(shape) for axis in broadcast_dimensions):
        raise TypeError(
            "broadcast_in_dim broadcast_dimensions must be a subset of output dimensions, got "
            f"{broadcast_dimensions} for operand ndim {len(from_shape)} and shape {shape}."
        )
    for size, axis in zip(from_shape, broadcast_dimensions, strict=True):
        if size not in (1, shape[axis]):
            raise TypeError(
                "broadcast_in_dim operand dimension sizes must either be 1, or be equal to their "
                "corresponding dimensions in the target broadcast shape; got operand of shape "
                f"{from_shape}, target broadcast shape {shape}, broadcast_dimensions "
                f"{broadcast_dimensions}"
            )
    if len(set(broadcast_dimensions)) < len(broadcast_dimensions):
        raise TypeError(
            "broadcast_in_dim broadcast_dimensions must be different axes; got "
            f"broadcast_dimensions {broadcast_dimensions}"
        )
    return ShapedArray(shape, operand.dtype, operand.weak_type)


linear(broadcast_in_dim_p)


@rules.batch(broadcast_in_dim_p)
def _(
    values: ArrayLikes,
    axes: Sequence[int],
    *,
    shape: Shape,
    broadcast_dimensions: tuple[int, ...],
    sharding: NamedSharding | None,
) -> Batched:
    (operand,), (axis,) = values, axes
    # Insert the batch axis right after its predecessor's position, so that axes keep their order.
    position = broadcast_dimensions[axis - 1] + 1 if axis else 0
    moved = [i + (i >= position) for i in broadcast_dimensions]
    params = {
        "shape": (*shape[:position], typeof(operand).shape[axis], *shape[position:]),
        "broadcast_dimensions": (*moved[:axis], position, *moved[axis:]),
        "sharding": with_batch_axis(sharding, position, operand, axis),
    }
    return process(broadcast_in_dim_p, (operand,), params), position


@boundary
def broadcast(operand: ArrayLike, sizes: Sequence[int], *, out_sharding: object = None) -> Array:
    """Repeat an array along new leading axes: the result has shape `sizes + operand.shape`.

    Args:
      operand: an array or scalar.
      sizes: the sizes of the new axes, not negative.
      out_sharding: the sharding of the result over axes of type Explicit.

    Raises:
      TypeError: if a size is negative or not an integer.

    Example:
      >>> lax.broadcast(jnp.array([1, 2]), (3,)).shape
      (3, 2)
    """
    sizes = canonical_shape(sizes)
    shape = sizes + typeof(operand).shape
    return broadcast_in_dim(
        operand, shape, ascending(len(shape))[len(sizes) :], out_sharding=out_sharding
    )


@boundary
def broadcast_like(arr: ArrayLike, like_arr: ArrayLike) -> Array:
    """Broadcast `arr` to the shape of `like_arr` by NumPy's rule: trailing axes are matched.

    Args:
      arr: an array or scalar.
      like_arr: the array whose shape the result has.

    Raises:
      TypeError: if the shapes do not fit.
    """
    like, ndim = typeof(like_arr), typeof(arr).ndim
    return broadcast_in_dim(
        arr,
        like.shape,
        ascending(like.ndim)[max(like.ndim - ndim, 0) :],
        out_sharding=None if like.spec is None else like.sharding,
    )


@boundary
def broadcast_to_rank(x: ArrayLike, rank: int) -> Array:
    """Insert leading axes of size 1 up to `rank` axes; arrays of higher rank are unchanged.

    Args:
      x: an array or scalar.
      rank: the number of axes of the result.
    """
    return broadcast(x, (1,) * max(rank - typeof(x).ndim, 0))


@boundary
def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """Return the shape that arrays of some shapes broadcast to by NumPy's rule.

    Args:
      *shapes: shapes, each a sequence of sizes.

    Raises:
      ValueError: if the shapes do not broadcast.
      TypeError: if a shape is not a sequence of integers, or has a negative size.
    """
    canonical = [integers(shape, "each shape of broadcast_shapes") for shape in shapes]
    for shape in canonical:
        for size in shape:
            if size < 0:
                raise TypeError(
                    "Only non-negative indices are allowed when broadcasting static shapes, but "
                    f"got shape {shape}."
                )
    if not canonical:
        return ()
    if canonical.count(canonical[0]) == len(canonical):
        return canonical[0]
    rank = max(map(len, canonical))
    result = [1] * rank
    for shape in canonical:
        for axis, size in enumerate(shape, rank - len(shape)):
            if size == 1:
                continue
            if result[axis] not in (1, size):
                raise ValueError(f"Incompatible shapes for broadcasting: shapes={list(shapes)}")
            result[axis] = size
    return tuple(result)


# ---- reshape -------------------------------------------------------------------------------------

reshape_p = Primitive("reshape")


@boundary
def reshape(
    operand: ArrayLike,
    new_sizes: ShapeLike,
    dimensions: Sequence[int] | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """Return an array's elements, in row-major order, in another shape.

    Args:
      operand: the array to reshape.
      new_sizes: the shape of the result; unlike in NumPy, no size may be -1.
      dimensions: the order in which to read the operand's axes, a permutation; None for their own.
      out_sharding: the sharding of the result over axes of type Explicit; None to derive it from
        the operand's.

    Raises:
      TypeError: if a size is negative, or the dimensions are not a permutation.
      ValueError: if the number of elements differs.

    Example:
      >>> lax.reshape(jnp.array([[1, 2], [3, 4]]), (4,), dimensions=(1, 0))
      Array([1, 3, 2, 4], dtype=int32)
    """
    new_sizes = canonical_shape(new_sizes)
    requested_sharding = None
    if out_sharding is not None:
        requested_sharding = requested("reshape", out_sharding)
    aval = getattr(operand, "aval", None)
    if dimensions is not None:
        dimensions = integers(dimensions, "dimensions of reshape")
        if dimensions == ascending(typeof(operand).ndim):
            dimensions = None
    same = dimensions is None and new_sizes and aval is not None and aval.shape == new_sizes
    if same and requested_sharding is None:
        return operand  # pyright: ignore[reportReturnType]  # Only arrays have avals.
    return process(
        reshape_p,
        (operand,),
        {"new_sizes": new_sizes, "dimensions": dimensions, "sharding": requested_sharding},
    )


@infer(reshape_p)
def _(
    operand: ShapedArray, *, new_sizes: Shape, dimensions: tuple[int, ...] | None, sharding: object
) -> ShapedArray:
    if any(size < 0 for size in new_sizes):
        raise TypeError(f"reshape new_sizes must all be positive, got {new_sizes}.")
    if math.prod(new_sizes) != operand.size:
        raise ValueError(
            f"reshape total size must be unchanged, got new_sizes {new_sizes} of "
            f"{math.prod(new_sizes)} elements for shape {operand.shape} of {operand.size}."
        )
    if dimensions is not None and tuple(sorted(dimensions)) != ascending(operand.ndim):
        raise TypeError(
            "reshape dimensions must be a permutation of operand dimensions, got dimensions "
            f"{dimensions} for shape {operand.shape}."
        )
    return ShapedArray(new_sizes, operand.dtype, operand.weak_type)


@rules.transpose(reshape_p)
def _(
    cotangent: ArrayLike,
    operand: UndefinedPrimal,
    *,
    new_sizes: Shape,
    dimensions: tuple[int, ...] | None,
    sharding: object,
) -> Cotangents:
    shape, operand_sharding = operand.aval.shape, cotangent_sharding(operand.aval, cotangent)
    if dimensions is None:
        if typeof(cotangent) == operand.aval.to_cotangent_aval():
            operand_sharding = None
        return [reshape(cotangent, shape, out_sharding=operand_sharding)]
    sizes = [shape[i] for i in dimensions]
    as_read = reshape(cotangent, sizes, out_sharding=permuted(operand_sharding, dimensions))
    return [transpose(as_read, inverse_permutation(dimensions))]


linear(reshape_p)


@rules.batch(reshape_p)
def _(
    values: ArrayLikes,
    axes: Sequence[int],
    *,
    new_sizes: Shape,
    dimensions: tuple[int, ...] | None,
    sharding: NamedSharding | None,
) -> Batched:
    (operand,), (axis,) = values, axes
    shape = typeof(operand).shape
    split_axis = _where_split(new_sizes, math.prod(shape[:axis])) if dimensions is None else None
    if split_axis is None:
        # Read the batch axis first.
        order = range(len(shape) - 1) if dimensions is None else dimensions
        dimensions, split_axis = (axis, *[i + (i >= axis) for i in order]), 0
    sizes = (*new_sizes[:split_axis], shape[axis], *new_sizes[split_axis:])
    batched_sharding = with_batch_axis(sharding, split_axis, operand, axis)
    return reshape(operand, sizes, dimensions, out_sharding=batched_sharding), split_axis


def _where_split(sizes: tuple[int, ...], elements: int) -> int | None:
    """Return the number of leading sizes whose product is `elements`, or None if there is none."""
    product = 1
    for count, size in enumerate(sizes):
        if product == elements:
            return count
        product *= size
    return len(sizes) if product == elements else None


@boundary
def collapse(operand: ArrayLike, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """Merge the axes from `start_dimension` up to, not including, `stop_dimension` into one.

    The bounds are as in a Python slice: negative ones count from the end, and None is the end.
    An empty range inserts an axis of size 1.

    Args:
      operand: an array or scalar.
      start_dimension: the first axis to merge.
      stop_dimension: the axis after the last one to merge; None is the end.

    Raises:
      ValueError: if the range ends before it starts.

    Example:
      >>> lax.collapse(jnp.ones((2, 3, 4)), 1).shape
      (2, 12)
    """
    shape = typeof(operand).shape
    start, stop, _ = slice(start_dimension, stop_dimension).indices(len(shape))
    if stop < start:
        raise ValueError(f"Invalid dimension range passed to collapse: {shape}[{start}:{stop}]")
    return reshape(operand, (*shape[:start], math.prod(shape[start:stop]), *shape[stop:]))


@boundary
def shape_as_value(shape: ShapeLike) -> np.ndarray:
    """Return a shape as a NumPy array of default integers, one per axis.

    Args:
      shape: the sizes, integers.

    Raises:
      TypeError: if a size is not an integer.
    """
    return np.asarray(canonical_shape(shape), default_dtype("i"))


# ---- squeeze and expand --------------------------------------------------------------------------

squeeze_p = Primitive("squeeze")


@boundary
def squeeze(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Remove axes of size 1 from an array.

    Args:
      array: an array.
      dimensions: the axes to remove; negative ones count from the end.

    Raises:
      ValueError: if an axis is out of range, repeated, or not of size 1.
    """
    aval = getattr(array, "aval", None)
    ndim = (typeof(array) if aval is None else aval).ndim
    axes = [canonical_axis(axis, ndim) for axis in dimensions]
    if len(axes) > 1:
        axes.sort()
    elif not axes and aval is not None:
        return array  # pyright: ignore[reportReturnType]  # Only arrays have avals.
    return process(squeeze_p, (array,), {"dimensions": tuple(axes)})


def check_sizes_of_one(shape: Shape, axes: Sequence[int], dimensions: tuple[int, ...]) -> None:
    """Raise ValueError unless axes have size 1; the message shows `dimensions`."""
    if any(shape[axis] != 1 for axis in axes):
        raise ValueError(
            "cannot select an axis to squeeze out which has size not equal to one, got "
            f"shape={shape} and dimensions={dimensions}"
        )


@infer(squeeze_p)
def _(array: ShapedArray, *, dimensions: tuple[int, ...]) -> ShapedArray:
    shape = array.shape
    if len(set(dimensions)) != len(dimensions):
        raise ValueError(f"dimensions are not unique: {dimensions}")
    check_sizes_of_one(shape, dimensions, dimensions)
    left = tuple([size for axis, size in enumerate(shape) if axis not in dimensions])
    return ShapedArray(left, array.dtype, array.weak_type)


@rules.transpose(squeeze_p)
def _(cotangent: ArrayLike, array: Operand, *, dimensions: tuple[int, ...]) -> Cotangents:
    return [expand_dims(cotangent, dimensions)]


linear(squeeze_p)


@rules.batch(squeeze_p)
def _(values: ArrayLikes, axes: Sequence[int], *, dimensions: tuple[int, ...]) -> Batched:
    (array,), (axis,) = values, axes
    shifted = tuple([i + (i >= axis) for i in dimensions])
    before = sum(i < axis for i in shifted)
    return process(squeeze_p, (array,), {"dimensions": shifted}), axis - before


@boundary
def expand_dims(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Insert axes of size 1 into an array.

    Args:
      array: an array or scalar.
      dimensions: the positions of the new axes in the result; negative ones count from its end.

    Raises:
      ValueError: if a position is out of range or repeated.
    """
    shape = typeof(array).shape
    order = tuple(dimensions)
    ndim = len(shape) + len(order)
    new = set(canonical_axes(order, ndim))
    if len(new) != len(order):
        raise ValueError(f"repeated axis in lax.expand_dims: {order}")
    sizes = iter(shape)
    result = tuple([1 if axis in new else next(sizes) for axis in range(ndim)])
    return broadcast_in_dim(array, result, tuple([i for i in range(ndim) if i not in new]))


# ---- transpose and reverse -----------------------------------------------------------------------

transpose_p = Primitive("transpose")


@boundary
def transpose(operand: ArrayLike, permutation: Sequence[int] | np.ndarray) -> Array:
    """Permute the axes of an array: axis i of the result is axis `permutation[i]` of the operand.

    Args:
      operand: an array or scalar.
      permutation: the operand's axes in their new order.

    Raises:
      TypeError: if `permutation` is not a permutation of the operand's axes.
    """
    permutation = integers(permutation, "permutation of transpose")
    aval = getattr(operand, "aval", None)
    if aval is not None and permutation == ascending(aval.ndim):
        return operand  # pyright: ignore[reportReturnType]  # Only arrays have avals.
    return process(transpose_p, (operand,), {"permutation": permutation})


@infer(transpose_p)
def _(operand: ShapedArray, *, permutation: tuple[int, ...]) -> ShapedArray:
    if tuple(sorted(permutation)) != ascending(operand.ndim):
        raise TypeError(
            "transpose permutation isn't a permutation of operand dimensions, got permutation "
            f"{permutation} for operand shape {operand.shape}."
        )
    shape = operand.shape
    return ShapedArray(tuple([shape[i] for i in permutation]), operand.dtype, operand.weak_type)


def inverse_permutation(permutation: Sequence[int]) -> tuple[int, ...]:
    """Return the inverse of a permutation of 0, ..., n - 1."""
    inverse = [0] * len(permutation)
    for new, old in enumerate(permutation):
        inverse[old] = new
    return tuple(inverse)


@rules.transpose(transpose_p)
def _(cotangent: ArrayLike, operand: Operand, *, permutation: tuple[int, ...]) -> Cotangents:
    return [transpose(cotangent, inverse_permutation(permutation))]


linear(transpose_p)


@rules.batch(transpose_p)
def _(values: ArrayLikes, axes: Sequence[int], *, permutation: tuple[int, ...]) -> Batched:
    (operand,), (axis,) = values, axes
    return transpose(operand, (axis, *[i + (i >= axis) for i in permutation])), 0


rev_p = Primitive("rev")


@boundary
def rev(operand: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Reverse the order of an array's elements along some axes.

    Args:
      operand: an array or scalar.
      dimensions: the axes, not negative.

    Raises:
      TypeError: if an axis is out of range or repeated.
    """
    return process(rev_p, (operand,), {"dimensions": integers(dimensions, "dimensions of rev")})


@infer(rev_p)
def _(operand: ShapedArray, *, dimensions: tuple[int, ...]) -> ShapedArray:
    if len(set(dimensions)) != len(dimensions):
        raise TypeError(f"rev dimensions must be unique, got {dimensions}.")
    check_nonnegative("rev", "dimensions", dimensions)
    if any(axis >= operand.ndim for axis in dimensions):
        raise TypeError(
            "rev dimensions must all be less than operand ndim, got dimensions "
            f"{dimensions} for operand ndim {operand.ndim}."
        )
    return operand


@rules.transpose(rev_p)
def _(cotangent: ArrayLike, operand: Operand, *, dimensions: tuple[int, ...]) -> Cotangents:
    return [process(rev_p, (cotangent,), {"dimensions": dimensions})]


linear(rev_p)


@rules.batch(rev_p)
def _(values: ArrayLikes, axes: Sequence[int], *, dimensions: tuple[int, ...]) -> Batched:
    (axis,) = axes
    shifted = tuple([i + (i >= axis) for i in dimensions])
    return process(rev_p, tuple(values), {"dimensions": shifted}), axis
