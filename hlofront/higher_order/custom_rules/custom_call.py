"""The rules that the primitives of custom_jvp and custom_vjp share.

The parameter `call_jaxpr` of these primitives is a function of flat values, such as a FlatFunction,
until it is traced, and a closed jaxpr afterwards.
"""

from collections.abc import Callable, Sequence
from typing import Concatenate

from hlofront.base.errors import UnexpectedTracerError
from hlofront.base.typing import ArrayLike, ArrayLikes
from hlofront.core import rules
from hlofront.core.aval import typeof
from hlofront.core.axes import AxisData
from hlofront.core.jaxpr import ClosedJaxpr, Equation
from hlofront.core.primitive import Primitive
from hlofront.core.programs.evaluate import jaxpr_as_fun
from hlofront.core.programs.subprograms import calls
from hlofront.core.rules import BatchResult
from hlofront.core.symbolic_zeros import BatchAxes
from hlofront.higher_order.calls.jit_call import split_captured, typed_by_program
from hlofront.higher_order.custom_rules.batched_functions import FlatCall, in_program
from hlofront.transforms.batch import BatchTrace, mark_closed_over
from hlofront.transforms.simplify import SmallerEquation, dead_code_program
from hlofront.transforms.stage import StagingTrace, stage

# (axis, operands, batch axes, **parameters) -> results and their batch axes
BatchCall = Callable[Concatenate[AxisData, ArrayLikes, BatchAxes, ...], BatchResult]


def register_custom_call(primitive: Primitive) -> None:
    """Register the rules that the primitives of custom_jvp and custom_vjp share."""
    rules.subprograms(primitive)(calls("call_jaxpr"))
    typed_by_program(primitive, "call_jaxpr")
    rules.simplify(primitive)(_without_dead_code)

    @rules.run(primitive)
    def _(*args: ArrayLike, call_jaxpr: ClosedJaxpr | FlatCall, **_: object) -> ArrayLikes:
        if isinstance(call_jaxpr, ClosedJaxpr):
            return jaxpr_as_fun(call_jaxpr, *args)
        return call_jaxpr(*args)

    @rules.staged(primitive)
    def _(
        trace: StagingTrace,
        *args: ArrayLike,
        call_jaxpr: ClosedJaxpr | FlatCall,
        num_consts: int,
        **params: object,
    ) -> list[ArrayLike]:
        program = call_jaxpr
        if not isinstance(program, ClosedJaxpr):
            info = getattr(program, "debug_info", None)
            program = stage(in_program(program), [typeof(x) for x in args], info)
            program, captured = split_captured(program)
            mark_closed_over(captured)
            return trace.write(
                primitive,
                (*captured, *args),
                {"call_jaxpr": program, "num_consts": num_consts + len(captured), **params},
            )
        return trace.write(
            primitive, args, {"call_jaxpr": program, "num_consts": num_consts, **params}
        )


def _without_dead_code(used: Sequence[bool], equation: Equation) -> SmallerEquation:
    """Remove dead code from the program of a call with a custom rule.

    Args:
      used: per result, whether it is used.
      equation: the call.

    Returns:
      Per operand, whether it is still used; and the call, with all its operands and results, or
      None if no result is used and it has no effects.
    """
    if not any(used) and not equation.effects:
        return [False] * len(equation.invars), None
    program: ClosedJaxpr = equation.params["call_jaxpr"]
    smaller, stays = dead_code_program(program, (True,) * len(used), instantiate=True)
    if smaller is not program:
        equation = equation.replace(params={**equation.params, "call_jaxpr": smaller})
    return stays, equation


def refuse_captured(kind: str, perturbed: Sequence[bool]) -> None:
    """Raise an error if a value that a function with a custom rule closes over is differentiated.

    The rule has no argument for such a value.
    """
    if any(perturbed):
        raise UnexpectedTracerError(
            f"Detected differentiation of a {kind} function with respect to a closed-over value: "
            "its rule has no place for it. Pass the value as an argument instead of closing over "
            "it, so that the rule is given it."
        )


def batched_by_call(primitive: Primitive) -> Callable[[BatchCall], BatchCall]:
    """Return a decorator that registers a function as both batch rules of a call primitive."""

    def register(batch: BatchCall) -> BatchCall:
        rules.batch_with_axis(primitive)(batch)

        @rules.batch_with_trace(primitive)
        def _(
            trace: BatchTrace, values: ArrayLikes, axes: BatchAxes, **params: object
        ) -> BatchResult:
            return batch(trace.axis, values, axes, **params)

        return batch

    return register
