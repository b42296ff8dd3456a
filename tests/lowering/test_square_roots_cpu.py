"""Reciprocal square roots of many numbers on CPUs: vector instructions with the same results."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hlofront
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.base.config import options

ENOUGH = 20_000  # Smaller arrays keep the operations of XLA.
FUNCTIONS = {
    "rsqrt": lambda x, y: lax.rsqrt(x),
    "reciprocal of a root": lambda x, y: 1 / jnp.sqrt(x),
    "quotient by a root": lambda x, y: y / jnp.sqrt(x),
}

random = np.random.default_rng(0)


def assert_same(x, y):
    for function in FUNCTIONS.values():
        result = hlofront.jit(lambda x, y: function(x, y))(x, y)
        with options["hlofront_cpu_formulas"](False):
            wanted = hlofront.jit(lambda x, y: function(x, y))(x, y)
        assert result.dtype == x.dtype
        result, wanted = (np.asarray(each.astype(float)) for each in (result, wanted))
        np.testing.assert_array_equal(result, wanted)
        numbers = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(result)[numbers], np.signbit(wanted)[numbers])


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_numbers_of_all_magnitudes(dtype):
    bits = random.integers(0, 2**32, ENOUGH, np.uint32)
    numbers = jnp.asarray(bits.view(np.float32)).astype(dtype)
    assert_same(numbers, numbers[::-1])


@settings(max_examples=5, deadline=None)
@given(st.lists(st.floats(width=32), min_size=1, max_size=20))
def test_any_numbers(numbers):
    x = jnp.resize(jnp.array([*numbers, 0.0, -0.0, 1e-45, -1.0, np.inf], np.float32), ENOUGH)
    assert_same(x, x[::-1])


def test_accuracy():
    x = np.exp(random.uniform(-80, 80, ENOUGH)).astype(np.float32)
    exact = 1 / np.sqrt(x.astype(np.float64))
    for function in (FUNCTIONS["rsqrt"], FUNCTIONS["reciprocal of a root"]):
        error = np.asarray(hlofront.jit(function)(x, x), np.float64) - exact
        assert np.max(np.abs(error) / np.spacing(exact.astype(np.float32))) < 1.6


def maxima_of(function, x, y, platform="cpu"):
    traced = hlofront.jit(function).trace(x, y)
    return traced.lower(lowering_platforms=(platform,)).as_text().count("stablehlo.maximum")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_many_narrow_floats_on_cpus_alone(name):
    function = FUNCTIONS[name]
    x = hlofront.ShapeDtypeStruct((ENOUGH,), np.float32)
    assert maxima_of(function, x, x) == 1
    assert maxima_of(function, x, x, "tpu") == maxima_of(function, x, x, "cuda") == 0
    small = hlofront.ShapeDtypeStruct((1000,), np.float32)
    assert maxima_of(function, small, small) == 0
    with options["hlofront_cpu_formulas"](False):
        assert maxima_of(lambda x, y: function(x, y), x, x) == 0
    with hlofront.enable_x64(True):
        wide = hlofront.ShapeDtypeStruct((ENOUGH,), np.float64)
        assert maxima_of(function, wide, wide) == 0


def test_other_quotients_and_integers():
    x = hlofront.ShapeDtypeStruct((ENOUGH,), np.float32)
    row = hlofront.ShapeDtypeStruct((1, ENOUGH), np.float32)
    assert maxima_of(lambda x, y: y / (jnp.sqrt(x) + 1), x, x) == 0
    assert maxima_of(lambda x, y: jnp.ones((2, 1)) * y / jnp.sqrt(x), row, row) == 0
    # The rule of integers stays beside that of floats.
    whole = hlofront.ShapeDtypeStruct((ENOUGH,), np.int32)
    text = hlofront.jit(lax.div).lower(whole, whole).as_text()
    assert "bitcast_convert" in text
