"""Sparse matrices in coordinates (COO), compressed rows (CSR) and compressed columns (CSC)."""

import abc
from collections.abc import Sequence
from typing import Self

import numpy as np

from hlofront.base import tree
from hlofront.base.boundary import boundary
from hlofront.base.dtypes import check_user_dtype_supported
from hlofront.base.typing import Array, ArrayLike, ArrayLikes, DTypeLike, Params, Shape
from hlofront.core.primitive import Primitive
from hlofront.core.trace import process
from hlofront.numpy.arrays.creation import asarray
from hlofront.numpy.arrays.ranges import arange
from hlofront.numpy.support.promotion import promote_dtypes
from hlofront.primitives.arrays.creation import full
from hlofront.primitives.arrays.sorting import sort
from hlofront.primitives.sparse import matrices as primitives
from hlofront.primitives.sparse.matrices import COOInfo
from hlofront.sparse.arrays import JAXSparse, SparseFormat
from hlofront.sparse.batched import number_of_elements, numbers_as_array, stored_count


def _checked_shape(name: str, shape: Sequence[int]) -> tuple[int, int]:
    if len(shape) != 2:
        raise ValueError(f"{name} must have ndim=2; got shape={tuple(shape)}")
    rows, width = shape
    return rows, width


def _from_dense(
    primitive: Primitive, name: str, mat: ArrayLike, nse: int | None, index_dtype: DTypeLike
) -> tuple[Array, Sequence[Array]]:
    """Return the dense matrix as an array, and the buffers of its sparse form."""
    mat = numbers_as_array(mat)
    assert mat.ndim == 2, f"{name}.fromdense: a matrix has two axes, got shape {mat.shape}"
    if nse is None:
        nse = number_of_elements(mat, 0, 0, f"{name.lower()}_fromdense", name)
    params = {
        "nse": stored_count(nse),
        "index_dtype": np.dtype(check_user_dtype_supported(index_dtype, name)),
    }
    return mat, process(primitive, (mat,), params)


class _Matrix(SparseFormat):
    """The base class of unbatched sparse matrices, with products by dense vectors and matrices."""

    @property
    def nse(self) -> int:
        """The number of stored elements."""
        return self.data.size

    @classmethod
    def _eye(
        cls,
        N: int,
        M: int,
        k: int,
        *,
        dtype: DTypeLike | None = None,
        index_dtype: DTypeLike = "int32",
    ) -> Self:
        """Return a matrix with ones on diagonal k."""
        count = max(min(N + min(k, 0), M - max(k, 0)), 0)
        data = full((count,), 1, check_user_dtype_supported(dtype or float, "eye"))
        steps = arange(count, dtype=index_dtype)
        return cls._of_diagonal(data, steps + max(-k, 0), steps + max(k, 0), (N, M), k)

    @classmethod
    @abc.abstractmethod
    def _of_diagonal(cls, data: Array, row: Array, col: Array, shape: Shape, k: int) -> Self:
        """Return a matrix with elements on diagonal k, in these rows and columns."""

    @classmethod
    def _empty(
        cls,
        shape: Sequence[int],
        *,
        dtype: DTypeLike | None = None,
        index_dtype: DTypeLike = "int32",
    ) -> Self:
        """Return a matrix without elements."""
        rows, width = _checked_shape(cls.__name__, shape)
        # The diagonal of this number is outside of the matrix.
        return cls._eye(rows, width, width, dtype=dtype, index_dtype=index_dtype)

    def _product(self, other: Array, transpose: bool = False) -> Array:
        raise AssertionError("each format defines its product")

    def __matmul__(self, other: ArrayLike) -> Array:
        if isinstance(other, JAXSparse):
            raise NotImplementedError(  # JAX raises this class.
                "matmul between two sparse objects: convert one with .todense(), or both to BCOO"
            )
        other = asarray(other)
        if other.ndim not in (1, 2):
            raise NotImplementedError(  # JAX raises this class.
                f"matmul with object of shape {other.shape}: products are with vectors and "
                "matrices; a BCOO array has others"
            )
        return self._product(other)


