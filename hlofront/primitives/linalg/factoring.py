"""Direct factorizations: cholesky, lu, qr; and products of Householder reflections."""

from collections.abc import Callable

import numpy as np

from hlofront.base.boundary import boundary
from hlofront.base.dtypes import is_complex
from hlofront.base.elements import exact_dtype, int32
from hlofront.base.typing import Array, ArrayLike, ArrayLikes, DType, Shape
from hlofront.core import rules
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.primitive import Primitive
from hlofront.core.rules import infer
from hlofront.core.symbolic_zeros import BatchAxes, Batched, Dual, Duals, Tangent, Tangents, Zero
from hlofront.core.trace import process
from hlofront.primitives.arrays.creation import scalar_like, scalar_of
from hlofront.primitives.arrays.slicing import concatenate, pad, slice_in_dim
from hlofront.primitives.elementwise.converting import convert, strong
from hlofront.primitives.elementwise.elementwise import add, div, mul, sub
from hlofront.primitives.elementwise.families import FLOAT, check_dtype
from hlofront.primitives.linalg.matrices import (
    INEXACT,
    CoreTypes,
    adjoint,
    broadcast_matrices,
    check_square,
    identity_like,
    lower_triangle,
    on_matrices,
    product,
    real_part,
    swap,
    take_rows,
    upper_triangle,
)
from hlofront.primitives.linalg.solving import triangular_solve
from hlofront.primitives.rules.batching import batch_size, move_axis, only_axis, to_front
from hlofront.primitives.rules.derivatives import instantiate, no_derivative, unknown_derivative


def symmetrize(name: str, x: ArrayLike) -> Array:
    """Return `(x + x^H) / 2` of matrices (..., n, n); raise TypeError unless they are square."""
    aval = typeof(x)
    if aval.ndim < 2 or aval.shape[-1] != aval.shape[-2]:
        raise TypeError(f"{name} requires square matrices of shape (..., n, n): got {aval.shape}")
    total = add(x, adjoint(x))
    return div(total, scalar_like(total, 2))


# ---- Cholesky ------------------------------------------------------------------------------------

cholesky_p = Primitive("cholesky")


@boundary
def cholesky(x: ArrayLike, *, symmetrize_input: bool = True) -> Array:
    """Compute the lower triangular L with `L L^H = x` of Hermitian positive definite matrices.

    Args:
      x: an array of shape (..., n, n).
      symmetrize_input: whether to replace x by `(x + x^H) / 2` first; if not, only elements on and
        below the diagonal are read.

    Returns:
      L, of the shape and dtype of x; NaN where a matrix is not positive definite.

    Raises:
      TypeError: if the dtype is not floating or complex, or x has fewer than two axes.
      ValueError: if a matrix is not square.
    """
    if symmetrize_input:
        x = symmetrize("cholesky", x)
    return lower_triangle(process(cholesky_p, (x,), {}))


def _square(name: str) -> Callable[..., CoreTypes]:
    def rule(shape: Shape, dtype: DType, **_: object) -> CoreTypes:
        check_square(name, shape)
        return [(shape, dtype)]

    return rule


on_matrices(cholesky_p, INEXACT, (2,), _square("cholesky"))


@rules.jvp(cholesky_p)
def _(primals: ArrayLikes, tangents: Tangents) -> Dual:
    # Murray, "Differentiation of the Cholesky decomposition" (2016), section 2.
    (x,), tangent = primals, instantiate(tangents[0])
    factor = lower_triangle(process(cholesky_p, (x,), {}))
    inner = triangular_solve(
        factor, tangent, left_side=False, transpose_a=True, conjugate_a=True, lower=True
    )
    inner = triangular_solve(factor, inner, left_side=True, lower=True)
    # Keep the lower triangle, with the diagonal halved.
    ones = identity_like(inner)
    halves = broadcast_matrices(add(ones, scalar_like(ones, 1)), typeof(inner).shape)
    return factor, product(factor, div(strong(lower_triangle(inner)), halves))


cholesky_update_p = Primitive("cholesky_update")


@boundary
def cholesky_update(r_matrix: ArrayLike, w_vector: ArrayLike) -> Array:
    """Compute the rank-one update of a Cholesky factor: the factor of `R^T R + w w^T`.

    Args:
      r_matrix: the upper triangular factor R, of shape (..., n, n).
      w_vector: the vector w, of shape (..., n).

    Returns:
      The upper triangular factor of `R^T R + w w^T`, of the shape and dtype of `r_matrix`.

    Raises:
      TypeError: if dtypes differ or are not floating.
      ValueError: if the matrix is not square or the vector's length is not n.
    """
    return process(cholesky_update_p, (r_matrix, w_vector), {})


