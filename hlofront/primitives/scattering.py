"""The scatter primitives: an array with elements at computed indices replaced or combined."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from hlofront.base.caches import memoize
from hlofront.base.dtypes import issubdtype
from hlofront.base.elements import host_number
from hlofront.base.typing import Array, ArrayLike, DType, Params, Shape
from hlofront.core import rules
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.dimensions import Axes
from hlofront.core.jaxpr import Equation, Jaxpr, Var
from hlofront.core.primitive import Primitive
from hlofront.core.rules import Results, Tangents, infer
from hlofront.core.subprograms import combines
from hlofront.core.symbolic_zeros import Cotangent, Operand, Tangent, UndefinedPrimal, Zero
from hlofront.core.trace import process
from hlofront.primitives.batching import batch_size, move_axis, shifted, with_new_axis
from hlofront.primitives.comparing import eq, gt, lt, ne, select
from hlofront.primitives.converting import convert
from hlofront.primitives.creating import broadcasted_iota, full, full_like
from hlofront.primitives.derivatives import add_tangents, instantiate, is_linear, zeros_of
from hlofront.primitives.elementwise import (
    add_p,
    bitwise_not,
    div,
    max_p,
    min_p,
    mul,
    mul_p,
    neg,
    sub_p,
)
from hlofront.primitives.families import check_same_dtypes
from hlofront.primitives.gathering import (
    GatherDimensionNumbers,
    GatherScatterMode,
    canonical_numbers,
    check_batching_axes,
    check_disjoint,
    check_index_dtype,
    check_indices,
    check_sorted_axes,
    gather_p,
    with_axis,
    with_pair,
)
from hlofront.primitives.shaping import reshape


class ScatterDimensionNumbers(NamedTuple):
    """The correspondence between the axes of scatter's operand, indices and updates.

    The last axis of the indices holds one index per entry of `scatter_dims_to_operand_dims`: where
    an update begins. All its other axes are axes of the updates, in the same order.

    Attributes:
      update_window_dims: the axes of the updates that are axes of each update window, ascending.
      inserted_window_dims: the axes of the operand along which windows have size 1 and which the
        updates do not have, ascending.
      scatter_dims_to_operand_dims: the axis of the operand that each index counts along.
      operand_batching_dims: the batch axes of the operand, ascending.
      scatter_indices_batching_dims: the corresponding batch axes of the indices, in that order.
    """

    update_window_dims: Axes
    inserted_window_dims: Axes
    scatter_dims_to_operand_dims: Axes
    operand_batching_dims: Axes = ()
    scatter_indices_batching_dims: Axes = ()


scatter_p = Primitive("scatter")
scatter_add_p = Primitive("scatter-add")
scatter_sub_p = Primitive("scatter-sub")
scatter_mul_p = Primitive("scatter-mul")
scatter_min_p = Primitive("scatter-min")
scatter_max_p = Primitive("scatter-max")
rules.subprograms(
    scatter_p, scatter_add_p, scatter_sub_p, scatter_mul_p, scatter_min_p, scatter_max_p
)(combines("update_jaxpr"))

_ARGUMENTS = """

    Args:
      operand: the array.
      scatter_indices: integers; the last axis holds where one update begins.
      updates: of the operand's dtype.
      dimension_numbers: which axis is what, a ScatterDimensionNumbers.
      indices_are_sorted: a promise that the indices ascend. It is not checked.
      unique_indices: a promise that no two updates overlap. It is not checked.
      mode: what happens to updates that do not lie within the array: a GatherScatterMode or its
        name; None is FILL_OR_DROP.

    Raises:
      TypeError: if the shapes and dimension numbers do not fit, or the dtypes differ.
      ValueError: if the mode is unknown or the indices are not integers.
    """


def _function(
    name: str, primitive: Primitive, doc: str, combine: Primitive | None
) -> Callable[..., Array]:
    def scatter_with(
        operand: ArrayLike,
        scatter_indices: ArrayLike,
        updates: ArrayLike,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: GatherScatterMode | None = None,
    ) -> Any:
        program = None if combine is None else update_program(combine, typeof(operand).dtype)
        return bind_scatter(
            primitive,
            (operand, scatter_indices, updates),
            dimension_numbers,
            indices_are_sorted,
            unique_indices,
            mode,
            program,
        )

    scatter_with.__name__ = scatter_with.__qualname__ = name
    scatter_with.__doc__ = doc + _ARGUMENTS
    return scatter_with


scatter = _function(
    "scatter",
    scatter_p,
    """The array, with updates in place of its elements; of several that overlap, one wins.""",
    None,
)
scatter_add = _function(
    "scatter_add", scatter_add_p, """The array, with updates added to its elements.""", add_p
)
scatter_sub = _function(
    "scatter_sub", scatter_sub_p, """The array, with updates subtracted from its elements.""", sub_p
)
scatter_mul = _function(
    "scatter_mul", scatter_mul_p, """The array, with its elements multiplied by updates.""", mul_p
)
scatter_min = _function(
    "scatter_min", scatter_min_p, """The array, with the lesser of elements and updates.""", min_p
)
scatter_max = _function(
    "scatter_max", scatter_max_p, """The array, with the greater of elements and updates.""", max_p
)


def bind_scatter(
    primitive: Primitive,
    operands: tuple[Any, Any, Any],
    dimension_numbers: Any,
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: GatherScatterMode,
    program: Jaxpr | None,
    constants: tuple[Any, ...] = (),
) -> Array:
    """Bind a scatter primitive to (operand, indices, updates) and canonical parameters.

    `program` is a jaxpr from a scalar element and an update to the new element, and `constants`
    are its captured constants.
    """
    return process(
        primitive,
        operands,
        {
            "update_jaxpr": program,
            "update_consts": constants,
            "dimension_numbers": canonical_numbers(dimension_numbers, ScatterDimensionNumbers),
            "indices_are_sorted": bool(indices_are_sorted),
            "unique_indices": bool(unique_indices),
            "mode": GatherScatterMode.from_any(mode),
        },
    )


@memoize(maxsize=None, typed=False)
def update_program(combine: Primitive, dtype: DType) -> Jaxpr:
    """Return the jaxpr of one equation that combines two scalars of a dtype, memoized."""
    scalar = ShapedArray((), dtype)
    params = {"out_dtype": None} if combine is mul_p else {}
    old, update, new = Var(scalar), Var(scalar), Var(infer[combine](scalar, scalar, **params))
    equation = Equation([old, update], [new], combine, params)
    return Jaxpr((), (old, update), (new,), (equation,))


@infer(scatter_p, scatter_add_p, scatter_sub_p, scatter_mul_p, scatter_min_p, scatter_max_p)
def _(
    operand: ShapedArray,
    indices: ShapedArray,
    updates: ShapedArray,
    *,
    update_jaxpr: object,
    update_consts: object,
    dimension_numbers: ScatterDimensionNumbers,
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: GatherScatterMode,
) -> ShapedArray:
    check_index_dtype(indices)
    check_same_dtypes("scatter", (operand, updates))
    numbers = dimension_numbers
    index_map = numbers.scatter_dims_to_operand_dims
    batch = check_indices("scatter", indices, len(index_map), "scatter_dims_to_operand_dims")
    window, inserted = numbers.update_window_dims, numbers.inserted_window_dims
    batching = numbers.operand_batching_dims
    rank = len(window) + len(batch)
    if updates.ndim != rank:
        raise TypeError(f"Updates tensor must be of rank {rank}; got {updates.ndim}.")
    check_sorted_axes("scatter", "update_window_dims", window, rank)
    check_sorted_axes("scatter", "inserted_window_dims", inserted, operand.ndim)
    check_batching_axes(
        "scatter",
        operand,
        indices,
        index_map,
        batching,
        numbers.scatter_indices_batching_dims,
        ("scatter_dims_to_operand_dims", "scatter_indices_batching_dims"),
    )
    check_disjoint("scatter", "inserted_window_dims", inserted, "operand_batching_dims", batching)
    size = len(window) + len(inserted) + len(batching)
    if size != operand.ndim:
        raise TypeError(
            f"Scatter op has window of size {size}; doesn't match operand of rank {operand.ndim}."
        )
    for axis, size in window_sizes(numbers, operand.shape, updates.shape).items():
        if size > operand.shape[axis]:
            raise TypeError(
                "Bounds of the window dimensions of updates must not exceed the bounds of the "
                f"corresponding dimensions of operand. For dimension {axis}, updates bound is "
                f"{size}, operand bound is {operand.shape[axis]}."
            )
    scattered = [axis for axis in range(rank) if axis not in window]
    for axis, bound in zip(scattered, batch, strict=True):
        if updates.shape[axis] != bound:
            raise TypeError(
                "Bounds of the scatter dimensions of updates must be the same as the bounds of the "
                f"corresponding dimensions of scatter indices. For scatter dimension {axis}, "
                f"updates bound is {updates.shape[axis]}, indices bound is {bound}."
            )
    return operand


def window_sizes(
    numbers: ScatterDimensionNumbers, operand_shape: tuple[int, ...], update_shape: tuple[int, ...]
) -> dict[int, int]:
    """Return the sizes of a scatter's update windows, by axis of the operand."""
    left_out = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    window_axes = [axis for axis in range(len(operand_shape)) if axis not in left_out]
    return {
        axis: update_shape[of_update]
        for axis, of_update in zip(window_axes, numbers.update_window_dims, strict=True)
    }


