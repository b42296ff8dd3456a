"""The dimension numbers of dot products: canonical, checked, and with batch axes."""

import operator
from collections.abc import Sequence

import numpy as np

from hlofront.base.typing import Shape
from hlofront.core.aval import ShapedArray
from hlofront.core.symbolic_zeros import BatchAxes
from hlofront.primitives.rules.batching import shifted

# ((contracting axes of lhs, of rhs), (batch axes of lhs, of rhs)).
DotDimensionNumbers = tuple[
    tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]
]
# These numbers as a parameter of an equation.
CanonicalNumbers = tuple[tuple[Shape, Shape], tuple[Shape, Shape]]


def canonical_axes(axes: int | Sequence[int]) -> tuple[int, ...]:
    """Return an axis or a sequence of axes as a tuple of integers."""
    if isinstance(axes, tuple):
        for axis in axes:
            if type(axis) is not int:
                break
        else:
            return axes
    if isinstance(axes, (int, np.integer)):
        return (operator.index(axes),)
    return tuple(map(operator.index, axes))


def canonical_numbers(dimension_numbers: DotDimensionNumbers) -> CanonicalNumbers:
    """Return the contracting and batch axes of a dot as tuples of integers."""
    (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch) = dimension_numbers
    return (
        (canonical_axes(lhs_contracting), canonical_axes(rhs_contracting)),
        (canonical_axes(lhs_batch), canonical_axes(rhs_batch)),
    )


def check_contraction(
    name: str, lhs: ShapedArray, rhs: ShapedArray, dimension_numbers: CanonicalNumbers
) -> None:
    """Raise TypeError unless the contracting and batch axes exist, are distinct and fit in size."""
    (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch) = dimension_numbers
    for side, aval, batch, contracting in (
        ("lhs", lhs, lhs_batch, lhs_contracting),
        ("rhs", rhs, rhs_batch, rhs_contracting),
    ):
        if not all(0 <= axis < aval.ndim for axis in (*batch, *contracting)):
            raise TypeError(
                f"{name} requires {side} dimension numbers to be nonnegative and less than the "
                f"number of axes of the {side} value, got {side}_batch of {batch} and "
                f"{side}_contracting of {contracting} for {side} of rank {aval.ndim}"
            )
        for kind, axes in (("batch", batch), ("contracting", contracting)):
            if len(set(axes)) != len(axes):
                raise TypeError(
                    f"{name} requires {side} {kind} dimensions to be distinct, got "
                    f"{side}_{kind} {axes}."
                )
        if set(batch) & set(contracting):
            raise TypeError(
                f"{name} requires {side} batch dimensions to be disjoint from contracting "
                f"dimensions, got {side}_batch {batch} and {side}_contracting {contracting}."
            )
    if len(lhs_batch) != len(rhs_batch):
        raise TypeError(
            f"{name} requires equal numbers of lhs_batch and rhs_batch dimensions, got lhs_batch "
            f"{lhs_batch} and rhs_batch {rhs_batch}."
        )
    for what, left, right in (
        ("lhs batch dimensions and rhs batch", lhs_batch, rhs_batch),
        ("contracting", lhs_contracting, rhs_contracting),
    ):
        left_sizes = tuple(lhs.shape[axis] for axis in left)
        right_sizes = tuple(rhs.shape[axis] for axis in right)
        if left_sizes != right_sizes:
            raise TypeError(
                f"{name} requires {what} dimensions to have the same shape, got {left_sizes} and "
                f"{right_sizes}: lhs of shape {lhs.shape}, rhs of shape {rhs.shape}."
            )


def remaining_axes(ndim: int, *left_out: Sequence[int]) -> tuple[int, ...]:
    """Return the axes from 0 to `ndim - 1` that are in none of the given sequences."""
    return tuple([axis for axis in range(ndim) if not any(axis in axes for axes in left_out)])


def ascending_axes(axes: Sequence[int]) -> bool:
    return all(i == axis for i, axis in enumerate(axes))


def batched_contraction(
    lhs_ndim: int, rhs_ndim: int, axes: BatchAxes, numbers: CanonicalNumbers
) -> tuple[CanonicalNumbers, int]:
    """Add batch axes of one or both operands; return dimension numbers and the result's batch axis.

    Batch axes of both operands become the first batch axis of the dot; a batch axis of only one
    remains an axis of its operand. `axes` holds the batch axis of each operand, or None, and the
    ranks include it; `numbers` are the dimension numbers without batch axes.
    """
    (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch) = numbers
    lhs_axis, rhs_axis = axes
    if lhs_axis is not None:
        lhs_contracting = shifted(lhs_contracting, lhs_axis)
        lhs_batch = shifted(lhs_batch, lhs_axis)
    if rhs_axis is not None:
        rhs_contracting = shifted(rhs_contracting, rhs_axis)
        rhs_batch = shifted(rhs_batch, rhs_axis)
    if lhs_axis is not None and rhs_axis is not None:
        lhs_batch, rhs_batch, axis = (lhs_axis, *lhs_batch), (rhs_axis, *rhs_batch), 0
    elif lhs_axis is not None:
        axis = len(lhs_batch) + remaining_axes(lhs_ndim, lhs_batch, lhs_contracting).index(lhs_axis)
    else:
        axis = lhs_ndim - len(lhs_contracting)
        axis += remaining_axes(rhs_ndim, rhs_batch, rhs_contracting).index(rhs_axis)
    return ((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch)), axis
