"""Slopes of distributions at the ends of their domain, and with parameters that are none."""

import importlib

import numpy as np

from tests.against_jax.describe import Anything, Corpus

INF, NAN = np.inf, np.nan
X = (-2.0, 0.0, 0.25, 1.0, 2.5)
ENDS = (-0.5, 0.0, 0.3, 1.0, 1.5, NAN)
LOCS, SCALES = (0.0, NAN), (2.0, 0.0, -1.0, NAN)
# Name of the program -> the distribution, its function, and the values of each argument.
GRIDS = {
    "gumbel_l_cdf": ("gumbel_l", "cdf", (X, LOCS, SCALES)),
    "gumbel_l_sf": ("gumbel_l", "sf", (X, LOCS, SCALES)),
    "gumbel_r_cdf": ("gumbel_r", "cdf", (X, LOCS, SCALES)),
    "gumbel_r_sf": ("gumbel_r", "sf", (X, LOCS, SCALES)),
    "norm_ppf": ("norm", "ppf", (ENDS, LOCS, SCALES)),
    "norm_isf": ("norm", "isf", (ENDS, LOCS, SCALES)),
    "vonmises_pdf": ("vonmises", "pdf", (X, (-1.0, 0.0, 0.5, 2.5, NAN))),
    "wrapcauchy_pdf": ("wrapcauchy", "pdf", (X, ENDS)),
    "beta_pdf": (
        "beta",
        "pdf",
        ((-2.0, 0.25, 2.5), (-1.0, 0.0, 2.5), (0.0, 2.5, NAN), LOCS, SCALES),
    ),
    "truncnorm_pdf": ("truncnorm", "pdf", (X, (-1.0, 0.0, NAN), (-2.0, 1.0, NAN))),
    "chi2_sf": ("chi2", "sf", ((0.25, 2.5), (0.0, 0.5, 2.5, NAN), LOCS, SCALES[:1])),
    "laplace_logpdf": ("laplace", "logpdf", ((-2.0, 0.25, 2.5), LOCS, SCALES)),
    "poisson_logpmf": ("poisson", "logpmf", ((1.0, 7.0), (0.5, NAN), LOCS)),
    "poisson_cdf": ("poisson", "cdf", ((1.0, 7.0), (-1.0, 0.5, NAN), LOCS)),
    "betabinom_pmf": ("betabinom", "pmf", ((-1.0, 1.0, 7.0), (5.0,), (-1.0, 0.5, NAN), (1.5,))),
}


def programs(jax, jnp, lax):
    corpus = Corpus(("jit",))
    for name, (distribution, function, values) in GRIDS.items():
        call = jax
        if not isinstance(jax, Anything):
            module = importlib.import_module(f"{jax.__name__}.scipy.stats.{distribution}")
            call = getattr(module, function)
        args = [np.float32(x.ravel()) for x in np.meshgrid(*values, indexing="ij")]
        corpus.add(name, slopes(jax, jnp, call), *args, tolerance=1e-3)
    return corpus


def slopes(jax, jnp, call):
    """Return the derivatives of a function in each argument."""

    def run(*args):
        return [
            jax.jvp(lambda x, i=i: call(*args[:i], x, *args[i + 1 :]), (x,), (jnp.ones_like(x),))[1]
            for i, x in enumerate(args)
        ]

    return run
