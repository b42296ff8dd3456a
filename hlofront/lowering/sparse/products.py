"""Lowering rules of products of sparse arrays (BCOO): gathers, dense products, scatters."""

import math
from collections.abc import Sequence

from hlofront.base.typing import Array, DType, Shape
from hlofront.lowering.core.formulas import by_tracing
from hlofront.lowering.sparse.elements import sum_duplicates
from hlofront.primitives.arrays.creation import full
from hlofront.primitives.arrays.reducing import reduce_and, reduce_sum
from hlofront.primitives.arrays.shaping import broadcast_in_dim, reshape, transpose
from hlofront.primitives.arrays.slicing import concatenate
from hlofront.primitives.elementwise.compare import eq, select
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.elementwise.elementwise import bitwise_and, bitwise_not, mul
from hlofront.primitives.linalg.contraction_numbers import remaining_axes
from hlofront.primitives.linalg.dot_general import dot_general, product_dtype
from hlofront.primitives.sparse import products as s
from hlofront.primitives.sparse.layout import (
    BcooLayout,
    SparseInfo,
    add_at,
    columns,
    layout_of,
    out_of_bounds,
    read_at,
    with_batch,
)


@by_tracing(s.bcoo_dot_general_p)
def dot_general_of_sparse(
    data: Array,
    indices: Array,
    rhs: Array,
    *,
    dimension_numbers: s.Numbers,
    preferred_element_type: DType | None,
    lhs_spinfo: SparseInfo,
) -> Array:
    """Return a product of a BCOO array and a dense one.

    Rows of rhs are gathered at the contracted indices. Their products with data are summed up, at
    the indices of the free axes if there are any.
    """
    (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch) = dimension_numbers
    shape = lhs_spinfo.shape
    n_batch, n_sparse, _, _ = layout_of(data, indices, shape)
    batch = shape[:n_batch]
    data, indices = with_batch(data, batch), with_batch(indices, batch)
    rhs_axis_of = dict(
        zip((*lhs_batch, *lhs_contracting), (*rhs_batch, *rhs_contracting), strict=True)
    )
    contracted = [axis for axis in lhs_contracting if axis >= n_batch]
    free_sparse = [axis for axis in range(n_batch, n_batch + n_sparse) if axis not in contracted]
    summed_batch = [axis for axis in lhs_contracting if axis < n_batch]
    free_batch = remaining_axes(n_batch, lhs_batch, summed_batch)
    # Batch axes come first, and those that are summed over are the last of them.
    order = (*lhs_batch, *free_batch, *summed_batch)
    n_result_batch = n_batch - len(summed_batch)
    data = transpose(data, (*order, *range(n_batch, data.ndim)))
    indices = transpose(indices, (*order, n_batch, n_batch + 1))
    batch_axes = {i: rhs_axis_of[axis] for i, axis in enumerate(order) if axis in rhs_axis_of}
    rows = read_at(
        rhs,
        columns(indices, [axis - n_batch for axis in contracted]),
        batch_axes,
        [rhs_axis_of[axis] for axis in contracted],
    )
    dtype = product_dtype("dot_general", data.dtype, rhs.dtype, preferred_element_type)
    first = tuple(range(n_result_batch))
    summed = tuple(range(n_result_batch, n_batch + 1))
    if not free_sparse:
        return dot_general(data, rows, ((summed, summed), (first, first)), None, dtype)
    every = (*first, *summed)
    products = dot_general(data, rows, (((), ()), (every, every)), None, dtype)
    at = columns(indices, [axis - n_batch for axis in free_sparse])
    trailing = products.shape[n_batch + 1 :]
    total = (*data.shape[:n_result_batch], *[shape[axis] for axis in free_sparse], *trailing)
    return add_at(total, at, products, n_result_batch, SparseInfo(shape))


@by_tracing(s.bcoo_dot_general_sampled_p)
def sampled(lhs: Array, rhs: Array, indices: Array, *, dimension_numbers: s.Numbers) -> Array:
    """Return the elements of a dense product at positions, without computing others."""
    (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch) = dimension_numbers
    lhs_free = remaining_axes(lhs.ndim, lhs_contracting, lhs_batch)
    rhs_free = remaining_axes(rhs.ndim, rhs_contracting, rhs_batch)
    n_both = len(lhs_batch)
    lhs_axes = dict(enumerate((*lhs_batch, *lhs_free)))
    rhs_axes = dict(enumerate(rhs_batch))
    rhs_axes |= {n_both + len(lhs_free) + i: axis for i, axis in enumerate(rhs_free)}
    n_batch, n_sparse = indices.ndim - 2, indices.shape[-1]
    batch = [
        lhs.shape[lhs_axes[axis]] if axis in lhs_axes else rhs.shape[rhs_axes[axis]]
        for axis in range(n_batch)
    ]
    return s.product_at(
        (lhs, lhs_axes, lhs_contracting),
        (rhs, rhs_axes, rhs_contracting),
        with_batch(indices, tuple(batch)),
        BcooLayout(n_batch, n_sparse, 0, 0),
        None,
    )


