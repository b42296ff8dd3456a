"""The functions of loops and branches as programs: written down once, and what carries must be."""

import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from hlofront.base import caches, tree
from hlofront.bridge import state
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.check import types_match
from hlofront.core.effects import Effects
from hlofront.core.trace import Tracer, current_trace
from hlofront.primitives.converting import convert

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
    """What `write()` makes of a function, remembered by the function's identity and `key`.

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
        # The table too, so that no other gets its id.
        enclosing[inner_key] = (found, table)
    else:
        if len(table) >= _MOST_KEPT:
            table.pop(next(iter(table)), None)
        table[key] = found
    return found


def refuse_effects(name: str, effects: Effects) -> None:
    """Raise an error where the function of a loop or branch has an effect that may not be there."""
    refused = sorted(str(effect) for effect in effects if not effect.in_control_flow)
    if refused:
        raise NotImplementedError(  # the class that JAX raises
            f"Effects not supported in `{name}`: {', '.join(refused)}. Do this before or after it."
        )


# ---- carries -------------------------------------------------------------------------------------


def promoted_carry(given: Sequence[Any], returned: Sequence[Any]) -> list[Any] | None:
    """The types that a loop is to be started with, where they differ from those given.

    A scalar of Python is weakly typed: where the loop's function returns another dtype for it,
    such a value starts with that dtype. None where there is nothing of the kind.
    """
    wanted = [
        after.strip_weak_type() if _gives_way(before, after) else before
        for before, after in zip(given, returned, strict=True)
    ]
    return None if all(a is b for a, b in zip(wanted, given, strict=True)) else wanted


def _gives_way(before: Any, after: Any) -> bool:
    return (
        isinstance(before, ShapedArray)
        and isinstance(after, ShapedArray)
        and before.weak_type
        and before.shape == after.shape
        and before.dtype != after.dtype
        and _promotes(before.dtype, after.dtype)
    )
