"""Functions of matrices: the exponential, the square root, and any function of a matrix."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from hlofront.base.boundary import boundary
from hlofront.base.choices import check_choice
from hlofront.base.dtypes import finfo
from hlofront.base.elements import float32, float64, host_number, int32
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.higher_order.control_flow.library_loops import cond, fori_loop, scan
from hlofront.numpy.linalg.matrices import inexact
from hlofront.numpy.linalg.norms import norm
from hlofront.numpy.linalg.systems import solve_matrices
from hlofront.numpy.support.promotion import promote_dtypes_complex
from hlofront.primitives.arrays import creation, reducing
from hlofront.primitives.arrays.shaping import broadcast_in_dim, reshape
from hlofront.primitives.elementwise import compare, elementwise
from hlofront.primitives.elementwise.converting import convert, strong
from hlofront.primitives.linalg import spectral
from hlofront.primitives.linalg.matrices import (
    adjoint,
    along_columns,
    along_rows,
    broadcast_matrices,
    diagonal,
    identity_like,
    product,
    real_dtype,
    upper_triangle,
)
from hlofront.primitives.linalg.solving import triangular_solve
from hlofront.runtime.dispatch.operation import operation
from hlofront.transforms.grad import jvp
from hlofront.transforms.vmap import vmap

# ---- the exponential -----------------------------------------------------------------------------

# For each dtype: the degree of the diagonal Pade approximant, and the greatest norm for which it
# has the precision of the dtype: Higham, "The scaling and squaring method for the matrix
# exponential revisited" (2005).
_PADE = {
    float32: (3.925724783138660, 7),
    float64: (5.371920351148152, 13),
}


def _pade(a: Array, degree: int) -> tuple[Array, Array]:
    """Return the odd and even parts of a Pade numerator; the denominator is even minus odd."""
    factorial = math.factorial
    scale = factorial(2 * degree) // factorial(degree)
    numbers = [
        factorial(2 * degree - k) // (factorial(degree - k) * factorial(k)) / scale
        for k in range(degree + 1)
    ]
    ones = broadcast_matrices(identity_like(a), typeof(a).shape)
    square = product(a, a)
    scalar = partial(host_number, dtype=typeof(a).dtype)

    def of_square(chosen: list[float]) -> Array:
        """Return a polynomial of the squared matrix, by Horner's rule."""
        *lower, last = chosen
        total = elementwise.mul(square, scalar(last))
        for number in lower[:0:-1]:
            total = elementwise.add(total, elementwise.mul(ones, scalar(number)))
            total = product(square, total)
        return elementwise.add(total, elementwise.mul(ones, scalar(lower[0])))

    return product(a, of_square(numbers[1::2])), of_square(numbers[0::2])


@operation(static_argnames=("upper_triangular", "max_squarings"), nested=True)
def _expm(A: ArrayLike, *, upper_triangular: bool, max_squarings: int) -> Array:
    (a,) = inexact("jax.scipy.linalg.expm", A)
    a = strong(a)
    aval = typeof(a)
    if aval.ndim < 2 or aval.shape[-1] != aval.shape[-2]:
        raise ValueError(f"Expected A to be a (batched) square matrix, got A.shape={aval.shape}.")
    if not aval.size or aval.shape[-1] == 1:
        return elementwise.exp(a) if aval.size else a
    largest, degree = _PADE.get(real_dtype(aval.dtype), _PADE[float32])
    size = norm(a, 1, (-2, -1))
    dtype = typeof(size).dtype
    halvings = elementwise.floor(
        elementwise.div(
            elementwise.log(elementwise.mul(size, host_number(1 / largest, dtype))),
            creation.full_like(size, math.log(2)),
        )
    )
    halvings = elementwise.max(
        elementwise.add(halvings, creation.full_like(size, 1)), creation.full_like(size, 0)
    )
    scale = elementwise.exp2(elementwise.neg(halvings))
    batch = range(aval.ndim - 2)
    scale = convert(broadcast_in_dim(scale, aval.shape, batch), aval.dtype, False)
    odd, even = _pade(elementwise.mul(a, scale), degree)
    above, below = elementwise.add(even, odd), elementwise.sub(even, odd)
    if upper_triangular:
        result = triangular_solve(below, above, left_side=True)
    else:
        result = solve_matrices(below, above)
    most = host_number(max_squarings, dtype)

    def square(x: Array, step: Array) -> tuple[Array, None]:
        lanes = compare.lt(creation.full(typeof(halvings).shape, step, dtype), halvings)

        def squared(x: Array) -> Array:
            chosen = broadcast_in_dim(lanes, typeof(x).shape, batch)
            zeros = creation.full_like(x, 0)
            # Other matrices are not squared: that might overflow and make derivatives NaN.
            safe = compare.select_n(chosen, zeros, x)
            return compare.select_n(chosen, x, product(safe, safe))

        some = reducing.reduce_or(lanes, tuple(batch))
        return cond(some, squared, lambda x: x, x), None

    steps = np.arange(max_squarings, dtype=dtype)
    result, _ = scan(square, result, steps)
    beyond = broadcast_in_dim(
        elementwise.bitwise_not(compare.le(halvings, creation.full_like(halvings, most))),
        aval.shape,
        batch,
    )
    return compare.select_n(beyond, result, creation.full_like(result, np.nan))


