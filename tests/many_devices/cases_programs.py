"""Programs that are spread over eight devices give what they give on one, split as is said."""

import threading

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.bridge.client import GSPMDSharding
from hlofront.errors import IndivisibleError
from hlofront.experimental import io_callback
from hlofront.experimental.serialize_executable import deserialize_and_load, serialize
from hlofront.runtime.dispatch.jit import Jitted
from hlofront.sharding import Mesh, NamedSharding, SingleDeviceSharding
from hlofront.sharding import PartitionSpec as P
from tests.many_devices.meshes import devices, matrix, mesh, split

# A function of one matrix that is split along x and y, and how XLA leaves its result, if that is
# to be held: each is what jax 0.10.2 gives.
PROGRAMS = {
    "add": (lambda a: a + 1, ("x", "y")),
    "product": (lambda a: a @ a.T, ("x",)),
    "transpose": (lambda a: a.T, ("y", "x")),
    "sum": (lambda a: a.sum(), ()),
    "mean": (lambda a: a.mean(0), ("y",)),
    "row": (lambda a: a[0], ("y",)),
    "flat": (lambda a: a.reshape(-1), ("x",)),
    "sorted": (lambda a: jnp.sort(a, 0), ("x", "y")),
    "updated": (lambda a: a.at[0].set(1.0), ("x", "y")),
    "joined": (lambda a: jnp.concatenate([a, a]), None),
    "softmax": (lambda a: jax.nn.softmax(a), ("x", "y")),
    "fft": (lambda a: jnp.fft.fft(a, axis=0), None),
    "cumsum": (lambda a: jnp.cumsum(a, 0), None),
    "masked": (lambda a: jnp.where(a > 3, a, 0), ("x", "y")),
    "scan": (lambda a: jax.lax.scan(lambda c, r: (c + r, c * r), jnp.zeros(4), a)[1], None),
    "cond": (lambda a: jax.lax.cond(a.sum() > 0, jnp.sin, jnp.cos, a), ("x", "y")),
    "while": (
        lambda a: jax.lax.while_loop(lambda v: v.sum() < 1e3, lambda v: v * 2, a),
        ("x", "y"),
    ),
    "gradient": (jax.grad(lambda a: (jnp.sin(a) @ a.T).sum()), ("x", "y")),
    "checkpoint": (jax.grad(lambda a: jax.checkpoint(jnp.sin)(a * a).sum()), ("x", "y")),
    "vmap": (jax.vmap(lambda r: r / r.sum()), None),
    "nested": (lambda a: jax.jit(lambda b: b * 2)(a) + 1, ("x", "y")),
    "singular": (lambda a: jnp.linalg.svd(a)[1], None),
    "values": (lambda a: {"a": a, "b": (a.max(), a.argmax(1))}["a"], ("x", "y")),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jit"])
def test_as_on_one_device(name, jitted):
    function, entries = PROGRAMS[name]
    array = matrix("x", "y") / 7
    call = jax.jit(function) if jitted else function
    wanted = call(jnp.asarray(np.asarray(array)))
    for _ in range(2):  # by Python, then by C++
        found = call(array)
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5)
        assert found.committed and found.sharding.num_devices == 8
        if entries is not None:
            assert found.sharding.is_equivalent_to(split(*entries), found.ndim), found.sharding


def test_told_shardings():
    """in_shardings move what is not committed; out_shardings hold."""
    call = jax.jit(
        lambda a, b: (a @ b["w"], a.sum()),
        in_shardings=(split("x"), {"w": split(None, "y")}),
        out_shardings=(split(("x", "y")), None),
    )
    a, w = np.ones((8, 4), np.float32), np.ones((4, 6), np.float32)
    for _ in range(2):
        product, total = call(a, {"w": w})
        assert product.sharding == split(("x", "y"))
        assert total.sharding == split()
        np.testing.assert_allclose(product, a @ w)
    text = call.lower(a, {"w": w}).as_text()
    assert 'sdy.mesh @mesh = <["x"=4, "y"=2]>' in text
    assert "mhlo.num_partitions = 8" in text
    assert '%arg1: tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}' in text
    assert 'sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>' in text


