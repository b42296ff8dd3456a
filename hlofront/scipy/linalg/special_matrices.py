"""Matrices of special forms: Toeplitz, Hankel, Hilbert, Pascal, companions, and others."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

import numpy as np

from hlofront.base.choices import check_choice
from hlofront.base.dtypes import check_user_dtype_supported, is_complex
from hlofront.base.elements import host_number
from hlofront.base.typing import Array, ArrayLike, DTypeLike, NumPyArray
from hlofront.core.aval import typeof
from hlofront.numpy.arrays.creation import asarray
from hlofront.numpy.linalg.matrices import inexact
from hlofront.numpy.support.promotion import operands, promote_dtypes
from hlofront.primitives.arrays import creation
from hlofront.primitives.arrays.gathering import GatherDimensionNumbers, gather
from hlofront.primitives.arrays.shaping import broadcast_in_dim, reshape
from hlofront.primitives.arrays.slicing import concatenate, pad, slice_in_dim
from hlofront.primitives.elementwise import elementwise
from hlofront.primitives.elementwise.converting import convert, strong
from hlofront.primitives.elementwise.weak_types import times_one
from hlofront.primitives.linalg.matrices import along_columns, along_rows, conjugate
from hlofront.runtime.dispatch.operation import operation


def _vectors(name: str, *args: ArrayLike, by: Callable[[Array], Array] = times_one) -> list[Array]:
    """Return the arguments as arrays of at least one axis, in one dtype, leading axes broadcast.

    They are strongly typed, and their cotangents as well, unless `by` is `strong`.
    """
    values, _ = operands(name, args)
    values = [by(x) for x in promote_dtypes(*values)]
    values = [x if typeof(x).ndim else reshape(x, (1,)) for x in values]
    batch = np.broadcast_shapes(*[typeof(x).shape[:-1] for x in values])
    return [
        broadcast_in_dim(
            x, (*batch, typeof(x).shape[-1]), range(len(batch) + 1 - typeof(x).ndim, len(batch) + 1)
        )
        for x in values
    ]


def _check_vectors(name: str, **args: ArrayLike | None) -> None:
    """Raise ValueError if one of the arguments, which may be None, is a scalar."""
    for key, value in args.items():
        if value is not None and not operands(name, (value,))[1][0].ndim:
            raise ValueError(f"{name}: {key} must be at least 1-dimensional, got a scalar.")


def _gathered(values: Array, index: NumPyArray) -> Array:
    """Return matrices whose element (i, j) is `values[..., index[i, j]]`."""
    aval = typeof(values)
    batch = aval.ndim - 1
    if not index.size:
        return creation.full((*aval.shape[:-1], *index.shape), 0, aval.dtype)
    numbers = GatherDimensionNumbers(
        offset_dims=tuple(range(batch)), collapsed_slice_dims=(batch,), start_index_map=(batch,)
    )
    indices = np.asarray(index, np.int32)[..., None]
    return gather(values, indices, numbers, (*aval.shape[:-1], 1))


def _with_constants(values: Array, *constants: int) -> Array:
    """Return vectors with constants prepended along the last axis."""
    aval = typeof(values)
    heads = [creation.full((*aval.shape[:-1], 1), number, aval.dtype) for number in constants]
    return concatenate([*heads, values], aval.ndim - 1)


# ---- constant along diagonals --------------------------------------------------------------------


@operation
def toeplitz(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Make matrices that are constant along each diagonal.

    Args:
      c: the first column, of shape (..., m).
      r: the first row, of shape (..., n), whose first element is not used; by default the
        conjugate of c.

    Example:
      >>> jax.scipy.linalg.toeplitz(jnp.array([1, 2]), jnp.array([1, 3, 4]))
      Array([[1, 3, 4],
             [2, 1, 3]], dtype=int32)
    """
    (c,) = _vectors("toeplitz", c)
    c, r = (c, conjugate(c)) if r is None else _vectors("toeplitz", c, r)
    m, n = typeof(c).shape[-1], typeof(r).shape[-1]
    values = concatenate([c, r], typeof(c).ndim - 1)
    offset = np.arange(n) - np.arange(m)[:, None]
    return _gathered(values, np.where(offset > 0, m + offset, -offset))


