"""argmin and argmax on CPUs: the first extreme element, or the first NaN."""

import hypothesis.extra.numpy as arrays
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hlofront
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.lowering.cpu import argmax as argmax_cpu
from hlofront.lowering.min_sizes import MIN_SIZES

DTYPES = ["float32", "float16", ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn]
IN_BLOCKS = ["float32", "float64", "float16", ml_dtypes.bfloat16, "int32"]


@pytest.fixture(autouse=True)
def arrays_of_any_size_are_packed(monkeypatch):
    monkeypatch.setitem(MIN_SIZES["argmax"], "packed", 0)
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
    monkeypatch.setitem(MIN_SIZES["argmax"], "packed", 9)
    hlofront.clear_caches()
    assert not is_packed(argmax, np.zeros(8, np.float32))


# ---- by blocks -----------------------------------------------------------------------------------


@pytest.fixture
def lines_of_any_length_are_cut(monkeypatch):
    monkeypatch.setitem(MIN_SIZES["argmax"], "line of blocks", 30)
    for name, value in {"_MAX_PARTS": 4, "_MIN_PARTS": 2}.items():
        monkeypatch.setattr(argmax_cpu, name, value)


def is_cut(x, axis=-1, platforms=("cpu",)):
    """Whether the maxima of blocks are behind a barrier."""
    lowered = hlofront.jit(lambda x: jnp.argmax(x, axis)).trace(x)
    return "optimization_barrier" in lowered.lower(lowering_platforms=platforms).as_text()


def check_blocks(x):
    """Both functions give what NumPy gives along the last axis."""
    assert is_cut(x)
    wide = x.astype(np.float64)
    wide = np.where(abs(wide) < np.finfo(np.float32).tiny, 0, wide)
    np.testing.assert_array_equal(jnp.argmax(x, -1), wide.argmax(-1))
    np.testing.assert_array_equal(jnp.argmin(x, -1), wide.argmin(-1))


@pytest.mark.parametrize("dtype", IN_BLOCKS)
@pytest.mark.parametrize("shape", [(36,), (5, 144), (2, 3, 35 * 3)])
@pytest.mark.usefixtures("lines_of_any_length_are_cut")
def test_lines_with_ties_and_special_numbers_are_cut_into_blocks(dtype, shape):
    random, dtype = np.random.default_rng(0), np.dtype(dtype)
    if dtype.kind == "i":
        numbers = [0, 1, -1, np.iinfo(dtype).max, np.iinfo(dtype).min]
    else:
        numbers = [0.0, -0.0, 1, -1, np.inf, -np.inf, 1e-40]
    with hlofront.enable_x64(True):
        for _ in range(5):
            x = random.choice(numbers, shape).astype(dtype)
            check_blocks(x)
            check_blocks(np.full(shape, x.flat[0]))
            if dtype.kind != "i":
                x[random.random(shape) < 0.05] = np.nan
                check_blocks(x)
                check_blocks(np.full(shape, -np.nan, dtype))


@pytest.mark.usefixtures("lines_of_any_length_are_cut")
def test_each_element_of_a_line_is_found():
    for size in (30, 36, 48, 100):
        check_blocks(np.eye(size, dtype=np.float32))
        check_blocks(-np.eye(size, dtype=np.float32))
        check_blocks(np.where(np.eye(size), np.float32(np.nan), 0))
    x = np.random.default_rng(0).normal(size=(6, 7, 20)).astype(np.float32)
    batched = hlofront.jit(hlofront.vmap(jnp.argmax, in_axes=1))(x)
    np.testing.assert_array_equal(batched, x.swapaxes(0, 1).reshape(7, -1).argmax(1))


def test_the_first_nan_is_found_among_many_elements():
    x = np.random.default_rng(0).normal(size=10**5).astype(np.float32)
    assert is_cut(x)
    for first, last in ((0, 0), (3, 4), (50_000, 99_999), (99_999, 99_999)):
        y = x.copy()
        y[[first, last]] = np.nan
        assert (int(jnp.argmax(y)), int(jnp.argmin(y))) == (first, first)
        assert (int(jnp.nanargmax(y)), int(jnp.nanargmin(y))) == (
            np.nanargmax(y),
            np.nanargmin(y),
        )


