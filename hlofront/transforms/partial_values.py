"""Tracing of wrapped functions to jaxprs, with known and unknown arguments."""

from collections.abc import Sequence
from typing import Any, overload

from hlofront.core.aval import AbstractValue, typeof
from hlofront.core.jaxpr import DebugInfo, Equation, Jaxpr, Value
from hlofront.core.programs.subprograms import called_by, with_program
from hlofront.core.trace import current_trace, interpreting_with
from hlofront.transforms.linear_util import WrappedFun
from hlofront.transforms.partial_tracers import PartialTrace, PartialVal
from hlofront.transforms.simplify import dead_code, dead_code_program
from hlofront.transforms.stage import JitTracer, StagingTrace, stage


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
