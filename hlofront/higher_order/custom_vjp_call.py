"""The operations behind custom_vjp: its call, and a derivative that is known backwards alone."""

from hlofront.base.dtypes import float0
from hlofront.core import rules
from hlofront.core.aval import typeof
from hlofront.core.axes import AxisData
from hlofront.core.digest import not_lowered
from hlofront.core.evaluate import jaxpr_as_fun
from hlofront.core.primitive import Primitive
from hlofront.core.subprograms import Subprogram, called, calls, no_subprograms
from hlofront.core.symbolic_zeros import Zero
from hlofront.higher_order.batched_functions import (
    BatchedBackward,
    BatchedCall,
    BatchedForward,
    all_in_front,
    with_axis,
)
from hlofront.higher_order.custom_jvp import (
    as_function,
    refuse_captured,
    without_dead_code,
    write_down,
)
from hlofront.higher_order.jit_call import closed_call_p, spread
from hlofront.primitives.batching import to_front
from hlofront.transforms.batch import batch_program
from hlofront.transforms.jvp import jvp_program
from hlofront.transforms.simplify import dead_code_program

custom_vjp_call_p = Primitive("custom_vjp_call", multiple_results=True, carries_programs=True)
custom_lin_p = Primitive("custom_lin", multiple_results=True, carries_programs=True)
remat_opt_p = Primitive("remat_opt", multiple_results=True, carries_programs=True)
not_lowered(custom_vjp_call_p, "fwd_jaxpr_thunk", "bwd")
not_lowered(remat_opt_p, "fun_jaxpr")

rules.subprograms(custom_vjp_call_p)(calls("call_jaxpr"))
rules.subprograms(custom_lin_p)(no_subprograms)


@rules.subprograms(remat_opt_p)
def _(*, fwd_jaxpr, fun_jaxpr, num_consts):
    return called(fwd_jaxpr, "fwd_jaxpr"), Subprogram(fun_jaxpr, "fun_jaxpr", "alternative")


# ---- the call ------------------------------------------------------------------------------------


@rules.infer(custom_vjp_call_p)
def _(*avals, call_jaxpr, **_):
    return call_jaxpr.out_avals


@rules.effects(custom_vjp_call_p)
def _(*avals, call_jaxpr, **_):
    return call_jaxpr.effects


@rules.run(custom_vjp_call_p)
def _(*args, call_jaxpr, **_):
    return as_function(call_jaxpr)(*args)


rules.simplify(custom_vjp_call_p)(without_dead_code)


@rules.staged(custom_vjp_call_p)
def _(trace, *args, call_jaxpr, num_consts, **params):
    program, args, num_consts = write_down(call_jaxpr, args, num_consts)
    return trace.write(
        custom_vjp_call_p, args, {"call_jaxpr": program, "num_consts": num_consts, **params}
    )


@rules.jvp(custom_vjp_call_p)
def _(primals, tangents, *, fwd_jaxpr_thunk, num_consts, **_):
    refuse_captured("custom_vjp", tangents[:num_consts])
    primals, tangents = primals[num_consts:], tangents[num_consts:]
    perturbed = [type(t) is not Zero for t in tangents]
    results, residuals, backward = fwd_jaxpr_thunk(primals, perturbed)
    avals = [typeof(x).to_tangent_aval() for x in results]
    moving = [getattr(aval, "dtype", float0) != float0 for aval in avals]
    moved = iter(
        custom_lin_p.bind(
            *residuals,
            *(t for t in tangents if type(t) is not Zero),
            num_res=len(residuals),
            bwd=backward,
            perturbed=tuple(perturbed),
            moving=tuple(moving),
            out_avals=tuple(avals),
        )
    )
    return results, [
        next(moved) if moves else Zero(aval) for moves, aval in zip(moving, avals, strict=True)
    ]


def _batch(axis, tag, values, axes, *, call_jaxpr, fwd_jaxpr_thunk, num_consts, **params):
    call = BatchedCall(axis, tag, axes)
    results = custom_vjp_call_p.bind(
        *values,
        call_jaxpr=call.function(call_jaxpr),
        fwd_jaxpr_thunk=BatchedForward(fwd_jaxpr_thunk, call, axes[num_consts:]),
        num_consts=num_consts,
        **params,
    )
    return results, call.result_axes


@rules.batch_with_axis(custom_vjp_call_p)
def _(axis, values, axes, **params):
    return _batch(axis, object(), values, axes, **params)


