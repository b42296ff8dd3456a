"""A program that holds others is emitted in place a few times, and is a function from then on."""

import numpy as np
import pytest

import hlofront as jax
from hlofront import lax

CONSTANT = np.linspace(0, 1, 100_000, dtype=np.float32)


def in_branches(f):
    return lambda x: lax.cond(x > 0, f, f, x)


def recomputed(f):
    return jax.checkpoint(lambda x: f(f(x)))


def in_loops(f):
    return lambda x: lax.fori_loop(
        0, 2, lambda _, y: lax.scan(lambda c, _: (f(c), None), y, None, 1)[0], x
    )


def levels(level, f, depth):
    for _ in range(depth):
        f = level(f)
    return f


def innermost(x):
    return x * 0.5 + CONSTANT[-1] + jax.numpy.asarray(CONSTANT)[jax.numpy.int32(x)]


@pytest.mark.parametrize("level", [in_branches, recomputed, in_loops])
def test_the_values_are_those_of_the_function(level):
    f = levels(level, innermost, 6)
    with jax.disable_jit():
        expected = f(jax.numpy.float32(1))
    np.testing.assert_allclose(jax.jit(f)(1.0), expected, rtol=1e-6)
    with jax.disable_jit():
        slope = jax.grad(f)(jax.numpy.float32(1))
    np.testing.assert_allclose(jax.jit(jax.grad(f))(1.0), slope, rtol=1e-6)


def test_ordered_effects_stay_in_order(capsys):
    def printing(x):
        jax.debug.print("{}", x, ordered=True)
        return x + 1

    f = levels(recomputed, printing, 5)
    assert jax.jit(f)(0.0) == 32
    jax.effects_barrier()
    assert capsys.readouterr().out.split() == [f"{x}.0" for x in range(32)]


def test_a_program_without_others_stays_in_place():
    f = in_branches(lambda x: x * 0.5)
    text = jax.jit(lambda x: sum(f(x + i) for i in range(20))).lower(1.0).as_text()
    assert text.count("stablehlo.case") == 20
    assert text.count("func.func private") == 0
