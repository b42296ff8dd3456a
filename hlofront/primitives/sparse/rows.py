"""Primitives of sparse arrays in compressed rows (BCSR), by conversion to coordinates (BCOO)."""

from collections.abc import Sequence

from hlofront.base.typing import Array, ArrayLike, ArrayLikes, DType
from hlofront.core import rules
from hlofront.core.aval import AbstractValue, ShapedArray, typeof
from hlofront.core.primitive import Primitive
from hlofront.core.rules import BatchResult, infer
from hlofront.core.symbolic_zeros import (
    BatchAxes,
    Batched,
    Cotangents,
    Dual,
    Duals,
    Operand,
    Tangent,
    Tangents,
    Zero,
)
from hlofront.core.trace import process
from hlofront.primitives.arrays.creation import full
from hlofront.primitives.arrays.cumulative import cumsum
from hlofront.primitives.arrays.shaping import expand_dims, squeeze
from hlofront.primitives.arrays.slicing import concatenate
from hlofront.primitives.elementwise.elementwise import add, sub
from hlofront.primitives.rules.batching import batch_size, move_axis, only_axis, to_front
from hlofront.primitives.rules.derivatives import add_tangents, aval_of_operand
from hlofront.primitives.sparse.elements import (
    BatchedBuffers,
    batched_info,
    no_tangent,
    sparse_in_front,
    unbatched_like,
)
from hlofront.primitives.sparse.layout import SparseInfo, add_at, check_layout, columns
from hlofront.primitives.sparse.products import Numbers, bcoo_dot_general_p

bcsr_todense_p = Primitive("bcsr_todense")
bcsr_fromdense_p = Primitive("bcsr_fromdense", multiple_results=True)
bcsr_extract_p = Primitive("bcsr_extract")
bcsr_dot_general_p = Primitive("bcsr_dot_general")


def indices_of_rows(indices: ArrayLike, indptr: ArrayLike) -> Array:
    """Return BCOO indices of compressed rows; elements after the last row are out of bounds.

    Args:
      indices: the columns of the elements, of shape (*batch, nse).
      indptr: the start of each row, and the end of the last one, of shape (*batch, rows + 1).
    """
    shape, dtype = typeof(indices).shape, typeof(indices).dtype
    axis = len(shape) - 1
    # The row of an element is the number of rows that end at or before it.
    pointers = typeof(indptr).shape
    starts = add_at(
        shape,
        expand_dims(indptr, (axis + 1,)),
        full(pointers, 1, dtype),
        axis,
        SparseInfo(()),
    )
    rows = sub(cumsum(starts, axis), full(shape, 1, dtype))
    return concatenate([expand_dims(x, (axis + 1,)) for x in (rows, indices)], axis + 1)


def rows_of_indices(indices: ArrayLike, n_rows: int) -> tuple[Array, Array]:
    """Return the columns and row pointers of sorted BCOO indices: inverts indices_of_rows."""
    *batch, nse, _ = typeof(indices).shape
    n_batch, dtype = len(batch), typeof(indices).dtype
    rows, last = columns(indices, (0,)), columns(indices, (1,))
    at = add(rows, full((*batch, nse, 1), 1, dtype))
    ones = full((*batch, nse), 1, dtype)
    counts = add_at((*batch, n_rows + 1), at, ones, n_batch, SparseInfo((), indices_sorted=True))
    return squeeze(last, (n_batch + 1,)), cumsum(counts, n_batch)


def check_rows(
    data: ShapedArray, indices: ShapedArray, indptr: ShapedArray, shape: Sequence[int]
) -> int:
    """Return the number of batch axes of a BCSR array, from the avals of its buffers.

    Raises:
      ValueError: if the buffers do not fit each other or the shape.
    """
    n_batch = indices.ndim - 1
    if n_batch < 0 or indptr.ndim != indices.ndim or len(shape) < n_batch + 2:
        raise ValueError(
            f"a BCSR array of shape {tuple(shape)} has indices (*batch, nse) and indptr (*batch, "
            f"rows + 1): got {indices.shape} and {indptr.shape}"
        )
    if indptr.shape[-1] != shape[n_batch] + 1:
        raise ValueError(
            f"indptr shape must match the matrix shape plus 1: got indptr.shape={indptr.shape} "
            f"for shape={tuple(shape)}, whose rows are {shape[n_batch]}"
        )
    check_layout(data, ShapedArray((*indices.shape, 2), indices.dtype), tuple(shape))
    return n_batch


@infer(bcsr_todense_p)
def _(
    data: ShapedArray, indices: ShapedArray, indptr: ShapedArray, *, spinfo: SparseInfo
) -> ShapedArray:
    check_rows(data, indices, indptr, spinfo.shape)
    return ShapedArray(spinfo.shape, data.dtype)


@rules.jvp(bcsr_todense_p)
def _(primals: ArrayLikes, tangents: Tangents, *, spinfo: SparseInfo) -> Dual:
    params = {"spinfo": spinfo}
    result = process(bcsr_todense_p, tuple(primals), params)
    if type(tangents[0]) is Zero:
        return result, Zero.of(result)
    return result, process(bcsr_todense_p, (tangents[0], *primals[1:]), params)


@rules.transpose(bcsr_todense_p)
def _(
    cotangent: ArrayLike, data: Operand, indices: ArrayLike, indptr: ArrayLike, **_: object
) -> Cotangents:
    elements = process(bcsr_extract_p, (indices, indptr, cotangent), {})
    return [unbatched_like(elements, aval_of_operand(data)), None, None]


