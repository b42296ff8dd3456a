"""argmin and argmax on CPUs, by packed integers: the first extreme element, or the first NaN."""

import hypothesis.extra.numpy as arrays
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hlofront
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.lowering import reducing_cpu

DTYPES = ["float32", "float16", ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn]


@pytest.fixture(autouse=True)
def arrays_of_any_size_are_packed(monkeypatch):
    monkeypatch.setattr(reducing_cpu, "_FEWEST", 0)
    hlofront.clear_caches()
    yield
    hlofront.clear_caches()


def is_packed(function, *operands):
    """Whether the program of a function reduces integers of 64 bits."""
    text = hlofront.jit(function).lower(*operands).as_text()
    return "xi64>" in text and "shift_left" in text


def check(x, axis=0):
    """Both functions, with and without jit, give what NumPy gives."""
    # XLA's CPU code takes denormal numbers for zeros.
    wide = np.asarray(x, np.float32)
    wide = np.where(abs(wide) < np.finfo(np.float32).tiny, 0, wide)
    assert is_packed(lambda x: lax.argmax(x, axis, np.int32), x)
    for ours, numpys in ((lax.argmax, np.argmax), (lax.argmin, np.argmin)):
        result = ours(x, axis, np.int32)
        assert result.dtype == np.int32
        np.testing.assert_array_equal(result, numpys(wide, axis))


@pytest.mark.parametrize("dtype", DTYPES)
def test_special_numbers(dtype):
    dtype = np.dtype(dtype)
    limits = ml_dtypes.finfo(dtype)
    numbers = [0.0, -0.0, 1, -1, limits.max, limits.min, limits.tiny, limits.smallest_subnormal]
    if not dtype.name.endswith("fn"):
        numbers += [np.inf, -np.inf]
    random = np.random.default_rng(0)
    numbers = np.array([float(x) for x in numbers])
    for length in (1, 2, 3, 50):
        x = random.choice(numbers, length).astype(dtype)
        check(x)
        x[random.integers(length)] = np.nan
        check(x)
        check(
            np.where(np.isnan(np.asarray(x, np.float32)), x, np.copysign(np.nan, -1)).astype(dtype)
        )


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_any_axis(axis):
    check(np.random.default_rng(0).integers(0, 3, (4, 5, 6)).astype(np.float32), axis)


@settings(max_examples=100, deadline=None, database=None, derandomize=True)
@given(
    arrays.arrays("float32", 12) | arrays.arrays("float16", 12) | st.just(np.zeros(12, "float32"))
)
def test_arrays_by_chance(x):
    check(x)


def test_batches_and_programs():
    x = np.random.default_rng(0).normal(size=(6, 50)).astype(np.float32)
    np.testing.assert_array_equal(hlofront.vmap(jnp.argmax)(x), x.argmax(1))
    np.testing.assert_array_equal(hlofront.vmap(jnp.argmin, in_axes=1)(x), x.argmin(0))
    assert int(jnp.argmax(x)) == x.argmax()
    program = hlofront.jit(lambda x: jnp.argmax(hlofront.nn.softmax(3 * x), 1, keepdims=True))
    np.testing.assert_array_equal(program(x), x.argmax(1, keepdims=True))


@pytest.mark.parametrize("index_dtype", ["int8", "uint8", "int16", "uint32"])
def test_any_dtype_of_indices(index_dtype):
    x = np.arange(100, dtype=np.float32)
    result = lax.argmax(x, 0, np.dtype(index_dtype))
    assert (int(result), result.dtype) == (99, index_dtype)


def test_others_are_reduced_with_their_indices(monkeypatch):
    argmax = jnp.argmax
    assert is_packed(argmax, np.zeros(8, np.float32))
    assert not is_packed(argmax, np.zeros(8, np.int32))
    with hlofront.enable_x64(True):
        assert not is_packed(argmax, np.zeros(8))
    lowered = hlofront.jit(argmax).trace(np.zeros(8, np.float32)).lower(lowering_platforms=("tpu",))
    assert "shift_left" not in lowered.as_text()
    monkeypatch.setattr(reducing_cpu, "_FEWEST", 9)
    hlofront.clear_caches()
    assert not is_packed(argmax, np.zeros(8, np.float32))
