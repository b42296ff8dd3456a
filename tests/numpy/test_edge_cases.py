"""Calls of hlofront.numpy that few programs make, beside those of corpus_numpy_edge_cases."""

import collections
import functools

import numpy as np
import pytest

import hlofront
import hlofront.numpy as jnp
from hlofront import flatten_util


def test_numbers_from_zero_pass_the_transfer_guard():
    with hlofront.transfer_guard("disallow"):
        results = [jnp.arange(5), jnp.arange(0, 5), jnp.arange(5.0), jnp.diag_indices(5)[0]]
        with pytest.raises(RuntimeError, match="Disallowed host-to-device transfer"):
            jnp.arange(1, 5)
    for result in results:
        np.testing.assert_array_equal(result, np.arange(5))


def test_a_copied_array_that_changes_while_a_function_is_traced_is_another_constant():
    host = np.arange(3.0, dtype=np.float32)

    def with_changes(x):
        before = jnp.array(host), jnp.array(host) * host
        host[0] = 7
        between = jnp.array(host)
        host.resize((3, 1), refcheck=False)
        return *before, between + x, jnp.array(host)

    program = hlofront.make_jaxpr(with_changes)(jnp.float32(1))
    host[:] = 9
    assert [const.tolist() for const in program.consts] == [[0, 1, 2], [7, 1, 2], [[7], [1], [2]]]
    wanted = [0, 1, 2], [0, 1, 4], [8, 2, 3], [[7], [1], [2]]
    results = hlofront.core.jaxpr_as_fun(program)(jnp.float32(1))
    assert [result.tolist() for result in results] == [*map(list, wanted)]


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8"])
def test_floors_of_quotients_of_ends(dtype):
    limits = np.iinfo(dtype)
    ends = {limits.min, limits.min + 1, 0, 1, 2, 7, limits.max - 1, limits.max}
    ends = sorted(ends | ({-7, -2, -1} if limits.min else set()))
    with hlofront.enable_x64(True):
        for y in ends:
            result = np.asarray(jnp.floor_divide(np.array(ends, dtype), np.array(y, dtype)))
            if y:
                wanted = [x // y for x in ends]
                if y == -1:
                    wanted[0] = limits.min  # It has no opposite.
            elif limits.min:
                wanted = [-2 if x else -1 for x in ends]
            else:
                wanted = [limits.max] * len(ends)
            np.testing.assert_array_equal(result, np.array(wanted, dtype))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64"])
def test_common_divisors_of_ends(dtype):
    limits = np.iinfo(dtype)
    ends = {0, 1, 2, 6, 35, limits.max // 3, limits.max - 1, limits.max}
    ends = np.array(sorted(ends | ({limits.min + 1, -6, -1} if limits.min else set())), dtype)
    x, y = np.meshgrid(ends, ends)
    with hlofront.enable_x64(True):
        result = jnp.gcd(x, y)
        assert result.dtype == dtype
        np.testing.assert_array_equal(result, np.gcd(x, y))
        np.testing.assert_array_equal(hlofront.vmap(jnp.gcd)(x, y), np.gcd(x, y))
        np.testing.assert_array_equal(jnp.lcm(x, y), np.lcm(x, y))
    assert jnp.gcd(np.zeros((2, 0), int), 3).shape == (2, 0)


def test_piecewise_traces_a_function_once():
    traces = []

    def double(x, scale, shift=0):
        traces.append(x)
        return x * scale + shift

    x = jnp.arange(-3.0, 3.0)
    for _ in range(3):
        result = jnp.piecewise(x, [x < 0], [double, 0.5], 2.0, shift=1.0)
    np.testing.assert_array_equal(result, [-5, -3, -1, 0.5, 0.5, 0.5])
    assert len(traces) == 1


def test_unravelling_functions_of_equal_trees_are_equal():
    traces = []

    @functools.partial(hlofront.jit, static_argnums=1)
    def tree_of(flat, unravel):
        traces.append(flat)
        return unravel(flat)

    trees = [{"a": jnp.ones(2) * i, "b": (1.0, jnp.zeros((2, 2)))} for i in range(3)]
    pairs = [flatten_util.ravel_pytree(tree) for tree in trees]
    for tree, pair in zip(trees, pairs, strict=True):
        np.testing.assert_array_equal(tree_of(*pair)["a"], tree["a"])
    assert len(traces) == 1
    assert len({unravel for _, unravel in pairs}) == 1
    _, other = flatten_util.ravel_pytree({"a": jnp.ones(2), "b": (1.0, jnp.zeros(4))})
    assert other != pairs[0][1]


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x[4],
        lambda x: x[-3],
        lambda x: x[np.int32(4)],
        lambda x: x[..., 4],
        lambda x: x.at[4].get(),
        lambda x: x.at[4].get(mode="promise_in_bounds"),
        lambda x: jnp.stack([x, x])[:, 7],
        lambda x: jnp.stack([x, x])[np.array([1]), 7],
    ],
)
def test_checked_static_indices(read):
    x = jnp.zeros(2)
    read(x)
    with _checking():
        with pytest.raises(IndexError, match="out of bounds"):
            read(x)
        with pytest.raises(IndexError, match="out of bounds"):
            hlofront.jit(read)(x)
        for allowed in (x[1], x[-2], x.at[4].get(mode="clip"), x.at[4].get(mode="fill")):
            assert allowed.shape == ()
        assert x.at[4].set(1.0).shape == (2,)


