"""Distributions and samplers with parameters outside their domain, infinite and NaN."""

import importlib

import numpy as np

from tests.against_jax.describe import Anything, Corpus

KNOWN = {
    # Values.
    r"^beta_(log)?(cdf|sf)$": "of two infinite shapes jax has NaN; ours is 0 or 1, as in SciPy",
    r"^cauchy_log(cdf|sf)$": "at infinity jax has -18.9, what rounding leaves; ours is infinite",
    r"^cauchy_(ppf|isf)(_slope)?$": "jax has large numbers of the wrong sign at 0 and 1, and"
    " numbers beyond; ours are infinite and NaN, as in SciPy",
    r"^(chi2|gamma)_(log)?(cdf|sf)$": "of infinite shapes, and of shape 0 up to 1, jax has NaN",
    r"^(chi2_(log)?pdf|gumbel_[lr]_(log)?pdf)$": "at infinity jax has NaN or infinity, not 0",
    r"^gumbel_[lr]_ppf$": "at 0 and 1 jax has NaN, where ours is infinite, as in SciPy",
    r"^(gamma_(log)?pdf|poisson_(log)?pmf)$": "at infinity jax has NaN, and a probability at NaN",
    r"^(binom_(log)?pmf|wrapcauchy_(log)?pdf)$": "in jax a variable that is NaN has probability 0",
    r"^uniform_((log)?pdf|cdf)$": "in jax a variable that is NaN, or has such ends, has a density",
    r"^truncnorm_(log)?(cdf|sf)$": "in jax both are 1 where an argument is NaN",
    r"^(gennorm_cdf|poisson_cdf|nbinom_(log)?pmf)$": "of infinite exponent, mean or k jax has NaN",
    # Slopes, in reverse.
    r"^gumbel_[lr]_((log)?pdf|ppf)_slope$": "jax multiplies a float0, and raises",
    r"^(chi2|gamma)_(log)?(cdf|sf)_slope$": "where the value is NaN jax has numbers in x, loc and"
    " scale; elsewhere NaN of branches that are not taken, and in the shape at infinity",
    r"^(beta|chi2|gamma|pareto)_(log)?pdf_slope$": "outside of the support, at its end and at"
    " infinity jax has NaN, of branches that are not taken",
    r"^pareto_((log)?(cdf|sf)|ppf)_slope$": "outside of the support jax has NaN, of branches that"
    " are not taken; of exponents of 0, NaN and infinity one of the two has NaN",
    r"^(expon_(log)?cdf|laplace_cdf|norm_log(cdf|sf))_slope$": "at infinity, and of a scale of 0 or"
    " less, jax has NaN",
    r"^norm_(ppf|isf)_slope$": "of an infinite or unknown scale one of the two has NaN",
    r"^(truncnorm_.*|gumbel_l_cdf|gennorm_cdf)_slope$": "where the value is NaN one of the two has"
    " slopes of 0",
    r"^uniform_((log)?pdf|cdf)_slope$": "where ours is NaN jax has a value, and its slope",
    r"^(bernoulli|geom|nbinom)_(log)?pmf_slope$": "in p of what is certain jax has NaN",
    r"^(betabinom|binom)_(log)?pmf_slope$": "outside of the support jax has NaN, of branches that"
    " are not taken",
    r"^poisson_((log)?pmf|cdf)_slope$": "below 0 and at infinity jax has NaN, or an infinite slope",
    # Samplers.
    r"^random_beta_((-1.0|nan)_inf|(30.0|inf)_(-1.0|nan))$": "without optimization exp(NaN) of XLA"
    " is any number; with it both have NaN",
}
NAN, INF = np.nan, np.inf
X = (-INF, -2.0, 0.0, 0.25, 1.0, 2.5, 7.0, INF, NAN)
SHAPES = (-1.0, 0.0, 0.5, 1.0, 2.5, INF, NAN)
PROBABILITIES = (-0.5, 0.0, 0.3, 1.0, 1.5, NAN)
SCALES = (2.0, 0.0, -1.0, INF, NAN)
CONTINUOUS = "logpdf pdf cdf logcdf sf logsf ppf isf"
DISCRETE = "logpmf pmf cdf"
# Distribution -> its functions and the values of its shape parameters.
DISTRIBUTIONS = {
    "beta": (CONTINUOUS, (SHAPES, SHAPES)),
    "cauchy": (CONTINUOUS, ()),
    "chi2": (CONTINUOUS, (SHAPES,)),
    "expon": (CONTINUOUS, ()),
    "gamma": (CONTINUOUS, (SHAPES,)),
    "gumbel_l": (CONTINUOUS, ()),
    "gumbel_r": (CONTINUOUS, ()),
    "laplace": (CONTINUOUS, ()),
    "logistic": (CONTINUOUS, ()),
    "norm": (CONTINUOUS, ()),
    "pareto": (CONTINUOUS, (SHAPES,)),
    "t": (CONTINUOUS, (SHAPES,)),
    "truncnorm": (CONTINUOUS, (SHAPES, (-2.0, 1.0, INF, NAN))),
    "uniform": (CONTINUOUS, ()),
    "gennorm": (CONTINUOUS, (SHAPES,)),
    "vonmises": (CONTINUOUS, (SHAPES,)),
    "wrapcauchy": (CONTINUOUS, (PROBABILITIES,)),
    "bernoulli": (DISCRETE + " ppf", (PROBABILITIES,)),
    "betabinom": (DISCRETE, ((-1.0, 5.0, NAN), SHAPES, (0.5, 0.0, -1.0))),
    "binom": (DISCRETE, ((-1.0, 2.5, 5.0, INF, NAN), PROBABILITIES)),
    "geom": (DISCRETE, (PROBABILITIES,)),
    "nbinom": (DISCRETE, (SHAPES, PROBABILITIES)),
    "poisson": (DISCRETE, (SHAPES,)),
}
NO_SCALE = {"gennorm", "vonmises", "wrapcauchy"}


