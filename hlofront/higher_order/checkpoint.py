"""checkpoint: what a function computes is computed again for its derivative, not kept."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hlofront.base import caches, source, tree
from hlofront.base.boundary import boundary
from hlofront.bridge import state
from hlofront.core import rules
from hlofront.core.digest import not_lowered
from hlofront.core.evaluate import jaxpr_as_fun
from hlofront.core.jaxpr import ClosedJaxpr, DebugInfo, Equation, Literal, Var
from hlofront.core.primitive import Primitive
from hlofront.core.trace import Tracer
from hlofront.higher_order.checkpoint_policies import is_saved
from hlofront.higher_order.jit_call import (
    CallRules,
    call_rules,
    closed_call_p,
    jit_p,
    split_captured,
)
from hlofront.transforms.arguments import ArgumentPlan
from hlofront.transforms.flatten import abstract, result_paths, stage_tree
from hlofront.transforms.make_jaxpr import bad_argument
from hlofront.transforms.partial_eval import closed, live, split_equations
from hlofront.transforms.simplify import dead_code_program, inline_calls
from hlofront.transforms.vmap import documented

remat_p = Primitive("remat2", multiple_results=True, carries_programs=True)
not_lowered(remat_p, "policy")


def checkpoint(
    fun: Callable[..., Any],
    *,
    prevent_cse: bool | Sequence[bool] = True,
    policy: Callable[..., Any] | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Iterable[str] = (),
    concrete: Any = None,
) -> Callable[..., Any]:
    """A function whose derivative computes again what the function computes, to save memory.

    Args:
      fun: a function of pytrees of arrays.
      prevent_cse: whether the compiler is kept from sharing the two computations, which would
        undo this. Inside of scan, where nothing can be shared, False is quicker. A sequence says
        it per input.
      policy: says which values are kept all the same: one of `checkpoint_policies`, or a function
        of a primitive, the types of its operands and its parameters. None keeps nothing.
      static_argnums: positions of arguments that are Python values and not arrays.
      static_argnames: the same by name.
      concrete: no longer of use; only None is accepted.

    Returns:
      A function of the same arguments with the same results and derivatives.

    Raises:
      TypeError: if `fun` cannot be called, or an argument is no array.
      ValueError: if static arguments are not among those of `fun`.
    """
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {source.shortened(repr(fun))}")
    if concrete is not None:
        raise TypeError(
            "The 'concrete' option to jax.checkpoint is gone: mark the arguments that must be "
            "Python values with static_argnums."
        )
    plan = ArgumentPlan(
        fun, static_argnums or None, static_argnames or None, what="Checkpointed function"
    )
    cse = prevent_cse if isinstance(prevent_cse, bool) else tuple(prevent_cse)
    table = caches.Table()

    @boundary
    def fun_remat(*args: Any, **kwargs: Any) -> Any:
        program, out_tree, leaves = _traced(fun, plan, table, args, kwargs)
        refused = [effect for effect in program.effects if not effect.in_checkpoint]
        if refused:
            raise NotImplementedError(  # the class that JAX raises
                f"Effects not supported in `checkpoint`/`remat`: "
                f"{', '.join(map(str, refused))}. {plan.signature.where} "
                "would have them again on the way back: move what has them out of it."
            )
        program, captured = split_captured(program)
        results = remat_p.bind(
            *captured,
            *leaves,
            jaxpr=program,
            prevent_cse=cse if isinstance(cse, bool) else (True,) * len(captured) + cse,
            differentiated=False,
            policy=policy,
        )
        return out_tree.unflatten(results)

    name = plan.signature.name
    return documented(fun_remat, fun, f"{name}, whose derivative computes its values again.")


def _traced(
    fun: Callable[..., Any],
    plan: ArgumentPlan,
    table: dict[Any, Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> tuple[ClosedJaxpr, Any, list[Any]]:
    statics = plan.static_values(args, kwargs)
    leaves, in_tree = tree.tree_flatten(plan.dynamic(args, kwargs))
    try:
        avals = tuple(map(abstract, leaves))
    except TypeError as error:
        raise bad_argument(fun, plan, args, kwargs, leaves) from error
    key = (in_tree, avals, statics, state.trace_context())
    found = table.get(key)
    if found is None:
        out_tree = None
        info = DebugInfo(
            "checkpoint / remat",
            plan.signature.where,
            plan.names(args, kwargs),
            lambda: result_paths(out_tree),
        )
        program, out_tree = stage_tree(plan.with_statics(fun, args, kwargs), in_tree, avals, info)
        found = program, out_tree
        # What captured values of an enclosing function is of no use outside of it.
        if not any(isinstance(const, Tracer) for const in program.consts):
            table[key] = found
    return *found, leaves


# ---- rules ---------------------------------------------------------------------------------------


def _adapted(params: dict[str, Any], places: Sequence[int | None]) -> dict[str, Any]:
    cse = params["prevent_cse"]
    return params if isinstance(cse, bool) else {**params, "prevent_cse": any(cse)}


class _RematRules(CallRules):
    def transpose(self, cotangents: Any, *operands: Any, **params: Any) -> list[Any]:
        return super().transpose(cotangents, *operands, **{**params, "differentiated": True})


remat_rules = _RematRules(remat_p, "jaxpr", _adapted)


@rules.run(remat_p)
def _(*args, jaxpr, **_):
    return jaxpr_as_fun(jaxpr, *args)


@rules.partial_eval(remat_p)
def _(unknown, equation):
    params = equation.params
    program, policy = params["jaxpr"], params["policy"]
    key = ("remat", tuple(unknown), policy)
    split = program.derived.get(key)
    if split is None:
        split = program.derived[key] = _split(program, unknown, policy)
    known_inputs = [atom for atom, u in zip(equation.invars, unknown, strict=True) if not u]
    unknown_inputs = [atom for atom, u in zip(equation.invars, unknown, strict=True) if u]
    pairs = list(zip(equation.outvars, split.unknown_out, strict=True))
    known_outputs: list[Any] = [var for var, u in pairs if not u]
    saved = [Var(aval) for aval in split.known.out_avals[len(known_outputs) :]]
    known_outputs += saved
    residuals = [*saved, *[known_inputs[place] for place in split.inputs]]
    known = rest = None
    if known_outputs or split.known.effects:
        known = call_rules.equation(
            equation.replace(params={}), split.known, known_inputs, known_outputs, ()
        )
    if any(split.unknown_out):
        rest = remat_rules.equation(
            equation.replace(params={**params, "differentiated": True}),
            split.rest,
            [*residuals, *unknown_inputs],
            [var for var, u in pairs if u],
            (),
        )
    return known, rest, split.unknown_out, residuals


class _Split:
    """A checkpointed program in two: what runs first, and what runs again with the rest.

    The first goes from the known inputs to the known outputs and the saved values; the second
    from the saved values, the known inputs at `inputs` and the unknown inputs to the unknown
    outputs.
    """

    __slots__ = ("inputs", "known", "rest", "unknown_out")

    def __init__(self, known: Any, rest: Any, unknown_out: Any, inputs: Any):
        self.known = known
        self.rest = rest
        self.unknown_out = unknown_out
        self.inputs = inputs


def _split(program: ClosedJaxpr, unknown: Sequence[bool], policy: Any) -> _Split:
    if policy is not None:
        # So that the policy is asked of the operations themselves.
        program = inline_calls(
            program.jaxpr, program.consts, {jit_p: "jaxpr", closed_call_p: "call_jaxpr"}
        )
    jaxpr = program.jaxpr
    depends = {var for var, u in zip(jaxpr.invars, unknown, strict=True) if u}
    known_equations, rest = split_equations(jaxpr, depends)
    unknown_out = tuple([type(a) is not Literal and a in depends for a in jaxpr.outvars])
    outputs = [atom for atom, u in zip(jaxpr.outvars, unknown_out, strict=True) if u]
    rest = live(rest, outputs)
    saved = {var for e in known_equations if is_saved(policy, e) for var in e.outvars}
    needed = {atom for e in rest for atom in e.invars if type(atom) is not Literal}
    needed.update(outputs)
    again: list[Equation] = []
    for equation in reversed(known_equations):
        if any(var in needed and var not in saved for var in equation.outvars):
            again.append(equation)
            needed.update(atom for atom in equation.invars if type(atom) is not Literal)
    again.reverse()
    kept = [var for e in known_equations for var in e.outvars if var in saved and var in needed]
    known_inputs = [var for var, u in zip(jaxpr.invars, unknown, strict=True) if not u]
    unknown_inputs = [var for var, u in zip(jaxpr.invars, unknown, strict=True) if u]
    used = [place for place, var in enumerate(known_inputs) if var in needed]
    constants = dict(zip(jaxpr.constvars, program.consts, strict=True))
    known_outputs = [
        *(atom for atom, u in zip(jaxpr.outvars, unknown_out, strict=True) if not u),
        *kept,
    ]
    first = closed(
        constants, known_inputs, known_outputs, live(known_equations, known_outputs), jaxpr
    )
    inputs = [*kept, *[known_inputs[place] for place in used], *unknown_inputs]
    # An operation of which some results are saved and others made again must not make both.
    again = [_without(e, set(kept)) for e in again]
    second = closed(constants, inputs, outputs, [*again, *rest], jaxpr)
    return _Split(_pruned(first), _pruned(second), unknown_out, used)


def _pruned(program: ClosedJaxpr) -> ClosedJaxpr:
    """The program, in which the programs inside lose what nobody reads of their results."""
    everything = (True,) * len(program.jaxpr.outvars)
    return dead_code_program(program, everything, instantiate=True)[0]


def _without(equation: Equation, bound: set[Any]) -> Equation:
    if bound.isdisjoint(equation.outvars):
        return equation
    outvars = [Var(var.aval) if var in bound else var for var in equation.outvars]
    return equation.replace(outvars=outvars)