class _checking:
    def __enter__(self):
        hlofront.config.update("jax_check_static_indices", True)

    def __exit__(self, *error):
        hlofront.config.update("jax_check_static_indices", False)


@pytest.mark.parametrize("name", ["nin", "nout", "nargs", "identity"])
def test_attributes_of_universal_functions_are_fixed(name):
    for function in (jnp.add, jnp.frompyfunc(lambda x, y: x + y, 2, 1, identity=0)):
        assert getattr(function, name) == {"nin": 2, "nout": 1, "nargs": 2, "identity": 0}[name]
        with pytest.raises(AttributeError):
            setattr(function, name, 3)


class Point(collections.namedtuple("Point", "x y")):
    __slots__ = ()

    def __rmul__(self, other):
        return "times"

    def __eq__(self, other):
        return "equal"

    __hash__ = None


class Many(list):
    def __rmul__(self, other):
        return "times"


def test_classes_of_containers_have_operators_of_their_own():
    x = jnp.ones(2)
    assert x * Point(1, 2) == "times"
    assert (x == Point(1, 2)) == "equal"
    assert x * Many([1]) == "times"
    assert hlofront.eval_shape(lambda x: x if x * Many([1]) == "times" else 0.0, x).shape == (2,)
    for container in ([1, 2], (1, 2), {1}):
        with pytest.raises(TypeError, match="unsupported operand"):
            x * container


def test_too_many_elements_to_search_among():
    x = hlofront.ShapeDtypeStruct((2**31,), "float32")
    with pytest.raises(OverflowError, match="searchsorted among 2147483648 elements"):
        hlofront.eval_shape(jnp.searchsorted, x, x)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: jnp.array([1], "float32", True), "copy, order, and ndmin"),
        (lambda: jnp.ndim([1, 2]), "ndim requires ndarray or scalar"),
        (lambda: jnp.shape([1, 2]), "shape requires ndarray or scalar"),
        (lambda: jnp.size((1, 2)), "size requires ndarray or scalar"),
        (lambda: hlofront.nn.one_hot(jnp.array([0.0, 1.0]), 2), "should be integer-typed"),
        (lambda: jnp.ones(2, complex).astype("float32"), "drops the imaginary part"),
        (lambda: jnp.astype(jnp.ones(2, complex), "int32"), "drops the imaginary part"),
    ],
)
def test_deprecated(call, says):
    with pytest.warns(DeprecationWarning, match=says) as caught:
        call()
    assert caught[0].filename == __file__


@pytest.mark.parametrize("method", ["power", "divide", "multiply", "set"])
def test_updates_by_values_that_the_dtype_does_not_hold_warn(method):
    for array, values in ((jnp.array([True, False]), 2), (jnp.array([1, 2]), 2.5)):
        with pytest.warns(FutureWarning, match="incompatible types") as caught:
            getattr(array.at[0:2], method)(values)
        assert caught[0].filename == __file__


