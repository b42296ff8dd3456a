# pyright: strict
"""Programs whose devices and shardings are all known, compiled and run."""

from collections.abc import Callable, Sequence
from typing import Any

from hlofront.base.typing import Array
from hlofront.bridge.client import Device, LoadedExecutable
from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.core.lowering_request import LoweringRequest
from hlofront.pjrt import launches
from hlofront.pjrt.clients import lowering_platform
from hlofront.pjrt.compile import compile_module, compile_options, mlir_lock
from hlofront.runtime.sharding.cpu_queue import on_cpu
from hlofront.runtime.sharding.device_assignment import DeviceAssignment


def compiled_for(
    assignment: DeviceAssignment, program: ClosedJaxpr, name: str, donated: Sequence[bool]
) -> LoadedExecutable:
    """Return the executable of a program whose shardings are all known.

    Args:
      assignment: the devices of the program, and the shardings of its inputs and outputs.
      program: the program.
      name: the name of its module.
      donated: per input, whether its memory is donated.
    """
    # Loads MLIR, which a process that compiles nothing does not need.
    from hlofront.lowering.rules import lower_program

    devices = list(assignment.devices)
    is_split = len(devices) > 1
    with mlir_lock:
        request = LoweringRequest(
            name,
            lowering_platform(devices[0]),
            donated,
            device_assignment=assignment if is_split else None,
        )
        module = lower_program(program, request)
    chosen = [False] * len(assignment.outputs) if is_split else ()
    options = compile_options(devices, chosen_outputs=chosen)
    return compile_module(devices[0].client, module.ir_module, devices, options)


def results_between(
    loaded: LoadedExecutable,
    x: Array,
    devices: Sequence[Device],
    meets: bool,
    handlers: Sequence[Callable[[Any], object]],
) -> list[Any]:
    """Run a program that moves parts of an array between devices; return its results.

    Args:
      loaded: the program.
      x: its argument.
      devices: its devices.
      meets: whether they are CPU devices that exchange values, which run one program at a time.
      handlers: the handlers of its results.
    """
    if not meets:
        return loaded.execute_sharded([x]).consume_with_handlers(handlers)

    def results() -> list[Any]:
        return on_cpu.launch(loaded, [x])[0].consume_with_handlers(handlers)

    if launches.current is None:
        return results()
    processes = tuple(sorted({device.process_index for device in devices}))
    return launches.noted(processes, "device_put", results)
