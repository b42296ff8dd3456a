"""Jitted functions: traced once per kind of arguments, compiled, and called through C++."""

import weakref
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

from hlofront.base import caches, events
from hlofront.base.boundary import JITTED, boundary, named_as
from hlofront.base.compute_once import compute_once
from hlofront.base.config import no_tracing
from hlofront.base.events import timed
from hlofront.base.tree import PyTree
from hlofront.bridge import client as bridge
from hlofront.bridge import fast_parts, state
from hlofront.bridge.client import Device, PjitFunction
from hlofront.bridge.members import clear_call_cache
from hlofront.core.compile_time import folding_constants
from hlofront.core.jaxpr import ClosedJaxpr, DebugInfo
from hlofront.core.references import is_reference
from hlofront.core.sharding.mesh_context import NO_MESH, context_mesh
from hlofront.core.trace import Tracer, as_array, current_trace, is_eager, leaked
from hlofront.higher_order.calls.jit_call import Inline, canonical_inline, jit_p, refuse_options
from hlofront.pjrt import clients
from hlofront.runtime.compilation import recompilation, run_log
from hlofront.runtime.compilation.cache_report import cache_report, timings
from hlofront.runtime.compilation.pipeline import compilation_request
from hlofront.runtime.compilation.recompilation import TraceKey
from hlofront.runtime.compilation.traced_program import (
    CompilerOptionPairs,
    Function,
    TracedKey,
    TracedProgram,
    TracedPrograms,
    timings_of,
)
from hlofront.runtime.dispatch import stages
from hlofront.runtime.dispatch.compiled_call import shard_argument
from hlofront.runtime.dispatch.described_devices import described_devices
from hlofront.runtime.dispatch.earlier_programs import EarlierPrograms
from hlofront.runtime.dispatch.executable import CallAnswer, Executable
from hlofront.runtime.dispatch.executables import executable_for
from hlofront.runtime.dispatch.float0_results import without_float0
from hlofront.runtime.dispatch.jit_layouts import JitLayouts, requested_modes
from hlofront.runtime.dispatch.jit_shardings import JitShardings
from hlofront.runtime.dispatch.references import discharged_call, without_references
from hlofront.runtime.dispatch.repeated_call import RepeatedCall
from hlofront.runtime.dispatch.requested_memories import in_requested_memories
from hlofront.runtime.dispatch.states import result_on_states, shape_on_states
from hlofront.runtime.sharding.device_assignment import (
    DeviceAssignment,
    ProgramDevices,
    shardings_inside,
)
from hlofront.runtime.sharding.placement import choose_placement, device_inside, no_value
from hlofront.runtime.sharding.typed import program_devices
from hlofront.transforms.arguments import ArgumentPlan
from hlofront.transforms.flatten import ShapeDtypeStruct, abstract, result_paths, stage_tree
from hlofront.transforms.reference_checks import check_arguments, check_references
from hlofront.transforms.stage import EAGER

_flatten = fast_parts.registry.flatten
_trace_context = state.trace_context
_disable_jit = state.disable_jit
_folding = state.folding
# The C++ caches of all jitted functions, with LRU eviction.
cpp_cache = bridge.PjitFunctionCache(capacity=8192)

# The static and donated arguments of a plan: those of jit(f) and jit(f, static_argnums=0) differ.
PlanKey = tuple[object, ...]

# The traced programs, per function and per plan of its arguments: two calls of jit(f) trace f
# once. The tables hold no reference to their function, and are dropped with it.
_tables: "weakref.WeakKeyDictionary[Callable[..., object], dict[PlanKey, TracedPrograms]]" = (
    weakref.WeakKeyDictionary()
)


@caches.on_clear
def _forget_all() -> None:
    # `clear` empties this cache, including entries of deleted jitted functions, which another one
    # of the same Python function would otherwise hit. `clear_all` reaches only live jitted
    # functions, but those of every cache.
    cpp_cache.clear()
    cpp_cache.clear_all()


