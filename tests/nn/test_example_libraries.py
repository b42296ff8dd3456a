"""Optimizers and layers of the example libraries, in the ways that they are meant to be used."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.example_libraries import optimizers, stax

MAKERS = [
    optimizers.sgd(0.1),
    optimizers.momentum(0.1, 0.5),
    optimizers.nesterov(0.1, 0.5),
    optimizers.adagrad(0.3),
    optimizers.rmsprop(0.1),
    optimizers.rmsprop_momentum(0.05, momentum=0.5),
    optimizers.adam(0.3),
    optimizers.adamax(0.3),
    optimizers.sm3(0.3),
]
NAMES = "sgd momentum nesterov adagrad rmsprop rmsprop_momentum adam adamax sm3".split()


def distance(params):
    return jnp.sum((params["w"] - 1) ** 2) + (params["b"] + 2) ** 2


@pytest.mark.parametrize("made", MAKERS, ids=NAMES)
def test_an_optimizer_finds_the_lowest_point_of_a_bowl(made):
    start = {"w": jnp.zeros(3), "b": jnp.zeros(())}

    def step(state, i):
        gradient = jax.grad(distance)({k: made.params_fn(state)[k] for k in "wb"})
        return made.update_fn(i, gradient, state), None

    if made is MAKERS[-1]:  # Shapes are part of the state of sm3, which is no carry of a loop.
        state = made.init_fn(start)
        for i in range(60):
            state, _ = step(state, i)
    else:
        state, _ = jax.lax.scan(step, made.init_fn(start), jnp.arange(100))
    assert distance(made.params_fn(state)) < 0.05


def test_a_step_of_gradient_descent_is_the_gradient_times_its_size():
    made = optimizers.sgd(lambda i: 0.5 / (i + 1))
    state = made.update_fn(1, jnp.array([4.0]), made.init_fn(jnp.array([1.0])))
    np.testing.assert_allclose(made.params_fn(state), [0.0])


def test_a_state_is_kept_with_the_parameters_it_belongs_to():
    made = optimizers.momentum(0.1, 0.9)
    marked = optimizers.unpack_optimizer_state(made.init_fn({"w": jnp.ones(2)}))
    np.testing.assert_array_equal(marked["w"].subtree, [[1, 1], [0, 0]])
    again = optimizers.pack_optimizer_state(marked)
    assert jax.tree.structure(again) == jax.tree.structure(made.init_fn({"w": jnp.ones(2)}))
    with pytest.raises(TypeError, match="JoinPoint"):
        optimizers.pack_optimizer_state({"w": 1.0})


def test_gradients_of_another_structure_are_refused():
    made = optimizers.sgd(0.1)
    with pytest.raises(TypeError, match="do not have the structure of the parameters"):
        made.update_fn(0, [1.0], made.init_fn({"w": 1.0}))


def test_a_network_of_layers_learns():
    init, apply = stax.serial(stax.Dense(16), stax.Tanh, stax.Dense(1))
    x = jnp.linspace(-1, 1, 20)[:, None]
    shape, params = init(jax.random.key(0), (-1, 1))
    assert shape == (-1, 1)
    made = optimizers.adam(0.05)

    def loss(params):
        return jnp.mean((apply(params, x) - jnp.sin(3 * x)) ** 2)

    def step(state, i):
        return made.update_fn(i, jax.grad(loss)(made.params_fn(state)), state), None

    state, _ = jax.lax.scan(step, made.init_fn(params), jnp.arange(200))
    assert loss(made.params_fn(state)) < 0.1 * loss(params)


def test_the_mean_of_a_window_does_not_count_padding():
    _, apply = stax.AvgPool((2, 2), padding="SAME")
    np.testing.assert_allclose(apply((), jnp.ones((1, 3, 3, 1))), np.ones((1, 3, 3, 1)))


def test_dropout_asks_for_a_key():
    with pytest.raises(ValueError, match="rng=key"):
        stax.Dropout(0.5)[1]((), jnp.ones(3))