def test_only_long_lines_are_cut_and_only_on_cpus(monkeypatch):
    monkeypatch.setitem(MIN_SIZES["argmax"], "line of blocks", 2**15)
    monkeypatch.setitem(MIN_SIZES["argmax"], "slices", 2**16)
    x = np.zeros((2, 2**15), np.float32)
    assert is_cut(x)
    assert is_cut(x[0])
    for platform in ("cuda", "tpu"):
        assert not is_cut(x, platforms=(platform,))
    assert not is_cut(x, 0)
    assert not is_cut(x[:, :-1])
    assert not is_cut(np.zeros(32_771, np.float32))  # A prime number.
    assert not is_cut(x[:, :100].astype(np.int8))


# ---- by slices -----------------------------------------------------------------------------------


@pytest.fixture
def small_arrays_are_cut_into_slices(monkeypatch):
    monkeypatch.setitem(MIN_SIZES["argmax"], "slices", 1)
    monkeypatch.setattr(argmax_cpu, "_MIN_LENGTH_OF_SLICES", 16)


@pytest.mark.parametrize("dtype", [*IN_BLOCKS, "int8", "uint16"])
@pytest.mark.parametrize("shape", [(16,), (5, 61), (2, 3, 64), (2, 1000)])
@pytest.mark.usefixtures("small_arrays_are_cut_into_slices")
def test_lines_with_ties_and_special_numbers_are_cut_into_slices(dtype, shape):
    random, dtype = np.random.default_rng(0), np.dtype(dtype)
    if dtype.kind in "iu":
        numbers = [0, 1, 2, np.iinfo(dtype).max, np.iinfo(dtype).min]
    else:
        numbers = [0.0, -0.0, 1, -1, np.inf, -np.inf, 1e-40]
    with hlofront.enable_x64(True):
        for _ in range(3):
            x = random.choice(numbers, shape).astype(dtype)
            check_blocks(x)
            check_blocks(np.full(shape, x.flat[0]))
            if dtype.kind not in "iu":
                x[random.random(shape) < 0.02] = np.nan
                check_blocks(x)
                check_blocks(np.full(shape, -np.nan, dtype))


@pytest.mark.long
@pytest.mark.usefixtures("small_arrays_are_cut_into_slices")
def test_each_element_is_found_in_slices():
    for size in (16, 17, 31, 100, 650):
        check_blocks(np.eye(size, dtype=np.float32))
        check_blocks(-np.eye(size, dtype=np.int32))
        check_blocks(np.where(np.eye(size), np.float32(np.nan), 0))
    x = np.random.default_rng(0).normal(size=(6, 7, 20)).astype(np.float32)
    batched = hlofront.jit(hlofront.vmap(jnp.argmax, in_axes=1))(x)
    np.testing.assert_array_equal(batched, x.swapaxes(0, 1).reshape(7, -1).argmax(1))


def test_only_lines_of_many_elements_are_cut_into_slices_and_only_on_cpus(monkeypatch):
    monkeypatch.setitem(MIN_SIZES["argmax"], "slices", 2**16)
    x = np.zeros((1024, 64), np.float32)
    assert is_cut(x)
    assert is_cut(x.astype(np.int8))
    for platform in ("cuda", "tpu"):
        assert not is_cut(x, platforms=(platform,))
    assert not is_cut(x, 0)
    assert not is_cut(x[:-1])
    assert not is_cut(x.reshape(2048, 32))
    assert not is_cut(x.astype(bool))
    with hlofront.enable_x64(True):
        assert not is_cut(x.astype(np.int64))


@pytest.mark.parametrize("function", ["max", "min"])
def test_the_option_that_the_readme_names_gives_maxima_of_nans(function):
    x = np.zeros(10**5, np.float32)
    x[33:66] = np.nan
    options = {"xla_cpu_experimental_ynn_fusion_type": "LIBRARY_FUSION_TYPE_DOT"}
    assert np.isnan(hlofront.jit(getattr(jnp, function), compiler_options=options)(x))
