# pyright: strict
"""Sharding rules along explicit axes: operations on shapes, reductions and slices.

Families are in `sharding_families.py`; products and indexing are in `sharding_products.py`.
"""

from collections.abc import Hashable
from typing import cast

from hlofront.bridge.jaxlib_types import NamedSharding
from hlofront.core.aval import spec_of
from hlofront.core.primitive import Primitive
from hlofront.core.rules import Entries, sharding
from hlofront.core.sharding.forbidden_collectives import check_sums
from hlofront.core.sharding.mesh import AbstractMesh
from hlofront.core.sharding.sharded_types import entries_of, refusal
from hlofront.core.sizes.dimensions import canonical_axis
from hlofront.primitives.arrays import cumulative, reducing, shaping, slicing, windowed
from hlofront.primitives.arrays.dynamic_slicing import dynamic_slice_p, dynamic_update_slice_p
from hlofront.primitives.arrays.sorting import approx_top_k_p, sort_p, top_k_p
from hlofront.primitives.arrays.tiling import tile_p
from hlofront.primitives.calls.barriers import dce_sink_p, optimization_barrier_p
from hlofront.primitives.collectives import exchanges, pcast
from hlofront.primitives.collectives.collectives import pmax_p, pmin_p, positional, psum_p
from hlofront.primitives.collectives.varying import psum_invariant_p, pvary_p
from hlofront.primitives.elementwise import converting
from hlofront.primitives.elementwise.compare import select_n_p
from hlofront.primitives.elementwise.elementwise import (
    abs_p,
    clamp_p,
    conj_p,
    integer_pow_p,
    mul_p,
    pow_p,
)
from hlofront.primitives.linalg.factoring import geqp3_p, lu_pivots_to_permutation_p
from hlofront.primitives.linalg.fourier import fft_p
from hlofront.primitives.random import keys
from hlofront.primitives.random.bits import threefry2x32_p
from hlofront.primitives.rules.derivatives import add_any_p
from hlofront.primitives.sharding import families
from hlofront.primitives.sharding.families import Avals, reduced

families.elementwise(
    abs_p, conj_p, mul_p, pow_p, integer_pow_p, add_any_p, keys.random_fold_in_p, threefry2x32_p
)
families.along_batches(lu_pivots_to_permutation_p, (1,))
families.along_batches(geqp3_p, (2, 1))
families.split_alike(
    select_n_p, dynamic_update_slice_p, slicing.concatenate_p, windowed.select_and_gather_add_p
)
families.split_as_first_operand(
    converting.convert_element_type_p,
    converting.copy_p,
    converting.stage_p,
    converting.stop_gradient_p,
    converting.reduce_precision_p,
    shaping.rev_p,
    slicing.slice_p,
    slicing.split_p,
    slicing.pad_p,
    dynamic_slice_p,
    fft_p,
    keys.random_seed_p,
    keys.random_clone_p,
    windowed.reduce_window_max_p,
    windowed.reduce_window_min_p,
    windowed.reduce_window_sum_p,
    pvary_p,
    psum_invariant_p,
    pcast.preduced_p,
    pcast.reduced_vary_cast_p,
    pcast.vary_unreduced_cast_p,
    pcast.unreduced_pmax_p,
    pcast.unreduced_pmin_p,
    pcast.unreduced_psum_p,
)
families.split_as_each_operand(optimization_barrier_p)
reduced(
    reducing.argmax_p,
    reducing.argmin_p,
    reducing.reduce_and_p,
    reducing.reduce_or_p,
    reducing.reduce_prod_p,
    reducing.reduce_xor_p,
)


@sharding(clamp_p)
def _(avals: Avals, results: Avals) -> list[Entries]:
    return [entries_of(avals[1])]


@sharding(dce_sink_p)
def _(avals: Avals, results: Avals, **_: object) -> list[Entries]:
    return []


def _reduces_as_requested(primitive: Primitive) -> None:
    @sharding(primitive)
    def _(
        avals: Avals,
        results: Avals,
        *,
        axes: tuple[int, ...],
        out_sharding: NamedSharding | None = None,
    ) -> list[Entries]:
        entries = entries_of(avals[0])
        if out_sharding is not None:
            splitting = [name for axis in axes for name in entries[axis]]
            check_sums(primitive.name, splitting, out_sharding.spec)
            unreduced = spec_of(avals[0]).unreduced
            missing = sorted(out_sharding.spec.unreduced.difference(splitting, unreduced), key=str)
            if missing:
                raise refusal(
                    primitive.name,
                    avals,
                    f"out_sharding= requests a result that is unreduced along {missing}, which "
                    f"split none of the axes {axes} that are reduced",
                )
        return [families.without(entries, axes)]


