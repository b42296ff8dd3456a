"""Staging: running a Python function on tracers to build a closed jaxpr."""

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hlofront.base import caches, errors, source
from hlofront.base.config import check_tracer_leaks, options
from hlofront.base.dtypes import check_integer
from hlofront.base.elements import always_exact_dtype, exact_dtype
from hlofront.base.typing import Params
from hlofront.bridge import state
from hlofront.bridge.fast_parts import Array, get_traceback
from hlofront.core import rules
from hlofront.core.aval import (
    AbstractValue,
    SymbolicSize,
    host_values,
    register_value_type,
    typeof,
)
from hlofront.core.compile_time import interpreter_of
from hlofront.core.effects import Effects, no_effects
from hlofront.core.futures import AbstractFuture
from hlofront.core.high_types import mutable_types_exist
from hlofront.core.jaxpr import Atom, ClosedJaxpr, DebugInfo, Equation, Jaxpr, Literal, Value, Var
from hlofront.core.names import SourceInfo, current_name_stack, in_own_program, replayed_traceback
from hlofront.core.primitive import ALL, Primitive
from hlofront.core.references import is_reference
from hlofront.core.rule_checks import checked
from hlofront.core.sharding.sharded_types import infer_types, types_are_constant
from hlofront.core.trace import RuleTrace, Tracer, current_trace, interpreting_with, leaked
from hlofront.core.typed_scalars import typed_classes
from hlofront.primitives.arrays.sizes import dim_as_value_p
from hlofront.primitives.references.mutable_values import refuse_states
from hlofront.transforms.leaks import raise_if_leaked
from hlofront.transforms.origins import explain_origin, user_arguments

# Whether arrays are literals of equations, rather than constants of the jaxpr.
_inside_jaxprs = options["jax_use_simplified_jaxpr_constants"]
_effects_of = rules.effects
_staged = rules.staged
_trace_context = state.trace_context
_x64 = state.enable_x64


class JitTracer(Tracer):
    """A tracer of staging, for one variable of the jaxpr that is being built."""

    __slots__ = ("_var",)

    _trace: "StagingTrace"

    def __init__(self, trace: "StagingTrace", aval: AbstractValue, var: Atom):
        # It is never replaced, so it may have a narrower type than in the base class.
        self._trace = trace  # pyright: ignore[reportIncompatibleVariableOverride]
        self.aval = aval
        self._var = var

    def computed_value(self) -> Value:
        return self._trace.value_of(self)

    def become(self, other: "JitTracer") -> None:
        """Make this tracer represent the same variable as another tracer of the jaxpr."""
        self._var = other._var

    def __repr__(self) -> str:
        return self._trace.text_of(self)

    __str__ = __repr__

    # JAX's attributes for the mutable state behind a tracer, which an array does not have.
    parent = None
    mutable_qdd = None

    @property
    def val(self) -> Atom:
        """The variable, or literal, of the jaxpr that the tracer represents."""
        return self._var

    @property
    def aval_mutable_qdd(self) -> AbstractValue:
        """The aval of the variable; an array has no mutable state (quasi-dynamic data)."""
        return self.aval

    def cur_qdd(self) -> None:
        """Return None: an array has no mutable state (quasi-dynamic data)."""
        return None

    def get_const(self) -> Value:
        """Return the value of a constant or literal of the jaxpr, or None for other variables."""
        if isinstance(self._var, Literal):
            return self._var.val
        constants = self._trace.constants.values()
        return next((value for var, value in constants if var is self._var), None)

    def _known_scalar(self) -> Any:
        atom = self._var
        return atom.val if type(atom) is Literal and not self.aval.shape else None

    def _origin_message(self) -> str:
        trace = self._trace
        return explain_origin(
            trace.debug_info, trace.inputs, trace.equations, trace.operands, self._var
        )

    def _origin_arguments(self) -> list[str]:
        trace = self._trace
        return user_arguments(
            trace.debug_info, trace.inputs, trace.equations, trace.operands, self._var
        )

    def _traced_function(self) -> str:
        info = self._trace.debug_info
        return f"{info.func_src_info} for {info.traced_for}" if info else ""

    @property
    def _origin_traceback(self) -> Any:
        for equation in reversed(self._trace.equations):
            if self._var in equation.outvars:
                return equation.traceback
        return None

    @property
    def _origin_argument(self) -> str:
        info = self._trace.debug_info
        if info is None or self._var not in self._trace.inputs:
            return ""
        position = self._trace.inputs.index(self._var)
        names = info.arg_names or ()
        name = names[position] if position < len(names) else f"number {position}"
        return f"argument {name} of {info.func_name}"


