"""Products over several axes or none: tensordot, outer, kron, cross."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hlofront.base.config import follows_jax_0_12
from hlofront.base.typing import Array, ArrayLike, Axis, DTypeLike
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.sizes.dimensions import canonical_axis
from hlofront.numpy.elementwise.ufuncs import refuse_out
from hlofront.numpy.products.contraction import PRECISION, contract, flat
from hlofront.numpy.support.annotations import OutSharding
from hlofront.numpy.support.like import like, operation_like
from hlofront.numpy.support.promotion import host_scalar, operands, promote_args, promote_dtypes
from hlofront.primitives.arrays.shaping import ascending, expand_dims, reshape
from hlofront.primitives.arrays.slicing import concatenate, index_in_dim
from hlofront.primitives.elementwise import elementwise
from hlofront.primitives.elementwise.converting import convert
from hlofront.runtime.dispatch.operation import operation

if TYPE_CHECKING:
    from hlofront.primitives.linalg.dot_general import PrecisionLike

# ---- tensordot ---------------------------------------------------------------------------------


@like(np.tensordot)
def tensordot(
    a: ArrayLike,
    b: ArrayLike,
    axes: int | Sequence[int] | Sequence[Sequence[int]] = 2,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Sum products over several axes: the last of `a` and the first of `b`, or `axes`.

    Args:
      a: an array.
      b: an array.
      axes: the number of axes; or a pair, for `a` and for `b`, of an axis or a sequence of axes.
      precision: see `lax.Precision`.
      preferred_element_type: the dtype of the sums and of the result.
      out_sharding: the sharding of the result.

    Raises:
      TypeError: if there are no such axes, or their sizes differ.

    Example:
      >>> jnp.tensordot(jnp.ones((2, 3, 4)), jnp.ones((3, 4, 5))).shape
      (2, 5)
      >>> jnp.tensordot(jnp.ones((2, 3)), jnp.ones((4, 2)), axes=(0, 1)).shape
      (3, 4)
    """
    return _tensordot(
        a,
        b,
        axes=_hashable_axes(axes),
        precision=precision,
        preferred_element_type=preferred_element_type,
        out_sharding=out_sharding,
    )


def _hashable_axes(axes: object) -> Hashable:
    if isinstance(axes, tuple | list | np.ndarray):
        return tuple([_hashable_axes(axis) for axis in axes])
    return axes


@operation(static_argnames=("axes", *PRECISION, "out_sharding"))
def _tensordot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    axes: Hashable,
    precision: PrecisionLike,
    preferred_element_type: DTypeLike | None,
    out_sharding: OutSharding,
) -> Array:
    (a, b), (lhs, rhs) = operands("tensordot", (a, b))
    pair = _tensordot_axes(axes, lhs, rhs)
    return contract("tensordot", a, b, pair, precision, preferred_element_type, out_sharding)


def _is_integer(x: object) -> bool:
    return hasattr(x, "__index__")


