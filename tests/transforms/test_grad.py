"""What the functions that differentiate return, besides numbers: trees, pytrees of residuals."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp


def test_pullback_is_a_pytree_that_jit_returns_and_takes():
    forward = jax.jit(lambda x: jax.vjp(lambda x: jnp.sin(x) * x, x))
    backward = jax.jit(lambda pull, c: pull(c))
    value, pull = forward(2.0)
    np.testing.assert_allclose(value, np.sin(2.0) * 2, rtol=1e-6)
    (found,) = backward(pull, jnp.float32(1.0))
    np.testing.assert_allclose(found, np.cos(2.0) * 2 + np.sin(2.0), rtol=1e-6)


def test_linearized_function_is_evaluated_often_and_traced_once():
    calls = 0

    def function(x):
        nonlocal calls
        calls += 1
        return {"y": jnp.sin(x)}

    _, push = jax.linearize(function, jnp.arange(3.0))
    for scale in (1.0, 2.0):
        np.testing.assert_allclose(
            push(scale * jnp.ones(3))["y"], scale * np.cos(np.arange(3.0)), rtol=1e-6
        )
    assert calls == 1
    assert jax.tree.leaves(push)


def test_forward_and_backward():
    forward, backward = jax.fwd_and_bwd(lambda x, y: jnp.sin(x) * y, argnums=(0, 1))
    value, residuals = forward(1.0, 2.0)
    np.testing.assert_allclose(value, 2 * np.sin(1.0), rtol=1e-6)
    np.testing.assert_allclose(
        backward(residuals, jnp.float32(1.0)), (2 * np.cos(1.0), np.sin(1.0)), rtol=1e-6
    )
    forward, backward = jax.fwd_and_bwd(
        lambda x: (x * x, "aux"), argnums=0, has_aux=True, jitted=False
    )
    value, residuals, aux = forward(3.0)
    assert aux == "aux" and float(backward(residuals, jnp.float32(1.0))) == 6.0


def test_equal_layers_share_one_forward_and_one_backward_function():
    @jax.jit
    def layer(x, w):
        return jnp.tanh(x @ w)

    def loss(weights, x):
        for w in weights:
            x = layer(x, w)
        return x.sum()

    weights = [jnp.eye(4) for _ in range(48)]
    lowered = jax.jit(jax.value_and_grad(loss, (0, 1))).lower(weights, jnp.ones((2, 4)))
    text = lowered.as_text()
    functions = [line for line in text.splitlines() if "func.func private" in line]
    assert len(functions) == 2
    assert text.count("call @layer") == 96


def test_derivatives_are_arrays_though_the_values_are_those_of_python():
    assert isinstance(jax.grad(lambda x: 1.0 + x)(2.0), jax.Array)
    value, tangent = jax.jvp(lambda x: 3.0, (1.0,), (1.0,))
    assert type(value) is float and isinstance(tangent, jax.Array)
    assert jax.grad(lambda x: x)(1.0).weak_type


@pytest.mark.parametrize("scalar", [2.0, 3, True, 1j])
def test_transformations_hand_scalars_of_python_through(scalar):
    def pair(x):
        return x, scalar

    given = {
        "jvp": jax.jvp(pair, (2.0,), (1.0,))[0][1],
        "vjp": jax.vjp(pair, 2.0)[0][1],
        "linearize": jax.linearize(pair, 2.0)[0][1],
        "vmap": jax.vmap(pair, out_axes=(0, None))(jnp.ones(2))[1],
        "value_and_grad": jax.value_and_grad(pair, has_aux=True)(1.0)[0][1],
    }
    assert given == dict.fromkeys(given, scalar)
    assert {type(x) for x in given.values()} == {type(scalar)}

    def traced(x):
        inside = [jax.jvp(pair, (x,), (x,))[0][1], jax.vjp(pair, x)[0][1]]
        assert [type(y) for y in inside] == [type(scalar)] * 2
        return x

    jax.jit(traced)(1.0)


def test_a_literal_that_eval_jaxpr_returns_has_a_dtype():
    program = jax.make_jaxpr(lambda x: (2.0, 3, x))(1.0)
    number, integer, _ = jax.core.eval_jaxpr(program.jaxpr, [], 1.0)
    assert (number, number.dtype) == (2.0, np.float32) and isinstance(number, float)
    assert (integer, integer.dtype) == (3, np.int32) and isinstance(integer, int)


def test_what_is_closed_over_is_differentiated_too():
    def function(x):
        inner = jax.jit(lambda y: x * y)
        return inner(x) + jax.vmap(lambda y: x * y)(jnp.ones(2)).sum()

    assert float(jax.grad(function)(3.0)) == 8.0
    assert float(jax.jit(jax.grad(function))(3.0)) == 8.0


def test_a_value_decides_a_branch_in_eager_differentiation():
    def function(x):
        return x * x if x > 0 else -x

    assert float(jax.grad(function)(3.0)) == 6.0
    assert float(jax.grad(function)(-3.0)) == -1.0


def test_what_a_jitted_function_becomes_has_none_of_its_stages():
    """`grad(f).lower(x)` would lower f."""
    f = jax.jit(lambda x: x * 2)
    made = [
        jax.grad(f),
        jax.vmap(f),
        jax.hessian(f),
        jax.checkpoint(f),
        jax.named_call(f),
        jax.custom_jvp(f),
        jax.custom_vjp(f),
        jax.grad(jax.vmap(f)),
    ]
    assert f.lower and not [g for g in made if hasattr(g, "lower") or hasattr(g, "trace")]
    assert made[0].__wrapped__ is f