register_value_type(JitTracer, lambda tracer: tracer.aval)


class StagingTrace(RuleTrace):
    """A trace that appends each operation to a jaxpr as an equation instead of running it."""

    __slots__ = (
        "constants",
        "debug_info",
        "depth",
        "equations",
        "inputs",
        "operands",
        "parent",
        "programs_of",
        "snapshots",
    )

    stages = True
    equations: list[Equation]
    inputs: list[Var]
    # From the id of a value to its variable and the value, which must stay alive.
    constants: dict[int, tuple[Var, Value]]
    # From the id of a NumPy array that was copied to the array and its last copy.
    snapshots: dict[int, tuple[np.ndarray, np.ndarray]]
    debug_info: DebugInfo | None
    # The values that an enclosing program calls this one with, or ().
    operands: Sequence[object]
    # Programs that captured values of this one, so that they are valid only inside it.
    programs_of: dict[object, object]

    def __init__(self, debug_info: DebugInfo | None = None, operands: Sequence[object] = ()):
        self.operands = operands
        self.parent = current_trace()
        self.programs_of = {}
        self.equations = []
        self.inputs = []
        self.constants = {}
        self.snapshots = {}
        self.debug_info = debug_info
        # The number of current name scopes that surround the program and are not part of it.
        self.depth = 0

    def new_arg(self, aval: AbstractValue, source_info: SourceInfo | None = None) -> JitTracer:
        """Return a tracer of one more input; libraries add inputs while a function is traced."""
        var = Var(aval)
        self.inputs.append(var)
        return JitTracer(self, aval, var)

    def value_of(self, tracer: JitTracer) -> Value:
        """Return None: the value of a scalar is unknown while staging."""
        return None

    def text_of(self, tracer: JitTracer) -> str:
        """Return a tracer as text."""
        return f"{type(tracer).__name__}({tracer.aval})"

    def atom(self, x: Value) -> Atom:
        """Return the atom of a value in this jaxpr: a variable, or a literal for a scalar."""
        value: Value = x
        if isinstance(x, Tracer):
            if type(x) is JitTracer and x._trace is self:  # pyright: ignore[reportPrivateUsage]
                return x._var  # pyright: ignore[reportPrivateUsage]
            if not x._trace.alive:  # pyright: ignore[reportPrivateUsage]
                raise leaked(x)
        elif not isinstance(x, np.ndarray | np.generic) or x.ndim == 0:
            literal = as_literal(x)
            if literal is not None:
                return literal
            if isinstance(x, SymbolicSize):
                return self.write(dim_as_value_p, (), {"dim": x}).val
        if _inside_jaxprs.value and isinstance(x, np.ndarray | Array):
            return Literal(value, typeof(value))
        if self.snapshots and type(value) is np.ndarray:
            value = self._unchanged_snapshot(value)
        constant = self.constants.get(id(value))
        if constant is None:
            constant = self.constants[id(value)] = (Var(typeof(value)), value)
        return constant[0]

    def snapshot(self, x: np.ndarray) -> np.ndarray:
        """Return a copy of a NumPy array: one constant for all uses until the array changes."""
        taken = self._unchanged_snapshot(x)
        if taken is x:
            taken = x.copy()
            self.snapshots[id(x)] = x, taken
            if id(x) in self.constants:
                self.constants[id(taken)] = self.constants.pop(id(x))[0], taken
        return taken

    def _unchanged_snapshot(self, x: np.ndarray) -> np.ndarray:
        """Return the last snapshot of a NumPy array if it still equals the array, or the array."""
        if id(x) not in self.snapshots:
            return x
        _, taken = self.snapshots[id(x)]
        unchanged = taken.shape == x.shape and taken.tobytes() == x.tobytes()
        return taken if unchanged else x

    def lift(self, x: Value) -> JitTracer:
        """Return a known value as a tracer of this jaxpr, for a constant or a literal."""
        atom = self.atom(x)
        return JitTracer(self, atom.aval, atom)

    def process(self, primitive: Primitive, args: tuple[Value, ...], params: Params) -> Value:
        if primitive.carries_programs and primitive in _staged:
            return _staged[primitive](self, *args, **params)
        return self.write(primitive, args, params)

    def process_as_current(
        self, primitive: Primitive, args: tuple[Value, ...], params: Params
    ) -> Value:
        if primitive.carries_programs:
            return super().process_as_current(primitive, args, params)
        return self.write(primitive, args, params)

    def source_info(self) -> SourceInfo:
        """Return the source info of the next operation: its place in the user's program."""
        traceback = replayed_traceback() or get_traceback()
        return SourceInfo(traceback, current_name_stack()[self.depth :])

    def default_process_primitive(
        self,
        primitive: Primitive,
        tracers: Sequence[Value],
        params: Params,
        source_info: SourceInfo | None = None,
    ) -> Value:
        """Append an equation to the jaxpr, without a rule of the primitive for staging.

        Args:
          primitive: the primitive.
          tracers: the operands.
          params: the parameters.
          source_info: its place in the user's program; by default that of this call.
        """
        return self.write(primitive, tracers, params, source_info)

    def write(
        self,
        primitive: Primitive,
        args: Sequence[Value],
        params: Params,
        source_info: SourceInfo | None = None,
    ) -> Value:
        """Append an equation to the jaxpr, and return tracers of its results."""
        invars: list[Atom] = []
        avals: list[AbstractValue] = []
        for x in args:
            if type(x) is JitTracer and x._trace is self:  # pyright: ignore[reportPrivateUsage]
                invars.append(x._var)  # pyright: ignore[reportPrivateUsage]
                avals.append(x.aval)
            else:
                atom = self.atom(x)
                invars.append(atom)
                avals.append(atom.aval)
        key = (*avals, *params.items()) if params else tuple(avals)
        try:
            out = primitive.inferred[key]
        except (KeyError, TypeError):
            try:
                out = _infer(primitive, key, avals, params)
            except (TypeError, ValueError, errors.ShardingTypeError) as error:
                # Eager execution adds the operands to the message itself: it has the user's values.
                if self.debug_info is None or self.debug_info.traced_for != EAGER:
                    errors.add_operands(error, primitive.name, args)
                raise
        outvars: list[Var]
        if primitive.multiple_results:
            outvars = [Var(aval) for aval in out]
            result = [JitTracer(self, var.aval, var) for var in outvars]
        else:
            var = Var(out)
            outvars = [var]
            result = JitTracer(self, out, var)
        if source_info is None:
            traceback = replayed_traceback() or get_traceback()
            source_info = SourceInfo(traceback, current_name_stack()[self.depth :])
        if primitive in _effects_of:
            effects = _effects_of[primitive](*avals, **params)
        else:
            effects = no_effects
        self.equations.append(Equation(invars, outvars, primitive, params, effects, source_info))
        return result

    def finish(self, outputs: Sequence[Value]) -> ClosedJaxpr:
        """Return the closed jaxpr of the staged equations with these outputs."""
        outvars = [self.atom(x) for x in outputs]
        effects: Effects = no_effects
        for equation in self.equations:
            if equation.effects:
                effects |= equation.effects
        constants = self.constants.values()
        jaxpr = Jaxpr(
            [var for var, _ in constants],
            self.inputs,
            outvars,
            self.equations,
            effects,
            self.debug_info,
        )
        return checked(ClosedJaxpr(jaxpr, [_typed(value, var.aval) for var, value in constants]))


