"""Direct solvers of linear systems: triangular_solve, tridiagonal_solve."""

import numpy as np

from hlofront.base.boundary import boundary
from hlofront.base.typing import Array, ArrayLike, ArrayLikes, DType, Params, Shape
from hlofront.core import rules
from hlofront.core.aval import typeof
from hlofront.core.primitive import Primitive
from hlofront.core.symbolic_zeros import (
    BatchAxes,
    Batched,
    Cotangents,
    Dual,
    Operand,
    Tangent,
    Tangents,
    Zero,
)
from hlofront.core.trace import process
from hlofront.primitives.arrays.creation import scalar_like
from hlofront.primitives.arrays.shaping import broadcast_in_dim, reshape, squeeze
from hlofront.primitives.arrays.slicing import pad, with_entry
from hlofront.primitives.elementwise.elementwise import add, mul, neg
from hlofront.primitives.elementwise.weak_types import strong_cotangents
from hlofront.primitives.linalg.matrices import (
    INEXACT,
    CoreTypes,
    along_columns,
    conjugate,
    lower_triangle,
    on_matrices,
    product,
    swap,
    upper_triangle,
)
from hlofront.primitives.rules.batching import batch_size, move_axis, only_axis, to_front
from hlofront.primitives.rules.derivatives import (
    add_tangents,
    aval_of_operand,
    instantiate,
    is_linear,
    known,
)

# ---- triangular ----------------------------------------------------------------------------------

triangular_solve_p = Primitive("triangular_solve")


