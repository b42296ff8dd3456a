"""Linear systems: solvers by LU and Cholesky factors, triangular solves, Sylvester's equation."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from hlofront.base import source
from hlofront.base.choices import check_choice
from hlofront.base.dtypes import is_complex
from hlofront.base.elements import host_number, int32
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.higher_order.control_flow.library_loops import fori_loop
from hlofront.higher_order.matrix_solve import solve_cholesky, solve_factored, solve_positive
from hlofront.numpy.linalg import determinants
from hlofront.numpy.linalg import systems as numpy_systems
from hlofront.numpy.linalg.matrices import inexact, matrices
from hlofront.numpy.support.promotion import promote_dtypes_complex
from hlofront.numpy.vectorize import vectorize
from hlofront.primitives.arrays import creation
from hlofront.primitives.arrays.reducing import reduce_min, reduce_sum
from hlofront.primitives.arrays.shaping import broadcast_in_dim, squeeze
from hlofront.primitives.elementwise import compare, elementwise
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.linalg import factoring, spectral
from hlofront.primitives.linalg.matrices import (
    adjoint,
    along_columns,
    along_rows,
    diagonal,
    identity_like,
    in_columns,
    product,
    swap,
)
from hlofront.primitives.linalg.solving import triangular_solve
from hlofront.runtime.dispatch.operation import operation


def factor(a: Array, lower: bool) -> Array:
    """Return the lower Cholesky factors of Hermitian matrices, reading one triangle of each."""
    return factoring.cholesky(a if lower else adjoint(a), symmetrize_input=False)


@operation(static_argnames=("lower",))
def _cho_factor(a: ArrayLike, *, lower: bool) -> Array:
    a = matrices("jax.scipy.linalg.cho_factor", a)
    triangle = factor(a, lower)
    return triangle if lower else adjoint(triangle)


def cho_factor(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, bool]:
    """Compute the Cholesky factor of a Hermitian positive definite matrix, for `cho_solve`.

    Args:
      a: an array of shape (..., n, n).
      lower: whether the lower triangle is read and returned, rather than the upper one.
      overwrite_a: has no effect, as no array is overwritten.
      check_finite: has no effect, as elements are not checked.

    Returns:
      (factor, lower).
    """
    return _cho_factor(a, lower=bool(lower)), bool(lower)


def _is_vector(a: Array, b: Array) -> bool:
    """Return whether the right side b of systems with matrices `a` consists of vectors.

    True if b is one vector, or has a vector for each matrix.
    """
    left, right = typeof(a), typeof(b)
    return right.ndim == 1 or (right.ndim == left.ndim - 1 and right.shape[-1] == left.shape[-1])


def _warn_of_vectors(name: str, a: ArrayLike, b: ArrayLike) -> None:
    """Warn if b is read as a batch of vectors, with one axis less than the matrices."""
    if 1 < np.ndim(b) == np.ndim(a) - 1:
        source.warn(
            f"jax.scipy.linalg.{name} reads b, with one axis less than the matrices, as a batch of "
            "vectors. This is deprecated, and b will be a batch of matrices: give it b[..., None] "
            "and take [..., 0] of the result",
            FutureWarning,
        )


def _over_batches(solver: Callable[[Array, Array], Array], a: Array, b: Array) -> Array:
    """Apply a solver of a single system to systems whose leading axes broadcast."""
    right = "n" if _is_vector(a, b) else "n,k"
    return vectorize(solver, signature=f"(n,n),({right})->({right})")(a, b)


@operation(static_argnames=("lower",))
def _cho_solve(c: ArrayLike, b: ArrayLike, *, lower: bool) -> Array:
    c, b = inexact("jax.scipy.linalg.cho_solve", c, b)
    return _over_batches(partial(solve_cholesky, lower=lower), c, b)


def cho_solve(
    c_and_lower: tuple[ArrayLike, bool],
    b: ArrayLike,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """Solve `a x = b` for x, from the Cholesky factor of a.

    Args:
      c_and_lower: the result of `cho_factor`.
      b: an array of shape (..., n, k), whose leading axes are broadcast to those of the factors;
        (n,); or (..., n), with a vector for each of the factors.
      overwrite_b: has no effect, as no array is overwritten.
      check_finite: has no effect, as elements are not checked.
    """
    c, lower = c_and_lower
    _warn_of_vectors("cho_solve", c, b)
    return _cho_solve(c, b, lower=bool(lower))


@operation
def _lu_factor(a: ArrayLike) -> tuple[Array, Array]:
    a = matrices("jax.scipy.linalg.lu_factor", a)
    factors, pivots, _ = factoring.lu(a)
    return factors, pivots


def lu_factor(
    a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, Array]:
    """Compute the LU factors of matrices, for `lu_solve`.

    Args:
      a: matrices, of shape (..., m, n); integers are converted to the default float dtype.
      overwrite_a, check_finite: have no effect.

    Returns:
      (factors, pivots): an array of the shape of a, which holds the upper triangle U, and below its
      diagonal L without its diagonal of ones; and an int32 array of shape (..., min(m, n)), the row
      that each row was exchanged with, in order.

    Raises:
      ValueError: if a has fewer than two axes.
    """
    return _lu_factor(a)


@operation(static_argnames=("trans",))
def _lu_solve(factors: ArrayLike, pivots: ArrayLike, b: ArrayLike, *, trans: int) -> Array:
    factors, b = inexact("jax.scipy.linalg.lu_solve", factors, b)
    aval = typeof(factors)
    check_choice("lu_solve", "trans", trans, (0, 1, 2))
    is_vector = _is_vector(factors, b)
    if typeof(b).shape[-1 if is_vector else -2 :][:1] != aval.shape[-1:]:
        raise ValueError(
            f"The shapes of the factors and of b do not fit: {aval.shape} and {typeof(b).shape}"
        )

    def solve_one(factors: Array, pivots: Array, b: Array) -> Array:
        permutation = factoring.lu_pivots_to_permutation(pivots, aval.shape[-1])
        column = in_columns(b) if is_vector else b
        x = solve_factored(factors, permutation, column, trans)
        return squeeze(x, (1,)) if is_vector else x

    right = "n" if is_vector else "n,k"
    return vectorize(solve_one, signature=f"(n,n),(n),({right})->({right})")(factors, pivots, b)


def lu_solve(
    lu_and_piv: tuple[ArrayLike, ArrayLike],
    b: ArrayLike,
    trans: int = 0,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """Solve `a x = b` for x, from the LU factors of a.

    Args:
      lu_and_piv: the result of `lu_factor`.
      b: an array of shape (..., n, k), whose leading axes are broadcast to those of the factors;
        (n,); or (..., n), with a vector for each of the factors.
      trans: 1 for the transpose of a, 2 for its adjoint.
      overwrite_b: has no effect, as no array is overwritten.
      check_finite: has no effect, as elements are not checked.

    Raises:
      ValueError: if `trans` is not 0, 1 or 2, or sizes do not match.
    """
    factors, pivots = lu_and_piv
    _warn_of_vectors("lu_solve", factors, b)
    return _lu_solve(factors, pivots, b, trans=trans)


@operation(static_argnames=("trans", "lower", "unit_diagonal"))
def _solve_triangular(
    a: ArrayLike, b: ArrayLike, *, trans: int | str, lower: bool, unit_diagonal: bool
) -> Array:
    check_choice("solve_triangular", "trans", trans, (0, "N", 1, "T", 2, "C"))
    a, b = inexact("jax.scipy.linalg.solve_triangular", a, b)
    solver = partial(
        triangular_solve,
        left_side=True,
        lower=lower,
        transpose_a=trans not in (0, "N"),
        conjugate_a=trans in (2, "C"),
        unit_diagonal=unit_diagonal,
    )
    return _over_batches(solver, a, b)


def solve_triangular(
    a: ArrayLike,
    b: ArrayLike,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    debug: bool | None = None,
    check_finite: bool = True,
) -> Array:
    """Solve `a x = b` for x, where `a` is triangular.

    Args:
      a: an array of shape (..., n, n).
      b: an array of shape (..., n, k), whose leading axes are broadcast to those of `a`; (n,); or
        (..., n), with a vector for each matrix.
      trans: 0 or "N"; 1 or "T" for the transpose of a, 2 or "C" for its adjoint.
      lower: whether `a` is lower triangular.
      unit_diagonal: whether the diagonal of `a` is taken to be ones.
      overwrite_b: has no effect, as no array is overwritten.
      debug: has no effect.
      check_finite: has no effect, as elements are not checked.

    Raises:
      ValueError: if `trans` is none of these values.

    Example:
      >>> a = jnp.array([[2.0, 9.0], [1.0, 4.0]])
      >>> jax.scipy.linalg.solve_triangular(a, jnp.array([2.0, 9.0]), lower=True)
      Array([1., 2.], dtype=float32)
    """
    _warn_of_vectors("solve_triangular", a, b)
    return _solve_triangular(
        a, b, trans=trans, lower=bool(lower), unit_diagonal=bool(unit_diagonal)
    )


@operation(static_argnames=("lower",))
def _solve_positive(a: ArrayLike, b: ArrayLike, *, lower: bool) -> Array:
    a, b = inexact("jax.scipy.linalg.solve", a, b)
    is_vector = _is_vector(a, b)
    left, right = typeof(a).shape, typeof(b).shape
    square = len(left) >= 2 and left[-1] == left[-2]
    if not square or right[-1 if is_vector else -2 :][:1] != left[-1:]:
        raise ValueError(
            f"The arguments to solve must have shapes a=[..., m, m] and b=[..., m, k] or "
            f"b=[..., m]; got a={left} and b={right}"
        )
    a, b = numpy_systems.in_one_batch("solve", a, in_columns(b) if is_vector else b)
    x = solve_positive(a, b, factor(a, lower))
    return squeeze(x, (typeof(x).ndim - 1,)) if is_vector else x


def solve(
    a: ArrayLike,
    b: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    debug: bool = False,
    check_finite: bool = True,
    assume_a: str = "gen",
) -> Array:
    """Solve `a x = b` for x.

    Args:
      a: an array of shape (..., n, n).
      b: an array of shape (..., n, k) or (n,); with `assume_a="pos"` also (..., n), with a vector
        for each matrix.
      lower: whether the lower triangle is read, if `a` is positive definite.
      overwrite_a: has no effect, as no array is overwritten.
      overwrite_b: has no effect, as no array is overwritten.
      debug: has no effect.
      check_finite: has no effect, as elements are not checked.
      assume_a: "gen", "sym", "her", or "pos" for Hermitian positive definite matrices, which are
        solved by Cholesky's decomposition.

    Raises:
      ValueError: if `assume_a` is none of these values, or sizes do not match.
    """
    check_choice("solve", "assume_a", assume_a, ("gen", "sym", "her", "pos"))
    if assume_a != "pos":
        return numpy_systems.solve(a, b)
    return _solve_positive(a, b, lower=bool(lower))


def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Compute the determinants of square matrices.

    Args:
      a: matrices, of shape (..., n, n); integers are converted to the default float dtype.
      overwrite_a, check_finite: have no effect.

    Returns:
      An array of shape (...) and the inexact dtype of a.

    Raises:
      ValueError: if the matrices are not square.
    """
    return determinants.det(a)


