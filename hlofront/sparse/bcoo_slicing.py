"""Slices of BCOO arrays: at static and computed starts."""

import math
from collections.abc import Sequence

import numpy as np

from hlofront.base.boundary import boundary
from hlofront.base.typing import Array, ArrayLike, ArrayLikes
from hlofront.numpy.arrays.creation import asarray
from hlofront.primitives.arrays.creation import full
from hlofront.primitives.arrays.dynamic_slicing import dynamic_slice
from hlofront.primitives.arrays.gathering import GatherDimensionNumbers, GatherScatterMode
from hlofront.primitives.arrays.reducing import reduce_and
from hlofront.primitives.arrays.shaping import broadcast_in_dim, reshape
from hlofront.primitives.arrays.slicing import concatenate
from hlofront.primitives.arrays.slicing import slice as slice_axes
from hlofront.primitives.elementwise.compare import select
from hlofront.primitives.elementwise.elementwise import bitwise_and, sub
from hlofront.primitives.sparse.layout import common_batch, layout_of, row_constant, with_batch
from hlofront.sparse.bcoo import BCOO, bcoo_sum_duplicates, bcoo_transpose
from hlofront.sparse.bcoo_roles import bcoo_update_layout
from hlofront.sparse.bcoo_shaping import bcoo_reshape, bcoo_squeeze
from hlofront.transforms.vmap import vmap


def _padded_where(
    inside: Array, data: Array, indices: Array, sizes: Sequence[int]
) -> tuple[Array, Array]:
    """Return data and indices with padding where a mask of the stored positions does not hold."""
    n_leading = inside.ndim
    mask = broadcast_in_dim(inside, data.shape, range(n_leading))
    data = select(mask, data, full(data.shape, 0, data.dtype))
    mask = broadcast_in_dim(inside, indices.shape, range(n_leading))
    return data, select(mask, indices, row_constant(sizes, indices.shape, indices.dtype))


def check_is_bcoo(caller: str, mat: object) -> None:
    if not isinstance(mat, BCOO):
        raise TypeError(f"{caller}: input should be BCOO array, got type(mat)={type(mat)}")