def _tensordot_axes(
    axes: Hashable, lhs: ShapedArray, rhs: ShapedArray
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if _is_integer(axes):
        count = max(int(axes), 0)
        if count > min(lhs.ndim, rhs.ndim):
            raise TypeError(
                f"Number of tensordot axes (axes {count}) exceeds input ranks ({lhs.shape} and "
                f"{rhs.shape})"
            )
        return ascending(lhs.ndim)[lhs.ndim - count :], ascending(count)
    if isinstance(axes, tuple) and len(axes) == 2:
        left, right = axes
        if _is_integer(left) and _is_integer(right):
            left, right = (left,), (right,)
        if isinstance(left, tuple) and isinstance(right, tuple):
            if len(left) != len(right):
                raise TypeError(
                    f"tensordot requires axes lists to have equal length, got {left} and {right}."
                )
            return (
                tuple([canonical_axis(axis, lhs.ndim) for axis in left]),
                tuple([canonical_axis(axis, rhs.ndim) for axis in right]),
            )
    raise TypeError(
        "tensordot axes argument must be an int, a pair of ints, or a pair of lists/tuples of "
        f"ints; got {axes!r}."
    )


# ---- outer, kron, cross ------------------------------------------------------------------------


@operation_like(np.outer)
def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Array:
    """Return the matrix of the products of each element of `a` with each element of `b`.

    Example:
      >>> jnp.outer(jnp.array([1, 2]), jnp.array([[3, 4], [5, 6]]))
      Array([[ 3,  4,  5,  6],
             [ 6,  8, 10, 12]], dtype=int32)
    """
    refuse_out("outer", out)
    (a, b), _ = operands("outer", (a, b))
    a, b = promote_dtypes(a, b)
    multiply = elementwise.bitwise_and if typeof(a).dtype == bool else elementwise.mul
    return multiply(expand_dims(flat(a), (1,)), expand_dims(flat(b), (0,)))


@operation_like(np.kron)
def kron(a: ArrayLike, b: ArrayLike) -> Array:
    """Compute the Kronecker product: each element of `a` times `b`, as blocks.

    Example:
      >>> jnp.kron(jnp.array([1, 10]), jnp.array([1, 1]))
      Array([ 1,  1, 10, 10], dtype=int32)
    """
    a, b = promote_dtypes(*operands("kron", (a, b))[0])
    ndim = max(typeof(a).ndim, typeof(b).ndim)
    a, b = (expand_dims(x, ascending(ndim - typeof(x).ndim)) for x in (a, b))
    shapes = zip(typeof(a).shape, typeof(b).shape, strict=True)
    a = expand_dims(a, range(1, 2 * ndim, 2))
    b = expand_dims(b, range(0, 2 * ndim, 2))
    return reshape(elementwise.mul(a, b), tuple([m * n for m, n in shapes]))


@operation_like(np.cross, static_argnames=("axisa", "axisb", "axisc", "axis"))
def cross(
    a: ArrayLike, b: ArrayLike, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Axis = None
) -> Array:
    """Compute the cross product along an axis of size 2 or 3; the other axes broadcast.

    The product of vectors of size 2 is its third component, and the result lacks the axis.

    Raises:
      ValueError: if a size along the axis is neither 2 nor 3; with hlofront_jax_api 0.12.0.1 also
        if it is 2.

    Example:
      >>> jnp.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
      Array([0, 0, 1], dtype=int32)
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    (a, b), (lhs, rhs) = operands("cross", (a, b))
    i, j = canonical_axis(axisa, lhs.ndim), canonical_axis(axisb, rhs.ndim)
    sizes, supported = ((3,), "3") if follows_jax_0_12() else ((2, 3), "either 2 or 3")
    if lhs.shape[i] not in sizes or rhs.shape[j] not in sizes:
        raise ValueError(
            f"Dimension must be {supported} for cross product: got sizes "
            f"{lhs.shape[i]} and {rhs.shape[j]}"
        )
    x, y = _components(a, i), _components(b, j)

    def minor(m: int, n: int) -> Array:
        pair = _product(x[m], y[n]), _product(x[n], y[m])
        return elementwise.sub(*promote_args("cross", *pair))

    if len(x) == len(y) == 2:
        return minor(0, 1)
    for vector in (x, y):
        if len(vector) == 2:
            vector.append(host_scalar(0, typeof(vector[0]).dtype))
    parts = [minor(1, 2), minor(2, 0), minor(0, 1)]
    at = canonical_axis(axisc, typeof(parts[0]).ndim + 1)
    vectors = concatenate([expand_dims(part, (at,)) for part in parts], at)
    return convert(vectors, typeof(vectors).dtype, False)


def _components(x: ArrayLike, axis: int) -> list[Array]:
    return [index_in_dim(x, k, axis, keepdims=False) for k in range(typeof(x).shape[axis])]


def _product(a: ArrayLike, b: ArrayLike) -> Array:
    return elementwise.mul(*promote_args("cross", a, b))
