"""PJRT plugins: checking and loading a library, making a client or a topology."""

import ctypes
import importlib
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jaxlib.version

from hlofront.bridge import compile_process, partitioning, state
from hlofront.bridge.client import (
    Client,
    CompileOptions,
    Device,
    DeviceList,
    LoadedExecutable,
    xla_client,
)
from hlofront.bridge.registration import register_gpu_plugin
from hlofront.bridge.worker_process import CannotStart

if TYPE_CHECKING:
    from jaxlib.mlir import ir

    from hlofront.bridge.coordination import CoordinationClient
    from hlofront.bridge.jaxlib_types import DeviceTopology

_ENTRY_POINT = "GetPjrtApi"
# plugin name -> path of its library.
_libraries: dict[str, str] = {}
# GPU plugin name -> the package with its kernels.
_kernel_packages: dict[str, str] = {}
_MAJOR = 0
# The functions at the start of PJRT's table in every version: they read errors and start the
# plugin.
_FIRST_FUNCTIONS = 4


class NotAPlugin(Exception):
    """The error for an unusable plugin; its text is the reason, to follow "it"."""


class _Version(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("major", ctypes.c_int),
        ("minor", ctypes.c_int),
    ]


class _Api(ctypes.Structure):
    """The header of PJRT's table of functions, which is fixed across versions."""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("version", _Version),
        ("functions", ctypes.c_void_p * _FIRST_FUNCTIONS),
    ]


def api_version(path: str) -> tuple[int, int]:
    """Return the version of a library's PJRT API, after loading the library into the process.

    jaxlib would abort the process for some of the libraries that are refused here.

    Raises:
      NotAPlugin: if it is not a library, has no entry point, or its version is unknown to jaxlib.
    """
    if not os.path.exists(path):
        raise NotAPlugin("is not there")
    if os.path.isdir(path):
        raise NotAPlugin("is a folder")
    with open(path, "rb") as file:
        start = file.read(4)
    if os.name == "posix" and start != b"\x7fELF" and not _is_mach_o(start):
        raise NotAPlugin("is not a shared library")
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise NotAPlugin(f"cannot be loaded: {error}") from None
    try:
        entry_point = getattr(library, _ENTRY_POINT)
    except AttributeError:
        raise NotAPlugin(
            f"has no function {_ENTRY_POINT}, by which every PJRT plugin is entered"
        ) from None
    entry_point.restype = ctypes.POINTER(_Api)
    table = entry_point()
    if not table:
        raise NotAPlugin(f"gives no table of functions: its {_ENTRY_POINT} returned null")
    api = table.contents
    version = api.version.major, api.version.minor
    shown = f"version {version[0]}.{version[1]} of the PJRT API"
    if version[0] != _MAJOR:
        newer = "a newer jaxlib" if version[0] > _MAJOR else "another jaxlib"
        raise NotAPlugin(
            f"offers {shown}, but this jaxlib ({jaxlib_version()}) supports {_MAJOR}.x: the plugin "
            f"is made for {newer}"
        )
    if api.struct_size < ctypes.sizeof(_Api) or not all(api.functions):
        raise NotAPlugin(f"claims {shown}, and its table has no functions to start it")
    return version


def _is_mach_o(start: bytes) -> bool:
    return start in (b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"\xfe\xed\xfa\xcf")


def jaxlib_version() -> str:
    """Return the version of jaxlib, such as "0.10.2"."""
    return jaxlib.version.__version__


def load(name: str, path: str) -> object:
    """Load and start a plugin; return its API, which topologies and kernels need.

    Raises:
      JaxRuntimeError: if jaxlib or the plugin refuses.
    """
    api = xla_client.load_pjrt_plugin_dynamically(name, path)
    _libraries[name] = path
    partitioning.note_plugin(api)
    if not xla_client.pjrt_plugin_initialized(name):
        xla_client.initialize_pjrt_plugin(name)
    return api


