"""Pytree nodes: classes that are containers, the keys of their children, and registration."""

import collections
import dataclasses
import functools
import operator
import reprlib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Self, TypeVar, cast

from hlofront.bridge.fast_parts import DictKey as DictKey
from hlofront.bridge.fast_parts import (
    FlattenedIndexKey,
    GetAttrKey,
    SequenceKey,
    register_dataclass_node,
    register_node,
)
from hlofront.bridge.fast_parts import registry as default_registry

# A pytree, or a part of one: containers and leaves of any type.
PyTree = Any
KeyEntry = TypeVar("KeyEntry", bound=Hashable)
# A path into a pytree from its root; keys may be of any hashable class.
KeyPath = tuple[Any, ...]
IsLeaf = Callable[[PyTree], bool] | None
# A predicate of a key path and a node; with None there are no additional leaves.
IsLeafAtPath = Callable[[KeyPath, PyTree], bool] | None
# The children of a node and its static data, which is hashable.
Level = tuple[Iterable[PyTree], Hashable]
# The pairs (key, child) of a node and its static data.
KeyedLevel = tuple[Iterable[tuple[Hashable, PyTree]], Hashable]
Class = TypeVar("Class", bound=type[Any])
Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


# One level


def is_tree_node(typ: type) -> bool:
    """Return whether values of exactly this type are pytree nodes rather than leaves.

    Args:
      typ: a class; its subclasses are looked up separately.
    """
    return default_registry.is_node(typ)


def flatten_one_level(tree: object) -> Level:
    """Return the children of a pytree's root node, and its static data.

    Args:
      tree: a node, such as a list or a value of a registered class.

    Returns:
      (children, static): the children, and the other data of the node: the keys of a dict, None for
      a list.

    Raises:
      ValueError: if the tree is a leaf.
    """
    level = default_registry.flatten_one_level(tree)
    if level is None:
        raise _no_children("flatten_one_level", tree)
    return level


def flatten_one_level_with_keys(tree: object) -> KeyedLevel:
    """Return the (key, child) pairs of a pytree's root node, and its static data.

    Args:
      tree: a node, such as a list or a value of a registered class.

    Returns:
      ((key, child) pairs, static): keys such as DictKey, and the node's data other than its
      children.

    Raises:
      ValueError: if the tree is a leaf.
    """
    level = keyed_children(tree)
    if level is None:
        raise _no_children("flatten_one_level_with_keys", tree)
    return level


def keyed_children(tree: object) -> KeyedLevel | None:
    """Return (key, child) pairs of a pytree's root node and its static data; None for a leaf."""
    level = default_registry.flatten_one_level_with_keys(tree)
    # jaxlib names every child of a named tuple after the first field (0.10.2 to 0.12).
    fields: Iterable[str] | None = getattr(tree, "_fields", None)
    if level is not None and level[1] is type(tree) and fields is not None:
        keys = map(GetAttrKey, fields)
        return [(key, child) for key, (_, child) in zip(keys, level[0])], level[1]
    return level


def with_path(is_leaf: IsLeaf) -> IsLeafAtPath:
    """Return the predicate `is_leaf(node)` as a predicate of `(path, node)`; None stays None."""
    return None if is_leaf is None else lambda _, node: is_leaf(node)


def raise_if_unsortable(
    error: ValueError,
    tree: object,
    is_leaf: IsLeafAtPath,
    root: str = "tree",
) -> None:
    """If `error` is C++'s error for dict keys that cannot be sorted, raise one that names the dict.

    For any other `error` it returns, and the caller raises that again.
    """
    if "sorting pytree dictionary keys" not in str(error):
        return
    unsortable = _unsortable(tree, is_leaf, ())
    if unsortable is None:
        return
    path, keys = unsortable
    raise ValueError(
        f"the keys of the dict at {root}{keystr(path)} cannot be sorted, and a pytree needs their "
        f"order for its leaves: {short_text(keys)}. Use keys of one type that can be compared with "
        "<, or a collections.OrderedDict, which keeps its own order"
    ) from error.__cause__