def test_lowered_as_jax_does():
    array = matrix("x", "y")
    lowered = jax.jit(lambda a, b: jnp.tanh(a @ b)).lower(array, np.ones((4, 4), np.float32))
    assert lowered.as_text().splitlines()[1:4] == [
        '  sdy.mesh @mesh = <["x"=4, "y"=2]> {stablehlo.mesh = {axes = [{name = "x", size = 4 : '
        'i64}, {name = "y", size = 2 : i64}]}}',
        '  func.func public @main(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"'
        '}, {"y"}]>}, %arg1: tensor<4x4xf32>) -> (tensor<8x4xf32> {jax.result_info = "result"}) {',
        "    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = "
        "[DEFAULT, DEFAULT] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>",
    ]


def test_constraints():
    constrain = jax.lax.with_sharding_constraint
    array = matrix("x", "y")
    target = split("y", "x")
    assert constrain(np.ones((8, 4)), target).sharding == target
    assert constrain(array, target).sharding == target
    assert constrain({"a": array}, target)["a"].sharding == target
    # Devices that only the program speaks of.
    found = jax.jit(lambda a: constrain(a * 2, target))(np.ones((8, 4), np.float32))
    assert found.sharding == target
    gradient = jax.grad(lambda a: constrain(a**2, split("x")).sum())(array)
    np.testing.assert_allclose(gradient, 2 * np.asarray(array))
    text = jax.jit(lambda a: jax.vmap(lambda r: constrain(r, split("x")))(a.T)).lower(array)
    assert 'sdy.sharding_constraint %0 <@mesh, [{?}, {"x"}]>' in text.as_text()
    mapped = jax.vmap(lambda r: constrain(r, split("y")), spmd_axis_name="x")(array)
    assert mapped.sharding.is_equivalent_to(split("x", "y"), 2)
    free = jax.jit(lambda a: constrain(a, split(P.UNCONSTRAINED, "y"))).lower(array).as_text()
    assert '<@mesh, [{?}, {"y"}]>' in free
    moved = jax.jit(lambda a: jax.device_put(a + 1, target))(array)
    assert moved.sharding == target


def test_devices_that_only_a_program_speaks_of():
    """Whatever runs it: jit, a derivative of it, a loop outside of jit, one operation."""
    values = np.ones((8, 4), np.float32)

    def constrained(a):
        return jax.lax.with_sharding_constraint(jnp.sin(a), split("x"))

    for found in (
        jax.jit(constrained)(values),
        jax.jvp(jax.jit(constrained), (values,), (values,))[1],
        jax.grad(lambda a: jax.jit(constrained)(a).sum())(values),
        jax.lax.fori_loop(0, 2, lambda i, a: constrained(a), values),
        jax.lax.cond(True, constrained, jnp.cos, values),
        jax.jit(lambda a: jax.device_put(a, split("x")))(values),
    ):
        assert found.sharding.num_devices == 8
    assert not jax.jit(jnp.sin)(values).committed


def test_nested_jit_constrains():
    inner = jax.jit(lambda a: a + 1, in_shardings=split("x"), out_shardings=split("y"))
    found = jax.jit(lambda a: inner(a))(np.ones((8, 4), np.float32))
    assert found.sharding == split("y")
    np.testing.assert_array_equal(found, 2.0)


def test_donation():
    array = matrix("x", "y")
    jax.jit(lambda a: a * 2, donate_argnums=0)(array)
    assert array.is_deleted()
    array = matrix("x", "y")
    call = jax.jit(lambda a: a * 2, donate_argnums=0, out_shardings=split("x", "y"))
    text = call.lower(array).as_text()
    assert "tf.aliasing_output = 0" in text
    call(array)
    assert array.is_deleted()
    assert (
        "jax.buffer_donor"
        in jax.jit(lambda a: a.T, donate_argnums=0).lower(matrix("x", shape=(4, 4))).as_text()
    )


