"""Arrays as text, by NumPy's options."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp

X = np.array([[0.125, 1e-9], [2.5, 1000.0]], np.float32)


def test_text_is_numpys():
    x = jnp.asarray(X)
    assert jnp.array_str(x) == np.array_str(X)
    assert jnp.array_str(x, precision=1, suppress_small=True) == np.array_str(
        X, precision=1, suppress_small=True
    )
    assert jnp.array_repr(X) == np.array_repr(X)
    assert jnp.array_repr(x).removeprefix("ArrayImpl").replace("\n    ", "\n") == np.array_repr(
        X
    ).removeprefix("array")
    narrow = jnp.array_repr(x, max_line_width=20)
    assert max(map(len, narrow.splitlines())) <= 30 and narrow.count("\n") > 2


def test_options_are_numpys_and_ours():
    x = jnp.asarray(X)
    before = jnp.get_printoptions()
    with jnp.printoptions(precision=2, suppress=True):
        assert str(x) == str(X) and jnp.get_printoptions()["precision"] == 2
    assert jnp.get_printoptions() == before == np.get_printoptions()
    jnp.set_printoptions(precision=3)
    try:
        assert np.get_printoptions()["precision"] == 3
    finally:
        jnp.set_printoptions(precision=before["precision"])
    with pytest.raises(TypeError):
        jnp.set_printoptions(decimals=3)


def test_there_is_no_text_of_what_is_traced():
    with pytest.raises(jax.errors.TracerArrayConversionError):
        jax.jit(lambda x: jnp.array_repr(x) and x)(X)
