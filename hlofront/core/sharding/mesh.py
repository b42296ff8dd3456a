"""Meshes of devices with named axes (Mesh), and meshes without devices (AbstractMesh)."""

import dataclasses
import enum
import math
import threading
import warnings
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping, Sequence, Sized
from typing import TYPE_CHECKING, Self, cast

import numpy as np

from hlofront.base.config import follows_jax_0_12, options
from hlofront.base.option import Option, OptionKind
from hlofront.bridge.state import unset
from hlofront.core.sharding.partition import PartitionSpec, axes_of

if TYPE_CHECKING:
    from hlofront.bridge.client import Device, DeviceList

# The name of a single mesh axis, or a name per axis; None for a default.
AxisNames = Hashable | Iterable[Hashable]


class AxisType(enum.Enum):
    """The type of a mesh axis: whether XLA, array types or user code split arrays along it."""

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()

    def __repr__(self) -> str:
        return self.name


def _names(names: AxisNames) -> tuple[Hashable, ...]:
    if isinstance(names, str) or not isinstance(names, Sized):
        return (names,)
    return tuple(cast("Iterable[Hashable]", names))


def _types(axis_types: object, names: tuple[Hashable, ...], what: str) -> tuple[AxisType, ...]:
    """Return the checked types of mesh axes; None is Auto for all.

    Raises:
      TypeError: if a type is not an AxisType.
      ValueError: if the numbers of types and names differ.
    """
    if axis_types is None:
        return (AxisType.Auto,) * len(names)
    requested_types = cast(
        "tuple[object, ...]", axis_types if isinstance(axis_types, tuple) else (axis_types,)
    )
    types = tuple([kind for kind in requested_types if isinstance(kind, AxisType)])
    if len(types) != len(requested_types):
        raise TypeError(
            f"axis_types of {what} are a tuple of sharding.AxisType, one for each axis: got "
            f"{requested_types}"
        )
    if len(types) != len(names):
        raise ValueError(
            f"{what} requires one AxisType for each of its {len(names)} axes, {names}: got {types}"
        )
    return types


_lock = threading.Lock()
_drops_size_one = options["jax_remove_size_one_mesh_axis_from_type"]


# The types of a mesh's axes: a single type is for a mesh of one axis, and None is Auto for all.
AxisTypes = AxisType | tuple[AxisType, ...] | None


class NamedAxes:
    """A base class of meshes with and without devices: named axes with sizes and types."""

    __slots__ = ()

    axis_names: tuple[Hashable, ...]
    axis_types: tuple[AxisType, ...]
    # The axes of the mesh, as pairs of a name and a size.
    shape_tuple: tuple[tuple[Hashable, int], ...]

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(
            f"meshes do not change: to have another {name}, make one by update({name}=...)"
        )

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        """The number of devices along each axis."""
        raise AttributeError(f"{type(self).__name__} must say its axis_sizes")

    @property
    def shape(self) -> OrderedDict[Hashable, int]:
        """An ordered dictionary from the names of the axes to their sizes."""
        return OrderedDict(self.shape_tuple)

    def axes_in_types(self, names: Iterable[Hashable]) -> list[Hashable]:
        """Return the named axes that the types of arrays mention.

        By default they are all axes; with `jax_remove_size_one_mesh_axis_from_type`, only those
        with several devices.
        """
        if not _drops_size_one.value:
            return list(names)
        sizes = self.shape
        return [name for name in names if sizes[name] != 1]

    def spec_in_types(self, spec: PartitionSpec) -> PartitionSpec:
        """Return a PartitionSpec with only the axes that the types of arrays mention."""
        if not _drops_size_one.value or 1 not in self.axis_sizes:
            return spec
        entries = [
            entry if axes_of(entry) == () else tuple(self.axes_in_types(axes_of(entry)))
            for entry in spec.partitions
        ]
        return spec.update(
            partitions=entries,
            unreduced=frozenset(self.axes_in_types(spec.unreduced)),
            reduced=frozenset(self.axes_in_types(spec.reduced)),
        )

    def _axes_of_type(self, kind: AxisType) -> tuple[Hashable, ...]:
        pairs = zip(self.axis_names, self.axis_types, strict=True)
        return tuple([name for name, each in pairs if each is kind])

    @property
    def auto_axes(self) -> tuple[Hashable, ...]:
        """The names of the axes of type Auto."""
        return self._axes_of_type(AxisType.Auto)

    @property
    def explicit_axes(self) -> tuple[Hashable, ...]:
        """The names of the axes of type Explicit."""
        return self._axes_of_type(AxisType.Explicit)

    @property
    def manual_axes(self) -> tuple[Hashable, ...]:
        """The names of the axes of type Manual."""
        return self._axes_of_type(AxisType.Manual)

    def _all_of_type(self, kind: AxisType) -> bool:
        return bool(self.axis_types) and all(axis_type is kind for axis_type in self.axis_types)

    @property
    def are_all_axes_auto(self) -> bool:
        """True if there are axes, all of type Auto."""
        return self._all_of_type(AxisType.Auto)

    @property
    def are_all_axes_explicit(self) -> bool:
        """True if there are axes, all of type Explicit."""
        return self._all_of_type(AxisType.Explicit)

    @property
    def are_all_axes_manual(self) -> bool:
        """True if there are axes, all of type Manual."""
        return self._all_of_type(AxisType.Manual)


