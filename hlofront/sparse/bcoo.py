"""Sparse arrays in batched coordinates: the class BCOO, its making, order and density."""

import math
import operator
from collections.abc import Sequence

import numpy as np

from hlofront.base import tree
from hlofront.base.boundary import boundary
from hlofront.base.dtypes import check_user_dtype_supported
from hlofront.base.typing import Array, ArrayLike, DTypeLike
from hlofront.core.trace import Tracer, process
from hlofront.numpy.arrays.creation import asarray
from hlofront.numpy.arrays.filling import zeros
from hlofront.numpy.arrays.ranges import arange
from hlofront.primitives.arrays.creation import full
from hlofront.primitives.arrays.shaping import broadcast_in_dim
from hlofront.primitives.elementwise.compare import select
from hlofront.primitives.sparse import elements as sparse_elements
from hlofront.primitives.sparse.layout import all_zero, layout_of, row_constant
from hlofront.sparse.batched import BatchedSparse, register_batched, stored_count


@tree.register_pytree_node_class
class BCOO(BatchedSparse):
    """A sparse array in batched coordinates: stored elements, and the indices of each.

    Its axes are batch axes, then sparse axes, then dense axes. Each element of the batch has `nse`
    stored positions along the sparse axes, and at each of them a whole block of the dense axes.
    Positions may repeat, and then count as the sum of their elements; those out of bounds are
    padding. A batch axis of size 1 of a buffer stands for any size.

        >>> m = BCOO.fromdense(jnp.array([[0., 1.], [2., 0.]]))
        >>> m
        BCOO(float32[2, 2], nse=2)
        >>> m @ jnp.array([1., 10.])
        Array([10.,  2.], dtype=float32)

    Attributes:
      data: the stored elements, of shape (*batch, nse, *dense).
      indices: the positions of the elements, integers of shape (*batch, nse, n_sparse).
      shape: the shape of the array, (*batch, *sparse, *dense).
      indices_sorted: whether the caller promises that indices are in lexicographic order.
      unique_indices: whether the caller promises that no position repeats.
    """

    _fromdense_p = sparse_elements.bcoo_fromdense_p
    _order_of_dense = {"indices_sorted": True, "unique_indices": True}

    _buffer_names = ("data", "indices")

    def _take(self, buffers: Sequence[Array]) -> None:
        self.data, self.indices = buffers
        layout_of(self.data, self.indices, self.shape)

    @property
    def nse(self) -> int:
        """The number of stored positions of each element of the batch."""
        return self.indices.shape[-2]

    @property
    def n_batch(self) -> int:
        """The number of batch axes."""
        return self.indices.ndim - 2

    @property
    def n_sparse(self) -> int:
        """The number of sparse axes."""
        return self.indices.shape[-1]

    @classmethod
    def _of_scipy_matrix(cls, mat: object, index_dtype: DTypeLike) -> "BCOO":
        coordinates = mat.tocoo()
        indices = np.column_stack((coordinates.row, coordinates.col))
        indices = asarray(indices, dtype=index_dtype)
        return cls((asarray(coordinates.data), indices), shape=mat.shape)

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
    ) -> "BCOO":
        """Return an array without elements, with room for `nse`."""
        shape = tuple(shape)
        n_sparse = len(shape) - n_dense - n_batch
        if n_sparse < 0 or n_dense < 0 or n_batch < 0 or nse < 0:
            raise ValueError(
                f"Invalid inputs: shape={shape}, n_dense={n_dense}, n_batch={n_batch}, nse={nse}: "
                "none is negative, and there are no more batch and dense axes than axes"
            )
        batch, dense = shape[:n_batch], shape[n_batch + n_sparse :]
        sizes = shape[n_batch : n_batch + n_sparse]
        data = zeros((*batch, nse, *dense), dtype)
        indices = row_constant(sizes, (*batch, nse, n_sparse), np.dtype(index_dtype))
        return cls((data, indices), shape=shape, indices_sorted=True, unique_indices=True)

    @classmethod
    def _eye(
        cls,
        N: int,
        M: int,
        k: int,
        *,
        dtype: DTypeLike | None = None,
        index_dtype: DTypeLike = "int32",
        n_batch: int = 0,
        n_dense: int = 0,
    ) -> "BCOO":
        """Return a matrix with ones on diagonal k."""
        n_sparse = 2 - n_batch - n_dense
        if n_sparse < 0 or n_batch < 0 or n_dense < 0:
            raise ValueError(
                f"Invalid inputs: shape={(N, M)}, n_dense={n_dense}, n_batch={n_batch}: a matrix "
                "has two axes, each of one role"
            )
        if n_batch or n_dense:
            diagonal = np.eye(N, M, k, dtype=np.dtype(dtype or np.float32))
            nse = 1 if n_batch else int((diagonal != 0).any(axis=1).sum())
            mat = bcoo_fromdense(
                asarray(diagonal, dtype=dtype or float),
                nse=max(nse, int(n_sparse == 0)),
                n_batch=n_batch,
                n_dense=n_dense,
                index_dtype=index_dtype,
            )
            return mat
        count = max(min(N + min(k, 0), M - max(k, 0)), 0)
        rows = arange(count, dtype=index_dtype)
        starts = row_constant((max(-k, 0), max(k, 0)), (count, 2), rows.dtype)
        indices = starts + broadcast_in_dim(rows, (count, 2), (0,))
        data = full((count,), 1, check_user_dtype_supported(dtype or float, "eye"))
        return cls((data, indices), shape=(N, M), indices_sorted=True, unique_indices=True)

    def todense(self) -> Array:
        """Return the dense array."""
        return bcoo_todense(self)

    def sort_indices(self) -> "BCOO":
        """Return the array with its indices in lexicographic order."""
        return bcoo_sort_indices(self)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> "BCOO":
        """Return the array with each position once, in order.

        Args:
          nse: the number of stored positions of the result; further ones are dropped. None is as
            many as needed, a number that is not known while tracing.
          remove_zeros: whether positions whose elements are zero are dropped.

        Raises:
          ValueError: if `nse` is None while tracing.
        """
        return bcoo_sum_duplicates(_without_zeros(self) if remove_zeros else self, nse=nse)

    def transpose(self, axes: Sequence[int] | None = None) -> "BCOO":
        """Return the array with its axes permuted, or reversed for None.

        Axes of different roles (batch, sparse, dense) do not mix.

        Raises:
          TypeError: if `axes` is not a permutation.
          NotImplementedError: if it mixes axes of different roles.
        """
        order = tuple(range(self.ndim))[::-1] if axes is None else tuple(axes)
        return bcoo_transpose(self, permutation=order)


