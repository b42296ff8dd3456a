"""The PJRT clients of this process, one per platform, created on first use."""

import os
import threading
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from types import ModuleType
from typing import TYPE_CHECKING, Any

from hlofront.base import source
from hlofront.base.config import options
from hlofront.base.named_tuple import NamedTuple
from hlofront.bridge import client as bridge
from hlofront.bridge import state
from hlofront.bridge.client import Client, Device
from hlofront.bridge.members import raw_platform_of
from hlofront.pjrt.client_settings import GroupMember
from hlofront.pjrt.factories import Factory, factories, failures
from hlofront.pjrt.factories import make_client as make_registered_client

if TYPE_CHECKING:
    from hlofront.bridge.jaxlib_types import DeviceTopology

_lock = threading.Lock()
_clients: dict[str, Client] = {}
_platforms = options["jax_platforms"]
_platform_name = options["jax_platform_name"]
_cpu_devices = options["jax_num_cpu_devices"]
_async_dispatch = options["jax_cpu_enable_async_dispatch"]
_on_made: list[Callable[[Client], object]] = []
_on_reset: list[Callable[[], object]] = []


class CompilationTarget(NamedTuple):
    """The devices that the stages of jit compile for inside of `with hlofront.target(...)`."""

    devices: list[Device]
    # The target of the enclosing block; None for the devices of this process.
    outer: "CompilationTarget | None"
    # Raises TargetError for a device that is not the target's. Targets are loaded on first use, and
    # reading this attribute must not load one.
    check: Callable[[Iterable[Device]], None]


compiling_for: ContextVar[CompilationTarget | None] = ContextVar("compiling_for", default=None)


def _refuse_late_change(value: int, local: bool) -> None:
    if _clients and value != _cpu_devices.value:
        raise RuntimeError(
            "jax_num_cpu_devices should be set before the first operation runs, as the devices are "
            "made then: set it right after the import, or by JAX_NUM_CPU_DEVICES"
        )


_cpu_devices.watch(_refuse_late_change)


def _make_cpu() -> Client:
    settings: dict[str, Any] = {"asynchronous": _async_dispatch.value}
    if _cpu_devices.value != -1:
        if _cpu_devices.value < 1:
            raise ValueError(
                "the option jax_num_cpu_devices is how many devices to make of the CPU, or -1 for "
                f"one: got {_cpu_devices.value}"
            )
        settings["num_devices"] = _cpu_devices.value
    if _group is not None:
        settings |= {
            "distributed_client": _group.client,
            "node_id": _group.process_id,
            "num_nodes": _group.process_count,
            "collectives": _group.collectives(),
        }
    return bridge.make_cpu_client(**settings)


# The group that this process belongs to, which process_group.py sets; None for a single process.
_group: GroupMember | None = None


def join(group: GroupMember | None) -> None:
    """Make clients for a process of a group, or for a single process."""
    global _group
    _group = group


def check_processes(processes: Iterable[int]) -> None:
    """Raise ProcessFailureError if one of these processes of this process's group has failed."""
    if _group is not None:
        _group.check(processes)


def are_made() -> bool:
    """Return whether a device has been used, so that there is a client."""
    return bool(_clients)


_GPUS = ("cuda", "rocm", "oneapi")


def _make(platform: str) -> Client:
    if platform in factories:
        return make_registered_client(platform)
    return _make_cpu() if platform == "cpu" else _plugins().make_client(platform, _group)


def register_backend_factory(
    name: str,
    factory: Callable[[], Client | None],
    *,
    priority: int = 0,
    fail_quietly: bool = True,
    experimental: bool = False,
    make_topology: Callable[..., "DeviceTopology"] | None = None,
    c_api: object = None,
) -> None:
    """Register a function that makes the client of a platform when the platform is first used.

    A PJRT plugin that is a shared library is registered by `pjrt.platforms.register_plugin`.

    Args:
      name: the platform's name. It replaces an earlier platform of that name.
      factory: returns the client; None if there is none here.
      priority: the platform with the highest priority is the default one. CPUs have 0.
      fail_quietly: whether the platform is passed over as the default one if its client cannot be
        made; otherwise that is an error.
      experimental: whether a warning is logged when the client is made.
      make_topology: returns jaxlib's topology for a name and options, for `get_topology_desc`.
      c_api: jaxlib's handle of the plugin, from which topologies are made without `make_topology`.

    Raises:
      RuntimeError: if the platform has a client already.
    """
    if name in _clients:
        raise RuntimeError(
            f"Backend {name} already initialized: register its factory before the first use of "
            "its devices, or after clear_backends()"
        )
    factories[name] = Factory(factory, priority, fail_quietly, experimental, make_topology, c_api)
    failures.pop(name, None)
    _plugins().forget_plugins()


def _plugins() -> ModuleType:
    """Import the module of plugins, which is loaded on the first use of a device."""
    from hlofront.pjrt import platforms

    return platforms


def client_for(platform: str | Client | None = None) -> Client:
    """Return the client of a platform (by default the best one here), created on first use.

    Args:
      platform: a name, such as "cpu", or "gpu" for any kind of GPU; or a client, which is returned.
        The empty name is that of the default platform.

    Raises:
      RuntimeError: if the platform is unknown or has no device.
      TypeError: if `platform` is neither a name nor a client.
    """
    name = default_platform() if platform is None or platform == "" else platform
    client = _clients.get(name) if isinstance(name, str) else None
    if client is not None:
        return client
    if isinstance(name, bridge.Client):
        return name
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(
            f"a backend is a platform's name, such as 'cpu', or a client: got {name!r} of type "
            f"{type(name).__name__}"
        )
    known = _known(name)
    with _lock:
        client = _clients.get(known)
        if client is None:
            client = _make(known)
            for prepare in _on_made:
                prepare(client)
            if not _clients:
                _watch_forks()
            _clients[known] = client
    return client


