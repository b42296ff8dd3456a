"""The exponential integral of whole orders: errors of few units, and its ends."""

import mpmath
import numpy as np
import pytest
import scipy.special

import hlofront
from hlofront.scipy import special

random = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def wide_numbers():
    with hlofront.enable_x64(True):
        yield


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("interval", [(1e-3, 0.3), (0.3, 1), (1.00001, 1.2), (1.2, 4), (4, 70)])
def test_errors_are_few_units(interval, dtype):
    x = random.uniform(*interval, 60).astype(dtype)
    orders = random.integers(1, 40, 60).astype(dtype)
    if interval[0] > 1:
        orders[::3] *= 1000
    result = np.asarray(special.expn(orders, x))
    assert result.dtype == dtype
    # Terms of both signs cancel where the series ends.
    units = 25 if interval[0] < 1 else 6
    with mpmath.workdps(40):
        for order, number, value in zip(orders.tolist(), x.tolist(), result.tolist(), strict=True):
            wanted = mpmath.expint(mpmath.mpf(order), mpmath.mpf(number))
            unit = float(np.spacing(dtype(float(wanted))))
            assert abs(value - wanted) <= units * unit, (order, number, value)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_orders_and_numbers(dtype):
    x = np.array([1e-30, 0.5, 1.0, 1.5, 60.0, 700.0, 1e10, 1e30], dtype)
    for order in (1, 7, 1000, 2**24, 1e15, 1e30):
        orders = np.full(x.shape, order, dtype)
        wanted = np.exp(-x.astype(np.float64)) / (x.astype(np.float64) + order)
        if order < 1000:
            wanted = scipy.special.expn(order, x.astype(np.float64))
        rtol = 2e-3 if order == 1000 else 3e-6
        np.testing.assert_allclose(special.expn(orders, x), wanted, rtol=rtol, atol=1e-37)
