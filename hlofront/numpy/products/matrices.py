"""The matrices of special forms: identities, triangles, diagonals, Vandermonde matrices."""

from __future__ import annotations

import operator

import numpy as np

from hlofront.base import errors
from hlofront.base.boundary import boundary
from hlofront.base.config import follows_jax_0_12
from hlofront.base.dtypes import (
    check_integer,
    check_user_dtype_supported,
    default_dtype,
    issubdtype,
    python_scalar_dtype,
)
from hlofront.base.elements import exact_dtype, int32
from hlofront.base.typing import Array, ArrayLike, DTypeLike
from hlofront.core.aval import SymbolicSize, typeof
from hlofront.core.sharding.partition import PartitionSpec
from hlofront.core.sizes.dimensions import as_size, canonical_axis
from hlofront.core.trace import Tracer, is_eager
from hlofront.numpy.arrays.creation import MAX_ON_HOST, asarray, check_placement, from_host
from hlofront.numpy.arrays.ranges import arange
from hlofront.numpy.elementwise.powers import power
from hlofront.numpy.elementwise.ufuncs import any_operand
from hlofront.numpy.support.annotations import DeviceLike
from hlofront.numpy.support.like import like, operation_like
from hlofront.numpy.support.promotion import choose, host_scalar
from hlofront.primitives.arrays import creation, shaping, slicing
from hlofront.primitives.elementwise import compare, converting, elementwise
from hlofront.runtime.array.transfer import device_put


def _size(name: str, what: str, size: int, error: type[Exception] = ValueError) -> int:
    if isinstance(size, Tracer):
        raise errors.ConcretizationTypeError(
            size, f"It arose in the jnp.{name} argument '{what}': the shape depends on it."
        )
    try:
        size = as_size(size)
    except TypeError:
        raise TypeError(f"{name}: {what} must be an integer, got {size!r}") from None
    if size < 0:
        raise error(f"{name}: {what} must not be negative, got {size}")
    return size


def _checked_offset(name: str, k: ArrayLike) -> ArrayLike:
    """Return the checked diagonal offset of a triangle: a host integer, or a traced one.

    Raises OverflowError beyond the default integer dtype.
    """
    k = _offset(name, k)
    if isinstance(k, int):
        check_integer(k)
    return k


def _offset(name: str, k: ArrayLike) -> ArrayLike:
    """Return a diagonal offset: a host integer, or a traced one."""
    if isinstance(k, Tracer):
        aval = typeof(k)
        if not aval.shape and np.issubdtype(aval.dtype, np.integer):
            return converting.convert(k, int32, False)
    else:
        try:
            return operator.index(k)
        except TypeError:
            pass
    raise ValueError(f"{name}: k must be a scalar integer, got {k!r}")


def _rows_and_columns(shape: tuple[int, ...]) -> tuple[Array, Array]:
    ndim = len(shape)
    return tuple([creation.broadcasted_iota(int32, shape, ndim - i) for i in (2, 1)])


def _below(shape: tuple[int, ...], k: ArrayLike) -> Array:
    """Return a mask of the last two axes of `shape`, true on and below the k-th diagonal."""
    rows, columns = _rows_and_columns(shape)
    return compare.ge(elementwise.add(rows, _as_offset(k, shape)), columns)


def _as_offset(k: ArrayLike, shape: tuple[int, ...]) -> ArrayLike:
    """Return a diagonal offset for matrices of `shape`.

    Offsets far outside the matrix are clamped to just outside.
    """
    if not isinstance(k, int):
        return k
    rows, columns = shape[-2:]
    if isinstance(rows, SymbolicSize) or isinstance(columns, SymbolicSize):
        return np.int32(k)
    return np.int32(min(max(k, -rows), columns))


@like(np.eye)
@boundary
def eye(
    N: int,
    M: int | None = None,
    k: ArrayLike = 0,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike = None,
) -> Array:
    """Make a matrix with ones on a diagonal and zeros elsewhere.

    Args:
      N, M: the numbers of rows and columns; as many columns as rows by default.
      k: the number of the diagonal: 0 for the main one, positive above it.
      dtype: the dtype of the result.
      device: a Device or Sharding that the result is put on.

    Raises:
      ValueError: if a size is negative, or k is not an integer.
      TypeError: if a size is not an integer.

    Example:
      >>> jnp.eye(2)
      Array([[1., 0.],
             [0., 1.]], dtype=float32)
    """
    if not isinstance(device, PartitionSpec):
        device, _ = check_placement("eye", device)
    rows = _size("eye", "N", N)
    columns = rows if M is None else _size("eye", "M", M)
    k = _offset("eye", k)
    dtype = check_user_dtype_supported(float if dtype is None else dtype, "eye")
    if is_eager() and rows * columns <= MAX_ON_HOST:
        result = from_host(exact_dtype(np.eye(rows, columns, k).astype(dtype)))
    else:
        down, along = _rows_and_columns((rows, columns))
        ones = compare.eq(elementwise.add(down, _as_offset(k, (rows, columns))), along)
        result = converting.convert(ones, dtype, False)
    return result if device is None else device_put(result, device)


