"""Cumulative operations on CPUs, as blocks of shifted slices and by doubling."""

import math

import hypothesis.extra.numpy as arrays
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings

import hlofront
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.lowering.cpu import cumsum as cumsum_cpu
from hlofront.lowering.min_sizes import MIN_SIZES

FOLDS = {
    "cumsum": np.add,
    "cumprod": np.multiply,
    "cummax": np.maximum,
    "cummin": np.minimum,
    "cumlogsumexp": np.logaddexp,
}
FLOATS = ["float32", "float64", "float16", ml_dtypes.bfloat16]
SHAPES = [(2, 0), (7, 0), (17, 0), (30, 1, 0), (8, 5, 0), (3, 9, 2, 1), (2, 3, 65, 2)]


@pytest.fixture(autouse=True)
def small_arrays_are_cut_into_blocks(monkeypatch):
    monkeypatch.setitem(MIN_SIZES["cumsum"], "all", 1)
    monkeypatch.setattr(cumsum_cpu, "_FEW", 8)
    hlofront.clear_caches()
    yield
    hlofront.clear_caches()


def text_of(function, *operands, platforms=("cpu",)):
    traced = hlofront.jit(function).trace(*operands)
    return traced.lower(lowering_platforms=platforms).as_text()


def folded(name, x, axis, reverse):
    """What NumPy gives, in the dtype of x or in float64."""
    wide = x if x.dtype.kind in "iu" else x.astype("complex128" if x.dtype.kind == "c" else float)
    if reverse:
        wide = np.flip(wide, axis)
    result = FOLDS[name].accumulate(wide, axis, dtype=wide.dtype)
    return np.flip(result, axis) if reverse else result


def check(name, x, axis, rtol=None):
    operation = getattr(lax, name)
    with hlofront.enable_x64(True), np.errstate(all="ignore"):
        assert "reduce_window" not in text_of(lambda x: operation(x, axis), x)
        for reverse in (False, True):
            result = hlofront.jit(operation, static_argnums=(1, 2))(x, axis, reverse)
            assert result.dtype == x.dtype
            wanted = folded(name, x, axis, reverse)
            if rtol is None:
                np.testing.assert_array_equal(result, wanted)
            else:
                np.testing.assert_allclose(np.asarray(result).astype(wanted.dtype), wanted, rtol)


@pytest.mark.parametrize("name", FOLDS)
@pytest.mark.parametrize("case", SHAPES, ids=str)
def test_shapes(name, case):
    *shape, axis = case
    x = np.random.default_rng(0).uniform(0.5, 2, shape).astype(np.float32)
    check(name, x, axis, rtol=3e-6)


@pytest.mark.parametrize("name", FOLDS)
def test_doubling(monkeypatch, name):
    monkeypatch.setattr(cumsum_cpu, "_FEW", 10**9)
    x = np.random.default_rng(0).uniform(0.9, 1.1, (2, 19, 3)).astype(np.float32)
    check(name, x, 1, rtol=3e-6)


@pytest.mark.parametrize("name", FOLDS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_floats(name, dtype):
    x = np.random.default_rng(0).uniform(0.9, 1.1, (3, 75)).astype(dtype)
    check(name, x, 1, rtol=16 * float(ml_dtypes.finfo(x.dtype).eps))


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin"])
@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint64"])
def test_integers(name, dtype):
    random = np.random.default_rng(0)
    limits = np.iinfo(dtype)
    x = random.integers(limits.min, limits.max, (2, 75), dtype, endpoint=True)
    check(name, x, 1)


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers(name, dtype):
    x = np.exp(1j * np.random.default_rng(0).uniform(0, 7, 75)).astype(dtype)
    check(name, x, 0, rtol=100 * float(np.finfo(dtype).eps))


def test_complex_numbers_in_order_keep_one_operation():
    x = np.random.default_rng(0).normal(size=75).astype(np.complex64)
    assert "reduce_window" in text_of(lambda x: lax.cummax(x, 0), x)
    assert "reduce_window" in text_of(lambda x: lax.cumlogsumexp(x, 0), x)


@pytest.mark.parametrize("name", FOLDS)
def test_special_numbers(name):
    random = np.random.default_rng(0)
    for numbers in ([0, -0.0, 1], [1, 0, np.inf], [1, -np.inf], [1, 2, np.inf, -np.inf, np.nan]):
        x = random.choice(
            numbers, (20, 40), p=[0.9, *[0.1 / (len(numbers) - 1)] * (len(numbers) - 1)]
        )
        check(name, x.astype(np.float32), 1, rtol=1e-5)


@settings(max_examples=30, deadline=None, database=None, derandomize=True)
@given(arrays.arrays("float32", 20))
def test_extremes_by_chance(x):
    # XLA's CPU code takes denormal numbers for zeros.
    x = np.where(abs(x) < np.finfo(np.float32).tiny, 0, x)
    check("cummax", x, 0)
    check("cummin", x, 0)


def test_accuracy():
    random = np.random.default_rng(0)
    squares, others = 0.0, 0.0
    for _ in range(10):
        x = random.uniform(size=20_000).astype(np.float32)
        wanted = np.cumsum(x.astype(float))
        squares += np.mean((np.asarray(hlofront.jit(jnp.cumsum)(x)) - wanted) ** 2)
        others += np.mean((np.cumsum(x) - wanted) ** 2)
    assert math.sqrt(squares) < math.sqrt(others) / 3


def test_derivatives_and_batches():
    x = np.random.default_rng(0).uniform(0.5, 1, (3, 40)).astype(np.float32)
    weights = np.arange(40, dtype=np.float32)
    gradient = hlofront.grad(lambda x: (jnp.cumsum(x, 1) * weights).sum())(x)
    np.testing.assert_allclose(gradient, np.tile(weights[::-1].cumsum()[::-1], (3, 1)))
    np.testing.assert_allclose(hlofront.vmap(jnp.cumprod, 1, 1)(x), np.cumprod(x, 0), rtol=1e-6)


def test_other_platforms_and_small_arrays_keep_one_operation(monkeypatch):
    x = np.ones(75, np.float32)
    assert "reduce_window" in text_of(jnp.cumsum, x, platforms=("cuda",))
    assert "reduce_window" in text_of(jnp.cumsum, x, platforms=("tpu",))
    monkeypatch.setitem(MIN_SIZES["cumsum"], "all", 1024)
    assert "reduce_window" in text_of(jnp.cumsum, x[:16])
    assert "reduce_window" not in text_of(jnp.cumsum, x[:17])
    assert jnp.cumsum(x[:1]).shape == (1,)
    assert jnp.cumsum(x[:0]).shape == (0,)