_fill = object.__setattr__


@dataclasses.dataclass(frozen=True, slots=True)
class AbstractDevice:
    """The kind of devices that an AbstractMesh stands for.

    Attributes:
      device_kind: the name of the model, such as "TPU v5 lite".
      num_cores: the number of cores of a device, or None if unknown.
      platform: "cpu", "gpu", "tpu", ...
    """

    device_kind: str
    num_cores: int | None
    platform: str

    def __repr__(self) -> str:
        return f"AbstractDevice({self.described()})"

    def described(self) -> str:
        """Return the fields as text."""
        return (
            f"device_kind={self.device_kind}, num_cores={self.num_cores}, platform={self.platform}"
        )


class AbstractMesh(NamedAxes):
    """A mesh of named axes without devices. Equal meshes are one object.

    Args:
      axis_sizes: the number of devices along each axis.
      axis_names: a name for each axis; a string is one name.
      axis_types: the type of each axis; None is Auto for all, or Explicit with hlofront_jax_api
        0.12.0.1.
      abstract_device: the kind of the devices, or None if it is unknown.

    Raises:
      ValueError: if the numbers of sizes, names and types differ.
      TypeError: if a type is not an AxisType.
    """

    __slots__ = (
        "__weakref__",
        "_sizes",
        "abstract_device",
        "axis_names",
        "axis_types",
        "shape_tuple",
    )

    _sizes: tuple[int, ...]
    abstract_device: AbstractDevice | None

    def __new__(
        cls,
        axis_sizes: tuple[int, ...],
        axis_names: AxisNames,
        axis_types: AxisTypes = None,
        *,
        abstract_device: AbstractDevice | None = None,
    ) -> "AbstractMesh":
        sizes, names = tuple(axis_sizes), _names(axis_names)
        if len(sizes) != len(names):
            raise ValueError(
                f"AbstractMesh requires a name for each axis: got the sizes {sizes} and the names "
                f"{names}"
            )
        if axis_types is None and follows_jax_0_12():
            axis_types = (AxisType.Explicit,) * len(names)
        types = _types(axis_types, names, "AbstractMesh")
        key = (sizes, names, types, abstract_device)
        with _lock:
            made = _abstract_meshes.get(key)
            if made is None:
                made = _abstract_meshes[key] = object.__new__(cls)
                _fill(made, "_sizes", sizes)
                _fill(made, "axis_names", names)
                _fill(made, "axis_types", types)
                _fill(made, "shape_tuple", tuple(zip(names, sizes, strict=True)))
                _fill(made, "abstract_device", abstract_device)
        return made

    def __reduce__(self) -> tuple[object, ...]:
        fields = self._sizes, self.axis_names, self.axis_types, self.abstract_device
        return _remade_abstract, fields

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name!r}: {size}" for name, size in self.shape_tuple) or "()"
        device = f", {self.abstract_device.described()}" if self.abstract_device else ""
        return f"AbstractMesh({sizes}, axis_types={self.axis_types}{device})"

    # C++ reads this attribute of every mesh.
    _internal_device_list = None

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        """The number of devices along each axis."""
        return self._sizes

    @property
    def size(self) -> int:
        """The number of devices: 0 for a mesh without axes."""
        return math.prod(self._sizes) if self._sizes else 0

    @property
    def empty(self) -> bool:
        return self.size == 0

    @property
    def abstract_mesh(self) -> "AbstractMesh":
        """The mesh without devices, which is this mesh."""
        return self

    def update(
        self,
        axis_sizes: tuple[int, ...] | None = None,
        axis_names: AxisNames = None,
        axis_types: AxisTypes = None,
    ) -> "AbstractMesh":
        """Return a mesh with some fields replaced; None leaves a field unchanged."""
        return AbstractMesh(
            self._sizes if axis_sizes is None else axis_sizes,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
            abstract_device=self.abstract_device,
        )

    def update_axis_types(self, name_to_type: Mapping[Hashable, AxisType]) -> "AbstractMesh":
        """Return a mesh with new types for the axes in `name_to_type`; the others are unchanged."""
        pairs = zip(self.axis_names, self.axis_types, strict=True)
        return self.update(axis_types=tuple(name_to_type.get(name, each) for name, each in pairs))

    def _without_devices(self, name: str) -> ValueError:
        return ValueError(f"{self!r} has no {name}: an AbstractMesh has no devices, a Mesh does")

    @property
    def devices(self) -> np.ndarray:
        raise self._without_devices("devices")

    @property
    def device_ids(self) -> np.ndarray:
        raise self._without_devices("device_ids")

    @property
    def is_multi_process(self) -> bool:
        raise self._without_devices("processes")

    @property
    def local_devices(self) -> "list[Device]":
        raise self._without_devices("local_devices")

    @property
    def local_mesh(self) -> "AbstractMesh":
        raise self._without_devices("local_mesh")


