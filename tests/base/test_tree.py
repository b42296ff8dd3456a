"""Pytrees: the names of both public modules, flattening, paths, and functions over the leaves."""

import collections
import functools
import inspect
import json
import operator
import pathlib
import pickle
import re

import numpy as np
import pytest
from hypothesis import given

import hlofront.tree as short
import hlofront.tree_util as tree_util
from hlofront.base import tree as trees
from hlofront.base.tree import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    Partial,
    SequenceKey,
    flatten_one_level_with_keys,
    keystr,
    register_pytree_node,
    tree_flatten,
    tree_flatten_with_path,
    tree_leaves,
    tree_leaves_with_path,
    tree_map,
    tree_map_with_path,
    tree_reduce,
    tree_reduce_associative,
    tree_structure,
    tree_transpose,
    tree_unflatten,
    treedef_children,
    treedef_is_leaf,
    treedef_tuple,
)
from tests.base.tree_samples import (
    EVERY_NODE,
    Box,
    Point,
    hypothesis_settings,
    is_tuple,
    nested,
)

REFERENCE = pathlib.Path(__file__).parents[1] / "as_jax" / "jax_0.10.2.json"

POSITIONAL = inspect.Parameter.POSITIONAL_OR_KEYWORD


# What the reference offers


def positional_and_keyword_names(signature):
    """The parameter names of a signature given as text, without `*args`, `**kwargs`."""
    node = re.sub(r"<[^<>]*>", "None", signature)
    scope = {}
    exec(f"def f{node}: pass", scope)
    kinds = inspect.Parameter
    parameters = inspect.signature(scope["f"]).parameters.values()
    named = [p for p in parameters if p.kind not in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD)]
    return [(p.name, p.kind) for p in named]


@pytest.mark.parametrize(
    "module, door, count", [("jax.tree_util", tree_util, 36), ("jax.tree", short, 14)]
)
def test_every_name_of_the_reference_is_offered_with_its_parameters(module, door, count):
    names = json.loads(REFERENCE.read_text())["modules"][module]
    assert len(names) == count
    assert set(names) <= set(door.__all__)
    for name, signature in names.items():
        offered = getattr(door, name)
        if signature is None or signature == "(**kwargs)":
            continue
        ours = inspect.signature(offered).parameters
        for parameter, kind in positional_and_keyword_names(signature):
            assert ours[parameter].kind == kind, (name, parameter)
        wanted = [n for n, kind in positional_and_keyword_names(signature) if kind == POSITIONAL]
        assert [n for n, p in ours.items() if p.kind == POSITIONAL] == wanted, name


def test_the_doors_only_re_export():
    for name in tree_util.__all__:
        assert getattr(tree_util, name) is getattr(trees, name)
    for name in short.__all__:
        full = "static_field" if name == "static" else f"tree_{name}"
        assert getattr(short, name) is getattr(trees, full)


# Taking apart and putting together


@pytest.mark.smoke
def test_leaves_come_in_order_and_come_back():
    leaves, treedef = tree_flatten(EVERY_NODE)
    assert leaves == [3, 4, 5, 1, 2, 7, 6, 8, 9, 10, 11, 12, 13, 14]
    again = tree_unflatten(treedef, leaves)
    assert again["a"] == EVERY_NODE["a"] and list(again["a"].y) == ["z", "y"]
    assert again["b"] == EVERY_NODE["b"]
    assert again["c"] == EVERY_NODE["c"] and again["c"].default_factory is int
    assert again["d"][:3] == EVERY_NODE["d"][:3]
    partial = again["d"][3]
    assert type(partial) is Partial
    assert (partial.func, partial.args, partial.keywords) == (max, (13,), {"key": 14})
    assert again["e"] is EVERY_NODE["e"]
    assert tree_structure(again) == treedef and hash(tree_structure(again)) == hash(treedef)


def test_a_structure_prints_its_nodes():
    treedef = tree_structure([{"a": 1, "b": (2, None)}, Box(3, label="l")])
    assert str(treedef) == "PyTreeDef([{'a': *, 'b': (*, None)}, CustomNode(Box[l], [*])])"


