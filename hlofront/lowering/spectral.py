"""Eigenvalues, singular values and the forms on the way to them, by LAPACK's routines."""

from typing import Any

import numpy as np

from hlofront.base.dtypes import issubdtype
from hlofront.core.aval import ShapedArray
from hlofront.core.rules import lower
from hlofront.lowering import kernels
from hlofront.lowering.kernels import character
from hlofront.primitives import matrices
from hlofront.primitives import spectral as s


def _is_complex(aval: ShapedArray) -> bool:
    return issubdtype(aval.dtype, np.complexfloating)


def _zeros(build: Any) -> list[Any]:
    return [build.full(0, aval) for aval in build.avals_out]


def _refuse_part(build: Any, subset: Any, whole: int) -> None:
    if subset is not None and subset != (0, whole):
        raise NotImplementedError(  # the class that JAX raises
            f"{build.equation.primitive.name}: subset_by_index={subset} is not there for CPUs, "
            "which find all: slice the results instead"
        )


@lower(s.eigh_p)
def _(build, x, *, lower, sort_eigenvalues, subset_by_index, algorithm):
    (aval,), results = build.avals_in, build.avals_out
    _refuse_part(build, subset_by_index, aval.shape[-1])
    if algorithm not in (None, s.EighImplementation.QR):
        raise NotImplementedError(  # the class that JAX raises
            f"eigh: {algorithm} is not there for CPUs: they have EighImplementation.QR"
        )
    if not aval.size:
        return _zeros(build)
    batch = aval.ndim - 2
    letter = kernels.letter(build, aval.dtype)
    routine = f"{letter}{'heevd' if _is_complex(aval) else 'syevd'}"
    attributes = {"mode": character("V"), "uplo": character("L" if lower else "U")}
    *found, info = kernels.call(
        *(build, routine, (x,), (aval,), (*results, kernels.batch_info(aval, batch)), batch),
        *(attributes, {0: 0}),
    )
    return kernels.nan_where_failed(build, info, found, results)


@lower(s.eig_p)
def _(
    build,
    x,
    *,
    compute_left_eigenvectors,
    compute_right_eigenvectors,
    enable_eigvec_derivs,
    implementation,
):
    (aval,), results = build.avals_in, build.avals_out
    if implementation not in (None, s.EigImplementation.LAPACK):
        raise ValueError(
            f"eig: only the implementation LAPACK is there for CPUs, got {implementation}"
        )
    letter = kernels.letter(build, aval.dtype)
    if not aval.size:
        return _zeros(build)
    batch = aval.ndim - 2
    value = results[0]
    vector = aval.update(dtype=value.dtype)
    attributes = {
        "compute_left": character("V" if compute_left_eigenvectors else "N"),
        "compute_right": character("V" if compute_right_eigenvectors else "N"),
    }
    part = value.update(dtype=matrices.real_dtype(value.dtype))
    values = [value] if _is_complex(aval) else [part, part]
    *parts, left, right, info = kernels.call(
        *(build, f"{letter}geev", (x,), (aval,)),
        (*values, vector, vector, kernels.batch_info(aval, batch)),
        *(batch, attributes),
    )
    if len(parts) == 2:
        parts = [build.op("stablehlo.complex", parts, value)]
    wanted = [*parts]
    if compute_left_eigenvectors:
        wanted.append(left)
    if compute_right_eigenvectors:
        wanted.append(right)
    return kernels.nan_where_failed(build, info, wanted, results)


_SVD_ROUTINES = {
    None: "gesdd",
    s.SvdAlgorithm.DEFAULT: "gesdd",
    s.SvdAlgorithm.DIVIDE_AND_CONQUER: "gesdd",
    s.SvdAlgorithm.QR: "gesvd",
}


@lower(s.svd_p)
def _(build, x, *, full_matrices, compute_uv, subset_by_index, algorithm):
    (aval,), results = build.avals_in, build.avals_out
    batch = aval.ndim - 2
    m, n = aval.shape[batch:]
    _refuse_part(build, subset_by_index, min(m, n))
    routine = _SVD_ROUTINES.get(algorithm)
    if routine is None:
        raise NotImplementedError(  # the class that JAX raises
            f"svd: {algorithm} is not there for CPUs: they have QR and DIVIDE_AND_CONQUER"
        )
    letter = kernels.letter(build, aval.dtype)
    if not aval.size:
        return [_zeros(build)[0], *[_identity(build, result) for result in results[1:]]]
    outer = aval.shape[:batch]
    k = min(m, n)
    if not compute_uv or full_matrices:
        left, right = (m, m), (n, n)
    else:
        left, right = (m, k), (k, n)
    mode = ("A" if full_matrices else "S") if compute_uv else "N"
    declared = (
        aval,
        results[0],
        aval.update(shape=(*outer, *left)),
        aval.update(shape=(*outer, *right)),
        kernels.batch_info(aval, batch),
    )
    attributes = {"mode": character(mode)}
    _, *found, info = kernels.call(
        build, f"{letter}{routine}", (x,), (aval,), declared, batch, attributes, {0: 0}
    )
    return kernels.nan_where_failed(build, info, found[: len(results)], results)


def _identity(build: Any, aval: ShapedArray) -> Any:
    return build.by_tracing(lambda: matrices.identity(aval.dtype, aval.shape), (), ())[0]


@lower(s.schur_p)
def _(build, x, *, compute_schur_vectors, sort_eig_vals, select_callable):
    (aval,), results = build.avals_in, build.avals_out
    if sort_eig_vals or select_callable is not None:
        raise NotImplementedError(  # the class that JAX raises
            "schur: eigenvalues cannot be ordered: leave sort_eig_vals and select_callable away"
        )
    letter = kernels.letter(build, aval.dtype)
    if not aval.size:
        return _zeros(build)
    batch = aval.ndim - 2
    value = ShapedArray(aval.shape[:-1], aval.dtype)
    values = [value] if _is_complex(aval) else [value, value]
    info_aval = kernels.batch_info(aval, batch)
    attributes = {
        "mode": character("V" if compute_schur_vectors else "N"),
        "sort": character("N"),
    }
    form, vectors, *_, info = kernels.call(
        *(build, f"{letter}gees", (x,), (aval,)),
        (aval, aval, *values, info_aval, info_aval),
        *(batch, attributes, {0: 0}),
    )
    return kernels.nan_where_failed(build, info, [form, vectors][: len(results)], results)


@lower(s.hessenberg_p)
def _(build, a):
    (aval,), results = build.avals_in, build.avals_out
    letter = kernels.letter(build, aval.dtype)
    if not aval.size:
        return _zeros(build)
    batch = aval.ndim - 2
    attributes = {"low": "1 : i32", "high": f"{aval.shape[-1]} : i32"}
    *found, info = kernels.call(
        *(build, f"{letter}gehrd", (a,), (aval,), (*results, kernels.batch_info(aval, batch))),
        *(batch, attributes, {0: 0}),
    )
    return kernels.nan_where_failed(build, info, found, results)


@lower(s.tridiagonal_p)
def _(build, a, *, lower):
    (aval,), results = build.avals_in, build.avals_out
    letter = kernels.letter(build, aval.dtype)
    if not aval.size:
        return _zeros(build)
    batch = aval.ndim - 2
    routine = f"{letter}{'hetrd' if _is_complex(aval) else 'sytrd'}"
    attributes = {"uplo": character("L" if lower else "U")}
    *found, info = kernels.call(
        *(build, routine, (a,), (aval,), (*results, kernels.batch_info(aval, batch))),
        *(batch, attributes, {0: 0}),
    )
    return kernels.nan_where_failed(build, info, found, results)
