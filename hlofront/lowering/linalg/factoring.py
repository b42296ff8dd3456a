"""Lowering rules of factorizations: calls of LAPACK and cuSOLVER kernels, and of XLA's for TPUs."""

import numpy as np

from hlofront.base.elements import float32, float64, int32
from hlofront.base.typing import Array
from hlofront.bridge.mlir import Value
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.rules import lower
from hlofront.core.trace import process
from hlofront.lowering.core import kernels, types
from hlofront.lowering.core.builder import Builder, in_function
from hlofront.lowering.core.counted_loop import count_up
from hlofront.lowering.core.kernels import CUDA, GPUS, LAPACK, Library, by_library, flag
from hlofront.primitives.arrays.creation import broadcasted_iota, full_like
from hlofront.primitives.arrays.reducing import reduce_sum
from hlofront.primitives.arrays.shaping import broadcast_in_dim, expand_dims
from hlofront.primitives.arrays.slicing import pad, slice_in_dim
from hlofront.primitives.elementwise.compare import eq, gt, select_n
from hlofront.primitives.elementwise.elementwise import add, bitwise_and, div, mul, sign, sqrt, sub
from hlofront.primitives.linalg import factoring as f
from hlofront.primitives.linalg import matrices

# The dtypes of CUDA kernels that only support real numbers.
_OF_CUDA = (float32, float64)


def _zeros(build: Builder, aval: ShapedArray) -> Value:
    return build.full(0, aval)


# ---- Cholesky ------------------------------------------------------------------------------------


@by_library(f.cholesky_p)
def _(build: Builder, library: Library, x: Value) -> Value:
    if not build.avals_in[0].size:
        return x
    return library.factors(build, "potrf", (x,), library.triangle(True), {0: 0})[0]


@lower(f.cholesky_p)
def _(build: Builder, x: Value) -> Value:
    return build.op("stablehlo.cholesky", (x,), lower=types.boolean(True))


@lower(f.symmetric_product_p)
@in_function
def _symmetric_product(build: Builder, a: Value, c: Value, *, alpha: float, beta: float) -> Value:
    def total(a: Array, c: Array) -> Array:
        dtype = typeof(c).dtype
        first = matrices.product(a, matrices.swap(a))
        return add(mul(first, dtype.type(alpha)), mul(c, dtype.type(beta)))

    return build.by_tracing(total, (a, c))[0]


@lower(f.symmetric_product_p, platform="cuda")
def _(build: Builder, a: Value, c: Value, *, alpha: float, beta: float) -> Value:
    avals = _, result = build.avals_in
    if result.dtype not in _OF_CUDA or not avals[0].size:
        return _symmetric_product(build, a, c, alpha=alpha, beta=beta)
    factors = [build.constant(factor, result.dtype) for factor in (alpha, beta)]
    scalar = ShapedArray((), result.dtype)
    return kernels.call(
        build,
        f"{CUDA.solver}_syrk_ffi",
        (a, c, *factors),
        (result,),
        {"transpose": flag(False)},
        {0: 1},
        avals=(*avals, scalar, scalar),
        by_rows=True,
    )[0]


