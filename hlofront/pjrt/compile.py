"""StableHLO -> executable."""

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from hlofront.bridge import client as bridge

# MLIR contexts are not thread-safe, and all modules live in one.
mlir_lock = threading.RLock()


# XLA's compiler for CPUs drops optimization barriers in the first pass, before fusion, and would
# undo what they are for. (tests/lowering holds that they stay: a new jaxlib may rename it.) The
# second makes one kernel of a small loop, which ends the process where it meets a barrier.
_PASSES_WITHOUT_BARRIERS = "cse_barrier_expander,small-while-loop-hoisting"
_DISABLED_PASSES = "xla_disable_hlo_passes"


def compile_options(
    devices: Sequence[Any],
    overrides: dict[str, Any] | None = None,
    *,
    keep_barriers: bool = False,
    chosen_outputs: Sequence[bool] = (),
) -> Any:
    """What XLA is told beside the module: the devices, and the user's compiler options.

    Args:
      chosen_outputs: per output, whether XLA decides how it is split over the devices.
      overrides: XLA flag or build-option names and their values, as `compiler_options` of jit.
      keep_barriers: whether a CPU's program is compiled with its optimization barriers.

    Raises:
      ValueError: if an option's value has a type that XLA has no option of.
    """
    options = bridge.CompileOptions()
    options.num_replicas = 1
    options.num_partitions = len(devices)
    ids = np.array([[device.id for device in devices]], np.int32)
    options.device_assignment = bridge.DeviceAssignment.create(ids)
    build = options.executable_build_options
    if len(devices) > 1 or chosen_outputs:
        build.use_spmd_partitioning = True
        build.use_shardy_partitioner = True
        build.allow_spmd_sharding_propagation_to_output = list(chosen_outputs) or [True]
    if keep_barriers:
        # The passes that the user disables, here or in XLA_FLAGS, stay so.
        overrides = dict(overrides or {})
        given = overrides.get(_DISABLED_PASSES, build.debug_options.xla_disable_hlo_passes)
        if not given:
            overrides[_DISABLED_PASSES] = _PASSES_WITHOUT_BARRIERS
        elif isinstance(given, str):
            overrides[_DISABLED_PASSES] = f"{given},{_PASSES_WITHOUT_BARRIERS}"
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