def _unsortable(
    tree: object, is_leaf: IsLeafAtPath, path: KeyPath
) -> tuple[KeyPath, list[Hashable]] | None:
    """Return path and keys of the first dict in a pytree with unsortable keys, or None."""
    if is_leaf is not None and is_leaf(path, tree):
        return None
    pairs: Iterable[tuple[Hashable, PyTree]]
    if type(tree) is dict:
        mapping = cast(dict[Any, PyTree], tree)
        try:
            pairs = [(DictKey(key), mapping[key]) for key in sorted(mapping)]
        except TypeError:
            return path, list(mapping)
    else:
        level = keyed_children(tree)
        if level is None:
            return None
        pairs = level[0]
    for key, child in pairs:
        unsortable = _unsortable(child, is_leaf, (*path, key))
        if unsortable is not None:
            return unsortable
    return None


def _no_children(function: str, tree: object) -> ValueError:
    return ValueError(
        f"{function}: a value of type {type_name(type(tree))} is a leaf, so it has no children: "
        "give a container, or register the type with register_pytree_node"
    )


_FIELD_OF_KEY: dict[type, str] = {
    SequenceKey: "idx",
    DictKey: "key",
    GetAttrKey: "name",
    FlattenedIndexKey: "key",
}


def keystr(keys: KeyPath, *, simple: bool = False, separator: str = "") -> str:
    """Return a key path as text, in the syntax of indexing.

    Args:
      keys: a key path, as returned by `tree_flatten_with_path`.
      simple: whether keys are bare, without brackets, quotes and dots.
      separator: the text between two keys.

    Example:
      >>> (path, leaf), = jax.tree_util.tree_leaves_with_path({"a": [1]})
      >>> jax.tree_util.keystr(path), jax.tree_util.keystr(path, simple=True, separator="/")
      ("['a'][0]", 'a/0')
    """
    if not simple:
        return separator.join(map(str, keys))
    kinds: Iterable[type] = map(type, keys)
    fields = ((key, _FIELD_OF_KEY.get(kind)) for key, kind in zip(keys, kinds))
    return separator.join(str(getattr(key, field) if field else key) for key, field in fields)


# Registering classes as nodes


def register_pytree_node(
    nodetype: type,
    flatten_func: Callable[[Any], Level],
    unflatten_func: Callable[[Any, Any], object],
    flatten_with_keys_func: Callable[[Any], KeyedLevel] | None = None,
) -> None:
    """Register a class as a pytree node; subclasses are not included.

    Args:
      nodetype: the class.
      flatten_func: returns (children, static) of a value. `static` must be hashable and have
        `==`, because it is part of the structure, by which programs are cached.
      unflatten_func: `unflatten_func(static, children)` returns a value; children may be any
        objects, such as placeholders, so it must not inspect them.
      flatten_with_keys_func: returns ((key, child) pairs, static) of a value, for key paths.

    Raises:
      ValueError: if the class is already a node.
    """
    _check_class("register_pytree_node", nodetype)
    register_node(nodetype, flatten_func, unflatten_func, flatten_with_keys_func)


def register_pytree_with_keys(
    nodetype: type,
    flatten_with_keys: Callable[[Any], KeyedLevel],
    unflatten_func: Callable[[Any, Any], object],
    flatten_func: Callable[[Any], Level] | None = None,
) -> None:
    """Register a class as a pytree node whose children have keys.

    Args:
      nodetype: the class.
      flatten_with_keys: returns ((key, child) pairs, static) of a value. Keys are objects with
        `str`, usually `GetAttrKey`, `DictKey` and `SequenceKey`.
      unflatten_func: `unflatten_func(static, children)` returns a value.
      flatten_func: returns (children, static) of a value; faster when keys are not needed.
    """

    def without_keys(value: object) -> Level:
        pairs, static = flatten_with_keys(value)
        return [child for _, child in pairs], static

    _check_class("register_pytree_with_keys", nodetype)
    register_node(nodetype, flatten_func or without_keys, unflatten_func, flatten_with_keys)


def register_pytree_node_class(cls: Class) -> Class:
    """Register a class as a pytree node by its methods; a decorator.

    Args:
      cls: a class whose method `tree_flatten(self)` returns `(children, static)`, and whose class
        method `tree_unflatten(cls, static, children)` returns a value; see `register_pytree_node`.

    Returns:
      The class itself, so that the function is a decorator.

    Raises:
      AttributeError: if the class lacks a method.
      ValueError: if the class is already registered.
    """
    _check_methods("register_pytree_node_class", cls, "tree_flatten")
    flatten = operator.methodcaller("tree_flatten")
    register_pytree_node(cls, flatten, cls.tree_unflatten)  # pyrefly: ignore[missing-attribute]
    return cls


