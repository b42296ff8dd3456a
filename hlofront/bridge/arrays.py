"""Calls of jaxlib's C++ on arrays: copy, wait for, assemble, exchange by DLPack."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hlofront.bridge import state
from hlofront.bridge.client import Client, Device, Sharding
from hlofront.bridge.jax_shims import shims_installed
from hlofront.bridge.members import device_list_of

if TYPE_CHECKING:
    from hlofront.bridge.jaxlib_types import GuardState

_jax = state.extension

ArrayImpl = state.ArrayImpl
CopySemantics: Any = _jax.ArrayCopySemantics
JaxRuntimeError = state.JaxRuntimeError
# Return an array assembled from its shards, one per device:
# `batched_device_put(aval, sharding, shards, devices, committed, force_copy, semantics)`.
batched_device_put: Callable[..., Any] = _jax.batched_device_put
# Block until all these arrays are computed.
block_all: Callable[[Sequence[object]], None] = _jax.batched_block_until_ready
# Semantics of copies from NumPy: with KEEP, C++ may alias the host memory; with READ_NOW, it must
# read the memory before it returns.
KEEP: object = _jax.HostBufferSemantics.ZERO_COPY
READ_NOW: object = _jax.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL

# C++ imports parts of jax when it constructs an array, so the shims are installed around that.


# The parameters are C++ arrays, whose public type `Array` is in a higher layer.
def pieces(array: Any) -> list[Any]:
    """Return a single-device array per addressable device, in the sharding's order."""
    with shims_installed:
        return array._arrays


def prime(client: Client, aval: object, sharding_of: Callable[[Device], Sharding]) -> None:
    """Construct an array, so that C++ looks up the class of avals now, once per process.

    Args:
      client: a client, whose first device gets a scalar.
      aval: the aval of the scalar.
      sharding_of: a function from a device to its sharding.
    """
    device = client.local_devices()[0]
    array = batched_device_put(aval, sharding_of(device), [0.0], [device])
    with shims_installed:
        array._fully_replicated_shard()


def to_numpy(array: Any) -> tuple[np.ndarray[Any, Any], bool]:
    """Return a fully replicated array as a NumPy array, and whether it was copied."""
    with shims_installed:
        return array._single_device_array_to_np_array_did_copy()


def start_copy_to_host(array: Any) -> None:
    """Start copying an array to the host, where a later read of its value looks first."""
    with shims_installed:
        array._copy_single_device_array_to_host_async()


def assembled(aval: object, sharding: Sharding, arrays: Sequence[object], committed: bool) -> Any:
    """Return, unchecked, the array of type `aval` whose shards are these single-device arrays.

    Args:
      aval: the aval of the whole array.
      sharding: the sharding of the whole array.
      arrays: one array per addressable device, in the order of the sharding's devices.
      committed: whether the array is committed to its devices.
    """
    with shims_installed:
        return ArrayImpl(aval, sharding, list(arrays), committed, _skip_checks=True)


def moved(array: object, sharding: Sharding, semantics: object) -> Any:
    """Copy an array to equally many other devices or to another memory, with equal commitment.

    The array must not have been deleted: C++ before 0.11 does not check that.

    Args:
      array: an array on devices.
      sharding: its new sharding.
      semantics: a member of CopySemantics.
    """
    (result,) = _jax.batched_copy_array_to_devices_with_sharding(
        [array], [device_list_of(sharding)], [sharding], [semantics]
    )
    return result


def copies(arrays: Sequence[object], shardings: Sequence[Sharding]) -> list[Any]:
    """Copy single-device arrays, each to a device of its own.

    The arrays must not have been deleted: C++ before 0.11 does not check that.

    Args:
      arrays: the arrays.
      shardings: the SingleDeviceSharding of each copy.
    """
    devices = list(map(device_list_of, shardings))
    reused = [CopySemantics.REUSE_INPUT] * len(devices)
    return _jax.batched_copy_array_to_devices_with_sharding(
        list(arrays), devices, list(shardings), reused
    )


def to_dlpack(
    array: object, stream: int | None, max_version: tuple[int, int] | None, copied: bool
) -> object:
    """Return a DLPack capsule that shares the array's memory, versioned on request (0.12)."""
    if hasattr(_jax, "dlpack_version"):
        return _jax.buffer_to_dlpack_managed_tensor(
            array, stream=stream, max_version=max_version, copied=copied
        )
    return _jax.buffer_to_dlpack_managed_tensor(array, stream=stream)


# The newest version of DLPack that this jaxlib reads.
dlpack_version: tuple[int, ...] = tuple(getattr(_jax, "dlpack_version", (0, 8)))


def from_dlpack(capsule: object, device: Device, stream: int | None, copy: bool | None) -> Any:
    """Return the array in a DLPack capsule, copied on request or where sharing is impossible."""
    with shims_installed:
        return _jax.dlpack_managed_tensor_to_buffer(capsule, device, stream, copy)


def from_cuda_array_interface(interface: dict[str, Any], client: Client, number: int | None) -> Any:
    """Return the array whose memory a `__cuda_array_interface__` describes, which it shares.

    Args:
      interface: the value of the attribute, in version 2 or 3 of the protocol.
      client: the client of CUDA's devices.
      number: the number of the GPU in this process; None for the first.
    """
    with shims_installed:
        return _jax.cuda_array_interface_to_buffer(interface, client, number)


class Explicit:
    """A context manager that marks transfers as explicit, which a transfer guard may allow.

    Args:
      direction: "put" for copies to devices, "get" for copies to the host.
    """

    __slots__ = ("_before", "_field", "_guard")

    _guard: "GuardState"
    _before: bool

    def __init__(self, direction: str):
        self._field = f"explicit_device_{direction}"

    def __enter__(self) -> None:
        self._guard = state.guards.thread_local_state()
        self._before = getattr(self._guard, self._field)
        setattr(self._guard, self._field, True)

    def __exit__(self, *exception: object) -> None:
        setattr(self._guard, self._field, self._before)
