# Written by scripts/write_stubs.py from the running package: do not edit.

from collections.abc import Callable
from typing import Any, Literal, overload

from hlofront import Array
from hlofront.scipy.linalg.decompositions import cholesky as cholesky
from hlofront.scipy.linalg.decompositions import polar as polar
from hlofront.scipy.linalg.decompositions import qr as qr
from hlofront.scipy.linalg.decompositions import qr_multiply as qr_multiply
from hlofront.scipy.linalg.decompositions import rsf2csf as rsf2csf
from hlofront.scipy.linalg.decompositions import schur as schur
from hlofront.scipy.linalg.matrix_functions import expm as expm
from hlofront.scipy.linalg.matrix_functions import sqrtm as sqrtm
from hlofront.scipy.linalg.special_matrices import block_diag as block_diag
from hlofront.scipy.linalg.special_matrices import circulant as circulant
from hlofront.scipy.linalg.special_matrices import companion as companion
from hlofront.scipy.linalg.special_matrices import convolution_matrix as convolution_matrix
from hlofront.scipy.linalg.special_matrices import dft as dft
from hlofront.scipy.linalg.special_matrices import fiedler as fiedler
from hlofront.scipy.linalg.special_matrices import fiedler_companion as fiedler_companion
from hlofront.scipy.linalg.special_matrices import hadamard as hadamard
from hlofront.scipy.linalg.special_matrices import hankel as hankel
from hlofront.scipy.linalg.special_matrices import helmert as helmert
from hlofront.scipy.linalg.special_matrices import hilbert as hilbert
from hlofront.scipy.linalg.special_matrices import invhilbert as invhilbert
from hlofront.scipy.linalg.special_matrices import invpascal as invpascal
from hlofront.scipy.linalg.special_matrices import leslie as leslie
from hlofront.scipy.linalg.special_matrices import pascal as pascal
from hlofront.scipy.linalg.special_matrices import toeplitz as toeplitz
from hlofront.scipy.linalg.systems import cho_factor as cho_factor
from hlofront.scipy.linalg.systems import cho_solve as cho_solve
from hlofront.scipy.linalg.systems import det as det
from hlofront.scipy.linalg.systems import inv as inv
from hlofront.scipy.linalg.systems import lu_factor as lu_factor
from hlofront.scipy.linalg.systems import lu_solve as lu_solve
from hlofront.scipy.linalg.systems import solve as solve
from hlofront.scipy.linalg.systems import solve_sylvester as solve_sylvester
from hlofront.scipy.linalg.systems import solve_triangular as solve_triangular
from hlofront.typing import ArrayLike

@overload
def eigh(
    a: ArrayLike,
    b: None = None,
    lower: bool = True,
    eigvals_only: Literal[False] = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> tuple[Array, Array]: ...
@overload
def eigh(
    a: ArrayLike,
    b: None = None,
    lower: bool = True,
    *,
    eigvals_only: Literal[True],
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Array: ...
@overload
def eigh(
    a: ArrayLike,
    b: None = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Any: ...
@overload
def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: Literal[False] = False,
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    tol: ArrayLike | None = None,
    key: object = None,
) -> tuple[Array, Array]: ...
@overload
def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: Literal[True],
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    tol: ArrayLike | None = None,
    key: object = None,
) -> Array: ...
@overload
def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    tol: ArrayLike | None = None,
    key: object = None,
) -> Any: ...
@overload
def expm_frechet(
    A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: Literal[True] = True
) -> tuple[Array, Array]: ...
@overload
def expm_frechet(
    A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: Literal[False]
) -> Array: ...
@overload
def expm_frechet(
    A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: bool = True
) -> Any: ...
def funm(
    A: ArrayLike, func: Callable[[Array], Array], disp: bool = True
) -> Array | tuple[Array, Array]: ...
@overload
def hessenberg(
    a: ArrayLike,
    *,
    calc_q: Literal[False] = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
) -> Array: ...
@overload
def hessenberg(
    a: ArrayLike, *, calc_q: Literal[True], overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, Array]: ...
@overload
def hessenberg(
    a: ArrayLike, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Any: ...
@overload
def lu(
    a: ArrayLike,
    permute_l: Literal[False] = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
) -> tuple[Array, Array, Array]: ...
@overload
def lu(
    a: ArrayLike, *, permute_l: Literal[True], overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, Array]: ...
@overload
def lu(
    a: ArrayLike, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Any: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: Literal[True] = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> tuple[Array, Array, Array]: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    *,
    compute_uv: Literal[False],
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Array: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any: ...
