"""The decompositions of matrices by SciPy's names and conventions."""

from __future__ import annotations

import numpy as np

from hlofront.base.choices import check_choice
from hlofront.base.dtypes import finfo
from hlofront.base.elements import host_number, int32
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.higher_order.control_flow.library_loops import fori_loop
from hlofront.higher_order.polar import qdwh
from hlofront.numpy.linalg.matrices import inexact, matrices
from hlofront.numpy.support.promotion import operands, promote_dtypes_complex
from hlofront.numpy.vectorize import vectorize
from hlofront.primitives.arrays import creation
from hlofront.primitives.arrays.dynamic_slicing import dynamic_slice, dynamic_update_slice
from hlofront.primitives.arrays.shaping import reshape
from hlofront.primitives.arrays.slicing import concatenate, index_in_dim, pad, slice_in_dim
from hlofront.primitives.elementwise import compare, elementwise
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.elementwise.weak_types import weak_tangents
from hlofront.primitives.linalg import factoring, spectral
from hlofront.primitives.linalg.matrices import (
    adjoint,
    along_columns,
    along_rows,
    broadcast_matrices,
    conjugate,
    identity,
    identity_like,
    lower_triangle,
    product,
    real_dtype,
    upper_triangle,
)
from hlofront.runtime.dispatch.operation import operation
from hlofront.scipy.linalg.systems import factor


@operation(static_argnames=("lower",))
def _cholesky(a: ArrayLike, *, lower: bool) -> Array:
    a = matrices("jax.scipy.linalg.cholesky", a)
    triangle = factor(a, lower)
    return triangle if lower else adjoint(triangle)


def cholesky(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Array:
    """Compute the triangular factor of positive definite matrices: U with `a = U^H U`.

    Args:
      a: an array of shape (..., n, n).
      lower: whether to read the lower triangle, and to return L with `a = L L^H`.
      overwrite_a: has no effect, as no array is overwritten.
      check_finite: has no effect, as elements are not checked.

    Example:
      >>> jax.scipy.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]])).round(3)
      Array([[2., 1.],
             [0., 2.]], dtype=float32)
    """
    return _cholesky(a, lower=bool(lower))


@operation(static_argnames=("full_matrices", "compute_uv"))
def _svd(
    a: ArrayLike, *, full_matrices: bool, compute_uv: bool
) -> Array | tuple[Array, Array, Array]:
    (a,) = inexact("jax.scipy.linalg.svd", a)
    return spectral.svd(a, full_matrices=full_matrices, compute_uv=compute_uv)


def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> tuple[Array, Array, Array] | Array:
    """Compute singular values and vectors: (U, s, Vh), or only s. See `numpy.linalg.svd`.

    Args:
      a: an array of shape (..., m, n).
      full_matrices: whether U and Vh are square.
      compute_uv: whether to return U and Vh.
      overwrite_a: has no effect, as no array is overwritten.
      check_finite: has no effect, as elements are not checked.
      lapack_driver: "gesdd" or "gesvd", which are equivalent here. See `lax.linalg.svd` for
        algorithms.

    Raises:
      ValueError: if `lapack_driver` is none of these names.
    """
    check_choice("svd", "lapack_driver", lapack_driver, ("gesdd", "gesvd"))
    return _svd(a, full_matrices=bool(full_matrices), compute_uv=bool(compute_uv))


@operation(static_argnames=("lower", "eigvals_only"))
def _eigh(a: ArrayLike, *, lower: bool, eigvals_only: bool) -> Array | tuple[Array, Array]:
    (a,) = inexact("jax.scipy.linalg.eigh", a)
    vectors, values = spectral.eigh(a, lower=lower)
    return values if eigvals_only else (values, vectors)


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
) -> tuple[Array, Array] | Array:
    """Compute the eigenvalues, real and ascending, and eigenvectors of Hermitian matrices.

    Args:
      a: an array of shape (..., n, n).
      b: must be None.
      lower: has no effect: `(a + a^H) / 2` is decomposed.
      eigvals_only: whether to return only eigenvalues.
      overwrite_a: has no effect, as no array is overwritten.
      overwrite_b: has no effect, as no array is overwritten.
      turbo: has no effect.
      eigvals: must be None.
      type: must be 1.
      check_finite: has no effect, as elements are not checked.

    Raises:
      NotImplementedError: for generalized problems, and for a part of the eigenvalues.
    """
    for name, is_other in (("b=None", b is not None), ("type=1", type != 1)):
        if is_other:
            raise NotImplementedError(  # JAX raises this class.
                f"Only the {name} case of eigh is implemented."
            )
    if eigvals is not None:
        raise NotImplementedError(  # JAX raises this class.
            "Only the eigvals=None case of eigh is implemented: slice the results."
        )
    return _eigh(a, lower=bool(lower), eigvals_only=bool(eigvals_only))


