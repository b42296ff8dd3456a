"""checkpoint: what a function computes is computed again for its derivative, not kept."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hlofront.base import caches, source, tree
from hlofront.base.boundary import boundary
from hlofront.base.tree_prefixes import broadcast_prefix
from hlofront.bridge import state
from hlofront.core import rules
from hlofront.core.derived import once_per_program
from hlofront.core.evaluate import jaxpr_as_fun
from hlofront.core.jaxpr import ClosedJaxpr, DebugInfo, Var
from hlofront.core.symbolic_zeros import UndefinedPrimal, Zero
from hlofront.core.trace import Tracer, as_array
from hlofront.higher_order.checkpoint_splitting import CheckpointInTwo, Flags, Policy, remat_p
from hlofront.higher_order.jit_call import (
    CallRules,
    call_rules,
    split_captured,
)
from hlofront.higher_order.saved_residuals import log_checkpoint_residuals
from hlofront.transforms.arguments import ArgumentPlan
from hlofront.transforms.flatten import abstract, result_paths, stage_tree
from hlofront.transforms.make_jaxpr import bad_argument
from hlofront.transforms.vmap import documented


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
        undo this. Inside of scan, where nothing can be shared, False is quicker. A tuple says it
        per argument, or is a prefix of the pytree of them.
      policy: says which values are kept all the same: one of `checkpoint_policies`, or a function
        of a primitive, the types of its operands and its parameters. None keeps nothing.
      static_argnums: positions of arguments that are Python values and not arrays.
      static_argnames: the same by name.
      concrete: no longer of use; only None is accepted.

    Returns:
      A function of the same arguments with the same results and derivatives.

    Raises:
      TypeError: if `fun` cannot be called, or an argument is no array.
      ValueError: if `prevent_cse` is no prefix of the arguments, or static arguments are not among
        those of `fun`.
    """
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {source.shortened(repr(fun))}")
    if concrete is not None:
        raise NotImplementedError(  # the class that JAX raises
            "The 'concrete' option to jax.checkpoint is gone: mark the arguments that must be "
            "Python values with static_argnums."
        )
    plan = ArgumentPlan(
        fun, static_argnums or None, static_argnames or None, what="Checkpointed function"
    )
    if not isinstance(prevent_cse, bool | Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(
            f"prevent_cse must be a bool or a sequence of bools, one per argument; got "
            f"{prevent_cse!r} of type {type(prevent_cse)}"
        )
    table = caches.CacheTable()

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
            prevent_cse=_per_leaf(prevent_cse, len(captured), plan.dynamic(args, kwargs)),
            differentiated=False,
            policy=policy,
        )
        return out_tree.unflatten(results)

    name = plan.signature.name
    return documented(fun_remat, fun, f"{name}, whose derivative computes its values again.")


def _per_leaf(
    prevent_cse: bool | Sequence[bool], captured: int, dynamic: tuple[Any, Any]
) -> bool | tuple[bool, ...]:
    """`prevent_cse` per operand: a sequence stands for the arguments, each with all its leaves."""
    if isinstance(prevent_cse, bool):
        return prevent_cse
    args, kwargs = dynamic
    per_leaf = broadcast_prefix(tuple(prevent_cse), (tuple(args), kwargs) if kwargs else args)
    return (*[False] * captured, *per_leaf)


def _traced(
    fun: Callable[..., Any],
    plan: ArgumentPlan,
    table: dict[Any, Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> tuple[ClosedJaxpr, Any, list[Any]]:
    # What cannot be hashed is traced anew each time, as it may have changed.
    statics = plan.static_values(args, kwargs, required=False)
    leaves, in_tree = tree.tree_flatten(plan.dynamic(args, kwargs))
    try:
        avals = tuple(map(abstract, leaves))
    except TypeError as error:
        raise bad_argument(fun, plan, args, kwargs, leaves) from error
    key = (in_tree, avals, statics, state.trace_context())
    found = None if statics is None else table.get(key)
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
        if statics is not None and not any(isinstance(c, Tracer) for c in program.consts):
            table[key] = found
    return *found, leaves


# ---- rules ---------------------------------------------------------------------------------------


def _adapted(params: dict[str, Any], places: Sequence[int | None]) -> dict[str, Any]:
    """New operands pass the barrier."""
    barred = params["prevent_cse"]
    if isinstance(barred, bool):
        return params
    return {**params, "prevent_cse": tuple([place is None or barred[place] for place in places])}


class _RematRules(CallRules):
    def call(self, program: ClosedJaxpr, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        # The rule of a custom derivative may close over values of an enclosing function.
        program, captured = split_captured(program)
        cse = params["prevent_cse"]
        if not isinstance(cse, bool):
            cse = (True,) * len(captured) + cse
        return remat_p.bind(*captured, *args, **{**params, "jaxpr": program, "prevent_cse": cse})

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> Any:
        given = [None for tangent in tangents if type(tangent) is not Zero]
        return super().jvp(primals, tangents, **_adapted(params, [*range(len(primals)), *given]))

    def transpose(self, cotangents: Any, *operands: Any, **params: Any) -> list[Any]:
        stay = [i for i, x in enumerate(operands) if type(x) is not UndefinedPrimal]
        given = [None for cotangent in cotangents if type(cotangent) is not Zero]
        params = {**_adapted(params, [*stay, *given]), "differentiated": True}
        return super().transpose(cotangents, *operands, **params)


remat_rules = _RematRules(remat_p, "jaxpr", _adapted)


@rules.run(remat_p)
def _(*args, jaxpr, **_):
    # A result that is a literal of the program is a scalar of Python.
    return list(map(as_array, jaxpr_as_fun(jaxpr, *args)))


@once_per_program
def _checkpoint_in_two(program: ClosedJaxpr, unknown: Flags, policy: Policy) -> CheckpointInTwo:
    return CheckpointInTwo(program, unknown, policy)


@rules.partial_eval(remat_p)
def _(unknown, equation):
    params = equation.params
    program, policy = params["jaxpr"], params["policy"]
    split = _checkpoint_in_two(program, tuple(unknown), policy)
    known_inputs = [atom for atom, u in zip(equation.invars, unknown, strict=True) if not u]
    known_places = [place for place, u in enumerate(unknown) if not u]
    unknown_places = [place for place, u in enumerate(unknown) if u]
    unknown_inputs = [equation.invars[place] for place in unknown_places]
    pairs = list(zip(equation.outvars, split.unknown_out, strict=True))
    known_outputs: list[Any] = [var for var, u in pairs if not u]
    saved = [Var(aval) for aval in split.known.out_avals[len(known_outputs) :]]
    known_outputs += saved
    kept_inputs = [known_inputs[place] for place in split.inputs]
    residuals = [*saved, *kept_inputs]
    if any(split.unknown_out):
        kept_avals = [atom.aval for atom in kept_inputs]
        log_checkpoint_residuals(program, kept_avals, split.known, len(saved))
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
            [None] * len(saved) + [known_places[i] for i in split.inputs] + unknown_places,
        )
    return known, rest, split.unknown_out, residuals
