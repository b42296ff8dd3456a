# pyright: strict
"""Resharding of arrays among the CPU devices of a process, which share its memory."""

import math
from collections.abc import Sequence

import numpy as np

from hlofront.base.caches import memoize
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import Array
from hlofront.bridge.arrays import KEEP, batched_device_put, pieces
from hlofront.bridge.client import Device, NamedSharding, Sharding, SingleDeviceSharding
from hlofront.core.aval import ShapedArray
from hlofront.pjrt.host_value import host_value

# XLA uses the memory of a NumPy array itself if its address is a multiple of this many bytes.
_ALIGNMENT = 64

_Index = tuple[slice, ...]
# Where a shard begins and ends along each axis of the array.
Bounds = tuple[tuple[int, int], ...]


class Part(NamedTuple):
    """The elements that a new shard takes from an old one.

    Attributes:
      source: the number of the old shard among `Assembly.sources`.
      read: their position in the old shard.
      write: their position in the new one.
    """

    source: int
    read: _Index
    write: _Index


class Assembly(NamedTuple):
    """The plan by which the shards of one sharding are assembled from those of another.

    Attributes:
      sources: the numbers of the devices whose shards are read; other shards are copies of those.
      shape: the shape of a new shard.
      shards: the parts of each new shard that is not a copy of another.
      devices: the devices that receive shards.
      shard_of: per device, the number of its shard in `shards`.
    """

    sources: tuple[int, ...]
    shape: tuple[int, ...]
    shards: tuple[tuple[Part, ...], ...]
    devices: tuple[Device, ...]
    shard_of: tuple[int, ...]


@memoize
def assembly_of(
    own_sharding: Sharding, sharding: Sharding, shape: tuple[int, ...]
) -> Assembly | None:
    """Return the plan by which new shards of an array are assembled from its old ones.

    Returns:
      The plan; None unless old and new shards are all in the memory of this process, and are parts
      of the array, not terms of a pending sum.
    """
    if not (_is_in_memory(own_sharding) and _is_in_memory(sharding)):
        return None
    own_indices = own_sharding.devices_indices_map(shape).values()
    sources: dict[Bounds, int] = {}
    for number, index in enumerate(own_indices):
        sources.setdefault(bounds_of(index, shape), number)
    indices = sharding.devices_indices_map(shape)
    numbers: dict[Bounds, int] = {}
    shard_of = [
        numbers.setdefault(bounds_of(index, shape), len(numbers)) for index in indices.values()
    ]
    return Assembly(
        tuple(sources.values()),
        tuple(sharding.shard_shape(shape)),
        tuple(parts_of(bounds, list(sources)) for bounds in numbers),
        tuple(indices),
        tuple(shard_of),
    )


def assembled_in_memory(
    x: Array, assembly: Assembly, aval: ShapedArray, sharding: Sharding
) -> Array:
    """Return an array with another sharding, which shares no memory with `x`.

    Waits until `x` is computed.

    Args:
      x: an array on several CPU devices.
      assembly: how its shards become those of the result.
      aval: the type of the result.
      sharding: the sharding of the result.
    """
    own = pieces(x)
    sources = [host_value(own[number]) for number in assembly.sources]
    shards = _aligned(len(assembly.shards), assembly.shape, aval.dtype)
    for shard, parts in zip(shards, assembly.shards, strict=True):
        for source, read, write in parts:
            shard[write] = sources[source][read]
    per_device = [shards[number] for number in assembly.shard_of]
    # Copies of a shard are one NumPy array, which nothing else refers to. XLA does not reuse its
    # memory where a device's shard is donated.
    return batched_device_put(aval, sharding, per_device, assembly.devices, True, False, KEEP)


def _is_in_memory(sharding: Sharding) -> bool:
    """Return whether a sharding's shards are parts of an array in the memory of this process."""
    if type(sharding) is NamedSharding:
        if sharding.spec.unreduced:
            return False
    elif type(sharding) is not SingleDeviceSharding:
        return False
    first = next(iter(sharding.device_set))
    return first.platform == "cpu" and sharding.is_fully_addressable


def bounds_of(index: _Index, shape: tuple[int, ...]) -> Bounds:
    """Return where the shard with an index begins and ends along each axis of an array."""
    return tuple(each.indices(size)[:2] for each, size in zip(index, shape, strict=True))


def parts_of(shard: Bounds, sources: list[Bounds]) -> tuple[Part, ...]:
    """Return the parts that a shard takes from others."""
    parts: list[Part] = []
    for number, source in enumerate(sources):
        common = [
            (max(start, other_start), min(stop, other_stop))
            for (start, stop), (other_start, other_stop) in zip(shard, source, strict=True)
        ]
        if all(start < stop for start, stop in common):
            parts.append(Part(number, _within(source, common), _within(shard, common)))
    return tuple(parts)


def _within(shard: Bounds, part: Sequence[tuple[int, int]]) -> _Index:
    """Return the index of a part of a shard."""
    return tuple(
        slice(start - first, stop - first)
        for (first, _), (start, stop) in zip(shard, part, strict=True)
    )


def _aligned(count: int, shape: tuple[int, ...], dtype: np.dtype) -> list[np.ndarray]:
    """Return NumPy arrays without values, in memory that XLA uses without copying it."""
    size = math.prod(shape) * dtype.itemsize
    stride = -(-size // _ALIGNMENT) * _ALIGNMENT
    memory = np.empty(count * stride + _ALIGNMENT, np.uint8)
    start = -memory.__array_interface__["data"][0] % _ALIGNMENT
    return [np.ndarray(shape, dtype, memory, start + stride * i) for i in range(count)]
