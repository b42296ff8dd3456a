"""Products of sparse arrays in batched coordinates: contracted, element by element, convolved."""

import math
from collections.abc import Sequence

from hlofront.base.boundary import boundary
from hlofront.base.typing import Array, ArrayLike, DTypeLike
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.trace import process
from hlofront.numpy.arrays.creation import asarray
from hlofront.numpy.support.promotion import promote_dtypes
from hlofront.primitives.arrays.creation import full
from hlofront.primitives.arrays.reducing import reduce_and, without_axes
from hlofront.primitives.arrays.shaping import broadcast_in_dim, broadcast_shapes, reshape, squeeze
from hlofront.primitives.arrays.shaping import transpose as transpose_axes
from hlofront.primitives.elementwise.compare import eq, select
from hlofront.primitives.elementwise.elementwise import bitwise_and, bitwise_not, max, mul
from hlofront.primitives.linalg.contraction_numbers import (
    DotDimensionNumbers,
    canonical_numbers,
    remaining_axes,
)
from hlofront.primitives.linalg.conv import conv_general_dilated
from hlofront.primitives.linalg.dot_general import (
    PrecisionLike,
    canonical_element_type,
    dot_general,
)
from hlofront.primitives.sparse.elements import extract
from hlofront.primitives.sparse.layout import (
    columns,
    common_batch,
    layout_of,
    out_of_bounds,
    read_at,
    row_constant,
    with_batch,
)
from hlofront.primitives.sparse.products import (
    Numbers,
    bcoo_dot_general_p,
    bcoo_spdot_general_p,
    sampled,
)
from hlofront.sparse.bcoo import BCOO, bcoo_fromdense
from hlofront.transforms.stage import stage


@boundary
def bcoo_dot_general(
    lhs: BCOO | ArrayLike,
    rhs: BCOO | ArrayLike,
    *,
    dimension_numbers: DotDimensionNumbers,
    precision: None = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: None = None,
) -> BCOO | Array:
    """Multiply two arrays, one or both BCOO, and sum over the contracted axes.

    Contracted axes of a BCOO array must not be dense, and batch axes of the product must be among
    its batch axes.

    Args:
      lhs: an array.
      rhs: an array.
      dimension_numbers: ((contracting axes of lhs, of rhs), (batch axes of lhs, of rhs)).
      precision: has no effect: products of stored elements are summed up one by one.
      preferred_element_type: the dtype of the sums and of the result.
      out_sharding: must be None.

    Returns:
      A BCOO array if both are BCOO, else a dense array.

    Raises:
      NotImplementedError: for contracted dense axes, and for batch axes of the product that are not
        batch axes of the array.
      TypeError: if sizes and dimension numbers do not fit.
    """
    numbers = canonical_numbers(dimension_numbers)
    if isinstance(lhs, BCOO) and isinstance(rhs, BCOO):
        return _product_of_sparse(lhs, rhs, numbers, preferred_element_type)
    if isinstance(lhs, BCOO):
        return _product_with_dense(lhs, rhs, numbers, preferred_element_type)
    if isinstance(rhs, BCOO):
        flipped = numbers[0][::-1], numbers[1][::-1]
        product = _product_with_dense(rhs, lhs, flipped, preferred_element_type)
        n_batch = len(numbers[1][0])
        n_lhs = typeof(lhs).ndim - n_batch - len(numbers[0][0])
        n_rhs = product.ndim - n_batch - n_lhs
        if not n_lhs or not n_rhs:
            return product
        order = (*range(n_batch), *range(n_batch + n_rhs, product.ndim))
        return transpose_axes(product, (*order, *range(n_batch, n_batch + n_rhs)))
    return dot_general(lhs, rhs, numbers, precision, preferred_element_type)


def _product_with_dense(
    lhs: BCOO, rhs: ArrayLike, numbers: Numbers, preferred: DTypeLike | None
) -> Array:
    params = {
        "dimension_numbers": numbers,
        "preferred_element_type": canonical_element_type(preferred, "bcoo_dot_general"),
        "lhs_spinfo": lhs._info,
    }
    return process(bcoo_dot_general_p, (lhs.data, lhs.indices, asarray(rhs)), params)