def expm(A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """Compute the exponential of matrices, by scaling, a Pade approximant, and squaring.

    Args:
      A: an array of shape (..., n, n).
      upper_triangular: whether matrices are upper triangular.
      max_squarings: the greatest number of squarings; the result is NaN where a norm needs more.

    Raises:
      ValueError: if the matrices are not square.
    """
    return _expm(A, upper_triangular=bool(upper_triangular), max_squarings=int(max_squarings))


@boundary
def expm_frechet(
    A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: bool = True
) -> tuple[Array, Array] | Array:
    """Compute the exponential of matrices, and its derivative in the direction E.

    Args:
      A: an array of shape (..., n, n).
      E: the direction, of the shape of A.
      method: None, "SPS" or "blockEnlarge", which are equivalent here.
      compute_expm: whether to return the exponential as well as the derivative.

    Raises:
      ValueError: if the matrices are not square, or differ in shape, or there is no such method.
    """
    check_choice("expm_frechet", "method", method, (None, "SPS", "blockEnlarge"))
    A, E = inexact("jax.scipy.linalg.expm_frechet", A, E)
    shape, other = typeof(A).shape, typeof(E).shape
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ValueError(f"expected A to be a (batched) square matrix, got A.shape={shape}")
    if shape != other:
        raise ValueError(
            f"expected A and E to be the same shape, got A.shape={shape} E.shape={other}"
        )
    value, derivative = jvp(expm, (A,), (E,))
    return (value, derivative) if compute_expm else derivative


# ---- by Schur's form -----------------------------------------------------------------------------


def _over_batch(function: Callable[[Array], Array], x: Array) -> Array:
    """Apply a function of one matrix to each matrix of a batch (..., n, n)."""
    shape = typeof(x).shape
    if len(shape) <= 2:
        return function(x)
    count = math.prod(shape[:-2])
    results = vmap(function)(reshape(x, (count, *shape[-2:])))
    return reshape(results, shape)


def _triangular_root(t: Array) -> Array:
    """Return the square root of an upper triangular matrix, computed column by column.

    The method is that of Bjorck and Hammarling, "A Schur method for the square root of a matrix"
    (1983).
    Column j of the root r solves `(r + r[j, j]) x = t[:, j]` above the diagonal.
    """
    n = typeof(t).shape[0]
    roots = elementwise.sqrt(diagonal(t))
    rows = creation.broadcasted_iota(int32, (n, n), 0)
    columns = creation.broadcasted_iota(int32, (n, n), 1)
    positions = creation.broadcasted_iota(int32, (n,), 0)
    ones = identity_like(t)

    def chosen(which: Array, x: Array) -> Array:
        return compare.select_n(which, creation.full_like(x, 0), x)

    def step(j: Array, root: Array) -> Array:
        j = convert(j, int32, False)
        here = compare.eq(columns, j)
        above = compare.lt(positions, j)
        column = chosen(above, reducing.reduce_sum(chosen(here, t), (1,)))
        root_j = reducing.reduce_sum(chosen(compare.eq(positions, j), roots), (0,))
        ends = elementwise.add(roots, creation.full((n,), root_j, typeof(roots).dtype))
        none = compare.eq(ends, creation.full_like(ends, 0))
        ends = compare.select_n(none, ends, creation.full_like(ends, 1))
        inside = chosen(compare.lt(rows, columns), chosen(compare.lt(columns, j), root))
        system = elementwise.add(inside, elementwise.mul(ones, along_columns(ends, (n, n))))
        solved = triangular_solve(system, column, left_side=True)
        # Where the sum of two roots is zero, a square root exists only if the dividend is zero.
        left = compare.ne(solved, creation.full_like(solved, 0))
        lost = elementwise.bitwise_and(elementwise.bitwise_and(none, left), above)
        solved = compare.select_n(lost, solved, creation.full_like(solved, np.inf))
        total = elementwise.add(solved, chosen(compare.eq(positions, j), roots))
        return compare.select_n(here, root, along_columns(total, (n, n)))

    return fori_loop(0, n, step, creation.full_like(t, 0))


@operation
def _sqrtm(A: ArrayLike) -> Array:
    (a,) = promote_dtypes_complex(*inexact("jax.scipy.linalg.sqrtm", A))

    def root(a: Array) -> Array:
        t, z = spectral.schur(a)
        return product(product(z, _triangular_root(t)), adjoint(z))

    return _over_batch(root, a)


def sqrtm(A: ArrayLike, blocksize: int = 1) -> Array:
    """Compute the principal square root of square matrices, in complex numbers.

    Args:
      A: an array of shape (..., n, n).
      blocksize: must be 1.

    Raises:
      NotImplementedError: if the blocksize is greater.
      TypeError: if A has fewer than two axes.
      ValueError: if A is not square.
    """
    if blocksize > 1:
        raise NotImplementedError(  # JAX raises this class.
            "Blocked version is not implemented: leave blocksize at 1"
        )
    return _sqrtm(A)


def _parlett(t: Array, f: Array) -> tuple[Array, Array]:
    """Return a function of a triangular matrix from its diagonal `f`, by Parlett's recurrence.

    The method is algorithm 9.1.1 of Golub and Van Loan, one diagonal after the other.

    Returns:
      (the function of t, the least distance of eigenvalues of t).
    """
    n = typeof(t).shape[0]
    ends = diagonal(t)
    differences = elementwise.sub(along_rows(ends, (n, n)), along_columns(ends, (n, n)))
    none = compare.eq(differences, creation.full_like(differences, 0))
    divisor = compare.select_n(none, differences, creation.full_like(differences, 1))
    rows = creation.broadcasted_iota(int32, (n, n), 0)
    columns = creation.broadcasted_iota(int32, (n, n), 1)
    offset = elementwise.sub(columns, rows)

    def step(p: Array, f: Array) -> Array:
        change = elementwise.sub(product(t, f), product(f, t))
        change = elementwise.div(change, divisor)
        here = compare.eq(offset, convert(p, int32, False))
        return compare.select_n(here, f, change)

    f = fori_loop(1, n, step, f)
    distance = elementwise.abs(differences)
    counts = compare.gt(offset, creation.full_like(offset, 0))
    counts = elementwise.bitwise_and(counts, elementwise.bitwise_not(none))
    largest = creation.full_like(distance, float(np.inf))
    least = reducing.reduce_min(compare.select_n(counts, largest, distance), (0, 1))
    return f, least


@operation
def _complex_schur(A: ArrayLike) -> tuple[Array, Array, Array]:
    (a,) = inexact("jax.scipy.linalg.funm", A)
    shape = typeof(a).shape
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"expected square array_like input, got shape {shape}")
    t, z = spectral.schur(promote_dtypes_complex(a)[0])
    return t, z, diagonal(t)