def _update_shapes(matrix: tuple[int, ...], vector: tuple[int, ...], dtype: DType) -> CoreTypes:
    if matrix[0] != matrix[1] or matrix[1] != vector[0]:
        raise ValueError(
            "Rank-1 update to Cholesky decomposition takes a square matrix and a vector of the "
            f"same size as input. Got shapes {matrix} and {vector} instead"
        )
    return [(matrix, dtype)]


on_matrices(cholesky_update_p, FLOAT, (2, 1), _update_shapes)
unknown_derivative(cholesky_update_p, "factor the changed matrix by cholesky, which has one")

symmetric_product_p = Primitive("symmetric_product")


@boundary
def symmetric_product(
    a_matrix: ArrayLike,
    c_matrix: ArrayLike,
    *,
    alpha: ArrayLike = 1.0,
    beta: ArrayLike = 0.0,
    symmetrize_output: bool = False,
) -> Array:
    """Compute the symmetric matrices `alpha a a^T + beta c`.

    Args:
      a_matrix: a, of shape (..., n, k).
      c_matrix: c, symmetric, of shape (..., n, n).
      alpha: the scalar factor of `a a^T`.
      beta: the scalar factor of c.
      symmetrize_output: whether to copy the lower triangle to the upper one.

    Returns:
      An array of the shape and dtype of `c_matrix`.

    Raises:
      TypeError: if dtypes differ or are not floating.
      ValueError: if c is not square or a has another number of rows.
    """
    params = {"alpha": alpha, "beta": beta}
    result = process(symmetric_product_p, (a_matrix, c_matrix), params)
    if symmetrize_output:
        result = add(lower_triangle(result), swap(lower_triangle(result, -1)))
    return result


def _symmetric_product_shapes(a: Shape, c: Shape, dtype: DType, **_: object) -> CoreTypes:
    if c[0] != c[1] or c[0] != a[0]:
        raise ValueError(
            "symmetric_product expects a rectangular matrix of shape (m, n) and a square matrix "
            f"of shape (m, m). Got shapes {a} and {c}."
        )
    return [(c, dtype)]


on_matrices(symmetric_product_p, FLOAT, (2, 2), _symmetric_product_shapes)
unknown_derivative(symmetric_product_p, "write alpha * a @ a.mT + beta * c, which has one")

# ---- LU ------------------------------------------------------------------------------------------

lu_p = Primitive("lu", multiple_results=True)
lu_pivots_to_permutation_p = Primitive("lu_pivots_to_permutation")


@boundary
def lu(x: ArrayLike) -> list[Array]:
    """Compute the LU decomposition with partial pivoting: `x[permutation] = L U`.

    Args:
      x: an array of shape (..., m, n).

    Returns:
      [lu, pivots, permutation]. lu has U on and above the diagonal and the unit lower triangular
      L below it. pivots, int32 of shape (..., min(m, n)), has the row with which each row is
      exchanged in turn; permutation, int32 of shape (..., m), is the resulting order of rows.

    Raises:
      TypeError: if the dtype is not floating or complex, or x has fewer than two axes.
    """
    return process(lu_p, (x,), {})


def _lu_shapes(shape: Shape, dtype: DType) -> CoreTypes:
    m, n = shape
    return [(shape, dtype), ((min(m, n),), int32), ((m,), int32)]


on_matrices(lu_p, INEXACT, (2,), _lu_shapes)


@rules.jvp(lu_p)
def _(primals: ArrayLikes, tangents: Tangents) -> Duals:
    (x,), (tangent,) = primals, tangents
    results = factors, pivots, permutation = process(lu_p, (x,), {})
    m, n = typeof(x).shape[-2:]
    # L^-1 x' U^-1 is L^-1 L' below the diagonal and U' U^-1 on and above it.
    left, right = _square_factor(factors, -1, m, n), _square_factor(factors, -2, n, m)
    inner = take_rows(instantiate(tangent), permutation)
    inner = triangular_solve(left, inner, left_side=True, lower=True, unit_diagonal=True)
    inner = triangular_solve(right, inner, left_side=False, lower=False)
    lower = _with_unit_diagonal(left)
    change = add(
        product(lower, lower_triangle(inner, -1)),
        product(upper_triangle(inner), upper_triangle(right)),
    )
    return results, [change, Zero.of(pivots), Zero.of(permutation)]