@like(np.identity)
def identity(n: int, dtype: DTypeLike | None = None) -> Array:
    """Make a square matrix with ones on its diagonal and zeros elsewhere.

    Example:
      >>> jnp.identity(2, dtype=int)
      Array([[1, 0],
             [0, 1]], dtype=int32)
    """
    return eye(n, dtype=dtype)


@like(np.tri)
@boundary
def tri(N: int, M: int | None = None, k: ArrayLike = 0, dtype: DTypeLike | None = None) -> Array:
    """Make a matrix of ones on and below the k-th diagonal, zeros above it.

    The default dtype is float32, or with hlofront_jax_api 0.12.0.1 float64 in x64 mode.

    Example:
      >>> jnp.tri(2, 3, k=1, dtype=int)
      Array([[1, 1, 0],
             [1, 1, 1]], dtype=int32)
    """
    rows = _size("tri", "N", N, TypeError)
    columns = rows if M is None else _size("tri", "M", M, TypeError)
    k = _checked_offset("tri", k)
    if dtype is None:
        dtype = default_dtype("f") if follows_jax_0_12() else np.float32
    dtype = check_user_dtype_supported(dtype, "tri")
    if is_eager() and rows * columns <= MAX_ON_HOST:
        return from_host(exact_dtype(np.tri(rows, columns, k).astype(dtype)))
    return converting.convert(_below((rows, columns), k), dtype, False)


def _triangle(name: str, m: ArrayLike, k: int, lower: bool) -> Array:
    m = any_operand(name, m)
    aval = typeof(m)
    if aval.ndim < 2:
        raise ValueError(f"{name} requires at least two axes, got shape {aval.shape}")
    below = shaping.broadcast_in_dim(
        _below(aval.shape[-2:], _checked_offset(name, k)),
        aval.shape,
        (aval.ndim - 2, aval.ndim - 1),
        out_sharding=None if aval.spec is None else aval.sharding,
    )
    zeros = creation.full_like(m, 0)
    return compare.select(below, m, zeros) if lower else compare.select(below, zeros, m)


@operation_like(np.tril, static_argnames=("k",))
def tril(m: ArrayLike, k: int = 0) -> Array:
    """Set the elements above the k-th diagonal of the last two axes to zero.

    Raises ValueError for fewer than two axes.

    Example:
      >>> jnp.tril(jnp.ones((2, 2)))
      Array([[1., 0.],
             [1., 1.]], dtype=float32)
    """
    return _triangle("tril", m, operator.index(k), True)


@operation_like(np.triu, static_argnames=("k",))
def triu(m: ArrayLike, k: int = 0) -> Array:
    """Set the elements below the k-th diagonal of the last two axes to zero.

    Args:
      m: an array of shape (..., M, N).
      k: the diagonal, above the main one if positive and below it if negative.

    Returns:
      An array of the shape and dtype of m.

    Raises:
      ValueError: if m has fewer than two axes.

    Example:
      >>> jnp.triu(jnp.ones((2, 2)))
      Array([[1., 1.],
             [0., 1.]], dtype=float32)
    """
    return _triangle("triu", m, operator.index(k) - 1, False)


# ---- diagonals ---------------------------------------------------------------------------------


def take_diagonal(name: str, a: ArrayLike, offset: int, axis1: int, axis2: int) -> Array:
    """Return the elements whose indices along two axes differ by `offset`, as a new last axis."""
    aval = typeof(a)
    if aval.ndim < 2:
        raise ValueError(f"{name} requires at least two axes, got shape {aval.shape}")
    offset = operator.index(offset)
    axis1, axis2 = canonical_axis(axis1, aval.ndim), canonical_axis(axis2, aval.ndim)
    if axis1 == axis2:
        raise ValueError(f"{name}: axis1 and axis2 must differ, both are {axis1}")
    other_axes = [i for i in range(aval.ndim) if i not in (axis1, axis2)]
    a = shaping.transpose(a, (*other_axes, axis1, axis2))
    *outer, rows, columns = typeof(a).shape
    first = offset if offset >= 0 else -offset * columns
    count = max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)
    # In the flattened matrix, neighbors on a diagonal are one row and one column apart.
    stride = columns + 1
    flat = shaping.reshape(a, (*outer, rows * columns))
    last = first + (count - 1) * stride + 1 if count else 0
    diagonal = slicing.slice_in_dim(flat, min(first, last), last, stride, axis=len(outer))
    # The main diagonal of one square matrix is a sum in JAX, and thus not weakly typed.
    is_sum = not outer and not offset and rows == columns
    return converting.strong(diagonal) if is_sum else diagonal


