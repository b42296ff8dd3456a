"""The primitives behind custom_vjp: the call, its linear derivative, and optimize_remat."""

from collections.abc import Sequence
from typing import NoReturn

from hlofront.base.elements import float0
from hlofront.base.typing import ArrayLike, ArrayLikes
from hlofront.core import rules
from hlofront.core.aval import Avals, ShapedArray, typeof
from hlofront.core.axes import AxisData
from hlofront.core.jaxpr import ClosedJaxpr, Equation, Value
from hlofront.core.primitive import Primitive
from hlofront.core.programs.digest import not_lowered
from hlofront.core.programs.evaluate import jaxpr_as_fun
from hlofront.core.programs.subprograms import Subprogram, called, no_subprograms
from hlofront.core.rules import BatchResult
from hlofront.core.symbolic_zeros import BatchAxes, Cotangent, Tangent, Tangents, Zero
from hlofront.higher_order.calls.jit_call import closed_call_p, run_by_program, typed_by_program
from hlofront.higher_order.custom_rules.batched_functions import (
    BatchedBackward,
    BatchedCall,
    BatchedForward,
    FlatBackward,
    FlatForward,
    all_in_front,
    may_log_backwards,
    with_axis,
)
from hlofront.higher_order.custom_rules.custom_call import (
    batched_by_call,
    refuse_captured,
    register_custom_call,
)
from hlofront.higher_order.custom_rules.wrapped_rules import CustomVJPCallPrimitive
from hlofront.higher_order.selecting import nonzero, nonzero_flags, where, with_zeros
from hlofront.primitives.rules.batching import to_front
from hlofront.transforms.backward_logs import may_log
from hlofront.transforms.batch import batch_program
from hlofront.transforms.jvp import jvp_program
from hlofront.transforms.simplify import SmallerEquation, dead_code_program

custom_vjp_call_p = CustomVJPCallPrimitive(
    "custom_vjp_call", multiple_results=True, carries_programs=True
)
custom_lin_p = Primitive("custom_lin", multiple_results=True, carries_programs=True)
# A backward rule may return values that are not derivatives, such as statistics of this step.
custom_lin_p.transposes_zeros = lambda params: True
may_log[custom_lin_p] = lambda params: may_log_backwards(params["bwd"])
remat_opt_p = Primitive("remat_opt", multiple_results=True, carries_programs=True)
not_lowered(custom_vjp_call_p, "fwd_jaxpr_thunk", "bwd")
not_lowered(remat_opt_p, "fun_jaxpr")

register_custom_call(custom_vjp_call_p)
typed_by_program(remat_opt_p, "fwd_jaxpr")
run_by_program(remat_opt_p, "fwd_jaxpr")
rules.subprograms(custom_lin_p)(no_subprograms)


@rules.subprograms(remat_opt_p)
def _(
    *, fwd_jaxpr: ClosedJaxpr, fun_jaxpr: ClosedJaxpr, num_consts: int
) -> tuple[Subprogram, Subprogram]:
    return called(fwd_jaxpr, "fwd_jaxpr"), Subprogram(fun_jaxpr, "fun_jaxpr", "alternative")


# ---- the call ------------------------------------------------------------------------------------


@rules.jvp(custom_vjp_call_p)
def _(
    primals: ArrayLikes,
    tangents: Tangents,
    *,
    fwd_jaxpr_thunk: FlatForward,
    num_consts: int,
    **_: object,
) -> tuple[ArrayLikes, list[Tangent]]:
    refuse_captured("custom_vjp", nonzero_flags(tangents[:num_consts]))
    primals, tangents = primals[num_consts:], tangents[num_consts:]
    perturbed = nonzero_flags(tangents)
    results, residuals, backward = fwd_jaxpr_thunk(primals, list(perturbed))
    avals = [typeof(x).to_tangent_aval() for x in results]
    moving = tuple([getattr(aval, "dtype", float0) != float0 for aval in avals])
    result_tangents = custom_lin_p.bind(
        *residuals,
        *nonzero(tangents),
        num_res=len(residuals),
        bwd=backward,
        perturbed=perturbed,
        moving=moving,
        out_avals=tuple(avals),
    )
    return results, with_zeros(result_tangents, moving, avals)


@batched_by_call(custom_vjp_call_p)
def _(
    axis: AxisData,
    values: ArrayLikes,
    axes: BatchAxes,
    *,
    call_jaxpr: Value,
    fwd_jaxpr_thunk: FlatForward,
    num_consts: int,
    **params: Value,
) -> BatchResult:
    call = BatchedCall(axis, axes)
    results = custom_vjp_call_p.bind(
        *values,
        call_jaxpr=call.function(call_jaxpr),
        fwd_jaxpr_thunk=BatchedForward(fwd_jaxpr_thunk, call, axes[num_consts:]),
        num_consts=num_consts,
        **params,
    )
    return results, call.axes_of_results()


