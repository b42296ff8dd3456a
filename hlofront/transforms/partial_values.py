"""Tracing of wrapped functions to jaxprs, with known and unknown arguments."""

from collections.abc import Callable, Sequence
from typing import Any, overload

from hlofront.base.typing import Params
from hlofront.core.aval import AbstractValue, register_value_type, typeof
from hlofront.core.effects import Effects
from hlofront.core.jaxpr import (
    Atom,
    ClosedJaxpr,
    DebugInfo,
    Equation,
    EquationContext,
    Jaxpr,
    Value,
    Var,
)
from hlofront.core.names import SourceInfo
from hlofront.core.primitive import Primitive
from hlofront.core.programs.subprograms import called_by, with_program
from hlofront.core.trace import Tracer, current_trace, interpreting_with
from hlofront.transforms.linear_util import WrappedFun
from hlofront.transforms.linearize import SplitTrace
from hlofront.transforms.simplify import dead_code, dead_code_program
from hlofront.transforms.stage import JitTracer, StagingTrace, stage

# ---- rules for partially known operands ----------------------------------------------------------
#
# A rule of another package, `rule(trace, *tracers, **params)`, receives the operands as
# JaxprTracers. It computes with the known ones, describes equations for the others by
# `new_eqn_recipe`, and returns JaxprTracers, which have known values, or such an equation as their
# attribute `recipe`.


class PartialVal(tuple[AbstractValue | None, Value]):
    """A known value, as PartialVal((None, value)), or an unknown one's aval, as ((aval, None))."""

    __slots__ = ()

    @classmethod
    def known(cls, const: Value) -> "PartialVal":
        """Return a PartialVal of a known value."""
        return cls((None, const))

    @classmethod
    def unknown(cls, aval: AbstractValue) -> "PartialVal":
        """Return a PartialVal of an unknown value with this aval."""
        return cls((aval, None))

    def is_known(self) -> bool:
        return self[0] is None

    def get_known(self) -> Value:
        """Return the value if it is known, else None."""
        return self[1] if self[0] is None else None

    def get_aval(self) -> AbstractValue:
        """Return the aval of the value."""
        aval, const = self
        return typeof(const) if aval is None else aval


# The rules by primitive: `rule(trace, *tracers, **params)` returns a tracer, or several.
custom_partial_eval_rules: dict[Primitive, Callable[..., Any]] = {}


class EquationRecipe:
    """An equation that a rule describes; it is written when one of its results is used."""

    __slots__ = (
        "effects",
        "in_tracers",
        "out_avals",
        "out_tracers",
        "params",
        "primitive",
        "results",
        "source_info",
    )

    def __init__(
        self,
        in_tracers: Sequence["JaxprTracer"],
        out_tracers: Sequence["JaxprTracer"],
        primitive: Primitive,
        params: Params,
        effects: Effects,
        source_info: SourceInfo,
    ):
        self.in_tracers = tuple(in_tracers)
        self.out_tracers = tuple(out_tracers)
        self.out_avals = [tracer.aval for tracer in out_tracers]
        self.primitive = primitive
        self.params = params
        self.effects = effects
        self.source_info = source_info
        # The tracers of its results in the program; None before it is written.
        self.results: list[JitTracer] | None = None


# The origin of an unknown value: a value of the program, or the recipe of the equation that
# computes it.
Recipe = JitTracer | EquationRecipe | None


class JaxprTracer(Tracer):
    """An unknown value in partial evaluation, or an operand or result of a partial evaluation rule.

    Args:
      trace: the trace of the function, which calls the rules in `custom_partial_eval_rules`.
      pval: the known value, or the aval of an unknown one.
      recipe: the origin of an unknown value; None until the rule sets the attribute to a result of
        `new_eqn_recipe`.
    """

    __slots__ = ("pval", "recipe")

    def __init__(self, trace: "PartialTrace", pval: PartialVal, recipe: Recipe):
        super().__init__(trace, pval.get_aval())
        self.pval = pval
        self.recipe = recipe

    @property
    def parents(self) -> Sequence["JaxprTracer"]:
        """The operands of the equation that the value is a result of."""
        return self.recipe.in_tracers if isinstance(self.recipe, EquationRecipe) else []

    def is_known(self) -> bool:
        """Return whether the value is known."""
        return self.pval.is_known()

    def full_lower(self) -> Value:
        """Return the value if it is known, else this tracer."""
        return self.pval.get_known() if self.is_known() else self


