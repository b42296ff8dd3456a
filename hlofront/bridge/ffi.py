"""Registration, by jaxlib, of foreign functions and types that XLA refers to by name."""

import ctypes
import os

import jaxlib

from hlofront.bridge.client import xla_client
from hlofront.bridge.state import extension

_PyCapsule_New = ctypes.pythonapi.PyCapsule_New
_PyCapsule_New.restype = ctypes.py_object
_PyCapsule_New.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)


# The names passed to `register_ffi_target`: untrusted programs may call them.
registered_targets: set[str] = set()

# The classes of the arguments of buffer callbacks.
Buffer = extension.ffi.Buffer
ExecutionContext = extension.ffi.ExecutionContext
ExecutionStage = extension.ffi.ExecutionStage


def pycapsule(funcptr: object) -> object:
    """Return a function of a library, loaded with `ctypes`, as a capsule for XLA.

    Args:
      funcptr: the function, such as `ctypes.cdll.LoadLibrary(path).RmsNorm`.
    """
    return _PyCapsule_New(ctypes.cast(funcptr, ctypes.c_void_p), None, None)  # pyright: ignore[reportArgumentType]


def include_dir() -> str:
    """Return the folder of the C++ headers `xla/ffi/api/*.h`, for the compiler's option -I."""
    return os.path.join(os.path.dirname(os.path.abspath(jaxlib.__file__)), "include")


def register_ffi_target(
    name: str, fn: object, platform: str = "cpu", api_version: int = 1, **kwargs: object
) -> None:
    """Register a foreign function with XLA, before a program that calls it is compiled.

    Args:
      name: the name for `ffi_call`.
      fn: the function as a capsule (see `pycapsule`), or a dictionary of capsules by the stage of
        execution: "instantiate", "prepare", "initialize", "execute".
      platform: "cpu", "CUDA" or "ROCM".
      api_version: 1 for functions of XLA's typed interface, 0 for older ones.
      kwargs: further arguments for XLA, such as `traits`.
    """
    xla_client.register_custom_call_target(
        name, fn, platform=platform, api_version=api_version, **kwargs
    )
    registered_targets.add(name)


def register_ffi_type(name: str, type_registration: object, platform: str = "cpu") -> None:
    """Register with XLA a C++ type for the state that a foreign function keeps between stages.

    Args:
      name: of the type.
      type_registration: a dictionary of capsules: "type_id", and "type_info" if there is one.
      platform: "cpu", "CUDA" or "ROCM".
    """
    xla_client.register_custom_type(name, type_registration, platform=platform)


def register_ffi_type_id(name: str, obj: object, platform: str = "cpu") -> None:
    """Register the id of a C++ type with XLA.

    Args:
      name: of the type.
      obj: the capsule of its `ffi::TypeId`.
      platform: "cpu", "CUDA" or "ROCM".
    """
    xla_client.register_custom_type(name, {"type_id": obj}, platform=platform)


def register_ffi_target_as_batch_partitionable(name: str) -> None:
    """Declare that XLA may call a foreign function with a part of its batch.

    If operands and results are split over devices along their first axes, each device then calls
    the function with its own part.

    Args:
      name: the name under which the foreign function is registered.

    Raises:
      TypeError: if the name is not a string.
    """
    extension.register_custom_call_as_batch_partitionable(name)
