"""program_order, for programs whose operations run in the order in which they are written."""

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, overload

from hlofront.base import tree
from hlofront.base.boundary import boundary, named_as
from hlofront.base.tree import PyTree
from hlofront.base.typing import ArrayLike, ArrayLikes
from hlofront.core import rules
from hlofront.core.aval import typeof
from hlofront.core.jaxpr import Atom, ClosedJaxpr, Equation, Literal, ParamDict, Var
from hlofront.core.names import coming_from
from hlofront.core.primitive import Primitive
from hlofront.core.programs.program_cache import once_per_program
from hlofront.core.trace import process
from hlofront.higher_order.calls.jit_call import (
    CallRules,
    Origins,
    jit_p,
    run_by_program,
    split_captured,
)
from hlofront.higher_order.control_flow.bodies import debug_info_of
from hlofront.higher_order.selecting import variables, where, where_not
from hlofront.primitives.calls.barriers import create_token, optimization_barrier
from hlofront.transforms.flatten import stage_tree
from hlofront.transforms.simplify import dead_code_program
from hlofront.transforms.stage import stage

# Parameters: `call_jaxpr`, the program; `enforce`, whether its operations keep their order;
# `strict_in` and `strict_out`, whether all inputs are ready before it starts, and all results
# before any is used; `exclude_mask`, per operand, whether an enclosing order does not wait for it.
program_order_p = Primitive("program_order", multiple_results=True, carries_programs=True)


def _excluding(params: ParamDict, origins: Origins) -> ParamDict:
    """Return the parameters of a derived program, whose new operands are not excluded."""
    mask: tuple[bool, ...] = params["exclude_mask"]
    new = tuple([index is not None and mask[index] for index in origins])
    return {**params, "exclude_mask": new}


_rules = CallRules(program_order_p, "call_jaxpr", _excluding)
rules.partial_eval(program_order_p)(_rules.partial_eval)
run_by_program(program_order_p, "call_jaxpr")


# ---- the order -----------------------------------------------------------------------------------


@once_per_program
def in_order(program: ClosedJaxpr, strict_in: bool, strict_out: bool) -> ClosedJaxpr:
    """Return a program with a barrier between each operation and the next.

    Args:
      program: the program; operations that do not affect a result are dropped.
      strict_in: whether a barrier comes before the first operation.
      strict_out: whether a barrier comes after the last one.
    """
    smaller, stays = dead_code_program(program, [True] * len(program.jaxpr.outvars))

    def run(*args: ArrayLike) -> list[ArrayLike]:
        return _run_in_order(smaller, strict_in, strict_out, where(args, stays))

    return stage(run, program.in_avals, program.jaxpr.debug_info)


def _run_in_order(
    program: ClosedJaxpr, strict_in: bool, strict_out: bool, args: ArrayLikes
) -> list[ArrayLike]:
    jaxpr = program.jaxpr
    values: dict[Atom, Any] = dict(zip(jaxpr.constvars, program.consts, strict=True))
    values.update(zip(jaxpr.invars, optimization_barrier(args) if strict_in else args, strict=True))
    before: Sequence[Var] = ()
    for equation in jaxpr.eqns:
        with coming_from(equation.name_stack, equation.traceback):
            operands, has_operands = values, bool(variables(equation.invars))
            if before and has_operands:
                values, operands = _behind(equation, before, values)
            results = process(
                equation.primitive,
                tuple(
                    atom.operand if type(atom) is Literal else operands[atom]
                    for atom in equation.invars
                ),
                equation.params,
            )
        results = results if equation.primitive.multiple_results else (results,)
        values.update(zip(equation.outvars, results, strict=True))
        # Operations without operands have nothing to wait for.
        if has_operands:
            before = equation.outvars
    outputs = [atom.operand if type(atom) is Literal else values[atom] for atom in jaxpr.outvars]
    return optimization_barrier(outputs) if strict_out else outputs


def _behind(
    equation: Equation, before: Sequence[Var], values: dict[Atom, Any]
) -> tuple[dict[Atom, Any], dict[Atom, Any]]:
    """Put all values and an equation's operands behind a barrier that orders two equations.

    Args:
      equation: the second equation.
      before: the results of the first one.
      values: all values so far.
    """
    operands = list(dict.fromkeys(variables(equation.invars)))
    if equation.primitive is jit_p or (
        equation.primitive is program_order_p and not equation.params["enforce"]
    ):
        # Inside, an operation may start as soon as its own operands are ready.
        mask = equation.params.get("exclude_mask", [False] * len(equation.invars))
        waiting = variables(where_not(equation.invars, mask))
        if not waiting:
            return values, values
        token, *results = optimization_barrier([create_token(), *[values[v] for v in before]])
        values = {**values, **dict(zip(before, results, strict=True))}
        fenced = {
            var: optimization_barrier([token, values[var]])[1]
            for var in dict.fromkeys(waiting)
            if var not in before
        }
        return values, {**values, **fenced}
    others = [var for var in before if var not in operands]
    results = optimization_barrier([values[var] for var in (*others, *operands)])
    behind = dict(zip((*others, *operands), results, strict=True))
    return {**values, **{var: behind[var] for var in others}}, {**values, **behind}


