"""Primitives that contract sparse arrays (BCOO) with dense or sparse ones, and sampled products."""

import math
from collections.abc import Sequence

from hlofront.base.typing import Array, ArrayLike, ArrayLikes, DType
from hlofront.core import rules
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.primitive import Primitive
from hlofront.core.rules import infer
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
from hlofront.primitives.arrays.reducing import without_axes
from hlofront.primitives.arrays.shaping import expand_dims
from hlofront.primitives.linalg.contraction_numbers import (
    ascending_axes,
    check_contraction,
    remaining_axes,
)
from hlofront.primitives.linalg.dot_general import (
    as_cotangent,
    dot_general,
    dot_general_p,
    product_dtype,
)
from hlofront.primitives.rules.batching import batch_size, move_axis, only_axis, to_front
from hlofront.primitives.rules.derivatives import add_tangents, aval_of_operand, is_linear, known
from hlofront.primitives.sparse.elements import (
    BatchedBuffers,
    batched_info,
    no_tangent,
    sparse_in_front,
    todense,
    unbatched_like,
)
from hlofront.primitives.sparse.layout import (
    BcooLayout,
    SparseInfo,
    check_layout,
    columns,
    layout_of,
    layout_of_indices,
    read_at,
    with_batch,
)

# ((contracting axes of lhs, of rhs), (batch axes of lhs, of rhs))
Numbers = tuple[tuple[tuple[int, ...], tuple[int, ...]], tuple[tuple[int, ...], tuple[int, ...]]]

bcoo_dot_general_p = Primitive("bcoo_dot_general")
bcoo_dot_general_sampled_p = Primitive("bcoo_dot_general_sampled")
bcoo_spdot_general_p = Primitive("bcoo_spdot_general", multiple_results=True)


def checked_product(
    lhs: ShapedArray, rhs: ShapedArray, numbers: Numbers, preferred: DType | None
) -> ShapedArray:
    """Return the aval of the dense product of two arrays.

    Raises:
      TypeError: if shapes and dimension numbers do not fit.
    """
    check_contraction("dot_general", lhs, rhs, numbers)
    (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch) = numbers
    shape = (
        *[lhs.shape[axis] for axis in lhs_batch],
        *without_axes(lhs.shape, (*lhs_batch, *lhs_contracting)),
        *without_axes(rhs.shape, (*rhs_batch, *rhs_contracting)),
    )
    return ShapedArray(shape, product_dtype("dot_general", lhs.dtype, rhs.dtype, preferred))


# ---- sparse by dense -----------------------------------------------------------------------------


@infer(bcoo_dot_general_p)
def _(
    data: ShapedArray,
    indices: ShapedArray,
    rhs: ShapedArray,
    *,
    dimension_numbers: Numbers,
    preferred_element_type: DType | None,
    lhs_spinfo: SparseInfo,
) -> ShapedArray:
    (contracting, _), (batch, _) = dimension_numbers
    n_batch, _, n_dense, _ = check_layout(data, indices, lhs_spinfo.shape)
    lhs = ShapedArray(lhs_spinfo.shape, data.dtype)
    result = checked_product(lhs, rhs, dimension_numbers, preferred_element_type)
    if any(axis >= lhs.ndim - n_dense for axis in contracting):
        raise NotImplementedError(  # JAX raises this class.
            "bcoo_dot_general: contracting over dense dimensions."
        )
    if any(axis >= n_batch for axis in batch):
        raise NotImplementedError(  # JAX raises this class.
            "bcoo_dot_general batch dimensions must be among the batch dimensions in the sparse "
            f"representation. got lhs_batch={batch}, n_batch={n_batch}"
        )
    return result


@rules.jvp(bcoo_dot_general_p)
def _(primals: ArrayLikes, tangents: Tangents, **params: object) -> Dual:
    data, indices, rhs = primals
    result = process(bcoo_dot_general_p, (data, indices, rhs), params)
    tangent: Tangent = Zero.of(result)
    if type(tangents[0]) is not Zero:
        tangent = process(bcoo_dot_general_p, (tangents[0], indices, rhs), params)
    if type(tangents[2]) is not Zero:
        share = process(bcoo_dot_general_p, (data, indices, tangents[2]), params)
        tangent = add_tangents(tangent, share)
    return result, tangent


