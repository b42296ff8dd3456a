"""Flattening, binding and describing arguments of wrapped functions, as in `jax.api_util`."""

import functools
import inspect
from collections.abc import Iterable, Sequence
from typing import Any

from hlofront.base import source, tree
from hlofront.base.tree import PyTree, PyTreeDef
from hlofront.base.tree_prefixes import flatten_axes as flatten_prefix
from hlofront.core.jaxpr import DebugInfo, Names, Value
from hlofront.transforms.arguments import ArgumentPlan, StaticValue
from hlofront.transforms.linear_util import (
    AuxiliaryStore,
    Function,
    WrappedFun,
    transformation2,
    transformation_with_aux2,
)


@transformation_with_aux2
def flatten_fun(
    fun: Function, store: AuxiliaryStore[PyTreeDef], in_tree: PyTreeDef, *leaves: Value
) -> list[Value]:
    """Transform a wrapped function of (args, kwargs) to one of flat lists.

    `flatten_fun(wrapped_fun, in_tree)`, where `in_tree` is the structure of (args, kwargs), returns
    the flat function, and a function that returns the structure of the result once the flat
    function has run.
    """
    args, kwargs = tree.tree_unflatten(in_tree, leaves)
    results, out_tree = tree.tree_flatten(fun(*args, **kwargs))
    store.store(out_tree)
    return results


@transformation_with_aux2
def flatten_fun_nokwargs(
    fun: Function, store: AuxiliaryStore[PyTreeDef], in_tree: PyTreeDef, *leaves: Value
) -> list[Value]:
    """Transform a wrapped function of positional arguments to one of flat lists.

    `flatten_fun_nokwargs(wrapped_fun, in_tree)`, where `in_tree` is the structure of the tuple of
    arguments, returns the flat function, and a function that returns the structure of the result
    once the flat function has run.
    """
    results, out_tree = tree.tree_flatten(fun(*tree.tree_unflatten(in_tree, leaves)))
    store.store(out_tree)
    return results


class _ByIdentity:
    """An unhashable static argument as a key that equals only itself."""

    __slots__ = ("value",)

    def __init__(self, value: object):
        self.value = value


@transformation2
def _with_fixed_arguments(
    fun: Function,
    positions: tuple[int, ...],
    fixed: tuple[StaticValue | _ByIdentity, ...],
    *dynamic_arguments: PyTree,
    **kwargs: PyTree,
) -> PyTree:
    dynamic = dict(zip(positions, dynamic_arguments, strict=True))
    static = iter(fixed)
    count = len(fixed) + len(positions)
    args = [dynamic[i] if i in dynamic else next(static).value for i in range(count)]
    return fun(*args, **kwargs)


def argnums_partial(
    f: WrappedFun,
    dyn_argnums: int | Sequence[int],
    args: Sequence[object],
    require_static_args_hashable: bool = True,
) -> tuple[WrappedFun, tuple[object, ...]]:
    """Bind all but some positional arguments of a wrapped function.

    Args:
      f: the function.
      dyn_argnums: the positions that remain arguments; negative ones count from the last.
      args: all arguments of a call.
      require_static_args_hashable: whether bound arguments must be hashable; if not, unhashable
        ones are compared by identity.

    Returns:
      The function of the remaining arguments, and their values in `args`.

    Raises:
      ValueError: if a bound argument must be hashable and is not, or a position is out of range.
    """
    dyn_argnums = (dyn_argnums,) if isinstance(dyn_argnums, int) else tuple(dyn_argnums)
    if any(not -len(args) <= position < len(args) for position in dyn_argnums):
        raise ValueError(
            f"the positions {dyn_argnums} are not all among those of {len(args)} arguments"
        )
    positions = tuple(sorted({position % len(args) for position in dyn_argnums}))
    fixed: list[StaticValue | _ByIdentity] = []
    for position, value in enumerate(args):
        if position in positions:
            continue
        try:
            fixed.append(StaticValue(position, value))
        except TypeError:
            if require_static_args_hashable:
                raise ValueError(
                    "Non-hashable static arguments are not supported, as this can lead to "
                    f"unexpected cache-misses. Static argument (index {position}) of type "
                    f"{type(value)} for function {f.__name__} is non-hashable."
                ) from None
            fixed.append(_ByIdentity(value))
    function = _with_fixed_arguments(f, positions, tuple(fixed))
    return function, tuple(args[position] for position in positions)