# ---- the function --------------------------------------------------------------------------------


@overload
def program_order(
    f: None = None,
    *,
    enforce: bool,
    strict_in_out: bool | tuple[bool, bool] = False,
    exclude_argnames: str | Sequence[str] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]: ...


@overload
def program_order(
    f: Callable[..., PyTree],
    *,
    enforce: bool,
    strict_in_out: bool | tuple[bool, bool] = False,
    exclude_argnames: str | Sequence[str] | None = None,
) -> Callable[..., PyTree]: ...


def program_order(
    f: Any = None,
    *,
    enforce: bool,
    strict_in_out: bool | tuple[bool, bool] = False,
    exclude_argnames: str | Sequence[str] | None = None,
) -> Any:
    """Return a function whose operations run in the order of its program, or are free to overlap.

    By default XLA orders operations only by their dependencies. With `enforce=True` each operation
    starts after the one before it, so that, for example, a collective is sent where it is written.
    Inside such a function, a call of a function made with `enforce=False`, or by `jit`, is a single
    operation of that order, and its own operations may overlap.

    Args:
      f: a function of pytrees of arrays; None to use this as a decorator.
      enforce: whether operations keep their order.
      strict_in_out: whether all arguments must be ready before the first operation, and all results
        before any of them is used: a pair, or one flag for both.
      exclude_argnames: with `enforce=False`, names of arguments for which operations of an
        enclosing order need not wait.

    Raises:
      ValueError: if `exclude_argnames` is given with `enforce=True`, or `strict_in_out` with
        `enforce=False`.

    Example:
      >>> from hlofront.experimental.overlap import program_order
      >>> @program_order(enforce=True)
      ... def f(x):
      ...     y = jnp.sin(x)
      ...     return y * jnp.cos(x)
      >>> f(jnp.float32(1)).round(3)
      Array(0.455, dtype=float32)
      >>> print(jax.jit(f).lower(jnp.float32(1)).as_text().count("optimization_barrier"))
      2
    """
    if enforce and exclude_argnames is not None:
        raise ValueError(
            "exclude_argnames cannot be used with enforce=True: they are the arguments that an "
            "enclosing order does not wait for, with enforce=False"
        )
    if not enforce and strict_in_out:
        raise ValueError("strict_in_out=True cannot be used with enforce=False")
    if f is None:
        return partial(
            program_order,
            enforce=enforce,
            strict_in_out=strict_in_out,
            exclude_argnames=exclude_argnames,
        )
    fun: Callable[..., PyTree] = f
    strict_in, strict_out = (
        (strict_in_out, strict_in_out) if isinstance(strict_in_out, bool) else strict_in_out
    )
    names = (exclude_argnames,) if isinstance(exclude_argnames, str) else exclude_argnames or ()

    @boundary
    def ordered(*args: object, **kwargs: object) -> PyTree:
        leaves, structure = tree.tree_flatten((args, kwargs))
        out_tree: tree.PyTreeDef | None = None
        info = debug_info_of(fun, "program_order", tree.tree_structure(args), lambda: out_tree)
        avals = [typeof(leaf) for leaf in leaves]
        program, out_tree = stage_tree(fun, structure, avals, info, leaves)
        program, captured = split_captured(program)
        mask = (*[False] * len(captured), *_mask_of_leaves(fun, names, args, kwargs))
        results = program_order_p.bind(
            *captured,
            *leaves,
            call_jaxpr=program,
            enforce=enforce,
            exclude_mask=mask,
            strict_in=strict_in,
            strict_out=strict_out,
        )
        return out_tree.unflatten(results)

    return named_as(ordered, fun)


def _mask_of_leaves(
    fun: Callable[..., PyTree],
    names: Sequence[str],
    args: tuple[object, ...],
    kwargs: dict[str, object],
) -> list[bool]:
    """Return, per leaf of (args, kwargs), whether its argument has one of these names."""
    flags = [False] * len(args)
    if names:
        parameters = list(inspect.signature(fun).parameters.values())
        unknown = {*names} - {p.name for p in parameters} - {*kwargs}
        if unknown and not any(p.kind is p.VAR_KEYWORD for p in parameters):
            raise ValueError(
                f"exclude_argnames are names of parameters of {fun}: got {sorted(unknown)}"
            )
        flags = [
            parameter.name in names
            for parameter, _ in zip(parameters, args)
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        ]
        flags += [False] * (len(args) - len(flags))
    by_argument = (tuple(flags), {name: name in names for name in kwargs})
    return tree.broadcast_prefix(by_argument, (args, kwargs))
