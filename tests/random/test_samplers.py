"""Samplers: each follows its distribution, and what is differentiable is differentiated."""

import numpy as np
import pytest
from scipy import stats

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import random
from hlofront.test_util import check_grads
from tests.on_platforms import near

COUNT = 4000
key = random.key(1729)

# What is drawn, and the distribution function that it has.
CONTINUOUS = {
    "uniform": (lambda k, s: random.uniform(k, s, minval=-1.0, maxval=3.0), stats.uniform(-1, 4)),
    "normal": (random.normal, stats.norm()),
    "truncated_normal": (
        lambda k, s: random.truncated_normal(k, -1.0, 2.0, s),
        stats.truncnorm(-1, 2),
    ),
    "lognormal": (lambda k, s: random.lognormal(k, 0.7, s), stats.lognorm(0.7)),
    "cauchy": (random.cauchy, stats.cauchy()),
    "exponential": (random.exponential, stats.expon()),
    "gumbel": (random.gumbel, stats.gumbel_r()),
    "gumbel_high": (lambda k, s: random.gumbel(k, s, mode="high"), stats.gumbel_r()),
    "laplace": (random.laplace, stats.laplace()),
    "logistic": (random.logistic, stats.logistic()),
    "maxwell": (random.maxwell, stats.maxwell()),
    "pareto": (lambda k, s: random.pareto(k, 2.5, s), stats.pareto(2.5)),
    "rayleigh": (lambda k, s: random.rayleigh(k, 1.5, s), stats.rayleigh(scale=1.5)),
    "triangular": (
        lambda k, s: random.triangular(k, -1.0, 0.5, 2.0, s),
        stats.triang(0.5, -1, 3),
    ),
    "wald": (lambda k, s: random.wald(k, 0.7, s), stats.invgauss(0.7)),
    "weibull_min": (lambda k, s: random.weibull_min(k, 2.0, 1.7, s), stats.weibull_min(1.7, 0, 2)),
    "gamma": (lambda k, s: random.gamma(k, 2.5, s), stats.gamma(2.5)),
    "gamma_small": (lambda k, s: random.gamma(k, 0.3, s), stats.gamma(0.3)),
    "gamma_approximate": (
        lambda k, s: random.gamma(k, 0.3, s, method="approximate"),
        stats.gamma(0.3),
    ),
    "loggamma": (lambda k, s: random.loggamma(k, 0.05, s), stats.loggamma(0.05)),
    "beta": (lambda k, s: random.beta(k, 0.6, 2.0, s), stats.beta(0.6, 2)),
    "chisquare": (lambda k, s: random.chisquare(k, 3.0, s), stats.chi2(3)),
    "f": (lambda k, s: random.f(k, 3.0, 7.0, s), stats.f(3, 7)),
    "t": (lambda k, s: random.t(k, 4.0, s), stats.t(4)),
    "generalized_normal": (
        lambda k, s: random.generalized_normal(k, 1.5, s),
        stats.gennorm(1.5),
    ),
    "double_sided_maxwell": (
        lambda k, s: jnp.abs(random.double_sided_maxwell(k, 0.0, 2.0, s)),
        stats.maxwell(scale=2),
    ),
    "dirichlet": (
        lambda k, s: random.dirichlet(k, jnp.array([0.7, 1.0, 2.0]), s)[..., 0],
        stats.beta(0.7, 3),
    ),
    "ball": (
        lambda k, s: jnp.linalg.norm(random.ball(k, 3, 2, s), axis=-1) ** 3,
        stats.uniform(),
    ),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous(name):
    draw, expected = CONTINUOUS[name]
    numbers = np.asarray(draw(key, (COUNT,)), np.float64)
    assert stats.kstest(numbers, expected.cdf).pvalue > 1e-3


DISCRETE = {
    "bernoulli": (lambda k, s: random.bernoulli(k, 0.3, s), stats.bernoulli(0.3)),
    "bernoulli_high": (
        lambda k, s: random.bernoulli(k, 0.3, s, mode="high"),
        stats.bernoulli(0.3),
    ),
    "rademacher": (lambda k, s: (random.rademacher(k, s) + 1) // 2, stats.bernoulli(0.5)),
    "randint": (lambda k, s: random.randint(k, s, -3, 7), stats.randint(-3, 7)),
    "geometric": (lambda k, s: random.geometric(k, 0.3, s), stats.geom(0.3)),
    "poisson": (lambda k, s: random.poisson(k, 3.5, s), stats.poisson(3.5)),
    "poisson_large": (lambda k, s: random.poisson(k, 40.0, s), stats.poisson(40)),
    "poisson_approximate": (
        lambda k, s: random.poisson(k, 3.5, s, method="approximate"),
        stats.poisson(3.5),
    ),
    "poisson_large_approximate": (
        lambda k, s: random.poisson(k, 40.0, s, method="approximate"),
        stats.poisson(40),
    ),
    "binomial": (lambda k, s: random.binomial(k, 9.0, 0.3, s), stats.binom(9, 0.3)),
    "binomial_large": (lambda k, s: random.binomial(k, 90.0, 0.6, s), stats.binom(90, 0.6)),
    "multinomial": (
        lambda k, s: random.multinomial(k, 12, jnp.array([0.2, 0.5, 0.3]), shape=(*s, 3))[:, 1],
        stats.binom(12, 0.5),
    ),
    "categorical": (
        lambda k, s: random.categorical(k, jnp.log(jnp.array([0.2, 0.8])), shape=s),
        stats.bernoulli(0.8),
    ),
    "choice": (
        lambda k, s: random.choice(k, 2, s, p=jnp.array([0.7, 0.3])),
        stats.bernoulli(0.3),
    ),
    "choice_once": (
        lambda k, s: jax.vmap(lambda k: random.choice(k, 5, (2,), replace=False)[1])(
            random.split(k, s)
        ),
        stats.randint(0, 5),
    ),
    "permutation": (
        lambda k, s: jax.vmap(lambda k: random.permutation(k, 4)[2])(random.split(k, s)),
        stats.randint(0, 4),
    ),
}


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete(name):
    draw, expected = DISCRETE[name]
    numbers = np.asarray(draw(key, (COUNT,))).astype(np.int64)
    values, counts = np.unique(numbers, return_counts=True)
    frequent = expected.pmf(values) * COUNT > 5
    observed, wanted = counts[frequent], expected.pmf(values[frequent]) * COUNT
    observed = np.append(observed, COUNT - observed.sum())
    wanted = np.append(wanted, max(COUNT - wanted.sum(), 1e-3))
    kept = wanted > 1
    statistic = ((observed - wanted) ** 2 / wanted)[kept].sum()
    assert stats.chi2.sf(statistic, kept.sum() - 1) > 1e-3


@pytest.mark.parametrize("method", ["cholesky", "eigh", "svd"])
def test_multivariate_normal(method):
    mean = jnp.array([1.0, -2.0])
    covariance = jnp.array([[2.0, 0.6], [0.6, 0.5]])
    numbers = random.multivariate_normal(key, mean, covariance, (COUNT,), method=method)
    np.testing.assert_allclose(numbers.mean(0), mean, atol=0.1)
    np.testing.assert_allclose(np.cov(np.asarray(numbers).T), covariance, atol=0.15)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_orthogonal(dtype):
    wide = random.orthogonal(key, 3, (5,), dtype, m=4)
    assert wide.shape == (5, 3, 4)
    product = wide @ wide.conj().mT
    np.testing.assert_allclose(product, np.broadcast_to(np.eye(3), (5, 3, 3)), atol=1e-5)


def test_complex_normal():
    numbers = np.asarray(random.normal(key, (COUNT,), "complex64"))
    for part in (numbers.real, numbers.imag):
        assert stats.kstest(part, stats.norm(scale=np.sqrt(0.5)).cdf).pvalue > 1e-3


def test_permutations_keep_their_elements():
    x = jnp.arange(12.0).reshape(3, 4)
    rows = random.permutation(key, x)
    assert sorted(rows[:, 0].tolist()) == [0, 4, 8]
    apart = random.permutation(key, x, axis=1, independent=True)
    np.testing.assert_array_equal(np.sort(apart, 1), x)
    assert sorted(random.permutation(key, 5).tolist()) == [0, 1, 2, 3, 4]
    keys = random.split(key, 3)
    assert {bytes(np.asarray(random.key_data(k))) for k in random.permutation(key, keys)} == {
        bytes(np.asarray(random.key_data(k))) for k in keys
    }


def test_endless_trials_without_success_end():
    # Here JAX's loop does not end. Counts of endless trials are infinite, as with other chances.
    assert np.isinf(random.binomial(key, jnp.inf, jnp.array([0.0, 0.3, 1.0]))).all()
    finite = random.binomial(key, jnp.array([jnp.inf, 5.0, jnp.nan]), 0.0)
    np.testing.assert_array_equal(finite, [np.inf, 0, np.nan])


def test_bits_of_many_widths():
    for bits in (8, 16, 32):
        for mode in (True, False):
            with jax.threefry_partitionable(mode):
                numbers = np.asarray(random.bits(key, (4001,), f"uint{bits}"))
            assert numbers.dtype == f"uint{bits}"
            mean = numbers.astype(np.float64).mean() / 2**bits
            assert abs(mean - 0.5) < 0.02


def test_batches_are_as_single_draws():
    keys = random.split(key, 3)
    together = jax.vmap(lambda k: random.normal(k, (4,)))(keys)
    for row, k in zip(together, keys, strict=True):
        near(row, random.normal(k, (4,)))
    alphas = jnp.array([0.3, 1.0, 4.0])
    together = jax.vmap(random.gamma)(keys, alphas)
    for number, k, alpha in zip(together, keys, alphas, strict=True):
        near(number, random.gamma(k, alpha))


def test_derivatives():
    def of_bounds(low, high):
        return random.uniform(key, (3,), minval=low, maxval=high)

    check_grads(of_bounds, (-1.0, 2.0), order=1)
    check_grads(lambda s: random.lognormal(key, s, (3,)), (0.5,), order=1)
    check_grads(lambda b: random.pareto(key, b, (3,)), (2.0,), order=1)


@pytest.mark.long
@pytest.mark.parametrize("alpha", [0.3, 1.0, 5.0])
def test_derivative_of_gamma(alpha):
    """Where the distribution function stays the same: -(dF/da) / (dF/dx), by differences."""
    keys = random.split(key, 5)
    with jax.enable_x64(True):
        draw = jax.vmap(lambda k, a: random.gamma(k, a, dtype=np.float64), (0, None))
        numbers, slopes = jax.jvp(lambda a: draw(keys, a), (alpha,), (1.0,))
        logs = jax.vmap(lambda k, a: random.loggamma(k, a, dtype=np.float64), (0, None))
        _, log_slopes = jax.jvp(lambda a: logs(keys, a), (alpha,), (1.0,))
        of_logs = jnp.exp(logs(keys, alpha))
    x, h = np.asarray(numbers), 1e-5
    change = (stats.gamma(alpha + h).cdf(x) - stats.gamma(alpha - h).cdf(x)) / (2 * h)
    expected = -change / stats.gamma(alpha).pdf(x)
    np.testing.assert_allclose(slopes, expected, rtol=1e-4)
    y = np.asarray(of_logs)
    change = (stats.gamma(alpha + h).cdf(y) - stats.gamma(alpha - h).cdf(y)) / (2 * h)
    np.testing.assert_allclose(log_slopes, -change / stats.gamma(alpha).pdf(y) / y, rtol=1e-4)


@pytest.mark.parametrize("replace", [True, False])
def test_weights_of_a_choice_may_be_booleans_or_integers(replace):
    for weights in ([False, True, True], [0, 5, 5]):
        as_floats = jnp.asarray(weights).astype(float)
        chosen, expected = (
            random.choice(key, 3, (2,), replace, p) for p in (jnp.asarray(weights), as_floats)
        )
        assert chosen.tolist() == expected.tolist()
        assert 0 not in chosen.tolist()


def test_empty_and_zero_dimensional():
    for draw in (random.normal, random.gumbel, random.maxwell, random.bits):
        assert draw(key, ()).shape == () and draw(key, (0, 3)).shape == (0, 3)
    assert random.gamma(key, jnp.ones((0,))).shape == (0,)
    assert random.permutation(key, 0).shape == (0,)
    assert random.split(key, (2, 0)).shape == (2, 0)
    assert random.choice(key, 0, (0,)).shape == (0,)


def test_refused():
    with pytest.raises(ValueError, match="single key"):
        random.normal(random.split(key))
    with pytest.raises(TypeError):
        random.normal([0, 0])
    with pytest.raises(ValueError, match="float dtype"):
        random.uniform(key, (2,), int)
    with pytest.raises(TypeError, match="floating"):
        random.bernoulli(key, 1)
    with pytest.raises(NotImplementedError, match="threefry"):
        random.poisson(random.key(0, impl="rbg"), 3.0)
    with pytest.raises(TypeError, match="negative"):
        random.normal(key, (-1,))
    with pytest.raises(OverflowError):
        random.fold_in(key, -1)
    with pytest.raises(ValueError, match="unrecognized PRNG"):
        random.key(0, impl="none")


@pytest.mark.parametrize(
    ("lower", "upper"), [(3.0, 4.0), (8.0, np.inf), (30.0, 31.0), (-101.0, -100.0)]
)
@pytest.mark.parametrize("x64", [False, True])
def test_truncated_normal_numbers_of_a_tail_have_its_mean(lower, upper, x64):
    with jax.enable_x64(x64):
        draws = np.asarray(random.truncated_normal(jax.random.key(3), lower, upper, (20_000,)))
    near, width = min(abs(lower), abs(upper)), min(upper - lower, 2.0)
    beyond = np.abs(draws.astype(float)) - near
    distance = np.linspace(0, width, 400_001)
    density = np.exp(-near * distance - distance**2 / 2)
    mean = np.sum(distance * density) / np.sum(density)
    assert np.all((draws > lower) & (draws < upper))
    assert len(set(draws.tolist())) > 4_000
    assert abs(beyond.mean() / mean - 1) < 0.03


def test_weibull_numbers_that_results_share_are_warned_of():
    ones = np.ones(4, np.float32)
    with pytest.warns(UserWarning, match=r"pass shape=\(4,\)"):
        found = random.weibull_min(jax.random.key(0), ones, 2 * ones)
    assert len(set(np.asarray(found).tolist())) == 1
    found = random.weibull_min(jax.random.key(0), ones, 2 * ones, shape=(4,))
    assert len(set(np.asarray(found).tolist())) == 4


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_randint_returns_each_number_of_a_narrow_dtype(dtype):
    limits = np.iinfo(dtype)
    found = jax.random.randint(jax.random.key(0), (20_000,), limits.min, limits.max + 1, dtype)
    assert np.unique(found).tolist() == list(range(limits.min, limits.max + 1))
