"""debug_nans: the operation that made a NaN is named."""

import pytest

import hlofront as jax
import hlofront.numpy as jnp


def test_a_nan_is_named_eagerly_and_under_jit():
    with jax.debug_nans(True):
        for function in (jnp.log, jax.jit(lambda x: jnp.log(x) + 1)):
            with pytest.raises(FloatingPointError, match="nan"):
                function(-1.0)
    assert jnp.isnan(jnp.log(-1.0))


def test_an_infinity():
    with jax.debug_infs(True), pytest.raises(FloatingPointError, match="inf"):
        jnp.log(0.0)
