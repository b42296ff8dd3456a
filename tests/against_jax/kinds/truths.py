"""Compares the derivatives of `derivatives.py`, ours and jax's, with those that mpmath computes.

`python -m tests.against_jax.kinds.truths [NAME ...]` prints each derivative of ours that is off and
what jax has there, then how many were compared. A function without a truth here, and a point where
the function has no derivatives of all orders, is left to the comparison with jax.
"""

import os
import re
import sys

os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")

import mpmath as m
import numpy as np
from mpmath import mpf

import hlofront
import hlofront.numpy
from hlofront import lax
from tests.against_jax import describe
from tests.against_jax.kinds.derivatives import ORDERS
from tests.against_jax.oracle import Oracle, find_interpreter

CORPUS = "kinds/derivatives"
# What a fourth derivative in float64 keeps; relative, and absolute near zeros.
TOLERANCE = 1e-6


def sigmoid(x):
    return 1 / (1 + m.exp(-x))


def normal(x):
    return m.erfc(-x / m.sqrt(2)) / 2


def softplus(x):
    return m.log1p(m.exp(x))


def gamma_part(x):
    return m.gammainc(2, 0, x, regularized=True)


TRUTH = {
    "exp2": lambda x: 2**x,
    "arctan": m.atan,
    "arcsinh": m.asinh,
    "arcsin": m.asin,
    "arccos": m.acos,
    "arctanh": m.atanh,
    "arccosh": m.acosh,
    "square": lambda x: x * x,
    "sinc": lambda x: m.sinc(m.pi * x),
    "i0": lambda x: m.besseli(0, x),
    "cbrt": m.cbrt,
    "log2": lambda x: m.log(x, 2),
    "reciprocal": lambda x: 1 / x,
    "positive": lambda x: x,
    "sp_erf": m.erf,
    "sp_erfc": m.erfc,
    "sp_dawsn": lambda x: m.sqrt(m.pi) / 2 * m.exp(-x * x) * m.erfi(x),
    "sp_expit": sigmoid,
    "sp_ndtr": normal,
    "sp_log_ndtr": lambda x: m.log(normal(x)),
    "sp_i0": lambda x: m.besseli(0, x),
    "sp_i1": lambda x: m.besseli(1, x),
    "sp_i0e": lambda x: m.besseli(0, x) * m.exp(-abs(x)),
    "sp_i1e": lambda x: m.besseli(1, x) * m.exp(-abs(x)),
    "sp_erfcx": lambda x: m.exp(x * x) * m.erfc(x),
    "sp_gammaln": lambda x: m.log(abs(m.gamma(x))),
    "sp_gamma": m.gamma,
    "sp_digamma": lambda x: m.psi(0, x),
    "sp_erfinv": m.erfinv,
    "sp_logit": lambda x: m.log(x / (1 - x)),
    "sp_entr": lambda x: -x * m.log(x),
    "sp_expi": m.ei,
    "sp_exp1": m.e1,
    "sp_factorial": lambda x: m.gamma(x + 1),
    "sp_ndtri": lambda x: -m.sqrt(2) * m.erfinv(1 - 2 * x),
    "nn_sigmoid": sigmoid,
    "nn_softplus": softplus,
    "nn_silu": lambda x: x * sigmoid(x),
    "nn_log_sigmoid": lambda x: -softplus(-x),
    "nn_mish": lambda x: x * m.tanh(softplus(x)),
    "nn_squareplus": lambda x: (x + m.sqrt(x * x + 4)) / 2,
    "nn_gelu": lambda x: x / 2 * (1 + m.tanh(m.sqrt(2 / m.pi) * (x + mpf("0.044715") * x**3))),
    "power_2": lambda x: x**2,
    "power_3": lambda x: x**3,
    "power_float_3": lambda x: x**3,
    "power_half": m.sqrt,
    "power_minus_1": lambda x: 1 / x,
    "power_of_2": lambda x: 2**x,
    "power_itself": lambda x: x**x,
    "power_zero": lambda x: mpf(1),
    "xlogy": lambda x: x * m.log(x),
    "xlogy_at_0": lambda x: x * m.log(2),
    "xlog1py": lambda x: x * m.log1p(x),
    "logaddexp": softplus,
    "logaddexp_equal": lambda x: m.log(m.exp(x) + m.exp(2 * x)),
    "logaddexp2": lambda x: m.log(2**x + 2, 2),
    "logsumexp": lambda x: m.log(m.exp(x) + m.exp(-x) + 1),
    "hypot": lambda x: m.sqrt(x * x + 4),
    "arctan2": lambda x: m.atan(x / 2),
    "arctan2_behind": lambda x: m.atan2(x, -2),
    "arctan2_second": lambda x: m.atan2(2, x),
    "boxcox_0": m.log,
    "boxcox_power": lambda x: m.expm1(x * m.log(2)) / x if x else m.log(2),
    "boxcox1p_power": lambda x: m.expm1(x * m.log(3)) / x if x else m.log(3),
    "kl_div": lambda x: x * m.log(x / 2) - x + 2,
    "kl_div_second": lambda x: 2 * m.log(2 / x) - 2 + x,
    "rel_entr": lambda x: x * m.log(x / 2),
    "zeta": lambda x: m.zeta(3, x),
    "polygamma": lambda x: m.psi(1, x),
    "betaln": lambda x: m.log(m.beta(x, 2)),
    "beta": lambda x: m.beta(x, 2),
    "gammainc": gamma_part,
    "gammaincc": lambda x: 1 - gamma_part(x),
    "betainc": lambda x: m.betainc(2, 3, 0, x, regularized=True),
    "expn": lambda x: m.expint(3, x),
    "comb": lambda x: m.binomial(x, 2),
    "poch": lambda x: m.rf(x, 2),
    "hyp1f1": lambda x: m.hyp1f1(1.5, 2.5, x),
    "hyp2f1": lambda x: m.hyp2f1(1.5, 0.5, 2.5, x),
    "integer_pow_4": lambda x: x**4,
    "integer_pow_minus_2": lambda x: x**-2,
    "rsqrt": lambda x: 1 / m.sqrt(x),
    "logistic": sigmoid,
    "erf_inv": m.erfinv,
    "bessel_i1e": lambda x: m.besseli(1, x) * m.exp(-abs(x)),
    "lax_tan": m.tan,
    "multigammaln": lambda x: m.log(m.pi) / 2 + m.loggamma(x) + m.loggamma(x - 0.5),
    "divide": lambda x: x / (1 + x),
    "norm": lambda x: m.sqrt(5 * x * x + 1),
    "var": lambda x: (x**2 + x**4) / 3 - ((x + x * x) / 3) ** 2,
    "prod": lambda x: 2 * x**3 * (x + 1),
    "cumprod": lambda x: 2 * x**3 * (x + 1),
    "cumlogsumexp": lambda x: m.log(2 * m.cosh(x)),
    "polyval": lambda x: x**3 + 2 * x**2 + 3,
} | {
    name: getattr(m, name)
    for name in "sin cos sinh cosh exp expm1 tanh tan sqrt log log10 log1p".split()
}
# At zero these have no derivatives of all orders.
KINKED = re.compile("i0e|i1e|squareplus_none")


