"""Special functions: odd, negative, half and great orders, and negative arguments."""

import importlib

import numpy as np

from tests.against_jax.describe import Anything, Corpus

KNOWN = {
    r"^(beta|betaln)_(order|argument)_": "at poles and infinities ours are mpmath's: test_accuracy",
    r"^gammaincc?_": "of order 0 and infinity, and at 1e-8, ours are mpmath's: test_accuracy",
    r"^rel_entr_argument": "infinite at infinity, as in SciPy; jax has NaN",
    r"^poch_": "at poles and negative numbers ours are mpmath's: test_accuracy",
    r"^expn_-[123]_": "of orders below 0 ours is NaN, as in SciPy; jax has numbers beyond 1",
    r"^expn_([2358]|12)_": "at 0 ours is 1 / (n - 1), as in SciPy; jax has 1 / n",
    r"^bessel_jn_": "ours are mpmath's; jax has NaN at 0, and in float32 where its recursion"
    " overflows, near 0",
    r"^hyp1f1_(-3_-2.0|-[123]_0.0|[1-9]\d?_(-2.0|0.0))_": "at poles ours is infinite, as in SciPy,"
    " and at 0 it is 1, as in mpmath; jax has the other sign at some of them",
    r"^hyp1f1_12_[13].0_": "at -4 ours is SciPy's; jax has lost half of its digits",
    r"^hyp2f1_[1-9]\d?_": "ours are SciPy's; jax sums a series that is infinite at -4 and has lost"
    " digits at 0.9",
    r"^bernoulli_([58]|12)_float64": "the fourth is -1/30; jax's is off by 8e-8",
    r"^lpmn": "hlofront has these deprecated names behind the door `jax` alone",
    r"^loggamma_": "infinite at 0, as in SciPy; jax has NaN",
    r"^hyp1f1_-2_-2.0_": "jax has exp(x) for equal parameters; ours ends as the numerator does, as"
    " in SciPy and mpmath",
}
ORDERS = [-3.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0, 7.0, 20.0, 100.5]
ARGUMENTS = [-50.0, -4.0, -1.0, -0.25, 0.0, 1e-8, 0.25, 1.0, 2.0, 9.5, 80.0, np.inf, np.nan]
WHOLE = [-3, -2, -1, 0, 1, 2, 3, 5, 8, 12]
ANGLES = [-4.0, -2.0, -0.5, 0.0, 0.3, 1.5, 3.0, 6.0]
OF_TWO = """betaln beta gammainc gammaincc xlogy xlog1py kl_div rel_entr zeta boxcox boxcox1p comb
    poch""".split()


def programs(jax, jnp, lax):
    corpus = Corpus(("jit",))
    sp = jax
    if not isinstance(jax, Anything):
        sp = importlib.import_module(f"{jax.__name__}.scipy.special")
    for dtype, wide in (("float32", False), ("float64", True)):
        options = {"x64": wide, "tolerance": 1e-9 if wide else 1e-4}

        def add(name, function, *args, dtype=dtype, options=options):
            args = [x.astype(dtype) if x.dtype.kind == "f" else x for x in args]
            corpus.add(f"{name}_{dtype}", function, *args, **options)

        for name in OF_TWO:
            for order in ORDERS:
                grid = np.array(ARGUMENTS)
                same = np.full(len(grid), order)
                add(f"{name}_order_{order}", getattr(sp, name), same, grid)
                add(f"{name}_argument_{order}", getattr(sp, name), grid, same)
        for order in WHOLE:
            grid = np.array(ARGUMENTS)
            add(f"polygamma_{order}", lambda x, n=order: sp.polygamma(n, x), grid)
            # The reference's loop does not end at NaN, nor at negative numbers, and where some
            # numbers of an array have ended: one is looked at after the other.
            at_positive = np.array([0.0, 1e-8, 0.25, 1.0, 2.0, 9.5, 80.0])
            one_by_one = lambda f: lambda xs: lax.map(f, xs)
            add(f"expn_{order}", one_by_one(lambda x, n=order: sp.expn(n, x)), at_positive)
            add(f"multigammaln_{order}", lambda x, n=order: sp.multigammaln(x, n), grid)
            add(f"bernoulli_{order}", lambda n=order: sp.bernoulli(n))
            for power in (-2.0, 0.0, 1.0, 3.0):
                add(
                    f"hyp1f1_{order}_{power}",
                    lambda x, n=order, p=power: sp.hyp1f1(float(n), p, x),
                    np.array([-4.0, -0.5, 0.0, 0.5, 4.0]),
                )
                add(
                    f"hyp2f1_{order}_{power}",
                    lambda x, n=order, p=power: sp.hyp2f1(float(n), p, 1.5, x),
                    np.array([-4.0, -0.5, 0.0, 0.5, 0.9]),
                )
            for upto in (0, 1, 4, 9):
                add(
                    f"bessel_jn_{order}_{upto}",
                    one_by_one(lambda x, k=upto: sp.bessel_jn(x[None], v=k, n_iter=50)),
                    np.array([-9.0, -1.0, -0.1, 0.0, 0.1, 1.0, 9.0]) + order,
                )
        for m in range(-4, 5):
            for n in (0, 1, 2, 3, 4):
                angles = np.array(ANGLES)
                add(
                    f"sph_harm_y_{n}_{m}",
                    lambda a, b, n=n, m=m: [
                        sp.sph_harm_y(jnp.full(8, n), jnp.full(8, m), a, b, n_max=4),
                        sp.sph_harm_y(jnp.full(8, n), jnp.full(8, m), a, b),
                    ],
                    angles,
                    angles[::-1].copy(),
                )
        for a in (-2.5, -1.0, 0.0, 0.5, 3.0):
            add(
                f"betainc_{a}",
                lambda x, a=a: [sp.betainc(a, b, x) for b in (-1.0, 0.0, 0.5, 2.0)],
                np.array([-0.5, 0.0, 0.25, 0.75, 1.0, 1.5, np.nan]),
            )
            add(
                f"owens_and_struve_{a}",
                lambda x, a=a: [getattr(sp, "ellipkinc", lambda *_: 0.0)(x, a), sp.i0e(x * a)],
                np.array(ANGLES),
            )
        for name in "lpmn lpmn_values".split():
            add(
                f"{name}",
                lambda x, name=name: [
                    getattr(sp, name)(4, 4, x, *rest)
                    for rest in ([(True,), (False,)] if name == "lpmn_values" else [()])
                ],
                np.array([-0.9, -0.5, 0.0, 0.5, 0.9]),
            )
        for name in "factorial gamma gammaln gammasgn digamma loggamma".split():
            grid = np.array([*ORDERS, *ARGUMENTS, -1.5, -2.5, -20.5, -171.5, 171.5, 34.5, 35.5])
            add(name, lambda x, name=name: getattr(sp, name)(x), grid)
        for name in "factorial gammaln comb poch zeta".split():
            # Integers are made floats on the way in.
            whole = np.array(WHOLE)
            if name in ("comb", "poch", "zeta"):
                add(f"{name}_of_integers", getattr(sp, name), whole, whole[::-1].copy())
            else:
                add(f"{name}_of_integers", getattr(sp, name), whole)
        for logits in ("logsumexp", "softmax", "log_softmax"):
            row = np.array([-np.inf, -1.0, 0.0, 3.0, 1e4])
            add(f"{logits}", lambda x, name=logits: getattr(sp, name)(x), row)
            add(f"{logits}_infinite", lambda x, name=logits: getattr(sp, name)(x), row - np.inf)
    return corpus
