"""The executables of programs: each compiled program with the class that calls it, made once."""

from types import ModuleType
from typing import TYPE_CHECKING

from hlofront.base.cpu_settings import CpuSettings
from hlofront.bridge.client import is_absent
from hlofront.core.derived import DerivedCache
from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.core.layout_modes import LayoutModes
from hlofront.runtime.compilation import run_log
from hlofront.runtime.compilation.pipeline import (
    ChangedOptions,
    Compilation,
    CompilationKey,
    aot_targets,
    compilation_key,
    compile_program,
)
from hlofront.runtime.compilation.traced_program import CompilerOptionPairs
from hlofront.runtime.dispatch.executable import Executable
from hlofront.runtime.sharding.device_assignment import (
    DeviceAssignment,
    ProgramDevices,
    first_device,
)

if TYPE_CHECKING:
    from hlofront.runtime.compilation.aot_targets import AbsentExecutable

# The executables of a program, by their key and whether results are committed.
_executables: "DerivedCache[tuple[CompilationKey, bool], Executable | AbsentExecutable]" = (
    DerivedCache()
)


def sharded_executables() -> ModuleType:
    """Import the module of executables for several devices, on first use."""
    from hlofront.runtime.dispatch import sharded_executable

    return sharded_executable


def executable_for(
    program: ClosedJaxpr,
    name: str,
    device: ProgramDevices,
    committed: bool = False,
    donated: tuple[bool, ...] = (),
    keep_unused: bool = False,
    compiler_options: CompilerOptionPairs = (),
    cpu_settings: CpuSettings | None = None,
    locations: ChangedOptions | None = None,
    layouts: LayoutModes | None = None,
) -> "Executable | AbsentExecutable":
    """Return the executable of a program for a device; compiled on first use, by one thread.

    Args:
      program, name, donated, keep_unused, cpu_settings, locations, layouts: as for `lowered`.
      device: the device, or the DeviceAssignment of a program for several.
      committed: whether results are committed to the device.
      compiler_options: the user's options for this function.

    Raises:
      JaxRuntimeError: if XLA refuses the module or an option.
      ValueError: if a program for several devices has ordered effects.
    """
    key = compilation_key(
        name, device, donated, keep_unused, compiler_options, cpu_settings, locations, layouts
    )
    executables = _executables.of(program)
    executable = executables.get((key, committed))
    if executable is None:
        # If several threads compile a program, all use the executable of the first.
        executable = executables.setdefault((key, committed), _executable(program, key, committed))
    elif run_log.current is not None:
        run_log.current.hit(name)
    return executable


def _executable(
    program: ClosedJaxpr, key: CompilationKey, committed: bool
) -> "Executable | AbsentExecutable":
    """Compile a program, for calls whose results are committed or not."""
    loaded, call, host_failures = compile_program(program, key)
    name, device, donates = key.name, key.device, any(key.donated)
    if is_absent(first_device(device)):
        executable = aot_targets().AbsentExecutable(program, name, call, loaded, device, committed)
    elif type(device) is DeviceAssignment:
        make = sharded_executables().ShardedExecutable
        executable = make(program, name, call, loaded, device, donates, host_failures)
        executable.compare_first(
            name,
            f"{''.join(str(int(each)) for each in key.donated)} {key.compiler_options}",
            lambda program: Compilation(program, key).lowered().text(),
        )
    else:
        executable = Executable(program, name, call, loaded, device, committed, donates)
    executable.layouts = key.layouts
    return executable
