"""Which results of derivatives are weakly typed where arguments are: scalars and whole arrays.

Left out are powers, and derivatives that JAX takes of two functions which it jits.
"""

import importlib

import numpy as np

from tests.against_jax.describe import Anything, Corpus

OF_NUMBERS = """exp exp2 expm1 log log1p logistic sqrt rsqrt cbrt sin cos tan asin acos atan
    sinh cosh tanh asinh acosh atanh erf erfc erf_inv lgamma digamma bessel_i0e bessel_i1e abs sign
    square reciprocal neg""".split()
# Those whose second derivatives JAX types by the order in which it adds their parts.
ONCE = {"asinh", "acosh", "atanh", "digamma", "lgamma", "bessel_i1e"}
# Functions whose formulas have constants of the dtype of their argument in JAX.
SCIPY = {
    "special": "i0 i1 logit log_ndtr exp1",
    "stats.cauchy": "cdf logcdf sf logsf ppf isf",
    "stats.gumbel_r": "sf",
    "stats.laplace": "cdf",
    "stats.logistic": "logpdf pdf ppf isf",
    "stats.norm": "logpdf pdf",
}


def programs(jax, jnp, lax):
    corpus = Corpus(("shape",))
    of_arrays = {
        "integer_power": lambda x: lax.integer_pow(x, 3),
        "slice": lambda x: x[1:],
        "element": lambda x: x[-1],
        "every_second": lambda x: x[::2],
        "dynamic_slice": lambda x: lax.dynamic_slice(x, (1,), (2,)),
        "gather": lambda x: x[np.array([0, 2])],
        "padded": lambda x: lax.pad(x, 0.0, ((1, 1, 0),)),
        "padded_by_less": lambda x: lax.pad(x, 0.0, ((-1, 0, 0),)),
        "padded_inside": lambda x: lax.pad(x, 0.0, ((0, 0, 1),)),
        "joined": lambda x: jnp.concatenate([x, x]),
        "differences": jnp.diff,
        "rolled": lambda x: jnp.roll(x, 1),
        "diagonal": jnp.diag,
        "lower": lambda x: jnp.tril(x[None]),
        "sum_of_squares": lambda x: (x**2).sum(),
        "selected": lambda x: jnp.where(x > 0, x, -x),
        "sorted": jnp.sort,
        "greatest": jnp.max,
        "cumulative": jnp.cumsum,
        "product": lambda x: x @ x,
        "update": lambda x: x.at[0].set(1.0),
        "sum_of_update": lambda x: jnp.zeros(3).at[:].add(x),
        "least_update": lambda x: x.at[0].min(0.25),
        "convolved": lambda x: jnp.convolve(x, x),
        "transformed": jnp.fft.rfft,
        "transformed_back": lambda x: jnp.fft.irfft(x.astype(complex)),
        "padded_by_the_greatest": lambda x: jnp.pad(x, 1, mode="maximum"),
        "window_sums": lambda x: lax.reduce_window(x, 0.0, lax.add, (2,), (1,), "VALID"),
        "gradients": lambda x: jax.jacrev(lambda x: x * x[0])(x),
        "curvature": jax.hessian(lambda x: jnp.prod(x) * x[0]),
        "power": lambda x: 2.0**x,
        "sum_without_nan": jnp.nansum,
        "logsumexp": jax.nn.logsumexp,
        "updates_of_a_batch": lambda x: jax.vmap(
            lambda x, y: lax.dynamic_update_slice(x, y, (1,)), (0, None)
        )(x[:, None] * x, x[:2]),
    }
    of_matrices = {
        "cholesky": jnp.linalg.cholesky,
        "inverse": jnp.linalg.inv,
        "log_determinant": lambda x: jnp.linalg.slogdet(x),
        "qr": lambda x: jnp.linalg.qr(x),
        "svd": lambda x: jnp.linalg.svd(x),
        "least_squares": lambda x: jnp.linalg.lstsq(x, x[0])[0],
        "condition_number": lambda x: jnp.linalg.cond(x, 1),
    }
    for name in OF_NUMBERS:
        function = getattr(lax, name)
        for label, argument in (("scalar", lambda: jnp.asarray(0.5)), ("array", several(jnp))):
            looks = derivatives(jax, jnp, function, twice=name not in ONCE)
            corpus.add(f"{name}_of_{label}", lambda a=argument, f=looks: f(a()))
    for name, function in of_arrays.items():
        looks = derivatives(jax, jnp, function, twice=False)
        corpus.add(name, lambda f=looks: f(several(jnp)()))
    for name, function in of_matrices.items():
        looks = derivatives(jax, jnp, function, twice=False)
        corpus.add(f"{name}_of_a_matrix", lambda f=looks: f(several(jnp, 3)()))

    @corpus.program()
    def cotangents_of_parts():
        x = jnp.broadcast_to(jnp.asarray(0.5j), (3,))
        parts = lax.real, lax.imag
        return [jax.vjp(part, x)[1](several(jnp)()) for part in parts]

    for module, names in SCIPY.items():
        for name in names.split():
            function = scipy_function(jax, module, name)
            looks = derivatives(jax, jnp, function, twice=False)
            for label, argument in (("scalar", lambda: jnp.asarray(0.5)), ("array", several(jnp))):
                corpus.add(f"{module}_{name}_of_{label}", lambda a=argument, f=looks: f(a()))
    return corpus


def scipy_function(jax, module, name):
    if isinstance(jax, Anything):
        return jax
    return getattr(importlib.import_module(f"{jax.__name__}.scipy.{module}"), name)


def several(jnp, *batch):
    """Return a function that returns a weakly typed array."""
    return lambda: jnp.broadcast_to(jnp.asarray(0.5), (*batch, 3))


def sum_of_all(jax, jnp, tree):
    return sum(jnp.sum(jnp.real(leaf)) for leaf in jax.tree_util.tree_leaves(tree))


def derivatives(jax, jnp, function, twice):
    """Return a function of what derivatives of a function give along x itself."""

    def along(function, x):
        return jax.jvp(function, (x,), (x,))[1]

    def look(x):
        value, backward = jax.vjp(function, x)
        first = along(function, x), jax.linearize(function, x)[1](x), backward(value)
        gradient = jax.grad(lambda x: sum_of_all(jax, jnp, function(x)))(x)
        second = along(lambda x: along(function, x), x) if twice else ()
        return value, first, gradient, second

    return look
