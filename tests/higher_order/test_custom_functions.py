"""Derivatives of functions with custom rules, where the rules have no place for them."""

import numpy as np
import pytest

import hlofront as jax
from hlofront import lax
from hlofront import numpy as jnp
from hlofront.custom_batching import custom_vmap


def scaled(y):
    """Twice `y`, by a function with a custom derivative that closes over `y`."""
    f = jax.custom_vjp(lambda x: x * y)
    f.defvjp(lambda x: (x * y, x), lambda x, cotangent: (cotangent * x,))
    return f(2.0)


@pytest.mark.parametrize(
    "derivative",
    [
        jax.grad(jax.jit(scaled)),
        jax.grad(jax.checkpoint(scaled)),
        jax.grad(lambda y: lax.scan(lambda c, _: (scaled(c), None), y, None, length=2)[0]),
    ],
    ids=("jit", "checkpoint", "scan"),
)
def test_derivatives_by_closed_over_values_are_refused(derivative):
    # JAX's class is a private one, CustomVJPException; the text gives the same advice.
    with pytest.raises(jax.errors.UnexpectedTracerError, match="respect to a closed-over value"):
        derivative(3.0)


@pytest.mark.parametrize("derivative", [jax.grad(scaled), jax.jit(jax.grad(scaled))])
def test_closed_over_values_that_are_differentiated_have_leaked(derivative):
    with pytest.raises(jax.errors.UnexpectedTracerError, match="unexpected tracer"):
        derivative(3.0)


@pytest.mark.parametrize("derivative", [jax.grad, lambda f: lambda x: jax.linearize(f, x)])
def test_reverse_mode_of_a_custom_vmap_function_says_what_to_do(derivative):
    sine = custom_vmap(jnp.sin)
    sine.def_vmap(lambda size, in_batched, x: (jnp.sin(x), in_batched[0]))
    for f in (sine, jax.jit(sine)):
        with pytest.raises(ValueError, match=r"custom_vmap function.*custom_vjp"):
            derivative(f)(0.5)
    np.testing.assert_allclose(jax.jacfwd(sine)(0.5), np.cos(np.float32(0.5)), rtol=1e-6)
