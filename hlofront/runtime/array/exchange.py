"""Exchange of arrays with other processes and libraries: pickles, and DLPack both ways."""

import enum
from collections.abc import Callable
from typing import Any, Protocol, cast

import numpy as np

from hlofront.base.dtypes import array_dtype, dtype_of
from hlofront.base.typing import Array, DTypeLike, NumPyArray
from hlofront.bridge import arrays as bridge
from hlofront.bridge.client import ArrayImpl, Device, SingleDeviceSharding
from hlofront.bridge.members import sharding_of
from hlofront.core.aval import ShapedArray, typeof
from hlofront.pjrt import clients
from hlofront.pjrt.deletion import check_not_deleted
from hlofront.pjrt.host_value import host_value
from hlofront.runtime.array.transfer import copied
from hlofront.runtime.sharding.placement import (
    DevicePlacement,
    default_placement,
    host_put,
    placement_of,
    placement_on,
)


class SupportsDLPack(Protocol):
    """The protocol of another library's array that exports its memory by DLPack."""

    def __dlpack__(self, *, stream: int | None = ..., **options: object) -> object: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...


# ---- pickles -----------------------------------------------------------------------------------


def reduce_array(
    array: Array,
) -> tuple[Callable[[NumPyArray, bool], Array], tuple[NumPyArray, bool]]:
    """Return pickle's representation of an array: a function, its NumPy value and weak type."""
    return unpickled, (host_value(array), array.aval.weak_type)


def unpickled(value: NumPyArray, weak_type: bool) -> Array:
    """Reconstruct a pickled array on the default device."""
    aval = ShapedArray(value.shape, array_dtype(value.dtype), weak_type)
    return host_put(value, aval, default_placement(), False, copied=True)


# ---- DLPack: export ----------------------------------------------------------------------------


class DLDeviceType(enum.IntEnum):
    """The kinds of devices, by their numbers in DLPack."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLROCM = 10


_PLATFORMS = {
    DLDeviceType.kDLCPU: "cpu",
    DLDeviceType.kDLCUDA: "cuda",
    DLDeviceType.kDLROCM: "rocm",
}
_KINDS = {platform: kind for kind, platform in _PLATFORMS.items()}
_EXCHANGED = frozenset(
    np.dtype(name)
    for name in (
        "bool",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float16",
        "float32",
        "float64",
        "complex64",
        "complex128",
        "bfloat16",
    )
)
# Unversioned capsules are of DLPack 0.5 to 0.8.
_OLDEST = (0, 5)


def is_supported_dtype(dtype: DTypeLike) -> bool:
    """Return whether arrays of this dtype can be exchanged by DLPack.

    Raises:
      TypeError: if `dtype` is not a dtype.
    """
    return dtype_of(dtype) in _EXCHANGED


def dlpack_device(array: Array) -> tuple[DLDeviceType, int]:
    """Return the device of an array in DLPack's terms: its type and its number."""
    device = _only_device(array)
    # Virtual CPU devices share one memory, which DLPack numbers 0.
    kind = _kind_of(device)
    return kind, 0 if kind is DLDeviceType.kDLCPU else device.local_hardware_id


def _only_device(array: Array) -> Device:
    """Return the device of an array; raise BufferError if it has several."""
    check_not_deleted(array)
    devices = sharding_of(array).device_set
    if len(devices) != 1:
        raise BufferError(
            f"DLPack takes arrays of one device, and {array.aval.str_short()} is on "
            f"{len(devices)}. Exchange its shards: addressable_shards[i].data"
        )
    (device,) = devices
    return device


def _kind_of(device: Device) -> DLDeviceType:
    kind = _KINDS.get(clients.lowering_platform(device))
    if kind is None:
        raise BufferError(
            f"DLPack does not support arrays on {device.platform}, only on {', '.join(_KINDS)}: "
            "move the array there with device_put"
        )
    return kind


