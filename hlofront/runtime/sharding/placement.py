"""The choice of the device of a computation, and the transfer of host values to it."""

import functools
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from hlofront.base.array_lines import remembered
from hlofront.base.config import enable_x64, options
from hlofront.base.dtypes import float0
from hlofront.base.errors import AbsentDeviceError
from hlofront.bridge.arrays import KEEP, READ_NOW, batched_device_put
from hlofront.bridge.client import (
    ArrayImpl,
    Device,
    Sharding,
    SingleDeviceSharding,
    is_absent,
)
from hlofront.bridge.members import device_of, is_committed, memory_kind_of, sharding_of
from hlofront.core.aval import MemorySpace, ShapedArray, host_values
from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.core.sharding.mesh_context import context_mesh
from hlofront.pjrt import clients
from hlofront.pjrt.deletion import check_not_deleted
from hlofront.pjrt.shardings import on_device as on_device
from hlofront.runtime.sharding.device_assignment import (
    DeviceAssignment,
    ProgramDevices,
    device_assignment_of,
    placed,
    shardings_inside,
    spans_devices,
)
from hlofront.runtime.sharding.typed import (
    devices_of_arguments,
    in_memory_of,
    program_devices,
    replicated_over,
)
from hlofront.transforms.flatten import ShapeDtypeStruct, abstract

_default_device = options["jax_default_device"].cell


class DevicePlacement:
    """A device, with its representations for C++."""

    __slots__ = ("device", "devices", "sharding")

    def __init__(self, sharding: SingleDeviceSharding):
        check_attached(device_of(sharding))
        clients.check_not_forked("An operation")
        self.sharding = sharding
        self.device = device_of(sharding)
        self.devices = [self.device]


def check_attached(device: Device) -> None:
    """Raise AbsentDeviceError if a device is compile-only."""
    if not is_absent(device):
        return
    raise AbsentDeviceError(
        f"{device.device_kind} is not attached to this machine: programs can be compiled for "
        f"{device}, and neither run nor arrays be put there. To describe an argument that would be "
        "there, use ShapeDtypeStruct(shape, dtype); to compile for it, "
        "`with hlofront.target(name): jit(f).lower(x).compile()`."
    )


# Placements by device, for its default memory, and by sharding.
_placements: dict[Device | Sharding, DevicePlacement] = {}
# Placements of uncommitted values, by the value of the option jax_default_device.
_defaults: dict[Device | str | None, DevicePlacement] = {}
clients.on_reset(_placements.clear)
clients.on_reset(_defaults.clear)


def placement_of(sharding: SingleDeviceSharding) -> DevicePlacement:
    """Return the placement of a SingleDeviceSharding."""
    placement = _placements.get(sharding)
    if placement is None:
        sharding = on_device(device_of(sharding), memory_kind_of(sharding))
        placement = _placements[sharding] = DevicePlacement(sharding)
    return placement


def placement_on(device: Device) -> DevicePlacement:
    """Return the placement of a device's default memory."""
    placement = _placements.get(device)
    if placement is None:
        placement = _placements[device] = placement_of(on_device(device))
    return placement


def default_placement() -> DevicePlacement:
    """Return the placement of uncommitted values: jax_default_device, else the first device."""
    try:
        return _defaults[_default_device.value]
    except KeyError:
        chosen = _default_device.value
        if isinstance(chosen, str):
            placement = placement_on(clients.named_device(chosen))
        elif chosen is None:
            placement = placement_on(clients.local_devices()[0])
        else:
            placement = placement_on(chosen)
        _defaults[chosen] = placement
        return placement


def default_device() -> Device:
    """Return the device of uncommitted values: jax_default_device, else the first device."""
    return default_placement().device


def choose_device(args: Sequence[object]) -> tuple[ProgramDevices, bool]:
    """Return the device that a computation runs on, and whether its results are committed to it.

    If arguments are split over several devices, the device is a DeviceAssignment.

    Raises:
      ValueError: if arguments are committed to different devices.
    """
    return _one_device(args) or (device_assignment_of(args), True)


def _one_device(args: Sequence[object]) -> tuple[Device, bool] | None:
    """Return the result of `choose_device`, or None if arguments are on several devices."""
    chosen = None
    for x in args:
        if type(x) is not ArrayImpl:
            x = getattr(x, "_base", None)  # Random keys are stored as this array.
        if type(x) is ArrayImpl and is_committed(x):
            sharding = sharding_of(x)
            if type(sharding) is not SingleDeviceSharding:
                return None
            device = device_of(sharding)
            if chosen is None:
                chosen = device
            elif device != chosen:
                raise ValueError(
                    "Received incompatible devices for jitted computation: one argument is "
                    f"committed to {chosen}, another ({x.aval.str_short()}) to {device}. "
                    "Move them to one device with device_put."
                )
    if chosen is not None:
        return chosen, True
    return default_device(), False


def choose_placement(program: ClosedJaxpr, args: Sequence[object]) -> tuple[ProgramDevices, bool]:
    """Return the device of a program by its constraints and arguments, and if it commits results.

    Raises:
      ValueError: if arguments are committed to different devices, or not to those of the
        constraints.
    """
    inside, mesh = shardings_inside(program), context_mesh()
    if not inside and mesh is None:
        one_device = _one_device(args)
        return one_device or (devices_of_arguments(program, tuple(map(placed, args))), True)
    if mesh is not None or any(map(spans_devices, inside)):
        return program_devices(program, args), True
    device, committed = choose_device(args)
    if type(device) is DeviceAssignment and device.device_count == 1:
        device_inside(inside, device.device)
        return device, True
    return device_inside(inside, device if committed else None), True


