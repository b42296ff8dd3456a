"""The minimizers where searches along lines fail, and where values are not finite."""

import importlib

import numpy as np

from tests.against_jax.describe import Anything, Corpus

LIMITED = "l-bfgs-experimental-do-not-rely-on-this"


def programs(jax, jnp, lax):
    corpus = Corpus(("jit",))
    optimize = jax
    if not isinstance(jax, Anything):
        optimize = importlib.import_module(f"{jax.__name__}.scipy.optimize")
    hard_searches(corpus, jnp, optimize)
    return corpus


def hard_searches(corpus, jnp, optimize):
    """Searches along lines that fail, or that start where values or slopes are not finite."""
    functions = {
        "steep": lambda x: jnp.mean((1e4 * x) ** 2),
        "linear": jnp.sum,
        "absolute": lambda x: jnp.sum(jnp.abs(x)),
        "square_root": lambda x: jnp.sum(jnp.sqrt(x)),
        "cubic": lambda x: jnp.sum(x**3),
        "rosenbrock": lambda x: (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2,
        "quartic": lambda x: jnp.sum((x - 3) ** 4),
    }
    searches = [
        # Near the minimum, how many steps are left depends on the processor's last digits.
        ("BFGS", "steep", [1.0, 1.0], {"maxiter": 1}),
        ("BFGS", "linear", [np.nan, 1.0], {"line_search_maxiter": 3}),
        ("BFGS", "absolute", [1e3, -2e3], {"maxiter": 3}),
        ("BFGS", "cubic", [1e-3, 1e-4], {"gtol": 1e-12}),
        ("BFGS", "rosenbrock", [-1.2, 1.0], {"norm": 2}),
        (LIMITED, "rosenbrock", [-1.2, 1.0], {"maxfun": 7}),
        (LIMITED, "rosenbrock", [-1.2, 1.0], {"maxls": 2, "maxiter": 5}),
        (LIMITED, "quartic", [1.0, 8.0], {"maxcor": 2, "ftol": 1e-4}),
        (LIMITED, "square_root", [np.nan, 1.0], {}),
    ]
    for number, (method, name, start, options) in enumerate(searches):

        def search(x, method=method, function=functions[name], options=options):
            found = optimize.minimize(function, x, method=method, options=options)
            counts = found.success, found.status, found.nit, found.nfev, found.njev
            return found.x, found.fun, found.jac, counts

        corpus.add(f"search_{number}_{name}", search, np.array(start), x64=True, tolerance=1e-8)

    def distance(x):
        return jnp.sum(jnp.arange(1, 4) * jnp.abs(x - (1 + 2j)) ** 4)

    def complex_search(x):
        found = optimize.minimize(distance, x, method=LIMITED, options={"gtol": 1e-2})
        return found.x, found.jac, found.status, found.nit

    corpus.add("search_complex", complex_search, np.full(3, 0.5 + 0j), x64=True, tolerance=1e-8)
