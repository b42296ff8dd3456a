"""Linear systems of general matrices: solved by LU factors, differentiated by what they solve."""

from typing import Any

import numpy as np

from hlofront.core.aval import typeof
from hlofront.higher_order.linear_solve import custom_linear_solve
from hlofront.primitives.converting import stop_gradient
from hlofront.primitives.creating import broadcasted_iota
from hlofront.primitives.factoring import lu
from hlofront.primitives.matrices import conjugate, product, take_rows
from hlofront.primitives.solving import triangular_solve
from hlofront.primitives.sorting import sort_key_val


def solve_factored(factors: Any, permutation: Any, b: Any, trans: int = 0) -> Any:
    """Solve `a x = b`, or with `trans` 1 `a^T x = b` and 2 `a^H x = b`, from the factors of a.

    Args:
      factors: of shape (..., n, n), as `lax.linalg.lu` gives them, and the permutation with them.
      b: of shape (..., n, k).
      trans: 0, 1 or 2.
    """
    if trans == 0:
        b = take_rows(b, permutation)
        b = triangular_solve(factors, b, left_side=True, lower=True, unit_diagonal=True)
        return triangular_solve(factors, b, left_side=True)
    conjugated = trans == 2
    options = {"left_side": True, "transpose_a": True, "conjugate_a": conjugated}
    b = triangular_solve(factors, b, **options)
    b = triangular_solve(factors, b, lower=True, unit_diagonal=True, **options)
    aval = typeof(permutation)
    places = broadcasted_iota(np.dtype(np.int32), aval.shape, aval.ndim - 1)
    _, inverse = sort_key_val(permutation, places)
    return take_rows(b, inverse)


def solve_general(a: Any, b: Any) -> Any:
    """x with `a x = b`, for matrices in one batch: (..., n, n) and (..., n, k)."""
    factors, _, permutation = lu(stop_gradient(a))
    return custom_linear_solve(
        lambda x: product(a, x),
        b,
        solve=lambda _, b: solve_factored(factors, permutation, b),
        transpose_solve=lambda _, b: solve_factored(factors, permutation, b, 1),
    )


def solve_positive(a: Any, b: Any, factor: Any) -> Any:
    """x with `a x = b` for Hermitian matrices of which `factor` is the lower Cholesky factor."""
    factor = stop_gradient(factor)

    def solve(_: Any, b: Any) -> Any:
        return solve_cholesky(factor, b, lower=True)

    def transpose_solve(_: Any, b: Any) -> Any:
        # a^T is the conjugate of a.
        return conjugate(solve_cholesky(factor, conjugate(b), lower=True))

    return custom_linear_solve(
        lambda x: product(a, x), b, solve=solve, transpose_solve=transpose_solve
    )


def solve_cholesky(factor: Any, b: Any, lower: bool) -> Any:
    """x with `L L^H x = b`, or with `U^H U x = b` where the factor is not lower."""
    options = {"left_side": True, "lower": lower}
    b = triangular_solve(factor, b, **options, transpose_a=not lower, conjugate_a=not lower)
    return triangular_solve(factor, b, **options, transpose_a=lower, conjugate_a=lower)
