"""The jit primitive, which calls a jitted function's program, and rules for such calls."""

import enum
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from hlofront.base.typing import ArrayLike, ArrayLikes, Params
from hlofront.core import rules
from hlofront.core.aval import AbstractValue, typeof
from hlofront.core.axes import AxisData
from hlofront.core.effects import Effects
from hlofront.core.jaxpr import Atom, ClosedJaxpr, Equation, ParamDict, Value, Var
from hlofront.core.primitive import Primitive
from hlofront.core.programs.evaluate import jaxpr_as_fun
from hlofront.core.programs.subprograms import calls, equation_count
from hlofront.core.references import is_reference
from hlofront.core.rules import BatchResult
from hlofront.core.symbolic_zeros import BatchAxes, Cotangent, Operand, Tangent, Tangents
from hlofront.core.trace import Trace, Tracer, current_trace
from hlofront.higher_order.selecting import (
    LinearOperands,
    nonzero,
    nonzero_flags,
    where,
    where_not,
    with_zeros,
)
from hlofront.transforms.batch import batch_program_at
from hlofront.transforms.jvp import jvp_program
from hlofront.transforms.linear_util import WrappedFun, wrap_init
from hlofront.transforms.partial_eval import SplitEquation, partial_eval_program
from hlofront.transforms.simplify import SmallerEquation, dead_code_program, inline_calls
from hlofront.transforms.stage import StagingTrace
from hlofront.transforms.transpose import transpose_program


class Inline(enum.Enum):
    """The stages at which calls of a jitted function may be replaced by its operations."""

    # While the caller is traced: its jaxpr has the operations.
    JAX_EARLY = "jax_early"
    # When the caller is lowered: its jaxpr has the call, but its StableHLO has the operations.
    JAX_LATE = "jax_late"
    # Whether XLA's compiler inlines the call before or after its passes: StableHLO marks the call.
    # Older versions of XLA, such as that of jaxlib 0.10, ignore the mark and inline the call early.
    XLA_EARLY = "xla_early"
    XLA_LATE = "xla_late"
    # XLA decides.
    AUTO = "auto"


def refuse_options(name: str, options: Sequence[tuple[str, object]]) -> None:
    """Raise ValueError if a program is being traced, because it cannot hold compiler options."""
    trace: Trace | None = current_trace()
    while trace is not None:
        if isinstance(trace, StagingTrace):
            raise ValueError(
                "`compiler_options` can only be passed to top-level `jax.jit`. Got "
                f"compiler_options={dict(options)} for {name}, which is called inside of another "
                "traced function: pass them to that one's jit."
            )
        trace = getattr(trace, "parent", None)


def canonical_inline(inline: object) -> bool | Inline:
    """Return the `inline` parameter of `jit`, with booleans for members with equal meaning.

    Raises:
      TypeError: if it is neither a boolean nor a member of Inline.
    """
    if inline is True or inline is Inline.JAX_EARLY:
        return True
    if inline is False or inline is Inline.AUTO:
        return False
    if isinstance(inline, Inline):
        return inline
    raise TypeError(f"Invalid inline option: {inline!r}. Wanted True, False or a jax.Inline.")


class ClosedCallPrimitive(Primitive):
    """The primitive `closed_call`, which also calls functions of other packages."""

    __slots__ = ()

    def bind(
        self, *args: Value, subfuns: Sequence[WrappedFun] | None = None, **params: Any
    ) -> Value:
        """Call the function in `subfuns`, or the program in `call_jaxpr`, with operands `args`."""
        if subfuns is None:
            return super().bind(*args, **params)
        # Programs of closed calls are inlined at the call, like functions.
        (function,) = subfuns
        return list(function.call_wrapped(*args))

    def get_bind_params(self, params: Params) -> Params:
        """Return the parameters for `bind`: an equation's, with the jaxpr moved to `subfuns`."""
        other_params = dict(params)
        program: ClosedJaxpr = other_params.pop("call_jaxpr")
        run = partial(jaxpr_as_fun, program)
        return {**other_params, "subfuns": (wrap_init(run, debug_info=program.jaxpr.debug_info),)}


jit_p = Primitive("jit", multiple_results=True, carries_programs=True)
# The number of equations, including those of all calls inside, above which a closed call is not
# inlined: checkpointed functions that call one another twice at each level have 2**levels in total.
_MAX_INLINED = 2000
# A call whose equations are inlined into the enclosing program when that is traced again.
closed_call_p = ClosedCallPrimitive("closed_call", multiple_results=True, carries_programs=True)


def inline_closed_calls(program: ClosedJaxpr) -> ClosedJaxpr:
    """Return a program with its closed calls replaced by their equations.

    The forward pass of a checkpointed function is a closed call.
    """
    if not any(equation.primitive is closed_call_p for equation in program.eqns):
        return program
    return inline_calls(program.jaxpr, program.consts, only=(closed_call_p,))


