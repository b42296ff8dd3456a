"""hlofront.scipy.special against the reference."""

import importlib

import numpy as np

from tests.against_jax.describe import Anything, Corpus

F = np.float32
INF, NAN = np.inf, np.nan
REAL = F([-3.3, -0.7, 0.2, 1, 2.5, 9, NAN])
SMALL = F([0.1, 0.3, 0.6, 0.9])
P, Q = F([0, 0.3, 1, 2.5, 7]), F([1, 0.4, 1, 3.5, 0.2])
# Those of one array, and where they are tried.
UNARY = {
    **dict.fromkeys("dawsn erf erfc erfcx expit gammasgn i0 i0e i1 i1e".split(), REAL),
    **dict.fromkeys("exp1 factorial gamma gammaln loggamma".split(), REAL[3:]),
    **dict.fromkeys("ndtr log_ndtr fresnel sici wofz".split(), REAL),
    **dict.fromkeys("digamma expi".split(), F([-3.3, -0.7, 0.2, 1, 2.5, 9])),
    **dict.fromkeys("logit ndtri erfinv entr".split(), F([0, 0.1, 0.5, 0.8, 1, NAN])),
    # Theirs has no slope at 1.
    "spence": F([0, 0.3, 1.7, 1, 30, -1, NAN]),
}
# Those that are not differentiated here, or where theirs is not the derivative.
NO_SLOPE = {"gammasgn", "sici", "fresnel", "wofz"}
BINARY = {
    **dict.fromkeys("beta betaln boxcox boxcox1p gammainc gammaincc".split(), (P[1:], Q[1:])),
    **dict.fromkeys("kl_div rel_entr xlogy xlog1py owens_t".split(), (P, Q)),
    "comb": (F([5, 7, 2, -1, 0]), F([2, 0, 5, 2, 0])),
    "poch": (F([1.5, 2, 0.3, -1.5]), F([2, 0.25, 0, 2])),
    "zeta": (F([2, 1.5, 4]), F([1, 0.3, 7])),
}
OTHER = {
    "betainc": (P[1:], Q[1:], SMALL),
    "hyp1f1": (P[1:], Q[1:], F([0.5, -2, 3, 8])),
    "hyp2f1": (P[1:], Q[1:], Q[1:] + 2, F([0.5, -0.9, 0.8, 0.1])),
    "expn": (np.int32([1, 2, 3, 0]), F([0.3, 1.5, 7, 2])),
    "polygamma": (np.int32([0, 1, 2, 5]), SMALL),
}
KINDS = {
    "f32": F(0.5),
    "i32": np.int32(1),
    "bool": np.bool_(True),
    "f16": np.float16(0.5),
    "number": 0.5,
    "whole": 1,
    "complex": np.complex64(0.5),
    "list": [0.5],
}
# Theirs gives an array of nonsense for complex numbers, or an error for what has a meaning.
BEYOND = {("complex", name) for name in ("owens_t", "hyp2f1")}


def programs(jax, jnp, lax):
    corpus = Corpus(("value",))
    sp = jax
    if not isinstance(jax, Anything):
        sp = importlib.import_module(f"{jax.__name__}.scipy.special")
    near = {"tolerance": 1e-5}
    counts = {**dict.fromkeys(UNARY, 1), **dict.fromkeys(BINARY, 2)}
    for name, count in (counts | {name: len(given) for name, given in OTHER.items()}).items():
        f = getattr(sp, name)
        for kind, value in KINDS.items():
            if (kind, name) not in BEYOND:
                corpus.add(
                    f"{name}_of_{kind}", lambda f=f, a=[value] * count: f(*a), modes=("shape",)
                )
    for name, x in UNARY.items():
        # Values and derivatives are one program.
        f, slope = getattr(sp, name), name not in NO_SLOPE

        def both(x, f=f, slope=slope):
            return [f(x), jax.jvp(f, (x[1:3],), (x[1:3],))[1]] if slope else f(x)

        corpus.add(name, both, x, modes=("jit",), **near)
    for name, args in BINARY.items():
        f = getattr(sp, name)

        def all_of(*args, f=f):
            inner = tuple(a[1:] for a in args)
            return [f(*args), jax.jvp(f, inner, inner)[1], f(args[0][:, None], args[1][:2])]

        corpus.add(name, all_of, *args, modes=("jit",), **near)
    for name, args in OTHER.items():
        f = getattr(sp, name)
        # Theirs sums in another order, and stops earlier.
        corpus.add(
            name, f, *args, modes=("jit",), tolerance=1e-4 if name.startswith("hyp") else 1e-5
        )
    for name in ("fresnel", "sici", "wofz"):
        f = getattr(sp, name)
        corpus.add(
            f"{name}_slope", lambda x, f=f: jax.jvp(f, (x,), (x,))[1], SMALL, modes=("jit",), **near
        )
    others(corpus, jax, jnp, sp)
    sums(corpus, jax, sp)
    return corpus