register_value_type(JaxprTracer, lambda tracer: tracer.aval)


def new_eqn_recipe(
    trace: "PartialTrace",
    in_tracers: Sequence[JaxprTracer],
    out_tracers: Sequence[JaxprTracer],
    primitive: Primitive,
    params: Params,
    effects: Effects,
    source_info: SourceInfo,
    ctx: object = None,
) -> EquationRecipe:
    """Return the description of an equation, for the attribute `recipe` of its results.

    Args:
      trace: the trace that called the rule.
      in_tracers: its operands.
      out_tracers: its results, in order; their avals are those of the equation's results.
      primitive, params, effects, source_info: the other parts of the equation.
      ctx: the context of the equation: the attribute `ctx` of another equation, or None. It holds
        no options, because all that affects an equation is in its parameters.

    Raises:
      TypeError: if `ctx` is something else, whose options would be lost.
    """
    if not (ctx is None or isinstance(ctx, EquationContext)):
        raise TypeError(
            "the context of an equation is None or the attribute ctx of another one: got "
            f"{ctx!r} of type {type(ctx).__name__}. Pass what it says as parameters."
        )
    return EquationRecipe(in_tracers, out_tracers, primitive, params, effects, source_info)


class PartialTrace(SplitTrace):
    """A trace of known and unknown values that tries `custom_partial_eval_rules` first."""

    __slots__ = ()

    def process(self, primitive: Primitive, args: tuple[Value, ...], params: Params) -> Value:
        rule = custom_partial_eval_rules.get(primitive)
        if rule is None:
            results = super().process(primitive, tuple(map(self.value, args)), params)
        else:
            with interpreting_with(self.parent):
                results = rule(self, *map(self.to_jaxpr_tracer, args), **params)
        if primitive.multiple_results:
            return [self.of_user(result) for result in results]
        return self.of_user(results)

    def of_user(self, x: Value) -> Value:
        """Return a value as the traced function sees it: as a JaxprTracer if it is unknown."""
        x = self.value(x)
        return self.to_jaxpr_tracer(x) if self._is_unknown(x) else x

    def _is_unknown(self, x: Value) -> bool:
        return type(x) is JitTracer and x._trace is self.tangents  # pyright: ignore[reportPrivateUsage]

    def to_jaxpr_tracer(self, x: Value) -> JaxprTracer:
        """Return a value of this trace as a JaxprTracer."""
        if isinstance(x, JaxprTracer):
            return x
        if self._is_unknown(x):
            return JaxprTracer(self, PartialVal.unknown(x.aval), x)
        return self.new_const(x)

    def new_const(self, val: Value) -> JaxprTracer:
        """Return a known value as a JaxprTracer."""
        return JaxprTracer(self, PartialVal.known(val), None)

    def new_instantiated_const(self, val: Value) -> JaxprTracer:
        """Return a known value as an unknown JaxprTracer: a constant of the program."""
        return JaxprTracer(self, PartialVal.unknown(typeof(val)), self.tangents.lift(val))

    def instantiate_const(self, tracer: JaxprTracer) -> JaxprTracer:
        """Return a JaxprTracer as an unknown one; a known one becomes a constant of the program."""
        if not tracer.is_known():
            return tracer
        return self.new_instantiated_const(tracer.pval.get_known())

    def default_process_primitive(
        self, primitive: Primitive, tracers: Sequence[Value], params: Params
    ) -> Any:
        """Apply the default: run the operation if all operands are known, else stage it.

        Returns:
          The result as a JaxprTracer, or a list of them if the primitive has several.
        """
        args = tuple(self.value(self.to_jaxpr_tracer(x)) for x in tracers)
        results = SplitTrace.process(self, primitive, args, params)
        if primitive.multiple_results:
            return list(map(self.to_jaxpr_tracer, results))
        return self.to_jaxpr_tracer(results)

    def value(self, x: Value) -> Value:
        """Return the value of a JaxprTracer: a known one, or a tracer of the program.

        Raises:
          TypeError: if it is unknown and not described.
        """
        if not isinstance(x, JaxprTracer) or x._trace is not self:  # pyright: ignore[reportPrivateUsage]
            return x
        if x.is_known():
            return x.pval.get_known()
        if isinstance(x.recipe, JitTracer):
            return x.recipe
        if x.recipe is None:
            raise TypeError(
                f"a rule of custom_partial_eval_rules left open what the unknown value {x.aval} "
                "is: set the attribute `recipe` of results to what new_eqn_recipe returned"
            )
        results = self._written(x.recipe)
        return results[[tracer is x for tracer in x.recipe.out_tracers].index(True)]

    def _written(self, recipe: EquationRecipe) -> list[JitTracer]:
        """Write an equation to the program if it is not written yet, and return its results."""
        if recipe.results is None:
            written = self.tangents
            invars: list[Atom] = [written.atom(self.value(x)) for x in recipe.in_tracers]
            outvars = [Var(aval) for aval in recipe.out_avals]
            written.equations.append(
                Equation(
                    invars,
                    outvars,
                    recipe.primitive,
                    recipe.params,
                    recipe.effects,
                    recipe.source_info,
                )
            )
            recipe.results = [JitTracer(written, var.aval, var) for var in outvars]
        return recipe.results


