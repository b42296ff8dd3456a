"""Programs compiled for compile-only devices, which can be inspected but not run."""

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from hlofront.base.config import options as settings
from hlofront.base.errors import AbsentDeviceError, PluginError
from hlofront.bridge import plugins as bridge
from hlofront.bridge.client import Device, LoadedExecutable
from hlofront.bridge.compile_process import SubprocessExecutable
from hlofront.bridge.state import JaxRuntimeError
from hlofront.bridge.worker_process import WorkerEnded
from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.core.sharding.layout_modes import LayoutModes
from hlofront.pjrt import executable, platforms
from hlofront.pjrt.clients import lowering_platform
from hlofront.pjrt.compile import compile_beside_others, compile_options, mlir_lock
from hlofront.pjrt.shardings import SingleDeviceSharding, on_device
from hlofront.pjrt.targets import compiler_options, target_of
from hlofront.runtime.sharding.chosen_shardings import compiled_shardings
from hlofront.runtime.sharding.device_assignment import (
    CompiledShardings,
    DeviceAssignment,
    ProgramDevices,
    first_device,
)
from hlofront.runtime.sharding.partitioning import inspect_on_one_device, partition_of

if TYPE_CHECKING:
    from hlofront.lowering.module import Module

_in_subprocess = settings["hlofront_compile_apart"]


class AbsentExecutable:
    """A program compiled for compile-only devices: an executable that cannot run."""

    __slots__ = (
        "_program",
        "call",
        "committed",
        "device",
        "devices",
        "kept_avals",
        "kept_inputs",
        "layouts",
        "loaded",
        "name",
        "out_avals",
        "where",
    )

    def __init__(
        self,
        program: ClosedJaxpr,
        name: str,
        module: "Module",
        compiled: LoadedExecutable | SubprocessExecutable,
        where: ProgramDevices,
        committed: bool,
    ):
        # A weak reference, as the program holds its executables.
        self._program = weakref.ref(program)
        self.name = name
        self.call = module
        self.loaded = compiled
        self.where = where
        self.device = first_device(where)
        self.devices = list(where.devices) if type(where) is DeviceAssignment else [where]
        self.committed = committed
        # The layout modes that it was compiled with; None for the defaults of the device.
        self.layouts: LayoutModes | None = None
        self.kept_inputs = module.kept_inputs
        self.kept_avals = [program.in_avals[index] for index in module.kept_inputs]
        self.out_avals = program.out_avals

    @property
    def sharding(self) -> SingleDeviceSharding:
        """Return the sharding of an unsplit value on the first device."""
        return on_device(self.device)

    @property
    def shardings(self) -> CompiledShardings | None:
        """Return the shardings of inputs and outputs; None for a program of one device."""
        if type(self.where) is not DeviceAssignment:
            return None
        program = self._program()
        assert program is not None, f"the program that {self.name} was compiled from is gone"
        return compiled_shardings(
            program, self.kept_inputs, self.call.const_args, self.loaded, self.where
        )

    def hlo_text(self) -> str:
        """Return XLA's optimized HLO."""
        return "\n\n".join(module.to_string() for module in self.loaded.hlo_modules())

    def cost_analysis(self) -> dict[str, float]:
        """Return XLA's estimate of the optimized program: flops, bytes accessed, and so on."""
        return executable.cost_of(self.loaded, self.call.hlo().get_hlo_module())

    def run(self, args: Sequence[object]) -> NoReturn:
        """Raise AbsentDeviceError, whose text says how to run the program."""
        raise AbsentDeviceError(_absence(self.name, self.device, len(self.devices)))

    def fast_path(self, out_tree: object, args: object, result: object) -> None:
        """Return None, as C++ cannot call a program of compile-only devices."""


def _absence(name: str, device: Device, count: int) -> str:
    target = target_of(device)
    what = f"{count} devices of" if count > 1 else "a device of"
    kind = f"{device.device_kind} ({target.name})" if target is not None else device.device_kind
    platform = lowering_platform(device)
    install = platforms.install_command(platform)
    there = f" with `{install}`" if install else ""
    return (
        f"{name} was compiled for {what} kind {kind}, which is not attached to this machine: it "
        "can be read (as_text(), cost_analysis(), memory_analysis()) and not run. To run it, call "
        f"{name} on a machine that has the device{there}, where no target is needed; to run it "
        f"on this machine, call {name} itself, which runs on {_here()}."
    )


def _here() -> str:
    return f"its {platforms.usable()[0].upper()}"


def _end(name: str, device: Device, last_words: str) -> str:
    plugin = platforms.find_plugins().get(lowering_platform(device))
    compiler = f"the compiler of {plugin.source}" if plugin is not None else "the compiler"
    newer = f" A newer one may not: `pip install -U {plugin.origin}`." if plugin is not None else ""
    return (
        f"INTERNAL: {compiler} ended its process on {name}, for {device.device_kind}; it said: "
        f"{last_words!r}. The module is valid StableHLO, and this is a bug of that compiler."
        f"{newer} To find the operation, compile parts of the function separately."
    )


def compile_absent(
    program: ClosedJaxpr,
    name: str,
    module: "Module",
    where: ProgramDevices,
    overrides: dict[str, object],
) -> LoadedExecutable | SubprocessExecutable:
    """Compile a module for a compile-only device, or a DeviceAssignment over several.

    Raises:
      PluginError: if the plugin lacks a tool that it compiles with.
      ValueError: if the devices are of several topologies, or the host decides on shardings and
        the devices are TPUs.
      JaxRuntimeError: if XLA refuses the module or an option.
    """
    device_assignment = where if type(where) is DeviceAssignment else None
    devices = device_assignment.devices if device_assignment else (where,)
    first = devices[0]
    if any(device.client is not first.client for device in devices):
        raise ValueError("a program is compiled for devices of one target: got those of several")
    options = compile_options(
        devices,
        compiler_options(lowering_platform(first), overrides),
        chosen_outputs=device_assignment.chosen_outputs(program) if device_assignment else (),
    )

    def compiled(ir_module: object) -> LoadedExecutable | SubprocessExecutable:
        return bridge.compile_only(ir_module, devices, options, _in_subprocess.value)

    try:
        partition = None
        if module.partitioned_calls:
            if device_assignment is None:
                with mlir_lock:
                    inspect_on_one_device(module, first)
            elif lowering_platform(first) == "tpu":
                raise ValueError(
                    f"{name} has functions with custom partitioning, or inspects shardings: libtpu "
                    "does not support these for compile-only devices"
                )
            else:
                partition = partition_of(module, device_assignment)
        return compile_beside_others(module.ir_module, options, compiled, partition)
    except WorkerEnded as error:
        raise JaxRuntimeError(_end(name, first, str(error))) from error
    except JaxRuntimeError as error:
        if "ptxas" in str(error) or "PTX compilation provider" in str(error):
            raise PluginError(
                f"{name} cannot be assembled for {first.device_kind}: {error}. Run "
                "`python -m hlofront doctor`, which looks at ptxas."
            ) from error
        mismatch = platforms.mismatch(lowering_platform(first))
        if mismatch:
            error.add_note(mismatch)
        raise
