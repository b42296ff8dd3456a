"""Sparse arrays in batched compressed rows: the class BCSR, its making, and functions of it."""

from collections.abc import Sequence

import numpy as np

from hlofront.base import tree
from hlofront.base.boundary import boundary
from hlofront.base.typing import Array, ArrayLike, DTypeLike
from hlofront.core.aval import typeof
from hlofront.core.trace import process
from hlofront.numpy.arrays.creation import asarray
from hlofront.numpy.arrays.filling import zeros
from hlofront.primitives.arrays.creation import full
from hlofront.primitives.linalg.contraction_numbers import DotDimensionNumbers, canonical_numbers
from hlofront.primitives.linalg.dot_general import canonical_element_type, dot_general
from hlofront.primitives.sparse import rows as sparse_rows
from hlofront.sparse.arrays import JAXSparse
from hlofront.sparse.batched import BatchedSparse, register_batched
from hlofront.sparse.bcoo import BCOO, bcoo_sum_duplicates
from hlofront.sparse.bcoo_shaping import bcoo_broadcast_in_dim, bcoo_concatenate


@tree.register_pytree_node_class
class BCSR(BatchedSparse):
    """A sparse array in batched compressed rows: stored elements, their columns, and row starts.

    Its axes are batch axes, then two sparse axes, then dense axes. Elements after the end of the
    last row are padding.

        >>> BCSR.fromdense(jnp.array([[0., 1.], [2., 0.]])).indptr
        Array([0, 1, 2], dtype=int32)

    Attributes:
      data: the stored elements, of shape (*batch, nse, *dense).
      indices: the columns of the elements, integers of shape (*batch, nse).
      indptr: where each row begins and the last one ends, of shape (*batch, rows + 1).
      shape: the shape of the array, (*batch, rows, columns, *dense).
      indices_sorted: whether the caller promises that the columns of each row ascend.
      unique_indices: whether the caller promises that no position repeats.
    """

    indptr: Array

    _fromdense_p = sparse_rows.bcsr_fromdense_p

    _buffer_names = ("data", "indices", "indptr")

    def _take(self, buffers: Sequence[Array]) -> None:
        self.data, self.indices, self.indptr = buffers
        sparse_rows.check_rows(*map(typeof, self._bufs), self.shape)

    @property
    def nse(self) -> int:
        """The number of stored elements of each element of the batch."""
        return self.indices.shape[-1]

    @property
    def n_batch(self) -> int:
        """The number of batch axes."""
        return self.indices.ndim - 1

    @property
    def n_sparse(self) -> int:
        """The number of sparse axes, which is 2."""
        return 2

    @classmethod
    def _empty(
        cls,
        shape: Sequence[int],
        *,
        dtype: DTypeLike | None = None,
        index_dtype: DTypeLike = "int32",
        n_dense: int = 0,
        n_batch: int = 0,
        nse: int = 0,
    ) -> "BCSR":
        """Return an array without elements, with room for `nse`."""
        shape = tuple(shape)
        if n_dense < 0 or n_batch < 0 or nse < 0 or len(shape) - n_dense - n_batch != 2:
            raise ValueError(
                f"Invalid inputs: shape={shape}, n_dense={n_dense}, n_batch={n_batch}, nse={nse}: "
                "none is negative, and two axes are sparse"
            )
        batch, dense = shape[:n_batch], shape[n_batch + 2 :]
        rows, width = shape[n_batch : n_batch + 2]
        index_dtype = np.dtype(index_dtype)
        data = zeros((*batch, nse, *dense), dtype)
        indices = full((*batch, nse), width, index_dtype)
        return cls((data, indices, full((*batch, rows + 1), 0, index_dtype)), shape=shape)

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> "BCSR":
        """Return the BCSR array of a BCOO array, whose elements are sorted if they are not yet.

        Raises:
          NotImplementedError: if there are not two sparse axes.
        """
        if arr.n_sparse != 2:
            raise NotImplementedError(  # JAX raises this class.
                f"BSCR.from_bcoo requires n_sparse=2; got arr.n_sparse={arr.n_sparse}: change the "
                "roles of axes with update_layout first"
            )
        if not arr.indices_sorted:
            arr = arr.sort_indices()
        indices, indptr = sparse_rows.rows_of_indices(arr.indices, arr.shape[arr.n_batch])
        return cls((arr.data, indices, indptr), shape=arr.shape)

    @classmethod
    def _of_scipy_matrix(cls, mat: object, index_dtype: DTypeLike) -> "BCSR":
        rows = mat.tocsr()
        buffers = asarray(rows.indices, dtype=index_dtype), asarray(rows.indptr, dtype=index_dtype)
        return cls((asarray(rows.data), *buffers), shape=mat.shape)

    def to_bcoo(self) -> BCOO:
        """Return the BCOO array with the same elements."""
        indices = sparse_rows.indices_of_rows(self.indices, self.indptr)
        return BCOO((self.data, indices), shape=self.shape)

    def todense(self) -> Array:
        """Return the dense array."""
        return bcsr_todense(self)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> "BCSR":
        """Return the array with each position once, in order, and the sums of its elements.

        Args:
          nse: the number of stored positions of the result; further ones are dropped. None is as
            many as needed, a number that is not known while tracing.
          remove_zeros: whether positions whose elements are zero are dropped.

        Raises:
          ValueError: if `nse` is None while tracing.
        """
        return BCSR.from_bcoo(self.to_bcoo().sum_duplicates(nse=nse, remove_zeros=remove_zeros))

    def transpose(self, *args: object, **kwargs: object) -> "BCSR":
        """Raise NotImplementedError: compressed rows have no transpose.

        The array that `to_bcoo()` returns can be transposed.
        """
        raise NotImplementedError(  # JAX raises this class.
            "Transpose is not implemented for BCSR: convert with .to_bcoo() first"
        )


