"""Arrangement of devices in a mesh, so that neighbors on its axes are physical neighbors."""

import itertools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, SupportsIndex, overload

import numpy as np

from hlofront.bridge.client import Device
from hlofront.core.sharding.mesh import AxisType, Mesh
from hlofront.pjrt import clients

# A function that arranges devices in an array of a mesh's shape; None where it cannot.
Arranger = Callable[[Sequence[int], Sequence[Device]], np.ndarray | None]

# The ring order of the eight cores of a 2x2 tray of TPU v2 or v3, and of the chips of one host.
_RING_OF_CORES = (0, 1, 2, 3, 6, 7, 4, 5)
_RING_OF_FOUR = (0, 1, 3, 2)
_RING_OF_EIGHT = (0, 1, 2, 3, 7, 6, 5, 4)
_RING_OF_CUBE = (0, 1, 3, 2, 6, 7, 5, 4)
_RING_OF_SIXTEEN = (0, 1, 2, 3, 7, 6, 5, 9, 10, 11, 15, 14, 13, 12, 8, 4)


def _ring(order: tuple[int, ...]) -> Arranger:
    def arrange(mesh_shape: Sequence[int], devices: Sequence[Device]) -> np.ndarray | None:
        """Return the devices in ring order if they are as many as the ring has, else None."""
        if len(devices) == len(order):
            return np.asarray(devices)[list(order)].reshape(mesh_shape)
        return None

    return arrange


def _cores(mesh_shape: Sequence[int], devices: Sequence[Device]) -> np.ndarray | None:
    """Return the cores of TPU v2 and v3 in ring order within each tray of eight, or None."""
    if len(devices) == 8:
        return np.asarray(devices)[list(_RING_OF_CORES)].reshape(mesh_shape)
    if mesh_shape[-1] == 8:
        return np.asarray(devices).reshape(mesh_shape)[..., list(_RING_OF_CORES)]
    return None


def _chips_of_one_host(mesh_shape: Sequence[int], devices: Sequence[Device]) -> np.ndarray | None:
    """Return a slice of 4, 8 or, for one long axis, 16 chips in ring order; otherwise None."""
    if len(devices) == 16 and max(mesh_shape) == 16:
        return np.asarray(devices)[list(_RING_OF_SIXTEEN)].reshape(mesh_shape)
    if len(devices) == 8:
        return np.asarray(devices)[list(_RING_OF_EIGHT)].reshape(mesh_shape)
    if len(devices) == 4:
        return np.asarray(devices)[list(_RING_OF_FOUR)].reshape(mesh_shape)
    return None


def _cube(mesh_shape: Sequence[int], devices: Sequence[Device]) -> np.ndarray | None:
    """Return the chips of a cube of 2x2x2 in ring order; otherwise None."""
    coordinates = [tuple(getattr(device, "coords", (0, 0, 0))) for device in devices]
    if len(devices) != 8 or {max(column) for column in zip(*coordinates, strict=True)} != {1}:
        return None
    ordered = sorted(devices, key=lambda device: tuple(reversed(device.coords)))
    return np.asarray(ordered)[list(_RING_OF_CUBE)].reshape(mesh_shape)


def _trays(mesh_shape: Sequence[int], devices: Sequence[Device]) -> np.ndarray | None:
    """Return up to four trays of eight cores, one behind the other, in rings; otherwise None."""
    if len(devices) % 8 or len(devices) > 32 or max(_torus(devices).shape[:2]) > 2:
        return None
    trays = np.asarray(devices).reshape(-1, 8)
    return trays[:, list(_RING_OF_CORES)].reshape(mesh_shape)


device_kind_handler_dict: dict[str, Arranger] = {
    "TPU v2": _cores,
    "TPU v3": _cores,
    "TPU v4 lite": _ring(_RING_OF_FOUR),
    "TPU v5 lite": _chips_of_one_host,
    "TPU v5p": _cube,
    "TPU v6 lite": _chips_of_one_host,
    "TPU7": _trays,
    "TPU7x": _trays,
    "TPU8i": _ring(_RING_OF_FOUR),
}
"""By kind of device, the function that arranges small meshes of it."""