_abstract_meshes: dict[Hashable, AbstractMesh] = {}


def _remade_abstract(
    sizes: tuple[int, ...], names: AxisNames, types: AxisTypes, device: AbstractDevice | None
) -> AbstractMesh:
    return AbstractMesh(sizes, names, types, abstract_device=device)


class Mesh(NamedAxes):
    """A mesh: an array of devices whose axes have names. Equal meshes are one object.

    Args:
      devices: an array of devices, or nested sequences of them.
      axis_names: a name for each axis; a string is one name.
      axis_types: a tuple of the types of the axes; None is Auto for all.

    Raises:
      ValueError: if the numbers of axes, names and types differ, or a name is None or repeated.
        JAX accepts a mesh with repeated names, which XLA then rejects or crashes on.
      TypeError: if a type is not an AxisType.
    """

    __slots__ = (
        "__weakref__",
        "_abstract",
        "_key",
        "axis_names",
        "axis_types",
        "device_list",
        "devices",
        "shape_tuple",
    )

    devices: np.ndarray
    _key: tuple[Hashable, ...]
    # The mesh without devices; None until it is first used.
    _abstract: AbstractMesh | None
    # The devices as jaxlib's DeviceList; None until a sharding first uses it.
    device_list: "DeviceList | None"

    def __new__(
        cls,
        devices: np.ndarray | Sequence[object],
        axis_names: AxisNames,
        axis_types: AxisTypes = None,
    ) -> "Mesh":
        array = np.array(devices, dtype=object)
        names = _names(axis_names)
        if array.ndim != len(names):
            raise ValueError(
                "Mesh requires as many names of axes as `devices` has axes: got devices of shape "
                f"{array.shape} and {len(names)} names, {names}"
            )
        if None in names:
            raise ValueError(f"Mesh axis names cannot be None. Got: {names}")
        if len(set(names)) != len(names):
            raise ValueError(f"Mesh axis names must be different. Got: {names}")
        types = _types(axis_types, names, "Mesh")
        if not array.size or (not array.ndim and array.item() is None):
            # A mesh of no devices is the empty mesh, which has no axes.
            array, names, types = np.array(None, dtype=object), (), ()
        key = (tuple(array.flat), array.shape, names, types)
        with _lock:
            mesh = _meshes.get(key)
            if mesh is None:
                mesh = object.__new__(cls)
                array.flags.writeable = False
                _fill(mesh, "_key", key)
                _fill(mesh, "device_list", None)
                _fill(mesh, "_abstract", None)
                _fill(mesh, "devices", array)
                _fill(mesh, "axis_names", names)
                _fill(mesh, "axis_types", types)
                _fill(mesh, "shape_tuple", tuple(zip(names, array.shape, strict=True)))
                _meshes[key] = mesh
        return mesh

    def __reduce__(self) -> tuple[object, ...]:
        return Mesh, (self.devices, self.axis_names, self.axis_types)

    def __repr__(self) -> str:
        types = f", axis_types={self.axis_types}" if self.size else ""
        return f"Mesh(axis_sizes={self.axis_sizes}, axis_names={self.axis_names}{types})"

    def __str__(self) -> str:
        if self.empty:
            return "Mesh()"
        sizes = ", ".join(f"{name!r}: {size}" for name, size in self.shape_tuple)
        return f"Mesh({sizes}, axis_types={self.axis_types})"

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        """The number of devices along each axis."""
        return self.devices.shape

    @property
    def size(self) -> int:
        """The number of devices."""
        return 0 if self.empty else self.devices.size

    @property
    def empty(self) -> bool:
        """True if the mesh has no devices."""
        return not self.devices.ndim and self.devices.item() is None

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """The AbstractMesh with the axes and the kind of devices of this mesh."""
        abstract = self._abstract
        if abstract is None:
            abstract = AbstractMesh(
                self.axis_sizes,
                self.axis_names,
                self.axis_types,
                abstract_device=_kind_of_devices(self.devices),
            )
            _fill(self, "_abstract", abstract)
        return abstract

    def __enter__(self) -> "Mesh":
        """Let with_sharding_constraint accept PartitionSpecs of this mesh in the block; deprecated.

        Raises:
          RuntimeError: if the option jax_disallow_mesh_context_manager is on.
        """
        if _disallow_with.value:
            raise RuntimeError(
                "`with mesh:` is off, as the option jax_disallow_mesh_context_manager is on: give "
                "with_sharding_constraint shardings that have their mesh with them, "
                "NamedSharding(mesh, spec)"
            )
        warnings.warn(
            "`with mesh:` is deprecated: give with_sharding_constraint shardings that have their "
            "mesh with them, NamedSharding(mesh, spec)",
            DeprecationWarning,
            stacklevel=2,
        )
        _entered.set_local((*_entered.value, self))
        return self

    def __exit__(self, *_: object) -> bool:
        _entered.set_local(_entered.value[:-1] or unset)
        return False

    @property
    def device_ids(self) -> np.ndarray:
        """The ids of the devices, an integer array of the mesh's shape."""
        return np.array([device.id for device in self.devices.flat]).reshape(self.devices.shape)

    @property
    def is_multi_process(self) -> bool:
        """True if the devices belong to several processes."""
        return len({device.process_index for device in self.devices.flat}) > 1

    @property
    def local_devices(self) -> "list[Device]":
        """The devices of the mesh that belong to this process."""
        return [
            device
            for device in self.devices.flat
            if device.process_index == device.client.process_index()
        ]

    @property
    def local_mesh(self) -> "Mesh":
        """The part of the mesh whose devices belong to this process.

        Raises:
          ValueError: if they do not form a block of the mesh.
        """
        local = set(self.local_devices)
        if len(local) == self.size:
            return self
        here = [device in local for device in self.devices.flat]
        positions = np.argwhere(np.reshape(here, self.devices.shape))
        block = tuple(slice(low, high + 1) for low, high in zip(positions.min(0), positions.max(0)))
        part = self.devices[block]
        if part.size != len(local):
            raise ValueError(f"the devices of this process do not form a block of {self!r}")
        return self.update(devices=part)

    def update(
        self,
        devices: np.ndarray | None = None,
        axis_names: AxisNames = None,
        axis_types: tuple[AxisType, ...] | None = None,
    ) -> "Mesh":
        """Return a mesh with some fields replaced; None leaves a field unchanged."""
        return Mesh(
            self.devices if devices is None else devices,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
        )


_meshes: dict[Hashable, Mesh] = {}


def _kind_of_devices(devices: np.ndarray) -> AbstractDevice | None:
    """Return the AbstractDevice of the first device; None for an empty array or unknown devices."""
    device = next(devices.flat, None)
    kind = getattr(device, "device_kind", None)
    if kind is None:
        return None
    return AbstractDevice(kind, getattr(device, "num_cores", None), getattr(device, "platform", ""))


# The meshes that this thread has entered; programs depend on them, as they do on options.
_disallow_with = options["jax_disallow_mesh_context_manager"]
_entered = Option("meshes", (), OptionKind("a tuple of meshes", lambda value: value, str), "", True)


def entered_mesh() -> Mesh | None:
    """Return the innermost mesh that this thread has entered by `with mesh`, or None."""
    entered = _entered.value
    return entered[-1] if entered else None
