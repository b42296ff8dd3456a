"""lgamma and digamma of many floats on CPUs: in float64, which rounds once to narrower floats."""

import ml_dtypes
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hlofront
from hlofront import lax
from hlofront.base.config import options
from tests.support.large_arrays import ENOUGH, computed

FUNCTIONS = ["lgamma", "digamma"]
INTERVALS = [(0, 1), (1, 2), (2, 7.5), (6.5, 7.5), (7, 1e4), (-1, 0), (-2.3, -2.1), (-3000, -6)]

random = np.random.default_rng(0)


def exact(name, x):
    """Return the values at numbers of float32 in float64."""

    def at(x):
        if name == "digamma":
            return mpmath.digamma(x)
        return mpmath.log(abs(mpmath.gamma(x))) if abs(x) < 50 else mpmath.loggamma(x).real

    with mpmath.workdps(40):
        return np.array([float(at(mpmath.mpf(float(each)))) for each in x])


def assert_near(name, x, units, atol=0.0):
    wanted = exact(name, x)
    with hlofront.enable_x64(True):
        result = computed(name, x)
    assert result.dtype == x.dtype
    unit = np.spacing(abs(wanted).astype(x.dtype)).astype(np.float64)
    error = abs(result - wanted)
    assert (error <= units * unit + atol).all(), (error / unit).max()


@pytest.mark.parametrize("interval", INTERVALS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors_are_little_more_than_half_a_unit(name, interval):
    x = random.uniform(*interval, 400).astype(np.float32)
    # Beside negative zeros the error is relative to the terms whose sum vanishes.
    atol = 1e-9 if interval[0] < 0 else 0.0
    assert_near(name, x[x != np.round(x)], 0.52, atol)


@pytest.mark.parametrize("interval", INTERVALS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors_in_float64_are_few_units(name, interval):
    x = random.uniform(*interval, 400)
    # Beside negative zeros the error is relative to the terms whose sum vanishes.
    assert_near(name, x, 6, 1e-14 if interval[0] < 0 else 0.0)


def test_beside_positive_zeros_in_float64():
    steps = 2.0 ** -np.arange(3, 45)
    for zero in (1, 2):
        assert_near("lgamma", np.concatenate([zero + steps, zero - steps]), 6)
    zero = 1.4616321449683622
    assert_near("digamma", np.concatenate([zero + steps, zero - steps, [zero]]), 6)


def test_beside_positive_zeros():
    steps = np.float32(2.0) ** -np.arange(3, 24, dtype=np.float32)
    for zero in (1, 2):
        assert_near("lgamma", np.concatenate([zero + steps, zero - steps]), 0.52)
    zero = np.float32(1.4616321)
    assert_near("digamma", np.concatenate([zero + steps, zero - steps, [zero]]), 0.52)


def test_beside_poles():
    steps = np.float32(2.0) ** -np.arange(1, 20, dtype=np.float32)
    for name in FUNCTIONS:
        for pole in (0, -1, -2, -7):
            assert_near(name, np.concatenate([pole + steps, pole - steps]), 0.52, 1e-9)
        assert_near(name, np.array([1e-30, -1e-30, 1e-37, -1e-37], np.float32), 0.52)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_special_operands(dtype):
    x = [np.nan, np.inf, -np.inf, 0.0, -0.0, -1, -2, -(2.0**23) - 1, -3e38, 1, 2, 3e38, 1e-40]
    x = np.array(x, dtype)
    nan, inf = np.nan, np.inf
    wanted = [nan, inf, inf, inf, inf, inf, inf, inf, inf, 0, 0, 2.6279054e40, 92.10341]
    if dtype == np.float32:
        wanted[11] = inf
    assert_equal_values("lgamma", x, wanted)
    wanted = [nan, inf, nan, nan, nan, nan, nan, nan, nan, -0.5772157, 0.42278433, 88.59685, -inf]
    if dtype == np.float64:
        wanted[12] = -1e40
    assert_equal_values("digamma", x, wanted)


def assert_equal_values(name, x, wanted):
    with hlofront.enable_x64(True):
        np.testing.assert_allclose(computed(name, x), wanted, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_narrow_dtypes_are_rounded(name, dtype):
    x = random.uniform(0.1, 20, 100).astype(dtype)
    result = computed(name, x)
    assert result.dtype == dtype
    resolution = float(ml_dtypes.finfo(dtype).eps)
    wanted = exact(name, x.astype(np.float32))
    np.testing.assert_allclose(result.astype(np.float64), wanted, rtol=resolution, atol=1e-6)


def test_derivatives_and_batches():
    x = random.uniform(0.1, 20, (2, ENOUGH)).astype(np.float32)
    rows = hlofront.vmap(lax.lgamma)(x)
    np.testing.assert_array_equal(rows, np.stack([lax.lgamma(row) for row in x]))
    slopes = hlofront.grad(lambda x: lax.lgamma(x).sum())(x)
    np.testing.assert_array_equal(slopes, lax.digamma(x))


def uses_formula(name, x, platforms=("cpu",)):
    function = hlofront.jit(getattr(lax, name))
    text = function.trace(x).lower(lowering_platforms=platforms).as_text()
    return f"chlo.{name}" not in text


@pytest.mark.parametrize("name", FUNCTIONS)
def test_where_they_are_used(name):
    x = np.ones(ENOUGH, np.float32)
    assert uses_formula(name, x)
    assert not uses_formula(name, x, platforms=["tpu"])
    assert not uses_formula(name, x, platforms=["cuda"])
    assert not uses_formula(name, x[:10])
    with hlofront.enable_x64(True):
        assert uses_formula(name, x.astype(np.float64))
    with options["hlofront_fences"](False):
        assert not uses_formula(name, x)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(0.015625, 1e6, width=32), min_size=1, max_size=9))
def test_of_any_positive_numbers(numbers):
    for name in FUNCTIONS:
        assert_near(name, np.array(numbers, np.float32), 0.52)
