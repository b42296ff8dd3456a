# pyright: strict
"""A program that sends shards of an array to devices of other processes.

The devices that have the array, and those that will have it, exchange parts of shards in rounds.
In each round a device sends and receives at most one part. No device holds the whole array.
"""

from collections.abc import Sequence

import numpy as np

from hlofront.base.caches import memoize
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import Array
from hlofront.bridge.arrays import batched_device_put, pieces
from hlofront.bridge.client import (
    Device,
    LoadedExecutable,
    NamedSharding,
    Sharding,
    result_handler,
)
from hlofront.bridge.members import sharding_of
from hlofront.core.aval import ShapedArray
from hlofront.core.sharding.mesh import Mesh
from hlofront.core.sharding.partition import PartitionSpec
from hlofront.higher_order.shard_map.shard_map import shard_map
from hlofront.pjrt.shardings import on_device, over_mesh
from hlofront.primitives.arrays.creation import full
from hlofront.primitives.arrays.dynamic_slicing import dynamic_slice, dynamic_update_slice
from hlofront.primitives.arrays.shaping import reshape
from hlofront.primitives.collectives.collectives import axis_index
from hlofront.primitives.collectives.exchanges import ppermute
from hlofront.primitives.elementwise.compare import select
from hlofront.runtime.sharding.compiled_programs import compiled_for, results_between
from hlofront.runtime.sharding.cpu_queue import meets_on_cpu
from hlofront.runtime.sharding.device_assignment import DeviceAssignment
from hlofront.runtime.sharding.shared_memory import bounds_of, parts_of
from hlofront.transforms.stage import stage

_AXIS = "device"


class _Sent(NamedTuple):
    """A part of a shard that one device sends to another, or to itself.

    Attributes:
      sender, receiver: the numbers of the devices in the program.
      read, write: where the part begins in the sender's shard, and in the receiver's, per axis.
      shape: the shape of the part.
    """

    sender: int
    receiver: int
    read: tuple[int, ...]
    write: tuple[int, ...]
    shape: tuple[int, ...]


class _Exchange(NamedTuple):
    """The exchange of shards that turns one sharding into another.

    Attributes:
      devices: the devices that take part.
      rounds: the parts that are sent in each round, all of equal shape.
      own_shape, shape: the shape of a shard before, and after.
    """

    devices: tuple[Device, ...]
    rounds: tuple[tuple[_Sent, ...], ...]
    own_shape: tuple[int, ...]
    shape: tuple[int, ...]


def sent(x: Array, sharding: Sharding) -> list[Array]:
    """Send shards of an array from its devices to others, and return those of this process.

    All processes that have devices of the array, or will have shards of it, must call this.

    Args:
      x: an array in the default memory of its devices, which has elements.
      sharding: the sharding of the result.

    Returns:
      The shard of each device of this process, in the order of the sharding's devices.

    Raises:
      ValueError: if the devices are of two platforms, or only one process has the array.
    """
    own_sharding, shape = sharding_of(x), x.aval.shape
    exchange = _exchange(own_sharding, sharding, shape)
    addressable = sharding.addressable_devices_indices_map(shape)
    here = [device for device in exchange.devices if _is_here(device)]
    if not here:
        return []
    dtype = np.dtype(x.aval.dtype)
    loaded, meets = _program(exchange, dtype)
    before = _rows(exchange.devices, exchange.own_shape)
    after = _rows(exchange.devices, exchange.shape)
    shards = dict(zip(own_sharding.addressable_devices_indices_map(shape), pieces(x), strict=True))
    # Devices without a shard take part with one that nothing reads.
    local, nothing = ShapedArray(exchange.own_shape, dtype), np.zeros(exchange.own_shape, dtype)
    parts = [
        shards[device]
        if device in shards
        else batched_device_put(local, on_device(device), [nothing], [device], True)
        for device in here
    ]
    taken = batched_device_put(
        ShapedArray((len(exchange.devices), *exchange.own_shape), dtype),
        before,
        [reshape(part, (1, *exchange.own_shape)) for part in parts],
        here,
        True,
    )
    aval = ShapedArray((len(exchange.devices), *exchange.shape), dtype)
    handlers = [result_handler(aval, after, True)]
    (result,) = results_between(loaded, taken, exchange.devices, meets, handlers)
    results = dict(zip(after.addressable_devices_indices_map(aval.shape), pieces(result)))
    return [reshape(results[device], exchange.shape) for device in addressable]


def _is_here(device: Device) -> bool:
    return device.process_index == device.client.process_index()


def _rows(devices: Sequence[Device], shape: tuple[int, ...]) -> NamedSharding:
    """Return the sharding with which each device has one row of an array, of this shape."""
    mesh = Mesh(np.array(devices), (_AXIS,))
    return over_mesh(mesh, PartitionSpec(_AXIS, *[None] * len(shape)))


