"""Determinants of matrices, and the logarithms of determinants."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from hlofront.base.dtypes import is_complex
from hlofront.base.elements import host_number, int32
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.higher_order.custom_rules.custom_jvp import custom_jvp
from hlofront.higher_order.matrix_solve import solve_factored
from hlofront.numpy.linalg.matrices import inexact, square_matrices
from hlofront.numpy.support.like import operation_like
from hlofront.primitives.arrays import creation
from hlofront.primitives.arrays.reducing import reduce_max, reduce_prod, reduce_sum
from hlofront.primitives.arrays.shaping import expand_dims, rev, squeeze
from hlofront.primitives.arrays.slicing import slice
from hlofront.primitives.elementwise import compare, elementwise
from hlofront.primitives.elementwise.converting import convert, stop_gradient, strong
from hlofront.primitives.linalg.factoring import geqrf, lu
from hlofront.primitives.linalg.matrices import (
    along_rows,
    broadcast_matrices,
    diagonal,
    identity_like,
    real_part,
    take_rows,
    upper_triangle,
)
from hlofront.primitives.linalg.solving import triangular_solve


class SlogdetResult(NamedTuple):
    """The sign of a determinant, of modulus 1 or 0, and the logarithm of its modulus."""

    sign: Array
    logabsdet: Array


def _parity(pivots: Array, dtype: np.dtype) -> Array:
    """Return the sign of row permutations: -1 for an odd number of exchanges, else 1."""
    aval = typeof(pivots)
    rows = creation.broadcasted_iota(int32, aval.shape, aval.ndim - 1)
    moved = convert(compare.ne(pivots, rows), int32, False)
    odd = elementwise.bitwise_and(reduce_sum(moved, (aval.ndim - 1,)), np.int32(1))
    sign = elementwise.sub(np.int32(1), elementwise.mul(np.int32(2), odd))
    return convert(sign, dtype, False)


# ---- det -----------------------------------------------------------------------------------------


def _small(a: Array, size: int) -> Array:
    """Compute the determinants of matrices of at most three rows, by Leibniz's formula."""
    *batch, _, _ = typeof(a).shape

    def entry(i: int, j: int) -> Array:
        one = slice(a, (*[0] * len(batch), i, j), (*batch, i + 1, j + 1))
        return squeeze(one, (-2, -1))

    if size == 1:
        return convert(entry(0, 0), typeof(a).dtype, False)

    def minor(rows: tuple[int, int], columns: tuple[int, int]) -> Array:
        (i, j), (k, n) = rows, columns
        ahead = elementwise.mul(entry(i, k), entry(j, n))
        return elementwise.sub(ahead, elementwise.mul(entry(i, n), entry(j, k)))

    if size == 2:
        return minor((0, 1), (0, 1))
    terms = [
        elementwise.mul(entry(0, j), minor((1, 2), columns))
        for j, columns in enumerate(((1, 2), (2, 0), (0, 1)))
    ]
    return elementwise.add(elementwise.add(terms[0], terms[1]), terms[2])


@custom_jvp
def _by_factors(a: Array) -> Array:
    factors, pivots, _ = lu(a)
    ends = diagonal(factors)
    total = reduce_prod(ends, (typeof(ends).ndim - 1,))
    return elementwise.mul(total, _parity(pivots, typeof(a).dtype))


@_by_factors.defjvp
def _by_factors_jvp(primals: tuple[Array, ...], tangents: tuple[Array, ...]) -> tuple[Array, Array]:
    # The tangent is the trace of adj(a) a'. For a = P^T L U it is the trace of adj(U) L^-1 P a',
    # times the sign of P.
    (a,), (change,) = primals, tangents
    factors, pivots, permutation = lu(a)
    dtype = typeof(a).dtype
    sign = _parity(pivots, dtype)
    ends = diagonal(factors)
    axis = typeof(ends).ndim - 1
    result = elementwise.mul(reduce_prod(ends, (axis,)), sign)
    moved = take_rows(change, permutation)
    moved = triangular_solve(factors, moved, left_side=True, lower=True, unit_diagonal=True)
    # adj(U) = det(U) U^-1 where the diagonal of U has no zero, and it is linear in each diagonal
    # element. Where one is zero, the value is the mean of the values at 1 and -1; where several
    # are, it is zero.
    zero = compare.eq(ends, creation.full_like(ends, 0))
    count = reduce_sum(convert(zero, int32, False), (axis,))
    upper = upper_triangle(factors)

    def at(value: int) -> Array:
        raised = elementwise.mul(convert(zero, dtype, False), creation.full_like(ends, value))
        ones = broadcast_matrices(identity_like(upper), typeof(upper).shape)
        filled = elementwise.add(
            upper, elementwise.mul(ones, along_rows(raised, typeof(upper).shape))
        )
        scale = reduce_prod(elementwise.add(ends, raised), (axis,))
        solved = diagonal(triangular_solve(filled, moved, left_side=True))
        return elementwise.mul(scale, reduce_sum(solved, (axis,)))

    total = elementwise.mul(elementwise.add(at(1), at(-1)), host_number(0.5, dtype))
    some = compare.gt(count, creation.full_like(count, 1))
    total = compare.select_n(some, total, creation.full_like(total, 0))
    return result, elementwise.mul(sign, total)


