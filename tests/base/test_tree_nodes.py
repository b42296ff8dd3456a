"""Pytree nodes: one level, registered classes, dataclasses and Partial."""

import collections
import copy
import dataclasses
import functools
import operator
import pickle

import numpy as np
import pytest

from hlofront.base import tree as trees
from hlofront.base.tree import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    Partial,
    SequenceKey,
    flatten_one_level,
    flatten_one_level_with_keys,
    keystr,
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    register_pytree_with_keys,
    register_pytree_with_keys_class,
    register_static,
    static_field,
    tree_flatten,
    tree_leaves,
    tree_leaves_with_path,
    tree_map,
    tree_structure,
)
from tests.base.tree_samples import (
    Box,
    Layer,
    NamedBox,
    Point,
    Settings,
)

# One level


def test_is_tree_node():
    nodes = [list, tuple, dict, collections.OrderedDict, collections.defaultdict]
    nodes += [type(None), Point, Partial, Box, Layer, Settings]
    assert all(map(trees.is_tree_node, nodes))
    leaves = [int, np.ndarray, functools.partial, set]
    assert not any(map(trees.is_tree_node, leaves))


def test_one_level():
    assert [list(flatten_one_level(tree)[0]) for tree in ([1, [2]], (1, {}), Point(1, (2,)))] == [
        [1, [2]],
        [1, {}],
        [1, (2,)],
    ]
    assert flatten_one_level({"b": 1, "a": 2}) == ((2, 1), ("a", "b"))
    assert flatten_one_level(Layer(1)) == ([1, 0], ("relu", 0.5))
    assert list(flatten_one_level(None)[0]) == []
    for function in (flatten_one_level, flatten_one_level_with_keys):
        with pytest.raises(ValueError, match="type int is a leaf"):
            function(3)


def test_one_level_with_keys():
    def keys(tree):
        return [key for key, _ in flatten_one_level_with_keys(tree)[0]]

    assert keys([1, 2]) == [SequenceKey(0), SequenceKey(1)]
    assert keys({"b": 1, "a": 2}) == [DictKey("a"), DictKey("b")]
    assert keys(collections.OrderedDict(b=1, a=2)) == [DictKey("b"), DictKey("a")]
    assert keys(collections.defaultdict(int, b=1, a=2)) == [DictKey("a"), DictKey("b")]
    assert keys(Point(1, 2)) == [GetAttrKey("x"), GetAttrKey("y")]
    assert keys(Layer(1)) == [GetAttrKey("weight"), GetAttrKey("bias")]
    assert keys(Box(1, 2)) == [FlattenedIndexKey(0), FlattenedIndexKey(1)]
    assert keys(NamedBox(1)) == [GetAttrKey("part0")]
    assert keys(None) == [] == keys(Settings(1))


# Registered classes


def test_a_class_is_registered_once():
    with pytest.raises(ValueError, match="Duplicate"):
        register_pytree_node_class(Box)
    with pytest.raises(ValueError, match="Duplicate"):
        register_pytree_with_keys_class(NamedBox)
    with pytest.raises(ValueError, match="Duplicate"):
        register_dataclass(Layer)
    with pytest.raises(ValueError, match="Duplicate"):
        register_static(Settings)
    for kind in (list, dict, collections.OrderedDict, Partial):
        with pytest.raises(ValueError, match="Duplicate"):
            register_pytree_node(kind, lambda value: ((), value), lambda value, _: value)


def test_registering_needs_a_class():
    flatten, unflatten = lambda value: ((), value), lambda value, _: value
    for register in (
        lambda: register_pytree_node(3, flatten, unflatten),
        lambda: register_pytree_with_keys(3, flatten, unflatten),
        lambda: register_static(3),
        lambda: register_dataclass(Layer(1)),
    ):
        with pytest.raises(TypeError, match="must be a class"):
            register()


def test_class_decorators_need_the_methods():
    class Plain:
        pass

    with pytest.raises(AttributeError, match="has no method tree_flatten;"):
        register_pytree_node_class(Plain)
    with pytest.raises(AttributeError, match="has no method tree_flatten_with_keys;"):
        register_pytree_with_keys_class(Plain)
    assert not trees.is_tree_node(Plain)


