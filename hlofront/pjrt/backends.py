"""Clients, their caches and XLA's compile options, under the names of `jax.extend.backend`."""

import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from hlofront.base.typing import NumPyArray
from hlofront.bridge.client import Client, CompileOptions, DeviceAssignment
from hlofront.pjrt import clients
from hlofront.pjrt.compile import choose_logging, guard, options_of_size, override
from hlofront.pjrt.factories import factories, failures

if TYPE_CHECKING:
    from hlofront.bridge.mlir import ir


class Clearable(Protocol):
    """A cache that can be emptied, as `functools.lru_cache` makes them."""

    def cache_clear(self) -> None: ...


def backends() -> dict[str, Client]:
    """Return the clients of this process by platform, including the default one."""
    clients.client_for()
    for name in factories.keys() - failures.keys():
        with contextlib.suppress(RuntimeError):  # A platform that cannot start is left out.
            clients.client_for(name)
    return clients.clients()


def clear_backends(_crash: bool = False) -> None:
    """Forget all clients: the next use makes new ones, and old arrays stay with the old clients.

    Args:
      _crash: JAX's private argument, which changes nothing: no client is destroyed while it has
        arrays.
    """
    clients.reset()


def backend_xla_version(platform: str | None = None) -> int | None:
    """Return the version of XLA that a platform's plugin reports, or None where it reports none."""
    return getattr(clients.client_for(platform), "xla_version", None)


def register_backend_cache(cache: Clearable, for_what: str) -> None:
    """Register a cache to be cleared whenever the clients are forgotten, as it refers to devices.

    Args:
      cache: a cache, or a function with one.
      for_what: what the cache is for, in words.

    Raises:
      TypeError: if it has no method `cache_clear`.
    """
    if not callable(getattr(cache, "cache_clear", None)):
        raise TypeError(f"the cache for {for_what} has no method cache_clear: got {cache!r}")
    clients.on_reset(cache.cache_clear)


def get_compile_options(
    num_replicas: int,
    num_partitions: int,
    device_assignment: Sequence[Sequence[int]] | Sequence[int] | None = None,
    env_options_overrides: Mapping[str, str] | None = None,
    fdo_profile: bytes | None = None,
    detailed_logging: bool = True,
    backend: Client | None = None,
) -> CompileOptions:
    """Return the options that XLA compiles a program with.

    Args:
      num_replicas: how many copies of the program run, each on its own data.
      num_partitions: how many devices a copy is split over.
      device_assignment: the numbers of devices, a row of partitions per replica; a flat list has
        one partition per replica. By default XLA chooses.
      env_options_overrides: XLA's flags by name.
      fdo_profile: a profile of an earlier run, which guides the optimization.
      detailed_logging: whether XLA logs what it compiles.
      backend: the client that will compile; None for that of the default platform. The options
        include its guards against known faults of XLA.

    Raises:
      ValueError: if the device assignment has the wrong size.
    """
    options = options_of_size(num_replicas, num_partitions)
    override(options, env_options_overrides or {})
    guard(options, backend or clients.client_for())
    build = options.executable_build_options
    build.use_spmd_partitioning = True
    if fdo_profile is not None:
        build.fdo_profile = fdo_profile
    build.debug_options.xla_detailed_logging = detailed_logging
    if device_assignment is not None:
        numbers = np.array(device_assignment, np.int32)
        rows = numbers[:, None] if numbers.ndim == 1 else numbers
        if rows.shape != (num_replicas, num_partitions):
            raise ValueError(
                f"a device assignment of {num_replicas} replicas and {num_partitions} partitions "
                f"has as many rows and columns: got {device_assignment!r}"
            )
        options.device_assignment = DeviceAssignment.create(rows)
    return options


def create_compile_options(
    computation: "ir.Module",
    tuple_args: bool,
    allow_prop_to_inputs: Sequence[bool],
    allow_prop_to_outputs: Sequence[bool],
    backend: Client,
    np_dev: NumPyArray,
    compiler_options: Mapping[str, Any] | None,
) -> CompileOptions:
    """Return the options that a lowered program is compiled with for some devices.

    Args:
      computation: the program, an MLIR module. The option jax_compiler_detailed_logging_min_ops
        is the least size of programs that are logged in detail.
      tuple_args: whether the program takes all its arguments in one tuple.
      allow_prop_to_inputs: per argument, whether XLA may choose how it is split over the devices.
      allow_prop_to_outputs: per result, whether XLA may choose how it is split.
      backend: the client that will compile.
      np_dev: the devices, an array of any shape.
      compiler_options: options of the build, and XLA's flags, by name.
    """
    numbers = [device.id for device in np_dev.flat]
    options = get_compile_options(1, len(numbers), [numbers], compiler_options, backend=backend)
    choose_logging(options, computation)
    options.parameter_is_tupled_arguments = tuple_args
    build = options.executable_build_options
    build.use_shardy_partitioner = True
    build.allow_spmd_sharding_propagation_to_parameters = list(allow_prop_to_inputs)
    build.allow_spmd_sharding_propagation_to_output = list(allow_prop_to_outputs)
    return options
