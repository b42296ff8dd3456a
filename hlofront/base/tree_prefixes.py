"""Pytree prefixes, whose leaves stand for whole subtrees, and differences between pytrees."""

from collections.abc import Callable, Iterator, Sequence

from hlofront.base.named_tuple import NamedTuple
from hlofront.base.tree_nodes import (
    IsLeaf,
    IsLeafAtPath,
    KeyPath,
    PyTree,
    flatten_one_level_with_keys,
    keystr,
    raise_if_unsortable,
    short_text,
    type_name,
    with_path,
)
from hlofront.bridge.fast_parts import PyTreeDef, registry

_flatten = registry.flatten


class _Node(NamedTuple):
    """A root node of a pytree or structure: its class, static data and children."""

    kind: type
    data: PyTree
    children: Sequence[PyTree]


# A function that returns the root node of a pytree or structure, or None for a leaf.
_Look = Callable[[PyTree], _Node | None]


def is_none(value: object) -> bool:
    """Return whether a value is None: the `is_leaf` of pytrees in which None is a leaf."""
    return value is None


def broadcast_prefix(
    prefix_tree: object, full_tree: object, is_leaf: IsLeaf = None
) -> list[PyTree]:
    """Return the leaves of a pytree prefix, one for each leaf of a full pytree.

    Args:
      prefix_tree: the prefix, whose leaves stand for whole subtrees.
      full_tree: the full pytree.
      is_leaf: a predicate, called with nodes of `prefix_tree`; True makes the node a leaf.

    Raises:
      ValueError: if `prefix_tree` is not a prefix of `full_tree`; the message names the key path.
    """
    return _broadcast("broadcast_prefix", prefix_tree, full_tree, is_leaf)


def tree_broadcast(prefix_tree: object, full_tree: object, is_leaf: IsLeaf = None) -> PyTree:
    """Return a pytree with the structure of `full_tree` and the leaves of `prefix_tree` repeated.

    Args:
      prefix_tree: a pytree that is a prefix of `full_tree`.
      full_tree: the pytree whose structure the result has.
      is_leaf: a function of a node; where it returns True, the node is a leaf.

    Raises:
      ValueError: if `prefix_tree` is not a prefix of `full_tree`.

    Example:
      >>> jax.tree_util.tree_broadcast([1, 2], [(3, 4), 5])
      [(1, 1), 2]
    """
    leaves = _broadcast("tree_broadcast", prefix_tree, full_tree, is_leaf)
    return _flatten(full_tree)[1].unflatten(leaves)


def _broadcast(
    function: str, prefix_tree: object, full_tree: object, is_leaf: IsLeaf
) -> list[PyTree]:
    try:
        leaves, treedef = _flatten(prefix_tree, is_leaf)
    except ValueError as error:
        raise_if_unsortable(error, prefix_tree, with_path(is_leaf), "prefix_tree")
        raise
    try:
        subtrees = treedef.flatten_up_to(full_tree)
    except ValueError:
        names = "prefix_tree", "prefix_tree", "full_tree"
        raise_difference(function, prefix_tree, full_tree, with_path(is_leaf), *names)
        raise
    result: list[PyTree] = []
    for leaf, subtree in zip(leaves, subtrees):
        try:
            result += [leaf] * _flatten(subtree)[1].num_leaves
        except ValueError as error:
            raise_if_unsortable(error, full_tree, None, "full_tree")
            raise
    return result


def raise_difference(
    function: str,
    prefix: object,
    full: object,
    is_leaf: IsLeafAtPath,
    root: str,
    prefix_name: str,
    full_name: str,
) -> None:
    """Raise ValueError for the first difference that makes `prefix` not a prefix of `full`."""
    errors = _errors(prefix, full, _node_of_tree, is_leaf, root, prefix_name, full_name)
    if errors:
        raise ValueError(f"{function}: {errors[0]}") from None


def flatten_axes(
    name: str, treedef: PyTreeDef, axis_tree: object, *, is_leaf: Callable[[PyTree], bool] = is_none
) -> list[PyTree]:
    """Return the entries of a pytree prefix of axes, one for each leaf of a structure.

    Args:
      name: the name of `axis_tree` for users, such as "vmap in_axes"; its last word begins key
        paths in messages.
      treedef: the structure.
      axis_tree: the prefix; None is an entry like any other.
      is_leaf: a predicate, called with nodes of `axis_tree`; True makes the node an entry.

    Raises:
      ValueError: if `axis_tree` is not a prefix; the message names each key path.
    """
    entries, prefix = _flatten(axis_tree, is_leaf)
    if prefix.num_nodes == 1 and entries:
        return entries * treedef.num_leaves
    if prefix == treedef:
        return entries
    widths: list[int] = []
    if _append_widths(prefix, treedef, widths):
        result: list[PyTree] = []
        for entry, width in zip(entries, widths):
            result += [entry] * width
        return result
    root = name.rpartition(" ")[2]
    errors = _errors(
        axis_tree, treedef, _node_of_treedef, with_path(is_leaf), root, root, "the value"
    )
    raise ValueError(
        f"{name} specification must be a tree prefix of the corresponding value: one entry may "
        "stand for a whole subtree, and above it the containers must be the same.\n"
        + "".join(f"  {error}\n" for error in errors[:5])
        + f"Got {name} = {short_text(axis_tree)}\nfor a value of structure {treedef}"
    )


