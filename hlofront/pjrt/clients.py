"""One client per platform, made when first asked for."""

import os
import threading
import warnings
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from hlofront.base import source
from hlofront.base.config import options
from hlofront.bridge import client as bridge
from hlofront.bridge import state
from hlofront.bridge.members import raw_platform_of

_lock = threading.Lock()
_clients: dict[str, Any] = {}
_platforms = options["jax_platforms"]
_platform_name = options["jax_platform_name"]
_cpu_devices = options["jax_num_cpu_devices"]
_async_dispatch = options["jax_cpu_enable_async_dispatch"]
_on_made: list[Callable[[Any], object]] = []
_on_reset: list[Callable[[], object]] = []

# In `with hlofront.target(...)`: what the stages of jit are for, of how many of its devices, and
# the same of the block around. See targets.py.
compiling_for: ContextVar[Any] = ContextVar("compiling_for", default=None)


def _too_late(value: Any, local: bool) -> None:
    if _clients and value != _cpu_devices.value:
        raise RuntimeError(
            "jax_num_cpu_devices should be set before the first operation runs, as the devices are "
            "made then: set it right after the import, or by JAX_NUM_CPU_DEVICES"
        )


_cpu_devices.watch(_too_late)


def _make_cpu() -> Any:
    settings = {"asynchronous": _async_dispatch.value}
    if _cpu_devices.value != -1:
        if _cpu_devices.value < 1:
            raise ValueError(
                "the option jax_num_cpu_devices is how many devices to make of the CPU, or -1 for "
                f"one: got {_cpu_devices.value}"
            )
        settings["num_devices"] = _cpu_devices.value
    return bridge.make_cpu_client(**settings)


_GPUS = ("cuda", "rocm", "oneapi")


def _plugins() -> Any:
    """What knows of plugins: loaded when devices are first asked for."""
    from hlofront.pjrt import platforms

    return platforms


def client_for(platform: Any = None) -> Any:
    """The client of a platform (by default the best one here), made on first use.

    Args:
      platform: a name, such as "cpu", or "gpu" for any of its kinds; or a client, as it is. The
        empty name is that of the default one.

    Raises:
      RuntimeError: if the platform is unknown or has no device.
      TypeError: if it is neither a name nor a client.
    """
    name = default_platform() if platform is None or platform == "" else platform
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
    known = _known(name)
    with _lock:
        found = _clients.get(known)
        if found is None:
            found = _make_cpu() if known == "cpu" else _plugins().make_client(known)
            for prepare in _on_made:
                prepare(found)
            if not _clients:
                _watch_forks()
            _clients[known] = found
    return found


# ---- os.fork -----------------------------------------------------------------------------------

# Whether forks are watched, and whether this process is the child of one that had clients. Their
# threads are not here: most of what is run or compiled would wait for them for ever.
_watched = _forked = False


def _watch_forks() -> None:
    global _watched
    if not _watched and hasattr(os, "register_at_fork"):
        _watched = True
        os.register_at_fork(before=_warn_of_fork, after_in_child=_note_fork)


def _warn_of_fork() -> None:
    if _clients:
        warnings.warn(
            "os.fork() was called. It is incompatible with multithreaded code, and hlofront is "
            "multithreaded: the child can read arrays, and cannot run anything. Start processes "
            "with the method 'spawn', or fork before the first operation.",
            RuntimeWarning,
            stacklevel=source.frames_to_user(),
        )


def _note_fork() -> None:
    global _forked
    if _clients:
        _forked = True
        # Part of the C++ jit key: what is compiled already is called through Python, and refused.
        cell = state.process_options
        cell.set_global((*cell.get_global(), ("forked", True)))
        for forget in _on_reset:  # Where values are put is asked again, and refused as well.
            forget()


def check_not_forked(name: str) -> None:
    """Raise the RuntimeError for what would run or be compiled in the child of a fork."""
    if _forked:
        raise RuntimeError(
            f"{name} cannot run in this process: it was forked by os.fork() from one that had used "
            "hlofront, whose threads it does not have. Start processes with the method 'spawn', as "
            "by multiprocessing.get_context('spawn'), or fork before the first operation."
        )


def _known(name: str) -> str:
    """A platform's name with "gpu" as the kind that is there.

    Raises:
      RuntimeError: if there is no plugin for it.
    """
    if name == "cpu":
        return name
    plugins = _plugins()
    there = plugins.find_plugins()
    asked = name
    if name == "gpu":
        name = next((kind for kind in _GPUS if kind in there), "cuda")
    if name not in there:
        has = ", ".join(plugins.usable())
        hint = plugins.install_command(name)
        text = f"Unknown backend: {asked!r} requested, but this process has only: {has}."
        raise RuntimeError(f"{text} For its plugin, run `{hint}`." if hint else text)
    return name


def default_platform() -> str:
    """The first of the option jax_platforms, else the best platform that there is.

    Raises:
      RuntimeError: if the option names a platform that this process does not have.
    """
    wanted = _platforms.value or _platform_name.value
    if not wanted:
        return _plugins().usable()[0]
    first = wanted.split(",")[0].strip()
    try:
        return _known(first)
    except RuntimeError as error:
        raise RuntimeError(
            f"Unable to initialize backend {first!r}, which comes first in the option "
            f"jax_platforms, {wanted!r}: {error}"
        ) from None


def lowering_platform(device: Any) -> str:
    """What programs for a device are lowered for: GPUs by their kind, "cuda" or "rocm"."""
    platform = device.platform
    return raw_platform_of(device.client) if platform == "gpu" else platform


def named_device(platform: str) -> Any:
    """The first device of a platform, as the option jax_default_device names it.

    Raises:
      ValueError: if there is no platform of that name.
      RuntimeError: if it is known and has no device.
    """
    try:
        if not platform:
            raise RuntimeError("It names no platform; None is for the default one.")
        return client_for(platform).local_devices()[0]
    except RuntimeError as error:
        if platform in ("gpu", "tpu") or platform in _plugins().find_plugins():
            raise
        raise ValueError(
            "default_device takes a device, such as devices('cpu')[0], or a platform's name, such "
            f"as 'cpu' or 'gpu': got {platform!r}. {error}"
        ) from None


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