def register_pytree_with_keys_class(cls: Class) -> Class:
    """Register a class as a pytree node with keys by its methods; a decorator.

    Args:
      cls: a class whose method `tree_flatten_with_keys(self)` returns `((key, child) pairs,
        static)`, and whose class method `tree_unflatten(cls, static, children)` returns a value. An
        optional method `tree_flatten` is used where keys are not needed; see
        `register_pytree_with_keys`.

    Returns:
      The class itself, so that the function is a decorator.

    Raises:
      AttributeError: if the class lacks a method.
      ValueError: if the class is already registered.
    """
    _check_methods("register_pytree_with_keys_class", cls, "tree_flatten_with_keys")
    flatten = operator.methodcaller("tree_flatten") if hasattr(cls, "tree_flatten") else None
    flatten_with_keys = operator.methodcaller("tree_flatten_with_keys")
    # pyrefly: ignore[missing-attribute]
    register_pytree_with_keys(cls, flatten_with_keys, cls.tree_unflatten, flatten)
    return cls


def register_static(cls: Class) -> Class:
    """Register a class as a pytree node whose values have no children; a decorator.

    Args:
      cls: a class whose values are hashable and have `==`, because they are part of the structure:
        `jit` compiles for each different value.

    Returns:
      The class itself, so that the function is a decorator.

    Raises:
      ValueError: if the class is already registered.
    """
    _check_class("register_static", cls)

    def flatten(value: Hashable) -> KeyedLevel:
        return (), value

    def unflatten(value: Hashable, _: object) -> Hashable:
        return value

    register_node(cls, flatten, unflatten, flatten)
    return cls