@boundary
def bcoo_slice(
    mat: BCOO,
    *,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> BCOO:
    """Return the elements of a BCOO array from start to limit along each axis.

    The result stores as many positions as the array, or as many as it has elements if these are
    fewer; positions outside the slice become padding.

    Args:
      mat: the array.
      start_indices: the first index along each axis.
      limit_indices: the index after the last one along each axis.
      strides: the distance of indices along each axis; None for 1.

    Raises:
      TypeError: if `mat` is not a BCOO array.
      ValueError: if starts, limits or strides are not one per axis, or are out of range.
    """
    check_is_bcoo("bcoo_slice", mat)
    start, limit = list(map(int, start_indices)), list(map(int, limit_indices))
    steps = [1] * mat.ndim if strides is None else list(map(int, strides))
    if not len(start) == len(limit) == len(steps) == mat.ndim:
        raise ValueError(
            f"bcoo_slice: start_indices={start}, limit_indices={limit} and strides={steps} require "
            f"one number for each of the {mat.ndim} axes of shape={mat.shape}"
        )
    if not all(0 <= a <= b <= size for a, b, size in zip(start, limit, mat.shape, strict=True)):
        raise ValueError(
            f"bcoo_slice: invalid indices. Got start_indices={start}, limit_indices={limit} and "
            f"shape={mat.shape}"
        )
    if not all(step > 0 for step in steps):
        raise ValueError(f"strides must be a sequence of positive integers; got {steps}")
    n_batch, n_sparse, _, _ = layout_of(mat.data, mat.indices, mat.shape)
    n_leading = n_batch + n_sparse
    shape = tuple([-(-(b - a) // step) for a, b, step in zip(start, limit, steps, strict=True)])

    def cut(buffer: Array, dense: Sequence[int]) -> Array:
        """Return a slice of a buffer along its batch axes, and along dense axes after the nse."""
        axes = [*range(n_batch), *dense]
        firsts, lasts, every = [0] * buffer.ndim, list(buffer.shape), [1] * buffer.ndim
        for position, axis in enumerate(axes):
            own = axis if position < n_batch else axis - n_sparse + 1
            if position >= n_batch or buffer.shape[own] == mat.shape[axis]:
                firsts[own], lasts[own], every[own] = start[axis], limit[axis], steps[axis]
            else:  # An axis of size 1 that stands for any size.
                lasts[own] = min(1, shape[axis])
        if firsts == [0] * buffer.ndim and lasts == list(buffer.shape) and max(every) == 1:
            return buffer
        return slice_axes(buffer, firsts, lasts, every)

    data = cut(mat.data, range(n_leading, mat.ndim))
    indices = cut(mat.indices, ())
    sparse = slice(n_batch, n_leading)
    sizes = shape[sparse]
    if sizes != mat.shape[sparse]:
        batch = common_batch(data.shape, indices.shape, n_batch=n_batch)
        data, indices = with_batch(data, batch), with_batch(indices, batch)
        first = row_constant(start[sparse], indices.shape, indices.dtype)
        last = row_constant(limit[sparse], indices.shape, indices.dtype)
        moved = indices - first
        inside = bitwise_and(indices >= first, indices < last)
        if max(steps[sparse]) > 1:
            step = row_constant(steps[sparse], indices.shape, indices.dtype)
            inside = bitwise_and(inside, moved % step == 0)
            moved = moved // step
        inside = reduce_and(inside, (n_batch + 1,))
        data, indices = _padded_where(inside, data, moved, sizes)
    return _not_wider(BCOO((data, indices), shape=shape))


def _not_wider(mat: BCOO) -> BCOO:
    """Return an array with no more stored positions than there are positions."""
    most = math.prod(mat.shape[mat.n_batch : mat.n_batch + mat.n_sparse])
    if mat.nse <= most:
        return mat
    joined = bcoo_sum_duplicates(mat, nse=most)
    return BCOO(joined._bufs, shape=mat.shape)


@boundary
def bcoo_dynamic_slice(mat: BCOO, start_indices: ArrayLikes, slice_sizes: Sequence[int]) -> BCOO:
    """Return the elements of a BCOO array in a window whose start may be traced.

    Args:
      mat: a BCOO array.
      start_indices: an integer scalar per axis, wrapped and clamped as in `lax.dynamic_slice`.
      slice_sizes: the sizes of the window, one per axis.

    Raises:
      ValueError: if there is not one start per axis.
      TypeError: if starts are not integers, or sizes are greater than those of the array.
    """
    check_is_bcoo("bcoo_dynamic_slice", mat)
    sizes = tuple(map(int, slice_sizes))
    starts = [asarray(start) for start in start_indices]
    if len(starts) != mat.ndim or len(sizes) != mat.ndim:
        raise ValueError(
            "Length of slice indices must match number of operand dimensions "
            f"({len(starts)} vs {mat.shape})"
        )
    if not all(0 <= size <= whole for size, whole in zip(sizes, mat.shape, strict=True)):
        raise TypeError(
            "slice slice_sizes must be less than or equal to operand shape, got slice_sizes "
            f"{sizes} for operand shape {mat.shape}."
        )
    if not all(np.issubdtype(start.dtype, np.integer) and not start.ndim for start in starts):
        raise TypeError(
            "index arguments to dynamic_slice must be integers of the same type, got: "
            f"{', '.join(start.dtype.name for start in starts)}"
        )
    n_batch, n_sparse, _, _ = layout_of(mat.data, mat.indices, mat.shape)
    n_leading = n_batch + n_sparse

    def cut(buffer: Array, dense: Sequence[int]) -> Array:
        firsts = [starts[0].astype(np.int32) * 0] * buffer.ndim
        lengths = list(buffer.shape)
        for axis in (*range(n_batch), *dense):
            own = axis if axis < n_batch else axis - n_sparse + 1
            if buffer.shape[own] == mat.shape[axis]:
                firsts[own], lengths[own] = starts[axis].astype(np.int32), sizes[axis]
            else:  # An axis of size 1 that stands for any size.
                lengths[own] = min(1, sizes[axis])
        return buffer if lengths == list(buffer.shape) else dynamic_slice(buffer, firsts, lengths)

    data, indices = cut(mat.data, range(n_leading, mat.ndim)), cut(mat.indices, ())
    sparse = slice(n_batch, n_leading)
    if sizes[sparse] != mat.shape[sparse]:
        batch = common_batch(data.shape, indices.shape, n_batch=n_batch)
        data, indices = with_batch(data, batch), with_batch(indices, batch)
        dtype = indices.dtype
        numbers = [
            _clamped_start(start, size, whole).astype(dtype)
            for start, size, whole in zip(
                starts[sparse], sizes[sparse], mat.shape[sparse], strict=True
            )
        ]
        row = concatenate([reshape(number, (1,)) for number in numbers], 0)
        moved = sub(indices, broadcast_in_dim(row, indices.shape, (n_batch + 1,)))
        inside = bitwise_and(moved >= 0, moved < row_constant(sizes[sparse], moved.shape, dtype))
        inside = reduce_and(inside, (n_batch + 1,))
        data, indices = _padded_where(inside, data, moved, sizes[sparse])
    return _not_wider(BCOO((data, indices), shape=sizes))


def _clamped_start(start: Array, size: int, whole: int) -> Array:
    wrapped = select(start < 0, start + whole, start)
    return wrapped.clip(0, whole - size)


@boundary
def bcoo_gather(
    operand: BCOO,
    start_indices: ArrayLike,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: str | GatherScatterMode | None = None,
    fill_value: ArrayLike | None = None,
) -> BCOO:
    """Return windows of a BCOO array at computed starts, which are in bounds; see `lax.gather`.

    Args:
      operand: the array.
      start_indices: integers; the last axis holds the start of one window.
      dimension_numbers: the correspondence of axes, without batching axes.
      slice_sizes: the sizes of the windows along each axis.
      unique_indices: has no effect.
      indices_are_sorted: has no effect.
      mode: None, or the mode or name promise_in_bounds.
      fill_value: has no effect, as no start is out of bounds.

    Raises:
      NotImplementedError: for another mode, or batching axes, or where axes of windows and of
        starts would mix.
    """
    check_is_bcoo("bcoo_gather", operand)
    in_bounds = GatherScatterMode.PROMISE_IN_BOUNDS
    if mode is not None and GatherScatterMode.from_any(mode) != in_bounds:
        raise NotImplementedError(  # JAX raises this class.
            f"bcoo_gather: mode={mode!r} not yet supported."
        )
    if dimension_numbers.operand_batching_dims or dimension_numbers.start_indices_batching_dims:
        raise NotImplementedError(  # JAX raises this class.
            f"bcoo_gather: batching dimensions, in {dimension_numbers}: use jax.vmap"
        )
    starts = asarray(start_indices)
    numbers = dimension_numbers
    n_windows = starts.ndim - 1
    flat = starts.reshape((math.prod(starts.shape[:-1]), starts.shape[-1]))

    def window(start: Array) -> BCOO:
        firsts: list[ArrayLike] = [np.int32(0)] * operand.ndim
        for position, axis in enumerate(numbers.start_index_map):
            firsts[axis] = start[position]
        part = bcoo_dynamic_slice(operand, firsts, slice_sizes)
        return bcoo_squeeze(part, dimensions=numbers.collapsed_slice_dims)

    windows = vmap(window)(flat)
    shape = (*starts.shape[:-1], *windows.shape[1:])
    windows = bcoo_reshape(windows, new_sizes=shape) if n_windows != 1 else windows
    # Axis i of the result is the next axis of the windows, or of the starts.
    offsets = iter(range(n_windows, len(shape)))
    others = iter(range(n_windows))
    order = [next(offsets if i in numbers.offset_dims else others) for i in range(len(shape))]
    if order == list(range(len(shape))):
        return windows
    return bcoo_transpose(bcoo_update_layout(windows, n_batch=0), permutation=order)
