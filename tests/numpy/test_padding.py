"""Padding in every mode, as in NumPy."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp

A = np.array([[3, 1, 2, 1], [7, 8, 0, 4]], np.int32)
V = A[0]

CASES = [
    (A, 1, {}),
    (A, ((1, 2), (0, 3)), {"constant_values": 7}),
    (A, 1, {"constant_values": ((1, 2), (3, 4))}),
    (V, (1, 2), {"constant_values": (5, 6)}),
    (A, {1: (1, 2)}, {}),
    (A, ((2, 0), (1, 3)), {"mode": "edge"}),
    (A, 2, {"mode": "linear_ramp"}),
    (V.astype(np.float32), (2, 3), {"mode": "linear_ramp", "end_values": (10, -7)}),
    (A, 2, {"mode": "maximum"}),
    (A, 2, {"mode": "minimum", "stat_length": 1}),
    (A.astype(np.float32), 2, {"mode": "mean", "stat_length": ((1, 2), (3, 2))}),
    (A, 1, {"mode": "mean"}),
    (A, 1, {"mode": "median"}),
    (V, (2, 1), {"mode": "reflect"}),
    (V, (5, 8), {"mode": "reflect"}),
    (V, (5, 8), {"mode": "reflect", "reflect_type": "odd"}),
    (V[:1], 2, {"mode": "reflect"}),
    (A, ((1, 5), (0, 6)), {"mode": "symmetric"}),
    (V, (5, 6), {"mode": "symmetric", "reflect_type": "odd"}),
    (A, ((3, 0), (2, 9)), {"mode": "wrap"}),
    (V[:0], 2, {}),
    (V[:0], 0, {"mode": "wrap"}),
]


@pytest.mark.parametrize("array, width, kwargs", CASES)
def test_as_numpy(array, width, kwargs):
    pairs = width
    if isinstance(width, dict):
        pairs = [width.get(axis, (0, 0)) for axis in range(array.ndim)]
    expected = np.pad(array, pairs, **kwargs)
    found = jnp.pad(jnp.asarray(array), width, **kwargs)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert found.dtype == expected.dtype


def test_other_modes():
    assert jnp.pad(V, (2, 1), "empty").shape == (7,)
    found = jnp.pad(V, 2, lambda line, widths, axis, options: line.at[: widths[0]].set(9))
    np.testing.assert_array_equal(found, [9, 9, 3, 1, 2, 1, 0, 0])
    traced = jax.jit(lambda x, c: jnp.pad(x, 1, constant_values=c))
    np.testing.assert_array_equal(traced(V, 5), [5, 3, 1, 2, 1, 5])
    assert jnp.pad(3, 2).shape == ()
    one = jax.make_jaxpr(lambda x: jnp.pad(x, 1))(V)
    assert [str(e.primitive) for e in one.jaxpr.eqns] == ["pad"]


@pytest.mark.parametrize(
    "wrong, error, text",
    [
        (lambda: jnp.pad(V, -1), ValueError, "negative"),
        (lambda: jnp.pad(V, 1.0), TypeError, "integral type"),
        (lambda: jnp.pad(A, ((1, 2), (3, 4), (1, 2))), ValueError, "unsupported shape"),
        (lambda: jnp.pad(V, 1, "foo"), NotImplementedError, "foo"),
        (lambda: jnp.pad(V, 1, foo=1), ValueError, "unsupported keyword"),
        (lambda: jnp.pad(V[:0], 1, "edge"), ValueError, "empty axis"),
        (lambda: jnp.pad(V, 1, "maximum", stat_length=0), ValueError, "no value"),
        (lambda: jnp.pad([1, 2], 1), TypeError, "requires ndarray or scalar"),
        (
            lambda: jax.jit(lambda n: jnp.pad(V, n))(1),
            jax.errors.ConcretizationTypeError,
            "pad_width",
        ),
    ],
)
def test_errors(wrong, error, text):
    with pytest.raises(error, match=text):
        wrong()