def test_notes_about_jitted_functions_of_ours_name_the_users_line_and_argument():
    nonzero = hlofront.jit(jnp.nonzero)

    def derived(q):
        return nonzero(q + 1)

    def mapped(rows):
        return hlofront.vmap(nonzero)(rows)

    def twice(q):
        return hlofront.jit(hlofront.jit(jnp.nonzero))(q)

    x = jnp.ones((2, 3))
    for call, argument in {
        nonzero: "the argument a of nonzero",
        hlofront.jit(derived): "the argument q of derived",
        hlofront.jit(mapped): "the argument rows of mapped",
        hlofront.jit(twice): "the argument q of twice",
    }.items():
        with pytest.raises(hlofront.errors.ConcretizationTypeError) as caught:
            call(x)
        text = str(caught.value)
        assert "the function nonzero, called at" in text
        assert "test_edge_cases.py" in text
        assert argument in text
        assert "selecting.py" not in text


@pytest.mark.parametrize(
    "call",
    [
        lambda x: jnp.where(x, x, 2**40),
        lambda x: jnp.clip(x, 2**40),
        lambda x: jnp.maximum(x, -(2**31) - 1),
        lambda x: x == 2**40,
        lambda x: jnp.where(x, jnp.asarray(3), 2**40),
    ],
)
def test_integers_that_meet_booleans_must_fit_under_jit_too(call):
    for function in (call, hlofront.jit(call)):
        with pytest.raises(OverflowError):
            function(jnp.array([True, False]))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32"])
def test_padding_with_floats_beyond_a_dtype_clamps_under_jit_too(dtype):
    limits = np.iinfo(dtype)
    for value, wanted in ((1e10, limits.max), (-1e10, limits.min), (np.nan, 0), (2.5, 2)):
        pad = lambda x, value=value: jnp.pad(x, 1, constant_values=value)
        for function in (pad, hlofront.jit(pad)):
            np.testing.assert_array_equal(function(jnp.ones(1, dtype)), [wanted, 1, wanted])


def test_roll_by_far_under_jit():
    x, by = np.arange(12.0).reshape(3, 4), np.uint32(2**32 - 1)
    for axis in (None, 0, 1):
        result = hlofront.jit(lambda x, by, axis=axis: jnp.roll(x, by, axis))(x, by)
        np.testing.assert_array_equal(result, np.roll(x, int(by), axis))


@pytest.mark.parametrize("make", [jnp.array, jnp.asarray])
def test_a_wrong_dtype_is_refused_before_none_is(make):
    with pytest.raises(TypeError, match="float99"):
        make(None, "float99")
    with pytest.raises(ValueError, match="None is not a valid value"):
        make(None, "float32")


@pytest.mark.parametrize("call", [lambda f: f, hlofront.jit], ids=["eager", "jit"])
@pytest.mark.parametrize(
    "nested",
    [
        lambda x: [x, 1, None],
        lambda x: [[x, 1], [None, 2]],
        lambda x: [[x, x], [None, None]],
        lambda x: [jnp.stack([x, x]), None],
        lambda x: (x, (None,)),
        lambda x: [x] * 1000 + [None],
        lambda x: [[x], [None]],
        lambda x: [[x, 1], [np.float32(1), None]],
        lambda _: [np.float32(1), None],
        lambda _: [np.ones(2), [None, 1.0]],
    ],
)
def test_none_beside_arrays_is_refused(call, nested):
    for dtype in (None, "float32", "int32"):
        with pytest.raises(ValueError, match="None is not a valid value"):
            call(lambda x, dtype=dtype: jnp.array(nested(x), dtype))(jnp.float32(2))


@pytest.mark.parametrize("make", [jnp.array, jnp.asarray])
@pytest.mark.parametrize("integers", [2**63, [2**63, 1], (2**64 - 1,)])
def test_integers_that_only_uint64_holds_are_of_it(make, integers):
    with hlofront.enable_x64(True):
        found = make(integers)
        wanted = np.array(integers, np.uint64)
        assert found.dtype == np.uint64
        np.testing.assert_array_equal(found, wanted)
        assert make([2**62, 1]).dtype == np.int64


def test_an_integer_that_is_too_large_is_told_with_its_path_and_with_what_holds_it():
    def second(tree):
        return tree["a"][1]

    for x64, number, advice in (
        (True, 2**63, r"as np.uint64\(...\)"),
        (True, -(2**63) - 1, "no integer dtype holds it"),
        (False, 2**31, "jax_enable_x64"),
    ):
        for wrap in (hlofront.jit, hlofront.make_jaxpr, hlofront.checkpoint):
            with hlofront.enable_x64(x64), pytest.raises(OverflowError, match=advice) as caught:
                wrap(second)({"a": [1, number]})
            assert "tree['a'][1]" in str(caught.value)
