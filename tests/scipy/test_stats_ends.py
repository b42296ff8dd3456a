"""Slopes of distributions at the ends of their support, and outside of it."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
import hlofront.scipy.special as special
import hlofront.scipy.stats as stats
from hlofront import lax

NAN = np.nan
ALL = "logpdf pdf cdf logcdf sf logsf".split()
# Each distribution's shapes, and the finite ends of its support with the direction inwards.
SUPPORTS = {
    "gamma": ([(0.5, 1.0, 1.5, 2.0, 3.0)], {0.0: 1}),
    "chi2": ([(1.0, 2.0, 3.0, 4.0)], {0.0: 1}),
    "beta": ([(0.5, 1.0, 2.0, 1.0, 3.0), (0.5, 1.0, 1.0, 3.0, 3.0)], {0.0: 1, 1.0: -1}),
    "expon": ([], {0.0: 1}),
    "pareto": ([(0.5, 1.0, 2.5)], {1.0: 1}),
    "uniform": ([], {0.0: 1, 1.0: -1}),
}

# Functions whose slopes at the ends are zero, as in JAX: elsewhere they are those of the inside.
FLAT = {
    "gamma": ("cdf", "logcdf"),
    "chi2": ("cdf", "logcdf", "sf", "logsf"),
    "beta": ("cdf", "logcdf", "sf", "logsf"),
}


def slopes(call, x, *shapes):
    """Return the derivatives of a function in x, forward and reverse."""
    of_x = lambda x: call(x, *shapes)
    return [
        jax.jvp(of_x, (x,), (jnp.ones_like(x),))[1],
        jax.grad(lambda x: jnp.sum(of_x(x)))(x),
    ]


def functions_of(distribution):
    module = getattr(stats, distribution)
    return {name: getattr(module, name) for name in ALL if hasattr(module, name)}


@pytest.mark.long
@pytest.mark.parametrize("distribution", SUPPORTS)
def test_slopes_at_ends_of_support_are_those_of_inside_or_zero(distribution):
    shapes, ends = SUPPORTS[distribution]
    with jax.enable_x64(True):
        shapes = [np.array(shape) for shape in shapes]
        rows = [np.full(shapes[0].shape if shapes else (2,), x) for x in (0.0, 1.0)]
        look = jax.jit(
            lambda *args: {k: slopes(f, *args) for k, f in functions_of(distribution).items()}
        )
        for end, inwards in ends.items():
            at_end, near, beyond = (
                look(rows[0] + x, *shapes) for x in (end, end + inwards * 1e-11, end - inwards)
            )
            for name in at_end:
                wanted = np.array(near[name])
                # What is beyond this grows on towards the end without bound.
                wanted = np.where(abs(wanted) < 1e4, wanted, np.copysign(np.inf, wanted))
                if name == "pdf":
                    # Of exp(logpdf) the slope is NaN there, as in JAX.
                    density = functions_of(distribution)["pdf"](rows[0] + end, *shapes)
                    wanted = np.where((density == 0) | (density == np.inf), at_end[name], wanted)
                if name in FLAT.get(distribution, ()):
                    wanted = np.zeros_like(wanted)
                np.testing.assert_allclose(at_end[name], wanted, 1e-4, 1e-4, err_msg=name)
                np.testing.assert_array_equal(beyond[name], 0, err_msg=name)


def test_slopes_of_python_numbers_at_end_of_support():
    for call in (stats.gamma.sf, stats.gamma.logsf):
        assert jax.grad(call)(0.0, 0.5) == -np.inf
        assert jax.jvp(lambda x, call=call: call(x, 0.5), (0.0,), (1.0,))[1] == -np.inf


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_slopes_of_incomplete_functions_at_ends_are_densities(dtype):
    with jax.enable_x64(dtype == "float64"):
        at = lambda function, *args: float(jax.grad(function, len(args) - 1)(*map(dtype_of, args)))
        dtype_of = np.dtype(dtype).type
        for slope, *call in (
            (1, lax.igamma, 1.0, 0.0),
            (-1, lax.igammac, 1.0, 0.0),
            (np.inf, lax.igamma, 0.5, 0.0),
            (0, lax.igamma, 2.5, 0.0),
            (0, lax.igamma, 2.5, np.inf),
            (3, lax.betainc, 1.0, 3.0, 0.0),
            (3, lax.betainc, 3.0, 1.0, 1.0),
            (np.inf, lax.betainc, 0.5, 3.0, 0.0),
        ):
            np.testing.assert_allclose(at(*call), slope, 1e-5)
        # The second derivative is that of 1 - exp(-x).
        second = jax.grad(jax.grad(lambda x: lax.igamma(dtype_of(1), x)))(dtype_of(0))
        np.testing.assert_allclose(second, -1, 1e-5)


@pytest.mark.parametrize("log", [special.xlogy, lambda x, y: special.xlog1py(x, y - 1)])
def test_product_with_logarithm_of_zero_has_slopes(log):
    # Along y alone an infinite slope along x makes no NaN, and 0 log(y) is 0.
    for x, slope in ((0.0, 0.0), (2.0, np.inf), (-1.0, -np.inf)):
        assert jax.jvp(lambda y, x=x: log(x, y), (0.0,), (1.0,))[1] == slope
        assert jax.grad(log, 1)(x, 0.0) == slope
    assert jax.jvp(lambda x: log(x, 0.0), (0.0,), (1.0,))[1] == -np.inf


# The logarithm of a probability, of which one factor is 0 ** 0, and its slope in p.
AT_CERTAINTY = {
    "bernoulli": [((0.0, 0.0), -1.0), ((1.0, 1.0), 1.0)],
    "geom": [((1.0, 1.0), 1.0)],
    "binom": [((0.0, 5.0, 0.0), -5.0), ((5.0, 5.0, 1.0), 5.0)],
    "poisson": [((0.0, 0.0), -1.0)],
    "nbinom": [((0.0, 3.0, 1.0), 3.0)],
}


@pytest.mark.parametrize("distribution", AT_CERTAINTY)
def test_slope_in_probability_of_what_is_certain(distribution):
    logpmf = getattr(stats, distribution).logpmf
    for args, slope in AT_CERTAINTY[distribution]:
        along_p = lambda p, args=args: logpmf(*args[:-1], p)
        assert jax.jvp(along_p, (args[-1],), (1.0,))[1] == slope
        assert jax.grad(along_p)(args[-1]) == slope


def test_slope_at_nan_is_not_that_of_the_variable_itself():
    for call in (
        lambda x: stats.gamma.logpdf(x, 2.0),
        stats.uniform.logpdf,
        lambda x: stats.poisson.logpmf(x, 2.0),
    ):
        found = np.array(slopes(call, jnp.float32(np.nan)))
        assert (np.isnan(found) | (found == 0)).all()


# What is called with parameters that are none, or of which a variable has no probability.
UNDEFINED = {
    stats.gamma.logpdf: [(np.inf, NAN, 0.0, 1.0), (np.inf, np.inf)],
    stats.gamma.logcdf: [(0.25, -1.0), (0.0, 0.0), (-2.0, NAN)],
    stats.gamma.cdf: [(0.25, -1.0), (0.0, 0.0), (-2.0, NAN)],
    stats.chi2.logpdf: [(np.inf, NAN, 0.0, 1.0), (np.inf, np.inf)],
    stats.chi2.logcdf: [(0.25, -1.0), (0.0, 0.0), (-2.0, NAN)],
    stats.chi2.sf: [(0.0, 0.0), (-2.0, 0.0), (0.25, -1.0), (-2.0, NAN)],
    stats.gennorm.cdf: [(0.25, -1.0), (-2.0, 0.0), (0.25, NAN)],
    stats.poisson.logpmf: [(1.0, 0.5, NAN)],
}


def slopes_of_all(function, args):
    """Return the derivatives of a function in each argument, forward."""
    rows = np.eye(len(args)).tolist()
    return [jax.jvp(function, args, tuple(row))[1] for row in rows]


@pytest.mark.parametrize(
    "function", UNDEFINED, ids=lambda f: f"{f.__module__.split('.')[-1]}.{f.__name__}"
)
def test_slopes_are_nan_where_the_value_is_undefined(function):
    for args in UNDEFINED[function]:
        assert np.isnan(function(*args)), args
        assert np.isnan(slopes_of_all(function, args)).all(), args


@pytest.mark.long
def test_chi2_and_gamma_of_shape_zero_are_all_at_zero():
    # The limit of small shapes, and what JAX has beyond 1.
    for distribution in (stats.gamma, stats.chi2):
        for x in (0.25, 7.0):
            found = [getattr(distribution, name)(x, 0.0) for name in "cdf logcdf sf logsf".split()]
            assert found == [1, 0, 0, -np.inf]


@pytest.mark.parametrize("distribution", [stats.gamma, stats.chi2])
@pytest.mark.parametrize("shape", [0.5, 1.0, 2.5])
def test_probabilities_up_to_infinity_have_slopes_of_zero(distribution, shape):
    for function in (distribution.cdf, distribution.logcdf, distribution.sf):
        assert slopes_of_all(function, (np.inf, shape, 0.0, 2.0)) == [0, 0, 0, 0]


def test_poisson_of_unknown_shift_has_unknown_slopes():
    for function in (stats.poisson.logpmf, stats.poisson.cdf):
        assert np.isnan(function(1.0, 0.5, NAN))
        assert np.isnan(jax.grad(function, 1)(1.0, 0.5, NAN))
    assert np.isnan(stats.poisson.logpmf(np.inf, np.inf))


@pytest.mark.parametrize("name", ["cdf", "logcdf", "sf", "logsf"])
def test_gradients_far_below_the_support_are_zero(name):
    for distribution, args in ((stats.expon, (-1e3, 0.0, 2.0)), (stats.pareto, (-1e3, 2.5))):
        gradient = jax.grad(getattr(distribution, name), tuple(range(len(args))))(*args)
        assert gradient == (0,) * len(args), (distribution, gradient)
    assert jax.grad(stats.pareto.logcdf, 1)(0.25, 0.5, 0.0, 2.0) == 0


@pytest.mark.parametrize("distribution", [stats.gamma, stats.chi2])
def test_slopes_of_log_density_at_infinity_are_those_of_the_exponential(distribution):
    rate = 1 / 2 if distribution is stats.gamma else 1 / 4
    gradient = jax.grad(distribution.logpdf, (0, 2, 3))(np.inf, 2.5, 0.0, 2.0)
    assert gradient == (-rate, rate, np.inf)


def logarithms_of_both(name, x, shapes):
    """The logarithms of a distribution function and of its complement, by mpmath."""
    mp = pytest.importorskip("mpmath")
    with mp.workdps(30):
        x = mp.mpf(x)
        if name == "beta":
            share = mp.betainc(*shapes, 0, x, regularized=True)
            rest = mp.betainc(*shapes[::-1], 0, 1 - x, regularized=True)
        elif name == "cauchy":
            share, rest = mp.atan2(1, -x) / mp.pi, mp.atan2(1, x) / mp.pi
        else:
            a, y = (mp.mpf(shapes[0]) / 2, x / 2) if name == "chi2" else (shapes[0], x)
            share, rest = [
                mp.gammainc(a, *ends, regularized=True) for ends in ((0, y), (y, mp.inf))
            ]
        return [
            float(mp.log1p(-other) if other < 0.5 else mp.log(one))
            for one, other in ((share, rest), (rest, share))
        ]


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "shapes", "points"),
    [
        ("gamma", (2.0,), (1e-10, 1e-3, 1.0, 2.0, 5.0, 60.0, 300.0)),
        ("gamma", (30.0,), (1.0, 29.0, 31.0, 120.0)),
        ("chi2", (3.0,), (1e-8, 1.0, 3.0, 60.0, 900.0)),
        ("beta", (2.0, 3.0), (1e-9, 0.2, 0.5, 0.9, 1 - 1e-8)),
        ("beta", (5.0, 9.0), (1e-3, 0.4, 0.999)),
        ("cauchy", (), (-1e12, -1.0, 0.5, 1e12)),
    ],
)
def test_logarithms_of_probabilities_near_one_keep_their_digits(name, shapes, points):
    distribution = getattr(stats, name)
    with jax.enable_x64(True):
        x = np.array(points)
        found = distribution.logcdf(x, *shapes), distribution.logsf(x, *shapes)
    wanted = zip(*[logarithms_of_both(name, point, shapes) for point in points], strict=True)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