# Per operand of a new equation, the index of that operand in the old equation; None if new.
Origins = Sequence[int | None]


def split_captured(program: ClosedJaxpr) -> tuple[ClosedJaxpr, list[Tracer]]:
    """Turn constants that are tracers or references into first inputs; return both."""
    jaxpr = program.jaxpr
    captured = [
        isinstance(const, Tracer) or is_reference(var.aval)
        for var, const in zip(jaxpr.constvars, program.consts, strict=True)
    ]
    if not any(captured):
        return program, []
    opened = jaxpr.replace(
        constvars=where_not(jaxpr.constvars, captured),
        invars=[*where(jaxpr.constvars, captured), *jaxpr.invars],
    )
    return ClosedJaxpr(opened, where_not(program.consts, captured)), where(program.consts, captured)


def with_captured(program: ClosedJaxpr, captured: Sequence[ArrayLike | Tracer]) -> ClosedJaxpr:
    """Return a program with captured values, possibly among its constants, as first inputs."""
    jaxpr = program.jaxpr
    constvar_by_id = {id(c): var for var, c in zip(jaxpr.constvars, program.consts, strict=True)}
    inputs = [constvar_by_id.pop(id(c), None) or Var(typeof(c)) for c in captured]
    stays = [id(c) in constvar_by_id for c in program.consts]
    opened = jaxpr.replace(constvars=where(jaxpr.constvars, stays), invars=[*inputs, *jaxpr.invars])
    return ClosedJaxpr(opened, where(program.consts, stays))


def captured_by(*programs: ClosedJaxpr) -> list[Tracer]:
    """Return the distinct tracers among the constants of programs."""
    consts = (c for program in programs for c in program.consts)
    return list({id(c): c for c in consts if isinstance(c, Tracer)}.values())


# ---- rules of operations that run one program ----------------------------------------------------


def typed_by_program(primitive: Primitive, parameter: str) -> None:
    """Register the `infer` and `effects` rules of a primitive whose results are a program's.

    Args:
      primitive: the primitive.
      parameter: the name of the parameter that holds the program.
    """

    def infer(*_: AbstractValue, **params: Value) -> list[AbstractValue]:
        return params[parameter].out_avals

    def effects(*_: AbstractValue, **params: Value) -> Effects:
        return params[parameter].effects

    rules.infer(primitive)(infer)
    rules.effects(primitive)(effects)


def run_by_program(primitive: Primitive, parameter: str) -> None:
    """Register the `run` rule of a primitive that runs the program in a parameter."""

    def run(*args: ArrayLike, **params: Value) -> list[ArrayLike]:
        return jaxpr_as_fun(params[parameter], *args)

    rules.run(primitive)(run)


# ---- derivatives and batching: derived programs are shared by all calls --------------------------