# ---- helpers of derivatives ----------------------------------------------------------------------


def _add_at(operand: ArrayLike, indices: ArrayLike, updates: ArrayLike, params: Params) -> Array:
    """Return scatter_add of updates, with the parameters of another scatter primitive."""
    program = update_program(add_p, typeof(operand).dtype)
    params = {**params, "update_jaxpr": program, "update_consts": ()}
    return process(scatter_add_p, (operand, indices, updates), params)


def _read_at(
    x: Any, indices: Any, update_shape: tuple[int, ...], params: Params, *, zeros: bool
) -> Any:
    """Gather the elements of x that a scatter with updates of `update_shape` would write.

    `x` has the shape of the scatter's operand, and the result has `update_shape`. Where the scatter
    drops an update out of bounds, the result is zero if `zeros` is true, else unspecified.
    """
    aval = typeof(x)
    if not aval.size:
        return zeros_of(aval.update(shape=update_shape))
    numbers = params["dimension_numbers"]
    mode = params["mode"]
    if mode is not GatherScatterMode.CLIP and not zeros:
        mode = GatherScatterMode.PROMISE_IN_BOUNDS
    windows = window_sizes(numbers, aval.shape, update_shape)
    masked = mode is GatherScatterMode.FILL_OR_DROP
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
    indices: Operand,
    *,
    dimension_numbers: ScatterDimensionNumbers,
    slice_sizes: Shape,
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: GatherScatterMode,
    fill_value: object,
) -> Sequence[Cotangent | None]:
    if mode is GatherScatterMode.ONE_HOT:
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
    def rule(
        primals: Sequence[ArrayLike], tangents: Sequence[Tangent], **params: object
    ) -> tuple[Results, Tangents]:
        operand, indices, updates = primals
        result = process(primitive, (operand, indices, updates), params)
        moved, _, summed = tangents
        if type(summed) is Zero:
            return result, moved
        return result, process(primitive, (instantiate(moved), indices, summed), params)

    rule.__name__ = rule.__qualname__ = f"{primitive.name}_jvp"
    rules.jvp(primitive)(rule)


