"""What vjp and linear_transpose return: functions that are pytrees of their residuals."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp


def pulled_back():
    a, b = jnp.arange(1.0, 4.0), jnp.arange(2.0, 5.0)
    _, pullback = jax.vjp(lambda x, y: jnp.sin(x["a"]) * x["b"][0] * y, {"a": a, "b": (b,)}, a * 2)
    return a, b, pullback


def test_residuals_that_are_arguments_stand_at_the_arguments():
    a, b, pullback = pulled_back()
    (of_a, (of_b,)), of_y = pullback.args_res
    assert repr(of_a) == "NotNeeded()"
    assert of_b is b
    np.testing.assert_array_equal(of_y, a * 2)
    assert any(np.array_equal(x, jnp.cos(a)) for x in pullback.opaque_residuals)
    assert len(jax.tree.leaves(pullback)) == 2 + len(pullback.opaque_residuals)


def test_an_array_that_is_two_arguments_stands_at_both():
    x = jnp.ones(3)
    _, pullback = jax.vjp(lambda x, y: x * y, x, x)
    assert pullback.args_res == [x, x]
    assert pullback.opaque_residuals == []


def test_a_residual_can_be_taken_out_and_given_back():
    _, pullback = jax.vjp(lambda x, y: x * y, jnp.ones(3), jnp.arange(3.0))
    kept, pullback.args_res[1] = pullback.args_res[1], None
    pullback.args_res[1] = kept + 1
    np.testing.assert_array_equal(pullback(jnp.ones(3))[0], [1, 2, 3])


def test_with_refs_says_which_cotangents_are_wanted():
    *_, pullback = pulled_back()
    wanted, unwanted = jax.ad.GradValue(), jax.ad.DontWant()
    whole = pullback(jnp.ones(3))
    x, y = pullback.with_refs({"a": wanted, "b": (unwanted,)}, unwanted)(jnp.ones(3))
    np.testing.assert_array_equal(x["a"], whole[0]["a"])
    assert (x["b"], y) == ((jax.ad.DidntWant(),), jax.ad.DidntWant())
    x, y = pullback.with_refs({"a": unwanted, "b": (unwanted,)}, wanted)(jnp.ones(3))
    np.testing.assert_array_equal(y, whole[1])
    assert jax.tree.leaves(x) == []
    with pytest.raises(ValueError, match="with_refs requires"):
        pullback.with_refs(wanted)
    with pytest.raises(ValueError, match="with_refs requires"):
        pullback.with_refs({"a": wanted, "b": (1.0,)}, wanted)


def test_pullbacks_leave_jit():
    *_, pullback = pulled_back()
    *_, jitted = jax.jit(pulled_back)()
    for mine, wanted in zip(
        jax.tree.leaves(jitted(jnp.ones(3))), jax.tree.leaves(pullback(jnp.ones(3))), strict=True
    ):
        np.testing.assert_allclose(mine, wanted, rtol=1e-6)


def test_transposed_functions_leave_jit():
    """They are pytrees of what the function closes over."""

    @jax.jit
    def tripled(x, factor):
        return jax.linear_transpose(lambda x: x * factor, x)

    assert tripled(1.0, 3.0)(2.0) == (6.0,)
    rows = jax.vmap(lambda factor: jax.linear_transpose(lambda x: x * factor, 1.0))(jnp.arange(3.0))
    np.testing.assert_array_equal(jax.tree.leaves(rows)[0], [0, 1, 2])


def test_what_a_linear_function_computes_of_known_values_is_computed_once():
    """The transposed function holds the result: it computes no sine when it is called."""

    @jax.jit
    def scaled(x, factor):
        return jax.linear_transpose(lambda x, y: (x * factor, y * jnp.sin(factor)), x, x)

    transposed = scaled(1.0, 4.0)
    np.testing.assert_allclose(jax.tree.leaves(transposed), [4.0, np.sin(4.0)], rtol=1e-6)
    np.testing.assert_allclose(transposed((3.0, 1.0)), [12.0, np.sin(4.0)], rtol=1e-6)
    assert "sin" not in str(jax.make_jaxpr(transposed)((3.0, 1.0)))


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: (jnp.sin(x) * y, jnp.cos(x))[0],
        lambda x, y: jax.lax.cond(x > 0, jnp.sin, lambda x: x * y, x),
        lambda x, y: jax.lax.scan(lambda c, _: (jnp.sin(c) * y, c), x, None, length=2)[0],
        lambda x, y: jax.checkpoint(lambda x: jnp.exp(x) * y)(x),
    ],
)
def test_the_backward_program_computes_nothing_in_vain(function):
    _, pullback = jax.vjp(function, 1.0, 2.0)
    jaxpr = jax.make_jaxpr(pullback)(1.0).jaxpr
    read = {id(x) for equation in jaxpr.eqns for x in equation.invars} | set(map(id, jaxpr.outvars))
    for equation in jaxpr.eqns:
        assert any(id(x) in read for x in equation.outvars), equation
