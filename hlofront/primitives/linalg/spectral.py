"""Eigenvalue, singular value and Schur decompositions, Hessenberg and tridiagonal reductions."""

import enum
from collections.abc import Callable
from typing import Any

import numpy as np

from hlofront.base import source
from hlofront.base.boundary import boundary
from hlofront.base.dtypes import is_complex, issubdtype
from hlofront.base.elements import NumPyDType, int32
from hlofront.base.typing import Array, ArrayLike, ArrayLikes, Shape
from hlofront.core import rules
from hlofront.core.aval import typeof
from hlofront.core.primitive import Primitive
from hlofront.core.symbolic_zeros import Duals, Tangents
from hlofront.core.trace import process
from hlofront.primitives.arrays.creation import full_like, index_like
from hlofront.primitives.arrays.reducing import argmax, reduce_sum
from hlofront.primitives.elementwise.compare import eq, select_n
from hlofront.primitives.elementwise.converting import convert, strong
from hlofront.primitives.elementwise.elementwise import (
    abs,
    add,
    complex,
    conj,
    div,
    imag,
    integer_pow,
    mul,
    neg,
    real,
    sub,
)
from hlofront.primitives.elementwise.families import complex_of
from hlofront.primitives.elementwise.weak_types import strong_cotangents
from hlofront.primitives.linalg.factoring import lu, symmetrize
from hlofront.primitives.linalg.matrices import (
    INEXACT,
    CoreTypes,
    adjoint,
    along_columns,
    along_rows,
    broadcast_matrices,
    check_square,
    diagonal,
    identity_like,
    on_matrices,
    product,
    real_dtype,
    real_part,
    take_rows,
)
from hlofront.primitives.linalg.solving import triangular_solve
from hlofront.primitives.rules.derivatives import instantiate, unknown_derivative

# ---- Hermitian matrices --------------------------------------------------------------------------


class EighImplementation(enum.Enum):
    """An algorithm for eigenvalues of Hermitian matrices; devices support different ones."""

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


eigh_p = Primitive("eigh", multiple_results=True)


@boundary
def eigh(
    x: ArrayLike,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    implementation: EighImplementation | str | None = None,
) -> tuple[Array, Array]:
    """Compute the eigenvectors and eigenvalues of Hermitian matrices.

    Args:
      x: an array of shape (..., n, n).
      lower: whether to read the lower rather than the upper triangle, if x is not symmetrized.
      symmetrize_input: whether to replace x by `(x + x^H) / 2` first.
      sort_eigenvalues: whether eigenvalues must ascend; LAPACK's always do.
      subset_by_index: the range (start, end) of sorted eigenvalues to compute, on devices that
        support it; None for all.
      implementation: an EighImplementation or its value; None for the default.

    Returns:
      (v, w): eigenvectors as columns, and real eigenvalues in ascending order; NaN if LAPACK fails.

    Raises:
      TypeError: if the dtype is not floating or complex, or x has fewer than two axes.
      ValueError: if a matrix is not square.
    """
    if symmetrize_input:
        x = symmetrize("eigh", x)
    if implementation is not None:
        implementation = EighImplementation(implementation)
    params = {
        "lower": bool(lower),
        "sort_eigenvalues": bool(sort_eigenvalues),
        "subset_by_index": subset_by_index,
        "algorithm": implementation,
    }
    vectors, values = process(eigh_p, (x,), params)
    return vectors, values


def _eigh_shapes(
    shape: Shape, dtype: NumPyDType, *, subset_by_index: tuple[int, int] | None, **_: object
) -> CoreTypes:
    n = check_square("eigh", shape)
    count = n if subset_by_index is None else subset_by_index[1] - subset_by_index[0]
    return [((n, count), dtype), ((count,), real_dtype(dtype))]


on_matrices(eigh_p, INEXACT, (2,), _eigh_shapes)


