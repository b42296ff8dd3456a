# pyright: strict
"""How products, convolutions, solutions and indexing split their results along explicit axes."""

from collections.abc import Sequence
from typing import Any

from hlofront.core.rules import Entries, sharding
from hlofront.core.sharded_types import entries_of, refusal
from hlofront.primitives.contracting import CanonicalNumbers, dot_general_p
from hlofront.primitives.convolution_numbers import ConvDimensionNumbers
from hlofront.primitives.convolving import conv_general_dilated_p
from hlofront.primitives.gathering import GatherDimensionNumbers, gather_p
from hlofront.primitives.scattering import (
    ScatterDimensionNumbers,
    scatter_add_p,
    scatter_max_p,
    scatter_min_p,
    scatter_mul_p,
    scatter_p,
    scatter_sub_p,
)
from hlofront.primitives.sharding_families import (
    BATCHES_ALIKE,
    Avals,
    need_unsplit,
    without,
)
from hlofront.primitives.solving import triangular_solve_p

# ---- products ------------------------------------------------------------------------------------


@sharding(dot_general_p)
def _(
    avals: Avals,
    results: Avals,
    *,
    dimension_numbers: CanonicalNumbers,
    out_sharding: Any,
    **_: object,
) -> list[Entries]:
    (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch) = dimension_numbers
    lhs, rhs = map(entries_of, avals)
    contracted = [(lhs[i], rhs[j]) for i, j in zip(lhs_contracting, rhs_contracting, strict=True)]
    if out_sharding is not None:
        _check_summands(avals, contracted, out_sharding.spec.unreduced)
        return []
    for i, j in zip(lhs_batch, rhs_batch, strict=True):
        if lhs[i] and rhs[j] and lhs[i] != rhs[j]:
            raise refusal(
                "dot_general", avals, f"batch axes are split differently, by {lhs[i]} and {rhs[j]}"
            )
    for one, other in contracted:
        if one and other:
            problem = (
                "the contracted axes of both operands are split, so that the result may be split "
                f"in several ways: by {one}"
                if one == other
                else f"contracted axes are split differently, by {one} and {other}"
            )
            raise refusal("dot_general", avals, problem)
    return [
        (
            *[lhs[i] for i in lhs_batch],
            *without(lhs, (*lhs_batch, *lhs_contracting)),
            *without(rhs, (*rhs_batch, *rhs_contracting)),
        )
    ]


def _check_summands(
    avals: Avals,
    contracted: Sequence[tuple[tuple[Any, ...], tuple[Any, ...]]],
    unreduced: frozenset[Any],
) -> None:
    """Raise ShardingTypeError unless devices have the summands that a product is asked to have."""
    if not unreduced:
        return
    if any(one != other for one, other in contracted):
        raise refusal(
            "dot_general",
            avals,
            "a result of summands is of operands whose contracted axes are split alike",
        )
    names = frozenset(name for one, _ in contracted for name in one)
    if names != unreduced:
        raise refusal(
            "dot_general",
            avals,
            f"out_sharding= asks for a result that is unreduced along {sorted(map(str, unreduced))}"
            f", and contracted axes are split along {sorted(map(str, names))}",
        )


@sharding(conv_general_dilated_p)
def _(
    avals: Avals,
    results: Avals,
    *,
    dimension_numbers: ConvDimensionNumbers,
    batch_group_count: int,
    out_sharding: object,
    **_: object,
) -> list[Entries]:
    if out_sharding is not None:
        return []
    numbers = dimension_numbers
    need_unsplit("conv_general_dilated", avals, range(avals[1].ndim), 1)
    need_unsplit("conv_general_dilated", avals, (numbers.lhs_spec[1],))
    lhs = entries_of(avals[0])
    entries: list[tuple[Any, ...]] = [()] * results[0].ndim
    for axis, out in zip(numbers.lhs_spec, numbers.out_spec, strict=True):
        entries[out] = lhs[axis]
    return [tuple(entries)]


