"""The stages of a jitted function, one at a time: Traced -> Lowered -> Compiled."""

import importlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from hlofront.base.boundary import boundary
from hlofront.base.config import options as config_options
from hlofront.base.tree import PyTree
from hlofront.base.typing import DType
from hlofront.bridge import client as bridge
from hlofront.bridge import fast_parts, xla_faults
from hlofront.bridge.client import Device, LoadedExecutable, Sharding
from hlofront.bridge.fast_parts import PyTreeDef
from hlofront.bridge.members import raw_platform_of
from hlofront.bridge.xla_faults import Guard
from hlofront.core.aval import AbstractValue, ShapedArray
from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.core.lowering_request import LoweringRequest
from hlofront.core.sharding.layout_modes import LayoutModes
from hlofront.pjrt import clients
from hlofront.pjrt.layouts import Format, Layout
from hlofront.runtime.compilation.pipeline import (
    compilation_request,
    cpu_settings_for,
    location_settings,
    lowered,
)
from hlofront.runtime.compilation.traced_program import CompilerOptionPairs, Function, TracedProgram
from hlofront.runtime.dispatch.compiled_call import CompiledCall, shard_argument
from hlofront.runtime.dispatch.executable import Executable
from hlofront.runtime.dispatch.executables import executable_for
from hlofront.runtime.dispatch.float0_results import described_results
from hlofront.runtime.dispatch.references import without_references
from hlofront.runtime.sharding.device_assignment import (
    DeviceAssignment,
    ProgramDevices,
    first_device,
)
from hlofront.runtime.sharding.typed import in_memory_of
from hlofront.transforms.flatten import ShapeDtypeStruct

if TYPE_CHECKING:
    from hlofront.bridge.compile_process import SubprocessExecutable, WorkerMemoryStats
    from hlofront.bridge.jaxlib_types import MemoryStats, PjRtLayout, XlaComputation
    from hlofront.bridge.mlir import ir
    from hlofront.lowering.core.fences import Fence
    from hlofront.lowering.module import Module
    from hlofront.runtime.compilation.aot_targets import AbsentExecutable


_guards = config_options["hlofront_xla_guards"]


class ArgInfo:
    """The aval of one argument of a stage, and whether its buffer is donated."""

    __slots__ = ("_aval", "donated")

    def __init__(self, _aval: AbstractValue, donated: bool):
        self._aval = _aval
        self.donated = donated

    @property
    def shape(self) -> tuple[int, ...]:
        return self._aval.shape

    @property
    def dtype(self) -> DType:
        return self._aval.dtype

    def __eq__(self, other: object) -> bool:
        return (
            type(other) is ArgInfo and self._aval == other._aval and self.donated == other.donated
        )

    def __hash__(self) -> int:
        return hash((self._aval, self.donated))

    def __repr__(self) -> str:
        return f"ArgInfo(_aval={self._aval!r}, donated={self.donated})"