_sum_jvp(scatter_add_p)
_sum_jvp(scatter_sub_p)


def _cotangent_of_updates(
    cotangent: ArrayLike, indices: ArrayLike, aval: ShapedArray, params: Params
) -> Array:
    gathered = _read_at(cotangent, indices, aval.shape, params, zeros=True)
    # The result is weakly typed as the operand is, and the cotangent has to be as the updates are.
    return gathered if aval.weak_type else convert(gathered, aval.dtype, False)


@rules.transpose(scatter_add_p)
def _(
    cotangent: ArrayLike, operand: Operand, indices: Operand, updates: Operand, **params: object
) -> Sequence[Cotangent | None]:
    of_operand = cotangent if is_linear(operand) else None
    if not is_linear(updates):
        return of_operand, None, None
    return of_operand, None, _cotangent_of_updates(cotangent, indices, updates.aval, params)


@rules.transpose(scatter_sub_p)
def _(
    cotangent: ArrayLike, operand: Operand, indices: Operand, updates: Operand, **params: object
) -> Sequence[Cotangent | None]:
    of_operand = cotangent if is_linear(operand) else None
    if not is_linear(updates):
        return of_operand, None, None
    return of_operand, None, neg(_cotangent_of_updates(cotangent, indices, updates.aval, params))


