"""Forward-mode differentiation: the trace and tracers of jvp, and jvp of jaxprs."""

import weakref
from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np

from hlofront.base.boundary import user_context
from hlofront.base.config import check_tracer_leaks, enable_x64
from hlofront.base.dtypes import float0
from hlofront.base.elements import all_dtypes
from hlofront.base.typing import ArrayLike, ArrayLikes, Params
from hlofront.bridge import state
from hlofront.core import rules
from hlofront.core.aval import register_value_type, typeof
from hlofront.core.jaxpr import Atom, ClosedJaxpr, DebugInfo, Jaxpr, Literal, Value
from hlofront.core.names import coming_from, coming_from_here
from hlofront.core.primitive import Primitive
from hlofront.core.programs.program_cache import once_per_program
from hlofront.core.rule_checks import check_tangents, checks_are_on
from hlofront.core.symbolic_zeros import Tangent, Tangents, Zero
from hlofront.core.trace import (
    RuleTrace,
    Trace,
    Tracer,
    as_array,
    current_trace,
    interpreting_with,
    process,
)
from hlofront.primitives.collectives.varying import varying_as
from hlofront.primitives.rules.derivatives import instantiate as instantiated
from hlofront.transforms.leaks import raise_if_leaked
from hlofront.transforms.stage import stage

_x64 = state.enable_x64
_SCALARS = frozenset({float, int, complex, bool})
_HOST_VALUES = _SCALARS | {np.ndarray, *[dtype.type for dtype in all_dtypes]}


def describe(debug_info: DebugInfo | None) -> str:
    """Return the traced function and its transformation, as in "loss at model.py:12 for grad"."""
    return f"{debug_info.func_src_info} for {debug_info.traced_for}" if debug_info else ""


class DifferentiationTracer(Tracer):
    """The base class of the tracers of jvp and jet, with their messages about origins of values."""

    __slots__ = ("primal",)

    primal: Value
    # What converting the value to a Python or NumPy value would lose.
    lost: ClassVar[str]

    def _origin_message(self) -> str:
        primal = self.primal
        if isinstance(primal, Tracer):
            return primal._origin_message()
        return (
            f"It is being differentiated, for {self._traced_function()}, and as a value of Python "
            f"or NumPy it would lose its {self.lost}. To use it without derivatives, take "
            "lax.stop_gradient of it first."
        )

    def _origin_arguments(self) -> list[str]:
        primal = self.primal
        return primal._origin_arguments() if isinstance(primal, Tracer) else []


class JVPTracer(DifferentiationTracer):
    """A tracer of jvp: a primal and its tangent."""

    __slots__ = ("tangent",)

    _trace: "JVPTrace"
    lost = "derivative"
    has_derivative = True

    def __init__(self, trace: "JVPTrace", primal: Value, tangent: Value):
        # It is never replaced, so it may have a narrower type than in the base class.
        self._trace = trace  # pyright: ignore[reportIncompatibleVariableOverride]
        self.primal = primal
        self.tangent = tangent
        self.aval = primal.aval if isinstance(primal, Tracer) else typeof(primal)

    def to_concrete_value(self) -> Value:
        primal = self.primal
        return primal.to_concrete_value() if isinstance(primal, Tracer) else primal

    def computed_value(self) -> Value:
        primal = self.primal
        return primal.computed_value() if isinstance(primal, Tracer) else primal

    def __repr__(self) -> str:
        trace = self._trace
        if trace.inner is trace.parent:
            return f"JVPTracer(primal={self.primal}, tangent={self.tangent})"
        # For grad, vjp and linearize, tangents are staged: they have a type and no value.
        tangent_type = typeof(self.tangent).str_short(True)
        return f"GradTracer(primal={self.primal}, typeof(tangent)={tangent_type})"

    __str__ = __repr__

    def _traced_function(self) -> str:
        return describe(self._trace.debug_info)


register_value_type(JVPTracer, lambda tracer: tracer.aval)


