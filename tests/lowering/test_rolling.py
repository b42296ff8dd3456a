"""Vectors that are rolled: on CPUs large ones are the middle of two copies of them."""

import numpy as np
import pytest

import hlofront
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.lowering import slicing

X = np.arange(7, dtype=np.float32)


@pytest.fixture(autouse=True)
def vectors_of_any_size_are_large(monkeypatch):
    monkeypatch.setattr(slicing, "_FEWEST_BYTES", 0)
    hlofront.clear_caches()
    yield
    hlofront.clear_caches()


def text(function, *args, platforms=("cpu",)):
    return str(hlofront.jit(function).trace(*args).lower(lowering_platforms=platforms).as_text())


def is_doubled(function, *args, **options):
    return "tensor<14x" in text(function, *args, **options)


@pytest.mark.parametrize("shift", [-8, -1, 0, 3, 7, 20])
@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "complex64"])
def test_vectors_are_rolled_as_by_numpy(shift, dtype):
    x = X.astype(dtype)
    rolled = hlofront.jit(lambda x: jnp.roll(x, shift))(x)
    assert rolled.dtype == x.dtype
    np.testing.assert_array_equal(rolled, np.roll(x, shift))


def test_derivatives_roll_back():
    weights = np.arange(7.0, dtype=np.float32) ** 2
    back = hlofront.jit(hlofront.grad(lambda x: (jnp.roll(x, 2) * weights).sum()))(X)
    np.testing.assert_array_equal(back, np.roll(weights, -2))
    np.testing.assert_array_equal(
        hlofront.vmap(lambda x: jnp.roll(x, 1))(X.reshape(1, 7)), [np.roll(X, 1)]
    )


def test_only_cpus_double_a_vector():
    assert is_doubled(lambda x: jnp.roll(x, 2), X)
    assert is_doubled(lambda x: lax.concatenate([x[4:], x[:4]], 0), X)
    for platforms in (("tpu",), ("cuda",), ("cpu", "tpu")):
        assert not is_doubled(lambda x: jnp.roll(x, 2), X, platforms=platforms)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: [x[4:], y[:4]],
        lambda x, y: [x[:4], x[4:]],
        lambda x, y: [x[3:], x[:4]],
        lambda x, y: [x[5:], x[:4]],
        lambda x, y: [x[4:6], x[:5]],
        lambda x, y: [x[4:], x[:3], x[3:4]],
        lambda x, y: [x[4:], x[:7:2]],
        lambda x, y: [x[4:], x],
    ],
)
def test_other_slices_are_concatenated_as_they_are(function):
    def joined(x, y):
        return lax.concatenate(function(x, y), 0)

    y = X + 10
    assert not is_doubled(joined, X, y)
    np.testing.assert_array_equal(hlofront.jit(joined)(X, y), np.concatenate(function(X, y)))


def test_smaller_vectors_are_concatenated(monkeypatch):
    monkeypatch.undo()
    for size, doubles in ((2**22, True), (2**22 - 1, False)):
        program = text(lambda x: jnp.roll(x, 5), np.zeros(size, np.float32))
        assert (f"tensor<{2 * size}x" in program) == doubles
