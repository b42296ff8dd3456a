"""Lowering rules of eigenvalues and singular values on TPUs: by XLA, or jaxprs for large ones."""

import math
from collections.abc import Callable
from typing import Any

from hlofront.base.elements import float32, int32
from hlofront.base.typing import Array, ArrayLike
from hlofront.bridge.mlir import Value
from hlofront.core.aval import typeof
from hlofront.core.rules import lower
from hlofront.core.trace import process
from hlofront.higher_order.control_flow.mapping import map as one_by_one
from hlofront.higher_order.polar import qdwh
from hlofront.lowering.core import kernels
from hlofront.lowering.core.builder import Builder, in_function
from hlofront.lowering.linalg.spectral import Subset, svd_of_nothing, zeros
from hlofront.lowering.linalg.spectral_division import eigh_by_division
from hlofront.primitives.arrays.creation import broadcasted_iota, full_like
from hlofront.primitives.arrays.shaping import reshape, rev
from hlofront.primitives.arrays.slicing import concatenate, slice_in_dim
from hlofront.primitives.arrays.sorting import sort
from hlofront.primitives.elementwise.compare import eq, select_n
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.elementwise.elementwise import abs, add, div, max, mul
from hlofront.primitives.linalg import matrices
from hlofront.primitives.linalg import spectral as s
from hlofront.primitives.linalg.factoring import qr
from hlofront.transforms.vmap import vmap

# The largest matrices for which XLA's own algorithm, Jacobi rotations, is fast.
_ROTATED_UP_TO = 256


# ---- Hermitian matrices --------------------------------------------------------------------------


@lower(s.eigh_p, platform="tpu")
@in_function
def _(
    build: Builder,
    x: Value,
    *,
    lower: bool,
    sort_eigenvalues: bool,
    subset_by_index: Subset,
    algorithm: s.EighImplementation | None,
) -> list[Value]:
    (aval,), (_, values) = build.avals_in, build.avals_out
    if algorithm is s.EighImplementation.QR:
        raise NotImplementedError(  # JAX raises this class.
            "eigh: EighImplementation.QR is for CPUs and GPUs only: TPUs have JACOBI and QDWH"
        )
    if not aval.size:
        return zeros(build)
    # The indices of a subset are those of eigenvalues in ascending order.
    ordered = sort_eigenvalues or subset_by_index is not None
    if aval.shape[-1] > _ROTATED_UP_TO and algorithm is not s.EighImplementation.JACOBI:
        return build.by_tracing(_eigh, (x,), lower=lower, ordered=ordered, part=subset_by_index)
    whole = [aval, values.update(shape=aval.shape[:-1])]
    # The triangle to read, whether to sort, the maximum number of sweeps, and the tolerance.
    options = f"{int(lower)},{int(ordered)},100,1e-6"
    results = kernels.xla_call(build, "Eigh", (x,), whole, options)
    if subset_by_index is None:
        return results
    return build.by_tracing(_part, results, whole, part=subset_by_index)


def _part(vectors: Array, values: Array, *, part: tuple[int, int]) -> list[Array]:
    axis = typeof(values).ndim - 1
    return [slice_in_dim(vectors, *part, axis=axis + 1), slice_in_dim(values, *part, axis=axis)]


def _eigh(x: Array, *, lower: bool, ordered: bool, part: Subset) -> list[Array]:
    """Decompose larger matrices one at a time, since each is divided at different indices."""
    *outer, n, _ = typeof(x).shape
    dtype = typeof(x).dtype
    triangle = matrices.lower_triangle if lower else matrices.upper_triangle
    other = triangle(x, -1 if lower else 1)
    x = _widened(add(triangle(x), matrices.adjoint(other)))

    def of_one(x: Array) -> tuple[Array, Array]:
        return eigh_by_division(x, _ROTATED_UP_TO)

    if outer:
        vectors, values = one_by_one(of_one, reshape(x, (math.prod(outer), n, n)))
        vectors, values = reshape(vectors, (*outer, n, n)), reshape(values, (*outer, n))
    else:
        vectors, values = of_one(x)
    if ordered:
        axis = len(outer)
        positions = broadcasted_iota(int32, typeof(values).shape, axis)
        values, order = sort((values, positions), dimension=axis)
        vectors = matrices.swap(matrices.take_rows(matrices.swap(vectors), order))
    vectors = convert(vectors, dtype, False)
    values = convert(values, matrices.real_dtype(dtype), False)
    return [vectors, values] if part is None else _part(vectors, values, part=part)