register_batched(BCOO)


# ---- functions -----------------------------------------------------------------------------------


@boundary
def bcoo_fromdense(
    mat: ArrayLike,
    *,
    nse: int | None = None,
    n_batch: int = 0,
    n_dense: int = 0,
    index_dtype: DTypeLike = np.int32,
) -> BCOO:
    """Return the BCOO array of a dense array: its nonzero elements in lexicographic order.

    Args:
      mat: the dense array.
      nse: the number of stored positions. Further elements are dropped, and missing ones are
        padding: zeros at positions out of bounds. None is as many as needed, a number that is not
        known while tracing.
      n_batch: the number of batch axes.
      n_dense: the number of dense axes.
      index_dtype: the dtype of the indices.

    Raises:
      ConcretizationTypeError: if `nse` is None while tracing.
      ValueError: if there are too few axes.
    """
    return BCOO.fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)


@boundary
def bcoo_todense(mat: BCOO) -> Array:
    """Return the dense array of a BCOO array.

    Args:
      mat: a BCOO array.

    Returns:
      An array of the shape and dtype of `mat`, with zeros where it stores nothing.
    """
    return sparse_elements.todense(mat.data, mat.indices, mat._info)


@boundary
def bcoo_extract(sparr: BCOO, arr: ArrayLike, *, assume_unique: bool | None = None) -> BCOO:
    """Return the elements of a dense array at the positions of a BCOO array.

    Args:
      sparr: the array whose positions are used.
      arr: a dense array of the same shape.
      assume_unique: whether every repeated position has the element; if not, the first has it and
        the others are zero, so that their sum is the element. The default is
        `sparr.unique_indices`.

    Raises:
      TypeError: if `sparr` is not a BCOO array.
      ValueError: if the shapes differ.
    """
    if not isinstance(sparr, BCOO):
        raise TypeError(f"First argument to bcoo_extract should be a BCOO array. Got {type(sparr)}")
    array = asarray(arr)
    if array.shape != sparr.shape:
        raise ValueError(f"shape mismatch: sparr.shape={sparr.shape} arr.shape={array.shape}")
    unique = sparr.unique_indices if assume_unique is None else bool(assume_unique)
    data = sparse_elements.extract(sparr.indices, array, unique)
    return with_data(sparr, data)


