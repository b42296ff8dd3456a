"""Trees that the tests share: classes registered as nodes, a tree with every node, random trees."""

import collections
import dataclasses

from hypothesis import settings
from hypothesis import strategies as st

from hlofront.base.tree import (
    GetAttrKey,
    Partial,
    register_dataclass,
    register_pytree_node_class,
    register_pytree_with_keys_class,
    register_static,
    static_field,
)


def is_tuple(value):
    return isinstance(value, tuple)


Point = collections.namedtuple("Point", ["x", "y"])


@register_pytree_node_class
class Box:
    """A registered class without keys; its label is static."""

    def __init__(self, *contents, label=None):
        self.contents, self.label = contents, label

    def __eq__(self, other):
        return (self.contents, self.label) == (other.contents, other.label)

    def tree_flatten(self):
        return self.contents, self.label

    @classmethod
    def tree_unflatten(cls, label, contents):
        return cls(*contents, label=label)


@register_pytree_with_keys_class
class NamedBox(Box):
    """A registered class whose children have names."""

    def tree_flatten_with_keys(self):
        names = [GetAttrKey(f"part{i}") for i in range(len(self.contents))]
        return tuple(zip(names, self.contents)), self.label


@register_dataclass
@dataclasses.dataclass(frozen=True)
class Layer:
    weight: object
    bias: object = 0
    activation: str = static_field(default="relu")
    rate: float = dataclasses.field(default=0.5, metadata={"static": True})


@register_static
@dataclasses.dataclass(frozen=True)
class Settings:
    depth: int


EVERY_NODE = {
    "b": [1, (2, None)],
    "a": Point(3, collections.OrderedDict([("z", 4), ("y", 5)])),
    "c": collections.defaultdict(int, {2: 6, 1: 7}),
    "d": [Box(8, (9,), label="l"), NamedBox(10), Layer(11, [12]), Partial(max, 13, key=14)],
    "e": Settings(3),
}


leaves_of_any_kind = st.integers() | st.text(max_size=3) | st.floats(allow_nan=False) | st.none()


def containers(children):
    return st.one_of(
        st.lists(children, max_size=3),
        st.lists(children, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=2), children, max_size=3),
        st.lists(st.tuples(st.text(max_size=2), children), max_size=3).map(collections.OrderedDict),
        st.dictionaries(st.integers(), children, max_size=3).map(
            lambda values: collections.defaultdict(list, values)
        ),
        st.builds(Point, children, children),
        st.builds(Layer, children, children, st.sampled_from(["relu", "tanh"])),
        st.lists(children, max_size=3).map(lambda values: Box(*values, label=len(values))),
        st.lists(children, max_size=2).map(lambda values: NamedBox(*values)),
    )


nested = st.recursive(leaves_of_any_kind, containers, max_leaves=12)
hypothesis_settings = settings(max_examples=60, deadline=None)
