"""The shapes of arrays: reshape, transpose, squeeze, broadcast, and similar functions."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

import numpy as np

from hlofront.base import errors, source
from hlofront.base.boundary import boundary
from hlofront.base.typing import Array, ArrayLike, Axes, Shape, ShapeLike
from hlofront.core.aval import SymbolicSize, typeof
from hlofront.core.programs.extension import concrete_or_error
from hlofront.core.sharding.requested_shardings import permuted, requested
from hlofront.core.sizes.dimensions import canonical_axes, canonical_axis, canonical_shape
from hlofront.numpy.arrays import creation
from hlofront.numpy.elementwise.ufuncs import any_operand
from hlofront.numpy.support.annotations import OutSharding
from hlofront.numpy.support.like import like, operation_like
from hlofront.numpy.support.naming import named
from hlofront.numpy.support.promotion import as_operand, broadcast_together
from hlofront.primitives.arrays import shaping
from hlofront.primitives.arrays.shaping import ascending
from hlofront.runtime.dispatch.operation import operation


def as_array(x: ArrayLike) -> Array:
    """Return an operand, which may be a NumPy array or a scalar, as an array."""
    return x if hasattr(x, "aval") else creation.asarray(x)


def static_axes(axes: object) -> int | tuple[int, ...] | None:
    """Return axes in hashable form: an int, a tuple, or None."""
    if type(axes) is int or axes is None:
        return axes
    if isinstance(axes, Sequence) or (
        hasattr(axes, "__iter__") and getattr(axes, "ndim", 1)  # NumPy scalars have the method too.
    ):
        return tuple(map(_known_axis, axes))
    return _known_axis(axes)


def _known_axis(axis: object) -> int:
    if isinstance(axis, int):
        return operator.index(axis)
    return concrete_or_error(operator.index, axis, "Axes must be known while tracing.")


# ---- reshape -----------------------------------------------------------------------------------


@operation(static_argnames=("shape", "order", "requested_sharding"))
def _reshape(
    a: ArrayLike, shape: Shape, order: str = "C", requested_sharding: object = None
) -> Array:
    a = any_operand("reshape", a)
    old = typeof(a).shape
    new = _filled(old, shape)
    if order == "C":
        if new == old and requested_sharding is None:
            return as_array(a)
        return shaping.reshape(a, new, out_sharding=requested_sharding)
    if order != "F":
        raise _bad_order("reshape", order)
    backwards = ascending(len(old))[::-1]
    if requested_sharding is not None:
        requested_sharding = permuted(requested_sharding, ascending(len(new))[::-1])
    reshaped = shaping.reshape(a, new[::-1], backwards, out_sharding=requested_sharding)
    return shaping.transpose(reshaped, ascending(len(new))[::-1])


def _bad_order(name: str, order: str) -> Exception:
    if order == "A" or (name == "ravel" and order == "K"):
        # JAX raises this class.
        return NotImplementedError(
            f"order={order!r} of jnp.{name} is not supported: arrays have no order in memory. Use "
            "'C', row by row, or 'F', column by column."
        )
    return ValueError(f"Unexpected value for 'order' argument: {order}. Wanted 'C' or 'F'.")


def _filled(old: tuple[int, ...], new: tuple[int, ...]) -> tuple[int, ...]:
    """Return the new shape with its -1 replaced by the remaining size."""
    size, expected = math.prod(old), math.prod(new)
    if -1 not in new:
        if expected == size and min(new, default=0) >= 0:
            return new
        raise TypeError(
            f"cannot reshape array of shape {old} (size {size}) into shape {new} (size {expected})"
        )
    if new.count(-1) > 1:
        raise TypeError(f"can only specify one unknown axis size with a `-1` value, got {new}")
    rest = -expected
    remainder = size % rest if rest > 0 else size
    if isinstance(remainder, SymbolicSize):
        raise errors.InconclusiveDimensionOperation(
            f"cannot reshape array of shape {old} (size {size}) into shape {new}: whether the "
            f"product of specified axis sizes ({rest}) divides it evenly depends on the sizes. A "
            f"constraint settles it: symbolic_shape(..., constraints=['{remainder} == 0'])"
        )
    if remainder or rest <= 0:
        raise TypeError(
            f"cannot reshape array of shape {old} (size {size}) into shape {new} because the "
            f"product of specified axis sizes ({rest}) does not evenly divide it"
        )
    return tuple([size // rest if one == -1 else one for one in new])


def _reshapes_itself(a: object) -> bool:
    """Return whether JAX's `reshape` calls the `reshape` method of this value, not a JAX array."""
    return isinstance(a, np.ndarray | np.generic) or (
        hasattr(a, "__jax_array__") and hasattr(a, "reshape")
    )


