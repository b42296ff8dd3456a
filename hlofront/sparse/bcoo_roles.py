"""The roles of axes of BCOO arrays: batch, sparse or dense, and changes of roles."""

import math
import warnings
from collections.abc import Sequence

import numpy as np

from hlofront.base.boundary import boundary
from hlofront.base.typing import Array, DType
from hlofront.primitives.arrays.creation import broadcasted_iota, full
from hlofront.primitives.arrays.shaping import broadcast_in_dim, reshape, squeeze
from hlofront.primitives.arrays.slicing import concatenate
from hlofront.primitives.elementwise.compare import select
from hlofront.primitives.sparse.layout import (
    columns,
    common_batch,
    with_batch,
)
from hlofront.sparse.bcoo import BCOO


class SparseEfficiencyError(ValueError):
    """The error for a sparse array that would take more memory than it needs."""


class SparseEfficiencyWarning(UserWarning):
    """A warning about a sparse array that takes more memory than it needs."""


class CuSparseEfficiencyWarning(SparseEfficiencyWarning):
    """A warning that an operation uses a slower program instead of cuSPARSE."""


def in_one_batch(mat: BCOO, whole: bool = False) -> tuple[Array, Array]:
    """Return data and indices with equal batch sizes: those of the array, if `whole`."""
    batch = mat.shape[: mat.n_batch]
    if not whole:
        batch = common_batch(mat.data.shape, mat.indices.shape, n_batch=mat.n_batch)
    return with_batch(mat.data, batch), with_batch(mat.indices, batch)


@boundary
def bcoo_update_layout(
    mat: BCOO,
    *,
    n_batch: int | None = None,
    n_dense: int | None = None,
    on_inefficient: str | None = "error",
) -> BCOO:
    """Return a BCOO array with other numbers of batch and dense axes.

    Args:
      mat: the array.
      n_batch: the number of batch axes of the result; None for that of the array.
      n_dense: the number of dense axes of the result; None for that of the array.
      on_inefficient: what to do if the result takes more memory than it needs, because sparse axes
        become batch or dense axes: "error", "warn", or None for nothing.

    Raises:
      ValueError: if there are too few axes, or `on_inefficient` is something else.
      SparseEfficiencyError: if the result takes too much memory, for "error".
    """
    n_batch = mat.n_batch if n_batch is None else int(n_batch)
    n_dense = mat.n_dense if n_dense is None else int(n_dense)
    for name, count in (("n_batch", n_batch), ("n_dense", n_dense)):
        if count < 0:
            raise ValueError(f"{name} must be non-negative; got {count}")
    if n_batch + n_dense > mat.ndim:
        raise ValueError(
            f"sum of n_batch={n_batch} and n_dense={n_dense} cannot be larger than "
            f"mat.ndim={mat.ndim}."
        )
    if on_inefficient not in ("error", "warn", None):
        raise ValueError(
            f"on_inefficient={on_inefficient!r}; expected one of ['error', 'warn', None]."
        )
    if (n_batch, n_dense) == (mat.n_batch, mat.n_dense):
        return mat
    if n_batch > mat.n_batch:
        sizes = mat.shape[mat.n_batch : n_batch]
        if math.prod(sizes) > 1:
            _report(on_inefficient, mat, "n_batch", mat.n_batch, n_batch)
    if n_dense > mat.n_dense:
        sizes = mat.shape[mat.ndim - n_dense : mat.ndim - mat.n_dense]
        if math.prod(sizes) > 1:
            _report(on_inefficient, mat, "n_dense", mat.n_dense, n_dense)
    # Axes become sparse first, so that these can become batch or dense axes.
    if n_dense < mat.n_dense:
        mat = _dense_to_sparse(mat, n_dense)
    if n_batch < mat.n_batch:
        mat = _batch_to_sparse(mat, n_batch)
    if n_dense > mat.n_dense:
        mat = _sparse_to_dense(mat, n_dense)
    if n_batch > mat.n_batch:
        mat = _sparse_to_batch(mat, n_batch)
    return mat


def _report(how: str | None, mat: BCOO, name: str, old: int, new: int) -> None:
    """Report inefficient storage, as an error or a warning or not at all."""
    text = (
        f"For matrix of shape {mat.shape}, increasing {name} from {old} to {new} results in "
        "inefficient storage."
    )
    if how == "error":
        raise SparseEfficiencyError(
            f"{text} To disable this error, set the on_inefficient argument of bcoo_update_layout "
            "to 'warn' or None."
        )
    if how == "warn":
        warnings.warn(
            f"{text} To disable this warning, set the on_inefficient argument of "
            "bcoo_update_layout to None.",
            SparseEfficiencyWarning,
            stacklevel=4,
        )


