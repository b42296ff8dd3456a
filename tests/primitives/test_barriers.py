"""Barriers, tokens and sinks: what stays in a program."""

import numpy as np
import pytest

import hlofront
from hlofront import lax


def test_barrier_in_the_module():
    text = hlofront.jit(lambda x, y: lax.optimization_barrier((x, y))).lower(1.0, 2).as_text()
    assert text.count("stablehlo.optimization_barrier") == 1


def test_tokens():
    token = lax.after_all(lax.create_token(), lax.create_token(3))
    assert token.block_until_ready() is token
    jaxpr = hlofront.make_jaxpr(lambda: lax.after_all(lax.create_token()))()
    assert str(jaxpr.out_avals[0]) == "Tok"
    for call in (lambda: lax.after_all(1.0), hlofront.jit(lambda: lax.after_all(1.0))):
        with pytest.raises(TypeError, match="Arguments to after_all must be tokens"):
            call()


def test_tokens_inside_a_program():
    @hlofront.jit
    def ordered(x):
        token = lax.after_all(lax.create_token())
        return lax.optimization_barrier((x, token))[0]

    assert float(ordered(3.0)) == 3.0


def test_sinks():
    def sunk(x):
        assert lax.dce_sink({"a": lax.sin(x), "b": x}) is None
        return x

    jaxpr = hlofront.make_jaxpr(sunk)(1.0)
    assert [e.primitive.name for e in jaxpr.eqns] == ["sin", "dce_sink", "dce_sink"]
    assert jaxpr.effects
    assert float(hlofront.jit(sunk)(1.0)) == 1.0
    assert lax.dce_sink(np.ones(3)) is None
    kept = hlofront.jit(lambda x: lax.dce_sink(x, prevent_mlir_dce=True)).lower(1.0).as_text()
    assert "@dce_sink" in kept and "has_side_effect = true" in kept
    for value in (np.float32(2), np.ones((2, 3), bool)):
        run = hlofront.jit(lambda x: (lax.dce_sink(x, prevent_mlir_dce=True), x)[1])
        np.testing.assert_array_equal(run(value), value)
