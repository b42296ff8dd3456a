"""Functions of numbers at odd points: signed zeros, infinities, NaN in either part, poles, kinks.

Values at all of a grid, and derivatives up to the fourth order. Left out is where the reference's
are not the function's: its incomplete gamma functions of orders 0 and infinity, and derivatives at
0 of what it makes of an absolute value.
"""

import importlib

import numpy as np

from tests.against_jax.describe import Anything, Corpus

F = np.float32
INF, NAN = np.inf, np.nan
SIZES = [0.0, 1e-20, 1e-3, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 7.5, 20.0, 100.0, 1e4, 1e30, INF]
REAL = F([*(-x for x in reversed(SIZES)), *SIZES, NAN])
PARTS = [-INF, -2, -0.5, -0.0, 0, 0.5, 1, 50, INF, NAN]
COMPLEX = np.array([complex(a, b) for a in PARTS for b in PARTS], np.complex64)
PAIRS = [F(x.ravel()) for x in np.meshgrid(*[F([-INF, -3, -1, -0.0, 0, 0.5, 2, INF, NAN])] * 2)]
KINDS = {
    "powers": "sqrt square reciprocal exp exp2 expm1 log log2 log10 log1p sign abs",
    "circular": "sin cos tan arcsin arccos arctan",
    "hyperbolic": "sinh cosh tanh arcsinh arccosh arctanh",
    "tests": "isnan isinf isfinite angle conj rint nan_to_num",
}
OF_REALS = "cbrt sinc i0 floor ceil trunc signbit isposinf isneginf deg2rad frexp modf"
OF_PAIRS = """add subtract multiply divide power float_power maximum minimum fmax fmin arctan2 hypot
    logaddexp logaddexp2 copysign nextafter heaviside remainder fmod floor_divide divmod greater
    less_equal isclose"""
SPECIAL = """dawsn erf erfc erfcx expit gammasgn i0 i0e i1 i1e factorial gamma gammaln ndtr
    log_ndtr digamma logit ndtri erfinv entr sici"""
SPECIAL_OF_PAIRS = "boxcox boxcox1p kl_div xlogy xlog1py comb zeta"
# Where derivatives are asked for, and how close: those of the fourth order have lost digits.
POINTS = np.float64([-30, -3, -1, -0.5, 0.25, 0.5, 2, 3])
AT_ZERO = np.float64([-0.0, 0.0])
DERIVED = {
    "sinc": (lambda jnp, sp, x: jnp.sinc(x), AT_ZERO),
    "slope_of_i0": (lambda jnp, sp, x: jnp.i0(x), POINTS),
    "sine_integral": (lambda jnp, sp, x: sp.sici(x)[0], AT_ZERO),
    "erf": (lambda jnp, sp, x: sp.erf(x) + sp.dawsn(x), AT_ZERO),
    "log_ndtr": (lambda jnp, sp, x: sp.log_ndtr(x), np.float64([-3, 0, 3, 30, 1e4])),
    "bessel": (lambda jnp, sp, x: sp.i0(x) + 2 * sp.i1(x), POINTS),
    "expit": (lambda jnp, sp, x: sp.expit(x), np.float64([-1e4, -1, 0, 1, 1e4])),
    "square_root": (lambda jnp, sp, x: jnp.sqrt(x) + jnp.cbrt(x), AT_ZERO),
    "powers": (lambda jnp, sp, x: x**2 + x**3 + x**-1, AT_ZERO),
    "exponents": (lambda jnp, sp, x: jnp.power(2.0, x) + jnp.logaddexp(x, 0.0), AT_ZERO),
    "distances": (lambda jnp, sp, x: jnp.hypot(x, 2.0) + jnp.arctan2(x, -1.0), AT_ZERO),
}


def programs(jax, jnp, lax):
    corpus = Corpus(("jit",))
    sp = jax
    if not isinstance(jax, Anything):
        sp = importlib.import_module(f"{jax.__name__}.scipy.special")

    def parts(result):
        """Real and imaginary parts apart, of which one may be NaN and the other not."""
        leaves = jax.tree_util.tree_leaves(result)
        return [(jnp.real(x), jnp.imag(x)) if jnp.iscomplexobj(x) else x for x in leaves]

    def several(module, names):
        functions = [getattr(module, name) for name in names.split()]
        return lambda *args: [parts(function(*args)) for function in functions]

    near = {"tolerance": 2e-5}
    for kind, names in KINDS.items():
        corpus.add(f"{kind}_of_real", several(jnp, names), REAL, **near)
        corpus.add(f"{kind}_of_complex", several(jnp, names), COMPLEX, **near)
    corpus.add("more_of_real", several(jnp, OF_REALS), REAL, **near)
    corpus.add("numpy_of_pairs", several(jnp, OF_PAIRS), *PAIRS, **near)
    for name in SPECIAL.split():
        corpus.add(f"special_{name}", several(sp, name), REAL, tolerance=1e-4)
    for name in SPECIAL_OF_PAIRS.split():
        corpus.add(f"special_{name}_of_pairs", several(sp, name), *PAIRS, tolerance=1e-4)
    for name, (function, points) in DERIVED.items():
        highest = 2 if name == "slope_of_i0" else 4
        corpus.add(
            f"derivatives_of_{name}",
            derivatives(jax, jnp, sp, function, highest),
            points,
            x64=True,
            tolerance=1e-6,
        )
    return corpus


def derivatives(jax, jnp, sp, function, highest):
    def step(inner):
        return lambda x: jax.jvp(inner, (x,), (jnp.ones_like(x),))[1]

    def all_orders(x):
        found, inner = [], lambda x: function(jnp, sp, x)
        for _ in range(highest):
            inner = step(inner)
            found.append(inner(x))
        return found

    return all_orders