def with_data(mat: BCOO, data: Array) -> BCOO:
    """Return a BCOO array with other data at the same positions."""
    return BCOO.tree_unflatten(mat._info._asdict(), (data, mat.indices))


@boundary
def bcoo_sort_indices(mat: BCOO) -> BCOO:
    """Return a BCOO array with its indices in lexicographic order; equal ones keep their order.

    Args:
      mat: a BCOO array.
    """
    buffers = process(sparse_elements.bcoo_sort_indices_p, mat._bufs, {"spinfo": mat._info})
    return BCOO(
        tuple(buffers), shape=mat.shape, indices_sorted=True, unique_indices=mat.unique_indices
    )


@boundary
def bcoo_transpose(mat: BCOO, *, permutation: Sequence[int]) -> BCOO:
    """Return a BCOO array with its axes permuted.

    Args:
      mat: a BCOO array.
      permutation: the axes in their new order; batch, sparse and dense axes do not mix.

    Raises:
      TypeError: if `permutation` is not a permutation of the axes.
      NotImplementedError: if the permutation mixes axes of different roles.
    """
    order = tuple([operator.index(axis) for axis in permutation])
    params = {"permutation": order, "spinfo": mat._info}
    buffers = process(sparse_elements.bcoo_transpose_p, mat._bufs, params)
    shape = tuple([mat.shape[axis] for axis in order])
    return BCOO(tuple(buffers), shape=shape, unique_indices=mat.unique_indices)


@boundary
def bcoo_sum_duplicates(mat: BCOO, nse: int | None = None) -> BCOO:
    """Return a BCOO array with each position once, in order, and the sums of its elements.

    Args:
      mat: the array.
      nse: the number of stored positions; further ones are dropped. None is as many as needed, a
        number that is not known while tracing.

    Raises:
      ValueError: if `nse` is None while tracing.
    """
    nse = _number_of_positions(mat) if nse is None else stored_count(nse)
    params = {"spinfo": mat._info, "nse": nse}
    buffers = process(sparse_elements.bcoo_sum_duplicates_p, mat._bufs, params)
    return BCOO(tuple(buffers), shape=mat.shape, indices_sorted=True, unique_indices=True)


def _number_of_positions(mat: BCOO) -> int:
    """Return the greatest number of positions in bounds in an element of an array's batch."""
    if isinstance(mat.indices, Tracer):
        raise ValueError(
            "bcoo_sum_duplicates: nse must be specified when using the function within jit, vmap, "
            "and other transformations requiring abstract evaluation."
        )
    if not mat.n_sparse:
        return 1
    sizes = mat.shape[mat.n_batch : mat.n_batch + mat.n_sparse]
    batch = math.prod(mat.indices.shape[: mat.n_batch])
    indices = np.asarray(mat.indices).reshape(batch, mat.nse, mat.n_sparse)
    inside = [rows[(rows < np.asarray(sizes, rows.dtype)).all(axis=1)] for rows in indices]
    return max((len(np.unique(rows, axis=0)) if len(rows) else 0 for rows in inside), default=0)


def _without_zeros(mat: BCOO) -> BCOO:
    """Return a BCOO array in which positions that hold only zeros are padding."""
    n_batch, n_sparse, _, nse = layout_of(mat.data, mat.indices, mat.shape)
    batch = tuple(map(max, mat.data.shape[:n_batch], mat.indices.shape[:n_batch]))
    sizes = mat.shape[n_batch : n_batch + n_sparse]
    shape = (*batch, nse, n_sparse)
    mask = broadcast_in_dim(all_zero(mat.data, n_batch + 1), shape, range(n_batch + 1))
    indices = broadcast_in_dim(mat.indices, shape, range(n_batch + 2))
    indices = select(mask, row_constant(sizes, shape, indices.dtype), indices)
    return BCOO((mat.data, indices), shape=mat.shape)