def series(function, x):
    """The derivatives at a point to the order of ORDERS; None where mpmath has none."""
    with m.workdps(60):
        try:
            found = [m.diff(function, mpf(x), order) for order in range(1, ORDERS + 1)]
            return [float(m.re(value)) for value in found]
        except (ValueError, ZeroDivisionError, m.libmp.NoConvergence):
            return None


def is_close(found, truth, scale):
    if not np.isfinite(truth):
        return True
    return abs(found - truth) <= max(TOLERANCE * max(abs(truth), 1e-3 * scale), 1e-15)


def main(names):
    programs = describe.load(CORPUS, hlofront, hlofront.numpy, lax).programs
    chosen = [
        name
        for name in programs
        if name.rsplit("_", 1)[0] in TRUTH and (not names or name.rsplit("_", 1)[0] in names)
    ]
    oracle = Oracle(find_interpreter())
    compared = ours_off = both_off = 0
    truths = {}
    for name in chosen:
        base = name.rsplit("_", 1)[0]
        ours = describe.describe(programs[name], hlofront)["jit"]
        if "error" in ours:
            print(f"{name}: raised {ours['message']!r}", flush=True)
            continue
        off = []
        for i, x in enumerate(programs[name].operands[0]):
            if x == 0 and KINKED.search(base):
                continue
            if (base, x) not in truths:
                truths[base, x] = series(TRUTH[base], float(x))
            truth = truths[base, x]
            if truth is None:
                print(f"{name} at {x}: mpmath has no derivatives", flush=True)
                continue
            compared += ORDERS
            scale = max(map(abs, truth))
            for order, true in enumerate(truth):
                if not is_close(mine := float(ours["leaves"][order][2][i]), true, scale):
                    off.append((i, order, x, mine, true))
        # jax is asked about what is off alone: its compilation takes most of the time.
        ours_off += len(off)
        if off:
            both_off += tell(name, off, oracle.ask("corpus", CORPUS, {name: None})[name]["jit"])
    oracle.close()
    print(f"{compared} derivatives of {len(chosen)} programs: off {ours_off}, jax too {both_off}")


def tell(name, off, theirs):
    """Print derivatives that are off, and return for how many of them jax's are, too."""
    both = 0
    for i, order, x, mine, true in off:
        other = float(theirs["leaves"][order][2][i]) if "leaves" in theirs else np.nan
        alike = not is_close(other, true, abs(true))
        both += alike
        shown = f"{mine:.9g}, jax {other:.9g}, mpmath {true:.9g}"
        print(f"{name} order {order + 1} at {x:g}: {shown}{' (both)' if alike else ''}", flush=True)
    return both


if __name__ == "__main__":
    main(sys.argv[1:])
