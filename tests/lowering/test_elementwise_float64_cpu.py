"""Functions of many numbers of float64 on CPUs: formulas within few units in the last place."""

from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hlofront
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.base.config import options
from tests.support.large_arrays import ENOUGH, computed

EXACT: dict[str, Callable[..., mpmath.mpf]] = {
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
    "erf_inv": mpmath.erfinv,
    "asin": mpmath.asin,
    "acos": mpmath.acos,
    "log1p": mpmath.log1p,
    "atanh": mpmath.atanh,
}
UNITS = dict.fromkeys(EXACT, 0.95) | {
    "erf_inv": 2.9,
    "atanh": 1.9,
}

pytestmark = pytest.mark.usefixtures("wide_numbers")

random = np.random.default_rng(0)


def in_domain(name, x):
    """Return numbers for which the function is real."""
    if name == "log1p":
        return np.where(x < -1, -x, x)
    if name in ("asin", "acos", "atanh", "erf_inv"):
        return np.where(abs(x) > 1, 1 / x, x)
    return x


def assert_near(name, x):
    """Assert that errors are few units, and signs right."""
    x = in_domain(name, x)
    result = computed(name, x)
    assert result.dtype == np.float64
    # Products of subnormal numbers may be zeros.
    least = 0.0 if name == "cbrt" else np.finfo(np.float64).tiny
    with mpmath.workdps(60):
        for number, value in zip(x.tolist(), result.tolist()):
            exact = EXACT[name](mpmath.mpf(number))
            unit = max(float(np.spacing(abs(float(exact)))), least)
            assert abs(mpmath.mpf(value) - exact) <= UNITS[name] * unit, (number, value)
    np.testing.assert_array_equal(
        np.signbit(result), np.signbit([float(EXACT[name](n)) for n in x])
    )


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 0.1, 1, 5, 1e3, 1e5, 1e300])
@pytest.mark.parametrize("name", list(EXACT))
def test_errors_are_few_units(name, scale):
    assert_near(name, random.normal(size=400) * scale)


def test_errors_of_erf_inv_beside_one_and_its_border():
    steps = 2.0 ** -np.arange(1, 54)
    border = np.sqrt(-np.expm1(-6.25)) + random.normal(size=100) * 1e-5
    assert_near("erf_inv", np.concatenate([1 - steps, steps - 1, border]))


def test_cube_roots_of_all_magnitudes():
    bits = random.integers(0, 2**64, 600, dtype=np.uint64)
    x = bits.view(np.float64)
    assert_near("cbrt", x[np.isfinite(x)])
    assert_near("cbrt", random.integers(-30, 30, 60).astype(np.float64) ** 3)
    assert_near("cbrt", np.array([5e-324, -5e-324, 1e-310, np.finfo(float).tiny, 1.7e308, -8]))


def test_logarithms_beside_zero_and_one():
    steps = 2.0 ** -np.arange(1, 54)
    for name in ("log1p", "atanh"):
        assert_near(name, np.concatenate([steps, -steps, 1 - steps, steps - 1]))


@pytest.mark.parametrize("name", ["asin", "acos"])
def test_sines_beside_one_and_one_half(name):
    steps = 2.0 ** -np.arange(2, 54)
    for point in (0.5, 1.0):
        x = np.concatenate([[point], point - steps, (point + steps)[point + steps <= 1]])
        assert_near(name, np.concatenate([x, -x]))


def angles(y, x):
    return np.asarray(lax.atan2(np.resize(y, ENOUGH), np.resize(x, ENOUGH)))[: len(x)]


@pytest.mark.parametrize("scale", [1e-290, 1e-9, 1, 1e5, 1e300])
def test_angles_of_points(scale):
    x, y = random.normal(size=(2, 400))
    near = np.concatenate([x, y, y, -y, y * np.tan(np.pi / 8)]) * scale
    y = np.concatenate([y, x, *[y * (1 + x * 1e-3)] * 3]) * scale
    result = angles(y, near)
    with mpmath.workdps(40):
        for a, b, value in zip(y.tolist(), near.tolist(), result.tolist()):
            exact = mpmath.atan2(mpmath.mpf(a), mpmath.mpf(b))
            assert abs(mpmath.mpf(value) - exact) <= 0.95 * np.spacing(abs(float(exact))), (a, b)


