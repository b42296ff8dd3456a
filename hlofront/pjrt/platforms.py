"""Discovery of PJRT plugins without importing their packages, and their priorities.

A plugin is one shared library. Packages install them (libtpu, jax-cuda13-pjrt and similar ones),
an environment variable names them (PJRT_NAMES_AND_LIBRARY_PATHS), or `register_plugin` does. The
Python modules next to the libraries import jax, and are not run here: only `doctor` tries to import
them, in separate processes.
"""

import glob
import importlib.machinery
import importlib.util
import json
import mmap
import os
import re
import threading
from collections.abc import Callable, Mapping

from hlofront.base.errors import PluginError
from hlofront.base.named_tuple import NamedTuple
from hlofront.bridge import compile_process
from hlofront.bridge import plugins as bridge
from hlofront.bridge.client import Client
from hlofront.bridge.state import JaxRuntimeError
from hlofront.pjrt import hardware
from hlofront.pjrt.client_settings import GroupMember, client_settings
from hlofront.pjrt.factories import factories

GPUS = ("cuda", "rocm", "oneapi")
ENVIRONMENT = "PJRT_NAMES_AND_LIBRARY_PATHS"
VARIABLES = (ENVIRONMENT, "TPU_LIBRARY_PATH")
_LIBRARIES = "*.so"
_XLA_NAMES = {"cuda": "CUDA", "rocm": "ROCM"}
# The platform with devices and the highest priority is the default; CPUs have 0.
_PRIORITIES = {"tpu": 300, "cuda": 500, "rocm": 500}
_OTHER_PRIORITY = 400
_PACKAGES = {
    "tpu": ("libtpu",),
    # Versions match jaxlib's.
    "cuda": ("jax-cuda13-pjrt=={jaxlib}", "jax-cuda13-plugin=={jaxlib}"),
    "rocm": ("jax-rocm7-pjrt=={jaxlib}", "jax-rocm7-plugin=={jaxlib}"),
}


