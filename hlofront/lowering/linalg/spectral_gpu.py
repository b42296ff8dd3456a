"""Lowering rules of eigenvalues and singular values by GPU kernels: cuSOLVER and hipSOLVER."""

import numpy as np

from hlofront.base.dtypes import issubdtype
from hlofront.base.elements import int32
from hlofront.base.typing import Array
from hlofront.bridge.kernels import cusolver_version
from hlofront.bridge.mlir import Value
from hlofront.core.aval import ShapedArray, typeof
from hlofront.lowering.core import kernels
from hlofront.lowering.core.builder import Builder
from hlofront.lowering.core.kernels import CUDA, GPUS, Library, by_library, flag
from hlofront.lowering.linalg.spectral import Subset, refuse_part, svd_of_nothing, zeros
from hlofront.primitives.arrays.creation import full_like, scalar_of
from hlofront.primitives.arrays.cumulative import cumsum
from hlofront.primitives.arrays.slicing import pad, slice_in_dim
from hlofront.primitives.elementwise.compare import eq, select_n
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.elementwise.elementwise import (
    bitwise_and,
    bitwise_not,
    complex,
    imag,
    neg,
)
from hlofront.primitives.linalg import matrices
from hlofront.primitives.linalg import spectral as s

# ---- Hermitian matrices --------------------------------------------------------------------------

# The kernel's numbers of the algorithms; with the first, the kernel chooses.
_EIGH_ALGORITHMS = {None: 0, s.EighImplementation.QR: 1, s.EighImplementation.JACOBI: 2}


@by_library(s.eigh_p, of=GPUS)
def _(
    build: Builder,
    library: Library,
    x: Value,
    *,
    lower: bool,
    sort_eigenvalues: bool,
    subset_by_index: Subset,
    algorithm: s.EighImplementation | None,
) -> list[Value]:
    (aval,) = build.avals_in
    refuse_part(build, subset_by_index, aval.shape[-1])
    if algorithm not in _EIGH_ALGORITHMS:
        raise NotImplementedError(  # JAX raises this class.
            f"eigh: {algorithm} is for TPUs only: GPUs have EighImplementation.QR and JACOBI"
        )
    if not aval.size:
        return zeros(build)
    attributes = {"algorithm": f"{_EIGH_ALGORITHMS[algorithm]} : ui8", "lower": flag(lower)}
    return library.factors(build, "syevd", (x,), attributes, {0: 0})


# ---- general matrices ----------------------------------------------------------------------------

# The first version of cuSOLVER that computes eigenvalues of general matrices.
_CUSOLVER_OF_EIG = 11701
# Whether the hybrid kernel uses MAGMA instead of LAPACK on the host.
_MAGMA = {
    None: None,
    s.EigImplementation.LAPACK: False,
    s.EigImplementation.MAGMA: True,
}


@by_library(s.eig_p, of=GPUS)
def _(
    build: Builder,
    library: Library,
    x: Value,
    *,
    compute_left_eigenvectors: bool,
    compute_right_eigenvectors: bool,
    enable_eigvec_derivs: bool,
    implementation: s.EigImplementation | None,
) -> list[Value]:
    (aval,) = build.avals_in
    has_it = library is CUDA and cusolver_version() >= _CUSOLVER_OF_EIG
    if implementation is s.EigImplementation.CUSOLVER:
        if not has_it:
            raise RuntimeError(
                "eig: this implementation is that of cuSOLVER from 11.7.1 on, and the packages for "
                f"{library.platform} that are installed have {cusolver_version() or 'none'}: omit "
                "implementation, or install jax-cuda13-plugin"
            )
        if compute_left_eigenvectors:
            raise NotImplementedError(  # JAX raises this class.
                "eig: cuSOLVER does not compute left eigenvectors: omit implementation, or "
                "compute the right ones of the adjoint matrix"
            )
    if not aval.size:
        return zeros(build)
    library.check(build, aval.dtype)
    by_solver = implementation in (None, s.EigImplementation.CUSOLVER)
    if by_solver and has_it and not compute_left_eigenvectors:
        return _eig_by_solver(build, library, x, compute_right_eigenvectors)
    return _eig_on_host(
        build,
        library,
        x,
        left=compute_left_eigenvectors,
        right=compute_right_eigenvectors,
        magma=kernels.magma(_MAGMA[implementation]),
    )


def _eig_by_solver(build: Builder, library: Library, x: Value, right: bool) -> list[Value]:
    (aval,), results = build.avals_in, build.avals_out
    attributes = {"left": flag(False), "right": flag(right)}
    declared = (aval, results[0], aval, aval, kernels.batch_info(aval))
    _, values, _, vectors, info = library(build, "geev", (x,), declared, attributes)
    outputs = [values]
    if right:
        if not issubdtype(aval.dtype, np.complexfloating):
            (vectors,) = build.by_tracing(_from_pairs, (values, vectors), (results[0], aval))
        outputs.append(vectors)
    return kernels.nan_where_failed(build, info, outputs, results)


def _from_pairs(values: Array, vectors: Array) -> Array:
    """Return complex eigenvectors of real matrices from LAPACK's packed pairs, u + iv and u - iv.

    The real and imaginary parts are two consecutive columns.
    """
    shape = typeof(vectors).shape
    axis = len(shape) - 1
    imaginary = imag(values)
    paired = bitwise_not(eq(imaginary, full_like(imaginary, 0)))
    # Conjugate pairs are consecutive, so columns of pairs are alternately first and second ones.
    number = cumsum(convert(paired, int32, False), axis=axis - 1)
    even = eq(bitwise_and(number, full_like(number, 1)), full_like(number, 0))
    paired, even = (matrices.along_rows(which, shape) for which in (paired, even))
    rows = [[(0, 0, 0)] * (axis) + [edge] for edge in ((-1, 1, 0), (1, -1, 0))]
    zero = scalar_of(0, typeof(vectors).dtype)
    following, previous = (pad(vectors, zero, row) for row in rows)
    is_second = bitwise_and(paired, even)
    real = select_n(is_second, vectors, previous)
    imaginary = select_n(is_second, following, neg(vectors))
    return complex(real, select_n(paired, full_like(imaginary, 0), imaginary))