@sharding(triangular_solve_p)
def _(
    avals: Avals, results: Avals, *, left_side: bool, transpose_a: bool, **_: object
) -> list[Entries]:
    a, b = map(entries_of, avals)
    if a[:-2] != b[:-2]:
        raise refusal("triangular_solve", avals, BATCHES_ALIKE)
    ndim = len(a)
    summed = ndim - 1 if left_side != transpose_a else ndim - 2
    need_unsplit("triangular_solve", avals, (summed,))
    need_unsplit("triangular_solve", avals, (ndim - 2 if left_side else ndim - 1,), 1)
    free = a[2 * ndim - 3 - summed]
    return [(*b[:-2], free, b[-1]) if left_side else (*b[:-1], free)]


# ---- indexing ------------------------------------------------------------------------------------


@sharding(gather_p)
def _(
    avals: Avals,
    results: Avals,
    *,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: tuple[int, ...],
    **_: object,
) -> list[Entries]:
    numbers = dimension_numbers
    operand = avals[0]
    batching = numbers.operand_batching_dims
    taken = [
        axis
        for axis, size in enumerate(slice_sizes)
        if axis not in batching and size != operand.shape[axis]
    ]
    need_unsplit("gather", avals, (*taken, *numbers.collapsed_slice_dims))
    indexing = _batches_alone("gather", avals, 1, numbers.start_indices_batching_dims)
    batch = list(indexing)
    for axis, position in zip(batching, numbers.start_indices_batching_dims, strict=True):
        batch[position] = _one_entry("gather", avals, entries_of(operand)[axis], batch[position])
    slices = without(entries_of(operand), (*batching, *numbers.collapsed_slice_dims))
    offsets, batches = iter(slices), iter(batch)
    return [
        tuple(
            [
                next(offsets) if axis in numbers.offset_dims else next(batches)
                for axis in range(results[0].ndim)
            ]
        )
    ]


def _batches_alone(name: str, avals: Avals, operand: int, batching: Sequence[int]) -> Entries:
    """Return the split of all axes of indices but the last; only batch axes may be split."""
    axes = [axis for axis in range(avals[operand].ndim) if axis not in batching]
    need_unsplit(name, avals, axes, operand)
    return entries_of(avals[operand])[:-1]


def _one_entry(name: str, avals: Avals, *entries: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the one split of an axis that several operands have, some of them unsplit."""
    names = {entry for entry in entries if entry}
    if len(names) > 1:
        raise refusal(name, avals, BATCHES_ALIKE)
    return names.pop() if names else ()


def _scatter_rule(
    avals: Avals,
    results: Avals,
    *,
    dimension_numbers: ScatterDimensionNumbers,
    **_: object,
) -> list[Entries]:
    numbers = dimension_numbers
    operand, updates = avals[0], avals[2]
    batching = numbers.operand_batching_dims
    of_updates = entries_of(updates)
    entries = list(entries_of(operand))
    need_unsplit("scatter", avals, numbers.inserted_window_dims)
    indexing = _batches_alone("scatter", avals, 1, numbers.scatter_indices_batching_dims)
    # The axes of the updates that are no axes of windows are those of the indices, in order.
    index_axes = [axis for axis in range(updates.ndim) if axis not in numbers.update_window_dims]
    positions = numbers.scatter_indices_batching_dims
    need_unsplit(
        "scatter", avals, [axis for i, axis in enumerate(index_axes) if i not in positions], 2
    )
    for axis, position in zip(batching, positions, strict=True):
        entries[axis] = _one_entry(
            "scatter", avals, entries[axis], indexing[position], of_updates[index_axes[position]]
        )
    windows = [
        axis
        for axis in range(operand.ndim)
        if axis not in numbers.inserted_window_dims and axis not in batching
    ]
    for axis, update in zip(windows, numbers.update_window_dims, strict=True):
        if entries[axis] != of_updates[update]:
            raise refusal(
                "scatter",
                avals,
                f"axis {axis} of the operand and axis {update} of the updates must be split alike",
            )
        if operand.shape[axis] != updates.shape[update]:
            need_unsplit("scatter", avals, (axis,))
    return [tuple(entries)]


for _primitive in (
    scatter_p,
    scatter_add_p,
    scatter_sub_p,
    scatter_mul_p,
    scatter_min_p,
    scatter_max_p,
):
    sharding(_primitive)(_scatter_rule)