class Stage:
    """The base of the stages: the trees and avals of a function's arguments and results."""

    __slots__ = ("_is_committed", "_jitted", "_layouts", "_traced", "_where")

    def __init__(
        self,
        jitted: Function,
        traced: TracedProgram,
        where: ProgramDevices,
        committed: bool,
        layouts: LayoutModes | None = None,
    ):
        self._layouts = layouts
        self._jitted = jitted
        self._traced = traced
        self._where = where
        self._is_committed = committed

    @property
    def _first_device(self) -> Device:
        return first_device(self._where)

    @property
    def _platform(self) -> str:
        return clients.lowering_platform(self._first_device)

    @property
    def in_tree(self) -> PyTreeDef:
        """The tree structure of (args, kwargs), without the static arguments."""
        return self._traced.in_tree

    @property
    def out_tree(self) -> PyTreeDef:
        """The tree structure of the result."""
        return self._traced.out_tree

    @property
    def in_avals(self) -> PyTree:
        """The avals of (args, kwargs), as a tree."""
        return self.in_tree.unflatten(self._traced.program.in_avals)

    @property
    def out_avals(self) -> PyTree:
        return self.out_tree.unflatten(self._traced.program.out_avals)

    @property
    def args_info(self) -> PyTree:
        """The ArgInfo of each argument, as a tree."""
        avals = self._traced.program.in_avals
        donated = self._traced.donated or (False,) * len(avals)
        return self.in_tree.unflatten(map(ArgInfo, avals, donated))

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """The positions of the flat arguments whose buffers are donated."""
        return tuple(i for i, is_donated in enumerate(self._traced.donated) if is_donated)

    @property
    def out_info(self) -> PyTree:
        """The ShapeDtypeStruct of each result, as a tree."""
        shardings = self._where.outputs if type(self._where) is DeviceAssignment else ()
        return self._described_results(shardings or self._jitted.requested_outputs(self._traced))

    def _described_results(self, shardings: Sequence[Sharding | None]) -> PyTree:
        """Return a ShapeDtypeStruct per result, or the aval of a token, as a tree."""
        avals = self._traced.program.out_avals
        return described_results(
            self.out_tree,
            [
                ShapeDtypeStruct(
                    aval.shape, aval.dtype, weak_type=aval.weak_type, sharding=sharding
                )
                if isinstance(aval, ShapedArray)
                else aval
                for aval, sharding in zip(avals, shardings, strict=True)
            ],
        )


class Traced(Stage):
    """A function traced to a jaxpr for one kind of arguments."""

    __slots__ = ()

    @property
    def jaxpr(self) -> ClosedJaxpr:
        return self._traced.program

    @property
    def fun_name(self) -> str:
        return self._jitted.name

    def _repr_html_(self) -> str:
        return self.jaxpr._repr_html_()

    @boundary
    def lower(
        self,
        *,
        lowering_platforms: Sequence[str] | None = None,
        _private_parameters: object = None,
    ) -> "Lowered":
        """Lower the jaxpr to StableHLO.

        Args:
          lowering_platforms: the platforms to lower for, by default that of its device: "cpu",
            "cuda", "rocm", "tpu", or "gpu" for the available kind of GPU. The first argument of a
            module for several platforms selects the platform that it runs on; such a module is for
            inspection or export.

        Raises:
          TypeError: if the platforms are not a sequence of names.
          RuntimeError: for "gpu", if there is none.
        """
        platforms = platforms_named(lowering_platforms) or (self._platform,)
        traced = without_references(self._traced)
        platform = platforms[0] if len(platforms) == 1 else platforms
        request = LoweringRequest(
            self._jitted.name,
            platform,
            traced.donated,
            self._jitted.keep_unused,
            cpu_settings_for(platform),
            self._where if type(self._where) is DeviceAssignment else None,
            self._layouts,
            location_settings(),
        )
        module = lowered(self._jitted.compiled_program(self._traced, traced.program), request)
        return Lowered(self._jitted, self._traced, self._where, self._is_committed, module, request)

    def __call__(self, *args: object, **kwargs: object) -> PyTree:
        """Compile the program, and run it on these arguments."""
        return self.lower().compile()(*args, **kwargs)


