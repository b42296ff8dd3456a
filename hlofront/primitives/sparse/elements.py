"""Primitives of sparse arrays in coordinates (BCOO) that read, move, order and join elements."""

from collections.abc import Sequence

import numpy as np

from hlofront.base.dtypes import float0
from hlofront.base.typing import Array, ArrayLike, ArrayLikes, DType
from hlofront.core import rules
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.primitive import Primitive
from hlofront.core.rules import infer
from hlofront.core.symbolic_zeros import (
    BatchAxes,
    BatchAxis,
    Batched,
    Cotangent,
    Cotangents,
    Dual,
    Duals,
    Operand,
    Tangent,
    Tangents,
    Zero,
)
from hlofront.core.trace import process
from hlofront.primitives.arrays import shaping
from hlofront.primitives.arrays.creation import broadcasted_iota, full
from hlofront.primitives.arrays.reducing import reduce_sum
from hlofront.primitives.arrays.shaping import transpose as transpose_axes
from hlofront.primitives.elementwise.compare import select
from hlofront.primitives.rules.batching import batch_size, move_axis, only_axis, to_front
from hlofront.primitives.rules.derivatives import aval_of_operand, linear
from hlofront.primitives.sparse import layout
from hlofront.primitives.sparse.layout import SparseInfo

bcoo_todense_p = Primitive("bcoo_todense")
bcoo_fromdense_p = Primitive("bcoo_fromdense", multiple_results=True)
bcoo_extract_p = Primitive("bcoo_extract")
bcoo_transpose_p = Primitive("bcoo_transpose", multiple_results=True)
bcoo_sort_indices_p = Primitive("bcoo_sort_indices", multiple_results=True)
bcoo_sum_duplicates_p = Primitive("bcoo_sum_duplicates", multiple_results=True)

# An identity that marks where a function for sparse arrays expects a dense one.
todense_p = Primitive("todense")

BatchedBuffers = tuple[ArrayLikes, BatchAxes]


def todense(data: ArrayLike, indices: ArrayLike, info: SparseInfo) -> Array:
    """Return the dense array of a BCOO array's buffers."""
    return process(bcoo_todense_p, (data, indices), {"spinfo": info})


def extract(indices: ArrayLike, array: ArrayLike, assume_unique: bool = True) -> Array:
    """Return the elements of a dense array at the positions of BCOO indices, as BCOO data.

    Args:
      indices: integers of shape (*batch, nse, n_sparse).
      array: the dense array.
      assume_unique: whether each repeated position receives the element; if not, the first one
        does, and the others are zero.
    """
    return process(bcoo_extract_p, (indices, array), {"assume_unique": assume_unique})


def no_tangent(x: ArrayLike) -> Zero:
    """Return the zero tangent of integer indices."""
    return Zero(ShapedArray(typeof(x).shape, float0))


def sparse_in_front(values: ArrayLikes, axes: BatchAxes) -> tuple[list[ArrayLike], int]:
    """Return buffers with their batch axis first, of size 1 if they have none, and its size."""
    fronted = [
        shaping.expand_dims(x, (0,)) if axis is None else move_axis(x, axis, 0)
        for x, axis in zip(values, axes, strict=True)
    ]
    return fronted, batch_size(values, axes)


def batched_info(info: SparseInfo, size: int) -> SparseInfo:
    """Return the info of an array with a new leading batch axis."""
    return info._replace(shape=(size, *info.shape))


# ---- to dense ------------------------------------------------------------------------------------


@infer(bcoo_todense_p)
def _(data: ShapedArray, indices: ShapedArray, *, spinfo: SparseInfo) -> ShapedArray:
    layout.check_layout(data, indices, spinfo.shape)
    return ShapedArray(spinfo.shape, data.dtype)


@rules.jvp(bcoo_todense_p)
def _(primals: ArrayLikes, tangents: Tangents, *, spinfo: SparseInfo) -> Dual:
    data, indices = primals
    result = todense(data, indices, spinfo)
    if type(tangents[0]) is Zero:
        return result, Zero.of(result)
    return result, todense(tangents[0], indices, spinfo)


@rules.transpose(bcoo_todense_p)
def _(cotangent: ArrayLike, data: Operand, indices: ArrayLike, *, spinfo: SparseInfo) -> Cotangents:
    return [unbatched_like(extract(indices, cotangent), aval_of_operand(data)), None]