# ---- levels of programs --------------------------------------------------------------------------


def lower_jaxpr(
    hi_jaxpr: ClosedJaxpr, lo_avals: Sequence[object]
) -> tuple[ClosedJaxpr, list[AbstractValue]]:
    """Return a jaxpr of low values, and the avals of its results.

    hlofront's jaxprs hold only low values (a value that consists of several arrays is several
    inputs), so the jaxpr is returned unchanged.

    Args:
      hi_jaxpr: a jaxpr.
      lo_avals: the low avals of its inputs.

    Raises:
      ValueError: if there are not as many avals as the jaxpr has inputs.
    """
    if len(lo_avals) != len(hi_jaxpr.in_avals):
        raise ValueError(
            f"lower_jaxpr was given {len(lo_avals)} types for the {len(hi_jaxpr.in_avals)} inputs "
            "of a jaxpr, which are low values already"
        )
    return hi_jaxpr, list(hi_jaxpr.out_avals)


def lower_jaxpr2(hi_jaxpr: ClosedJaxpr) -> ClosedJaxpr:
    """Return a jaxpr of low values, as `lower_jaxpr` does."""
    return hi_jaxpr


def trace_to_jaxpr_dynamic(
    fun: WrappedFun,
    in_avals: Sequence[AbstractValue],
    *,
    keep_inputs: Sequence[bool] | None = None,
    lower: bool = False,
    auto_dce: bool = False,
) -> tuple[Jaxpr, list[AbstractValue], list[Value]]:
    """Trace a wrapped function of flat, unknown arguments to a jaxpr.

    Args:
      fun: takes arrays and returns a list of arrays.
      in_avals: the avals of the arguments.
      keep_inputs: per argument, whether it is an input of the jaxpr even if it is unused; by
        default all are.
      lower: ignored, because hlofront's jaxprs hold only low values.
      auto_dce: whether to remove equations that no output or effect depends on.

    Returns:
      The jaxpr, the avals of its outputs, and the values of its constants.
    """
    program = stage(fun.call_wrapped, in_avals, _described(fun))
    jaxpr = program.jaxpr
    if auto_dce:
        jaxpr, _ = dead_code(jaxpr, True, instantiate=True)
    if keep_inputs is not None:
        jaxpr, _ = dead_code(jaxpr, True, instantiate=keep_inputs)
    return jaxpr, program.out_avals, program.consts


