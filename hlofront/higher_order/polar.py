"""The polar decomposition by QR-based dynamically weighted Halley iteration (qdwh)."""

import math

import numpy as np

from hlofront.base.boundary import boundary
from hlofront.base.dtypes import finfo, issubdtype
from hlofront.base.elements import host_number, int32
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.higher_order.control_flow.while_loop import while_loop
from hlofront.primitives.arrays.creation import full_like, index_like
from hlofront.primitives.arrays.reducing import reduce_max, reduce_sum
from hlofront.primitives.arrays.slicing import concatenate, slice_in_dim
from hlofront.primitives.elementwise.compare import eq, gt, lt, select_n
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.elementwise.elementwise import (
    abs,
    add,
    bitwise_and,
    bitwise_not,
    mul,
    rsqrt,
    sqrt,
    sub,
)
from hlofront.primitives.linalg.factoring import cholesky, qr
from hlofront.primitives.linalg.matrices import adjoint, identity_like, product, real_dtype
from hlofront.primitives.linalg.solving import triangular_solve

# The iterate, the number of iterations, and whether the iterate still changes.
_State = tuple[ArrayLike, ArrayLike, ArrayLike]


@boundary
def qdwh(
    x: ArrayLike,
    *,
    is_hermitian: bool = False,
    max_iterations: int | None = None,
    eps: float | None = None,
    dynamic_shape: tuple[ArrayLike, ArrayLike] | None = None,
) -> tuple[ArrayLike, ArrayLike, ArrayLike, ArrayLike]:
    """Compute the polar decomposition `x = u h`, u with orthonormal columns, h Hermitian and >= 0.

    The method is the dynamically weighted Halley iteration of Nakatsukasa, Bai and Gygi,
    "Optimizing Halley's iteration for computing the matrix polar decomposition" (2010).

    Args:
      x: a matrix of shape (m, n), m >= n.
      is_hermitian: whether x is Hermitian; then so is u.
      max_iterations: the maximum number of iterations, 10 by default.
      eps: the relative precision; by default the machine epsilon of the dtype.
      dynamic_shape: the numbers of valid rows and columns of a padded x; they may be traced.

    Returns:
      (u, h, number of iterations, whether the iteration converged).

    Raises:
      ValueError: if x is not a matrix of at least as many rows as columns, or not floating.
    """
    aval = typeof(x)
    m, n = aval.shape
    if m < n:
        raise ValueError(f"The input matrix of shape M x N must have M >= N: got {aval.shape}.")
    if not issubdtype(aval.dtype, np.inexact):
        raise ValueError(f"qdwh requires floating or complex numbers, got {aval.dtype}")
    most = 10 if max_iterations is None else int(max_iterations)
    precision = float(finfo(aval.dtype).eps) if eps is None else float(eps)
    if not aval.size:
        square = full_like(x, 0, shape=(n, n))
        return x, square, np.int32(0), np.bool_(True)
    if dynamic_shape is not None:
        x = _masked(x, *dynamic_shape)
    original = x
    x = mul(x, _as(_inverse_scale(x), x))
    steps = _weights(precision, most)
    running: ArrayLike = np.bool_(True)
    previous = x
    for a, b, c in steps:
        previous = x
        x = _by_qr(x, a, b, c) if c > 100 else _by_cholesky(x, a, b, c)
    tolerance = np.cbrt(5 * precision)
    if steps:
        running = gt(_norm(sub(x, previous)), host_number(tolerance, real_dtype(aval.dtype)))

    def still(state: _State) -> Array:
        _, count, running = state
        return bitwise_and(running, lt(count, most))

    def step(state: _State) -> _State:
        x, count, _ = state
        # The weights a, b and c converge to 3, 1 and 3.
        following = _by_cholesky(x, 3.0, 1.0, 3.0)
        change = _norm(sub(following, x))
        return following, add(count, 1), gt(change, typeof(change).dtype.type(tolerance))

    x, count, running = while_loop(still, step, (x, len(steps), running))
    # A Newton-Schulz iteration makes the iterate unitary to machine precision.
    unitary = sub(_times(x, 1.5), product(_times(x, 0.5), product(adjoint(x), x)))
    hermitian = product(adjoint(unitary), original)
    hermitian = _half_sum(hermitian)
    if is_hermitian:
        unitary = _half_sum(unitary)
    return unitary, hermitian, count, bitwise_not(running)


