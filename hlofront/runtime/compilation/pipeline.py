"""The pipeline from a traced program to its executable: disk cache, lowering, XLA, each once."""

import importlib
import time
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING

from hlofront.base import events, source
from hlofront.base.compute_once import compute_once
from hlofront.base.config import options
from hlofront.base.cpu_settings import CpuSettings
from hlofront.base.errors import JaxRuntimeError
from hlofront.base.events import timed
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.option import changed_options
from hlofront.base.progress import progress_line
from hlofront.bridge.client import LoadedExecutable, is_absent
from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.core.lowering_request import ChangedOptions, LoweringRequest
from hlofront.core.programs.program_cache import DerivedCache
from hlofront.core.rule_checks import checked
from hlofront.core.sharding.layout_modes import LayoutModes
from hlofront.pjrt.cache_key import text_digest
from hlofront.pjrt.clients import check_not_forked, lowering_platform
from hlofront.pjrt.compile import (
    compile_module,
    compile_options,
    compiler_settings,
    mlir_lock,
)
from hlofront.runtime.checks import nan_checks
from hlofront.runtime.compilation import disk_cache, foreign_programs, ir_dumps, run_log
from hlofront.runtime.compilation.captured_constants import warn_of_constants
from hlofront.runtime.compilation.disk_cache import CompiledProgram
from hlofront.runtime.compilation.ir_dumps import dump_jaxpr, dump_module
from hlofront.runtime.compilation.out_of_memory import explained
from hlofront.runtime.compilation.traced_program import CompilerOptionPairs, timings_of
from hlofront.runtime.sharding.device_assignment import (
    DeviceAssignment,
    ProgramDevices,
    first_device,
)

if TYPE_CHECKING:
    from hlofront.bridge.compile_process import SubprocessExecutable
    from hlofront.lowering.module import Module
    from hlofront.runtime.compilation.host_calls import HostFailures


_fences = options["hlofront_fences"]
_formulas = options["hlofront_cpu_formulas"]
_guards = options["hlofront_xla_guards"]
_warn_reshards = options["hlofront_warn_reshards"]
# The inspection of programs, a higher layer, is needed only if the option is on.
_RESHARDS = "hlofront.inspect.resharding.reshards"


# Options that affect how lowering writes the user's source lines.
_LOCATION_OPTIONS = (
    options["jax_include_full_tracebacks_in_locations"],
    options["jax_traceback_in_locations_limit"],
    options["jax_hlo_source_file_canonicalization_regex"],
)
_metadata_in_key = options["jax_compilation_cache_include_metadata_in_key"]


class CompilationRequest(NamedTuple):
    """Everything that the executable of a program depends on, except for the program itself.

    Attributes:
      name: the name of the traced function.
      device: the device, or the DeviceAssignment of a program for several.
      donated: per input, whether its buffer is donated; empty if none is.
      keep_unused: whether inputs that no result depends on stay.
      compiler_options: the user's options for this function.
      cpu_settings: which of hlofront's own code lowering emits for CPUs.
      compiler_settings: the options that affect XLA and are not at their defaults.
      locations: the options of source locations that are not at their defaults.
      layouts: the layout modes of inputs and outputs; None for the defaults of the device.
    """

    name: str
    device: ProgramDevices
    donated: tuple[bool, ...]
    keep_unused: bool
    compiler_options: CompilerOptionPairs
    cpu_settings: CpuSettings
    compiler_settings: ChangedOptions
    locations: ChangedOptions
    layouts: LayoutModes | None = None


def compilation_request(
    name: str,
    device: ProgramDevices,
    donated: tuple[bool, ...] = (),
    keep_unused: bool = False,
    compiler_options: CompilerOptionPairs = (),
    layouts: LayoutModes | None = None,
    how: LoweringRequest | None = None,
) -> CompilationRequest:
    """Return the request to compile a program under the current options.

    Args:
      name, device, donated, keep_unused, compiler_options, layouts: see CompilationRequest.
      how: how the program was lowered before; its options of lowering then apply.
    """
    if donated and nan_checks.are_on():
        donated = ()  # The program may have to run again on its arguments.
    return CompilationRequest(
        name,
        device,
        donated,
        keep_unused,
        compiler_options,
        how.cpu_settings if how else cpu_settings_for(first_device(device).platform),
        compiler_settings(),
        how.locations if how else location_settings(),
        layouts,
    )


# A function that returns the executable of a request from elsewhere, or None.
Supplier = Callable[[CompilationRequest], CompiledProgram | None]

# The supplier of the executables of a program that a bundle has.
_suppliers: DerivedCache[None, Supplier] = DerivedCache()


def supply(program: ClosedJaxpr, supplier: Supplier) -> None:
    """Let a function supply the executables of a program; where it has none, XLA compiles."""
    _suppliers.of(program)[None] = supplier