def trace_to_jaxpr_nounits(
    fun: WrappedFun, pvals: Sequence[PartialVal], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[PartialVal], tuple[Value, ...]]:
    """Run the known part of a wrapped function, and trace its unknown part to a jaxpr.

    Args:
      fun: takes arrays and returns a list of arrays.
      pvals: per argument its known value, or its aval.
      instantiate: per result, or for all, whether it is an output of the jaxpr in any case.

    Returns:
      The jaxpr, whose inputs are the unknown arguments; per result its known value, or its aval
      if the jaxpr computes it; and the values of the jaxpr's constants, including residuals.
    """
    written = StagingTrace(_described(fun))
    trace = PartialTrace(current_trace(), written)
    arguments = [
        pval.get_known() if pval.is_known() else trace.of_user(written.new_arg(pval.get_aval()))
        for pval in pvals
    ]
    try:
        with interpreting_with(trace):
            results = list(map(trace.value, fun.call_wrapped(*arguments)))
        if isinstance(instantiate, bool):
            instantiate = (instantiate,) * len(results)
        unknown = [
            force or (type(x) is JitTracer and x._trace is written)  # pyright: ignore[reportPrivateUsage]
            for x, force in zip(results, instantiate, strict=True)
        ]
        program = written.finish([x for x, u in zip(results, unknown, strict=True) if u])
    finally:
        trace.alive = written.alive = False
        written.programs_of.clear()
    out_pvals = [
        PartialVal.unknown(typeof(x)) if u else PartialVal.known(x)
        for x, u in zip(results, unknown, strict=True)
    ]
    return program.jaxpr, out_pvals, tuple(program.consts)


def _described(fun: WrappedFun) -> DebugInfo:
    """Return the debug info of a wrapped function; its names are computed on first use."""
    info = fun.debug_info
    return DebugInfo(info.traced_for, lambda: info.func_src_info, lambda: info.arg_names)


def dce_jaxpr(
    jaxpr: Jaxpr,
    used_outputs: bool | Sequence[bool],
    instantiate: bool | Sequence[bool] = False,
    live_inputs: bool | Sequence[bool] = True,
) -> tuple[Jaxpr, list[bool]]:
    """Return a jaxpr without dead code and unused inputs, and per input whether it was kept.

    Args:
      jaxpr: the program.
      used_outputs: per output, or for all, whether to keep it.
      instantiate: per input, or for all, whether to keep it even if it is unused.
      live_inputs: per input, or for all, whether a reference may be read after the program. Writes
        to references are kept in any case.
    """
    return dead_code(jaxpr, used_outputs, instantiate)


@overload
def dce_jaxpr_call_rule(
    used_outputs: list[bool], live_ins: Sequence[bool], eqn: Equation, /
) -> tuple[list[bool], Equation | None]: ...


@overload
def dce_jaxpr_call_rule(
    used_outputs: list[bool], eqn: Equation, /
) -> tuple[list[bool], Equation | None]: ...


def dce_jaxpr_call_rule(
    used_outputs: list[bool], *live_ins_and_eqn: Any
) -> tuple[list[bool], Equation | None]:
    """Remove dead code from an equation that calls a program, as a dead-code rule.

    Args:
      used_outputs: per result of the equation, whether it is used.
      live_ins_and_eqn: an equation that calls one program with all its operands. With jax 0.12's
        signature, flags precede it: per operand, whether a reference is read later. They are
        ignored.

    Returns:
      Per operand whether it is still used, and the smaller equation, or None if no result is
      used and it has no effects.

    Raises:
      TypeError: if the equation does not call a program.
    """
    eqn: Equation = live_ins_and_eqn[-1]
    part = called_by(eqn)
    if part is None:
        raise TypeError(f"{eqn.primitive} calls no program that could be made smaller")
    if not any(used_outputs) and not eqn.effects:
        return [False] * len(eqn.invars), None
    smaller, used_inputs = dead_code_program(part.closed, used_outputs)
    used = list(used_inputs)
    return used, eqn.replace(
        invars=[atom for atom, u in zip(eqn.invars, used, strict=True) if u],
        outvars=[var for var, u in zip(eqn.outvars, used_outputs, strict=True) if u],
        params=with_program(eqn.params, part, smaller),
        effects=smaller.effects,
    )
