"""NamedSharding and GSPMDSharding: jaxlib's classes of shardings with our methods."""

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeGuard, cast

import numpy as np

from hlofront.base import caches
from hlofront.base.errors import DuplicateSpecError, IndivisibleError
from hlofront.bridge import jax_shims
from hlofront.bridge.client import (
    Device,
    DeviceList,
    GSPMDSharding,
    HloSharding,
    NamedSharding,
    Sharding,
)
from hlofront.bridge.members import (
    device_list_of,
    hlo_sharding_of,
    memory_kind_of,
    set_device_list_getter,
)
from hlofront.core.sharding.mesh import AbstractMesh, Mesh
from hlofront.core.sharding.partition import (
    UNCONSTRAINED,
    PartitionSpec,
    UnreducedKind,
    check_rank,
)
from hlofront.pjrt.hlo_shardings import hlo_of_spec, part_numbers, spec_of, tiles_of

_Split = NamedSharding | GSPMDSharding
_Index = tuple[slice, ...]


def _device_list(mesh: Mesh) -> DeviceList:
    """Return a mesh's devices as a DeviceList, which C++ reads from the mesh."""
    devices: DeviceList | None = mesh.device_list
    if devices is None:
        devices = DeviceList(tuple(mesh.devices.flat))
        object.__setattr__(mesh, "device_list", devices)
    return devices


set_device_list_getter(Mesh, _device_list)


def check_spec(mesh: Any, spec: Any) -> None:
    """Raise if a NamedSharding of this mesh and spec is invalid; C++ calls it for each new one.

    Raises:
      TypeError: if the arguments are not a mesh and a PartitionSpec.
      ValueError: if an axis is not in the mesh.
      DuplicateSpecError: if the spec has an axis twice.
    """
    if mesh is _no_mesh:
        return
    if type(mesh) not in (Mesh, AbstractMesh) or type(spec) is not PartitionSpec:
        raise TypeError(
            "NamedSharding takes a Mesh and a PartitionSpec, as in NamedSharding(mesh, "
            f"PartitionSpec('x')): got {mesh!r} and {spec!r}"
        )
    for kind in ("unreduced", "reduced"):
        axes = getattr(spec, kind)
        if not axes <= set(mesh.explicit_axes):
            raise ValueError(
                f"{kind.capitalize()} axes can only refer to mesh axes that are of type Explicit: "
                f"got {spec} and {mesh}"
            )
    if mesh.axis_types and not mesh.auto_axes and UNCONSTRAINED in spec.partitions:
        raise ValueError(
            f"{spec} cannot contain PartitionSpec.UNCONSTRAINED, which leaves an axis to XLA, when "
            f"no axis of the mesh is of type Auto: got {mesh}"
        )
    seen: set[object] = set()
    for name in spec.names():
        if name not in mesh.axis_names:
            raise ValueError(
                f"Resource axis: {name} of {spec} is not found in mesh: {mesh.axis_names}."
            )
        if name in seen:
            raise DuplicateSpecError(
                "A single NamedSharding spec specification can map every mesh axis to at most one "
                f"positional dimension, but {spec} has duplicate entries for `{name}`"
            )
        seen.add(name)


class _NoMesh:
    """A stand-in for a mesh, with which C++ looks up `check_spec` once per process."""

    size = 0


set_device_list_getter(_NoMesh, lambda mesh: None)
_no_mesh = _NoMesh()
jax_shims.provide("jax._src.named_sharding", "check_pspec", check_spec)
with jax_shims.shims_installed:
    NamedSharding(_no_mesh, PartitionSpec())


@functools.cache
def named_sharding(mesh: Mesh | AbstractMesh, spec: PartitionSpec) -> NamedSharding:
    """Return the sharding over a mesh; equal ones are one object."""
    return NamedSharding(mesh, spec)


# ---- conversions to and from XLA -----------------------------------------------------------------


# C++ calls it for each array that it puts on several devices.
@caches.memoize(typed=False)
def _hlo_of_named(self: NamedSharding, ndim: int) -> HloSharding:
    return hlo_of_spec(self.mesh.shape_tuple, self.spec, ndim)


def _hlo_of_gspmd(self: GSPMDSharding, ndim: int) -> HloSharding:
    return hlo_sharding_of(self)


def hlo_sharding(sharding: Any, ndim: int) -> HloSharding:
    """Convert a sharding of arrays with `ndim` axes to an HloSharding."""
    return sharding._to_xla_hlo_sharding(ndim)


