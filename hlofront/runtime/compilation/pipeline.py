"""Programs on devices: the executable of each, made once."""

import time
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from hlofront.base import events, source
from hlofront.base.compute_once import compute_once
from hlofront.base.config import options
from hlofront.base.events import timed
from hlofront.base.option import changed_options
from hlofront.bridge.client import is_absent
from hlofront.core.derived import DerivedCache, once_per_program
from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.core.rule_checks import checked
from hlofront.higher_order.jit_call import split_captured
from hlofront.pjrt.cache_key import text_digest
from hlofront.pjrt.clients import check_not_forked, lowering_platform
from hlofront.pjrt.compile import (
    compile_module,
    compile_options,
    compiler_settings,
    mlir_lock,
)
from hlofront.runtime.compilation import disk_cache
from hlofront.runtime.compilation.captured_constants import warn_of_constants
from hlofront.runtime.debugging import ir_dumps, nan_checks
from hlofront.runtime.debugging.ir_dumps import dump_jaxpr, dump_module
from hlofront.runtime.dispatch.executable import Executable, host_side
from hlofront.runtime.sharding.device_assignment import DeviceAssignment, first_device
from hlofront.transforms.arguments import ArgumentPlan

if TYPE_CHECKING:
    from hlofront.lowering.module import Module


class Function:
    """A function to compile: how its arguments are told apart, and with which options."""

    __slots__ = ("compiler_options", "fun", "keep_unused", "name", "plan")

    def __init__(
        self,
        fun: Callable[..., Any],
        plan: ArgumentPlan,
        keep_unused: bool,
        compiler_options: tuple[tuple[str, Any], ...],
    ):
        self.fun = fun
        self.plan = plan
        self.name = plan.signature.name
        self.keep_unused = keep_unused
        self.compiler_options = compiler_options


def sharded_executables() -> Any:
    """What runs on several devices: loaded with the first program that does."""
    from hlofront.runtime.sharding import sharded_executable

    return sharded_executable


class TracedProgram:
    """A function written down for one kind of arguments."""

    __slots__ = (
        *("_opened", "devices", "donated", "hits", "in_tree", "kind", "out_tree", "program"),
        *("shardings", "why"),
    )

    program: ClosedJaxpr
    in_tree: Any
    out_tree: Any
    # Per input, whether its buffer is given away; empty where none is.
    donated: tuple[bool, ...]

    def __init__(self, program: ClosedJaxpr, in_tree: Any, out_tree: Any, donated: Any):
        self.program = program
        self.in_tree = in_tree
        self.out_tree = out_tree
        self.donated = donated
        self._opened: tuple[ClosedJaxpr, list[Any]] | None = None
        # runtime/compilation/recompilation.py writes for what and why the program was compiled, and
        # how often Python looked it up; C++ does not count its calls.
        self.kind: Any = None
        self.why: str | None = None
        self.hits = 0
        # What jit was told of its inputs and outputs, flat. See sharding/jit_shardings.py.
        self.shardings: Any = None
        # Those that it was compiled for.
        self.devices: list[Any] = []

    def opened(self) -> tuple[ClosedJaxpr, list[Any]]:
        """The program with values of enclosing functions as its first inputs, and those values.

        It is opened once: all calls share it, in programs and in what is lowered.
        """
        found = self._opened
        if found is None:
            found = self._opened = split_captured(self.program)
        return found


_fences = options["hlofront_fences"]


# The options that decide what lowering writes down of the user's source lines.
_LOCATION_OPTIONS = (
    options["jax_include_full_tracebacks_in_locations"],
    options["jax_traceback_in_locations_limit"],
    options["jax_hlo_source_file_canonicalization_regex"],
)
_metadata_in_key = options["jax_compilation_cache_include_metadata_in_key"]

# Options and their values that are not the defaults, for keys of caches.
ChangedOptions = tuple[tuple[str, Any], ...]

# What became of a program, each by all arguments and options that it depends on.
_modules: "DerivedCache[tuple[object, ...], Module]" = DerivedCache()
_executables: DerivedCache[tuple[object, ...], Executable] = DerivedCache()
# With how to call it. All executables that differ in committed arguments alone share one.
_loaded_executables: DerivedCache[tuple[object, ...], tuple[Any, Any]] = DerivedCache()


def location_settings() -> ChangedOptions:
    """Return the options of source locations that are not at their defaults."""
    return changed_options(_LOCATION_OPTIONS)


def wants_fences(platform: str | tuple[str, ...]) -> bool:
    """Whether lowering places fences for this platform: XLA's other compilers need none."""
    return platform == "cpu" and _fences.value