@lower(f.cholesky_update_p)
def _cholesky_update(build: Builder, r: Value, w: Value) -> Value:
    """Update a Cholesky factor by one rotation per row: Golub & Van Loan, section 6.5.4."""
    matrix, vector = build.avals_in
    n = matrix.shape[-1]

    def step(index: Array, r: Array, w: Array) -> list[Array]:
        ndim = typeof(r).ndim
        is_row = eq(broadcasted_iota(int32, typeof(r).shape, ndim - 2), index)
        row = reduce_sum(select_n(is_row, full_like(r, 0), r), (ndim - 2,))
        is_element = eq(broadcasted_iota(int32, typeof(w).shape, ndim - 2), index)

        def element(x: Array) -> Array:
            x = reduce_sum(select_n(is_element, full_like(x, 0), x), (ndim - 2,))
            return broadcast_in_dim(x, typeof(w).shape, range(ndim - 2))

        a, b = element(row), element(w)
        length = mul(sqrt(add(mul(a, a), mul(b, b))), _sign_or_one(a))
        # If both are zero, no rotation is needed.
        none = eq(length, full_like(length, 0))
        ones = full_like(length, 1)
        safe = select_n(none, length, ones)
        cosine = select_n(none, div(a, safe), ones)
        sine = div(b, safe)
        turned = add(mul(cosine, row), mul(sine, w))
        rest = sub(mul(cosine, w), mul(sine, row))
        turned = matrices.broadcast_matrices(expand_dims(turned, (ndim - 2,)), typeof(r).shape)
        return [add(index, np.int32(1)), select_n(is_row, r, turned), rest]

    result, _ = count_up(build, build.constant(0, int32), n, step, (r, w), (matrix, vector))
    return result


@lower(f.cholesky_update_p, platform="cuda")
def _(build: Builder, r: Value, w: Value) -> Value:
    avals = matrix, _ = build.avals_in
    # The kernel accepts a single matrix, not a batch.
    if matrix.dtype not in _OF_CUDA or matrix.ndim > 2 or not matrix.size:
        return _cholesky_update(build, r, w)
    target = f"{CUDA.own}_cholesky_update_ffi"
    return kernels.call(build, target, (r, w), avals, None, {0: 0, 1: 1}, by_rows=True)[0]


def _sign_or_one(x: Array) -> Array:
    return select_n(eq(x, full_like(x, 0)), sign(x), full_like(x, 1))


# ---- LU ------------------------------------------------------------------------------------------


@by_library(f.lu_p)
def _(build: Builder, library: Library, x: Value) -> list[Value]:
    (aval,) = build.avals_in
    matrix, pivot, permutation = build.avals_out
    if not aval.size:
        return _lu_of_nothing(build, x)
    results = (matrix, pivot, kernels.batch_info(aval))
    factors, pivots, info = library(build, "getrf", (x,), results, None, {0: 0})
    # LAPACK counts rows from 1.
    pivots = build.op("stablehlo.subtract", (pivots, build.full(1, pivot)), pivot)
    # A zero on the diagonal of U is not a failure.
    (factors,) = kernels.nan_where_failed(build, info, (factors,), (matrix,), least=True)
    size = permutation.shape[-1]
    (order,) = build.by_tracing(
        f.lu_pivots_to_permutation, (pivots,), (pivot,), permutation_size=size
    )
    return [factors, pivots, order]


def _lu_of_nothing(build: Builder, x: Value) -> list[Value]:
    _, pivot, permutation = build.avals_out
    (order,) = build.by_tracing(
        lambda: broadcasted_iota(int32, permutation.shape, permutation.ndim - 1), (), ()
    )
    return [x, _zeros(build, pivot), order]


@lower(f.lu_p, platform="tpu")
def _(build: Builder, x: Value) -> list[Value]:
    if not build.avals_in[0].size:
        return _lu_of_nothing(build, x)
    return kernels.xla_call(build, "LuDecomposition", (x,), build.avals_out, api_version=2)


@by_library(f.lu_pivots_to_permutation_p, of=GPUS)
def _(build: Builder, library: Library, pivots: Value, *, permutation_size: int) -> Value:
    (aval,), (result,) = build.avals_in, build.avals_out
    if not aval.size:
        return _permutation(build, pivots, aval, result)
    target = f"{library.own}_lu_pivots_to_permutation"
    return kernels.call(build, target, (pivots,), (result,), batch=aval.ndim - 1)[0]


@lower(f.lu_pivots_to_permutation_p)
@in_function
def _(build: Builder, pivots: Value, *, permutation_size: int) -> Value:
    return _permutation(build, pivots, build.avals_in[0], build.avals_out[0])


