"""Members of arrays and tracers that are in no other chapter."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp


def test_parts_rounding_and_limits():
    z = jnp.array([1 + 2j, -3.5 - 1j])
    host = np.asarray(z)
    for f in (lambda z: (z.real, z.imag, z.conj(), z.conjugate()),):
        for got, wanted in zip(f(z), f(host), strict=True):
            np.testing.assert_array_equal(got, wanted)
        for got, wanted in zip(jax.jit(f)(z), f(host), strict=True):
            np.testing.assert_array_equal(got, wanted)
    x = jnp.array([-1.26, 0.0, 2.55])
    np.testing.assert_array_equal(x.clip(-1, 1), [-1, 0, 1])
    np.testing.assert_allclose(x.round(1), np.asarray(x).round(1))
    assert round(jnp.float32(2.5)).dtype == np.int32 and round(jnp.float32(2.5)) == 2
    np.testing.assert_allclose(round(x, 1), np.asarray(x).round(1))


def test_flat_contains_and_byteswap():
    x = jnp.arange(6).reshape(2, 3)
    assert list(map(int, x.flat)) == [0, 1, 2, 3, 4, 5]
    assert 3 in x[1] and 7 not in x[1]
    with pytest.raises(ValueError, match="one-dimensional"):
        assert 3 in x
    for dtype in ("int8", "int32", "float16"):
        y = jnp.arange(3).astype(dtype)
        np.testing.assert_array_equal(y.byteswap(), np.asarray(y).byteswap())


def test_the_array_api_namespace():
    x = jnp.ones(2)
    assert x.__array_namespace__() is jnp
    with pytest.raises(ValueError, match=r"api_version '1999.1'"):
        x.__array_namespace__(api_version="1999.1")
    assert jax.jit(lambda x: x.__array_namespace__().sum(x))(x) == 2


def test_every_operator_has_found_its_meaning():
    from hlofront.core import operators

    waiting = operators._waiting("__add__").__code__
    x = jnp.ones(2)
    for kind in (type(x), operators.ArrayOperators):
        left = [
            n
            for n in operators._NAMES
            if getattr(vars(kind).get(f"__{n}__"), "__code__", 0) is waiting
        ]
        assert not left
    assert [int(v) for v in reversed(jnp.arange(3))] == [2, 1, 0]
    assert jax.jit(lambda x: jnp.stack(list(reversed(x))))(jnp.arange(3)).tolist() == [2, 1, 0]