register_batched(BCSR)


@boundary
def bcsr_fromdense(
    mat: ArrayLike,
    *,
    nse: int | None = None,
    n_batch: int = 0,
    n_dense: int = 0,
    index_dtype: DTypeLike = np.int32,
) -> BCSR:
    """Return the BCSR array of a dense array: its nonzero elements in the order of rows.

    Args:
      mat: the dense array.
      nse: the number of stored positions. Further elements are dropped, and missing ones are
        padding. None is as many as needed, a number that is not known while tracing.
      n_batch: the number of batch axes.
      n_dense: the number of dense axes.
      index_dtype: the dtype of the indices.

    Raises:
      ConcretizationTypeError: if `nse` is None while tracing.
      ValueError: if there are not two axes besides the batch and dense ones.
    """
    return BCSR.fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)


@boundary
def bcsr_todense(mat: BCSR) -> Array:
    """Return the dense array of a BCSR array.

    Args:
      mat: a BCSR array.

    Returns:
      An array of the shape and dtype of `mat`, with zeros where it stores nothing.
    """
    return process(sparse_rows.bcsr_todense_p, mat._bufs, {"spinfo": mat._info})


@boundary
def bcsr_extract(indices: ArrayLike, indptr: ArrayLike, mat: ArrayLike) -> Array:
    """Return the elements of a dense array at the positions of compressed rows, as BCSR data.

    Args:
      indices: columns, of shape (*batch, nse).
      indptr: row starts, of shape (*batch, rows + 1).
      mat: a dense array of shape (*batch, rows, columns, *dense).
    """
    operands = asarray(indices), asarray(indptr), asarray(mat)
    return process(sparse_rows.bcsr_extract_p, operands, {})


@boundary
def bcsr_dot_general(
    lhs: BCSR | ArrayLike,
    rhs: ArrayLike,
    *,
    dimension_numbers: DotDimensionNumbers,
    precision: None = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: None = None,
) -> Array:
    """Contract a BCSR array with a dense array.

    Args:
      lhs: an array of two sparse axes, perhaps with batch axes.
      rhs: a dense array.
      dimension_numbers: ((contracting axes of lhs, of rhs), (batch axes of lhs, of rhs)).
      precision: has no effect: products of stored elements are summed up one by one.
      preferred_element_type: the dtype of the sums and of the result.
      out_sharding: must be None.

    Returns:
      A dense array.

    Raises:
      NotImplementedError: if `rhs` is sparse.
    """
    if not isinstance(lhs, JAXSparse) and not isinstance(rhs, JAXSparse):
        return dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type)
    if not isinstance(lhs, BCSR) or isinstance(rhs, JAXSparse):
        raise NotImplementedError(  # JAX raises this class.
            "bcsr_dot_general currently implemented for BCSR lhs and ndarray rhs."
        )
    params = {
        "dimension_numbers": canonical_numbers(dimension_numbers),
        "preferred_element_type": canonical_element_type(
            preferred_element_type, "bcsr_dot_general"
        ),
        "lhs_spinfo": lhs._info,
    }
    return process(sparse_rows.bcsr_dot_general_p, (*lhs._bufs, asarray(rhs)), params)


@boundary
def bcsr_sum_duplicates(mat: BCSR, nse: int | None = None) -> BCSR:
    """Return a BCSR array with each position once, in order, and the sums of its elements.

    Args:
      mat: the array.
      nse: the number of stored positions; further ones are dropped. None is as many as needed, a
        number that is not known while tracing.

    Raises:
      ValueError: if `nse` is None while tracing.
    """
    return BCSR.from_bcoo(bcoo_sum_duplicates(mat.to_bcoo(), nse=nse))


@boundary
def bcsr_broadcast_in_dim(
    mat: BCSR, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: None = None
) -> BCSR:
    """Return a BCSR array with new batch or dense axes, and such axes of size 1 repeated.

    Args:
      mat: the array.
      shape: the shape of the result.
      broadcast_dimensions: for each axis of the array, the axis of the result that it becomes.
      sharding: must be None.

    Raises:
      ValueError: if there is not one entry of `broadcast_dimensions` per axis.
    """
    broadcast = bcoo_broadcast_in_dim(
        mat.to_bcoo(), shape=shape, broadcast_dimensions=broadcast_dimensions
    )
    return BCSR.from_bcoo(broadcast)


@boundary
def bcsr_concatenate(operands: Sequence[BCSR], *, dimension: int) -> BCSR:
    """Join BCSR arrays along a batch axis or a sparse axis.

    Args:
      operands: BCSR arrays of equal dtype, with equal sizes along the other axes.
      dimension: the axis, a batch or a sparse axis.

    Raises:
      ValueError: if there are no arrays, or the roles of their axes differ.
      TypeError: if dtypes or shapes differ, or the axis is out of range.
      NotImplementedError: for a dense axis.
    """
    joined = bcoo_concatenate([mat.to_bcoo() for mat in operands], dimension=dimension)
    return BCSR.from_bcoo(joined)