@hypothesis_settings
@given(nested)
def test_flatten_and_unflatten_are_inverse(tree):
    leaves, treedef = tree_flatten(tree)
    assert treedef.num_leaves == len(leaves)
    assert tree_unflatten(treedef, leaves) == tree
    assert tree_unflatten(treedef, iter(leaves)) == tree
    assert tree_leaves(tree) == leaves and tree_structure(tree) == treedef
    assert tree_map(lambda leaf: leaf, tree) == tree
    assert tree_map(lambda *pair: pair[0] is pair[1], tree, tree) == tree_map(lambda _: True, tree)


@hypothesis_settings
@given(nested)
def test_paths_lead_to_the_leaves(tree):
    pairs, treedef = tree_flatten_with_path(tree)
    assert treedef == tree_structure(tree)
    assert [leaf for _, leaf in pairs] == tree_leaves(tree)
    assert len({keystr(path) for path, _ in pairs}) == len(pairs)
    for path, leaf in pairs:
        node = tree
        for key in path:
            node = dict(flatten_one_level_with_keys(node)[0])[key]
        assert node is leaf


@hypothesis_settings
@given(nested)
def test_structures_survive_pickling(tree):
    treedef = tree_structure(tree)
    again = pickle.loads(pickle.dumps(treedef))
    assert again == treedef and hash(again) == hash(treedef) and str(again) == str(treedef)
    assert again.unflatten(tree_leaves(tree)) == tree


def test_none_is_a_node_without_children():
    assert tree_leaves(None) == [] and str(tree_structure(None)) == "PyTreeDef(None)"
    assert tree_leaves([None, 1], is_leaf=trees.is_none) == [None, 1]
    assert tree_map(lambda *pair: pair, {"a": None, "b": 1}, {"a": None, "b": 2}) == {
        "a": None,
        "b": (1, 2),
    }
    assert tree_map(lambda *pair: pair, [0], [None]) == [(0, None)]


def test_subclasses_of_containers_are_leaves_but_those_of_named_tuples_are_not():
    for kind in (list, dict, tuple):
        value = type("Own", (kind,), {})()
        assert tree_leaves(value)[0] is value
    own = type("Own", (Point,), {})(1, 2)
    assert tree_leaves(own) == [1, 2]
    assert type(tree_map(operator.neg, own)) is type(own)


def test_other_values_are_leaves():
    values = [object(), "text", b"bytes", {1}, range(3), np.arange(3), int, functools.partial(max)]
    assert all(a is b for a, b in zip(tree_leaves(values), values, strict=True))


def test_is_leaf_stops_the_descent_and_must_answer_with_a_bool():
    assert tree_flatten([(1, 2), [3]], is_leaf=is_tuple) == (
        [(1, 2), 3],
        tree_structure([0, [0]]),
    )
    assert tree_leaves([1], is_leaf=lambda node: None) == [1]
    with pytest.raises(ValueError, match="non-boolean"):
        tree_leaves([1], is_leaf=lambda node: "yes")
    with pytest.raises(ZeroDivisionError):
        tree_leaves([1], is_leaf=lambda node: 1 / 0)


def test_too_few_and_too_many_leaves():
    treedef = tree_structure([1, 2])
    with pytest.raises(ValueError, match="expected 2, got 1"):
        tree_unflatten(treedef, [1])
    with pytest.raises(ValueError, match="expected 2"):
        tree_unflatten(treedef, [1, 2, 3])
    with pytest.raises(AttributeError, match=r"tree_unflatten\(treedef, leaves\)"):
        tree_unflatten([1, 2], treedef)


def test_an_attribute_error_of_a_users_class_is_not_taken_for_swapped_arguments():
    class Fragile:
        pass

    register_pytree_node(Fragile, lambda _: ((1,), None), lambda _, children: children.missing)
    with pytest.raises(AttributeError, match="missing"):
        tree_unflatten(tree_structure(Fragile()), [1])


@pytest.mark.parametrize(
    "function",
    [
        tree_flatten,
        tree_leaves,
        tree_structure,
        tree_flatten_with_path,
        tree_leaves_with_path,
        functools.partial(tree_map, abs),
    ],
)
def test_keys_that_cannot_be_sorted_are_shown_with_their_place(function):
    with pytest.raises(ValueError, match=r"tree\['a'\]\[1\] .*\[1, 'b'\].*OrderedDict") as caught:
        function({"a": [0, {1: 2, "b": 3}]})
    assert isinstance(caught.value.__cause__, TypeError)
    unsorted = collections.OrderedDict([(1, 2), ("b", 3)])
    assert tree_leaves(unsorted) == [2, 3]
    assert tree_leaves([{1: 2, "b": 3}], is_leaf=lambda node: isinstance(node, dict))


