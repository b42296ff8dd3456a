"""Derivatives to the fourth order at special points, by jax and by mpmath.

The points are zeros of denominators, branch points, ends of domains and where a formula changes.
Where a function has a Taylor series (`mpmath.taylor` of it converges), the derivatives by jvp and
by grad must be those of the series, whatever jax gives; `truths` computes them. Elsewhere they are
compared with jax alone.
"""

import importlib

import numpy as np

from tests.against_jax.describe import Anything, Corpus

KNOWN = {
    r"^boxcox1?p?_power_": "at a power of 0 the derivatives are those of mpmath; jax has 0",
    r"^beta(ln)?_(forward|reverse)$": "the second derivatives at whole numbers are polygamma's,"
    " those of jax are not",
    r"^(expn|sp_exp1)_(forward|reverse)$": "jax's loop holds a tracer, and cannot be lowered",
    r"^(bessel_i1e|sp_i1e)_(forward|reverse)$": "at 1e-9 the third derivatives have lost their"
    " digits in both",
    r"^quotient_at_0_": "beside 0 the terms of the quotient's derivatives cancel in both",
    r"^i0_|^sp_i[01]_": "at 0 the derivatives are those of the series; jax has 0 or 1 for them",
    r"^arctanh_at_ends_forward": "infinite at 1 and -1, where jax has NaN",
    r"^sp_spence_": "at 1 the slope is -1; jax has 0, and NaN for the next",
    r"^sinc_": "beside 0 the derivatives are those of the series; jax's have lost all digits",
    r"^sp_i0e_": "beside 0 the fourth derivative has lost its digits in both",
}
ORDERS = 4
SMALL = [-1e-3, -1e-9, 0.0, 1e-9, 1e-3]
EVERYWHERE = [*SMALL, -20.0, -3.0, -1.0, -0.5, 0.5, 1.0, 3.0, 20.0]
POSITIVE = [1e-9, 1e-3, 0.5, 1.0, 1.0 + 1e-9, 2.0, 3.0, 20.0]
INSIDE = [*SMALL, -0.999, -0.5, 0.5, 0.999]
ENDS = [-1.0, 1.0]
PROBABILITIES = [1e-9, 1e-3, 0.25, 0.5, 0.75, 0.999]
# The functions of jnp, by points; then those of lax, of jax.nn and of scipy.special.
NUMPY = {
    "sin cos sinh cosh exp exp2 expm1 arctan arcsinh tanh sinc square i0": EVERYWHERE,
    "tan": [*EVERYWHERE, np.pi / 4],
    "sqrt cbrt log log2 log10 reciprocal positive": POSITIVE,
    "log1p": [*POSITIVE, -0.5, -0.999, 0.0],
    "arcsin arccos arctanh": INSIDE,
    "arccosh": [1.0 + 1e-6, 1.5, 20.0],
    "sqrt log cbrt abs reciprocal arcsin arccos arctanh log1p": [0.0, *ENDS],
    "arccosh sign": [1.0],
}
SPECIAL = {
    "erf erfc dawsn expit ndtr log_ndtr i0 i1 i0e i1e erfcx": [*SMALL, -3.0, -0.5, 0.5, 3.0],
    "gammaln gamma digamma loggamma": [1e-3, 0.5, 1.0, 2.0, 3.5, 20.0, -0.5, -2.5],
    "erfinv": INSIDE,
    "ndtri logit entr": PROBABILITIES,
    "expi exp1 spence": [1e-3, 0.5, 1.0, 2.0, 20.0],
    "factorial": [0.0, 0.5, 3.0],
}
NN = {
    "sigmoid softplus silu log_sigmoid soft_sign mish gelu squareplus": EVERYWHERE,
    "relu elu selu celu leaky_relu relu6 hard_tanh hard_sigmoid hard_silu sparse_plus": [
        -5.0,
        -1.0,
        0.5,
        2.0,
        7.0,
        0.0,
    ],
}


