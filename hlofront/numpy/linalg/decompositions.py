"""The decompositions of matrices: Cholesky, QR, eigenvalues, singular values."""

from __future__ import annotations

import numpy as np

from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.numpy.arrays.sorting import argsort
from hlofront.numpy.indexing.taking import take_along_axis
from hlofront.numpy.linalg.matrices import inexact
from hlofront.numpy.support.like import operation_like
from hlofront.primitives.elementwise import elementwise
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.linalg import factoring, spectral
from hlofront.primitives.linalg.matrices import adjoint, along_rows, swap


class EighResult(NamedTuple):
    """The eigenvalues (..., n), ascending, and the eigenvectors (..., n, n) as columns."""

    eigenvalues: Array
    eigenvectors: Array


class EigResult(NamedTuple):
    """The complex eigenvalues (..., n), and the eigenvectors (..., n, n) as columns."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """The factors of `a = Q R`: orthonormal columns Q, and upper triangular R."""

    Q: Array
    R: Array


class SVDResult(NamedTuple):
    """The left singular vectors as columns, singular values, right singular vectors as rows."""

    U: Array
    S: Array
    Vh: Array


@operation_like(np.linalg.cholesky, static_argnames=("upper", "symmetrize_input"))
def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """Compute the triangular factor of Hermitian positive definite matrices.

    Args:
      a: an array of shape (..., n, n).
      upper: whether to return the upper triangular factor, `L^H`.
      symmetrize_input: whether `a` is replaced by `(a + a^H) / 2` first.

    Returns:
      L with `a = L L^H`; NaN where a matrix is not positive definite.

    Example:
      >>> jnp.linalg.cholesky(jnp.array([[4.0, 0.0], [0.0, 9.0]]))
      Array([[2., 0.],
             [0., 3.]], dtype=float32)
    """
    (a,) = inexact("jnp.linalg.cholesky", a)
    factor = factoring.cholesky(a, symmetrize_input=symmetrize_input)
    return adjoint(factor) if upper else factor


@operation_like(np.linalg.qr, static_argnames=("mode",))
def qr(a: ArrayLike, mode: str = "reduced") -> Array | QRResult:
    """Compute orthonormal columns Q and upper triangular R with `a = Q R`.

    Args:
      a: an array of shape (..., m, n).
      mode: "reduced" for min(m, n) columns of Q, "complete" for all columns, "r" for R only, or
        "raw" for the reflectors and their scales as LAPACK returns them, transposed.

    Raises:
      ValueError: if the mode is none of these.

    Example:
      >>> q, r = jnp.linalg.qr(jnp.ones((3, 2)))
      >>> q.shape, r.shape
      ((3, 2), (2, 2))
    """
    (a,) = inexact("jnp.linalg.qr", a)
    if mode == "raw":
        reflectors, taus = factoring.geqrf(a)
        return QRResult(swap(reflectors), taus)
    if mode not in ("reduced", "r", "full", "complete"):
        raise ValueError(
            f"Unsupported QR decomposition mode '{mode}': expected reduced, complete, r or raw"
        )
    q, r = factoring.qr(a, pivoting=False, full_matrices=mode == "complete")
    return r if mode == "r" else QRResult(q, r)


@operation_like(np.linalg.eig)
def eig(a: ArrayLike) -> EigResult:
    """Compute complex eigenvalues, unordered, and eigenvectors of general square matrices.

    Raises:
      ValueError: if the matrices are not square.

    Example:
      >>> jnp.linalg.eig(jnp.eye(2)).eigenvalues
      Array([1.+0.j, 1.+0.j], dtype=complex64)
    """
    (a,) = inexact("jnp.linalg.eig", a)
    values, vectors = spectral.eig(a, compute_left_eigenvectors=False)
    return EigResult(values, vectors)


@operation_like(np.linalg.eigvals)
def eigvals(a: ArrayLike) -> Array:
    """Compute complex eigenvalues, unordered, of general square matrices.

    Args:
      a: an array of shape (..., n, n).

    Returns:
      Complex numbers of shape (..., n).

    Raises:
      ValueError: if the matrices are not square.

    Example:
      >>> jnp.sort(jnp.linalg.eigvals(jnp.array([[0.0, 1.0], [-1.0, 0.0]])).imag).round(3)
      Array([-1.,  1.], dtype=float32)
    """
    (a,) = inexact("jnp.linalg.eigvals", a)
    return spectral.eig(a, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]


@operation_like(np.linalg.eigh, static_argnames=("UPLO", "symmetrize_input"))
def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """Compute real eigenvalues, ascending, and eigenvectors of Hermitian matrices.

    Args:
      a: an array of shape (..., n, n).
      UPLO: which triangle is read, "L" (also None) or "U", unless `a` is symmetrized.
      symmetrize_input: whether `a` is replaced by `(a + a^H) / 2` first.

    Raises:
      ValueError: if UPLO is neither.

    Example:
      >>> jnp.linalg.eigh(jnp.array([[2.0, 0.0], [0.0, 3.0]]))[0]
      Array([2., 3.], dtype=float32)
    """
    if UPLO not in (None, "L", "U"):
        raise ValueError(f"UPLO must be one of None, 'L', or 'U', got {UPLO}")
    (a,) = inexact("jnp.linalg.eigh", a)
    vectors, values = spectral.eigh(a, lower=UPLO != "U", symmetrize_input=symmetrize_input)
    return EighResult(values, vectors)


@operation_like(np.linalg.eigvalsh, static_argnames=("UPLO", "symmetrize_input"))
def eigvalsh(a: ArrayLike, UPLO: str = "L", *, symmetrize_input: bool = True) -> Array:
    """Compute real eigenvalues of Hermitian matrices, ascending.

    Args:
      a: an array of shape (..., n, n).
      UPLO: which triangle is read, "L" or "U", unless `a` is symmetrized.
      symmetrize_input: whether `a` is replaced by `(a + a^H) / 2` first.

    Returns:
      Real numbers of shape (..., n).

    Raises:
      ValueError: if UPLO is neither.

    Example:
      >>> jnp.linalg.eigvalsh(jnp.array([[0.0, 1.0], [1.0, 0.0]])).round(3)
      Array([-1.,  1.], dtype=float32)
    """
    return eigh(a, UPLO, symmetrize_input).eigenvalues


@operation_like(
    np.linalg.svd, static_argnames=("full_matrices", "compute_uv", "hermitian", "subset_by_index")
)
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Array | SVDResult:
    """Compute the singular value decomposition `a = U diag(S) Vh`, with descending values.

    Args:
      a: an array of shape (..., m, n).
      full_matrices: whether U and Vh are square; else they have min(m, n) columns and rows.
      compute_uv: whether to return vectors.
      hermitian: whether `a` is Hermitian; if so, its singular values are computed from its
        eigenvalues.
      subset_by_index: (start, end) of the values to compute, on devices that support it.

    Returns:
      SVDResult(U, S, Vh), or only S.

    Example:
      >>> u, s, vh = jnp.linalg.svd(jnp.ones((3, 2)), full_matrices=False)
      >>> u.shape, s.shape, vh.shape
      ((3, 2), (2,), (2, 2))
    """
    (a,) = inexact("jnp.linalg.svd", a)
    if hermitian:
        return _hermitian_svd(a, compute_uv)
    results = spectral.svd(
        a,
        full_matrices=full_matrices,
        compute_uv=compute_uv,
        subset_by_index=subset_by_index,
    )
    return SVDResult(*results) if compute_uv else results


def _hermitian_svd(a: ArrayLike, compute_uv: bool) -> Array | SVDResult:
    vectors, values = spectral.eigh(a)
    sizes = elementwise.abs(values)
    order = argsort(sizes, axis=-1, descending=True)
    sizes = take_along_axis(sizes, order, axis=-1)
    if not compute_uv:
        return sizes
    signs = take_along_axis(elementwise.sign(values), order, axis=-1)
    left = take_along_axis(vectors, order[..., None, :], axis=-1)
    aval = typeof(left)
    right = elementwise.mul(left, along_rows(convert(signs, aval.dtype, False), aval.shape))
    return SVDResult(left, sizes, adjoint(right))


@operation_like(getattr(np.linalg, "svdvals", np.linalg.svd))
def svdvals(x: ArrayLike, /) -> Array:
    """Compute the singular values of matrices, in descending order.

    Example:
      >>> jnp.linalg.svdvals(jnp.array([[0.0, 1.0], [-4.0, 0.0]])).round(3)
      Array([4., 1.], dtype=float32)
    """
    return svd(x, compute_uv=False, hermitian=False)
