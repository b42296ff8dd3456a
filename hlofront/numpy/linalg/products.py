"""The products of vectors and matrices by the array API's names; powers and chains of products."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hlofront.base.typing import Array, ArrayLike, DTypeLike
from hlofront.core.aval import typeof
from hlofront.numpy.einsum import einsum
from hlofront.numpy.linalg.systems import inv
from hlofront.numpy.products import contraction, matrices, tensor_products
from hlofront.numpy.support.annotations import OutSharding
from hlofront.numpy.support.like import like, operation_like
from hlofront.numpy.support.promotion import check_arraylike, operand, operands
from hlofront.primitives.linalg.dot_general import Precision
from hlofront.primitives.linalg.matrices import broadcast_matrices, identity, swap

if TYPE_CHECKING:
    from hlofront.primitives.linalg.dot_general import PrecisionLike

# NumPy has these functions since 2.0.
_newer: Any = np.linalg


@operation_like(
    getattr(_newer, "matmul", np.matmul), static_argnames=("precision", "preferred_element_type")
)
def matmul(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Multiply matrices, which are the last two axes; the leading axes broadcast.

    Args:
      x1: an array of shape (..., m, n), or (n,) for a row.
      x2: an array of shape (..., n, k), or (n,) for a column.
      precision: the precision of the products, a `lax.Precision`.
      preferred_element_type: the dtype of the sums and of the result; by default the operands'
        common one.

    Raises:
      ValueError: if an operand is a scalar, or the leading axes do not broadcast.
      TypeError: if the sizes of n differ.

    Example:
      >>> jnp.matmul(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1]))
      Array([3, 7], dtype=int32)
    """
    return contraction.matmul(
        x1, x2, precision=precision, preferred_element_type=preferred_element_type
    )


@like(getattr(_newer, "tensordot", np.tensordot))
def tensordot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axes: int | Sequence[int] | Sequence[Sequence[int]] = 2,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Sum products over several axes: the last of `x1` and the first of `x2`, or `axes`.

    Args:
      x1: an array.
      x2: an array.
      axes: the number of axes; or a pair, for `x1` and for `x2`, of an axis or a sequence of axes.
      precision: the precision of the products, a `lax.Precision`.
      preferred_element_type: the dtype of the sums and of the result.
      out_sharding: the sharding of the result.

    Raises:
      TypeError: if there are no such axes, or their sizes differ.

    Example:
      >>> jnp.tensordot(jnp.ones((2, 3)), jnp.ones((3, 4)), 1).shape
      (2, 4)
    """
    return tensor_products.tensordot(
        x1,
        x2,
        axes,
        precision=precision,
        preferred_element_type=preferred_element_type,
        out_sharding=out_sharding,
    )


@operation_like(
    getattr(_newer, "vecdot", np.vdot),
    static_argnames=("axis", "precision", "preferred_element_type"),
)
def vecdot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axis: int = -1,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Sum products along an axis, with the elements of x1 conjugated; the other axes broadcast.

    Args:
      x1: an array.
      x2: an array.
      axis: the axis, which both operands have.
      precision: the precision of the products, a `lax.Precision`.
      preferred_element_type: the dtype of the sums and of the result.

    Raises:
      ValueError: if the other axes do not broadcast, or the sizes along the axis differ.

    Example:
      >>> jnp.linalg.vecdot(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 10]))
      Array([21, 43], dtype=int32)
    """
    return contraction.vecdot(
        x1, x2, axis=axis, precision=precision, preferred_element_type=preferred_element_type
    )