def _square_factor(factors: Array, short: int, size: int, other: int) -> Array:
    """Return an LU factor as a square matrix: sliced, or padded with parts of the identity."""
    aval = typeof(factors)
    axis = aval.ndim + short
    if size <= other:
        return slice_in_dim(factors, 0, size, axis=axis) if size < other else factors
    rows = [(0, 0, 0)] * aval.ndim
    rows[axis] = (0, size - other, 0)
    padded = pad(factors, scalar_of(0, aval.dtype), rows)
    diagonal = exact_dtype(np.zeros(size, aval.dtype))
    diagonal[other:] = 1
    return add(padded, broadcast_matrices(np.diag(diagonal), typeof(padded).shape))


def _with_unit_diagonal(x: ArrayLike) -> Array:
    below = lower_triangle(x, -1)
    return add(below, broadcast_matrices(identity_like(below), typeof(below).shape))


@boundary
def lu_pivots_to_permutation(pivots: ArrayLike, permutation_size: int) -> Array:
    """Return the permutation of rows that the pivots of an LU decomposition describe.

    Args:
      pivots: int32, of shape (..., k): row i is exchanged with row pivots[i], in order of i.
      permutation_size: the number of rows, at least k.

    Returns:
      int32, of shape (..., permutation_size).

    Raises:
      TypeError: if the pivots are not int32.
      ValueError: if there are more pivots than rows.
    """
    params = {"permutation_size": int(permutation_size)}
    return process(lu_pivots_to_permutation_p, (pivots,), params)


@infer(lu_pivots_to_permutation_p)
def _(pivots: ShapedArray, *, permutation_size: int) -> ShapedArray:
    name = "lu_pivots_to_permutation"
    check_dtype(name, pivots.dtype, (np.int32,), 0)
    if not pivots.ndim:
        raise TypeError(f"Input 0 to {name} must have rank at least 1, but got shape=()")
    if permutation_size < pivots.shape[-1]:
        raise ValueError(
            f"Output permutation size {permutation_size} has to exceed the trailing dimension of "
            f"the pivots. Got pivots size {pivots.shape[-1]}"
        )
    return ShapedArray((*pivots.shape[:-1], permutation_size), int32)


@rules.batch(lu_pivots_to_permutation_p)
def _(values: ArrayLikes, axes: BatchAxes, *, permutation_size: int) -> Batched:
    from_front = process(
        lu_pivots_to_permutation_p,
        (move_axis(values[0], only_axis(axes), 0),),
        {"permutation_size": permutation_size},
    )
    return from_front, 0


no_derivative(lu_pivots_to_permutation_p)

# ---- QR ------------------------------------------------------------------------------------------

qr_p = Primitive("qr", multiple_results=True)
geqrf_p = Primitive("geqrf", multiple_results=True)
geqp3_p = Primitive("geqp3", multiple_results=True)
householder_product_p = Primitive("householder_product")
ormqr_p = Primitive("ormqr")


@boundary
def qr(
    x: ArrayLike, *, pivoting: bool = False, full_matrices: bool = True, use_magma: object = None
) -> tuple[Array, ...]:
    """Factor matrices: `x = Q R`, where Q has orthonormal columns and R is upper triangular.

    Args:
      x: an array of shape (..., m, n).
      pivoting: whether to exchange columns so that the diagonal of R descends in absolute value.
      full_matrices: whether Q is square; if not, Q has min(m, n) columns, and R as many rows.
      use_magma: accepted for compatibility with JAX, where it is an option for AMD GPUs.

    Returns:
      (Q, R); with pivoting (Q, R, columns), where `x[:, columns] = Q R` and columns is int32.

    Raises:
      TypeError: if the dtype is not floating or complex, or x has fewer than two axes.
    """
    params = {
        "pivoting": bool(pivoting),
        "full_matrices": bool(full_matrices),
        "use_magma": use_magma,
    }
    return tuple(process(qr_p, (x,), params))


def _qr_shapes(
    shape: Shape, dtype: DType, *, pivoting: bool, full_matrices: bool, **_: object
) -> CoreTypes:
    m, n = shape
    k = m if full_matrices else min(m, n)
    pair = [((m, k), dtype), ((k, n), dtype)]
    return [*pair, ((n,), int32)] if pivoting else pair


on_matrices(qr_p, INEXACT, (2,), _qr_shapes)


