# Written by scripts/write_stubs.py from the running package: do not edit.

from collections.abc import Callable
from typing import Any, Literal, overload

from hlofront import Array
from hlofront.primitives.linalg.factoring import cholesky_p as cholesky_p
from hlofront.primitives.linalg.factoring import cholesky_update_p as cholesky_update_p
from hlofront.primitives.linalg.factoring import householder_product_p as householder_product_p
from hlofront.primitives.linalg.factoring import lu_p as lu_p
from hlofront.primitives.linalg.factoring import (
    lu_pivots_to_permutation_p as lu_pivots_to_permutation_p,
)
from hlofront.primitives.linalg.factoring import ormqr_p as ormqr_p
from hlofront.primitives.linalg.factoring import qr_p as qr_p
from hlofront.primitives.linalg.factoring import symmetric_product_p as symmetric_product_p
from hlofront.primitives.linalg.solving import triangular_solve_p as triangular_solve_p
from hlofront.primitives.linalg.solving import tridiagonal_solve_p as tridiagonal_solve_p
from hlofront.primitives.linalg.spectral import EighImplementation as EighImplementation
from hlofront.primitives.linalg.spectral import EigImplementation as EigImplementation
from hlofront.primitives.linalg.spectral import SvdAlgorithm as SvdAlgorithm
from hlofront.primitives.linalg.spectral import eig_p as eig_p
from hlofront.primitives.linalg.spectral import eigh_p as eigh_p
from hlofront.primitives.linalg.spectral import hessenberg_p as hessenberg_p
from hlofront.primitives.linalg.spectral import schur_p as schur_p
from hlofront.primitives.linalg.spectral import svd_p as svd_p
from hlofront.primitives.linalg.spectral import tridiagonal_p as tridiagonal_p
from hlofront.typing import ArrayLike

def cholesky(x: ArrayLike, *, symmetrize_input: bool = True) -> Array: ...
def cholesky_update(r_matrix: ArrayLike, w_vector: ArrayLike) -> Array: ...
def eig(
    x: ArrayLike,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False,
    implementation: EigImplementation | str | None = None,
    use_magma: bool | None = None,
) -> list[Array]: ...
def eigh(
    x: ArrayLike,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    implementation: EighImplementation | str | None = None,
) -> tuple[Array, Array]: ...
def hessenberg(a: ArrayLike) -> tuple[Array, Array]: ...
def householder_product(a: ArrayLike, taus: ArrayLike) -> Array: ...
def lu(x: ArrayLike) -> tuple[Array, Array, Array]: ...
def lu_pivots_to_permutation(pivots: ArrayLike, permutation_size: int) -> Array: ...
def ormqr(
    a: ArrayLike, taus: ArrayLike, c: ArrayLike, *, left: ArrayLike = True, transpose: bool = False
) -> Array: ...
def qdwh(
    x: ArrayLike,
    *,
    is_hermitian: bool = False,
    max_iterations: int | None = None,
    eps: float | None = None,
    dynamic_shape: tuple[ArrayLike, ArrayLike] | None = None,
) -> tuple[Array, Array, Array, Array]: ...
@overload
def qr(
    x: ArrayLike,
    *,
    pivoting: Literal[False] = False,
    full_matrices: bool = True,
    use_magma: object = None,
) -> tuple[Array, Array]: ...
@overload
def qr(
    x: ArrayLike, *, pivoting: Literal[True], full_matrices: bool = True, use_magma: object = None
) -> tuple[Array, Array, Array]: ...
@overload
def qr(
    x: ArrayLike, *, pivoting: bool = False, full_matrices: bool = True, use_magma: object = None
) -> Any: ...
def schur(
    x: ArrayLike,
    *,
    compute_schur_vectors: bool = True,
    sort_eig_vals: bool = False,
    select_callable: Callable[..., object] | None = None,
) -> tuple[Array, Array]: ...
@overload
def svd(
    x: ArrayLike,
    *,
    full_matrices: bool = True,
    compute_uv: Literal[True] = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: str | None = None,
) -> tuple[Array, Array, Array]: ...
@overload
def svd(
    x: ArrayLike,
    *,
    full_matrices: bool = True,
    compute_uv: Literal[False],
    subset_by_index: tuple[int, int] | None = None,
    algorithm: str | None = None,
) -> Array: ...
@overload
def svd(
    x: ArrayLike,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: str | None = None,
) -> Any: ...
def symmetric_product(
    a_matrix: ArrayLike,
    c_matrix: ArrayLike,
    *,
    alpha: ArrayLike = 1.0,
    beta: ArrayLike = 0.0,
    symmetrize_output: bool = False,
) -> Array: ...
def triangular_solve(
    a: ArrayLike,
    b: ArrayLike,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Array: ...
def tridiagonal(a: ArrayLike, *, lower: bool = True) -> tuple[Array, Array, Array, Array]: ...
def tridiagonal_solve(
    dl: ArrayLike, d: ArrayLike, du: ArrayLike, b: ArrayLike, *, perturb_singular: bool = False
) -> Array: ...
