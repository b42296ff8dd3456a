"""Shapes of BCOO arrays: joins, new shapes, reversed axes, and sums over axes."""

import math
from collections.abc import Sequence

import numpy as np

from hlofront.base.boundary import boundary
from hlofront.base.typing import Array
from hlofront.core.aval import ShapedArray
from hlofront.core.rules import infer
from hlofront.core.sizes.dimensions import canonical_axes
from hlofront.numpy.arrays.creation import asarray
from hlofront.primitives.arrays.creation import full
from hlofront.primitives.arrays.reducing import reduce_sum
from hlofront.primitives.arrays.shaping import (
    broadcast_in_dim,
    check_sizes_of_one,
    reshape,
    rev_p,
    squeeze,
)
from hlofront.primitives.arrays.shaping import rev as reverse
from hlofront.primitives.arrays.shaping import transpose as transpose_axes
from hlofront.primitives.arrays.slicing import concatenate, concatenated_shape
from hlofront.primitives.elementwise.compare import select
from hlofront.primitives.elementwise.elementwise import bitwise_and
from hlofront.primitives.elementwise.families import check_same_dtypes
from hlofront.primitives.sparse.layout import (
    columns,
    common_batch,
    layout_of,
    out_of_bounds,
    row_constant,
    with_batch,
)
from hlofront.sparse.bcoo import BCOO, bcoo_transpose
from hlofront.sparse.bcoo_roles import in_one_batch


@boundary
def bcoo_concatenate(operands: Sequence[BCOO], *, dimension: int) -> BCOO:
    """Join BCOO arrays along a batch axis or a sparse axis.

    Args:
      operands: BCOO arrays of equal dtype, with equal sizes along the other axes.
      dimension: the axis, not a dense one.

    Raises:
      ValueError: if there are none, one is not a BCOO array, or the roles of their axes differ.
      TypeError: if dtypes or shapes differ, or the axis is out of range.
      NotImplementedError: for a dense axis.
    """
    operands = tuple(operands)
    if not operands:
        raise ValueError("concatenate requires a non-empty sequences of arrays: got none")
    if not all(isinstance(mat, BCOO) for mat in operands):
        raise ValueError(
            f"bcoo_concatenate: expected operands to be a sequence of BCOO arrays. Got {operands}"
        )
    check_same_dtypes("concatenate", operands)
    first = operands[0]
    shape = concatenated_shape([mat.shape for mat in operands], dimension)
    for role, counts in (
        ("batch", {mat.n_batch for mat in operands}),
        ("nse", {mat.n_dense for mat in operands}),
    ):
        if len(counts) > 1:
            raise ValueError(
                f"bcoo_concatenate requires inputs to have matching {role} dimensions. Got "
                f"{', '.join(map(repr, operands))}"
            )
    n_batch, n_sparse = first.n_batch, first.n_sparse
    if dimension >= n_batch + n_sparse:
        raise NotImplementedError(  # JAX raises this class.
            "Concatenation along dense dimensions."
        )
    if dimension < n_batch:
        nse = max(mat.nse for mat in operands)
        buffers = [in_one_batch(_with_room(mat, nse), whole=True) for mat in operands]
        data = concatenate([x for x, _ in buffers], dimension)
        indices = concatenate([i for _, i in buffers], dimension)
        return BCOO((data, indices), shape=shape)
    buffers = [in_one_batch(mat) for mat in operands]
    batch = common_batch(*[indices.shape for _, indices in buffers], n_batch=n_batch)
    offset, moved = 0, []
    for (_, indices), mat in zip(buffers, operands, strict=True):
        row = [offset if axis == dimension - n_batch else 0 for axis in range(n_sparse)]
        indices = with_batch(indices, batch)
        moved.append(
            indices + row_constant(row, indices.shape, indices.dtype) if offset else indices
        )
        offset += mat.shape[dimension]
    data = concatenate([with_batch(x, batch) for x, _ in buffers], n_batch)
    return BCOO((data, concatenate(moved, n_batch)), shape=shape)


