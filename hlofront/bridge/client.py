"""jaxlib's PJRT client: making a client, compiling, putting arrays on devices, executing."""

import importlib
import pickle
from collections.abc import Callable, Iterable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from hlofront.bridge import state

if TYPE_CHECKING:
    from jaxlib.mlir import ir

_jax = state.extension
xla_client = state.xla_client

try:
    hlo: ModuleType = importlib.import_module("jaxlib._hlo")
except ImportError:
    hlo = _jax

ArrayImpl = state.ArrayImpl
JaxRuntimeError: type[RuntimeError] = state.JaxRuntimeError
if TYPE_CHECKING:
    from hlofront.bridge.jaxlib_types import (
        Client,
        CompileOptions,
        Device,
        DeviceList,
        HloModule,
        HloSharding,
        LoadedExecutable,
        PjitFunction,
        Sharding,
        SingleDeviceSharding,
    )
    from hlofront.bridge.jaxlib_types import (
        GSPMDSharding as GSPMDSharding,
    )
    from hlofront.bridge.jaxlib_types import (
        NamedSharding as NamedSharding,
    )
    from hlofront.bridge.jaxlib_types import (
        OpSharding as OpSharding,
    )
    from hlofront.bridge.jaxlib_types import (
        PjitFunctionCache as PjitFunctionCache,
    )
else:
    Client = _jax.Client
    CompileOptions = xla_client.CompileOptions
    Device = _jax.Device
    DeviceList = _jax.DeviceList
    GSPMDSharding = _jax.GSPMDSharding
    HloSharding = hlo.HloSharding
    LoadedExecutable = _jax.LoadedExecutable
    NamedSharding = _jax.NamedSharding
    OpSharding = hlo.OpSharding
    PjitFunction = _jax.PjitFunction
    PjitFunctionCache = _jax.PjitFunctionCache
    Sharding = _jax.Sharding
    SingleDeviceSharding = _jax.SingleDeviceSharding
DeviceAssignment: Any = xla_client.DeviceAssignment
# The client of compile-only devices, which compiles but does not execute.
CompileOnlyClient: "type[Client]" = _jax.CompileOnlyPyClient
# Return a C++ function that wraps a Python function, see `make_callable` in dispatch/jit.py.
pjit: "Callable[..., PjitFunction]" = _jax.pjit
hlo_module_cost_analysis: "Callable[[Client, HloModule], dict[str, float]]" = (
    _jax.hlo_module_cost_analysis
)
# Convert a pprof profile from JSON to its binary form.
profile_of_json: Callable[[str], bytes] = _jax.json_to_pprof_profile

_replicated = HloSharding.replicate()
_REDUCTIONS = {"sum": 0, "max": 1, "min": 2}


def with_reduction(sharding: HloSharding, kind: str) -> HloSharding:
    """Return a new sharding with the kind of reduction for its unreduced axes.

    If jaxlib supports only sums, programs of other kinds are refused when they are lowered.
    """
    set_reduction: Callable[[int], None] | None = getattr(sharding, "set_reduction_op", None)
    if set_reduction is not None:
        set_reduction(_REDUCTIONS[kind])
    return sharding


def _to_xla_hlo_sharding(sharding: SingleDeviceSharding, ndim: int) -> HloSharding:
    return _replicated


# batched_device_put calls this method of the sharding (jaxlib < 0.11).
setattr(SingleDeviceSharding, _to_xla_hlo_sharding.__name__, _to_xla_hlo_sharding)


class AvalLike(Protocol):
    """The protocol of an aval as jaxlib reads it: the class of avals is in a higher layer."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...


def make_cpu_client(**options: object) -> Client:
    """Return the PJRT client of this machine's CPU."""
    return xla_client.make_cpu_client(**options)


def set_effort(build_options: object, name: str, effort: float) -> bool:
    """Set an effort of XLA's compiler, from -1 to 1; return whether this jaxlib supports that.

    jaxlib has efforts and levels before 0.11, and only levels from then on.

    Args:
      build_options: jaxlib's ExecutableBuildOptions.
      name: the name of the effort there, such as "memory_fitting_effort".
      effort: the number.
    """
    if not hasattr(build_options, name):
        return False
    setattr(build_options, name, effort)
    return True


def is_absent(device: Device) -> bool:
    """Return whether a device is compile-only: programs can be compiled for it but not run."""
    return isinstance(device.client, CompileOnlyClient)


def compile_and_load(
    client: Client,
    ir_module: "ir.Module",
    devices: Iterable[Device],
    options: CompileOptions,
    callbacks: Sequence[object],
) -> LoadedExecutable:
    """Compile an MLIR module for devices, and load the executable; the module stays usable."""
    with ir_module.context:
        return client.compile_and_load(ir_module, DeviceList(tuple(devices)), options, callbacks)


def host_transfers(
    client: Client,
    function: Callable[..., object],
    sent: Sequence[tuple[int, AvalLike]],
    received: Sequence[tuple[int, AvalLike]],
) -> object:
    """Return a host callback to which a program sends arrays, and from which it receives arrays.

    Args:
      client: the client of the device that runs the program.
      function: called with NumPy arrays; it returns a tuple of NumPy arrays.
      sent: the channel number and aval of each operand.
      received: the channel number and aval of each result.
    """
    # Clients of a remote machine would pickle the function.
    return client.make_python_callback_from_host_send_and_recv(
        function,
        _shapes(sent),
        _shapes(received),
        [number for number, _ in sent],
        [number for number, _ in received],
        pickle.dumps,
    )


def _shapes(channels: Sequence[tuple[int, AvalLike]]) -> list[object]:
    """Return the avals of channels as XLA shapes."""
    return [hlo.Shape.array_shape(aval.dtype, aval.shape) for _, aval in channels]


def deserialize(
    client: Client, executable: bytes, devices: Iterable[Device], options: CompileOptions
) -> LoadedExecutable:
    """Load a serialized executable onto devices; raise a JaxRuntimeError if XLA refuses it."""
    return client.deserialize_executable(executable, DeviceList(tuple(devices)), options, [])


def result_handler(aval: object, sharding: Sharding, committed: bool) -> Callable[..., Any]:
    """Return the handler that turns the raw output of an executable into an array."""
    if state.jaxlib_version < (0, 11):  # `_skip_checks` was removed in 0.11.
        return _jax.array_result_handler(aval, sharding, committed, _skip_checks=True)
    return _jax.array_result_handler(aval, sharding, committed)
