"""The checkpoint transformation, which recomputes values for the derivative, and its rules."""

import weakref
from collections.abc import Callable, Hashable, Iterable, Sequence

from hlofront.base import caches, source, tree
from hlofront.base.boundary import boundary
from hlofront.base.tree import PyTree, PyTreeDef
from hlofront.base.tree_prefixes import broadcast_prefix
from hlofront.base.typing import ArrayLike, ArrayLikes
from hlofront.bridge import state
from hlofront.core import rules
from hlofront.core.axes import AxisData
from hlofront.core.jaxpr import ClosedJaxpr, DebugInfo, Equation, ParamDict, Value, Var
from hlofront.core.programs.evaluate import jaxpr_as_fun
from hlofront.core.programs.program_cache import once_per_program
from hlofront.core.rules import BatchResult
from hlofront.core.symbolic_zeros import (
    BatchAxes,
    Cotangent,
    Operand,
    Tangent,
    Tangents,
    UndefinedPrimal,
)
from hlofront.core.trace import Tracer, as_result, current_trace
from hlofront.core.typed_scalars import typed
from hlofront.higher_order.calls.jit_call import CallRules, Origins, call_rules, split_captured
from hlofront.higher_order.checkpoint.checkpoint_policies import Policy
from hlofront.higher_order.checkpoint.checkpoint_splitting import (
    CheckpointInTwo,
    pruned,
    remat_p,
    split_for_transposition,
)
from hlofront.higher_order.checkpoint.saved_residuals import log_checkpoint_residuals
from hlofront.higher_order.selecting import Flags, nonzero, where, where_not
from hlofront.transforms.arguments import ArgumentPlan
from hlofront.transforms.backward_logs import inlined_for_logs
from hlofront.transforms.flatten import abstract, check_hashable, result_paths, stage_tree
from hlofront.transforms.partial_eval import SplitEquation
from hlofront.transforms.vmap import documented

# The traced programs of a checkpointed function, with the structures of their results.
_Traced = tuple[ClosedJaxpr, PyTreeDef]
_Table = dict[Hashable, _Traced]

# The tables per function and static arguments: two calls of checkpoint(f) trace f once. They do not
# refer to the function, and are dropped with it.
_tables: "weakref.WeakKeyDictionary[Callable[..., object], dict[Hashable, caches.CacheTable]]" = (
    weakref.WeakKeyDictionary()
)


