"""Linearization: primals are computed, and operations on tangents are staged to a jaxpr."""

import dataclasses
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from hlofront.base.config import check_tracer_leaks
from hlofront.base.dtypes import float0
from hlofront.base.typing import ArrayLikes, Params
from hlofront.core import rules
from hlofront.core.aval import AbstractValue, Avals, typeof
from hlofront.core.jaxpr import Atom, ClosedJaxpr, DebugInfo, Equation, Literal, Value, Var
from hlofront.core.names import (
    JVP,
    coming_from,
    current_name_stack,
    replayed_traceback,
    transformed,
)
from hlofront.core.primitive import Primitive
from hlofront.core.symbolic_zeros import Zero
from hlofront.core.trace import RuleTrace, Trace, current_trace, interpreting_with
from hlofront.transforms.jvp import JVPTrace, as_tangent
from hlofront.transforms.leaks import raise_if_leaked
from hlofront.transforms.partial_eval import listed
from hlofront.transforms.simplify import dead_code, without_unused_constants
from hlofront.transforms.stage import JitTracer, StagingTrace
from hlofront.transforms.transpose import holds_rules_for_zeros


class SplitTrace(RuleTrace):
    """A trace of jvp rules that stages operations on tangents and runs all others."""

    __slots__ = ("parent", "runs_forward", "tangents")

    # Whether the staged program is run forward rather than transposed.
    runs_forward: bool

    def __init__(self, parent: Trace, tangents: StagingTrace, runs_forward: bool = False):
        self.parent = parent
        self.tangents = tangents
        self.runs_forward = runs_forward

    def lift(self, x: Value) -> Value:
        return self.parent.lift(x)

    def lift_tangent(self, x: Value) -> Value:
        return self.tangents.lift(x)

    def process(self, primitive: Primitive, args: tuple[Value, ...], params: Params) -> Value:
        tangents = self.tangents
        for x in args:
            if type(x) is JitTracer and x._trace is tangents:  # pyright: ignore[reportPrivateUsage]
                break
        else:
            return self.parent.process_as_current(primitive, args, params)
        # As in JAX, rules that other packages register are called only with equations of jaxprs.
        if primitive in rules.partial_eval and primitive not in rules.partial_eval.foreign:
            return self._split(primitive, args, params)
        return tangents.process(primitive, args, params)

    def _split(self, primitive: Primitive, args: tuple[Value, ...], params: Params) -> Value:
        """Run the known part of an equation that holds programs, and stage its unknown part."""
        tangents = self.tangents
        unknown = [
            type(x) is JitTracer and x._trace is tangents  # pyright: ignore[reportPrivateUsage]
            for x in args
        ]
        avals = [typeof(x) for x in args]
        invars = [Var(aval) for aval in avals]
        avals_out: Any = rules.infer[primitive](*avals, **params)
        outvars = [Var(aval) for aval in avals_out]
        equation = Equation(invars, outvars, primitive, params)
        known, unknown_equation, _, _ = rules.partial_eval[primitive](unknown, equation)
        values: dict[Atom, Value] = dict(zip(invars, args, strict=True))
        for known_equation in listed(known):
            with interpreting_with(self.parent):
                _run(self.parent, known_equation, values)
        if unknown_equation is not None:
            scopes = current_name_stack() if primitive.repeats_scopes else ()
            with coming_from(scopes, replayed_traceback()):
                _run(tangents, unknown_equation, values)
        return [values[var] for var in outvars]


def _run(trace: Trace, equation: Equation, values: dict[Atom, Value]) -> None:
    operands = tuple(
        atom.operand if type(atom) is Literal else values[atom] for atom in equation.invars
    )
    results = trace.process(equation.primitive, operands, equation.params)
    if not equation.primitive.multiple_results:
        results = (results,)
    values.update(zip(equation.outvars, results, strict=True))


@dataclasses.dataclass(slots=True, eq=False)
class Linearized:
    """A linearized flat function: its primal outputs, and the closed jaxpr of its tangents."""

    in_avals: Avals
    # Per input, whether it has a tangent that is not of float0.
    has_tangent: Sequence[bool]
    outputs: Sequence[Value]
    # Per output, whether its tangent is an output of the program; if not, it is zero.
    present: Sequence[bool]
    # The linear program from the inputs' tangents to the outputs' tangents, without absent ones.
    # Its constants are the residuals.
    program: ClosedJaxpr


def linearize_flat(
    fun: Callable[..., Sequence[Value]],
    primals: ArrayLikes,
    debug_info: DebugInfo | None = None,
    runs_forward: bool = False,
    nonzero: Sequence[bool] | None = None,
) -> Linearized:
    """Run a flat function on primals, and stage its linear operations on tangents.

    Args:
      fun: the function.
      primals: its arguments.
      debug_info: the debug info of the function.
      runs_forward: whether the staged program is run forward rather than transposed.
      nonzero: per primal, whether its tangent may be nonzero; None if all may.
    """
    parent = current_trace()
    tangents = StagingTrace(debug_info)
    tangents.depth = len(current_name_stack())
    trace = JVPTrace(parent, SplitTrace(parent, tangents, runs_forward), debug_info)
    avals = [typeof(x) for x in primals]
    has_tangent: list[bool] = []
    arguments: list[Value] = []
    flags = [True] * len(avals) if nonzero is None else nonzero
    for x, aval, may_vary in zip(primals, avals, flags, strict=True):
        tangent_aval: AbstractValue = aval.to_tangent_aval()
        flag = may_vary and getattr(tangent_aval, "dtype", float0) != float0
        has_tangent.append(flag)
        arguments.append(trace.wrap(x, tangents.new_arg(tangent_aval)) if flag else x)
    try:
        with interpreting_with(trace), transformed(JVP):
            outputs = fun(*arguments)
        pairs = [trace.split(x) for x in outputs]
        tangents_out = [as_tangent(t) for _, t in pairs]
        present = [type(t) is not Zero for t in tangents_out]
        program = tangents.finish([t for t in tangents_out if type(t) is not Zero])
        if holds_rules_for_zeros(program):
            # Such a rule runs in the backward pass whenever its results are read, even if all their
            # cotangents are zero.
            live, _ = dead_code(program.jaxpr, True, True)
            program = without_unused_constants(live, program)
    finally:
        trace.alive = tangents.alive = False
        trace.programs_of.clear()
        tangents.programs_of.clear()
    values = [p for p, _ in pairs]
    if check_tracer_leaks.value:
        del arguments, outputs, pairs, tangents_out
        reference = weakref.ref(trace)
        del trace
        raise_if_leaked(reference)
    return Linearized(avals, has_tangent, values, present, program)