def from_hlo(
    described: HloSharding, like: Sharding, ndim: int, memory_kind: str | None = None
) -> _Split:
    """Return a sharding from an HloSharding, over the devices and, if any, the mesh of `like`."""
    if type(like) is NamedSharding:
        spec = spec_of(described, like.mesh, ndim)
        if spec is not None:
            return NamedSharding(like.mesh, spec, memory_kind)
    return GSPMDSharding(device_list_of(like), described, memory_kind)


def means(described: HloSharding, sharding: Sharding, ndim: int) -> bool:
    """Return whether an HloSharding and a sharding are equivalent for arrays of `ndim` axes."""
    ours = GSPMDSharding(device_list_of(sharding), described, memory_kind_of(sharding))
    return _is_equivalent_to(ours, sharding, ndim)


def are_split_alike(sharding: Sharding, other: Sharding, ndim: int) -> bool:
    """Return whether two shardings split arrays of `ndim` axes the same way, on whatever devices.

    They do if the n-th device of each holds the same shard, for each n, or if all devices of both
    hold the whole array.
    """
    if has_summands(sharding) or has_summands(other):
        same_kind = _kind_of(sharding) is _kind_of(other)
        return same_kind and hlo_sharding(sharding, ndim) == hlo_sharding(other, ndim)
    if sharding.is_fully_replicated or other.is_fully_replicated:
        return sharding.is_fully_replicated and other.is_fully_replicated
    same_count = sharding.num_devices == other.num_devices
    return same_count and _are_tiled_alike(sharding, other, ndim)


def with_all_determined(sharding: Sharding) -> Sharding:
    """Return a sharding that does not split the axes that the given one leaves to XLA."""
    if type(sharding) is not NamedSharding or _named_is_determined(sharding):
        return sharding
    spec = sharding.spec
    entries = [None if entry is UNCONSTRAINED else entry for entry in spec.partitions]
    return _update(sharding, spec=spec.update(partitions=entries))


def reordered(sharding: Sharding, other: Sharding, ndim: int) -> GSPMDSharding:
    """Return a sharding equivalent to `sharding`, with its devices in the order of `other`'s.

    Args:
      sharding: the sharding to convert.
      other: a sharding over the same devices.
      ndim: the number of axes of the arrays.
    """
    described = hlo_sharding(sharding, ndim)
    if not described.is_replicated():
        _, device_ids = tiles_of(described, ndim)
        order = list(device_list_of(other))
        numbers = np.array([order.index(device) for device in device_list_of(sharding)])
        proto = described.to_proto()
        proto.iota_reshape_dims, proto.iota_transpose_perm = [], []
        proto.tile_assignment_dimensions = [*described.tile_assignment_dimensions()]
        proto.tile_assignment_devices = numbers[device_ids.reshape(-1)].tolist()
        described = HloSharding.from_proto(proto)
    return GSPMDSharding(device_list_of(other), described, memory_kind_of(sharding))


def replicated(devices: Iterable[Device]) -> GSPMDSharding:
    """Return the sharding that replicates arrays over devices."""
    return GSPMDSharding(DeviceList(tuple(devices)), HloSharding.replicate())


# The mesh axes with their sizes, the device order if it is not the mesh's, and per array axis the
# mesh axes that it is split along: the form that lowering passes to the compiler.
_Described = tuple[tuple[tuple[object, int], ...], tuple[int, ...] | None, tuple[object, ...]]

# ---- the methods of both classes -----------------------------------------------------------------


