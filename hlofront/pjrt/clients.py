"""One client per platform, made when first asked for."""

import threading
from typing import Any

from hlofront.bridge import client as bridge

_lock = threading.Lock()
_clients: dict[str, Any] = {}


def client_for(platform: str | None = None) -> Any:
    """The client of a platform (by default the best one here), made on first use.

    Raises:
      RuntimeError: if the platform is unknown or has no device.
    """
    name = platform or default_platform()
    found = _clients.get(name)
    if found is None:
        with _lock:
            found = _clients.get(name)
            if found is None:
                found = _clients[name] = _make(name)
    return found


def default_platform() -> str:
    return "cpu"


def _make(name: str) -> Any:
    if name != "cpu":
        raise RuntimeError(
            f"Unknown backend: {name!r} requested, but this process has only: cpu."
        )
    return bridge.make_cpu_client()


def devices(platform: str | None = None) -> list[Any]:
    """All devices of a platform, those of other hosts included."""
    return client_for(platform).devices()


def local_devices(platform: str | None = None) -> list[Any]:
    """The devices that this process drives."""
    return client_for(platform).local_devices()