@rules.jvp(eigh_p)
def _(primals: ArrayLikes, tangents: Tangents, **params: object) -> Duals:
    if params["subset_by_index"] not in (None, (0, typeof(primals[0]).shape[-1])):
        raise NotImplementedError(  # JAX raises this class.
            "Derivatives of eigh with subset_by_index need all eigenvectors: leave it out, and "
            "slice the results"
        )
    # Derivatives are those of a function of the Hermitian part, no matter which part of the matrix
    # is read, so that first and second derivatives agree for an element and its mirror image.
    x, tangent = symmetrize("eigh", primals[0]), instantiate(tangents[0])
    vectors, values = process(eigh_p, (x,), params)
    aval = typeof(vectors)
    # The matrix tangent in the basis of eigenvectors: its diagonal is the eigenvalues' tangent; the
    # rest, divided by differences of eigenvalues, rotates the eigenvectors.
    seen = product(product(adjoint(vectors), tangent), vectors)
    eigenvalues = convert(values, aval.dtype, False)
    ones = broadcast_matrices(identity_like(vectors), aval.shape)
    differences = sub(along_rows(eigenvalues, aval.shape), along_columns(eigenvalues, aval.shape))
    turn = sub(integer_pow(add(ones, differences), -1), ones)
    vector_changes = product(vectors, mul(turn, strong(seen)))
    return [vectors, values], [vector_changes, real_part(diagonal(strong_cotangents(seen)))]


# ---- general matrices ----------------------------------------------------------------------------


class EigImplementation(enum.Enum):
    """A library that computes eigenvalues of general matrices, for devices that have several."""

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


eig_p = Primitive("eig", multiple_results=True)


@boundary
def eig(
    x: ArrayLike,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False,
    implementation: EigImplementation | str | None = None,
    use_magma: bool | None = None,
) -> list[Any]:
    """Compute the eigenvalues and eigenvectors of general matrices.

    Args:
      x: an array of shape (..., n, n).
      compute_left_eigenvectors: whether to return the vectors u with `u^H x = w u^H`.
      compute_right_eigenvectors: whether to return the vectors v with `x v = w v`.
      enable_eigvec_derivs: whether eigenvectors may be differentiated. Their derivative is valid
        for distinct eigenvalues, and for results that do not depend on the arbitrary phases of
        eigenvectors.
      implementation: an EigImplementation; None for the default.
      use_magma: deprecated; True selects MAGMA if no implementation is specified.

    Returns:
      [w, left, right]: complex eigenvalues, and the requested eigenvectors as columns of norm one.
      NaN where LAPACK fails.

    Raises:
      TypeError: if the dtype is not floating or complex, or x has fewer than two axes.
      ValueError: if a matrix is not square.
    """
    if use_magma is not None:
        source.warn(
            "use_magma of eig is deprecated: give implementation=EigImplementation.MAGMA instead",
            DeprecationWarning,
        )
        if use_magma and implementation is None:
            implementation = EigImplementation.MAGMA
    params = {
        "compute_left_eigenvectors": bool(compute_left_eigenvectors),
        "compute_right_eigenvectors": bool(compute_right_eigenvectors),
        "enable_eigvec_derivs": bool(enable_eigvec_derivs),
        "implementation": implementation,
    }
    return process(eig_p, (x,), params)


def _eig_shapes(
    shape: Shape,
    dtype: NumPyDType,
    *,
    compute_left_eigenvectors: bool,
    compute_right_eigenvectors: bool,
    **_: object,
) -> CoreTypes:
    n = check_square("eig", shape)
    if not issubdtype(dtype, np.complexfloating):
        # There is no complex dtype with 16-bit parts; the lowering raises an error for 16-bit
        # floats.
        dtype = complex_of(dtype) if dtype.itemsize >= 4 else np.dtype(np.complex64)
    count = compute_left_eigenvectors + compute_right_eigenvectors
    return [((n,), dtype), *[((n, n), dtype)] * count]


on_matrices(eig_p, INEXACT, (2,), _eig_shapes)


