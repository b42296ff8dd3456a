"""Pytrees: flattening nested containers to leaves and a structure, and unflattening.

A pytree is a leaf or a node whose children are pytrees. Nodes are tuples, lists, dicts (children in
the order of their sorted keys), named tuples, `None` (a node without children), `OrderedDict`,
`defaultdict`, `Partial` and registered classes; any other object is a leaf. jaxlib's C++ does the
flattening; a function here costs little more than that call.
"""

import functools
from collections.abc import Callable, Iterable, Sequence

from hlofront.base.tree_nodes import DictKey as DictKey
from hlofront.base.tree_nodes import FlattenedIndexKey as FlattenedIndexKey
from hlofront.base.tree_nodes import GetAttrKey as GetAttrKey
from hlofront.base.tree_nodes import IsLeaf as IsLeaf
from hlofront.base.tree_nodes import IsLeafAtPath, raise_if_unsortable, with_path
from hlofront.base.tree_nodes import KeyEntry as KeyEntry
from hlofront.base.tree_nodes import KeyPath as KeyPath
from hlofront.base.tree_nodes import Partial as Partial
from hlofront.base.tree_nodes import PyTree as PyTree
from hlofront.base.tree_nodes import SequenceKey as SequenceKey
from hlofront.base.tree_nodes import flatten_one_level as flatten_one_level
from hlofront.base.tree_nodes import flatten_one_level_with_keys as flatten_one_level_with_keys
from hlofront.base.tree_nodes import is_tree_node as is_tree_node
from hlofront.base.tree_nodes import keystr as keystr
from hlofront.base.tree_nodes import register_dataclass as register_dataclass
from hlofront.base.tree_nodes import register_pytree_node as register_pytree_node
from hlofront.base.tree_nodes import register_pytree_node_class as register_pytree_node_class
from hlofront.base.tree_nodes import register_pytree_with_keys as register_pytree_with_keys
from hlofront.base.tree_nodes import (
    register_pytree_with_keys_class as register_pytree_with_keys_class,
)
from hlofront.base.tree_nodes import register_static as register_static
from hlofront.base.tree_nodes import static_field as static_field
from hlofront.base.tree_prefixes import broadcast_prefix as broadcast_prefix
from hlofront.base.tree_prefixes import flatten_axes as flatten_axes
from hlofront.base.tree_prefixes import is_none as is_none
from hlofront.base.tree_prefixes import prefix_errors as prefix_errors
from hlofront.base.tree_prefixes import raise_difference
from hlofront.base.tree_prefixes import tree_broadcast as tree_broadcast
from hlofront.bridge import fast_parts
from hlofront.bridge.fast_parts import PyTreeDef as PyTreeDef
from hlofront.bridge.fast_parts import registry as default_registry

_flatten = default_registry.flatten
_flatten_with_path = default_registry.flatten_with_path


