"""shard_map and pmap on one device, where parts are whole arrays and XLA partitions nothing."""

import subprocess
import sys

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.experimental import checkify
from hlofront.sharding import AxisType
from hlofront.sharding import PartitionSpec as P


def on_one_device(x):
    mesh = jax.make_mesh((1,), ("i",), axis_types=(AxisType.Auto,), devices=jax.devices()[:1])
    add_sum = jax.shard_map(
        lambda part: part * (1 + jax.lax.axis_index("i")) + jax.lax.psum(part, "i"),
        mesh=mesh,
        in_specs=P("i"),
        out_specs=P("i"),
    )
    return add_sum(x)


def test_shard_map_over_a_mesh_of_one_device_runs():
    x = jnp.array([1.0, 2.0])
    assert on_one_device(x).tolist() == [2.0, 4.0]
    assert jax.jit(on_one_device)(x).tolist() == [2.0, 4.0]
    assert jax.grad(lambda x: on_one_device(x)[1])(x).tolist() == [0.0, 2.0]


def test_a_program_of_one_device_has_no_manual_computation():
    assert "sdy" not in jax.jit(on_one_device).lower(jnp.ones(2)).as_text()


@pytest.mark.slow
def test_pmap_is_the_first_thing_that_a_process_calls():
    program = "import hlofront as jax; print(jax.pmap(lambda x: x + 1)(jax.numpy.zeros((1, 2))))"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (result.stdout, result.stderr) == ("[[1. 1.]]\n", "")


def checked_log(x):
    checkify.check(jnp.all(x > 0), "the first element is {}", x[0])
    return jnp.log(x)


@pytest.mark.parametrize("shift, message", [(0.0, "the first element is 0.0"), (1.0, None)])
def test_checkify_returns_the_error_of_a_mapped_function(shift, message):
    x = jnp.array([[0.0, 1.0]]) + shift
    error, y = checkify.checkify(jax.pmap(checked_log))(x)
    assert (error.get() or "").partition(" (")[0] == (message or "")
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(y, np.log(x))


@pytest.mark.parametrize("spec", [P(), P(None), P(None, None), P("i"), P("i", None), P(None, "i")])
def test_results_outside_of_jit_have_the_shardings_of_their_specs(spec):
    mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    x = jnp.arange(4.0).reshape(2, 2)
    mapped = jax.shard_map(lambda x: 2 * x, mesh=mesh, in_specs=spec, out_specs=spec)
    result = mapped(x)
    assert result.sharding == jax.sharding.NamedSharding(mesh, spec)
    np.testing.assert_array_equal(result, 2 * x)
    assert jax.jit(mapped)(x).sharding.spec == P()