@rules.transpose(bcoo_dot_general_p)
def _(
    cotangent: ArrayLike,
    data: Operand,
    indices: ArrayLike,
    rhs: Operand,
    *,
    dimension_numbers: Numbers,
    preferred_element_type: DType | None,
    lhs_spinfo: SparseInfo,
) -> Cotangents:
    if is_linear(data):
        share = _cotangent_of_data(
            cotangent, data.aval, indices, known(rhs), dimension_numbers, lhs_spinfo
        )
        return [share, None, None]
    (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch) = dimension_numbers
    lhs_kept = remaining_axes(len(lhs_spinfo.shape), lhs_contracting, lhs_batch)
    batch = tuple(range(len(lhs_batch)))
    arrived = tuple(range(len(batch), len(batch) + len(lhs_kept)))
    aval = aval_of_operand(rhs)
    product = process(
        bcoo_dot_general_p,
        (data, indices, cotangent),
        {
            "dimension_numbers": ((lhs_kept, arrived), (lhs_batch, batch)),
            "preferred_element_type": preferred_element_type,
            "lhs_spinfo": lhs_spinfo,
        },
    )
    # The product has the contracted axes in lhs's order.
    regained = [own for _, own in sorted(zip(lhs_contracting, rhs_contracting, strict=True))]
    rhs_kept = remaining_axes(aval.ndim, rhs_contracting, rhs_batch)
    return [None, None, as_cotangent(product, (*rhs_batch, *regained, *rhs_kept), aval)]


def _cotangent_of_data(
    cotangent: ArrayLike,
    aval: ShapedArray,
    indices: ArrayLike,
    rhs: ArrayLike,
    numbers: Numbers,
    info: SparseInfo,
) -> ArrayLike:
    """Return the cotangent of a product's data: a dense product, only at stored positions."""
    (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch) = numbers
    ndim = len(info.shape)
    n_batch, n_sparse, n_dense, _ = layout_of(aval, indices, info.shape)
    lhs_kept = remaining_axes(ndim, lhs_contracting, lhs_batch)
    rhs_kept = remaining_axes(typeof(rhs).ndim, rhs_contracting, rhs_batch)
    batch = tuple(range(len(lhs_batch)))
    position_of = dict(zip((*lhs_batch, *lhs_kept), range(len(batch) + len(lhs_kept)), strict=True))
    arrived = tuple(range(len(position_of), len(position_of) + len(rhs_kept)))
    # The axes of the product of the cotangent and rhs, as axes of lhs.
    regained = [axis for _, axis in sorted(zip(rhs_contracting, lhs_contracting, strict=True))]
    axes = (*lhs_batch, *lhs_kept, *regained)
    if n_dense == 0 and ascending_axes(axes[:n_batch]):
        order = [axis - n_batch for axis in axes[n_batch:]]
        product = sampled(
            cotangent, rhs, columns(indices, order), ((arrived, rhs_kept), (batch, rhs_batch))
        )
    else:
        of_rhs = dict(
            zip((*lhs_batch, *lhs_contracting), (*rhs_batch, *rhs_contracting), strict=True)
        )
        layout = BcooLayout(n_batch, n_sparse, n_dense, 0)
        indices = with_batch(indices, info.shape[:n_batch])
        product = product_at(
            (cotangent, position_of, arrived),
            (rhs, of_rhs, rhs_kept),
            indices,
            layout,
            typeof(rhs).dtype,
        )
    return as_cotangent(unbatched_like(product, aval), range(aval.ndim), aval)


# A factor: the array, its axis for each axis of the product, and its contracted axes.
Factor = tuple[ArrayLike, dict[int, int], Sequence[int]]


def product_at(
    lhs: Factor, rhs: Factor, indices: ArrayLike, layout: BcooLayout, dtype: DType | None
) -> Array:
    """Return the elements of a product of dense arrays at the positions of BCOO indices.

    No other elements are computed. Dense axes of the layout that both factors have are batch axes
    of the product; those of only the first factor precede those of only the second.

    Args:
      lhs: the first factor.
      rhs: the second factor.
      indices: integers of shape (*batch, nse, n_sparse), with the batch axes of the product.
      layout: the roles of the axes of the product.
      dtype: the dtype of the result; None for that of the product.
    """
    n_batch, n_sparse, _, _ = layout
    n_leading = n_batch + n_sparse
    of_both = sorted(axis for axis in lhs[1] if axis >= n_leading and axis in rhs[1])
    elements: list[Array] = []
    batches: list[tuple[int, ...]] = []
    contracting: list[tuple[int, ...]] = []
    for x, axes, contracted in (lhs, rhs):
        sparse = [axis for axis in range(n_batch, n_leading) if axis in axes]
        batch_axes = {axis: axes[axis] for axis in range(n_batch) if axis in axes}
        at = columns(indices, [axis - n_batch for axis in sparse])
        elements.append(read_at(x, at, batch_axes, [axes[axis] for axis in sparse]))
        taken = {own for axis, own in axes.items() if axis < n_leading}
        free_axes = [own for own in range(typeof(x).ndim) if own not in taken]
        position = {own: n_batch + 1 + i for i, own in enumerate(free_axes)}
        batches.append((*range(n_batch + 1), *[position[axes[axis]] for axis in of_both]))
        contracting.append(tuple([position[own] for own in contracted]))
    left, right = elements
    numbers = (contracting[0], contracting[1]), (batches[0], batches[1])
    return dot_general(left, right, numbers, preferred_element_type=dtype)