# ---- derivatives of scatter ----------------------------------------------------------------------


@rules.jvp(scatter_p)
def _(
    primals: Sequence[ArrayLike], tangents: Sequence[Tangent], **params: object
) -> tuple[ArrayLike, Tangent]:
    if params["update_jaxpr"] is not None:
        raise NotImplementedError(  # JAX raises this class.
            "scatter_apply has no derivative. Gather the elements, apply the function to them, and "
            "scatter what it returns."
        )
    operand, indices, updates = primals
    moved, _, put = tangents
    shape = typeof(updates).shape
    scattered = _scattered_axes(params["dimension_numbers"], len(shape))
    if params["unique_indices"] or math.prod([shape[axis] for axis in scattered]) <= 1:
        result = process(scatter_p, (operand, indices, updates), params)
        params = {**params, "unique_indices": True}
        return result, process(scatter_p, (instantiate(moved), indices, instantiate(put)), params)
    # Of several updates of one element an unspecified one wins. Scatter their numbers to find the
    # winners; then add the winners alone, so that primal and tangent agree on them.
    numbers, unused = _numbered(shape, scattered)
    there = full(typeof(operand).shape, unused)
    there = process(scatter_p, (there, indices, numbers), params)
    untouched = eq(there, unused)
    survived = eq(_read_at(there, indices, shape, params, zeros=False), numbers)

    # -0.0 is the identity of floating-point addition: x + -0.0 is x, for x = -0.0 too.
    complex_ = issubdtype(typeof(operand).dtype, np.complexfloating)
    nothing = complex(-0.0, -0.0) if complex_ else -0.0
    none, none_put = full_like(operand, nothing), full_like(updates, nothing)

    def chosen(old: Tangent, new: Tangent) -> Tangent:
        old = none if type(old) is Zero else select(untouched, old, none)
        if type(new) is Zero:
            return old
        return _add_at(old, indices, select(survived, new, none_put), params)

    return chosen(operand, updates), chosen(moved, put)


def _scattered_axes(numbers: ScatterDimensionNumbers, ndim: int) -> list[int]:
    """Return the axes of updates with `ndim` axes that are axes of the indices."""
    return [axis for axis in range(ndim) if axis not in numbers.update_window_dims]


def _numbered(shape: tuple[int, ...], scattered: list[int]) -> tuple[Any, Any]:
    """Return (numbers, unused): unsigned integers, distinct in the scattered axes, and another."""
    count = math.prod(shape)
    dtype = np.dtype(np.uint32 if count < 2**32 else np.uint64)
    if len(scattered) == 1:
        numbers = broadcasted_iota(dtype, shape, scattered[0])
    else:
        numbers = reshape(broadcasted_iota(dtype, (count,), 0), shape)
    return numbers, host_number(np.iinfo(dtype).max, dtype)


