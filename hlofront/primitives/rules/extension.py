"""Makers of rules with the signatures of `jax.interpreters`, for other packages' primitives."""

from collections.abc import Callable

from hlofront.base.typing import ArrayLike
from hlofront.core.primitive import Primitive
from hlofront.core.symbolic_zeros import BatchAxis, Cotangents
from hlofront.primitives.arrays.reducing import batch_reduction
from hlofront.primitives.rules.batching import batch_elementwise, to_front, with_new_axis
from hlofront.primitives.rules.derivatives import linear


def deflinear2(primitive: Primitive, transpose_rule: Callable[..., Cotangents]) -> None:
    """Register the jvp and transpose rules of a primitive that is linear in all operands together.

    Args:
      primitive: the primitive.
      transpose_rule: `transpose_rule(cotangent, *operands, **params)` returns a cotangent, or None,
        per operand; operands that are linear are UndefinedPrimals.
    """
    linear(primitive, transpose_rule)


def defvectorized(prim: Primitive) -> None:
    """Register the batch rule of an elementwise primitive."""
    batch_elementwise(prim)


def defbroadcasting(prim: Primitive) -> None:
    """Register the batch rule of an elementwise primitive whose operands broadcast."""
    batch_elementwise(prim)


def defreducer(prim: Primitive) -> None:
    """Register the batch rule of a primitive that reduces its operand over its parameter `axes`."""
    batch_reduction(prim)


def bdim_at_front(x: ArrayLike, bdim: BatchAxis, size: int, mesh_axis: object = None) -> ArrayLike:
    """Return an array with its batch axis first.

    Args:
      x: the array.
      bdim: its batch axis; None to repeat the array along a new one.
      size: the size of the batch axis.
      mesh_axis: accepted for JAX's sake; XLA chooses how new axes are split over a mesh.
    """
    return to_front(x, bdim, size)


def broadcast(x: ArrayLike, sz: int, axis: int, mesh_axis: object = None) -> ArrayLike:
    """Return an array repeated along a new axis.

    Args:
      x: the array.
      sz: the size of the new axis.
      axis: its position in the result.
      mesh_axis: accepted for JAX's sake; XLA chooses how new axes are split over a mesh.
    """
    return with_new_axis(x, sz, axis)