def test_keys_alone_suffice():
    class Keyed(dict):
        pass

    register_pytree_with_keys(
        Keyed,
        lambda value: (((DictKey(key), child) for key, child in value.items()), tuple(value)),
        lambda keys, children: Keyed(zip(keys, children)),
    )
    tree = Keyed(b=1, a=(2,))
    assert tree_leaves(tree) == [1, 2]
    assert [keystr(path) for path, _ in tree_leaves_with_path(tree)] == ["['b']", "['a'][0]"]
    result = tree_map(operator.neg, tree)
    assert type(result) is Keyed and result == {"b": -1, "a": (-2,)}


def test_keys_may_be_given_to_the_plain_registration():
    class Keyed(Box):
        pass

    register_pytree_node(
        Keyed,
        lambda value: (value.contents, None),
        lambda _, children: Keyed(*children),
        lambda value: ([(SequenceKey(10 + i), c) for i, c in enumerate(value.contents)], None),
    )
    assert [keystr(path) for path, _ in tree_leaves_with_path(Keyed(1, 2))] == ["[10]", "[11]"]


@pytest.mark.parametrize("result", [5, (1, 2, 3), (1, 2), [[1], 2]])
def test_a_flatten_function_must_return_children_and_static_data(result):
    class Wrong:
        pass

    register_pytree_node(Wrong, lambda _: result, lambda *_: Wrong())
    for function in (tree_leaves, tree_leaves_with_path, flatten_one_level):
        with pytest.raises(ValueError, match="children, aux_data"):
            function([Wrong()] if function is not flatten_one_level else Wrong())


def test_errors_of_users_functions_pass_through():
    class Failing:
        pass

    register_pytree_node(Failing, lambda _: ((1,), None), lambda *_: 1 / 0, lambda _: {}["key"])
    assert tree_leaves(Failing()) == [1]
    with pytest.raises(KeyError, match="key"):
        tree_leaves_with_path([Failing()])
    with pytest.raises(ZeroDivisionError):
        tree_map(lambda x: x, [Failing()])


def test_a_function_of_a_mapped_tree_may_fail_with_a_value_error():
    def fail(*_):
        raise ValueError("of mine")

    with pytest.raises(ValueError, match=r"^of mine$"):
        tree_map(fail, [1])
    with pytest.raises(ValueError, match=r"^of mine$"):
        tree_map(fail, [1], [2])


def test_static_data_that_cannot_be_hashed_still_compares():
    one, other = (tree_structure(Box(1, label=label)) for label in ([1], [2]))
    assert one == tree_structure(Box(2, label=[1])) and one != other
    assert hash(one) == hash(tree_structure(Box(2, label=[1])))


def test_static_classes():
    leaves, treedef = tree_flatten([Settings(1), 2])
    assert leaves == [2] and treedef == tree_structure([Settings(1), 3])
    assert treedef != tree_structure([Settings(2), 2])
    assert tree_map(operator.neg, [Settings(1), 2]) == [Settings(1), -2]


# Dataclasses


def dataclass_of(**extra):
    """A fresh dataclass with the fields a, b=2, c="s", and those given."""
    fields = [("a", object), ("b", object, 2), ("c", str, "s")]
    fields += [(name, object, field) for name, field in extra.items()]
    return dataclasses.make_dataclass("Fresh", fields)


def test_fields_of_a_dataclass_are_found_and_sorted_by_their_metadata():
    leaves, treedef = tree_flatten(Layer(1, [2], "tanh"))
    assert leaves == [1, 2]
    assert treedef == tree_structure(Layer(3, [4], "tanh"))
    assert treedef != tree_structure(Layer(1, [2], "relu"))
    assert treedef != tree_structure(Layer(1, [2], "tanh", rate=0.1))
    assert tree_map(operator.neg, Layer(1, [2], "tanh")) == Layer(-1, [-2], "tanh")


def test_fields_of_a_dataclass_may_be_listed():
    kind = dataclass_of()
    assert register_dataclass(kind, ["b", "a"], ("c",)) is kind
    assert tree_leaves(kind(1)) == [2, 1]
    decorator = functools.partial(register_dataclass, data_fields=["a", "b"], meta_fields=["c"])
    assert tree_leaves(decorator(dataclass_of())(1)) == [1, 2]


def test_dropped_fields_take_their_defaults():
    for lists in ((["a"], ["c"], ["b"]), (None, None, ["b", "c"])):
        kind = register_dataclass(dataclass_of(), *lists)
        result = tree_map(operator.neg, kind(1, b=7))
        assert (result.a, result.b) == (-1, 2)