@rules.jvp(qr_p)
def _(
    primals: ArrayLikes,
    tangents: Tangents,
    *,
    pivoting: bool,
    full_matrices: bool,
    use_magma: object,
) -> Duals:
    # With M = Q^H x' R^-1 and Q' = Q W: W is skew-Hermitian and R' R^-1 = M - W upper triangular,
    # which the part of M below the diagonal determines.
    (x,), tangent = primals, instantiate(tangents[0])
    params = {"pivoting": pivoting, "full_matrices": full_matrices, "use_magma": use_magma}
    results = process(qr_p, (x,), params)
    q, r = results[:2]
    m, n = typeof(x).shape[-2:]
    k = min(m, n)
    if pivoting:
        tangent = swap(take_rows(swap(tangent), results[2]))
    ndim = typeof(x).ndim
    square, change = r, tangent
    if n > k:
        square, change = (slice_in_dim(y, 0, k, axis=ndim - 1) for y in (r, tangent))
    if full_matrices and m > k:
        square = slice_in_dim(square, 0, k, axis=ndim - 2)
    quotient = strong(triangular_solve(square, change))
    inner = product(adjoint(q), quotient)
    if full_matrices and m > k:
        rotation = _complement(inner, k, m)
        results_tangents: list[Tangent] = [
            product(q, rotation),
            sub(product(adjoint(q), tangent), product(rotation, r)),
        ]
    else:
        rotation = _skew(inner)
        q_change = add(product(q, sub(rotation, inner)), quotient)
        if n > k:
            r_change = sub(product(adjoint(q), tangent), product(rotation, r))
        else:
            r_change = product(sub(inner, rotation), r)
        results_tangents: list[Tangent] = [q_change, r_change]
    if pivoting:
        results_tangents.append(Zero.of(results[2]))
    return results, results_tangents


def _skew(inner: Array) -> Array:
    """Return the skew-Hermitian matrices (..., k, k) that equal `inner` below the diagonal."""
    below = lower_triangle(inner, -1)
    rotation = sub(below, adjoint(below))
    if is_complex(typeof(inner).dtype):
        # The diagonal of R stays real, because the imaginary part of the diagonal rotates columns
        # of Q.
        ones = identity_like(inner)
        imaginary = sub(inner, _as_dtype_of(real_part(inner), inner))
        rotation = add(rotation, mul(broadcast_matrices(ones, typeof(inner).shape), imaginary))
    return rotation


def _as_dtype_of(x: ArrayLike, like: Array) -> Array:
    return convert(x, typeof(like).dtype, False)


def _complement(inner: Array, k: int, m: int) -> Array:
    """Return the (..., m, m) skew-Hermitian matrix with `inner` below the diagonal.

    Args:
      inner: an array of shape (..., m, k), k <= m; further columns are zero below the diagonal.
    """
    aval = typeof(inner)
    ndim = aval.ndim
    upper = slice_in_dim(inner, 0, k, axis=ndim - 2)
    lower = slice_in_dim(inner, k, m, axis=ndim - 2)
    columns = concatenate([_skew(upper), lower], ndim - 2)
    rows = [(0, 0, 0)] * ndim
    rows[-1] = (0, m - k, 0)
    zero = scalar_of(0, aval.dtype)
    edge = [(0, 0, 0)] * ndim
    edge[-2], edge[-1] = (0, m - k, 0), (k, 0, 0)
    return sub(pad(columns, zero, rows), pad(adjoint(lower), zero, edge))


@boundary
def geqrf(a: ArrayLike) -> tuple[Array, ...]:
    """Compute the QR factorization in LAPACK's packed form: R, with reflectors below it.

    Args:
      a: an array of shape (..., m, n), floating or complex.

    Returns:
      (matrices, taus): R on and above the diagonal and the reflectors below it, of the shape of a;
      and the reflectors' scales, of shape (..., min(m, n)).
    """
    return tuple(process(geqrf_p, (a,), {}))


@boundary
def geqp3(a: ArrayLike, jpvt: object) -> tuple[Array, ...]:
    """Compute the QR factorization with column pivoting, in LAPACK's packed form.

    Args:
      a: an array of shape (..., m, n), floating or complex.
      jpvt: int32 of shape (..., n): columns with a nonzero entry are moved to the front.

    Returns:
      (matrices, columns, taus): R on and above the diagonal and the reflectors below it; the
      column order, int32 counted from 1; and the reflectors' scales, of shape (..., min(m, n)).

    Raises:
      TypeError: if the shapes or dtypes differ from these.
    """
    return tuple(process(geqp3_p, (a, jpvt), {"use_magma": None}))