def unbatched_like(x: ArrayLike, aval: ShapedArray) -> ArrayLike:
    """Sum a cotangent over the axes along which its operand has size 1."""
    from_shape = typeof(x).shape
    axes = [i for i, size in enumerate(aval.shape) if size != from_shape[i]]
    if not axes:
        return x
    return shaping.broadcast_in_dim(
        reduce_sum(x, axes), aval.shape, [i for i in range(aval.ndim) if i not in axes]
    )


@rules.batch(bcoo_todense_p)
def _(values: ArrayLikes, axes: BatchAxes, *, spinfo: SparseInfo) -> Batched:
    (data, indices), size = sparse_in_front(values, axes)
    return todense(data, indices, batched_info(spinfo, size)), 0


# ---- from dense ----------------------------------------------------------------------------------


@infer(bcoo_fromdense_p)
def _(
    mat: ShapedArray, *, nse: int, n_batch: int, n_dense: int, index_dtype: DType
) -> list[ShapedArray]:
    n_sparse = mat.ndim - n_batch - n_dense
    if n_sparse < 0 or min(n_batch, n_dense) < 0:
        raise ValueError(
            f"bcoo_fromdense: an array of shape {mat.shape} cannot have n_batch={n_batch} batch "
            f"axes and n_dense={n_dense} dense ones: both are at least 0, and at most "
            f"{mat.ndim} together"
        )
    batch, dense = mat.shape[:n_batch], mat.shape[n_batch + n_sparse :]
    return [
        ShapedArray((*batch, nse, *dense), mat.dtype, mat.weak_type),
        ShapedArray((*batch, nse, n_sparse), index_dtype),
    ]


@rules.jvp(bcoo_fromdense_p)
def _(primals: ArrayLikes, tangents: Tangents, **params: object) -> Duals:
    (mat,) = primals
    data, indices = process(bcoo_fromdense_p, (mat,), params)
    (tangent,) = tangents
    zero = type(tangent) is Zero
    return [data, indices], [
        Zero.of(data) if zero else extract(indices, tangent),
        no_tangent(indices),
    ]


@rules.batch(bcoo_fromdense_p)
def _(values: ArrayLikes, axes: Sequence[int], *, n_batch: int, **params: object) -> BatchedBuffers:
    mat = move_axis(values[0], only_axis(axes), 0)
    return process(bcoo_fromdense_p, (mat,), {"n_batch": n_batch + 1, **params}), [0, 0]


# ---- extract -------------------------------------------------------------------------------------


@infer(bcoo_extract_p)
def _(indices: ShapedArray, array: ShapedArray, *, assume_unique: bool) -> ShapedArray:
    n_batch, n_sparse, _, nse = layout.layout_of_indices(indices, array.shape)
    shape = (*array.shape[:n_batch], nse, *array.shape[n_batch + n_sparse :])
    return ShapedArray(shape, array.dtype)


@rules.jvp(bcoo_extract_p)
def _(primals: ArrayLikes, tangents: Tangents, *, assume_unique: bool) -> Dual:
    indices, array = primals
    result = extract(indices, array, assume_unique)
    if type(tangents[1]) is Zero:
        return result, Zero.of(result)
    return result, extract(indices, tangents[1], assume_unique)


@rules.transpose(bcoo_extract_p)
def _(
    cotangent: ArrayLike, indices: ArrayLike, array: Operand, *, assume_unique: bool
) -> Cotangents:
    shape = aval_of_operand(array).shape
    if not assume_unique:
        n_batch, n_sparse, _, _ = layout.layout_of(cotangent, indices, shape)
        first = layout.first_at_position(indices, shape[n_batch : n_batch + n_sparse])
        cotangent_shape = typeof(cotangent).shape
        first = shaping.broadcast_in_dim(first, cotangent_shape, range(n_batch + 1))
        cotangent = select(first, cotangent, full(cotangent_shape, 0, typeof(cotangent).dtype))
    return [None, todense(cotangent, indices, SparseInfo(shape))]


@rules.batch(bcoo_extract_p)
def _(values: ArrayLikes, axes: BatchAxes, *, assume_unique: bool) -> Batched:
    (indices, _), size = sparse_in_front(values, axes)
    return extract(indices, to_front(values[1], axes[1], size), assume_unique), 0


# ---- transpose -----------------------------------------------------------------------------------


