"""Factorizations as calls of LAPACK's routines; Cholesky's as StableHLO on other devices."""

from typing import Any

import numpy as np

from hlofront.base.dtypes import issubdtype
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.rules import lower
from hlofront.lowering import kernels, types
from hlofront.lowering.kernels import character
from hlofront.primitives import factoring as f
from hlofront.primitives import matrices
from hlofront.primitives.comparing import eq, select_n
from hlofront.primitives.creating import broadcasted_iota, full_like
from hlofront.primitives.elementwise import add, div, mul, sign, sqrt, sub
from hlofront.primitives.reducing import reduce_sum
from hlofront.primitives.shaping import broadcast_in_dim, expand_dims
from hlofront.primitives.slicing import pad, slice_in_dim

_int32 = np.dtype(np.int32)


def _zeros(build: Any, aval: ShapedArray) -> Any:
    return build.full(0, aval)


# ---- Cholesky ------------------------------------------------------------------------------------


@lower(f.cholesky_p, platform="cpu")
def _cholesky_on_cpu(build, x):
    (aval,), (result,) = build.avals_in, build.avals_out
    if not aval.size:
        return x
    batch = aval.ndim - 2
    attributes = {"uplo": character("L")}
    results = (result, kernels.batch_info(aval, batch))
    routine = f"{kernels.letter(build, aval.dtype)}potrf"
    factor, info = kernels.call(build, routine, (x,), (aval,), results, batch, attributes, {0: 0})
    return kernels.nan_where_failed(build, info, (factor,), (result,))[0]


@lower(f.cholesky_p)
def _(build, x):
    return build.op("stablehlo.cholesky", (x,), lower=types.boolean(True))


@lower(f.symmetric_product_p)
def _(build, a, c, *, alpha, beta):
    def total(a, c):
        dtype = typeof(c).dtype
        first = matrices.product(a, matrices.swap(a))
        return add(mul(first, dtype.type(alpha)), mul(c, dtype.type(beta)))

    return build.by_tracing(total, (a, c))[0]


@lower(f.cholesky_update_p)
def _(build, r, w):
    """A rotation per row turns the vector into zeros: Golub & Van Loan, section 6.5.4."""
    matrix, vector = build.avals_in
    n = matrix.shape[-1]
    row_index = ShapedArray((), _int32)

    def step(index, r, w):
        ndim = typeof(r).ndim
        is_row = eq(broadcasted_iota(_int32, typeof(r).shape, ndim - 2), index)
        row = reduce_sum(select_n(is_row, full_like(r, 0), r), (ndim - 2,))
        is_place = eq(broadcasted_iota(_int32, typeof(w).shape, ndim - 2), index)

        def at_place(x):
            x = reduce_sum(select_n(is_place, full_like(x, 0), x), (ndim - 2,))
            return broadcast_in_dim(x, typeof(w).shape, range(ndim - 2))

        a, b = at_place(row), at_place(w)
        length = mul(sqrt(add(mul(a, a), mul(b, b))), _sign_or_one(a))
        # Where both are zero there is nothing to turn.
        none = eq(length, full_like(length, 0))
        ones = full_like(length, 1)
        safe = select_n(none, length, ones)
        cosine = select_n(none, div(a, safe), ones)
        sine = div(b, safe)
        turned = add(mul(cosine, row), mul(sine, w))
        rest = sub(mul(cosine, w), mul(sine, row))
        turned = matrices.spread(expand_dims(turned, (ndim - 2,)), typeof(r).shape)
        return [add(index, np.int32(1)), select_n(is_row, r, turned), rest]

    def condition(inner, index, r, w):
        return inner.compare("LT", index, inner.constant(n, _int32), row_index)

    avals = [row_index, matrix, vector]
    return build.while_loop(
        condition,
        lambda inner, *values: inner.by_tracing(step, values, avals),
        [build.constant(0, _int32), r, w],
        avals,
    )[1]


def _sign_or_one(x: Any) -> Any:
    return select_n(eq(x, full_like(x, 0)), sign(x), full_like(x, 1))


# ---- LU ------------------------------------------------------------------------------------------


@lower(f.lu_p)
def _(build, x):
    (aval,) = build.avals_in
    matrix, pivot, permutation = build.avals_out
    if not aval.size:
        order = build.by_tracing(
            lambda: broadcasted_iota(_int32, permutation.shape, permutation.ndim - 1), (), ()
        )[0]
        return [x, _zeros(build, pivot), order]
    batch = aval.ndim - 2
    results = (matrix, pivot, kernels.batch_info(aval, batch))
    routine = f"{kernels.letter(build, aval.dtype)}getrf"
    factors, pivots, info = kernels.call(
        build, routine, (x,), (aval,), results, batch, None, {0: 0}
    )
    # LAPACK counts rows from one.
    pivots = build.op("stablehlo.subtract", (pivots, build.full(1, pivot)), pivot)
    # A zero on the diagonal of U is no failure.
    (factors,) = kernels.nan_where_failed(build, info, (factors,), (matrix,), least=True)
    order = _permutation(build, pivots, pivot, permutation)
    return [factors, pivots, order]


@lower(f.lu_pivots_to_permutation_p)
def _(build, pivots, *, permutation_size):
    return _permutation(build, pivots, build.avals_in[0], build.avals_out[0])


