"""The norms of vectors and matrices; condition numbers and ranks by singular values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hlofront.base.dtypes import default_dtype, finfo, is_complex
from hlofront.base.elements import host_number, int32
from hlofront.base.typing import Array, ArrayLike, Axes, DType
from hlofront.core.aval import typeof
from hlofront.core.sizes.dimensions import canonical_axis
from hlofront.numpy.linalg.decompositions import svd
from hlofront.numpy.linalg.matrices import inexact
from hlofront.numpy.linalg.systems import inv
from hlofront.numpy.statistics.reductions import sum_over
from hlofront.numpy.support.like import like, operation_like
from hlofront.numpy.support.promotion import host_scalar, operand
from hlofront.primitives.arrays import creation, reducing
from hlofront.primitives.arrays.shaping import broadcast_in_dim, expand_dims, squeeze, transpose
from hlofront.primitives.arrays.slicing import index_in_dim
from hlofront.primitives.elementwise import compare, elementwise
from hlofront.primitives.elementwise.converting import convert, strong
from hlofront.primitives.linalg.matrices import real_part
from hlofront.runtime.dispatch.operation import operation

# The order of a norm: a number, a name, or None for the default.
Order = int | float | str | None


def _folded(
    fold: Callable[..., Array], x: ArrayLike, axes: tuple[int, ...], keepdims: bool
) -> Array:
    x = fold(x, axes)
    return expand_dims(x, sorted(axes)) if keepdims else x


def _sum(x: ArrayLike, axes: tuple[int, ...], keepdims: bool = False) -> Array:
    return _folded(sum_over, x, axes, keepdims)


def _least(x: ArrayLike, axes: tuple[int, ...], keepdims: bool = False) -> Array:
    if any(not typeof(x).shape[axis] for axis in axes):
        raise ValueError(f"zero-size array to reduction operation min, of shape {typeof(x).shape}")
    return _folded(reducing.reduce_min, x, axes, keepdims)


def _greatest(x: ArrayLike, axes: tuple[int, ...], keepdims: bool = False) -> Array:
    """Return the maximum over axes of the numbers and 0, so that empty arrays give 0."""
    if any(not typeof(x).shape[axis] for axis in axes):
        aval = typeof(x)
        shape = [size for i, size in enumerate(aval.shape) if i not in axes]
        x = creation.full(tuple(shape), 0, aval.dtype)
        return expand_dims(x, sorted(axes)) if keepdims else x
    # Where all are 0, half of the derivative is that of the 0, as in JAX.
    greatest = _folded(reducing.reduce_max, x, axes, keepdims)
    return elementwise.max(host_scalar(0, typeof(x).dtype), greatest)


def _squares(x: ArrayLike) -> Array:
    """Return the squared sizes of the elements, strongly typed as all norms are."""
    other = elementwise.conj(x) if is_complex(typeof(x).dtype) else x
    return strong(real_part(elementwise.mul(x, other)))


def _vector_norm(x: ArrayLike, axes: tuple[int, ...], keepdims: bool, order: Order) -> Array:
    if isinstance(order, str):
        raise ValueError(f"Invalid order '{order}' for vector norm.")
    if order is None or order == 2:
        return elementwise.sqrt(_sum(_squares(x), axes, keepdims))
    if order == 0:
        nonzero = compare.ne(x, creation.full_like(x, 0))
        dtype = np.dtype(finfo(typeof(x).dtype).dtype)
        return _sum(convert(nonzero, dtype, False), axes, keepdims)
    sizes = strong(elementwise.abs(x))
    if order == np.inf:
        return _greatest(sizes, axes, keepdims)
    if order == -np.inf:
        return _least(sizes, axes, keepdims)
    if order == 1:
        return _sum(sizes, axes, keepdims)
    scalar = typeof(sizes).dtype.type
    total = _sum(elementwise.pow(sizes, scalar(order)), axes, keepdims)
    return elementwise.pow(total, scalar(1 / order))


def _matrix_norm(x: ArrayLike, rows: int, columns: int, keepdims: bool, order: Order) -> Array:
    if order is None or order in ("f", "fro"):
        return elementwise.sqrt(_sum(_squares(x), (rows, columns), keepdims))
    if order in (1, -1, np.inf, -np.inf):
        summed, other = (rows, columns) if order in (1, -1) else (columns, rows)
        sums = _sum(strong(elementwise.abs(x)), (summed,), True)
        fold = _greatest if order > 0 else _least
        result = fold(sums, (other,), True)
        return result if keepdims else squeeze(result, (rows, columns))
    if order not in (2, -2, "nuc"):
        raise ValueError(f"Invalid order '{order}' for matrix norm.")
    ndim = typeof(x).ndim
    batch = [i for i in range(ndim) if i not in (rows, columns)]
    values = strong(svd(transpose(x, (*batch, rows, columns)), compute_uv=False))
    fold = _sum if order == "nuc" else _greatest if order == 2 else _least
    result = fold(values, (ndim - 2,))
    return expand_dims(result, sorted((rows, columns))) if keepdims else result


@operation_like(np.linalg.norm, static_argnames=("ord", "axis", "keepdims"), nested=True)
def norm(x: ArrayLike, ord: Order = None, axis: Axes = None, keepdims: bool = False) -> Array:
    """Compute the norm of vectors along one axis, or of matrices along two.

    Args:
      x: an array.
      ord: None for the root of the sum of squares; for vectors a number; for matrices 1, -1, 2,
        -2, inf, -inf, "fro" or "nuc".
      axis: an axis or a pair of axes; by default all axes of an array that has one or two.
      keepdims: whether reduced axes remain, with size 1.

    Raises:
      ValueError: if the order is unknown, there are too many axes, or both axes are the same.
      TypeError: if both axes are the same, and the order is 2, -2 or "nuc".

    Example:
      >>> jnp.linalg.norm(jnp.array([3.0, 4.0]))
      Array(5., dtype=float32)
    """
    (x,) = inexact("jnp.linalg.norm", x)
    ndim = typeof(x).ndim
    if axis is None:
        axes = tuple(range(ndim))
        if ord is None:
            return elementwise.sqrt(_sum(_squares(x), axes, keepdims))
    else:
        requested = axis if isinstance(axis, tuple) else (axis,)
        axes = tuple([canonical_axis(i, ndim) for i in requested])
    if len(axes) == 1:
        return _vector_norm(x, axes, keepdims, ord)
    if len(axes) == 2:
        if axes[0] == axes[1]:
            # JAX moves the axes for singular values, and that raises another class.
            error = TypeError if ord in (2, -2, "nuc") else ValueError
            raise error(f"norm requires two different axes, got axis={axis}")
        return _matrix_norm(x, *axes, keepdims, ord)
    raise ValueError(
        f"Improper number of axes for norm: {axis=}. Pass one axis for vectors, two for matrices."
    )


@operation_like(
    getattr(np.linalg, "matrix_norm", np.linalg.norm), static_argnames=("keepdims", "ord")
)
def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: Order = "fro") -> Array:
    """Compute the norm of each matrix of an array, in its last two axes.

    Args:
      x: an array of shape (..., m, n).
      keepdims: whether reduced axes remain, with size 1.
      ord: 1, -1, 2, -2, inf, -inf, "fro" or "nuc".

    Raises:
      ValueError: if the order is unknown, or there are too few axes.

    Example:
      >>> jnp.linalg.matrix_norm(jnp.array([[3.0, 0.0], [0.0, 4.0]])).round(3)
      Array(5., dtype=float32)
    """
    return norm(x, ord, (-2, -1), keepdims)


@operation_like(
    getattr(np.linalg, "vector_norm", np.linalg.norm), static_argnames=("axis", "keepdims", "ord")
)
def vector_norm(
    x: ArrayLike, /, *, axis: Axes = None, keepdims: bool = False, ord: Order = 2
) -> Array:
    """Compute the norm of the vectors along axes of an array.

    Args:
      x: an array.
      axis: an axis or several; by default all of them, as one vector.
      keepdims: whether reduced axes remain, with size 1.
      ord: the order, a number or an infinity; 2 for the root of the sum of squares.

    Raises:
      ValueError: if the order is unknown.

    Example:
      >>> jnp.linalg.vector_norm(jnp.array([[3.0, 4.0], [6.0, 8.0]]), axis=1).round(3)
      Array([ 5., 10.], dtype=float32)
    """
    (x,) = inexact("jnp.linalg.vector_norm", x)
    ndim = typeof(x).ndim
    if axis is None:
        axes = tuple(range(ndim))
    else:
        requested = axis if isinstance(axis, tuple) else (axis,)
        axes = tuple([canonical_axis(i, ndim) for i in requested])
    return _vector_norm(x, axes, keepdims, ord)


@operation_like(np.linalg.cond, static_argnames=("p",))
def cond(x: ArrayLike, p: Order = None) -> Array:
    """Compute the condition number: the norm of a matrix times the norm of its inverse.

    Args:
      x: an array of shape (..., n, n); of shape (..., m, n) where p is None, 2 or -2.
      p: the order of the norm; None is 2. See `norm`.

    Raises:
      ValueError: if there are fewer than two axes, or a matrix to be inverted is not square.

    Example:
      >>> jnp.linalg.cond(jnp.array([[1.0, 0.0], [0.0, 4.0]])).round(3)
      Array(4., dtype=float32)
    """
    (x,) = inexact("jnp.linalg.cond", x)
    aval = typeof(x)
    if aval.ndim < 2:
        raise ValueError(f"Argument to cond must be at least 2-dimensional; got shape {aval.shape}")
    if not all(aval.shape[-2:]):
        raise ValueError(f"cond is not defined for empty matrices: shape {aval.shape}")
    last = aval.ndim - 2
    if p in (None, 2, -2):
        values = svd(x, compute_uv=False)
        count = typeof(values).shape[last]
        first = index_in_dim(values, 0, last, keepdims=False)
        least = index_in_dim(values, count - 1, last, keepdims=False)
        result = elementwise.div(least, first) if p == -2 else elementwise.div(first, least)
    else:
        if aval.shape[-1] != aval.shape[-2]:
            raise ValueError(f"Argument to cond must have shape [..., n, n], got {aval.shape}")
        result = elementwise.mul(norm(x, p, (-2, -1)), norm(inv(x), p, (-2, -1)))
    # Singular matrices have no inverse: their condition number is infinite.
    unknown = compare.ne(result, result)
    has_nan = compare.ne(x, x)
    has_nan = reducing.reduce_or(has_nan, (last, last + 1))
    overflown = elementwise.bitwise_and(unknown, elementwise.bitwise_not(has_nan))
    return compare.select_n(overflown, result, creation.full_like(result, np.inf))


@operation(static_argnames=("hermitian",))
def _matrix_rank(M: ArrayLike, least: ArrayLike | None, *, hermitian: bool) -> Array:
    (M,) = inexact("jnp.linalg.matrix_rank", M)
    aval = typeof(M)
    if aval.ndim < 2:
        some = compare.ne(M, creation.full_like(M, 0))
        return convert(reducing.reduce_or(some, tuple(range(aval.ndim))), int32, False)
    values = svd(M, hermitian=hermitian, compute_uv=False)
    result = typeof(values)
    count, last = result.shape[-1], result.ndim - 1
    if not count:
        return creation.full(result.shape[:-1], 0, default_dtype("i"))
    dtype = result.dtype
    if least is None:
        share = host_number(max(aval.shape[-2:]) * float(finfo(dtype).eps), dtype)
        least = elementwise.mul(reducing.reduce_max(values, (last,)), share)
    else:
        least = _numbers(least, dtype, result.shape[:-1])
    least = broadcast_in_dim(least, result.shape, range(last))
    counts = convert(compare.gt(values, least), default_dtype("i"), False)
    return reducing.reduce_sum(counts, (last,))


def _numbers(x: ArrayLike, dtype: DType, shape: tuple[int, ...]) -> Array:
    x, aval = operand("jnp.linalg.matrix_rank", x)
    x = convert(host_scalar(x, dtype) if isinstance(x, int | float) else x, dtype, False)
    return broadcast_in_dim(x, shape, range(len(shape) - aval.ndim, len(shape)))


@like(np.linalg.matrix_rank)
def matrix_rank(
    M: ArrayLike,
    rtol: ArrayLike | None = None,
    *,
    hermitian: bool = False,
    tol: ArrayLike | None = None,
) -> Array:
    """Compute the rank of matrices: the number of singular values that are not negligible.

    Args:
      M: an array of shape (..., m, n); the rank of an array of fewer axes is 1 if any element is
        not zero, else 0.
      rtol: singular values up to this count as zeros, as in JAX an absolute number: by default
        max(m, n) units in the last place of the greatest one.
      hermitian: whether matrices are Hermitian.
      tol: the former name of rtol.

    Raises:
      ValueError: if both names are passed.

    Example:
      >>> jnp.linalg.matrix_rank(jnp.array([[1.0, 2.0], [2.0, 4.0]]))
      Array(1, dtype=int32)
    """
    if tol is not None:
        if rtol is not None:
            raise ValueError("matrix_rank: only one of tol or rtol may be specified.")
        rtol = tol
    return _matrix_rank(M, rtol, hermitian=hermitian)
