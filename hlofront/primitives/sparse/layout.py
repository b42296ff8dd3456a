"""The layout of sparse arrays in coordinates (BCOO), and reads and sums at their coordinates."""

from collections.abc import Sequence
from typing import cast

import numpy as np

from hlofront.base.elements import NumPyDType, bool_, int32, int64
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import Array, ArrayLike, Shape
from hlofront.core.aval import ShapedArray, typeof
from hlofront.primitives.arrays.creation import broadcasted_iota, full
from hlofront.primitives.arrays.cumulative import cumsum
from hlofront.primitives.arrays.gathering import GatherDimensionNumbers, GatherScatterMode, gather
from hlofront.primitives.arrays.reducing import reduce_or, reduce_sum
from hlofront.primitives.arrays.scattering import ScatterDimensionNumbers, scatter, scatter_add
from hlofront.primitives.arrays.shaping import broadcast_in_dim, expand_dims, squeeze, transpose
from hlofront.primitives.arrays.slicing import concatenate, slice_in_dim
from hlofront.primitives.arrays.sorting import sort
from hlofront.primitives.elementwise.compare import ge, ne, select
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.elementwise.elementwise import bitwise_not, sub


class SparseInfo(NamedTuple):
    """A sparse array's description in parameters of equations, which hold no buffers.

    Attributes:
      shape: the shape of the array.
      indices_sorted: whether the indices ascend.
      unique_indices: whether no two stored elements are at the same position.
    """

    shape: Shape
    indices_sorted: bool = False
    unique_indices: bool = False


class BcooLayout(NamedTuple):
    """The roles of the axes of a BCOO array: batch axes first, then sparse axes, then dense ones.

    Attributes:
      n_batch: the number of batch axes, which data and indices have as well.
      n_sparse: the number of axes that indices count along.
      n_dense: the number of axes that are stored completely for each stored position.
      nse: the number of stored positions in each element of the batch.
    """

    n_batch: int
    n_sparse: int
    n_dense: int
    nse: int


def layout_of(
    data: ArrayLike | ShapedArray, indices: ArrayLike | ShapedArray, shape: Sequence[int]
) -> BcooLayout:
    """Return the layout of a BCOO array, from its buffers (arrays or avals) and its shape."""
    return check_layout(aval_of(data), aval_of(indices), tuple(shape))


def aval_of(x: ArrayLike | ShapedArray) -> ShapedArray:
    """Return an aval, or that of an array."""
    return x if isinstance(x, ShapedArray) else typeof(x)


def layout_of_indices(indices: ShapedArray, shape: Shape) -> BcooLayout:
    """Return the layout of a BCOO array of a shape, from the aval of its indices.

    Raises:
      ValueError: if the indices have fewer than two axes, or do not fit the shape.
      TypeError: if they are not integers.
    """
    if indices.ndim < 2:
        raise ValueError(
            f"indices of a BCOO array have at least two axes, (nse, n_sparse): got {indices.shape}"
        )
    if not np.issubdtype(indices.dtype, np.integer):
        raise TypeError(f"indices of a BCOO array are integers, got dtype {indices.dtype.name}")
    *batch, nse, n_sparse = indices.shape
    n_batch = len(batch)
    n_dense = len(shape) - n_batch - n_sparse
    if n_dense < 0:
        raise ValueError(
            f"indices of shape {indices.shape} have {n_batch} batch axes and count along "
            f"{n_sparse} sparse ones, which are more than those of the shape {shape}"
        )
    _check_batch("indices", indices.shape, n_batch, shape)
    return BcooLayout(n_batch, n_sparse, n_dense, nse)