def test_keys_of_a_defaultdict_that_cannot_be_sorted():
    with pytest.raises(TypeError, match="not supported between"):
        tree_leaves(collections.defaultdict(int, {1: 2, "b": 3}))


def test_unsortable_keys_behind_a_leaf_are_not_blamed():
    class Failing:
        pass

    def flatten(_):
        raise ValueError("my own trouble")

    register_pytree_node(Failing, flatten, lambda *_: Failing())
    with pytest.raises(ValueError, match="my own trouble"):
        tree_leaves([Failing(), {1: 2, "b": 3}])


def test_all_leaves():
    assert trees.all_leaves([1, "a"]) and trees.all_leaves(iter([1, 2])) and trees.all_leaves([])
    assert not trees.all_leaves([1, [2]]) and not trees.all_leaves([None])
    assert trees.all_leaves([1, (2,)], is_leaf=is_tuple)
    assert not trees.all_leaves([1, [2]], is_leaf=is_tuple)
    assert not trees.all_leaves([()], is_leaf=trees.is_none)


def test_parts_of_a_structure():
    leaf, pair = tree_structure(1), tree_structure((1, [2]))
    assert treedef_children(pair) == [leaf, tree_structure([2])]
    assert treedef_children(leaf) == []
    assert treedef_tuple([leaf, tree_structure([2])]) == pair
    assert treedef_tuple(iter(())) == tree_structure(())
    answers = [treedef_is_leaf(tree_structure(tree)) for tree in (1, None, (), (1,), [None])]
    assert answers == [True, True, True, False, False]
    with pytest.raises(RuntimeError, match=r"element 1 must be a PyTreeDef.*int"):
        treedef_tuple([leaf, 3])


# Paths


def test_paths_as_text():
    texts = [keystr(path) for path, _ in tree_leaves_with_path(EVERY_NODE)]
    assert texts == [
        "['a'].x",
        "['a'].y['z']",
        "['a'].y['y']",
        "['b'][0]",
        "['b'][1][0]",
        "['c'][1]",
        "['c'][2]",
        "['d'][0][<flat index 0>]",
        "['d'][0][<flat index 1>][0]",
        "['d'][1].part0",
        "['d'][2].weight",
        "['d'][2].bias[0]",
        "['d'][3][<flat index 0>][0]",
        "['d'][3][<flat index 1>]['key']",
    ]
    path = (DictKey("a"), SequenceKey(0), GetAttrKey("b"), FlattenedIndexKey(2), "own")
    assert keystr(path) == "['a'][0].b[<flat index 2>]own"
    assert keystr(path, separator="/") == "['a']/[0]/.b/[<flat index 2>]/own"
    assert keystr(path, simple=True, separator="/") == "a/0/b/2/own"
    assert keystr(path, simple=True) == "a0b2own"
    assert keystr(()) == keystr((), simple=True, separator="/") == ""


def test_map_with_path():
    result = tree_map_with_path(lambda path, *xs: (keystr(path), *xs), {"a": [1]}, {"a": [(2, 3)]})
    assert result == {"a": [("['a'][0]", 1, (2, 3))]}
    assert tree_map_with_path(lambda path, x: len(path), [1, (2,)]) == [1, (2,)]
    with pytest.raises(ValueError, match=r"tree_map_with_path: .* tree\['a'\]"):
        tree_map_with_path(lambda path, *xs: xs, {"a": [1]}, {"a": [1, 2]})


def test_is_leaf_may_take_the_path():
    def below_b(path, node):
        return bool(path) and path[0] == DictKey("b")

    tree = {"a": [1, 2], "b": (3,)}
    wanted = [("['a'][0]", 1), ("['a'][1]", 2), ("['b']", (3,))]
    pairs, treedef = tree_flatten_with_path(tree, below_b, True)
    assert [(keystr(path), leaf) for path, leaf in pairs] == wanted
    assert treedef == tree_structure({"a": [0, 0], "b": 0})
    assert tree_leaves_with_path(tree, is_leaf=below_b, is_leaf_takes_path=True) == pairs
    seen = tree_map_with_path(
        lambda path, leaf, other: other, tree, tree, is_leaf=below_b, is_leaf_takes_path=True
    )
    assert seen == tree
    assert tree_leaves_with_path(tree, is_leaf=lambda node: True) == [((), tree)]
    pairs = tree_leaves_with_path(tree, is_leaf=is_tuple)
    assert [keystr(path) for path, _ in pairs] == ["['a'][0]", "['a'][1]", "['b']"]