@by_tracing(s.bcoo_spdot_general_p)
def product_of_sparse(
    lhs_data: Array,
    lhs_indices: Array,
    rhs_data: Array,
    rhs_indices: Array,
    *,
    lhs_spinfo: SparseInfo,
    rhs_spinfo: SparseInfo,
    dimension_numbers: s.Numbers,
    preferred_element_type: DType | None,
) -> list[Array]:
    """Return the product of two BCOO arrays: each stored element of one with each of the other.

    Products of elements with different contracted indices count as zero.
    """
    (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch) = dimension_numbers
    lhs = _Factor(lhs_data, lhs_indices, lhs_spinfo.shape, lhs_contracting, lhs_batch)
    rhs = _Factor(rhs_data, rhs_indices, rhs_spinfo.shape, rhs_contracting, rhs_batch)
    n_both, n_lhs = len(lhs_batch), len(lhs.batch)
    batch = (*lhs.batch, *rhs.batch[n_both:])
    n_batch = len(batch)
    lhs_axes = (*range(n_lhs), n_batch)
    rhs_axes = (*range(n_both), *range(n_lhs, n_batch), n_batch + 1)
    nse = lhs.nse, rhs.nse

    def of_pairs(x: Array, axes: Sequence[int], counts: tuple[int, int] = nse) -> Array:
        """Return values per element of one factor, repeated for each pair of elements."""
        shape = (*batch, *counts, *x.shape[len(axes) :])
        return broadcast_in_dim(x, shape, (*axes, *range(n_batch + 2, len(shape))))

    dtype = product_dtype("dot_general", lhs_data.dtype, rhs_data.dtype, preferred_element_type)
    x, y = (convert(factor.data, dtype, False) for factor in (lhs, rhs))
    products = mul(of_pairs(x, lhs_axes), of_pairs(y, rhs_axes))
    inside = bitwise_and(of_pairs(lhs.is_inside, lhs_axes), of_pairs(rhs.is_inside, rhs_axes))
    one = of_pairs(lhs.contracted, lhs_axes)
    other = of_pairs(convert(rhs.contracted, lhs_indices.dtype, False), rhs_axes)
    equal = bitwise_and(inside, reduce_and(eq(one, other), (n_batch + 2,)))
    products = select(equal, products, full(products.shape, 0, dtype))
    # The elements of a factor without free sparse axes are summed over.
    summed = [n_batch + i for i, factor in enumerate((lhs, rhs)) if not factor.free_sizes]
    products = reduce_sum(products, summed)
    counts = (lhs.nse if lhs.free_sizes else 1, rhs.nse if rhs.free_sizes else 1)
    parts: list[Array] = []
    for factor, axes in ((lhs, lhs_axes), (rhs, rhs_axes)):
        if factor.free_sizes:
            coordinates = convert(factor.free_coordinates, lhs_indices.dtype, False)
            parts.append(of_pairs(coordinates, axes, counts))
    sizes = (*lhs.free_sizes, *rhs.free_sizes)
    count = counts[0] * counts[1]
    if parts:
        at = reshape(concatenate(parts, n_batch + 2), (*batch, count, len(sizes)))
    else:
        at = full((*batch, count, 0), 0, lhs_indices.dtype)
    return sum_duplicates(
        reshape(products, (*batch, count)),
        at,
        spinfo=SparseInfo((*batch, *sizes)),
        nse=min(count, math.prod(sizes)),
    )


class _Factor:
    """A factor of a product of sparse arrays: the batch axes of the product come first, in order.

    Attributes:
      data: an array of shape (*batch, nse).
      contracted: the columns of the indices along contracted axes.
      free_coordinates: the columns of the indices along the other sparse axes.
      free_sizes: the sizes of those axes.
      is_inside: which positions are in bounds, of shape (*batch, nse).
      batch: the sizes of the batch axes.
      nse: the number of stored elements.
    """

    def __init__(
        self,
        data: Array,
        indices: Array,
        shape: Shape,
        contracting: Sequence[int],
        batch_axes: Sequence[int],
    ):
        n_batch, n_sparse, _, self.nse = layout_of(data, indices, shape)
        order = (*batch_axes, *remaining_axes(n_batch, batch_axes))
        indices = with_batch(indices, shape[:n_batch])
        indices = transpose(indices, (*order, n_batch, n_batch + 1))
        contracted = [axis - n_batch for axis in contracting]
        free = remaining_axes(n_sparse, contracted)
        self.data = transpose(with_batch(data, shape[:n_batch]), (*order, n_batch))
        self.contracted = columns(indices, contracted)
        self.free_coordinates = columns(indices, free)
        self.free_sizes = tuple([shape[n_batch + axis] for axis in free])
        self.is_inside = bitwise_not(out_of_bounds(indices, shape[n_batch:]))
        self.batch = tuple([shape[axis] for axis in order])
