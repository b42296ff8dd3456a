"""Shard: the part of an array that one device holds."""

from hlofront.base.typing import Array
from hlofront.bridge.arrays import pieces
from hlofront.bridge.client import ArrayImpl, Device, Sharding, SingleDeviceSharding
from hlofront.bridge.members import device_of, sharding_of
from hlofront.pjrt.deletion import check_not_deleted
from hlofront.runtime.array.printing import array_str


class Shard:
    """The shard of an array that one device holds.

    Args:
      device: the device.
      sharding: the sharding of the whole array.
      global_shape: the shape of the whole array.
      data: the shard, an array on that device; None if the device is another process's.
    """

    __slots__ = ("__weakref__", "_data", "_device", "_global_shape", "_sharding")

    def __init__(
        self,
        device: Device,
        sharding: Sharding,
        global_shape: tuple[int, ...],
        data: Array | None = None,
    ):
        self._device = device
        self._sharding = sharding
        self._global_shape = global_shape
        self._data = data

    @property
    def device(self) -> Device:
        """The device that holds the shard."""
        return self._device

    @property
    def data(self) -> Array | None:
        """The shard's data, an array on its device; None if the device is another process's."""
        return self._data

    @property
    def index(self) -> tuple[slice, ...]:
        """Return the shard's index in the whole array: a slice per axis."""
        return self._sharding.devices_indices_map(self._global_shape)[self._device]

    @property
    def replica_id(self) -> int:
        """Return the number of devices before the shard's own that hold the same data."""
        before = 0
        for device, index in self._sharding.devices_indices_map(self._global_shape).items():
            if device == self._device:
                break
            before += index == self.index
        return before

    def __repr__(self) -> str:
        data = None if self._data is None else _text(self._data)
        return (
            f"Shard(device={self._device!r}, index={self.index}, replica_id={self.replica_id}, "
            f"data={data})"
        )


def _text(data: Array) -> str:
    return array_str(data) if type(data) is ArrayImpl else repr(data)


def addressable_shards(array: Array) -> list[Shard]:
    """Return the shards of an array on devices of this process."""
    check_not_deleted(array)
    sharding, shape = sharding_of(array), array.aval.shape
    if type(sharding) is SingleDeviceSharding:
        is_here = sharding.is_fully_addressable
        return [Shard(device_of(sharding), sharding, shape, array)] if is_here else []
    return [Shard(_device_of(piece), sharding, shape, piece) for piece in pieces(array)]


def global_shards(array: Array) -> list[Shard]:
    """Return the shards of an array on all devices; those of other processes have no data."""
    here = addressable_shards(array)
    sharding = sharding_of(array)
    if sharding.is_fully_addressable:
        return here
    data = {shard.device: shard.data for shard in here}
    shape = array.aval.shape
    return [
        Shard(device, sharding, shape, data.get(device))
        for device in sharding.devices_indices_map(shape)
    ]


def addressable_data(array: Array, index: int) -> Array:
    """Return the shard of an array on the `index`-th of this process's devices, as an array."""
    check_not_deleted(array)
    if type(sharding_of(array)) is not SingleDeviceSharding:
        return pieces(array)[index]
    return [array][index]


def _device_of(piece: Array) -> Device:
    (device,) = sharding_of(piece).device_set
    return device