def programs(jax, jnp, lax):
    corpus = Corpus(("jit",))
    for name, (functions, shapes) in DISTRIBUTIONS.items():
        module = jax
        if not isinstance(jax, Anything):
            module = importlib.import_module(f"{jax.__name__}.scipy.stats.{name}")
        further = () if name in NO_SCALE else ((0.0, NAN),)
        if "logpdf" in functions and further:
            further += (SCALES,)
        for function in functions.split():
            if not isinstance(jax, Anything) and not hasattr(module, function):
                continue
            grid = (PROBABILITIES if function in ("ppf", "isf") else X, *shapes, *further)
            args = [np.float32(x.ravel()) for x in np.meshgrid(*grid, indexing="ij")]
            call = getattr(module, function)
            corpus.add(f"{name}_{function}", call, *args, tolerance=1e-4)
            corpus.add(
                f"{name}_{function}_slope",
                slopes(jax, jnp, call),
                *[x[:: max(1, len(x) // 300)] for x in args],
                tolerance=1e-3,
            )
    for name, (sampler, parameters) in samplers(jax, jnp).items():
        for parameter in parameters:
            label = "_".join(map(str, parameter))

            def sampled(sampler=sampler, parameter=parameter):
                return sampler(jax.random.key(3), *map(np.float32, parameter))

            corpus.add(f"random_{name}_{label}", sampled, tolerance=1e-4)
    return corpus


def slopes(jax, jnp, call):
    """Return the derivatives in every argument, in reverse.

    Forward, JAX multiplies tangents of zero by infinite and undefined derivatives: it has NaN where
    its own gradients are numbers.
    """

    def run(*args):
        value, pull = jax.vjp(call, *args)
        return pull(jnp.ones_like(value))

    return run


def samplers(jax, jnp):
    """Samplers by name: called with a key and parameters, and the parameters."""
    random, shape = jax.random, (3,)
    one = [(x,) for x in (-1.0, 0.0, 1e-3, 0.5, 1.0, 30.0, INF, NAN)]
    two = [(x, y) for x in (-1.0, 0.0, 0.5, 30.0, INF, NAN) for y in (-1.0, 0.0, 0.5, INF, NAN)]
    with_shape = lambda function: lambda key, *args: function(key, *args, shape=shape)
    return {
        "gamma": (with_shape(random.gamma), one),
        "loggamma": (with_shape(random.loggamma), one),
        "beta": (with_shape(random.beta), two),
        "chisquare": (with_shape(random.chisquare), one),
        "t": (with_shape(random.t), one),
        "pareto": (with_shape(random.pareto), one),
        "poisson": (with_shape(random.poisson), one),
        "geometric": (with_shape(random.geometric), one),
        "bernoulli": (with_shape(random.bernoulli), one),
        "binomial": (with_shape(random.binomial), two),
        "rayleigh": (with_shape(random.rayleigh), one),
        "wald": (with_shape(random.wald), one),
        "weibull_min": (
            lambda key, scale, power: random.weibull_min(key, scale, power, shape=shape),
            two,
        ),
        "f": (with_shape(random.f), two),
        "generalized_normal": (
            lambda key, power: random.generalized_normal(key, power, shape=shape),
            one,
        ),
        "truncated_normal": (with_shape(random.truncated_normal), two),
        "triangular": (
            lambda key, low, mode: random.triangular(key, low, mode, 1.0, shape=shape),
            two,
        ),
        "uniform": (
            lambda key, low, high: random.uniform(key, shape, minval=low, maxval=high),
            two,
        ),
        "dirichlet": (lambda key, a, b: random.dirichlet(key, jnp.stack([a, b, 1.0])), two),
        "categorical": (lambda key, a, b: random.categorical(key, jnp.stack([a, b, 1.0])), two),
        "choice": (
            lambda key, a, b: random.choice(key, 3, (4,), p=jnp.stack([a, b, 1.0 - a - b])),
            two,
        ),
        "multinomial": (
            lambda key, n, p: random.multinomial(key, n, jnp.stack([p, 1 - p])),
            two,
        ),
        "double_sided_maxwell": (
            lambda key, loc, scale: random.double_sided_maxwell(key, loc, scale, shape=shape),
            two,
        ),
        "multivariate_normal": (
            lambda key, mean, variance: random.multivariate_normal(
                key, jnp.stack([mean, mean]), variance * jnp.eye(2)
            ),
            two,
        ),
        "exponential": (lambda key, x: random.exponential(key, shape) * x, one),
    }
