"""The executables of programs: each compiled program with the class that calls it, made once."""

from types import ModuleType
from typing import TYPE_CHECKING

from hlofront.bridge.client import is_absent
from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.core.programs.program_cache import DerivedCache
from hlofront.runtime.compilation import run_log
from hlofront.runtime.compilation.pipeline import (
    Compilation,
    CompilationRequest,
    aot_targets,
    compile_program,
)
from hlofront.runtime.dispatch.executable import Executable
from hlofront.runtime.sharding.device_assignment import DeviceAssignment

if TYPE_CHECKING:
    from hlofront.runtime.compilation.aot_targets import AbsentExecutable

# The executables of a program, by their request and whether results are committed.
_executables: "DerivedCache[tuple[CompilationRequest, bool], Executable | AbsentExecutable]" = (
    DerivedCache()
)


def sharded_executables() -> ModuleType:
    """Import the module of executables for several devices, on first use."""
    from hlofront.runtime.dispatch import sharded_executable

    return sharded_executable


def executable_for(
    program: ClosedJaxpr, request: CompilationRequest, committed: bool = False
) -> "Executable | AbsentExecutable":
    """Return the executable of a program for a device; compiled on first use, by one thread.

    Args:
      program: the program.
      request: the device and the options to compile it for.
      committed: whether results are committed to the device.

    Raises:
      JaxRuntimeError: if XLA refuses the module or an option.
      ValueError: if a program for several devices has ordered effects.
    """
    executables = _executables.of(program)
    executable = executables.get((request, committed))
    if executable is None:
        made = _executable(program, request, committed)
        # If several threads compile a program, all use the executable of the first.
        executable = executables.setdefault((request, committed), made)
    elif run_log.current is not None:
        run_log.current.hit(request.name)
    return executable


def _executable(
    program: ClosedJaxpr, request: CompilationRequest, committed: bool
) -> "Executable | AbsentExecutable":
    """Compile a program, for calls whose results are committed or not."""
    loaded, call, host_failures = compile_program(program, request)
    name, device, donates = request.name, request.device, any(request.donated)
    is_split = type(device) is DeviceAssignment
    if is_absent(device.device if is_split else device):
        executable = aot_targets().AbsentExecutable(program, name, call, loaded, device, committed)
    elif is_split:
        make = sharded_executables().ShardedExecutable
        executable = make(program, name, call, loaded, device, donates, host_failures)
        executable.compare_first(
            name,
            f"{''.join(str(int(flag)) for flag in request.donated)} {request.compiler_options}",
            lambda program: Compilation(program, request).lowered().text(),
        )
    else:
        executable = Executable(
            program, name, call, loaded, device, committed, donates, host_failures is not None
        )
    executable.layouts = request.layouts
    return executable
