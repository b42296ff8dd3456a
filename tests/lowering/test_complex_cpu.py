"""exp and log of many complex numbers on CPUs: formulas of both parts, within few units each."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hlofront
from hlofront import lax
from hlofront.base.config import options
from tests.support.many_numbers import ENOUGH, computed

NAMES = ["exp", "log"]
DTYPES = ["complex64", "complex128"]
UNITS = {"complex64": 1.5, "complex128": 2.5}

pytestmark = pytest.mark.usefixtures("wide_numbers")

random = np.random.default_rng(0)


def assert_near(name, x, units=None, least=0.0):
    """Assert that the errors of both parts are few units in the last places of that part."""
    result = computed(name, x)
    assert result.dtype == x.dtype
    limits = np.finfo(x.dtype)
    with mpmath.workdps(60):
        for number, value in zip(x.tolist(), result):
            exact = getattr(mpmath, name)(mpmath.mpc(number))
            for part, wanted in ((value.real, exact.real), (value.imag, exact.imag)):
                unit = max(np.spacing(abs(limits.dtype.type(wanted))), limits.tiny, least)
                error = abs(mpmath.mpf(float(part)) - wanted)
                assert error <= (units or UNITS[x.dtype.name]) * float(unit), (number, value)


def points(count, scale, dtype):
    return (random.normal(size=(2, count)) * scale).T.copy().view(complex)[:, 0].astype(dtype)


@pytest.mark.parametrize("scale", [1e-30, 1e-3, 1, 25])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_errors_are_few_units(name, dtype, scale):
    assert_near(name, points(300, scale, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_logarithms_of_any_magnitude(dtype):
    greatest = 120 if dtype == "complex64" else 1000
    sizes = 2.0 ** random.uniform(-greatest, greatest, (2, 300))
    assert_near("log", (sizes[0] + 1j * sizes[1]).astype(dtype))
    assert_near("log", (sizes[0] - 1j * sizes[0] * random.uniform(0, 2, 300)).astype(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_logarithms_beside_the_unit_circle(dtype):
    # There the real part is half the difference of the square from 1. In float64 that is a sum of
    # exact products, as precise as if it had 106 bits.
    least = 2.0**-50 if dtype == "complex64" else 2.0**-103
    x = np.exp(1j * random.uniform(0, 7, 500)).astype(dtype)
    assert_near("log", x, least=least)
    assert_near("log", (x * (1 + random.normal(size=500) * 1e-3)).astype(dtype), least=least)
    assert_near("log", np.array([1, -1, 1j, -1j, 0.6 + 0.8j, 0.8 - 0.6j], dtype), least=least)


@pytest.mark.parametrize("dtype", DTYPES)
def test_exponentials_whose_size_overflows_where_the_result_does_not(dtype):
    limit = np.log(np.finfo(dtype).max)
    angles = np.array([0.1, 1.5, 1.57, -1.57, 3.0])
    assert_near("exp", (limit - 0.5 + 1j * angles).astype(dtype))
    x = (limit + 0.3 + 1j * np.array([1.57, 1.5707, -1.5707])).astype(dtype)
    assert np.isfinite(computed("exp", x).real).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_exponentials_of_huge_angles(dtype):
    angles = np.array([1e5, -1e6, 1e7, 3e20, 1e30]).astype(np.finfo(dtype).dtype)
    result = computed("exp", (1j * angles).astype(dtype))
    close = 1e-6 if dtype == "complex64" else 1e-15
    wide = angles.astype(np.float64)
    np.testing.assert_allclose(result.real, np.cos(wide), rtol=close, atol=close)
    np.testing.assert_allclose(result.imag, np.sin(wide), rtol=close, atol=close)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_ends_of_the_range(name, dtype):
    numbers = [0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-30, 1e20, 1e-40, -2000]
    x = np.array([complex(a, b) for a in numbers for b in numbers], dtype)
    if name == "exp":
        # C leaves signs open, and these are NaN here. Subnormal angles are zeros.
        x = x[~(np.isinf(x.real) & np.isnan(x.imag)) & (abs(x.imag) != abs(x.dtype.type(1e-40)))]
        # A huge angle would leave all to XLA's operation, which has other signs of zeros.
        x = x[~(abs(x.imag) > 1e6)]
    with np.errstate(all="ignore"):
        wanted = getattr(np, name)(x)
    result = computed(name, x)
    close, least = (1e-6, 1e-37) if dtype == "complex64" else (1e-14, 1e-300)
    for part, of_wanted in ((result.real, wanted.real), (result.imag, wanted.imag)):
        np.testing.assert_allclose(part, of_wanted, rtol=close, atol=least)
        is_zero = of_wanted == 0
        np.testing.assert_array_equal(np.signbit(part)[is_zero], np.signbit(of_wanted)[is_zero])


@settings(max_examples=25, deadline=None)
@given(st.lists(st.complex_numbers(max_magnitude=80, min_magnitude=1e-30), min_size=1, max_size=9))
def test_of_any_numbers(numbers):
    x = np.array(numbers)
    for name in NAMES:
        result, wanted = computed(name, x), getattr(np, name)(x)
        np.testing.assert_allclose(result, wanted, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("dtype", DTYPES)
def test_derivatives_and_batches(dtype):
    x = points(2 * ENOUGH, 1, dtype).reshape(2, ENOUGH)
    close = 1e-5 if dtype == "complex64" else 1e-13
    slopes = {"exp": np.exp(x), "log": 1 / x}
    for name in NAMES:
        function = getattr(lax, name)
        np.testing.assert_allclose(hlofront.vmap(function)(x), getattr(np, name)(x), rtol=close)
        found, slope = hlofront.jvp(function, (x,), (np.ones_like(x),))
        np.testing.assert_allclose(found, getattr(np, name)(x), rtol=close)
        np.testing.assert_allclose(slope, slopes[name], rtol=close)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_where_they_are_used(name, dtype):
    def uses_formula(x, platforms=("cpu",)):
        function = hlofront.jit(getattr(lax, name))
        text = function.trace(x).lower(lowering_platforms=platforms).as_text()
        return "bitcast_convert" in text

    x = np.ones(ENOUGH, dtype)
    assert uses_formula(x)
    for platforms in (["tpu"], ["cuda"], ["cpu", "tpu"]):
        assert not uses_formula(x, platforms)
    for few in (x[:10], x[:0], x[0]):
        assert not uses_formula(few)
        np.testing.assert_allclose(getattr(lax, name)(few), getattr(np, name)(few), rtol=1e-6)
    with options["hlofront_cpu_formulas"](False):
        assert not uses_formula(x)