@rules.batch(bcsr_todense_p)
def _(values: ArrayLikes, axes: BatchAxes, *, spinfo: SparseInfo) -> Batched:
    buffers, size = sparse_in_front(values, axes)
    params = {"spinfo": batched_info(spinfo, size)}
    return process(bcsr_todense_p, tuple(buffers), params), 0


@infer(bcsr_fromdense_p)
def _(
    mat: ShapedArray, *, nse: int, n_batch: int, n_dense: int, index_dtype: DType
) -> list[ShapedArray]:
    if mat.ndim - n_batch - n_dense != 2:
        raise ValueError("bcsr_fromdense: must have 2 sparse dimensions.")
    batch, dense = mat.shape[:n_batch], mat.shape[n_batch + 2 :]
    return [
        ShapedArray((*batch, nse, *dense), mat.dtype),
        ShapedArray((*batch, nse), index_dtype),
        ShapedArray((*batch, mat.shape[n_batch] + 1), index_dtype),
    ]


@rules.jvp(bcsr_fromdense_p)
def _(primals: ArrayLikes, tangents: Tangents, **params: object) -> Duals:
    data, indices, indptr = process(bcsr_fromdense_p, tuple(primals), params)
    tangent: Tangent = Zero.of(data)
    if type(tangents[0]) is not Zero:
        tangent = process(bcsr_extract_p, (indices, indptr, tangents[0]), {})
    return [data, indices, indptr], [tangent, no_tangent(indices), no_tangent(indptr)]


@rules.batch(bcsr_fromdense_p)
def _(values: ArrayLikes, axes: Sequence[int], *, n_batch: int, **params: object) -> BatchedBuffers:
    mat = move_axis(values[0], only_axis(axes), 0)
    return process(bcsr_fromdense_p, (mat,), {"n_batch": n_batch + 1, **params}), [0, 0, 0]


@infer(bcsr_extract_p)
def _(indices: ShapedArray, indptr: ShapedArray, array: ShapedArray) -> ShapedArray:
    n_batch = indices.ndim - 1
    shape = (*array.shape[:n_batch], indices.shape[-1], *array.shape[n_batch + 2 :])
    data = ShapedArray(shape, array.dtype)
    check_rows(data, indices, indptr, array.shape)
    return data


@rules.jvp(bcsr_extract_p)
def _(primals: ArrayLikes, tangents: Tangents) -> Dual:
    result = process(bcsr_extract_p, tuple(primals), {})
    if type(tangents[2]) is Zero:
        return result, Zero.of(result)
    return result, process(bcsr_extract_p, (*primals[:2], tangents[2]), {})


@rules.transpose(bcsr_extract_p)
def _(cotangent: ArrayLike, indices: ArrayLike, indptr: ArrayLike, array: Operand) -> Cotangents:
    params = {"spinfo": SparseInfo(aval_of_operand(array).shape)}
    return [None, None, process(bcsr_todense_p, (cotangent, indices, indptr), params)]


@rules.batch(bcsr_extract_p)
def _(values: ArrayLikes, axes: BatchAxes) -> Batched:
    (indices, indptr, _), size = sparse_in_front(values, axes)
    array = to_front(values[2], axes[2], size)
    return process(bcsr_extract_p, (indices, indptr, array), {}), 0


@infer(bcsr_dot_general_p)
def _(
    data: ShapedArray,
    indices: ShapedArray,
    indptr: ShapedArray,
    rhs: ShapedArray,
    *,
    dimension_numbers: Numbers,
    preferred_element_type: DType | None,
    lhs_spinfo: SparseInfo,
) -> AbstractValue | Sequence[AbstractValue]:
    check_rows(data, indices, indptr, lhs_spinfo.shape)
    coordinates = ShapedArray((*indices.shape, 2), indices.dtype)
    return rules.infer[bcoo_dot_general_p](
        data,
        coordinates,
        rhs,
        dimension_numbers=dimension_numbers,
        preferred_element_type=preferred_element_type,
        lhs_spinfo=lhs_spinfo,
    )


@rules.jvp(bcsr_dot_general_p)
def _(primals: ArrayLikes, tangents: Tangents, **params: object) -> Dual:
    *buffers, rhs = primals
    result = process(bcsr_dot_general_p, tuple(primals), params)
    tangent: Tangent = Zero.of(result)
    if type(tangents[0]) is not Zero:
        operands = tangents[0], *buffers[1:], rhs
        tangent = process(bcsr_dot_general_p, operands, params)
    if type(tangents[3]) is not Zero:
        share = process(bcsr_dot_general_p, (*buffers, tangents[3]), params)
        tangent = add_tangents(tangent, share)
    return result, tangent


@rules.transpose(bcsr_dot_general_p)
def _(
    cotangent: ArrayLike,
    data: Operand,
    indices: ArrayLike,
    indptr: ArrayLike,
    rhs: Operand,
    **params: object,
) -> Cotangents:
    coordinates = indices_of_rows(indices, indptr)
    transposed = rules.transpose[bcoo_dot_general_p]
    of_data, _, of_rhs = transposed(cotangent, data, coordinates, rhs, **params)
    return [of_data, None, None, of_rhs]


@rules.batch(bcsr_dot_general_p)
def _(values: ArrayLikes, axes: BatchAxes, **params: object) -> BatchResult:
    data, indices, indptr, rhs = values
    if axes[1] is None and axes[2] is None:
        coordinates, axis = indices_of_rows(indices, indptr), None
    else:
        size = batch_size((indices, indptr), axes[1:3])
        pointers = to_front(indptr, axes[2], size)
        coordinates, axis = indices_of_rows(to_front(indices, axes[1], size), pointers), 0
    batch = rules.batch[bcoo_dot_general_p]
    return batch((data, coordinates, rhs), (axes[0], axis, axes[3]), **params)