@tree.register_pytree_node_class
class COO(_Matrix):
    """A sparse matrix in coordinates: stored elements, and the row and column of each.

        >>> COO.fromdense(jnp.array([[0., 1.], [2., 0.]])) @ jnp.array([1., 10.])
        Array([10.,  2.], dtype=float32)

    Attributes:
      data: the stored elements, of shape (nse,).
      row: the rows of the elements, integers of that shape.
      col: the columns of the elements, integers of that shape.
      shape: the shape of the matrix.
    """

    row: Array
    col: Array
    _buffer_names = ("data", "row", "col")

    def __init__(
        self,
        args: tuple[ArrayLike, ArrayLike, ArrayLike],
        *,
        shape: Sequence[int],
        rows_sorted: bool = False,
        cols_sorted: bool = False,
    ):
        self.data, self.row, self.col = map(asarray, args)
        self.rows_sorted = rows_sorted
        self.cols_sorted = cols_sorted
        super().__init__(args, shape=shape)

    @property
    def _info(self) -> COOInfo:
        return COOInfo(self.shape, self.rows_sorted, self.cols_sorted)

    @classmethod
    def fromdense(
        cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32
    ) -> "COO":
        """Return the COO matrix of a dense one, with `coo_fromdense`."""
        return coo_fromdense(mat, nse=nse, index_dtype=index_dtype)

    @classmethod
    def _of_diagonal(cls, data: Array, row: Array, col: Array, shape: Shape, k: int) -> "COO":
        return cls((data, row, col), shape=shape, rows_sorted=True, cols_sorted=True)

    def _sort_indices(self) -> "COO":
        """Return the matrix with its elements sorted by rows, then by columns."""
        row, col, data = sort((self.row, self.col, self.data), num_keys=2)
        return COO((data, row, col), shape=self.shape, rows_sorted=True)

    def todense(self) -> Array:
        """Return the dense matrix."""
        return coo_todense(self)

    def transpose(self, axes: Sequence[int] | None = None) -> "COO":
        """Return the transposed matrix.

        Raises:
          NotImplementedError: if `axes` is not None.
        """
        if axes is not None:
            raise NotImplementedError(  # JAX raises this class.
                "axes argument to transpose(): a matrix has one transpose"
            )
        transposed = COOInfo(self.shape[::-1], self.cols_sorted, self.rows_sorted)
        return COO((self.data, self.col, self.row), **transposed._asdict())

    def tree_flatten(self) -> tuple[tuple[Array, ...], Params]:
        return self._bufs, self._info._asdict()

    def _product(self, other: Array, transpose: bool = False) -> Array:
        data, factor = promote_dtypes(self.data, other)
        mat = COO((data, self.row, self.col), **self._info._asdict())
        function = coo_matvec if other.ndim == 1 else coo_matmat
        return function(mat, factor, transpose=transpose)


class _Compressed(_Matrix):
    """The base class of matrices whose rows or columns are compressed."""

    indices: Array
    indptr: Array
    _buffer_names = ("data", "indices", "indptr")

    def __init__(self, args: ArrayLikes, *, shape: Sequence[int]):
        self.data, self.indices, self.indptr = map(asarray, args)
        super().__init__(args, shape=shape)


@tree.register_pytree_node_class
class CSR(_Compressed):
    """A sparse matrix in compressed rows: stored elements, their columns, and row starts.

    Attributes:
      data: the stored elements, of shape (nse,).
      indices: the columns of the elements, integers of that shape.
      indptr: where each row begins and the last one ends, of shape (rows + 1,).
      shape: the shape of the matrix.
    """

    @classmethod
    def fromdense(
        cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32
    ) -> "CSR":
        """Return the CSR matrix of a dense one, with `csr_fromdense`."""
        return csr_fromdense(mat, nse=nse, index_dtype=index_dtype)

    @classmethod
    def _of_diagonal(cls, data: Array, row: Array, col: Array, shape: Shape, k: int) -> "CSR":
        indptr = arange(shape[0] + 1, dtype=row.dtype) - max(-k, 0)
        return cls((data, col, indptr.clip(0, row.size)), shape=shape)

    def todense(self) -> Array:
        """Return the dense matrix."""
        return csr_todense(self)

    def transpose(self, axes: Sequence[int] | None = None) -> "CSC":
        """Return the transposed matrix, in compressed columns."""
        assert axes is None, f"CSR.transpose: a matrix has one transpose, got axes={axes}"
        return CSC(self._bufs, shape=self.shape[::-1])

    def _product(self, other: Array, transpose: bool = False) -> Array:
        data, factor = promote_dtypes(self.data, other)
        mat = CSR((data, self.indices, self.indptr), shape=self.shape)
        function = csr_matvec if other.ndim == 1 else csr_matmat
        return function(mat, factor, transpose=transpose)


@tree.register_pytree_node_class
class CSC(_Compressed):
    """A sparse matrix in compressed columns: stored elements, their rows, and column starts.

    Attributes:
      data: the stored elements, of shape (nse,).
      indices: the rows of the elements, integers of that shape.
      indptr: where each column begins and the last one ends, of shape (columns + 1,).
      shape: the shape of the matrix.
    """

    @classmethod
    def fromdense(
        cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32
    ) -> "CSC":
        """Return the CSC matrix of a dense matrix.

        Args:
          mat: the dense matrix.
          nse: the number of stored elements; further ones are dropped, and missing ones are
            padding. None is as many as needed, a number that is not known while tracing.
          index_dtype: the dtype of the indices.

        Raises:
          ConcretizationTypeError: if `nse` is None while tracing.
        """
        mat = asarray(mat)
        assert mat.ndim == 2, f"CSC.fromdense: a matrix has two axes, got shape {mat.shape}"
        return csr_fromdense(mat.T, nse=nse, index_dtype=index_dtype).T

    @classmethod
    def _of_diagonal(cls, data: Array, row: Array, col: Array, shape: Shape, k: int) -> "CSC":
        return CSR._of_diagonal(data, col, row, shape[::-1], -k).T

    def todense(self) -> Array:
        """Return the dense matrix."""
        return csr_todense(self.T).T

    def transpose(self, axes: Sequence[int] | None = None) -> CSR:
        """Return the transposed matrix, in compressed rows."""
        assert axes is None, f"CSC.transpose: a matrix has one transpose, got axes={axes}"
        return CSR(self._bufs, shape=self.shape[::-1])

    def _product(self, other: Array, transpose: bool = False) -> Array:
        return self.T._product(other, transpose=not transpose)