@rules.jvp(eig_p)
def _(primals: ArrayLikes, tangents: Tangents, **params: object) -> Duals:
    (x,), tangent = primals, instantiate(tangents[0])
    left, right = params["compute_left_eigenvectors"], params["compute_right_eigenvectors"]
    if (left or right) and not params["enable_eigvec_derivs"]:
        raise NotImplementedError(  # JAX raises this class.
            "Derivatives of non-symmetric eigenvectors are only valid under assumptions on the "
            "input that cannot be checked: see the argument enable_eigvec_derivs of "
            "lax.linalg.eig. Derivatives of eigenvalues (hlofront.numpy.linalg.eigvals) are "
            "available."
        )
    results = process(eig_p, (x,), params)
    # Eigenvalues do not depend on the phases of eigenvectors, so higher derivatives are valid.
    both = {
        **params,
        "compute_left_eigenvectors": False,
        "compute_right_eigenvectors": True,
        "enable_eigvec_derivs": True,
    }
    values, vectors = (results[0], results[-1]) if right else process(eig_p, (x,), both)
    aval = typeof(vectors)
    change = product(convert(tangent, aval.dtype, False), vectors)
    seen = _solve(vectors, change)
    changes = [diagonal(seen)]
    if not (left or right):
        return results, changes
    ones = broadcast_matrices(identity_like(vectors), aval.shape)
    differences = sub(along_rows(values, aval.shape), along_columns(values, aval.shape))
    turn = mul(sub(integer_pow(add(ones, differences), -1), ones), seen)
    if left:
        # Left eigenvectors are the normalized columns of V^-H, whose tangent is -V^-H T^H for
        # V' = V T.
        own = results[1]
        lengths = along_rows(conj(_diagonal_of_product(own, vectors)), aval.shape)
        moved = mul(product(div(own, lengths), adjoint(turn)), lengths)
        changes.append(_same_length(own, neg(moved)))
    if right:
        changes.append(_same_length(vectors, product(vectors, turn)))
    return results, changes


def _same_length(vectors: ArrayLike, change: Array) -> Array:
    """Return the tangent of columns of norm one, projected so that norms and phases are constant.

    LAPACK's choice of phase makes the element of greatest absolute value in each column real.
    """
    aval = typeof(vectors)
    if not aval.size:
        return change
    rows = aval.ndim - 2
    greatest = argmax(abs(vectors), rows, int32)
    columns = index_like(vectors, rows)
    chosen = eq(columns, along_rows(greatest, aval.shape))

    def element(x: ArrayLike) -> Array:
        return reduce_sum(select_n(chosen, full_like(x, 0), x), (rows,))

    longer = real(_diagonal_of_product(vectors, change))
    turned = div(imag(element(change)), real(element(vectors)))
    return sub(change, mul(vectors, along_rows(complex(longer, turned), aval.shape)))


def _diagonal_of_product(x: ArrayLike, y: ArrayLike) -> Array:
    """Return the diagonal of x^H y for matrices (..., m, n): inner products of columns."""
    return reduce_sum(mul(conj(x), y), (typeof(x).ndim - 2,))


def _solve(a: ArrayLike, b: ArrayLike) -> Array:
    """Solve `a x = b` by LU decomposition, for matrices (..., n, n)."""
    factors, _, permutation = lu(a)
    b = take_rows(b, permutation)
    b = triangular_solve(factors, b, left_side=True, lower=True, unit_diagonal=True)
    return triangular_solve(factors, b, left_side=True)


# ---- singular values -----------------------------------------------------------------------------


class SvdAlgorithm(enum.Enum):
    """An algorithm of the singular value decomposition; DEFAULT is the device's fastest."""

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


svd_p = Primitive("svd", multiple_results=True)


@boundary
def svd(
    x: ArrayLike,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: str | None = None,
) -> Array | tuple[Array, Array, Array]:
    """Compute the singular value decomposition `x = u diag(s) vh` of matrices.

    Args:
      x: an array of shape (..., m, n).
      full_matrices: whether u and vh are square; if not, u has min(m, n) columns and vh as many
        rows.
      compute_uv: whether to return u and vh.
      subset_by_index: the range (start, end) of singular values to compute, on devices that
        support it; None for all.
      algorithm: an SvdAlgorithm or its value; None for the default.

    Returns:
      (u, s, vh), or only s, which is real and descending. NaN if LAPACK fails.

    Raises:
      TypeError: if the dtype is not floating or complex, or x has fewer than two axes.
      ValueError: if the algorithm is unknown, or `subset_by_index` is combined with full matrices.
    """
    params = {
        "full_matrices": bool(full_matrices),
        "compute_uv": bool(compute_uv),
        "subset_by_index": subset_by_index,
        "algorithm": None if algorithm is None else SvdAlgorithm(algorithm),
    }
    results = process(svd_p, (x,), params)
    if not compute_uv:
        return results[0]
    values, left, right = results
    return left, values, right


