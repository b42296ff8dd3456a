"""Values in the memory of the host: their types, what moves them, and what checkpoint offloads."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.ad_checkpoint import checkpoint_name
from hlofront.memory import Space
from hlofront.sharding import SingleDeviceSharding
from tests.many_devices.meshes import devices, split

VALUES = np.arange(64, dtype=np.float32).reshape(8, 8) / 64
TARGETS = {
    "space": Space.Host,
    "one device": SingleDeviceSharding(devices[0], memory_kind="pinned_host"),
    "several": split("x", memory_kind="pinned_host"),
}


@pytest.mark.parametrize("target", TARGETS)
def test_arrays_on_the_host_have_its_type_and_stay_there(target):
    x = jax.device_put(VALUES, TARGETS[target])
    assert x.aval.str_short() == "float32<host>[8,8]"
    for result in (x * 2, jax.jit(lambda a: a * 2)(x), jnp.sin(x), x.T):
        assert result.sharding.memory_kind == "pinned_host"
        assert result.aval.memory_space is Space.Host
    double = jax.jit(lambda a: jax.device_put(a, Space.Device) * 2)
    for _ in range(3):
        result = double(x)
        assert result.sharding.memory_kind == "device"
        assert result.aval.memory_space is Space.Device
        np.testing.assert_array_equal(result, VALUES * 2)
    compiled = double.lower(x).compile()
    assert compiled.input_shardings[0][0].memory_kind == "pinned_host"
    assert compiled.output_shardings.memory_kind == "device"
    np.testing.assert_array_equal(compiled(x), VALUES * 2)
    np.testing.assert_array_equal(x, VALUES)


@pytest.mark.parametrize("target", TARGETS)
def test_programs_move_values_to_the_host(target):
    move = jax.jit(lambda a: jax.device_put(a * 2, TARGETS[target]))
    for _ in range(3):
        moved = move(VALUES)
        assert moved.sharding.memory_kind == "pinned_host"
        np.testing.assert_array_equal(moved, VALUES * 2)
    text = move.trace(VALUES).lower(lowering_platforms=("tpu",)).as_text()
    assert '_xla_buffer_placement = "pinned_host"' in text
    assert 'mhlo.memory_kind = "pinned_host"' in text


ON_HOST = {name: target for name, target in TARGETS.items() if name != "space"}


@pytest.mark.parametrize("target", ON_HOST)
def test_results_are_in_the_memory_that_out_shardings_name(target):
    double = jax.jit(
        lambda a: {"b": a * 2, "c": a}, out_shardings={"b": ON_HOST[target], "c": None}
    )
    compiled = double.lower(VALUES).compile()
    assert compiled.output_shardings["b"].memory_kind == "pinned_host"
    assert compiled.output_shardings["c"].memory_kind == "device"
    for call in (double, double, double, compiled):
        result = call(VALUES)
        assert result["b"].sharding.memory_kind == "pinned_host"
        assert result["b"].aval.memory_space is Space.Host
        assert result["c"].aval.memory_space is Space.Device
        np.testing.assert_array_equal(result["b"], VALUES * 2)
    text = double.trace(VALUES).lower(lowering_platforms=("tpu",)).as_text()
    assert text.count('_xla_buffer_placement = "pinned_host"') == 1
    assert text.count('mhlo.memory_kind = "pinned_host"') == 1
    back = jax.jit(lambda a: a + 1, out_shardings=ON_HOST[target].with_memory_kind("device"))
    assert back(result["b"]).aval.memory_space is Space.Device


@pytest.mark.parametrize("target", ON_HOST)
def test_arguments_are_in_the_memory_that_in_shardings_name(target):
    seen = []

    def double(a):
        seen.append(jax.typeof(a).memory_space)
        return a * 2

    jitted = jax.jit(double, in_shardings=ON_HOST[target])
    for _ in range(3):
        result = jitted(VALUES)
        assert result.sharding.memory_kind == "device"
        np.testing.assert_array_equal(result, VALUES * 2)
    lowered = jitted.trace(VALUES).lower(lowering_platforms=("tpu",))
    assert lowered.as_text().count('mhlo.memory_kind = "pinned_host"') == 1
    assert lowered.as_text().count('_xla_buffer_placement = "device"') == 1
    compiled = jitted.lower(VALUES).compile()
    assert compiled.input_shardings[0][0].memory_kind == "pinned_host"
    np.testing.assert_array_equal(compiled(VALUES), VALUES * 2)
    assert seen == [Space.Device]  # The program moves it there first, as types say.
    on_host = jax.device_put(VALUES, ON_HOST[target])
    assert jitted(on_host).sharding.memory_kind == compiled_kind(jitted, on_host) == "pinned_host"


def compiled_kind(jitted, x):
    return jitted.lower(x).compile().output_shardings.memory_kind


def test_a_donated_argument_shares_no_buffer_with_a_result_in_another_memory():
    jitted = jax.jit(lambda a: a * 2, out_shardings=TARGETS["several"], donate_argnums=0)
    with pytest.warns(UserWarning, match="donated buffers were not usable"):
        text = jitted.trace(VALUES).lower(lowering_platforms=("tpu",)).as_text()
    assert "jax.buffer_donor" in text
    assert "tf.aliasing_output" not in text


def test_values_in_several_memories_are_not_mixed():
    x = jax.device_put(VALUES, Space.Host)
    with pytest.raises(
        ValueError, match="memory_space of all inputs passed to `add` must be the same"
    ):
        x + jnp.ones((8, 8))
    with pytest.raises(ValueError, match="must be the same"):
        jax.jit(lambda a: a + jax.device_put(a, Space.Host))(VALUES)
    assert (x + 1).sharding.memory_kind == (x + jnp.float32(1)).sharding.memory_kind


POLICIES = {
    "names": jax.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=["a"],
        names_which_can_be_offloaded=["b"],
        offload_src="device",
        offload_dst="pinned_host",
    ),
    "dots": jax.checkpoint_policies.offload_dot_with_no_batch_dims("device", "pinned_host"),
}


def layer(x):
    return jnp.sin(checkpoint_name(jnp.sin(checkpoint_name(jnp.sin(x), "a") @ x), "b"))


def scanned(x):
    return jax.lax.scan(lambda c, _: (layer(c), None), x, None, length=3)[0]


WHOLE = {
    "flat": layer,
    "jit": jax.jit(layer),
    "scan": scanned,
    "cond": lambda x: jax.lax.cond(x[0, 0] < 1, layer, jnp.cos, x),
}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("whole", WHOLE)
def test_offloaded_values_are_on_the_host_between_the_passes(policy, whole):
    function = jax.checkpoint(WHOLE[whole], policy=POLICIES[policy])
    gradient = jax.grad(lambda x: function(x).sum())
    wanted = jax.grad(lambda x: WHOLE[whole](x).sum())(VALUES)
    # The derivatives are sums of terms of the size of the largest.
    rounding = 1e-6 * np.abs(wanted).max()
    for call in (gradient, jax.jit(gradient), jax.jit(gradient, in_shardings=split("x"))):
        np.testing.assert_allclose(call(VALUES), wanted, rtol=1e-5, atol=rounding)
    text = jax.jit(gradient).trace(VALUES).lower(lowering_platforms=("tpu",)).as_text()
    placements = [
        kind
        for line in text.splitlines()
        for kind in ("pinned_host", "device")
        if f'_xla_buffer_placement = "{kind}"' in line
    ]
    # The other branch of cond has zeros there.
    assert placements == ["pinned_host"] * (1 + (whole == "cond")) + ["device"]


def test_residuals_of_an_eager_derivative_are_on_the_host():
    _, pullback = jax.vjp(jax.checkpoint(layer, policy=POLICIES["dots"]), VALUES)
    kinds = [
        leaf.sharding.memory_kind for leaf in jax.tree.leaves(pullback) if hasattr(leaf, "sharding")
    ]
    assert "pinned_host" in kinds
    (cotangent,) = pullback(jnp.ones((8, 8)))
    np.testing.assert_allclose(cotangent, jax.grad(lambda x: layer(x).sum())(VALUES), rtol=1e-5)
