"""Trials of programs, and the parts that a search tries."""

import numpy as np
import pytest

import hlofront as jax
from hlofront import lax
from hlofront.inspect.miscompile.parts import inlined, part_of, smallest
from hlofront.inspect.miscompile.trials import Trials


@pytest.mark.long
@pytest.mark.slow
def test_a_program_that_does_not_end_is_ended():
    def endless(x):
        return lax.while_loop(lambda x: x > 0, lambda x: x + 1 - 1, x)

    x = np.array(1, np.float32)
    trials = Trials({}, seconds=3, isolated=True)
    try:
        outcome = trials.run(jax.make_jaxpr(endless)(x), [x])
        # Another process runs what follows.
        after = trials.run(jax.make_jaxpr(lax.sin)(x), [x])
    finally:
        trials.close()
    assert outcome.kind == "hang" and "3 seconds" in outcome.failure
    assert after.kind == "values"
    np.testing.assert_allclose(after.results[0], np.sin(x))


def program_of(function, *args):
    return inlined(jax.make_jaxpr(function)(*args)).jaxpr


def names(part):
    return [equation.primitive.name for equation in part.equations]


def test_the_smallest_part_has_only_the_operations_that_have_to_be_together():
    @jax.jit
    def inner(x):
        return lax.tanh(lax.floor(x)) + x

    def function(x, y):
        a, b = lax.exp(x), lax.sin(y)
        c = lax.mul(inner(a), b)
        return lax.neg(lax.sub(lax.cos(c), x)), lax.sqrt(b)

    x = np.ones(3, np.float32)
    jaxpr = program_of(function, x, x)
    tried = []

    def wrong(part):
        tried.append(part)
        return part.outputs if {"tanh", "cos"} <= set(names(part)) else ()

    part = smallest(part_of(jaxpr.eqns, jaxpr.outvars), wrong)
    assert names(part) == ["tanh", "add", "mul", "cos"]
    assert len(part.inputs) == 3 and len(part.outputs) == 1
    assert len(tried) < 25