class CallRules:
    """The rules of a primitive that passes all its operands unchanged to one program.

    Args:
      primitive: the primitive.
      parameter: the name of the parameter that holds the program.
      adapted: (params, origins of the operands) -> params for a derived program.
      inlined: whether an equation may be replaced by its program's equations.
    """

    def __init__(
        self,
        primitive: Primitive,
        parameter: str,
        adapted: Callable[[ParamDict, Origins], ParamDict] = lambda params, _: params,
        inlined: bool = False,
    ):
        self.primitive = primitive
        self.parameter = parameter
        self.adapted = adapted
        typed_by_program(primitive, parameter)
        rules.subprograms(primitive)(calls(parameter, "inlined" if inlined else "call"))
        rules.jvp(primitive)(self.jvp)
        rules.transpose(primitive)(self.transpose)
        rules.batch_with_axis(primitive)(self.batch)
        rules.simplify(primitive)(self.simplify)

    def params(self, params: ParamDict, program: ClosedJaxpr, origins: Origins) -> ParamDict:
        """Return an equation's parameters with another program, whose inputs have `origins`."""
        return {**self.adapted(params, origins), self.parameter: program}

    def call(self, program: ClosedJaxpr, args: ArrayLikes, params: ParamDict) -> list[ArrayLike]:
        """Bind the primitive with another program, all of whose inputs are new."""
        # A custom derivative rule may close over tracers of an enclosing function.
        program, captured = split_captured(program)
        origins = [None] * (len(captured) + len(args))
        return self.primitive.bind(*captured, *args, **self.params(params, program, origins))

    def jvp(
        self, primals: ArrayLikes, tangents: Tangents, **params: Value
    ) -> tuple[list[ArrayLike], list[Tangent]]:
        program: ClosedJaxpr = params[self.parameter]
        with_tangents, present = jvp_program(program, nonzero_flags(tangents))
        results = self.call(with_tangents, (*primals, *nonzero(tangents)), params)
        count = len(present)
        return results[:count], with_zeros(results[count:], present, program.out_avals)

    def transpose(
        self, cotangents: Sequence[Cotangent], *operands: Operand, **params: Value
    ) -> list[Cotangent | None]:
        split = LinearOperands(cotangents, operands)
        program: ClosedJaxpr = params[self.parameter]
        weak = [getattr(typeof(x), "weak_type", False) for x in nonzero(cotangents)]
        program, present = transpose_program(program, split.linear, split.nonzero, weak=weak)
        return split.cotangents(self.call(program, split.arguments, params), present)

    def batch(
        self, axis: AxisData, values: ArrayLikes, axes: BatchAxes, **params: Value
    ) -> BatchResult:
        over_axis, axes_out = batch_program_at(params[self.parameter], axis, axes)
        return self.call(over_axis, values, params), axes_out

    def equation(
        self,
        equation: Equation,
        program: ClosedJaxpr,
        invars: Sequence[Atom],
        outvars: Sequence[Var],
        origins: Origins,
    ) -> Equation:
        """Return an equation with its program, operands and results replaced."""
        return equation.replace(
            primitive=self.primitive,
            invars=invars,
            outvars=outvars,
            params=self.params(equation.params, program, origins),
            effects=program.effects,
        )

    def partial_eval(self, unknown: Sequence[bool], equation: Equation) -> SplitEquation:
        split = partial_eval_program(equation.params[self.parameter], unknown)
        known = inline_closed_calls(split.known)
        known_inputs = where_not(equation.invars, unknown)
        known_outputs = where_not(equation.outvars, split.unknown_out)
        known_outputs += [Var(aval) for aval in split.known.out_avals[len(known_outputs) :]]
        residuals = [known_outputs[p] if p >= 0 else known_inputs[~p] for p in split.residuals]
        before = unknown_equation = None
        if known_outputs or known.effects:
            origins = [None] * len(known_inputs)
            before = self.equation(equation, known, known_inputs, known_outputs, origins)
        if any(split.unknown_out) or split.unknown.effects:
            invars = [*residuals, *where(equation.invars, unknown)]
            outvars = where(equation.outvars, split.unknown_out)
            unknown_equation = self.equation(
                equation, split.unknown, invars, outvars, [None] * len(invars)
            )
        return before, unknown_equation, split.unknown_out, residuals

    def simplify(self, used: Sequence[bool], equation: Equation) -> SmallerEquation:
        if not any(used) and not equation.effects:
            return [False] * len(equation.invars), None
        program: ClosedJaxpr = equation.params[self.parameter]
        smaller, stays = dead_code_program(program, used)
        if smaller is program:
            return stays, equation
        return stays, self.equation(
            equation,
            smaller,
            where(equation.invars, stays),
            where(equation.outvars, used),
            where(range(len(stays)), stays),
        )


def _donating(params: ParamDict, origins: Origins) -> ParamDict:
    """Return a call's parameters with `donated_invars` for new operands, False for added ones."""
    donated: tuple[bool, ...] = params["donated_invars"]
    return {
        **params,
        "donated_invars": tuple([index is not None and donated[index] for index in origins]),
    }


class _JitRules(CallRules):
    """The rules of jitted calls: batches of donated operands are donated.

    Derivatives do not donate them, because the backward pass may need them again.
    """

    def batch(
        self, axis: AxisData, values: ArrayLikes, axes: BatchAxes, **params: Value
    ) -> BatchResult:
        over_axis, axes_out = batch_program_at(params["jaxpr"], axis, axes)
        over_axis, captured = split_captured(over_axis)
        origins = [*[None] * len(captured), *range(len(values))]
        return jit_p.bind(*captured, *values, **self.params(params, over_axis, origins)), axes_out


jit_rules = _JitRules(jit_p, "jaxpr", _donating, inlined=True)
rules.partial_eval(jit_p)(jit_rules.partial_eval)
call_rules = CallRules(closed_call_p, "call_jaxpr", inlined=True)
rules.partial_eval(closed_call_p)(call_rules.partial_eval)
run_by_program(closed_call_p, "call_jaxpr")


@rules.staged(jit_p)
def _(
    trace: StagingTrace,
    *args: ArrayLike,
    jaxpr: ClosedJaxpr,
    inline: bool | Inline,
    **params: object,
) -> list[ArrayLike]:
    if inline is True:
        return jaxpr_as_fun(jaxpr, *args)
    return trace.write(jit_p, args, {**params, "jaxpr": jaxpr, "inline": inline})


@rules.staged(closed_call_p)
def _(trace: StagingTrace, *args: ArrayLike, call_jaxpr: ClosedJaxpr) -> list[ArrayLike]:
    if equation_count(call_jaxpr.jaxpr) > _MAX_INLINED:
        return trace.write(closed_call_p, args, {"call_jaxpr": call_jaxpr})
    return jaxpr_as_fun(call_jaxpr, *args)
