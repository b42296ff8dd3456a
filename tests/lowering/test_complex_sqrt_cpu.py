"""Square roots of many complex numbers on CPUs: errors, ends, uses."""

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

EXACT = {"sqrt": mpmath.sqrt, "rsqrt": lambda x: 1 / mpmath.sqrt(x)}
# XLA's square roots of complex64 are as fast.
FORMS = [("sqrt", "complex128"), ("rsqrt", "complex64"), ("rsqrt", "complex128")]
UNITS = {"complex64": 0.6, "complex128": 3.7}

pytestmark = pytest.mark.usefixtures("wide_numbers")

random = np.random.default_rng(0)


def assert_near(name, x):
    # Subnormal parts are zeros, which is an error of one unit of the least normal numbers.
    least = np.finfo(x.dtype).tiny * 2
    assert_parts_near(computed(name, x), EXACT[name], x, UNITS[x.dtype.name], least)


@pytest.mark.parametrize("scale", [1e-30, 1e-3, 1, 25])
@pytest.mark.parametrize(("name", "dtype"), FORMS)
def test_errors_of_roots_are_few_units(name, dtype, scale):
    assert_near(name, points(random, 300, scale, dtype))


@pytest.mark.parametrize(("name", "dtype"), FORMS)
def test_roots_of_any_magnitude(name, dtype):
    greatest = 100 if dtype == "complex64" else 990
    sizes = 2.0 ** random.uniform(-greatest, greatest, (2, 300))
    for sign in (1, -1):
        assert_near(name, (sign * sizes[0] + 1j * sizes[1]).astype(dtype))
        assert_near(name, (sign * sizes[0] - 1j * sizes[0] * 1e-7).astype(dtype))


def test_ends_of_square_roots():
    x = ends("complex128")
    # C has infinite roots of infinite numbers one of whose parts is NaN.
    x = x[~((np.isinf(x.real) & np.isnan(x.imag)) | (np.isinf(x.imag) & np.isnan(x.real)))]
    with np.errstate(all="ignore"):
        wanted = np.sqrt(x)
    assert_same_parts(computed("sqrt", x), wanted)


def test_roots_beside_the_least_and_the_greatest_numbers():
    dtype = np.dtype(np.complex128)
    limits = np.finfo(dtype)
    least, greatest = limits.tiny, limits.max
    others = [0, 1, -1, np.inf, -np.inf, least, greatest, -greatest]
    numbers = [complex(a, b) for a in others for b in (least, -least, greatest, -greatest)]
    wide = np.array(numbers, np.clongdouble)
    with np.errstate(all="ignore"):
        wanted = np.sqrt(wide).astype(dtype)
    result = computed("sqrt", wide.astype(dtype))
    # Smaller parts are zeros to XLA's arithmetic.
    for part, of_wanted in ((result.real, wanted.real), (result.imag, wanted.imag)):
        np.testing.assert_allclose(part, of_wanted, rtol=1e-6, atol=least)


@pytest.mark.parametrize("dtype", DTYPES)
def test_ends_of_inverse_square_roots(dtype):
    x = ends(dtype)
    result = computed("rsqrt", x)
    is_zero, is_infinite = x == 0, np.isinf(x)
    assert np.isposinf(result.real[is_zero]).all()
    assert np.isnan(result.imag[is_zero]).all()
    assert not result[is_infinite & ~np.isnan(x)].any()
    assert np.isnan(result[np.isnan(x) & ~is_infinite]).all()
    # A root has the quadrant of the conjugate.
    known = np.isfinite(x) & ~is_zero
    assert not np.signbit(result.real[known]).any()
    np.testing.assert_array_equal(np.signbit(result.imag[known]), ~np.signbit(x.imag[known]))


def test_roots_of_subnormal_numbers_of_complex64():
    x = np.array([1e-40, -1e-40, 1e-42 - 1e-44j, 1e-40j, -1e-41 + 1e-41j], np.complex64)
    assert_near("rsqrt", x)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.complex_numbers(max_magnitude=1e280, min_magnitude=1e-280), min_size=1))
def test_of_any_numbers(numbers):
    x = np.array(numbers)
    np.testing.assert_allclose(computed("sqrt", x), np.sqrt(x), rtol=4e-15)
    np.testing.assert_allclose(computed("rsqrt", x), 1 / np.sqrt(x), rtol=4e-15)


@pytest.mark.parametrize(("name", "dtype"), FORMS)
def test_derivatives_and_batches(name, dtype):
    x = points(random, 2 * ENOUGH, 1, dtype).reshape(2, ENOUGH)
    close = 1e-5 if dtype == "complex64" else 1e-14
    function = getattr(lax, name)
    wanted, slope = (np.sqrt(x), 0.5 / np.sqrt(x))
    if name == "rsqrt":
        wanted, slope = 1 / wanted, -0.5 / (x * wanted)
    np.testing.assert_allclose(hlofront.vmap(function)(x), wanted, rtol=close)
    found, found_slope = hlofront.jvp(function, (x,), (np.ones_like(x),))
    np.testing.assert_allclose(found, wanted, rtol=close)
    np.testing.assert_allclose(found_slope, slope, rtol=close)


@pytest.mark.parametrize(("name", "dtype"), FORMS)
def test_where_they_are_used(name, dtype):
    assert_for_many_on_cpus(name, dtype)