def others(corpus, jax, jnp, sp):
    near = {"tolerance": 1e-5}
    z = np.complex64([0.7 + 0.2j, -2.3 + 0.1j, 3 - 4j, -0.5 + 0.5j])
    for name in ("wofz", "erfcx", "gamma", "loggamma", "xlogy", "logit"):
        f = getattr(sp, name)
        corpus.add(
            f"{name}_complex",
            lambda z, f=f, n=2 if name == "xlogy" else 1: f(*[z] * n),
            z,
            modes=("jit",),
            tolerance=2e-5,
        )
    corpus.add("bernoulli", lambda: [sp.bernoulli(0), sp.bernoulli(1), sp.bernoulli(9)], **near)
    corpus.add("bernoulli_negative", lambda: sp.bernoulli(-1))
    corpus.add("bernoulli_of_a_float", lambda: sp.bernoulli(3.0))
    corpus.add(
        "bessel_jn",
        lambda x: [sp.bessel_jn(x, v=2), sp.bessel_jn(x[:1], v=0), sp.bessel_jn(x[0], v=3)],
        np.float64([0.5, 1, 2.5, -1, 9]),
        # In float32 theirs overflows, and is NaN for small arguments.
        x64=True,
        tolerance=1e-9,
    )
    corpus.add(
        "bessel_jn_slope",
        lambda x: jax.jvp(lambda x: sp.bessel_jn(x, v=2), (x,), (x,))[1],
        np.float64([0.5, 2.5]),
        x64=True,
        tolerance=1e-9,
    )
    corpus.add(
        "bessel_jn_of_complex",
        lambda: sp.bessel_jn(np.complex64([1j]), v=1),
        instead="ValueError",
    )
    corpus.add(
        "multigammaln",
        lambda x: [sp.multigammaln(x, 2), sp.multigammaln(x, 0), sp.multigammaln(3, 2)],
        F([3, 4.5]),
        **near,
    )
    corpus.add("multigammaln_slope", lambda x: jax.grad(sp.multigammaln)(x, 3), F(3), **near)
    corpus.add("factorial_exact", lambda: sp.factorial(5, True))
    corpus.add("comb_repeated", lambda n, k: sp.comb(n, k, repetition=True), P, P, **near)
    corpus.add("zeta_of_one", lambda: sp.zeta(2.0))
    corpus.add("polygamma_of_a_float", lambda: sp.polygamma(1.0, 2.0))
    corpus.add("polygamma_slope", jax.grad(sp.polygamma, 1), 2, 0.7, **near)
    corpus.add("betainc_in_a", jax.grad(sp.betainc), 1.0, 2.0, 0.5)
    corpus.add("zeta_in_both", jax.grad(sp.zeta, (0, 1)), 2.3, 1.4, **near)
    corpus.add("poch_in_both", jax.grad(sp.poch, (0, 1)), 1.3, 2.4, **near)
    for order in (-1, 31, 2.5):
        corpus.add(f"log_ndtr_of_order_{order}", lambda n=order: sp.log_ndtr(1.0, n))
    n, m = np.int32([2, 3, 4, 1, 2, 0]), np.int32([-1, -3, 2, 2, 0, 0])
    theta, phi = F([0.3, 1, 2, 1, 4, 1]), F([0.7, -1, 2, 1, 3, 1])
    corpus.add("sph_harm_y", sp.sph_harm_y, n, m, theta, phi, **near)
    corpus.add(
        "sph_harm_y_slope",
        lambda t: jax.grad(lambda t: jnp.real(sp.sph_harm_y(n, m, t, phi, n_max=4)).sum())(t),
        theta,
        **near,
    )
    corpus.add(
        "sph_harm_y_of_known_degrees",
        lambda t: jax.vjp(lambda t: jnp.imag(sp.sph_harm_y(n, m, t, phi)), t)[1](t),
        theta,
        **near,
    )
    corpus.add("sph_harm_y_diff", lambda: sp.sph_harm_y(n, m, theta, phi, 1))
    corpus.add("sph_harm_y_of_floats", lambda: sp.sph_harm_y(theta, m, theta, phi))
    corpus.add("sph_harm_y_traced", lambda n: sp.sph_harm_y(n, m, theta, phi), n, modes=("jit",))


def sums(corpus, jax, sp):
    a, b = F([[1, 2, -1], [0, 3, 0.5]]), F([[1, -2, 1], [0, 0.5, 2]])
    near = {"tolerance": 1e-5, "modes": ("jit",)}
    corpus.add(
        "logsumexp",
        lambda a, b: [
            sp.logsumexp(a),
            sp.logsumexp(a, 0),
            sp.logsumexp(a, (0, -1), keepdims=True),
            sp.logsumexp(a, b=b),
            sp.logsumexp(a, 1, b, return_sign=True),
            sp.logsumexp(a, b=b[0], axis=1),
            sp.logsumexp(a, where=a > 0),
            sp.logsumexp(a, where=a > 9),
            sp.logsumexp(a[:0], 0),
            sp.logsumexp(2.0),
            sp.logsumexp(a + 1j * b, 0),
            sp.logsumexp(a, 0, b * 1j, return_sign=True),
        ],
        a,
        b,
        **near,
    )
    corpus.add(
        "logsumexp_edges",
        lambda x: [sp.logsumexp(x[:2]), sp.logsumexp(x[1:3]), sp.logsumexp(x[3:]), sp.logsumexp(x)],
        F([INF, 1, -INF, -INF, NAN]),
        **near,
    )
    corpus.add(
        "logsumexp_slopes",
        lambda a, b: jax.jacrev(lambda a, b: sp.logsumexp(a, b=b, return_sign=True)[0], (0, 1))(
            a, b
        ),
        a,
        b,
        **near,
    )
    corpus.add("logsumexp_of_integers", lambda: sp.logsumexp(np.arange(3), return_sign=True))
    corpus.add("logsumexp_of_a_list", lambda: sp.logsumexp(F([1, 2]), b=[1, 2]))
    corpus.add("logsumexp_of_another_axis", lambda: sp.logsumexp(F([1, 2]), axis=2))
    for name in ("softmax", "log_softmax"):
        f = getattr(sp, name)
        corpus.add(
            name,
            lambda a, f=f: [f(a), f(a, axis=1), f(a, axis=(0, 1)), f(2.0), f(a[:0]), f(a * 1j)],
            a,
            **near,
        )
        corpus.add(f"{name}_of_booleans", lambda f=f: f(np.array([True])))
        corpus.add(f"{name}_of_another_axis", lambda f=f: f(F([1, 2]), axis=2))
