"""JAX's public functions for the devices and processes that a program can use."""

import warnings

from hlofront.bridge.client import Client, Device
from hlofront.pjrt import clients

Backend = str | Client | None


def devices(backend: Backend = None) -> list[Device]:
    """Return all devices of a platform, including those of other processes.

    Args:
      backend: the platform's name, such as "cpu"; None for the default one.

    Raises:
      RuntimeError: if this process has no such platform.
    """
    return clients.devices(backend)


def local_devices(
    process_index: int | None = None, backend: Backend = None, host_id: int | None = None
) -> list[Device]:
    """Return the devices that are attached to one process, by default this one.

    Args:
      process_index: the index of a process, by default of this one.
      backend: a platform such as "cpu", or a client; by default the process's first platform.
      host_id: the older name of `process_index`.

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
    of_process = [device for device in client.devices() if device.process_index == process_index]
    if not of_process:
        known = sorted({device.process_index for device in client.devices()})
        raise ValueError(f"Unknown process_index {process_index}: there are {known}")
    return of_process


def default_backend() -> str:
    """Return the name of the platform that computations run on by default."""
    return clients.client_for().platform


def device_count(backend: Backend = None) -> int:
    """Return the number of devices of a platform, including those of other processes.

    Args:
      backend: a platform such as "cpu", or a client; by default the process's first platform.

    Raises:
      RuntimeError: if this process has no such platform.
    """
    return clients.client_for(backend).device_count()


def local_device_count(backend: Backend = None) -> int:
    """Return the number of devices of a platform that are attached to this process.

    Args:
      backend: a platform such as "cpu", or a client; by default the process's first platform.

    Raises:
      RuntimeError: if this process has no such platform.
    """
    return clients.client_for(backend).local_device_count()


def process_index(backend: Backend = None) -> int:
    """Return the index of this process, from 0, among those that run one program together.

    Args:
      backend: a platform such as "cpu", or a client; by default the process's first platform.

    Raises:
      RuntimeError: if this process has no such platform.
    """
    return clients.client_for(backend).process_index()


def process_indices(backend: Backend = None) -> list[int]:
    """Return the indices of all processes that run one program together.

    Args:
      backend: a platform such as "cpu", or a client; by default the process's first platform.

    Raises:
      RuntimeError: if this process has no such platform.
    """
    return sorted({device.process_index for device in clients.devices(backend)})


def process_count(backend: Backend = None) -> int:
    """Return the number of processes that run one program together.

    Args:
      backend: a platform such as "cpu", or a client; by default the process's first platform.

    Raises:
      RuntimeError: if this process has no such platform.
    """
    return max(process_indices(backend)) + 1


def host_id(backend: Backend = None) -> int:
    """Return the index of this process: the older name of `process_index`.

    Args:
      backend: a platform such as "cpu", or a client; by default the process's first platform.

    Raises:
      RuntimeError: if this process has no such platform.
    """
    _renamed("host_id", "process_index")
    return process_index(backend)


def host_ids(backend: Backend = None) -> list[int]:
    """Return the indices of all processes: the older name of `process_indices`.

    Args:
      backend: a platform such as "cpu", or a client; by default the process's first platform.

    Raises:
      RuntimeError: if this process has no such platform.
    """
    _renamed("host_ids", "process_indices")
    return process_indices(backend)


def host_count(backend: Backend = None) -> int:
    """Return the number of processes: the older name of `process_count`.

    Args:
      backend: a platform such as "cpu", or a client; by default the process's first platform.

    Raises:
      RuntimeError: if this process has no such platform.
    """
    _renamed("host_count", "process_count")
    return process_count(backend)


def _renamed(old: str, new: str) -> None:
    warnings.warn(f"{old} is now called {new}", DeprecationWarning, stacklevel=3)