def _widened(x: Array) -> Array:
    """Return 16-bit numbers as 32-bit ones: repeated division needs the digits."""
    return convert(x, float32, False) if typeof(x).dtype.itemsize < 4 else x


# ---- singular values -----------------------------------------------------------------------------


@lower(s.svd_p, platform="tpu")
@in_function
def _(
    build: Builder,
    x: Value,
    *,
    full_matrices: bool,
    compute_uv: bool,
    subset_by_index: Subset,
    algorithm: s.SvdAlgorithm | None,
) -> list[Value]:
    if algorithm not in (None, s.SvdAlgorithm.DEFAULT, s.SvdAlgorithm.POLAR):
        raise NotImplementedError(  # JAX raises this class.
            f"svd: {algorithm} is for other devices: TPUs have SvdAlgorithm.POLAR"
        )
    if not build.avals_in[0].size:
        return svd_of_nothing(build)
    return build.by_tracing(
        _svd, (x,), full=full_matrices, compute_uv=compute_uv, part=subset_by_index
    )


def _svd(x: Array, *, full: bool, compute_uv: bool, part: Subset) -> list[Array]:
    """Decompose by the polar decomposition and the eigenvalues of its Hermitian factor.

    Nakatsukasa & Higham, SIAM Journal on Scientific Computing 35(3), A1325-A1349 (2013), section 4.
    """
    m, n = typeof(x).shape[-2:]
    if m < n:
        values, *vectors = _svd(matrices.adjoint(x), full=full, compute_uv=compute_uv, part=part)
        return [values, *(matrices.adjoint(y) for y in reversed(vectors))]
    dtype, axis = typeof(x).dtype, typeof(x).ndim - 2
    x = _widened(x)
    q = None
    if m > n:
        q, x = qr(x, full_matrices=full and compute_uv)
        x = slice_in_dim(x, 0, n, axis=axis)
    unitary, hermitian = _each(axis, _polar)(x)
    whole = {"lower": True, "sort_eigenvalues": True, "subset_by_index": None, "algorithm": None}
    vectors, values = process(s.eigh_p, (hermitian,), whole)
    values = rev(max(values, full_like(values, 0)), (axis,))
    real = matrices.real_dtype(dtype)
    if not compute_uv:
        values = convert(values, real, False)
        return [values if part is None else slice_in_dim(values, *part, axis=axis)]
    vectors = rev(vectors, (axis + 1,))
    left = _orthonormal(matrices.product(unitary, vectors))
    if part is not None:
        values = slice_in_dim(values, *part, axis=axis)
        left, vectors = (slice_in_dim(y, *part, axis=axis + 1) for y in (left, vectors))
    if q is not None:
        wide = matrices.product(slice_in_dim(q, 0, n, axis=axis + 1), left)
        if full:
            null_columns = slice_in_dim(q, n, m, axis=axis + 1)
            wide = concatenate([wide, null_columns], axis + 1)
        left = wide
    left, vectors = (convert(y, dtype, False) for y in (left, matrices.adjoint(vectors)))
    return [convert(values, real, False), left, vectors]


def _polar(x: ArrayLike) -> tuple[ArrayLike, ArrayLike]:
    """Return the unitary and the Hermitian factor of the polar decomposition of a matrix."""
    unitary, hermitian, *_ = qdwh(x)
    return unitary, hermitian


def _each(count: int, function: Callable[[Array], Any]) -> Callable[[Array], Any]:
    """Return a function mapped over `count` leading axes."""
    for _ in range(count):
        function = vmap(function)
    return function


def _orthonormal(x: Array) -> Array:
    """Return x with its columns made orthonormal."""
    q, r = qr(x, full_matrices=False)
    turn = matrices.diagonal(r)
    length = abs(turn)
    is_zero = eq(length, full_like(length, 0))
    safe = convert(select_n(is_zero, length, full_like(length, 1)), typeof(turn).dtype, False)
    turn = select_n(is_zero, div(turn, safe), full_like(turn, 1))
    return mul(q, matrices.along_rows(turn, typeof(q).shape))
