"""Exponentials and logarithms of many complex numbers on CPUs: within few units of both parts."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hlofront
from hlofront import lax
from tests.support.complex_numbers import (
    DTYPES,
    assert_for_many_on_cpus,
    assert_parts_near,
    assert_same_parts,
    ends,
    points,
)
from tests.support.large_arrays import ENOUGH, computed

EXACT = {
    "exp": mpmath.exp,
    "expm1": lambda x: mpmath.exp(x) - 1,
    "log": mpmath.log,
    "log1p": lambda x: mpmath.log(1 + x),
}
NAMES = list(EXACT)


def logarithm_of_one_more(x):
    total = x.copy()
    # 1 + x would lose the sign of an imaginary part that is zero.
    total.real += 1
    return np.log(total)


NUMPY = {name: getattr(np, name) for name in NAMES} | {"log1p": logarithm_of_one_more}
UNITS = {"complex64": 1.5, "complex128": 2.7}
# The real parts of these are differences.
DIFFERENCES = ("expm1", "log1p")

pytestmark = pytest.mark.usefixtures("wide_numbers")

random = np.random.default_rng(0)


def assert_near(name, x, units=None, least=0.0):
    if not units:
        units = 5.5 if name == "log1p" and x.dtype == np.complex128 else UNITS[x.dtype.name]
    of_size = name in DIFFERENCES and x.dtype == np.complex128
    assert_parts_near(computed(name, x), EXACT[name], x, units, least, of_size)


@pytest.mark.parametrize("scale", [1e-30, 1e-3, 1, 25])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_errors_are_few_units(name, dtype, scale):
    assert_near(name, points(random, 300, scale, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_logarithms_of_one_more_beside_the_unit_circle(dtype):
    x = np.exp(1j * random.uniform(0, 7, 300)) * (1 + random.normal(size=300) * 1e-3) - 1
    # The real part is a difference of exact products of two parts of the numbers.
    least = 2.0**-50 if dtype == "complex64" else 2.0**-103
    assert_near("log1p", x.astype(dtype), least=least)
    small = 10.0 ** random.uniform(-9, -1, 300) * random.choice([-1, 1], 300)
    assert_near("log1p", (-small * small / 2 + 1j * small).astype(dtype), least=least)
    assert_near("log1p", (-1 + small * (1 + 2j)).astype(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_logarithms_of_any_magnitude(dtype):
    greatest = 120 if dtype == "complex64" else 1000
    sizes = 2.0 ** random.uniform(-greatest, greatest, (2, 300))
    assert_near("log", (sizes[0] + 1j * sizes[1]).astype(dtype))
    assert_near("log", (sizes[0] - 1j * sizes[0] * random.uniform(0, 2, 300)).astype(dtype))


def test_logarithms_on_the_axes_beside_the_unit_circle_keep_their_bits():
    small = 10.0 ** -random.uniform(2, 15, 300)
    x = np.concatenate([1 + 1j * small, small - 1j, -1 - 1j * small]).astype("complex64")
    assert_near("log", x, least=0.0)


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
@pytest.mark.parametrize("name", ["exp", "expm1"])
def test_exponentials_whose_size_overflows_where_the_result_does_not(name, dtype):
    limit = np.log(np.finfo(dtype).max)
    angles = np.array([0.1, 1.5, 1.57, -1.57, 3.0])
    assert_near(name, (limit - 0.5 + 1j * angles).astype(dtype))
    x = (limit + 0.3 + 1j * np.array([1.57, 1.5707, -1.5707])).astype(dtype)
    assert np.isfinite(computed(name, x).real).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["exp", "expm1"])
def test_exponentials_of_huge_angles(name, dtype):
    angles = np.array([1e5, -1e6, 1e7, 3e20, 1e30]).astype(np.finfo(dtype).dtype)
    result = computed(name, (1j * angles).astype(dtype)) + (name == "expm1")
    close = 1e-6 if dtype == "complex64" else 1e-15
    wide = angles.astype(np.float64)
    np.testing.assert_allclose(result.real, np.cos(wide), rtol=close, atol=close)
    np.testing.assert_allclose(result.imag, np.sin(wide), rtol=close, atol=close)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["exp", "log"])
def test_ends_of_the_range(name, dtype):
    x = ends(dtype)
    if name == "log" and dtype == "complex64":
        # Subnormal numbers of complex128 are zeros.
        x = np.append(x, np.array([1e-40 + 1e-40j, -1e-42j], dtype))
    if name == "exp":
        # C leaves signs open, and these are NaN here.
        x = x[~(np.isinf(x.real) & np.isnan(x.imag))]
        # A huge angle would leave all to XLA's operation, which has other signs of zeros.
        x = x[~(abs(x.imag) > 1e6)]
    with np.errstate(all="ignore"):
        wanted = getattr(np, name)(x)
    assert_same_parts(computed(name, x), wanted)


def of_parts(real, imag):
    """Return complex numbers; a product with 1j would make infinite parts NaN."""
    return np.stack([real, imag], axis=1).view(np.result_type(real, np.complex64))[:, 0]


@pytest.mark.parametrize("dtype", DTYPES)
def test_ends_of_logarithms_of_one_more(dtype):
    x = ends(dtype)
    x = x[(x == 0) | ~(abs(x) < 0.1)]
    assert_same_parts(computed("log1p", x), computed("log", of_parts(1 + x.real, x.imag)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_ends_of_expm1(dtype):
    x = ends(dtype)
    x = x[(x == 0) | ~((abs(x) < 0.1) | (abs(x.imag) > 1e6))]
    result = computed("expm1", x)
    wanted = computed("exp", x) - 1
    np.testing.assert_allclose(result, wanted, rtol=1e-4 if dtype == "complex64" else 1e-12)
    is_zero = x.imag == 0
    signs, wanted_signs = np.signbit(result.imag), np.signbit(wanted.imag)
    np.testing.assert_array_equal(signs[is_zero], wanted_signs[is_zero])


@settings(max_examples=25, deadline=None)
@given(st.lists(st.complex_numbers(max_magnitude=80, min_magnitude=1e-30), min_size=1, max_size=9))
def test_of_any_numbers(numbers):
    x = np.array(numbers)
    for name in NAMES:
        with np.errstate(divide="ignore"):
            wanted = NUMPY[name](x)
        np.testing.assert_allclose(computed(name, x), wanted, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("dtype", DTYPES)
def test_derivatives_and_batches(dtype):
    x = points(random, 2 * ENOUGH, 1, dtype).reshape(2, ENOUGH)
    close = 1e-5 if dtype == "complex64" else 1e-13
    slopes = {
        "exp": np.exp(x),
        "expm1": np.exp(x),
        "log": 1 / x,
        "log1p": 1 / (1 + x),
    }
    for name in NAMES:
        function, wanted = getattr(lax, name), NUMPY[name](x)
        result = hlofront.vmap(function)(x)
        np.testing.assert_allclose(result, wanted, rtol=close, atol=close)
        found, slope = hlofront.jvp(function, (x,), (np.ones_like(x),))
        np.testing.assert_allclose(found, wanted, rtol=close, atol=close)
        np.testing.assert_allclose(slope, slopes[name], rtol=close)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_where_they_are_used(name, dtype):
    assert_for_many_on_cpus(name, dtype)