def register_profiler(api: object) -> None:
    """Register a plugin with XLA's profiler, so that profiles have the events of its devices.

    The plugin must have devices: without any, its profiler can end the process (libtpu 0.0.52).
    """
    importlib.import_module("jaxlib._profiler").register_plugin_profiler(api)


def gpu_options() -> dict[str, Any]:
    """Return the options of GPU clients, from XLA_PYTHON_CLIENT_* in the environment."""
    return xla_client.generate_pjrt_gpu_plugin_options()


def make_client(
    name: str, options: Mapping[str, object], coordination: "CoordinationClient | None" = None
) -> Client:
    """Return the client of a loaded plugin.

    Args:
      name: the plugin's name.
      options: the plugin's options.
      coordination: the coordination client of a process of a group, through whose key-value store
          the plugin finds the other processes; None for a single process.

    Raises:
      JaxRuntimeError: if the plugin finds no device.
    """
    return xla_client.make_c_api_client(name, dict(options), coordination)


def register_kernels(platform: str, api: object, package: str) -> bool:
    """Register a GPU plugin's custom call handlers, and the custom calls of its kernel package.

    Args:
      platform: XLA's name, "CUDA" or "ROCM".
      api: the API of the loaded plugin, from `load`.
      package: the kernel package, such as "jax_cuda13_plugin".

    Returns:
      Whether the package is installed.
    """
    is_installed = register_gpu_plugin(platform, api, package, xla_client, state.extension)
    if is_installed:
        _kernel_packages[platform.lower()] = package
    return is_installed


def number_of_gpu(address: int, package: str) -> int | None:
    """Return the index of the CUDA GPU that owns an address, or None without the package.

    Args:
      address: an address in the memory of a GPU.
      package: the kernel package of CUDA's plugin, such as "jax_cuda13_plugin".
    """
    try:
        extension = importlib.import_module(f"{package}.cuda_plugin_extension")
    except ImportError:
        return None
    return extension.get_device_ordinal(address)


# ---- compile-only devices ------------------------------------------------------------------------


def topology(api: object, name: str, options: Mapping[str, object]) -> "DeviceTopology":
    """Return a plugin's PJRT topology for a name and options."""
    return xla_client.make_c_api_device_topology(api, name, **options)


def devices_of(described: Any) -> list[Device]:
    """Return the compile-only devices of a PJRT topology."""
    return list(described._make_compile_only_devices())


def absent_devices(
    api: object, platform: str, name: str, options: Mapping[str, object]
) -> list[Device]:
    """Return the compile-only devices of a PJRT topology.

    Args:
      api: the C API of the platform's plugin; unused for "tpu".
      name: the topology's name, such as "v5e:2x2".
      options: the plugin's options for the topology.

    Raises:
      JaxRuntimeError: if the plugin has no topology of this name.
    """
    if platform == "tpu":
        described = xla_client.make_tfrt_tpu_c_api_device_topology(name, **options)
    else:
        described = topology(api, name, options)
    devices = devices_of(described)
    source = compile_process.TopologySource(
        platform, _libraries[platform], name, dict(options), _kernel_packages.get(platform, "")
    )
    compile_process.know(devices, source)
    return devices


def compile_only(
    ir_module: "ir.Module", devices: Sequence[Device], options: CompileOptions, is_subprocess: bool
) -> LoadedExecutable | compile_process.SubprocessExecutable:
    """Compile a module for compile-only devices, to an executable that cannot be run here.

    Args:
      ir_module: the module, which stays usable.
      devices: the devices, all of one topology.
      options: XLA's compile options.
      is_subprocess: whether to run compilers that may abort in a worker process.

    Raises:
      JaxRuntimeError: if the compiler refuses the module or an option, or ends its process.
    """
    if is_subprocess and compile_process.needs_subprocess(devices[0]):
        try:
            return compile_process.compile_in_subprocess(ir_module, devices, options)
        except CannotStart:
            is_subprocess = False
    with ir_module.context:
        return devices[0].client.compile(ir_module, DeviceList(tuple(devices)), options)
