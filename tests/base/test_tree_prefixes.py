"""Prefixes of trees: broadcasting, axes, and what is said where two trees differ."""

import collections

import numpy as np
import pytest
from hypothesis import given

from hlofront.base import tree as trees
from hlofront.base.tree import (
    broadcast_prefix,
    flatten_axes,
    prefix_errors,
    register_pytree_node,
    tree_broadcast,
    tree_leaves,
    tree_map,
    tree_map_with_path,
    tree_structure,
)
from tests.base.tree_samples import (
    Box,
    Layer,
    NamedBox,
    Point,
    Settings,
    hypothesis_settings,
    is_tuple,
    nested,
)


@hypothesis_settings
@given(nested)
def test_a_tree_is_a_prefix_of_itself_and_of_deeper_trees(tree):
    deeper = tree_map(lambda leaf: (leaf, [leaf, {}]), tree)
    leaves = tree_leaves(tree)
    assert prefix_errors(tree, deeper) == [] == prefix_errors(tree, tree)
    assert broadcast_prefix(tree, tree) == leaves
    assert broadcast_prefix(tree, deeper) == [leaf for leaf in leaves for _ in range(2)]
    assert tree_broadcast(tree, deeper) == deeper
    assert flatten_axes("axes", tree_structure(deeper), tree_map(lambda _: None, tree)) == (
        [None] * len(leaves) * 2
    ) or None in tree_leaves(tree, is_leaf=trees.is_none)


@pytest.mark.parametrize(
    "first, second, words",
    [
        ([1, 2], [1, 2, 3], ["key path tree:", "list of 2", "list of 3"]),
        ([1, 2], (1, 2), ["list of 2", "tuple of 2", "use the same"]),
        ((1, 2), 5, ["tuple of 2", "a leaf of type int"]),
        (Point(1, 2), (1, 2), ["Point with 2 children", "tuple of 2"]),
        ({"a": [1, (2,)]}, {"a": [1, 2]}, ["tree['a'][1]", "tuple of 1", "leaf of type int"]),
        ({"a": 1, "c": 2}, {"b": 1, "c": 2}, ["first has ['a']", "second has ['b']"]),
        ([{"a": 1}], [{"a": 1, "b": 2}], ["tree[0]", "Only the second has ['b']"]),
        ({"a": None}, {"a": 1}, ["tree['a']", "None", "type int", "is_leaf"]),
        (Box(1, label="s"), Box(1, label="t"), ["static data", "'s'", "'t'"]),
        ([Box(1), 2], [Box(1, 2), 2], ["tree[0]", "1 child", "2 children"]),
        (NamedBox((1,)), NamedBox(1), ["tree.part0", "tuple of 1"]),
        (Layer((1,)), Layer(1), ["tree.weight"]),
        (Point(0, [1]), Point(0, 1), ["tree.y"]),
        (Settings(1), Settings(2), ["Settings(depth=1)", "Settings(depth=2)"]),
        (
            collections.OrderedDict(a=1, b=2),
            collections.OrderedDict(b=2, a=1),
            ["('a', 'b')", "('b', 'a')"],
        ),
        (collections.defaultdict(int, a=1), {"a": 1}, ["collections.defaultdict", "a dict"]),
        (Box(1, label=np.arange(2)), Box(1, label=np.arange(2)), ["ambiguous", "one bool"]),
    ],
)
def test_different_structures_are_told_apart_with_their_place(first, second, words):
    for function, name in ((tree_map, "tree_map"), (tree_map_with_path, "tree_map_with_path")):
        with pytest.raises(ValueError) as caught:
            function(lambda *xs: xs, first, first if "ambiguous" not in words else second, second)
        message = str(caught.value)
        assert message.startswith(f"{name}: different")
        assert all(word in message for word in words), message
    with pytest.raises(ValueError) as caught:
        tree_broadcast(first, second)
    assert str(caught.value).startswith("tree_broadcast: different")
    errors = prefix_errors(first, second)
    assert len(errors) == 1 and type(errors[0]) is ValueError


def test_the_tree_that_differs_is_numbered():
    with pytest.raises(ValueError, match=r"the first tree has .* tree 3 has"):
        tree_map(lambda *xs: xs, [1], [1], (1,))