def _permutation(build: Any, pivots: Any, pivot: ShapedArray, result: ShapedArray) -> Any:
    """Exchange rows of the identity's numbers, one after the other."""
    axis = result.ndim - 1
    index = ShapedArray((), _int32)

    def start():
        return broadcasted_iota(_int32, result.shape, axis)

    (order,) = build.by_tracing(start, (), ())
    if not pivot.size:
        return order

    def step(i, pivots, order):
        places = start()

        def element(x, where):
            kept = select_n(where, full_like(x, 0), x)
            total = reduce_sum(kept, (axis,))
            return broadcast_in_dim(total, result.shape, range(axis))

        steps = broadcasted_iota(_int32, pivot.shape, axis)
        here = eq(places, i)
        there = eq(places, element(pivots, eq(steps, i)))
        mine, other = element(order, here), element(order, there)
        order = select_n(there, select_n(here, order, other), mine)
        return [add(i, np.int32(1)), pivots, order]

    def condition(inner, i, *_):
        return inner.compare("LT", i, inner.constant(pivot.shape[-1], _int32), index)

    avals = [index, pivot, result]
    return build.while_loop(
        condition,
        lambda inner, *values: inner.by_tracing(step, values, avals),
        [build.constant(0, _int32), pivots, order],
        avals,
    )[2]


# ---- QR ------------------------------------------------------------------------------------------


@lower(f.geqrf_p)
def _(build, a):
    return _reflect(build, a, build.avals_in[0])


def _reflect(build: Any, a: Any, aval: ShapedArray) -> list[Any]:
    """The factorization as (reflectors and R, scales)."""
    batch = aval.ndim - 2
    scales = ShapedArray((*aval.shape[:batch], min(aval.shape[batch:])), aval.dtype)
    if not aval.size:
        return [a, _zeros(build, scales)]
    routine = f"{kernels.letter(build, aval.dtype)}geqrf"
    return kernels.call(build, routine, (a,), (aval,), (aval, scales), batch, None, {0: 0})


@lower(f.geqp3_p)
def _(build, a, jpvt):
    return _reflect_pivoted(build, a, jpvt, *build.avals_in)


def _reflect_pivoted(
    build: Any, a: Any, columns: Any, aval: ShapedArray, column: ShapedArray
) -> list[Any]:
    """As `_reflect`, (reflectors and R, columns from 1 on, scales)."""
    batch = aval.ndim - 2
    scales = ShapedArray((*aval.shape[:batch], min(aval.shape[batch:])), aval.dtype)
    if not aval.size:
        (order,) = build.by_tracing(
            lambda: add(broadcasted_iota(_int32, column.shape, batch), np.int32(1)), (), ()
        )
        return [a, order, _zeros(build, scales)]
    routine = f"{kernels.letter(build, aval.dtype)}geqp3"
    results = (aval, column, scales)
    return kernels.call(
        build, routine, (a, columns), (aval, column), results, batch, None, {0: 0, 1: 1}
    )


@lower(f.householder_product_p)
def _(build, a, taus):
    return _multiply_out(build, a, taus, *build.avals_in)


def _multiply_out(build: Any, a: Any, taus: Any, aval: ShapedArray, scales: ShapedArray) -> Any:
    """The product of reflections as a matrix of the shape of their reflectors."""
    if not aval.size:
        return a
    if not scales.size:
        return build.by_tracing(lambda: matrices.identity(aval.dtype, aval.shape), (), ())[0]
    is_complex = issubdtype(aval.dtype, np.complexfloating)
    routine = f"{kernels.letter(build, aval.dtype)}{'un' if is_complex else 'or'}gqr"
    return kernels.call(
        build, routine, (a, taus), (aval, scales), (aval,), aval.ndim - 2, None, {0: 0}
    )[0]


@lower(f.ormqr_p)
def _(build, a, taus, c, *, left, transpose):
    avals = aval, scales, result = build.avals_in
    if not result.size or not scales.size:
        return c
    is_complex = issubdtype(aval.dtype, np.complexfloating)
    routine = f"{kernels.letter(build, aval.dtype)}{'un' if is_complex else 'or'}mqr"
    attributes = {"left": str(left).lower(), "transpose": str(transpose).lower()}
    return kernels.call(
        build, routine, (a, taus, c), avals, (result,), aval.ndim - 2, attributes, {0: 2}
    )[0]


@lower(f.qr_p)
def _(build, x, *, pivoting, full_matrices, use_magma):
    (aval,) = build.avals_in
    q_aval, r_aval = build.avals_out[:2]
    batch = aval.ndim - 2
    m, n = aval.shape[batch:]
    last = []
    if pivoting:
        column = build.avals_out[2]
        none = build.full(0, column)
        reflected, columns, scales = _reflect_pivoted(build, x, none, aval, column)
        last = [build.op("stablehlo.subtract", (columns, build.full(1, column)), column)]
    else:
        reflected, scales = _reflect(build, x, aval)
    width = q_aval.shape[-1]

    def reflectors(a):
        if width < n:
            return slice_in_dim(a, 0, width, axis=batch + 1)
        if width > n:
            rows = [(0, 0, 0)] * a.ndim
            rows[-1] = (0, width - n, 0)
            return pad(a, typeof(a).dtype.type(0), rows)
        return a

    def triangle(a):
        if r_aval.shape[batch] < m:
            a = slice_in_dim(a, 0, r_aval.shape[batch], axis=batch)
        return matrices.upper_triangle(a)

    (wide,) = build.by_tracing(reflectors, (reflected,), (aval,))
    scale_aval = ShapedArray((*aval.shape[:batch], min(m, n)), aval.dtype)
    q = _multiply_out(build, wide, scales, q_aval, scale_aval)
    (r,) = build.by_tracing(triangle, (reflected,), (aval,))
    return [q, r, *last]