# ---- functions -----------------------------------------------------------------------------------


@boundary
def coo_fromdense(
    mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32
) -> COO:
    """Return the COO matrix of a dense matrix.

    Args:
      mat: the dense matrix.
      nse: the number of stored elements; further ones are dropped, and missing ones are zeros at
        row 0 and column 0. None is as many as needed, a number that is not known while tracing.
      index_dtype: the dtype of the indices.

    Raises:
      ConcretizationTypeError: if `nse` is None while tracing.
    """
    mat, buffers = _from_dense(primitives.coo_fromdense_p, "COO", mat, nse, index_dtype)
    return COO(tuple(buffers), shape=mat.shape, rows_sorted=True)


@boundary
def coo_todense(mat: COO) -> Array:
    """Return the dense matrix of a COO matrix.

    Args:
      mat: a COO matrix.

    Returns:
      An array of the shape and dtype of `mat`, with zeros where it stores nothing.
    """
    return process(primitives.coo_todense_p, mat._bufs, {"spinfo": mat._info})


def _coo_product(primitive: Primitive, mat: COO, v: ArrayLike, transpose: bool) -> Array:
    params = {"spinfo": mat._info, "transpose": bool(transpose)}
    return process(primitive, (*mat._bufs, asarray(v)), params)


@boundary
def coo_matvec(mat: COO, v: ArrayLike, transpose: bool = False) -> Array:
    """Return the product of a COO matrix and a dense vector.

    Args:
      mat: a COO matrix, of shape (m, k), or (k, m) if `transpose`.
      v: a vector of the same dtype, of shape (k,).
      transpose: whether the COO matrix is transposed first.

    Returns:
      An array of shape (m,).

    Raises:
      AssertionError: if the dtypes differ or the sizes do not fit.
    """
    return _coo_product(primitives.coo_matvec_p, mat, v, transpose)


@boundary
def coo_matmat(mat: COO, B: ArrayLike, *, transpose: bool = False) -> Array:
    """Return the product of a COO matrix and a dense matrix.

    Args:
      mat: a COO matrix, of shape (m, k), or (k, m) if `transpose`.
      B: a matrix of the same dtype, of shape (k, n).
      transpose: whether the COO matrix is transposed first.

    Returns:
      An array of shape (m, n).

    Raises:
      AssertionError: if the dtypes differ or the sizes do not fit.
    """
    return _coo_product(primitives.coo_matmat_p, mat, B, transpose)


@boundary
def csr_fromdense(
    mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32
) -> CSR:
    """Return the CSR matrix of a dense matrix.

    Args:
      mat: the dense matrix.
      nse: the number of stored elements; further ones are dropped, and missing ones are padding.
        None is as many as needed, a number that is not known while tracing.
      index_dtype: the dtype of the indices.

    Raises:
      ConcretizationTypeError: if `nse` is None while tracing.
    """
    mat, buffers = _from_dense(primitives.csr_fromdense_p, "CSR", mat, nse, index_dtype)
    return CSR(tuple(buffers), shape=mat.shape)


@boundary
def csr_todense(mat: CSR) -> Array:
    """Return the dense matrix of a CSR matrix.

    Args:
      mat: a CSR matrix.

    Returns:
      An array of the shape and dtype of `mat`, with zeros where it stores nothing.
    """
    return process(primitives.csr_todense_p, mat._bufs, {"shape": mat.shape})


def _csr_product(primitive: Primitive, mat: CSR, v: ArrayLike, transpose: bool) -> Array:
    params = {"shape": mat.shape, "transpose": bool(transpose)}
    return process(primitive, (*mat._bufs, asarray(v)), params)


@boundary
def csr_matvec(mat: CSR, v: ArrayLike, transpose: bool = False) -> Array:
    """Return the product of a CSR matrix and a dense vector.

    Args:
      mat: a CSR matrix, of shape (m, k), or (k, m) if `transpose`.
      v: a vector of the same dtype, of shape (k,).
      transpose: whether the CSR matrix is transposed first.

    Returns:
      An array of shape (m,).

    Raises:
      AssertionError: if the dtypes differ or the sizes do not fit.
    """
    return _csr_product(primitives.csr_matvec_p, mat, v, transpose)


@boundary
def csr_matmat(mat: CSR, B: ArrayLike, *, transpose: bool = False) -> Array:
    """Return the product of a CSR matrix and a dense matrix.

    Args:
      mat: a CSR matrix, of shape (m, k), or (k, m) if `transpose`.
      B: a matrix of the same dtype, of shape (k, n).
      transpose: whether the CSR matrix is transposed first.

    Returns:
      An array of shape (m, n).

    Raises:
      AssertionError: if the dtypes differ or the sizes do not fit.
    """
    return _csr_product(primitives.csr_matmat_p, mat, B, transpose)