@operation
def _from_values(t: Array, z: Array, values: Array) -> tuple[Array, Array]:
    """Return f(A) from A's Schur form and f of its eigenvalues, and an estimate of the error."""
    aval = typeof(t)
    values = convert(values, aval.dtype, False)
    start = elementwise.mul(identity_like(t), along_columns(values, aval.shape))
    f, least = _parlett(t, start)
    result = product(product(z, f), adjoint(z))
    real = real_dtype(aval.dtype)
    precision, one = host_number(finfo(aval.dtype).eps, real), host_number(1, real)
    strict = norm(upper_triangle(t, 1), 1)
    estimate = elementwise.mul(elementwise.div(precision, elementwise.min(least, one)), strict)
    estimate = elementwise.min(one, elementwise.max(precision, estimate))
    finite = reducing.reduce_and(elementwise.is_finite(elementwise.abs(f)), (0, 1))
    return result, compare.select_n(finite, creation.full((), np.inf, real), estimate)


@boundary
def funm(
    A: ArrayLike, func: Callable[[Array], Array], disp: bool = True
) -> Array | tuple[Array, Array]:
    """Compute a function of a square matrix by Schur decomposition and Parlett's recurrence.

    Eigenvalues that are equal or close make it inexact.

    Args:
      A: an array of shape (n, n).
      func: the function, elementwise, of a vector of complex numbers.
      disp: whether to return only the result, without an estimate of its relative error.

    Raises:
      ValueError: if A is not square.
    """
    t, z, ends = _complex_schur(A)
    result, error = _from_values(t, z, func(ends))
    return result if disp else (result, error)