def _append_widths(prefix: PyTreeDef, full: PyTreeDef, widths: list[int]) -> bool:
    """Append the number of leaves of `full` per leaf of `prefix`; return False if it is not one.

    Both are structures: `full.unflatten` followed by `flatten_up_to` would be shorter, but would
    construct values of users' classes from objects that are not their children.
    """
    node = prefix.node_data()
    if node is None:
        widths.append(full.num_leaves)
        return True
    if node != full.node_data():
        return False
    children, others = prefix.children(), full.children()
    if len(children) != len(others):
        return False
    return all(_append_widths(*pair, widths) for pair in zip(children, others))


def prefix_errors(
    prefix_tree: object,
    full_tree: object,
    is_leaf: IsLeaf = None,
    *,
    name: str = "the prefix",
    full_name: str = "the full tree",
) -> list[ValueError]:
    """Return an error for each node that keeps `prefix_tree` from being a prefix of `full_tree`.

    The errors are not raised; an empty list means that `prefix_tree` is a prefix.

    Args:
      prefix_tree: the prefix, whose leaves stand for whole subtrees.
      full_tree: the full pytree.
      is_leaf: a predicate, called with nodes of `prefix_tree`; True makes the node a leaf.
      name: the name of the prefix in messages; its last word begins key paths.
      full_name: the name of the full pytree in messages.
    """
    root = name.rpartition(" ")[2]
    return _errors(prefix_tree, full_tree, _node_of_tree, with_path(is_leaf), root, name, full_name)


def _errors(
    prefix: object,
    full: object,
    look: _Look,
    is_leaf: IsLeafAtPath,
    root: str,
    prefix_name: str,
    full_name: str,
) -> list[ValueError]:
    return [
        ValueError(
            f"different {what} at key path {root}{keystr(path)}: {prefix_name} has {own}, "
            f"and {full_name} has {other}{advice}"
        )
        for path, what, own, other, advice in _differences(prefix, full, look, is_leaf, ())
    ]


def _node_of_tree(tree: object) -> _Node | None:
    """Return the root node of a pytree, or None for a leaf."""
    level = registry.flatten_one_level(tree)
    if level is None:
        return None
    kind = type(tree)
    # C++ returns a named tuple's class as its static data, but None for the node of a structure.
    return _Node(kind, None if level[1] is kind else level[1], list(level[0]))


def _node_of_treedef(treedef: PyTreeDef) -> _Node | None:
    """Return the root node of a structure, or None for a leaf."""
    node = treedef.node_data()
    if node is None:
        return None
    kind, data = node
    return _Node(kind, tuple(data) if kind is dict else data, treedef.children())


def _differences(
    prefix: object, full: object, look: _Look, is_leaf: IsLeafAtPath, path: KeyPath
) -> Iterator[tuple[KeyPath, str, str, str, str]]:
    """Yield where `prefix` is not a prefix: (path, what differs, own text, other's text, advice).

    `full` is a pytree or a structure, and `look` the function that returns its root node.
    """
    if is_leaf is not None and is_leaf(path, prefix):
        return
    node = _node_of_tree(prefix)
    if node is None:
        return
    other = look(full)
    kind, data, children = node
    if other is None or other.kind is not kind:
        if other is not None:
            text = _describe(other)
        else:
            text = "a leaf" + (f" of type {type_name(type(full))}" if look is _node_of_tree else "")
        yield path, "types", _describe(node), text, _advice_on_types(kind, other)
        return
    _, other_data, other_children = other
    if kind is dict and data != other_data:
        advice = ""
        for which, keys, others in (("first", data, other_data), ("second", other_data, data)):
            extra = [key for key in keys if key not in others]
            if extra:
                advice += f". Only the {which} has {short_text(extra)}"
        yield path, "keys", _describe(node), _describe(other), advice
    elif len(children) != len(other_children):
        yield path, "numbers of children", _describe(node), _describe(other), ""
    else:
        same, advice = _compare(data, other_data)
        if not same:
            own_text, other_text = (
                f"{_describe(side)}, static data {short_text(side.data)}" for side in (node, other)
            )
            yield path, "static data", own_text, other_text, advice
            return
        keys = [key for key, _ in flatten_one_level_with_keys(prefix)[0]]
        for key, child, full_child in zip(keys, children, other_children):
            yield from _differences(child, full_child, look, is_leaf, (*path, key))


def _advice_on_types(kind: type, other: _Node | None) -> str:
    if kind is type(None):
        return ". None is a tree without leaves; with is_leaf=lambda x: x is None it is a leaf"
    if other is not None and {kind, other.kind} == {tuple, list}:
        return ". Lists and tuples are different nodes: use the same in both"
    return ""


def _compare(data: object, other: object) -> tuple[bool, str]:
    """Return whether static data is equal, and advice if it cannot be compared."""
    try:
        return bool(data == other), ""
    except ValueError as error:
        return False, f". Static data must compare with == to one bool, but: {error}"


def _describe(node: _Node) -> str:
    kind, data, children = node
    if kind is dict:
        return f"a dict with the keys {short_text(list(data))}"
    if kind is type(None):
        return "None"
    if kind in (tuple, list):
        return f"a {kind.__name__} of {len(children)}"
    number = "1 child" if len(children) == 1 else f"{len(children)} children"
    return f"a node of type {type_name(kind)} with {number}"
