"""The primitive tile, which repeats an array along its axes."""

from collections.abc import Sequence

from hlofront.base.boundary import boundary
from hlofront.base.typing import Array, ArrayLike, ArrayLikes
from hlofront.core import rules
from hlofront.core.aval import ShapedArray
from hlofront.core.primitive import Primitive
from hlofront.core.rules import infer
from hlofront.core.sizes.dimensions import check_nonnegative, integers
from hlofront.core.symbolic_zeros import BatchAxes, Batched
from hlofront.core.trace import process
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