@boundary
@like(np.reshape)
def reshape(
    a: ArrayLike,
    shape: ShapeLike,
    order: str = "C",
    *,
    copy: bool | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Reshape an array without changing its elements.

    One size may be -1, for the remaining size. As in JAX, NumPy arrays and scalars, and objects
    with `__jax_array__` and `reshape`, are reshaped by their own method unless an `out_sharding` is
    passed. The result for a NumPy array is a NumPy array, even in a traced function.

    Example:
      >>> jnp.reshape(jnp.arange(6), (2, -1))
      Array([[0, 1, 2],
             [3, 4, 5]], dtype=int32)
    """
    if out_sharding is not None:
        a, shape = any_operand("reshape", a), canonical_shape(shape)
        return _reshape(a, shape, order, requested("reshape", out_sharding))
    if _reshapes_itself(a):
        return a.reshape(shape, order=order)
    return _reshape(a, canonical_shape(shape), order)


@boundary
def _method_reshape(
    self: Array,
    *args: int | Sequence[int],
    order: str = "C",
    copy: bool | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Reshape the array: `x.reshape(2, -1)` or `x.reshape((2, -1))`."""
    shape = canonical_shape(args[0] if len(args) == 1 else args)
    if out_sharding is not None:
        return _reshape(self, shape, order, requested("reshape", out_sharding))
    return _reshape(self, shape, order)


@operation(static_argnames=("order", "requested_sharding"))
def _ravel(a: ArrayLike, order: str = "C", requested_sharding: object = None) -> Array:
    a = any_operand("ravel", a)
    if order not in ("C", "F"):
        raise _bad_order("ravel", order)
    return _reshape.when_traced(a, (typeof(a).size,), order, requested_sharding)


@boundary
@like(np.ravel)
def ravel(a: ArrayLike, order: str = "C", *, out_sharding: OutSharding = None) -> Array:
    """Flatten an array, row by row, or column by column with order "F".

    Example:
      >>> jnp.ravel(jnp.array([[1, 2], [3, 4]]), order="F")
      Array([1, 3, 2, 4], dtype=int32)
    """
    if out_sharding is not None:
        return _ravel(a, order, requested("ravel", out_sharding))
    return _ravel(a) if order == "C" else _ravel(a, order)


def _permutation(axes: object) -> int | tuple[int, ...] | None:
    """Return the order of axes in hashable form."""
    if isinstance(axes, Sequence):
        return tuple(map(operator.index, axes))
    return static_axes(axes)


# ---- transpose ---------------------------------------------------------------------------------


@operation(static_argnames=("axes",))
def _transpose(a: ArrayLike, axes: tuple[int, ...] | None = None) -> Array:
    a = any_operand("transpose", a)
    ndim = typeof(a).ndim
    permutation = ascending(ndim)[::-1] if axes is None else canonical_axes(axes, ndim)
    if permutation == ascending(ndim):
        return as_array(a)
    return shaping.transpose(a, permutation)


@boundary
@like(np.transpose)
def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """Permute the axes: axis i of the result is axis `axes[i]`; by default they are reversed.

    Example:
      >>> jnp.transpose(jnp.array([[1, 2], [3, 4]]))
      Array([[1, 3],
             [2, 4]], dtype=int32)
    """
    return _transpose(a) if axes is None else _transpose(a, _permutation(axes))


@boundary
@like(np.permute_dims)
def permute_dims(a: ArrayLike, /, axes: tuple[int, ...]) -> Array:
    """Permute the axes: axis i of the result is axis `axes[i]`, counted from 0.

    Example:
      >>> jnp.permute_dims(jnp.ones((2, 3, 4)), (2, 0, 1)).shape
      (4, 2, 3)
    """
    return _permuted(a, _permutation(axes))


@operation(static_argnames=("axes",))
def _permuted(a: ArrayLike, axes: tuple[int, ...]) -> Array:
    return as_array(shaping.transpose(any_operand("permute_dims", a), axes))


@boundary
def _method_transpose(self: Array, *args: int | Sequence[int] | None) -> Array:
    """Permute the axes: `x.transpose(1, 0)` or `x.transpose((1, 0))`.

    By default they are reversed.
    """
    if not args:
        return _transpose(self)
    return transpose(self, args[0] if len(args) == 1 else args)


@operation_like(np.matrix_transpose)
def matrix_transpose(x: ArrayLike, /) -> Array:
    """Swap the last two axes of an array.

    Example:
      >>> jnp.matrix_transpose(jnp.ones((5, 2, 3))).shape
      (5, 3, 2)
    """
    x = any_operand("matrix_transpose", x)
    ndim = typeof(x).ndim
    if ndim < 2:
        raise ValueError(
            f"x must be at least two-dimensional for matrix_transpose; got ndim={ndim}"
        )
    return shaping.transpose(x, (*range(ndim - 2), ndim - 1, ndim - 2))


@operation_like(np.swapaxes, static_argnames=("axis1", "axis2"))
def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """Swap two axes of an array.

    Example:
      >>> jnp.swapaxes(jnp.ones((2, 3, 4)), 0, 2).shape
      (4, 3, 2)
    """
    a = any_operand("swapaxes", a)
    ndim = typeof(a).ndim
    first, second = canonical_axis(axis1, ndim), canonical_axis(axis2, ndim)
    permutation = list(range(ndim))
    permutation[first], permutation[second] = second, first
    return as_array(a) if first == second else shaping.transpose(a, permutation)


@operation(static_argnames=("source", "destination"))
def _moveaxis(
    a: ArrayLike, source: int | tuple[int, ...], destination: int | tuple[int, ...]
) -> Array:
    a = any_operand("moveaxis", a)
    ndim = typeof(a).ndim
    source = canonical_axes(source, ndim)
    destination = canonical_axes(destination, ndim)
    if len(source) != len(destination):
        raise ValueError(
            f"Inconsistent number of elements: {len(source)} vs {len(destination)}: moveaxis "
            "requires as many destinations as sources."
        )
    rest = iter([axis for axis in range(ndim) if axis not in source])
    moved = dict(zip(destination, source, strict=True))
    if len(moved) != len(source) or len(set(source)) != len(source):
        raise TypeError(f"repeated axis in moveaxis: from {source} to {destination}")
    permutation = tuple([moved[i] if i in moved else next(rest) for i in range(ndim)])
    return as_array(a) if permutation == ascending(ndim) else shaping.transpose(a, permutation)


@boundary
@like(np.moveaxis)
def moveaxis(a: ArrayLike, source: int | Sequence[int], destination: int | Sequence[int]) -> Array:
    """Move axes to other positions; the others stay in order.

    Example:
      >>> jnp.moveaxis(jnp.ones((2, 3, 4)), 0, -1).shape
      (3, 4, 2)
    """
    return _moveaxis(a, static_axes(source), static_axes(destination))


@operation_like(np.rollaxis, static_argnames=("axis", "start"))
def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array:
    """Move an axis back to before axis `start`; moveaxis is easier to read.

    Example:
      >>> jnp.rollaxis(jnp.ones((2, 3, 4)), 2, 1).shape
      (2, 4, 3)
    """
    a = any_operand("rollaxis", a)
    ndim = typeof(a).ndim
    axis, start = canonical_axis(axis, ndim), operator.index(start)
    if not -ndim <= start <= ndim:
        raise ValueError(f"start={start} must satisfy {-ndim}<=start<={ndim}")
    start += ndim * (start < 0)
    return _moveaxis.when_traced(a, axis, start - (start > axis))


# ---- axes of size 1 ----------------------------------------------------------------------------


@operation(static_argnames=("axis",))
def _squeeze(a: ArrayLike, axis: Axes = None) -> Array:
    a = any_operand("squeeze", a)
    shape = typeof(a).shape
    if axis is None:
        axes = tuple([i for i, size in enumerate(shape) if size == 1])
    else:
        axes = canonical_axes(axis, len(shape))
        if len(set(axes)) != len(axes):
            raise ValueError(f"dimensions are not unique: {axis}")
    return shaping.squeeze(a, axes) if axes else as_array(a)


@boundary
@like(np.squeeze)
def squeeze(a: ArrayLike, axis: Axes = None) -> Array:
    """Drop axes of size 1: all of them, or those in `axis`.

    Example:
      >>> jnp.squeeze(jnp.ones((1, 3, 1))).shape
      (3,)
    """
    return _squeeze(a) if axis is None else _squeeze(a, static_axes(axis))


@operation(static_argnames=("axis",))
def _expand_dims(a: ArrayLike, axis: Axes) -> Array:
    a = any_operand("expand_dims", a)
    return as_array(shaping.expand_dims(a, axis if type(axis) is tuple else (axis,)))


@boundary
@like(np.expand_dims)
def expand_dims(a: ArrayLike, axis: int | Sequence[int]) -> Array:
    """Insert axes of size 1 at positions of the result.

    Example:
      >>> jnp.expand_dims(jnp.arange(3), 0).shape
      (1, 3)
    """
    return _expand_dims(a, static_axes(axis))


def _at_least(name: str, x: ArrayLike, ndim: int) -> Array:
    x = any_operand(name, x)
    shape = typeof(x).shape
    if len(shape) >= ndim:
        return as_array(x)
    if ndim == 3 and len(shape) == 2:
        return shaping.expand_dims(x, (2,))
    # For one axis, NumPy makes it the last of two, and the middle one of three.
    before = (0,) if len(shape) else tuple(range(ndim))
    return shaping.expand_dims(x, before + (() if ndim < 3 or not shape else (2,)))


@operation
@named("atleast_1d")
def _atleast_1d(x: ArrayLike) -> Array:
    return _at_least("atleast_1d", x, 1)


@operation
@named("atleast_2d")
def _atleast_2d(x: ArrayLike) -> Array:
    return _at_least("atleast_2d", x, 2)


@operation
@named("atleast_3d")
def _atleast_3d(x: ArrayLike) -> Array:
    return _at_least("atleast_3d", x, 3)


@boundary
@like(np.atleast_1d)
def atleast_1d(*arys: ArrayLike) -> Array | Sequence[Array]:
    """Return arrays with at least one axis: scalars get one.

    Several arrays give a list, or with hlofront_jax_api 0.12.0.1 a tuple.

    Example:
      >>> jnp.atleast_1d(jnp.int32(3)), jnp.atleast_1d(jnp.ones((2, 3))).shape
      (Array([3], dtype=int32), (2, 3))
    """
    if len(arys) == 1:
        return _atleast_1d(arys[0])
    return creation.sequence_of_arrays([_atleast_1d(x) for x in arys])


@boundary
@like(np.atleast_2d)
def atleast_2d(*arys: ArrayLike) -> Array | Sequence[Array]:
    """Return arrays with at least two axes, adding leading ones.

    Several arrays give a list, or with hlofront_jax_api 0.12.0.1 a tuple.

    Example:
      >>> jnp.atleast_2d(jnp.array([1, 2]))
      Array([[1, 2]], dtype=int32)
    """
    if len(arys) == 1:
        return _atleast_2d(arys[0])
    return creation.sequence_of_arrays([_atleast_2d(x) for x in arys])


@boundary
@like(np.atleast_3d)
def atleast_3d(*arys: ArrayLike) -> Array | Sequence[Array]:
    """Return arrays with at least three axes.

    (n,) becomes (1, n, 1), and (m, n) becomes (m, n, 1). Several arrays give a list, or with
    hlofront_jax_api 0.12.0.1 a tuple.

    Example:
      >>> jnp.atleast_3d(jnp.ones(4)).shape, jnp.atleast_3d(jnp.ones((2, 3))).shape
      ((1, 4, 1), (2, 3, 1))
    """
    if len(arys) == 1:
        return _atleast_3d(arys[0])
    return creation.sequence_of_arrays([_atleast_3d(x) for x in arys])


# ---- broadcast ---------------------------------------------------------------------------------


@operation(static_argnames=("shape", "requested_sharding"))
def _broadcast_to(array: ArrayLike, shape: Shape, requested_sharding: object = None) -> Array:
    array = any_operand("broadcast_to", array)
    old = typeof(array).shape
    new_axes = len(shape) - len(old)
    if new_axes < 0:
        raise ValueError(
            f"Cannot broadcast to shape with fewer dimensions: arr_shape={old} shape={shape}"
        )
    if any(size not in (1, expected) for size, expected in zip(old, shape[new_axes:], strict=True)):
        raise ValueError(
            f"Incompatible shapes for broadcasting: an array of shape {old} to shape {shape}. Sizes"
            " must be the same from the last axis on, or 1."
        )
    if old == shape and requested_sharding is None:
        return as_array(array)
    axes = ascending(len(shape))[new_axes:]
    return shaping.broadcast_in_dim(array, shape, axes, out_sharding=requested_sharding)


@boundary
@like(np.broadcast_to)
def broadcast_to(array: ArrayLike, shape: ShapeLike, *, out_sharding: OutSharding = None) -> Array:
    """Repeat an array along new leading axes and axes of size 1, up to a shape.

    Example:
      >>> jnp.broadcast_to(jnp.array([1, 2]), (2, 2))
      Array([[1, 2],
             [1, 2]], dtype=int32)
    """
    shape = canonical_shape(shape)
    if out_sharding is not None:
        return _broadcast_to(array, shape, requested("broadcast_to", out_sharding))
    return _broadcast_to(array, shape)


@operation
@named("broadcast_arrays")
def _broadcast_arrays(*args: ArrayLike) -> list[Array]:
    arrays = [any_operand("broadcast_arrays", x) for x in args]
    return [as_array(x) for x in broadcast_together("broadcast_arrays", *arrays)]


@boundary
@like(np.broadcast_arrays)
def broadcast_arrays(*args: ArrayLike) -> Sequence[Array]:
    """Broadcast arrays to their common shape: a list, or with hlofront_jax_api 0.12.0.1 a tuple.

    Example:
      >>> [x.shape for x in jnp.broadcast_arrays(jnp.ones((3, 1)), jnp.ones(4))]
      [(3, 4), (3, 4)]
    """
    return creation.sequence_of_arrays(_broadcast_arrays(*args) if args else ())


@boundary
@like(np.broadcast_shapes)
def broadcast_shapes(*shapes: ShapeLike) -> tuple[int, ...]:
    """Return the shape that arrays of these shapes broadcast to.

    Example:
      >>> jnp.broadcast_shapes((3, 1), (2, 1, 4))
      (2, 3, 4)
    """
    if not shapes:
        return ()
    return shaping.broadcast_shapes(*[canonical_shape(shape) for shape in shapes])


# ---- queries of the shape ----------------------------------------------------------------------


@boundary
@like(np.ndim)
def ndim(a: ArrayLike | Sequence[object]) -> int:
    """Return the number of axes of an array, or of another object as a NumPy array.

    Example:
      >>> jnp.ndim(jnp.ones((2, 3))), jnp.ndim(3)
      (2, 0)
    """
    return a.ndim if hasattr(a, "ndim") else np.ndim(_listed("ndim", a))


@boundary
@like(np.shape)
def shape(a: ArrayLike | Sequence[object]) -> tuple[int, ...]:
    """Return the shape of an array, or of another object as a NumPy array.

    Example:
      >>> jnp.shape(jnp.ones((2, 3))), jnp.shape(3)
      ((2, 3), ())
    """
    return a.shape if hasattr(a, "shape") else np.shape(_listed("shape", a))


def _listed(name: str, a: object) -> object:
    """Return `a`, or the array that its `__jax_array__` makes; warn unless it is a scalar."""
    if hasattr(a, "__jax_array__"):
        return as_operand(a)
    if not isinstance(a, bool | int | float | complex | str):
        source.warn(
            f"{name} requires ndarray or scalar arguments, got {type(a)}: that will be an error. "
            "Make an array of it with jnp.asarray first.",
            DeprecationWarning,
        )
    return a


@boundary
@like(np.size)
def size(a: ArrayLike | Sequence[object], axis: Axes = None) -> int:
    """Return the number of elements, or the product of the sizes along axes.

    Example:
      >>> x = jnp.ones((2, 3, 4))
      >>> jnp.size(x), jnp.size(x, 1)
      (24, 3)
    """
    sizes = a.shape if hasattr(a, "shape") else np.shape(_listed("size", a))
    if axis is None:
        return math.prod(sizes)
    axes = canonical_axes(axis, len(sizes))
    if len(set(axes)) < len(axes):
        raise ValueError(f"size: repeated axis in {axis}, which for shape {sizes} is {axes}")
    return math.prod([sizes[i] for i in axes])


_method_reshape.__name__ = "reshape"
_method_transpose.__name__ = "transpose"

ARRAY_METHODS = {
    "reshape": _method_reshape,
    "ravel": ravel,
    "flatten": ravel,
    "transpose": _method_transpose,
    "T": property(_transpose, doc="The array with its axes reversed."),
    "mT": property(matrix_transpose, doc="The array with its last two axes swapped."),
    "swapaxes": swapaxes,
    "squeeze": squeeze,
}