@memoize(typed=False)
def _exchange(own_sharding: Sharding, sharding: Sharding, shape: tuple[int, ...]) -> _Exchange:
    """Return which shards each device is sent, preferably from itself or from its own process.

    Raises:
      ValueError: if the devices are of two platforms, or the array is in only one process.
    """
    own_indices = own_sharding.devices_indices_map(shape)
    indices = sharding.devices_indices_map(shape)
    devices = sorted({*own_indices, *indices}, key=lambda device: device.id)
    holder, *others = {device.process_index for device in own_indices}
    if not others:
        # That process takes the array for its own, and others may have another of this kind.
        raise ValueError(
            f"device_put from {own_sharding} to {sharding}: process {holder} has the whole array, "
            "and sends no shards to others. Send it with multihost_utils.broadcast_one_to_all, or "
            "make it over devices of several processes"
        )
    if len({device.platform for device in devices}) > 1:
        raise ValueError(
            f"device_put from {own_sharding} to {sharding}: the array is on devices of several "
            "processes, which send no shards to devices of another platform. Put the array on "
            "devices of one platform, or read it on the host with process_allgather"
        )
    numbers = {device: number for number, device in enumerate(devices)}
    holders: dict[tuple[tuple[int, int], ...], list[Device]] = {}
    for device, index in own_indices.items():
        holders.setdefault(bounds_of(index, shape), []).append(device)
    sources = list(holders)
    messages: list[_Sent] = []
    for turn, (device, index) in enumerate(indices.items()):
        for part in parts_of(bounds_of(index, shape), sources):
            sender = _nearest(holders[sources[part.source]], device, turn)
            messages.append(
                _Sent(
                    numbers[sender],
                    numbers[device],
                    tuple(span.start for span in part.read),
                    tuple(span.start for span in part.write),
                    tuple(span.stop - span.start for span in part.read),
                )
            )
    return _Exchange(
        tuple(devices),
        _in_rounds(messages),
        tuple(own_sharding.shard_shape(shape)),
        tuple(sharding.shard_shape(shape)),
    )


def _nearest(holders: Sequence[Device], device: Device, turn: int) -> Device:
    """Return the device that sends a shard: the receiver itself, one of its process, or another.

    Other devices take turns.
    """
    if device in holders:
        return device
    near = [holder for holder in holders if holder.process_index == device.process_index] or holders
    return near[turn % len(near)]


def _in_rounds(messages: Sequence[_Sent]) -> tuple[tuple[_Sent, ...], ...]:
    """Divide messages into rounds, in which each device sends and receives at most one."""
    rounds: list[list[_Sent]] = []
    for message in messages:
        for together in rounds:
            if together[0].shape == message.shape and not any(
                message.sender == other.sender or message.receiver == other.receiver
                for other in together
            ):
                together.append(message)
                break
        else:
            rounds.append([message])
    return tuple(map(tuple, rounds))


@memoize
def _program(exchange: _Exchange, dtype: np.dtype) -> tuple[LoadedExecutable, bool]:
    """Return the executable of an exchange, and whether it must run alone on the CPU."""
    count, ndim = len(exchange.devices), len(exchange.shape)

    def received(row: Array) -> Array:
        own = reshape(row, exchange.own_shape)
        number = axis_index(_AXIS)
        shard = full(exchange.shape, 0, dtype)
        for messages in exchange.rounds:
            reads, writes = np.zeros((2, count, ndim), np.int32)
            receives = np.zeros(count, bool)
            for message in messages:
                reads[message.sender] = message.read
                writes[message.receiver] = message.write
                receives[message.receiver] = True
            part = dynamic_slice(own, _entries(reads, number), messages[0].shape)
            pairs = [(message.sender, message.receiver) for message in messages]
            part = ppermute(part, _AXIS, pairs)
            updated = dynamic_update_slice(shard, part, _entries(writes, number))
            shard = select(_entry(receives, number), updated, shard)
        return reshape(shard, (1, *exchange.shape))

    before = _rows(exchange.devices, exchange.own_shape)
    after = _rows(exchange.devices, exchange.shape)
    on_all = shard_map(
        received, mesh=before.mesh, in_specs=before.spec, out_specs=after.spec, check_vma=False
    )
    aval = ShapedArray((count, *exchange.own_shape), dtype)
    assignment = DeviceAssignment(exchange.devices, [before], [after])

    def exchanged(rows: Array) -> list[Array]:
        return [on_all(rows)]

    loaded = compiled_for(assignment, stage(exchanged, [aval]), "send_shards", (False,))
    return loaded, meets_on_cpu(loaded, exchange.devices)


def _entry(table: np.ndarray, number: Array | np.int32) -> Array:
    """Return the entry of a table for the device with a number."""
    return reshape(dynamic_slice(table, [number], (1,)), ())


def _entries(table: np.ndarray, number: Array | np.int32) -> list[Array]:
    """Return the entries of each column of a table for the device with a number."""
    return [_entry(column, number) for column in table.T]