def _with_room(mat: BCOO, nse: int) -> BCOO:
    """Return an array with padding up to `nse` stored positions."""
    padding = nse - mat.nse
    if not padding:
        return mat
    n_batch = mat.n_batch
    room = BCOO._empty(
        mat.shape,
        dtype=mat.dtype,
        index_dtype=mat.indices.dtype,
        n_dense=mat.n_dense,
        n_batch=n_batch,
        nse=padding,
    )
    data, indices = in_one_batch(mat, whole=True)
    data = concatenate([data, room.data], n_batch)
    return BCOO((data, concatenate([indices, room.indices], n_batch)), shape=mat.shape)


# ---- shapes --------------------------------------------------------------------------------------


@boundary
def bcoo_broadcast_in_dim(
    mat: BCOO, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: None = None
) -> BCOO:
    """Return a BCOO array with new axes, and axes of size 1 repeated.

    New axes before the sparse ones are batch axes, those after the first dense one are dense, and
    others are sparse.

    Args:
      mat: the array.
      shape: the shape of the result.
      broadcast_dimensions: for each axis of the array, the axis of the result that it becomes.
      sharding: must be None.

    Raises:
      ValueError: if there is not one entry of `broadcast_dimensions` per axis.
      NotImplementedError: if a sparse axis is new or of size 1, and its size would not be 1.
    """
    shape, own = tuple(shape), tuple(broadcast_dimensions)
    if len(own) != mat.ndim:
        raise ValueError(
            f"spinfo.shape={mat.shape} and broadcast_dimensions={own} must have the same length"
        )
    n_batch, n_sparse, n_dense, nse = layout_of(mat.data, mat.indices, mat.shape)
    n_leading = n_batch + n_sparse
    dense_from = own[n_leading] if n_dense else len(shape)
    sparse_from = own[n_batch] if n_sparse else dense_from
    sources = dict(zip(own, range(mat.ndim), strict=True))
    parts: list[Array] = []
    numbers: list[int | None] = []
    for axis in range(sparse_from, dense_from):
        source = sources.get(axis)
        if shape[axis] != (1 if source is None else mat.shape[source]):
            raise NotImplementedError(  # JAX raises this class.
                "Adding sparse dimensions with lengths != 1"
            )
        numbers.append(None if source is None else source - n_batch)
    batch_axes = own[:n_batch]

    def laid_out(buffer: Array, dense: Sequence[int], rest: Sequence[int]) -> Array:
        sizes = [1] * sparse_from
        for axis, target in enumerate(batch_axes):
            sizes[target] = buffer.shape[axis]
        for axis in range(sparse_from):
            if axis not in batch_axes:
                sizes[axis] = shape[axis]
            elif sizes[axis] != 1:
                sizes[axis] = shape[axis]
        target = (*sizes, nse, *rest)
        return broadcast_in_dim(buffer, target, (*batch_axes, sparse_from, *dense))

    tail = [sparse_from + 1 + axis - dense_from for axis in own[n_leading:]]
    data = laid_out(mat.data, tail, shape[dense_from:])
    indices = laid_out(mat.indices, (sparse_from + 1,), (n_sparse,))
    if numbers != list(range(n_sparse)):
        new = full((*indices.shape[:-1], 1), 0, indices.dtype)
        parts = [new if number is None else columns(indices, (number,)) for number in numbers]
        indices = concatenate(parts, sparse_from + 1)
    return BCOO((data, indices), shape=shape)


