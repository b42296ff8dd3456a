"""Bundles of programs for several devices keep their shardings, and load without compilation."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import bundle
from hlofront.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from tests.pjrt.needed import need

X = np.arange(32, dtype=np.float32).reshape(8, 4)
W = np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 6)


def layer(x, w):
    return jnp.tanh(x @ w)


@pytest.fixture
def shardings():
    mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y"))
    return [NamedSharding(mesh, PartitionSpec(*axes)) for axes in (("x",), (None, "y"))]


@pytest.mark.parametrize("requested", ["jit", "arguments"])
def test_shardings_of_jit_and_of_arguments(tmp_path, compilations, shardings, requested):
    of_jit = {"in_shardings": tuple(shardings)} if requested == "jit" else {}
    args = (X, W) if requested == "jit" else list(map(jax.device_put, (X, W), shardings))
    jitted = jax.jit(layer, **of_jit)
    path = tmp_path / "layer.hlob"
    bundle.save(path, jitted, *args)
    expected = jitted(*args)
    for loaded in (bundle.load(path, trust=True), bundle.attach(jitted, path, trust=True)):
        jax.clear_caches()
        compilations.clear()
        # Arrays of NumPy are split as the program wants them.
        for arrays in (args, args if loaded is jitted else (X, W)):
            result = loaded(*arrays)
            assert result.sharding == expected.sharding
            np.testing.assert_array_equal(result, expected)
        assert not compilations
    result = bundle.load(path)(*args)
    assert compilations and result.sharding == expected.sharding


def test_types_that_say_how_arrays_are_split(tmp_path, compilations):
    mesh = jax.make_mesh((8,), ("x",), (AxisType.Explicit,))
    x = jax.device_put(X, NamedSharding(mesh, PartitionSpec("x")))
    path = tmp_path / "doubled.hlob"
    doubled = jax.jit(lambda x: x * 2)
    bundle.save(path, doubled, x)
    expected = doubled(x)
    compilations.clear()
    result = bundle.load(path, trust=True)(x)
    assert not compilations
    assert jax.typeof(result) == jax.typeof(expected)
    assert result.sharding == expected.sharding


def test_targets_with_as_many_devices(tmp_path, shardings):
    need("tpu")
    jitted = jax.jit(layer, in_shardings=tuple(shardings))
    path = tmp_path / "layer.hlob"
    bundle.save(path, jitted, X, W, targets=["cpu", "tpu:v5e:2x4"])
    assert bundle.ls(path).programs[0].platforms == ("cpu", "tpu")
    cpu, tpu = bundle.verify(path)
    assert cpu.differing == "" and "it is for 8 x TPU v5 lite" in tpu.differing
    with pytest.raises(ValueError, match=r"is for 8 devices, and tpu:v5e:2x2 has 4"):
        bundle.save(path, jitted, X, W, targets=["tpu:v5e:2x2"])
