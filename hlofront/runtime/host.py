"""An array's value on the host, as a NumPy array."""

from typing import Any

import numpy as np

from hlofront.bridge.arrays import JaxRuntimeError, pieces
from hlofront.runtime.deleted import deleted


def host_value(array: Any) -> np.ndarray:
    """The array as a read-only NumPy array; on a CPU it shares the memory where it can.

    Waits until the array is computed.

    Raises:
      RuntimeError: if the array was deleted, or is partly on devices of other processes.
    """
    value = array._npy_value
    if value is None:
        return _fetched(array)
    if array.is_deleted():
        raise deleted(array)
    return value


def _fetched(array: Any) -> np.ndarray:
    sharding = array._sharding
    if not sharding.is_fully_replicated:
        return _gathered(array)
    try:
        value, copied = array._single_device_array_to_np_array_did_copy()
    except JaxRuntimeError:
        if array.is_deleted():
            raise deleted(array) from None
        raise
    value.flags.writeable = False
    # A view of the device's own memory is not kept: it would keep that from being donated.
    if copied:
        array._npy_value = value
    return value


def _gathered(array: Any) -> np.ndarray:
    """The value of an array that has different parts on several devices."""
    sharding = array._sharding
    if array.is_deleted():
        raise deleted(array)
    if not sharding.is_fully_addressable:
        raise RuntimeError(
            "Fetching the value of an array that spans devices of other processes is not possible: "
            f"this process has parts of {array.aval.str_short()} with sharding {sharding}. Read "
            "them with addressable_shards, or gather the array first."
        )
    value = np.empty(array.aval.shape, array.aval.dtype)
    where = sharding.addressable_devices_indices_map(array.aval.shape)
    seen: list[Any] = []
    for piece in pieces(array):
        (device,) = piece._sharding.device_set
        index = where[device]
        if index not in seen:  # replicas hold the same
            seen.append(index)
            value[index] = _fetched(piece)
    value.flags.writeable = False
    array._npy_value = value
    return value


def prefetch(array: Any) -> None:
    """Start copying the array to the host, without waiting for it."""
    if array._npy_value is None:
        try:
            if array._sharding.is_fully_replicated:
                array._copy_single_device_array_to_host_async()
            else:
                for piece in pieces(array):
                    piece._copy_single_device_array_to_host_async()
        except JaxRuntimeError:
            if array.is_deleted():
                raise deleted(array) from None
            raise