class Jitted(Function):
    """A jitted function: the plan of its arguments, its options, and its traced programs."""

    __slots__ = (
        "__weakref__",
        "backend",
        "device",
        "earlier",
        "inline",
        "plan_key",
        "jit_layouts",
        "jit_shardings",
        "on_states",
        "repeated",
        "table",
        "traced_for",
    )

    def __init__(
        self,
        fun: Callable[..., object],
        plan: ArgumentPlan,
        keep_unused: bool = False,
        inline: bool | Inline = False,
        compiler_options: CompilerOptionPairs = (),
        device: Device | None = None,
        backend: str | None = None,
        traced_for: str = "jit",
        jit_shardings: JitShardings | None = None,
        jit_layouts: JitLayouts | None = None,
        variant: tuple[Hashable, ...] = (),
    ):
        super().__init__(fun, plan, keep_unused, compiler_options)
        self.jit_shardings, self.jit_layouts = jit_shardings, jit_layouts
        self.inline = canonical_inline(inline)
        self.device, self.backend = device, backend
        self.traced_for = traced_for
        # The programs of an earlier process, which calls start from.
        self.earlier: EarlierPrograms | None = None
        # The last call of a program that C++ does not start.
        self.repeated: RepeatedCall | None = None
        self.on_states: Jitted | None = None  # The function of PassedStates.
        self.plan_key: PlanKey = (
            plan.static_argnums,
            plan.static_argnames,
            plan.donate_argnums,
            plan.donate_argnames,
            *variant,
        )
        try:
            tables = _tables.setdefault(fun, {})
        except TypeError:  # The callable is not hashable or not weakly referable.
            tables = {}
        table = tables.get(self.plan_key)
        self.table = tables.setdefault(self.plan_key, TracedPrograms()) if table is None else table

    def traced(
        self, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> tuple[TracedProgram, list[object]]:
        """Return the program for a call's arguments, traced on first use, and their flat values.

        Raises:
          TypeError: if a leaf of the arguments is neither an array nor a description of one.
          ValueError: if the function would know a mutable reference by two names.
        """
        key, leaves = self.key_of(args, kwargs)
        if any(map(is_reference, key[1])):
            names = partial(self.plan.names, args, kwargs)
            check_arguments(leaves, self.traced_for, self.plan.signature.find_where, names)
        traced = self._program_of(args, kwargs, key, leaves)
        if traced.has_references:
            check_references(traced.program.debug_info, leaves, traced.program.consts)
        return traced, leaves

    def _program_of(
        self, args: tuple[object, ...], kwargs: dict[str, object], key: TracedKey, leaves: list[Any]
    ) -> TracedProgram:
        table = self.table
        traced = table.find(key)
        if traced is not None:
            traced.hits += 1
            return traced
        if is_eager():
            table.make_room()
            traced = compute_once(table, key, lambda: self._trace_and_report(args, kwargs, key))
            tracer = next(
                (const for const in traced.program.consts if isinstance(const, Tracer)), None
            )
            if tracer is not None:
                table.pop(key, None)
                raise leaked(tracer)
            return traced
        # A program that captured values of an enclosing one is valid only inside of it.
        enclosing: EnclosedPrograms = getattr(current_trace(), "programs_of", {})
        inner_key = (id(table), key)
        if inner_key in enclosing:
            traced, _ = enclosing[inner_key]
            return traced
        traced = self._trace(args, kwargs, key, leaves)
        if any(isinstance(const, Tracer) for const in traced.program.consts):
            enclosing[inner_key] = (traced, table)
        else:
            table.make_room()
            table[key] = traced
        return traced

    def key_of(
        self, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> tuple[TracedKey, list[object]]:
        """Return the kind of a call's arguments, which selects its program, and the flat values."""
        plan = self.plan
        statics = plan.static_values(args, kwargs)
        leaves, in_tree = _flatten(plan.dynamic(args, kwargs))
        try:
            avals = tuple(map(abstract, leaves))
        except (TypeError, OverflowError) as error:
            raise plan.bad_argument(args, kwargs, leaves) from error
        return (in_tree, avals, statics, _trace_context()), leaves

    def _trace_and_report(
        self, args: tuple[object, ...], kwargs: dict[str, object], key: TracedKey
    ) -> TracedProgram:
        """Trace a program for a top-level call, and report the reason if it is not the first."""
        if self.traced_for != "jit":
            return self._trace(args, kwargs, key)
        plan = self.plan
        in_tree, avals, statics, context = key
        names = plan.names(args, kwargs)
        kind = TraceKey(names, plan.signature.positional_names(), in_tree, avals, statics, context)
        why = self.reason(kind)
        recompilation.report(self.name, why)
        traced = self._trace(args, kwargs, key)
        traced.kind, traced.why = kind, why
        recompilation.note(self.fun, self.table.number, kind)
        return traced

    def reason(self, kind: TraceKey) -> str | None:
        """Return why another program is traced; None for the first one."""
        return recompilation.reason(self.fun, self.table.number, kind)

    def traced_function(
        self, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> Callable[..., PyTree]:
        """Return the function of dynamic arguments that is traced for a call."""
        return self.plan.with_statics(self.fun, args, kwargs)

    def _trace(
        self,
        args: tuple[object, ...],
        kwargs: dict[str, object],
        key: TracedKey,
        operands: Sequence[object] = (),
    ) -> TracedProgram:
        """Trace a program for a call's arguments, which are of this kind."""
        plan = self.plan
        if no_tracing.value:
            raise RuntimeError(
                f"{plan.signature.where} would be traced for jit, and jax_no_tracing is set: no "
                "program was made before for arguments of these types"
            )
        out_tree = None
        debug_info = DebugInfo(
            self.traced_for,
            plan.signature.where,
            plan.names(args, kwargs),
            lambda: result_paths(out_tree),
        )
        with timed(events.TRACE, fun_name=self.name) as clock:
            fun = without_float0(self.traced_function(args, kwargs))
            in_tree, avals, *_ = key
            program, out_tree = stage_tree(fun, in_tree, avals, debug_info, operands)
        timings_of(program).trace += clock.seconds
        run_log.traced(self.name, program, self.traced_for, clock.seconds)
        events.log_stage("Finished tracing %s for jit in %.6f s", self.name, clock.seconds)
        return TracedProgram(program, in_tree, out_tree, plan.donated(args, kwargs))

    # ---- calls

    @property
    def called_by(self) -> PjitFunction | None:
        """The C++ function of the executables, if it is not the one that users call."""
        return None

    def of_function(self, fun: Callable[..., object]) -> "Jitted":
        """Return another function jitted with the same plan and options, without shardings."""
        options = self.inline, self.compiler_options, self.device, self.backend, self.traced_for
        return Jitted(fun, self.plan, self.keep_unused, *options)

    @boundary
    def call(self, *args: object, **kwargs: object) -> CallAnswer:
        """Answer a C++ call without an executable: return the result and data for later calls."""
        if _disable_jit.value:
            return self.fun(*args, **kwargs), None, False
        if self.repeated is not None:
            repeated = self.repeated.result(args, kwargs)
            if repeated is not None:
                return repeated[0], None, False
        return self.compile_and_call(args, kwargs)

    def compile_and_call(self, args: tuple[object, ...], kwargs: dict[str, object]) -> CallAnswer:
        """Trace, compile and run the function on a call's arguments; return a `CallAnswer`."""
        if _folding.value and self.traced_for == EAGER and is_eager():
            # The program of an operation is the same inside of ensure_compile_time_eval.
            with folding_constants(False):
                return self.compile_and_call(args, kwargs)
        if self.earlier is not None and is_eager():
            key, leaves = self.key_of(args, kwargs)
            names = partial(self.plan.names, args, kwargs)
            answer = self.earlier.call(key, leaves, names, self.run_traced)
            if answer is not None:
                return answer
        if (on_states := result_on_states(self, args, kwargs)) is not None:
            return on_states[0], None, False
        traced, leaves = self.traced(args, kwargs)
        if not is_eager():
            return traced.out_tree.unflatten(self._bind(traced, leaves)), None, False
        for position, leaf in enumerate(leaves):
            if isinstance(leaf, Tracer):
                raise leaked(leaf)
            if isinstance(leaf, ShapeDtypeStruct):
                raise no_value(leaf, repr(self.plan.names(args, kwargs)[position]))
        if traced.has_references:
            results = self._run_with_references(traced, leaves)
            return traced.out_tree.unflatten(results), None, False
        return self.run_traced(traced, leaves)

    def run_traced(self, traced: TracedProgram, leaves: Sequence[object]) -> CallAnswer:
        """Run a program without references on its flat arguments; return a `CallAnswer`."""
        executable = self._executable(traced, leaves)
        results = executable.run(leaves)
        result = traced.out_tree.unflatten(results)
        if self.earlier is None and not self.plan.has_statics:
            self.repeated = RepeatedCall.of(traced, executable, leaves)
        return result, executable.fast_path(traced.out_tree, leaves, result), False

    def _run_with_references(self, traced: TracedProgram, leaves: Sequence[object]) -> list[Any]:
        """Run a program of mutable references on the arrays that they hold."""
        call = discharged_call(traced.program, traced.donated)
        discharged = without_references(traced)
        return call.run(leaves, lambda arrays: self._executable(discharged, arrays).run(arrays))

    def _executable(self, traced: TracedProgram, leaves: Sequence[object]) -> "Executable":
        """Return the executable of a program for the devices of its flat arguments."""
        device, committed = self._where(traced, leaves)
        if device not in traced.devices:
            if traced.devices:
                before = traced.devices[-1]
                recompilation.report(self.name, f"sharding: {before} -> {device}")
            traced.devices.append(device)
        request = compilation_request(
            self.name,
            device,
            traced.donated,
            self.keep_unused,
            self.compiler_options,
            None if self.jit_layouts is None else self.jit_layouts.modes_of(traced),
        )
        return executable_for(self.compiled_program(traced, traced.program), request, committed)

    def requested_outputs(self, traced: TracedProgram) -> Sequence[bridge.Sharding | None]:
        if self.jit_shardings is None:
            return super().requested_outputs(traced)
        return self.jit_shardings.of(traced).outputs

    def compiled_program(self, traced: TracedProgram, program: ClosedJaxpr) -> ClosedJaxpr:
        if self.jit_shardings is None:
            return program
        return in_requested_memories(program, self.jit_shardings.of(traced))

    def _bind(self, traced: TracedProgram, leaves: Sequence[object]) -> list[Any]:
        """Add a call of the program, with sharding constraints, to the enclosing program."""
        shardings = self.jit_shardings
        if shardings is None:
            return self._bound(traced, leaves)
        results = self._bound(traced, shardings.constrained_arguments(traced, leaves))
        return shardings.constrained_results(traced, results)

    def _bound(self, traced: TracedProgram, leaves: Sequence[object]) -> list[Any]:
        program = traced.program
        if self.compiler_options:
            refuse_options(self.name, self.compiler_options)
        program, captured = traced.opened()
        donated = traced.donated or (False,) * len(leaves)
        results = jit_p.bind(
            *captured,
            *leaves,
            name=self.name,
            jaxpr=program,
            donated_invars=(False,) * len(captured) + donated,
            keep_unused=self.keep_unused,
            inline=self.inline,
            compiler_options_kvs=self.compiler_options,
            ctx_mesh=context_mesh() or NO_MESH,
        )
        return list(map(as_array, results)) if self.inline is True else results

    def _where(
        self, traced: TracedProgram, leaves: Sequence[object]
    ) -> tuple[ProgramDevices | None, bool]:
        """Return the devices that run the program, and whether results are committed to them."""
        if self.device is not None or self.backend is not None:
            self.requested_outputs(traced)  # This checks the trees of shardings.
            device = self.device or clients.local_devices(self.backend)[0]
            if self.jit_shardings is not None:
                self.jit_shardings.check_arguments(traced, leaves, device)
            inside = shardings_inside(traced.program)
            return device_inside(inside, device) if inside else device, True
        assignment = self.jit_shardings and self._device_assignment(traced, leaves)
        return (assignment, True) if assignment else choose_placement(traced.program, leaves)

    def _device_assignment(
        self, traced: TracedProgram, leaves: Sequence[object]
    ) -> DeviceAssignment | None:
        """Return the DeviceAssignment of a program for several devices; None if it is for one."""
        shardings = self.jit_shardings
        requested = None if shardings is None else shardings.over_devices(traced, leaves)
        names = traced.program.jaxpr.debug_info.arg_names
        return program_devices(
            traced.program,
            leaves,
            requested.inputs if requested else (),
            requested.outputs if requested else (),
            lambda i: f"argument {names[i]}",
        )

    # ---- stages

    def _stages_where(
        self, traced: TracedProgram, leaves: Sequence[object]
    ) -> tuple[ProgramDevices | None, bool]:
        """Return the devices for a stage: arguments may be descriptions, devices a target's."""
        if self.device is None and self.backend is None:
            described = described_devices(leaves, self._device_assignment(traced, leaves))
            if described is not None:
                return described
        return self._where(traced, leaves)

    @boundary
    def trace(self, *args: object, **kwargs: object) -> "stages.Traced":
        """Trace the function for these arguments: arrays, or any objects with a shape and dtype."""
        traced, leaves = self.traced(args, kwargs)
        layouts = requested_modes(self.jit_layouts, traced, leaves)
        return stages.Traced(self, traced, *self._stages_where(traced, leaves), layouts)

    @boundary
    def lower(self, *args: object, **kwargs: object) -> "stages.Lowered":
        """Trace and lower the function for these arguments, without compiling it."""
        return self.trace(*args, **kwargs).lower()

    @boundary
    def eval_shape(self, *args: object, **kwargs: object) -> PyTree:
        """Return the shapes and dtypes of the result, without computing it."""
        if (shapes := shape_on_states(self, args, kwargs)) is not None:
            return shapes[0]
        traced, leaves = self.traced(args, kwargs)
        if self.jit_shardings is not None:
            leaves = self.jit_shardings.described_arguments(traced, leaves)
        return stages.Traced(self, traced, *self._stages_where(traced, leaves)).out_info


# The programs that captured values of an enclosing one, with their tables, keyed by the tables'
# ids, which the references keep valid.
EnclosedPrograms = dict[tuple[int, TracedKey], tuple[TracedProgram, TracedPrograms]]


def make_callable(
    jitted: Jitted,
    key: tuple[object, ...],
    *,
    fun: Callable[..., object] | None = None,
    call: Callable[..., CallAnswer] | None = None,
) -> PjitFunction:
    """Return the C++ function that calls a `Jitted`.

    Args:
      jitted: the jitted function.
      key: the options that distinguish this function from other jitted functions of `fun`.
      fun: the function that C++ calls while jit is disabled, by default the user's.
      call: the function that C++ calls if it has no executable, by default `jitted.call`.
    """
    function = bridge.pjit(
        jitted.name,
        fun or jitted.fun,
        call or jitted.call,
        jitted.plan.static_argnums,
        jitted.plan.static_argnames,
        key,
        fast_parts.call_registry,
        shard_argument,
        cpp_cache,
    )
    named_as(function, jitted.fun)
    function._jitted = jitted
    return function


def _behind(function: PjitFunction) -> Jitted:
    """Return the Jitted of a function that C++ calls; for an operation, the one that compiles it.

    Raises:
      AttributeError: if there is none, as for calls of compiled programs.
    """
    owner = getattr(function, JITTED)
    return owner if isinstance(owner, Jitted) else owner.jitted


def _clear(call: PjitFunction, jitted: Jitted) -> None:
    clear_call_cache(jitted.called_by or call)
    jitted.table.clear()


# These members are on the class and not on each function: such a function would refer to itself,
# and `functools.wraps(jitted)` would copy them to functions that are not jitted.
_MEMBERS: dict[str, Callable[[PjitFunction], Callable[..., object]]] = {
    # JAX's private name, by which qwix finds the code to replace while jit is disabled.
    "_fun": lambda function: _behind(function).fun,
    "trace": lambda function: _behind(function).trace,
    "lower": lambda function: _behind(function).lower,
    "eval_shape": lambda function: _behind(function).eval_shape,
    "clear_cache": lambda function: partial(_clear, function, _behind(function)),
    "cache_report": lambda function: partial(
        cache_report,
        _behind(function).name,
        _behind(function).table,
        _behind(function).called_by or function,
    ),
    "timings": lambda function: partial(timings, _behind(function).table),
}
for _name, _member in _MEMBERS.items():
    setattr(fast_parts.PjitFunction, _name, property(_member))
