"""Arguments of jitted functions go to the devices that `in_shardings` name, where jax moves them.

jax 0.10.2 copies a committed argument to other devices, or to another order of them, if it is
split as requested there. It splits none otherwise, and moves none to another memory.
"""

import itertools

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.sharding import Mesh, NamedSharding, SingleDeviceSharding
from hlofront.sharding import PartitionSpec as P
from tests.many_devices.meshes import devices, split

VALUES = np.arange(64, dtype=np.float32).reshape(8, 8)


def rows(chosen, *entries):
    return NamedSharding(Mesh(np.array(chosen), ("x",)), P(*entries))


SHARDINGS = {
    "rows": rows(devices, "x"),
    "rows backwards": rows(devices[::-1], "x"),
    "rows in another order": rows([devices[i] for i in (1, 0, 3, 2, 5, 4, 7, 6)], "x"),
    "rows of the first four": rows(devices[:4], "x"),
    "rows of the last four": rows(devices[4:], "x"),
    "copies": rows(devices),
    "copies backwards": rows(devices[::-1]),
    "copies of four": rows(devices[:4]),
    "a mesh of one device": rows(devices[:1], "x"),
    "one": SingleDeviceSharding(devices[0]),
    "another": SingleDeviceSharding(devices[3]),
    "tiles": split("x", "y"),
}
# Arguments of a group go to all shardings of their group, and to no other.
GROUPS = [
    ["rows", "rows backwards", "rows in another order"],
    ["rows of the first four", "rows of the last four"],
    ["copies", "copies backwards", "copies of four", "a mesh of one device", "one", "another"],
    ["tiles"],
]
PAIRS = [(wanted, actual) for group in GROUPS for wanted in group for actual in group]
REFUSED = [pair for pair in itertools.product(SHARDINGS, repeat=2) if pair not in PAIRS]


def moves(wanted, **options):
    return jax.jit(lambda a: (a * 2, a.sum()), in_shardings=SHARDINGS[wanted], **options)


@pytest.mark.parametrize(("wanted", "actual"), PAIRS)
def test_arguments_that_are_split_alike_are_moved(wanted, actual):
    jitted = moves(wanted)
    x = jax.device_put(VALUES, SHARDINGS[actual])
    for _ in range(3):  # by Python, then by C++ if it can
        double, total = jitted(x)
        np.testing.assert_array_equal(double, VALUES * 2)
        assert total == 2016
        order = double.sharding._device_assignment
        assert list(order) == list(SHARDINGS[wanted]._device_assignment)
    assert not x.is_deleted()
    assert jitted.eval_shape(x)[0].shape == (8, 8)


@pytest.mark.parametrize(("wanted", "actual"), REFUSED)
def test_arguments_that_are_split_otherwise_are_refused(wanted, actual):
    x = jax.device_put(VALUES, SHARDINGS[actual])
    for call in (moves(wanted), moves(wanted).lower):
        with pytest.raises(ValueError, match="does not match the sharding on the respective arg"):
            call(x)


def test_calls_with_arguments_from_many_devices_take_turns():
    jitted = moves("rows")
    arrays = [jax.device_put(VALUES + i, SHARDINGS[name]) for i, name in enumerate(GROUPS[0])]
    for _ in range(3):
        for i, x in enumerate(arrays):
            np.testing.assert_array_equal(jitted(x)[0], (VALUES + i) * 2)


@pytest.mark.parametrize(("wanted", "actual"), [pair for pair in PAIRS if pair[0] != pair[1]])
def test_what_was_moved_is_donated_and_not_the_argument(wanted, actual):
    jitted = moves(wanted, donate_argnums=0)
    x = jax.device_put(VALUES, SHARDINGS[actual])
    np.testing.assert_array_equal(jitted(x)[0], VALUES * 2)
    if not x.is_deleted():
        np.testing.assert_array_equal(x, VALUES)


def test_random_keys_are_moved():
    keys = jax.random.split(jax.random.key(0), 8)
    jitted = jax.jit(lambda keys: jax.random.key_data(keys), in_shardings=SHARDINGS["rows"])
    moved = jitted(jax.device_put(keys, SHARDINGS["rows backwards"]))
    np.testing.assert_array_equal(moved, jax.random.key_data(keys))
    with pytest.raises(ValueError, match="does not match"):
        jitted(jax.device_put(keys, SHARDINGS["one"]))


