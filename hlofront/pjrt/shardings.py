"""SingleDeviceSharding, the sharding of an array on one device: jaxlib's class with our methods."""

from collections.abc import Mapping, Sequence
from typing import Any

from hlofront.bridge import jax_shims
from hlofront.bridge.client import (
    Device,
    NamedSharding,
    Sharding,
    SingleDeviceSharding,
)
from hlofront.bridge.members import device_of, memory_kind_of
from hlofront.core.aval import ShapedArray
from hlofront.core.sharding.mesh import AbstractMesh, Mesh
from hlofront.core.sharding.mesh_context import get_abstract_mesh
from hlofront.core.sharding.partition import PartitionSpec
from hlofront.core.sharding.requested_shardings import plug_in_shardings
from hlofront.pjrt import clients

# By device and memory kind; None for the default memory.
_cached: dict[tuple[Device, str | None], SingleDeviceSharding] = {}


def on_device(device: Device, memory_kind: str | None = None) -> SingleDeviceSharding:
    """Return the sharding on one device: one cached object per device and memory.

    Args:
      device: a device, such as `devices()[0]`.
      memory_kind: "device", "pinned_host", ...; None for the device's default.

    Raises:
      ValueError: if `device` is not a device, or has no such memory.
    """
    try:
        return _cached[device, memory_kind]
    except (KeyError, TypeError):
        pass
    if not isinstance(device, Device):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError(f"expected a device, such as devices()[0]: got {device!r}")
    sharding = SingleDeviceSharding(device, memory_kind)
    sharding = _cached.setdefault((device, memory_kind_of(sharding)), sharding)
    return _cached.setdefault((device, memory_kind), sharding)


def make_single_device_sharding(
    device: Device, *, memory_kind: str | None = None
) -> SingleDeviceSharding:
    """Return the sharding on one device: one cached object per device and memory.

    Args:
      device: a device, such as `devices()[0]`.
      memory_kind: "device", "pinned_host", ...; None for the device's default.

    Raises:
      ValueError: if `device` is not a device, or has no such memory.
    """
    return on_device(device, memory_kind)


clients.on_reset(_cached.clear)
jax_shims.provide("jax._src.sharding_impls", "make_single_device_sharding", on_device)

Index = tuple[slice, ...]
_all = slice(None)


def _shard_shape(self: SingleDeviceSharding, global_shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of the device's shard of an array: the array's own shape."""
    return tuple(global_shape)


def _devices_indices_map(
    self: SingleDeviceSharding, global_shape: Sequence[int]
) -> dict[Device, Index]:
    """Return the device with the index of its shard, the whole array, as a slice per axis."""
    return {device_of(self): (_all,) * len(global_shape)}


def _addressable_devices_indices_map(
    self: SingleDeviceSharding, global_shape: Sequence[int]
) -> Mapping[Device, Index]:
    """Return the device, if addressable, with the index of its shard, the whole array."""
    return self.devices_indices_map(global_shape) if self.is_fully_addressable else {}


def _is_fully_addressable(self: SingleDeviceSharding) -> bool:
    device = device_of(self)
    return device.process_index == device.client.process_index()


def _addressable(self: SingleDeviceSharding) -> set[Device]:
    return {device_of(self)} if self.is_fully_addressable else set()


def _is_equivalent_to(self: SingleDeviceSharding, other: Sharding, ndim: int) -> bool:
    """Return whether two shardings place arrays of `ndim` axes identically on the same devices."""
    return self == other or (
        other.is_fully_replicated
        and other.device_set == self.device_set
        and other.memory_kind == self.memory_kind
    )


def _with_memory_kind(self: SingleDeviceSharding, kind: str) -> SingleDeviceSharding:
    """Return the sharding on the same device in another of its memories.

    Raises:
      ValueError: if the device has no such memory.
    """
    return on_device(device_of(self), kind)


def _check_compatible_aval(self: SingleDeviceSharding, aval_shape: Sequence[int]) -> None:
    """Accept an array of any shape, as one device holds all of it."""


def _equal(self: SingleDeviceSharding, other: object) -> bool:
    if self is other:
        return True
    if type(other) is not SingleDeviceSharding:
        return NotImplemented
    return device_of(self) == device_of(other) and memory_kind_of(self) == memory_kind_of(other)


def _hash(self: SingleDeviceSharding) -> int:
    return hash((device_of(self), memory_kind_of(self)))


def _repr(self: SingleDeviceSharding) -> str:
    return f"SingleDeviceSharding(device={device_of(self)!r}, memory_kind={memory_kind_of(self)})"


def _copied(self: SingleDeviceSharding, memo: object = None) -> SingleDeviceSharding:
    return self


_members: dict[str, Any] = {
    "__doc__": """The sharding of an array that is wholly on one device.

    Args:
      device: the device.
      memory_kind: which of its memories; None for its default.

    Raises:
      ValueError: if the device has no such memory.
    """,
    "__eq__": _equal,
    "__hash__": _hash,
    "__repr__": _repr,
    "__copy__": _copied,
    "__deepcopy__": _copied,
    "device_set": property(
        lambda self: {device_of(self)}, doc="The devices that hold an array with this sharding."
    ),
    "addressable_devices": property(
        _addressable,
        doc="The devices that this process drives.",
    ),
    "num_devices": property(lambda self: 1, doc="The number of devices."),
    "memory_kind": property(memory_kind_of, doc="The kind of memory of the device."),
    "is_fully_replicated": property(
        lambda self: True, doc="Whether each device holds the whole array."
    ),
    "is_fully_addressable": property(
        _is_fully_addressable, doc="Whether this process drives all of the devices."
    ),
    "has_addressable_devices": property(
        _is_fully_addressable, doc="Whether this process drives any of the devices."
    ),
    "shard_shape": _shard_shape,
    "devices_indices_map": _devices_indices_map,
    "addressable_devices_indices_map": _addressable_devices_indices_map,
    "is_equivalent_to": _is_equivalent_to,
    "with_memory_kind": _with_memory_kind,
    "check_compatible_aval": _check_compatible_aval,
    # The names under which C++ and other packages read these values.
    "_device_assignment": property(lambda self: (device_of(self),)),
    "_addressable_device_assignment": property(lambda self: tuple(self.addressable_devices)),
    "_is_concrete": True,
    "is_determined": True,
}


def _fill() -> None:
    for name, member in _members.items():
        if callable(member):
            member.__name__ = name
            member.__qualname__ = f"SingleDeviceSharding.{name}"
        setattr(SingleDeviceSharding, name, member)


_fill()


def _named_sharding(mesh: Mesh | AbstractMesh, spec: PartitionSpec) -> NamedSharding:
    from hlofront.pjrt.named_shardings import named_sharding

    return named_sharding(mesh, spec)


def _sharding_of_aval(self: ShapedArray) -> NamedSharding:
    """Return the sharding of an aval: over its mesh, or replicated over the mesh in context."""
    if self.mesh is None or self.spec is None:
        return _named_sharding(get_abstract_mesh(), PartitionSpec(*[None] * self.ndim))
    return _named_sharding(self.mesh, self.spec)


plug_in_shardings(_named_sharding)
ShapedArray.sharding = property(_sharding_of_aval)


def over_mesh(mesh: Mesh, spec: PartitionSpec) -> NamedSharding:
    """Return a NamedSharding, for modules that do not import its methods when they are loaded."""
    return _named_sharding(mesh, spec)
