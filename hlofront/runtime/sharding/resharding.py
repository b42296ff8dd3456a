# pyright: strict
"""Resharding: copies of arrays with another sharding, made by exchanges between devices."""

import math
from collections.abc import Sequence

import numpy as np

from hlofront.base.caches import memoize
from hlofront.base.config import options
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import Array
from hlofront.bridge.arrays import (
    CopySemantics,
    assembled,
    batched_device_put,
    copies,
    moved,
    pieces,
)
from hlofront.bridge.client import (
    Device,
    GSPMDSharding,
    HloSharding,
    LoadedExecutable,
    Sharding,
    SingleDeviceSharding,
    result_handler,
)
from hlofront.bridge.members import device_list_of, is_committed, sharding_of
from hlofront.core.aval import ShapedArray, spec_of
from hlofront.pjrt.deletion import check_not_deleted
from hlofront.pjrt.hlo_shardings import REPLICATED, tiles_of
from hlofront.pjrt.host_value import host_value
from hlofront.pjrt.named_shardings import added_up, has_summands, hlo_sharding, reordered
from hlofront.pjrt.shardings import Index, on_device
from hlofront.primitives.arrays.shaping import reshape
from hlofront.primitives.arrays.slicing import slice as slice_of
from hlofront.primitives.sharding.resharding import check_kinds
from hlofront.runtime.sharding.compiled_programs import compiled_for, results_between
from hlofront.runtime.sharding.cpu_queue import meets_on_cpu
from hlofront.runtime.sharding.device_assignment import DeviceAssignment, is_on_one_of_several
from hlofront.runtime.sharding.sent_shards import sent
from hlofront.runtime.sharding.shared_memory import Assembly, assembled_in_memory, assembly_of
from hlofront.runtime.sharding.typed import aval_split_by
from hlofront.transforms.stage import stage

_guard_puts = options["jax_transfer_guard_host_to_device"].cell


def resharded(x: Array, sharding: Sharding, donated: bool = False) -> Array:
    """Return an array with another sharding, committed to its devices.

    If the devices stay the same, they exchange the missing elements in a compiled program.
    Otherwise, the array's own devices first cut it into the new shards in such a program, unless
    they already have them, and each shard is copied to its new device. CPU devices of this process
    read each other's shards from shared memory. No array is gathered on the host. A program, which
    all processes involved run, sends shards to devices of other processes.

    Args:
      x: an array on devices.
      sharding: the sharding of the result.
      donated: whether a program that exchanges shards may reuse the memory of the array.

    Raises:
      IndivisibleError: if the array cannot be split this way.
      RuntimeError: if the array was deleted.
      ValueError: if shards of an array in only one process, or on another platform, would be sent
        to devices of another process.
    """
    check_not_deleted(x)
    own_sharding, shape = sharding_of(x), x.aval.shape
    # A transfer guard would mistake shards read from memory for transfers from the host.
    if _guard_puts.value is None:
        assembly = _assembly_instead(own_sharding, sharding, shape)
        if assembly is not None:
            return assembled_in_memory(x, assembly, aval_split_by(sharding, x.aval), sharding)
    sharding.check_compatible_aval(shape)
    if is_on_one_of_several(own_sharding):
        return resharded(pieces(x)[0], sharding)  # The other devices hold nothing.
    if has_summands(own_sharding) or has_summands(sharding):
        return _with_summands(x, sharding, donated)
    if _are_shards_moved(own_sharding, sharding, shape):
        return _typed(_moved_shards(x, sharding))
    aval = aval_split_by(sharding, x.aval)
    if not aval.size:
        return empty(aval, sharding)
    own_devices, devices = device_list_of(own_sharding), device_list_of(sharding)
    is_here = own_sharding.is_fully_addressable
    own_kind = own_devices.default_memory_kind
    if own_sharding.memory_kind != own_kind:
        # Programs compute in the devices' own memory.
        own_sharding = own_sharding.with_memory_kind(own_kind)
        x = _moved_shards(x, own_sharding)
    if own_devices == devices:
        return resharded(_exchanged(x, sharding.with_memory_kind(own_kind), donated), sharding)
    if not is_here:
        parts = _parts_of_processes(x, sharding, donated)
        if parts is not None:
            return _distributed(parts, aval, sharding)
        there = sharding.with_memory_kind(devices.default_memory_kind)
        there_aval = aval_split_by(there, x.aval)
        return resharded(assembled(there_aval, there, sent(x, there), True), sharding)
    is_on_cpu = own_sharding.num_devices == 1 and next(iter(own_devices)).platform == "cpu"
    if is_on_cpu and not sharding.is_fully_replicated:
        # The array is in the memory of the host, where each device reads its shard.
        return split_on_host(host_value(x), aval, sharding)
    return _distributed(_cut_for(x, sharding, donated), aval, sharding)