def check_layout(data: ShapedArray, indices: ShapedArray, shape: Shape) -> BcooLayout:
    """Return the layout of a BCOO array, from the avals of its buffers.

    Raises:
      ValueError: if the buffers do not fit each other or the shape.
      TypeError: if the indices are not integers.
    """
    layout = layout_of_indices(indices, shape)
    n_batch, n_sparse, _, nse = layout
    dense = shape[n_batch + n_sparse :]
    if data.shape[n_batch:] != (nse, *dense):
        raise ValueError(
            f"Invalid data.shape={data.shape} for nse={nse}, n_batch={n_batch}, "
            f"n_dense={len(dense)}: its axes after the batch are {(nse, *dense)} for an array of "
            f"shape {shape}"
        )
    _check_batch("data", data.shape, n_batch, shape)
    return layout


def _check_batch(what: str, buffer: Shape, n_batch: int, shape: Shape) -> None:
    sizes = zip(buffer[:n_batch], shape[:n_batch], strict=True)
    if any(own not in (1, size) for own, size in sizes):
        raise ValueError(
            f"{what} batch dimensions not compatible for {what}.shape={buffer}, shape={shape}: "
            f"each is 1 or the array's"
        )


def common_batch(*shapes: Shape, n_batch: int) -> Shape:
    """Return the common batch sizes of buffers, where axes of size 1 stand for any size."""
    return tuple([max(sizes) for sizes in zip(*[shape[:n_batch] for shape in shapes], strict=True)])


def with_batch(buffer: ArrayLike, batch: Shape) -> Array:
    """Return a buffer whose batch axes of size 1 are broadcast to the sizes `batch`."""
    shape = typeof(buffer).shape
    n_batch = len(batch)
    if shape[:n_batch] == batch:
        return cast(Array, buffer)
    return broadcast_in_dim(buffer, (*batch, *shape[n_batch:]), range(len(shape)))


def columns(indices: ArrayLike, numbers: Sequence[int]) -> Array:
    """Return the columns of indices for some of the sparse axes, in the order of `numbers`."""
    shape = typeof(indices).shape
    last = len(shape) - 1
    if tuple(numbers) == tuple(range(shape[last])):
        return cast(Array, indices)
    if not numbers:
        return full((*shape[:last], 0), 0, typeof(indices).dtype)
    parts = [slice_in_dim(indices, number, number + 1, axis=last) for number in numbers]
    return parts[0] if len(parts) == 1 else concatenate(parts, last)


def row_constant(values: Sequence[int], shape: Shape, dtype: NumPyDType) -> Array:
    """Return integers, one per column of indices, as an array of the shape of indices."""
    return broadcast_in_dim(np.asarray(values, dtype), shape, (len(shape) - 1,))


def out_of_bounds(indices: ArrayLike, sizes: Sequence[int]) -> Array:
    """Return which positions lie outside axes of these sizes, as padding does."""
    aval = typeof(indices)
    beyond = ge(indices, row_constant(sizes, aval.shape, aval.dtype))
    return reduce_or(beyond, (aval.ndim - 1,))


# ---- reads and sums ------------------------------------------------------------------------------


def read_at(
    x: ArrayLike,
    indices: ArrayLike,
    batch_axes: dict[int, int],
    sparse_axes: Sequence[int],
    mode: GatherScatterMode = GatherScatterMode.FILL_OR_DROP,
) -> Array:
    """Return the elements of a dense array at positions, and zeros for positions out of bounds.

    Args:
      x: the array.
      indices: integers of shape (*batch, nse, len(sparse_axes)).
      batch_axes: batch axis of the indices -> the corresponding axis of x.
      sparse_axes: the axis of x for each column of the indices.
      mode: the treatment of positions out of bounds.

    Returns:
      An array of shape (*batch, nse, *rest), where `rest` are the other axes of x, in order.
    """
    aval, index_aval = typeof(x), typeof(indices)
    leading = index_aval.ndim - 1
    taken = {*batch_axes.values(), *sparse_axes}
    free_axes = [axis for axis in range(aval.ndim) if axis not in taken]
    if not sparse_axes:
        order = sorted(batch_axes)
        moved = transpose(x, [*[batch_axes[number] for number in order], *free_axes])
        shape = (*index_aval.shape[:leading], *[aval.shape[axis] for axis in free_axes])
        return broadcast_in_dim(moved, shape, (*order, *range(leading, len(shape))))
    pairs = sorted((axis, number) for number, axis in batch_axes.items())
    numbers = GatherDimensionNumbers(
        offset_dims=tuple(range(leading, leading + len(free_axes))),
        collapsed_slice_dims=tuple(sorted(sparse_axes)),
        start_index_map=tuple(sparse_axes),
        operand_batching_dims=tuple([axis for axis, _ in pairs]),
        start_indices_batching_dims=tuple([number for _, number in pairs]),
    )
    if not all(aval.shape[axis] for axis in sparse_axes):  # No position is in bounds.
        shape = (*index_aval.shape[:leading], *[aval.shape[axis] for axis in free_axes])
        return full(shape, 0, aval.dtype)
    sizes = [min(size, 1) if axis in taken else size for axis, size in enumerate(aval.shape)]
    fill = 0 if mode == GatherScatterMode.FILL_OR_DROP else None
    return gather(x, indices, numbers, sizes, mode=mode, fill_value=fill)


