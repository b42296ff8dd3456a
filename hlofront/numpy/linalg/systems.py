"""Linear systems: solutions, inverses, pseudoinverses, least squares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hlofront.base.dtypes import default_dtype, finfo
from hlofront.base.elements import host_number
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.core.sizes.dimensions import canonical_axis
from hlofront.higher_order.custom_rules.custom_jvp import custom_jvp
from hlofront.higher_order.matrix_solve import solve_general
from hlofront.numpy.arrays.shape import moveaxis
from hlofront.numpy.linalg.matrices import inexact, square_matrices
from hlofront.numpy.statistics.reductions import sum_over
from hlofront.numpy.support.like import like, operation_like
from hlofront.numpy.support.promotion import host_scalar, operand
from hlofront.primitives.arrays import creation
from hlofront.primitives.arrays.reducing import reduce_max, reduce_sum
from hlofront.primitives.arrays.shaping import broadcast_in_dim, reshape, squeeze, transpose
from hlofront.primitives.arrays.slicing import slice_in_dim
from hlofront.primitives.elementwise import compare, elementwise
from hlofront.primitives.elementwise.converting import convert, strong
from hlofront.primitives.linalg import spectral
from hlofront.primitives.linalg.factoring import symmetrize
from hlofront.primitives.linalg.matrices import (
    adjoint,
    along_columns,
    along_rows,
    broadcast_matrices,
    conjugate,
    identity,
    in_columns,
    product,
    real_dtype,
    real_part,
)
from hlofront.runtime.dispatch.operation import operation

if TYPE_CHECKING:
    from hlofront.core.aval import ShapedArray


def in_one_batch(name: str, a: Array, b: Array) -> tuple[Array, Array]:
    """Return matrices a and b with their leading axes broadcast to each other.

    Raises ValueError if they do not fit.
    """
    lhs, rhs = typeof(a).shape, typeof(b).shape
    try:
        batch = np.broadcast_shapes(lhs[:-2], rhs[:-2])
    except ValueError:
        raise ValueError(
            f"{name}: the batch axes of shapes {lhs} and {rhs} do not broadcast"
        ) from None
    return broadcast_matrices(a, (*batch, *lhs[-2:])), broadcast_matrices(b, (*batch, *rhs[-2:]))


def solve_matrices(a: Array, b: Array) -> Array:
    """Return x with `a x = b`; leading axes broadcast, and a single `a` is factored once."""
    lhs, rhs = typeof(a), typeof(b)
    if lhs.ndim == 2 and rhs.ndim > 2:
        # All right sides become columns of one matrix.
        last = rhs.ndim - 2
        order = (last, *range(last), last + 1)
        moved = transpose(b, order)
        shape = typeof(moved).shape
        x = solve_general(a, reshape(moved, (shape[0], math.prod(shape[1:]))))
        return moveaxis(reshape(x, shape), 0, last)
    return solve_general(*in_one_batch("solve", a, b))


@operation_like(np.linalg.solve)
def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """Solve `a x = b` for x, with square matrices a.

    Args:
      a: an array of shape (..., n, n).
      b: an array of shape (..., n, k); or (n,), a vector.

    Returns:
      x, of the shape of b with the leading axes of both; not finite where `a` is singular.

    Raises:
      ValueError: if sizes do not match.

    Example:
      >>> jnp.linalg.solve(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.array([2.0, 2.0]))
      Array([1. , 0.5], dtype=float32)
    """
    a, b = inexact("jnp.linalg.solve", a, b)
    lhs, rhs = typeof(a).shape, typeof(b).shape
    fits = len(lhs) >= 2 and lhs[-2:] == (lhs[-1], lhs[-1]) and rhs[-2:][:1] == lhs[-1:]
    if not fits:
        raise ValueError(
            f"The arguments to solve must have shapes a=[..., m, m] and b=[..., m, k] or b=[m]; "
            f"got a={lhs} and b={rhs}"
        )
    if len(rhs) > 1:
        return solve_matrices(a, b)
    column = in_columns(b)
    x = solve_matrices(a, broadcast_matrices(column, (*lhs[:-2], *typeof(column).shape)))
    return squeeze(x, (len(lhs) - 1,))


@operation_like(np.linalg.inv)
def inv(a: ArrayLike) -> Array:
    """Compute the inverses of square matrices; those of singular ones are not finite.

    Raises:
      ValueError: if the matrices are not square.

    Example:
      >>> jnp.linalg.inv(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
      Array([[0.5 , 0.  ],
             [0.  , 0.25]], dtype=float32)
    """
    a = strong(square_matrices("inv", a))
    aval = typeof(a)
    return solve_general(a, identity(aval.dtype, aval.shape))


def _singular_values_floor(aval: ShapedArray) -> float:
    """Return the default cutoff of singular values, relative to the greatest one."""
    return 10.0 * max(aval.shape[-2:]) * float(finfo(aval.dtype).eps)


@like(np.linalg.pinv)
def pinv(
    a: ArrayLike,
    rtol: ArrayLike | None = None,
    hermitian: bool = False,
    *,
    rcond: float | None = None,
) -> Array:
    """Compute the Moore-Penrose pseudoinverse from singular values.

    Args:
      a: an array of shape (..., m, n).
      rtol: singular values up to this fraction of the greatest one count as zeros; of shape (...),
        by default ten times max(m, n) units in the last place.
      hermitian: whether `a` is Hermitian.
      rcond: the former name of rtol.

    Raises:
      ValueError: if both names are passed.

    Example:
      >>> jnp.linalg.pinv(jnp.ones((3, 2))).shape
      (2, 3)
    """
    if rcond is not None:
        if rtol is not None:
            raise ValueError("pinv: only one of rtol and rcond may be specified.")
        rtol = rcond
    return _pinv(a, rtol, hermitian=hermitian)


@operation(static_argnames=("hermitian",))
def _pinv(a: ArrayLike, rtol: ArrayLike | None, *, hermitian: bool) -> Array:
    (a,) = inexact("jnp.linalg.pinv", a)
    aval = typeof(a)
    if aval.ndim < 2:
        raise ValueError(f"pinv requires matrices of shape (..., m, n), got shape {aval.shape}")
    real = real_dtype(aval.dtype)
    if rtol is None:
        rtol = np.asarray(_singular_values_floor(aval), real)
    else:
        rtol, _ = operand("pinv", rtol)
        rtol = convert(_as_array(rtol), real, False)
    return _pseudo_inverse(a, rtol, hermitian)


def _as_array(x: ArrayLike) -> Array:
    return host_scalar(x, np.dtype(np.float32)) if isinstance(x, int | float) else x


def _pseudo_inverse_of(a: Array, rtol: ArrayLike, hermitian: bool) -> Array:
    aval = typeof(a)
    *batch, m, n = aval.shape
    if not m or not n:
        return creation.full((*batch, n, m), 0, aval.dtype)
    if hermitian:
        from_eigh = spectral.eigh(a)
        vectors, values = from_eigh
        sizes = elementwise.abs(values)
        greatest = reduce_max(sizes, (len(batch),))
        left, right, s = vectors, adjoint(vectors), values
    else:
        left, s, right = spectral.svd(a, full_matrices=False)
        sizes = s
        greatest = reduce_max(s, (len(batch),))
    shape = typeof(sizes).shape
    rtol = broadcast_in_dim(rtol, tuple(batch), range(len(batch) - typeof(rtol).ndim, len(batch)))
    cutoff = broadcast_in_dim(elementwise.mul(rtol, greatest), shape, range(len(batch)))
    counts = compare.gt(sizes, cutoff)
    inverse = elementwise.div(creation.full_like(s, 1), s)
    inverse = compare.select_n(counts, creation.full_like(s, 0), inverse)
    scaled = adjoint(right)
    weights = along_rows(convert(inverse, aval.dtype, False), typeof(scaled).shape)
    return product(elementwise.mul(scaled, weights), adjoint(left))


_pseudo_inverse = custom_jvp(_pseudo_inverse_of, nondiff_argnums=(2,))


@_pseudo_inverse.defjvp
def _pseudo_inverse_jvp(
    hermitian: bool, primals: tuple[Array, ...], tangents: tuple[Array, ...]
) -> tuple[Array, Array]:
    # Golub and Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares
    # problems whose variables separate" (1973), equation 4.12.
    a, rtol = primals
    change, _ = tangents
    p = _pseudo_inverse(a, rtol, hermitian)
    if hermitian:
        # The derivative uses the Hermitian part of the argument.
        a, change = symmetrize("pinv", a), symmetrize("pinv", change)
    p_adjoint, change_adjoint = adjoint(p), adjoint(change)
    m, n = typeof(a).shape[-2:]

    def chain(x: Array, y: Array, z: Array) -> Array:
        # The products are of n x m, m x n and n x m matrices; the smaller square is formed.
        return product(product(x, y), z) if m >= n else product(x, product(y, z))

    total = elementwise.neg(chain(p, change, p))
    # The other two terms are due to the complement of the range of a, and to its null space.
    share = chain(p, p_adjoint, change_adjoint)
    total = elementwise.add(total, elementwise.sub(share, chain(share, a, p)))
    share = chain(change_adjoint, p_adjoint, p)
    total = elementwise.add(total, elementwise.sub(share, chain(p, a, share)))
    return p, total


@like(np.linalg.lstsq)
def lstsq(
    a: ArrayLike, b: ArrayLike, rcond: float | None = None, *, numpy_resid: bool = False
) -> tuple[Array, Array, Array, Array]:
    """Compute the x of least norm that minimizes the norm of `a x - b`.

    Args:
      a: an array of shape (m, n).
      b: an array of shape (m,) or (m, k).
      rcond: singular values below this fraction of the greatest one count as zeros; by default
        max(m, n) units in the last place.
      numpy_resid: whether residuals are an empty array if the rank of `a` is not n, or if m <= n,
        as in NumPy; this cannot be traced.

    Returns:
      (x, sums of squared residuals, rank, singular values).

    Raises:
      TypeError: if `a` is not a matrix, or b neither vector nor matrix.
      ValueError: if sizes do not match.

    Example:
      >>> x, residuals, rank, s = jnp.linalg.lstsq(jnp.ones((3, 1)), jnp.array([1.0, 2.0, 6.0]))
      >>> x.round(), residuals.round()
      (Array([3.], dtype=float32), Array([14.], dtype=float32))
    """
    if not numpy_resid:
        return _lstsq(a, b, rcond)
    x, residuals, rank, s = _lstsq(a, b, rcond)
    m, n = typeof(a).shape
    if int(rank) < n or m <= n:
        residuals = creation.full((0,), 0, typeof(residuals).dtype)
    return x, residuals, rank, s


@operation
def _lstsq(
    a: ArrayLike, b: ArrayLike, rcond: ArrayLike | None
) -> tuple[Array, Array, Array, Array]:
    a, b = inexact("jnp.linalg.lstsq", a, b)
    lhs, rhs = typeof(a), typeof(b)
    if lhs.ndim != 2:
        raise TypeError(f"{lhs.ndim}-dimensional array given. Array must be two-dimensional")
    if lhs.shape[:1] != rhs.shape[:1]:
        raise ValueError(
            f"Leading dimensions of input arrays must match: got {lhs.shape} and {rhs.shape}"
        )
    if rhs.ndim > 2:
        raise TypeError(
            f"{rhs.ndim}-dimensional array given. Array must be one- or two-dimensional"
        )
    m, n = lhs.shape
    dtype, real = lhs.dtype, real_dtype(lhs.dtype)
    matrix = b if rhs.ndim == 2 else in_columns(b)
    columns = typeof(matrix).shape[1]
    precision = float(finfo(dtype).eps)
    if not m or not n:
        s = creation.full((0,), 0, real)
        x = creation.full((n, columns), 0, dtype)
        squares = real_part(elementwise.mul(matrix, conjugate(matrix)))
        residuals = sum_over(squares, (0,))
        rank = creation.full((), 0, default_dtype("i"))
    else:
        if rcond is None:
            share = host_number(precision * max(m, n), real)
        else:
            share = convert(_as_array(rcond), real, False)
            low = host_number(precision, real)
            share = compare.select_n(compare.lt(share, host_number(0, real)), share, low)
        u, s, vh = spectral.svd(a, full_matrices=False)
        first = squeeze(slice_in_dim(s, 0, 1), (0,))
        least = broadcast_in_dim(elementwise.mul(share, first), typeof(s).shape, ())
        zeros = creation.full_like(s, 0)
        counts = elementwise.bitwise_and(compare.gt(s, zeros), compare.ge(s, least))
        rank = reduce_sum(convert(counts, default_dtype("i"), False), (0,))
        safe = compare.select_n(counts, creation.full_like(s, 1), s)
        inverse = compare.select_n(counts, zeros, elementwise.div(creation.full_like(s, 1), safe))
        seen = product(adjoint(u), matrix)
        weights = along_columns(convert(inverse, dtype, False), typeof(seen).shape)
        x = product(adjoint(vh), elementwise.mul(weights, strong(seen)))
        residual = elementwise.sub(strong(matrix), product(a, x))
        squares = real_part(elementwise.mul(residual, conjugate(residual)))
        residuals = sum_over(squares, (0,))
    if rhs.ndim == 1:
        x = reshape(x, (n,))
    return x, residuals, rank, s


@operation_like(np.linalg.tensorinv, static_argnames=("ind",))
def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """Compute the inverse of an array as a linear map from its last axes to the first `ind`.

    Raises:
      ValueError: if `ind` is not positive, or the products of sizes differ.

    Example:
      >>> jnp.linalg.tensorinv(jnp.eye(6).reshape(2, 3, 6)).shape
      (6, 2, 3)
    """
    (a,) = inexact("tensorinv", a)
    if ind <= 0:
        raise ValueError(f"ind must be a positive integer; got ind={ind}")
    shape = typeof(a).shape
    rows, columns = shape[:ind], shape[ind:]
    if math.prod(rows) != math.prod(columns):
        raise ValueError(
            f"product of dimensions {ind} and on must be equal to that of those before; got "
            f"shape {shape}"
        )
    flat = reshape(a, (math.prod(rows), math.prod(columns)))
    return reshape(inv(flat), (*columns, *rows))


@operation(static_argnames=("axes",))
def _tensorsolve(a: ArrayLike, b: ArrayLike, *, axes: tuple[int, ...] | None) -> Array:
    a, b = inexact("tensorsolve", a, b)
    lhs, rhs = typeof(a).shape, typeof(b).shape
    if axes is not None:
        moved = [canonical_axis(axis, len(lhs)) for axis in axes]
        a = transpose(a, (*(i for i in range(len(lhs)) if i not in moved), *moved))
        lhs = typeof(a).shape
    result_shape = lhs[len(rhs) :]
    if math.prod(result_shape) != math.prod(rhs):
        raise ValueError(
            "Input arrays must have prod(a.shape[:b.ndim]) == prod(a.shape[b.ndim:]): got "
            f"shapes {lhs} and {rhs}"
        )
    flat = reshape(a, (math.prod(rhs), math.prod(result_shape)))
    return reshape(solve(flat, reshape(b, (math.prod(rhs),))), result_shape)


@like(np.linalg.tensorsolve)
def tensorsolve(a: ArrayLike, b: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """Solve `tensordot(a, x, x.ndim) = b` for x.

    Args:
      a: an array; its first axes are those of b, and the others are those of x.
      b: an array.
      axes: axes of `a` that are moved to the end first.

    Raises:
      ValueError: if sizes do not match.

    Example:
      >>> jnp.linalg.tensorsolve(jnp.eye(6).reshape(2, 3, 6), jnp.ones((2, 3))).shape
      (6,)
    """
    return _tensorsolve(a, b, axes=None if axes is None else tuple(axes))