@boundary
def bcoo_squeeze(arr: BCOO, *, dimensions: Sequence[int]) -> BCOO:
    """Return a BCOO array without axes of size 1.

    Args:
      arr: a BCOO array.
      dimensions: the axes to remove, of size 1.

    Raises:
      ValueError: if an axis is out of range or repeated, or its size is not 1.
    """
    axes = canonical_axes(tuple(dimensions), arr.ndim)
    check_sizes_of_one(arr.shape, axes, tuple(dimensions))
    n_batch, n_sparse, _, _ = layout_of(arr.data, arr.indices, arr.shape)
    n_leading = n_batch + n_sparse
    batch = [axis for axis in axes if axis < n_batch]
    dense = [axis - n_sparse + 1 for axis in axes if axis >= n_leading]
    remaining = [axis for axis in range(n_sparse) if n_batch + axis not in axes]
    data = squeeze(arr.data, (*batch, *dense))
    indices = squeeze(columns(arr.indices, remaining), batch)
    shape = [size for axis, size in enumerate(arr.shape) if axis not in axes]
    return BCOO(
        (data, indices),
        shape=shape,
        indices_sorted=arr.indices_sorted,
        unique_indices=arr.unique_indices,
    )


@boundary
def bcoo_reshape(
    mat: BCOO,
    *,
    new_sizes: Sequence[int],
    dimensions: Sequence[int] | None = None,
    sharding: None = None,
) -> BCOO:
    """Return a BCOO array of another shape, in which batch, sparse and dense axes do not mix.

    Axes of size 1 after the batch axes are batch axes too, and those after the sparse ones sparse.

    Args:
      mat: the array.
      new_sizes: the new shape.
      dimensions: a permutation of the axes that is applied first; None for no permutation.
      sharding: must be None.

    Raises:
      ValueError: if the sizes of the roles cannot be kept.
    """
    if dimensions is not None and list(dimensions) != list(range(mat.ndim)):
        mat = bcoo_transpose(mat, permutation=dimensions)
    shape = tuple(map(int, new_sizes))
    n_batch, n_sparse, _, nse = layout_of(mat.data, mat.indices, mat.shape)
    batch, dense = mat.shape[:n_batch], mat.shape[n_batch + n_sparse :]
    sizes = mat.shape[n_batch : n_batch + n_sparse]
    new_batch = _last_split(shape, math.prod(batch))
    if new_batch is None:
        raise ValueError(
            "bcoo_reshape: new shape cannot mix batch and sparse dimensions; got "
            f"shape={mat.shape} new_shape={shape} with n_batch={n_batch}"
        )
    trailing = shape[new_batch:]
    new_sparse = _last_split(trailing, math.prod(sizes))
    if new_sparse is None or math.prod(trailing[new_sparse:]) != math.prod(dense):
        raise ValueError(
            "bcoo_reshape: new shape cannot mix sparse and dense dimensions; got "
            f"shape={mat.shape} new_shape={shape} with n_dense={mat.n_dense}"
        )
    new_sizes = trailing[:new_sparse]
    data, indices = in_one_batch(mat, whole=batch != shape[:new_batch])
    if new_sizes != sizes:
        beyond = out_of_bounds(indices, sizes)
        position = full(beyond.shape, 0, indices.dtype)
        for axis, size in enumerate(sizes):
            position = position * size + squeeze(columns(indices, (axis,)), (n_batch + 1,))
        parts: list[Array] = []
        for size in reversed(new_sizes):
            parts.append(position % max(size, 1))
            position = position // max(size, 1)
        parts = [part.reshape((*part.shape, 1)) for part in parts[::-1]]
        empty = full((*beyond.shape, 0), 0, indices.dtype)
        at = concatenate(parts, n_batch + 1) if parts else empty
        mask = broadcast_in_dim(beyond, at.shape, range(n_batch + 1))
        indices = select(mask, row_constant(new_sizes, at.shape, at.dtype), at)
    own_batch = shape[:new_batch] if batch != shape[:new_batch] else indices.shape[:n_batch]
    data = reshape(data, (*own_batch, nse, *trailing[new_sparse:]))
    indices = reshape(indices, (*own_batch, nse, new_sparse))
    return BCOO((data, indices), shape=shape)