def _reflections(shape: Shape, dtype: DType) -> CoreTypes:
    return [(shape, dtype), ((min(shape),), dtype)]


on_matrices(geqrf_p, INEXACT, (2,), _reflections)


@infer(geqp3_p)
def _(a: ShapedArray, jpvt: ShapedArray, *, use_magma: object) -> list[ShapedArray]:
    check_dtype("geqp3", a.dtype, INEXACT, 0)
    if a.ndim < 2 or jpvt.shape != (*a.shape[:-2], a.shape[-1]) or jpvt.dtype != int32:
        raise TypeError(
            f"geqp3 requires matrices (..., m, n) and int32 columns (..., n): got {a.str_short()} "
            f"and {jpvt.str_short()}"
        )
    scales = ShapedArray((*a.shape[:-2], min(a.shape[-2:])), a.dtype)
    return [a.strip_weak_type(), jpvt.strip_weak_type(), scales]


@rules.batch(geqp3_p)
def _(values: ArrayLikes, axes: BatchAxes, **params: object) -> tuple[ArrayLikes, BatchAxes]:
    size = batch_size(values, axes)
    values = [to_front(x, axis, size) for x, axis in zip(values, axes, strict=True)]
    return process(geqp3_p, tuple(values), params), [0, 0, 0]


@boundary
def householder_product(a: ArrayLike, taus: ArrayLike) -> Array:
    """Return the first columns of the product of Householder reflections.

    Args:
      a: an array of shape (..., m, n) with m >= n: the reflectors, one below the diagonal of each
        column.
      taus: an array of shape (..., k), their scales; k <= n.

    Returns:
      The first n columns of `H_1 H_2 ... H_k`, where `H_i = I - taus[i] v_i v_i^H`, and v_i has
      zeros before index i, a one at i, and then column i of `a` below the diagonal.

    Raises:
      TypeError: if dtypes differ or are not floating or complex, or batch axes differ.
      ValueError: if sizes do not fit.
    """
    return process(householder_product_p, (a, taus), {})


def _householder_shapes(a: Shape, taus: Shape, dtype: DType) -> CoreTypes:
    m, n = a
    if m < n:
        raise ValueError(
            "The first argument to householder_product must have at least as many rows as "
            f"columns, got shape {a}"
        )
    if taus[0] > n:
        raise ValueError(
            "The second argument to householder_product must not have more rows than the minimum "
            f"of the first argument's rows and columns: got {taus[0]} for shape {a}"
        )
    return [(a, dtype)]


on_matrices(householder_product_p, INEXACT, (2, 1), _householder_shapes)


@boundary
def ormqr(
    a: ArrayLike, taus: ArrayLike, c: ArrayLike, *, left: ArrayLike = True, transpose: bool = False
) -> Array:
    """Multiply matrices by the product Q of Householder reflections without computing Q.

    Args:
      a: an array of shape (..., m, k) with the reflectors below the diagonal; see
        `householder_product`.
      taus: an array of shape (..., k), their scales.
      c: an array of shape (..., m, n) if `left`, else (..., n, m).
      left: whether to compute `Q c` instead of `c Q`.
      transpose: whether to multiply by Q^H instead of Q.

    Returns:
      The products, of the shape and dtype of c.

    Raises:
      TypeError: if dtypes differ or are not floating or complex, or batch axes differ.
      ValueError: if sizes do not fit.
    """
    params = {"left": bool(left), "transpose": bool(transpose)}
    return process(ormqr_p, (a, taus, c), params)


def _ormqr_shapes(
    a: Shape, taus: Shape, c: Shape, dtype: DType, *, left: bool, **_: object
) -> CoreTypes:
    m, k = a
    rows = c[0 if left else 1]
    if rows != m:
        raise ValueError(
            f"ormqr with left={left} expects c to have the same number of "
            f"{'rows' if left else 'columns'} as the Householder matrix a has rows. Got a shape "
            f"{a} and c shape {c}."
        )
    if m < k or taus[0] > k:
        raise ValueError(
            f"ormqr expects at most as many reflectors as rows and as columns: got a of shape {a} "
            f"and {taus[0]} scales"
        )
    return [(c, dtype)]


on_matrices(ormqr_p, INEXACT, (2, 1, 2), _ormqr_shapes)
for _primitive in (geqrf_p, geqp3_p, householder_product_p, ormqr_p):
    unknown_derivative(_primitive, "qr, which gives matrices, has one")
