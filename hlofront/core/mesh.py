"""Mesh: devices in an array whose axes have names."""

import enum
import threading
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np


class AxisType(enum.Enum):
    """Who says how arrays lie along an axis: XLA, their types, or the code of each device."""

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()

    def __repr__(self) -> str:
        return self.name


def _names(given: Any) -> tuple[Any, ...]:
    one = isinstance(given, str) or not hasattr(given, "__len__")
    return (given,) if one else tuple(given)


_lock = threading.Lock()
_meshes: dict[Any, "Mesh"] = {}


class Mesh:
    """Devices in an array whose axes have names. Equal ones are one object.

    Args:
      devices: an array of devices, or nested sequences of them.
      axis_names: a name for each axis; a string is one name.
      axis_types: the type of each axis; all are Auto if it is left out.

    Raises:
      ValueError: if there are not as many names or types as axes, or a name is None or given twice.
    """

    __slots__ = ("__weakref__", "_key", "axis_names", "axis_types", "derived", "devices")

    devices: np.ndarray
    axis_names: tuple[Hashable, ...]
    axis_types: tuple[AxisType, ...]
    _key: tuple[Any, ...]
    # What other floors made of it once and keep with it.
    derived: dict[Any, Any]

    def __new__(
        cls,
        devices: np.ndarray | Sequence[Any],
        axis_names: Any,
        axis_types: Any = None,
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
        if axis_types is None or isinstance(axis_types, AxisType):
            types: tuple[Any, ...] = (axis_types or AxisType.Auto,) * array.ndim
        else:
            types = tuple(axis_types)
        if len(types) != array.ndim or not all(isinstance(kind, AxisType) for kind in types):
            raise ValueError(
                f"Mesh wants one AxisType for each of its {array.ndim} axes, got {axis_types!r}"
            )
        key = (tuple(array.flat), array.shape, names, types)
        with _lock:
            found = _meshes.get(key)
            if found is None:
                found = super().__new__(cls)
                array.flags.writeable = False
                found._key = key
                found.derived = {}
                found.devices, found.axis_names, found.axis_types = array, names, types
                _meshes[key] = found
        return found

    def __reduce__(self) -> Any:
        return Mesh, (self.devices, self.axis_names, self.axis_types)

    def __deepcopy__(self, memo: Any) -> "Mesh":
        return self

    def __repr__(self) -> str:
        return (
            f"Mesh(axis_sizes={self.axis_sizes}, axis_names={self.axis_names}, "
            f"axis_types={self.axis_types})"
        )

    def __str__(self) -> str:
        sizes = ", ".join(f"{name!r}: {size}" for name, size in self.shape_tuple)
        return f"Mesh({sizes}, axis_types={self.axis_types})"

    @property
    def shape(self) -> OrderedDict[Hashable, int]:
        """How many devices there are along each axis, by its name."""
        return OrderedDict(self.shape_tuple)

    @property
    def shape_tuple(self) -> tuple[tuple[Hashable, int], ...]:
        """The same as pairs."""
        return tuple(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        return self.devices.shape

    @property
    def size(self) -> int:
        """How many devices there are."""
        return self.devices.size

    @property
    def empty(self) -> bool:
        return self.devices.ndim == 0

    @property
    def device_ids(self) -> np.ndarray:
        """The numbers of the devices, an array of the mesh's shape."""
        return np.array([device.id for device in self.devices.flat]).reshape(self.devices.shape)

    @property
    def is_multi_process(self) -> bool:
        """Whether its devices belong to several processes."""
        return len({device.process_index for device in self.devices.flat}) > 1

    @property
    def local_devices(self) -> list[Any]:
        """Those of its devices that belong to this process."""
        return [
            device
            for device in self.devices.flat
            if device.process_index == device.client.process_index()
        ]

    @property
    def local_mesh(self) -> "Mesh":
        """The part of it whose devices belong to this process.

        Raises ValueError if that is no block of the mesh.
        """
        local = set(self.local_devices)
        if len(local) == self.size:
            return self
        here = [device in local for device in self.devices.flat]
        places = np.argwhere(np.reshape(here, self.devices.shape))
        block = tuple(slice(low, high + 1) for low, high in zip(places.min(0), places.max(0)))
        part = self.devices[block]
        if part.size != len(local):
            raise ValueError(f"the devices of this process are no block of {self!r}")
        return self.update(devices=part)

    def _axes_of_type(self, kind: AxisType) -> tuple[Any, ...]:
        pairs = zip(self.axis_names, self.axis_types, strict=True)
        return tuple(name for name, each in pairs if each is kind)

    @property
    def auto_axes(self) -> tuple[Any, ...]:
        """The names of the axes of type Auto."""
        return self._axes_of_type(AxisType.Auto)

    @property
    def explicit_axes(self) -> tuple[Any, ...]:
        """The names of the axes of type Explicit."""
        return self._axes_of_type(AxisType.Explicit)

    @property
    def manual_axes(self) -> tuple[Any, ...]:
        """The names of the axes of type Manual."""
        return self._axes_of_type(AxisType.Manual)

    @property
    def are_all_axes_auto(self) -> bool:
        return len(self.auto_axes) == len(self.axis_names)

    @property
    def are_all_axes_explicit(self) -> bool:
        return len(self.explicit_axes) == len(self.axis_names)

    @property
    def are_all_axes_manual(self) -> bool:
        return len(self.manual_axes) == len(self.axis_names)

    def update(
        self,
        devices: np.ndarray | None = None,
        axis_names: Any = None,
        axis_types: tuple[AxisType, ...] | None = None,
    ) -> "Mesh":
        """A mesh that differs in what is given."""
        return Mesh(
            self.devices if devices is None else devices,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
        )
