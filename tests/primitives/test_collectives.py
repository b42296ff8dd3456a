"""Operations along a named axis of vmap, by NumPy's account of them."""

import numpy as np
import pytest

import hlofront as jax
from hlofront import lax

X = np.arange(12, dtype=np.float32).reshape(4, 3)
SQUARE = np.arange(16, dtype=np.float32).reshape(4, 4)
GROUPS = [[0, 2], [1, 3]]
SUMS = np.stack([X[[0, 2]].sum(0), X[[1, 3]].sum(0)])[[0, 1, 0, 1]]


@pytest.mark.parametrize("call", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_a_value_that_is_not_mapped_stays_so_where_all_places_receive_it(call):
    def exchanged(permutation, out_axes):
        return jax.vmap(
            lambda _: call(lambda: lax.ppermute(X[0], "i", permutation))(),
            axis_name="i",
            out_axes=out_axes,
        )(X)

    cycle = [(0, 1), (1, 2), (2, 3), (3, 0)]
    np.testing.assert_array_equal(exchanged(cycle, None), X[0])
    np.testing.assert_array_equal(exchanged(cycle[:2], 0), [0 * X[0], X[0], X[0], 0 * X[0]])
    with pytest.raises(ValueError, match="None but output was batched"):
        exchanged(cycle[:2], None)


@pytest.mark.parametrize(
    ("function", "operand", "wanted"),
    [
        (lambda x: lax.psum(x, "i"), X, np.tile(X.sum(0), (4, 1))),
        (lambda x: lax.pmean(x, "i"), X, np.tile(X.mean(0), (4, 1))),
        (lambda x: lax.pmax(x, "i"), X, np.tile(X.max(0), (4, 1))),
        (lambda x: lax.pmin(x, "i"), X, np.tile(X.min(0), (4, 1))),
        (lambda x: lax.psum(x, "i", axis_index_groups=GROUPS), X, SUMS),
        (lambda x: lax.all_gather(x, "i"), X, np.stack([X] * 4)),
        (lambda x: lax.all_gather(x, "i", axis=1), X, np.stack([X.T] * 4)),
        (lambda x: lax.all_gather(x, "i", tiled=True), X, np.stack([X.ravel()] * 4)),
        (lambda x: lax.ppermute(x, "i", [(0, 1)]), X, np.stack([0 * X[0], X[0], *0 * X[2:]])),
        (lambda x: lax.pshuffle(x, "i", [1, 0, 3, 2]), X, X[[1, 0, 3, 2]]),
        (lambda x: lax.all_to_all(x, "i", 0, 0), SQUARE, SQUARE.T),
        (lambda x: lax.psum_scatter(x, "i"), SQUARE, SQUARE.sum(0)),
        (lambda x: lax.psum_scatter_start(x, "i").done(), SQUARE, SQUARE.sum(0)),
        (lambda x: x + lax.axis_index("i"), X, X + np.arange(4)[:, None]),
    ],
)
def test_value_and_derivative(function, operand, wanted):
    mapped = jax.vmap(function, axis_name="i")
    np.testing.assert_allclose(mapped(operand), wanted, rtol=1e-6)
    np.testing.assert_allclose(jax.jit(mapped)(operand), wanted, rtol=1e-6)
    result, pull = jax.vjp(mapped, operand)
    direction = np.cos(operand)
    _, moved = jax.jvp(mapped, (operand,), (direction,))
    cotangent = np.sin(np.asarray(result) + 1).astype(np.float32)
    there, back = np.vdot(cotangent, moved), np.vdot(pull(cotangent)[0], direction)
    np.testing.assert_allclose(there, back, rtol=1e-4, atol=1e-4)


def test_what_was_started_prints_its_type():
    def started(x):
        future = lax.psum_scatter_start({"a": x}, "i")
        assert repr(future) == "Future(type={'a': ShapedArray(float32[1])})"
        return future.done()["a"]

    np.testing.assert_allclose(jax.vmap(started, axis_name="i")(SQUARE), SQUARE.sum(0), rtol=1e-6)


def test_a_name_that_nobody_gave():
    with pytest.raises(NameError, match="unbound axis name: j"):
        jax.vmap(lambda x: lax.psum(x, "j"), axis_name="i")(X)


def test_an_axis_of_one_name_may_have_another_size_in_the_next_program():
    def exchanged(x):
        return lax.all_to_all(x, "i", 0, 1, tiled=True)

    shapes = [
        jax.make_jaxpr(exchanged, axis_env=[("i", size)])(np.ones((8, 2))).out_avals[0].shape
        for size in (2, 4)
    ]
    assert shapes == [(4, 4), (2, 8)]
