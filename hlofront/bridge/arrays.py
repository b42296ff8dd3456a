"""What jaxlib's C++ does to arrays that exist: copy, wait for, assemble, exchange by DLPack."""

from collections.abc import Sequence
from typing import Any

from hlofront.bridge import state
from hlofront.bridge.jax_shims import shims_installed

_jax = state.extension

ArrayImpl = state.ArrayImpl
CopySemantics = _jax.ArrayCopySemantics
JaxRuntimeError = state.JaxRuntimeError
batched_device_put = _jax.batched_device_put
block_all = _jax.batched_block_until_ready
# What C++ may do with the memory of a NumPy array that it is given: keep it, or read it now.
KEEP = _jax.HostBufferSemantics.ZERO_COPY
READ_NOW = _jax.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL

# C++ imports parts of jax where it makes an array by itself, so the shims are installed around it.


def pieces(array: Any) -> list[Any]:
    """Return a single-device array per addressable device, in the sharding's order."""
    with shims_installed:
        return array._arrays


def prime(client: Any, aval: Any, sharding_of: Any) -> None:
    """Have C++ look for the class of avals now, as it does so once per process.

    `aval` is that of a scalar; `sharding_of` makes the sharding of a device.
    """
    device = client.local_devices()[0]
    array = batched_device_put(aval, sharding_of(device), [0.0], [device])
    with shims_installed:
        array._fully_replicated_shard()


def to_numpy(array: Any) -> tuple[Any, bool]:
    """Return the value of an array that all its devices share, and whether it was copied."""
    with shims_installed:
        return array._single_device_array_to_np_array_did_copy()


def start_copy_to_host(array: Any) -> None:
    """Have the value of an array on its way to the host."""
    with shims_installed:
        array._copy_single_device_array_to_host_async()


def assembled(aval: Any, sharding: Any, arrays: Sequence[Any], committed: bool) -> Any:
    """Return the array that is made of these single-device arrays, in the order of its devices."""
    with shims_installed:
        return ArrayImpl(aval, sharding, list(arrays), committed, _skip_checks=True)


def moved(array: Any, sharding: Any, semantics: Any) -> Any:
    """Return an array on as many other devices or in another memory; it stays (un)committed.

    The array must not have been deleted: C++ before 0.11 does not check that.
    """
    (result,) = _jax.batched_copy_array_to_devices_with_sharding(
        [array], [sharding._internal_device_list], [sharding], [semantics]
    )
    return result


def to_dlpack(array: Any, stream: Any, max_version: Any, copied: bool) -> Any:
    """Return a DLPack capsule that shares the array's memory, versioned on request (0.12)."""
    if hasattr(_jax, "dlpack_version"):
        return _jax.buffer_to_dlpack_managed_tensor(
            array, stream=stream, max_version=max_version, copied=copied
        )
    return _jax.buffer_to_dlpack_managed_tensor(array, stream=stream)


# The newest DLPack that this jaxlib reads.
dlpack_version: tuple[int, ...] = tuple(getattr(_jax, "dlpack_version", (0, 8)))


def from_dlpack(capsule: Any, device: Any, stream: Any, copy: bool | None) -> Any:
    """Return the array in a DLPack capsule, copied on request, or where it must be."""
    with shims_installed:
        return _jax.dlpack_managed_tensor_to_buffer(capsule, device, stream, copy)


class Explicit:
    """A context manager, `with Explicit("put"):`, for copies that some guards let pass.

    "put" are those to devices, "get" those to the host.
    """

    __slots__ = ("_before", "_field", "_guard")

    def __init__(self, direction: str):
        self._field = f"explicit_device_{direction}"

    def __enter__(self) -> None:
        self._guard = state.guards.thread_local_state()
        self._before = getattr(self._guard, self._field)
        setattr(self._guard, self._field, True)

    def __exit__(self, *exception: object) -> None:
        setattr(self._guard, self._field, self._before)
