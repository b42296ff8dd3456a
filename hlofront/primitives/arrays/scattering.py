"""The scatter primitives, which replace or combine elements of an array at computed indices."""

from collections.abc import Callable
from typing import Any

from hlofront.base.caches import memoize
from hlofront.base.code_constants import with_constants
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import Array, ArrayLike, DType
from hlofront.core import rules
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.jaxpr import Equation, Jaxpr, Var
from hlofront.core.primitive import Primitive
from hlofront.core.programs.subprograms import combines
from hlofront.core.rules import infer
from hlofront.core.sizes.dimensions import Axes
from hlofront.core.trace import process
from hlofront.primitives.arrays.gathering import (
    GatherScatterMode,
    canonical_numbers,
    check_batching_axes,
    check_disjoint,
    check_index_dtype,
    check_indices,
    check_sorted_axes,
    requested_mode,
)
from hlofront.primitives.elementwise.elementwise import (
    add_p,
    max_p,
    min_p,
    mul_p,
    sub_p,
)
from hlofront.primitives.elementwise.families import check_same_dtypes


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


def _scatter_with(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    primitive: Any = "$primitive"
    combine: Any = "$combine"
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


def _function(
    name: str, primitive: Primitive, doc: str, combine: Primitive | None, of_four_and_two: int
) -> Callable[..., Array]:
    """Return the function of a scatter primitive.

    Args:
      name: the name of the function.
      primitive: the primitive that it binds.
      doc: the start of its docstring.
      combine: the primitive that combines an element and an update; None replaces the element.
      of_four_and_two: the result for the element 4 and the update 2, for the example.
    """
    scatter_with = with_constants(_scatter_with, primitive=primitive, combine=combine)
    scatter_with.__name__ = scatter_with.__qualname__ = name
    example = f"""
    Example:
      >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
      >>> lax.{name}(jnp.array([1, 4, 1]), jnp.array([[1]]), jnp.array([2]), numbers)
      Array([1, {of_four_and_two}, 1], dtype=int32)
    """
    scatter_with.__doc__ = doc + _ARGUMENTS + example
    return scatter_with


scatter = _function(
    "scatter",
    scatter_p,
    """Return the array with updates written over elements; where several overlap, one wins.""",
    None,
    2,
)
scatter_add = _function(
    "scatter_add",
    scatter_add_p,
    """Return the array with updates added to its elements.""",
    add_p,
    6,
)
scatter_sub = _function(
    "scatter_sub",
    scatter_sub_p,
    """Return the array with updates subtracted from its elements.""",
    sub_p,
    2,
)
scatter_mul = _function(
    "scatter_mul",
    scatter_mul_p,
    """Return the array with its elements multiplied by updates.""",
    mul_p,
    8,
)
scatter_min = _function(
    "scatter_min",
    scatter_min_p,
    """Return the array with the lesser of elements and updates.""",
    min_p,
    2,
)
scatter_max = _function(
    "scatter_max",
    scatter_max_p,
    """Return the array with the greater of elements and updates.""",
    max_p,
    4,
)


def bind_scatter(
    primitive: Primitive,
    operands: tuple[ArrayLike, ArrayLike, ArrayLike],
    dimension_numbers: object,
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: str | GatherScatterMode | None,
    program: Jaxpr | None,
    constants: tuple[ArrayLike, ...] = (),
) -> Array:
    """Bind a scatter primitive to (operand, indices, updates), with canonical parameters.

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
            "mode": requested_mode(mode),
        },
    )


@memoize(maxsize=None, typed=False)
def update_program(combine: Primitive, dtype: DType) -> Jaxpr:
    """Return the jaxpr of one equation that combines two scalars of a dtype, memoized."""
    scalar = ShapedArray((), dtype)
    params = {"out_dtype": None} if combine is mul_p else {}
    result: Any = infer[combine](scalar, scalar, **params)
    old, update, new = Var(scalar), Var(scalar), Var(result)
    equation = Equation([old, update], [new], combine, params)
    return Jaxpr((), (old, update), (new,), (equation,))


@infer(scatter_p, scatter_add_p, scatter_sub_p, scatter_mul_p, scatter_min_p, scatter_max_p)
def _(
    operand: ShapedArray,
    indices: ShapedArray,
    updates: ShapedArray,
    *,
    dimension_numbers: ScatterDimensionNumbers,
    **_: object,
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
    """Return the sizes of a scatter's update windows, per axis of the operand."""
    left_out = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    window_axes = [axis for axis in range(len(operand_shape)) if axis not in left_out]
    return {
        axis: update_shape[of_update]
        for axis, of_update in zip(window_axes, numbers.update_window_dims, strict=True)
    }
