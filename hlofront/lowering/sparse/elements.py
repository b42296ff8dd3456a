"""Lowering rules of the elements of sparse arrays (BCOO): gathers, scatters and sorts."""

import math
from collections.abc import Sequence

from hlofront.base.typing import Array, DType
from hlofront.bridge.mlir import Value
from hlofront.core.rules import lower
from hlofront.lowering.core.builder import Builder
from hlofront.lowering.core.formulas import by_tracing
from hlofront.primitives.arrays.creation import full
from hlofront.primitives.arrays.reducing import reduce_or
from hlofront.primitives.arrays.shaping import broadcast_in_dim, expand_dims, reshape, transpose
from hlofront.primitives.arrays.slicing import concatenate
from hlofront.primitives.elementwise.compare import ne, select
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.elementwise.elementwise import div, rem
from hlofront.primitives.sparse import elements as s
from hlofront.primitives.sparse.layout import (
    SparseInfo,
    add_at,
    columns,
    common_batch,
    find_duplicates,
    first_at_position,
    layout_of,
    read_at,
    row_constant,
    sorting_order,
    take_rows,
    true_positions,
    with_batch,
    write_at,
)


@by_tracing(s.bcoo_todense_p)
def todense(data: Array, indices: Array, *, spinfo: SparseInfo) -> Array:
    """Return a dense array with data summed at their positions."""
    n_batch = layout_of(data, indices, spinfo.shape).n_batch
    batch = spinfo.shape[:n_batch]
    return add_at(
        spinfo.shape, with_batch(indices, batch), with_batch(data, batch), n_batch, spinfo
    )


@by_tracing(s.bcoo_extract_p)
def extract(indices: Array, array: Array, *, assume_unique: bool) -> Array:
    """Return the elements of a dense array at positions."""
    shape = array.shape
    n_batch, n_sparse = indices.ndim - 2, indices.shape[-1]
    sparse_axes = range(n_batch, n_batch + n_sparse)
    indices = with_batch(indices, shape[:n_batch])
    elements = read_at(array, indices, {axis: axis for axis in range(n_batch)}, sparse_axes)
    if assume_unique:
        return elements
    first = first_at_position(indices, [shape[axis] for axis in sparse_axes])
    return _where(first, elements)


def _where(mask: Array, elements: Array) -> Array:
    """Return elements where a mask of their first axes holds, and zeros elsewhere."""
    mask = broadcast_in_dim(mask, elements.shape, range(mask.ndim))
    return select(mask, elements, full(elements.shape, 0, elements.dtype))


@by_tracing(s.bcoo_fromdense_p)
def fromdense(
    mat: Array, *, nse: int, n_batch: int, n_dense: int, index_dtype: DType
) -> list[Array]:
    """Return data and indices of the first `nse` nonzero elements, in lexicographic order."""
    shape = mat.shape
    n_sparse = mat.ndim - n_batch - n_dense
    batch, sizes = shape[:n_batch], shape[n_batch : n_batch + n_sparse]
    size = math.prod(sizes)
    flat = reshape(mat, (*batch, size, *shape[n_batch + n_sparse :]))
    mask = ne(flat, full(flat.shape, 0, mat.dtype))
    positions = true_positions(reduce_or(mask, tuple(range(n_batch + 1, flat.ndim))), nse)
    data = read_at(
        flat,
        expand_dims(positions, (n_batch + 1,)),
        {axis: axis for axis in range(n_batch)},
        (n_batch,),
    )
    return [data, convert(_unraveled(positions, sizes), index_dtype, False)]


def _unraveled(positions: Array, sizes: Sequence[int]) -> Array:
    """Return positions along several axes, from numbers of elements in all of them.

    A number that is too large becomes the sizes of the axes.
    """
    shape, dtype = positions.shape, positions.dtype
    if not sizes:
        return full((*shape, 0), 0, dtype)
    inside = ne(positions, full(shape, math.prod(sizes), dtype))
    coordinates: list[Array] = []
    rest = positions
    for size in reversed(sizes):
        divisor = full(shape, max(size, 1), dtype)
        coordinate = select(inside, rem(rest, divisor), full(shape, size, dtype))
        coordinates.append(expand_dims(coordinate, (len(shape),)))
        rest = div(rest, divisor)
    return concatenate(coordinates[::-1], len(shape))


@by_tracing(s.bcoo_transpose_p)
def transposed(
    data: Array, indices: Array, *, permutation: Sequence[int], spinfo: SparseInfo
) -> list[Array]:
    """Return data and indices whose axes and columns are permuted."""
    n_batch, n_sparse, _, _ = layout_of(data, indices, spinfo.shape)
    batch = permutation[:n_batch]
    numbers = [axis - n_batch for axis in permutation[n_batch : n_batch + n_sparse]]
    indices = transpose(indices, (*batch, n_batch, n_batch + 1))
    data = transpose(data, s.data_permutation(permutation, n_batch, n_sparse))
    return [data, columns(indices, numbers)]


@by_tracing(s.bcoo_sort_indices_p)
def sort_indices(data: Array, indices: Array, *, spinfo: SparseInfo) -> list[Array]:
    """Return data and indices in lexicographic order of the indices."""
    n_batch = indices.ndim - 2
    batch = common_batch(data.shape, indices.shape, n_batch=n_batch)
    indices, order = sorting_order(indices)
    return [take_rows(with_batch(data, batch), with_batch(order, batch)), indices]


@by_tracing(s.bcoo_sum_duplicates_p)
def sum_duplicates(data: Array, indices: Array, *, spinfo: SparseInfo, nse: int) -> list[Array]:
    """Return the sums of data at the first `nse` distinct positions, and these positions."""
    n_batch, n_sparse, _, _ = layout_of(data, indices, spinfo.shape)
    batch = common_batch(data.shape, indices.shape, n_batch=n_batch)
    sizes = spinfo.shape[n_batch : n_batch + n_sparse]
    duplicates = find_duplicates(indices, sizes)
    ranks = expand_dims(duplicates.rank, (n_batch + 1,))
    padding = row_constant(sizes, (*indices.shape[:n_batch], nse, n_sparse), indices.dtype)
    distinct = write_at(padding, ranks, duplicates.indices, n_batch)
    data = take_rows(with_batch(data, batch), with_batch(duplicates.order, batch))
    ascending = SparseInfo((), indices_sorted=True)
    shape = (*batch, nse, *data.shape[n_batch + 1 :])
    return [add_at(shape, with_batch(ranks, batch), data, n_batch, ascending), distinct]


@lower(s.todense_p)
def _(build: Builder, x: Value, *, tree: object) -> Value:
    return x
