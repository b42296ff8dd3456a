"""Where values go: the device of a computation, and host values onto it."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hlofront.base.config import default_device as _default_device
from hlofront.bridge.client import ArrayImpl, SingleDeviceSharding, batched_device_put
from hlofront.pjrt import clients

_shardings: dict[Any, Any] = {}


def on_device(device: Any) -> Any:
    """The sharding that is one device; one object per device."""
    found = _shardings.get(device)
    if found is None:
        found = _shardings[device] = SingleDeviceSharding(device)
    return found


def default_device() -> Any:
    """Where uncommitted values are put: `jax_default_device`, else the first local device."""
    device = _default_device.value
    if device is None:
        return clients.local_devices()[0]
    if isinstance(device, str):
        return clients.local_devices(device)[0]
    return device


def choose_device(args: Sequence[Any]) -> tuple[Any, bool]:
    """The device that a computation runs on, and whether its results are committed to it.

    Raises:
      ValueError: if arguments are committed to different devices.
    """
    chosen = None
    for x in args:
        if type(x) is ArrayImpl and x._committed:
            (device,) = x.devices()
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


def put(x: Any, aval: Any, device: Any, committed: bool) -> Any:
    """A value of the host, or an array from elsewhere, as an array on this device."""
    sharding = on_device(device)
    if type(x) is ArrayImpl:
        if x._sharding == sharding:
            return x
        return batched_device_put(aval, sharding, [x], [device], committed)
    host = np.asarray(x, aval.dtype)
    return batched_device_put(aval, sharding, [host], [device], committed)