@operation(static_argnames=("output",))
def schur(a: ArrayLike, output: str = "real") -> list[Array]:
    """Compute the Schur decomposition `a = Z T Z^H` of a square matrix.

    Args:
      a: an array of shape (..., n, n).
      output: "real", where T of real matrices has blocks of two rows, or "complex", where it is
        triangular.

    Returns:
      [T, Z].

    Raises:
      ValueError: if there is no such output, or a matrix is not square.
    """
    check_choice("schur", "output", output, ("real", "complex"))
    (a,) = inexact("jax.scipy.linalg.schur", a)
    if output == "complex":
        (a,) = promote_dtypes_complex(a)
    return spectral.schur(a)


@operation(static_argnames=("permute_l",))
def _lu(a: ArrayLike, *, permute_l: bool) -> tuple[Array, Array] | tuple[Array, Array, Array]:
    a = matrices("jax.scipy.linalg.lu", a)
    aval = typeof(a)
    m, n = aval.shape[-2:]
    k = min(m, n)
    batch = aval.ndim - 2
    factors, _, order = factoring.lu(a)
    square = (*aval.shape[:-1], m)
    # Row i of a is row j of the product of the factors where order[j] = i.
    rows = creation.broadcasted_iota(int32, square, batch)
    permutation = convert(
        compare.eq(along_rows(order, square), rows), real_dtype(aval.dtype), False
    )
    lower = slice_in_dim(lower_triangle(factors, -1), 0, k, axis=batch + 1)
    ones = identity(aval.dtype, typeof(lower).shape[-2:])
    lower = elementwise.add(lower, broadcast_matrices(ones, typeof(lower).shape))
    upper = weak_tangents(upper_triangle(slice_in_dim(factors, 0, k, axis=batch)))
    if permute_l:
        return product(convert(permutation, aval.dtype, False), lower), upper
    return permutation, lower, upper


def lu(
    a: ArrayLike, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, Array, Array] | tuple[Array, Array]:
    """Compute the LU decomposition of matrices, `a = P L U`.

    Args:
      a: an array of shape (..., m, n).
      permute_l: whether to return (P L, U).
      overwrite_a: has no effect, as no array is overwritten.
      check_finite: has no effect, as elements are not checked.

    Returns:
      (P, L, U).

    Example:
      >>> p, l, u = jax.scipy.linalg.lu(jnp.array([[0.0, 1.0], [2.0, 3.0]]))
      >>> p.round(3)
      Array([[0., 1.],
             [1., 0.]], dtype=float32)
    """
    return _lu(a, permute_l=bool(permute_l))


# ---- QR ------------------------------------------------------------------------------------------


@operation(static_argnames=("mode", "pivoting"))
def _qr(a: ArrayLike, *, mode: str, pivoting: bool) -> tuple[Array, ...]:
    check_choice("qr", "mode", mode, ("full", "r", "economic"))
    (a,) = inexact("jax.scipy.linalg.qr", a)
    results = factoring.qr(a, pivoting=pivoting, full_matrices=mode != "economic")
    return tuple(results[1:]) if mode == "r" else tuple(results)