for _primitive in (reducing.reduce_sum_p, reducing.reduce_max_p, reducing.reduce_min_p):
    _reduces_as_requested(_primitive)


# ---- shapes --------------------------------------------------------------------------------------


@sharding(shaping.transpose_p)
def _(avals: Avals, results: Avals, *, permutation: tuple[int, ...]) -> list[Entries]:
    entries = entries_of(avals[0])
    return [tuple([entries[axis] for axis in permutation])]


@sharding(shaping.broadcast_in_dim_p)
def _(
    avals: Avals, results: Avals, *, broadcast_dimensions: tuple[int, ...], **_: object
) -> list[Entries]:
    entries: list[tuple[Hashable, ...]] = [()] * results[0].ndim
    for entry, axis in zip(entries_of(avals[0]), broadcast_dimensions, strict=True):
        entries[axis] = entry
    return [tuple(entries)]


@sharding(shaping.squeeze_p)
def _(avals: Avals, results: Avals, *, dimensions: tuple[int, ...]) -> list[Entries]:
    return [families.without(entries_of(avals[0]), dimensions)]


@sharding(tile_p)
def _(avals: Avals, results: Avals, *, reps: tuple[int, ...]) -> list[Entries]:
    families.need_unsplit("tile", avals, [axis for axis, times in enumerate(reps) if times != 1])
    return [entries_of(avals[0])]


@sharding(shaping.reshape_p)
def _(
    avals: Avals,
    results: Avals,
    *,
    new_sizes: tuple[int, ...],
    dimensions: tuple[int, ...] | None,
    sharding: object,
) -> list[Entries]:
    if sharding is not None:
        return []
    (operand,) = avals
    in_order = dimensions is None
    regrouped = _regrouped(operand.shape, entries_of(operand), new_sizes, operand.mesh, in_order)
    if regrouped is None:
        raise refusal(
            "reshape", avals, f"it is ambiguous along which axes of the shape {new_sizes}"
        )
    return [regrouped]


def _regrouped(
    shape: tuple[int, ...],
    entries: Entries,
    new: tuple[int, ...],
    mesh: AbstractMesh | None,
    in_order: bool,
) -> Entries | None:
    """Return the split of a reshaped array, or None if it is ambiguous.

    It is unambiguous if only axes of size 1 are inserted or removed and, if the elements are read
    in order, if adjacent axes become one, or one axis becomes several adjacent ones.
    """
    long = [entry for size, entry in zip(shape, entries, strict=True) if size != 1]
    if [size for size in shape if size != 1] == [size for size in new if size != 1]:
        remaining = iter(long)
        return tuple([() if size == 1 else next(remaining) for size in new])
    if not in_order or 0 in shape:
        return None
    first = 0
    while first < min(len(shape), len(new)) and shape[first] == new[first]:
        first += 1
    last = 0
    while last < min(len(shape), len(new)) - first and shape[-1 - last] == new[-1 - last]:
        last += 1
    end = len(shape) - last
    middle, new_middle = entries[first:end], new[first : len(new) - last]
    if len(new_middle) == 1:
        inner = _merged_axis(middle)
    elif len(middle) == 1:
        inner = _divided_axis(middle[0], new_middle, cast(AbstractMesh, mesh))
    else:
        inner = None
    return None if inner is None else (*entries[:first], *inner, *entries[end:])


def _merged_axis(entries: Entries) -> Entries | None:
    """Return the split of merged axes; None if a split axis follows an unsplit one."""
    count = sum(map(bool, entries))
    if any(entries[count:]):
        return None
    return (sum(entries[:count], ()),)


def _divided_axis(
    names: tuple[Hashable, ...], sizes: tuple[int, ...], mesh: AbstractMesh
) -> Entries | None:
    """Return the splits of the axes into which an axis is divided.

    Outer mesh axes split the first new axis, for as long as its size is divisible. The result is
    None if a mesh axis would have to split two new axes.

    Args:
      names: the mesh axes that split the divided axis, the outermost first.
      sizes: the sizes of the new axes.
      mesh: the mesh.
    """
    waiting = list(names)
    result: list[tuple[Hashable, ...]] = []
    for size in sizes:
        taken: list[Hashable] = []
        while waiting and size % mesh.shape[waiting[0]] == 0:
            size //= mesh.shape[waiting[0]]
            taken.append(waiting.pop(0))
        result.append(tuple(taken))
        if waiting and size != 1:
            return None
    return None if waiting else tuple(result)


@sharding(converting.bitcast_convert_type_p)
def _(avals: Avals, results: Avals, **_: object) -> list[Entries]:
    entries = entries_of(avals[0])
    return [(entries + ((),))[: results[0].ndim]]


