"""r_, c_, s_ and index_exp, against NumPy."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hlofront as jax
import hlofront.numpy as jnp

X, Y = np.float32([1, 2, 3]), np.float32([4, 5, 6])
M = np.arange(6, dtype=np.float32).reshape(2, 3)

KEYS = {
    "numbers": (1, 2, 3),
    "mixed": (X, 0, 0, Y),
    "slice": slice(1, 7, 2),
    "imaginary step": slice(0, 1, 5j),
    "several": (slice(-1, 1, 6j), [0] * 3, 5, 6),
    "backwards": slice(5, 0, -2),
    "matrices": (M, M),
    "along the last": ("-1", M, M),
    "two axes": ("0,2", X, Y),
    "two axes along the second": ("1,2", X, Y),
    "columns": ("0,2,0", X, Y),
    "side by side": ("1,2,0", X, Y),
    "in the middle": ("0,3,1", X, Y),
    "from the end": ("0,3,-2", X, Y),
    "slices of two axes": ("0,2", slice(3), slice(4, 7)),
    "booleans": (True, np.array([False])),
    "complex": (1j, X),
}


def check(found, wanted):
    wanted = np.asarray(wanted)
    assert found.shape == wanted.shape
    assert found.dtype.kind == wanted.dtype.kind
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", KEYS)
def test_rows(name):
    check(jnp.r_[KEYS[name]], np.r_[KEYS[name]])


@pytest.mark.parametrize("name", ["numbers", "mixed", "matrices", "slice"])
def test_columns(name):
    key = KEYS[name] if name != "mixed" else (X, Y, [0, 1, 2])
    check(jnp.c_[key], np.c_[key])


def test_columns_of_vectors_and_matrices():
    check(jnp.c_[M.T, X], np.c_[M.T, X])
    check(jnp.c_["0", X, Y], np.c_["0", X, Y])


def test_matrices_by_letter():
    for letter in "rc":
        vector = np.r_[X, Y]
        check(jnp.r_[letter, X, Y], vector[None] if letter == "r" else vector[:, None])
        check(jnp.r_[letter, M, M], np.r_[M, M])


def test_dtypes():
    assert jnp.r_[1, 2].weak_type and jnp.r_[1, 2].dtype == np.int32
    assert jnp.r_[1:3].dtype == np.int32 and not jnp.r_[1:3].weak_type
    assert jnp.r_[np.zeros(2, ml_dtypes.bfloat16), 1.5].dtype == ml_dtypes.bfloat16
    assert jnp.r_[1:3, np.float16(2)].dtype == np.float16
    with jax.enable_x64(True):
        assert jnp.r_[0:1:3j].dtype == np.float64
        assert jnp.r_[1:3].dtype == np.int64


def test_empty():
    check(jnp.r_[0:0, X[:0]], np.zeros(0, np.float32))
    check(jnp.r_["0,2", np.zeros((0, 3), np.float32), X], np.r_["0,2", np.zeros((0, 3)), X])


def test_refused():
    with pytest.raises(ValueError, match="could not understand directive"):
        jnp.r_["rows", X]
    with pytest.raises(ValueError, match="at the beginning"):
        jnp.r_[X, "r"]
    with pytest.raises(ValueError):
        jnp.r_["r"]
    with pytest.raises(IndexError, match="nothing to join"):
        jnp.c_[()]
    with pytest.raises(TypeError):
        jnp.r_[X, M]
    with pytest.raises(jax.errors.ConcretizationTypeError, match=r"stop of a slice in jnp\.r_"):
        jax.jit(lambda stop: jnp.r_[0:stop])(3)


def test_transformed():
    def joined(x, y):
        return jnp.r_[x, 0:2, y], jnp.c_[x, y], jnp.r_["0,2,0", x, y]

    for found, wanted in zip(jax.jit(joined)(X, Y), joined(X, Y), strict=True):
        check(found, wanted)
    mapped = jax.vmap(lambda x: jnp.r_[x, 0:2, x])(M)
    check(mapped, np.stack([np.r_[x, 0:2, x] for x in M]))
    gradient = jax.grad(lambda x: (jnp.c_[x, 2 * x] * np.arange(6).reshape(3, 2)).sum())(X)
    check(gradient, [0 + 2, 2 + 6, 4 + 10.0])


def test_expressions():
    assert jnp.s_[1:2, ..., None] == (slice(1, 2), Ellipsis, None)
    assert jnp.index_exp[3] == (3,) and jnp.s_[3] == 3
    check(jnp.asarray(M)[jnp.s_[:, ::2]], M[:, ::2])
    assert len(jnp.r_) == len(jnp.c_) == 0
    assert repr(jnp.r_) == "hlofront.numpy.r_"


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_directives(data):
    """Vectors among new axes go where NumPy puts them."""
    ndmin = data.draw(st.integers(1, 4))
    axis = data.draw(st.integers(-ndmin, ndmin - 1))
    place = data.draw(st.integers(-1 if ndmin == 1 else -ndmin, ndmin - 1))
    directive = f"{axis},{ndmin},{place}"
    check(jnp.r_[directive, X, Y], np.r_[directive, X, Y])