def _half_sum(x: ArrayLike) -> Array:
    """Return the Hermitian part of a square matrix, (x + x^H) / 2."""
    return _times(add(x, adjoint(x)), 0.5)


def _times(x: ArrayLike, number: float) -> Array:
    return mul(x, typeof(x).dtype.type(number))


def _as(x: ArrayLike, like: ArrayLike) -> Array:
    return convert(x, typeof(like).dtype, False)


def _masked(x: ArrayLike, rows: ArrayLike, columns: ArrayLike) -> ArrayLike:
    """Return a matrix with zeros outside its first `rows` rows and `columns` columns."""
    for axis, size in enumerate((rows, columns)):
        index = index_like(x, axis)
        x = select_n(lt(index, convert(size, int32, False)), full_like(x, 0), x)
    return x


def _norm(x: ArrayLike) -> Array:
    """Return the Frobenius norm of a matrix."""
    magnitude = abs(x)
    return sqrt(reduce_sum(mul(magnitude, magnitude), (0, 1)))


def _inverse_scale(x: ArrayLike) -> Array:
    """Return the reciprocal of an upper bound of the singular values, sqrt(norm_1 * norm_inf)."""
    magnitude = abs(x)
    columns = reduce_max(reduce_sum(magnitude, (0,)), (0,))
    rows = reduce_max(reduce_sum(magnitude, (1,)), (0,))
    scale = mul(rsqrt(columns), rsqrt(rows))
    return select_n(eq(columns, full_like(columns, 0)), scale, full_like(scale, 1))


def _weights(least: float, most: int) -> list[tuple[float, float, float]]:
    """Return the weights (a, b, c) of each iteration for singular values from `least` to 1."""
    weights: list[tuple[float, float, float]] = []
    precision = least
    while least + 10 * precision < 1 and len(weights) < most:
        square = least * least
        d = np.cbrt(4 * (1 - square) / (square * square))
        a = math.sqrt(1 + d) + 0.5 * math.sqrt(
            8 - 4 * d + 8 * (2 - square) / (square * math.sqrt(1 + d))
        )
        b = (a - 1) ** 2 / 4
        c = a + b - 1
        weights.append((a, b, c))
        least = least * (a + b * square) / (1 + c * square)
    return weights


def _by_qr(x: ArrayLike, a: float, b: float, c: float) -> Array:
    """Return the next QDWH iterate by a QR decomposition, which is stable for large c."""
    m = typeof(x).shape[0]
    ones = identity_like(slice_in_dim(x, 0, typeof(x).shape[1]))
    q, _ = qr(concatenate([_times(x, math.sqrt(c)), ones], 0), full_matrices=False)
    upper, lower = slice_in_dim(q, 0, m), slice_in_dim(q, m, typeof(q).shape[0])
    turned = _times(product(upper, adjoint(lower)), (a - b / c) / math.sqrt(c))
    return add(_times(x, b / c), turned)


def _by_cholesky(x: ArrayLike, a: float, b: float, c: float) -> Array:
    """Return the next QDWH iterate by a Cholesky decomposition, which is faster for small c."""
    gram = _times(product(adjoint(x), x), c)
    factor = cholesky(add(gram, identity_like(gram)), symmetrize_input=False)
    solved = triangular_solve(factor, adjoint(x), left_side=True, lower=True)
    solved = triangular_solve(
        factor, solved, left_side=True, lower=True, transpose_a=True, conjugate_a=True
    )
    return add(_times(x, b / c), _times(adjoint(solved), a - b / c))
