"""Functions transformed in steps, as JAX's extensions write them."""

import numpy as np
import pytest

import hlofront as jax
from hlofront.api_util import (
    argnums_partial,
    debug_info,
    donation_vector,
    flatten_axes,
    flatten_fun,
    flatten_fun_nokwargs,
    rebase_donate_argnums,
    safe_map,
    shaped_abstractify,
)
from hlofront.extend import linear_util
from hlofront.tree_util import tree_flatten, tree_structure


def as_list(x):
    return [x]


@linear_util.transformation
def doubled(*args):
    results = yield args, {}
    yield [2 * result for result in results]


@linear_util.transformation_with_aux
def multiplied(factor, *args):
    results = yield args, {}
    yield [factor * result for result in results], "aside"


@linear_util.transformation2
def added(fun, number, *args):
    return [number + result for result in fun(*args)]


@linear_util.transformation_with_aux2
def counted(fun, store, *args):
    results = fun(*args)
    store.store(len(results))
    return results


def test_transformations_run_from_the_outermost_to_the_function():
    assert doubled(added(linear_util.wrap_init(as_list), 5)).call_wrapped(1) == [12]
    assert added(doubled(linear_util.wrap_init(as_list)), 5).call_wrapped(1) == [7]


def test_parameters_of_wrap_init_reach_the_function():
    power = linear_util.wrap_init(lambda x, exponent: [x**exponent], {"exponent": 3})
    assert doubled(power).call_wrapped(2) == [16]


def test_what_a_step_hands_aside_is_there_once_the_function_has_run():
    fun, aside = multiplied(linear_util.wrap_init(as_list), 7)
    with pytest.raises(linear_util.StoreException):
        aside()
    assert fun.call_wrapped(3) == [21]
    assert aside() == "aside"


def test_a_store_takes_one_value():
    fun, _ = counted(linear_util.wrap_init(as_list))
    fun.call_wrapped(1)
    with pytest.raises(linear_util.StoreException):
        fun.call_wrapped(1)


def test_an_equal_store_takes_an_equal_value_again():
    fun, count = counted(linear_util.wrap_init(lambda *xs: list(xs)), use_eq_store=True)
    fun.call_wrapped(1)
    fun.call_wrapped(2)
    assert count() == 1
    with pytest.raises(linear_util.StoreException):
        fun.call_wrapped(1, 2)


def test_of_two_stores_the_full_one_is_found():
    fun, first = counted(linear_util.wrap_init(as_list))
    other, second = counted(linear_util.wrap_init(as_list))
    fun.call_wrapped(1)
    assert linear_util.merge_linear_aux(first, second) == (True, 1)
    assert linear_util.merge_linear_aux(second, first) == (False, 1)
    other.call_wrapped(1)
    with pytest.raises(linear_util.StoreException):
        linear_util.merge_linear_aux(first, second)


def test_equal_functions_share_what_a_cache_keeps_and_fill_their_own_stores():
    calls = []

    @linear_util.cache
    def run(fun, x):
        calls.append(x)
        return fun.call_wrapped(x)

    first, first_count = counted(linear_util.wrap_init(as_list))
    second, second_count = counted(linear_util.wrap_init(as_list))
    assert first == second and hash(first) == hash(second)
    assert run(first, 1) == run(second, 1) == [1]
    assert calls == [1] and first_count() == second_count() == 1
    run.evict_function(as_list)
    run(counted(linear_util.wrap_init(as_list))[0], 1)
    assert calls == [1, 1]


def test_functions_with_other_static_arguments_are_not_equal():
    wrapped = linear_util.wrap_init(as_list)
    assert added(wrapped, 1) != added(wrapped, 2)
    assert doubled(wrapped) != wrapped


def test_flatten_fun_takes_and_returns_leaves():
    def f(x, *, y):
        return {"sum": x["a"] + y, "x": x}

    leaves, in_tree = tree_flatten((({"a": 1},), {"y": 2}))
    flat, out_tree = flatten_fun(linear_util.wrap_init(f), in_tree)
    assert flat.call_wrapped(*leaves) == [3, 1]
    assert out_tree() == tree_structure({"sum": 0, "x": {"a": 0}})