class _Missing:
    """A default of parameters for which None is a valid value."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<not given>"


_MISSING = _Missing()


# Flattening and unflattening


def tree_flatten(tree: object, is_leaf: IsLeaf = None) -> tuple[list[PyTree], PyTreeDef]:
    """Return the leaves of a pytree, left to right, and its structure.

    Args:
      tree: the pytree.
      is_leaf: a predicate, called with each node from the root; True makes the node a leaf.

    Raises:
      ValueError: if the keys of a dict cannot be sorted.
    """
    try:
        return _flatten(tree, is_leaf)
    except ValueError as error:
        raise_if_unsortable(error, tree, with_path(is_leaf))
        raise


def tree_leaves(tree: object, is_leaf: IsLeaf = None) -> list[PyTree]:
    """Return the leaves of a pytree, left to right.

    Args:
      tree: any pytree.
      is_leaf: a function of a node; where it returns True, the node is a leaf.

    Example:
      >>> jax.tree_util.tree_leaves({"b": 1, "a": (2, None)})
      [2, 1]
    """
    try:
        return _flatten(tree, is_leaf)[0]
    except ValueError as error:
        raise_if_unsortable(error, tree, with_path(is_leaf))
        raise


def tree_structure(tree: object, is_leaf: IsLeaf = None) -> PyTreeDef:
    """Return the structure of a pytree, which `tree_unflatten` fills with leaves.

    Args:
      tree: any pytree.
      is_leaf: a function of a node; where it returns True, the node is a leaf.
    """
    try:
        return _flatten(tree, is_leaf)[1]
    except ValueError as error:
        raise_if_unsortable(error, tree, with_path(is_leaf))
        raise


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[PyTree]) -> PyTree:
    """Return the pytree of structure `treedef` with these leaves.

    Args:
      treedef: a structure, as returned by `tree_structure` or `tree_flatten`.
      leaves: the leaves, left to right; any values.

    Raises:
      ValueError: if the number of leaves is not `treedef.num_leaves`.
      AttributeError: if `treedef` is not a PyTreeDef.
    """
    try:
        return treedef.unflatten(leaves)
    except AttributeError:
        if hasattr(treedef, "unflatten"):
            raise
        raise AttributeError(
            f"tree_unflatten: the first argument must be a PyTreeDef, as tree_structure and "
            f"tree_flatten give, and is of type {type(treedef).__name__}. Is the order right? "
            "tree_unflatten(treedef, leaves)"
        ) from None


def all_leaves(iterable: Iterable[PyTree], is_leaf: IsLeaf = None) -> bool:
    """Return whether each element of an iterable is a leaf rather than a node of a pytree.

    Args:
      iterable: values, such as those of a list.
      is_leaf: a function of a node; where it returns True, the node is a leaf.
    """
    if is_leaf is None:
        return fast_parts.all_leaves(default_registry, iterable)
    for element in iterable:
        leaves = _flatten(element, is_leaf)[0]
        if not leaves or leaves[0] is not element:
            return False
    return True


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """Return the structures of the children of a structure's root; [] for a leaf.

    Args:
      treedef: a structure, as `tree_structure` returns it.

    Example:
      >>> jax.tree_util.treedef_children(jax.tree_util.tree_structure([1, (2, 3)]))
      [PyTreeDef(*), PyTreeDef((*, *))]
    """
    return treedef.children()


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Return whether a structure is a single node: a leaf, None, or an empty container.

    Args:
      treedef: a structure, as `tree_structure` returns it.
    """
    return treedef.num_nodes == 1


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """Return the structure of a tuple whose elements have the structures `treedefs`.

    Args:
      treedefs: structures, as `tree_structure` returns them.

    Raises:
      RuntimeError: if an element is not a PyTreeDef.
    """
    treedefs = list(treedefs)
    for position, treedef in enumerate[object](treedefs):
        if not isinstance(treedef, PyTreeDef):
            raise RuntimeError(
                f"treedef_tuple: element {position} must be a PyTreeDef, as tree_structure gives, "
                f"and is of type {type(treedef).__name__}"
            )
    return fast_parts.treedef_tuple(default_registry, treedefs)


# With paths


def tree_flatten_with_path(
    tree: object, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, PyTree]], PyTreeDef]:
    """Return the (path, leaf) pairs of a pytree, left to right, and its structure.

    A path is a tuple of keys from the root: `SequenceKey`, `DictKey`, `GetAttrKey`, the keys of a
    registered class, or `FlattenedIndexKey` if it has none.

    Args:
      tree: the pytree.
      is_leaf: a predicate, called with each node from the root; True makes the node a leaf.
      is_leaf_takes_path: whether it is called as `is_leaf(path, node)`.
    """
    predicate = is_leaf if is_leaf is None or is_leaf_takes_path else with_path(is_leaf)
    try:
        return _flatten_with_path(tree, predicate)
    except ValueError as error:
        raise_if_unsortable(error, tree, predicate)
        raise