def add_at(
    shape: Shape, indices: ArrayLike, updates: ArrayLike, n_batch: int, info: SparseInfo
) -> Array:
    """Sum updates at positions into an array of zeros; those out of bounds are dropped.

    Args:
      shape: the shape of the result, (*batch, *sparse, *rest).
      indices: integers of shape (*batch, *scattered, n_sparse).
      updates: an array of shape (*batch, *scattered, *rest).
      n_batch: the number of batch axes.
      info: whether the indices are sorted and unique.
    """
    index_aval, dtype = typeof(indices), typeof(updates).dtype
    n_sparse, leading = index_aval.shape[-1], index_aval.ndim - 1
    if not n_sparse:  # All updates are at the only position.
        return reduce_sum(updates, tuple(range(n_batch, leading)))
    numbers = _scatter_numbers(len(shape), n_batch, n_sparse, leading)
    return scatter_add(
        full(shape, 0, dtype),
        indices,
        updates,
        numbers,
        indices_are_sorted=info.indices_sorted,
        unique_indices=info.unique_indices,
        mode=GatherScatterMode.FILL_OR_DROP,
    )


def write_at(x: ArrayLike, indices: ArrayLike, updates: ArrayLike, n_batch: int) -> Array:
    """Return an array with its elements at positions replaced; see `add_at` for the arguments.

    Updates at the same position must be equal, and those out of bounds are dropped.
    """
    index_shape = typeof(indices).shape
    leading = len(index_shape) - 1
    numbers = _scatter_numbers(typeof(x).ndim, n_batch, index_shape[-1], leading)
    return scatter(x, indices, updates, numbers, mode=GatherScatterMode.FILL_OR_DROP)


def _scatter_numbers(
    ndim: int, n_batch: int, n_sparse: int, leading: int
) -> ScatterDimensionNumbers:
    sparse = tuple(range(n_batch, n_batch + n_sparse))
    batch = tuple(range(n_batch))
    window = tuple(range(leading, leading + ndim - n_batch - n_sparse))
    return ScatterDimensionNumbers(window, sparse, sparse, batch, batch)


def take_rows(x: ArrayLike, rows: ArrayLike) -> Array:
    """Return slices of an array along the axis after its batch.

    Args:
      x: an array of shape (*batch, count, *rest).
      rows: in-bounds integers of shape (*batch, nse), with the same batch sizes.

    Returns:
      An array of shape (*batch, nse, *rest).
    """
    n_batch = typeof(rows).ndim - 1
    mode = GatherScatterMode.PROMISE_IN_BOUNDS
    batch_axes = {axis: axis for axis in range(n_batch)}
    return read_at(x, expand_dims(rows, (n_batch + 1,)), batch_axes, (n_batch,), mode)


# ---- order ---------------------------------------------------------------------------------------


