"""PJRT as jaxlib shows it: make a client, compile, put arrays on devices, execute."""

import pickle
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hlofront.bridge import state

_jax = state.extension
xla_client = state.xla_client

try:
    from jaxlib import _hlo as hlo
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
        GSPMDSharding,
        HloModule,
        HloSharding,
        NamedSharding,
        OpSharding,
        Sharding,
        SingleDeviceSharding,
    )
else:
    Client = _jax.Client
    CompileOptions = xla_client.CompileOptions
    Device = _jax.Device
    DeviceList = _jax.DeviceList
    GSPMDSharding = _jax.GSPMDSharding
    HloSharding = hlo.HloSharding
    NamedSharding = _jax.NamedSharding
    OpSharding = hlo.OpSharding
    Sharding = _jax.Sharding
    SingleDeviceSharding = _jax.SingleDeviceSharding
DeviceAssignment: Any = xla_client.DeviceAssignment
# What the devices of a topology have: it compiles, and runs nothing.
CompileOnlyClient = _jax.CompileOnlyPyClient
PjitFunctionCache = _jax.PjitFunctionCache
PjitFunction = _jax.PjitFunction
batched_device_put = _jax.batched_device_put
pjit = _jax.pjit
hlo_module_cost_analysis: "Callable[[Client, HloModule], dict[str, float]]" = (
    _jax.hlo_module_cost_analysis
)
# Turns a profile of pprof from JSON into bytes.
profile_of_json = _jax.json_to_pprof_profile
HostBufferSemantics = _jax.HostBufferSemantics

_replicated = HloSharding.replicate()
# batched_device_put asks this of the sharding (jaxlib < 0.11).
SingleDeviceSharding._to_xla_hlo_sharding = lambda self, ndim: _replicated


def make_cpu_client(**options: Any) -> Any:
    """Return the client for this machine's processor."""
    return xla_client.make_cpu_client(**options)


def is_absent(device: Any) -> bool:
    """Return whether a device is of a topology: programs are compiled for it and not run."""
    return isinstance(device.client, CompileOnlyClient)


def compile_and_load(
    client: Any, ir_module: Any, devices: Any, options: Any, callbacks: list[Any]
) -> Any:
    """Compile a module for these devices; the module is an `ir.Module` and stays usable."""
    with ir_module.context:
        return client.compile_and_load(ir_module, DeviceList(tuple(devices)), options, callbacks)


def host_transfers(client: Any, function: Any, sent: Any, received: Any) -> Any:
    """Return a host function that a program sends arrays to and receives arrays from.

    Args:
      sent: for each operand the number of its channel, and its aval.
      received: the same for each result.
    """
    shapes = [
        [hlo.Shape.array_shape(aval.dtype, aval.shape) for _, aval in channels]
        for channels in (sent, received)
    ]
    numbers = [[number for number, _ in channels] for channels in (sent, received)]
    # Clients that are on another machine would pickle the function.
    return client.make_python_callback_from_host_send_and_recv(
        function, *shapes, *numbers, pickle.dumps
    )


def deserialize(client: Any, executable: bytes, devices: Any, options: Any) -> Any:
    """Load a serialized executable onto these devices; JaxRuntimeError if XLA refuses it."""
    return client.deserialize_executable(executable, DeviceList(tuple(devices)), options, [])


def result_handler(aval: Any, sharding: Any, committed: bool) -> Any:
    """Return what turns the raw output of an executable into an array."""
    if state.jaxlib_version < (0, 11):  # `_skip_checks` is gone from then on
        return _jax.array_result_handler(aval, sharding, committed, _skip_checks=True)
    return _jax.array_result_handler(aval, sharding, committed)