def _shard_shape(self: _Split, global_shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of each device's shard of an array of this shape.

    Raises:
      IndivisibleError: if an axis is not a multiple of its number of shards.
      ValueError: if the array has fewer axes than are split.
    """
    shape = tuple(global_shape)
    partitions = self.spec.partitions if type(self) is NamedSharding else ()
    ends = [i for i, entry in enumerate(partitions, 1) if entry is not None]
    tiles = _tiles_for(self, shape, max(ends, default=0))
    return tuple(size // parts for size, parts in zip(shape, tiles, strict=True))


def _check_compatible_aval(self: _Split, aval_shape: Sequence[int]) -> None:
    """Raise if an array of this shape cannot have this sharding.

    Raises:
      IndivisibleError: if an axis is not a multiple of its number of shards.
      ValueError: if the array has fewer axes than the spec has entries.
    """
    _tiles_for(self, tuple(aval_shape), len(getattr(self, "spec", ())))


@caches.memoize
def _tiles_for(self: _Split, shape: tuple[int, ...], least: int) -> tuple[int, ...]:
    """Return the number of shards along each axis of an array, which has at least `least` axes."""
    check_rank(self, least, len(shape))
    tiles, _ = tiles_of(hlo_sharding(self, len(shape)), len(shape))
    for axis, (size, parts) in enumerate(zip(shape, tiles, strict=True)):
        if size % parts:
            raise IndivisibleError(
                f"Sharding {self} implies that array axis {axis} is partitioned {parts} times, but "
                f"the dimension size is {size} (full shape: {shape}, per-dimension tiling factors: "
                f"{list(tiles)} should evenly divide the shape)"
            )
    return tiles


def has_summands(sharding: Sharding) -> TypeGuard[NamedSharding]:
    """Return whether devices have summands of an array, rather than parts of it."""
    if type(sharding) is not NamedSharding or not sharding.spec.unreduced:
        return False
    sizes: Mapping[object, int] = sharding.mesh.shape
    return any(sizes[name] > 1 for name in sharding.spec.unreduced)


def _kind_of(sharding: Sharding) -> UnreducedKind | None:
    return sharding.spec.unreduced_kind if type(sharding) is NamedSharding else None


def added_up(sharding: Sharding) -> Sharding:
    """Return the sharding of an array after the summands that devices hold, if any, are added."""
    if not has_summands(sharding):
        return sharding
    return _update(sharding, spec=sharding.spec.update(unreduced=frozenset()))


@caches.memoize(maxsize=1024)
def _indices(sharding: _Split, shape: tuple[int, ...]) -> dict[Device, _Index]:
    if has_summands(sharding):
        raise NotImplementedError(  # JAX raises this class.
            f"devices have summands of an array with {sharding}, and not parts of it: add them up "
            "first, by jax.sharding.reshard(x, jax.P(...))"
        )
    part_shape = _shard_shape(sharding, shape)
    tiles, device_ids = tiles_of(hlo_sharding(sharding, len(shape)), len(shape))
    devices = tuple(_devices(sharding))
    if math.prod(tiles) == 1:
        return dict.fromkeys(devices, (slice(None),) * len(shape))
    by_number: dict[int, _Index] = {}
    for part in np.ndindex(tiles):
        index = tuple(
            slice(None) if parts == 1 else slice(i * size, (i + 1) * size)
            for i, size, parts in zip(part, part_shape, tiles, strict=True)
        )
        for number in device_ids[part]:
            by_number[int(number)] = index
    return {device: by_number[number] for number, device in enumerate(devices)}


def _devices_indices_map(self: _Split, global_shape: Sequence[int]) -> dict[Device, _Index]:
    """Return per device the index of its shard in an array of this shape, a slice per axis."""
    return dict(_indices(self, tuple(global_shape)))


def _addressable_devices_indices_map(
    self: _Split, global_shape: Sequence[int]
) -> Mapping[Device, _Index]:
    """Return per addressable device the index of its shard in an array of this shape."""
    indices = _indices(self, tuple(global_shape))
    if self.is_fully_addressable:
        return dict(indices)
    return {device: index for device, index in indices.items() if _is_here(device)}


def _is_here(device: Device) -> bool:
    return device.process_index == device.client.process_index()


def _devices(sharding: Sharding) -> DeviceList:
    """Return the devices of a sharding.

    Raises:
      ValueError: if its mesh is abstract.
    """
    if is_abstract(sharding):
        raise ValueError(f"{sharding} has no devices, as its mesh is abstract: give it a Mesh")
    return device_list_of(sharding)


def is_abstract(sharding: Sharding) -> bool:
    """Return whether a sharding is over a mesh without devices."""
    return type(sharding) is NamedSharding and type(sharding.mesh) is AbstractMesh


def _num_devices(self: _Split) -> int:
    if type(self) is NamedSharding and is_abstract(self):
        return self.mesh.size
    return len(device_list_of(self))


def _addressable(self: _Split) -> set[Device]:
    return {device for device in _devices(self) if _is_here(device)}


def _device_assignment(self: _Split) -> tuple[Device, ...]:
    return tuple(device_list_of(self))


def _addressable_device_assignment(self: _Split) -> tuple[Device, ...]:
    return tuple(filter(_is_here, device_list_of(self)))


def _is_equivalent_to(self: _Split, other: Sharding, ndim: int) -> bool:
    """Return whether two shardings place arrays of `ndim` axes identically on the same devices."""
    if self == other:
        return True
    if self.memory_kind != other.memory_kind:
        return False
    if self.is_fully_replicated and other.is_fully_replicated:
        return self.device_set == other.device_set
    if not hasattr(other, "_to_xla_hlo_sharding") or self.num_devices != other.num_devices:
        return False
    abstract = is_abstract(self)
    if abstract != is_abstract(other):
        return False
    if has_summands(self) or has_summands(other):
        same_devices = abstract or device_list_of(self) == device_list_of(other)
        same_kind = _kind_of(self) is _kind_of(other)
        return same_devices and same_kind and hlo_sharding(self, ndim) == hlo_sharding(other, ndim)
    if not abstract and device_list_of(self) != device_list_of(other):
        shape = tuple(
            np.lcm(a, b)
            for a, b in zip(
                tiles_of(hlo_sharding(self, ndim), ndim)[0],
                tiles_of(hlo_sharding(other, ndim), ndim)[0],
                strict=True,
            )
        )
        return _indices(self, shape) == _indices(cast(_Split, other), shape)
    return _are_tiled_alike(self, other, ndim)


def _are_tiled_alike(sharding: Sharding, other: Sharding, ndim: int) -> bool:
    """Return whether the n-th device of both shardings holds the same tile, for each n."""
    own_tiles, own_ids = tiles_of(hlo_sharding(sharding, ndim), ndim)
    tiles, device_ids = tiles_of(hlo_sharding(other, ndim), ndim)
    return own_tiles == tiles and np.array_equal(
        part_numbers(own_tiles, own_ids), part_numbers(tiles, device_ids)
    )


def _named_described(self: NamedSharding, ndim: int) -> _Described:
    """Return a NamedSharding's mesh axes, None for the order of its devices, and spec entries."""
    entries = self.spec.partitions[:ndim]
    return self.mesh.shape_tuple, None, (*entries, *[None] * (ndim - len(entries)))


def _gspmd_described(self: GSPMDSharding, ndim: int) -> _Described:
    """Return the axes of a mesh for a GSPMDSharding, its device order, and each axis's entry.

    The mesh has an axis per axis of the array, and one for replicas.
    """
    tiles, device_ids = tiles_of(hlo_sharding_of(self), ndim)
    if device_ids.size != self.num_devices:  # replicated
        return (("copies", self.num_devices),), None, (None,) * ndim
    axes = [(f"axis{i}", parts) for i, parts in enumerate(tiles)]
    names = tuple(name if parts > 1 else None for name, parts in axes)
    ids = tuple(map(int, device_ids.reshape(-1)))
    in_order = ids == tuple(range(len(ids)))
    return (*axes, ("copies", device_ids.shape[-1])), None if in_order else ids, names


def _named_with_axis(self: NamedSharding, axis: int, names: Sequence[object]) -> NamedSharding:
    """Return a NamedSharding for arrays with one more axis.

    Args:
      axis: the position of the new axis.
      names: the mesh axes that it is split along; if empty, XLA decides.
    """
    spec = self.spec
    entries = [*spec.partitions, *[None] * (axis - len(spec.partitions))]
    entries.insert(axis, tuple(names) or UNCONSTRAINED)
    return _update(self, spec=spec.update(partitions=entries))


def _gspmd_with_axis(self: GSPMDSharding, axis: int, names: Sequence[object]) -> GSPMDSharding:
    """Return a GSPMDSharding for arrays with one more axis, which is not split."""
    described = hlo_sharding_of(self)
    if described.is_replicated():
        return self
    proto = described.to_proto()
    tiles = list(described.tile_assignment_dimensions())
    devices = list(described.tile_assignment_devices())
    tiles.insert(axis, 1)
    proto.iota_reshape_dims, proto.iota_transpose_perm = [], []
    proto.tile_assignment_dimensions, proto.tile_assignment_devices = tiles, devices
    return GSPMDSharding(device_list_of(self), HloSharding.from_proto(proto), memory_kind_of(self))


def _named_is_determined(self: NamedSharding) -> bool:
    """Return whether a NamedSharding leaves no axis of an array to XLA."""
    return UNCONSTRAINED not in self.spec.partitions


@caches.memoize(typed=False)
def _is_replicated(self: _Split) -> bool:
    if type(self) is NamedSharding:
        sizes: Mapping[object, int] = self.mesh.shape
        spec: PartitionSpec = self.spec
        return all(sizes[name] == 1 for name in (*spec.names(), *spec.unreduced))
    return hlo_sharding_of(self).is_replicated() or self.num_devices == 1


def _named_with_memory_kind(self: NamedSharding, kind: str) -> NamedSharding:
    """Return the sharding with another memory kind.

    Raises:
      ValueError: if its devices have no such memory.
    """
    return NamedSharding(self.mesh, self.spec, kind)


def _gspmd_with_memory_kind(self: GSPMDSharding, kind: str) -> GSPMDSharding:
    """Return the sharding with another memory kind.

    Raises:
      ValueError: if its devices have no such memory.
    """
    return GSPMDSharding(device_list_of(self), hlo_sharding_of(self), kind)


def _update(self: NamedSharding, **changes: Any) -> NamedSharding:
    """Return a NamedSharding with another `mesh`, `spec` or `memory_kind`."""
    fields = {"mesh": self.mesh, "spec": self.spec, "memory_kind": memory_kind_of(self)} | changes
    return NamedSharding(**fields)


def _named_repr(self: NamedSharding) -> str:
    kind = f", memory_kind={memory_kind_of(self)}" if memory_kind_of(self) else ""
    return f"NamedSharding(mesh={self.mesh}, spec={self.spec}{kind})"


def _gspmd_repr(self: GSPMDSharding) -> str:
    kind = f", memory_kind={memory_kind_of(self)}" if memory_kind_of(self) else ""
    return f"GSPMDSharding({hlo_sharding_of(self)}{kind})"


def _named_reduce(self: NamedSharding) -> tuple[type[NamedSharding], tuple[object, ...]]:
    return NamedSharding, (self.mesh, self.spec, memory_kind_of(self))


def _gspmd_equal(self: GSPMDSharding, other: object) -> bool:
    if self is other:
        return True
    if type(other) is not GSPMDSharding:
        return NotImplemented
    return (
        device_list_of(self) == device_list_of(other)
        and hlo_sharding_of(self) == hlo_sharding_of(other)
        and memory_kind_of(self) == memory_kind_of(other)
    )


def _gspmd_hash(self: GSPMDSharding) -> int:
    return hash((device_list_of(self), hlo_sharding_of(self), memory_kind_of(self)))


def _copied(self: _Split, memo: object = None) -> _Split:
    return self


_members: dict[str, Any] = {
    "__copy__": _copied,
    "__deepcopy__": _copied,
    "device_set": property(
        lambda self: set(_devices(self)),
        doc="The devices that hold an array with this sharding.",
    ),
    "addressable_devices": property(_addressable, doc="The devices that this process drives."),
    "num_devices": property(_num_devices, doc="The number of devices."),
    "memory_kind": property(memory_kind_of, doc="The kind of memory of the devices."),
    "is_fully_replicated": property(
        _is_replicated, doc="Whether each device holds the whole array."
    ),
    "is_fully_addressable": property(
        lambda self: _devices(self).is_fully_addressable,
        doc="Whether this process drives all of the devices.",
    ),
    "has_addressable_devices": property(
        lambda self: bool(self.addressable_devices),
        doc="Whether this process drives any of the devices.",
    ),
    "shard_shape": _shard_shape,
    "devices_indices_map": _devices_indices_map,
    "addressable_devices_indices_map": _addressable_devices_indices_map,
    "is_equivalent_to": _is_equivalent_to,
    "check_compatible_aval": _check_compatible_aval,
    "_device_assignment": property(_device_assignment),
    "_addressable_device_assignment": property(_addressable_device_assignment),
    "_is_concrete": True,
}
_named_members: dict[str, Any] = {
    "__doc__": """A sharding that says along which axes of a mesh each axis of an array is split.

    Args:
      mesh: a Mesh of devices.
      spec: a PartitionSpec that names axes of the mesh.
      memory_kind: which memory of the devices; None for the default.

    Raises:
      TypeError: if they are no Mesh and PartitionSpec.
      ValueError: if the mesh has no axis of that name, or the devices no such memory.
      DuplicateSpecError: if an axis of the mesh is named twice.
    """,
    "__repr__": _named_repr,
    "__reduce__": _named_reduce,
    "update": _update,
    "with_memory_kind": _named_with_memory_kind,
    "described": _named_described,
    "is_determined": property(_named_is_determined),
    "with_axis": _named_with_axis,
    "_to_xla_hlo_sharding": _hlo_of_named,
}
_gspmd_members: dict[str, Any] = {
    "__doc__": "A sharding as XLA describes it, without a mesh.",
    "__repr__": _gspmd_repr,
    "__eq__": _gspmd_equal,
    "__hash__": _gspmd_hash,
    "with_memory_kind": _gspmd_with_memory_kind,
    "described": _gspmd_described,
    "is_determined": True,
    "with_axis": _gspmd_with_axis,
    "_to_xla_hlo_sharding": _hlo_of_gspmd,
}


def _fill() -> None:
    for class_, members in ((NamedSharding, _named_members), (GSPMDSharding, _gspmd_members)):
        for name, member in (_members | members).items():
            if callable(member):
                member.__name__ = name
                member.__qualname__ = f"{class_.__name__}.{name}"
            setattr(class_, name, member)


_fill()