def lowered(
    program: ClosedJaxpr,
    name: str,
    platform: str | tuple[str, ...],
    donated: tuple[bool, ...] = (),
    keep_unused: bool = False,
    names: bool = True,
    fences: bool | None = None,
    device_assignment: DeviceAssignment | None = None,
    locations: ChangedOptions | None = None,
) -> "Module":
    """Return the module of a program for its platforms, lowered on first use.

    Args:
      fences: whether lowering places fences; None for what the option hlofront_fences says.
      locations: the `location_settings` of a module that was lowered before; None for those here.
    """
    # Loads MLIR and every lowering rule: a process that runs nothing does without them.
    from hlofront.lowering.rules import lower_program

    fences = wants_fences(platform) if fences is None else fences
    key = (platform, name, donated, keep_unused, fences, device_assignment)
    key += location_settings() if locations is None else locations
    modules = _modules.of(program)
    found = modules.get(key)
    if found is None:
        warn_of_constants(program)
        info = program.debug_info if names else None
        with mlir_lock:
            found = modules.get(key)
            if found is None:
                dump_jaxpr(checked(program), name)
                with timed(events.LOWER, fun_name=name) as clock:
                    found = modules[key] = lower_program(
                        program,
                        name,
                        platform,
                        donated=donated,
                        keep_unused=keep_unused,
                        arg_names=info.arg_names if info else None,
                        result_paths=info.result_paths if info else None,
                        fences=fences,
                        device_assignment=device_assignment,
                    )
                timings_of(program).lower += clock.seconds
                _warn_of_donations(found.unusable)
                events.log_stage("Finished lowering %s in %.6f s", name, clock.seconds)
    return found


def executable_for(
    program: ClosedJaxpr,
    name: str,
    device: Any,
    committed: bool = False,
    donated: tuple[bool, ...] = (),
    keep_unused: bool = False,
    compiler_options: Sequence[tuple[str, Any]] = (),
    fences: bool | None = None,
    locations: ChangedOptions | None = None,
) -> Executable:
    """Return the executable of a program for a device; compiled on first use, by one thread.

    For several devices, a DeviceAssignment stands for the device. `fences` and `locations` are as
    for `lowered`.
    """
    first = first_device(device)
    fences = wants_fences(first.platform) if fences is None else fences
    locations = location_settings() if locations is None else locations
    if donated and nan_checks.are_on():
        donated = ()  # It may have to run again on the same arguments.
    key = (
        device,
        committed,
        donated,
        keep_unused,
        compiler_options,
        fences,
        compiler_settings(),
        locations,
    )
    executables = _executables.of(program)
    found = executables.get(key)
    if found is None:
        check_not_forked(name)
        compilation = Compilation(
            program,
            name,
            device,
            donated,
            keep_unused,
            compiler_options,
            fences,
            locations,
        )
        if is_absent(first):
            return compute_once(executables, key, lambda: compilation.absent(committed))
        found = compute_once(executables, key, lambda: compilation.executable(committed))
    return found