def sorting_order(indices: ArrayLike) -> tuple[Array, Array]:
    """Return the indices in lexicographic order, and the stable order that sorts them.

    Args:
      indices: integers of shape (*batch, nse, n_sparse).

    Returns:
      The sorted indices, and int32 numbers of rows, of shape (*batch, nse).
    """
    aval = typeof(indices)
    n_sparse, axis = aval.shape[-1], aval.ndim - 2
    order = broadcasted_iota(int32, aval.shape[:-1], axis)
    if not n_sparse:
        return cast(Array, indices), order
    keys = [squeeze(columns(indices, (i,)), (axis + 1,)) for i in range(n_sparse)]
    *keys, order = sort((*keys, order), dimension=axis, num_keys=n_sparse)
    return concatenate([expand_dims(key, (axis + 1,)) for key in keys], axis + 1), order


class Duplicates(NamedTuple):
    """The distinct positions among indices, as `find_duplicates` returns them.

    Attributes:
      indices: the indices in order; those out of bounds are replaced by the sizes of the axes.
      order: the rows of the original indices in that order.
      is_first: per row in that order, whether it is the first at its position.
      rank: per row in that order, the number of its position among the distinct ones.
    """

    indices: Array
    order: Array
    is_first: Array
    rank: Array


def find_duplicates(indices: ArrayLike, sizes: Sequence[int]) -> Duplicates:
    """Return the distinct positions among indices along sparse axes of these sizes."""
    aval = typeof(indices)
    axis = aval.ndim - 2
    nse = aval.shape[axis]
    beyond = expand_dims(out_of_bounds(indices, sizes), (axis + 1,))
    beyond = broadcast_in_dim(beyond, aval.shape, range(aval.ndim))
    indices, order = sorting_order(
        select(beyond, row_constant(sizes, aval.shape, aval.dtype), indices)
    )
    first = full((*aval.shape[:axis], min(nse, 1)), True, bool_)
    if nse > 1:
        one = slice_in_dim(indices, 1, nse, axis=axis)
        other = slice_in_dim(indices, 0, nse - 1, axis=axis)
        first = concatenate([first, reduce_or(ne(one, other), (axis + 1,))], axis)
    rank = sub(cumsum(convert(first, int32, False), axis), np.int32(1))
    return Duplicates(indices, order, first, rank)


def in_original_order(values: ArrayLike, order: ArrayLike) -> Array:
    """Return values (*batch, nse) of reordered rows in the original order of the rows."""
    _, sorted_values = sort((order, values), dimension=typeof(order).ndim - 1, num_keys=1)
    return sorted_values


def first_at_position(indices: ArrayLike, sizes: Sequence[int]) -> Array:
    """Return, per row of indices, whether no earlier row has the same position."""
    duplicates = find_duplicates(indices, sizes)
    return in_original_order(duplicates.is_first, duplicates.order)


def true_positions(mask: ArrayLike, count: int) -> Array:
    """Return the positions of the first `count` True elements along the last axis, ascending.

    If there are fewer, the remaining positions are the size of that axis.

    Args:
      mask: booleans of shape (*batch, size).
      count: the number of positions.

    Returns:
      Integers of shape (*batch, count).
    """
    *batch, size = shape = typeof(mask).shape
    n_batch = len(batch)
    dtype = int32 if size < 2**31 else int64
    positions = full((*batch, count), size, dtype)
    if not size or not count:
        return positions
    from_one = cumsum(convert(mask, dtype, False), n_batch)
    # A False element is sent out of bounds, and dropped.
    slots = select(mask, sub(from_one, np.ones((), dtype)), full(shape, count, dtype))
    updates = broadcasted_iota(dtype, shape, n_batch)
    return write_at(positions, expand_dims(slots, (n_batch + 1,)), updates, n_batch)


def all_zero(x: ArrayLike, leading: int) -> Array:
    """Return where all elements are zero along the axes after the first `leading` ones."""
    aval = typeof(x)
    nonzero = ne(x, full(aval.shape, 0, aval.dtype))
    return bitwise_not(reduce_or(nonzero, tuple(range(leading, aval.ndim))))