def test_flatten_fun_nokwargs_takes_positional_arguments():
    flat, out_tree = flatten_fun_nokwargs(linear_util.wrap_init(as_list), tree_structure((0,)))
    assert flat.call_wrapped(4) == [4]
    assert out_tree() == tree_structure([0])


def test_a_flattened_function_can_be_traced():
    flat, _ = flatten_fun_nokwargs(
        linear_util.wrap_init(lambda pair: pair[0] * pair[1]), tree_structure(((0, 0),))
    )
    program = jax.make_jaxpr(flat.call_wrapped)(2.0, 3.0)
    assert [equation.primitive.name for equation in program.eqns] == ["mul"]


def test_argnums_partial_fixes_the_other_arguments():
    fun, dynamic = argnums_partial(
        linear_util.wrap_init(lambda a, b, c: (a, b, c)), -1, ("a", "b", "c")
    )
    assert dynamic == ("c",)
    assert fun.call_wrapped("d") == ("a", "b", "d")
    same, _ = argnums_partial(linear_util.wrap_init(fun.f), 2, ("a", "b", "x"))
    assert fun == same


def test_argnums_partial_wants_static_arguments_that_can_be_hashed():
    wrapped = linear_util.wrap_init(lambda a, b: a + [b])
    with pytest.raises(ValueError, match=r"index 0.*non-hashable"):
        argnums_partial(wrapped, 1, ([1], 2))
    fun, dynamic = argnums_partial(wrapped, 1, ([1], 2), require_static_args_hashable=False)
    assert fun.call_wrapped(*dynamic) == [1, 2]
    with pytest.raises(ValueError, match="positions"):
        argnums_partial(wrapped, 2, (1, 2))


def test_donated_leaves():
    in_tree = tree_structure(((0, {"a": 0, "b": 0}), {"k": 0}))
    assert donation_vector((1,), (), in_tree) == (False, True, True, False)
    assert donation_vector((), ("k",), in_tree) == (False, False, False, True)
    assert donation_vector((0,), (), tree_structure((0, 0)), kws=False) == (True, False)
    assert rebase_donate_argnums((1, 3), (0, 2)) == (0, 1)
    with pytest.raises(ValueError, match="both static and donated"):
        rebase_donate_argnums((1,), (1,))


def test_axes_are_prefixes():
    treedef = tree_structure(({"a": 0, "b": 0}, 0))
    assert flatten_axes("in_axes", treedef, (0, None)) == [0, 0, None]
    with pytest.raises(ValueError, match="tree prefix"):
        flatten_axes("in_axes", treedef, (0, None, 1))
    with pytest.raises(ValueError, match="wrapped in a tuple"):
        flatten_axes("in_axes", treedef, (0, None, 1), tupled_args=True)


def test_debug_info_names_the_arguments():
    def loss(weights, x, flag):
        return weights["w"] * x

    info = debug_info("grad", loss, ({"w": 1.0}, 2.0, True), {}, static_argnums=(2,))
    assert info.func_name == "loss" and info.traced_for == "grad"
    assert info.arg_names == ("weights['w']", "x")
    assert debug_info("t", loss, (), {}, sourceinfo="there").func_src_info == "there"
    assert debug_info("t", loss, (), {}, result_paths_thunk=lambda: ("a",)).result_paths == ("a",)


def test_safe_map_wants_equal_lengths():
    assert safe_map(lambda a, b: a + b, [1, 2], iter([3, 4])) == [4, 6]
    with pytest.raises(ValueError, match="shorter"):
        safe_map(lambda a, b: a, [1, 2], [3])


def test_shaped_abstractify():
    assert shaped_abstractify(np.ones((2, 3), np.float32)).shape == (2, 3)
    assert shaped_abstractify(1.0).weak_type
    with pytest.raises(TypeError):
        shaped_abstractify("x")
