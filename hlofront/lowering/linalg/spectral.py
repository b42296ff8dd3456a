"""Lowering rules of eigenvalues, singular values and intermediate forms, by LAPACK routines."""

from hlofront.base.dtypes import is_complex
from hlofront.base.typing import Array
from hlofront.bridge.mlir import Value
from hlofront.core.aval import ShapedArray
from hlofront.lowering.core import kernels
from hlofront.lowering.core.builder import Builder
from hlofront.lowering.core.kernels import LAPACK, Library, by_library, character
from hlofront.primitives.linalg import matrices
from hlofront.primitives.linalg import spectral as s

# The range (start, end) of eigenvalues or singular values to return; None for all.
Subset = tuple[int, int] | None


def zeros(build: Builder) -> list[Value]:
    """Return zeros with the avals of the equation's results."""
    return [build.full(0, aval) for aval in build.avals_out]


def refuse_part(build: Builder, subset: Subset, whole: int) -> None:
    """Raise NotImplementedError for a subset of the results, which the kernel cannot compute.

    Raises:
      NotImplementedError: if `subset` is not all of the `whole` results.
    """
    if subset is not None and subset != (0, whole):
        raise NotImplementedError(  # JAX raises this class.
            f"{build.primitive.name}: subset_by_index={subset} is not available on CPUs and "
            "GPUs, which find all: slice the results instead"
        )


@by_library(s.eigh_p, of=(LAPACK,))
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
    if algorithm not in (None, s.EighImplementation.QR):
        raise NotImplementedError(  # JAX raises this class.
            f"eigh: {algorithm} is not available on CPUs: they have EighImplementation.QR"
        )
    if not aval.size:
        return zeros(build)
    attributes = {"mode": character("V"), **library.triangle(lower)}
    return library.factors(build, "syevd", (x,), attributes, {0: 0})


@by_library(s.eig_p, of=(LAPACK,))
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
    (aval,), results = build.avals_in, build.avals_out
    if implementation not in (None, s.EigImplementation.LAPACK):
        raise ValueError(
            f"eig: only the implementation LAPACK is available on CPUs, got {implementation}"
        )
    if not aval.size:
        return zeros(build)
    value = results[0]
    vector = aval.update(dtype=value.dtype)
    attributes = {
        "compute_left": character("V" if compute_left_eigenvectors else "N"),
        "compute_right": character("V" if compute_right_eigenvectors else "N"),
    }
    part = value.update(dtype=matrices.real_dtype(value.dtype))
    values = [value] if is_complex(aval.dtype) else [part, part]
    declared = (*values, vector, vector, kernels.batch_info(aval))
    *parts, left, right, info = library(build, "geev", (x,), declared, attributes)
    if len(parts) == 2:
        parts = [build.op("stablehlo.complex", parts, value)]
    outputs = [*parts]
    if compute_left_eigenvectors:
        outputs.append(left)
    if compute_right_eigenvectors:
        outputs.append(right)
    return kernels.nan_where_failed(build, info, outputs, results)


_SVD_ROUTINES = {
    None: "gesdd",
    s.SvdAlgorithm.DEFAULT: "gesdd",
    s.SvdAlgorithm.DIVIDE_AND_CONQUER: "gesdd",
    s.SvdAlgorithm.QR: "gesvd",
}


@by_library(s.svd_p, of=(LAPACK,))
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
    (aval,), results = build.avals_in, build.avals_out
    batch = aval.ndim - 2
    m, n = aval.shape[batch:]
    refuse_part(build, subset_by_index, min(m, n))
    routine = _SVD_ROUTINES.get(algorithm)
    if routine is None:
        raise NotImplementedError(  # JAX raises this class.
            f"svd: {algorithm} is not available on CPUs: they have QR and DIVIDE_AND_CONQUER"
        )
    if not aval.size:
        return svd_of_nothing(build)
    k = min(m, n)
    if not compute_uv or full_matrices:
        left, right = (m, m), (n, n)
    else:
        left, right = (m, k), (k, n)
    mode = ("A" if full_matrices else "S") if compute_uv else "N"
    outer = aval.shape[:batch]
    vectors = [aval.update(shape=(*outer, *shape)) for shape in (left, right)]
    declared = (aval, results[0], *vectors, kernels.batch_info(aval))
    attributes = {"mode": character(mode)}
    _, *values, info = library(build, routine, (x,), declared, attributes, {0: 0})
    return kernels.nan_where_failed(build, info, values[: len(results)], results)


def svd_of_nothing(build: Builder) -> list[Value]:
    """Return the SVD of empty matrices: no singular values, and identity factors."""

    def factors() -> list[Array]:
        return [matrices.identity(aval.dtype, aval.shape) for aval in build.avals_out[1:]]

    return [zeros(build)[0], *build.by_tracing(factors, (), ())]


@by_library(s.schur_p, of=(LAPACK,))
def _(
    build: Builder,
    library: Library,
    x: Value,
    *,
    compute_schur_vectors: bool,
    sort_eig_vals: bool,
    select_callable: None,
) -> list[Value]:
    (aval,), results = build.avals_in, build.avals_out
    if sort_eig_vals or select_callable is not None:
        raise NotImplementedError(  # JAX raises this class.
            "schur: eigenvalues cannot be ordered: leave out sort_eig_vals and select_callable"
        )
    if not aval.size:
        return zeros(build)
    value = ShapedArray(aval.shape[:-1], aval.dtype)
    values = [value] if is_complex(aval.dtype) else [value, value]
    info_aval = kernels.batch_info(aval)
    attributes = {
        "mode": character("V" if compute_schur_vectors else "N"),
        "sort": character("N"),
    }
    declared = (aval, aval, *values, info_aval, info_aval)
    form, vectors, *_, info = library(build, "gees", (x,), declared, attributes, {0: 0})
    return kernels.nan_where_failed(build, info, [form, vectors][: len(results)], results)


@by_library(s.hessenberg_p, of=(LAPACK,))
def _(build: Builder, library: Library, a: Value) -> list[Value]:
    (aval,) = build.avals_in
    if not aval.size:
        return zeros(build)
    attributes = {"low": "1 : i32", "high": f"{aval.shape[-1]} : i32"}
    return library.factors(build, "gehrd", (a,), attributes, {0: 0})


@by_library(s.tridiagonal_p)
def _(build: Builder, library: Library, a: Value, *, lower: bool) -> list[Value]:
    if not build.avals_in[0].size:
        return zeros(build)
    return library.factors(build, "sytrd", (a,), library.triangle(lower), {0: 0})
