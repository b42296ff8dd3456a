"""SingleDeviceSharding: where an array on one device is; jaxlib's class with our methods."""

from typing import Any

from hlofront.bridge import jax_shims
from hlofront.bridge.client import Device, SingleDeviceSharding
from hlofront.bridge.members import device_of, memory_kind_of
from hlofront.core.aval import ShapedArray
from hlofront.pjrt import clients

_kept: dict[Any, Any] = {}


def on_device(device: Any, memory_kind: str | None = None) -> Any:
    """The sharding that is one device; always the same object for the same device and memory.

    Args:
      device: a device, such as `devices()[0]`.
      memory_kind: "device", "pinned_host", ...; None for the device's default.

    Raises:
      ValueError: if it is no device, or the device has no such memory.
    """
    try:
        return _kept[device, memory_kind]
    except (KeyError, TypeError):
        pass
    if not isinstance(device, Device):
        raise ValueError(f"wanted a device, such as devices()[0]: got {device!r}")
    made = SingleDeviceSharding(device, memory_kind)
    found = _kept.setdefault((device, memory_kind_of(made)), made)
    return _kept.setdefault((device, memory_kind), found)


def make_single_device_sharding(device: Any, *, memory_kind: str | None = None) -> Any:
    """The sharding that is one device: see `on_device`."""
    return on_device(device, memory_kind)


clients.on_reset(_kept.clear)
jax_shims.provide("jax._src.sharding_impls", "make_single_device_sharding", on_device)

_all = slice(None)


def _shard_shape(self: Any, global_shape: Any) -> tuple[int, ...]:
    """The shape of each device's part of an array of this shape: here, all of it."""
    return tuple(global_shape)


def _devices_indices_map(self: Any, global_shape: Any) -> dict[Any, tuple[slice, ...]]:
    """Which part of an array of this shape each device holds: device -> a slice per axis."""
    return {device_of(self): (_all,) * len(global_shape)}


def _addressable_devices_indices_map(
    self: Any, global_shape: Any
) -> dict[Any, tuple[slice, ...] | None]:
    """The same for the devices of this process."""
    return self.devices_indices_map(global_shape) if self.is_fully_addressable else {}


def _is_fully_addressable(self: Any) -> bool:
    device = device_of(self)
    return device.process_index == device.client.process_index()


def _is_equivalent_to(self: Any, other: Any, ndim: int) -> bool:
    """Whether both put an array of `ndim` axes on the same devices in the same way."""
    return self == other or (
        other.is_fully_replicated
        and other.device_set == self.device_set
        and other.memory_kind == self.memory_kind
    )


def _with_memory_kind(self: Any, kind: str) -> Any:
    """The same device and another of its memories.

    Raises:
      ValueError: if the device has no such memory.
    """
    return on_device(device_of(self), kind)


def _check_compatible_aval(self: Any, aval_shape: Any) -> None:
    """Raise if an array of this shape cannot be placed so: one device takes any."""


def _equal(self: Any, other: Any) -> Any:
    if self is other:
        return True
    if type(other) is not SingleDeviceSharding:
        return NotImplemented
    return device_of(self) == device_of(other) and memory_kind_of(self) == memory_kind_of(other)


def _hash(self: Any) -> int:
    return hash((device_of(self), memory_kind_of(self)))


def _repr(self: Any) -> str:
    return f"SingleDeviceSharding(device={device_of(self)!r}, memory_kind={memory_kind_of(self)})"


def _copied(self: Any, memo: Any = None) -> Any:
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
        lambda self: {device_of(self)} if self.is_fully_addressable else set(),
        doc="Those of the devices that this process drives.",
    ),
    "num_devices": property(lambda self: 1, doc="How many devices there are."),
    "memory_kind": property(memory_kind_of, doc="Which memory of the device it is."),
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
    # What C++ and other packages ask for by these names.
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


def _sharding_of_aval(self: ShapedArray) -> Any:
    """How the type says that arrays are split: along no axis, over no mesh."""
    from hlofront.pjrt.named_shardings import not_split

    return not_split(self.ndim)


ShapedArray.sharding = property(_sharding_of_aval)


def on_devices_of(sharding: Any, other: Any, ndim: int) -> Any:
    """A sharding that splits arrays of `ndim` axes alike, with the devices in another's order."""
    from hlofront.pjrt.named_shardings import reordered

    return reordered(sharding, other, ndim)
