"""The functions checkpoint and eval_shape trace a function once for arguments of the same types."""

import gc
import weakref

import numpy as np
import pytest

import hlofront as jax
from hlofront import numpy as jnp

X = np.ones((2, 3), np.float32)


@pytest.fixture
def counted():
    """A function that counts its traces."""

    def block(x):
        block.traces += 1
        return jnp.sin(x)

    block.traces = 0
    return block


def five_layers(block):
    """A function that checkpoints a block anew in each of five layers."""

    def model(x):
        for _ in range(5):
            x = jax.checkpoint(block)(x)
        return x.sum()

    return model


def test_checkpoints_of_one_function_trace_it_once(counted):
    model = five_layers(counted)
    jax.jit(jax.grad(model))(X)
    assert counted.traces == 1
    np.testing.assert_allclose(jax.grad(model)(X), jax.jit(jax.grad(model))(X), rtol=1e-6)
    jax.checkpoint(counted, policy=jax.checkpoint_policies.dots_saveable)(X)
    assert counted.traces == 1
    jax.checkpoint(counted)(X[0])
    jax.checkpoint(counted, static_argnums=())(X[0])
    assert counted.traces == 2


def test_static_arguments_of_checkpoints_are_told_apart():
    def scaled(x, factor):
        return x * factor

    assert jax.checkpoint(scaled, static_argnums=1)(2.0, 3) == 6
    assert jax.checkpoint(scaled, static_argnums=1)(2.0, 4) == 8
    assert jax.checkpoint(scaled)(2.0, 5.0) == 10


def test_a_function_that_captures_a_traced_value_is_traced_once_in_each_trace():
    traces = 0

    @jax.jit
    def outer(scale, x):
        def scaled(y):
            nonlocal traces
            traces += 1
            return y * scale

        for _ in range(3):
            x = jax.checkpoint(scaled)(x)
        return x

    assert outer(2.0, 1.0) == 8
    assert traces == 1
    assert jax.grad(outer)(2.0, 1.0) == 12
    assert jax.vmap(outer)(jnp.arange(3.0), jnp.ones(3)).tolist() == [0, 1, 8]


def test_eval_shape_and_jit_share_programs(counted):
    for _ in range(3):
        assert jax.eval_shape(counted, X).shape == (2, 3)
    jax.jit(counted)(X)
    assert counted.traces == 1
    assert jax.eval_shape(counted, X[0]).shape == (3,)
    assert counted.traces == 2


@pytest.mark.parametrize("trace", [lambda f: jax.checkpoint(f)(X), lambda f: jax.eval_shape(f, X)])
def test_traced_programs_do_not_keep_their_function(trace):
    def block(x):
        return x + 1

    trace(block)
    reference = weakref.ref(block)
    del block
    gc.collect()
    assert reference() is None


def test_callables_that_cannot_be_kept_are_traced_each_time():
    class Unhashable:
        __hash__ = None

        def __call__(self, x):
            return x * 2

    assert jax.eval_shape(Unhashable(), X).shape == (2, 3)