def test_constants_and_keys():
    weights = np.random.default_rng(0).normal(size=(512, 512)).astype(np.float32)
    array = jax.device_put(np.ones((8, 512), np.float32), split("x", "y"))
    np.testing.assert_allclose(
        jax.jit(lambda a: a @ weights)(array), np.ones((8, 512)) @ weights, rtol=1e-3, atol=1e-3
    )
    keys = jax.device_put(jax.random.split(jax.random.key(0), 8), split("x"))
    assert keys.sharding.is_equivalent_to(split("x"), 1)
    drawn = jax.vmap(jax.random.normal)(keys)
    assert drawn.sharding == split("x")
    alone = jax.vmap(jax.random.normal)(jax.random.split(jax.random.key(0), 8))
    np.testing.assert_array_equal(drawn, alone)
    same = jax.jit(lambda k: (k, jax.random.key_data(k)))(keys)
    np.testing.assert_array_equal(jax.random.key_data(same[0]), same[1])
    made = jax.jit(
        lambda: jax.random.normal(jax.random.key(1), (8, 2)), out_shardings=split("x", "y")
    )()
    np.testing.assert_array_equal(made, jax.random.normal(jax.random.key(1), (8, 2)))


def test_shardings_of_keys():
    """The integers have an entry for each of their axes, and the keys for each of theirs."""
    keys = jax.random.split(jax.random.key(0), (4, 2))
    for spec in (P("x"), P("x", "y"), P(None, "y"), P()):
        padded = P(*spec, *[None] * (2 - len(spec)))
        keys_split = jax.device_put(keys, split(*spec))
        assert keys_split.sharding == split(*padded)
        assert jax.random.key_data(keys_split).sharding == split(*spec, None)
        function = jax.jit(lambda k: (k, jax.random.key_data(k)))
        for _ in range(3):
            same, words = function(keys_split)
            assert same.sharding == split(*padded) and words.sharding == split(*spec)
            assert jax.random.key_data(same).sharding == split(*spec, None)
        moved = jax.jit(jax.random.clone, in_shardings=split(*spec))
        for given in (keys, keys_split, keys):
            same = moved(given)
            assert jax.random.key_data(same).sharding == split(*spec, None)
            np.testing.assert_array_equal(jax.random.key_data(same), jax.random.key_data(keys))
        compiled = jax.jit(lambda k: k).lower(keys_split).compile()
        assert jax.random.key_data(compiled(keys_split)).sharding == split(*spec, None)
    with pytest.raises(ValueError, match="rank at least 3"):
        jax.device_put(keys, split("x", None, None))


def test_keys_made_of_parts():
    keys = jax.random.split(jax.random.key(0), 8)
    data = jax.random.key_data(keys)
    over = split(("x", "y"))
    made = jax.make_array_from_callback((8,), over, lambda index: keys[index])
    parts = [
        jax.device_put(keys[index], device)
        for device, index in over.addressable_devices_indices_map((8,)).items()
    ]
    assembled = jax.make_array_from_single_device_arrays((8,), over, parts[::-1])
    for found in (made, assembled, jax.make_array_from_process_local_data(over, keys)):
        assert (found.shape, found.dtype, found.sharding) == ((8,), keys.dtype, over)
        assert jax.random.key_data(found).sharding == split(("x", "y"), None)
        np.testing.assert_array_equal(jax.random.key_data(found), data)
    scalar = jax.make_array_from_callback((), split(), lambda _: keys[3], dtype=keys.dtype)
    np.testing.assert_array_equal(jax.random.key_data(scalar), data[3])
    with pytest.raises(ValueError, match="parts of shape"):
        jax.make_array_from_single_device_arrays((16,), over, parts)
    with pytest.raises(ValueError, match="dtype"):
        jax.make_array_from_callback((8,), over, lambda i: keys[i], dtype=np.float32)
    other = jax.device_put(jax.random.split(jax.random.key(0, impl="rbg"), 1), parts[0].device)
    with pytest.raises(ValueError, match="different dtypes"):
        jax.make_array_from_single_device_arrays((8,), over, [other, *parts[1:]])