def compositions(jnp, lax, sp):
    """Functions whose formula is singular where they are not, and functions of two arguments."""
    return {
        "power_2": (lambda x: x**2, EVERYWHERE),
        "power_3": (lambda x: jnp.power(x, 3), EVERYWHERE),
        "power_float_3": (lambda x: jnp.power(x, 3.0), EVERYWHERE),
        "power_half": (lambda x: x**0.5, POSITIVE),
        "power_minus_1": (lambda x: x**-1, POSITIVE),
        "power_of_2": (lambda x: 2.0**x, EVERYWHERE),
        "power_of_0": (lambda x: jnp.power(0.0, x), [0.5, 1.0, 2.0]),
        "power_itself": (lambda x: x**x, POSITIVE),
        "power_zero": (lambda x: x**0, EVERYWHERE),
        "xlogy": (lambda x: sp.xlogy(x, x), POSITIVE),
        "xlogy_at_0": (lambda x: sp.xlogy(x, 2.0), EVERYWHERE),
        "xlog1py": (lambda x: sp.xlog1py(x, x), [*POSITIVE, 0.0]),
        "logaddexp": (lambda x: jnp.logaddexp(x, 0.0), EVERYWHERE),
        "logaddexp_equal": (lambda x: jnp.logaddexp(x, 2 * x), EVERYWHERE),
        "logaddexp2": (lambda x: jnp.logaddexp2(x, 1.0), EVERYWHERE),
        "logsumexp": (lambda x: sp.logsumexp(jnp.stack([x, -x, x * 0])), EVERYWHERE),
        "hypot": (lambda x: jnp.hypot(x, 2.0), EVERYWHERE),
        "arctan2": (lambda x: jnp.arctan2(x, 2.0), EVERYWHERE),
        "arctan2_behind": (lambda x: jnp.arctan2(x, -2.0), [-1.0, 1.0, 3.0, 1e-9]),
        "arctan2_second": (lambda x: jnp.arctan2(2.0, x), EVERYWHERE),
        "boxcox_0": (lambda x: sp.boxcox(x, 0.0), POSITIVE),
        "boxcox_power": (lambda x: sp.boxcox(2.0, x), EVERYWHERE),
        "boxcox1p_power": (lambda x: sp.boxcox1p(2.0, x), EVERYWHERE),
        "kl_div": (lambda x: sp.kl_div(x, 2.0), POSITIVE),
        "kl_div_second": (lambda x: sp.kl_div(2.0, x), POSITIVE),
        "rel_entr": (lambda x: sp.rel_entr(x, 2.0), POSITIVE),
        "zeta": (lambda x: sp.zeta(3.0, x), [0.5, 1.0, 2.0, 20.0]),
        "polygamma": (lambda x: sp.polygamma(1, x), [0.5, 1.0, 2.0, 20.0]),
        "betaln": (lambda x: sp.betaln(x, 2.0), [0.5, 1.0, 2.0, 20.0]),
        "beta": (lambda x: sp.beta(x, 2.0), [0.5, 1.0, 2.0, 20.0]),
        "gammainc": (lambda x: sp.gammainc(2.0, x), [1e-3, 0.5, 2.0, 20.0]),
        "gammaincc": (lambda x: sp.gammaincc(2.0, x), [1e-3, 0.5, 2.0, 20.0]),
        "betainc": (lambda x: sp.betainc(2.0, 3.0, x), [1e-3, 0.25, 0.5, 0.999]),
        "expn": (lambda x: sp.expn(3, x), [1e-3, 0.5, 2.0, 20.0]),
        "comb": (lambda x: sp.comb(x, 2.0), [3.0, 5.5, 20.0]),
        "poch": (lambda x: sp.poch(x, 2.0), [0.5, 1.0, 20.0]),
        "hyp1f1": (lambda x: sp.hyp1f1(1.5, 2.5, x), [-2.0, -0.5, 0.0, 0.5, 2.0]),
        "hyp2f1": (lambda x: sp.hyp2f1(1.5, 0.5, 2.5, x), [-0.5, 0.0, 0.5]),
        "integer_pow_4": (lambda x: lax.integer_pow(x, 4), EVERYWHERE),
        "integer_pow_minus_2": (lambda x: lax.integer_pow(x, -2), POSITIVE),
        "rsqrt": (lax.rsqrt, POSITIVE),
        "logistic": (lax.logistic, EVERYWHERE),
        "erf_inv": (lax.erf_inv, INSIDE),
        "bessel_i1e": (lax.bessel_i1e, [*SMALL, -3.0, 3.0]),
        "lax_tan": (lax.tan, EVERYWHERE),
        "multigammaln": (lambda x: sp.multigammaln(x, 2), [1.5, 2.0, 20.0]),
        "divide": (lambda x: x / (1 + x), EVERYWHERE[:5]),
        "quotient_at_0": (lambda x: jnp.sin(x) / jnp.where(x == 0, 1.0, x), [0.5, 1e-3]),
        "remainder": (lambda x: jnp.remainder(x, 3.0) + jnp.fmod(x, 3.0), [-4.0, 0.5, 4.0]),
        "modf": (lambda x: jnp.modf(x)[0] + jnp.floor(x) + jnp.ldexp(x, 2), [-4.5, 0.5, 4.2]),
        "maximum_of_equals": (lambda x: jnp.maximum(x, x) + jnp.minimum(x, 2 * x), [0.0, 1.0]),
        "clip_at_bound": (lambda x: jnp.clip(x, 0.0, 1.0), [0.0, 0.5, 1.0]),
        "nan_to_num": (jnp.nan_to_num, [0.5, -2.0]),
        "copysign": (lambda x: jnp.copysign(x, -1.0) * x, [-1.0, 0.5, 2.0]),
        "heaviside": (lambda x: jnp.heaviside(x, 0.5) * x, [-1.0, 0.5]),
        "norm": (lambda x: jnp.linalg.norm(jnp.stack([x, x * 2, x * 0 + 1])), EVERYWHERE),
        "var": (lambda x: jnp.var(jnp.stack([x, x * x, x * 0])), EVERYWHERE[:8]),
        "std": (lambda x: jnp.std(jnp.stack([x, x * 2, x * 0 + 1])), [0.5, 3.0]),
        "prod": (lambda x: jnp.prod(jnp.stack([x, x, x + 1, x * 2])), EVERYWHERE),
        "cumprod": (lambda x: jnp.cumprod(jnp.stack([x, x, x + 1, x * 2]))[-1], EVERYWHERE),
        "cumlogsumexp": (lambda x: lax.cumlogsumexp(jnp.stack([x, -x]))[-1], EVERYWHERE),
        "interp": (lambda x: jnp.interp(x, jnp.arange(4.0), jnp.arange(4.0) ** 2), [0.5, 1.5]),
        "polyval": (lambda x: jnp.polyval(jnp.array([1.0, 2.0, 0.0, 3.0]), x), EVERYWHERE),
    }


