"""i0e and i1e of many numbers on CPUs: rational functions, within few units in the last place."""

import mpmath
import numpy as np
import pytest
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st

import hlofront
from hlofront import lax
from hlofront.base.config import options
from tests.support.large_arrays import ENOUGH, computed

ORDERS = {"bessel_i0e": 0, "bessel_i1e": 1}
NAMES = list(ORDERS)

pytestmark = pytest.mark.usefixtures("wide_numbers")

random = np.random.default_rng(0)


def assert_near(name, x):
    result = computed(name, x)
    assert result.dtype == np.float64
    least = np.finfo(np.float64).tiny
    with mpmath.workdps(40):
        for number, value in zip(x.tolist(), result.tolist()):
            exact = mpmath.exp(-abs(mpmath.mpf(number))) * mpmath.besseli(ORDERS[name], number)
            unit = max(np.spacing(abs(float(exact))), least)
            assert abs(mpmath.mpf(value) - exact) <= 8.5 * float(unit), number


@pytest.mark.parametrize("scale", [1e-30, 1e-3, 1, 8, 15, 100, 1e6])
@pytest.mark.parametrize("name", NAMES)
def test_errors_are_few_units(name, scale):
    assert_near(name, random.uniform(-1, 1, 200) * scale)


@pytest.mark.parametrize("name", NAMES)
def test_errors_beside_the_border(name):
    border = 15.0
    beside = border + random.normal(size=100) * 1e-2
    x = np.concatenate([[border, np.nextafter(border, 0), np.nextafter(border, 99)], beside])
    assert_near(name, np.concatenate([x, -x]))


@pytest.mark.parametrize("name", NAMES)
def test_ends_of_the_range(name):
    greatest = np.finfo(np.float64).max
    x = np.array([np.nan, 0, 1e-36, -1e-36, 1e9, 1e18, 1e30, 1e300, greatest, -greatest])
    wanted = getattr(scipy.special, name[-3:])(x)
    np.testing.assert_allclose(computed(name, x), wanted, 1e-14)
    infinite = computed(name, np.array([np.inf, -np.inf]))
    np.testing.assert_array_equal(infinite, [0, 0])
    zeros = computed(name, np.array([0.0, -0.0]))
    np.testing.assert_array_equal(np.signbit(zeros), [False, name == "bessel_i1e"])


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.floats(-(2.0**100), 2.0**100, width=32, allow_subnormal=False), min_size=1, max_size=20
    )
)
def test_of_any_numbers(numbers):
    x = np.array(numbers)
    for name in NAMES:
        wanted = getattr(scipy.special, name[-3:])(x)
        np.testing.assert_allclose(computed(name, x), wanted, 2e-15, atol=1e-37)


def test_derivatives_and_batches():
    x = random.normal(size=(2, ENOUGH)) * 5
    for name in NAMES:
        function = getattr(lax, name)
        wanted = getattr(scipy.special, name[-3:])
        np.testing.assert_allclose(hlofront.vmap(function)(x), wanted(x), rtol=1e-14)
    i0e, i1e = scipy.special.i0e(x), scipy.special.i1e(x)
    slopes = hlofront.grad(lambda x: lax.bessel_i0e(x).sum())(x)
    np.testing.assert_allclose(slopes, i1e - np.sign(x) * i0e, rtol=1e-11)
    slopes = hlofront.grad(lambda x: lax.bessel_i1e(x).sum())(x)
    np.testing.assert_allclose(slopes, i0e - i1e * (np.sign(x) + 1 / x), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_where_they_are_used(name):
    def uses_formula(x, platforms=("cpu",)):
        function = hlofront.jit(getattr(lax, name))
        text = function.trace(x).lower(lowering_platforms=platforms).as_text()
        return "stablehlo.clamp" in text

    x = np.ones(ENOUGH)
    assert uses_formula(x)
    for platforms in (["tpu"], ["cuda"], ["cpu", "tpu"]):
        assert not uses_formula(x, platforms)
    assert not uses_formula(x.astype(np.float32))
    for few in (x[:10], x[:0], x[0]):
        assert not uses_formula(few)
        wanted = getattr(scipy.special, name[-3:])(np.float64(1))
        np.testing.assert_allclose(getattr(lax, name)(few), np.full(few.shape, wanted), 1e-6)
    with options["hlofront_cpu_formulas"](False):
        assert not uses_formula(x)
