"""Distributions outside of what they are defined for: bad parameters, and values no variable has.

Each function is asked at once for all of a grid. Left out is where JAX's answer is of no use: a
variable that is NaN, of which it says that it has a probability; infinite shapes; and tails, which
it takes from what rounding leaves.
"""

import importlib

import numpy as np

from tests.against_jax.describe import Anything, Corpus

NAN = np.nan
X = (-2.0, -0.5, 0.0, 0.25, 1.0, 2.5)
K = (-2.0, 0.0, 0.5, 1.0, 5.0, 7.0)
Q = (-0.5, 0.001, 0.5, 0.75, 1.5)
SHAPES = (-1.0, 0.0, 0.5, 1.0, 2.5, NAN)
# JAX's incomplete gamma functions of order zero are 1 only beyond 1.
NOT_ZERO = (-1.0, 0.5, 1.0, 2.5, NAN)
PROBABILITIES = (-0.5, 0.0, 0.3, 1.0, 1.5)
COUNTS = (-1.0, 0.0, 2.5, 5.0, NAN)
LOCS, SCALES = (0.0, -1.0), (1.0, 2.0, 0.0, -1.0, np.inf, NAN)
KNOWN_SCALES = (1.0, 2.0, -1.0)
DENSITIES = "logpdf pdf"
ALL = "logpdf pdf cdf logcdf sf logsf"
# Name of the program -> the distribution, its functions, and the values of each argument.
GRIDS = {
    "beta": ("beta", ALL, (X, SHAPES[:5], (0.0, 2.5, NAN), LOCS, SCALES)),
    "cauchy": ("cauchy", "logpdf pdf cdf sf", (X, LOCS, SCALES)),
    "chi2": ("chi2", ALL, (X, NOT_ZERO, LOCS, SCALES)),
    "expon": ("expon", ALL, (X, LOCS, SCALES)),
    "expon_quantiles": ("expon", "ppf", (Q, LOCS, SCALES)),
    "gamma": ("gamma", ALL, (X, NOT_ZERO, LOCS, SCALES)),
    "gennorm": ("gennorm", "logpdf pdf cdf", (X, SHAPES)),
    "gumbel_l": ("gumbel_l", ALL, (X, LOCS, SCALES)),
    "gumbel_l_quantiles": ("gumbel_l", "ppf", (Q, LOCS, SCALES)),
    "gumbel_r": ("gumbel_r", ALL, (X, LOCS, SCALES)),
    "gumbel_r_quantiles": ("gumbel_r", "ppf", (Q, LOCS, SCALES)),
    "laplace": ("laplace", "logpdf pdf cdf", (X, LOCS, SCALES)),
    "logistic": ("logistic", "logpdf pdf cdf sf", (X, LOCS, SCALES)),
    "logistic_quantiles": ("logistic", "ppf isf", (Q, LOCS, SCALES)),
    "norm": ("norm", ALL, (X, LOCS, SCALES)),
    "norm_quantiles": ("norm", "ppf isf", (Q, LOCS, SCALES)),
    "pareto": ("pareto", ALL, (X, (*SHAPES, np.inf), (*LOCS, NAN), SCALES)),
    "pareto_quantiles": ("pareto", "ppf", ((0.0, *Q), SHAPES, LOCS, SCALES)),
    "t": ("t", DENSITIES, (X, SHAPES, LOCS, SCALES)),
    "truncnorm": ("truncnorm", DENSITIES, (X, (-1.0, 0.0, NAN), (-2.0, 0.0, NAN), LOCS, SCALES)),
    "truncnorm_tails": (
        "truncnorm",
        "cdf logcdf sf logsf",
        (X, (-1.0, 0.0, 2.0), (-2.0, 0.0, 1.0), LOCS, KNOWN_SCALES),
    ),
    "uniform": ("uniform", DENSITIES, (X, LOCS, SCALES)),
    "uniform_cdf": ("uniform", "cdf", (X, LOCS, KNOWN_SCALES)),
    "uniform_quantiles": ("uniform", "ppf", (Q, LOCS, SCALES)),
    "vonmises": ("vonmises", DENSITIES, (X, SHAPES)),
    "wrapcauchy": ("wrapcauchy", DENSITIES, (X, (*PROBABILITIES, NAN))),
    "bernoulli": ("bernoulli", "logpmf pmf", (K, PROBABILITIES, LOCS)),
    "betabinom": ("betabinom", "logpmf pmf", (K, COUNTS[:4], SHAPES, (0.0, 1.5), (0.0,))),
    "binom": ("binom", "logpmf pmf", (K, (-1.0, 2.5, 5.0, NAN), (*PROBABILITIES, NAN), LOCS)),
    "geom": ("geom", "logpmf pmf", (K, (*PROBABILITIES, NAN), LOCS)),
    "nbinom": ("nbinom", "logpmf pmf", (K, COUNTS, PROBABILITIES, LOCS)),
    "poisson": ("poisson", "logpmf pmf cdf", (K, (-1.0, 0.0, 1.5, NAN), (0.0, 1.0, NAN))),
    "poisson_entropy": ("poisson", "entropy", ((0.0, 1.5, 30.0, 500.0), (0.0, 1.0))),
}


def programs(jax, jnp, lax):
    corpus = Corpus(("jit",))
    for name, (distribution, functions, values) in GRIDS.items():
        module = jax
        if not isinstance(jax, Anything):
            module = importlib.import_module(f"{jax.__name__}.scipy.stats.{distribution}")
        args = [np.float32(x.ravel()) for x in np.meshgrid(*values, indexing="ij")]
        corpus.add(name, at_once(module, functions.split()), *args, tolerance=1e-4)
    return corpus


def at_once(module, names):
    return lambda *args: [getattr(module, name)(*args) for name in names]