@rules.batch_with_trace(custom_vjp_call_p)
def _(trace, values, axes, **params):
    return _batch(trace.axis, trace.tag, values, axes, **params)


# ---- what its derivative is: linear, but known backwards alone -----------------------------------


@rules.infer(custom_lin_p)
def _(*avals, moving, out_avals, **_):
    return [aval for aval, moves in zip(out_avals, moving, strict=True) if moves]


def _no_forward(*_, **__):
    raise TypeError(
        "can't apply forward-mode autodiff (jvp) to a custom_vjp function: it has a backward rule "
        "alone. Use reverse mode (vjp, grad, jacrev), or give it a forward rule with custom_jvp."
    )


rules.run(custom_lin_p)(_no_forward)
rules.jvp(custom_lin_p)(_no_forward)


@rules.transpose(custom_lin_p)
def _(cotangents, *operands, num_res, bwd, perturbed, moving, out_avals):
    arrived = iter(cotangents)
    all_cotangents = [
        next(arrived) if moves else Zero(aval)
        for aval, moves in zip(out_avals, moving, strict=True)
    ]
    found = bwd(operands[:num_res], all_cotangents)
    return [None] * num_res + [c for c, p in zip(found, perturbed, strict=True) if p]


@rules.batch_with_axis(custom_lin_p)
def _(axis: AxisData, values, axes, *, num_res, bwd, perturbed, moving, out_avals):
    values = [
        *values[:num_res],
        *(to_front(x, a, axis.size) for x, a in zip(values[num_res:], axes[num_res:], strict=True)),
    ]
    results = custom_lin_p.bind(
        *values,
        num_res=num_res,
        bwd=BatchedBackward(
            bwd, axis, object(), axes[:num_res], [0] * len(moving), [0] * len(perturbed)
        ),
        perturbed=perturbed,
        moving=moving,
        out_avals=tuple([with_axis(aval, axis.size, 0) for aval in out_avals]),
    )
    return results, [0] * len(results)


# ---- optimize_remat ------------------------------------------------------------------------------


@rules.infer(remat_opt_p)
def _(*avals, fwd_jaxpr, **_):
    return fwd_jaxpr.out_avals


@rules.effects(remat_opt_p)
def _(*avals, fwd_jaxpr, **_):
    return fwd_jaxpr.effects


@rules.run(remat_opt_p)
def _(*args, fwd_jaxpr, **_):
    return jaxpr_as_fun(fwd_jaxpr, *args)


@rules.jvp(remat_opt_p)
def _(primals, tangents, *, fwd_jaxpr, fun_jaxpr, num_consts):
    # What is known of the first derivative alone is differentiated as any other program: with its
    # residuals, which the second derivative wants.
    program, present = jvp_program(fwd_jaxpr, tuple(type(t) is not Zero for t in tangents))
    found = jaxpr_as_fun(program, *primals, *(t for t in tangents if type(t) is not Zero))
    count = len(present)
    return found[:count], spread(found[count:], present, fwd_jaxpr.out_avals)


@rules.batch_with_axis(remat_opt_p)
def _(axis: AxisData, values, axes, *, fwd_jaxpr, fun_jaxpr, num_consts):
    values, flags = all_in_front(values, axes)
    with_residuals, _ = batch_program(fwd_jaxpr, axis, flags, True)
    alone, _ = batch_program(fun_jaxpr, axis, flags[num_consts:], True)
    results = remat_opt_p.bind(
        *values, fwd_jaxpr=with_residuals, fun_jaxpr=alone, num_consts=num_consts
    )
    return results, [0] * len(results)


@rules.simplify(remat_opt_p)
def _(used, equation):
    params = equation.params
    alone, count = params["fun_jaxpr"], params["num_consts"]
    results = len(alone.jaxpr.outvars)
    if not any(used) and not equation.effects:
        return [False] * len(equation.invars), None
    if any(used[results:]):
        return [True] * len(equation.invars), equation
    smaller, stays = dead_code_program(alone, used[:results])
    invars = [a for a, s in zip(equation.invars[count:], stays, strict=True) if s]
    call = equation.replace(
        primitive=closed_call_p,
        invars=invars,
        outvars=[var for var, u in zip(equation.outvars, used, strict=True) if u],
        params={"call_jaxpr": smaller},
        effects=smaller.effects,
    )
    return [False] * count + list(stays), call