class Lowered(Stage):
    """A program lowered to a StableHLO module."""

    __slots__ = ("_module", "_platforms", "_request")

    _module: "Module"
    # How the module was lowered.
    _request: LoweringRequest
    _platforms: tuple[str, ...]

    def __init__(
        self,
        jitted: Function,
        traced: TracedProgram,
        where: ProgramDevices,
        committed: bool,
        module: "Module",
        request: LoweringRequest,
    ):
        super().__init__(jitted, traced, where, committed, request.layouts)
        self._module = module
        self._request = request
        platform = request.platform
        self._platforms = (platform,) if isinstance(platform, str) else platform

    def as_text(
        self, dialect: str | None = None, *, debug_info: bool = False, style: str = "raw"
    ) -> str:
        """Return the module as text.

        Args:
          dialect: "stablehlo" (the default) or "hlo", the module before XLA's optimizations.
          debug_info: whether the locations are shown.
          style: "raw"; "source", with the user's lines; "short", without metadata and long
            constants; "canonical", with names and orders that depend only on the program.

        Raises:
          ValueError: if there is no such dialect or style.
        """
        debug_info = debug_info or style == "source"
        module = self._module
        text = module.hlo_text if _is_hlo(dialect) else module.text
        return _styled(text(debug_info), style)

    def __repr__(self) -> str:
        operations = sum(" = " in line for line in self.as_text().splitlines())
        fences = f", {len(self.fences)} fences" if self.fences else ""
        name = self._module.name
        platforms = ", ".join(self._platforms)
        return f"<Lowered {name} for {platforms}: {operations} operations{fences}>"

    def _repr_html_(self) -> str:
        text = self.as_text(debug_info=True)
        return importlib.import_module(_NOTEBOOK).program_html(repr(self), text)

    def compiler_ir(self, dialect: str | None = None) -> "ir.Module | XlaComputation":
        """Return the module as jaxlib's object: an `ir.Module`, or an XlaComputation for "hlo"."""
        return self._module.hlo() if _is_hlo(dialect) else self._module.ir_module

    @property
    def fences(self) -> "list[Fence]":
        """The module's fences: values that it stores where XLA's fusion would recompute each use.

        Each has the `file`, `line` and `function` of the user's code that it comes from, and its
        `aval`. The option `hlofront_fences` disables them.
        """
        return list(self._module.fences)

    def cost_analysis(self) -> dict[str, float]:
        """Return XLA's estimate of the program before optimization: flops, bytes accessed, ..."""
        # Plugins for compile-only devices have no such analysis.
        client = self._first_device.client
        if bridge.is_absent(self._first_device):
            client = clients.client_for("cpu")
        return bridge.hlo_module_cost_analysis(client, self._module.hlo().get_hlo_module())

    @boundary
    def compile(
        self,
        compiler_options: dict[str, Any] | None = None,
        *,
        device_assignment: Sequence[Device] | None = None,
    ) -> "Compiled":
        """Compile the module with XLA.

        Args:
          compiler_options: XLA flags by name, in addition to those of `jit`.
          device_assignment: the devices of a target, to compile for all of them.

        Raises:
          JaxRuntimeError: if XLA refuses the module or an option.
          ValueError: if the module was lowered for a platform other than its device's, or for
            several.
        """
        where = _assigned(self._where, device_assignment, len(self._traced.program.in_avals))
        platform = self._platform
        if self._platforms != (platform,):
            names = ", ".join(self._platforms)
            raise ValueError(
                f"the module was lowered for {names}, and its arguments are on "
                f"{self._first_device}: lower it for {platform} to compile it here, or lower it "
                "inside of `with hlofront.target(name)` to compile it for a device that is "
                "elsewhere"
            )
        options = {**dict(self._jitted.compiler_options), **(compiler_options or {})}
        pairs = tuple(sorted(options.items()))
        traced = without_references(self._traced)
        request = compilation_request(
            self._jitted.name,
            where,
            traced.donated,
            self._jitted.keep_unused,
            pairs,
            self._layouts,
            self._request,
        )
        program = self._jitted.compiled_program(self._traced, traced.program)
        executable = executable_for(program, request, self._is_committed)
        return Compiled(
            self._jitted,
            self._traced,
            executable,
            pairs,
            self._module,
            _guards.value,
        )


