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
    "stats.gumbel_l": "cdf sf",
    "stats.gumbel_r": "sf",
    "stats.laplace": "cdf",
    "stats.logistic": "logpdf pdf ppf isf",
    "stats.norm": "logpdf pdf isf",
}
# Those that take arrays alone, or whose results of scalars are other ones in JAX.
OF_ARRAYS = {
    "nn": "sparse_plus sparse_sigmoid",
    "numpy": "hypot",
    "scipy.linalg": "toeplitz hankel circulant companion fiedler_companion block_diag leslie",
    "scipy.special": "xlogy xlog1py zeta",
    "scipy.stats.bernoulli": "logpmf",
    "scipy.stats.binom": "logpmf",
    "scipy.stats.chi2": "logcdf",
    "scipy.stats.gamma": "logcdf",
    "scipy.stats.geom": "logpmf",
    "scipy.stats.nbinom": "logpmf",
    "scipy.stats.pareto": "logcdf sf ppf",
    "scipy.stats.poisson": "logpmf",
    "scipy.stats.vonmises": "logpdf pdf",
    "scipy.stats.wrapcauchy": "logpdf pdf",
}
# How many arguments those have that have others than one.
COUNTS = {
    "leslie": 2,
    "hypot": 2,
    "xlogy": 2,
    "xlog1py": 2,
    "zeta": 2,
    "chi2": 2,
    "gamma": 2,
    "nbinom": 3,
    "binom": 3,
    "pareto": 4,
    "poisson": 3,
    "bernoulli": 3,
    "geom": 3,
    "vonmises": 2,
    "wrapcauchy": 2,
}
ROTATIONS = "as_matrix as_mrp as_quat as_rotvec inv".split()


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
        "window_maxima": lambda x: lax.reduce_window(x, -1.0, lax.max, (2,), (1,), "VALID"),
        "gradients": lambda x: jax.jacrev(lambda x: x * x[0])(x),
        "curvature": jax.hessian(lambda x: jnp.prod(x) * x[0]),
        "power": lambda x: 2.0**x,
        "sum_without_nan": jnp.nansum,
        "logsumexp": jax.nn.logsumexp,
        "constant_in_a_jitted_function": jax.jit(lambda x: lax.add(x, np.float32([1, 2, 3]))),
        "trapezoids": lambda x: jnp.trapezoid(x),
        "interpolation_of_period": lambda x: jnp.interp(1.0, x, np.float32([1, 2, 3]), period=3),
        "polynomial_of_zeros": jnp.poly,
        "zeros_of_polynomial": lambda x: jnp.roots(x, strip_zeros=False),
        "integral_of_polynomial": jnp.polyint,
        "nearest_codes": lambda x: member(jax, "scipy.cluster.vq", "vq")(x, x[:2])[1],
        "without_a_trend": lambda x: member(jax, "scipy.signal", "detrend")(x),
        "scaled_exponents": lambda x: member(jax, "scipy.special", "logsumexp")(x, b=x),
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
        "log_determinant_by_qr": lambda x: jnp.linalg.slogdet(x, method="qr"),
        "eigenvalues": jnp.linalg.eigvalsh,
        "eigenvectors": jnp.linalg.eigh,
        "singular_values": lambda x: jnp.linalg.svd(x, compute_uv=False),
        "spectral_norm": lambda x: jnp.linalg.norm(x, 2),
        "slope_of_spectral_norm": jax.grad(lambda x: jnp.linalg.norm(x, 2)),
        "slope_of_norm": jax.grad(lambda x: jnp.linalg.norm(x + 1j * x)),
        "diagonal": jnp.linalg.diagonal,
        "diagonal_by_einsum": lambda x: jnp.einsum("ii->i", x),
        "factors": lambda x: member(jax, "scipy.linalg", "lu")(x),
        "logarithms_of_sums": lambda x: jnp.logaddexp.reduce(x),
        "differences_in_steps": lambda x: jnp.subtract.accumulate(x),
        "differences_of_none": lambda x: jnp.subtract.accumulate(x[:0]),
        "maxima_of_none": lambda x: jnp.maximum.accumulate(x[:0]),
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
    def solution_of_three_diagonals():
        args = [several(jnp)() for _ in range(3)]
        value, backward = jax.vjp(lax.linalg.tridiagonal_solve, *args, several(jnp)()[:, None])
        return value, backward(value)

    @corpus.program()
    def interpolation_at_the_nearest_point():
        interpolator = member(jax, "scipy.interpolate", "RegularGridInterpolator")
        points = np.float32([0, 1, 2])
        return interpolator((points,), several(jnp)(), method="nearest")(several(jnp)()[:, None])

    @corpus.program()
    def special_functions_of_complex_numbers():
        x = jnp.broadcast_to(jnp.asarray(0.5 + 0.5j), (3,))
        gamma, loggamma, erfcx = (
            member(jax, "scipy.special", name) for name in ("gamma", "loggamma", "erfcx")
        )
        backward = [jax.vjp(function, x)[1](x) for function in (gamma, erfcx)]
        return gamma(x), gamma(x[0]), loggamma(x), backward

    @corpus.program()
    def cotangents_of_parts():
        x = jnp.broadcast_to(jnp.asarray(0.5j), (3,))
        parts = lax.real, lax.imag
        return [jax.vjp(part, x)[1](several(jnp)()) for part in parts]

    for module, names in OF_ARRAYS.items():
        for name in names.split():
            count = COUNTS.get(name) or COUNTS.get(module.split(".")[-1], 1)
            for place in range(count):
                looks = derivatives(jax, jnp, in_place(jax, jnp, module, name, count, place), False)
                label = f"{module}_{name}_of_array_{place}"
                corpus.add(label, lambda f=looks: f(several(jnp)()))
    for name in ROTATIONS:

        def rotated(x, name=name):
            rotation = member(jax, "scipy.spatial.transform", "Rotation").from_quat(x)
            return jax.tree_util.tree_leaves(getattr(rotation, name)())

        looks = derivatives(jax, jnp, rotated, twice=False)
        corpus.add(
            f"rotation_{name}", lambda f=looks: f(jnp.broadcast_to(jnp.asarray(0.5), (2, 4)))
        )

    for module, names in SCIPY.items():
        for name in names.split():
            function = member(jax, f"scipy.{module}", name)
            looks = derivatives(jax, jnp, function, twice=False)
            for label, argument in (("scalar", lambda: jnp.asarray(0.5)), ("array", several(jnp))):
                corpus.add(f"{module}_{name}_of_{label}", lambda a=argument, f=looks: f(a()))
    return corpus


def member(jax, module, name):
    if isinstance(jax, Anything):
        return jax
    return getattr(importlib.import_module(f"{jax.__name__}.{module}"), name)


def in_place(jax, jnp, module, name, count, place):
    """Return a function of the argument in one place of a function's, the others weak arrays."""

    def function(x):
        args = [several(jnp)() for _ in range(count)]
        args[place] = x
        return member(jax, module, name)(*args)

    return function


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
