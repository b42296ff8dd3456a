"""Random bits on CPUs: one loop computes all rounds of Threefry, and the bits stay the same."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.base.config import options, threefry_partitionable

MIN_IN_LOOP = 64  # Fewer words are computed in a loop of steps.


def text_of(function, *args, platforms=("cpu",)):
    return jax.jit(function).trace(*args).lower(lowering_platforms=platforms).as_text()


def bits_of(shape, dtype="uint32"):
    return lambda key: jax.random.bits(key, shape, dtype)


def in_steps(function, *args):
    """Return the result of a function that is compiled without formulas for CPUs."""
    with options["hlofront_cpu_formulas"](False):
        return jax.jit(lambda *args: function(*args))(*args)


@settings(max_examples=8, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([(MIN_IN_LOOP - 1,), (5, 0), (2, 7, 11)]),
    st.sampled_from(["uint8", "uint16", "uint32"]),
    st.booleans(),
)
def test_any_bits(seed, shape, dtype, partitionable):
    key = jax.random.key(np.uint32(seed))
    with threefry_partitionable(partitionable):
        bits = jax.jit(bits_of(shape, dtype))(key)
        np.testing.assert_array_equal(bits, in_steps(bits_of(shape, dtype), key))
    assert bits.shape == shape and bits.dtype == dtype


def test_many_keys_and_keys_of_keys():
    def bits_and_keys(key):
        keys = jax.random.split(key, 100)
        keys = jax.vmap(lambda key: jax.random.split(key, 70)[69])(keys)
        keys = jax.vmap(jax.random.fold_in)(keys, jnp.arange(100))
        return jax.vmap(lambda key: jax.random.bits(key, (80,)))(keys), jax.random.key_data(keys)

    for results in zip(
        jax.jit(bits_and_keys)(jax.random.key(1)), in_steps(bits_and_keys, jax.random.key(1))
    ):
        np.testing.assert_array_equal(*results)


@pytest.mark.parametrize(
    ("function", "taken"),
    [
        (bits_of((MIN_IN_LOOP,)), True),
        (bits_of((8, 8), "uint8"), True),
        (bits_of((MIN_IN_LOOP - 1,)), False),
        (lambda key: jax.random.split(key, MIN_IN_LOOP), True),
        (jax.random.split, False),
        (lambda key: jax.vmap(bits_of((40,)))(jax.random.split(key)), True),
    ],
)
def test_many_bits_are_one_loop_on_cpus_alone(function, taken):
    key = jax.random.key(0)
    text = text_of(function, key)
    assert ("optimization_barrier" in text) == taken
    # A vmapped function splits its key first.
    assert ("stablehlo.while" in text) == (not taken or "vmap" in function.__code__.co_names)
    assert "optimization_barrier" not in text_of(function, key, platforms=("tpu",))
    with options["hlofront_cpu_formulas"](False):
        text = text_of(lambda key: function(key), key)
    assert "optimization_barrier" not in text and "stablehlo.while" in text


def test_numbers_that_are_read_more_than_once_share_their_bits():
    def read_twice(key):
        numbers = jax.random.normal(key, (1000,))
        return numbers + 1, numbers * 2, numbers.sum()

    text = jax.jit(read_twice).lower(jax.random.key(0)).compile().as_text()
    # The first loop has the twenty rounds, with a rotation in each.
    assert 20 <= text.count(" xor(") < 30


@pytest.mark.parametrize("shape", [(4999,), (1667, 3), (1999,), (2, 5, 997), (1001,), (443, 3)])
def test_uneven_numbers_of_bits_are_the_first_of_more(shape):
    key = jax.random.key(3)
    for dtype in ("uint8", "uint32"):
        bits = jax.jit(bits_of(shape, dtype))(key)
        np.testing.assert_array_equal(bits, in_steps(bits_of(shape, dtype), key))
    wanted = in_steps(lambda key: jax.random.normal(key, shape), key)
    np.testing.assert_allclose(jax.random.normal(key, shape), wanted, rtol=1e-6)