@rules.batch(bcoo_dot_general_p)
def _(
    values: ArrayLikes,
    axes: BatchAxes,
    *,
    dimension_numbers: Numbers,
    lhs_spinfo: SparseInfo,
    **params: object,
) -> Batched:
    (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch) = dimension_numbers
    data, indices, rhs = values
    if axes[0] is None and axes[1] is None:
        # If only rhs is batched, its batch axis is a further remaining axis.
        rhs = move_axis(rhs, only_axis(axes[2:]), typeof(rhs).ndim - 1)
        params |= {"dimension_numbers": dimension_numbers, "lhs_spinfo": lhs_spinfo}
        result = process(bcoo_dot_general_p, (data, indices, rhs), params)
        return result, typeof(result).ndim - 1
    size = batch_size(values, axes)
    (data, indices), _ = sparse_in_front(values[:2], axes[:2])
    lhs_contracting, lhs_batch = _shifted(lhs_contracting), _shifted(lhs_batch)
    axis = len(lhs_batch)
    if axes[2] is not None:
        rhs = move_axis(rhs, axes[2], 0)
        rhs_contracting, rhs_batch = _shifted(rhs_contracting), (0, *_shifted(rhs_batch))
        lhs_batch, axis = (0, *lhs_batch), 0
    params |= {
        "dimension_numbers": ((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch)),
        "lhs_spinfo": batched_info(lhs_spinfo, size),
    }
    return process(bcoo_dot_general_p, (data, indices, rhs), params), axis


def _shifted(axes: Sequence[int]) -> tuple[int, ...]:
    return tuple([axis + 1 for axis in axes])


# ---- sampled -------------------------------------------------------------------------------------


def sampled(lhs: ArrayLike, rhs: ArrayLike, indices: ArrayLike, numbers: Numbers) -> Array:
    """Return the elements of a dense product at the positions of BCOO indices, as BCOO data."""
    params = {"dimension_numbers": numbers}
    return process(bcoo_dot_general_sampled_p, (lhs, rhs, indices), params)


@infer(bcoo_dot_general_sampled_p)
def _(
    lhs: ShapedArray, rhs: ShapedArray, indices: ShapedArray, *, dimension_numbers: Numbers
) -> ShapedArray:
    product = checked_product(lhs, rhs, dimension_numbers, None)
    n_batch, n_sparse, _, nse = layout_of_indices(indices, product.shape)
    shape = (*product.shape[:n_batch], nse, *product.shape[n_batch + n_sparse :])
    return ShapedArray(shape, product.dtype)


@rules.jvp(bcoo_dot_general_sampled_p)
def _(primals: ArrayLikes, tangents: Tangents, *, dimension_numbers: Numbers) -> Dual:
    lhs, rhs, indices = primals
    result = sampled(lhs, rhs, indices, dimension_numbers)
    tangent: Tangent = Zero.of(result)
    if type(tangents[0]) is not Zero:
        tangent = sampled(tangents[0], rhs, indices, dimension_numbers)
    if type(tangents[1]) is not Zero:
        share = sampled(lhs, tangents[1], indices, dimension_numbers)
        tangent = add_tangents(tangent, share)
    return result, tangent


@rules.transpose(bcoo_dot_general_sampled_p)
def _(
    cotangent: ArrayLike,
    lhs: Operand,
    rhs: Operand,
    indices: ArrayLike,
    *,
    dimension_numbers: Numbers,
) -> Cotangents:
    avals = aval_of_operand(lhs), aval_of_operand(rhs)
    product = checked_product(*avals, dimension_numbers, None)
    dense = todense(cotangent, indices, SparseInfo(product.shape))
    params = {
        "dimension_numbers": dimension_numbers,
        "precision": None,
        "preferred_element_type": None,
        "out_sharding": None,
    }
    return [*rules.transpose[dot_general_p](dense, lhs, rhs, **params), None]


@rules.batch(bcoo_dot_general_sampled_p)
def _(values: ArrayLikes, axes: BatchAxes, *, dimension_numbers: Numbers) -> Batched:
    size = batch_size(values, axes)
    lhs, rhs = (to_front(x, axis, size) for x, axis in zip(values[:2], axes[:2], strict=True))
    indices = values[2]
    indices = expand_dims(indices, (0,)) if axes[2] is None else move_axis(indices, axes[2], 0)
    (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch) = dimension_numbers
    numbers = (
        (_shifted(lhs_contracting), _shifted(rhs_contracting)),
        ((0, *_shifted(lhs_batch)), (0, *_shifted(rhs_batch))),
    )
    return sampled(lhs, rhs, indices, numbers), 0


