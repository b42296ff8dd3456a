"""Distributions and statistics against SciPy's."""

import importlib

import numpy as np
import pytest
import scipy.stats

import hlofront as jax
import hlofront.scipy.stats as stats

INF, NAN = np.inf, np.nan
X = np.concatenate([np.linspace(-4, 8, 97), [0, 1, INF, -INF, NAN, 1e-9, 40.0, -40.0]])
K = np.concatenate([np.arange(-2.0, 30), [INF, -INF]])
Q = np.concatenate([np.linspace(0, 1, 41), [1e-9, -0.1, 1.1, NAN]])
# Name -> parameters, and whether it has a place and a scale.
CONTINUOUS = {
    "beta": ((1.5, 2.5), True),
    "cauchy": ((), True),
    "chi2": ((3.0,), True),
    "expon": ((), True),
    "gamma": ((2.5,), True),
    "gennorm": ((1.5,), False),
    "gumbel_l": ((), True),
    "gumbel_r": ((), True),
    "laplace": ((), True),
    "logistic": ((), True),
    "norm": ((), True),
    "pareto": ((1.5,), True),
    "t": ((3.0,), True),
    "truncnorm": ((-1.0, 2.5), True),
    "uniform": ((), True),
    "vonmises": ((1.5,), False),
    "wrapcauchy": ((0.3,), False),
}
DISCRETE = {
    "bernoulli": (0.3,),
    "betabinom": (5, 1.5, 2.5),
    "binom": (5, 0.3),
    "geom": (0.3,),
    "nbinom": (5, 0.3),
    "poisson": (1.5,),
}


def check(name, functions, x, parameters, moved, dtype, tolerance):
    """All functions of a distribution, in one program."""
    module = importlib.import_module(f"hlofront.scipy.stats.{name}")
    theirs = getattr(scipy.stats, name)
    functions = [f for f in functions.split() if hasattr(module, f)]
    if not functions:
        return
    parameters = [*parameters, *moved]

    @jax.jit
    def several(x):
        return [getattr(module, f)(x, *parameters) for f in functions]

    with jax.enable_x64(dtype == np.float64):
        found = several(x.astype(dtype))
    for f, values in zip(functions, found, strict=True):
        with np.errstate(all="ignore"):
            wanted = getattr(theirs, f)(x.astype(dtype).astype(np.float64), *parameters)
        assert values.dtype == dtype
        np.testing.assert_allclose(values, wanted, tolerance, tolerance / 10, err_msg=f)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous(name):
    parameters, scaled = CONTINUOUS[name]
    x = X
    if name in ("vonmises", "wrapcauchy"):
        # SciPy's goes on around the circle; the other ends at it.
        x = X[np.isfinite(X) & (X >= 0) & (X < 6.28)]
    if name in ("chi2", "gamma", "gumbel_l", "gumbel_r"):
        # Where its density is 0, SciPy's logarithm of it is NaN.
        x = X[~np.isinf(X)]
    moved = (0.25, 2.0) if scaled else ()
    functions = "logpdf pdf cdf logcdf sf logsf"
    check(name, functions, x, parameters, moved, np.float64, 1e-10)
    check(name, "ppf isf", Q, parameters, moved, np.float64, 1e-10)


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete(name):
    k = K[K != INF] if name == "poisson" else K
    check(name, "logpmf pmf", k, DISCRETE[name], (2,), np.float64, 1e-11)
    check(name, "logpmf pmf", k, DISCRETE[name], (0,), np.float32, 1e-4)
    if name in ("bernoulli", "poisson"):
        check(name, "cdf", K, DISCRETE[name], (), np.float64, 1e-12)


def test_invalid_parameters():
    with jax.enable_x64(True):
        for name, bad in {
            "beta": (-1.0, 2.0),
            "gennorm": (-1.0,),
            "truncnorm": (2.0, 1.0),
            "vonmises": (-1.0,),
            "wrapcauchy": (1.5,),
            "t": (-3.0,),
        }.items():
            module = importlib.import_module(f"hlofront.scipy.stats.{name}")
            assert np.isnan(np.asarray(module.pdf(np.array([0.5]), *bad))).all(), name
        for name in ("gumbel_l", "gumbel_r", "uniform"):
            module = importlib.import_module(f"hlofront.scipy.stats.{name}")
            assert np.isnan(np.asarray(module.ppf(np.array([-0.5, 1.5, NAN])))).all(), name


def test_scales_that_are_none():
    for scale in (-1.0, 0.0, NAN):
        for name in ("pdf", "logpdf"):
            found = getattr(stats.beta, name)(np.float32([0, 0.5, 1]), 1, 1, 0, scale)
            assert np.isnan(found).all(), (name, scale)