def test_fields_that_init_does_not_take_must_be_dropped():
    extra = dataclasses.field(default=9, init=False)
    with pytest.raises(ValueError, match=r"unexpected: d has init=False.*drop_fields"):
        register_dataclass(dataclass_of(d=extra))
    with pytest.raises(ValueError, match="unexpected: d has init=False"):
        register_dataclass(dataclass_of(d=extra), ["a", "b", "d"], ["c"])
    kind = register_dataclass(dataclass_of(d=extra), drop_fields=["d"])
    assert tree_leaves(kind(1)) == [1, 2, "s"]
    kind = register_dataclass(dataclass_of(d=extra), ["a", "b"], ["c"])
    assert tree_leaves(kind(1)) == [1, 2]


@pytest.mark.parametrize(
    "lists, error, words",
    [
        ((["a"], ["c"]), ValueError, "missing: b "),
        ((["a"], []), ValueError, "missing: b, c "),
        ((["a", "b", "z"], ["c"]), ValueError, "unexpected: z is not a field"),
        ((["a", "b"], ["c"], ["b"]), ValueError, "unexpected: b is given as one of drop_fields"),
        ((["a", "b", "c"], ["c"]), ValueError, "data or static, not both: c"),
        ((["a", "b", "c"],), TypeError, "together, or neither"),
        ((None, ["a"]), TypeError, "together, or neither"),
    ],
)
def test_wrong_fields_of_a_dataclass(lists, error, words):
    kind = dataclass_of()
    with pytest.raises(error, match=words):
        register_dataclass(kind, *lists)
    assert not trees.is_tree_node(kind)


def test_a_class_made_with_keywords_may_be_registered_as_a_dataclass():
    class Pair:
        def __init__(self, one, two):
            self.one, self.two = one, two

    with pytest.raises(TypeError, match="not a dataclass"):
        register_dataclass(Pair)
    register_dataclass(Pair, ["one"], ["two"])
    result = tree_map(operator.neg, Pair(1, 2))
    assert (result.one, result.two) == (-1, 2)


def test_static_fields_keep_their_other_arguments():
    field = static_field(default=3, metadata={"unit": "m"})
    assert field.default == 3 and field.metadata == {"static": True, "unit": "m"}
    assert static_field(metadata=None).metadata == {"static": True}
    assert static_field(metadata={"static": False}).metadata == {"static": False}
    for bad in ({"unknown": 1}, {"metadata": 3}):
        with pytest.raises(TypeError):
            static_field(**bad)
    assert static_field(default=3).default == 3


# Partial


def collect(*args, **kwargs):
    return args, kwargs


def test_the_arguments_of_a_partial_are_children_and_its_function_is_not():
    partial = Partial(collect, 1, key=[2])
    assert partial(3, other=4) == ((1, 3), {"key": [2], "other": 4})
    assert isinstance(partial, functools.partial) and partial.func is collect
    assert tree_leaves(partial) == [1, 2]
    doubled = tree_map(lambda x: 2 * x, partial)
    assert type(doubled) is Partial and doubled() == ((2,), {"key": [4]})
    assert tree_structure(partial) == tree_structure(Partial(collect, 5, key=[6]))
    assert tree_structure(partial) != tree_structure(Partial(max, 1, key=[2]))
    assert tree_structure(partial) != tree_structure(Partial(collect, 1, other=[2]))


@pytest.mark.parametrize("make", [functools.partial, Partial])
def test_a_partial_of_a_partial_keeps_the_inner_one_whole(make):
    inner = make(collect, 1, key=2)
    outer = Partial(inner, 3)
    assert tree_leaves(outer) == [3] and outer.args == (3,)
    assert outer(4) == ((1, 3, 4), {"key": 2})
    assert tree_structure(outer) == tree_structure(Partial(inner, 9))
    assert hash(tree_structure(outer)) == hash(tree_structure(Partial(inner, 9)))
    assert tree_structure(outer) != tree_structure(Partial(make(collect, 1, key=2), 3))
    assert outer.func == inner and hash(outer.func) == hash(inner)
    assert repr(inner) in repr(outer)
    assert tree_map(operator.neg, outer)() == ((1, -3), {"key": 2})


def test_partials_survive_pickling_and_copying():
    for partial in (Partial(operator.add, 1), Partial(functools.partial(operator.add, 1))):
        for again in (pickle.loads(pickle.dumps(partial)), copy.deepcopy(partial)):
            assert type(again) is Partial and again(2) == 3 and again.args == partial.args


def test_a_partial_needs_a_function():
    with pytest.raises(TypeError, match="callable"):
        Partial(3)
    with pytest.raises(TypeError, match="func"):
        Partial()