# ---- os.fork -----------------------------------------------------------------------------------

# Whether forks are watched, and whether this process is a fork of one that had clients. Their
# threads do not exist here: most executions and compilations would wait for them forever.
_watched = _forked = False


def _watch_forks() -> None:
    global _watched
    if not _watched and hasattr(os, "register_at_fork"):
        _watched = True
        os.register_at_fork(before=_warn_of_fork, after_in_child=_note_fork)


def _warn_of_fork() -> None:
    if _clients:
        source.warn(
            "os.fork() was called. It is incompatible with multithreaded code, and hlofront is "
            "multithreaded: the child can read arrays, and cannot run anything. Start processes "
            "with the method 'spawn', or fork before the first operation.",
            RuntimeWarning,
        )


def _note_fork() -> None:
    global _forked
    if _clients:
        _forked = True
        # Part of the C++ jit key: compiled calls fall back to Python, which refuses them.
        cell = state.process_options
        cell.set_global((*cell.get_global(), ("forked", True)))
        for forget in _on_reset:  # The next value then looks up its device, which is refused.
            forget()


def check_not_forked(name: str) -> None:
    """Raise a RuntimeError if this process is a fork, in which `name` cannot run or compile."""
    if _forked:
        raise RuntimeError(
            f"{name} cannot run in this process: it was forked by os.fork() from one that had used "
            "hlofront, whose threads it does not have. Start processes with the method 'spawn', as "
            "by multiprocessing.get_context('spawn'), or fork before the first operation."
        )


def _known(name: str) -> str:
    """Return the name of a platform that has a plugin; for "gpu", the kind of GPU that has one.

    Raises:
      RuntimeError: if there is no plugin for the platform.
    """
    if name == "cpu" or name in factories:
        return name
    plugins = _plugins()
    by_name = plugins.find_plugins()
    requested = name
    if name == "gpu":
        name = next((kind for kind in _GPUS if kind in by_name), "cuda")
    if name not in by_name:
        has = ", ".join(plugins.usable())
        hint = plugins.install_command(name)
        text = f"Unknown backend: {requested!r} requested, but this process has only: {has}."
        raise RuntimeError(f"{text} For its plugin, run `{hint}`." if hint else text)
    return name


def default_platform() -> str:
    """Return the first platform of the option jax_platforms, else the best one here.

    Raises:
      RuntimeError: if the option names a platform that this process does not have.
    """
    requested_names = _platforms.value or _platform_name.value
    if not requested_names:
        return next(name for name in _plugins().usable() if _starts(name))
    first = requested_names.split(",")[0].strip()
    try:
        return _known(first)
    except RuntimeError as error:
        raise RuntimeError(
            f"Unable to initialize backend {first!r}, which comes first in the option "
            f"jax_platforms, {requested_names!r}: {error}"
        ) from None


def _starts(name: str) -> bool:
    """Return whether a platform can be the default one.

    Raises:
      RuntimeError: if its client cannot be made, and its factory is not to fail quietly.
    """
    factory = factories.get(name)
    if factory is None or name in _clients:
        return True
    if name in failures and factory.fail_quietly:
        return False
    try:
        client_for(name)
    except RuntimeError:
        if factory.fail_quietly:
            return False
        raise
    return True


def plugin_source(device: Device) -> str:
    """Return the distribution and version of the plugin for a device's platform; "" without one."""
    plugin = _plugins().find_plugins().get(lowering_platform(device))
    return "" if plugin is None else plugin.source


def number_of_gpu(address: int) -> int | None:
    """Return the index of the CUDA GPU that owns an address; None if it is unknown."""
    return _plugins().number_of_gpu(address)


def lowering_platform(device: Device) -> str:
    """Return the platform that programs for a device are lowered for; for GPUs "cuda" or "rocm"."""
    platform = device.platform
    return raw_platform_of(device.client) if platform == "gpu" else platform


def named_device(platform: str) -> Device:
    """Return the first device of a platform, as the option jax_default_device names it.

    Raises:
      ValueError: if there is no platform of that name.
      RuntimeError: if the platform is known and has no device.
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


def clients() -> dict[str, Client]:
    """Return the clients created so far, by platform."""
    return dict(_clients)


def on_made(prepare: Callable[[Client], object]) -> Callable[[Client], object]:
    """Register a hook that is called with each new client before its first use; return the hook."""
    _on_made.append(prepare)
    return prepare


def not_on_made(prepare: Callable[[Client], object]) -> None:
    """Remove a hook that `on_made` has registered."""
    _on_made.remove(prepare)


def on_reset(forget: Callable[[], object]) -> Callable[[], object]:
    """Register a hook for `reset()`, which drops values cached per device; return the hook."""
    _on_reset.append(forget)
    return forget


def reset() -> None:
    """Drop all clients: the next use creates new ones; old arrays stay with the old clients."""
    with _lock:
        _clients.clear()
        failures.clear()
    for forget in _on_reset:
        forget()


def devices(platform: str | Client | None = None) -> list[Device]:
    """Return all devices of a platform, including those of other hosts."""
    return client_for(platform).devices()


def local_devices(platform: str | Client | None = None) -> list[Device]:
    """Return the devices of a platform that are attached to this process."""
    return client_for(platform).local_devices()