# Over the leaves


def test_map_over_several_trees_goes_as_deep_as_the_first():
    assert tree_map(lambda *xs: xs, [1, 2], [(1, 2), None]) == [(1, (1, 2)), (2, None)]
    assert tree_map(lambda *xs: xs, [(1, 2)], [(3,)], is_leaf=is_tuple) == [((1, 2), (3,))]
    assert tree_map(f=lambda x: x + 1, tree=[1]) == [2]
    assert tree_map(lambda x: None, [1, (2,)]) == [None, (None,)]
    with pytest.raises(TypeError, match="not callable"):
        tree_map(3, [1])


def test_the_end_of_an_iterator_in_a_mapped_function_is_not_the_end_of_the_leaves():
    empty = iter(())
    with pytest.raises((StopIteration, RuntimeError)):
        tree_map(lambda _: next(empty), [1, 2])


def test_reduce():
    assert tree_reduce(operator.add, [1, (2, 3)]) == 6
    assert tree_reduce(lambda *pair: pair, [1, 2], None) == ((None, 1), 2)
    assert tree_reduce(operator.add, [(1,), (2,)], (), is_tuple) == (1, 2)
    assert tree_reduce(operator.add, [], 7) == 7
    with pytest.raises(TypeError, match="initializer"):
        tree_reduce(operator.add, [None])


@pytest.mark.parametrize(
    "count, wanted",
    [(1, "0"), (2, "(01)"), (3, "(0(12))"), (5, "((01)(2(34)))"), (6, "((0(12))(3(45)))")],
)
def test_associative_reduction_goes_by_halves(count, wanted):
    join = lambda left, right: f"({left}{right})"
    assert tree_reduce_associative(join, list(map(str, range(count)))) == wanted
    assert tree_reduce_associative(join, list(map(str, range(count))), identity="i") == wanted


def test_associative_reduction_of_nothing():
    assert tree_reduce_associative(operator.add, [], identity=None) is None
    with pytest.raises(TypeError, match="identity"):
        tree_reduce_associative(operator.add, [])
    assert tree_reduce_associative(operator.add, [(1,), (2,)], is_leaf=is_tuple) == (1, 2)


def test_all():
    assert short.all([1, {"a": True}]) is True and short.all([None]) is True
    assert short.all([1, [0]]) is False
    assert short.all([(), 1], is_leaf=is_tuple) is False
    with pytest.raises(ValueError, match="ambiguous"):
        short.all([np.array([True, True])])


def test_transpose():
    outer, inner = tree_structure([0, 0]), tree_structure({"a": 0, "b": (0, 0)})
    tree = [{"a": 1, "b": (2, 3)}, {"a": 4, "b": (5, 6)}]
    wanted = {"a": [1, 4], "b": ([2, 5], [3, 6])}
    assert tree_transpose(outer, inner, tree) == wanted
    assert tree_transpose(outer, None, tree) == wanted
    assert tree_transpose(inner, outer, wanted) == tree
    assert tree_transpose(outer, tree_structure(()), [(), ()]) == ()
    assert tree_transpose(tree_structure([]), tree_structure((0, 0)), []) == ([], [])


@pytest.mark.parametrize("tree", [[{"a": 1}], [{"a": (1, 2)}, {"a": 3}], {"a": [1, 2]}, 3])
def test_transpose_of_something_else(tree):
    with pytest.raises(TypeError, match=r"expected PyTreeDef\(\[\{'a': \*\}, \{'a': \*\}\]\)"):
        tree_transpose(tree_structure([0, 0]), tree_structure({"a": 0}), tree)


def test_transpose_cannot_guess_the_inner_structure_of_nothing():
    with pytest.raises(IndexError, match="inner_treedef"):
        tree_transpose(tree_structure([]), None, [])


def test_structures_compose_and_keep_no_leaf():
    outer, inner = tree_structure([0, 0]), tree_structure({"a": 0})
    assert outer.compose(inner) == tree_structure([{"a": 1}, {"a": 2}])
    assert hash(tree_structure({"a": 1})) == hash(tree_structure({"a": "other"}))
    assert {tree_structure([1]): "found"}[tree_structure([2])] == "found"
