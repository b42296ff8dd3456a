"""Arrays that are repeated along their axes: the primitive tile, and broadcast_to."""

from collections.abc import Sequence

from hlofront.base.boundary import boundary
from hlofront.base.typing import Array, ArrayLike, ArrayLikes
from hlofront.core import rules
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.primitive import Primitive
from hlofront.core.rules import infer
from hlofront.core.sizes.dimensions import check_nonnegative, integers
from hlofront.core.symbolic_zeros import BatchAxes, Batched
from hlofront.core.trace import process
from hlofront.primitives.arrays.shaping import broadcast_in_dim, reshape
from hlofront.primitives.rules.derivatives import linear

tile_p = Primitive("tile")


@boundary
def tile(operand: ArrayLike, reps: Sequence[int]) -> Array:
    """Repeat the whole array `reps[i]` times along axis i.

    Args:
      operand: an array or scalar.
      reps: the number of copies along each axis, not negative.

    Raises:
      TypeError: if `reps` does not have one number per axis, or has a negative one.

    Example:
      >>> lax.tile(jnp.array([1, 2]), (2,))
      Array([1, 2, 1, 2], dtype=int32)
    """
    return process(tile_p, (operand,), {"reps": integers(reps, "reps of tile")})


@infer(tile_p)
def _(operand: ShapedArray, *, reps: tuple[int, ...]) -> ShapedArray:
    if len(reps) != operand.ndim:
        raise TypeError(
            f"reps length must be equal to the ndim of x, got len(reps)={len(reps)} and "
            f"x.ndim={operand.ndim}."
        )
    check_nonnegative("tile", "reps", reps)
    shape = tuple([size * times for size, times in zip(operand.shape, reps, strict=True)])
    return ShapedArray(shape, operand.dtype, operand.weak_type)


linear(tile_p)


@rules.batch(tile_p)
def _(values: ArrayLikes, axes: BatchAxes, *, reps: tuple[int, ...]) -> Batched:
    (axis,) = axes
    return process(tile_p, tuple(values), {"reps": (*reps[:axis], 1, *reps[axis:])}), axis


def broadcast_to(a: ArrayLike, shape: tuple[int, ...]) -> Array:
    """Return an array repeated along axes that it lacks, or along which it has one element.

    Args:
      a: the array.
      shape: the shape of the result; the last axes are those of the array.

    Raises:
      ValueError: if the array does not broadcast to the shape.
    """
    own = typeof(a).shape
    first = len(shape) - len(own)
    if first < 0 or any(n not in (1, shape[first + i]) for i, n in enumerate(own)):
        raise ValueError(
            f"cannot broadcast an array of shape {own} to {shape}: only axes of size 1 are repeated"
        )
    kept = [i for i, n in enumerate(own) if n == shape[first + i]]
    x = a if len(kept) == len(own) else reshape(a, [own[i] for i in kept])
    return broadcast_in_dim(x, shape, tuple([first + i for i in kept]))