def _product_of_sparse(lhs: BCOO, rhs: BCOO, numbers: Numbers, preferred: DTypeLike | None) -> BCOO:
    params = {
        "dimension_numbers": numbers,
        "preferred_element_type": canonical_element_type(preferred, "bcoo_dot_general"),
        "lhs_spinfo": lhs._info,
        "rhs_spinfo": rhs._info,
    }
    buffers = process(bcoo_spdot_general_p, (*lhs._bufs, *rhs._bufs), params)
    (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch) = numbers
    lhs_free = remaining_axes(lhs.n_batch, lhs_batch)
    rhs_free = remaining_axes(rhs.n_batch, rhs_batch)
    shape = (
        *[lhs.shape[axis] for axis in (*lhs_batch, *lhs_free)],
        *[rhs.shape[axis] for axis in rhs_free],
        *without_axes(lhs.shape, (*range(lhs.n_batch), *lhs_contracting)),
        *without_axes(rhs.shape, (*range(rhs.n_batch), *rhs_contracting)),
    )
    return BCOO(tuple(buffers), shape=shape)


@boundary
def bcoo_dot_general_sampled(
    A: ArrayLike, B: ArrayLike, indices: ArrayLike, *, dimension_numbers: DotDimensionNumbers
) -> Array:
    """Return the elements of a product of dense arrays at positions, without computing the others.

    Args:
      A: a dense array.
      B: a dense array.
      indices: positions in the product, of shape (*batch, nse, n_sparse), like the indices of a
          BCOO array.
      dimension_numbers: ((contracting axes of A, of B), (batch axes of A, of B)).

    Returns:
      The elements, of shape (*batch, nse, *dense), as the data of a BCOO array.
    """
    numbers = canonical_numbers(dimension_numbers)
    return sampled(asarray(A), asarray(B), asarray(indices), numbers)


# ---- element by element --------------------------------------------------------------------------


@boundary
def bcoo_multiply_dense(sp_mat: BCOO, v: ArrayLike) -> Array:
    """Return the data of the product, element by element, of a BCOO array and a dense array.

    Args:
      sp_mat: a BCOO array.
      v: a dense array of the same dtype that broadcasts to its shape.

    Raises:
      NotImplementedError: if the product would have another shape than `sp_mat`.
    """
    shape = sp_mat.shape
    if typeof(v).ndim == 0:
        return mul(sp_mat.data, v)
    v = asarray(v)
    if v.shape == shape:
        return _same_batch_product(sp_mat.data, extract(sp_mat.indices, v), sp_mat.n_batch)
    if broadcast_shapes(v.shape, shape) != shape:
        raise NotImplementedError(  # JAX raises this class.
            "multiplication between sparse and dense is only implemented for cases where the "
            f"output shape matches the sparse matrix shape. Got shape={shape}, v.shape={v.shape}"
        )
    n_batch, n_sparse, _, _ = layout_of(sp_mat.data, sp_mat.indices, shape)
    first = len(shape) - v.ndim
    # Axes of size 1 are left out: what remains is read at the indices along it.
    axes = [first + i for i, size in enumerate(v.shape) if size != 1]
    own = {axis: i for i, axis in enumerate(axes)}
    v = squeeze(v, [i for i, size in enumerate(v.shape) if size == 1])
    sparse = [axis for axis in range(n_batch, n_batch + n_sparse) if axis in own]
    batch_axes = {axis: own[axis] for axis in range(n_batch) if axis in own}
    batch = tuple([shape[a] if a in own else sp_mat.indices.shape[a] for a in range(n_batch)])
    at = columns(with_batch(sp_mat.indices, batch), [axis - n_batch for axis in sparse])
    elements = read_at(v, at, batch_axes, [own[axis] for axis in sparse])
    dense = [axis - n_sparse + 1 for axis in axes if axis >= n_batch + n_sparse]
    elements = broadcast_in_dim(
        elements, (*batch, *sp_mat.data.shape[n_batch:]), (*range(n_batch + 1), *dense)
    )
    return _same_batch_product(sp_mat.data, elements, n_batch)


def _same_batch_product(x: Array, y: Array, n_batch: int) -> Array:
    batch = common_batch(x.shape, y.shape, n_batch=n_batch)
    return mul(with_batch(x, batch), with_batch(y, batch))


