"""Lowering rules of linear solves: LAPACK's and cuSPARSE's kernels, or StableHLO elsewhere."""

import numpy as np

from hlofront.base.elements import int32
from hlofront.base.typing import Array
from hlofront.bridge.mlir import Value
from hlofront.core.rules import lower
from hlofront.lowering.core import kernels, types
from hlofront.lowering.core.builder import Builder
from hlofront.lowering.core.counted_loop import count_down, count_up
from hlofront.lowering.core.kernels import GPUS, LAPACK, Library, by_library, character
from hlofront.primitives.arrays.dynamic_slicing import (
    dynamic_slice_in_dim,
    dynamic_update_slice_in_dim,
)
from hlofront.primitives.elementwise.elementwise import add, div, mul, sub
from hlofront.primitives.linalg import matrices
from hlofront.primitives.linalg import solving as s

# cuSPARSE does not support tridiagonal systems with fewer equations.
_MIN_EQUATIONS = 3


@by_library(s.triangular_solve_p, of=(LAPACK,))
def _triangular_solve_on_cpu(
    build: Builder,
    library: Library,
    a: Value,
    b: Value,
    *,
    left_side: bool,
    lower: bool,
    transpose_a: bool,
    conjugate_a: bool,
    unit_diagonal: bool,
) -> Value:
    a_aval, b_aval = build.avals_in
    if not b_aval.size:
        return b
    if conjugate_a and not transpose_a:
        # LAPACK only conjugates matrices that it transposes.
        (a,) = build.by_tracing(s.conjugate, (a,), (a_aval,))
        conjugate_a = False
    transposed = ("C" if conjugate_a else "T") if transpose_a else "N"
    attributes = {
        "side": character("L" if left_side else "R"),
        "uplo": character("L" if lower else "U"),
        "trans_x": character(transposed),
        "diag": character("U" if unit_diagonal else "N"),
    }
    return library(build, "trsm", (a, b), build.avals_out, attributes, {0: 1})[0]


@lower(s.triangular_solve_p)
def _(
    build: Builder,
    a: Value,
    b: Value,
    *,
    left_side: bool,
    lower: bool,
    transpose_a: bool,
    conjugate_a: bool,
    unit_diagonal: bool,
) -> Value:
    a_aval, b_aval = build.avals_in
    if not b_aval.size:
        return b
    if conjugate_a and not transpose_a:
        (a,) = build.by_tracing(s.conjugate, (a,), (a_aval,))
    kind = "NO_TRANSPOSE"
    if transpose_a:
        kind = "ADJOINT" if conjugate_a else "TRANSPOSE"
    return build.op(
        "stablehlo.triangular_solve",
        (a, b),
        left_side=types.boolean(left_side),
        lower=types.boolean(lower),
        unit_diagonal=types.boolean(unit_diagonal),
        transpose_a=types.attribute(f"#stablehlo<transpose {kind}>"),
    )


# ---- tridiagonal ---------------------------------------------------------------------------------


@by_library(s.tridiagonal_solve_p, of=(LAPACK,))
def _(build: Builder, library: Library, *operands: Value, perturb_singular: bool) -> Value:
    avals = *_, right = build.avals_in
    if not right.size:
        return operands[-1]
    library.check(build, right.dtype)
    if perturb_singular:
        return kernels.call(build, "tridiagonal_solve_perturbed_ffi", operands, (right,))[0]
    results = [*avals, kernels.batch_info(right)]
    aliases = {i: i for i in range(4)}
    *_, x, info = library(build, "gtsv", operands, results, None, aliases)
    return kernels.nan_where_failed(build, info, (x,), (right,))[0]


@by_library(s.tridiagonal_solve_p, of=GPUS)
def _(build: Builder, library: Library, *operands: Value, perturb_singular: bool) -> Value:
    right = build.avals_in[-1]
    if not right.size:
        return operands[-1]
    if right.shape[-2] < _MIN_EQUATIONS and not perturb_singular:
        return _eliminate(build, *operands)
    library.check(build, right.dtype)
    if perturb_singular:
        name = f"{library.own}_tridiagonal_solve_perturbed"
        return kernels.call(build, name, operands, (right,))[0]
    return kernels.call(build, f"{library.sparse}_gtsv2_ffi", operands, (right,), None, {0: 3})[0]


@lower(s.tridiagonal_solve_p)
def _(build: Builder, *operands: Value, perturb_singular: bool) -> Value | None:
    if perturb_singular:
        raise NotImplementedError(  # JAX raises this class.
            "tridiagonal_solve: perturb_singular=True is for CPUs and GPUs only: leave it "
            "away, and add what is to be added to d"
        )
    return _eliminate(build, *operands) if build.avals_in[3].size else operands[3]


def _eliminate(build: Builder, dl: Value, d: Value, du: Value, b: Value) -> Value:
    """Solve tridiagonal systems without pivoting: Golub & Van Loan (2013), section 4.3.6."""
    avals = *_, diagonal, right = build.avals_in
    axis = diagonal.ndim - 1
    count = diagonal.shape[axis]
    above = diagonal.update(shape=(*diagonal.shape[:axis], 1))
    solution = right.update(shape=(*right.shape[:axis], 1, right.shape[-1]))

    def row(x: Array, index: Array) -> Array:
        return dynamic_slice_in_dim(x, index, 1, axis)

    def wide(x: Array) -> Array:
        return matrices.along_columns(x, solution.shape)

    def put(x: Array, update: Array, index: Array) -> Array:
        return dynamic_update_slice_in_dim(x, update, index, axis)

    def forward(
        index: Array, dl: Array, d: Array, du: Array, b: Array, last_above: Array, last: Array
    ) -> list[Array]:
        """Subtract the previous row from a row, and divide it by its diagonal element."""
        below = row(dl, index)
        pivot = sub(row(d, index), mul(below, last_above))
        last_above = div(row(du, index), pivot)
        last = div(sub(row(b, index), mul(wide(below), last)), wide(pivot))
        # Write them over rows that are no longer read.
        return [
            add(index, np.int32(1)),
            dl,
            d,
            put(du, last_above, index),
            put(b, last, index),
            last_above,
            last,
        ]

    def backward(
        index: Array, dl: Array, d: Array, du: Array, b: Array, last_above: Array, last: Array
    ) -> list[Array]:
        last = sub(row(b, index), mul(wide(row(du, index)), last))
        return [sub(index, np.int32(1)), dl, d, du, put(b, last, index), last_above, last]

    avals = [*avals, above, solution]
    first = build.constant(0, int32)
    none = build.full(0, above), build.full(0, solution)
    values = count_up(build, first, count, forward, [dl, d, du, b, *none], avals)
    start = build.constant(count - 2, int32)
    _, _, _, x, _, _ = count_down(build, start, backward, values, avals)
    return x