def check_permutation(permutation: Sequence[int], ndim: int, n_batch: int, n_dense: int) -> None:
    """Raise an error unless a permutation keeps batch, sparse and dense axes among themselves.

    Raises:
      TypeError: if it is not a permutation of the axes.
      NotImplementedError: if it mixes axes of different roles.
    """
    if sorted(permutation) != list(range(ndim)):
        raise TypeError(
            "transpose permutation isn't a permutation of operand dimensions, got permutation "
            f"{tuple(permutation)} for an array of {ndim} axes."
        )
    ends = {"batch": permutation[:n_batch], "dense": permutation[ndim - n_dense :]}
    allowed = {"batch": range(n_batch), "dense": range(ndim - n_dense, ndim)}
    for role, count in (("batch", n_batch), ("dense", n_dense)):
        if sorted(ends[role]) != list(allowed[role]):
            raise NotImplementedError(  # JAX raises this class.
                f"transpose permutation cannot permute {role} axes with non-{role} axes; got "
                f"permutation {tuple(permutation)}, with n_{role}={count}."
            )


def data_permutation(permutation: Sequence[int], n_batch: int, n_sparse: int) -> list[int]:
    """Return the permutation of the axes of data that corresponds to one of the array's axes."""
    batch = permutation[:n_batch]
    dense = [axis - n_sparse + 1 for axis in permutation[n_batch + n_sparse :]]
    return [*batch, n_batch, *dense]


@infer(bcoo_transpose_p)
def _(
    data: ShapedArray, indices: ShapedArray, *, permutation: Sequence[int], spinfo: SparseInfo
) -> list[ShapedArray]:
    n_batch, n_sparse, n_dense, nse = layout.check_layout(data, indices, spinfo.shape)
    check_permutation(permutation, len(spinfo.shape), n_batch, n_dense)
    order = data_permutation(permutation, n_batch, n_sparse)
    batch = [indices.shape[axis] for axis in permutation[:n_batch]]
    return [
        ShapedArray(tuple([data.shape[axis] for axis in order]), data.dtype),
        ShapedArray((*batch, nse, n_sparse), indices.dtype),
    ]


@rules.transpose(bcoo_transpose_p)
def _(
    cotangents: Sequence[Cotangent],
    data: Operand,
    indices: ArrayLike,
    *,
    permutation: Sequence[int],
    spinfo: SparseInfo,
) -> Cotangents:
    cotangent = cotangents[0]
    if type(cotangent) is Zero:
        return [Zero(aval_of_operand(data)), None]
    n_batch, n_sparse, _, _ = layout.layout_of(aval_of_operand(data), indices, spinfo.shape)
    order = data_permutation(permutation, n_batch, n_sparse)
    return [transpose_axes(cotangent, shaping.inverse_permutation(order)), None]


@rules.batch(bcoo_transpose_p)
def _(
    values: ArrayLikes, axes: BatchAxes, *, permutation: Sequence[int], spinfo: SparseInfo
) -> BatchedBuffers:
    buffers, size = sparse_in_front(values, axes)
    params = {
        "permutation": (0, *[axis + 1 for axis in permutation]),
        "spinfo": batched_info(spinfo, size),
    }
    data, indices = process(bcoo_transpose_p, tuple(buffers), params)
    data, data_axis = _own_axis(data, axes[0])
    indices, indices_axis = _own_axis(indices, axes[1])
    return [data, indices], [data_axis, indices_axis]


def _own_axis(result: ArrayLike, axis: BatchAxis) -> Batched:
    """Return a result without the axis of size 1 that its operand got instead of a batch axis."""
    return (shaping.squeeze(result, (0,)), None) if axis is None else (result, 0)


# ---- order ---------------------------------------------------------------------------------------


@infer(bcoo_sort_indices_p)
def _(data: ShapedArray, indices: ShapedArray, *, spinfo: SparseInfo) -> list[ShapedArray]:
    n_batch = layout.check_layout(data, indices, spinfo.shape).n_batch
    batch = layout.common_batch(data.shape, indices.shape, n_batch=n_batch)
    return [ShapedArray((*batch, *data.shape[n_batch:]), data.dtype), indices]


@rules.transpose(bcoo_sort_indices_p)
def _(
    cotangents: Sequence[Cotangent], data: Operand, indices: ArrayLike, *, spinfo: SparseInfo
) -> Cotangents:
    cotangent, aval = cotangents[0], aval_of_operand(data)
    if type(cotangent) is Zero:
        return [Zero(aval), None]
    _, order = layout.sorting_order(indices)
    rows = broadcasted_iota(np.int32, typeof(order).shape, typeof(order).ndim - 1)
    return [_taken(cotangent, layout.in_original_order(rows, order), aval), None]


