"""What print(x) says of a traced array: its type, and the values that it has."""

import numpy as np
import pytest

import hlofront as jax
from hlofront import numpy as jnp

X = np.arange(3, dtype=np.float32)
ZERO, ONE = "[0. 1. 2.]", "[1. 1. 1.]"


@pytest.mark.parametrize(
    "transformed, text",
    [
        (lambda f: jax.jit(f)(X), "JitTracer(float32[3])"),
        (lambda f: jax.jit(f)(1.0), "JitTracer(~float32[])"),
        (lambda f: jax.vmap(f)(X), "VmapTracer(aval=float32[], batched=float32[3])"),
        (
            lambda f: jax.vmap(f)(jnp.broadcast_to(2.0, (2,))),
            "VmapTracer(aval=~float32[], batched=~float32[2])",
        ),
        (lambda f: jax.jvp(f, (X,), (X**0,)), f"JVPTracer(primal={ZERO}, tangent={ONE})"),
        (lambda f: jax.vjp(f, X), f"GradTracer(primal={ZERO}, typeof(tangent)=f32[3])"),
        (lambda f: jax.linearize(f, X), f"GradTracer(primal={ZERO}, typeof(tangent)=f32[3])"),
        (
            lambda f: jax.vmap(jax.grad(f))(X),
            "GradTracer(primal=VmapTracer(aval=float32[], batched=float32[3]), "
            "typeof(tangent)=f32[])",
        ),
        (
            lambda f: jax.jvp(jax.grad(f), (2.0,), (1.0,)),
            "GradTracer(primal=JVPTracer(primal=2.0, tangent=1.0), typeof(tangent)=f32[])",
        ),
    ],
)
def test_a_tracer_shows_its_type_and_its_parts(transformed, text):
    texts = set()

    def function(x):
        texts.update((str(x), repr(x), f"{x}"))
        return x

    transformed(function)
    assert texts == {text}