def _with_summands(x: Array, sharding: Sharding, donated: bool) -> Array:
    """Return an array with another sharding, where either sharding holds summands of the array."""
    own_sharding = sharding_of(x)
    if has_summands(sharding):
        check_kinds(spec_of(x.aval), sharding.spec)
    if device_list_of(own_sharding) == device_list_of(sharding):
        return _typed(_exchanged(x, sharding, donated))
    if has_summands(own_sharding):
        return resharded(_exchanged(x, added_up(own_sharding), donated), sharding)
    return resharded(resharded(x, added_up(sharding), donated), sharding, donated=True)


def split_on_host(value: np.ndarray, aval: ShapedArray, sharding: Sharding) -> Array:
    """Return an array made by sending each device its shard of a NumPy array."""
    if has_summands(sharding):
        whole = added_up(sharding)
        return resharded(split_on_host(value, aval_split_by(whole, aval), whole), sharding, True)
    devices, indices = _devices_and_indices(sharding, aval.shape)
    shards = [value[index] for index in indices]
    return batched_device_put(aval, sharding, shards, devices, True)


@memoize(typed=False)
def _devices_and_indices(
    sharding: Sharding, shape: tuple[int, ...]
) -> tuple[tuple[Device, ...], tuple[Index, ...]]:
    """Return the devices of this process, and the index of each one's shard of an array."""
    indices = sharding.addressable_devices_indices_map(shape)
    return tuple(indices), tuple(indices.values())


def empty(aval: ShapedArray, sharding: Sharding) -> Array:
    """Return an array without elements, whose axes XLA's programs cannot split."""
    return split_on_host(np.empty(aval.shape, aval.dtype), aval, sharding)


@memoize(typed=False)
def _are_shards_moved(own_sharding: Sharding, sharding: Sharding, shape: tuple[int, ...]) -> bool:
    """Return whether each shard moves unchanged, from the n-th device to the n-th."""
    if device_list_of(own_sharding) != device_list_of(sharding) and not (
        own_sharding.is_fully_addressable
        and sharding.is_fully_addressable
        and own_sharding.device_set != sharding.device_set
    ):
        return False
    own_indices = own_sharding.devices_indices_map(shape)
    indices = sharding.devices_indices_map(shape)
    return list(own_indices.values()) == list(indices.values())


@memoize(typed=False)
def _assembly_instead(
    own_sharding: Sharding, sharding: Sharding, shape: tuple[int, ...]
) -> Assembly | None:
    """Return how an array is assembled in the memory of CPU devices, or None if it is not.

    Raises:
      IndivisibleError: if the array cannot be split this way.
    """
    sharding.check_compatible_aval(shape)
    if own_sharding.num_devices == 1 or 0 in shape:
        return None
    assembly = assembly_of(own_sharding, sharding, shape)
    is_assembled = assembly is not None and not _are_shards_moved(own_sharding, sharding, shape)
    return assembly if is_assembled else None


def _moved_shards(x: Array, sharding: Sharding) -> Array:
    """Return an array with each shard moved unchanged, to the n-th device or its other memory."""
    if sharding.is_fully_addressable:
        return moved(x, sharding, CopySemantics.REUSE_INPUT)
    # C++ moves only arrays of this process's devices.
    kind, sources = sharding.memory_kind, _shards(x)
    devices = [next(iter(sharding_of(source).device_set)) for source in sources]
    targets = [on_device(device, kind) for device in devices]
    return assembled(x.aval, sharding, _copied(sources, targets), True)


def _typed(x: Array) -> Array:
    """Return an array with the type of its sharding, committed to its devices."""
    aval = aval_split_by(sharding_of(x), x.aval)
    if is_committed(x) and aval == x.aval:
        return x
    return assembled(aval, sharding_of(x), _shards(x), True)