def inv(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Compute the inverses of square matrices.

    The inverse of a singular matrix has infinities or NaNs.

    Args:
      a: matrices, of shape (..., n, n); integers are converted to the default float dtype.
      overwrite_a, check_finite: have no effect.

    Returns:
      An array of the shape and inexact dtype of a.

    Raises:
      ValueError: if the matrices are not square.
    """
    return numpy_systems.inv(a)


# ---- Sylvester's equation ------------------------------------------------------------------------


def _by_schur(a: Array, b: Array, c: Array, tol: float) -> Array:
    """Solve Sylvester's equation A X + X B = C by the Schur decompositions of A and B.

    The method is that of Bartels and Stewart, "Solution of the matrix equation AX + XB = C" (1972).
    """
    left, left_vectors = spectral.schur(a)
    # b = V T V^H with T lower triangular: each column of X depends on the columns after it.
    right, right_vectors = spectral.schur(adjoint(b))
    right = adjoint(right)
    turned = product(product(adjoint(left_vectors), c), right_vectors)
    n = typeof(b).shape[-1]
    aval = typeof(turned)
    columns = creation.broadcasted_iota(int32, aval.shape, 1)
    ends = diagonal(right)
    positions = creation.broadcasted_iota(int32, (n,), 0)

    def step(count: Array, x: Array) -> Array:
        j = elementwise.sub(np.int32(n - 1), convert(count, int32, False))
        here = compare.eq(columns, j)
        residual = elementwise.sub(turned, product(x, right))
        residual = compare.select_n(here, creation.full_like(residual, 0), residual)
        column = reduce_sum(residual, (1,))
        at = compare.eq(positions, j)
        end = reduce_sum(compare.select_n(at, creation.full_like(ends, 0), ends), (0,))
        ones = identity_like(left)
        shifted = elementwise.add(
            left, elementwise.mul(ones, creation.full((*typeof(left).shape,), end))
        )
        solved = triangular_solve(shifted, column, left_side=True)
        return compare.select_n(here, x, along_columns(solved, aval.shape))

    x = fori_loop(0, n, step, creation.full_like(turned, 0))
    x = product(product(left_vectors, x), adjoint(right_vectors))
    sums = elementwise.add(along_columns(diagonal(left), aval.shape), along_rows(ends, aval.shape))
    return _nan_if_singular(x, sums, tol)


def _by_eigenvectors(a: Array, b: Array, c: Array, tol: float) -> Array:
    left, left_vectors = spectral.eig(a, compute_left_eigenvectors=False)
    right, right_vectors = spectral.eig(b, compute_left_eigenvectors=False)
    turned = numpy_systems.solve_matrices(left_vectors, product(c, right_vectors))
    shape = typeof(turned).shape
    sums = elementwise.add(along_columns(left, shape), along_rows(right, shape))
    x = product(left_vectors, elementwise.div(turned, sums))
    # The solve multiplies x by the inverse of right_vectors from the right.
    x = swap(numpy_systems.solve_matrices(swap(right_vectors), swap(x)))
    return _nan_if_singular(x, sums, tol)


def _nan_if_singular(x: Array, sums: Array, tol: float) -> Array:
    """Return x, or NaNs where a sum of eigenvalues of A and B is within `tol` of zero."""
    if not typeof(x).size:
        return x
    least = reduce_min(elementwise.abs(sums), (0, 1))
    singular = compare.lt(least, host_number(tol, typeof(least).dtype))
    singular = broadcast_in_dim(singular, typeof(x).shape, ())
    return compare.select_n(singular, x, creation.full_like(x, np.nan))


@operation(static_argnames=("method", "tol"))
def solve_sylvester(
    A: ArrayLike, B: ArrayLike, C: ArrayLike, *, method: str = "schur", tol: float = 1e-8
) -> Array:
    """Solve `A X + X B = C` for X.

    Args:
      A: an array of shape (..., m, m); leading axes of all three are broadcast to each other.
      B: an array of shape (..., n, n).
      C: an array of shape (..., m, n).
      method: "schur", or "eigen", which is faster and less exact.
      tol: where a sum of an eigenvalue of A and one of B is smaller than this, X is NaN.

    Raises:
      ValueError: if there is no such method, or sizes do not match.
    """
    operands = inexact("jax.scipy.linalg.solve_sylvester", A, B, C)
    a, b, c = (typeof(x).shape for x in operands)
    squares = min(map(len, (a, b, c))) >= 2 and a[-1] == a[-2] and b[-1] == b[-2]
    if not squares or c[-2:] != (a[-1], b[-1]):
        raise ValueError(f"Incompatible shapes for Sylvester equation: A: {a} B: {b} C: {c}")
    check_choice("solve_sylvester", "method", method, ("schur", "eigen"))
    solver = _by_schur if method == "schur" else _by_eigenvectors
    solver = vectorize(partial(solver, tol=tol), signature="(m,m),(n,n),(m,n)->(m,n)")
    x = solver(*promote_dtypes_complex(*operands))
    return (
        x if any(is_complex(typeof(operand).dtype) for operand in operands) else elementwise.real(x)
    )
