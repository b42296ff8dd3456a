"""Which devices and processes there are."""

import warnings
from typing import Any

from hlofront.pjrt import clients


def devices(backend: Any = None) -> list[Any]:
    """All devices of a platform, those of other processes included.

    Args:
      backend: the platform's name, such as "cpu"; None for the default one.

    Raises:
      RuntimeError: if this process has no such platform.
    """
    return clients.devices(backend)


def local_devices(
    process_index: int | None = None, backend: Any = None, host_id: int | None = None
) -> list[Any]:
    """The devices that one process drives, by default this one.

    Raises:
      ValueError: if there is no process of that index.
      RuntimeError: if this process has no such platform.
    """
    if host_id is not None:
        _renamed("the argument host_id of local_devices", "process_index")
        process_index = host_id
    client = clients.client_for(backend)
    if process_index is None or process_index == client.process_index():
        return client.local_devices()
    found = [device for device in client.devices() if device.process_index == process_index]
    if not found:
        known = sorted({device.process_index for device in client.devices()})
        raise ValueError(f"Unknown process_index {process_index}: there are {known}")
    return found


def default_backend() -> str:
    """The name of the platform that computations run on by default."""
    return clients.client_for().platform


def device_count(backend: Any = None) -> int:
    """How many devices there are, those of other processes included."""
    return clients.client_for(backend).device_count()


def local_device_count(backend: Any = None) -> int:
    """How many devices this process drives."""
    return clients.client_for(backend).local_device_count()


def process_index(backend: Any = None) -> int:
    """Which of the processes that run one program together this one is, from 0."""
    return clients.client_for(backend).process_index()


def process_indices(backend: Any = None) -> list[int]:
    """The indices of all processes that run one program together."""
    return sorted({device.process_index for device in clients.devices(backend)})


def process_count(backend: Any = None) -> int:
    """How many processes run one program together."""
    return max(process_indices(backend)) + 1


def host_id(backend: Any = None) -> int:
    """The older name of process_index."""
    _renamed("host_id", "process_index")
    return process_index(backend)


def host_ids(backend: Any = None) -> list[int]:
    """The older name of process_indices."""
    _renamed("host_ids", "process_indices")
    return process_indices(backend)


def host_count(backend: Any = None) -> int:
    """The older name of process_count."""
    _renamed("host_count", "process_count")
    return process_count(backend)


def _renamed(old: str, new: str) -> None:
    warnings.warn(f"{old} is now called {new}", DeprecationWarning, stacklevel=3)