def _taken(cotangent: ArrayLike, rows: ArrayLike, aval: ShapedArray) -> ArrayLike:
    """Return rows of a cotangent, as the cotangent of data of type `aval`."""
    n_batch = typeof(rows).ndim - 1
    batch = typeof(cotangent).shape[:n_batch]
    return unbatched_like(layout.take_rows(cotangent, layout.with_batch(rows, batch)), aval)


def _batch_of_order(primitive: Primitive) -> None:
    """Register the batch rule of a primitive that orders elements by their indices."""

    def rule(
        values: ArrayLikes, axes: BatchAxes, *, spinfo: SparseInfo, **params: object
    ) -> BatchedBuffers:
        buffers, size = sparse_in_front(values, axes)
        params = {"spinfo": batched_info(spinfo, size), **params}
        data, indices = process(primitive, tuple(buffers), params)
        indices, indices_axis = _own_axis(indices, axes[1])
        return [data, indices], [0, indices_axis]

    rules.batch(primitive)(rule)


# ---- duplicates ----------------------------------------------------------------------------------


@infer(bcoo_sum_duplicates_p)
def _(
    data: ShapedArray, indices: ShapedArray, *, spinfo: SparseInfo, nse: int
) -> list[ShapedArray]:
    n_batch, n_sparse, _, _ = layout.check_layout(data, indices, spinfo.shape)
    batch = layout.common_batch(data.shape, indices.shape, n_batch=n_batch)
    return [
        ShapedArray((*batch, nse, *data.shape[n_batch + 1 :]), data.dtype),
        ShapedArray((*indices.shape[:n_batch], nse, n_sparse), indices.dtype),
    ]


@rules.transpose(bcoo_sum_duplicates_p)
def _(
    cotangents: Sequence[Cotangent],
    data: Operand,
    indices: ArrayLike,
    *,
    spinfo: SparseInfo,
    nse: int,
) -> Cotangents:
    cotangent, aval = cotangents[0], aval_of_operand(data)
    if type(cotangent) is Zero:
        return [Zero(aval), None]
    n_batch, n_sparse, _, _ = layout.layout_of(aval, indices, spinfo.shape)
    duplicates = layout.find_duplicates(indices, spinfo.shape[n_batch : n_batch + n_sparse])
    ranks = layout.in_original_order(duplicates.rank, duplicates.order)
    batch = typeof(cotangent).shape[:n_batch]
    # Positions beyond the first `nse` are not in the result, so their cotangent is zero.
    ranks = shaping.expand_dims(layout.with_batch(ranks, batch), (n_batch + 1,))
    taken = layout.read_at(cotangent, ranks, {axis: axis for axis in range(n_batch)}, (n_batch,))
    return [unbatched_like(taken, aval), None]


def _linear_in_data(primitive: Primitive) -> None:
    """Register the jvp rule of a primitive on data and indices that is linear in the data."""

    def rule(primals: ArrayLikes, tangents: Tangents, **params: object) -> Duals:
        data, indices = process(primitive, tuple(primals), params)
        tangent: Tangent = Zero.of(data)
        if type(tangents[0]) is not Zero:
            tangent, _ = process(primitive, (tangents[0], primals[1]), params)
        return [data, indices], [tangent, no_tangent(indices)]

    rules.jvp(primitive)(rule)


_linear_in_data(bcoo_transpose_p)
_linear_in_data(bcoo_sort_indices_p)
_linear_in_data(bcoo_sum_duplicates_p)
_batch_of_order(bcoo_sort_indices_p)
_batch_of_order(bcoo_sum_duplicates_p)


# ---- the marking identity ------------------------------------------------------------------------


@infer(todense_p)
def _(x: ShapedArray, *, tree: object) -> ShapedArray:
    return x.strip_weak_type()


def _same_cotangent(cotangent: ArrayLike, x: Operand, *, tree: object) -> list[Cotangent]:
    return [cotangent]


linear(todense_p, _same_cotangent)


@rules.batch(todense_p)
def _(values: ArrayLikes, axes: Sequence[int], *, tree: object) -> Batched:
    return process(todense_p, (values[0],), {"tree": tree}), axes[0]