def test_callbacks(capfd):
    """They are called once, by the first device, with whole arrays."""
    calls = []

    def double(value):
        calls.append(np.shape(value))
        return np.asarray(value) * 2

    array = matrix("x", "y")
    call = jax.jit(lambda a: jax.pure_callback(double, a, a))
    result = call(array)
    np.testing.assert_array_equal(result, np.asarray(array) * 2)
    assert calls == [(8, 4)]
    # It is on the first device alone, and goes on from there.
    assert type(result.sharding) is GSPMDSharding
    np.testing.assert_array_equal(result + 1, np.asarray(array) * 2 + 1)
    np.testing.assert_array_equal(jax.pure_callback(double, array, array), np.asarray(array) * 2)

    def shown(a):
        jax.debug.print("sum {}", a.sum())
        return a

    jax.block_until_ready(jax.jit(shown)(array))
    jax.effects_barrier()
    assert capfd.readouterr().out == "sum 496.0\n"

    def ordered(a):
        jax.debug.print("x", ordered=True)
        return a

    def ordered_result(a):
        return io_callback(double, jax.typeof(a), a, ordered=True)

    for function in (ordered, ordered_result):
        with pytest.raises(ValueError, match="not supported for more than 1 device"):
            jax.jit(function)(array)


def test_compiled():
    array = matrix("x", "y")
    described = jax.ShapeDtypeStruct((8, 4), np.float32, sharding=split("x", "y"))
    lowered = jax.jit(lambda a: a @ a.T, out_shardings=split("x")).lower(described)
    assert lowered.out_info.sharding == split("x")
    compiled = lowered.compile()
    assert compiled.input_shardings == ((split("x", "y"),), {})
    assert compiled.output_shardings == split("x")
    assert "all-reduce" in (compiled.as_text() or "")
    np.testing.assert_allclose(compiled(array), np.asarray(array) @ np.asarray(array).T)
    assert compiled(np.ones((8, 4), np.float32)).sharding == split("x")
    for other in (devices[1], split("y")):
        with pytest.raises(ValueError, match="input shardings that disagree"):
            compiled(jax.device_put(array, other))


def test_refused():
    array = matrix("x", "y")
    other = NamedSharding(Mesh(mesh.devices[::-1], ("a", "b")), P("a", "b"))
    for x in (jax.device_put(np.ones((8, 4)), other), jax.device_put(np.ones(4), devices[0])):
        with pytest.raises(ValueError, match="incompatible devices"):
            array + x

    def same(*args, **kwargs):
        return args, kwargs

    with pytest.raises(ValueError, match="does not match the sharding on the respective arg"):
        jax.jit(same, in_shardings=split("y"))(array)
    with pytest.raises(ValueError, match="rank at least 3"):
        jax.jit(same, in_shardings=split("x", "y", None))(array)
    with pytest.raises(IndivisibleError):
        jax.jit(lambda a: a[:3], out_shardings=split("x"))(array)
    with pytest.raises(ValueError, match="prefix of the positional arguments"):
        jax.jit(same, in_shardings=(split("x"), split("x")))(array)
    with pytest.raises(ValueError, match="arguments by name"):
        jax.jit(same, in_shardings=split("x", "y"))(a=array)
    with pytest.raises(RuntimeError, match="non-empty mesh in context"):
        jax.jit(same, in_shardings=P("x"))(array)
    with pytest.raises(RuntimeError, match="non-empty mesh in context"):
        jax.lax.with_sharding_constraint(array, P("x"))
    with pytest.raises(TypeError, match="takes Shardings"):
        jax.jit(same, out_shardings="x")
    with pytest.raises(IndivisibleError):
        jax.lax.with_sharding_constraint(np.ones((7, 4)), split("x"))
    with pytest.raises(ValueError, match="device and backend"):
        jax.jit(same, in_shardings=split("x"), device=devices[1])


def test_one_device_is_named():
    """Shardings of one device, and `device`, move what is spread."""
    array = matrix("x", "y")
    with pytest.warns(DeprecationWarning, match="arguments of jit are deprecated"):
        on_one = jax.jit(lambda a: a, device=devices[1])
    assert on_one(array).sharding == SingleDeviceSharding(devices[1])
    found = jax.jit(lambda a: a, in_shardings=SingleDeviceSharding(devices[3]))(np.ones(3))
    assert found.sharding == SingleDeviceSharding(devices[3])