@operation
def hankel(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Make matrices that are constant along each ascending diagonal.

    Args:
      c: the first column, of shape (..., m).
      r: the last row, of shape (..., n), whose first element is not used; by default zeros.

    Raises:
      ValueError: if c or r is a scalar.

    Example:
      >>> jax.scipy.linalg.hankel(jnp.array([1, 2]), jnp.array([2, 3, 4]))
      Array([[1, 2, 3],
             [2, 3, 4]], dtype=int32)
    """
    _check_vectors("hankel", c=c, r=r)
    (c,) = _vectors("hankel", c)
    c, r = (c, creation.full_like(c, 0)) if r is None else _vectors("hankel", c, r)
    m, n = typeof(c).shape[-1], typeof(r).shape[-1]
    values = concatenate([c, r], typeof(c).ndim - 1)
    index = np.arange(n) + np.arange(m)[:, None]
    return _gathered(values, np.where(index < m, index, index + 1))


@operation
def circulant(c: ArrayLike) -> Array:
    """Make matrices of shape (..., n, n) whose columns are vectors c of shape (..., n), rotated.

    Args:
      c: the first columns, of shape (..., n).

    Returns:
      An array of shape (..., n, n) and the dtype of c.

    Example:
      >>> jax.scipy.linalg.circulant(jnp.array([1, 2, 3]))
      Array([[1, 3, 2],
             [2, 1, 3],
             [3, 2, 1]], dtype=int32)
    """
    (_,), (aval,) = operands("circulant", (c,))
    (c,) = _vectors("circulant", c)
    n = typeof(c).shape[-1]
    result = _gathered(c, (np.arange(n)[:, None] - np.arange(n)) % max(n, 1))
    return convert(result, typeof(result).dtype, aval.weak_type)


@operation(static_argnames=("n", "mode"))
def convolution_matrix(a: ArrayLike, n: int, mode: str = "full") -> Array:
    """Make the matrix whose product with a vector v of n elements is the convolution of `a` and v.

    Args:
      a: an array of shape (..., m).
      n: the number of columns.
      mode: the rows: "full", "valid" or "same". See `hlofront.numpy.convolve`.

    Raises:
      ValueError: if n is not positive, `a` is empty or a scalar, or there is no such mode.
      TypeError: if n is not an integer.

    Example:
      >>> jax.scipy.linalg.convolution_matrix(jnp.array([1, 2]), 3, "valid")
      Array([[2, 1, 0],
             [0, 2, 1]], dtype=int32)
    """
    n = operator.index(n)
    if n <= 0:
        raise ValueError(f"n must be a positive integer; got {n}.")
    _check_vectors("convolution_matrix", a=a)
    (a,) = _vectors("convolution_matrix", a)
    m = typeof(a).shape[-1]
    if not m:
        raise ValueError(f"len(a) must be at least 1; got shape {typeof(a).shape}.")
    least = min(m, n)
    rows = {
        "full": (0, m + n - 1),
        "valid": (least - 1, max(m, n) - least + 1),
        "same": ((least - 1) // 2, max(m, n)),
    }.get(mode)
    if rows is None:
        raise ValueError(f"mode must be one of 'full', 'valid', 'same'; got {mode!r}.")
    first, count = rows
    index = np.arange(first, first + count)[:, None] - np.arange(n)
    inside = (index >= 0) & (index < m)
    return _gathered(_with_constants(a, 0), np.where(inside, index + 1, 0))


# ---- of polynomials and populations --------------------------------------------------------------


@operation
def companion(a: ArrayLike) -> Array:
    """Make the matrix whose eigenvalues are the roots of the polynomial with coefficients `a`.

    Args:
      a: an array of shape (..., n), n >= 2, from the highest power down.

    Raises:
      ValueError: if there are fewer than two coefficients.

    Example:
      >>> jax.scipy.linalg.companion(jnp.array([2, 4, 6]))
      Array([[-2., -3.],
             [ 1.,  0.]], dtype=float32)
    """
    (a,) = inexact("companion", a)
    (a,) = _vectors("companion", a)
    n = typeof(a).shape[-1]
    if n < 2:
        raise ValueError(
            "The length of `a` along the last axis must be at least 2; got shape "
            f"{typeof(a).shape}."
        )
    values = _with_constants(_monic(a), 0, 1)
    index = np.eye(n - 1, k=-1, dtype=int)
    index[0] = np.arange(3, n + 2)
    return _gathered(values, index)


def _monic(a: Array) -> Array:
    """Return the coefficients of polynomials (..., n), divided by the first and negated."""
    aval = typeof(a)
    first = slice_in_dim(a, 0, 1, axis=aval.ndim - 1)
    first = broadcast_in_dim(first, aval.shape, range(aval.ndim))
    return elementwise.div(elementwise.neg(a), first)


@operation
def fiedler_companion(a: ArrayLike) -> Array:
    """Make a pentadiagonal matrix whose eigenvalues are those of `companion`.

    Args:
      a: an array of shape (..., n), n >= 1, from the highest power down.

    Raises:
      ValueError: if there are no coefficients.
    """
    (a,) = inexact("fiedler_companion", a)
    weak = typeof(a).weak_type
    (a,) = _vectors("fiedler_companion", a)
    n = typeof(a).shape[-1] - 1
    if n < 0:
        raise ValueError(
            "fiedler_companion requires the last axis of 'a' to have nonzero length, but got an "
            f"array of shape {typeof(a).shape}."
        )
    if not n:
        empty = creation.full((*typeof(a).shape[:-1], 0, 0), 0, typeof(a).dtype)
        return convert(empty, typeof(a).dtype, weak)
    # The gathered vector holds a zero, a one, and then the coefficients.
    index = np.zeros((n, n), int)
    ones, coefficient = 1, 2
    if n > 1:
        index[1, 0] = ones
        for row in range(3, n, 2):
            index[row, row - 2] = ones
        for row in range(2, n, 2):
            index[row, row - 1] = coefficient + row + 1
            index[row - 2, row] = ones
        for row in range(0, n - 1, 2):
            index[row, row + 1] = coefficient + row + 2
    index[0, 0] = coefficient + 1
    result = _gathered(_with_constants(_monic(a), 0, 1), index)
    return convert(result, typeof(a).dtype, weak and n == 1)


@operation
def fiedler(a: ArrayLike) -> Array:
    """Make the matrices of distances `|a[i] - a[j]|`, of shape (..., n, n), of vectors (..., n).

    Args:
      a: vectors, of shape (..., n).

    Returns:
      An array of shape (..., n, n) and the dtype of a.

    Example:
      >>> jax.scipy.linalg.fiedler(jnp.array([1, 4]))
      Array([[0, 3],
             [3, 0]], dtype=int32)
    """
    (_,), (aval,) = operands("fiedler", (a,))
    (a,) = _vectors("fiedler", a, by=strong)
    n = typeof(a).shape[-1]
    shape = (*typeof(a).shape, n)
    result = elementwise.abs(elementwise.sub(along_columns(a, shape), along_rows(a, shape)))
    return convert(result, typeof(result).dtype, aval.weak_type)


@operation
def leslie(f: ArrayLike, s: ArrayLike) -> Array:
    """Make the matrix that advances a population of n ages by one step.

    Args:
      f: the number of offspring of each age, of shape (..., n), n >= 2.
      s: the share of each age but the last that survives, of shape (..., n - 1).

    Raises:
      ValueError: if the lengths do not fit, or there are fewer than two ages.

    Example:
      >>> jax.scipy.linalg.leslie(jnp.array([1.0, 2.0]), jnp.array([0.5]))
      Array([[1. , 2. ],
             [0.5, 0. ]], dtype=float32)
    """
    values, _ = operands("leslie", (f, s))
    is_weak = all(typeof(x).weak_type for x in promote_dtypes(*values))
    f, s = _vectors("leslie", f, s, by=strong)
    n = typeof(f).shape[-1]
    if n < 2:
        raise ValueError(
            f"The length of f along the last axis must be at least 2; got shape {typeof(f).shape}."
        )
    if typeof(s).shape[-1] != n - 1:
        raise ValueError(
            "Incorrect lengths for f and s. The length of s along the last axis must be one less "
            f"than the length of f; got f shape {typeof(f).shape} and s shape {typeof(s).shape}."
        )
    elements = _with_constants(concatenate([f, s], typeof(f).ndim - 1), 0)
    index = np.zeros((n, n), int)
    index[0] = np.arange(1, n + 1)
    index[np.arange(1, n), np.arange(n - 1)] = np.arange(n + 1, 2 * n)
    result = _gathered(elements, index)
    return convert(result, typeof(result).dtype, is_weak)


@operation
def block_diag(*arrs: ArrayLike) -> Array:
    """Make a block diagonal matrix of matrices; vectors are rows, scalars 1 x 1.

    Args:
      *arrs: arrays of shapes (m, n), (n,) or (), of dtypes with a common one.

    Returns:
      An array of the common dtype, whose shape is the sum of the matrices' shapes; it is (1, 0)
      without arguments.

    Raises:
      ValueError: if an argument has more than two axes.

    Example:
      >>> jax.scipy.linalg.block_diag(jnp.array([[1, 2], [3, 4]]), jnp.array([5, 6]))
      Array([[1, 2, 0, 0],
             [3, 4, 0, 0],
             [0, 0, 5, 6]], dtype=int32)
    """
    values, avals = operands("block_diag", arrs or (np.zeros((1, 0), np.float32),))
    for position, aval in enumerate(avals):
        if aval.ndim > 2:
            raise ValueError(
                "Arguments to jax.scipy.linalg.block_diag must have at most 2 dimensions, got "
                f"{aval.str_short()} at argument {position}."
            )
    values = [times_one(x) for x in promote_dtypes(*values)]
    blocks = [reshape(x, (1,) * (2 - typeof(x).ndim) + typeof(x).shape) for x in values]
    width = sum(typeof(x).shape[1] for x in blocks)
    rows, before = [], 0
    for block in blocks:
        block_aval = typeof(block)
        after = width - before - block_aval.shape[1]
        rows.append(pad(block, host_number(0, block_aval.dtype), [(0, 0, 0), (before, after, 0)]))
        before += block_aval.shape[1]
    return concatenate(rows, 0)


# ---- of size n -----------------------------------------------------------------------------------


def _float(name: str) -> np.dtype:
    return check_user_dtype_supported(float, name)


def hilbert(n: int) -> Array:
    """Make the Hilbert matrix `1 / (i + j + 1)` of shape (n, n), of the default floats.

    Args:
      n: the number of rows, not negative.

    Returns:
      An array of shape (n, n) of default floats.

    Raises:
      TypeError: if n is negative.
    """
    n = operator.index(n)
    if n < 0:
        raise TypeError(f"hilbert requires a nonnegative size, got {n}")
    return asarray((1 / (1 + np.arange(n) + np.arange(n)[:, None])).astype(_float("hilbert")))


def invhilbert(n: int) -> Array:
    """Make the inverse of the Hilbert matrix of shape (n, n), by its closed form, rounded once.

    Args:
      n: the number of rows.

    Returns:
      An array of shape (n, n) of default floats; of shape (0, 0) where n is negative.
    """
    n = max(int(n), 0)
    comb = math.comb
    rows = [
        [
            (-1) ** (i + j)
            * (i + j + 1)
            * comb(n + i, n - j - 1)
            * comb(n + j, n - i - 1)
            * comb(i + j, i) ** 2
            for j in range(n)
        ]
        for i in range(n)
    ]
    exact = np.array([[float(x) for x in row] for row in rows]).reshape(n, n)
    return asarray(exact.astype(_float("invhilbert")))


def _triangle(n: int, signed: bool) -> NumPyArray:
    sign = -1.0 if signed else 1.0
    rows = [[sign ** (i - j) * math.comb(i, j) for j in range(n)] for i in range(n)]
    return np.array(rows, float).reshape(n, n)


def _kind(kind: str | None) -> str:
    kind = "symmetric" if kind is None else kind
    check_choice("pascal", "kind", kind, ("symmetric", "lower", "upper"))
    return kind


def pascal(n: int, kind: str | None = None) -> Array:
    """Make Pascal's triangle as a matrix.

    Args:
      n: the number of rows.
      kind: "lower" or "upper" for the triangle; "symmetric" or None for the product of both
        triangles.

    Returns:
      An array of shape (n, n) of default floats.

    Raises:
      ValueError: if there is no such kind.

    Example:
      >>> jax.scipy.linalg.pascal(3, kind="lower")
      Array([[1., 0., 0.],
             [1., 1., 0.],
             [1., 2., 1.]], dtype=float32)
    """
    kind, lower = _kind(kind), _triangle(max(int(n), 0), False)
    matrix = {"lower": lower, "upper": lower.T, "symmetric": lower @ lower.T}[kind]
    return asarray(matrix.astype(_float("pascal")))


def invpascal(n: int, kind: str | None = None) -> Array:
    """Make the inverse of Pascal's triangle as a matrix.

    Args:
      n: the number of rows.
      kind: "lower" or "upper" for a triangle; "symmetric" or None for the product of both
        triangles.

    Returns:
      An array of shape (n, n) of default floats.

    Raises:
      ValueError: if there is no such kind.

    Example:
      >>> jax.scipy.linalg.invpascal(2, kind="lower")
      Array([[ 1., -0.],
             [-1.,  1.]], dtype=float32)
    """
    kind, lower = _kind(kind), _triangle(max(int(n), 0), True)
    matrix = {"lower": lower, "upper": lower.T, "symmetric": lower.T @ lower}[kind]
    return asarray(matrix.astype(_float("invpascal")))


def hadamard(n: int, dtype: DTypeLike = int) -> Array:
    """Make the Hadamard matrix of ones and minus ones, by Sylvester's construction.

    Args:
      n: the number of rows, a power of two.
      dtype: the dtype of the result.

    Returns:
      An array of shape (n, n), whose rows are orthogonal to each other.

    Raises:
      ValueError: if n is not a power of two.

    Example:
      >>> jax.scipy.linalg.hadamard(2, dtype=int)
      Array([[ 1,  1],
             [ 1, -1]], dtype=int32)
    """
    size = int(n)
    if size < 1 or size & (size - 1):
        raise ValueError(f"n must be a positive power of 2; got {n}.")
    dtype = check_user_dtype_supported(dtype, "hadamard")
    indices = np.arange(size)
    ones = np.array([[(i & j).bit_count() & 1 for j in indices.tolist()] for i in indices.tolist()])
    return asarray((1 - 2 * ones).astype(dtype))


def helmert(n: int, full: bool = False) -> Array:
    """Make the orthogonal Helmert matrix; `full` includes the first row, of equal elements.

    Args:
      n: the number of columns.
      full: whether the result has the first row, of equal elements.

    Returns:
      An array of default floats, of shape (n, n) if `full`, else (n - 1, n).

    Raises:
      ValueError: if n is not positive.
    """
    size = int(n)
    if size < 1:
        raise ValueError(f"n must be a positive integer; got {n}.")
    matrix = np.tril(np.ones((size, size)), -1) - np.diag(np.arange(size))
    matrix[0] = 1
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    return asarray((matrix if full else matrix[1:]).astype(_float("helmert")))


def dft(n: int, scale: str | None = None, *, dtype: DTypeLike | None = None) -> Array:
    """Make the matrix of the discrete Fourier transform.

    Args:
      n: the number of rows and columns.
      scale: "sqrtn" to divide by the root of n, "n" by n.
      dtype: a complex dtype, the default one if None.

    Raises:
      ValueError: if there is no such scale, or the dtype is not complex.
    """
    dtype = check_user_dtype_supported(complex if dtype is None else dtype, "dft")
    if not is_complex(dtype):
        raise ValueError(f"dtype must be a complex floating-point type; got {dtype}.")
    check_choice("dft", "scale", scale, (None, "sqrtn", "n"))
    size = max(int(n), 0)
    indices = np.arange(size)
    matrix = np.exp(-2j * np.pi * (np.outer(indices, indices) % max(size, 1)) / max(size, 1))
    if scale is not None:
        matrix = matrix / (math.sqrt(size) if scale == "sqrtn" else size)
    return asarray(matrix.astype(dtype))
