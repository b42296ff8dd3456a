"""An array's value on the host, as a NumPy array."""

import numpy as np

from hlofront.base.typing import Array, NumPyArray
from hlofront.bridge.arrays import JaxRuntimeError, pieces, start_copy_to_host, to_numpy
from hlofront.bridge.members import cache_numpy_value, cached_numpy_value, sharding_of
from hlofront.pjrt.deletion import check_not_deleted, deleted

# NumPy reads the array's memory through C++, which on a CPU shares it for dtypes of the buffer
# protocol; otherwise NumPy calls `__array__`, which is `fetched`.
host_value = np.asarray


def fetched(array: Array) -> NumPyArray:
    """Return an array's value as a read-only NumPy array, copied to the host if necessary.

    Waits until the array is computed.

    Raises:
      RuntimeError: if the array was deleted, its computation failed, or it is partly on devices of
        other processes.
    """
    value = cached_numpy_value(array)
    if value is not None:
        check_not_deleted(array)
        return value
    if not sharding_of(array).is_fully_replicated:
        return _gathered(array)
    try:
        value, copied = to_numpy(array)
    except JaxRuntimeError:
        if array.is_deleted():
            raise deleted(array) from None
        if not sharding_of(array).addressable_devices:
            raise _elsewhere(array) from None
        raise
    value.flags.writeable = False
    # A view of the device's own memory is not cached: it would prevent donation of that memory.
    if copied:
        cache_numpy_value(array, value)
    return value


def _gathered(array: Array) -> NumPyArray:
    """Assemble the NumPy value of an array with different shards on several devices."""
    sharding = sharding_of(array)
    check_not_deleted(array)
    if not sharding.is_fully_addressable:
        raise _elsewhere(array)
    value = np.empty(array.aval.shape, array.aval.dtype)
    where = sharding.addressable_devices_indices_map(array.aval.shape)
    seen: list[tuple[slice, ...]] = []
    for piece in pieces(array):
        (device,) = sharding_of(piece).device_set
        index = where[device]
        if index not in seen:  # Replicas are equal.
            seen.append(index)
            value[index] = fetched(piece)
    value.flags.writeable = False
    cache_numpy_value(array, value)
    return value


def _elsewhere(array: Array) -> RuntimeError:
    """Return the error for an array with parts on other processes."""
    sharding = sharding_of(array)
    own = "parts" if sharding.addressable_devices else "no part"
    return RuntimeError(
        "Fetching the value of an array that spans devices of other processes is not possible: "
        f"this process has {own} of {array.aval.str_short()} with sharding {sharding}. Read "
        "them with addressable_shards, or let all processes gather the array with "
        "jax.experimental.multihost_utils.process_allgather(array, tiled=True)."
    )


def prefetch(array: Array) -> None:
    """Start to copy an array to the host without waiting; on a CPU there is nothing to copy."""
    check_not_deleted(array)
    sharding = sharding_of(array)
    if cached_numpy_value(array) is not None or next(iter(sharding.device_set)).platform == "cpu":
        return
    for piece in [array] if sharding.is_fully_replicated else pieces(array):
        start_copy_to_host(piece)
