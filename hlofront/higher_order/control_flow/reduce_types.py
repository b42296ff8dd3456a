"""The primitives of reductions with a user-defined function, and their infer rules."""

from collections.abc import Sequence

import numpy as np

from hlofront.base.typing import ArrayLikes
from hlofront.core import rules
from hlofront.core.aval import Avals, ShapedArray
from hlofront.core.effects import Effects
from hlofront.core.jaxpr import ClosedJaxpr, Jaxpr, Value
from hlofront.core.primitive import Primitive
from hlofront.core.programs.subprograms import combines
from hlofront.core.rules import Entries, effects, infer, sharding
from hlofront.core.sharding.sharded_types import entries_of
from hlofront.core.sizes.dimensions import canonical_axes
from hlofront.higher_order.selecting import Member
from hlofront.primitives.arrays import reducing as r
from hlofront.primitives.arrays import windowed as w
from hlofront.primitives.sharding.families import split_as_first_operand, without

# A function is traced once, so its program identifies the equation, and executables can be cached
# although the parameters hold programs.
reduce_p = Primitive("reduce", multiple_results=True)
reduce_window_p = Primitive("reduce_window", multiple_results=True)
select_and_scatter_p = Primitive("select_and_scatter")
rules.subprograms(reduce_p, reduce_window_p)(combines("jaxpr"))
rules.subprograms(select_and_scatter_p)(combines("select_jaxpr", "scatter_jaxpr"))


@infer(reduce_p)
def _(
    *avals: ShapedArray, computation: object, jaxpr: ClosedJaxpr, dimensions: Sequence[int]
) -> list[ShapedArray]:
    operands, starts = halves(avals)
    if any(start.shape for start in starts):
        raise ValueError(
            f"reduce found non-scalar initial value: {[start.shape for start in starts]}"
        )
    _check_dtypes("reduce", operands, starts)
    shape = operands[0].shape
    if any(operand.shape != shape for operand in operands):
        raise ValueError(
            "reduce requires operands of equal shape, got "
            f"{[operand.shape for operand in operands]}"
        )
    axes = canonical_axes(dimensions, len(shape))
    r.check_axes(axes, operands[0])
    _check_out_avals("reduce", jaxpr.out_avals, operands)
    shape = r.without_axes(shape, axes)
    return [
        ShapedArray(shape, operand.dtype, operand.weak_type and start.weak_type)
        for operand, start in zip(operands, starts, strict=True)
    ]


@sharding(reduce_p)
def _(avals: Avals, results: Avals, *, dimensions: Sequence[int], **_: object) -> list[Entries]:
    axes = canonical_axes(dimensions, avals[0].ndim)
    return [without(entries_of(aval), axes) for aval in halves(avals)[0]]


split_as_first_operand(reduce_window_p, select_and_scatter_p)


@effects(reduce_p, reduce_window_p)
def _(*avals: ShapedArray, jaxpr: ClosedJaxpr | Jaxpr, **_: object) -> Effects:
    return jaxpr.effects


def halves(members: Sequence[Member]) -> tuple[tuple[Member, ...], tuple[Member, ...]]:
    """Split a reduction's sequence into the half for operands and the half for initial values."""
    members = tuple(members)
    half = len(members) // 2
    return members[:half], members[half:]


def _check_dtypes(name: str, operands: Avals, starts: Avals) -> None:
    if any(operand.dtype != start.dtype for operand, start in zip(operands, starts, strict=True)):
        raise TypeError(
            f"{name} operand dtypes should match corresponding initial value dtypes, got "
            f"operands={list(operands)} and initial_values={list(starts)}. Give initial values "
            "that dtype, as in jnp.zeros((), x.dtype)."
        )


def _check_out_avals(name: str, results: Avals, operands: Avals) -> None:
    for result, operand in zip(results, operands, strict=True):
        if result.shape or result.dtype != operand.dtype:
            raise ValueError(
                f"{name} computation must return scalars of the operands' dtypes, "
                f"{[operand.dtype.name for operand in operands]}; it returned "
                f"{[result.str_short() for result in results]}."
            )


@infer(reduce_window_p)
def _(*avals: ShapedArray, jaxpr: Jaxpr, consts: ArrayLikes, **windows: Value) -> list[ShapedArray]:
    operands, starts = halves(avals)
    if any(start.shape for start in starts):
        raise TypeError(
            "reduce_window expected init_values to be scalars but init_values have shapes "
            f"{[start.shape for start in starts]}."
        )
    if [aval.dtype for aval in operands] != [aval.dtype for aval in starts]:
        raise TypeError(
            "reduce_window got inconsistent dtypes for operands and init_values: got operand "
            f"dtypes {[aval.dtype for aval in operands]} and init_value dtypes "
            f"{[aval.dtype for aval in starts]}."
        )
    if any(operand.shape != operands[0].shape for operand in operands):
        raise TypeError(
            "reduce_window requires operands of equal shape, got "
            f"{[operand.shape for operand in operands]}."
        )
    shape = w.window_output_shape("reduce_window", operands[0].shape, w.Windows(**windows))
    _check_out_avals("reduce_window", jaxpr.out_avals, operands)
    return [ShapedArray(shape, operand.dtype) for operand in operands]


@infer(select_and_scatter_p)
def _(
    operand: ShapedArray,
    source: ShapedArray,
    init_value: ShapedArray,
    *,
    select_jaxpr: Jaxpr,
    scatter_jaxpr: Jaxpr,
    window_dimensions: tuple[int, ...],
    window_strides: tuple[int, ...],
    padding: w.Pads,
    **_: object,
) -> ShapedArray:
    if not operand.dtype == source.dtype == init_value.dtype or init_value.shape:
        raise TypeError(
            "select_and_scatter requires an operand, a source and a scalar init_value of equal "
            f"dtype, got {operand}, {source} and {init_value}."
        )
    w.check_source_shape(
        "select_and_scatter", source, operand, window_dimensions, window_strides, padding
    )
    (chosen,), (total,) = select_jaxpr.out_avals, scatter_jaxpr.out_avals
    if chosen.shape or chosen.dtype != np.bool_:
        raise ValueError(
            f"select of select_and_scatter must return a boolean, it returned {chosen}"
        )
    _check_out_avals("scatter of select_and_scatter", [total], [operand])
    return operand.strip_weak_type()