class JVPTrace(RuleTrace):
    """A trace of jvp, which applies jvp rules to operations on primals with tangents."""

    __slots__ = ("checks", "debug_info", "inner", "parent", "programs_of", "records", "x64")

    # Whether to check the tangents that jvp rules return.
    checks: bool
    # Whether operations of jvp rules are written to a jaxpr, with their tracebacks.
    records: bool

    # The interpreter of operations without tangents.
    parent: Trace
    # The interpreter of the operations of jvp rules.
    inner: Trace
    # The differentiated function, for messages.
    debug_info: DebugInfo | None
    # Whether 64-bit dtypes were enabled when differentiation began.
    x64: bool

    def __init__(
        self, parent: Trace, inner: Trace | None = None, debug_info: DebugInfo | None = None
    ):
        self.parent = parent
        self.inner = parent if inner is None else inner
        self.debug_info = debug_info
        # Programs that captured values of this function; see `StagingTrace.programs_of`.
        self.programs_of: dict[object, object] = {}
        self.x64 = _x64.value
        self.checks = checks_are_on()
        self.records = self.inner is not parent or parent.stages

    def wrap(self, primal: Value, tangent: Value) -> Value:
        return primal if type(tangent) is Zero else JVPTracer(self, primal, tangent)

    def split(self, x: Value) -> tuple[Value, Value]:
        """Return the primal and tangent of a value; a constant's tangent is a symbolic zero."""
        if type(x) is JVPTracer and x._trace is self:  # pyright: ignore[reportPrivateUsage]
            return x.primal, x.tangent
        return x, Zero.of(x)

    def to_primal_tangent_pair(self, val: Value) -> tuple[Value, Value]:
        """Return the primal and tangent of a value: `split` under JAX's name."""
        return self.split(val)

    def lift(self, x: Value) -> Value:
        return self.parent.lift(x)

    def process(self, primitive: Primitive, args: tuple[Value, ...], params: Params) -> Value:
        for x in args:
            if type(x) is JVPTracer and x._trace is self:  # pyright: ignore[reportPrivateUsage]
                break
        else:
            # Tangents may be written to a new reference later.
            if not primitive.ref_allocating:
                return self.parent.process_as_current(primitive, args, params)
        primals: list[Value] = []
        tangents: list[Tangent] = []
        for x in args:
            if type(x) is JVPTracer and x._trace is self:  # pyright: ignore[reportPrivateUsage]
                primals.append(x.primal)
                tangents.append(x.tangent)
            else:
                primals.append(x)
                tangents.append(Zero.of(x))
        if _x64.value is not self.x64:
            self._keep_types(args, primals)
            self._keep_types(args, tangents)
        rule = rules.jvp[primitive]
        with interpreting_with(self.inner):
            if not self.records or primitive.carries_programs or primitive in rules.jvp.foreign:
                results: tuple[Value, Value] = rule(tuple(primals), tuple(tangents), **params)
            else:
                with coming_from_here():
                    results = rule(tuple(primals), tuple(tangents), **params)
        primal_out, tangent_out = results
        if self.checks:
            check_tangents(primitive, primal_out, tangent_out)
        if primitive.multiple_results:
            # pyrefly: ignore[bad-argument-type]
            return [self.wrap(p, t) for p, t in zip(primal_out, tangent_out, strict=True)]
        if type(tangent_out) in _HOST_VALUES and not _is_foreign(primitive):
            # The tangent of x + 1 is the one passed for x, but must look like the result of an
            # operation.
            tangent_out = self.parent.lift(tangent_out)
        return self.wrap(primal_out, tangent_out)

    def _keep_types(self, args: tuple[Value, ...], values: list[Value]) -> None:
        """Replace Python scalars in `values` by arrays of their tracers' dtypes, in place.

        In a block that switches 64-bit dtypes, a differentiated Python scalar would change its
        dtype.
        """
        for i, (x, value) in enumerate(zip(args, values, strict=True)):
            if type(x) is JVPTracer and x._trace is self and type(value) in _SCALARS:  # pyright: ignore[reportPrivateUsage]
                with enable_x64(self.x64):
                    values[i] = self.parent.lift(value)


def _is_foreign(primitive: Primitive) -> bool:
    """Return whether another package wrote rules of a primitive; its results stay unchanged."""
    return primitive in rules.jvp.foreign or primitive in rules.infer.foreign


def as_tangent(tangent: Tangent) -> Tangent:
    """Return a tangent, as a symbolic zero if its dtype is float0."""
    if type(tangent) is not Zero and getattr(tangent, "dtype", None) == float0:
        return Zero(typeof(tangent))
    return tangent


def jvp_flat(
    fun: Callable[..., Sequence[Value]],
    primals: ArrayLikes,
    tangents: Tangents,
    debug_info: DebugInfo | None = None,
) -> tuple[list[ArrayLike], list[Tangent]]:
    """Return primals and tangents of a flat function's results; tangents may be symbolic zeros."""
    trace = JVPTrace(current_trace(), debug_info=debug_info)
    # In shard_map, the programs of loops and branches expect tangents with the types of primals.
    arguments = [
        trace.wrap(varying_as(p, t), as_tangent(t)) for p, t in zip(primals, tangents, strict=True)
    ]
    try:
        with interpreting_with(trace):
            outputs = fun(*arguments)
    finally:
        trace.alive = False
        trace.programs_of.clear()
    pairs = [trace.split(x) for x in outputs]
    if check_tracer_leaks.value:
        del arguments, outputs
        reference = weakref.ref(trace)
        del trace
        raise_if_leaked(reference)
    return [p for p, _ in pairs], [t for _, t in pairs]


