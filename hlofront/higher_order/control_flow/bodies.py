"""Cached tracing of the functions of loops and branches, and checks of their carries."""

import weakref
from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any, Protocol, TypeVar

from hlofront.base import caches, source, tree
from hlofront.base.dtypes import lattice_result
from hlofront.base.elements import ExtendedDType
from hlofront.base.tree import PyTree, PyTreeDef
from hlofront.base.tree_nodes import KeyPath
from hlofront.base.tree_prefixes import prefix_errors
from hlofront.base.typing import ArrayLikes
from hlofront.bridge import state
from hlofront.core.aval import AbstractValue, Avals, ShapedArray
from hlofront.core.effects import Effects
from hlofront.core.jaxpr import DebugInfo
from hlofront.core.programs.check import types_match
from hlofront.core.trace import Tracer, current_trace
from hlofront.transforms.arguments import Signature
from hlofront.transforms.flatten import result_paths

# The tree definition of empty keyword arguments.
NO_KEYWORDS = tree.tree_structure({})


class HasConstants(Protocol):
    """A record of a traced function, with the values that the function closes over."""

    @property
    def consts(self) -> ArrayLikes: ...


Written = TypeVar("Written", bound=HasConstants)
# The records of each user function, by key. An entry is dropped with its function.
_tables: "weakref.WeakKeyDictionary[Callable[..., PyTree], caches.CacheTable]" = (
    weakref.WeakKeyDictionary()
)
# The maximum number of records per function; the oldest record is dropped first.
_MAX_RECORDS = 1024
_trace_context = state.trace_context


def written_once(
    function: Callable[..., PyTree], key: tuple[Hashable, ...], write: Callable[[], Written]
) -> Written:
    """Return the record that `write()` makes of a function, cached by the function and `key`.

    Functions are compared by `==` and hash, which for Python functions is identity. A record whose
    constants are tracers is valid only inside the function that is being traced, and is cached
    only until its trace ends.
    """
    try:
        table = _tables.get(function)
        if table is None:
            table = _tables.setdefault(function, caches.CacheTable())
    except TypeError:  # The function cannot be hashed or weakly referenced.
        table = caches.CacheTable()
    key = (*key, _trace_context())
    written: Written | None = table.get(key)
    if written is not None:
        return written
    enclosing: dict[Hashable, Any] = getattr(current_trace(), "programs_of", {})
    inner_key = (id(table), key)
    if inner_key in enclosing:
        return enclosing[inner_key][0]
    written = write()
    if any(isinstance(const, Tracer) for const in written.consts):
        # The entry keeps the table alive, so that its id is not reused.
        enclosing[inner_key] = (written, table)
    else:
        if len(table) >= _MAX_RECORDS:
            table.pop(next(iter(table)), None)
        table[key] = written
    return written


def debug_info_of(
    function: Callable[..., PyTree],
    purpose: str,
    args_tree: PyTreeDef,
    out_tree: Callable[[], PyTreeDef | None],
    first_argument: int = 0,
) -> DebugInfo:
    """Return the debug info of a function's program, without a reference to the function.

    Records that `written_once` caches for a function must not refer to the function, or neither
    would ever be freed.

    Args:
      function: the user's function.
      purpose: the operation that it is traced for, in messages.
      args_tree: the structure of the positional arguments of the program.
      out_tree: returns the structure of the results, once the function was traced.
      first_argument: the number of arguments of the program before those of the function.
    """
    try:
        reference: Callable[[], Callable[..., PyTree] | None] = weakref.ref(function)
    except TypeError:  # The function cannot be weakly referenced, so nothing is cached for it.
        reference = lambda: function

    def names() -> tuple[str, ...]:
        referent = reference()
        if referent is None:
            return ()
        args = tree.tree_unflatten(args_tree, range(args_tree.num_leaves))
        return Signature(referent).argument_names((args[first_argument:], {}))

    return DebugInfo(
        purpose, source.describe_callable(function), names, lambda: result_paths(out_tree())
    )


def refuse_effects(name: str, effects: Effects) -> None:
    """Raise an error if the function of a loop or branch has an effect that is not allowed there.

    Args:
      name: the operation, for the message.
      effects: the effects of the function's program.

    Raises:
      NotImplementedError: if an effect is not allowed.
    """
    refused = sorted(str(effect) for effect in effects if not effect.in_control_flow)
    if refused:
        raise NotImplementedError(  # JAX raises this class.
            f"Effects not supported in `{name}`: {', '.join(refused)}. Do this before or after it."
        )


# ---- carries -------------------------------------------------------------------------------------


def promoted_carry(first: Avals, returned: Avals) -> list[ShapedArray] | None:
    """Return the avals of a loop's first carry after promotion to the dtypes that its body returns.

    A weakly typed leaf takes the dtype that the body returns for it, if promotion gives that
    dtype. None is returned if no leaf is promoted.
    """
    expected = [
        before.update(dtype=after.dtype, weak_type=False) if _gives_way(before, after) else before
        for before, after in zip(first, returned, strict=True)
    ]
    return None if all(a is b for a, b in zip(expected, first, strict=True)) else expected


