# pyright: strict
"""Sharding rules along explicit axes: products, convolutions, solvers and indexing."""

from collections.abc import Hashable, Sequence

from hlofront.bridge.jaxlib_types import NamedSharding
from hlofront.core.rules import Entries, sharding
from hlofront.core.sharding.forbidden_collectives import check_sums
from hlofront.core.sharding.sharded_types import entries_of, refusal
from hlofront.primitives.arrays.gathering import GatherDimensionNumbers, gather_p
from hlofront.primitives.arrays.scattering import (
    ScatterDimensionNumbers,
    scatter_add_p,
    scatter_max_p,
    scatter_min_p,
    scatter_mul_p,
    scatter_p,
    scatter_sub_p,
)
from hlofront.primitives.linalg.conv import conv_general_dilated_p
from hlofront.primitives.linalg.conv_numbers import ConvDimensionNumbers
from hlofront.primitives.linalg.dot_general import CanonicalNumbers, dot_general_p
from hlofront.primitives.linalg.ragged_dot import RaggedDotDimensionNumbers, ragged_dot_general_p
from hlofront.primitives.linalg.scaled_dot import scaled_dot_p
from hlofront.primitives.linalg.solving import triangular_solve_p
from hlofront.primitives.sharding.families import (
    BATCHES_ALIKE,
    Avals,
    merged,
    need_unsplit,
    without,
)

# ---- products ------------------------------------------------------------------------------------


@sharding(dot_general_p)
def _(
    avals: Avals,
    results: Avals,
    *,
    dimension_numbers: CanonicalNumbers,
    out_sharding: NamedSharding | None,
    **_: object,
) -> list[Entries]:
    lhs, rhs = map(entries_of, avals)
    if out_sharding is None:
        return [_product_split("dot_general", avals, lhs, rhs, dimension_numbers)]
    contracted = [(lhs[i], rhs[j]) for i, j in zip(*dimension_numbers[0], strict=True)]
    summed = [name for pair in contracted for names in pair for name in names]
    check_sums("dot_general", summed, out_sharding.spec)
    _check_summands(avals, contracted, out_sharding.spec.unreduced)
    (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch) = dimension_numbers
    rows = without(lhs, [*lhs_contracting, *lhs_batch])
    columns = without(rhs, [*rhs_contracting, *rhs_batch])
    batches = [lhs[i] for i in lhs_batch], [rhs[i] for i in rhs_batch]
    return [(*batch, *rows, *columns) for batch in batches]


def _product_split(
    name: str, avals: Avals, lhs: Entries, rhs: Entries, numbers: CanonicalNumbers
) -> Entries:
    """Return the split of a product of two operands, whose splits are `lhs` and `rhs`."""
    (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch) = numbers
    for i, j in zip(lhs_batch, rhs_batch, strict=True):
        if lhs[i] and rhs[j] and lhs[i] != rhs[j]:
            raise refusal(
                name, avals, f"batch axes are split differently, by {lhs[i]} and {rhs[j]}"
            )
    for i, j in zip(lhs_contracting, rhs_contracting, strict=True):
        one, other = lhs[i], rhs[j]
        if one and other:
            problem = (
                "the contracted axes of both operands are split, so that the result may be split "
                f"in several ways: by {one}"
                if one == other
                else f"contracted axes are split differently, by {one} and {other}"
            )
            raise refusal(name, avals, problem)
    return (
        *[lhs[i] for i in lhs_batch],
        *without(lhs, (*lhs_batch, *lhs_contracting)),
        *without(rhs, (*rhs_batch, *rhs_contracting)),
    )


@sharding(ragged_dot_general_p)
def _(
    avals: Avals,
    results: Avals,
    *,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    out_sharding: object,
    **_: object,
) -> list[Entries]:
    if out_sharding is not None:
        return []
    numbers = ragged_dot_dimension_numbers
    name, group_axes = "ragged_dot_general", numbers.rhs_group_dimensions
    contracting, (lhs_batch, rhs_batch) = numbers.dot_dimension_numbers
    if numbers.mode != "batch":
        # Groups of rows have any size, so a device cannot know which groups its rows belong to.
        need_unsplit(name, avals, numbers.lhs_ragged_dimensions)
        need_unsplit(name, avals, group_axes, 1)
        need_unsplit(name, avals, range(avals[2].ndim), 2)
    if numbers.mode == "contracting":
        ragged = contracting[0].index(numbers.lhs_ragged_dimensions[0])
        need_unsplit(name, avals, (contracting[1][ragged],), 1)
    lhs, rhs = entries_of(avals[0]), entries_of(avals[1])
    # The result does not have the axis of groups.
    shifted = [
        tuple([axis - sum(group < axis for group in group_axes) for axis in axes])
        for axes in (contracting[1], rhs_batch)
    ]
    dot_numbers = ((contracting[0], shifted[0]), (lhs_batch, shifted[1]))
    split = _product_split(name, avals, lhs, without(rhs, group_axes), dot_numbers)
    return [((), *split) if numbers.mode == "contracting" else split]


@sharding(scaled_dot_p)
def _(
    avals: Avals, results: Avals, *, dimension_numbers: CanonicalNumbers, **_: object
) -> list[Entries]:
    contracting = dimension_numbers[0]
    for i, operand in enumerate((0, 1, 0, 1)):
        # The elements of a block share one scale.
        need_unsplit("scaled_dot", avals, contracting[operand], i)
    lhs, rhs = (merged("scaled_dot", [avals[i], avals[i + 2]]) for i in range(2))
    return [_product_split("scaled_dot", avals, lhs, rhs, dimension_numbers)]


def _check_summands(
    avals: Avals,
    contracted: Sequence[tuple[tuple[Hashable, ...], tuple[Hashable, ...]]],
    unreduced: frozenset[Hashable],
) -> None:
    """Raise ShardingTypeError unless contracted axes are split along exactly the unreduced ones."""
    if not unreduced:
        return
    if any(one != other for one, other in contracted):
        raise refusal(
            "dot_general",
            avals,
            "an unreduced result requires operands whose contracted axes are split the same way",
        )
    names = frozenset(name for one, _ in contracted for name in one)
    if names != unreduced:
        raise refusal(
            "dot_general",
            avals,
            f"out_sharding= requests a result that is unreduced along {sorted(map(str, unreduced))}"
            f", and contracted axes are split along {sorted(map(str, names))}",
        )


@sharding(conv_general_dilated_p)
def _(
    avals: Avals,
    results: Avals,
    *,
    dimension_numbers: ConvDimensionNumbers,
    batch_group_count: int,
    out_sharding: NamedSharding | None,
    **_: object,
) -> list[Entries]:
    if out_sharding is not None:
        return []
    numbers = dimension_numbers
    need_unsplit("conv_general_dilated", avals, range(avals[1].ndim), 1)
    need_unsplit("conv_general_dilated", avals, (numbers.lhs_spec[1],))
    lhs = entries_of(avals[0])
    entries: list[tuple[Hashable, ...]] = [()] * results[0].ndim
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
    """Return the split of all but the last axis of indices; only batch axes may be split."""
    axes = [axis for axis in range(avals[operand].ndim) if axis not in batching]
    need_unsplit(name, avals, axes, operand)
    return entries_of(avals[operand])[:-1]


def _one_entry(name: str, avals: Avals, *entries: tuple[Hashable, ...]) -> tuple[Hashable, ...]:
    """Return the split of an axis that operands share; it may be unsplit in some of them."""
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
    # The axes of the updates that are not axes of windows are those of the indices, in order.
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
                f"axis {axis} of the operand and axis {update} of the updates must be split the "
                "same way",
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
