"""Functions that run in Python on the machine that has some devices: here, this process's own."""

import functools
from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar, overload

import numpy as np

from hlofront.base.boundary import boundary
from hlofront.base.tree import tree_leaves
from hlofront.bridge.client import ArrayImpl, Device
from hlofront.core.sharding.mesh import Mesh
from hlofront.pjrt import devices

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


@overload
def colocated_cpu_devices(devices_or_mesh: Sequence[Device]) -> Sequence[Device]: ...
@overload
def colocated_cpu_devices(devices_or_mesh: Mesh) -> Mesh: ...
@boundary
def colocated_cpu_devices(devices_or_mesh: Sequence[Device] | Mesh) -> Sequence[Device] | Mesh:
    """Return CPU devices on the machines that have some devices, one for each.

    Args:
      devices_or_mesh: the devices, or a mesh of them.

    Returns:
      A list of as many CPU devices, or a mesh of the same shape and names. A CPU device is its own.

    Raises:
      ValueError: if a device's process has no CPU device for each of its devices.

    Example:
      >>> colocated_cpu_devices(jax.devices("cpu")[:1])
      [CpuDevice(id=0)]
    """
    if isinstance(devices_or_mesh, Mesh):
        near = colocated_cpu_devices(list(devices_or_mesh.devices.flat))
        return devices_or_mesh.update(devices=np.array(near).reshape(devices_or_mesh.devices.shape))
    return [_near(device) for device in devices_or_mesh]


def _near(device: Device) -> Device:
    """Return the CPU device that has the number of a device among those of its process."""
    if device.platform == "cpu":
        return device
    process = device.process_index
    number = devices.local_devices(process, device.platform).index(device)
    near = devices.local_devices(process, "cpu")
    if number >= len(near):
        raise ValueError(
            f"{device} is number {number} of its process, which has {len(near)} CPU devices: set "
            "the option jax_num_cpu_devices to the number of accelerators of a process"
        )
    return near[number]


def colocated_python(fun: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Make a function run on the machine that has the devices of its arguments.

    A process of hlofront computes on devices of its own machine, so that this is a plain call.

    Args:
      fun: a function of arrays.

    Returns:
      The function, which raises ValueError for arrays that other processes have parts of.

    Example:
      >>> colocated_python(lambda x: x + 1)(jnp.ones(2))
      Array([2., 2.], dtype=float32)
    """

    @functools.wraps(fun)
    @boundary
    def run_here(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        for leaf in tree_leaves((args, kwargs)):
            if isinstance(leaf, ArrayImpl) and not leaf.is_fully_addressable:
                raise ValueError(
                    f"colocated_python runs functions in this process, and {leaf.aval.str_short()} "
                    f"with {leaf.sharding} has parts in others: call it in each process with the "
                    "process's own part, multihost_utils.global_array_to_host_local_array(...)"
                )
        return fun(*args, **kwargs)

    return run_here
