# Written by scripts/write_stubs.py from the running package: do not edit.

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, overload

from hlofront import Array
from hlofront.numpy.linalg.decompositions import EighResult, EigResult, SVDResult
from hlofront.numpy.linalg.determinants import SlogdetResult
from hlofront.primitives.linalg.dot_general import PrecisionLike
from hlofront.typing import ArrayLike, DTypeLike

PartitionSpec: TypeAlias = Any
NamedSharding: TypeAlias = Any

def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Array: ...
def cond(x: ArrayLike, p: int | float | str | None = None) -> Array: ...
def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array: ...
def det(a: ArrayLike) -> Array: ...
def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array: ...
def eig(a: ArrayLike) -> EigResult: ...
def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult: ...
def eigvals(a: ArrayLike) -> Array: ...
def eigvalsh(a: ArrayLike, UPLO: str = "L", *, symmetrize_input: bool = True) -> Array: ...
def inv(a: ArrayLike) -> Array: ...
def lstsq(
    a: ArrayLike, b: ArrayLike, rcond: float | None = None, *, numpy_resid: bool = False
) -> tuple[Array, Array, Array, Array]: ...
def matmul(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array: ...
def matrix_norm(
    x: ArrayLike, /, *, keepdims: bool = False, ord: int | float | str | None = "fro"
) -> Array: ...
def matrix_power(a: ArrayLike, n: int) -> Array: ...
def matrix_rank(
    M: ArrayLike,
    rtol: ArrayLike | None = None,
    *,
    hermitian: bool = False,
    tol: ArrayLike | None = None,
) -> Array: ...
def matrix_transpose(x: ArrayLike, /) -> Array: ...
def multi_dot(arrays: Sequence[ArrayLike], *, precision: PrecisionLike = None) -> Array: ...
def norm(
    x: ArrayLike,
    ord: int | float | str | None = None,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Array: ...
def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array: ...
def pinv(
    a: ArrayLike,
    rtol: ArrayLike | None = None,
    hermitian: bool = False,
    *,
    rcond: float | None = None,
) -> Array: ...
def qr(a: ArrayLike, mode: str = "reduced") -> Any: ...
def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult: ...
def solve(a: ArrayLike, b: ArrayLike) -> Array: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: Literal[True] = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> SVDResult: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    *,
    compute_uv: Literal[False],
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Array: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Any: ...
def svdvals(x: ArrayLike, /) -> Array: ...
def tensordot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axes: int | Sequence[int] | Sequence[Sequence[int]] = 2,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array: ...
def tensorinv(a: ArrayLike, ind: int = 2) -> Array: ...
def tensorsolve(a: ArrayLike, b: ArrayLike, axes: Sequence[int] | None = None) -> Array: ...
def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array: ...
def vecdot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axis: int = -1,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array: ...
def vector_norm(
    x: ArrayLike,
    /,
    *,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    ord: int | float | str | None = 2,
) -> Array: ...
