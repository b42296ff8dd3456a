"""Checkpointed functions that call jitted ones, split by policies."""

import re

import numpy as np
import pytest

import hlofront as jax
from hlofront import lax
from hlofront import numpy as jnp
from hlofront.base.config import options

X = np.full((3, 3), 0.5, np.float32)
POLICIES = jax.checkpoint_policies


@jax.jit
def layer(x):
    return jnp.sin(x @ x)


@jax.jit
def two_layers(x):
    return jnp.cos(layer(x)) + layer(x)


def called_programs(jaxpr, name):
    """The programs of the calls of the jitted function of this name, at any depth."""
    calls = []
    for equation in jaxpr.eqns:
        for value in equation.params.values():
            for program in value if isinstance(value, tuple) else (value,):
                if hasattr(program, "eqns"):
                    if equation.primitive.name == "jit" and equation.params["name"] == name:
                        calls.append([e.primitive.name for e in program.eqns])
                    calls += called_programs(getattr(program, "jaxpr", program), name)
    return calls


@pytest.mark.parametrize(
    "policy, of_calls",
    {
        # The call that runs first, the one that runs again, and the transposed one.
        POLICIES.dots_saveable: [
            ["dot_general", "sin"],
            ["sin", "cos"],
            ["mul", "dot_general", "dot_general", "add_any"],
        ],
        POLICIES.everything_saveable: [
            ["dot_general", "sin", "cos"],
            ["mul", "dot_general", "dot_general", "add_any"],
        ],
    }.items(),
    ids=("dots_saveable", "everything_saveable"),
)
def test_calls_of_jitted_functions_stay_calls(policy, of_calls):
    checkpointed = jax.checkpoint(lambda x: jnp.cos(layer(x)).sum(), policy=policy)
    jaxpr = jax.make_jaxpr(jax.grad(checkpointed))(X).jaxpr
    assert called_programs(jaxpr, "layer") == of_calls


@pytest.mark.parametrize("around", ("alone", "in a scan", "in a branch"))
@pytest.mark.parametrize("policy", ("dots_saveable", "everything_saveable"))
def test_calls_in_calls_have_the_derivatives_of_the_function(policy, around):
    step = {
        "alone": two_layers,
        "in a scan": lambda x: lax.scan(lambda c, _: (two_layers(c), None), x, None, length=2)[0],
        "in a branch": lambda x: lax.cond(x[0, 0] > 0, two_layers, layer, x),
    }[around]
    checkpointed = jax.checkpoint(step, policy=getattr(POLICIES, policy))
    wanted = jax.jit(jax.grad(lambda x: step(x).sum()))(X)
    gradient = jax.jit(jax.vmap(jax.grad(lambda x: checkpointed(x).sum())))(X[None])[0]
    np.testing.assert_allclose(gradient, wanted, rtol=1e-5)


def logged_by_grad(function, x, caplog):
    """What is logged when a function is differentiated, without the places in this file."""
    caplog.clear()
    jax.grad(lambda x: function(x).sum())(x)
    return [
        re.sub(r" (at|from) \S*test_checkpoint\.py:\S*", "", record.getMessage())
        for record in caplog.records
        if record.levelname == "WARNING"
    ]


def test_what_a_checkpoint_saves_is_logged(caplog):
    def block(x):
        return jnp.cos(x @ x)

    x = jnp.ones((3, 3))
    by_policy = jax.checkpoint(block, policy=jax.checkpoint_policies.dots_saveable)
    with options["jax_log_checkpoint_residuals"](True):
        assert logged_by_grad(jax.checkpoint(block), x, caplog) == [
            "checkpoint of block saves for its derivative:\n  float32[3,3], an argument"
        ]
        assert logged_by_grad(jax.jit(by_policy), x, caplog) == [
            "checkpoint of block saves for its derivative:\n  float32[3,3], an argument\n"
            "  float32[3,3], output of dot_general (test_what_a_checkpoint_saves_is_logged"
            ".<locals>.block)"
        ]
        assert logged_by_grad(jax.checkpoint(lambda x: 2 * x), x, caplog) == [
            "checkpoint of <lambda> saves nothing for its derivative"
        ]
    assert not logged_by_grad(jax.checkpoint(block), x, caplog)


def test_saved_residuals_are_listed_in_the_order_of_the_program(capsys):
    def layers(first, second, x):
        return jnp.sin(second @ jnp.sin(first @ x))

    jax.ad_checkpoint.print_saved_residuals(layers, X, X, X)
    lines = [
        re.sub(r"^\S+ | from \S+:.*$", "", line) for line in capsys.readouterr().out.splitlines()
    ]
    arguments = [f"from the argument {name}" for name in ("first", "second", "x")]
    assert lines == [*arguments, *[f"output of {name}" for name in ("sin", "cos", "cos")]]


def test_a_loop_that_is_pushed_forward_stacks_no_values():
    loop = jax.checkpoint(lambda x: lax.fori_loop(0, 5, lambda _, c: jnp.sin(c), x))
    _, push = jax.linearize(loop, 1.0)
    assert "f32[5]" not in str(jax.make_jaxpr(push)(1.0))
    assert "f32[5]" in str(jax.make_jaxpr(jax.grad(loop))(1.0))
    np.testing.assert_allclose(push(1.0), jax.grad(loop)(1.0), rtol=1e-6)