class Plugin(NamedTuple):
    """A PJRT plugin: the library that drives devices of one platform, and its origin."""

    name: str
    """The name of the platform: "tpu", "cuda", or the name that it was registered with."""
    library: str
    origin: str
    """The source of the plugin: a distribution, an environment variable, or register_plugin."""
    priority: int
    installed: bool = False
    """Whether a distribution installed the plugin."""
    options: Mapping[str, object] | Callable[[], Mapping[str, object]] | None = None
    """The options of the plugin's client."""

    @property
    def version(self) -> str:
        """The version of the plugin's distribution; empty if there is none."""
        return (version_of(self.origin) or "") if self.installed else ""

    @property
    def source(self) -> str:
        """The plugin's distribution and version, "libtpu 0.0.52", or the environment variable."""
        return f"{self.origin} {self.version}".strip()

    def has_flag(self, flag: str) -> bool:
        """Return whether its library knows a flag, as an unknown one ends the process."""
        with (
            open(self.library, "rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
        ):
            return content.find(flag.encode()) >= 0


_lock = threading.RLock()
_registered: dict[str, Plugin] = {}
_discovered: dict[str, Plugin] | None = None
_usable: list[str] | None = None
# The loaded libraries, with jaxlib's handles of them, by platform.
_loaded: dict[str, "_LoadedLibrary"] = {}
# The platforms whose devices XLA's profiler knows.
_profiled: set[str] = set()


class _LoadedLibrary(NamedTuple):
    path: str
    api: object


def register_plugin(
    name: str,
    path: str | os.PathLike[str],
    *,
    options: Mapping[str, object] | Callable[[], Mapping[str, object]] | None = None,
    priority: int = _OTHER_PRIORITY,
) -> None:
    """Register a PJRT plugin, whose devices become a platform.

    The library is loaded when its devices are first used: by `devices(name)`, or because no
    platform of a higher priority has devices.

    Args:
      name: the platform's name. It replaces a discovered plugin of that name.
      path: the shared library, which has the function GetPjrtApi.
      options: the options of the plugin's client, or a function that returns them.
      priority: the platform with the highest priority is the default one. CPUs have 0, TPUs 300,
        GPUs 500.

    Raises:
      ValueError: if the name is that of the CPU, or is not a valid name.
      TypeError: if the options are neither a mapping nor a function.
      PluginError: if the library cannot be used; it is loaded to check that.
    """
    is_word = isinstance(name, str) and re.fullmatch(r"[A-Za-z]\w*", name)  # pyright: ignore[reportUnnecessaryIsInstance]
    if not is_word or name == "cpu":
        raise ValueError(
            f"a plugin's name is a word other than 'cpu', such as 'my_device': got {name!r}"
        )
    unchecked: object = options
    if not (unchecked is None or isinstance(unchecked, Mapping) or callable(unchecked)):
        raise TypeError(f"options are a mapping, or a function that returns one: got {options!r}")
    global _usable
    plugin = Plugin(name, os.fspath(path), "register_plugin", priority, options=options)
    check(plugin)
    with _lock:
        if name in _loaded and _loaded[name].path != plugin.library:
            raise PluginError(
                f"the platform {name!r} was loaded from {_loaded[name].path} before, and a process "
                "loads one library per name: register it before the first use of devices"
            )
        _registered[name] = plugin
        _usable = None


def find_plugins() -> dict[str, Plugin]:
    """Return the plugins by platform; explicitly named ones take precedence over installed ones.

    Raises:
      PluginError: if the environment variable cannot be parsed.
    """
    global _discovered
    with _lock:
        if _discovered is None:
            _discovered = {**_installed(), **_from_environment()}
        return {**_discovered, **_registered}


def forget_plugins() -> None:
    """Drop the list of plugins, so that the next use searches for them again."""
    global _discovered, _usable
    with _lock:
        _discovered = _usable = None


def _from_environment() -> dict[str, Plugin]:
    text = os.environ.get(ENVIRONMENT, "")
    plugins: dict[str, Plugin] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        name, colon, path = part.partition(":")
        if not colon or not name or not path:
            raise PluginError(
                f"{ENVIRONMENT} is a list of name:path, such as "
                f"'my_device:/opt/my_device.so,other:/opt/other.so'; cannot read {part!r}"
            )
        if name == "cpu":
            raise PluginError(
                f"{ENVIRONMENT} names {path} for 'cpu', which is jaxlib's own: use another name"
            )
        options = None
        if path.endswith(".json"):
            path, options = _read_settings(path)
        plugins[name] = Plugin(name, path, ENVIRONMENT, _OTHER_PRIORITY, options=options)
    return plugins


def _read_settings(path: str) -> tuple[str, dict[str, object]]:
    try:
        with open(path) as file:
            settings = json.load(file)
        options = settings.get("create_options", settings.get("create_option", {}))
        return settings["library_path"], options
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise PluginError(
            f"{ENVIRONMENT} names {path}, which should hold "
            '{"library_path": "...", "create_options": {...}}: '
            f"{type(error).__name__}: {error}"
        ) from None


def _installed() -> dict[str, Plugin]:
    plugins: dict[str, Plugin] = {}
    library = os.environ.get("TPU_LIBRARY_PATH", "")
    if library:
        plugins["tpu"] = Plugin("tpu", library, "TPU_LIBRARY_PATH", _PRIORITIES["tpu"])
    else:
        for folder in _folders_of("libtpu"):
            library = os.path.join(folder, "libtpu.so")
            if os.path.isfile(library):
                plugins["tpu"] = _from_package("tpu", library, "libtpu")
                break
    for package in _folders_of("jax_plugins"):
        # Of several plugins for one platform, the newest: xla_cuda13 before xla_cuda12.
        for folder in sorted(glob.glob(os.path.join(package, "*")), reverse=True):
            module = os.path.basename(folder)
            name = re.sub(r"^xla_|\d+$|_plugin$", "", module)
            library = _library_in(folder)
            if library is not None and name not in plugins:
                plugins[name] = _from_package(name, library, _distribution_of(module))
    return plugins


class PluginPackage(NamedTuple):
    """A Python package by which JAX finds a plugin: in jax_plugins, or named by an entry point."""

    reference: str
    """The package's name, as imports have it; of an entry point, "module" or "module:object"."""
    origin: str
    """The distribution that it is from, as far as that is known."""
    folder: str
    """The folder that is searched for its library; empty if there is none."""
    library_pattern: str
    """A glob pattern of the file names that its library may have."""
    library: str | None


def plugin_packages() -> list[PluginPackage]:
    """Return the installed plugin packages, even those in which `find_plugins` finds no plugin.

    None is imported. The entry points of all distributions are read, which takes a while.
    """
    import importlib.metadata

    packages: list[PluginPackage] = []
    for folder in _folders_of("libtpu"):
        path = os.path.join(folder, "libtpu.so")
        library = path if os.path.isfile(path) else None
        packages.append(PluginPackage("libtpu", "libtpu", folder, "libtpu.so", library))
    for parent in _folders_of("jax_plugins"):
        for path in sorted(glob.glob(os.path.join(parent, "[!_]*"))):
            name, ending = os.path.splitext(os.path.basename(path))
            # pip leaves a folder of byte code behind when it removes a package that was imported.
            is_package = os.path.isdir(path) and set(os.listdir(path)) - {"__pycache__"}
            if name.isidentifier() and (is_package if not ending else ending == ".py"):
                origin, module = _distribution_of(name), f"jax_plugins.{name}"
                folder = "" if ending else path
                library = _library_in(folder) if folder else None
                packages.append(PluginPackage(module, origin, folder, _LIBRARIES, library))
    listed = {package.reference for package in packages}
    for entry in importlib.metadata.entry_points(group="jax_plugins"):
        module = entry.value.partition(":")[0].strip()
        if module not in listed:
            origin = module if entry.dist is None else entry.dist.name
            folder = next(iter(_folders_of(module)), "")
            library = _library_in(folder) if folder else None
            packages.append(PluginPackage(entry.value, origin, folder, _LIBRARIES, library))
    return packages


def _folders_of(package: str) -> list[str]:
    """Return the folders of a package, without importing it or its parent packages."""
    folders: list[str] | None = None
    name = ""
    for part in package.split("."):
        name = f"{name}.{part}" if name else part
        try:
            finder = importlib.machinery.PathFinder
            spec = finder.find_spec(name, folders) if folders else importlib.util.find_spec(name)
        except (ImportError, ValueError):
            return []
        folders = list(spec.submodule_search_locations or ()) if spec is not None else []
        if not folders:
            return []
    return folders or []


def _library_in(folder: str) -> str | None:
    """Return the path of the plugin among the libraries of a folder, or None."""
    libraries = sorted(glob.glob(os.path.join(glob.escape(folder), _LIBRARIES)))
    likely = [path for path in libraries if "plugin" in os.path.basename(path).lower()]
    return next(iter(likely or libraries), None)


def _distribution_of(module: str) -> str:
    """Return the distribution of a module of jax_plugins: by JAX's rule, or its entry point."""
    if module.startswith("xla_"):  # Searching the entry points is slow.
        return f"jax-{module.removeprefix('xla_')}-pjrt"
    import importlib.metadata

    for entry in importlib.metadata.entry_points(group="jax_plugins"):
        if entry.value.partition(":")[0] == f"jax_plugins.{module}" and entry.dist is not None:
            return entry.dist.name
    return f"jax_plugins.{module}"


def _from_package(name: str, library: str, package: str) -> Plugin:
    priority = _PRIORITIES.get(name, _OTHER_PRIORITY)
    options = bridge.gpu_options if name in _XLA_NAMES else None
    return Plugin(name, library, package, priority, True, options)


def version_of(distribution: str) -> str | None:
    """Return the version of an installed distribution; None if it is not installed."""
    import importlib.metadata

    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def install_command(platform: str, *packages: str) -> str:
    """Return the command that installs a platform's plugin and more packages; empty if unknown."""
    names = [name.format(jaxlib=bridge.jaxlib_version()) for name in _PACKAGES.get(platform, ())]
    return " ".join(("pip install", *names, *packages)) if names or packages else ""


def is_of_jaxlib(version: str) -> bool:
    """Return whether a version's first three numbers are those of the installed jaxlib."""
    return version.split(".")[:3] == bridge.jaxlib_version().split(".")[:3]


def mismatch(name: str) -> str:
    """Return advice if a GPU plugin's version is not jaxlib's; otherwise an empty text."""
    plugin, required = find_plugins().get(name), bridge.jaxlib_version()
    if plugin is None or not plugin.installed or name not in _XLA_NAMES:
        return ""
    if is_of_jaxlib(plugin.version):
        return ""
    return (
        f"{plugin.source} is not for jaxlib {required}, and the two versions must match. Run "
        f"`{install_command(name)}`."
    )


# ---- loading -------------------------------------------------------------------------------------


def check(plugin: Plugin) -> tuple[int, int]:
    """Return the version of the PJRT API that a plugin's library has.

    Raises:
      PluginError: if the library is not a plugin, or of a version that jaxlib does not support.
    """
    prepare(plugin.name)
    try:
        return bridge.api_version(plugin.library)
    except bridge.NotAPlugin as error:
        raise PluginError(
            f"the PJRT plugin {plugin.name!r} (from {plugin.source}) cannot be used: "
            f"{plugin.library} {error}. {_remedy(plugin)}"
        ) from None


def _remedy(plugin: Plugin) -> str:
    if plugin.installed:
        required = plugin.origin
        if required.endswith("-pjrt"):  # GPU plugins have jaxlib's version.
            version = bridge.jaxlib_version()
            kernels = required.removesuffix("-pjrt") + "-plugin"
            required = f"{required}=={version} {kernels}=={version}"
        return f"Run `pip install --force-reinstall {required}`."
    if plugin.origin in VARIABLES:
        return f"Correct {plugin.origin}, or unset it."
    return "Name the library of a PJRT plugin that fits this jaxlib."


def prepare(name: str) -> None:
    """Set the environment variables that a platform's PJRT plugin reads when it is loaded."""
    if name == "tpu":
        visibility = hardware.device_visibility("tpu")
        if visibility is None or not visibility.is_visible:
            for variable, value in compile_process.WITHOUT_TPU.items():
                os.environ.setdefault(variable, value)


def load(name: str) -> object:
    """Load the plugin of a platform once, and return the handle that topologies are made with.

    Raises:
      PluginError: if there is no plugin, or it cannot be used.
    """
    with _lock:
        if name in _loaded:
            return _loaded[name].api
        plugin = find_plugins().get(name)
        if plugin is None:
            raise PluginError(missing(name))
        major, minor = check(plugin)
        try:
            api = bridge.load(name, plugin.library)
            if name in _XLA_NAMES:
                bridge.register_kernels(_XLA_NAMES[name], api, kernels_package(plugin))
        except JaxRuntimeError as error:
            raise PluginError(
                f"the PJRT plugin {name!r} (from {plugin.source}, PJRT API {major}."
                f"{minor}) does not start under jaxlib {bridge.jaxlib_version()}: {error}. "
                f"{_remedy(plugin)}"
            ) from error
        _loaded[name] = _LoadedLibrary(plugin.library, api)
        return api


def kernels_package(plugin: Plugin) -> str:
    """Return the package with the custom calls of a GPU plugin, such as jax_cuda13_plugin."""
    number = re.search(r"(?:cuda|rocm)\d*", plugin.origin)
    return f"jax_{number.group() if number else plugin.name + '13'}_plugin"


def number_of_gpu(address: int) -> int | None:
    """Return the index of the CUDA GPU that owns an address; None without a plugin for CUDA."""
    plugin = find_plugins().get("cuda")
    return None if plugin is None else bridge.number_of_gpu(address, kernels_package(plugin))


def missing(name: str, command: str = "") -> str:
    """Return the error text for a plugin that is not installed; `command` installs it."""
    command = command or install_command(name)
    installed = ", ".join(sorted(find_plugins())) or "none"
    text = f"there is no PJRT plugin for the platform {name!r}; installed are: {installed}. "
    if command:
        return f"{text}Run `{command}`."
    return f"{text}Give its library to hlofront.pjrt.register_plugin({name!r}, path)."


def make_client(name: str, group: GroupMember | None = None) -> Client:
    """Create the client of a platform that a plugin drives.

    Args:
      name: the platform's name.
      group: the group that this process belongs to; None for a single process.

    Raises:
      PluginError: if the plugin cannot be used, or finds no device.
    """
    plugin = find_plugins().get(name)
    if plugin is None:
        raise PluginError(missing(name))
    visibility = hardware.device_visibility(name)
    if visibility is not None and not visibility.is_visible:
        # The plugin would print alarming lines before it fails with an equivalent error.
        raise PluginError(
            f"Unable to initialize backend {name!r}: its plugin is there ({plugin.source}), and "
            f"this machine has no device for it ({visibility.why}). To compile for a device that "
            "is not attached, see hlofront.targets()."
        )
    api = load(name)
    if name == "tpu":
        group = None  # TPUs know the processes of their group by themselves.
    options = plugin.options() if callable(plugin.options) else plugin.options
    try:
        settings = {**(options or {}), **client_settings(name, group)}
        client = bridge.make_client(name, settings, None if group is None else group.client)
    except JaxRuntimeError as error:
        raise PluginError(
            f"Unable to initialize backend {name!r} ({plugin.source}): {error}. "
            "Set JAX_PLATFORMS=cpu to continue without it."
        ) from error
    if name not in _profiled:
        _profiled.add(name)
        bridge.register_profiler(api)
    return client


# ---- priorities ----------------------------------------------------------------------------------


class Standing(NamedTuple):
    """The rank of a platform and whether it has devices, as known before it is used."""

    name: str
    priority: int
    usable: bool
    why: str
    plugin: Plugin | None = None


def standings() -> list[Standing]:
    """Return the platforms, the default one first, without loading a plugin."""
    rows = [Standing("cpu", 0, True, "always there")] if "cpu" not in factories else []
    for name, factory in factories.items():
        rows.append(Standing(name, factory.priority, True, "named by register_backend_factory"))
    for name, plugin in find_plugins().items():
        if name in factories:
            continue
        visibility = hardware.device_visibility(name)
        if visibility is None:
            row = Standing(name, plugin.priority, True, f"named by {plugin.source}", plugin)
        else:
            row = Standing(name, plugin.priority, visibility.is_visible, visibility.why, plugin)
        rows.append(row)
    return sorted(rows, key=lambda row: (row.usable, row.priority), reverse=True)


def usable() -> list[str]:
    """Return the names of the platforms with visible devices, the default one first."""
    global _usable
    names = _usable
    if names is None:
        names = _usable = [row.name for row in standings() if row.usable]
    return names
