"""Tangents of many float64 numbers on CPUs: within one unit in the last place."""

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

pytestmark = pytest.mark.usefixtures("wide_numbers")

random = np.random.default_rng(0)


def assert_near(x):
    result = computed("tan", x)
    assert result.dtype == np.float64
    with mpmath.workdps(60):
        for number, value in zip(x.tolist(), result.tolist(), strict=True):
            exact = mpmath.tan(mpmath.mpf(number))
            unit = np.spacing(abs(float(exact)))
            assert abs(mpmath.mpf(value) - exact) <= 0.98 * unit, (number, value)


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 0.1, 1, 5, 1e3, 1e5, 1e300])
def test_errors_are_below_one_unit(scale):
    # Huge angles are left to XLA's operation.
    assert_near(random.normal(size=400) * scale)


def test_angles_near_multiples_of_a_quarter_of_pi():
    multiples = np.concatenate([np.arange(1, 200), random.integers(1, 1_300_000, 400)])
    assert_near(multiples * (np.pi / 4))
    assert_near(np.nextafter(multiples[:200] * (np.pi / 4), 1e9))
    # The greatest angles that have the formula.
    assert_near(np.nextafter([2.0**20, -(2.0**20)], 0))


def test_ends():
    x = np.array([0.0, -0.0, np.nan, 1e-310, -1e-310, 1e-200, -1e-260, 1e-300, 2.0])
    for ends in (x, np.array([*x, np.inf, -np.inf, 1e300])):
        with np.errstate(invalid="ignore"):
            wanted = np.tan(ends)
        result = computed("tan", ends)
        np.testing.assert_allclose(result, wanted, rtol=1e-15)
        known = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(result)[known], np.signbit(wanted)[known])


def test_derivatives_and_batches():
    x = random.uniform(-1.5, 1.5, (2, ENOUGH))
    np.testing.assert_allclose(hlofront.vmap(jnp.tan)(x), np.tan(x), rtol=1e-15)
    slopes = hlofront.grad(lambda x: jnp.tan(x).sum())(x)
    np.testing.assert_allclose(slopes, 1 + np.tan(x) ** 2, rtol=1e-14)


def test_where_they_are_used():
    def uses_formula(x, platforms=("cpu",)):
        text = hlofront.jit(lax.tan).trace(x).lower(lowering_platforms=platforms).as_text()
        return "stablehlo.case" in text

    x = np.ones(ENOUGH)
    assert uses_formula(x)
    for platforms in (["tpu"], ["cuda"], ["cpu", "tpu"]):
        assert not uses_formula(x, platforms)
    for few in (x[:10], x[:0], x[0]):
        assert not uses_formula(few)
    with options["hlofront_cpu_formulas"](False):
        assert not uses_formula(x)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=1, max_size=9))
def test_of_any_numbers(numbers):
    assert_near(np.array(numbers))
