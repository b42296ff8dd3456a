"""The functions of loops and branches as programs: written down once, and what carries must be."""

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from hlofront.base import caches, tree
from hlofront.base.dtypes import ExtendedDType, lattice_result
from hlofront.base.tree_prefixes import prefix_errors
from hlofront.bridge import state
from hlofront.core.aval import ShapedArray
from hlofront.core.check import types_match
from hlofront.core.effects import Effects
from hlofront.core.trace import Tracer, current_trace
from hlofront.transforms.flatten import Signature

# Per function of a user what was written down of it. An entry goes when its function does.
_tables: "weakref.WeakKeyDictionary[Any, dict[Any, Any]]" = weakref.WeakKeyDictionary()
# Each function keeps this many programs; the oldest goes where its arguments are ever new.
_MOST_KEPT = 1024
_trace_context = state.trace_context


@caches.on_clear
def _forget() -> None:
    for table in list(_tables.values()):
        table.clear()


def written_once(function: Any, key: tuple[Any, ...], write: Callable[[], Any]) -> Any:
    """Return what `write()` makes of a function, remembered by the function's identity and `key`.

    What it makes has `consts`, the values that the function closes over. Where traced values are
    among them it is of use only inside the function that they belong to, and kept as long.
    """
    try:
        table = _tables.setdefault(function, {})
    except TypeError:  # It cannot be hashed or referred to weakly.
        table = {}
    key = (*key, _trace_context())
    found = table.get(key)
    if found is not None:
        return found
    enclosing: dict[Any, Any] = getattr(current_trace(), "programs_of", {})
    inner_key = (id(table), key)
    if inner_key in enclosing:
        return enclosing[inner_key][0]
    found = write()
    if any(isinstance(const, Tracer) for const in found.consts):
        # With the table, so that no other gets its id.
        enclosing[inner_key] = (found, table)
    else:
        if len(table) >= _MOST_KEPT:
            table.pop(next(iter(table)), None)
        table[key] = found
    return found


def held_weakly(function: Any) -> Callable[[], Any]:
    """A reference to a function that does not keep it alive, where there can be one.

    What is remembered for a function by `written_once` must not, or neither would ever go.
    """
    try:
        return weakref.ref(function)
    except TypeError:  # Then nothing is remembered for it.
        return lambda: function


def refuse_effects(name: str, effects: Effects) -> None:
    """Raise an error where the function of a loop or branch has an effect that may not be there."""
    refused = sorted(str(effect) for effect in effects if not effect.in_control_flow)
    if refused:
        raise NotImplementedError(  # the class that JAX raises
            f"Effects not supported in `{name}`: {', '.join(refused)}. Do this before or after it."
        )


# ---- carries -------------------------------------------------------------------------------------


def promoted_carry(given: Sequence[Any], returned: Sequence[Any]) -> list[Any] | None:
    """The types that a loop is to start with instead of those given.

    A scalar of Python is weakly typed: where the loop's function returns a dtype that such a value
    gives way to, it starts with that dtype. None where there is nothing of the kind.
    """
    wanted = [
        before.update(dtype=after.dtype, weak_type=False) if _gives_way(before, after) else before
        for before, after in zip(given, returned, strict=True)
    ]
    return None if all(a is b for a, b in zip(wanted, given, strict=True)) else wanted


def _gives_way(before: Any, after: Any) -> bool:
    if not (isinstance(before, ShapedArray) and isinstance(after, ShapedArray)):
        return False
    if not before.weak_type or before.dtype == after.dtype:
        return False
    if isinstance(after.dtype, ExtendedDType):
        return False
    types = (before.dtype, True), (after.dtype, after.weak_type)
    return lattice_result(types)[0] == after.dtype


def carry_name(function: Any, position: int = 0) -> str:
    """What the function of a loop calls its carry."""
    names = Signature(function).positional_names()
    return names[position] if position < len(names) else "carry"


def check_carry(
    what: str,
    name: str | Callable[[], str],
    in_tree: Any,
    given: Sequence[Any],
    out_tree: Any,
    returned: Sequence[Any],
) -> None:
    """Raise an error unless a loop's function returns the structure and types that it was given.

    Args:
      what: the function, for the message: "scan body function".
      name: what it calls the carry, or a function that finds it.
      in_tree, given: the structure of the carry, and the types of its leaves.
      out_tree, returned: those of what the function returned for it.

    Raises:
      TypeError: if they differ in more than weak types; it says where, in what, and what to do.
    """
    if in_tree == out_tree and all(map(types_match, given, returned)):
        return
    name = name if isinstance(name, str) else name()
    if in_tree != out_tree:
        names = f"the given {name}", f"the returned {name}"
        places = different_structures(in_tree, names[0], out_tree, names[1])
        raise TypeError(
            f"{what} must return a carry of the pytree structure that it is given, and it "
            f"returned another one:\n{_listed(places)}\nReturn the same containers in the same "
            "order, or start with those that are returned."
        )
    paths = [path for path, _ in _numbered(in_tree)]
    places = [
        _different_types(name + tree.keystr(path), before, after)
        for path, before, after in zip(paths, given, returned, strict=True)
        if not types_match(before, after)
    ]
    raise TypeError(
        f"{what} must have equal types for the carry that it is given and the carry that it "
        f"returns, as each step starts from what the last one returned:\n{_listed(places)}"
    )


def _listed(places: Sequence[str]) -> str:
    return "\n".join(f"  * {place}" for place in places)


def _numbered(structure: Any) -> Sequence[Any]:
    numbers = tree.tree_unflatten(structure, range(structure.num_leaves))
    return tree.tree_leaves_with_path(numbers)


# Stands for a value where structures are compared: messages give its type.
_LEAF = type("array", (), {"__module__": "builtins"})()


def different_structures(first: Any, first_name: str, second: Any, second_name: str) -> list[str]:
    """Say where two structures differ, in sentences that call them by these names.

    The last word of a name begins the key paths.
    """
    trees = [
        tree.tree_unflatten(structure, [_LEAF] * structure.num_leaves)
        for structure in (first, second)
    ]
    # A leaf is a prefix of anything, so each may have more than the other.
    errors = prefix_errors(*trees, name=first_name, full_name=second_name)
    errors = errors or prefix_errors(*trees[::-1], name=second_name, full_name=first_name)
    return [str(error) for error in errors] or [
        f"{first_name} has {first}, and {second_name} has {second}"
    ]


def _different_types(where: str, before: Any, after: Any) -> str:
    text = f"{where} is given as {_type(before)} and returned as {_type(after)}"
    if not (isinstance(before, ShapedArray) and isinstance(after, ShapedArray)):
        return f"{text}: return what is given, or start with what is returned."
    if before.shape != after.shape:
        return (
            f"{text}, so the shapes differ: return an array of shape {before.shape}, or start with "
            f"one of shape {after.shape}."
        )
    wanted = before.dtype.name
    return (
        f"{text}, so the dtypes differ: return it as .astype({wanted!r}), or start with a value of "
        f"dtype {after.dtype.name}."
    )


def _type(aval: Any) -> str:
    weak = " (weakly typed, as Python's scalars are)" if getattr(aval, "weak_type", False) else ""
    return f"{aval.str_short()}{weak}"
