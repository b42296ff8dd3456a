"""Distributions and samplers with parameters outside their domain, infinite and NaN."""

import importlib

import numpy as np

from tests.against_jax.describe import Anything, Corpus

KNOWN = {
    r"^cauchy_": "in the tails, at 0 and at 1 jax has what rounding leaves of pi, also its sign",
    r"^(truncnorm|uniform|wrapcauchy|binom|poisson|gamma)_": "in jax a variable that is NaN, or"
    " whose loc is, has a probability; infinite ones and shapes have NaN",
    r"^(chi2|nbinom|gennorm)_": "infinite variables and shapes, and slopes at 0 of what has no"
    " valid shape, are NaN in one of the two",
    r"^(expon|norm)_log(cdf|sf)_slope": "where the logarithm is infinite jax has NaN",
    r"^gumbel_[lr]_(log)?pdf|^gumbel_[lr]_ppf": "at infinity, 0 and 1 jax has NaN, and"
    " multiplies a float0 in jvp",
    r"^gumbel_[lr]_cdf_slope": "at infinity jax has NaN",
    r"^laplace_logpdf_slope": "with a scale of 0 or less, where the value is NaN",
    r"^random_beta_.*(inf|nan|-1)": "rubbish of XLA's at optimization level 0, else NaN",
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
    """Return the derivatives in every argument."""

    def run(*args):
        return [
            jax.jvp(lambda x, i=i: call(*args[:i], x, *args[i + 1 :]), (args[i],), (one,))[1]
            for i in range(len(args))
            for one in (jnp.ones_like(args[i]),)
        ]

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
