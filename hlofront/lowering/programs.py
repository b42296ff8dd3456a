"""Operations that hold programs: jit becomes a function and a call, custom rules their function."""

from hlofront.core.rules import lower
from hlofront.higher_order.call_primitive import call_p, closed
from hlofront.higher_order.checkpoint import remat_p
from hlofront.higher_order.checkpoint_policies import name_p
from hlofront.higher_order.custom_jvp import custom_jvp_call_p
from hlofront.higher_order.custom_vjp_call import custom_lin_p, custom_vjp_call_p, remat_opt_p
from hlofront.higher_order.custom_vmap import custom_vmap_call_p
from hlofront.higher_order.jit_call import closed_call_p, jit_p
from hlofront.higher_order.linear_call import linear_call_p
from hlofront.higher_order.linear_solve import custom_linear_solve_p
from hlofront.lowering.module import symbol_name


@lower(jit_p)
def _(build, *args, jaxpr, name, **_):
    return build.call(jaxpr, symbol_name(name), args)


@lower(closed_call_p, custom_jvp_call_p, custom_vjp_call_p)
def _(build, *args, call_jaxpr, **_):
    return build.inline(call_jaxpr.jaxpr, call_jaxpr.consts, args)


@lower(call_p)
def _(build, *args, call_jaxpr, name="call", **_):
    return build.call(closed(call_jaxpr), symbol_name(name), args)


@lower(custom_vmap_call_p)
def _(build, *args, call, **_):
    return build.inline(call.jaxpr, call.consts, args)


@lower(linear_call_p)
def _(build, *args, callee, **_):
    return build.inline(callee.jaxpr, callee.consts, args)


@lower(custom_linear_solve_p)
def _(build, *args, const_lengths, jaxprs):
    start = const_lengths.matvec + const_lengths.vecmat
    captured = args[start : start + const_lengths.solve]
    b = args[sum(const_lengths) :]
    return build.inline(jaxprs.solve.jaxpr, jaxprs.solve.consts, (*captured, *b))


@lower(remat_opt_p)
def _(build, *args, fwd_jaxpr, **_):
    return build.inline(fwd_jaxpr.jaxpr, fwd_jaxpr.consts, args)


@lower(custom_lin_p)
def _(build, *args, **_):
    raise TypeError(
        "can't apply forward-mode autodiff (jvp) to a custom_vjp function: it has a backward rule "
        "alone, and the program that is lowered asks for its forward derivative."
    )


@lower(remat_p)
def _(build, *args, jaxpr, prevent_cse, differentiated, policy):
    if differentiated:
        # What is computed again depends on the barrier, so that it is not what was computed before.
        fenced = [prevent_cse] * len(args) if isinstance(prevent_cse, bool) else prevent_cse
        chosen = [place for place, fence in enumerate(fenced) if fence]
        if chosen:
            # All in one, cotangents among them: what is computed again waits for their arrival.
            values = build.barrier(
                [args[place] for place in chosen], [build.avals_in[place] for place in chosen]
            )
            args = list(args)
            for place, value in zip(chosen, values, strict=True):
                args[place] = value
    return build.inline(jaxpr.jaxpr, jaxpr.consts, args, "checkpoint")


@lower(name_p)
def _(build, x, *, name):
    return x
