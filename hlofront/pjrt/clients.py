"""One client per platform, made when first asked for."""

import threading
from collections.abc import Callable
from typing import Any

from hlofront.base.config import options
from hlofront.bridge import client as bridge

_lock = threading.Lock()
_clients: dict[str, Any] = {}
_platforms = options["jax_platforms"]
_platform_name = options["jax_platform_name"]
_cpu_devices = options["jax_num_cpu_devices"]
_async_dispatch = options["jax_cpu_enable_async_dispatch"]
_on_made: list[Callable[[Any], object]] = []
_on_reset: list[Callable[[], object]] = []


def _make_cpu() -> Any:
    settings = {"asynchronous": _async_dispatch.value}
    if _cpu_devices.value != -1:
        settings["num_devices"] = _cpu_devices.value
    return bridge.make_cpu_client(**settings)


# What makes the client of each platform that this process has.
_makers: dict[str, Callable[[], Any]] = {"cpu": _make_cpu}
_GPUS = ("cuda", "rocm", "oneapi")


def client_for(platform: Any = None) -> Any:
    """The client of a platform (by default the best one here), made on first use.

    Args:
      platform: a name, such as "cpu", or "gpu" for any of its kinds; or a client, as it is.

    Raises:
      RuntimeError: if the platform is unknown or has no device.
      TypeError: if it is neither a name nor a client.
    """
    name = default_platform() if platform is None else platform
    found = _clients.get(name) if isinstance(name, str) else None
    if found is not None:
        return found
    if isinstance(name, bridge.Client):
        return name
    if not isinstance(name, str):
        raise TypeError(
            f"a backend is a platform's name, such as 'cpu', or a client: got {name!r} of type "
            f"{type(name).__name__}"
        )
    known = next((kind for kind in _GPUS if kind in _makers), None) if name == "gpu" else name
    if known not in _makers:
        raise RuntimeError(
            f"Unknown backend: {name!r} requested, but this process has only: {', '.join(_makers)}."
        )
    with _lock:
        found = _clients.get(known)
        if found is None:
            found = _makers[known]()
            for prepare in _on_made:
                prepare(found)
            _clients[known] = found
    return found


def default_platform() -> str:
    """The first of the option jax_platforms, else the best platform that there is.

    Raises:
      RuntimeError: if the option names a platform that this process does not have.
    """
    wanted = _platforms.value or _platform_name.value
    if not wanted:
        return next(reversed(_makers))
    first = wanted.split(",")[0].strip()
    if first not in _makers and not (first == "gpu" and any(kind in _makers for kind in _GPUS)):
        raise RuntimeError(
            f"Unable to initialize backend {first!r}, which comes first in the option "
            f"jax_platforms, {wanted!r}: this process has only: {', '.join(_makers)}."
        )
    return first


def clients() -> dict[str, Any]:
    """The clients made so far, by platform."""
    return dict(_clients)


def on_made(prepare: Callable[[Any], object]) -> Callable[[Any], object]:
    """Have each new client given to `prepare` before anyone else gets it; returns it."""
    _on_made.append(prepare)
    return prepare


def on_reset(forget: Callable[[], object]) -> Callable[[], object]:
    """Have `reset()` call `forget` too, for what is kept per device; returns it."""
    _on_reset.append(forget)
    return forget


def reset() -> None:
    """Forget all clients: the next use makes new ones, and old arrays stay with the old ones."""
    with _lock:
        _clients.clear()
    for forget in _on_reset:
        forget()


def devices(platform: Any = None) -> list[Any]:
    """All devices of a platform, those of other hosts included."""
    return client_for(platform).devices()


def local_devices(platform: Any = None) -> list[Any]:
    """The devices that this process drives."""
    return client_for(platform).local_devices()