def _svd_shapes(
    shape: Shape,
    dtype: NumPyDType,
    *,
    full_matrices: bool,
    compute_uv: bool,
    subset_by_index: tuple[int, int] | None,
    **_: object,
) -> CoreTypes:
    m, n = shape
    k = min(m, n)
    if subset_by_index is not None:
        if full_matrices and subset_by_index != (0, k):
            raise ValueError("full_matrices and subset_by_index cannot both be set")
        k = min(k, subset_by_index[1] - subset_by_index[0])
    values = ((k,), real_dtype(dtype))
    if not compute_uv:
        return [values]
    return [
        values,
        ((m, m if full_matrices else k), dtype),
        ((n if full_matrices else k, n), dtype),
    ]


on_matrices(svd_p, INEXACT, (2,), _svd_shapes)


@rules.jvp(svd_p)
def _(
    primals: ArrayLikes,
    tangents: Tangents,
    *,
    full_matrices: bool,
    compute_uv: bool,
    subset_by_index: tuple[int, int] | None,
    algorithm: object,
) -> Duals:
    (x,), tangent = primals, instantiate(tangents[0])
    m, n = typeof(x).shape[-2:]
    if subset_by_index not in (None, (0, min(m, n))):
        raise NotImplementedError(  # JAX raises this class.
            "Derivatives of svd with subset_by_index need all singular vectors: leave it out, "
            "and slice the results"
        )
    if compute_uv and full_matrices and m != n:
        raise NotImplementedError(  # JAX raises this class.
            "Singular value decomposition JVP not implemented for full matrices: use "
            "full_matrices=False"
        )
    params = {"full_matrices": False, "subset_by_index": None, "algorithm": algorithm}
    values, left, right = process(svd_p, (x,), {**params, "compute_uv": True})
    vectors = adjoint(right)
    # The tangent in the bases of singular vectors: its diagonal is the singular values' tangent,
    # and the rest rotates the vectors. Townsend, "Differentiating the singular value decomposition"
    # (2016).
    across = product(tangent, vectors)
    seen = product(adjoint(left), across)
    value_changes = real_part(diagonal(strong_cotangents(seen)))
    if not compute_uv:
        return [values], [value_changes]
    aval = typeof(seen)
    own = convert(values, aval.dtype, False)
    rows, columns = along_rows(own, aval.shape), along_columns(own, aval.shape)
    # This is not finite for equal singular values, whose vectors have no derivative.
    ones = broadcast_matrices(identity_like(seen), aval.shape)
    turn = integer_pow(add(mul(add(rows, columns), sub(rows, columns)), ones), -1)
    turn = sub(turn, ones)
    turned = strong(seen)
    by_left, by_right = mul(turned, rows), mul(columns, turned)
    left_turn = mul(turn, add(by_left, adjoint(by_left)))
    right_turn = mul(turn, add(by_right, adjoint(by_right)))
    if is_complex(typeof(seen).dtype):
        # Only the difference of the two phases is determined: assign it to the left vectors.
        phase = imag(diagonal(turned))
        phase = mul(complex(full_like(phase, 0), phase), _inverse_or_zero(own))
        left_turn = add(left_turn, mul(ones, along_rows(phase, aval.shape)))
    left_change, right_change = product(left, left_turn), product(vectors, right_turn)
    if m > n:
        left_change = add(left_change, _outside(left, across, own))
    if n > m:
        down = product(adjoint(tangent), left)
        right_change = add(right_change, _outside(vectors, down, own))
    return [values, left, right], [value_changes, left_change, adjoint(right_change)]


def _inverse_or_zero(x: ArrayLike) -> Array:
    zeros = convert(eq(x, full_like(x, 0)), typeof(x).dtype, False)
    return sub(integer_pow(add(x, zeros), -1), zeros)


def _outside(vectors: ArrayLike, change: ArrayLike, values: ArrayLike) -> Array:
    """Return the component of `change` orthogonal to `vectors`, its columns divided by `values`."""
    orthogonal_change = sub(change, product(vectors, product(adjoint(vectors), change)))
    return div(strong(orthogonal_change), along_rows(values, typeof(orthogonal_change).shape))


# ---- Schur form ----------------------------------------------------------------------------------

schur_p = Primitive("schur", multiple_results=True)