def checkpoint(
    fun: Callable[..., PyTree],
    *,
    prevent_cse: bool | Sequence[bool] = True,
    policy: Policy | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Iterable[str] = (),
    concrete: object = None,
) -> Callable[..., PyTree]:
    """Return a function whose derivative recomputes values instead of saving them.

    Args:
      fun: a function of pytrees of arrays.
      prevent_cse: whether to prevent the compiler from sharing the two computations, which would
        undo the recomputation. Inside scan, where they cannot be shared, False is faster. A tuple
        has one boolean per argument, or is a pytree prefix of the arguments.
      policy: decides which values are saved: one of `checkpoint_policies`, or a function of a
        primitive, its operands' avals and its parameters. None saves nothing.
      static_argnums: positions of arguments that are Python values and not arrays.
      static_argnames: names of arguments that are Python values and not arrays.
      concrete: deprecated; only None is accepted.

    Returns:
      A function with the arguments, results and derivatives of `fun`.

    Raises:
      TypeError: if `fun` cannot be called, or an argument is not an array.
      ValueError: if `prevent_cse` is not a prefix of the arguments, or static arguments are not
        among those of `fun`.

    Example:
      >>> layer = jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)))
      >>> bool(jnp.allclose(jax.grad(layer)(1.0), jnp.cos(jnp.sin(1.0)) * jnp.cos(1.0)))
      True
    """
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {source.shortened(repr(fun))}")
    if concrete is not None:
        raise NotImplementedError(  # JAX raises this class.
            "The 'concrete' option to jax.checkpoint is gone: mark the arguments that must be "
            "Python values with static_argnums."
        )
    plan = ArgumentPlan(
        fun,
        None if static_argnums == () else static_argnums,
        static_argnames or None,
        what="Checkpointed function",
    )
    if not isinstance(prevent_cse, bool | Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(
            f"prevent_cse must be a bool or a sequence of bools, one per argument; got "
            f"{prevent_cse!r} of type {type(prevent_cse)}"
        )
    table = _table_of(fun, plan)

    @boundary
    def fun_remat(*args: object, **kwargs: object) -> PyTree:
        program, out_tree, leaves = _traced(fun, plan, table, args, kwargs)
        refused = [effect for effect in program.effects if not effect.in_checkpoint]
        if refused:
            raise NotImplementedError(  # JAX raises this class.
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


def _table_of(fun: Callable[..., PyTree], plan: ArgumentPlan) -> _Table:
    """Return the table of a function's traced programs, which all its checkpoints share."""
    try:
        tables = _tables.setdefault(fun, {})
    except TypeError:  # The callable is not hashable or not weakly referable.
        tables = {}
    return tables.setdefault((plan.static_argnums, plan.static_argnames), caches.CacheTable())


def _per_leaf(
    prevent_cse: bool | Sequence[bool], captured: int, dynamic: tuple[PyTree, PyTree]
) -> bool | tuple[bool, ...]:
    """Return `prevent_cse` with one boolean per operand, from a prefix of the arguments.

    Args:
      prevent_cse: the user's value: a boolean, which is returned, or a prefix of the arguments.
      captured: the number of captured operands, which come first and pass no barrier.
      dynamic: the positional and keyword arguments that are not static.
    """
    if isinstance(prevent_cse, bool):
        return prevent_cse
    args, kwargs = dynamic
    per_leaf = broadcast_prefix(tuple(prevent_cse), (tuple(args), kwargs) if kwargs else args)
    return (*[False] * captured, *per_leaf)


def _traced(
    fun: Callable[..., PyTree],
    plan: ArgumentPlan,
    table: _Table,
    args: tuple[object, ...],
    kwargs: dict[str, object],
) -> tuple[ClosedJaxpr, PyTreeDef, list[ArrayLike]]:
    """Return a call's program, the tree definition of its result, and the argument leaves.

    The program is cached in `table`, by the avals of the leaves and the static arguments. A program
    that captured tracers of an enclosing function is valid only inside it, and is cached there. A
    call with unhashable static arguments is traced each time.
    """
    check_hashable(fun)
    statics = plan.static_values(args, kwargs, required=False)
    leaves, in_tree = tree.tree_flatten(plan.dynamic(args, kwargs))
    try:
        avals = tuple(map(abstract, leaves))
    except (TypeError, OverflowError) as error:
        raise plan.bad_argument(args, kwargs, leaves) from error
    key = (in_tree, avals, statics, state.trace_context())
    # The entries refer to their tables, which keeps the tables' ids valid.
    enclosing: dict[Hashable, tuple[_Traced, _Table]] = getattr(current_trace(), "programs_of", {})
    traced = None if statics is None else table.get(key)
    if traced is None and statics is not None:
        traced, _ = enclosing.get((id(table), key), (None, table))
    if traced is None:
        out_tree: PyTreeDef | None = None
        info = DebugInfo(
            "checkpoint / remat",
            plan.signature.where,
            plan.names(args, kwargs),
            lambda: result_paths(out_tree),
        )
        traced = stage_tree(plan.with_statics(fun, args, kwargs), in_tree, avals, info)
        program, out_tree = traced
        if statics is not None:
            if any(isinstance(const, Tracer) for const in program.consts):
                enclosing[id(table), key] = traced, table
            else:
                table[key] = traced
    program, out_tree = traced
    return program, out_tree, leaves


# ---- rules ---------------------------------------------------------------------------------------


def _adapted(params: ParamDict, origins: Origins) -> ParamDict:
    """Return a checkpoint's parameters with `prevent_cse` for new operands.

    Args:
      params: the parameters of the equation.
      origins: per new operand, the index of the old operand, or None (then True is used).
    """
    barred: bool | tuple[bool, ...] = params["prevent_cse"]
    if isinstance(barred, bool):
        return params
    return {**params, "prevent_cse": tuple([index is None or barred[index] for index in origins])}


class _RematRules(CallRules):
    """The rules of checkpointed calls, whose `prevent_cse` selects operands for a barrier."""

    def call(self, program: ClosedJaxpr, args: ArrayLikes, params: ParamDict) -> list[ArrayLike]:
        # A custom derivative rule may close over tracers of an enclosing function.
        program, captured = split_captured(program)
        cse: bool | tuple[bool, ...] = params["prevent_cse"]
        if not isinstance(cse, bool):
            cse = (True,) * len(captured) + cse
        return remat_p.bind(*captured, *args, **{**params, "jaxpr": program, "prevent_cse": cse})

    def jvp(
        self, primals: ArrayLikes, tangents: Tangents, **params: Value
    ) -> tuple[list[ArrayLike], list[Tangent]]:
        new = [None] * len(nonzero(tangents))
        return super().jvp(primals, tangents, **_adapted(params, [*range(len(primals)), *new]))

    def batch(
        self, axis: AxisData, values: ArrayLikes, axes: BatchAxes, **params: Value
    ) -> BatchResult:
        # Dead equations are dropped here as they are for derivatives, and need no batching rules.
        return super().batch(axis, values, axes, **{**params, "jaxpr": pruned(params["jaxpr"])})

    def transpose(
        self, cotangents: Sequence[Cotangent], *operands: Operand, **params: Value
    ) -> list[Cotangent | None]:
        known = [i for i, x in enumerate(operands) if type(x) is not UndefinedPrimal]
        new = [None] * len(nonzero(cotangents))
        linear = tuple([type(x) is UndefinedPrimal for x in operands])
        program = split_for_transposition(params["jaxpr"], linear)
        params = {**_adapted(params, [*known, *new]), "jaxpr": program, "differentiated": True}
        return super().transpose(cotangents, *operands, **params)


remat_rules = _RematRules(remat_p, "jaxpr", _adapted)
inlined_for_logs.add(remat_p)


@rules.run(remat_p)
def _(*args: ArrayLike, jaxpr: ClosedJaxpr, **_: object) -> list[ArrayLike]:
    return [typed(as_result(x)) for x in jaxpr_as_fun(jaxpr, *args)]


@once_per_program
def _checkpoint_in_two(
    program: ClosedJaxpr, unknown: Flags, policy: Policy | None
) -> CheckpointInTwo:
    return CheckpointInTwo(program, unknown, policy)


@rules.partial_eval(remat_p)
def _(unknown: Sequence[bool], equation: Equation) -> SplitEquation:
    params = equation.params
    program: ClosedJaxpr = params["jaxpr"]
    policy: Policy | None = params["policy"]
    split = _checkpoint_in_two(program, tuple(unknown), policy)
    known_inputs = where_not(equation.invars, unknown)
    known_outputs = where_not(equation.outvars, split.unknown_out)
    saved = [Var(aval) for aval in split.known.out_avals[len(known_outputs) :]]
    known_outputs += saved
    saved_inputs = [known_inputs[index] for index in split.inputs]
    residuals = [*saved, *saved_inputs]
    if any(split.unknown_out):
        saved_avals = [atom.aval for atom in saved_inputs]
        log_checkpoint_residuals(program, saved_avals, split.known, len(saved))
    known = unknown_equation = None
    if known_outputs or split.known.effects:
        known = call_rules.equation(
            equation.replace(params={}), split.known, known_inputs, known_outputs, ()
        )
    if any(split.unknown_out):
        indices = range(len(unknown))
        known_indices = where_not(indices, unknown)
        unknown_equation = remat_rules.equation(
            equation.replace(params={**params, "differentiated": True}),
            split.rest,
            [*residuals, *where(equation.invars, unknown)],
            where(equation.outvars, split.unknown_out),
            [
                *[None] * len(saved),
                *[known_indices[i] for i in split.inputs],
                *where(indices, unknown),
            ],
        )
    return known, unknown_equation, split.unknown_out, residuals