# ---- joining and dividing ------------------------------------------------------------------------


@sharding(slicing.stack_p)
def _(avals: Avals, results: Avals, *, axis: int) -> list[Entries]:
    entries = families.common("stack", avals) or ((),) * avals[0].ndim
    return [(*entries[:axis], (), *entries[axis:])]


@sharding(slicing.unstack_p)
def _(avals: Avals, results: Avals, *, axis: int) -> list[Entries]:
    families.need_unsplit("unstack", avals, (axis,))
    return [families.without(entries_of(avals[0]), (axis,))] * len(results)


# ---- along an axis -------------------------------------------------------------------------------


def _along_axis(name: str, avals: Avals, results: Avals, axis: int) -> list[Entries]:
    """Return the split of results that depend on all elements along an axis of the operands."""
    entries = families.common(name, avals)
    families.need_unsplit(name, avals, (axis % avals[0].ndim,))
    return [entries] * len(results)


for _primitive in (
    cumulative.cumsum_p,
    cumulative.cumprod_p,
    cumulative.cummax_p,
    cumulative.cummin_p,
    cumulative.cumlogsumexp_p,
):

    def _cumulative(
        avals: Avals, results: Avals, *, axis: int, reverse: bool, name: str = _primitive.name
    ) -> list[Entries]:
        return _along_axis(name, avals, results, axis)

    sharding(_primitive)(_cumulative)


@sharding(sort_p)
def _(avals: Avals, results: Avals, *, dimension: int, **_: object) -> list[Entries]:
    return _along_axis("sort", avals, results, dimension)


@sharding(top_k_p)
def _(avals: Avals, results: Avals, *, axis: int, k: int) -> list[Entries]:
    return _along_axis("top_k", avals, results, axis)


@sharding(approx_top_k_p)
def _(avals: Avals, results: Avals, *, reduction_dimension: int, **_: object) -> list[Entries]:
    return _along_axis("approx_top_k", avals, results, reduction_dimension)


@sharding(windowed.select_and_scatter_add_p)
def _(avals: Avals, results: Avals, **_: object) -> list[Entries]:
    return [entries_of(avals[1])]


# ---- random numbers ------------------------------------------------------------------------------


@sharding(keys.random_split_p, keys.random_bits_p, keys.random_unwrap_p)
def _(avals: Avals, results: Avals, **_: object) -> list[Entries]:
    entries = entries_of(avals[0])
    return [entries + ((),) * (results[0].ndim - len(entries))]


@sharding(keys.random_wrap_p)
def _(avals: Avals, results: Avals, **_: object) -> list[Entries]:
    ndim = results[0].ndim
    families.need_unsplit("random_wrap", avals, range(ndim, avals[0].ndim))
    return [entries_of(avals[0])[:ndim]]


# ---- collectives ---------------------------------------------------------------------------------


@sharding(psum_p, pmax_p, pmin_p)
def _(
    avals: Avals, results: Avals, *, axes: tuple[Hashable, ...], axis_index_groups: object
) -> list[Entries]:
    return [
        families.without(entries_of(aval), [canonical_axis(a, aval.ndim) for a in positional(axes)])
        for aval in avals
    ]


families.split_as_first_operand(exchanges.ppermute_p, exchanges.pbroadcast_p)


@sharding(exchanges.all_gather_p, exchanges.all_gather_invariant_p, exchanges.all_gather_reduced_p)
def _(
    avals: Avals, results: Avals, *, all_gather_dimension: int, tiled: bool, **_: object
) -> list[Entries]:
    entries, axis = entries_of(avals[0]), all_gather_dimension
    if tiled:
        families.need_unsplit("all_gather", avals, (axis,))
        return [entries]
    return [(*entries[:axis], (), *entries[axis:])]


@sharding(exchanges.reduce_scatter_p, exchanges.unreduced_reduce_scatter_p)
def _(
    avals: Avals, results: Avals, *, scatter_dimension: int, tiled: bool, **_: object
) -> list[Entries]:
    families.need_unsplit("reduce_scatter", avals, (scatter_dimension,))
    entries = entries_of(avals[0])
    return [entries if tiled else families.without(entries, (scatter_dimension,))]


@sharding(exchanges.all_to_all_p)
def _(
    avals: Avals, results: Avals, *, split_axis: int, concat_axis: int, tiled: bool, **_: object
) -> list[Entries]:
    entries = entries_of(avals[0])
    if tiled:
        families.need_unsplit("all_to_all", avals, (split_axis, concat_axis))
        return [entries]
    families.need_unsplit("all_to_all", avals, (split_axis,))
    remaining = families.without(entries, (split_axis,))
    return [(*remaining[:concat_axis], (), *remaining[concat_axis:])]