def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: object = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> tuple[Array, ...]:
    """Compute the QR decomposition of matrices, `a = Q R`.

    Args:
      a: an array of shape (..., m, n).
      overwrite_a: has no effect, as no array is overwritten.
      lwork: has no effect.
      mode: "full" for a square Q, "economic" for min(m, n) columns, "r" for R only.
      pivoting: whether columns are exchanged, so that the diagonal of R descends.
      check_finite: has no effect, as elements are not checked.

    Returns:
      (Q, R), or (R,); with pivoting the order of columns comes last.

    Raises:
      ValueError: if there is no such mode.
    """
    return _qr(a, mode=mode, pivoting=bool(pivoting))


@operation(static_argnames=("mode", "pivoting", "conjugate"))
def _qr_multiply(
    a: ArrayLike, c: ArrayLike, *, mode: str, pivoting: bool, conjugate: bool
) -> tuple[Array, ...]:
    check_choice("qr_multiply", "mode", mode, ("right", "left"))
    a, c = inexact("jax.scipy.linalg.qr_multiply", a, c)
    q, r, *columns = factoring.qr(a, pivoting=pivoting, full_matrices=False)
    if conjugate:
        q = conjugated(q)
    is_vector = typeof(c).ndim == 1
    size = typeof(c).size
    left, shape = mode == "left", typeof(q).shape
    if is_vector:
        c = reshape(c, (size, 1) if left else (1, size))
    other_shape = typeof(c).shape
    if (other_shape[-2] != shape[-1]) if left else (other_shape[-1] != shape[-2]):
        raise ValueError(
            f"Array shapes are not compatible for {'Q @ c' if left else 'c @ Q'} operation: Q has "
            f"shape {shape} and c {other_shape}."
        )
    result = product(q, c) if left else product(c, q)
    if is_vector:
        result = reshape(result, (typeof(result).size,))
    return (result, r, *columns)


conjugated = conjugate