def test_nans_are_found():
    array = jax.device_put(-np.ones(8, np.float32), split("x"))
    with jax.debug_nans(True), pytest.raises(FloatingPointError):
        jax.jit(jnp.log)(array)


def test_many_steps_are_not_waited_for_together():
    """Hundreds of programs whose devices meet are launched at once, by two threads."""
    array = matrix("x", "y") / 100

    @jax.jit
    def step(a):
        return jnp.tanh(a @ (a.T @ a)) + a.sum() / 1e3

    def run(into):
        a = array
        for _ in range(300):
            a = step(a)
        into.append(np.asarray(a))

    alone = jax.device_put(array, devices[0])
    for _ in range(300):
        alone = step(alone)
    found = []
    threads = [threading.Thread(target=run, args=(found,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_allclose(found, [alone, alone], rtol=1e-3)


def test_compiled_once():
    array = matrix("x", "y")
    call = jax.jit(lambda a: a * 3)
    for _ in range(3):
        call(array)
    assert call._cache_size() == 1
    call(matrix("y"))
    assert call._cache_size() == 2


def test_a_program_for_several_devices_is_serialized_and_runs_on_others():
    a = matrix("x", "y")
    compiled = jax.jit(lambda a: (a @ a.T, a + 1)).lower(a).compile()
    parts = serialize(compiled)
    loaded = deserialize_and_load(*parts)
    for found, wanted in zip(loaded(a), compiled(a), strict=True):
        np.testing.assert_array_equal(found, wanted)
        assert found.sharding.is_equivalent_to(wanted.sharding, 2)
    turned = devices[::-1]
    elsewhere = deserialize_and_load(*parts, execution_devices=turned)
    sharding = elsewhere.input_shardings[0][0]
    assert list(sharding.mesh.devices.flat) == [turned[d.id] for d in mesh.devices.flat]
    np.testing.assert_array_equal(elsewhere(jax.device_put(np.asarray(a), sharding))[1], a + 1)
    with pytest.raises(ValueError, match="was compiled for 8 devices of cpu"):
        deserialize_and_load(*parts, execution_devices=devices[:2])


def test_calls_like_the_last_one_do_not_look_for_their_program(monkeypatch):
    looked_up = []
    traced = Jitted.traced

    def counted(self, args, kwargs):
        looked_up.extend([self.name] if self.name == "total" else [])
        return traced(self, args, kwargs)

    monkeypatch.setattr(Jitted, "traced", counted)

    @jax.jit
    def total(a, *, factor=None):
        return {"sum": a.sum() * (1 if factor is None else factor)}

    array, split_otherwise = matrix("x", "y"), matrix("y")
    wanted = np.asarray(array).sum()
    for count, (args, kwargs, expected) in enumerate(
        [
            ((array,), {}, wanted),
            ((split_otherwise,), {}, wanted),
            ((array,), {"factor": matrix(shape=())}, 0),
            ((matrix("x", dtype=np.int32),), {}, wanted),
            ((np.asarray(array),), {}, wanted),
            ((array,), {}, wanted),
        ],
        start=1,
    ):
        for _ in range(3):
            assert total(*args, **kwargs)["sum"] == expected
        assert looked_up == ["total"] * count
    jax.clear_caches()
    assert total(array)["sum"] == wanted
    assert len(looked_up) == 7


def test_repeated_calls_are_checked_as_the_first():
    total = jax.jit(lambda a: jnp.log(a).sum())
    array = matrix("x")
    total(array)
    with jax.debug_nans(True), pytest.raises(FloatingPointError):
        total(-array)
    array.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        total(array)
    doubled = jax.jit(lambda a: a * a.sum(), donate_argnums=0)
    for _ in range(3):
        given = matrix("x")
        assert doubled(given).sharding == given.sharding and given.is_deleted()
    assert jax.jit(jax.vmap(lambda a: total(a)))(matrix("x") + 1).shape == (8,)
