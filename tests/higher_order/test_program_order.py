"""experimental.overlap.program_order: the order of operations in StableHLO, and derivatives."""

import re

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.experimental.overlap import program_order

x, y = jnp.float32([1, 2]), jnp.float32([3, 4])


def f(x, y):
    return jnp.sin(x) * jnp.cos(y) + 1


def operations(fun, *args):
    """The names of the operations of the StableHLO, in their order."""
    text = jax.jit(fun).lower(*args).as_text()
    found = re.findall(r"= \"?(?:stablehlo|chlo)\.(\w+)|(call) @", text)
    skipped = {"constant", "broadcast_in_dim"}
    return [a or b for a, b in found if (a or b) not in skipped]


BARRIER = "optimization_barrier"


def test_a_barrier_is_between_an_operation_and_the_next():
    assert operations(program_order(f, enforce=True), x, y) == (
        ["sine", BARRIER, "cosine", BARRIER, "multiply", BARRIER, "add"]
    )
    assert operations(program_order(f, enforce=False), x, y) == (
        ["sine", "cosine", "multiply", "add"]
    )


def test_arguments_and_results_may_wait_for_each_other():
    once = program_order(enforce=True, strict_in_out=(True, False))(lambda x, y: (x + 1, y))
    assert operations(once, x, y) == [BARRIER, "add"]
    both = program_order(lambda x, y: (x + 1, y), enforce=True, strict_in_out=True)
    assert operations(both, x, y) == [BARRIER, "add", BARRIER]


def test_a_call_is_one_operation_of_the_order():
    free = program_order(f, enforce=False)

    def calling(inner):
        return program_order(lambda x, y: jnp.tanh(inner(jnp.tan(x), y)), enforce=True)

    per_input = ["tan", "create_token", BARRIER, BARRIER]
    inside = ["sine", "cosine", "multiply", "add"]
    assert operations(calling(free), x, y) == [*per_input, *inside, BARRIER, "tanh"]
    called = operations(calling(jax.jit(f)), x, y)
    assert called[: len(per_input) + 3] == [*per_input, "call", BARRIER, "tanh"]
    excluding = program_order(f, enforce=False, exclude_argnames="y")
    assert operations(calling(excluding), x, y) == [*per_input[:-1], *inside, BARRIER, "tanh"]


def test_operations_that_affect_no_result_are_left_out():
    def with_dead_code(x):
        jnp.sin(x)
        return jnp.cos(x)

    assert operations(program_order(with_dead_code, enforce=True), x) == ["cosine"]


@pytest.mark.parametrize("enforce", [True, False])
def test_ordered_functions_are_transformed(enforce):
    g = program_order(f, enforce=enforce)
    np.testing.assert_array_equal(g(x, y), f(x, y))
    np.testing.assert_array_equal(jax.vmap(g, (0, None))(x, y), jax.vmap(f, (0, None))(x, y))
    for of in (jax.jacfwd, jax.jacrev, lambda f: jax.jacrev(jax.checkpoint(f))):
        np.testing.assert_allclose(of(g)(x, y), of(f)(x, y), rtol=1e-6)
    closed = jax.jit(jax.grad(lambda x: jnp.sum(program_order(lambda: f(x, y), enforce=enforce)())))
    np.testing.assert_allclose(closed(x), jnp.cos(x) * jnp.cos(y), rtol=1e-6)


def test_derivatives_are_in_order():
    g = program_order(f, enforce=True)
    tangent = lambda x: jax.jvp(lambda x: g(x, y), (x,), (x,))[1]
    names = operations(tangent, x)
    assert names.count(BARRIER) == len(names) - names.count(BARRIER) - 1


def test_masks_follow_operands_that_derivatives_keep():
    g = program_order(f, enforce=False, exclude_argnames=("x",))
    jaxpr = jax.make_jaxpr(lambda x, y: jax.jvp(g, (x, y), (x, y)))(x, y)
    masks = [e.params["exclude_mask"] for e in jaxpr.eqns if e.primitive.name == "program_order"]
    assert masks and all(len(m) == 4 for m in masks)


def test_arguments_that_exclude_each_other_are_refused():
    with pytest.raises(ValueError, match="exclude_argnames cannot be used"):
        program_order(f, enforce=True, exclude_argnames="y")
    with pytest.raises(ValueError, match="strict_in_out=True cannot be used"):
        program_order(f, enforce=False, strict_in_out=True)
    with pytest.raises(ValueError, match="'z'"):
        program_order(f, enforce=False, exclude_argnames="z")(x, y)