def _gives_way(before: AbstractValue, after: AbstractValue) -> bool:
    if not (isinstance(before, ShapedArray) and isinstance(after, ShapedArray)):
        return False
    if not before.weak_type or before.dtype == after.dtype:
        return False
    if isinstance(after.dtype, ExtendedDType):
        return False
    types = (before.dtype, True), (after.dtype, after.weak_type)
    return lattice_result(types)[0] == after.dtype


def carry_name(function: Callable[..., PyTree]) -> str:
    """Return the name of the argument of a loop's function that takes the carry."""
    names = Signature(function).positional_names()
    return names[0] if names else "carry"


def check_carry(
    what: str,
    name: Callable[[], str],
    in_tree: PyTreeDef,
    first: Avals,
    out_tree: PyTreeDef,
    returned: Avals,
) -> None:
    """Raise an error unless a loop's function returns a carry like the one that it takes.

    Args:
      what: the function, for the message: "scan body function".
      name: returns the function's own name for the carry.
      in_tree: the structure of the carry that the function takes.
      first: the avals of the leaves of the input carry.
      out_tree: the structure of the carry that the function returned.
      returned: the avals of the leaves of the returned carry.

    Raises:
      TypeError: if they differ in more than weak types.
    """
    if in_tree == out_tree and all(map(types_match, first, returned)):
        return
    body_name = name()
    if in_tree != out_tree:
        names = f"the given {body_name}", f"the returned {body_name}"
        differences = different_structures(in_tree, names[0], out_tree, names[1])
        raise TypeError(
            f"{what} must return a carry of the pytree structure that it is given, and it "
            f"returned another one:\n{bullets(differences)}\nReturn the same containers in the "
            "same order, or start with those that are returned."
        )
    differences = [
        _different_types(body_name + tree.keystr(path), before, after)
        for path, before, after in zip(_paths(in_tree), first, returned, strict=True)
        if not types_match(before, after)
    ]
    raise TypeError(
        f"{what} must have equal types for the carry that it is given and the carry that it "
        f"returns, as each step starts from what the last one returned:\n{bullets(differences)}"
    )


def bullets(lines: Sequence[str]) -> str:
    """Return lines of text formatted as a bulleted list, for messages."""
    return "\n".join(f"  * {line}" for line in lines)


def _paths(structure: PyTreeDef) -> list[KeyPath]:
    numbers = tree.tree_unflatten(structure, range(structure.num_leaves))
    return [path for path, _ in tree.tree_leaves_with_path(numbers)]


# Stands for each leaf when tree definitions are compared; messages print its type.
_LEAF: object = type("array", (), {"__module__": "builtins"})()


def different_structures(
    first: PyTreeDef, first_name: str, second: PyTreeDef, second_name: str
) -> list[str]:
    """Return sentences that describe the differences between two tree definitions.

    The names identify the trees in the sentences; the last word of a name begins the key paths.
    """
    trees = [
        tree.tree_unflatten(structure, [_LEAF] * structure.num_leaves)
        for structure in (first, second)
    ]
    # A leaf is a prefix of any pytree, so either tree may have more nodes.
    errors = prefix_errors(*trees, name=first_name, full_name=second_name)
    errors = errors or prefix_errors(*trees[::-1], name=second_name, full_name=first_name)
    return [str(error) for error in errors] or [
        f"{first_name} has {first}, and {second_name} has {second}"
    ]


def _different_types(path: str, before: AbstractValue, after: AbstractValue) -> str:
    text = f"{path} is given as {type_in_words(before)} and returned as {type_in_words(after)}"
    if not (isinstance(before, ShapedArray) and isinstance(after, ShapedArray)):
        return f"{text}: return what is given, or start with what is returned."
    if before.shape != after.shape:
        return (
            f"{text}, so the shapes differ: return an array of shape {before.shape}, or start with "
            f"one of shape {after.shape}."
        )
    if before.dtype == after.dtype and before.manual_axis_type is not after.manual_axis_type:
        missing = after.manual_axis_type.varying - before.manual_axis_type.varying
        return f"{text}, so the manual axis types differ: {cast_advice(missing)}."
    if before.dtype == after.dtype and before.split != after.split:
        return f"{text}, so they are split differently: {SPLIT_ADVICE}."
    if before.dtype == after.dtype and before.memory_space is not after.memory_space:
        return f"{text}, so they are in different memories: {MEMORY_ADVICE}."
    expected = before.dtype.name
    return (
        f"{text}, so the dtypes differ: return it as .astype({expected!r}), or start with a value "
        f"of dtype {after.dtype.name}."
    )


MEMORY_ADVICE = "move one to the device's by jax.device_put(x, jax.memory.Space.Device)"
SPLIT_ADVICE = "reshard one to the other's sharding by jax.sharding.reshard(x, jax.P(...))"


def cast_advice(axes: Collection[Hashable]) -> str:
    """Return advice for a value that does not vary along manual axes, but should."""
    if not axes:
        return "give both the same axes by jax.lax.pcast"
    listed = ", ".join(map(repr, sorted(axes, key=str)))
    return f"make what is given vary, by jax.lax.pcast(..., ({listed},), to='varying')"


def type_in_words(aval: AbstractValue) -> str:
    """Return the description of an aval for messages, including whether it is weakly typed."""
    weak = " (weakly typed, as Python's scalars are)" if getattr(aval, "weak_type", False) else ""
    return f"{aval.str_short()}{weak}"
