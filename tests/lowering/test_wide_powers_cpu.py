"""Powers of many float64 numbers on CPUs: within one unit in the last place."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hlofront
from hlofront import lax
from hlofront.base.config import options

ENOUGH = 20_000  # Smaller arrays keep the operation of XLA.
TINY = np.finfo(np.float64).tiny

pytestmark = pytest.mark.usefixtures("wide_numbers")

random = np.random.default_rng(0)


def powers(x, y):
    """Return the powers of fewer numbers than the formula is for."""
    return np.asarray(lax.pow(np.resize(x, ENOUGH), np.resize(y, ENOUGH)))[: len(x)]


def assert_near(x, y, units):
    result = powers(x, y)
    assert result.dtype == np.float64
    with mpmath.workdps(60):
        for base, exponent, value in zip(x.tolist(), y.tolist(), result.tolist()):
            exact = mpmath.mpf(base) ** mpmath.mpf(exponent)
            if abs(exact) < TINY:
                # Subnormal results may be zeros.
                assert abs(value) <= TINY, (base, exponent)
            elif abs(exact) < np.finfo(np.float64).max:
                error = abs(mpmath.mpf(value) - exact) / np.spacing(abs(float(exact)))
                assert error <= units, (base, exponent, float(error))
            else:
                assert value == np.inf, (base, exponent)


@pytest.mark.parametrize("limit", [1e-9, 0.1, 1, 10, 300])
def test_errors_are_below_one_unit(limit):
    y = random.uniform(-limit, limit, 300)
    assert_near(random.uniform(0, 10, 300), y, 0.75)
    assert_near(10 ** random.uniform(-1, 1, 300), y, 0.75)


def test_bases_of_all_magnitudes():
    x = 10 ** random.uniform(-307, 308, 400)
    assert_near(x, random.uniform(-1, 1, 400), 0.9)
    assert_near(10 ** random.uniform(-323, -308, 100), random.uniform(-1, 1, 100), 0.9)


def test_bases_beside_one_and_large_exponents():
    steps = 2.0 ** -np.arange(1, 53)
    for x in (1 + steps, 1 - steps / 2):
        assert_near(x, random.uniform(-500, 500, 52) / steps, 0.95)
        assert_near(x, random.uniform(-40, 40, 52) / steps, 0.75)


def test_ends_of_the_range():
    x = np.array([2.0, 2, 2, 2, 2, 2, 2, 0.5, 0.5, 10, 10, 10, 3e-308])
    y = [1023, 1023.9999999999999, 1024, -1022, -1023, -1021.5, -1075, 1022, 1023, 308.25, 309]
    assert_near(x, np.array([*y, -307, 1]), 0.75)


def test_whole_powers_are_exact():
    x = random.integers(1, 2000, 500).astype(np.float64)
    y = random.integers(0, 5, 500).astype(np.float64)
    np.testing.assert_array_equal(powers(x, y), x**y)
    np.testing.assert_array_equal(powers(-x, y), (-x) ** y)


def test_special_operands():
    ends = [0.0, 1.0, 2.0, 0.5, 3.0, 2.5, 1e300, 3e-300, 2**53 + 2.0, 1e-310, np.inf, 1 + 2**-52]
    ends = np.array([np.nan, *ends, *(-x for x in ends)])
    x, y = (each.ravel() for each in np.meshgrid(ends, ends))
    with np.errstate(all="ignore"):
        wanted = np.power(x, y)
    result = powers(x, y)
    # Subnormal results may be zeros.
    np.testing.assert_allclose(result, wanted, rtol=1e-15, atol=TINY)
    known = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(result)[known], np.signbit(wanted)[known])


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.floats(), st.floats()), min_size=1, max_size=20))
def test_of_any_numbers(pairs):
    x, y = np.array(pairs).T
    with np.errstate(all="ignore"):
        wanted = np.power(x, y)
    np.testing.assert_allclose(powers(x, y), wanted, rtol=1e-15, atol=TINY)


def test_scalar_and_integer_exponents():
    x = random.uniform(0.1, 9, ENOUGH)
    np.testing.assert_allclose(hlofront.jit(lambda x: x**2.5)(x), x**2.5, rtol=1e-15)
    np.testing.assert_allclose(hlofront.jit(lambda x: 2.5**x)(x), 2.5**x, rtol=1e-15)
    counts = random.integers(-5, 6, ENOUGH, dtype=np.int32)
    np.testing.assert_allclose(lax.pow(x, counts), x**counts, rtol=1e-15)


def test_derivatives_and_batches():
    x, y = random.uniform(0.5, 2, (2, 2, ENOUGH))
    np.testing.assert_allclose(hlofront.vmap(lax.pow)(x, y), x**y, rtol=1e-15)
    slopes = hlofront.grad(lambda x, y: lax.pow(x, y).sum(), (0, 1))(x, y)
    np.testing.assert_allclose(slopes[0], y * x ** (y - 1), rtol=1e-14)
    np.testing.assert_allclose(slopes[1], x**y * np.log(x), rtol=1e-14, atol=1e-15)


def test_where_they_are_used():
    def uses_formula(x, platforms=("cpu",)):
        text = hlofront.jit(lax.pow).trace(x, x).lower(lowering_platforms=platforms).as_text()
        return "stablehlo.power" not in text

    x = np.ones(ENOUGH)
    assert uses_formula(x)
    for platforms in (["tpu"], ["cuda"], ["cpu", "tpu"]):
        assert not uses_formula(x, platforms)
    for few in (x[:5000], x[:0], x[0]):
        assert not uses_formula(few)
    assert not uses_formula(x.astype(np.complex128))
    with options["hlofront_cpu_formulas"](False):
        assert not uses_formula(x)