# The modules of a program.
_modules: "DerivedCache[LoweringRequest, Module]" = DerivedCache()
# The compiled forms of a program: whether arguments are committed does not affect XLA.
_compiled: DerivedCache[CompilationRequest, CompiledProgram] = DerivedCache()


def location_settings() -> ChangedOptions:
    """Return the options of source locations that are not at their defaults."""
    return changed_options(_LOCATION_OPTIONS)


def cpu_settings_for(platform: str | tuple[str, ...]) -> CpuSettings:
    """Return the settings of lowering for one or several platforms, by the options.

    Compilers for other platforms need no fences, and would treat them as barriers of the user.
    """
    if "cpu" not in platform:
        return CpuSettings()
    return CpuSettings(platform == "cpu" and _fences.value, _formulas.value, _guards.value)


def lowered(program: ClosedJaxpr, request: LoweringRequest) -> "Module":
    """Lower a program to a StableHLO module for its platforms; the result is cached."""
    # Loads MLIR and every lowering rule, which a process that compiles nothing does not need.
    from hlofront.lowering.rules import lower_program

    modules = _modules.of(program)
    module = modules.get(request)
    if module is None:
        warn_of_constants(program)
        info, name = program.debug_info, request.name
        with mlir_lock:
            module = modules.get(request)
            if module is None:
                dump_jaxpr(checked(program), name)
                with timed(events.LOWER, fun_name=name) as clock:
                    module = modules[request] = lower_program(
                        program,
                        request,
                        arg_names=info.arg_names if info else None,
                        result_paths=info.result_paths if info else None,
                    )
                timings_of(program).lower += clock.seconds
                _warn_of_donations(module.unusable)
                if run_log.current is not None:
                    run_log.current.record("lower", name, seconds=clock.seconds)
                events.log_stage("Finished lowering %s in %.6f s", name, clock.seconds)
    return module


def settings_of(request: CompilationRequest) -> dict[str, str]:
    """Return the settings that affect the lowering of a program, as text by name, for disk keys."""
    settings = {
        "donated": "".join(map(str, map(int, request.donated))),
        "keep_unused": str(request.keep_unused),
        "fences": str(request.cpu_settings.fences),
    }
    if not request.cpu_settings.formulas:
        settings["formulas"] = "False"
    if changed := (*request.compiler_settings, *request.locations):
        settings["config"] = " ".join(f"{name}={value}" for name, value in changed)
    if request.layouts is not None:
        settings["layouts"] = str(tuple(request.layouts))
    return settings


def compile_program(program: ClosedJaxpr, request: CompilationRequest) -> CompiledProgram:
    """Return the compiled form of a program, from disk or by XLA; on first use, by one thread."""
    check_not_forked(request.name)
    return compute_once(_compiled.of(program), request, Compilation(program, request).run)


