"""sinh and cosh of many float64 numbers on CPUs: within few units in the last place."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hlofront
from hlofront import lax
from hlofront.base.config import options
from tests.support.large_arrays import ENOUGH, computed

UNITS = {"sinh": 2.4, "cosh": 1.8}
NAMES = list(UNITS)
GREATEST = np.log(np.finfo(np.float64).max)

pytestmark = pytest.mark.usefixtures("wide_numbers")

random = np.random.default_rng(0)


def assert_near(name, x):
    result = computed(name, x)
    assert result.dtype == np.float64
    with mpmath.workdps(50):
        for number, value in zip(x.tolist(), result.tolist()):
            exact = getattr(mpmath, name)(mpmath.mpf(number))
            unit = np.spacing(abs(float(exact)))
            assert abs(mpmath.mpf(value) - exact) <= UNITS[name] * unit, (number, value)


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1e-3, 0.3, 1, 30, 700])
@pytest.mark.parametrize("name", NAMES)
def test_errors_are_few_units(name, scale):
    assert_near(name, random.uniform(-scale, scale, 500))


@pytest.mark.parametrize("name", NAMES)
def test_errors_beside_multiples_of_the_logarithm_of_two(name):
    halves = np.arange(-100, 100) * (np.log(2) / 2)
    assert_near(name, np.concatenate([halves, np.nextafter(halves, 1e9), halves * 10]))


@pytest.mark.parametrize("name", NAMES)
def test_ends_of_the_range(name):
    greatest = GREATEST + np.log(2)
    ends = [np.nan, np.inf, -np.inf, 0.0, -0.0, greatest - 1e-9, greatest + 1e-9, 1e300, -1e300]
    x = np.array([*ends, 1e-300, -1e-300, -GREATEST - 1, -38.0, -37.0])
    with np.errstate(over="ignore"):
        wanted = getattr(np, name)(x)
    result = computed(name, x)
    np.testing.assert_allclose(result, wanted, rtol=1e-15)
    known = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(result)[known], np.signbit(wanted)[known])


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(-GREATEST, GREATEST), min_size=1, max_size=20))
def test_of_any_numbers(numbers):
    x = np.array(numbers)
    for name in NAMES:
        np.testing.assert_allclose(computed(name, x), getattr(np, name)(x), rtol=1e-15, atol=1e-307)


def test_derivatives_and_batches():
    x = random.normal(size=(2, ENOUGH))
    slopes = {"sinh": np.cosh, "cosh": np.sinh}
    for name, slope in slopes.items():
        function = getattr(lax, name)
        np.testing.assert_allclose(hlofront.vmap(function)(x), getattr(np, name)(x), rtol=1e-15)
        found = hlofront.grad(lambda x, function=function: function(x).sum())(x)
        np.testing.assert_allclose(found, slope(x), rtol=1e-14)


@pytest.mark.parametrize("name", NAMES)
def test_where_they_are_used(name):
    def uses_formula(x, platforms=("cpu",)):
        function = hlofront.jit(getattr(lax, name))
        text = function.trace(x).lower(lowering_platforms=platforms).as_text()
        return "bitcast_convert" in text

    x = np.ones(ENOUGH)
    assert uses_formula(x)
    for platforms in (["tpu"], ["cuda"]):
        assert not uses_formula(x, platforms)
    for few in (x[:10], x[:0], x[0]):
        assert not uses_formula(few)
        np.testing.assert_allclose(getattr(lax, name)(few), getattr(np, name)(few), rtol=1e-14)
    with options["hlofront_cpu_formulas"](False):
        assert not uses_formula(x)
