"""StableHLO -> executable."""

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from hlofront.bridge import client as bridge

# MLIR contexts are not thread-safe, and all modules live in one.
mlir_lock = threading.RLock()


def compile_options(devices: Sequence[Any], overrides: dict[str, Any] | None = None) -> Any:
    """What XLA is told beside the module: the devices, and the user's compiler options.

    `overrides` maps XLA flag or build-option names to values, as `compiler_options` of jit.

    Raises:
      ValueError: if an option's value has a type that XLA has no option of.
    """
    options = bridge.CompileOptions()
    options.num_replicas = 1
    options.num_partitions = len(devices)
    ids = np.array([[device.id for device in devices]], np.int32)
    options.device_assignment = bridge.DeviceAssignment.create(ids)
    build = options.executable_build_options
    build.use_spmd_partitioning = len(devices) > 1
    flags: list[tuple[str, Any]] = []
    for name, value in (overrides or {}).items():
        if hasattr(build, name):
            setattr(build, name, value)
        else:
            flags.append((name, value))
    if flags:
        options.env_option_overrides = flags
    return options


def compile_module(
    client: Any,
    ir_module: Any,
    devices: Sequence[Any],
    options: Any,
    callbacks: Sequence[Any] = (),
) -> Any:
    """Compile a verified module for these devices of this client."""
    with mlir_lock:
        return bridge.compile_and_load(client, ir_module, devices, options, list(callbacks))