def _typed(value: Value, aval: Any) -> Value:
    """Return a constant with the aval's dtype, which later switches of enable_x64 do not change."""
    if type(value) is not np.ndarray:
        return host_values.read(value)
    if value.dtype.itemsize < 8:
        return value
    if value.dtype != aval.dtype:
        return value.astype(aval.dtype) if _x64.get_global() else value
    return value if _x64.get_global() else always_exact_dtype(value)


# The maximum number of cached results of infer rules per primitive; the next one clears its cache.
_MAX_INFERRED = 4096


def _infer(
    primitive: Primitive, key: tuple[object, ...], avals: Sequence[AbstractValue], params: Params
) -> Any:
    # The types of collectives also depend on the named axes in scope, and on whether
    # `no_collectives` is set.
    key_in_context = key, _trace_context()
    try:
        return primitive.inferred[key_in_context]
    except (KeyError, TypeError):
        pass
    if not (primitive.ref_primitive or primitive.carries_programs):
        _refuse_what_is_no_array(primitive, avals)
    out = infer_types(primitive, avals, params)
    if primitive.carries_programs:
        if "axis_name" in params:
            _refuse_unhashable(primitive, params)
        return out
    is_constant = "axis_name" not in params and types_are_constant(primitive, avals, params, out)
    try:
        if len(primitive.inferred) >= _MAX_INFERRED:
            primitive.inferred.clear()
        primitive.inferred[key if is_constant else key_in_context] = out
    except TypeError:
        _refuse_unhashable(primitive, params)
    return out