def _shards(x: Array) -> list[Array]:
    """Return the shards of an array on devices of this process, in the order of its devices."""
    sharding = sharding_of(x)
    if type(sharding) is SingleDeviceSharding:
        return [x] if sharding.is_fully_addressable else []
    return pieces(x)


# ---- to other devices ----------------------------------------------------------------------------


class Cut(NamedTuple):
    """An array of shards of another array: one from each tile of `times` shards per axis.

    Attributes:
      array: the array, whose devices hold one such shard each.
      position: where in its tile each shard is, an integer per axis.
      times: the number of shards in a tile, per axis.
    """

    array: Array
    position: tuple[int, ...]
    times: tuple[int, ...]

    def starts(self) -> list[tuple[int, ...]]:
        """Return where the shards of this process's devices start in the array that was cut."""
        shape = self.array.aval.shape
        sharding = sharding_of(self.array)
        per_axis = self.position, self.times, sharding.shard_shape(shape)
        return [
            tuple(
                (each.start or 0) * times + i * size
                for each, i, times, size in zip(index, *per_axis, strict=True)
            )
            for index in sharding.addressable_devices_indices_map(shape).values()
        ]


def _parts_of_processes(x: Array, sharding: Sharding, donated: bool) -> list[Cut] | None:
    """Return the shards of an array over several processes that this process needs.

    On the same devices in another order they exchange shards.

    Returns:
      The shards; or None, in all processes, if a process lacks shards that its devices need.
    """
    own_sharding, shape = sharding_of(x), x.aval.shape
    if own_sharding.device_set == sharding.device_set:
        return _cut_for(x, sharding, donated)
    own_indices = own_sharding.devices_indices_map(shape)
    held = [(device.process_index, index) for device, index in own_indices.items()]
    indices = sharding.devices_indices_map(shape)
    if any((device.process_index, index) not in held for device, index in indices.items()):
        return None
    return [Cut(x, (0,) * len(shape), (1,) * len(shape))]