# ---- the derivative of the call: linear, but known only backwards --------------------------------


@rules.infer(custom_lin_p)
def _(
    *avals: ShapedArray, moving: Sequence[bool], out_avals: Avals, **_: object
) -> list[ShapedArray]:
    return where(out_avals, moving)


def _no_forward(*_: object, **__: object) -> NoReturn:
    raise TypeError(
        "can't apply forward-mode autodiff (jvp) to a custom_vjp function: it has only a backward "
        "rule. Use reverse mode (vjp, grad, jacrev), or give it a forward rule with custom_jvp."
    )


rules.run(custom_lin_p)(_no_forward)
rules.jvp(custom_lin_p)(_no_forward)


@rules.transpose(custom_lin_p)
def _(
    cotangents: Sequence[Cotangent],
    *operands: Value,
    num_res: int,
    bwd: FlatBackward,
    perturbed: Sequence[bool],
    moving: Sequence[bool],
    out_avals: Avals,
) -> list[Cotangent | None]:
    arriving = iter(cotangents)
    all_cotangents = [
        next(arriving) if flag else Zero(aval) for aval, flag in zip(out_avals, moving, strict=True)
    ]
    departing = bwd(operands[:num_res], all_cotangents)
    return [*[None] * num_res, *where(departing, perturbed)]


@rules.batch_with_axis(custom_lin_p)
def _(
    axis: AxisData,
    values: ArrayLikes,
    axes: BatchAxes,
    *,
    num_res: int,
    bwd: FlatBackward,
    perturbed: Sequence[bool],
    moving: Sequence[bool],
    out_avals: Avals,
) -> BatchResult:
    values = [
        *values[:num_res],
        *(to_front(x, a, axis.size) for x, a in zip(values[num_res:], axes[num_res:], strict=True)),
    ]
    results = custom_lin_p.bind(
        *values,
        num_res=num_res,
        bwd=BatchedBackward(bwd, axis, axes[:num_res], [0] * len(moving), [0] * len(perturbed)),
        perturbed=perturbed,
        moving=moving,
        out_avals=tuple([with_axis(aval, axis.size, 0) for aval in out_avals]),
    )
    return results, [0] * len(results)


# ---- optimize_remat ------------------------------------------------------------------------------


@rules.jvp(remat_opt_p)
def _(
    primals: ArrayLikes, tangents: Tangents, *, fwd_jaxpr: ClosedJaxpr, **_: object
) -> tuple[list[ArrayLike], list[Tangent]]:
    # The second derivative reads the residuals, so the forward rule is differentiated like an
    # ordinary program.
    program, present = jvp_program(fwd_jaxpr, nonzero_flags(tangents))
    results = jaxpr_as_fun(program, *primals, *nonzero(tangents))
    count = len(present)
    return results[:count], with_zeros(results[count:], present, fwd_jaxpr.out_avals)


@rules.batch_with_axis(remat_opt_p)
def _(
    axis: AxisData,
    values: ArrayLikes,
    axes: BatchAxes,
    *,
    fwd_jaxpr: ClosedJaxpr,
    fun_jaxpr: ClosedJaxpr,
    num_consts: int,
) -> BatchResult:
    values, flags = all_in_front(values, axes)
    with_residuals, _ = batch_program(fwd_jaxpr, axis, flags, True)
    alone, _ = batch_program(fun_jaxpr, axis, flags[num_consts:], True)
    results = remat_opt_p.bind(
        *values, fwd_jaxpr=with_residuals, fun_jaxpr=alone, num_consts=num_consts
    )
    return results, [0] * len(results)


@rules.simplify(remat_opt_p)
def _(used: Sequence[bool], equation: Equation) -> SmallerEquation:
    params = equation.params
    alone: ClosedJaxpr = params["fun_jaxpr"]
    count: int = params["num_consts"]
    results = len(alone.jaxpr.outvars)
    if not any(used) and not equation.effects:
        return [False] * len(equation.invars), None
    if any(used[results:]):
        return [True] * len(equation.invars), equation
    smaller, stays = dead_code_program(alone, used[:results])
    call = equation.replace(
        primitive=closed_call_p,
        invars=where(equation.invars[count:], stays),
        outvars=where(equation.outvars, used),
        params={"call_jaxpr": smaller},
        effects=smaller.effects,
    )
    return [False] * count + list(stays), call