def donation_vector(
    donate_argnums: Sequence[int],
    donate_argnames: Sequence[str],
    in_tree: PyTreeDef,
    kws: bool = True,
) -> tuple[bool, ...]:
    """Return per pytree leaf of the arguments whether its buffer is donated.

    Args:
      donate_argnums: positions of the donated arguments.
      donate_argnames: names of the donated keyword arguments.
      in_tree: the structure of (args, kwargs), or of only args.
      kws: whether the structure holds keyword arguments.
    """
    numbers = tree.tree_unflatten(in_tree, range(in_tree.num_leaves))
    args: PyTree = numbers[0] if kws else numbers
    kwargs: dict[str, PyTree] = numbers[1] if kws else {}
    donated: set[int] = set()
    for position in donate_argnums:
        if position < len(args):
            donated.update(tree.tree_leaves(args[position]))
    for name in donate_argnames:
        donated.update(tree.tree_leaves(kwargs.get(name)))
    return tuple(number in donated for number in range(in_tree.num_leaves))


def rebase_donate_argnums(
    donate_argnums: Sequence[int], static_argnums: Sequence[int]
) -> tuple[int, ...]:
    """Return the positions of donated arguments among the dynamic arguments of a call.

    Raises:
      ValueError: if an argument is both static and donated.
    """
    both = set(donate_argnums) & set(static_argnums)
    if both:
        raise ValueError(f"arguments {sorted(both)} cannot be both static and donated")
    return tuple(
        position - sum(static < position for static in static_argnums)
        for position in sorted(set(donate_argnums))
    )


def flatten_axes(
    name: str,
    treedef: PyTreeDef,
    axis_tree: object,
    *,
    kws: bool = False,
    tupled_args: bool = False,
) -> list[PyTree]:
    """Return the entries of a pytree prefix of axes, one per leaf of a structure.

    Args:
      name: the name of the prefix for users, such as "vmap in_axes".
      treedef: the structure.
      axis_tree: the prefix; None is an entry like any other.
      kws: ignored: whether the structure is that of (args, kwargs).
      tupled_args: whether the structure is that of a tuple of arguments, for error messages.

    Raises:
      ValueError: if `axis_tree` is not a prefix of the structure.
    """
    try:
        return flatten_prefix(name, treedef, axis_tree)
    except ValueError as error:
        if not tupled_args:
            raise
        raise ValueError(
            f"{error}\nNote that {name} that are non-trivial pytrees should always be wrapped in a "
            "tuple representing the argument list."
        ) from None


def debug_info(
    traced_for: str,
    fun: Function,
    args: Sequence[object],
    kwargs: dict[str, object],
    *,
    static_argnums: Sequence[int] = (),
    static_argnames: Sequence[str] = (),
    result_paths_thunk: Names = None,
    sourceinfo: str | None = None,
    signature: inspect.Signature | None = None,
) -> DebugInfo:
    """Return the debug info of a function to trace, for messages and HLO metadata.

    Args:
      traced_for: the transformation that traces it, such as "jit".
      fun: the user's function.
      args: the positional arguments of the call; their structure names the leaves.
      kwargs: the keyword arguments of the call.
      static_argnums: positions of static arguments.
      static_argnames: names of static arguments.
      result_paths_thunk: returns the names of the results as a tuple, after the function has run.
      sourceinfo: the name and source location of the function, if not those of `fun`.
      signature: the signature of the function, if not that of `fun`.
    """
    described: Any = fun
    if signature is not None:
        described = functools.wraps(fun)(lambda *args, **kwargs: None)
        described.__signature__ = signature  # pyrefly: ignore[missing-attribute]
    plan = ArgumentPlan(described, static_argnums or (), static_argnames or ())
    return DebugInfo(
        traced_for,
        functools.partial(source.describe_callable, fun) if sourceinfo is None else sourceinfo,
        plan.names(tuple(args), kwargs),
        result_paths_thunk,
    )


def safe_map(f: Function, *iterables: Iterable[object]) -> list[Value]:
    """Return the list of a function's results over iterables of equal lengths.

    Raises:
      ValueError: if the lengths differ.
    """
    return [f(*values) for values in zip(*iterables, strict=True)]