def tree_leaves_with_path(
    tree: object, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath, PyTree]]:
    """Return the (path, leaf) pairs of a pytree, left to right.

    A path is a tuple of keys from the root: `SequenceKey`, `DictKey`, `GetAttrKey`, the keys of a
    registered class, or `FlattenedIndexKey` if it has none.

    Args:
      tree: the pytree.
      is_leaf: a predicate, called with each node from the root; True makes the node a leaf.
      is_leaf_takes_path: whether it is called as `is_leaf(path, node)`.
    """
    return tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def tree_map_with_path(
    f: Callable[..., object],
    tree: object,
    *rest: object,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> PyTree:
    """Return a pytree of `f(path, leaf, *further)`, in the structure of `tree`.

    Args:
      f: a function of a key path, a leaf of `tree`, and a value from each pytree of `rest`.
      tree: the pytree whose structure the result has.
      *rest: further pytrees; `tree` must be a prefix of each.
      is_leaf: a function of a node, after its path if `is_leaf_takes_path`; where it returns True,
        the node is a leaf.
      is_leaf_takes_path: whether `is_leaf` is called with the key path and the node.

    Raises:
      ValueError: if `tree` is not a prefix of a pytree of `rest`.

    Example:
      >>> jax.tree_util.tree_map_with_path(lambda path, x: (path[0].key, x + 1), {"a": 1})
      {'a': ('a', 2)}
    """
    pairs, treedef = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    if not rest:
        return treedef.unflatten([f(path, leaf) for path, leaf in pairs])
    predicate = is_leaf if is_leaf_takes_path else with_path(is_leaf)
    columns = _columns("tree_map_with_path", treedef, tree, rest, predicate)
    return treedef.unflatten([f(*pair, *further) for pair, *further in zip(pairs, *columns)])


# Over the leaves


def tree_map(
    f: Callable[..., object], tree: object, *rest: object, is_leaf: IsLeaf = None
) -> PyTree:
    """Return a pytree of `f(leaf, *further)`, in the structure of `tree`.

    Args:
      f: a function of a leaf of `tree`, and a subtree of each of `rest`.
      tree: the pytree.
      rest: further pytrees; `tree` must be a prefix of each, and `f` receives whole subtrees for
        its leaves.
      is_leaf: a predicate, called only with nodes of `tree`; True makes the node a leaf.

    Raises:
      ValueError: if structures differ; the message names the key path.
    """
    try:
        leaves, treedef = _flatten(tree, is_leaf)
    except ValueError as error:
        raise_if_unsortable(error, tree, with_path(is_leaf))
        raise
    if not rest:
        return treedef.unflatten([f(leaf) for leaf in leaves])
    columns = _columns("tree_map", treedef, tree, rest, with_path(is_leaf))
    # A list, not an iterator: C++ would mistake a StopIteration from `f` for the end of the leaves.
    return treedef.unflatten([f(*row) for row in zip(leaves, *columns)])


def _columns(
    function: str,
    treedef: PyTreeDef,
    tree: object,
    rest: Sequence[object],
    is_leaf: IsLeafAtPath,
) -> list[list[PyTree]]:
    """Return, for each tree of `rest`, its subtrees where `tree` has leaves.

    Args:
      function: the name of the caller, for errors.
      treedef: the structure of `tree`.
      tree: the tree that must be a prefix of the others.
      rest: the other trees.
      is_leaf: the caller's predicate for leaves of `tree`, for errors.

    Raises:
      ValueError: if `tree` is not a prefix of each of them.
    """
    try:
        return [treedef.flatten_up_to(other) for other in rest]
    except ValueError:
        for position, other in enumerate(rest, start=2):
            names = "tree", "the first tree", f"tree {position}"
            raise_difference(function, tree, other, is_leaf, *names)
        raise


def tree_reduce(
    function: Callable[[PyTree, PyTree], PyTree],
    tree: object,
    initializer: PyTree = _MISSING,
    is_leaf: IsLeaf = None,
) -> PyTree:
    """Reduce the leaves of a pytree from the left: `function(function(first, second), third)`.

    Args:
      function: a function of two values.
      tree: the pytree.
      initializer: the value to start with, if any.
      is_leaf: a predicate, called with each node; True makes the node a leaf.

    Raises:
      TypeError: if the tree has no leaves and there is no `initializer`.
    """
    leaves = tree_leaves(tree, is_leaf)
    if initializer is not _MISSING:
        return functools.reduce(function, leaves, initializer)
    if not leaves:
        raise TypeError("tree_reduce: a tree without leaves has no value; give an initializer")
    return functools.reduce(function, leaves)


def tree_reduce_associative(
    operation: Callable[[PyTree, PyTree], PyTree],
    tree: object,
    *,
    identity: PyTree = _MISSING,
    is_leaf: IsLeaf = None,
) -> PyTree:
    """Reduce a pytree's leaves by an associative `operation`, in order, as a balanced binary tree.

    Args:
      operation: an associative function of two values.
      tree: any pytree.
      identity: the result for a tree without leaves.
      is_leaf: a function of a node; where it returns True, the node is a leaf.

    Raises:
      TypeError: if the tree has no leaves and there is no `identity`.

    Example:
      >>> jax.tree_util.tree_reduce_associative(lambda a, b: f"({a}{b})", [1, 2, 3, 4])
      '((12)(34))'
    """
    leaves = tree_leaves(tree, is_leaf)
    if leaves:
        return _by_halves(operation, leaves, 0, len(leaves))
    if identity is _MISSING:
        raise TypeError(
            "tree_reduce_associative: a tree without leaves has no value; give identity="
        )
    return identity


def _by_halves(
    operation: Callable[[PyTree, PyTree], PyTree], leaves: list[PyTree], start: int, stop: int
) -> PyTree:
    if stop - start == 1:
        return leaves[start]
    middle = (start + stop) // 2
    left = _by_halves(operation, leaves, start, middle)
    return operation(left, _by_halves(operation, leaves, middle, stop))


def tree_all(tree: object, *, is_leaf: IsLeaf = None) -> bool:
    """Return whether every leaf of a pytree is true; True if there are no leaves.

    Args:
      tree: a pytree whose leaves have a truth value.
      is_leaf: a function of a node; where it returns True, the node is a leaf.
    """
    return all(tree_leaves(tree, is_leaf))


def tree_transpose(
    outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: object
) -> PyTree:
    """Transpose a pytree of structure inner-in-outer to outer-in-inner.

    `[{"a": 1}, {"a": 2}]`, a list of dicts, becomes `{"a": [1, 2]}`.

    Args:
      outer_treedef: the structure of the outer pytree.
      inner_treedef: the structure of its subtrees; None for that of the first subtree.
      pytree_to_transpose: the pytree.

    Raises:
      TypeError: if the pytree does not have these structures.
    """
    try:
        subtrees = outer_treedef.flatten_up_to(pytree_to_transpose)
    except ValueError as error:
        raise _not_composed(outer_treedef, inner_treedef, pytree_to_transpose) from error
    if inner_treedef is None:
        if not subtrees:
            raise IndexError(
                "tree_transpose: the outer structure has no leaves, so there is no subtree to read "
                "the inner structure from; give inner_treedef"
            )
        inner_treedef = tree_structure(subtrees[0])
    rows = [tree_leaves(subtree) for subtree in subtrees]
    # Only the number of leaves must agree below the outer structure, as in JAX: subtrees may differ
    # in their static data.
    width = inner_treedef.num_leaves
    if any(len(row) != width for row in rows):
        raise _not_composed(outer_treedef, inner_treedef, pytree_to_transpose)
    columns = ([row[position] for row in rows] for position in range(width))
    return inner_treedef.unflatten([outer_treedef.unflatten(column) for column in columns])


def _not_composed(
    outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, tree: object
) -> TypeError:
    expected = outer_treedef if inner_treedef is None else outer_treedef.compose(inner_treedef)
    return TypeError(
        "tree_transpose: the tree does not consist of inner structures in an outer one:\n"
        f"  expected {expected}\n"
        f"  got      {tree_structure(tree)}"
    )