class Compilation:
    """One program to compile with one set of options, for one device or a DeviceAssignment."""

    __slots__ = (
        "_compiler_options",
        "_device",
        "_devices",
        "_donated",
        "_fences",
        "_keep_unused",
        "_locations",
        "_name",
        "_program",
        "_device_assignment",
    )

    def __init__(
        self,
        program: ClosedJaxpr,
        name: str,
        device: Any,
        donated: tuple[bool, ...],
        keep_unused: bool,
        compiler_options: Sequence[tuple[str, Any]],
        fences: bool,
        locations: ChangedOptions,
    ):
        self._locations = locations
        self._program = program
        self._name = name
        self._device_assignment = device if type(device) is DeviceAssignment else None
        self._device = first_device(device)
        self._devices = self._device_assignment.devices if self._device_assignment else (device,)
        self._donated = donated
        self._keep_unused = keep_unused
        self._compiler_options = compiler_options
        self._fences = fences

    def executable(self, committed: bool) -> Executable:
        # Whether its arguments are committed to the device makes no difference to XLA.
        key = (
            self._device_assignment or self._device,
            self._donated,
            self._keep_unused,
            self._compiler_options,
            self._fences,
            compiler_settings(),
            self._locations,
        )
        loaded, call = compute_once(_loaded_executables.of(self._program), key, self._loaded)
        donates = any(self._donated)
        if self._device_assignment is not None:
            make = sharded_executables().ShardedExecutable
            return make(self._program, self._name, call, loaded, self._device_assignment, donates)
        return Executable(self._program, self._name, call, loaded, self._device, committed, donates)

    def absent(self, committed: bool) -> Any:
        """For devices of a target, which are not there."""
        # Plugins and targets: other processes do without them.
        from hlofront.runtime.compilation.aot_targets import compile_absent

        module = self._lowered()
        dump_module(module)
        with timed(events.COMPILE, fun_name=self._name) as clock:
            made = compile_absent(
                *(self._program, self._name, module, self._device_assignment or self._device),
                *(dict(self._compiler_options), committed),
            )
        timings_of(self._program).compile += clock.seconds
        return made

    def _lowered(self) -> "Module":
        module = lowered(
            *(self._program, self._name, lowering_platform(self._device), self._donated),
            self._keep_unused,
            fences=self._fences,
            device_assignment=self._device_assignment,
            locations=self._locations,
        )
        if module.ordered and len(self._devices) > 1:
            effects = ", ".join(map(str, module.ordered))
            raise ValueError(
                f"{self._name} has ordered effects ({effects}), which are not supported for more "
                f"than 1 device: got {len(self._devices)}. Leave out ordered=True, or compile for "
                "one of them"
            )
        return module

    def _loaded(self) -> tuple[Any, Any]:
        """The executable as jaxlib has it, from disk or from XLA, and how to call it."""
        program, timings = self._program, timings_of(self._program)
        # The key with source lines in it is known when they are lowered.
        cache_entry = None if _metadata_in_key.value else self._cache_entry()
        started = time.perf_counter()
        found = cache_entry.load(self._devices) if cache_entry is not None else None
        if found is not None:
            timings.load += time.perf_counter() - started
            if ir_dumps.are_on():
                dump_module(self._lowered())
            else:
                warn_of_constants(program)
                _warn_of_donations(found[1].unusable)
            return found
        module = self._lowered()
        dump_module(module)
        if cache_entry is None:
            cache_entry = self._cache_entry(module)
            started = time.perf_counter()
            found = cache_entry.load(self._devices) if cache_entry is not None else None
            if found is not None:
                found[1].const_args = module.const_args
                timings.load += time.perf_counter() - started
                return found
        with timed(events.COMPILE, fun_name=self._name) as clock:
            loaded = self._compiled(module)
        timings.compile += clock.seconds
        events.log_stage("Finished compiling %s in %.6f s", self._name, clock.seconds)
        if cache_entry is not None:
            cache_entry.keep(program, loaded, module, clock.seconds)
        return loaded, module

    def _cache_entry(self, module: "Module | None" = None) -> disk_cache.CacheEntry | None:
        settings = {
            "donated": "".join(map(str, map(int, self._donated))),
            "keep_unused": str(self._keep_unused),
            "fences": str(self._fences),
        }
        if changed := (*compiler_settings(), *self._locations):
            settings["config"] = " ".join(f"{name}={value}" for name, value in changed)
        if _metadata_in_key.value and module is not None:
            settings["metadata"] = text_digest(module.text(debug_info=True))
        if self._device_assignment is not None:
            settings["device_assignment"] = self._device_assignment.text()
        return disk_cache.cache_entry_for(
            *(self._program, self._name, self._devices, self._compiler_options, settings), module
        )

    def _compiled(self, module: "Module") -> Any:
        devices = self._devices
        settings = compile_options(
            devices,
            dict(self._compiler_options),
            keep_barriers=module.fences is not None and module.has_barriers,
            chosen_outputs=self._device_assignment.chosen_outputs(self._program)
            if self._device_assignment
            else (),
        )
        callbacks: list[Any] = []
        if module.callbacks:
            host = host_side()
            client = self._device.client
            callbacks = [host.host_function(call, client) for call in module.callbacks]
        return compile_module(self._device.client, module.ir_module, devices, settings, callbacks)


class StageSeconds:
    """Seconds that went into one program: tracing, lowering, compiling, loading from disk."""

    __slots__ = ("compile", "load", "lower", "trace")

    def __init__(self):
        self.trace = self.lower = self.compile = self.load = 0.0


@once_per_program
def timings_of(program: ClosedJaxpr) -> StageSeconds:
    """Return the record of the seconds that went into a program."""
    return StageSeconds()


def _warn_of_donations(unusable: Sequence[str]) -> None:
    if unusable:
        warnings.warn(
            f"Some donated buffers were not usable: {', '.join(unusable)}. No result has the "
            "shape and dtype of such an argument; donate those alone that a result can replace.",
            stacklevel=source.frames_to_user(),
        )