def _permutation(build: Builder, pivots: Value, pivot: ShapedArray, result: ShapedArray) -> Value:
    """Return the permutation of rows that results from the exchanges of `pivots`, in order."""
    axis = result.ndim - 1

    def start() -> Array:
        return broadcasted_iota(int32, result.shape, axis)

    (order,) = build.by_tracing(start, (), ())
    if not pivot.size:
        return order

    def step(i: Array, pivots: Array, order: Array) -> list[Array]:
        rows = start()

        def element(x: Array, where: Array) -> Array:
            total = reduce_sum(select_n(where, full_like(x, 0), x), (axis,))
            return broadcast_in_dim(total, result.shape, range(axis))

        steps = broadcasted_iota(int32, pivot.shape, axis)
        here = eq(rows, i)
        there = eq(rows, element(pivots, eq(steps, i)))
        mine, other = element(order, here), element(order, there)
        order = select_n(there, select_n(here, order, other), mine)
        return [add(i, np.int32(1)), pivots, order]

    _, order = count_up(
        build, build.constant(0, int32), pivot.shape[-1], step, (pivots, order), (pivot, result)
    )
    return order


# ---- QR ------------------------------------------------------------------------------------------


@by_library(f.geqrf_p)
def _(build: Builder, library: Library, a: Value) -> list[Value]:
    aval, scales = build.avals_out
    if not aval.size:
        return [a, _zeros(build, scales)]
    return library(build, "geqrf", (a,), (aval, scales), None, {0: 0})


@lower(f.geqrf_p, platform="tpu")
def _(build: Builder, a: Value) -> list[Value]:
    aval, scales = build.avals_out
    if not aval.size:
        return [a, _zeros(build, scales)]
    return kernels.xla_call(build, "Qr", (a,), (aval, scales))


@by_library(f.geqp3_p)
def _(
    build: Builder, library: Library, a: Value, jpvt: Value, *, use_magma: bool | None
) -> list[Value]:
    """Emit a QR factorization with pivoting: packed factors, order of columns, scales.

    Columns are numbered from 1, as in LAPACK.
    """
    aval, column, scales = results = build.avals_out
    if not aval.size:
        (order,) = build.by_tracing(
            lambda: add(broadcasted_iota(int32, column.shape, column.ndim - 1), np.int32(1)),
            (),
            (),
        )
        return [a, order, _zeros(build, scales)]
    aliases = {0: 0, 1: 1}
    if library is LAPACK:
        return library(build, "geqp3", (a, jpvt), results, None, aliases)
    # Use LAPACK on the host, or MAGMA if it is installed.
    attributes = {"magma": kernels.magma(use_magma)}
    return library.on_host(build, "geqp3", (a, jpvt), results, attributes, aliases)


@by_library(f.householder_product_p)
def _(build: Builder, library: Library, a: Value, taus: Value) -> Value:
    trivial = _trivial_product(build, a)
    if trivial is not None:
        return trivial
    return library(build, "orgqr", (a, taus), build.avals_in[:1], None, {0: 0})[0]


@lower(f.householder_product_p, platform="tpu")
def _(build: Builder, a: Value, taus: Value) -> Value:
    trivial = _trivial_product(build, a)
    if trivial is not None:
        return trivial
    target = "ProductOfElementaryHouseholderReflectors"
    return kernels.xla_call(build, target, (a, taus), build.avals_out)[0]


def _trivial_product(build: Builder, a: Value) -> Value | None:
    """Return the product if there are no elements or no reflections, else None."""
    aval, scales = build.avals_in
    if not aval.size:
        return a
    if not scales.size:
        return build.by_tracing(lambda: matrices.identity(aval.dtype, aval.shape), (), ())[0]
    return None


@by_library(f.ormqr_p)
def _(
    build: Builder,
    library: Library,
    a: Value,
    taus: Value,
    c: Value,
    *,
    left: bool,
    transpose: bool,
) -> Value:
    _, scales, result = build.avals_in
    if not result.size or not scales.size:
        return c
    attributes = {"left": flag(left), "transpose": flag(transpose)}
    return library(build, "ormqr", (a, taus, c), (result,), attributes, {0: 2})[0]


