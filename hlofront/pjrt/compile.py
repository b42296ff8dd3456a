"""Compilation of StableHLO to executables, and the options of XLA's compiler."""

import enum
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from hlofront.base import source
from hlofront.base.config import options as config_options
from hlofront.base.option import changed_options
from hlofront.bridge import client as bridge
from hlofront.bridge import state, xla_faults
from hlofront.bridge.client import Client, Device
from hlofront.bridge.members import raw_platform_of
from hlofront.bridge.xla_faults import Version
from hlofront.pjrt.autotuning import autotune_options
from hlofront.pjrt.partitioning import PartitionCall, compile_partitioned

# MLIR contexts are not thread-safe, and all modules share one.
mlir_lock = threading.RLock()

Executable = TypeVar("Executable")


# XLA's CPU compiler drops optimization barriers in the first pass, before fusion, which defeats
# them. (tests/lowering checks that they stay: a new jaxlib may rename the pass.) The second pass
# makes a small loop one kernel, and aborts the process if it meets a barrier there.
_DROPPING_BARRIERS = "cse_barrier_expander"
_MAKING_KERNELS_OF_LOOPS = "small-while-loop-hoisting"
_DISABLED_PASSES = "xla_disable_hlo_passes"

_REMATERIALIZATION = "rematerialization"


class CompilerEffortLevel(enum.Enum):
    """A level of the effort that XLA spends on optimization, with XLA's number for it.

    `optimization_level` and `memory_fitting_level` among the `compiler_options` of `jit` accept a
    level or its name.
    """

    UNKNOWN = 0
    O0 = 9
    O1 = 19
    O2 = 29
    O3 = 39


_EFFORTS = ("optimization_level", "memory_fitting_level")
_optimization_level = config_options["jax_optimization_level"]
_memory_fitting_level = config_options["jax_memory_fitting_level"]
_run_time_effort = config_options["jax_exec_time_optimization_effort"]
_memory_effort = config_options["jax_memory_fitting_effort"]
_few_optimizations = config_options["jax_disable_most_optimizations"]
_rematerializes = config_options["jax_compiler_enable_remat_pass"]
_profile_version = config_options["jax_xla_profile_version"]
_guards = config_options["hlofront_xla_guards"]
_detailed_logging_min_ops = config_options["jax_compiler_detailed_logging_min_ops"]
_COMPILER_OPTIONS = (
    _optimization_level,
    _memory_fitting_level,
    _run_time_effort,
    _memory_effort,
    _few_optimizations,
    _rematerializes,
    _profile_version,
    _guards,
    config_options["hlofront_autotune_results"],
)


def compiler_settings() -> tuple[tuple[str, object], ...]:
    """Return the config options of XLA's compiler that are not at defaults, for cache keys."""
    return changed_options(_COMPILER_OPTIONS)


def compile_options(
    devices: Sequence[Device],
    overrides: Mapping[str, object] | None = None,
    *,
    keep_barriers: bool = False,
    barriers_in_loops: bool = True,
    chosen_outputs: Sequence[bool] = (),
    numbers: Sequence[int] | None = None,
    jaxlib: Version = state.jaxlib_version,
) -> bridge.CompileOptions:
    """Return XLA's compile options for a program on these devices.

    Args:
      devices: the device assignment: one partition per device.
      overrides: XLA flag or build-option names and their values, as in jit's `compiler_options`.
      keep_barriers: whether a CPU program is compiled with its optimization barriers.
      barriers_in_loops: whether loops may contain barriers, which prevent small loops from becoming
          faster kernels.
      chosen_outputs: per output, whether XLA chooses its sharding.
      numbers: the numbers of the devices in the device assignment, for options in a cache key,
          which has the digest of autotuning results instead of their path; None for their own.
      jaxlib: the version of jaxlib that compiles, whose faults programs are guarded against.

    Raises:
      ValueError: if an option's value has a type that no XLA option has.
    """
    options = options_of_size(1, len(devices))
    ids = [device.id for device in devices] if numbers is None else numbers
    options.device_assignment = bridge.DeviceAssignment.create(np.array([ids], np.int32))
    build = options.executable_build_options
    if len(devices) > 1 or chosen_outputs:
        build.use_spmd_partitioning = True
        build.use_shardy_partitioner = True
        build.allow_spmd_sharding_propagation_to_output = list(chosen_outputs) or [True]
    if keep_barriers:
        passes = [_DROPPING_BARRIERS]
        if barriers_in_loops:
            passes.append(_MAKING_KERNELS_OF_LOOPS)
        # Passes that the user disables, here or in XLA_FLAGS, stay disabled.
        overrides = dict(overrides or {})
        disabled = overrides.get(_DISABLED_PASSES, build.debug_options.xla_disable_hlo_passes)
        # Values of other types are refused below.
        if isinstance(disabled, str):
            passes = [disabled, *passes] if disabled else passes
            overrides[_DISABLED_PASSES] = ",".join(passes)
    override(options, overrides or {})
    guard(options, devices[0].client, jaxlib)
    if numbers is None:
        flags = options.env_option_overrides
        given = dict(flags)
        kept = [pair for pair in autotune_options(devices[0].client) if pair[0] not in given]
        options.env_option_overrides = [*flags, *kept]
    return options


