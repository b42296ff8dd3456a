"""The base class of sparse arrays with batch, sparse and dense axes, and how vmap maps them."""

import abc
import operator
from collections.abc import Callable, Sequence
from typing import ClassVar, Self, SupportsIndex, TypeVar

import numpy as np

from hlofront.base.boundary import boundary
from hlofront.base.dtypes import check_user_dtype_supported
from hlofront.base.errors import ConcretizationTypeError
from hlofront.base.typing import Array, ArrayLike, ArrayLikes, DTypeLike, Params
from hlofront.core.primitive import Primitive
from hlofront.core.trace import Tracer, process
from hlofront.numpy.arrays.creation import asarray
from hlofront.numpy.statistics.reductions import max as array_max
from hlofront.numpy.statistics.reductions import sum as array_sum
from hlofront.primitives.arrays.creation import full
from hlofront.primitives.arrays.reducing import reduce_or
from hlofront.primitives.arrays.shaping import broadcast_in_dim
from hlofront.primitives.elementwise.compare import ne
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.sparse.layout import SparseInfo
from hlofront.sparse.arrays import SparseFormat
from hlofront.transforms.vmappable import register_vmappable


class BatchedSparse(SparseFormat):
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

    # The primitive that makes the buffers of a dense array, and what their order is known to be.
    _fromdense_p: ClassVar[Primitive]
    _order_of_dense: ClassVar[Params] = {}

    def __init__(
        self,
        args: ArrayLikes,
        *,
        shape: Sequence[int],
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ):
        self.indices_sorted = indices_sorted
        self.unique_indices = unique_indices
        super().__init__(args, shape=shape)
        self._take([x if isinstance(x, Array) else asarray(x) for x in args])

    @abc.abstractmethod
    def _take(self, buffers: Sequence[Array]) -> None:
        """Set the buffers; raise ValueError unless they fit each other and the shape."""

    @property
    @abc.abstractmethod
    def n_batch(self) -> int:
        """The number of batch axes."""

    @property
    def n_dense(self) -> int:
        """The number of dense axes."""
        return self.data.ndim - self.n_batch - 1

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
    @boundary
    def fromdense(
        cls,
        mat: ArrayLike,
        *,
        nse: int | None = None,
        index_dtype: DTypeLike = np.int32,
        n_dense: int = 0,
        n_batch: int = 0,
    ) -> Self:
        """Convert a dense array to this format, as `bcoo_fromdense` does for BCOO."""
        caller = f"{cls.__name__.lower()}_fromdense"
        mat = numbers_as_array(mat)
        check_roles(mat.ndim, n_batch, n_dense)
        if nse is None:
            nse = number_of_elements(mat, n_batch, n_dense, caller, cls.__name__)
        params = {
            "nse": stored_count(nse),
            "n_batch": n_batch,
            "n_dense": n_dense,
            "index_dtype": np.dtype(check_user_dtype_supported(index_dtype, caller)),
        }
        buffers = process(cls._fromdense_p, (mat,), params)
        return cls(tuple(buffers), shape=mat.shape, **cls._order_of_dense)

    @classmethod
    @abc.abstractmethod
    def _of_scipy_matrix(cls, mat: object, index_dtype: DTypeLike) -> Self:
        """Convert a SciPy matrix to a sparse array."""

    @classmethod
    def from_scipy_sparse(
        cls,
        mat: object,
        *,
        index_dtype: DTypeLike | None = None,
        n_dense: int = 0,
        n_batch: int = 0,
    ) -> Self:
        """Convert a sparse array of SciPy, in any of its formats, to this format.

        Raises:
          NotImplementedError: for batch or dense axes.
        """
        if n_dense or n_batch:
            raise NotImplementedError(  # JAX raises this class.
                f"{cls.__name__}.from_scipy_sparse with nonzero n_dense/n_batch: convert first, "
                "then change the roles of axes with update_layout"
            )
        return cls._of_scipy_matrix(mat, index_dtype or np.int32)


def number_of_elements(mat: Array, n_batch: int, n_dense: int, caller: str, name: str) -> int:
    """Return the greatest number of nonzero positions in an element of an array's batch.

    Raises:
      ConcretizationTypeError: if the array is traced.
    """
    if isinstance(mat, Tracer):
        raise ConcretizationTypeError(
            mat,
            f"The error arose for the nse argument of {caller}. In order for {name}.fromdense() to "
            "be used in traced/compiled code, you must pass a concrete value to the nse (number "
            "of stored elements) argument.",
        )
    mask = ne(mat, full(mat.shape, 0, mat.dtype))
    mask = reduce_or(mask, range(mat.ndim - n_dense, mat.ndim))
    counts = array_sum(mask, axis=tuple(range(n_batch, mask.ndim)))
    return int(array_max(counts)) if counts.size else 0


def numbers_as_array(mat: ArrayLike) -> Array:
    """Return an array whose elements can be summed: booleans become int32, weakly typed."""
    mat = asarray(mat)
    return convert(mat, np.dtype(np.int32), True) if mat.dtype == np.bool_ else mat


def stored_count(nse: SupportsIndex) -> int:
    """Return a number of stored elements as an int.

    Raises:
      TypeError: if it is not an integer, or negative.
    """
    nse = operator.index(nse)
    if nse < 0:
        raise TypeError(f"nse, the number of stored elements, is at least 0: got {nse}")
    return nse


def check_roles(ndim: int, n_batch: int, n_dense: int) -> None:
    """Raise ValueError unless `n_batch` batch and `n_dense` dense axes fit into `ndim` axes."""
    if n_batch < 0 or n_dense < 0 or n_batch + n_dense > ndim:
        raise ValueError(
            f"an array of {ndim} axes has no {n_batch} batch axes and {n_dense} dense ones: both "
            "are at least 0, and together at most the number of axes"
        )


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
