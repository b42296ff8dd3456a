"""Square roots and powers of many complex numbers on CPUs: errors, ends, uses."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hlofront
from hlofront import lax
from hlofront.base.config import options
from tests.support.complex_numbers import (
    DIGITS,
    DTYPES,
    assert_for_many_on_cpus,
    assert_parts_near,
    assert_same_parts,
    ends,
    points,
)
from tests.support.many_numbers import ENOUGH, computed

EXACT = {"sqrt": mpmath.sqrt, "rsqrt": lambda x: 1 / mpmath.sqrt(x)}
NAMES = list(EXACT)
UNITS = {"complex64": 0.6, "complex128": 3.7}

pytestmark = pytest.mark.usefixtures("wide_numbers")

random = np.random.default_rng(0)


def assert_near(name, x):
    # Subnormal parts are zeros, which is an error of one unit of the least normal numbers.
    least = np.finfo(x.dtype).tiny * 2
    assert_parts_near(computed(name, x), EXACT[name], x, UNITS[x.dtype.name], least)


@pytest.mark.parametrize("scale", [1e-30, 1e-3, 1, 25])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_errors_of_roots_are_few_units(name, dtype, scale):
    assert_near(name, points(random, 300, scale, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_roots_of_any_magnitude(name, dtype):
    greatest = 100 if dtype == "complex64" else 990
    sizes = 2.0 ** random.uniform(-greatest, greatest, (2, 300))
    for sign in (1, -1):
        assert_near(name, (sign * sizes[0] + 1j * sizes[1]).astype(dtype))
        assert_near(name, (sign * sizes[0] - 1j * sizes[0] * 1e-7).astype(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_ends_of_square_roots(dtype):
    x = ends(dtype)
    # C has infinite roots of infinite numbers one of whose parts is NaN.
    x = x[~((np.isinf(x.real) & np.isnan(x.imag)) | (np.isinf(x.imag) & np.isnan(x.real)))]
    with np.errstate(all="ignore"):
        wanted = np.sqrt(x)
    assert_same_parts(computed("sqrt", x), wanted)


@pytest.mark.parametrize("dtype", DTYPES)
def test_roots_beside_the_least_and_the_greatest_numbers(dtype):
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
    for name in NAMES:
        assert_near(name, x)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.complex_numbers(max_magnitude=1e280, min_magnitude=1e-280), min_size=1))
def test_of_any_numbers(numbers):
    x = np.array(numbers)
    np.testing.assert_allclose(computed("sqrt", x), np.sqrt(x), rtol=4e-15)
    np.testing.assert_allclose(computed("rsqrt", x), 1 / np.sqrt(x), rtol=4e-15)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
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


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_where_they_are_used(name, dtype):
    assert_for_many_on_cpus(name, dtype)


# ---- powers of complex64 -------------------------------------------------------------------------


def powers(x, y):
    """Return the powers of fewer numbers than the formula is for."""
    return np.asarray(lax.pow(np.resize(x, ENOUGH), np.resize(y, ENOUGH)))[: len(x)]


@pytest.mark.parametrize("kind", ["complex", "real", "whole"])
@pytest.mark.parametrize(("scale", "exponent"), [(1e-3, 1), (1, 1), (5, 3), (1e10, 2), (1, 1000)])
def test_errors_of_powers(scale, exponent, kind):
    x, y = (points(random, 200, size, "complex64") for size in (scale, exponent))
    if kind != "complex":
        y = (y.real if kind == "real" else np.round(y.real)).astype("complex64")
    result = powers(x, y)
    assert result.dtype == x.dtype
    limits = np.finfo(np.float32)
    with mpmath.workdps(DIGITS):
        for base, power, value in zip(x.tolist(), y.tolist(), result):
            exact = mpmath.power(mpmath.mpc(base), mpmath.mpc(power))
            if not limits.tiny < abs(exact) < limits.max:
                continue
            # A part that is far smaller than the other one has larger errors.
            unit = float(max(np.spacing(np.float32(abs(exact))), limits.tiny))
            error = abs(mpmath.mpc(complex(value)) - exact)
            assert error <= 1.5 * unit, (base, power, value, complex(exact))


@pytest.mark.parametrize(
    ("base", "exponent", "wanted"),
    [
        (0, 0, 1),
        (np.nan, 0, 1),
        (complex(np.inf, np.nan), 0, 1),
        (0, 2, 0),
        (0, 0.5, 0),
        (0, np.inf, 0),
        (0, -1, np.nan),
        (0, 1j, np.nan),
        (np.inf, 1, np.inf),
        (np.inf, -0.5, 0),
        (-np.inf, 2, np.nan),
        (complex(1, np.inf), 2, np.nan),
        (np.nan, 1, np.nan),
        (2, np.nan, np.nan),
        (0.5, np.inf, 0),
        (1e20, 3, np.inf),
        (1e-30, 3, 0),
        (1e-40, 0.5, 1e-20),
    ],
)
def test_ends_of_powers(base, exponent, wanted):
    (result,) = powers(np.array([base], "complex64"), np.array([exponent], "complex64"))
    if np.isnan(wanted):
        assert np.isnan(result.real)
        assert np.isnan(result.imag)
    else:
        np.testing.assert_allclose([result.real, result.imag], [wanted, 0], rtol=1e-5)


def test_powers_of_negative_numbers_are_beside_the_cut():
    x = np.array([complex(-4, 0.0), complex(-4, -0.0)], "complex64")
    result = powers(x, np.full(2, 0.5, "complex64"))
    np.testing.assert_allclose(result, [2j, -2j], atol=1e-6)


def test_powers_with_integers_and_one_exponent():
    x = points(random, ENOUGH, 1, "complex64")
    exponents = random.integers(-3, 4, ENOUGH, dtype=np.int32)
    np.testing.assert_allclose(lax.pow(x, exponents), x**exponents, rtol=1e-5)
    np.testing.assert_allclose(lax.pow(x, np.complex64(1.5)), x**1.5, rtol=1e-5)
    batch = x.reshape(2, -1)
    result = hlofront.vmap(lambda x: lax.pow(x, np.complex64(2.5)))(batch)
    np.testing.assert_allclose(result, batch**2.5, rtol=1e-5)
    one = np.ones_like(x)
    _, slope = hlofront.jvp(lambda x: lax.pow(x, 2.5 * one), (x,), (one,))
    np.testing.assert_allclose(slope, 2.5 * x**1.5, rtol=1e-4)


def test_where_powers_are_used():
    def text(dtype, size, formulas=True):
        x = np.ones(size, dtype)
        with options["hlofront_cpu_formulas"](formulas):
            return hlofront.jit(lambda x, y: lax.pow(x, y)).lower(x, x).as_text()

    assert text("complex64", ENOUGH) != text("complex64", ENOUGH, formulas=False)
    assert text("complex64", 10) == text("complex64", 10, formulas=False)
    assert text("complex128", ENOUGH) == text("complex128", ENOUGH, formulas=False)