def _numbers_of_elements(shape: Sequence[int], sizes: Sequence[int], dtype: DType) -> Array:
    """Return the indices of the elements of some axes in order, repeated over leading axes."""
    count = math.prod(sizes)
    grid = np.indices(sizes).reshape(len(sizes), count).T.astype(dtype)
    return broadcast_in_dim(grid, (*shape, count, len(sizes)), (len(shape), len(shape) + 1))


def _dense_to_sparse(mat: BCOO, n_dense: int) -> BCOO:
    data, indices = in_one_batch(mat)
    n_batch, nse = mat.n_batch, mat.nse
    sizes = mat.shape[mat.ndim - mat.n_dense : mat.ndim - n_dense]
    count = math.prod(sizes)
    leading = (*indices.shape[:n_batch], nse)
    data = reshape(data, (*leading[:-1], nse * count, *mat.shape[mat.ndim - n_dense :]))
    old = broadcast_in_dim(
        indices, (*leading, count, mat.n_sparse), (*range(n_batch + 1), n_batch + 2)
    )
    new = _numbers_of_elements(leading, sizes, indices.dtype)
    joined = concatenate([old, new], n_batch + 2)
    n_sparse = mat.n_sparse + len(sizes)
    indices = reshape(joined, (*leading[:-1], nse * count, n_sparse))
    return BCOO((data, indices), shape=mat.shape)


def _batch_to_sparse(mat: BCOO, n_batch: int) -> BCOO:
    data, indices = in_one_batch(mat, whole=True)
    batch, sizes = mat.shape[:n_batch], mat.shape[n_batch : mat.n_batch]
    count = math.prod(sizes)
    new = _numbers_of_elements(batch, sizes, indices.dtype)
    leading = (*batch, count, mat.nse)
    new = broadcast_in_dim(new, (*leading, len(sizes)), (*range(n_batch + 1), n_batch + 2))
    old = reshape(indices, (*leading, mat.n_sparse))
    joined = concatenate([new, old], n_batch + 2)
    indices = reshape(joined, (*batch, count * mat.nse, len(sizes) + mat.n_sparse))
    data = reshape(data, (*batch, count * mat.nse, *data.shape[mat.n_batch + 1 :]))
    return BCOO((data, indices), shape=mat.shape)


def _sparse_to_dense(mat: BCOO, n_dense: int) -> BCOO:
    data, indices = in_one_batch(mat)
    n_batch = mat.n_batch
    n_new = n_dense - mat.n_dense
    sizes = mat.shape[mat.ndim - n_dense : mat.ndim - mat.n_dense]
    leading = (*indices.shape[:n_batch], mat.nse)
    block = (*leading, *sizes)
    mask = full(block, True, np.dtype(bool))
    for number, column in enumerate(range(mat.n_sparse - n_new, mat.n_sparse)):
        at = squeeze(columns(indices, (column,)), (n_batch + 1,))
        at = broadcast_in_dim(at, block, range(n_batch + 1))
        mask = mask & (at == broadcasted_iota(indices.dtype, block, n_batch + 1 + number))
    shape = (*block, *mat.shape[mat.ndim - mat.n_dense :])
    tail = range(len(block), len(shape))
    data = broadcast_in_dim(data, shape, (*range(n_batch + 1), *tail))
    mask = broadcast_in_dim(mask, shape, range(len(block)))
    data = select(mask, data, full(shape, 0, data.dtype))
    return BCOO((data, columns(indices, range(mat.n_sparse - n_new))), shape=mat.shape)


def _sparse_to_batch(mat: BCOO, n_batch: int) -> BCOO:
    data, indices = in_one_batch(mat)
    n_old, n_new = mat.n_batch, n_batch - mat.n_batch
    sizes = mat.shape[n_old:n_batch]
    batch = indices.shape[:n_old]
    block = (*batch, *sizes, mat.nse)
    # The stored positions are repeated for each new element of the batch, and belong to one.
    axes = (*range(n_old), n_batch)
    mask = full(block, True, np.dtype(bool))
    for number in range(n_new):
        at = squeeze(columns(indices, (number,)), (n_old + 1,))
        at = broadcast_in_dim(at, block, axes)
        mask = mask & (at == broadcasted_iota(indices.dtype, block, n_old + number))
    remaining = columns(indices, range(n_new, mat.n_sparse))
    remaining = broadcast_in_dim(remaining, (*block, mat.n_sparse - n_new), (*axes, n_batch + 1))
    rest = data.shape[n_old + 1 :]
    tail = range(n_batch + 1, n_batch + 1 + len(rest))
    data = broadcast_in_dim(data, (*block, *rest), (*axes, *tail))
    mask = broadcast_in_dim(mask, data.shape, range(n_batch + 1))
    data = select(mask, data, full(data.shape, 0, data.dtype))
    return BCOO((data, remaining), shape=mat.shape)