def test_arguments_without_a_sharding_stay_and_must_be_there():
    add = jax.jit(lambda a, b: a + b, in_shardings=(SHARDINGS["rows"], None))
    there, backwards = (jax.device_put(VALUES, SHARDINGS[name]) for name in GROUPS[0][:2])
    np.testing.assert_array_equal(add(backwards, there), VALUES * 2)
    with pytest.raises(ValueError, match="incompatible devices"):
        add(there, backwards)
    one, another = (jax.device_put(VALUES, SHARDINGS[name]) for name in ("one", "another"))
    add = jax.jit(lambda a, b: a + b, in_shardings=(SHARDINGS["one"], None))
    np.testing.assert_array_equal(add(another, one), VALUES * 2)
    for refused in (another, there):
        with pytest.raises(ValueError, match="incompatible devices"):
            add(one, refused)
    with pytest.raises(ValueError, match="incompatible devices"):
        jax.jit(lambda a: a, out_shardings=SHARDINGS["one"])(another)


@pytest.mark.parametrize("name", ["rows", "one"])
def test_arrays_in_another_memory_are_refused(name):
    sharding = SHARDINGS[name]
    on_host = sharding.with_memory_kind("pinned_host")
    for wanted, actual in ((sharding, on_host), (on_host, sharding)):
        x = jax.device_put(VALUES, actual)
        with pytest.raises(ValueError, match="Memory kinds passed to jax"):
            jax.jit(lambda a: a * 2, in_shardings=wanted)(x)
    with pytest.raises(ValueError, match="Memory kinds passed to jax"):
        jax.jit(lambda a: a * 2, in_shardings=on_host)(jax.numpy.ones((8, 8)))


@pytest.mark.parametrize(
    ("wanted", "actual"), [("copies", "copies backwards"), ("one", "another"), ("one", "rows")]
)
def test_compiled_programs_move_no_arguments(wanted, actual):
    compiled = moves(wanted).lower(VALUES).compile()
    np.testing.assert_array_equal(compiled(VALUES)[0], VALUES * 2)
    with pytest.raises(ValueError, match="disagree with the shardings of arguments"):
        compiled(jax.device_put(VALUES, SHARDINGS[actual]))


def product(a):
    return jnp.sin(a) * a


def with_rule(f, transformation):
    """Return a function with a derivative of its own, twice the cotangent or tangent."""
    if transformation is jax.custom_jvp:
        ruled = jax.custom_jvp(f)
        ruled.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * 2))
    else:
        ruled = jax.custom_vjp(f)
        ruled.defvjp(lambda a: (f(a), None), lambda _, cotangent: (cotangent * 2,))
    return ruled


def linearized(f, a):
    value, tangent_of = jax.linearize(f, a)
    return value, tangent_of(np.ones((8, 8), np.float32))


def pulled_back(f, a):
    value, cotangent_of = jax.vjp(f, a)
    return value, cotangent_of(value)


# Functions of a jitted function and its argument, which call it by itself, outside of a program.
# jax 0.10.2 moves arguments in the first, and fails in the second with an internal error.
BY_ITSELF = {
    "jvp": lambda f, a: jax.jvp(f, (a,), (a,)),
    "jvp of the host's tangent": lambda f, a: jax.jvp(f, (a,), (np.ones((8, 8), np.float32),)),
    "jacfwd": lambda f, a: jax.jacfwd(lambda a: f(a).sum())(a),
    "checkpoint": lambda f, a: jax.checkpoint(f)(a),
    "custom_jvp": lambda f, a: with_rule(f, jax.custom_jvp)(a),
    "custom_vjp": lambda f, a: with_rule(f, jax.custom_vjp)(a),
    "vmap": lambda f, a: jax.vmap(f, 2, 2)(jnp.stack([a, a], 2)),
    "vmap of jvp": lambda f, a: jax.vmap(lambda t: jax.jvp(f, (a,), (t,))[1], 2)(
        jnp.stack([a, a], 2)
    ),
} | {
    "grad": lambda f, a: jax.grad(lambda a: f(a).sum())(a),
    "vjp": pulled_back,
    "linearize": linearized,
    "grad of checkpoint": lambda f, a: jax.grad(lambda a: jax.checkpoint(f)(a).sum())(a),
    "grad of grad": lambda f, a: jax.grad(lambda a: jax.grad(lambda a: f(a).sum())(a).sum())(a),
    "vmap of grad": lambda f, a: jax.vmap(jax.grad(lambda a: f(a).sum()), 2)(jnp.stack([a, a], 2)),
}
# These call it inside of a program, all of which runs on the same devices, in one order.
IN_A_PROGRAM = {
    "jit": lambda f, a: jax.jit(lambda a: f(a))(a),
    "jit with a use outside": lambda f, a: jax.jit(lambda a: f(a) + a)(a),
    "jit of grad": lambda f, a: jax.jit(jax.grad(lambda a: f(a).sum()))(a),
    "grad of jit": lambda f, a: jax.grad(lambda a: jax.jit(lambda a: f(a))(a).sum())(a),
    "scan": lambda f, a: lax.scan(lambda c, _: (f(c), None), a, None, length=2)[0],
    "scan with a constant": lambda f, a: lax.scan(lambda c, _: (c + f(a), c), a, None, 2)[0],
    "while_loop": lambda f, a: lax.while_loop(
        lambda c: c[0] < 2, lambda c: (c[0] + 1, f(c[1])), (0, a)
    )[1],
    "cond": lambda f, a: lax.cond(True, f, lambda a: a, a),
    "lower": lambda f, a: jax.jit(lambda a: f(a)).lower(a) and np.float32(0),
}


