"""Powers of many narrow floats on CPUs, by logarithms in float64, which round once."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hlofront
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.base.config import options
from tests.support.many_numbers import ENOUGH

random = np.random.default_rng(0)


def assert_rounded_once(x, y):
    """Assert that powers in float32 are NumPy's in float64, but for a rounding."""
    with np.errstate(all="ignore"):
        result = np.asarray(lax.pow(x, y))
        exact = np.power(x.astype(np.float64), y.astype(np.float64))
        unit = np.spacing(abs(exact).astype(np.float32)).astype(np.float64)
        # Subnormal results may be zeros.
        tiny = np.finfo(np.float32).tiny
        units = np.where(abs(exact) < tiny, tiny, 0.51 * unit)
        error = abs(result - exact) / units
    assert result.dtype == np.float32
    np.testing.assert_array_equal(np.isnan(result), np.isnan(exact))
    np.testing.assert_array_equal(np.isinf(result), np.isinf(exact.astype(np.float32)))
    known = ~np.isnan(exact)
    np.testing.assert_array_equal(np.signbit(result)[known], np.signbit(exact)[known])
    assert np.nanmax(error, initial=0) <= 1


def floats_of_random_bits(count):
    """Return numbers of float32 of every magnitude; some are subnormal, infinite or NaN."""
    return random.integers(0, 2**32, count, dtype=np.uint64).astype(np.uint32).view(np.float32)


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
@pytest.mark.parametrize("exponents", ["small", "whole", "of all magnitudes", "odd and even"])
def test_errors_are_at_most_half_a_unit(exponents):
    x, small = floats_of_random_bits(50_000), random.normal(size=50_000).astype(np.float32)
    y = {
        "small": small,
        "whole": np.round(small * 3),
        "of all magnitudes": floats_of_random_bits(50_000),
        "odd and even": np.round(small) + np.float32(2**24 - 10),
    }[exponents]
    assert_rounded_once(x, y)


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
def test_bases_near_one_and_large_exponents():
    x = (1 + random.normal(size=20_000) * 1e-5).astype(np.float32)
    assert_rounded_once(x, (random.normal(size=20_000) * 1e6).astype(np.float32))


def test_special_operands():
    tiny = float(np.finfo(np.float32).smallest_subnormal)
    ends = [0.0, 1.0, 2.0, 0.5, 3.0, 2.5, 1e30, 3e-30, tiny, np.inf]
    ends = np.array([np.nan, *ends, *(-x for x in ends)], np.float32)
    x, y = (np.resize(each, ENOUGH) for each in np.meshgrid(ends, ends))
    with np.errstate(all="ignore"):
        wanted = np.power(x, y)
    result = np.asarray(lax.pow(x, y))
    # Subnormal results may be zeros.
    np.testing.assert_allclose(result, wanted, rtol=1e-6, atol=1e-37)
    known = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(result)[known], np.signbit(wanted)[known])


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_dtypes_are_rounded(dtype):
    x, y = random.uniform(0.5, 4, (2, ENOUGH)).astype(dtype)
    result = np.asarray(lax.pow(x, y))
    assert result.dtype == dtype
    wanted = np.power(x.astype(np.float64), y.astype(np.float64))
    resolution = float(ml_dtypes.finfo(dtype).eps)
    np.testing.assert_allclose(result.astype(np.float64), wanted, rtol=resolution)


def test_scalar_and_integer_exponents():
    x = random.uniform(0.1, 9, ENOUGH).astype(np.float32)
    np.testing.assert_allclose(hlofront.jit(lambda x: x**2.5)(x), x**2.5, rtol=1e-6)
    np.testing.assert_allclose(hlofront.jit(lambda x: 2.5**x)(x), 2.5**x, rtol=1e-6)
    counts = random.integers(-5, 6, ENOUGH, dtype=np.int32)
    np.testing.assert_allclose(lax.pow(x, counts), x.astype(np.float64) ** counts, rtol=1e-6)


def test_derivatives_and_batches():
    x, y = random.uniform(0.5, 2, (2, 2, ENOUGH)).astype(np.float32)
    np.testing.assert_allclose(hlofront.vmap(lax.pow)(x, y), x**y, rtol=1e-6)
    slopes = hlofront.grad(lambda x, y: lax.pow(x, y).sum(), (0, 1))(x, y)
    np.testing.assert_allclose(slopes[0], y * x ** (y - 1), rtol=1e-5)
    np.testing.assert_allclose(slopes[1], x**y * np.log(x), rtol=1e-5, atol=1e-6)


def uses_formula(x, platforms=("cpu",)):
    text = hlofront.jit(lax.pow).trace(x, x).lower(lowering_platforms=platforms).as_text()
    return "stablehlo.power" not in text


def test_where_they_are_used():
    x = np.ones(ENOUGH, np.float32)
    assert uses_formula(x)
    assert not uses_formula(x, platforms=["tpu"])
    assert not uses_formula(x, platforms=["cuda"])
    assert not uses_formula(x, platforms=["cpu", "tpu"])
    assert not uses_formula(x[:10])
    with options["hlofront_fences"](False):
        assert not uses_formula(x)


def test_a_power_in_a_chain_is_computed_once():
    def chain(x):
        for _ in range(12):
            x = 1 + jnp.power(x, 1.5) * 0.1
        return x

    x = random.uniform(1, 2, ENOUGH).astype(np.float32)
    compiled = hlofront.jit(chain).lower(x).compile()
    assert compiled.as_text().count(" round-nearest-even(") == 12
    wanted = x.astype(np.float64)
    for _ in range(12):
        wanted = 1 + wanted**1.5 * 0.1
    np.testing.assert_allclose(compiled(x), wanted, rtol=1e-5)


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.floats(width=32), st.floats(width=32)), min_size=1, max_size=9))
def test_of_any_numbers(pairs):
    x, y = np.resize(np.array(pairs, np.float32), (ENOUGH, 2)).T
    assert_rounded_once(x, y)