def test_an_error_in_a_users_comparison_passes_through():
    class Odd:
        def __eq__(self, other):
            raise ZeroDivisionError("compared")

        __hash__ = object.__hash__

    with pytest.raises(ZeroDivisionError, match="compared"):
        tree_map(lambda *xs: xs, Box(1, label=Odd()), Box(1, label=Odd()))


def test_broadcast():
    assert tree_broadcast(9, [(3, 4), {"a": 5}]) == [(9, 9), {"a": 9}]
    assert tree_broadcast([1, 2], [(3, None), None]) == [(1, None), None]
    assert tree_broadcast([None, 1], [(3, 4), 5], trees.is_none) == [(None, None), 1]
    pair = [(1, 2), 1]
    assert tree_broadcast(pair, [(1, 2), (3, 4)], is_leaf=is_tuple) == [((1, 2), (1, 2)), (1, 1)]
    assert broadcast_prefix({"a": 0, "b": 1}, {"a": [5, 6], "b": {}}) == [0, 0]
    with pytest.raises(ValueError, match=r"broadcast_prefix: .*prefix_tree\[0\]: .*full_tree has"):
        broadcast_prefix([(1,)], [2])
    with pytest.raises(ValueError, match=r"dict at full_tree\[0\]"):
        broadcast_prefix(1, [{1: 2, "b": 3}])


def test_prefix_errors_find_every_place():
    errors = prefix_errors(
        {"a": [1, (2,)], "b": [1], "c": 1},
        {"a": [1, 2], "b": [1, 2], "c": (1, 2)},
        name="the in_axes",
        full_name="the arguments",
    )
    assert [str(error).split(":")[0] for error in errors] == [
        "different types at key path in_axes['a'][1]",
        "different numbers of children at key path in_axes['b']",
    ]
    assert all("the in_axes has" in str(e) and "the arguments has" in str(e) for e in errors)
    assert prefix_errors([(1,), 2], [3, 4], is_leaf=is_tuple) == []


VALUE = tree_structure(((1, {"a": 2, "b": [3, 4]}), Layer(5, None)))


@pytest.mark.parametrize(
    "axes, wanted",
    [
        (0, [0] * 5),
        (None, [None] * 5),
        ((0, None), [0, 0, 0, 0, None]),
        (((0, None), 1), [0, None, None, None, 1]),
        (((0, {"a": None, "b": [2, 3]}), Layer(4, 9)), [0, None, 2, 3, 4]),
        (((0, {"a": 1, "b": 2}), Layer(None, None)), [0, 1, 2, 2, None]),
    ],
)
def test_axes_are_spread_over_the_leaves(axes, wanted):
    assert flatten_axes("vmap in_axes", VALUE, axes) == wanted


def test_axes_over_trees_of_nothing():
    assert flatten_axes("axes", tree_structure(()), 0) == []
    assert flatten_axes("axes", tree_structure(()), ()) == []
    assert flatten_axes("axes", tree_structure([None, 1]), [3, 4]) == [4]
    assert flatten_axes("axes", tree_structure(1), None) == [None]


@pytest.mark.parametrize(
    "axes, words",
    [
        ((0, 0, 0), ["key path in_axes: ", "tuple of 3", "tuple of 2"]),
        ([0, 0], ["list of 2", "tuple of 2"]),
        (((0, {"a": 0, "c": 0}), 0), ["in_axes[0][1]", "first has ['c']", "second has ['b']"]),
        (((0, {"a": [0], "b": [0]}), 0), ["in_axes[0][1]['a']", "a leaf", "in_axes[0][1]['b']"]),
        ((0, Layer(0, 0, activation="tanh")), ["in_axes[1]", "'tanh'", "'relu'"]),
        ((0, Layer(0, (0,))), ["in_axes[1].bias", "tuple of 1", "None"]),
        ((), ["tuple of 0"]),
    ],
)
def test_axes_that_are_no_prefix(axes, words):
    with pytest.raises(ValueError) as caught:
        flatten_axes("vmap in_axes", VALUE, axes)
    message = str(caught.value)
    assert message.startswith("vmap in_axes specification must be a tree prefix")
    assert all(word in message for word in words), message
    assert f"for a value of structure {VALUE}" in message


def test_axes_do_not_make_values_of_users_classes():
    class Picky:
        pass

    def unflatten(_, children):
        raise AssertionError("asked to make a value")

    register_pytree_node(Picky, lambda _: ((1, 2), None), unflatten)
    assert flatten_axes("axes", tree_structure([Picky(), 3]), [0, 1]) == [0, 0, 1]