def to_dlpack(
    array: Array,
    *,
    stream: int | None = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> object:
    """Return a DLPack capsule of an array.

    Args:
      array: an array on one device.
      stream: the consumer's stream of a GPU, which then waits for the array.
      max_version: the newest version of DLPack that the consumer reads.
      dl_device: the device that the consumer requests; by default the array's own.
      copy: True for a copy, False for shared memory, None for a copy only where needed.

    Raises:
      BufferError: if the request of the consumer or of the array's device cannot be met.
      RuntimeError: if the array was deleted, DLPack lacks its dtype, or this process
        does not have the requested device.
    """
    device = _only_device(array)
    if max_version is not None and tuple(max_version) < _OLDEST:
        raise BufferError(
            f"the consumer reads DLPack up to version {max_version}, and the oldest that can be "
            f"had is {_OLDEST}"
        )
    if dl_device is not None and tuple(dl_device) != dlpack_device(array):
        kind, number = dl_device
        target = _device_of(kind, number)
        if copy is False:
            raise ValueError(
                f"dl_device={dl_device} is not where the array is, {dlpack_device(array)}, and "
                "copy=False forbids to copy it there"
            )
        array, copy = copied(array, placement_on(target)), False
    _kind_of(device)
    if copy:
        array = copied(array, None)
    return bridge.to_dlpack(array, stream, max_version, bool(copy))


# ---- DLPack: import ----------------------------------------------------------------------------


def from_dlpack(
    external_array: SupportsDLPack,
    device: Device | SingleDeviceSharding | None = None,
    copy: bool | None = None,
) -> Array:
    """Return an array of another library as an Array, which shares its memory where possible.

    The other library's array must not change afterwards.

    Args:
      external_array: any object with `__dlpack__` and `__dlpack_device__`: an array of NumPy,
        torch, cupy and so on.
      device: the device or single-device sharding of the result; by default the array's own.
      copy: True for a copy; False for an error where one would be needed; None for a copy only
        where needed.

    Raises:
      TypeError: if `external_array` does not support DLPack.
      ValueError: if a copy is needed and copy is False, or `device` is neither a device nor a
        single-device sharding.
      RuntimeError: if this process does not have the array's device, or DLPack or hlofront does
        not support its dtype or its order of elements in memory.
    """
    if not (hasattr(external_array, "__dlpack__") and hasattr(external_array, "__dlpack_device__")):
        raise TypeError(
            "The array passed to from_dlpack must have __dlpack__ and __dlpack_device__ methods: "
            f"got a value of type {type(external_array).__name__}. A bare capsule does not say "
            "where its memory is; pass the array that it is of."
        )
    kind, number = external_array.__dlpack_device__()
    source = _device_of(kind, number)
    placement = placement_on(source) if device is None else _placement(device)
    if isinstance(external_array, np.ndarray) and copy is not False:
        # C++ shares NumPy's memory directly, and also reads every stride and read-only arrays.
        return host_put(external_array, typeof(external_array), placement, True, copied=bool(copy))
    # The C API of plugins imports no copies, and CPUs share aligned memory all the same.
    imported = _imported(external_array, source, False if copy is False else None)
    if imported is None:
        host = np.from_dlpack(external_array)
        return host_put(host, typeof(host), placement, True, copied=True)
    expected = array_dtype(imported.aval.dtype)
    if expected != imported.aval.dtype:
        if copy is False:
            raise ValueError(
                f"the array's dtype {imported.aval.dtype} becomes {expected} while 64-bit dtypes "
                "are off, and copy=False forbids a copy: set jax_enable_x64, or omit copy"
            )
        host = host_value(imported)
        return host_put(host, typeof(host), placement, True, copied=True)
    if sharding_of(imported) != placement.sharding:
        if copy is False and placement.device != source:
            raise ValueError(
                f"the array is on {source}, not on {placement.device} as requested, and copy=False "
                "forbids a copy"
            )
        return bridge.batched_device_put(
            imported.aval, placement.sharding, [imported], placement.devices, True
        )
    return copied(imported) if copy else imported


class SupportsCudaArrayInterface(Protocol):
    """The protocol of another library's array that describes its memory on a CUDA GPU."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...


def is_on_gpu(x: object) -> bool:
    """Return whether a value is another library's array on a GPU, which NumPy cannot read."""
    if hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__"):
        kind, _ = cast("SupportsDLPack", x).__dlpack_device__()
        return kind != DLDeviceType.kDLCPU and kind in _PLATFORMS
    return hasattr(x, "__cuda_array_interface__")


def from_gpu(x: SupportsDLPack | SupportsCudaArrayInterface) -> Array:
    """Return an array with the memory of another library's array for which `is_on_gpu` is true.

    DLPack is preferred to `__cuda_array_interface__`, as both libraries then agree on when the
    values are ready. Memory of a 64-bit dtype is converted while such dtypes are off.

    Raises:
      RuntimeError: if this process does not have the array's device.
    """
    if hasattr(x, "__dlpack__"):
        return from_dlpack(cast("SupportsDLPack", x))
    interface = cast("SupportsCudaArrayInterface", x).__cuda_array_interface__
    client = clients.client_for("cuda")
    address = interface["data"][0]
    number = clients.number_of_gpu(address) if address else None
    imported = bridge.from_cuda_array_interface(interface, client, number)
    if array_dtype(imported.aval.dtype) == imported.aval.dtype:
        return imported
    host = host_value(imported)
    return host_put(host, typeof(host), placement_of(sharding_of(imported)), True, copied=True)


def _imported(external: SupportsDLPack, source: Device, copy: bool | None) -> Array | None:
    """Import an array by its capsule; return None where NumPy must first make it contiguous."""
    on_host = source.platform == "cpu"
    if isinstance(external, ArrayImpl):
        capsule = bridge.to_dlpack(external, None, None, False)
        return bridge.from_dlpack(capsule, source, None, copy)
    stream = None if on_host else source.get_stream_for_external_ready_events()
    try:
        capsule = _capsule(external, stream)
    except BufferError:
        if on_host and copy is not False:
            return None
        raise
    try:
        return bridge.from_dlpack(capsule, source, stream, copy)
    except bridge.JaxRuntimeError as error:
        # The array is not contiguous.
        if on_host and copy is not False and "striding" in str(error):
            return None
        if copy is False and "view" in str(error):
            raise ValueError(f"from_dlpack with copy=False needs a copy here: {error}") from None
        raise


def _capsule(external: SupportsDLPack, stream: int | None) -> object:
    if bridge.dlpack_version >= (1, 0):
        try:
            return external.__dlpack__(stream=stream, max_version=bridge.dlpack_version)
        except TypeError:  # The library predates DLPack 1.0.
            pass
    return external.__dlpack__(stream=stream)


def _device_of(kind: int, number: int) -> Device:
    platform = _PLATFORMS.get(kind)
    if platform is None:
        raise BufferError(
            f"DLPack device type {kind} is none that arrays can be on: {', '.join(_KINDS)}"
        )
    if platform == "cpu":
        return clients.local_devices("cpu")[0]
    return clients.client_for(platform).device_from_local_hardware_id(number)


def _placement(device: Device | SingleDeviceSharding) -> DevicePlacement:
    if type(device) is SingleDeviceSharding:
        return placement_of(device)
    return placement_on(device)
