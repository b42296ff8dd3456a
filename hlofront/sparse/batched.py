"""The base class of sparse arrays with batch, sparse and dense axes, and how vmap maps them."""

import abc
from collections.abc import Callable, Sequence
from typing import Self, TypeVar

import numpy as np

from hlofront.base.typing import Array, DType, DTypeLike, Params
from hlofront.primitives.arrays.shaping import broadcast_in_dim
from hlofront.primitives.sparse.layout import SparseInfo
from hlofront.sparse.arrays import JAXSparse
from hlofront.transforms.vmappable import register_vmappable


class BatchedSparse(JAXSparse):
    """The base class of BCOO and BCSR, whose axes are batch axes, then sparse, then dense ones.

    Attributes:
      data: the stored elements, of shape (*batch, nse, *dense).
      indices: the positions of the elements, or parts of the positions.
      indices_sorted: whether the caller promises that indices are in lexicographic order.
      unique_indices: whether the caller promises that no position repeats.
    """

    indices: Array
    indices_sorted: bool
    unique_indices: bool

    @property
    @abc.abstractmethod
    def _bufs(self) -> tuple[Array, ...]:
        """The buffers, the stored elements first."""

    @property
    @abc.abstractmethod
    def n_batch(self) -> int:
        """The number of batch axes."""

    @property
    def n_dense(self) -> int:
        """The number of dense axes."""
        return self.data.ndim - self.n_batch - 1

    @property
    def dtype(self) -> DType:
        """The dtype of the elements."""
        return self.data.dtype

    @property
    def _info(self) -> SparseInfo:
        return SparseInfo(self.shape, self.indices_sorted, self.unique_indices)

    def _extent(self) -> str:
        counts = {"n_batch": self.n_batch, "n_dense": self.n_dense}
        present = [f", {name}={count}" for name, count in counts.items() if count]
        return "".join([super()._extent(), *present])

    def tree_flatten(self) -> tuple[tuple[Array, ...], Params]:
        return self._bufs, self._info._asdict()

    @classmethod
    @abc.abstractmethod
    def _of_scipy_matrix(cls, mat: object, index_dtype: DTypeLike) -> Self:
        """Return the sparse array of a matrix of SciPy."""

    @classmethod
    def from_scipy_sparse(
        cls,
        mat: object,
        *,
        index_dtype: DTypeLike | None = None,
        n_dense: int = 0,
        n_batch: int = 0,
    ) -> Self:
        """Return the array of this format of a sparse array of SciPy, of any of its formats.

        Raises:
          NotImplementedError: for batch or dense axes.
        """
        if n_dense or n_batch:
            raise NotImplementedError(  # JAX raises this class.
                f"{cls.__name__}.from_scipy_sparse with nonzero n_dense/n_batch: convert first, "
                "then change the roles of axes with update_layout"
            )
        return cls._of_scipy_matrix(mat, index_dtype or np.int32)


_Format = TypeVar("_Format", bound=BatchedSparse)


def _with_buffers(mat: _Format, buffers: Sequence[Array], info: SparseInfo) -> _Format:
    """Return an array of the format of `mat`, with these buffers, which are not checked."""
    return type(mat).tree_unflatten(info._asdict(), buffers)


def register_batched(data_type: type[BatchedSparse]) -> None:
    """Register a format with vmap, which maps over its batch axes."""
    register_vmappable(data_type, int, int, _to_element, _from_element, None)


def _to_element(
    inner: Callable[[Array, int], Array], index: object, mat: _Format, axis: int | None
) -> _Format:
    if axis is None:
        return mat
    name = type(mat).__name__
    number = axis if axis >= 0 else axis + mat.ndim
    if not 0 <= number < mat.n_batch:
        raise ValueError(
            f"Cannot map in_axis={axis} for {name} array with n_batch={mat.n_batch}. in_axes for "
            "batched sparse operations must correspond to a batch dimension: convert with "
            "update_layout(n_batch=...)"
        )
    shape = (*mat.shape[:number], *mat.shape[number + 1 :])
    size = mat.shape[number]
    buffers = [inner(_with_full_axis(x, number, size), number) for x in mat._bufs]
    return _with_buffers(mat, buffers, mat._info._replace(shape=shape))


def _with_full_axis(buffer: Array, axis: int, size: int) -> Array:
    """Return a buffer whose axis of size 1 is broadcast to the array's size."""
    if buffer.shape[axis] == size:
        return buffer
    shape = (*buffer.shape[:axis], size, *buffer.shape[axis + 1 :])
    return broadcast_in_dim(buffer, shape, range(buffer.ndim))


def _from_element(
    inner: Callable[[int, Array, int], Array], size: int, mat: _Format, axis: int | None
) -> _Format:
    if axis is None:
        return mat
    name = type(mat).__name__
    axis = axis % (mat.ndim + 1)
    if axis > mat.n_batch:
        raise ValueError(
            f"{name}: cannot add out_axis={axis} for {name} array with n_batch={mat.n_batch}. "
            f"{name} batch axes must be a contiguous block of leading dimensions."
        )
    shape = (*mat.shape[:axis], size, *mat.shape[axis:])
    buffers = [inner(size, x, axis) for x in mat._bufs]
    return _with_buffers(mat, buffers, mat._info._replace(shape=shape))