def create_device_mesh(
    mesh_shape: Sequence[int],
    devices: Sequence[Device] | None = None,
    *,
    contiguous_submeshes: bool = False,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """Return the devices as an array of this shape, arranged for fast communication along its axes.

    On TPUs each axis of the mesh becomes whole axes of the torus that the chips are wired as, the
    last axis first: it should be that of the most communication. Other devices stay in order.

    Args:
      mesh_shape: the number of devices along each axis.
      devices: the devices, by default all; may be those of a target or topology.
      contiguous_submeshes: whether the devices of each process must be a block of the mesh.
      allow_split_physical_axes: whether a torus axis may be split over several mesh axes.

    Raises:
      ValueError: if there are not as many devices as the shape requires, or the devices of a
        process cannot be a block.
      NotImplementedError: if no axes of the torus fit.
    """
    devices = clients.devices() if devices is None else list(devices)
    mesh_shape = tuple(mesh_shape)
    if math.prod(mesh_shape) != len(devices):
        raise ValueError(
            f"Number of devices {len(devices)} must equal the product of mesh_shape {mesh_shape}, "
            f"which is {math.prod(mesh_shape)}"
        )
    last = devices[-1]
    arrange = device_kind_handler_dict.get(last.device_kind)
    arranged = arrange(mesh_shape, devices) if arrange is not None else None
    if arranged is not None:
        return arranged
    if last.platform != "tpu":
        return _as_array(devices).reshape(mesh_shape)
    physical = _torus(devices)
    if not contiguous_submeshes:
        return _fitted(physical, mesh_shape, allow_split_physical_axes)
    for order in itertools.permutations(range(physical.ndim)):
        try:
            mesh = _fitted(physical.transpose(order), mesh_shape, allow_split_physical_axes)
        except NotImplementedError:  # raised for every order
            break
        if _has_blocks(mesh):
            return mesh
    raise ValueError(
        f"no arrangement of these devices as {mesh_shape} has those of each process as one block: "
        "leave contiguous_submeshes out, or choose a shape that is a multiple of one process's"
    )


def _as_array(devices: Sequence[Device]) -> np.ndarray:
    array = np.empty(len(devices), object)
    array[:] = devices
    return array


def _torus(devices: Sequence[Device]) -> np.ndarray:
    """Return TPUs as an array indexed by coordinates, with a last axis for cores, if several."""
    coordinates = [(*device.coords, device.core_on_chip) for device in devices]
    lowest = np.min(coordinates, axis=0)
    shape = np.max(coordinates, axis=0) - lowest + 1
    if math.prod(shape) != len(devices):
        raise ValueError(
            f"the {len(devices)} devices do not form a block of a torus: their coordinates span "
            f"{tuple(map(int, shape))}"
        )
    torus = np.empty(tuple(shape), object)
    for position, device in zip(coordinates, devices, strict=True):
        torus[tuple(np.array(position) - lowest)] = device
    return torus if torus.shape[-1] > 1 else torus[..., 0]


def _fitted(physical: np.ndarray, mesh_shape: tuple[int, ...], may_split: bool) -> np.ndarray:
    """Return the array of devices with the torus axes grouped into mesh axes."""
    chosen = _whole_axes(physical.shape, mesh_shape)
    if chosen is None and may_split:
        physical, chosen = _split_axes(physical, mesh_shape)
    if chosen is None:
        raise NotImplementedError(  # JAX raises this class.
            f"Failed to find an assignment of the physical axes {physical.shape} to the mesh "
            f"{mesh_shape}: each axis of the mesh is a product of whole physical ones. Choose "
            "other sizes, or pass allow_split_physical_axes=True."
        )
    free_axes = [
        axis for axis in range(physical.ndim) if not any(axis in group for group in chosen)
    ]
    order = [axis for group in chosen for axis in group] + free_axes
    return physical.transpose(order).reshape(mesh_shape)


def _whole_axes(
    sizes: tuple[int, ...], mesh_shape: tuple[int, ...]
) -> list[tuple[int, ...]] | None:
    """Return per mesh axis the physical axes whose sizes multiply to its size; None if none fit."""
    free = dict(enumerate(sizes))
    chosen: list[tuple[int, ...]] = [()] * len(mesh_shape)
    for axis in reversed(range(len(mesh_shape))):
        remaining = mesh_shape[axis]
        if remaining == 1:
            continue
        for count in range(len(sizes), 0, -1):
            axes = [i for i, size in free.items() if size > 1]
            fits = (
                group
                for group in itertools.combinations(axes, count)
                if math.prod(free[i] for i in group) == remaining
            )
            group = next(fits, None)
            if group is not None:
                chosen[axis] = group
                for i in group:
                    del free[i]
                break
        else:
            return None
    return chosen


def _split_axes(
    physical: np.ndarray, mesh_shape: tuple[int, ...]
) -> tuple[np.ndarray, list[tuple[int, ...]] | None]:
    """Return the torus with axes split into factors, and the factors that form each mesh axis."""
    pieces: list[list[tuple[int, int]]] = [[] for _ in physical.shape]
    left = list(physical.shape)
    for axis in reversed(range(len(mesh_shape))):
        remaining = mesh_shape[axis]
        while remaining > 1:
            shared = [math.gcd(remaining, size) for size in left]
            # Prefer an axis that this factor uses up.
            best = max(
                range(len(left)), key=lambda i: (shared[i] > 1 and shared[i] == left[i], shared[i])
            )
            if shared[best] == 1:
                return physical, None
            pieces[best].append((axis, shared[best]))
            left[best] //= shared[best]
            remaining //= shared[best]
    shape: list[int] = []
    chosen: list[list[int]] = [[] for _ in mesh_shape]
    for parts in pieces:
        # Factors that were taken first are neighbors, and therefore minor.
        for axis, size in reversed(parts):
            chosen[axis].append(len(shape))
            shape.append(size)
    return physical.reshape(shape), [tuple(group) for group in chosen]


def _has_blocks(mesh: np.ndarray) -> bool:
    """Return whether the devices of each process form a block of the mesh."""
    of_process: dict[int, list[tuple[int, ...]]] = {}
    for index in np.ndindex(mesh.shape):
        device: Device = mesh[index]  # pyright: ignore[reportAssignmentType]
        of_process.setdefault(device.process_index, []).append(index)
    for indices in of_process.values():
        spans = np.max(indices, axis=0) - np.min(indices, axis=0) + 1
        if math.prod(spans) != len(indices):
            return False
    return True


def _axis_size(size: SupportsIndex | float | str) -> int:
    """Return a size as an integer; 2.0 and "2" are accepted too."""
    if isinstance(size, float | str):
        if int(size) != float(size):
            raise ValueError(size)
        return int(size)
    return operator.index(size)


@overload
def make_mesh(
    axis_sizes: Sequence[int],
    axis_names: Sequence[str],
    axis_types: tuple[AxisType, ...] | None = None,
    *,
    devices: Sequence[Device] | None = None,
) -> Mesh: ...


@overload
def make_mesh(
    *,
    axis_shapes: Sequence[int],
    axis_names: Sequence[str],
    axis_types: tuple[AxisType, ...] | None = None,
    devices: Sequence[Device] | None = None,
) -> Mesh: ...


def make_mesh(
    axis_sizes: Any = None,
    axis_names: Any = None,
    axis_types: tuple[AxisType, ...] | None = None,
    *,
    devices: Sequence[Device] | None = None,
    axis_shapes: Any = None,
) -> Mesh:
    """Return a mesh of devices that are arranged for fast communication along its axes.

    Args:
      axis_sizes: the number of devices along each axis.
      axis_names: the name of each axis.
      axis_types: the type of each axis; as in JAX, all are Explicit by default. Arrays are
        split along axes of type Auto: pass `(AxisType.Auto,) * len(axis_names)`.
      devices: the devices, by default all; may be those of a target. The mesh uses as many of the
        first as it needs.
      axis_shapes: the name of `axis_sizes` before jax 0.12.

    Raises:
      TypeError: if sizes or names are missing, or sizes are passed twice.
      ValueError: if there are too few devices, the numbers of names or types and of axes differ, or
          a size is not an integer.
    """
    if (axis_sizes is None) == (axis_shapes is None) or axis_names is None:
        raise TypeError(
            "make_mesh requires axis_sizes and axis_names; axis_shapes is a former name of "
            f"axis_sizes: got axis_sizes={axis_sizes!r}, axis_shapes={axis_shapes!r} and "
            f"axis_names={axis_names!r}"
        )
    sizes: Any = axis_shapes if axis_sizes is None else axis_sizes
    try:
        shape = tuple(map(_axis_size, sizes))
    except (TypeError, ValueError):
        raise ValueError(
            f"axis_sizes of make_mesh is a sequence of integers, one per axis: got {sizes!r}"
        ) from None
    available = list(clients.devices() if devices is None else devices)
    count = math.prod(shape)
    if len(available) < count:
        raise ValueError(
            f"Number of devices {len(available)} must be >= the product of mesh_shape {shape}, "
            f"which is {count}"
        )
    arranged = create_device_mesh(shape, available[:count], allow_split_physical_axes=True)
    if axis_types is None:
        axis_types = (AxisType.Explicit,) * len(shape)
    return Mesh(arranged, axis_names, axis_types)


def create_hybrid_device_mesh(
    mesh_shape: Sequence[int],
    dcn_mesh_shape: Sequence[int],
    devices: Sequence[Device] | None = None,
    *,
    process_is_granule: bool = False,
    should_sort_granules_by_key: bool = True,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """Return the devices of several slices as an array with few axes across the slow network.

    Args:
      mesh_shape: the shape of each slice's part.
      dcn_mesh_shape: the number of slices along each of those axes.
      devices: the devices, by default all.
      process_is_granule: whether the parts are processes instead of slices.
      should_sort_granules_by_key: whether the parts are ordered by their numbers instead of by
        their first devices.
      allow_split_physical_axes: see `create_device_mesh`.

    Returns:
      An array whose shape is the product of both shapes, axis by axis.

    Raises:
      ValueError: if the shapes differ in length, or the number of parts is not that of the shape.
    """
    devices = clients.devices() if devices is None else list(devices)
    mesh_shape, outer = tuple(mesh_shape), tuple(dcn_mesh_shape)
    if len(mesh_shape) != len(outer):
        raise ValueError(f"mesh_shape {mesh_shape} and dcn_mesh_shape {outer} differ in length")
    attribute = "process_index" if process_is_granule else "slice_index"
    if not hasattr(devices[0], attribute):
        raise ValueError(
            f"{devices[0]} has no {attribute}: with process_is_granule=True the parts are processes"
        )
    granules: dict[int, list[Device]] = {}
    for device in devices:
        granules.setdefault(getattr(device, attribute), []).append(device)
    keys = sorted(granules) if should_sort_granules_by_key else list(granules)
    if math.prod(outer) != len(keys):
        raise ValueError(
            f"Number of slices {len(keys)} must equal the product of dcn_mesh_shape {outer}"
        )
    whole = np.empty([a * b for a, b in zip(mesh_shape, outer, strict=True)], object)
    for key, index in zip(keys, np.ndindex(outer), strict=True):
        part = tuple(slice(i * n, (i + 1) * n) for i, n in zip(index, mesh_shape, strict=True))
        whole[part] = create_device_mesh(
            mesh_shape, granules[key], allow_split_physical_axes=allow_split_physical_axes
        )
    return whole
