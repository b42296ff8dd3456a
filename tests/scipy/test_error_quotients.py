"""Dawson's integral, erfcx and the Faddeeva function: errors of few units in the last place."""

import mpmath
import numpy as np
import pytest
import scipy.special

import hlofront
from hlofront.scipy import special

INTERVALS = [(1e-6, 0.1), (0.1, 1), (1, 3), (3, 5), (5, 8), (8, 30), (30, 1e4), (1e4, 1e12)]
DTYPES = [np.float32, np.float64]

random = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def wide_numbers():
    with hlofront.enable_x64(True):
        yield


def exact_dawson(x):
    if abs(x) < 20:
        return mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(-x * x) * mpmath.erfi(x)
    return sum(mpmath.fac2(2 * k - 1) / (2 ** (k + 1) * x ** (2 * k + 1)) for k in range(20))


def exact_erfcx(x):
    if x < 30:
        return mpmath.exp(x * x) * mpmath.erfc(x)
    terms = ((-1) ** k * mpmath.fac2(2 * k - 1) / (2 * x * x) ** k for k in range(15))
    return sum(terms) / (x * mpmath.sqrt(mpmath.pi))


def assert_near(function, exact, x, units):
    result = np.asarray(function(x))
    assert result.dtype == x.dtype
    with mpmath.workdps(40):
        for number, value in zip(x.tolist(), result.tolist(), strict=True):
            wanted = exact(mpmath.mpf(number))
            unit = float(np.spacing(x.dtype.type(abs(float(wanted)))))
            assert abs(value - wanted) <= units * unit, (number, value, float(wanted))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("interval", INTERVALS)
def test_errors_of_dawson(interval, dtype):
    x = random.uniform(*interval, 150).astype(dtype)
    assert_near(special.dawsn, exact_dawson, x, 6.5)
    assert_near(special.dawsn, exact_dawson, -x[:20], 6.5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("interval", [*INTERVALS, (-3, 0)])
def test_errors_of_erfcx(interval, dtype):
    x = random.uniform(*interval, 150).astype(dtype)
    assert_near(special.erfcx, exact_erfcx, x, 5)


def test_errors_of_erfcx_of_great_negative_numbers():
    assert_near(special.erfcx, exact_erfcx, random.uniform(-26, -3, 150), 4)
    assert_near(special.erfcx, exact_erfcx, random.uniform(-9, -3, 150).astype(np.float32), 4)


@pytest.mark.parametrize("dtype", DTYPES)
def test_borders(dtype):
    for border in (4.0, 6.5, 1e4, 1e9):
        near = [np.nextafter(dtype(border), dtype(end)) for end in (0, np.inf)]
        x = np.array([border, *near], dtype)
        assert_near(special.dawsn, exact_dawson, x, 6.5)
        assert_near(special.erfcx, exact_erfcx, x, 5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_ends(dtype):
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, np.finfo(dtype).max / 2, -40.0], dtype)
    result = np.asarray(special.dawsn(x))
    wanted = scipy.special.dawsn(x.astype(np.float64))
    np.testing.assert_allclose(result, wanted, rtol=1e-6, atol=np.finfo(dtype).tiny)
    np.testing.assert_array_equal(np.signbit(result[:4]), np.signbit(wanted[:4]))
    wanted = scipy.special.erfcx(x.astype(np.float64))
    wanted[-1] = np.inf
    result = np.asarray(special.erfcx(x))
    np.testing.assert_allclose(result, wanted, rtol=1e-6, atol=np.finfo(dtype).tiny)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("radius", [1e-9, 0.1, 1, 4, 6.99, 7.01, 8, 30, 1e4, 1e10, 1e18, 1e30])
def test_faddeeva_of_all_magnitudes(radius, dtype):
    angles = np.concatenate([random.uniform(0, np.pi, 200), [0.0, np.pi, 1e-9, np.pi / 2]])
    z = (radius * np.exp(1j * angles)).astype(dtype)
    wanted = scipy.special.wofz(z.astype(np.complex128))
    tolerance = 8e-7 if dtype == np.complex64 else 5e-14
    result = np.asarray(special.wofz(z))
    assert (abs(result - wanted) <= tolerance * abs(wanted)).all()
    below = (z.real - 0.1j * np.minimum(abs(z), 5)).astype(dtype)
    wanted = scipy.special.wofz(below.astype(np.complex128))
    tolerance *= 1 + np.minimum(abs(z), 100)
    assert (abs(np.asarray(special.wofz(below)) - wanted) <= tolerance * abs(wanted)).all()


def test_faddeeva_of_huge_numbers():
    z = np.array([1e150, 1e160, -1e300, 1e300j, 3e200 - 1j, -1e300 + 1e299j])
    np.testing.assert_allclose(special.wofz(z), 1j / np.sqrt(np.pi) / z, rtol=1e-14)
    z = np.array([1e19, 3e25, -1e36, 1e36j], np.complex64)
    wanted = 1j / np.sqrt(np.pi) / z.astype(np.complex128)
    np.testing.assert_allclose(special.wofz(z), wanted, rtol=1e-6, atol=1e-37)