def register_dataclass(
    nodetype: Class,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> Class:
    """Register a dataclass, or a class with keywords for its fields, as a pytree node.

    Without lists, the fields of a dataclass with metadata `static=True` are static (see
    `static_field`), and the others are children. Returns `nodetype`, so that it can be a decorator.

    Args:
      nodetype: the class.
      data_fields: the fields that are children, in order.
      meta_fields: the static fields, whose values must be hashable and have `==`.
      drop_fields: fields to leave out, which unflattening sets to their defaults.

    Raises:
      ValueError: if the lists are not exactly the fields that `__init__` takes, or the class is
        already a node.
      TypeError: if a list is required but missing.
    """
    _check_class("register_dataclass", nodetype)
    is_dataclass = dataclasses.is_dataclass(nodetype)
    if (data_fields is None) != (meta_fields is None):
        raise TypeError(
            "register_dataclass: give data_fields and meta_fields together, or neither; got "
            f"data_fields={data_fields!r} and meta_fields={meta_fields!r}"
        )
    dropped = set(drop_fields)
    if data_fields is None or meta_fields is None:
        if not is_dataclass:
            raise TypeError(
                f"register_dataclass: {type_name(nodetype)} is not a dataclass, so its fields are "
                "not known: give data_fields and meta_fields"
            )
        fields = [field for field in dataclasses.fields(nodetype) if field.name not in dropped]
        static = [bool(field.metadata.get("static", False)) for field in fields]
        data_fields = [field.name for field, fixed in zip(fields, static) if not fixed]
        meta_fields = [field.name for field, fixed in zip(fields, static) if fixed]
    both = sorted(set(data_fields) & set(meta_fields))
    if both:
        raise ValueError(
            f"register_dataclass: a field is data or static, not both: {', '.join(both)}"
        )
    if is_dataclass:
        expected = {field.name for field in dataclasses.fields(nodetype) if field.init} - dropped
        chosen_fields = {*data_fields, *meta_fields}
        if chosen_fields != expected:
            raise ValueError(
                _wrong_fields(nodetype, sorted(expected - chosen_fields), chosen_fields - expected)
            )
    register_dataclass_node(nodetype, list(data_fields), list(meta_fields))
    return nodetype


def _wrong_fields(nodetype: type, missing: Sequence[str], unexpected: Iterable[str]) -> str:
    lines = [
        f"register_dataclass: data_fields and meta_fields must be the fields that the __init__ of "
        f"{type_name(nodetype)} takes, each once"
    ]
    if missing:
        lines.append(f"  missing: {', '.join(missing)} (or give them as drop_fields)")
    known = {field.name: field for field in dataclasses.fields(nodetype)}
    for name in sorted(unexpected):
        why = "is given as one of drop_fields too"
        if name not in known:
            why = "is not a field"
        elif not known[name].init:
            why = "has init=False, so it cannot be set again: give it as one of drop_fields"
        lines.append(f"  unexpected: {name} {why}")
    return "\n".join(lines)


def static_field(**kwargs: Any) -> Any:
    """Return a dataclass field that `register_dataclass` treats as static.

    Args:
      **kwargs: arguments of `dataclasses.field`; `static=True` is added to its `metadata`.
    """
    metadata: Mapping[str, object] = kwargs.pop("metadata", None) or {}
    return dataclasses.field(metadata={"static": True, **metadata}, **kwargs)


def _check_class(function: str, nodetype: object) -> None:
    if not isinstance(nodetype, type):
        raise TypeError(
            f"{function}: the first argument must be a class, and is {short_text(nodetype)}, a "
            f"value of type {type_name(type(nodetype))}"
        )


def _check_methods(function: str, cls: type, flatten_name: str) -> None:
    for name in (flatten_name, "tree_unflatten"):
        if not hasattr(cls, name):
            raise AttributeError(
                f"{function}: class {type_name(cls)} has no method {name}; it needs "
                f"{flatten_name}(self) and the class method tree_unflatten(cls, static, children)"
            )


# Nodes that C++ lacks


class Partial(functools.partial[Any]):
    """A `functools.partial` that is a pytree: its arguments are children, its function is static.

    A function with bound arrays can thus be an argument or a result of `jit`, `grad` or `vmap`. Two
    partials have equal structures if their functions and the structures of their arguments are
    equal.
    """

    def __new__(cls, func: Callable[..., Any], *args: Any, **kw: Any) -> Self:
        # functools.partial merges a partial of a partial, and the inner one's arguments would
        # become children, but the whole function is to be static.
        if isinstance(func, functools.partial):
            func = _Whole(func)  # pyright: ignore[reportUnknownArgumentType]
        return super().__new__(cls, func, *args, **kw)


class _Whole:
    """A wrapper of a partial that another partial does not merge, equal to the partial."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[..., Any]):
        self.function = function

    def __call__(self, *args: object, **kwargs: object) -> Any:
        return self.function(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return self.function == (other.function if type(other) is _Whole else other)

    def __hash__(self) -> int:
        return hash(self.function)

    def __repr__(self) -> str:
        return repr(self.function)


register_pytree_node(
    Partial,
    lambda partial: ((partial.args, partial.keywords), partial.func),
    lambda function, children: Partial(function, *children[0], **children[1]),
)


def _keys_and_values(
    mapping: Mapping[Key, Value], keys: Iterable[Key]
) -> list[tuple[DictKey, Value]]:
    return [(DictKey(key), mapping[key]) for key in keys]


register_pytree_with_keys(
    collections.OrderedDict,
    lambda mapping: (_keys_and_values(mapping, mapping), tuple(mapping)),
    lambda keys, values: collections.OrderedDict(zip(keys, values)),
    lambda mapping: (list(mapping.values()), tuple(mapping)),
)


def _flatten_defaultdict(mapping: collections.defaultdict[Any, PyTree]) -> Level:
    keys = sorted(mapping)
    return [mapping[key] for key in keys], (mapping.default_factory, tuple(keys))


def _flatten_defaultdict_with_keys(mapping: collections.defaultdict[Any, PyTree]) -> KeyedLevel:
    keys = sorted(mapping)
    return _keys_and_values(mapping, keys), (mapping.default_factory, tuple(keys))


register_pytree_with_keys(
    collections.defaultdict,
    _flatten_defaultdict_with_keys,
    lambda static, values: collections.defaultdict(static[0], zip(static[1], values)),
    _flatten_defaultdict,
)


# For messages


def type_name(kind: type) -> str:
    """Return the qualified name of a class, without the module if it is builtins."""
    module = kind.__module__
    return kind.__qualname__ if module == "builtins" else f"{module}.{kind.__qualname__}"


class _Short(reprlib.Repr):
    def __init__(self):
        super().__init__()
        self.maxstring = self.maxother = 100
        self.maxdict = self.maxlist = self.maxtuple = 8


short_text = _Short().repr  # Like repr, but shows at most 8 elements and 100 characters.