def _cut_for(x: Array, sharding: Sharding, donated: bool) -> list[Cut]:
    """Cut an array into the shards of a sharding, on the array's own devices.

    Together the devices hold coarser shards, as many as their number allows, and cut those.
    """
    own_sharding, shape = sharding_of(x), x.aval.shape
    ndim = len(shape)
    uncut = (1,) * ndim
    own_kind = device_list_of(own_sharding).default_memory_kind
    if own_sharding.device_set == sharding.device_set:
        there = reordered(sharding, own_sharding, ndim).with_memory_kind(own_kind)
        return [Cut(_exchanged(x, there, donated), (0,) * ndim, uncut)]
    if own_sharding.shard_shape(shape) == sharding.shard_shape(shape):
        return [Cut(x, (0,) * ndim, uncut)]
    tiles, _ = tiles_of(hlo_sharding(sharding, ndim), ndim)
    remaining = own_sharding.num_devices
    coarse: list[int] = []
    for count in tiles:
        coarse.append(math.gcd(count, remaining))
        remaining //= coarse[-1]
    times = tuple(count // own for count, own in zip(tiles, coarse, strict=True))
    there = GSPMDSharding(device_list_of(own_sharding), tiled(coarse, remaining))
    return [
        Cut(array, index, times)
        for array, index in zip(_executed(x, there, times, donated), np.ndindex(times), strict=True)
    ]


def tiled(tiles: Sequence[int], copies: int) -> HloSharding:
    """Return the HloSharding of an array that is split into tiles, with copies of each."""
    if math.prod(tiles) == 1:
        return HloSharding.replicate()
    dims = (*tiles, copies)
    return HloSharding.iota_tile(dims, [math.prod(dims)], [0], [REPLICATED])


def _distributed(cuts: Sequence[Cut], aval: ShapedArray, sharding: Sharding) -> Array:
    """Copy shards to where a sharding needs them, from the same device if that holds them."""
    holders: dict[tuple[int, ...], dict[Device, Array]] = {}
    for cut in cuts:
        for start, shard in zip(cut.starts(), _shards(cut.array), strict=True):
            (device,) = sharding_of(shard).device_set
            holders.setdefault(start, {})[device] = shard
    sources: list[Array] = []
    targets: list[SingleDeviceSharding] = []
    for number, (device, index) in enumerate(
        sharding.addressable_devices_indices_map(aval.shape).items()
    ):
        known = holders[tuple(part.start or 0 for part in index)]
        # Copies of one shard come from its holders in turn.
        copies = list(known.values())
        sources.append(known.get(device, copies[number % len(copies)]))
        targets.append(on_device(device, sharding.memory_kind))
    return assembled(aval, sharding, _copied(sources, targets), True)


def _copied(sources: list[Array], targets: Sequence[SingleDeviceSharding]) -> list[Array]:
    """Copy single-device arrays to a device each, except those that are there already."""
    away = [
        i
        for i, (source, target) in enumerate(zip(sources, targets, strict=True))
        if sharding_of(source) != target
    ]
    if away:
        moved = copies([sources[i] for i in away], [targets[i] for i in away])
        for i, source in zip(away, moved, strict=True):
            sources[i] = source
    return sources


# ---- on the same devices -------------------------------------------------------------------------


def _exchanged(x: Array, sharding: Sharding, donated: bool) -> Array:
    """Return an array with another sharding over its devices, in their own memory."""
    (array,) = _executed(x, sharding, (1,) * x.aval.ndim, donated)
    return array


def _executed(x: Array, sharding: Sharding, times: tuple[int, ...], donated: bool) -> list[Array]:
    """Run the program that cuts each tile of an array into smaller ones.

    Args:
      x: the array.
      sharding: the sharding whose tiles are cut, over the array's devices.
      times: the number of smaller tiles per axis. For each of them there is a result.
      donated: whether the memory of the array is donated.
    """
    aval = aval_split_by(None, x.aval)
    loaded, meets = _program(aval, sharding_of(x), sharding, times, donated)
    shape = tuple(size // count for size, count in zip(aval.shape, times, strict=True))
    part = ShapedArray(shape, aval.dtype, aval.weak_type)
    handlers = [result_handler(part, sharding, True)] * math.prod(times)
    return results_between(loaded, x, list(device_list_of(sharding_of(x))), meets, handlers)


@memoize
def _program(
    aval: ShapedArray,
    own_sharding: Sharding,
    sharding: Sharding,
    times: tuple[int, ...],
    donated: bool,
) -> tuple[LoadedExecutable, bool]:
    """Return the executable that cuts each tile of an array into smaller ones.

    Args:
      aval: the type of the array.
      own_sharding: the sharding of the array.
      sharding: the sharding whose tiles are cut, over the same devices, and that of the results.
      times: the number of smaller tiles per axis. For each of them there is a result.
      donated: whether the memory of the array is donated.

    Returns:
      The executable, and whether it must run alone on the CPU.
    """

    def cut(x: Array) -> list[Array]:
        tiles, _ = tiles_of(hlo_sharding(sharding, aval.ndim), aval.ndim)
        return _parts(x, tiles, times)

    devices = list(device_list_of(own_sharding))
    outputs = [sharding] * math.prod(times)
    assignment = DeviceAssignment(devices, [own_sharding], outputs)
    loaded = compiled_for(assignment, stage(cut, [aval]), "reshard", (donated,))
    return loaded, meets_on_cpu(loaded, devices)


def _parts(x: Array, tiles: Sequence[int], times: tuple[int, ...]) -> list[Array]:
    """Return, for each index of a smaller tile in its tile, the array of these from every tile."""
    if math.prod(times) == 1:
        return [x]
    shape = x.aval.shape
    sizes = [size // (a * b) for size, a, b in zip(shape, tiles, times, strict=True)]
    grid = [n for axis in zip(tiles, times, sizes, strict=True) for n in axis]
    x = reshape(x, grid)
    parts: list[Array] = []
    for index in np.ndindex(times):
        starts = [n for i in index for n in (0, i, 0)]
        stops = [
            n
            for i, count, size in zip(index, tiles, sizes, strict=True)
            for n in (count, i + 1, size)
        ]
        part = slice_of(x, starts, stops)
        parts.append(reshape(part, [a * b for a, b in zip(tiles, sizes, strict=True)]))
    return parts