def guard(
    options: bridge.CompileOptions, client: Client, jaxlib: Version = state.jaxlib_version
) -> None:
    """Add the guards against the known faults of XLA to compile options for a client."""
    platform = raw_platform_of(client) if client.platform == "gpu" else client.platform
    flags = dict(options.env_option_overrides)
    added = xla_faults.options_of(xla_faults.guards_for(platform, flags, jaxlib))
    if added and _guards.value:
        options.env_option_overrides = [*flags.items(), *added.items()]


def options_of_size(replica_count: int, partition_count: int) -> bridge.CompileOptions:
    """Return XLA's compile options for this many replicas and partitions, by the config options."""
    options = bridge.CompileOptions()
    options.num_replicas = replica_count
    options.num_partitions = partition_count
    _apply_compiler_settings(options)
    return options


def override(options: bridge.CompileOptions, overrides: Mapping[str, object]) -> None:
    """Write a user's values into compile options: build options, and flags of XLA."""
    build = options.executable_build_options
    flags: list[tuple[str, object]] = []
    for name, value in overrides.items():
        if name in _EFFORTS:
            setattr(build, name, _effort_level(name, value).value)
        elif hasattr(build, name):
            setattr(build, name, value)
        else:
            flags.append((name, value))
    if flags:
        options.env_option_overrides = flags


def _effort_level(name: str, value: object) -> CompilerEffortLevel:
    """Return the effort level that the value of a compiler option gives by name or number.

    Raises:
      ValueError: if the value is not a level.
    """
    if isinstance(value, str) and value in CompilerEffortLevel.__members__:
        return CompilerEffortLevel[value]
    try:
        return CompilerEffortLevel(value)
    except ValueError:
        levels = ", ".join(f"{level.name} ({level.value})" for level in CompilerEffortLevel)
        raise ValueError(f"{name} is a level of {levels}: got {value!r}") from None


def _apply_compiler_settings(options: bridge.CompileOptions) -> None:
    """Copy the config options of XLA's compiler into its CompileOptions."""
    build = options.executable_build_options
    build.memory_fitting_level = CompilerEffortLevel[_memory_fitting_level.value].value
    if not compiler_settings():
        return
    build.optimization_level = CompilerEffortLevel[_optimization_level.value].value
    for option in (_run_time_effort, _memory_effort):
        if not bridge.set_effort(build, option.name.removeprefix("jax_"), option.value):
            if option.value:
                source.warn(
                    f"{option.name} = {option.value} has no effect under this jaxlib, whose "
                    "compiler has only levels: set jax_optimization_level or "
                    "jax_memory_fitting_level instead"
                )
    flags = build.debug_options
    if _few_optimizations.value:
        flags.xla_backend_optimization_level = 0
        flags.xla_llvm_disable_expensive_passes = True
        flags.xla_test_all_input_layouts = False
    if not _rematerializes.value:
        disabled = flags.xla_disable_hlo_passes
        flags.xla_disable_hlo_passes = f"{disabled},{_REMATERIALIZATION}".lstrip(",")
    if _profile_version.value > 0:
        options.profile_version = _profile_version.value


def compile_module(
    client: Client,
    ir_module: Any,
    devices: Sequence[Device],
    options: bridge.CompileOptions,
    callbacks: Sequence[Any] = (),
    partition: PartitionCall | None = None,
) -> Any:
    """Compile a verified module for devices of a client; return the executable.

    Args:
      client: the client.
      ir_module: the module.
      devices: the devices.
      options: the result of `compile_options`.
      callbacks: the host functions that the module calls, by their index.
      partition: partitions the module's custom calls that the host partitions, by their numbers.
    """

    def compiled(module: Any) -> Any:
        return bridge.compile_and_load(client, module, devices, options, list(callbacks))

    return compile_beside_others(ir_module, options, compiled, partition)


def compile_beside_others(
    ir_module: Any,
    options: bridge.CompileOptions,
    compiled: Callable[[Any], Executable],
    partition: PartitionCall | None = None,
) -> Executable:
    """Compile a module, and let other threads lower and compile at the same time.

    Args:
      ir_module: the module.
      options: the result of `compile_options`.
      compiled: compiles a module for devices.
      partition: partitions the module's custom calls that the host partitions, by their numbers.
        Its lowerings need the lock, so that other threads wait.
    """
    with mlir_lock:
        choose_logging(options, ir_module)
        if partition is not None:
            return compile_partitioned(lambda: compiled(ir_module), partition)
        if threading.active_count() == 1:
            return compiled(ir_module)
        # Loads MLIR, which a process that compiles nothing does not need.
        from hlofront.bridge import mlir

        own_context = mlir.take_context()
        own_module = mlir.copied_to(own_context, ir_module)
    executable = compiled(own_module)
    # The traceback of an exception refers to the module, so the context is not reused after one.
    del own_module
    mlir.return_context(own_context)
    return executable


def choose_logging(options: bridge.CompileOptions, ir_module: Any) -> None:
    """Enable XLA's detailed compilation logging, or disable it, depending on the module's size."""
    # Loads MLIR, which a process that compiles nothing does not need.
    from hlofront.bridge.mlir import has_more_operations

    options.executable_build_options.debug_options.xla_detailed_logging = has_more_operations(
        ir_module, _detailed_logging_min_ops.value
    )