@operation_like(np.linalg.det)
def det(a: ArrayLike) -> Array:
    """Compute the determinants of square matrices.

    Raises:
      ValueError: if the matrices are not square.

    Example:
      >>> jnp.linalg.det(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
      Array(-2., dtype=float32)
    """
    a = square_matrices("det()", a)
    aval = typeof(a)
    size = aval.shape[-1]
    if not size:
        return creation.full(aval.shape[:-2], 1, aval.dtype)
    return _small(a, size) if size <= 3 else _by_factors(a)


# ---- slogdet -------------------------------------------------------------------------------------


def _of_diagonal(ends: Array, sign: Array) -> tuple[Array, Array]:
    """Return the sign and log modulus of the product of `ends`, multiplied by `sign`."""
    axis = typeof(ends).ndim - 1
    sizes = elementwise.abs(ends)
    is_zero = compare.eq(sizes, creation.full_like(sizes, 0))
    safe = compare.select_n(is_zero, ends, creation.full_like(ends, 1))
    directions = elementwise.sign(safe)
    none = compare.select_n(is_zero, directions, creation.full_like(directions, 0))
    total = elementwise.mul(sign, reduce_prod(none, (axis,)))
    return total, reduce_sum(elementwise.log(sizes), (axis,))


# Matrices with at most this many rows are inverted by a formula instead of a kernel, which matters
# most in loops and batches.
_MAX_ROWS_BY_FORMULA = 2


def _divided(a: Array) -> tuple[Array, Array, Array]:
    """Return matrices of one or two rows, divided by the modulus of their largest elements.

    Also return these moduli and the determinants of the results. Derivatives treat the moduli as
    constants, as they cancel.
    """
    aval = typeof(a)
    sizes = stop_gradient(elementwise.abs(a))
    largest = reduce_max(sizes, (aval.ndim - 2, aval.ndim - 1))
    is_usable = elementwise.bitwise_and(
        compare.gt(largest, creation.full_like(largest, 0)), elementwise.is_finite(largest)
    )
    largest = compare.select_n(is_usable, creation.full_like(largest, 1), largest)
    divisor = expand_dims(largest, (aval.ndim - 2, aval.ndim - 1))
    divided = elementwise.div(a, convert(divisor, aval.dtype, aval.weak_type))
    size = aval.shape[-1]
    determinant = squeeze(divided, (-2, -1)) if size == 1 else _small(divided, size)
    return divided, largest, determinant


@custom_jvp
def _slogdet_by_formula(a: Array) -> tuple[Array, Array]:
    _, largest, determinant = _divided(a)
    size = creation.full_like(largest, typeof(a).shape[-1])
    total = elementwise.log(elementwise.abs(determinant))
    total = elementwise.add(total, elementwise.mul(size, elementwise.log(largest)))
    return elementwise.sign(determinant), total


