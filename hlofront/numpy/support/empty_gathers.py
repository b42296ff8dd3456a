"""Gathers that read no element: their results, and errors for indices into empty axes."""

import math

from hlofront.base.typing import Array
from hlofront.core.aval import typeof
from hlofront.core.sharding.partition import PartitionEntry, PartitionSpec, axes_of
from hlofront.core.sharding.requested_shardings import named_sharding
from hlofront.numpy.indexing.entries import GatherPlan
from hlofront.primitives.arrays.creation import full_like, full_split
from hlofront.primitives.collectives.varying import varying_as


def empty_result(array: Array, plan: GatherPlan) -> Array:
    """Return the result of a gather without elements; its axes are split as the array's own."""
    aval = typeof(array)
    if aval.split is None:
        return full_like(array, 0, shape=plan.shape)
    mesh, spec = aval.split
    sizes = dict(mesh.shape_tuple)
    window_axes = [axis for axis in range(aval.ndim) if axis not in plan.collapsed]
    entries: list[PartitionEntry] = [None] * len(plan.shape)
    for position, axis in zip(plan.window, window_axes, strict=True):
        entry = spec.partitions[axis]
        if plan.shape[position] % math.prod(sizes[name] for name in axes_of(entry)) == 0:
            entries[position] = entry
    sharding = named_sharding(mesh, PartitionSpec(*entries))
    return varying_as(full_split(plan.shape, 0, aval.dtype, aval.weak_type, sharding), array)


def refuse_empty_axes(plan: GatherPlan, sizes: tuple[int, ...]) -> None:
    """Raise TypeError if a gather reads elements along an empty axis."""
    if 0 not in plan.shape:
        for axis in plan.collapsed:
            if not sizes[axis]:
                raise TypeError(
                    f"index is out of bounds for axis {axis} with size 0: there is no element "
                    "that could be read."
                )