class Compilation:
    """The compilation of one program: loaded from disk, or lowered and compiled by XLA."""

    __slots__ = ("_device", "_device_assignment", "_devices", "_request", "_program")

    def __init__(self, program: ClosedJaxpr, request: CompilationRequest):
        self._program = program
        self._request = request
        device = request.device
        self._device_assignment = device if type(device) is DeviceAssignment else None
        self._device = first_device(device)
        self._devices = (
            self._device_assignment.devices if self._device_assignment else (request.device,)
        )

    def run(self) -> CompiledProgram:
        """Load or compile the program; return jaxlib's executable and its call data."""
        made = self._made()
        assignment = self._device_assignment
        if _warn_reshards.value and assignment is not None:
            warn = importlib.import_module(_RESHARDS).warn_of_reshards
            warn(self._program, self._request.name, assignment)
        return made

    def _made(self) -> CompiledProgram:
        supplier = _suppliers.of(self._program).get(None)
        supplied = None if supplier is None else supplier(self._request)
        if supplied is not None:
            if run_log.current is not None:
                run_log.current.record("bundle", self._request.name)
            return supplied
        # Without lowering, a program's disk entry is identified by its digest, if it has one.
        module = None if self._is_keyed_by_digest() else self.lowered()
        cache_entry = self._cache_entry(module)
        stored = self._load(cache_entry, module) if cache_entry is not None else None
        if stored is not None:
            return stored
        module = module or self.lowered()
        dump_module(module)
        host_failures = _host_calls().HostFailures() if module.callbacks else None
        name = self._request.name
        with run_log.compiling(name, self._devices), timed(events.COMPILE, fun_name=name) as clock:
            try:
                with progress_line(self._describe):
                    made, compiled = self._compiled(module, host_failures)
            except JaxRuntimeError as error:
                raised = explained(error, name, lambda: module.hlo_text(True))
                if raised is error:
                    raise
                raise raised from error
        timings_of(self._program).compile += clock.seconds
        run_log.compiled(name, module, made, clock.seconds)
        events.log_stage("Finished compiling %s in %.6f s", name, clock.seconds)
        if cache_entry is not None:
            cache_entry.keep(made, module, clock.seconds)
        return compiled

    def _describe(self) -> str:
        """Return what XLA compiles, for the line of progress."""
        info = self._program.debug_info
        name = info.func_src_info if info else self._request.name
        return f"XLA compiles {name}"

    def _is_keyed_by_digest(self) -> bool:
        # A key with source lines is known only after lowering.
        return (
            not is_absent(self._device)
            and not _metadata_in_key.value
            and disk_cache.has_digest(self._program)
        )

    def lowered(self) -> "Module":
        """Lower the program for the devices of its request."""
        request = self._request
        name, layouts = request.name, request.layouts
        how = LoweringRequest(
            name,
            lowering_platform(self._device),
            request.donated,
            request.keep_unused,
            request.cpu_settings,
            self._device_assignment,
            layouts,
            request.locations,
        )
        module = lowered(self._program, how)
        if self._program.effects and layouts is not None and "auto" in layouts.inputs:
            raise ValueError(
                f"{name} has effects, and XLA does not say which layouts it chooses for the "
                "arguments of such programs: request a Layout instead of Layout.AUTO"
            )
        if module.ordered and len(self._devices) > 1:
            effects = ", ".join(map(str, module.ordered))
            raise ValueError(
                f"{name} has ordered effects ({effects}), which are not supported for more "
                f"than 1 device: got {len(self._devices)}. Leave out ordered=True, or compile for "
                "one of them"
            )
        return module

    def _cache_entry(self, module: "Module | None") -> disk_cache.CacheEntry | None:
        request = self._request
        if is_absent(self._device):
            return None
        settings = settings_of(request)
        if _metadata_in_key.value and module is not None:
            settings["metadata"] = text_digest(module.text(debug_info=True))
        if self._device_assignment is not None:
            settings["device_assignment"] = self._device_assignment.text()
        return disk_cache.cache_entry_for(
            self._program, request.name, self._devices, request.compiler_options, settings, module
        )

    def _load(
        self, cache_entry: disk_cache.CacheEntry, module: "Module | None"
    ) -> CompiledProgram | None:
        """Load the program from disk; return its executable and call data, or None on a miss."""
        started = time.perf_counter()
        stored = cache_entry.load(self._devices)
        if stored is None:
            return None
        call = stored.call
        timings_of(self._program).load += time.perf_counter() - started
        if module is not None:
            call.const_args = module.const_args
        elif ir_dumps.are_on():
            module = self.lowered()
        else:
            warn_of_constants(self._program)
            _warn_of_donations(call.unusable)
        if module is not None:
            dump_module(module)
        return stored

    def _compiled(
        self, module: "Module", host_failures: "HostFailures | None"
    ) -> "tuple[LoadedExecutable | SubprocessExecutable, CompiledProgram]":
        """Compile a module; return its description, and the executable to call."""
        request, devices, client = self._request, self._devices, self._device.client
        if is_absent(self._device):
            absent = aot_targets().compile_absent(
                self._program, request.name, module, request.device, dict(request.compiler_options)
            )
            return absent, CompiledProgram(absent, module, host_failures)
        assignment = self._device_assignment
        settings = compile_options(
            devices,
            dict(request.compiler_options),
            keep_barriers=module.keeps_barriers,
            barriers_in_loops=module.has_inner_barriers,
            chosen_outputs=assignment.chosen_outputs(self._program) if assignment else (),
        )
        if foreign_programs.is_compiled_by_worker(module, devices):
            by_worker = foreign_programs.compiled_by_worker(request.name, module, devices, settings)
            if by_worker is not None:
                made, loaded, call = by_worker
                return made, CompiledProgram(loaded, call, host_failures)
        callbacks: Sequence[object] = ()
        if module.callbacks:
            host = _host_calls()
            callbacks = [
                host.host_function(call, client, host_failures) for call in module.callbacks
            ]
        partition = None
        if module.partitioned_calls:
            if assignment is not None:
                partition = _partitioning().partition_of(module, assignment)
            else:
                _partitioning().inspect_on_one_device(module, self._device)
        loaded = compile_module(client, module.ir_module, devices, settings, callbacks, partition)
        return loaded, CompiledProgram(loaded, module, host_failures)


def _host_calls() -> ModuleType:
    """Import the module of the host side of callbacks, on first use."""
    from hlofront.runtime.compilation import host_calls

    return host_calls


def _partitioning() -> ModuleType:
    """Import the module of operations whose shardings the host decides, on first use."""
    from hlofront.runtime.sharding import partitioning

    return partitioning


def aot_targets() -> ModuleType:
    """Import the module of compile-only programs, on first use."""
    from hlofront.runtime.compilation import aot_targets

    return aot_targets


def _warn_of_donations(unusable: Sequence[str]) -> None:
    if unusable:
        source.warn(
            f"Some donated buffers were not usable: {', '.join(unusable)}. No result has as "
            "many elements as such an argument; donate only arguments that a result can replace."
        )