def qr_multiply(
    a: ArrayLike,
    c: ArrayLike,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple[Array, ...]:
    """Multiply the factor Q of `a = Q R`, of min(m, n) columns, by a matrix or vector.

    Args:
      a: an array of shape (m, n).
      c: a matrix or vector.
      mode: "right" for `c Q`, "left" for `Q c`.
      pivoting: whether columns of `a` are exchanged.
      conjugate: whether Q is conjugated.
      overwrite_a: has no effect, as no array is overwritten.
      overwrite_c: has no effect, as no array is overwritten.

    Returns:
      (product, R); with pivoting also the order of columns.

    Raises:
      ValueError: if there is no such mode, or sizes do not match.
    """
    return _qr_multiply(a, c, mode=mode, pivoting=bool(pivoting), conjugate=bool(conjugate))


# ---- polar, Hessenberg, Schur forms --------------------------------------------------------------


@operation(static_argnames=("side", "method", "eps", "max_iterations"))
def polar(
    a: ArrayLike,
    side: str = "right",
    *,
    method: str = "qdwh",
    eps: float | None = None,
    max_iterations: int | None = None,
) -> tuple[Array, Array]:
    """Compute the polar decomposition: a unitary and a Hermitian positive semidefinite factor.

    Args:
      a: an array of shape (..., m, n).
      side: "right" for `a = u p`, "left" for `a = p u`.
      method: "qdwh", an iteration; or "svd".
      eps: the precision of the iteration.
      max_iterations: the greatest number of steps of the iteration.

    Returns:
      (u, p).

    Raises:
      ValueError: if there is no such side or method, or `a` has fewer than two axes.
      NotImplementedError: if the method is "qdwh", and p would be larger than u.
    """
    (a,) = inexact("jax.scipy.linalg.polar", a)
    if typeof(a).ndim < 2:
        raise ValueError(
            f"polar requires matrices of shape (..., m, n), got shape {typeof(a).shape}"
        )
    m, n = typeof(a).shape[-2:]
    if not typeof(a).size:
        a = convert(a, typeof(a).dtype, False)
    check_choice("polar", "side", side, ("right", "left"))
    if method == "qdwh":
        if (m < n) if side == "right" else (m >= n):
            raise NotImplementedError(  # JAX raises this class.
                f"polar: method='qdwh' is available for side='right' where m >= n and for "
                f"side='left' where m < n; got shape {(m, n)} with side={side!r}. Use method='svd'."
            )
        tall = a if side == "right" else adjoint(a)

        def parts(x: Array) -> tuple[Array, Array]:
            unitary, positive, *_ = qdwh(x, max_iterations=max_iterations, eps=eps)
            return unitary, positive

        unitary, positive = vectorize(parts, signature="(m,n)->(m,n),(n,n)")(tall)
        return (unitary if side == "right" else adjoint(unitary)), positive
    check_choice("polar", "method", method, ("qdwh", "svd"))
    left, values, right = spectral.svd(a, full_matrices=False)
    values = convert(values, typeof(a).dtype, False)
    if side == "right":
        scaled = elementwise.mul(right, along_columns(values, typeof(right).shape))
        positive = product(adjoint(right), scaled)
    else:
        scaled = elementwise.mul(left, along_rows(values, typeof(left).shape))
        positive = product(scaled, adjoint(left))
    return product(left, right), positive


@operation(static_argnames=("calc_q",))
def _hessenberg(a: ArrayLike, *, calc_q: bool) -> Array | tuple[Array, Array]:
    (a,) = inexact("jax.scipy.linalg.hessenberg", a)
    aval = typeof(a)
    if aval.ndim >= 2 and not aval.size and aval.shape[-1] == aval.shape[-2]:
        return (a, a) if calc_q else a
    reduced, taus = spectral.hessenberg(a)
    form = upper_triangle(reduced, -1)
    if not calc_q:
        return form
    last = aval.ndim - 1
    n = aval.shape[-1]
    inner = slice_in_dim(slice_in_dim(reduced, 1, n, axis=last - 1), 0, n - 1, axis=last)
    rotation = factoring.householder_product(inner, taus)
    rows = [(0, 0, 0)] * (last - 1) + [(1, 0, 0)] * 2
    corner = np.zeros((n, n), aval.dtype)
    corner[0, 0] = 1
    rotation = pad(rotation, host_number(0, aval.dtype), rows)
    return form, elementwise.add(rotation, broadcast_matrices(corner, typeof(rotation).shape))


def hessenberg(
    a: ArrayLike, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Array | tuple[Array, Array]:
    """Compute the Hessenberg form H, zero below the first subdiagonal: `a = Q H Q^H`.

    Args:
      a: an array of shape (..., n, n).
      calc_q: whether to return (H, Q).
      overwrite_a: has no effect, as no array is overwritten.
      check_finite: has no effect, as elements are not checked.

    Raises:
      ValueError: if a matrix is not square.
    """
    return _hessenberg(a, calc_q=bool(calc_q))


@operation
def _rsf2csf(T: ArrayLike, Z: ArrayLike) -> tuple[Array, Array]:
    (T, Z), avals = operands("jax.scipy.linalg.rsf2csf", (T, Z))
    for name, aval in zip("TZ", avals, strict=True):
        if aval.ndim < 2 or aval.shape[-1] != aval.shape[-2]:
            raise ValueError(f"Input '{name}' must be square: got shape {aval.shape}")
    if avals[0].shape[-1] != avals[1].shape[-1]:
        raise ValueError(
            f"Input array shapes must match: Z: {avals[1].shape} vs. T: {avals[0].shape}"
        )
    T, Z = promote_dtypes_complex(T, Z)
    weak = typeof(T).weak_type
    form, vectors = vectorize(_rsf2csf_of_one, signature="(n,n),(n,n)->(n,n),(n,n)")(T, Z)
    if not weak:
        return form, vectors
    return convert(form, typeof(form).dtype, weak), convert(vectors, typeof(vectors).dtype, weak)


def _rsf2csf_of_one(T: Array, Z: Array) -> tuple[Array, Array]:
    n = typeof(T).shape[0]
    if n < 2:
        return T, Z
    precision = float(finfo(typeof(T).dtype).eps)
    columns = creation.broadcasted_iota(int32, (2, n), 1)
    rows_of = creation.broadcasted_iota(int32, (n, n), 0)

    def step(count: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        T, Z = state
        m = elementwise.sub(np.int32(n - 1), convert(count, int32, False))
        before = elementwise.sub(m, np.int32(1))
        block = dynamic_slice(T, (before, before), (2, 2))
        a, c, d = _entries(block)
        sizes = elementwise.add(elementwise.abs(a), elementwise.abs(d))
        least = elementwise.mul(sizes, host_number(precision, typeof(sizes).dtype))
        needed = compare.gt(elementwise.abs(c), least)
        # A block that needs no rotation is replaced by one whose eigenvalues have derivatives.
        block = compare.select_n(needed, np.diag([1, 0]).astype(typeof(T).dtype), block)
        _, c, d = _entries(block)
        # This rotation maps the first eigenvector of the block to the first unit vector.
        values = spectral.eig(
            block, compute_left_eigenvectors=False, compute_right_eigenvectors=False
        )[0]
        first = elementwise.sub(index_in_dim(values, 0, 0, False), d)
        square = elementwise.add(_square(first), _square(c))
        length = convert(elementwise.sqrt(square), typeof(T).dtype, False)
        cosine, sine = elementwise.div(first, length), elementwise.div(c, length)
        turn = concatenate(
            [
                _row(elementwise.conj(cosine), sine),
                _row(elementwise.neg(sine), cosine),
            ],
            0,
        )
        turn = compare.select_n(needed, identity_like(turn), turn)
        rows = dynamic_slice(T, (before, np.int32(0)), (2, n))
        turned = product(turn, rows)
        turned = compare.select_n(compare.ge(columns, before), rows, turned)
        T = dynamic_update_slice(T, turned, (before, np.int32(0)))
        # A real Schur form is zero below its first subdiagonal: those elements are not changed.
        T = compare.select_n(compare.gt(rows_of, m), _turned_columns(T, turn, before), T)
        Z = _turned_columns(Z, turn, before)
        zero = creation.full((1, 1), 0, typeof(T).dtype)
        return dynamic_update_slice(T, zero, (m, before)), Z

    def _turned_columns(x: Array, turn: Array, before: Array) -> Array:
        part = dynamic_slice(x, (np.int32(0), before), (n, 2))
        return dynamic_update_slice(x, product(part, adjoint(turn)), (np.int32(0), before))

    return fori_loop(0, n - 1, step, (T, Z))


def _entries(block: Array) -> list[Array]:
    """Return the elements (0, 0), (1, 0) and (1, 1) of a 2 x 2 matrix."""
    rows = [index_in_dim(block, i, 0, False) for i in range(2)]
    return [index_in_dim(rows[i], j, 0, False) for i, j in ((0, 0), (1, 0), (1, 1))]


def _square(x: Array) -> Array:
    size = elementwise.abs(x)
    return elementwise.mul(size, size)


def _row(x: Array, y: Array) -> Array:
    return reshape(concatenate([reshape(x, (1,)), reshape(y, (1,))], 0), (1, 2))


def rsf2csf(T: ArrayLike, Z: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """Compute the complex Schur form, without blocks of two rows, from the real one.

    Args:
      T: an array of shape (..., n, n), as `schur` returns it: elements below its first subdiagonal
        are not read, and are returned unchanged.
      Z: an array of shape (..., n, n); leading axes are broadcast to those of T.
      check_finite: has no effect, as elements are not checked.

    Raises:
      ValueError: if the matrices are not square, or of different sizes.
    """
    return _rsf2csf(T, Z)