@boundary
def triangular_solve(
    a: ArrayLike,
    b: ArrayLike,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Array:
    """Solve `a x = b`, or `x a = b`, where each matrix `a` is triangular.

    Args:
      a: an array of shape (..., m, m). Elements of the other triangle are not read.
      b: an array of shape (..., m, n) if `left_side`, else (..., n, m); or vectors, of shape
        (..., m).
      left_side: whether to solve `a x = b` instead of `x a = b`.
      lower: whether `a` is lower triangular instead of upper.
      transpose_a: whether to transpose `a` first.
      conjugate_a: whether to conjugate `a` first.
      unit_diagonal: whether to assume a diagonal of ones, which is not read.

    Returns:
      x, of the shape and dtype of `b`; not finite for matrices with a zero on the diagonal.

    Raises:
      TypeError: if dtypes differ or are not floating or complex, or batch axes differ.
      ValueError: if `a` is not square or its size is not that of `b`.
    """
    conjugate_a = conjugate_a and np.issubdtype(typeof(a).dtype, np.complexfloating)
    is_vector = typeof(b).ndim == typeof(a).ndim - 1
    if is_vector:
        ndim = typeof(b).ndim
        shape = typeof(b).shape
        columns = (*shape, 1) if left_side else (*shape[:-1], 1, shape[-1])
        axes = range(ndim) if left_side else (*range(ndim - 1), ndim)
        b = broadcast_in_dim(b, columns, axes)
    result = process(
        triangular_solve_p,
        (a, b),
        {
            "left_side": bool(left_side),
            "lower": bool(lower),
            "transpose_a": bool(transpose_a),
            "conjugate_a": bool(conjugate_a),
            "unit_diagonal": bool(unit_diagonal),
        },
    )
    if is_vector:
        ndim = typeof(result).ndim
        result = squeeze(result, (ndim - 1 if left_side else ndim - 2,))
    return result


def _triangular_shapes(
    a: Shape, b: Shape, dtype: DType, *, left_side: bool, **_: object
) -> CoreTypes:
    if a[0] != a[1]:
        raise ValueError(
            f"The first input to triangular_solve must be a square matrix. Got shape {a}."
        )
    if b[0 if left_side else 1] != a[0]:
        raise ValueError(
            f"Incompatible shapes for arguments to triangular_solve: {a} and {b}. With "
            f"left_side={left_side}, the second needs as many {'rows' if left_side else 'columns'} "
            "as the first."
        )
    return [(b, dtype)]


@rules.jvp(triangular_solve_p)
def _(primals: ArrayLikes, tangents: Tangents, **params: object) -> Dual:
    a, b = primals
    a_tangent, b_tangent = tangents
    x = process(triangular_solve_p, (a, b), params)
    # a' x + a x' = b'
    right: Tangent = b_tangent
    if type(a_tangent) is not Zero:
        change = neg(_read(a_tangent, params))
        share = product(change, x) if params["left_side"] else product(x, change)
        right = add_tangents(right, share)
    return x, process(triangular_solve_p, (a, right), params)


def _read(a: ArrayLike, params: Params) -> Array:
    """Return the triangle of `a` that triangular_solve reads, transposed and conjugated."""
    offset = int(params["unit_diagonal"])
    a = lower_triangle(a, -offset) if params["lower"] else upper_triangle(a, offset)
    if params["transpose_a"]:
        a = swap(a)
    return conjugate(a) if params["conjugate_a"] else a


@rules.transpose(triangular_solve_p)
def _(cotangent: ArrayLike, a: Operand, b: Operand, **params: object) -> Cotangents:
    assert not is_linear(a) and is_linear(b)
    params["transpose_a"] = not params["transpose_a"]
    return [None, process(triangular_solve_p, (a, cotangent), params)]


@rules.batch(triangular_solve_p)
def _(values: ArrayLikes, axes: BatchAxes, *, left_side: bool, **params: object) -> Batched:
    a, b = values
    a_axis = axes[0]
    if a_axis is None:
        # For a single matrix, merge the batch of right-hand sides into the columns or rows of one.
        along = typeof(b).ndim - (2 if left_side else 3)
        b = move_axis(b, only_axis(axes[1:]), along)
        shape = typeof(b).shape
        merged = (*shape[:along], shape[along] * shape[along + 1], *shape[along + 2 :])
        x = process(triangular_solve_p, (a, reshape(b, merged)), {"left_side": left_side, **params})
        return reshape(x, shape), along
    size = batch_size(values, axes)
    a, b = (to_front(x, axis, size) for x, axis in zip(values, axes, strict=True))
    return process(triangular_solve_p, (a, b), {"left_side": left_side, **params}), 0


on_matrices(triangular_solve_p, INEXACT, (2, 2), _triangular_shapes)


# ---- tridiagonal ---------------------------------------------------------------------------------

tridiagonal_solve_p = Primitive("tridiagonal_solve")


@boundary
def tridiagonal_solve(
    dl: ArrayLike, d: ArrayLike, du: ArrayLike, b: ArrayLike, *, perturb_singular: bool = False
) -> Array:
    """Solve `a x = b`, where each matrix `a` is tridiagonal.

    Args:
      dl: an array of shape (..., m), the diagonal below the main one: `dl[i] = a[i, i - 1]`; the
        first element is not read.
      d: an array of shape (..., m), the main diagonal.
      du: an array of shape (..., m), the diagonal above: `du[i] = a[i, i + 1]`; the last element is
        not read.
      b: an array of shape (..., m, n).
      perturb_singular: whether to perturb pivots near zero, so that the result is finite.

    Returns:
      x, of the shape and dtype of `b`; NaN where the matrix is singular.

    Raises:
      TypeError: if dtypes differ or are not floating or complex, or batch axes or sizes differ.
    """
    params = {"perturb_singular": bool(perturb_singular)}
    return process(tridiagonal_solve_p, (dl, d, du, b), params)


def _tridiagonal_shapes(
    dl: Shape, d: Shape, du: Shape, b: Shape, dtype: DType, **_: object
) -> CoreTypes:
    if not dl == d == du:
        raise TypeError(
            f"tridiagonal_solve requires that all diagonal arguments have the same shape, got "
            f"{dl}, {d} and {du}."
        )
    if b[0] != d[0]:
        raise TypeError(
            "tridiagonal_solve requires that the leading dimension of b equals the size of the "
            f"diagonals, got {b} and {d}."
        )
    return [(b, dtype)]


on_matrices(tridiagonal_solve_p, INEXACT, (1, 1, 1, 2), _tridiagonal_shapes)


@rules.jvp(tridiagonal_solve_p)
def _(primals: ArrayLikes, tangents: Tangents, *, perturb_singular: bool) -> Dual:
    *diagonals, b = primals
    *diagonal_tangents, b_tangent = tangents
    params = {"perturb_singular": perturb_singular}
    x = process(tridiagonal_solve_p, (*diagonals, b), params)
    right: Tangent = b_tangent
    if not all(type(tangent) is Zero for tangent in diagonal_tangents):
        below, on, above = map(instantiate, diagonal_tangents)
        change = _tridiagonal_product(below, on, above, x)
        right = neg(change) if type(right) is Zero else add_tangents(right, neg(change))
    return x, process(tridiagonal_solve_p, (*diagonals, right), params)


def _tridiagonal_product(dl: ArrayLike, d: ArrayLike, du: ArrayLike, x: ArrayLike) -> Array:
    shape = typeof(x).shape
    axis = len(shape) - 2

    def scaled(diagonal: ArrayLike, x: ArrayLike) -> Array:
        return mul(along_columns(diagonal, shape), x)

    total = scaled(d, x)
    if not shape[axis]:
        return total
    dl, du = strong_cotangents(dl), strong_cotangents(du)
    total = add(total, scaled(dl, _shifted(x, axis, 1)))
    return add(total, scaled(du, _shifted(x, axis, -1)))


def _shifted(x: ArrayLike, axis: int, by: int) -> Array:
    """Return x shifted by 1 or -1 elements along an axis, with zeros shifted in."""
    aval = typeof(x)
    row = (by, -by, 0)
    return pad(x, scalar_like(x, 0), with_entry(((0, 0, 0),) * aval.ndim, axis, row))


@rules.transpose(tridiagonal_solve_p)
def _(
    cotangent: ArrayLike,
    dl: Operand,
    d: Operand,
    du: Operand,
    b: Operand,
    *,
    perturb_singular: bool,
) -> Cotangents:
    assert is_linear(b) and not any(map(is_linear, (dl, d, du)))
    axis = aval_of_operand(d).ndim - 1
    # The lower diagonal of the transpose is the upper one, shifted by one row.
    params = {"perturb_singular": perturb_singular}
    below, above = _shifted(known(du), axis, 1), _shifted(known(dl), axis, -1)
    return [None, None, None, process(tridiagonal_solve_p, (below, d, above, cotangent), params)]
