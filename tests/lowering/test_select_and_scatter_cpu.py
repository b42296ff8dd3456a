"""Derivatives of maxima of windows on CPUs, by shifted slices: what XLA's operations give."""

import numpy as np
import pytest

import hlofront
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.lowering.min_sizes import MIN_SIZES

random = np.random.default_rng(0)
# Numbers with many equal ones.
X = random.integers(-4, 5, (2, 9, 8, 3)).astype(np.float32)
INITS = {"max": -np.inf, "min": np.inf}


@pytest.fixture(autouse=True)
def small_arrays_too(monkeypatch):
    monkeypatch.setitem(MIN_SIZES["select_and_scatter_add"], "windows", 1)


def reduced(x, name="max", window=(3, 3), strides=(1, 1), padding="VALID", **dilations):
    if not isinstance(padding, str):
        padding = [(0, 0), *padding, (0, 0)]
    dilations = {key: (1, *value, 1) for key, value in dilations.items()}
    combine = getattr(lax, name)
    init = np.array(INITS[name] if np.issubdtype(x.dtype, np.inexact) else 0, x.dtype)
    return lax.reduce_window(
        x, init, combine, (1, *window, 1), (1, *strides, 1), padding, **dilations
    )


def text_of(function, *operands, platforms=("cpu",)):
    hlofront.clear_caches()  # The sizes that are asked about differ within a test.
    traced = hlofront.jit(function).trace(*operands)
    return traced.lower(lowering_platforms=platforms).as_text()


def assert_as_one_operation(monkeypatch, function, x):
    assert "stablehlo.select_and_scatter" not in text_of(function, x)
    result = hlofront.jit(function)(x)
    monkeypatch.setitem(MIN_SIZES["select_and_scatter_add"], "windows", 10**12)
    assert "stablehlo.select_and_scatter" in text_of(function, x)
    wanted = hlofront.jit(function)(x)
    assert result.dtype == wanted.dtype
    # The numbers are small integers, so sums in any order are equal.
    np.testing.assert_array_equal(np.asarray(result), np.asarray(wanted))


def gradient(name, **options):
    weights = random.integers(-3, 4, 2000).astype(np.float32)

    def total(x):
        result = reduced(x, name, **options)
        return (result * weights[: result.size].reshape(result.shape)).sum()

    return hlofront.grad(total)


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize(
    "options",
    [
        {"window": (2, 2), "strides": (2, 2)},
        {"window": (2, 2), "strides": (3, 3)},
        {"strides": (2, 2), "padding": "SAME"},
        {"window": (2, 3), "padding": [(1, 1), (0, 2)]},
        {"padding": [(-1, 2), (1, -2)]},
    ],
    ids=str,
)
def test_gradients_go_to_the_first_extreme_element(monkeypatch, name, options):
    function = gradient(name, **options)
    assert_as_one_operation(monkeypatch, function, X)


def test_gradients_of_complex_numbers_keep_the_operation():
    x = (X + 1j * X[::-1]).astype(np.complex64)
    text = text_of(hlofront.grad(lambda x: abs(reduced(x, "max")).sum()), x)
    assert "stablehlo.select_and_scatter" in text


def test_gradients_with_nan_and_infinities(monkeypatch):
    x = np.where(random.uniform(size=X.shape) < 0.2, np.nan, X)
    x[random.uniform(size=X.shape) < 0.2] = -np.inf
    function = gradient("max", strides=(2, 2), padding="SAME")
    assert_as_one_operation(monkeypatch, function, x.astype(np.float32))


def test_batches_and_second_derivatives():
    total = lambda x: (reduced(x, "max", strides=(2, 2)) ** 3).sum()
    batch = np.stack([X, X[::-1]])
    rows = [hlofront.grad(total)(x) for x in batch]
    np.testing.assert_allclose(hlofront.vmap(hlofront.grad(total))(batch), rows, rtol=1e-6)
    direction = np.ones_like(X)
    _, second = hlofront.jvp(hlofront.grad(total), (X,), (direction,))
    # Each selected x adds 3 x**2 to the gradient, whose derivative along ones is 6 x.
    assert np.any(second)
    np.testing.assert_allclose(second * X, 2 * np.asarray(rows[0]), rtol=1e-6)


def test_where_they_are_used(monkeypatch):
    operation = "stablehlo.select_and_scatter"
    assert operation not in text_of(gradient("max"), X)
    assert operation in text_of(gradient("max"), X, platforms=["tpu"])
    assert operation in text_of(gradient("max"), X, platforms=["cuda"])
    # For long windows XLA's code is smaller.
    assert operation in text_of(gradient("max", window=(9, 8)), jnp.zeros((1, 20, 20, 3)))
    monkeypatch.undo()
    assert operation in text_of(gradient("max"), X[:, :5, :5])