def _refuse_unhashable(primitive: Primitive, params: Params) -> None:
    """Raise TypeError for an unhashable parameter; as in JAX, dictionaries are allowed."""
    for name, value in params.items():
        try:
            hash(value)
        except TypeError:
            if not isinstance(value, dict):
                raise TypeError(
                    f"parameters of equations must have __hash__ and __eq__: {primitive} was given "
                    f"{name}={source.shortened(repr(value))}, of {type(value)}. Pass a tuple for a "
                    "list, a frozenset for a set, and arrays as operands."
                ) from None


def _refuse_what_is_no_array(primitive: Primitive, avals: Sequence[AbstractValue]) -> None:
    """Raise ValueError for a mutable reference, TypeError for a future that is not awaited."""
    for position, aval in enumerate(avals):
        if type(aval) is AbstractFuture and not primitive.takes_futures:
            raise TypeError(
                f"{primitive} requires arrays, and operand {position} is a future of type {aval}: "
                "await it with the method `done` of the value that psum_scatter_start returned"
            )
        if is_reference(aval):
            raise ValueError(
                f"{primitive} requires arrays, and operand {position} is a mutable reference of "
                f"type {aval}: read it with [...]"
            )


@caches.on_clear
def _forget_inferred() -> None:
    for primitive in ALL.values():
        primitive.inferred.clear()


# `DebugInfo.traced_for` of operations that run eagerly.
EAGER = "eager execution"

_LITERAL_TYPES = (bool, int, float, complex)
# Classes of other packages whose scalars are literals of equations.
literalable_types: set[type] = set()


def as_literal(x: Value) -> Literal | None:
    """Return a scalar as a literal of the dtype that it has on device, or None for other values."""
    if type(x) in _LITERAL_TYPES:
        if isinstance(x, int):
            check_integer(x)
        return Literal(x, typeof(x))
    if issubclass(type(x), (np.generic, np.ndarray)) and x.ndim == 0:
        aval = typeof(x)
        return Literal(exact_dtype(np.asarray(x, aval.dtype)[()]), aval)
    # Subclasses include enum.IntEnum.
    if type(x) in typed_classes:
        return Literal(typed_classes[type(x)](x), typeof(x))
    if isinstance(x, _LITERAL_TYPES) or (type(x) in literalable_types and not np.shape(x)):
        return Literal(x, typeof(x))
    return None


def stage(
    fun: Callable[..., Sequence[Value]],
    in_avals: Sequence[AbstractValue],
    debug_info: DebugInfo | None = None,
    operands: Sequence[object] = (),
    trace: StagingTrace | None = None,
) -> ClosedJaxpr:
    """Trace `fun` with flat arguments to a closed jaxpr.

    Args:
      fun: takes one tracer per aval and returns a flat sequence of outputs.
      in_avals: the avals of the arguments.
      debug_info: names for messages.
      operands: the values that an enclosing program calls the jaxpr with, for messages.
      trace: the interpreter that writes the jaxpr, by default a new one.
    """
    if mutable_types_exist():
        refuse_states(in_avals)
    trace = StagingTrace(debug_info, operands) if trace is None else trace
    try:
        with interpreting_with(interpreter_of(trace)), in_own_program():
            outputs = fun(*[trace.new_arg(aval) for aval in in_avals])
            program = trace.finish(outputs)
    finally:
        trace.alive = False
        trace.operands = ()
        trace.programs_of.clear()
    if check_tracer_leaks.value:
        del outputs
        reference = weakref.ref(trace)
        del trace
        raise_if_leaked(reference)
    return program
