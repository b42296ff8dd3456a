"""Derivative rules of gather and scatter, and batch rules of scatter."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from hlofront.base.dtypes import issubdtype
from hlofront.base.elements import host_number
from hlofront.base.typing import Array, ArrayLike, ArrayLikes, Params, Shape
from hlofront.core import rules
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.primitive import Primitive
from hlofront.core.rules import AnyBatchAxes, BatchResult, JvpResult
from hlofront.core.symbolic_zeros import (
    Cotangents,
    Dual,
    Operand,
    Tangent,
    Tangents,
    UndefinedPrimal,
    Zero,
)
from hlofront.core.trace import process
from hlofront.primitives.arrays.creation import broadcasted_iota, full, full_like
from hlofront.primitives.arrays.gathering import (
    GatherDimensionNumbers,
    GatherScatterMode,
    gather_p,
    with_axis,
    with_pair,
)
from hlofront.primitives.arrays.scattering import (
    ScatterDimensionNumbers,
    scatter_add_p,
    scatter_max_p,
    scatter_min_p,
    scatter_mul_p,
    scatter_p,
    scatter_sub_p,
    update_program,
    window_sizes,
)
from hlofront.primitives.arrays.shaping import reshape
from hlofront.primitives.elementwise.compare import eq, gt, lt, ne, select
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.elementwise.elementwise import add_p, bitwise_not, div, mul, neg
from hlofront.primitives.rules.batching import batch_size, move_axis, shifted, with_new_axis
from hlofront.primitives.rules.derivatives import (
    add_tangents,
    aval_of_operand,
    instantiate,
    is_linear,
    zeros_of,
)

# ---- helpers of derivatives ----------------------------------------------------------------------


def _add_at(operand: ArrayLike, indices: ArrayLike, updates: ArrayLike, params: Params) -> Array:
    """Scatter-add updates, with the parameters of another scatter primitive."""
    program = update_program(add_p, typeof(operand).dtype)
    params = {**params, "update_jaxpr": program, "update_consts": ()}
    return process(scatter_add_p, (operand, indices, updates), params)


def _read_at(
    x: ArrayLike, indices: ArrayLike, update_shape: Shape, params: Params, *, zeros: bool
) -> ArrayLike:
    """Gather the elements of x that a scatter with updates of `update_shape` would write.

    `x` has the shape of the scatter's operand, and the result has `update_shape`. Where the scatter
    drops an update out of bounds, the result is zero if `zeros` is true, else unspecified.
    """
    aval = typeof(x)
    if not aval.size:
        return zeros_of(aval.update(shape=update_shape))
    numbers = params["dimension_numbers"]
    mode = params["mode"]
    if mode != GatherScatterMode.CLIP and not zeros:
        mode = GatherScatterMode.PROMISE_IN_BOUNDS
    windows = window_sizes(numbers, aval.shape, update_shape)
    masked = mode == GatherScatterMode.FILL_OR_DROP
    return process(
        gather_p,
        (x, indices),
        {
            "dimension_numbers": GatherDimensionNumbers(*numbers),
            "slice_sizes": tuple([windows.get(axis, 1) for axis in range(aval.ndim)]),
            "indices_are_sorted": params["indices_are_sorted"],
            "unique_indices": params["unique_indices"],
            "mode": mode,
            "fill_value": 0 if masked else None,
        },
    )


@rules.transpose(gather_p)
def _(
    cotangent: ArrayLike,
    operand: UndefinedPrimal,
    indices: ArrayLike,
    *,
    dimension_numbers: ScatterDimensionNumbers,
    slice_sizes: Shape,
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: GatherScatterMode,
    fill_value: object,
) -> Cotangents:
    if mode == GatherScatterMode.ONE_HOT:
        mode = GatherScatterMode.FILL_OR_DROP
    params = {
        "dimension_numbers": ScatterDimensionNumbers(*dimension_numbers),
        "indices_are_sorted": indices_are_sorted,
        "unique_indices": unique_indices,
        "mode": mode,
    }
    zeros = zeros_of(operand.aval.update(weak_type=False))
    return _add_at(zeros, indices, cotangent, params), None


# ---- derivatives of scatter_add, scatter_sub -----------------------------------------------------


def _sum_jvp(primitive: Primitive) -> None:
    def rule(primals: ArrayLikes, tangents: Tangents, **params: object) -> JvpResult:
        operand, indices, updates = primals
        result = process(primitive, (operand, indices, updates), params)
        operand_tangent, _, summed = tangents
        if type(summed) is Zero:
            return result, operand_tangent
        return result, process(primitive, (instantiate(operand_tangent), indices, summed), params)

    rule.__name__ = rule.__qualname__ = f"{primitive.name}_jvp"
    rules.jvp(primitive)(rule)


_sum_jvp(scatter_add_p)
_sum_jvp(scatter_sub_p)


def _cotangent_of_updates(
    cotangent: ArrayLike, indices: ArrayLike, aval: ShapedArray, params: Params
) -> ArrayLike:
    gathered = _read_at(cotangent, indices, aval.shape, params, zeros=True)
    # The result is weakly typed if the operand is, but the cotangent must be so if the updates are.
    return gathered if aval.weak_type else convert(gathered, aval.dtype, False)


@rules.transpose(scatter_add_p)
def _(
    cotangent: ArrayLike, operand: Operand, indices: ArrayLike, updates: Operand, **params: object
) -> Cotangents:
    of_operand = cotangent if is_linear(operand) else None
    if not is_linear(updates):
        return of_operand, None, None
    return of_operand, None, _cotangent_of_updates(cotangent, indices, updates.aval, params)


@rules.transpose(scatter_sub_p)
def _(
    cotangent: ArrayLike, operand: Operand, indices: ArrayLike, updates: Operand, **params: object
) -> Cotangents:
    of_operand = cotangent if is_linear(operand) else None
    if not is_linear(updates):
        return of_operand, None, None
    return of_operand, None, neg(_cotangent_of_updates(cotangent, indices, updates.aval, params))


# ---- derivatives of scatter ----------------------------------------------------------------------


@rules.jvp(scatter_p)
def _(primals: ArrayLikes, tangents: Tangents, **params: Any) -> Dual:
    if params["update_jaxpr"] is not None:
        raise NotImplementedError(  # JAX raises this class.
            "scatter_apply has no derivative. Gather the elements, apply the function to them, and "
            "scatter what it returns."
        )
    operand, indices, updates = primals
    operand_tangent, _, put = tangents
    shape = typeof(updates).shape
    scattered = _scattered_axes(params["dimension_numbers"], len(shape))
    if params["unique_indices"] or math.prod([shape[axis] for axis in scattered]) <= 1:
        result = process(scatter_p, (operand, indices, updates), params)
        params = {**params, "unique_indices": True}
        return result, process(
            scatter_p, (instantiate(operand_tangent), indices, instantiate(put)), params
        )
    # If several updates write the same element, it is unspecified which of them wins. Scattering
    # the numbers of the updates shows which one did; then only the winners' tangents are added, so
    # that the tangent belongs to the primal.
    numbers, unused = _numbered(shape, scattered)
    there: ArrayLike = full(typeof(operand).shape, unused)
    there = process(scatter_p, (there, indices, numbers), params)
    untouched = eq(there, unused)
    survived = eq(_read_at(there, indices, shape, params, zeros=False), numbers)

    # -0.0 is the identity of floating-point addition: x + -0.0 is x, for x = -0.0 too.
    complex_ = issubdtype(typeof(operand).dtype, np.complexfloating)
    nothing = complex(-0.0, -0.0) if complex_ else -0.0
    none, none_put = full_like(operand, nothing), full_like(updates, nothing)

    def chosen(old: Tangent, new: Tangent) -> ArrayLike:
        old = none if type(old) is Zero else select(untouched, old, none)
        if type(new) is Zero:
            return old
        return _add_at(old, indices, select(survived, new, none_put), params)

    return chosen(operand, updates), chosen(operand_tangent, put)


def _scattered_axes(numbers: ScatterDimensionNumbers, ndim: int) -> list[int]:
    """Return the axes of updates with `ndim` axes that are axes of the indices."""
    return [axis for axis in range(ndim) if axis not in numbers.update_window_dims]


def _numbered(shape: tuple[int, ...], scattered: list[int]) -> tuple[Array, ArrayLike]:
    """Return (numbers, unused): distinct integers along the scattered axes, and a further one."""
    count = math.prod(shape)
    dtype = np.dtype(np.uint32 if count < 2**32 else np.uint64)
    if len(scattered) == 1:
        numbers = broadcasted_iota(dtype, shape, scattered[0])
    else:
        numbers = reshape(broadcasted_iota(dtype, (count,), 0), shape)
    return numbers, host_number(np.iinfo(dtype).max, dtype)


@rules.transpose(scatter_p)
def _(
    cotangent: ArrayLike, operand: Operand, indices: ArrayLike, updates: Operand, **params: object
) -> Cotangents:
    if not params["unique_indices"]:
        raise NotImplementedError(  # JAX raises this class.
            "the transpose of scatter is known for unique_indices=True only: of several updates "
            "to one place it is not said which one is kept."
        )
    aval = updates.aval if is_linear(updates) else typeof(updates)
    of_operand = of_updates = None
    if is_linear(operand):
        zeros = zeros_of(aval)
        of_operand = process(scatter_p, (cotangent, indices, zeros), params)
    if is_linear(updates):
        of_updates = _cotangent_of_updates(cotangent, indices, aval, params)
    return of_operand, None, of_updates


# ---- derivatives of scatter_mul ------------------------------------------------------------------


def _check_unique(unique_indices: bool) -> None:
    if not unique_indices:
        raise NotImplementedError(  # JAX raises this class.
            "scatter_mul has derivatives with respect to its updates only where "
            "unique_indices=True: say so if no two indices are the same."
        )


@rules.jvp(scatter_mul_p)
def _(primals: ArrayLikes, tangents: Tangents, **params: Any) -> Dual:
    operand, indices, updates = primals
    result = process(scatter_mul_p, (operand, indices, updates), params)
    operand_tangent, _, factors = tangents
    if type(operand_tangent) is not Zero:
        operand_tangent = process(scatter_mul_p, (operand_tangent, indices, updates), params)
    if type(factors) is Zero:
        return result, operand_tangent
    _check_unique(params["unique_indices"])
    changes = _add_at(zeros_of(typeof(operand)), indices, factors, params)
    return result, add_tangents(operand_tangent, mul(operand, changes))


@rules.transpose(scatter_mul_p)
def _(
    cotangent: ArrayLike, operand: Operand, indices: ArrayLike, updates: Operand, **params: Any
) -> Cotangents:
    if is_linear(operand):
        return process(scatter_mul_p, (cotangent, indices, updates), params), None, None
    _check_unique(params["unique_indices"])
    products = mul(cotangent, operand)
    aval = aval_of_operand(updates)
    return None, None, _cotangent_of_updates(products, indices, aval, params)


# ---- derivatives of scatter_min, scatter_max -----------------------------------------------------


def _extreme_jvp(primitive: Primitive, beyond: Callable[..., Array]) -> None:
    """Register the jvp rule of scatter_min or scatter_max.

    The tangent is the mean of the tangents of the elements and updates that equal the result.
    `beyond` is lt or gt, a comparison (result, element) that is True if the element was replaced;
    False for NaN, so that no count is zero.
    """

    def rule(primals: ArrayLikes, tangents: Tangents, **params: object) -> Dual:
        operand, indices, updates = primals
        result: ArrayLike = process(primitive, (operand, indices, updates), params)
        operand_tangent, _, taken = tangents
        aval = typeof(operand)
        ordered = not issubdtype(aval.dtype, np.complexfloating)
        replaced = (beyond if ordered else ne)(result, operand)
        stayed = convert(bitwise_not(replaced), aval.dtype, aval.weak_type)
        there = _read_at(result, indices, typeof(updates).shape, params, zeros=False)
        won = convert(eq(updates, there), aval.dtype, typeof(updates).weak_type)
        count = _add_at(stayed, indices, won, params)
        tangent: Tangent | None = None
        if type(operand_tangent) is not Zero:
            tangent = mul(operand_tangent, stayed)
        if type(taken) is not Zero:
            base = instantiate(operand_tangent) if tangent is None else tangent
            # pyrefly: ignore[bad-argument-type]
            tangent = _add_at(base, indices, mul(taken, won), params)
        return result, div(tangent, count)

    rule.__name__ = rule.__qualname__ = f"{primitive.name}_jvp"
    rules.jvp(primitive)(rule)


_extreme_jvp(scatter_max_p, gt)
_extreme_jvp(scatter_min_p, lt)


# ---- batches -------------------------------------------------------------------------------------


def _batch(primitive: Primitive) -> None:
    def rule(
        values: ArrayLikes,
        axes: AnyBatchAxes,
        *,
        dimension_numbers: ScatterDimensionNumbers,
        **params: object,
    ) -> BatchResult:
        operand, indices, updates = values
        axis, indices_axis, updates_axis = axes
        size = batch_size(values, axes)
        window, inserted, index_map, batching, indices_batching = dimension_numbers
        if indices_axis is None:
            # The batch axis becomes an update window axis, at its position among the operand's
            # window axes.
            left_out = {*inserted, *batching}
            if axis is None:
                window_axes = [i for i in range(typeof(operand).ndim) if i not in left_out]
                before = sum(i < updates_axis for i in window)
                axis = window_axes[before - 1] + 1 if before else 0
                operand = with_new_axis(operand, size, axis)
            else:
                before = sum(i not in left_out for i in range(axis))
                position = window[before - 1] + 1 if before else 0
                if updates_axis is None:
                    updates, updates_axis = with_new_axis(updates, size, position), position
                elif sum(i < updates_axis for i in window) != before:
                    # If the batch axis of the updates comes first, move that of the operand to the
                    # front, and with it that of the result; else move that of the updates.
                    if axis and updates_axis <= min(window, default=0):
                        operand, axis = move_axis(operand, axis, 0), 0
                    else:
                        updates = move_axis(updates, updates_axis, position)
                        updates_axis = position
            window = with_axis(shifted(window, updates_axis), updates_axis)
            batching = shifted(batching, axis)
        else:
            # The batch axis becomes a batching axis, at one position among the indices' axes and
            # the updates' scattered axes.
            rank = typeof(indices).ndim - 1
            scattered = [i for i in range(rank - 1 + len(window)) if i not in window]
            if updates_axis is not None:
                position: int = sum(i < updates_axis for i in scattered)
            else:
                position = 0 if indices_axis == rank else indices_axis
                updates_axis = scattered[position - 1] + 1 if position else 0
                updates = with_new_axis(updates, size, updates_axis)
            indices = move_axis(indices, indices_axis, position)
            if axis is None:
                operand, axis = with_new_axis(operand, size), 0
            window = shifted(window, updates_axis)
            batching, indices_batching = with_pair(
                shifted(batching, axis), shifted(indices_batching, position), axis, position
            )
        inserted, index_map = shifted(inserted, axis), shifted(index_map, axis)
        numbers = ScatterDimensionNumbers(window, inserted, index_map, batching, indices_batching)
        params["dimension_numbers"] = numbers
        return process(primitive, (operand, indices, updates), params), axis

    rule.__name__ = rule.__qualname__ = f"{primitive.name}_batch"
    rules.batch(primitive)(rule)


for _primitive in (
    scatter_p,
    scatter_add_p,
    scatter_sub_p,
    scatter_mul_p,
    scatter_min_p,
    scatter_max_p,
):
    _batch(_primitive)
