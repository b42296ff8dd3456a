"""Trigonometric and hyperbolic functions of many complex numbers on CPUs: errors, ends, uses."""

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
from tests.support.many_numbers import ENOUGH, computed

HYPERBOLIC = ["sinh", "cosh", "tanh"]
TRIGONOMETRIC = ["sin", "cos", "tan"]
NAMES = HYPERBOLIC + TRIGONOMETRIC
UNITS = {"complex64": 0.6, "complex128": 6.0}
SLOPES = {
    "sinh": np.cosh,
    "cosh": np.sinh,
    "tanh": lambda x: 1 - np.tanh(x) ** 2,
    "sin": np.cos,
    "cos": lambda x: -np.sin(x),
    "tan": lambda x: 1 + np.tan(x) ** 2,
}

pytestmark = pytest.mark.usefixtures("wide_numbers")

random = np.random.default_rng(0)


def turned(name, x):
    """Return numbers of hyperbolic functions as numbers of trigonometric ones: angle and size."""
    if name in HYPERBOLIC:
        return x
    return np.stack([x.imag, x.real], axis=1).view(x.dtype)[:, 0]


def assert_near(name, x, units=None):
    x = turned(name, x)
    exact = getattr(mpmath, name)
    assert_parts_near(computed(name, x), exact, x, units or UNITS[x.dtype.name])


@pytest.mark.parametrize("scale", [1e-30, 1e-3, 0.3, 1, 25])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_errors_are_few_units(name, dtype, scale):
    # What is subnormal is zero, which is an error of one of the least normal numbers.
    units = 1.1 if scale == 25 and dtype == "complex64" else None
    assert_near(name, points(random, 200, scale, dtype), units)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_errors_beside_multiples_of_half_of_pi(name, dtype):
    angles = np.arange(-20, 21) * (np.pi / 2)
    sizes = random.normal(size=41) * 10.0 ** random.uniform(-5, 0.5, 41)
    assert_near(name, (sizes + 1j * angles).astype(dtype))
    assert_near(name, (sizes + 1j * (angles + 1e-6)).astype(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["sinh", "cosh", "sin", "cos"])
def test_finite_results_of_sizes_whose_exponentials_overflow(name, dtype):
    limit = np.log(np.finfo(dtype).max)
    sizes = limit + np.array([-0.5, 0.3, 0.6])
    assert_near(name, (sizes + 1j * np.array([0.1, 0.8, 0.8])).astype(dtype))
    assert_near(name, (-sizes - 1j * np.array([0.1, 0.8, 0.8])).astype(dtype))
    tiny = np.array([1e-30, -1e-30], dtype)
    result = computed(name, turned(name, (limit + 1 + 1j * tiny.real).astype(dtype)))
    real = name in ("sinh", "cosh", "cos")
    assert np.isinf(result.real if real else result.imag).all()
    assert np.isfinite(result.imag if real else result.real).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_huge_angles(name, dtype):
    angles = np.array([1e5, -1e6, 1e7, 3e20, 1e30]).astype(np.finfo(dtype).dtype)
    x = turned(name, (0.5 + 1j * angles).astype(dtype))
    wanted = getattr(np, name)(x.astype(np.complex128))
    close = 1e-6 if dtype == "complex64" else 1e-14
    np.testing.assert_allclose(computed(name, x), wanted, rtol=close, atol=close)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_ends_of_the_range(name, dtype):
    x = ends(dtype)
    if dtype == "complex128":
        # A huge angle would leave all to XLA's operation.
        x = x[~(abs(x.imag) > 1e6)]
    x = turned(name, x)
    result = computed(name, x)
    with np.errstate(all="ignore"):
        wanted = getattr(np, name)(x)
    angle, size = (x.imag, x.real) if name in HYPERBOLIC else (x.real, x.imag)
    is_known = np.isfinite(angle)
    assert_same_parts(result[is_known], wanted[is_known])
    # The tangents of infinite sizes have limits. C has signs and zeros of some unknown angles.
    has_limit = ~is_known & np.isinf(size) & ("tan" in name)
    np.testing.assert_array_equal(result[has_limit], wanted[has_limit])
    assert np.isnan(result[~is_known & ~has_limit]).all()


# ---- the logistic function -----------------------------------------------------------------------


def logistic(x):
    return 1 / (1 + mpmath.exp(-x))


@pytest.mark.parametrize("scale", [1e-30, 1e-3, 1, 5, 25])
@pytest.mark.parametrize("dtype", DTYPES)
def test_errors_of_logistic(dtype, scale):
    x = points(random, 200, scale, dtype)
    units = 0.6 if scale < 25 and dtype == "complex64" else 1.1
    if dtype == "complex64":
        assert_parts_near(computed("logistic", x), logistic, x, units)
    else:
        assert_parts_near(computed("logistic", x), logistic, x, 4.5, of_size=True)


@pytest.mark.parametrize("dtype", DTYPES)
def test_errors_of_logistic_beside_its_poles(dtype):
    distances = points(random, 200, 1, "complex128") * 10.0 ** random.uniform(-6, -1, 200)
    x = (np.pi * 1j * random.choice([-3, -1, 1, 3], 200) + distances).astype(dtype)
    units = 0.8 if dtype == "complex64" else 4.5
    assert_parts_near(computed("logistic", x), logistic, x, units, of_size=True)


@pytest.mark.parametrize("dtype", DTYPES)
def test_ends_of_logistic(dtype):
    x = np.array(
        [0.0, complex(0, -0.0), 1000, 1000 + 1j, np.inf, np.inf - 1j, complex(np.inf, -0.0)]
    )
    result = computed("logistic", np.concatenate([x, -x]).astype(dtype))
    wanted = np.where(x == 0, 0.5, 1.0)
    np.testing.assert_array_equal(result[: x.size], wanted)
    np.testing.assert_array_equal(result[x.size :], 1 - wanted)
    unknown = np.array([complex(1, np.nan), complex(np.nan, 1), complex(np.nan, np.nan)], dtype)
    assert np.isnan(computed("logistic", unknown).real).all()


def test_derivative_of_logistic():
    x = points(random, ENOUGH, 1, "complex128")
    wanted = 1 / (1 + np.exp(-x))
    found, slope = hlofront.jvp(lax.logistic, (x,), (np.ones_like(x),))
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    np.testing.assert_allclose(slope, wanted * (1 - wanted), rtol=1e-11)


# ---- all -----------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(st.lists(st.complex_numbers(max_magnitude=80, min_magnitude=1e-30), min_size=1, max_size=9))
def test_of_any_numbers(numbers):
    x = np.array(numbers)
    for name in NAMES:
        result, wanted = computed(name, x), getattr(np, name)(x)
        np.testing.assert_allclose(result, wanted, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_derivatives_and_batches(name, dtype):
    x = points(random, 2 * ENOUGH, 1, dtype).reshape(2, ENOUGH)
    close = 1e-4 if dtype == "complex64" else 1e-12
    function = getattr(lax, name)
    wanted = getattr(np, name)(x)
    np.testing.assert_allclose(hlofront.vmap(function)(x), wanted, rtol=close)
    found, slope = hlofront.jvp(function, (x,), (np.ones_like(x),))
    np.testing.assert_allclose(found, wanted, rtol=close)
    np.testing.assert_allclose(slope, SLOPES[name](x), rtol=close, atol=close)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*NAMES, "logistic"])
def test_where_they_are_used(name, dtype):
    assert_for_many_on_cpus(name, dtype)
