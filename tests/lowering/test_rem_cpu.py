"""Remainders of many floats on CPUs, by the rounded quotient: exact, as C's fmod is."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hlofront
import hlofront.numpy as jnp
from hlofront import lax
from tests.support.large_arrays import ENOUGH

FLOATS = [np.float32, np.float64]

pytestmark = pytest.mark.usefixtures("wide_numbers")

random = np.random.default_rng(0)


def assert_exact(x, y):
    """Assert that remainders are those of NumPy, to the last bit and the sign of zero."""
    with np.errstate(invalid="ignore"):
        wanted = np.fmod(x, y)
    result = np.asarray(lax.rem(x, y))
    assert result.dtype == x.dtype
    np.testing.assert_array_equal(result, wanted)
    known = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(result)[known], np.signbit(wanted)[known])


def signs(count):
    return random.choice([-1.0, 1.0], count)


@pytest.mark.parametrize("dtype", FLOATS)
def test_usual_quotients(dtype):
    y = random.normal(size=50_000)
    quotient = np.exp2(random.uniform(-10, 24, len(y)))
    x, y = (y * quotient).astype(dtype), (y * signs(len(y))).astype(dtype)
    assert_exact(x, y)


@pytest.mark.parametrize("dtype", FLOATS)
def test_quotients_beside_integers(dtype):
    y = random.uniform(1, 2, 50_000).astype(dtype)
    x = (y * random.integers(1, 2**25, len(y))).astype(dtype)
    for dividend in (x, np.nextafter(x, 0), np.nextafter(x, dtype(np.inf))):
        assert_exact(dividend, y)
        assert_exact(dividend * signs(len(y)).astype(dtype), dividend)


@pytest.mark.parametrize("dtype", FLOATS)
def test_numbers_of_all_magnitudes(dtype):
    width = 8 * np.dtype(dtype).itemsize
    words = random.integers(0, 2**64, (2, 20_000), dtype=np.uint64) >> np.uint64(64 - width)
    x, y = words.astype(f"uint{width}").view(dtype)
    # Subnormal divisors are zeros on CPUs.
    assert_exact(x, np.where(abs(y) < np.finfo(dtype).tiny, dtype(1), y))


@pytest.mark.parametrize("dtype", FLOATS)
def test_remainders_that_are_subnormal(dtype):
    tiny = np.finfo(dtype).tiny
    y = (tiny * random.uniform(1, 9, ENOUGH)).astype(dtype)
    assert_exact((y * dtype(1.25)).astype(dtype), y)
    assert_exact(np.full_like(y, tiny / 8), y)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("divisors", [[np.inf, -np.inf, np.nan, 1.0, -3.0], [0.0, -0.0, 2.0]])
def test_infinities_zeros_and_nan(dtype, divisors):
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 6.0, -6.0, 1e-30, -7.5], dtype)
    y = np.array(divisors, dtype)
    x, y = (np.tile(each.ravel(), 500) for each in np.meshgrid(x, y))
    if divisors[0] == np.inf:  # An infinite dividend has a quotient that is too great.
        assert_exact(x, y)
        x, y = x[np.isfinite(x)], y[np.isfinite(x)]
    assert_exact(x, y)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_dtypes_are_exact(dtype):
    x, y = (random.normal(size=(2, ENOUGH)) * [[100], [1]]).astype(dtype)
    wanted = np.fmod(x.astype(np.float64), y.astype(np.float64))
    result = np.asarray(lax.rem(x, y))
    assert result.dtype == dtype
    np.testing.assert_array_equal(result.astype(np.float64), wanted)


def test_what_is_built_on_remainders():
    x, y = random.normal(size=(2, ENOUGH)).astype(np.float32) * 10
    for name in ("fmod", "remainder", "floor_divide"):
        np.testing.assert_array_equal(getattr(jnp, name)(x, y), getattr(np, name)(x, y))


def test_derivatives_and_batches():
    x, y = random.normal(size=(2, 3, ENOUGH)).astype(np.float32)
    np.testing.assert_array_equal(hlofront.vmap(lax.rem)(x, y), np.fmod(x, y))
    slopes = hlofront.grad(lambda y: lax.rem(x, y).sum())(y)
    wanted = -np.trunc(x.astype(np.float64) / y)
    np.testing.assert_allclose(slopes, wanted, rtol=1e-5)


def uses_formula(x, platforms=("cpu",)):
    text = hlofront.jit(lax.rem).trace(x, x).lower(lowering_platforms=platforms).as_text()
    assert "stablehlo.remainder" in text
    return "stablehlo.case" in text


@pytest.mark.parametrize("dtype", FLOATS)
def test_where_it_is_used(dtype):
    x = np.ones(ENOUGH, dtype)
    assert uses_formula(x)
    assert not uses_formula(x, platforms=["tpu"])
    assert not uses_formula(x, platforms=["cuda"])
    assert not uses_formula(x[:10])


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(st.tuples(st.floats(width=32), st.floats(width=32)), min_size=1, max_size=9))
def test_of_any_numbers(pairs):
    for dtype in FLOATS:
        x, y = np.resize(np.array(pairs, dtype), (ENOUGH, 2)).T
        # Subnormal numbers are zeros on CPUs.
        x, y = (np.where(abs(each) < 1e-30, dtype(0), each) for each in (x, y))
        assert_exact(x, y)