class Compiled(Stage):
    """A compiled program, which is called with arguments of the kind that it was compiled for."""

    # `__call__` is a slot: Python finds it on the type and reads it from the instance, so that a
    # call goes straight to jaxlib's C++.
    __slots__ = (
        "__call__",
        "__weakref__",
        "_compiler_options",
        "_executable",
        "_is_guarded",
        "_module",
    )

    _executable: "Executable | AbsentExecutable"

    def __init__(
        self,
        jitted: Function,
        traced: TracedProgram,
        executable: "Executable | AbsentExecutable",
        compiler_options: CompilerOptionPairs | None = None,
        module: "Module | None" = None,
        is_guarded: bool = True,
    ):
        super().__init__(jitted, traced, executable.where, executable.committed)
        self._executable = executable
        # The StableHLO that was compiled; None where it is unknown.
        self._module = module
        # The options that the program was compiled with; None where they are unknown.
        self._compiler_options = compiler_options
        # Whether it was compiled with guards against known faults of XLA.
        self._is_guarded = is_guarded
        self.__call__ = bridge.pjit(
            jitted.name,
            None,
            CompiledCall(jitted, traced, executable).call,
            [],
            [],
            (),
            fast_parts.call_registry,
            shard_argument,
            bridge.PjitFunctionCache(capacity=8),
        )

    def call(self, *args: object, **kwargs: object) -> PyTree:
        return self.__call__(*args, **kwargs)

    def as_text(self, *, style: str = "raw") -> str | None:
        """Return XLA's optimized HLO as text.

        Args:
          style: a style of `Lowered.as_text`.
        """
        return _styled(self._executable.hlo_text(), style)

    def __repr__(self) -> str:
        size = self.memory_analysis().temp_size_in_bytes
        where = self._where
        name = where if first_device(where) is where else f"{where.device_count} devices"
        return f"<Compiled {self._jitted.name} for {name}: {size:,} bytes of temporaries>"

    def _repr_html_(self) -> str:
        text = self.as_text() or ""
        return importlib.import_module(_NOTEBOOK).program_html(repr(self), text, self)

    @property
    def xla_guards(self) -> list[Guard] | None:
        """The program's guards against known faults of XLA; None for one that was deserialized.

        Each has the `fault`, with its `name`, its `effect` on programs and the public `reports` of
        it. The option `hlofront_xla_guards` disables them.
        """
        if self._module is None:
            return None
        if not self._is_guarded:
            return []
        # Loads MLIR, which a process that compiles nothing does not need.
        from hlofront.bridge.mlir import operation_names

        names = operation_names(self._module.ir_module)
        options = dict(self._compiler_options or ())
        several = type(self._where) is DeviceAssignment
        return xla_faults.guards_for(
            self._platform, options, operations=names, several_devices=several
        )

    def cost_analysis(self) -> dict[str, float]:
        """Return XLA's estimate of the optimized program: flops, bytes accessed, and so on."""
        return self._executable.cost_analysis()

    def memory_analysis(self) -> "MemoryStats | WorkerMemoryStats":
        """Return jaxlib's record of the bytes of arguments, results, temporaries and code."""
        return self._executable.loaded.get_compiled_memory_stats()

    def runtime_executable(self) -> "LoadedExecutable | SubprocessExecutable":
        """Return jaxlib's LoadedExecutable; for targets, an equivalent object that cannot run."""
        return self._executable.loaded

    @property
    def out_info(self) -> PyTree:
        """The ShapeDtypeStruct of each result, with its sharding, as a tree."""
        return self._described_results(self._result_shardings())

    @property
    def input_shardings(self) -> PyTree:
        """The sharding of each argument, or None if the program does not take it, as a tree."""
        return self.in_tree.unflatten(self._per_argument(self._taken_shardings(), None))

    @property
    def output_shardings(self) -> PyTree:
        """The sharding of each result, as a tree."""
        return self.out_tree.unflatten(self._result_shardings())

    @property
    def input_formats(self) -> PyTree:
        """The Format of each argument, as a tree; an empty one if the program does not take it."""
        layouts = self._executable.loaded.get_parameter_layouts()
        formats = _formats(layouts, self._taken_shardings())
        return self.in_tree.unflatten(self._per_argument(formats, Format()))

    @property
    def output_formats(self) -> PyTree:
        """The Format of each result, as a tree."""
        layouts = self._executable.loaded.get_output_layouts()
        # The new arrays of mutable references follow the results.
        layouts = layouts[
            : len(layouts) - len(self._executable.out_avals) + self.out_tree.num_leaves
        ]
        return self.out_tree.unflatten(_formats(layouts, self._result_shardings()))

    def _taken_shardings(self) -> list[Sharding | None]:
        """Return the sharding of each argument that the program takes."""
        executable = self._executable
        if executable.shardings is not None:
            return list(executable.shardings.inputs)
        return [in_memory_of(aval, executable.sharding) for aval in executable.kept_avals]

    def _result_shardings(self) -> list[Sharding | None]:
        """Return the sharding of each result of the program."""
        executable = self._executable
        if executable.shardings is not None:
            return list(executable.shardings.outputs[: self.out_tree.num_leaves])
        avals = executable.out_avals[: self.out_tree.num_leaves]
        return [in_memory_of(aval, executable.sharding) for aval in avals]

    def _per_argument(self, taken: Sequence[object], default: object) -> list[object]:
        """Return, per leaf of the arguments, its value, or `default` if the program drops it."""
        flat = [default] * self.in_tree.num_leaves
        for position, value in zip(self._executable.kept_inputs, taken, strict=True):
            # The references that a function closes over follow its arguments.
            if position < len(flat):
                flat[position] = value
        return flat