def jvp_jaxpr(
    jaxpr: Jaxpr, consts: ArrayLikes, primals: ArrayLikes, tangents: Tangents
) -> tuple[list[ArrayLike], list[Tangent]]:
    """Evaluate a jaxpr and its tangents in the current trace; return (primals, tangents).

    Args:
      jaxpr: the program.
      consts: the values of its constants.
      primals: one per input.
      tangents: one per primal, an array or a symbolic zero.
    """
    values: dict[Atom, Value] = dict(zip(jaxpr.constvars, consts, strict=True))
    values.update(zip(jaxpr.invars, primals, strict=True))
    # A variable without an entry has a zero tangent.
    tangent_of: dict[Atom, Value] = {
        var: tangent
        for var, tangent in zip(jaxpr.invars, tangents, strict=True)
        if type(tangent) is not Zero
    }
    checks = checks_are_on()
    for equation in jaxpr.eqns:
        primitive = equation.primitive
        operands: list[Value] = []
        tangents_in: list[Tangent | None] = []
        has_tangent = False
        for atom in equation.invars:
            if type(atom) is Literal:
                operands.append(atom.operand)
                tangents_in.append(None)
                continue
            operands.append(values[atom])
            tangent = tangent_of.get(atom)
            tangents_in.append(tangent)
            has_tangent = has_tangent or tangent is not None
        try:
            with coming_from(equation.name_stack, equation.traceback):
                if not has_tangent and not primitive.ref_allocating:
                    results = process(primitive, tuple(operands), equation.params)
                    if primitive.multiple_results:
                        values.update(zip(equation.outvars, results, strict=True))
                    else:
                        values[equation.outvars[0]] = results
                    continue
                tangents_in = [
                    Zero(atom.aval.to_tangent_aval()) if tangent is None else tangent
                    for atom, tangent in zip(equation.invars, tangents_in, strict=True)
                ]
                rule: Callable[..., tuple[Value, Value]] = rules.jvp[primitive]
                if primitive.jvp_calls_user or primitive in rules.jvp.foreign:
                    operands = [as_array(x) for x in operands]
                results, result_tangents = rule(
                    tuple(operands), tuple(tangents_in), **equation.params
                )
                if checks:
                    check_tangents(primitive, results, result_tangents)
        except Exception:
            with user_context(equation.traceback):
                raise
        if not primitive.multiple_results:
            results, result_tangents = (results,), (result_tangents,)
        for var, result, tangent in zip(equation.outvars, results, result_tangents, strict=True):
            values[var] = result
            if type(tangent) is not Zero:
                tangent_of[var] = tangent
    primals_out: list[ArrayLike] = []
    tangents_out: list[Tangent] = []
    for atom in jaxpr.outvars:
        if type(atom) is Literal:
            primals_out.append(atom.operand)
            tangents_out.append(Zero(atom.aval.to_tangent_aval()))
        else:
            primals_out.append(values[atom])
            tangent = tangent_of.get(atom)
            tangents_out.append(Zero(atom.aval.to_tangent_aval()) if tangent is None else tangent)
    return primals_out, tangents_out


def jvp_program(
    program: ClosedJaxpr,
    nonzero: Sequence[bool],
    instantiate: bool | Sequence[bool] = False,
) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    """Return a closed jaxpr of primals and tangents; cached per program and nonzero tangents.

    Args:
      program: the closed jaxpr to differentiate.
      nonzero: per input, whether it has a tangent.
      instantiate: per output, or for all, whether its tangent is an output even if it is zero.

    Returns:
      The closed jaxpr, with inputs (*primals, *nonzero tangents) and outputs (*primals,
      *tangents), and per output of the original whether it has a tangent.
    """
    if isinstance(instantiate, bool):
        instantiate = (instantiate,) * len(program.jaxpr.outvars)
    return _jvp_program(program, tuple(nonzero), tuple(instantiate))


@once_per_program
def _jvp_program(
    program: ClosedJaxpr, nonzero: tuple[bool, ...], instantiate: tuple[bool, ...]
) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    jaxpr = program.jaxpr
    avals = program.in_avals
    tangent_avals = [aval.to_tangent_aval() for aval, n in zip(avals, nonzero, strict=True) if n]
    present: tuple[bool, ...] = ()

    def with_tangents(*args: Value) -> list[Value]:
        nonlocal present
        primals = args[: len(avals)]
        present_tangents = iter(args[len(avals) :])
        tangents = [
            next(present_tangents) if n else Zero(aval.to_tangent_aval())
            for aval, n in zip(avals, nonzero, strict=True)
        ]
        primals_out, tangents_out = jvp_jaxpr(jaxpr, program.consts, primals, tangents)
        present = tuple(
            type(t) is not Zero or force for t, force in zip(tangents_out, instantiate, strict=True)
        )
        nonzero_tangents = [
            instantiated(t) for t, there in zip(tangents_out, present, strict=True) if there
        ]
        return [*primals_out, *nonzero_tangents]

    return stage(with_tangents, [*avals, *tangent_avals], jaxpr.origin), present