# ---- sparse by sparse ----------------------------------------------------------------------------


@infer(bcoo_spdot_general_p)
def _(
    lhs_data: ShapedArray,
    lhs_indices: ShapedArray,
    rhs_data: ShapedArray,
    rhs_indices: ShapedArray,
    *,
    lhs_spinfo: SparseInfo,
    rhs_spinfo: SparseInfo,
    dimension_numbers: Numbers,
    preferred_element_type: DType | None,
) -> list[ShapedArray]:
    (contracting, batch) = dimension_numbers
    layouts = (
        check_layout(lhs_data, lhs_indices, lhs_spinfo.shape),
        check_layout(rhs_data, rhs_indices, rhs_spinfo.shape),
    )
    lhs = ShapedArray(lhs_spinfo.shape, lhs_data.dtype)
    rhs = ShapedArray(rhs_spinfo.shape, rhs_data.dtype)
    product = checked_product(lhs, rhs, dimension_numbers, preferred_element_type)
    for layout, own_contracting, own_batch in zip(layouts, contracting, batch, strict=True):
        if layout.n_dense:
            raise AssertionError(
                "bcoo_spdot_general: a product of two sparse arrays has no dense axes; give them "
                "as sparse ones, with bcoo_update_layout(mat, n_dense=0)"
            )
        if any(axis < layout.n_batch for axis in own_contracting):
            raise NotImplementedError(  # JAX raises this class.
                "bcoo_spdot_general only supports contraction of sparse indices."
            )
        if any(axis >= layout.n_batch for axis in own_batch):
            raise NotImplementedError(  # JAX raises this class.
                "bcoo_spdot_general: batch_dims must correspond to batch dimensions of the sparse "
                "representation."
            )
    lhs_kept = layouts[0].n_sparse - len(contracting[0])
    rhs_kept = layouts[1].n_sparse - len(contracting[1])
    n_both = len(batch[0])
    lhs_batch, rhs_batch = layouts[0].n_batch - n_both, layouts[1].n_batch - n_both
    if rhs_batch and lhs_kept:
        raise ValueError(
            "bcoo_spdot_general: cannot have unused batch dims on rhs with unused sparse dims on "
            "lhs."
        )
    n_batch = n_both + lhs_batch + rhs_batch
    sizes = product.shape[:n_batch], product.shape[n_batch:]
    nse = (layouts[0].nse if lhs_kept else 1) * (layouts[1].nse if rhs_kept else 1)
    nse = min(nse, math.prod(sizes[1]))
    return [
        ShapedArray((*sizes[0], nse), product.dtype),
        ShapedArray((*sizes[0], nse, lhs_kept + rhs_kept), lhs_indices.dtype),
    ]


@rules.jvp(bcoo_spdot_general_p)
def _(primals: ArrayLikes, tangents: Tangents, **params: object) -> Duals:
    lhs_data, lhs_indices, rhs_data, rhs_indices = primals
    data, indices = process(bcoo_spdot_general_p, tuple(primals), params)
    tangent: Tangent = Zero.of(data)
    if type(tangents[0]) is not Zero:
        operands = tangents[0], lhs_indices, rhs_data, rhs_indices
        tangent, _ = process(bcoo_spdot_general_p, operands, params)
    if type(tangents[2]) is not Zero:
        operands = lhs_data, lhs_indices, tangents[2], rhs_indices
        tangent = add_tangents(tangent, process(bcoo_spdot_general_p, operands, params)[0])
    return [data, indices], [tangent, no_tangent(indices)]


@rules.batch(bcoo_spdot_general_p)
def _(
    values: ArrayLikes,
    axes: BatchAxes,
    *,
    lhs_spinfo: SparseInfo,
    rhs_spinfo: SparseInfo,
    dimension_numbers: Numbers,
    **params: object,
) -> BatchedBuffers:
    buffers, size = sparse_in_front(values, axes)
    (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch) = dimension_numbers
    params |= {
        "lhs_spinfo": batched_info(lhs_spinfo, size),
        "rhs_spinfo": batched_info(rhs_spinfo, size),
        "dimension_numbers": (
            (_shifted(lhs_contracting), _shifted(rhs_contracting)),
            ((0, *_shifted(lhs_batch)), (0, *_shifted(rhs_batch))),
        ),
    }
    return process(bcoo_spdot_general_p, tuple(buffers), params), [0, 0]