@lower(f.ormqr_p)
def _(build: Builder, a: Value, taus: Value, c: Value, *, left: bool, transpose: bool) -> Value:
    """Multiply c by the reflections that a and taus define, one at a time, in a loop."""
    aval, scales, result = build.avals_in
    count = scales.shape[-1]
    if not result.size or not count:
        return c
    # Q c begins with the last reflection, Q^H c with the first; from the right it is vice versa.
    ascends = bool(transpose) == bool(left)

    def reflect(step: Array, a: Array, taus: Array, c: Array) -> list[Array]:
        index = step if ascends else sub(np.int32(count - 1), step)
        vector, scale = _reflector(a, taus, index)
        if transpose:
            scale = matrices.conjugate(scale)
        columns = matrices.in_columns(vector)
        rows = matrices.conjugate(matrices.in_rows(vector))
        if left:
            change = matrices.product(columns, matrices.product(rows, c))
        else:
            change = matrices.product(matrices.product(c, columns), rows)
        scale = broadcast_in_dim(scale, typeof(c).shape, range(typeof(scale).ndim))
        return [add(step, np.int32(1)), a, taus, sub(c, mul(scale, change))]

    avals = aval, scales, result
    *_, product = count_up(build, build.constant(0, int32), count, reflect, (a, taus, c), avals)
    return product


def _reflector(a: Array, taus: Array, index: Array) -> tuple[Array, Array]:
    """Return the Householder vector of one reflection, with its leading one, and its scale."""
    shape = typeof(a).shape
    rows, columns = (broadcasted_iota(int32, shape, len(shape) - 2 + i) for i in (0, 1))
    chosen = bitwise_and(eq(columns, index), gt(rows, index))
    vector = reduce_sum(select_n(chosen, full_like(a, 0), a), (len(shape) - 1,))
    positions = broadcasted_iota(int32, typeof(vector).shape, len(shape) - 2)
    vector = select_n(eq(positions, index), vector, full_like(vector, 1))
    numbers = broadcasted_iota(int32, typeof(taus).shape, len(shape) - 2)
    scale = reduce_sum(select_n(eq(numbers, index), full_like(taus, 0), taus), (len(shape) - 2,))
    return vector, scale


@lower(f.qr_p)
@in_function
def _(
    build: Builder, x: Value, *, pivoting: bool, full_matrices: bool, use_magma: bool | None
) -> list[Value]:
    return build.by_tracing(
        _qr, (x,), pivoting=pivoting, full_matrices=full_matrices, use_magma=use_magma
    )


def _qr(x: Array, *, pivoting: bool, full_matrices: bool, use_magma: bool | None) -> list[Array]:
    aval = typeof(x)
    batch = aval.ndim - 2
    m, n = aval.shape[batch:]
    last: list[Array] = []
    if pivoting:
        free = broadcast_in_dim(np.int32(0), (*aval.shape[:batch], n), ())
        reflected, columns, scales = process(f.geqp3_p, (x, free), {"use_magma": use_magma})
        last = [sub(columns, full_like(columns, 1))]
    else:
        reflected, scales = f.geqrf(x)
    # Use as many columns of reflectors as Q has columns.
    width = m if full_matrices else min(m, n)
    wide = reflected
    if width < n:
        wide = slice_in_dim(reflected, 0, width, axis=batch + 1)
    elif width > n:
        rows = [(0, 0, 0)] * aval.ndim
        rows[-1] = (0, width - n, 0)
        wide = pad(reflected, aval.dtype.type(0), rows)
    height = m if full_matrices else min(m, n)
    upper = slice_in_dim(reflected, 0, height, axis=batch) if height < m else reflected
    return [f.householder_product(wide, scales), matrices.upper_triangle(upper), *last]
