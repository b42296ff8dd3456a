"""The solution of linear systems from LU and Cholesky factors, with implicit derivatives."""

from functools import partial

from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.higher_order.custom_rules.linear_solve import custom_linear_solve
from hlofront.primitives.arrays.creation import index_like
from hlofront.primitives.arrays.sorting import sort_key_val
from hlofront.primitives.elementwise.converting import stop_gradient
from hlofront.primitives.linalg.factoring import lu
from hlofront.primitives.linalg.matrices import conjugate, product, take_rows
from hlofront.primitives.linalg.solving import triangular_solve


def solve_factored(
    factors: ArrayLike, permutation: ArrayLike, b: ArrayLike, trans: int = 0
) -> Array:
    """Solve `a x = b`, `a^T x = b` or `a^H x = b` from the LU factors of a.

    Args:
      factors: the LU factors of `lax.linalg.lu`, of shape (..., n, n).
      permutation: the permutation of `lax.linalg.lu`, of shape (..., n).
      b: the right-hand sides, of shape (..., n, k).
      trans: 0 for a, 1 for a^T, 2 for a^H.
    """
    if trans == 0:
        b = take_rows(b, permutation)
        b = triangular_solve(factors, b, left_side=True, lower=True, unit_diagonal=True)
        return triangular_solve(factors, b, left_side=True)
    conjugated = trans == 2
    solve = partial(
        triangular_solve, factors, left_side=True, transpose_a=True, conjugate_a=conjugated
    )
    b = solve(solve(b), lower=True, unit_diagonal=True)
    rows = index_like(permutation, typeof(permutation).ndim - 1)
    _, inverse = sort_key_val(permutation, rows)
    return take_rows(b, inverse)


def solve_general(a: ArrayLike, b: ArrayLike) -> Array:
    """Solve `a x = b` for general matrices: a of shape (..., n, n), b of shape (..., n, k)."""
    factors, _, permutation = lu(stop_gradient(a))

    def matvec(x: ArrayLike) -> Array:
        return product(a, x)

    def solve(_: object, b: ArrayLike) -> Array:
        return solve_factored(factors, permutation, b)

    def transpose_solve(_: object, b: ArrayLike) -> Array:
        return solve_factored(factors, permutation, b, 1)

    return custom_linear_solve(matvec, b, solve=solve, transpose_solve=transpose_solve)


def solve_positive(a: ArrayLike, b: ArrayLike, factor: ArrayLike) -> Array:
    """Solve `a x = b` for Hermitian matrices a whose lower Cholesky factor is known.

    Args:
      a: the matrices, of shape (..., n, n).
      b: the right-hand sides, of shape (..., n, k).
      factor: the lower Cholesky factors of a, of shape (..., n, n).
    """
    factor = stop_gradient(factor)

    def matvec(x: ArrayLike) -> Array:
        return product(a, x)

    def solve(_: object, b: ArrayLike) -> Array:
        return solve_cholesky(factor, b, lower=True)

    def transpose_solve(_: object, b: ArrayLike) -> Array:
        # a^T is the conjugate of a.
        return conjugate(solve_cholesky(factor, conjugate(b), lower=True))

    return custom_linear_solve(matvec, b, solve=solve, transpose_solve=transpose_solve)


def solve_cholesky(factor: ArrayLike, b: ArrayLike, lower: bool) -> Array:
    """Solve `L L^H x = b`, or `U^H U x = b` if the Cholesky factor is upper."""
    solve = partial(triangular_solve, factor, left_side=True, lower=lower)
    b = solve(b, transpose_a=not lower, conjugate_a=not lower)
    return solve(b, transpose_a=lower, conjugate_a=lower)