def _eig_on_host(
    build: Builder, library: Library, x: Value, left: bool, right: bool, magma: str
) -> list[Value]:
    (aval,), results = build.avals_in, build.avals_out
    value = results[0]
    is_complex = issubdtype(aval.dtype, np.complexfloating)
    part = value.update(dtype=matrices.real_dtype(value.dtype))
    values = [value] if is_complex else [part, part]
    vector = aval.update(dtype=value.dtype)
    routine = "eig_comp" if is_complex else "eig_real"
    declared = (*values, vector, vector, kernels.batch_info(aval))
    attributes = {"left": flag(left), "right": flag(right), "magma": magma}
    *parts, u, v, info = library.on_host(build, routine, (x,), declared, attributes)
    if len(parts) == 2:
        parts = [build.op("stablehlo.complex", parts, value)]
    outputs = [*parts, *[u] * left, *[v] * right]
    return kernels.nan_where_failed(build, info, outputs, results)


# ---- singular values -----------------------------------------------------------------------------

# The sizes up to which Jacobi rotations are the default.
_JACOBI_UP_TO = 1024
# The Jacobi kernel returns square factors if a side is at most this.
_SQUARE_UP_TO = 32


@by_library(s.svd_p, of=GPUS)
def _(
    build: Builder,
    library: Library,
    x: Value,
    *,
    full_matrices: bool,
    compute_uv: bool,
    subset_by_index: Subset,
    algorithm: s.SvdAlgorithm | None,
) -> list[Value]:
    (aval,) = build.avals_in
    m, n = aval.shape[-2:]
    refuse_part(build, subset_by_index, min(m, n))
    way: s.SvdAlgorithm | None = algorithm
    if way in (None, s.SvdAlgorithm.DEFAULT):
        is_small = max(m, n) <= _JACOBI_UP_TO
        way = s.SvdAlgorithm.JACOBI if is_small else s.SvdAlgorithm.QR
    if way is s.SvdAlgorithm.DIVIDE_AND_CONQUER and library is CUDA:
        raise NotImplementedError(  # JAX raises this class.
            f"svd: {way} is for CPUs and AMD's GPUs: NVIDIA's have QR, JACOBI and POLAR"
        )
    if not aval.size:
        return svd_of_nothing(build)
    if way is s.SvdAlgorithm.JACOBI:
        square = full_matrices or min(m, n) <= _SQUARE_UP_TO
        return _svd_by_rotations(build, library, "gesvdj", x, square, compute_uv)
    if way is s.SvdAlgorithm.POLAR:
        return _svd_by_rotations(build, library, "gesvdp", x, full_matrices, compute_uv)
    routine = "gesvd" if way is s.SvdAlgorithm.QR else "gesdd"
    return _svd_as_lapack(build, library, routine, x, full_matrices, compute_uv)


def _svd_by_rotations(
    build: Builder, library: Library, routine: str, x: Value, square: bool, compute_uv: bool
) -> list[Value]:
    """Emit a Jacobi SVD kernel, which returns v rather than its adjoint."""
    (aval,), results = build.avals_in, build.avals_out
    *outer, m, n = aval.shape
    k = min(m, n)
    left = aval.update(shape=(*outer, m, m if square else k))
    right = aval.update(shape=(*outer, n, n if square else k))
    declared = (aval, results[0], left, right, kernels.batch_info(aval))
    attributes = {"compute_uv": flag(compute_uv), "full_matrices": flag(square)}
    _, values, u, v, info = library(build, routine, (x,), declared, attributes, {0: 0})
    outputs = [values]
    if compute_uv:
        columns, rows = results[1].shape[-1], results[2].shape[-2]

        def factors(u: Array, v: Array) -> list[Array]:
            vh, axis = matrices.adjoint(v), len(outer)
            if left.shape[-1] != columns:
                u = slice_in_dim(u, 0, columns, axis=axis + 1)
            if right.shape[-1] != rows:
                vh = slice_in_dim(vh, 0, rows, axis=axis)
            return [u, vh]

        outputs += build.by_tracing(factors, (u, v), (left, right))
    return kernels.nan_where_failed(build, info, outputs, results)


def _svd_as_lapack(
    build: Builder, library: Library, routine: str, x: Value, full_matrices: bool, compute_uv: bool
) -> list[Value]:
    """Emit a cuSOLVER SVD kernel, and return the results of LAPACK's routine."""
    (aval,), results = build.avals_in, build.avals_out
    m, n = aval.shape[-2:]
    # cuSOLVER's kernel does not accept wide matrices, but row-major matrices are their transposes
    # in column-major order. The factors are then exchanged.
    transposed = m < n and routine == "gesvd"
    vectors = list(results[1:]) or [ShapedArray((), aval.dtype)] * 2
    if transposed:
        vectors.reverse()
    declared = (aval, results[0], *vectors, kernels.batch_info(aval))
    attributes = {
        "compute_uv": flag(compute_uv),
        "full_matrices": flag(full_matrices),
        "transposed": flag(transposed),
    }
    _, values, *vectors, info = library(
        build, routine, (x,), declared, attributes, {0: 0}, by_rows=transposed
    )
    if transposed:
        vectors.reverse()
    outputs = [values, *vectors][: len(results)]
    return kernels.nan_where_failed(build, info, outputs, results)