def programs(jax, jnp, lax):
    corpus = Corpus(("jit",))
    sp = jax
    if not isinstance(jax, Anything):
        sp = importlib.import_module(f"{jax.__name__}.scipy.special")
    for name, (function, points) in functions(jax, jnp, lax, sp).items():
        for way in ("forward", "reverse"):
            corpus.add(
                f"{name}_{way}",
                all_orders(jax, jnp, function, way),
                np.array(points),
                x64=True,
                tolerance=1e-7,
            )
    return corpus


def functions(jax, jnp, lax, sp):
    """Return the functions of a number, and their points, by name."""
    found = dict(compositions(jnp, lax, sp))
    for module, tables, prefix in ((jnp, NUMPY, ""), (sp, SPECIAL, "sp_"), (jax.nn, NN, "nn_")):
        for names, points in tables.items():
            for name in names.split():
                at_end = "_at_ends" if points in ([0.0, *ENDS], [1.0]) else ""
                found[f"{prefix}{name}{at_end}"] = (getattr(module, name), points)
    return found


def all_orders(jax, jnp, function, way):
    def run(points):
        def step(inner):
            if way == "reverse":
                return jax.grad(inner)
            return lambda x: jax.jvp(inner, (x,), (jnp.ones_like(x),))[1]

        found, inner = [], function
        for _ in range(ORDERS):
            inner = step(inner)
            found.append(jax.vmap(inner)(points))
        return found

    return run