@boundary
def bcoo_multiply_sparse(lhs: BCOO, rhs: BCOO) -> BCOO:
    """Return the product, element by element, of two BCOO arrays whose shapes broadcast.

    The result stores a position for each pair of stored elements; most are padding.

    Args:
      lhs, rhs: BCOO arrays of equal rank, whose shapes broadcast.

    Raises:
      TypeError: if the numbers of axes differ.
      NotImplementedError: if the numbers of dense axes differ.
      ValueError: if the shapes do not broadcast.
    """
    if lhs.ndim != rhs.ndim:
        raise TypeError(
            "bcoo_multiply_sparse: arrays must have same number of dimensions, got "
            f"{lhs.shape}, {rhs.shape}"
        )
    if lhs.n_dense != rhs.n_dense:
        raise NotImplementedError(  # JAX raises this class.
            f"bcoo_multiply_sparse: arrays with differing numbers of dense dimensions: {lhs}, {rhs}"
        )
    n_batch = min(lhs.n_batch, rhs.n_batch)
    lhs, rhs = (mat.update_layout(n_batch=n_batch) for mat in (lhs, rhs))
    shape = broadcast_shapes(lhs.shape, rhs.shape)
    n_sparse, n_leading = lhs.n_sparse, n_batch + lhs.n_sparse
    batch = common_batch(
        *[buffer.shape for mat in (lhs, rhs) for buffer in mat._bufs], n_batch=n_batch
    )
    pairs = (*batch, lhs.nse, rhs.nse)
    first = tuple(range(n_batch))

    def of_pairs(x: Array, axis: int, rest: Sequence[int] = (n_sparse,)) -> Array:
        """Return values per element of one factor, repeated for each pair of elements."""
        tail = range(n_batch + 2, n_batch + 2 + len(rest))
        return broadcast_in_dim(with_batch(x, batch), (*pairs, *rest), (*first, axis, *tail))

    i = of_pairs(lhs.indices, n_batch)
    j = of_pairs(rhs.indices.astype(lhs.indices.dtype), n_batch + 1)
    shared = [
        axis - n_batch for axis in range(n_batch, n_leading) if lhs.shape[axis] == rhs.shape[axis]
    ]
    equal = reduce_and(eq(columns(i, shared), columns(j, shared)), (n_batch + 2,))
    for mat, at in ((lhs, i), (rhs, j)):
        equal = bitwise_and(equal, bitwise_not(out_of_bounds(at, mat.shape[n_batch:n_leading])))
    dense = shape[n_leading:]
    x, y = promote_dtypes(lhs.data, rhs.data)
    product = mul(of_pairs(x, n_batch, dense), of_pairs(y, n_batch + 1, dense))
    mask = broadcast_in_dim(equal, product.shape, range(n_batch + 2))
    product = select(mask, product, full(product.shape, 0, product.dtype))
    at_mask = broadcast_in_dim(equal, i.shape, range(n_batch + 2))
    padding = row_constant(shape[n_batch:n_leading], i.shape, i.dtype)
    # Along an axis of size 1 the index is 0, so that the greater one is that of the other factor.
    at = select(at_mask, max(i, j), padding)
    nse = lhs.nse * rhs.nse
    data = reshape(product, (*batch, nse, *dense))
    return BCOO((data, reshape(at, (*batch, nse, n_sparse))), shape=shape)


# ---- convolution ---------------------------------------------------------------------------------


