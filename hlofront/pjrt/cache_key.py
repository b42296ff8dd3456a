"""The cache key of an executable on disk, field by field.

A key is a mapping of strings, so that a miss can report which field differs. No field depends on
source paths, line numbers, threads or the history of the process.
"""

import functools
import hashlib
import json
import os
import pathlib
import platform as machine
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hlofront.base.version import __version__
from hlofront.bridge import client as bridge
from hlofront.bridge import state
from hlofront.bridge.client import Device
from hlofront.pjrt.autotuning import autotune_results

Key = dict[str, str]

# The environment variables that are fields of a key, for those platforms that read them.
VARIABLES = ("XLA_FLAGS", "LIBTPU_INIT_ARGS")

# The folders whose code affects lowering: lowering/ and all that it imports, and runtime/, which
# chooses donation and shardings, and the contents of a cache entry.
DECISIVE_FOLDERS = (
    "base",
    "bridge",
    "core",
    "higher_order",
    "lowering",
    "pjrt",
    "primitives",
    "runtime",
    "transforms",
)


def compiler_fields(
    devices: Sequence[Device],
    options: bridge.CompileOptions,
    overrides: Mapping[str, object],
) -> Key:
    """Return the fields of cache keys that do not depend on the program: how it is compiled.

    Args:
      devices: the devices to compile for, in order, of one client.
      options: the CompileOptions for the devices of `numbers_in_key`, before lowering adds to them.
      overrides: the user's compiler options, which the key shows by name.
    """
    fields = {
        "hlofront": our_version(),
        "numpy": np.__version__,
        "compiler options": options_text(overrides),
        "options": hashlib.sha256(options.SerializeAsString()).hexdigest(),
        **machine_fields(devices),
    }
    results = autotune_results(devices[0].client)
    if results is not None:
        fields["autotuning results"] = results.digest
    return fields


def machine_fields(devices: Sequence[Any]) -> Key:
    """Return the cache key fields of a client's devices, in order, and of their compiler.

    Machine code can run where these are equal.
    """
    first = devices[0]
    client = first.client
    fields = {
        "jaxlib": f"{'.'.join(map(str, state.jaxlib_version))} {state.jaxlib_build}",
        "platform": client.platform,
        "platform version": client.platform_version,
        "device": first.device_kind,
        "devices": ",".join(map(str, numbers_in_key(devices))),
        "XLA_FLAGS": os.environ.get("XLA_FLAGS", ""),
    }
    if client.platform == "cpu":
        fields["processor"] = processor()
    elif client.platform == "tpu":
        fields["LIBTPU_INIT_ARGS"] = os.environ.get("LIBTPU_INIT_ARGS", "")
    return fields


def options_text(overrides: Mapping[str, object]) -> str:
    """Return a user's compiler options as text."""
    return " ".join(f"{name}={value}" for name, value in sorted(overrides.items()))


def numbers_in_key(devices: Sequence[Device]) -> list[int]:
    """Return the numbers of a program's devices that its key contains.

    Executables for CPUs run on any devices in the same number and order, so these are counted from
    the first: other devices and processes can load what one has compiled.
    """
    numbers = [device.id for device in devices]
    if devices[0].platform != "cpu":
        return numbers
    return [number - numbers[0] for number in numbers]


_encoder = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def encoded(key: Key) -> bytes:
    """Serialize a key: JSON with its fields in order."""
    return _encoder.encode(key).encode()


def bytes_digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def text_digest(text: str) -> str:
    return bytes_digest(text.encode())


@functools.cache
def our_version() -> str:
    """Return hlofront's version, with a digest of the source files that affect lowering."""
    return f"{__version__} {digest_of_sources(pathlib.Path(__file__).parents[1])}"


def digest_of_sources(package: pathlib.Path) -> str:
    """Return a digest of the source files below `package` that affect lowering.

    The digest is of their names and sizes, and in a checkout also of their modification times, so
    that an edit invalidates the executables compiled before.
    """
    installed = package.parent.name in ("site-packages", "dist-packages")
    files: list[tuple[str, int, int]] = []
    root = str(package)
    folders = [os.path.join(root, folder) for folder in DECISIVE_FOLDERS]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.name.endswith(".py"):
                    status = entry.stat()
                    modified = 0 if installed else status.st_mtime_ns
                    files.append((entry.path.removeprefix(root), status.st_size, modified))
                elif entry.is_dir() and entry.name != "__pycache__":
                    folders.append(entry.path)
    return hashlib.sha256(repr(sorted(files)).encode()).hexdigest()[:16]


@functools.cache
def processor() -> str:
    """Return the name and the features of this machine's processor, which XLA compiles for."""
    model, features = "", ""
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                name, _, value = line.partition(":")
                name = name.strip()
                if name in ("model name", "CPU part") and not features:
                    model = value.strip()
                elif name in ("flags", "Features"):
                    features = value
                    break
    except OSError:  # Other systems than Linux run on few kinds of processors.
        pass
    flags = " ".join(sorted(features.split()))
    digest = hashlib.sha256(flags.encode()).hexdigest()[:16]
    return f"{machine.machine()} {sys.platform} {model} {digest}"