def device_inside(inside: Sequence[Sharding], device: Device | None = None) -> Device:
    """Return the one device of the shardings in a program.

    Args:
      inside: the shardings in the program.
      device: the device that the program is to run on, or None if that is unknown.

    Raises:
      ValueError: if the shardings have another device, or several.
    """
    for sharding in inside:
        if device is None and not spans_devices(sharding):
            device = device_of(sharding)
        if sharding.device_set != {device}:
            raise ValueError(
                f"Received incompatible devices for jitted computation: it runs on {device}, and a "
                f"sharding inside of the function is {sharding}. Move its arguments to the "
                "devices of that with device_put."
            )
    return device


# ---- host values -------------------------------------------------------------------------------

# C++ reads these types directly, narrowing 64 bits to 32 if the aval is of 32 bits.
_read_directly = frozenset({np.ndarray, float, bool, complex})
_LIMITS = {np.dtype(name): np.iinfo(name) for name in ("int32", "int64")}


def readable(x: Any, aval: ShapedArray) -> object:
    """Convert a host value to one that C++ reads.

    Raises:
      OverflowError: if `x` is a Python integer that its dtype cannot hold.
    """
    type_ = type(x)
    if type_ in _read_directly:
        return x
    if type_ is int or (isinstance(x, int) and not isinstance(x, np.generic)):
        limits = _LIMITS.get(aval.dtype)
        if limits is not None:
            if limits.min <= x <= limits.max:
                return int(x)
            raise OverflowError(
                f"Python int {int(x)} too large to convert to {aval.dtype}: it takes "
                f"{limits.min} to {limits.max}. Give it as a float, or as a NumPy scalar of a "
                "dtype that holds it; 64-bit dtypes need jax_enable_x64."
            )
    if isinstance(x, ShapeDtypeStruct):
        raise no_value(x)
    return np.asarray(host_values.read(x), aval.dtype)


def no_value(struct: ShapeDtypeStruct, name: str = "") -> TypeError:
    """Return the TypeError for a ShapeDtypeStruct among the arguments of the function `name`."""
    aval = abstract(struct)
    return TypeError(
        f"Argument {name + ' ' if name else ''}of shape {aval.str_short()} of type {type(struct)} "
        "is not a valid JAX type: it has no value. Give an array to what runs; descriptions are "
        "for eval_shape, make_jaxpr and the methods trace and lower of jitted functions."
    )


def host_put(
    x: object, aval: ShapedArray, placement: DevicePlacement, committed: bool, copied: bool = False
) -> Any:
    """Put a host value on one device; return a NumPy array of float0 unchanged.

    With a mesh in context, a value that is not committed is replicated over the mesh.

    Args:
      x: a NumPy array or a scalar of the aval's shape. Its dtype may differ from the aval's only in
        having 64 bits instead of 32, or 32 instead of 64.
      aval: the type of the result.
      placement: the device.
      committed: whether computations with the result must run on the device.
      copied: whether its memory must be read now. Otherwise the result may share the memory of a
        NumPy array, and change with it.
    """
    if aval.dtype.itemsize >= 8 and not enable_x64.value and aval.dtype.kind in "iufc":
        # Without jax_enable_x64, jaxlib's C++ converts the value to a dtype of 32 bits.
        with enable_x64(True):
            made = _host_put(np.asarray(x, aval.dtype), aval, placement, committed, copied)
    else:
        made = _host_put(x, aval, placement, committed, copied)
    return remembered(made)


def _host_put(
    x: object, aval: ShapedArray, placement: DevicePlacement, committed: bool, copied: bool
) -> Any:
    if aval.dtype is float0:  # No device has this dtype.
        return x
    mesh = None if committed else context_mesh()
    if mesh is not None:
        sharding = replicated_over(mesh, aval.ndim)
        devices = list(sharding.addressable_devices_indices_map(aval.shape))
        return batched_device_put(aval, sharding, [readable(x, aval)] * len(devices), devices, True)
    return batched_device_put(
        aval,
        placement.sharding,
        [readable(x, aval)],
        placement.devices,
        committed,
        False,
        READ_NOW if copied else KEEP,
    )


def put(x: object, aval: ShapedArray, device: Device, committed: bool, copied: bool = False) -> Any:
    """Put a host value, or an array of another device, on a device.

    An array that is on the device already is returned unchanged.

    Raises:
      OverflowError: if `x` is a Python integer that its dtype cannot hold.
      RuntimeError: if `x` is an array that was deleted.
    """
    placement = placement_on(device)
    if aval.memory_space is not MemorySpace.Device:
        placement = placement_of(in_memory_of(aval, placement.sharding))
    if type(x) is not ArrayImpl:
        return host_put(x, aval, placement, committed, copied)
    check_not_deleted(x)
    sharding = sharding_of(x)
    if sharding is placement.sharding or sharding == placement.sharding:
        return x
    if type(sharding) is not SingleDeviceSharding:
        return resharding().resharded(x, placement.sharding)
    return batched_device_put(aval, placement.sharding, [x], placement.devices, committed)


@functools.cache
def resharding() -> ModuleType:
    """Import the module that moves arrays of several devices, on first use."""
    from hlofront.runtime.sharding import resharding

    return resharding