@_slogdet_by_formula.defjvp
def _(
    primals: tuple[Array, ...], tangents: tuple[Array, ...]
) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    (a,), (change,) = primals, tangents
    sign, size = _slogdet_by_formula(a)
    divided, largest, determinant = _divided(a)
    aval = typeof(a)
    matrix_axes = (aval.ndim - 2, aval.ndim - 1)

    def along_matrices(x: Array) -> Array:
        return expand_dims(convert(x, aval.dtype, aval.weak_type), matrix_axes)

    # The derivative is the transposed inverse, which is all that a gradient keeps. Derivatives of
    # the individual operations would keep the elements and the sign as well, and take longer on
    # TPUs.
    if aval.shape[-1] == 1:
        cofactors = creation.full_like(divided, 1)
    else:
        signs = broadcast_matrices(np.array([[1, -1], [-1, 1]], aval.dtype), aval.shape)
        cofactors = elementwise.mul(rev(divided, matrix_axes), signs)
    inverses = elementwise.div(cofactors, along_matrices(determinant))
    inverses = elementwise.div(inverses, along_matrices(largest))
    total = reduce_sum(elementwise.mul(change, inverses), matrix_axes)
    return (sign, size), _of_log(sign, total)


def _of_log(sign: Array, total: Array) -> tuple[Array, Array]:
    """Return the tangents of the sign and the log modulus, given that of the logarithm."""
    if not is_complex(typeof(sign).dtype):
        return creation.full_like(sign, 0), total
    along = real_part(total)
    turned = elementwise.sub(total, convert(along, typeof(total).dtype, False))
    return elementwise.mul(turned, sign), along


@custom_jvp
def _slogdet_by_lu(a: Array) -> tuple[Array, Array]:
    factors, pivots, _ = lu(a)
    aval = typeof(a)
    parity = convert(_parity(pivots, aval.dtype), aval.dtype, aval.weak_type)
    return _of_diagonal(diagonal(factors), parity)


def _slogdet_jvp(
    of_matrices: Callable[[Array], tuple[Array, Array]],
    primals: tuple[Array, ...],
    tangents: tuple[Array, ...],
) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    (a,), (change,) = primals, tangents
    # The results come from the function itself, so that this rule also gives higher derivatives:
    # they depend on the sign of a complex number, whose derivative is zero. XLA merges the
    # two factorizations of the method "lu".
    sign, size = of_matrices(a)
    factors, _, permutation = lu(a)
    solved = diagonal(solve_factored(factors, permutation, change))
    total = reduce_sum(solved, (typeof(solved).ndim - 1,))
    return (sign, size), _of_log(sign, total)


_slogdet_by_lu.defjvp(partial(_slogdet_jvp, _slogdet_by_lu))


@custom_jvp
def _slogdet_by_qr(a: Array) -> tuple[Array, Array]:
    reflected, taus = geqrf(a)
    axis = typeof(taus).ndim - 1
    # A reflection I - tau v v^H has determinant -tau / conj(tau); tau is 0 where there is none.
    none = compare.eq(taus, creation.full_like(taus, 0))
    if is_complex(typeof(a).dtype):
        safe = compare.select_n(none, taus, creation.full_like(taus, 1))
        each = elementwise.neg(elementwise.div(safe, elementwise.conj(safe)))
    else:
        each = creation.full_like(taus, -1)
    each = compare.select_n(none, each, creation.full_like(each, 1))
    return _of_diagonal(diagonal(reflected), reduce_prod(each, (axis,)))


_slogdet_by_qr.defjvp(partial(_slogdet_jvp, _slogdet_by_qr))


@operation_like(np.linalg.slogdet, static_argnames=("method",))
def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """Compute the sign and the log modulus of determinants, without overflow.

    Args:
      a: an array of shape (..., n, n).
      method: "lu", the default; or "qr". Matrices of one or two rows need neither.

    Raises:
      ValueError: if matrices are not square, or the method is unknown.

    Example:
      >>> sign, logabsdet = jnp.linalg.slogdet(jnp.array([[0.0, 1.0], [1.0, 0.0]]))
      >>> sign, logabsdet
      (Array(-1., dtype=float32), Array(0., dtype=float32))
    """
    (a,) = inexact("jnp.linalg.slogdet", a)
    shape = typeof(a).shape
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ValueError(f"Argument to slogdet() must have shape [..., n, n], got {shape}")
    if method not in (None, "lu", "qr"):
        raise ValueError(f"Unknown slogdet method '{method}'. Supported methods are 'lu' and 'qr'.")
    if 0 < shape[-1] <= _MAX_ROWS_BY_FORMULA:
        # These are weakly typed where the matrices are, as JAX's are.
        return SlogdetResult(*_slogdet_by_formula(a))
    by_factors = _slogdet_by_qr if method == "qr" else _slogdet_by_lu
    return SlogdetResult(*by_factors(strong(a)))