@rules.transpose(scatter_p)
def _(
    cotangent: ArrayLike, operand: Operand, indices: Operand, updates: Operand, **params: object
) -> Sequence[Cotangent | None]:
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
def _(primals, tangents, **params):
    operand, indices, updates = primals
    result = process(scatter_mul_p, (operand, indices, updates), params)
    moved, _, factors = tangents
    if type(moved) is not Zero:
        moved = process(scatter_mul_p, (moved, indices, updates), params)
    if type(factors) is Zero:
        return result, moved
    _check_unique(params["unique_indices"])
    changes = _add_at(zeros_of(typeof(operand)), indices, factors, params)
    return result, add_tangents(moved, mul(operand, changes))


@rules.transpose(scatter_mul_p)
def _(cotangent, operand, indices, updates, **params):
    if is_linear(operand):
        return process(scatter_mul_p, (cotangent, indices, updates), params), None, None
    _check_unique(params["unique_indices"])
    products = mul(cotangent, operand)
    return None, None, _cotangent_of_updates(products, indices, updates.aval, params)


# ---- derivatives of scatter_min, scatter_max -----------------------------------------------------


def _extreme_jvp(primitive: Primitive, beyond: Any) -> None:
    """Register the jvp rule of scatter_min or scatter_max.

    The tangent is the mean of the tangents of the elements and updates that equal the result.
    `beyond` is lt or gt, a comparison (result, element) that is True if the element was replaced;
    False for NaN, so that no count is zero.
    """

    def rule(primals, tangents, **params):
        operand, indices, updates = primals
        result = process(primitive, (operand, indices, updates), params)
        moved, _, taken = tangents
        aval = typeof(operand)
        ordered = not issubdtype(aval.dtype, np.complexfloating)
        replaced = (beyond if ordered else ne)(result, operand)
        stayed = convert(bitwise_not(replaced), aval.dtype, False)
        there = _read_at(result, indices, typeof(updates).shape, params, zeros=False)
        won = convert(eq(updates, there), aval.dtype, False)
        count = _add_at(stayed, indices, won, params)
        tangent: Any = None
        if type(moved) is not Zero:
            tangent = mul(moved, stayed)
        if type(taken) is not Zero:
            base = zeros_of(moved.aval) if tangent is None else tangent
            tangent = _add_at(base, indices, mul(taken, won), params)
        return result, div(tangent, count)

    rule.__name__ = rule.__qualname__ = f"{primitive.name}_jvp"
    rules.jvp(primitive)(rule)


_extreme_jvp(scatter_max_p, gt)
_extreme_jvp(scatter_min_p, lt)


# ---- batches -------------------------------------------------------------------------------------


def _batch(primitive: Primitive) -> None:
    def rule(values, axes, *, dimension_numbers, **params):
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
        else:
            # The batch axis becomes a batching axis, at one position among the indices' axes and
            # the updates' scattered axes.
            rank = typeof(indices).ndim - 1
            scattered = [i for i in range(rank - 1 + len(window)) if i not in window]
            if updates_axis is not None:
                position = sum(i < updates_axis for i in scattered)
            else:
                position = 0 if indices_axis == rank else indices_axis
                updates_axis = scattered[position - 1] + 1 if position else 0
                updates = with_new_axis(updates, size, updates_axis)
            indices = move_axis(indices, indices_axis, position)
            if axis is None:
                operand, axis = with_new_axis(operand, size), 0
            window = shifted(window, updates_axis)
            indices_batching = shifted(indices_batching, position)
        inserted, index_map = shifted(inserted, axis), shifted(index_map, axis)
        batching = shifted(batching, axis)
        if indices_axis is not None:
            batching, indices_batching = with_pair(batching, indices_batching, axis, position)
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
