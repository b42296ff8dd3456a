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
from tests.support.many_numbers import ENOUGH, computed

ORDERS = {"bessel_i0e": 0, "bessel_i1e": 1}
NAMES = list(ORDERS)
FLOATS = ["float32", "float64"]
UNITS = {"float32": 5.5, "float64": 8.5}

pytestmark = pytest.mark.usefixtures("wide_numbers")

random = np.random.default_rng(0)


def assert_near(name, x):
    result = computed(name, x)
    assert result.dtype == x.dtype
    least = np.finfo(x.dtype).tiny
    with mpmath.workdps(40):
        for number, value in zip(x.tolist(), result.tolist()):
            exact = mpmath.exp(-abs(mpmath.mpf(number))) * mpmath.besseli(ORDERS[name], number)
            unit = max(np.spacing(abs(x.dtype.type(exact))), least)
            assert abs(mpmath.mpf(value) - exact) <= UNITS[x.dtype.name] * float(unit), number


@pytest.mark.parametrize("scale", [1e-30, 1e-3, 1, 8, 15, 100, 1e6])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", NAMES)
def test_errors_are_few_units(name, dtype, scale):
    assert_near(name, (random.uniform(-1, 1, 200) * scale).astype(dtype))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", NAMES)
def test_errors_beside_the_borders(name, dtype):
    border = np.array(8.0 if dtype == "float32" else 15.0, dtype)
    beside = border + random.normal(size=100) * 1e-2
    x = np.concatenate([[border, np.nextafter(border, 0), np.nextafter(border, 99)], beside])
    assert_near(name, np.concatenate([x, -x]).astype(dtype))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", NAMES)
def test_ends_of_the_range(name, dtype):
    greatest = np.finfo(dtype).max
    x = np.array([np.nan, 0, 1e-36, -1e-36, 1e9, 1e18, 1e30, greatest, -greatest], dtype)
    wanted = getattr(scipy.special, name[-3:])(x.astype(np.float64))
    np.testing.assert_allclose(computed(name, x), wanted, 1e-6 if dtype == "float32" else 1e-14)
    infinite = computed(name, np.array([np.inf, -np.inf], dtype))
    np.testing.assert_array_equal(infinite, [0, 0])
    zeros = computed(name, np.array([0.0, -0.0], dtype))
    np.testing.assert_array_equal(np.signbit(zeros), [False, name == "bessel_i1e"])


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.floats(-(2.0**100), 2.0**100, width=32, allow_subnormal=False), min_size=1, max_size=20
    )
)
def test_of_any_numbers(numbers):
    for name in NAMES:
        for dtype, narrow in (("float32", 1e-6), ("float64", 2e-15)):
            x = np.array(numbers, dtype)
            wanted = getattr(scipy.special, name[-3:])(x.astype(np.float64))
            np.testing.assert_allclose(computed(name, x), wanted, narrow, atol=1e-37)


@pytest.mark.parametrize("dtype", [np.float16, hlofront.numpy.bfloat16])
def test_narrower_dtypes_are_rounded_once(dtype):
    x = np.asarray(random.uniform(-30, 30, 300)).astype(dtype)
    for name in NAMES:
        wanted = getattr(scipy.special, name[-3:])(x.astype(np.float64))
        result = computed(name, x)
        assert result.dtype == x.dtype
        eps = float(hlofront.numpy.finfo(dtype).eps)
        np.testing.assert_allclose(result.astype(np.float64), wanted, 0.51 * eps)


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


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", NAMES)
def test_where_they_are_used(name, dtype):
    def uses_formula(x, platforms=("cpu",)):
        function = hlofront.jit(getattr(lax, name))
        text = function.trace(x).lower(lowering_platforms=platforms).as_text()
        return "stablehlo.clamp" in text

    x = np.ones(ENOUGH, dtype)
    assert uses_formula(x)
    for platforms in (["tpu"], ["cuda"], ["cpu", "tpu"]):
        assert not uses_formula(x, platforms)
    for few in (x[:10], x[:0], x[0]):
        assert not uses_formula(few)
        wanted = getattr(scipy.special, name[-3:])(np.float64(1))
        np.testing.assert_allclose(getattr(lax, name)(few), np.full(few.shape, wanted), 1e-6)
    with options["hlofront_cpu_formulas"](False):
        assert not uses_formula(x)