@pytest.mark.parametrize("b", [1.0, 1.5])
def test_slopes_beyond_the_support_of_beta(b):
    """Zero, also of logarithms and at the ends, where the density may have no number."""

    def total(x, loc, scale, function):
        return function(x, b, b, loc, scale).sum()

    x = np.float32([-1, 0, 0.5, 1, 2])
    for function in (stats.beta.cdf, stats.beta.logcdf, stats.beta.sf, stats.beta.logsf):
        slopes = jax.grad(total, (0, 1, 2))(x, np.zeros_like(x), np.ones_like(x), function)
        for slope in slopes:
            assert (np.asarray(slope) != 0).tolist() == [False, False, True, False, False]


def test_slope_of_the_last_quantile():
    slope = jax.grad(lambda q: stats.pareto.ppf(q, 1.5).sum())(np.float32([0, 1]))
    np.testing.assert_allclose(slope, [2 / 3, INF], 1e-6)


def test_entropy_of_poisson_broadcasts():
    found = stats.poisson.entropy(np.float32([1, 2]), np.zeros((3, 1), np.float32))
    assert found.shape == (3, 2)
    np.testing.assert_allclose(found, np.tile([1.3048422, 1.7048826], (3, 1)), 1e-6)


@pytest.mark.long
def test_far_tails():
    with jax.enable_x64(True):
        x = np.array([-300.0, -40.0, 40.0, 300.0])
        np.testing.assert_allclose(stats.norm.logcdf(x), scipy.stats.norm.logcdf(x), 1e-12)
        np.testing.assert_allclose(stats.norm.isf(1e-30), scipy.stats.norm.isf(1e-30), 1e-13)
        for ends in ((10.0, 11.0), (-12.0, -10.0), (-1.0, 20.0)):
            inner = np.linspace(*ends, 7)[1:-1]
            for f in ("logpdf", "logcdf", "logsf"):
                found = getattr(stats.truncnorm, f)(inner, *ends)
                wanted = getattr(scipy.stats.truncnorm, f)(inner, *ends)
                np.testing.assert_allclose(found, wanted, 1e-8, err_msg=f)
        mu = np.array([0.0, 0.1, 1, 9, 40, 200])
        np.testing.assert_allclose(
            stats.poisson.entropy(mu), scipy.stats.poisson.entropy(mu), 1e-9, 1e-12
        )


def test_of_vectors():
    generator = np.random.default_rng(0)
    x = generator.normal(size=(5, 3))
    spread = np.cov(generator.normal(size=(3, 9)))
    with jax.enable_x64(True):
        found = stats.multivariate_normal.logpdf(x, x[0], spread)
        wanted = scipy.stats.multivariate_normal.logpdf(x, x[0], spread)
        np.testing.assert_allclose(found, wanted, 1e-12)
        alpha, point = np.array([1.5, 2, 3]), np.array([0.2, 0.3, 0.5])
        found = stats.dirichlet.logpdf(point, alpha)
        np.testing.assert_allclose(found, scipy.stats.dirichlet.logpdf(point, alpha), 1e-12)
        counts = np.array([[1, 2, 3], [0, 0, 6], [1, 1, 1]])
        found = stats.multinomial.pmf(counts, 6, point)
        np.testing.assert_allclose(found, scipy.stats.multinomial.pmf(counts, 6, point), 1e-12)


def test_summaries():
    generator = np.random.default_rng(0)
    x = generator.integers(0, 5, (6, 7)).astype(float)
    with jax.enable_x64(True):
        for axis in (0, 1, None):
            found, wanted = stats.mode(x, axis=axis), scipy.stats.mode(x, axis=axis)
            np.testing.assert_array_equal(found.mode, wanted.mode)
            np.testing.assert_array_equal(found.count, wanted.count)
            np.testing.assert_allclose(stats.sem(x, axis), scipy.stats.sem(x, axis), 1e-13)
            for method in ("average", "min", "max", "dense", "ordinal"):
                found = stats.rankdata(x, method, axis=axis)
                wanted = scipy.stats.rankdata(x, method, axis=axis)
                np.testing.assert_array_equal(found, wanted)


def test_density_estimate():
    generator = np.random.default_rng(0)
    for shape, bandwidth in (((30,), "scott"), ((2, 30), "silverman")):
        data, weights = generator.normal(size=shape), generator.uniform(size=30)
        points = generator.normal(size=(*shape[:-1], 4))
        theirs = scipy.stats.gaussian_kde(data, bandwidth, weights)
        with jax.enable_x64(True):
            ours = stats.gaussian_kde(data, bandwidth, weights)
            np.testing.assert_allclose(ours(points), theirs(points), 1e-11)
            np.testing.assert_allclose(ours.logpdf(points), theirs.logpdf(points), 1e-11)
            found, wanted = ours.integrate_kde(ours), theirs.integrate_kde(theirs)
            np.testing.assert_allclose(found, wanted, 1e-11)
            # As an argument of a transformation, and differentiated in its points.
            slope = jax.jit(jax.grad(lambda p, k: k(p).sum()))(points, ours)
            step = 1e-6 * np.ones_like(points)
            change = (ours(points + step) - ours(points - step)).sum() / 2e-6
            np.testing.assert_allclose(slope.sum(), change, 1e-6)