@operation_like(np.diagonal, static_argnames=("offset", "axis1", "axis2"))
def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """Return the elements whose indices along two axes differ by `offset`, along a new last axis.

    Raises ValueError if the array does not have the two axes.

    Example:
      >>> jnp.diagonal(jnp.array([[1, 2, 3], [4, 5, 6]]), offset=1)
      Array([2, 6], dtype=int32)
      >>> jnp.diagonal(jnp.ones((4, 2, 2)), axis1=1, axis2=2).shape
      (4, 2)
    """
    return take_diagonal("diagonal", any_operand("diagonal", a), offset, axis1, axis2)


def _on_diagonal(v: ArrayLike, k: int) -> Array:
    """Make a matrix of zeros with the vector `v` on its k-th diagonal."""
    aval = typeof(v)
    size = aval.shape[0] + abs(k)
    zero = host_scalar(0, aval.dtype, aval.weak_type)
    # Each column holds at most one element of the diagonal.
    columns = slicing.pad(v, zero, [(max(k, 0), max(-k, 0), 0)])
    rows, along = _rows_and_columns((size, size))
    on = compare.eq(elementwise.add(rows, np.int32(k)), along)
    repeated = shaping.broadcast_in_dim(columns, (size, size), (1,))
    return choose("diag", on, repeated, host_scalar(0, aval.dtype, aval.weak_type))


@operation_like(np.diag, static_argnames=("k",))
def diag(v: ArrayLike, k: int = 0) -> Array:
    """Return the k-th diagonal of a matrix, or a matrix with a vector on that diagonal.

    Raises ValueError for other ranks.

    Example:
      >>> jnp.diag(jnp.array([1, 2]))
      Array([[1, 0],
             [0, 2]], dtype=int32)
    """
    v = any_operand("diag", v)
    k = operator.index(k)
    ndim = typeof(v).ndim
    if ndim == 1:
        return _on_diagonal(v, k)
    if ndim == 2:
        return take_diagonal("diag", v, k, 0, 1)
    raise ValueError(f"diag requires one or two axes, got shape {typeof(v).shape}")


@operation_like(np.diagflat, static_argnames=("k",))
def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """Make a matrix with the elements of an array, flattened, on its k-th diagonal.

    Example:
      >>> jnp.diagflat(jnp.array([1, 2]), k=1)
      Array([[0, 1, 0],
             [0, 0, 2],
             [0, 0, 0]], dtype=int32)
    """
    v = any_operand("diagflat", v)
    v = converting.convert(v, typeof(v).dtype, False)
    return _on_diagonal(shaping.reshape(v, (typeof(v).size,)), operator.index(k))


# ---- Vandermonde -------------------------------------------------------------------------------


@operation_like(np.vander, static_argnames=("N", "increasing"))
def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:
    """Make a matrix whose rows are the powers of each element, ascending if `increasing`.

    Raises:
      TypeError: if x is boolean.
      ValueError: if x does not have one axis, or N is negative.

    Example:
      >>> jnp.vander(jnp.array([2, 3]), 3)
      Array([[4, 2, 1],
             [9, 3, 1]], dtype=int32)
    """
    x = any_operand("vander", x)
    aval = typeof(x)
    if aval.ndim != 1:
        raise ValueError(f"vander requires a one-dimensional array, got shape {aval.shape}")
    count = aval.shape[0] if N is None else operator.index(N)
    if count < 0:
        raise ValueError(f"vander: N must not be negative, got {count}")
    if aval.dtype == np.bool_:
        raise TypeError("vander takes numbers, and got booleans: give x.astype(int)")
    # One operation for all columns: as products of columns, the program would grow with them.
    exponents = creation.iota(python_scalar_dtype(int), count)
    if not increasing:
        exponents = shaping.rev(exponents, (0,))
    dtype = aval.dtype
    if issubdtype(dtype, np.integer) and dtype.itemsize < typeof(exponents).dtype.itemsize:
        dtype = typeof(exponents).dtype
    exponents = converting.convert(exponents, dtype, False)
    x = converting.convert(x, dtype, False)
    powers = power(shaping.expand_dims(x, (1,)), shaping.expand_dims(exponents, (0,)))
    return converting.convert(powers, aval.dtype, False)


