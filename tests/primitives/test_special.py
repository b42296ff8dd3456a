"""Special functions over wide ranges, against scipy; those that iterate stop."""

import numpy as np
import pytest
import scipy.special

from hlofront import lax

GENERATOR = np.random.default_rng(0)
COUNT = 400


def log_uniform_points(low, high):
    return (10.0 ** GENERATOR.uniform(low, high, COUNT)).astype(np.float32)


def assert_relative(found, wanted, tolerance, least=1e-30):
    found = np.asarray(found, np.float64)
    small = np.abs(wanted) < least
    np.testing.assert_allclose(found[~small], wanted[~small], rtol=tolerance)
    assert np.all(np.abs(found[small]) < 2 * least)


@pytest.mark.parametrize(("low", "high"), [(-6, 1), (0, 3), (2, 6)])
def test_incomplete_gamma(low, high):
    """Small results keep their bits too, and large parameters cost few steps."""
    a = log_uniform_points(low, high)
    x = log_uniform_points(low, high)
    near = COUNT // 2
    deviations = GENERATOR.normal(size=near) * 3 / np.sqrt(a[:near])
    x[:near] = a[:near] * np.maximum(1 + deviations, 1e-3)
    wide = a.astype(np.float64), x.astype(np.float64)
    assert_relative(lax.igamma(a, x), scipy.special.gammainc(*wide), 4e-5)
    assert_relative(lax.igammac(a, x), scipy.special.gammaincc(*wide), 4e-5)


@pytest.mark.parametrize(("low", "high"), [(-2, 1), (0, 3), (2, 5)])
def test_incomplete_beta(low, high):
    a, b = log_uniform_points(low, high), log_uniform_points(low, high)
    x = GENERATOR.uniform(0.01, 0.99, COUNT).astype(np.float32)
    mean = a / (a + b)
    near = COUNT // 2
    deviation = np.sqrt(mean * (1 - mean) / (a + b + 1))[:near]
    x[:near] = np.clip(mean[:near] + GENERATOR.normal(size=near) * 2 * deviation, 0.01, 0.99)
    wide = [array.astype(np.float64) for array in (a, b, x)]
    assert_relative(lax.betainc(a, b, x), scipy.special.betainc(*wide), 2e-3 if high > 3 else 1e-4)


def test_samples_of_large_shapes_move_with_the_shape():
    a = np.float32([1e3, 1e5, 1e7])
    np.testing.assert_allclose(lax.random_gamma_grad(a, a), 1.0, rtol=1e-3)


def test_random_gamma_grad_is_consistent():
    """It is minus the derivative in a over that in x, the density."""
    a, x = log_uniform_points(-1, 2), log_uniform_points(-1, 2)
    x = np.clip(x, a / 3, a * 3)
    a_, x_ = a.astype(np.float64), x.astype(np.float64)
    density = np.exp((a_ - 1) * np.log(x_) - x_ - scipy.special.gammaln(a_))
    wanted = -np.asarray(lax.igamma_grad_a(a, x), np.float64) / density
    usual = density > 1e-20
    np.testing.assert_allclose(
        np.asarray(lax.random_gamma_grad(a, x))[usual], wanted[usual], rtol=1e-4
    )


def test_bessel_far_off():
    x = np.float32([0, 1e-30, 8.99, 9.01, 1e4, 1e30, np.inf, -7])
    found = np.asarray(lax.bessel_i0e(x))
    np.testing.assert_allclose(found, scipy.special.i0e(x.astype(np.float64)), rtol=5e-7)
