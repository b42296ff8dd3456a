"""Minimizers on functions where line searches fail: steep, flat, kinked, unbounded, not finite."""

import importlib

import numpy as np

from tests.against_jax.describe import Anything, Corpus

KNOWN: dict[str, str] = {}
STARTS = {
    "ones": [1.0, 1.0],
    "far": [1e3, -2e3],
    "near": [1e-3, 1e-4],
    "zero": [0.0, 0.0],
    "below": [-1.0, -0.5],
    "nan": [np.nan, 1.0],
    "infinite": [np.inf, 0.0],
}


def programs(jax, jnp, lax):
    corpus = Corpus(("jit",))
    optimize = jax
    if not isinstance(jax, Anything):
        optimize = importlib.import_module(f"{jax.__name__}.scipy.optimize")
    starts = np.array(list(STARTS.values()))
    for name, function in functions(jnp).items():
        for options in ({}, {"maxiter": 3}, {"maxiter": 40, "gtol": 1e-12}, {"norm": 2}):
            label = "_".join(f"{key}{value}" for key, value in options.items()) or "plain"

            def bfgs(starts, function=function, options=options):
                """Return the results from all starts, one after the other: compiled once."""
                search = lambda x: optimize.minimize(function, x, method="BFGS", options=options)
                return lax.map(lambda x: described(jnp, search(x)), starts)

            # Where a search fails depends on the last bits in float32.
            corpus.add(f"bfgs_{name}_{label}", bfgs, starts, x64=True, tolerance=1e-4)
    return corpus


def described(jnp, result):
    """Return what users read of a result; the values rounded, as the last digits are chance."""
    at_all = jnp.isfinite(result.x)
    return {
        "x": jnp.where(at_all, jnp.round(result.x, 3), 0),
        "finite": at_all,
        "fun": jnp.round(jnp.nan_to_num(result.fun), 3),
        "success": result.success,
        "status": result.status,
        "few_iterations": jnp.minimum(result.nit, 4),
    }


def functions(jnp):
    return {
        "steep": lambda x: jnp.mean((1e4 * x) ** 2),
        "flat": lambda x: jnp.sum(1e-6 * x**4),
        "constant": lambda x: jnp.sum(x * 0) + 1,
        "linear": lambda x: jnp.sum(x),
        "absolute": lambda x: jnp.sum(jnp.abs(x)),
        "square_root": lambda x: jnp.sum(jnp.sqrt(x)),
        "logarithm": lambda x: jnp.sum(x - jnp.log(x)),
        "unbounded": lambda x: -jnp.sum(x**2),
        "cubic": lambda x: jnp.sum(x**3),
        "exponential": lambda x: jnp.sum(jnp.exp(x) - x),
        "rosenbrock": lambda x: (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2,
        "himmelblau": lambda x: (x[0] ** 2 + x[1] - 11) ** 2 + (x[0] + x[1] ** 2 - 7) ** 2,
        "wavy": lambda x: jnp.sum(jnp.sin(5 * x) + x**2 / 10),
        # At a minimum that is a step as well, the last bits of a search decide.
        "step": lambda x: jnp.sum(jnp.floor(x + 0.25) + x**2),
        "relu": lambda x: jnp.sum(jnp.maximum(x, 0)),
        "valley": lambda x: (1e3 * x[0]) ** 2 + x[1] ** 2,
        "quartic": lambda x: jnp.sum((x - 3) ** 4),
        "bounded": lambda x: jnp.sum(jnp.tanh(x)),
        "gaussian": lambda x: -jnp.exp(-jnp.sum(x**2)),
        "nan_beside": lambda x: jnp.sum(jnp.where(x > 0.5, x**2, jnp.nan)),
        "infinite_beside": lambda x: jnp.sum(jnp.where(x > 0.5, x**2, jnp.inf)),
        "wrong_sign": lambda x: jnp.sum(jnp.where(x > 0, x, -2 * x)),
        "huge": lambda x: 1e300 * jnp.sum(x**2),
        "tiny": lambda x: 1e-300 * jnp.sum(x**2),
    }
