"""Structures of pytrees as JSON, and the registration of users' containers for serialization."""

import collections
import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from hlofront.base.named_tuple import NamedTuple
from hlofront.base.tree import PyTreeDef, is_tree_node, tree_structure
from hlofront.bridge import fast_parts

Container = TypeVar("Container", bound=type[Any])
# The static data of a node, of any type.
StaticData = Any
FromChildren = Callable[[StaticData, Sequence[Any]], Any]


class _Registered(NamedTuple):
    """A class of containers with its name in serialized structures, and how to read them."""

    nodetype: type[Any]
    name: str
    serialize: Callable[[StaticData], bytes]
    deserialize: Callable[[bytes], StaticData]
    from_children: FromChildren | None


_by_type: dict[type[Any], _Registered] = {}
_by_name: dict[str, _Registered] = {}


def register_pytree_node_serialization(
    nodetype: Container,
    *,
    serialized_name: str,
    serialize_auxdata: Callable[[StaticData], bytes],
    deserialize_auxdata: Callable[[bytes], StaticData],
    from_children: FromChildren | None = None,
) -> Container:
    """Register a class of pytree nodes for serialization in the structures of exported programs.

    Args:
      nodetype: the class, which is registered as a pytree node.
      serialized_name: the name of the class in serialized structures; the process that reads them
        registers the class under the same name.
      serialize_auxdata: static data -> bytes.
      deserialize_auxdata: bytes -> static data.
      from_children: (static data, children) -> a node; by default the function that the class was
        registered with as a pytree node. Its result is used for its structure alone.

    Returns:
      The class.

    Raises:
      ValueError: if the class or the name is registered already, or the class is not a pytree node
        and `from_children` is None.
    """
    if nodetype in _by_type:
        raise ValueError(
            f"Duplicate serialization registration for type `{nodetype}`. Previous registration "
            f"was with serialized_name `{_by_type[nodetype].name}`."
        )
    if serialized_name in _by_name:
        raise ValueError(
            f"Duplicate serialization registration for serialized_name `{serialized_name}`. "
            f"Previous registration was for type `{_by_name[serialized_name].nodetype}`."
        )
    if from_children is None and not is_tree_node(nodetype):
        raise ValueError(
            "If `from_children` is not present, you must call first "
            f"`jax.tree_util.register_pytree_node` for `{nodetype}`"
        )
    registered = _Registered(
        nodetype, serialized_name, serialize_auxdata, deserialize_auxdata, from_children
    )
    _by_type[nodetype] = _by_name[serialized_name] = registered
    return nodetype


def register_namedtuple_serialization(nodetype: Container, *, serialized_name: str) -> Container:
    """Register a class of named tuples for serialization in the structures of exported programs.

    Args:
      nodetype: the class.
      serialized_name: its name in serialized structures.

    Returns:
      The class.

    Raises:
      ValueError: if it is not a class of named tuples, or the class or name is registered already.
    """
    if not (issubclass(nodetype, tuple) and hasattr(nodetype, "_fields")):
        raise ValueError(
            "Use `jax.export.register_pytree_node_serialization` for types other than "
            f"`collections.namedtuple`: got {nodetype}."
        )

    def with_fields(names: Sequence[str], children: Sequence[object]) -> Any:
        return nodetype(**dict(zip(names, children, strict=True)))

    return register_pytree_node_serialization(
        nodetype,
        serialized_name=serialized_name,
        serialize_auxdata=lambda _: json.dumps(nodetype._fields).encode(),
        deserialize_auxdata=lambda data: json.loads(data.decode()),
        from_children=with_fields,
    )


def _keys_as_json(keys: Sequence[object]) -> bytes:
    if all(isinstance(key, str) for key in keys):
        return json.dumps(list(keys)).encode()
    raise NotImplementedError(  # JAX raises this class.
        "Serialization of collections.OrderedDict is supported only when the keys are strings. "
        f"Found keys: {keys}."
    )


register_pytree_node_serialization(
    collections.OrderedDict,
    serialized_name="collections.OrderedDict",
    serialize_auxdata=_keys_as_json,
    deserialize_auxdata=lambda data: tuple(json.loads(data.decode())),
)


# ---- structures, one node at a time --------------------------------------------------------------


class Node(NamedTuple):
    """The root of a structure, as files have it.

    Attributes:
      kind: "leaf", "none", "tuple", "list", "dict" or "custom".
      keys: the keys of a dictionary.
      name: the name that a container's class is registered under.
      data: the container's static data.
      children: the structures inside of it.
    """

    kind: str
    keys: tuple[str, ...] = ()
    name: str = ""
    data: bytes = b""
    children: "Sequence[PyTreeDef | Node]" = ()


_KINDS: dict[type, str] = {type(None): "none", tuple: "tuple", list: "list", dict: "dict"}
_CONTAINERS = {name: container for container, name in _KINDS.items()}


def node_of(structure: PyTreeDef) -> Node:
    """Return the root of a structure, with its children as structures.

    Raises:
      ValueError: if its class is not registered for serialization.
      TypeError: if it is a dictionary with keys other than strings.
    """
    node = structure.node_data()
    if node is None:
        return Node("leaf")
    container, data = node
    children = structure.children()
    if container is dict:
        for key in data:
            if not isinstance(key, str):
                raise TypeError(
                    "Serialization is supported only for dictionaries with string keys. Found key "
                    f"{key} of type {type(key)}."
                )
        return Node("dict", tuple(data), children=children)
    if container in _KINDS:
        return Node(_KINDS[container], children=children)
    registered = _by_type.get(container)
    if registered is None:
        raise ValueError(
            f"Cannot serialize PyTreeDef containing an unregistered type `{container}`. Use "
            "`export.register_pytree_node_serialization` or "
            "`export.register_namedtuple_serialization`."
        )
    static = registered.serialize(data)
    if not isinstance(static, bytes | bytearray):
        raise ValueError(
            f"The custom serialization function for `{container}` must return a `bytes` object. "
            f"It returned a {type(static)}."
        )
    return Node("custom", name=registered.name, data=bytes(static), children=children)


def structure_of(node: Node) -> PyTreeDef:
    """Return the structure with this root and these children, which are structures.

    Raises:
      ValueError: if its class is not registered for serialization.
    """
    children: Any = list(node.children)
    make = PyTreeDef.from_node_data_and_children
    if node.kind == "leaf":
        return make(fast_parts.registry, None, [])
    if node.kind != "custom":
        data = list(node.keys) if node.kind == "dict" else None
        return make(fast_parts.registry, (_CONTAINERS[node.kind], data), children)
    registered = _by_name.get(node.name)
    if registered is None:
        raise ValueError(
            f"Cannot deserialize a PyTreeDef containing an unregistered type `{node.name}`. Use "
            "`export.register_pytree_node_serialization` or "
            "`export.register_namedtuple_serialization`."
        )
    data = registered.deserialize(node.data)
    if registered.from_children is None:
        return make(fast_parts.registry, (registered.nodetype, data), children)
    values = [child.unflatten([0.0] * child.num_leaves) for child in children]
    return tree_structure(registered.from_children(data, values))
