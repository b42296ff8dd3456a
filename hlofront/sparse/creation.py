"""Creation of sparse arrays by the name of their format: empty, identity, random."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hlofront.base.boundary import boundary
from hlofront.base.typing import Array, ArrayLike, DTypeLike
from hlofront.numpy.arrays.creation import asarray
from hlofront.numpy.arrays.joining import column_stack
from hlofront.numpy.arrays.ranges import arange
from hlofront.random.continuous import uniform
from hlofront.random.keys import split
from hlofront.random.permuting import choice
from hlofront.sparse.arrays import JAXSparse
from hlofront.sparse.bcoo import BCOO
from hlofront.sparse.bcsr import BCSR
from hlofront.sparse.matrices import COO, CSC, CSR
from hlofront.transforms.vmap import vmap

_FORMATS: dict[str, type[Any]] = {"bcsr": BCSR, "bcoo": BCOO, "coo": COO, "csr": CSR, "csc": CSC}


@boundary
def empty(
    shape: Sequence[int],
    dtype: DTypeLike | None = None,
    index_dtype: DTypeLike = "int32",
    sparse_format: str = "bcoo",
    **kwds: int,
) -> JAXSparse:
    """Return a sparse array without elements.

    Args:
      shape: the shape of the array.
      dtype: the dtype of the array; by default the default float dtype.
      index_dtype: the dtype of the indices.
      sparse_format: "bcoo", "bcsr", "coo", "csr" or "csc".
      **kwds: `nse`, `n_batch` and `n_dense` of "bcoo" and "bcsr".

    Raises:
      ValueError: if the format is unknown, or has no arrays of this shape.
    """
    if sparse_format not in _FORMATS:
        raise ValueError(
            f"sparse_format={sparse_format!r} not recognized; must be one of {list(_FORMATS)}"
        )
    return _FORMATS[sparse_format]._empty(shape, dtype=dtype, index_dtype=index_dtype, **kwds)


@boundary
def eye(
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: DTypeLike | None = None,
    index_dtype: DTypeLike = "int32",
    sparse_format: str = "bcoo",
    **kwds: int,
) -> JAXSparse:
    """Return a sparse matrix with ones on a diagonal.

    Args:
      N: the number of rows.
      M: the number of columns; by default N.
      k: the diagonal, 0 for the main one, positive above it.
      dtype: the dtype of the matrix; by default the default float dtype.
      index_dtype: the dtype of the indices.
      sparse_format: "bcoo", "coo", "csr" or "csc".
      **kwds: `n_batch` and `n_dense` of "bcoo".

    Raises:
      KeyError: if the format is unknown.
    """
    formats = {name: format for name, format in _FORMATS.items() if name != "bcsr"}
    return formats[sparse_format]._eye(
        N, N if M is None else M, k, dtype=dtype, index_dtype=index_dtype, **kwds
    )


@boundary
def random_bcoo(
    key: ArrayLike,
    shape: Sequence[int],
    *,
    dtype: DTypeLike = float,
    indices_dtype: DTypeLike | None = None,
    nse: float = 0.2,
    n_batch: int = 0,
    n_dense: int = 0,
    unique_indices: bool = True,
    sorted_indices: bool = False,
    generator: Callable[..., Array] = uniform,
    **kwds: object,
) -> BCOO:
    """Return a BCOO array with random elements at random positions.

    Args:
      key: a random key.
      shape: the shape of the array.
      dtype: the dtype of the elements.
      indices_dtype: the dtype of the indices; by default the default integer dtype.
      nse: the number of stored positions of each element of the batch, or if below 1 the fraction
        of the sparse axes' positions.
      n_batch: the number of batch axes.
      n_dense: the number of dense axes.
      unique_indices: whether no position repeats.
      sorted_indices: whether the indices are in order.
      generator: `generator(key, shape=, dtype=, **kwds)` returns the elements.
      **kwds: further arguments of the generator.

    Raises:
      ValueError: if the array has fewer than `n_batch + n_dense` axes, or `nse` positions.
    """
    shape = tuple(shape)
    n_sparse = len(shape) - n_batch - n_dense
    if n_sparse < 0 or n_batch < 0 or n_dense < 0:
        raise ValueError(
            f"Invalid parameters: shape={shape}, n_batch={n_batch}, n_dense={n_dense}: none is "
            "negative, and there are no more batch and dense axes than axes"
        )
    batch, sizes = shape[:n_batch], shape[n_batch : n_batch + n_sparse]
    dense, size = shape[n_batch + n_sparse :], math.prod(sizes)
    count = int(np.ceil(nse * size)) if 0 < nse < 1 else int(nse)
    if not 0 <= count <= size:
        raise ValueError(f"got nse={count}, expected to be between 0 and {size}")
    keys = split(key, math.prod(batch) + 1)
    index_dtype = asarray(0).dtype if indices_dtype is None else np.dtype(indices_dtype)

    def positions(key: Array) -> Array:
        flat = choice(key, size, shape=(count,), replace=not unique_indices)
        steps = [math.prod(sizes[axis + 1 :]) for axis in range(n_sparse)]
        columns = [flat // step % length for step, length in zip(steps, sizes, strict=True)]
        if not columns:
            return arange(0).reshape(count, 0)
        return column_stack(columns)

    data = generator(keys[0], shape=(*batch, count, *dense), dtype=dtype, **kwds)
    indices = vmap(positions)(keys[1:]) if batch else positions(keys[1])
    indices = indices.reshape((*batch, count, n_sparse)).astype(index_dtype)
    mat = BCOO((data, indices), shape=shape)
    return mat.sort_indices() if sorted_indices else mat
