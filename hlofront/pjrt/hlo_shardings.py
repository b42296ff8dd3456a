"""HloShardings, XLA's descriptions of how arrays are split: made from PartitionSpecs, and read."""

import math

import numpy as np

from hlofront.base import caches
from hlofront.bridge.client import HloSharding, OpSharding, with_reduction
from hlofront.core.sharding.mesh import Mesh
from hlofront.core.sharding.partition import PartitionSpec, axes_of

REPLICATED = OpSharding.Type.REPLICATED
_UNREDUCED = OpSharding.Type.UNREDUCED
# The names of the mesh axes that one axis of an array is split along.
_MeshAxes = tuple[object, ...]


def per_axis(spec: PartitionSpec, ndim: int) -> list[_MeshAxes]:
    """Return the mesh axes that split each of an array's `ndim` axes, () for an unsplit axis."""
    entries = spec.partitions[:ndim]
    return [*map(axes_of, entries), *[()] * (ndim - len(entries))]


@caches.memoize
def hlo_of_spec(
    sizes: tuple[tuple[object, int], ...], spec: PartitionSpec, ndim: int
) -> HloSharding:
    size_of = dict(sizes)
    names = [name for name, _ in sizes]
    axes = per_axis(spec, ndim)
    tiles = [math.prod(size_of[name] for name in group) for group in axes]
    used = [name for group in axes for name in group]
    summed = [name for name in names if name in spec.unreduced]
    replicated = [name for name in names if name not in used and name not in summed]
    counts = {
        kind: math.prod(size_of[name] for name in group)
        for kind, group in ((_UNREDUCED, summed), (REPLICATED, replicated))
    }
    if math.prod(tiles) == counts[_UNREDUCED] == 1:
        return HloSharding.replicate()
    types = [kind for kind, count in counts.items() if count > 1]
    dims = (*tiles, *[counts[kind] for kind in types])
    order = [names.index(name) for name in (*used, *summed, *replicated)]
    described = HloSharding.iota_tile(dims, [size for _, size in sizes], order, types)
    if spec.unreduced_kind is None:
        return described
    return with_reduction(described, spec.unreduced_kind.name)


def tiles_of(described: HloSharding, ndim: int) -> tuple[tuple[int, ...], np.ndarray]:
    """Return an HloSharding's tile counts per axis, and its tile assignment.

    Returns:
      A tuple of `ndim` tile counts, and an integer array of device numbers, of shape
      (*tile counts, replicas), where devices with summands of a tile count as replicas.
    """
    alike = described.is_replicated() or described.is_unreduced()
    count = 0 if alike else described.num_devices()
    if alike or described.is_maximal():
        return (1,) * ndim, np.arange(max(count, 1)).reshape((1,) * ndim + (-1,))
    tiles = tuple(described.tile_assignment_dimensions()[:ndim])
    return tiles, np.array(described.tile_assignment_devices()).reshape((*tiles, -1))


def spec_of(described: HloSharding, mesh: Mesh, ndim: int) -> PartitionSpec | None:
    """Return the PartitionSpec equivalent to an HloSharding on a mesh, or None if there is none.

    A step along a mesh axis must lead to another shard along at most one array axis. Mesh axes
    that split the same array axis are ordered by their steps, the longest first.
    """
    if described.is_maximal() and not described.is_replicated():
        return None
    tiles, device_ids = tiles_of(described, ndim)
    if math.prod(tiles) == 1:
        return PartitionSpec()
    if device_ids.size != mesh.size:
        return None
    part_of = np.empty((mesh.size, ndim), int)
    part_of[device_ids.reshape(-1)] = (
        np.indices(tiles).reshape(ndim, -1).T.repeat(device_ids.shape[-1], axis=0)
    )
    # Per array axis, the mesh axes that split it, with the number of shards that one step crosses.
    steps: list[list[tuple[int, object]]] = [[] for _ in range(ndim)]
    stride = mesh.size
    for name, size in mesh.shape_tuple:
        stride //= size
        if size == 1:
            continue
        moved = part_of[stride] - part_of[0]
        along = np.flatnonzero(moved)
        if len(along) == 1:
            steps[int(along[0])].append((int(moved[along[0]]), name))
        elif len(along) > 1:
            return None
    entries = [
        tuple(name for _, name in sorted(pairs, key=lambda pair: -pair[0])) for pairs in steps
    ]
    while entries and not entries[-1]:
        entries.pop()
    spec = PartitionSpec(*entries)
    spec_tiles, spec_ids = tiles_of(hlo_of_spec(mesh.shape_tuple, spec, ndim), ndim)
    is_same = spec_tiles == tiles and np.array_equal(
        part_numbers(spec_tiles, spec_ids), part_numbers(tiles, device_ids)
    )
    return spec if is_same else None


def part_numbers(tiles: tuple[int, ...], device_ids: np.ndarray) -> np.ndarray:
    """Return per device the number of its shard, from the result of `tiles_of`."""
    numbers = np.empty(device_ids.size, int)
    numbers[device_ids.reshape(-1)] = np.arange(math.prod(tiles)).repeat(device_ids.shape[-1])
    return numbers