@boundary
def schur(
    x: ArrayLike,
    *,
    compute_schur_vectors: bool = True,
    sort_eig_vals: bool = False,
    select_callable: Callable[..., object] | None = None,
) -> list[Array]:
    """Compute the Schur decomposition `x = z t z^H` of matrices, with z unitary.

    Args:
      x: an array of shape (..., n, n).
      compute_schur_vectors: whether to return z.
      sort_eig_vals: must be False: eigenvalues cannot be ordered.
      select_callable: must be None.

    Returns:
      [t, z], or [t]: t is upper triangular; for real matrices it has 2x2 blocks on the diagonal
      for pairs of complex eigenvalues. NaN if LAPACK fails.

    Raises:
      TypeError: if the dtype is not floating or complex, or x has fewer than two axes.
      ValueError: if a matrix is not square.
      NotImplementedError: if eigenvalues are to be ordered.
    """
    params = {
        "compute_schur_vectors": bool(compute_schur_vectors),
        "sort_eig_vals": bool(sort_eig_vals),
        "select_callable": select_callable,
    }
    return process(schur_p, (x,), params)


def _schur_shapes(
    shape: Shape, dtype: NumPyDType, *, compute_schur_vectors: bool, **_: object
) -> CoreTypes:
    check_square("schur", shape)
    return [(shape, dtype)] * (1 + compute_schur_vectors)


on_matrices(schur_p, INEXACT, (2,), _schur_shapes)
unknown_derivative(schur_p, "eigh, svd and eigvals have derivatives")

# ---- Hessenberg and tridiagonal form -------------------------------------------------------------

hessenberg_p = Primitive("hessenberg", multiple_results=True)
tridiagonal_p = Primitive("tridiagonal", multiple_results=True)


@boundary
def hessenberg(a: ArrayLike) -> list[Array]:
    """Reduce matrices to upper Hessenberg form: zeros below the first subdiagonal.

    Args:
      a: an array of shape (..., n, n).

    Returns:
      [a, taus]: the Hessenberg form, with the Householder reflectors of the transformation below
      the subdiagonal, and their scales, of shape (..., n - 1). NaN if LAPACK fails.

    Raises:
      TypeError: if the dtype is not floating or complex, or there are fewer than two axes.
      ValueError: if a matrix is not square, or has no elements.
    """
    return process(hessenberg_p, (a,), {})


def _hessenberg_shapes(shape: Shape, dtype: NumPyDType) -> CoreTypes:
    if shape[0] != shape[1] or not shape[0]:
        raise ValueError(
            f"Argument to Hessenberg reduction must have shape [..., n, n], got shape {shape}"
        )
    return [(shape, dtype), ((shape[0] - 1,), dtype)]


on_matrices(hessenberg_p, INEXACT, (2,), _hessenberg_shapes)


@boundary
def tridiagonal(a: ArrayLike, *, lower: bool = True) -> list[Array]:
    """Reduce Hermitian matrices to real symmetric tridiagonal form.

    Args:
      a: an array of shape (..., n, n).
      lower: whether the lower triangle, rather than the upper, is read and holds the reflectors.

    Returns:
      [a, d, e, taus]: the matrices with the Householder reflectors; the main diagonal, of shape
      (..., n); the adjacent diagonal, and the reflectors' scales, of shape (..., n - 1). NaN if
      LAPACK fails.

    Raises:
      TypeError: if the dtype is not floating or complex, or there are fewer than two axes.
      ValueError: if a matrix is not square, or has no elements.
    """
    return process(tridiagonal_p, (a,), {"lower": bool(lower)})


def _tridiagonal_shapes(shape: Shape, dtype: NumPyDType, **_: object) -> CoreTypes:
    n = check_square("tridiagonal", shape)
    if not n:
        raise ValueError(f"tridiagonal requires nonempty matrices, got shape {shape}")
    real = real_dtype(dtype)
    return [(shape, dtype), ((n,), real), ((n - 1,), real), ((n - 1,), dtype)]


on_matrices(tridiagonal_p, INEXACT, (2,), _tridiagonal_shapes)
for _primitive in (hessenberg_p, tridiagonal_p):
    unknown_derivative(_primitive, "eigh and eigvals, which go by this form, have derivatives")