# Fewer of the shardings, for transformations of all of their pairs.
SOME = {name: SHARDINGS[name] for name in ("rows", "rows backwards", "copies", "one", "another")}


def assert_close(results, wanted):
    for result, other in zip(jax.tree.leaves(results), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(result, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", BY_ITSELF)
def test_transformations_move_arguments_as_calls_do(name):
    transformed = BY_ITSELF[name]
    values = VALUES / 64
    right = transformed(product, values)
    for wanted, sharding in SOME.items():
        jitted = jax.jit(product, in_shardings=sharding)
        assert_close(transformed(jitted, values), right)
        for actual in SOME:
            x = jax.device_put(values, SHARDINGS[actual])
            if (wanted, actual) in PAIRS:
                results = transformed(jitted, x)
                assert_close(results, right)
                for result in jax.tree.leaves(results):
                    assert set(result.devices()) == sharding.device_set
            else:
                with pytest.raises(ValueError, match="does not match the sharding on the respec"):
                    transformed(jitted, x)


@pytest.mark.parametrize("name", IN_A_PROGRAM)
def test_programs_have_one_order_of_devices(name):
    transformed = IN_A_PROGRAM[name]
    values = VALUES / 64
    right = transformed(product, values)
    for sharding in SOME.values():
        jitted = jax.jit(product, in_shardings=sharding)
        for actual in SOME.values():
            x = jax.device_put(values, actual)
            if list(actual._device_assignment) == list(sharding._device_assignment):
                assert_close(transformed(jitted, x), right)
            else:
                with pytest.raises(ValueError, match="incompatible devices"):
                    transformed(jitted, x)
    x = jax.device_put(values, SHARDINGS["rows"])
    with pytest.raises(ValueError, match="incompatible devices"):
        transformed(jax.jit(product, out_shardings=SHARDINGS["one"]), x)


@pytest.mark.parametrize("actual", SOME)
def test_a_device_of_jit_has_the_results_of_transformations(actual):
    x = jax.device_put(VALUES / 64, SHARDINGS[actual])
    with pytest.warns(DeprecationWarning, match="arguments of jit are deprecated"):
        jitted = jax.jit(product, device=devices[3])
    for name in ("jvp", "grad", "vjp", "checkpoint", "vmap"):
        results = BY_ITSELF[name](jitted, x)
        assert_close(results, BY_ITSELF[name](product, VALUES / 64))
        assert all(result.devices() == {devices[3]} for result in jax.tree.leaves(results))


def test_a_program_constrains_arguments_and_names_them_where_it_refuses():
    jitted = jax.jit(product, in_shardings=SHARDINGS["rows"])
    text = str(jax.make_jaxpr(lambda a: jitted(a))(VALUES))
    assert "argument_sharding" in text
    x = jax.device_put(VALUES, SHARDINGS["copies"])
    with pytest.raises(ValueError, match="for argument a"):
        jax.grad(lambda a: jitted(a).sum())(x)
    lowered = jax.jit(lambda a: jitted(a)).lower(VALUES).as_text()
    assert lowered.count("sharding_constraint") == 1


def test_shapes_of_results_do_not_depend_on_where_arguments_are():
    for wanted, actual in REFUSED:
        x = jax.device_put(VALUES, SHARDINGS[actual])
        assert moves(wanted).eval_shape(x)[0].shape == (8, 8)
        assert jax.eval_shape(moves(wanted), x)[0].shape == (8, 8)


def test_a_constraint_to_the_device_of_a_mesh_of_one_holds():
    x = jax.device_put(VALUES, SHARDINGS["a mesh of one device"])
    constrain = jax.lax.with_sharding_constraint
    double = jax.jit(lambda a: constrain(a * 2, SHARDINGS["one"]))
    np.testing.assert_array_equal(double(x), VALUES * 2)
    with pytest.raises(ValueError, match="incompatible devices"):
        jax.jit(lambda a: constrain(a * 2, SHARDINGS["another"]))(x)