@operation_like(getattr(_newer, "outer", np.outer))
def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Multiply each element of x1 (m,) by each of x2 (n,). Raise ValueError for other ranks.

    Example:
      >>> jnp.outer(jnp.array([1, 2]), jnp.array([3, 4]))
      Array([[3, 4],
             [6, 8]], dtype=int32)
    """
    (x1, x2), (lhs, rhs) = operands("jnp.linalg.outer", (x1, x2))
    if lhs.ndim != 1 or rhs.ndim != 1:
        raise ValueError(
            f"Input arrays must be one-dimensional, but they have shapes {lhs.shape}, {rhs.shape}"
        )
    return tensor_products.outer(x1, x2)


@operation_like(getattr(_newer, "cross", np.cross), static_argnames=("axis",))
def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """Compute the cross product along an axis of size 3.

    Raises ValueError if it has another size.

    Example:
      >>> jnp.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
      Array([0, 0, 1], dtype=int32)
    """
    (x1, x2), (lhs, rhs) = operands("jnp.linalg.cross", (x1, x2))
    if lhs.shape[axis] != 3 or rhs.shape[axis] != 3:
        raise ValueError(
            "Both input arrays must be (arrays of) 3-dimensional vectors, but they have sizes "
            f"{lhs.shape[axis]} and {rhs.shape[axis]} along axis {axis}"
        )
    return tensor_products.cross(x1, x2, axis=axis)


@operation_like(getattr(_newer, "matrix_transpose", np.transpose))
def matrix_transpose(x: ArrayLike, /) -> Array:
    """Transpose each matrix (..., m, n). Raise ValueError if x has fewer than two axes.

    Example:
      >>> jnp.linalg.matrix_transpose(jnp.ones((5, 2, 3))).shape
      (5, 3, 2)
    """
    x, aval = operand("jnp.linalg.matrix_transpose", x)
    if aval.ndim < 2:
        raise ValueError(f"x must be at least two-dimensional for matrix_transpose; got {aval}")
    return swap(x)


@operation_like(getattr(_newer, "diagonal", np.diagonal), static_argnames=("offset",))
def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """Return a diagonal of each matrix: the elements where `i + offset == j`.

    Example:
      >>> jnp.linalg.diagonal(jnp.ones((5, 2, 3)), offset=1).shape
      (5, 2)
    """
    x, _ = operand("jnp.linalg.diagonal", x)
    return matrices.diagonal(x, offset=offset, axis1=-2, axis2=-1)


@operation_like(getattr(_newer, "trace", np.trace), static_argnames=("offset", "dtype"))
def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """Sum the elements on a diagonal of each matrix.

    Example:
      >>> jnp.trace(jnp.array([[1, 2], [3, 4]]))
      Array(5, dtype=int32)
    """
    x, _ = operand("jnp.linalg.trace", x)
    return contraction.trace(x, offset=offset, axis1=-2, axis2=-1, dtype=dtype)


@operation_like(np.linalg.matrix_power, static_argnames=("n",))
def matrix_power(a: ArrayLike, n: int) -> Array:
    """Raise square matrices to an integer power by repeated squaring; negative n inverts them.

    Raises:
      TypeError: if n is not an integer.
      ValueError: if matrices are not square.

    Example:
      >>> jnp.linalg.matrix_power(jnp.array([[1, 1], [0, 1]]), 5)
      Array([[1, 5],
             [0, 1]], dtype=int32)
    """
    a, aval = operand("jnp.linalg.matrix_power", a)
    if aval.ndim < 2:
        raise TypeError(
            f"{aval.ndim}-dimensional array given. Array must be at least two-dimensional"
        )
    if aval.shape[-1] != aval.shape[-2]:
        raise TypeError("Last 2 dimensions of the array must be square")
    try:
        n = operator.index(n)
    except TypeError:
        raise TypeError(f"exponent must be an integer, got {n}") from None
    if n == 0:
        return broadcast_matrices(identity(aval.dtype, aval.shape[-2:]), aval.shape)
    if n < 0:
        a, n = inv(a), -n
    result: ArrayLike | None = None
    while True:
        if n & 1:
            result = a if result is None else _product(result, a)
        n >>= 1
        if not n:
            return result
        a = _product(a, a)


def _product(x: ArrayLike, y: ArrayLike) -> Array:
    return contraction.matmul(x, y, precision=Precision.HIGHEST)


@like(np.linalg.multi_dot)
def multi_dot(arrays: Sequence[ArrayLike], *, precision: PrecisionLike = None) -> Array:
    """Multiply two or more matrices in the order that needs the fewest multiplications.

    Args:
      arrays: matrices; the first and the last may be vectors.
      precision: see `lax.Precision`.

    Raises:
      ValueError: if there are fewer than two arrays, or ranks or sizes do not match.

    Example:
      >>> jnp.linalg.multi_dot([jnp.ones((2, 3)), jnp.ones((3, 4)), jnp.ones(4)])
      Array([12., 12.], dtype=float32)
    """
    arrays = list(arrays)
    check_arraylike("jnp.linalg.multi_dot", *arrays)
    count = len(arrays)
    if count < 2:
        raise ValueError(f"multi_dot requires at least two arrays; got len(arrays)={count}")
    ranks = [typeof(x).ndim for x in arrays]
    ends = (ranks[0], ranks[-1])
    if any(rank not in (1, 2) for rank in ends) or any(rank != 2 for rank in ranks[1:-1]):
        raise ValueError(
            "multi_dot: input arrays must all be two-dimensional, except for the first and last "
            f"array which may be 1 or 2 dimensional. Got ranks {ranks}"
        )
    shapes = [typeof(x).shape for x in arrays]
    if any(x[-1] != y[0] for x, y in itertools.pairwise(shapes)):
        raise ValueError(
            f"multi_dot: last dimension of each array must match first dimension of "
            f"following array. Got array shapes {shapes}"
        )
    # The einsum labels are numbers: matrix i has the axes i and i + 1.
    terms: list[ArrayLike | list[int]] = []
    for i, (x, rank) in enumerate(zip(arrays, ranks, strict=True)):
        labels = [i, i + 1] if rank == 2 else ([i + 1] if i == 0 else [i])
        terms += [x, labels]
    result = ([0] if ranks[0] == 2 else []) + ([count] if ranks[-1] == 2 else [])
    return einsum(*terms, result, optimize="optimal", precision=precision)
