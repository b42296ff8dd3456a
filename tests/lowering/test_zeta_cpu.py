"""zeta and polygamma of many numbers on CPUs: sums of powers in float64."""

import ml_dtypes
import mpmath
import numpy as np
import pytest
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st

import hlofront
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.base.config import options
from hlofront.scipy import special
from tests.support.large_arrays import ENOUGH

INTERVALS = [(1e-3, 1), (0.5, 2), (1, 10), (6, 30), (20, 1e3), (1e5, 1e8)]

pytestmark = pytest.mark.usefixtures("wide_numbers")

random = np.random.default_rng(0)


def exact_zeta(order, x):
    """Return the values by Euler and Maclaurin's series, with more terms and digits."""

    def at(order, x):
        count = max(25, int(mpmath.ceil(25 - x)))
        near = mpmath.fsum((x + k) ** -order for k in range(count))
        end = x + count
        later = end ** (1 - order) / (order - 1) + end**-order / 2
        for k in range(1, 25):
            factor = mpmath.bernoulli(2 * k) / mpmath.factorial(2 * k)
            later += factor * mpmath.rf(order, 2 * k - 1) * end ** (1 - order - 2 * k)
        return near + later

    with mpmath.workdps(40):
        pairs = zip(np.broadcast_to(order, x.shape).tolist(), x.tolist())
        return [at(mpmath.mpf(a), mpmath.mpf(b)) for a, b in pairs]


def exact_polygamma(order, x):
    factor = (-1) ** (order + 1) * mpmath.factorial(order)
    return [value * factor for value in exact_zeta(order + 1, x)]


def assert_near(result, exact, units, absolute=0.0):
    info = np.finfo(result.dtype)
    for value, wanted in zip(result.tolist(), exact, strict=True):
        if info.tiny < abs(wanted) < info.max / 2:
            unit = float(np.spacing(abs(result.dtype.type(float(wanted)))))
            assert abs(value - wanted) <= units * unit + absolute, (value, float(wanted))


def zeta(order, x):
    """Return the values of fewer numbers than the formula of any order is for."""
    return np.asarray(lax.zeta(np.resize(order, ENOUGH), np.resize(x, ENOUGH)))[: len(x)]