@boundary
def bcoo_conv_general_dilated(
    lhs: BCOO | ArrayLike,
    rhs: BCOO | ArrayLike,
    *,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: object = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: PrecisionLike | None = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: None = None,
) -> BCOO:
    """Return the convolution along one spatial axis of BCOO arrays; see `conv_general_dilated`.

    Args:
      lhs: the input, of shape (batch, features, width); a dense array counts as one whose elements
        are all stored.
      rhs: the kernel, of shape (output features, input features, width), likewise.
      window_strides: the step of the kernel.
      padding: the padding before and after, or its name.
      lhs_dilation: the distance between elements of the input.
      rhs_dilation: the distance between elements of the kernel.
      dimension_numbers: the roles of the axes.
      feature_group_count: must be 1.
      batch_group_count: must be 1.
      precision: has no effect: products of stored elements are summed up one by one.
      preferred_element_type: the dtype of the result.
      out_sharding: must be None.

    Returns:
      A BCOO array with two batch axes, the batch and the output features.

    Raises:
      ValueError: if the arguments do not fit, or there is more than one spatial axis.
      NotImplementedError: for groups.
      SparseEfficiencyError: if the batch or feature axes are sparse, and of sizes other than 1.
    """
    avals = [ShapedArray(tuple(x.shape), x.dtype) for x in map(_sparse_or_array, (lhs, rhs))]
    # The equation of the dense convolution has all arguments in canonical form.
    program = stage(
        lambda x, y: [
            conv_general_dilated(
                x,
                y,
                window_strides,
                padding,
                lhs_dilation,
                rhs_dilation,
                dimension_numbers,
                feature_group_count,
                batch_group_count,
                precision,
                preferred_element_type,
            )
        ],
        avals,
    )
    (equation,) = program.jaxpr.eqns
    params = equation.params
    if feature_group_count != 1 or batch_group_count != 1:
        raise NotImplementedError(  # JAX raises this class.
            "bcoo convolution with feature_group_count or batch_group_count other than 1: "
            f"got {feature_group_count} and {batch_group_count}"
        )
    if avals[0].ndim != 3:
        raise ValueError(
            "bcoo_conv_general_dilated convolves along one spatial axis, of arrays of three axes: "
            f"got {avals[0].str_short()} and {avals[1].str_short()}"
        )
    numbers = params["dimension_numbers"]
    x, y = (
        _in_two_batch_axes(mat, spec)
        for mat, spec in ((lhs, numbers.lhs_spec), (rhs, numbers.rhs_spec))
    )
    out_aval = program.out_avals[0]
    shape = tuple([out_aval.shape[axis] for axis in numbers.out_spec])
    (stride,), (before, _) = params["window_strides"], params["padding"][0]
    (of_lhs,), (of_rhs,) = params["lhs_dilation"], params["rhs_dilation"]
    # Elements by (batch, output feature, input feature, stored in lhs, stored in rhs).
    n, o = shape[:2]
    grid = (n, o, x.shape[1], x.nse, y.nse)

    def of_pairs(buffer: Array, axes: Sequence[int], batch: Sequence[int]) -> Array:
        return broadcast_in_dim(with_batch(buffer, tuple(batch)), grid, axes)

    def of_lhs_pairs(buffer: Array) -> Array:
        return of_pairs(buffer, (0, 2, 3), x.shape[:2])

    def of_rhs_pairs(buffer: Array) -> Array:
        return of_pairs(buffer, (1, 2, 4), y.shape[:2])

    i, k = (reshape(mat.indices, mat.indices.shape[:-1]) for mat in (x, y))
    position = of_lhs_pairs(i * of_lhs + before) - of_rhs_pairs(k.astype(i.dtype) * of_rhs)
    inside = bitwise_and(of_lhs_pairs(i < x.shape[2]), of_rhs_pairs(k < y.shape[2]))
    inside = inside & (position >= 0) & (position < shape[2] * stride)
    if stride != 1:
        inside = inside & (position % stride == 0)
    product = mul(of_lhs_pairs(x.data), of_rhs_pairs(y.data)).astype(out_aval.dtype)
    count = math.prod(grid[2:])
    data = select(inside, product, full(grid, 0, product.dtype))
    at = select(inside, position // stride, full(grid, shape[2], i.dtype))
    buffers = reshape(data, (n, o, count)), reshape(at, (n, o, count, 1))
    result = BCOO(buffers, shape=shape)
    order = sorted(range(3), key=numbers.out_spec.__getitem__)
    return result if order == [0, 1, 2] else result.transpose(order)


def _sparse_or_array(x: BCOO | ArrayLike) -> BCOO | Array:
    return x if isinstance(x, BCOO) else asarray(x)


def _in_two_batch_axes(mat: BCOO | ArrayLike, spec: Sequence[int]) -> BCOO:
    """Return an operand of a convolution with its first two axes as batch axes, the last sparse."""
    if not isinstance(mat, BCOO):
        mat = transpose_axes(asarray(mat), spec)
        return bcoo_fromdense(mat, nse=mat.shape[2], n_batch=2)
    if list(spec) != [0, 1, 2]:
        mat = mat.transpose(spec)
    return mat.update_layout(n_batch=2, n_dense=0)