def _last_split(shape: Sequence[int], size: int) -> int | None:
    """Return the greatest number of leading axes whose sizes multiply to `size`, or None."""
    counts = [n for n in range(len(shape) + 1) if math.prod(shape[:n]) == size]
    return counts[-1] if counts else None


@boundary
def bcoo_rev(operand: BCOO, dimensions: Sequence[int]) -> BCOO:
    """Return a BCOO array with the order of its elements reversed along the axes `dimensions`.

    Args:
      operand: a BCOO array.
      dimensions: the axes.

    Raises:
      TypeError: if an axis is out of range or repeated.
    """
    axes = tuple(dimensions)
    infer[rev_p](ShapedArray(operand.shape, operand.dtype), dimensions=axes)
    n_batch, n_sparse, _, _ = layout_of(operand.data, operand.indices, operand.shape)
    n_leading = n_batch + n_sparse
    batch = [axis for axis in axes if axis < n_batch]
    dense = [axis - n_sparse + 1 for axis in axes if axis >= n_leading]
    data, indices = reverse(operand.data, (*batch, *dense)), reverse(operand.indices, batch)
    reversed_columns = [n_batch + axis in axes for axis in range(n_sparse)]
    if any(reversed_columns):
        sizes = operand.shape[n_batch:n_leading]
        last = row_constant([size - 1 for size in sizes], indices.shape, indices.dtype)
        flag = np.broadcast_to(np.asarray(reversed_columns), indices.shape)
        inside = indices < row_constant(sizes, indices.shape, indices.dtype)
        indices = select(bitwise_and(inside, asarray(flag)), last - indices, indices)
    return BCOO((data, indices), shape=operand.shape)


@boundary
def bcoo_reduce_sum(mat: BCOO, *, axes: Sequence[int]) -> BCOO:
    """Return the sums of a BCOO array over axes, as a BCOO array.

    Elements that are summed over sparse or batch axes stay separate, at one position.

    Args:
      mat: a BCOO array.
      axes: the axes to sum over.

    Raises:
      AssertionError: if an axis is out of range.
    """
    axes = tuple(axes)
    if not all(0 <= axis < mat.ndim for axis in axes):
        raise AssertionError(
            f"bcoo_reduce_sum: axes are from 0 to {mat.ndim - 1}, got {axes} for {mat}"
        )
    n_batch, n_sparse, _, nse = layout_of(mat.data, mat.indices, mat.shape)
    n_leading = n_batch + n_sparse
    batch = [axis for axis in axes if axis < n_batch]
    dense = [axis - n_sparse + 1 for axis in axes if axis >= n_leading]
    remaining = [axis for axis in range(n_sparse) if n_batch + axis not in axes]
    data, indices = reduce_sum(mat.data, dense), columns(mat.indices, remaining)
    if batch:
        sizes = common_batch(data.shape, indices.shape, n_batch=n_batch)
        data, indices = with_batch(data, sizes), with_batch(indices, sizes)
        # An axis of size 1 stands for as many equal elements as the array has.
        repeats = math.prod(mat.shape[a] for a in batch if sizes[a] == 1)
        data = data * repeats if repeats != 1 else data
        kept_batch = [axis for axis in range(n_batch) if axis not in batch]
        order = (*kept_batch, *batch)
        count = nse * math.prod(sizes[axis] for axis in batch)
        left = [sizes[axis] for axis in kept_batch]
        data = transpose_axes(data, (*order, *range(n_batch, data.ndim)))
        data = reshape(data, (*left, count, *data.shape[n_batch + 1 :]))
        indices = transpose_axes(indices, (*order, n_batch, n_batch + 1))
        indices = reshape(indices, (*left, count, len(remaining)))
    shape = [size for axis, size in enumerate(mat.shape) if axis not in axes]
    return BCOO((data, indices), shape=shape)