# ---- indices of triangles and diagonals --------------------------------------------------------


def _indices(index_arrays: tuple[np.ndarray, ...]) -> tuple[Array, ...]:
    dtype = python_scalar_dtype(int)
    return tuple([asarray(one.astype(dtype)) for one in index_arrays])


@like(np.tril_indices)
def tril_indices(n: int, k: ArrayLike = 0, m: ArrayLike | None = None) -> tuple[Array, Array]:
    """Return the rows and columns of the elements on and below the k-th diagonal of a matrix.

    Example:
      >>> jnp.tril_indices(2)
      (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    rows = _size("tril_indices", "n", n)
    columns = rows if m is None else _size("tril_indices", "m", m)
    k = _checked_offset("tril_indices", operator.index(k))
    return _indices(np.tril_indices(rows, k, columns))  # type: ignore[return-value]


@like(np.triu_indices)
def triu_indices(n: int, k: ArrayLike = 0, m: ArrayLike | None = None) -> tuple[Array, Array]:
    """Return the rows and columns of the elements on and above the k-th diagonal of a matrix.

    Example:
      >>> jnp.triu_indices(2)
      (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    rows = _size("triu_indices", "n", n)
    columns = rows if m is None else _size("triu_indices", "m", m)
    k = _checked_offset("triu_indices", operator.index(k))
    return _indices(np.triu_indices(rows, k, columns))  # type: ignore[return-value]


def _shape_of(name: str, arr: ArrayLike) -> tuple[int, ...]:
    """Return the shape of an array, or of any object with a shape."""
    return tuple(arr.shape) if hasattr(arr, "shape") else typeof(any_operand(name, arr)).shape


def _matrix_shape(name: str, arr: ArrayLike) -> tuple[int, int]:
    shape = _shape_of(name, arr)
    if len(shape) != 2:
        raise ValueError(f"{name} requires a matrix, got shape {shape}")
    return shape


@like(np.tril_indices_from)
def tril_indices_from(arr: ArrayLike, k: ArrayLike = 0) -> tuple[Array, Array]:
    """Return the indices `tril_indices` for the shape of a matrix.

    Raises ValueError for arrays of other ranks.

    Example:
      >>> x = jnp.array([[1, 2], [3, 4]])
      >>> x[jnp.tril_indices_from(x)]
      Array([1, 3, 4], dtype=int32)
    """
    rows, columns = _matrix_shape("tril_indices_from", arr)
    return tril_indices(rows, k, columns)


@like(np.triu_indices_from)
def triu_indices_from(arr: ArrayLike, k: ArrayLike = 0) -> tuple[Array, Array]:
    """Return the indices `triu_indices` for the shape of a matrix.

    Raises ValueError for arrays of other ranks.

    Example:
      >>> x = jnp.array([[1, 2], [3, 4]])
      >>> x[jnp.triu_indices_from(x, k=1)]
      Array([2], dtype=int32)
    """
    rows, columns = _matrix_shape("triu_indices_from", arr)
    return triu_indices(rows, k, columns)


@like(np.diag_indices)
def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """Return the indices of the main diagonal of an array of `ndim` axes of size n.

    Raises ValueError if either is negative.

    Example:
      >>> jnp.zeros((2, 2), int).at[jnp.diag_indices(2)].set(7)
      Array([[7, 0],
             [0, 7]], dtype=int32)
    """
    index = arange(_size("diag_indices", "n", n))
    return (index,) * _size("diag_indices", "ndim", ndim)


@like(np.diag_indices_from)
def diag_indices_from(arr: ArrayLike) -> tuple[Array, ...]:
    """Return the indices `diag_indices` for the shape of an array.

    Raises ValueError unless it has two or more axes, all of equal size.

    Example:
      >>> x = jnp.array([[1, 2], [3, 4]])
      >>> x[jnp.diag_indices_from(x)]
      Array([1, 4], dtype=int32)
    """
    shape = _shape_of("diag_indices_from", arr)
    if len(shape) < 2 or len(set(shape)) != 1:
        raise ValueError(
            f"diag_indices_from requires at least two axes, all of equal size, got shape {shape}"
        )
    return diag_indices(shape[0], len(shape))


ARRAY_METHODS = {"diagonal": diagonal}