def _formats(layouts: "Sequence[PjRtLayout]", shardings: Sequence[Sharding | None]) -> list[Format]:
    """Return a Format per sharding; `layouts` has those of tokens and constants first."""
    user_layouts = layouts[len(layouts) - len(shardings) :]
    return [Format(Layout.of_buffer(x), s) for x, s in zip(user_layouts, shardings, strict=True)]


def platforms_named(names: Sequence[str] | None) -> tuple[str, ...]:
    """Return the platforms to lower for without duplicates, with "gpu" resolved to a kind of GPU.

    Raises:
      TypeError: if the platforms are not a sequence of names.
      RuntimeError: for "gpu", if there is none.
    """
    if names is None:
        return ()
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise TypeError(
            "lowering_platforms is a sequence of names, such as ('cpu',) or ('tpu', 'cuda'): got "
            f"{names!r}"
        )
    platforms = [
        raw_platform_of(clients.client_for(name)) if name == "gpu" else name for name in names
    ]
    return tuple(dict.fromkeys(platforms))


def _assigned(
    where: ProgramDevices, assignment: Sequence[Device] | None, inputs: int
) -> ProgramDevices:
    """Return the devices to compile for: those passed to `compile`, else those lowered for.

    Raises:
      ValueError: if the devices are attached, or the program was not lowered for them.
    """
    if assignment is None:
        return where
    devices = tuple(assignment)
    if type(where) is DeviceAssignment and devices == where.devices:
        return where
    device = first_device(where)
    if not devices or device not in devices or not bridge.is_absent(device):
        raise ValueError(
            "device_assignment takes devices of a target, which the program was lowered for, "
            f"such as hlofront.target('tpu:v5e:2x2').devices: got {assignment!r} for {device}"
        )
    return device if len(devices) == 1 else DeviceAssignment(devices, (None,) * inputs, ())


_STYLES = "hlotools.ir.styles"
_NOTEBOOK = "hlotools.html.notebook"


def _is_hlo(dialect: str | None) -> bool:
    """Return whether a dialect is "hlo", not "stablehlo" or None; raise ValueError for others."""
    if dialect not in (None, "stablehlo", "hlo"):
        raise ValueError(f"Unknown dialect: {dialect}. Wanted 'stablehlo' or 'hlo'.")
    return dialect == "hlo"


def _styled(text: str, style: str) -> str:
    """Return a program's text in a style; only this function imports the module of styles."""
    if style == "raw":
        return text
    return importlib.import_module(_STYLES).styled(text, style)


CompilerOptions = dict[str, str | bool]


@runtime_checkable
class Wrapped(Protocol):
    """A function returned by jit: it can be called, traced and lowered."""

    __call__: Callable[..., PyTree]

    def trace(self, *args: object, **kwargs: object) -> Traced:
        """Trace the function for these arguments."""
        ...

    def lower(self, *args: object, **kwargs: object) -> Lowered:
        """Trace and lower the function for these arguments."""
        ...