def of_known_order(function, order, x):
    """Return the values of fewer numbers, of an order that the program knows."""
    return np.asarray(hlofront.jit(lambda x: function(order, x))(np.resize(x, ENOUGH)))[: len(x)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("interval", INTERVALS)
@pytest.mark.parametrize("orders", [(1, 1.001), (1, 3), (3, 30), (30, 200)])
def test_errors_of_any_order(orders, interval, dtype):
    x = random.uniform(*interval, 25).astype(dtype)
    order = random.uniform(*orders, 25).astype(dtype)
    order = np.maximum(order, np.nextafter(dtype(1), dtype(2)))
    result = zeta(order, x)
    assert result.dtype == dtype
    assert_near(result, exact_zeta(order, x), 0.52 if dtype == np.float32 else 8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", [1, 2, 11])
def test_errors_of_polygamma(order, dtype):
    x = np.concatenate([random.uniform(*interval, 25) for interval in INTERVALS]).astype(dtype)
    units = 0.52 if dtype == np.float32 else 8
    result = of_known_order(special.polygamma, order, x)
    assert_near(result, exact_polygamma(order, x), units)


@pytest.mark.parametrize("order", [1, 5, 11, 12, 40, 170])
def test_polygamma_of_an_order_in_an_array(order):
    x = random.uniform(0.5, 60, 25)
    function = hlofront.jit(special.polygamma)
    result = np.asarray(function(order, np.resize(x, ENOUGH)))[: len(x)]
    assert_near(result, exact_polygamma(order, x), 8)
    np.testing.assert_allclose(of_known_order(special.polygamma, order, x), result, rtol=3e-15)


NUMBERS = [np.nan, np.inf, 0.0, -0.0, 1e-310, 1e-300, 1e-5, 1, 2, 50, 1e8, 1e20, 1e200, 1.7e308]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", [1, 0.5, -1, 1 + 2**-20, 1 + 2**-52, 2, 3, 2.5, 10, 300, np.nan])
def test_special_operands(order, dtype):
    with np.errstate(over="ignore"):
        x = np.array(NUMBERS).astype(dtype)
    order = dtype(order)
    wanted = scipy.special.zeta(order, x).astype(dtype)
    # At poles of both signs, and of orders that are not whole, the value is not known.
    wanted[abs(x) < np.finfo(dtype).tiny] = np.inf if order in (2, 10, 300) else np.nan
    if order == 1:
        wanted[:] = np.inf
    kwargs = {"rtol": 1e-6 if dtype == np.float32 else 1e-14, "atol": np.finfo(dtype).tiny}
    np.testing.assert_allclose(zeta(order, x), wanted, **kwargs)


def test_a_single_negative_number_leaves_all_to_the_operation():
    x = random.uniform(1, 5, ENOUGH)
    x[7] = -0.5
    order = np.full(ENOUGH, 4.0)
    np.testing.assert_allclose(lax.zeta(order, x), scipy.special.zeta(4.0, x), rtol=1e-13)


def test_polygamma_of_order_zero_is_digamma():
    x = random.uniform(0.1, 5, ENOUGH)
    wanted = scipy.special.digamma(x)
    near = {"rtol": 1e-13, "atol": 1e-14}
    np.testing.assert_allclose(hlofront.jit(special.polygamma)(0, x), wanted, **near)
    np.testing.assert_allclose(of_known_order(special.polygamma, 0, x), wanted, **near)


@settings(max_examples=25, deadline=None)
@given(
    st.floats(1.001, 100),
    st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=20),
)
def test_of_any_positive_numbers(order, numbers):
    x = np.array(numbers)
    wanted = scipy.special.zeta(order, x)
    np.testing.assert_allclose(zeta(order, x), wanted, rtol=1e-13, atol=1e-300)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_dtypes_are_rounded(dtype):
    x = random.uniform(1, 20, 100).astype(dtype)
    result = of_known_order(special.polygamma, 2, x)
    assert result.dtype == dtype
    wanted = scipy.special.polygamma(2, x.astype(np.float64))
    resolution = float(ml_dtypes.finfo(dtype).eps)
    np.testing.assert_allclose(result.astype(np.float64), wanted, rtol=resolution, atol=1e-6)


def test_derivatives_and_batches():
    x = random.uniform(0.1, 20, (2, ENOUGH))
    rows = hlofront.jit(hlofront.vmap(lambda x: special.polygamma(1, x)))(x)
    np.testing.assert_allclose(rows, scipy.special.polygamma(1, x), rtol=1e-14)

    def slope(function):
        return hlofront.grad(lambda x: function(x).sum())

    function = special.digamma
    for order in (1, 2, 3):
        function = slope(function)
        wanted = scipy.special.polygamma(order, x)
        np.testing.assert_allclose(hlofront.jit(function)(x), wanted, rtol=1e-13)
        assert "bitcast_convert" in hlofront.jit(function).lower(x).as_text()
    wanted = scipy.special.polygamma(1, x)
    np.testing.assert_allclose(slope(special.digamma)(x), wanted, rtol=1e-13)


def test_where_they_are_used():
    def uses_formula(function, *operands, platforms=("cpu",)):
        jitted = hlofront.jit(function)
        text = jitted.trace(*operands).lower(lowering_platforms=platforms).as_text()
        return "bitcast_convert" in text

    def trigamma(x):
        return special.polygamma(1, x)

    for x in (np.ones(ENOUGH), np.ones(ENOUGH, np.float32)):
        for few in (x[:10], x[:0], x[0]):
            assert not uses_formula(trigamma, few)
        for function, operands in ((trigamma, (x,)), (lax.zeta, (x, x)), (special.zeta, (2.0, x))):
            assert uses_formula(function, *operands)
            for platforms in (["tpu"], ["cuda"], ["cpu", "tpu"]):
                assert not uses_formula(function, *operands, platforms=platforms)
        assert not uses_formula(lax.zeta, x[:10], x[:10])
        assert uses_formula(lax.polygamma, x, x)
        with options["hlofront_cpu_formulas"](False):
            assert not uses_formula(trigamma, x)


def test_values_of_few_numbers():
    for count in (0, 1, 10, 100):
        x = random.uniform(0.1, 5, count)
        wanted = scipy.special.polygamma(1, x)
        np.testing.assert_allclose(special.polygamma(1, jnp.asarray(x)), wanted, rtol=1e-13)