def test_angles_of_points_whose_coordinates_are_far_apart():
    y, x = 2.0 ** random.uniform(-1021, 1023, (2, 1000))
    y[:3], x[:3] = [3e-131, 5e-306, 1e-128], [4e154, 1e-93, 3e155]
    least = np.finfo(float).tiny
    with mpmath.workdps(40):
        for a, b, value in zip(y.tolist(), x.tolist(), angles(y, x).tolist()):
            exact = mpmath.atan2(mpmath.mpf(a), mpmath.mpf(b))
            unit = max(np.spacing(float(exact)), least)
            assert abs(mpmath.mpf(value) - exact) <= 1.1 * unit, (a, b)


def test_quadrants_and_ends_of_angles():
    numbers = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-300, -3e307, 1.7e308, -3e-308]
    y, x = (each.ravel() for each in np.meshgrid(numbers, numbers))
    result, wanted = angles(y, x), np.arctan2(y, x)
    np.testing.assert_allclose(result, wanted, rtol=1e-15, atol=1e-307)
    known = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(result)[known], np.signbit(wanted)[known])
    text = hlofront.jit(lax.atan2).lower(np.ones(ENOUGH), np.ones(ENOUGH)).as_text()
    assert "stablehlo.atan2" not in text


@pytest.mark.parametrize("name", ["log1p", "asin", "acos", "atanh"])
def test_ends(name):
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 1.7e308, -1.7e308])
    with np.errstate(all="ignore"):
        wanted = getattr(np, name if name.startswith("log") else f"arc{name[1:]}")(x)
    result = computed(name, x)
    np.testing.assert_allclose(result, wanted, rtol=1e-15)
    known = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(result)[known], np.signbit(wanted)[known])


def test_ends_of_erf_inv():
    x = np.array([1.0, -1.0, 0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan])
    wanted = [np.inf, -np.inf, 0.0, -0.0, *[np.nan] * 5]
    result = computed("erf_inv", x)
    np.testing.assert_array_equal(result, wanted)
    np.testing.assert_array_equal(np.signbit(result[:4]), [False, True, False, True])
    inner = random.uniform(-1, 1, ENOUGH)
    slopes = hlofront.grad(lambda x: lax.erf_inv(x).sum())(inner)
    exact = np.exp(np.asarray(lax.erf_inv(inner)) ** 2) * np.sqrt(np.pi) / 2
    np.testing.assert_allclose(slopes, exact, rtol=1e-13)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_subnormal=False), min_size=1, max_size=20))
def test_logarithms_of_any_numbers(numbers):
    x = in_domain("log1p", np.array(numbers))
    with np.errstate(divide="ignore"):
        wanted = np.log1p(x)
    np.testing.assert_allclose(computed("log1p", x), wanted, rtol=1e-15, atol=0)


def test_cube_roots_of_infinities_zeros_and_nan():
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0])
    result = computed("cbrt", x)
    np.testing.assert_array_equal(result, x)
    np.testing.assert_array_equal(np.signbit(result[3:]), np.signbit(x[3:]))


def test_derivatives_and_batches():
    x = random.normal(size=(2, ENOUGH))
    np.testing.assert_allclose(hlofront.vmap(jnp.log1p)(x**2), np.log1p(x**2), rtol=1e-14)
    slopes = hlofront.grad(lambda x: lax.cbrt(x).sum())(x)
    np.testing.assert_allclose(slopes, 1 / (3 * np.cbrt(x) ** 2), rtol=1e-13)


def uses_formula(name, x, platforms=("cpu",)):
    function = hlofront.jit(getattr(lax, name))
    text = function.trace(x).lower(lowering_platforms=platforms).as_text()
    return "bitcast_convert" in text


@pytest.mark.parametrize("name", list(EXACT))
def test_where_they_are_used(name):
    x = np.ones(ENOUGH)
    assert uses_formula(name, x)
    assert not uses_formula(name, x, platforms=["tpu"])
    assert not uses_formula(name, x, platforms=["cuda"])
    assert not uses_formula(name, x, platforms=["cpu", "tpu"])
    assert not uses_formula(name, x[:10])
    with options["hlofront_fences"](False):
        assert not uses_formula(name, x)
