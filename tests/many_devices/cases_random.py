"""Random numbers are the same bits on any mesh, however keys and results are split."""

import functools

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.sharding import Mesh, NamedSharding
from hlofront.sharding import PartitionSpec as P
from tests.many_devices.meshes import devices

MESHES = {
    sizes: Mesh(np.array(devices).reshape(sizes), tuple("xyz"[: len(sizes)]))
    for sizes in ((8,), (2, 4), (2, 2, 2))
}
SHARDINGS = [
    NamedSharding(MESHES[8,], P(None, "x")),
    NamedSharding(MESHES[2, 4], P("y", "x")),
    NamedSharding(MESHES[2, 2, 2], P(("x", "z"), "y")),
]
SHAPE = (16, 8)
SAMPLERS = {
    "bits": lambda key: jax.random.bits(key, SHAPE),
    "bits of 8": lambda key: jax.random.bits(key, SHAPE, np.uint8),
    "uniform": lambda key: jax.random.uniform(key, SHAPE),
    "bfloat16": lambda key: jax.random.normal(key, SHAPE, jnp.bfloat16),
    "normal": lambda key: jax.random.normal(key, SHAPE),
    "randint": lambda key: jax.random.randint(key, SHAPE, 0, 1000),
    "bernoulli": lambda key: jax.random.bernoulli(key, 0.3, SHAPE),
    "permutation": lambda key: jax.random.permutation(key, jnp.arange(128.0).reshape(SHAPE)),
    "split": lambda key: jax.random.key_data(jax.random.split(key, SHAPE)),
    "fold_in": lambda key: jax.vmap(jax.vmap(functools.partial(jax.random.fold_in, key)))(
        jnp.arange(128).reshape(SHAPE)
    ),
}


def data(array):
    is_key = jnp.issubdtype(array.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(array) if is_key else array)


@pytest.mark.parametrize("name", [*SAMPLERS, "bits of rbg"])
def test_samplers_draw_the_same_bits_on_any_mesh(name):
    key = jax.random.key(7, impl="rbg" if name == "bits of rbg" else "threefry2x32")
    sampler = SAMPLERS[name.removesuffix(" of rbg")]
    alone = data(jax.jit(sampler)(key))
    for sharding in SHARDINGS:
        sampled = jax.jit(sampler, out_shardings=sharding)(key)
        assert sampled.sharding.is_equivalent_to(sharding, sampled.ndim)
        np.testing.assert_array_equal(data(sampled), alone)


def test_samplers_that_can_be_split_send_nothing():
    for sharding in SHARDINGS:
        draw = jax.jit(SAMPLERS["normal"], out_shardings=sharding)
        text = draw.lower(jax.random.key(0)).compile().as_text()
        assert not any(
            word in text for word in ("all-gather", "all-to-all", "all-reduce", "permute")
        )


def test_split_keys_draw_what_whole_ones_do():
    keys = jax.random.split(jax.random.key(3), 16)
    draw = jax.vmap(lambda key: jax.random.normal(key, (4,)))
    alone, again = draw(keys), data(jax.random.split(keys[0], 8))
    for mesh in MESHES.values():
        split_keys = jax.device_put(keys, NamedSharding(mesh, P(mesh.axis_names)))
        for drawn in (draw(split_keys), jax.jit(draw)(split_keys)):
            assert drawn.sharding.device_set == set(devices)
            np.testing.assert_array_equal(drawn, alone)
        np.testing.assert_array_equal(data(jax.random.split(split_keys[0], 8)), again)
