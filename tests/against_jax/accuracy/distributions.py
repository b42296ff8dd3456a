"""What distributions truly are, by mpmath: densities, tails, their logarithms, and quantiles."""

import mpmath as m
from mpmath import mpf

from tests.against_jax.accuracy.of_one_number import (
    INF,
    NAN,
    bessel,
    expit,
    lgamma,
    log_normal,
    logit,
    ndtri,
)
from tests.against_jax.accuracy.special import betainc, betaln, gammainc


def log(x):
    # `+x` is rounded to the digits in use: mpmath errs by all of them where it is not (log of 1/4).
    return -INF if x == 0 else m.log(+x) if x > 0 else NAN


def exp(x):
    return mpf(0) if x < -1e6 else INF if x > 1e6 else m.exp(x)


def log_of_share(share, others):
    """The logarithm of a probability, from that of the contrary where it is near 1."""
    return m.log1p(-others) if 0 <= others < 0.5 else log(share)


def times_log(x, y):
    return mpf(0) if x == 0 else x * log(y)


# ---- of all real numbers: logarithms of the density, of what is below, of what is above ----------


def normal_density(x):
    return -x * x / 2 - m.log(2 * m.pi) / 2


def cauchy_below(x):
    if abs(x) == INF:
        return -INF if x < 0 else mpf(0)
    with m.workdps(50 + (int(m.log10(abs(x))) + 5 if abs(x) > 1 else 0)):
        return m.log(m.atan(-1 / x) / m.pi) if x < 0 else m.log(mpf(1) / 2 + m.atan(x) / m.pi)


def logistic_below(x):
    return x if x < -1e5 else mpf(0) if x > 1e5 else -m.log1p(m.exp(-x))


def logistic_density(x):
    size = abs(x)
    return -size - (2 * m.log1p(m.exp(-size)) if size < 1e5 else 0)


def gumbel_density(x):
    return -INF if x in (INF, -INF) else x - exp(x)


def gumbel_above(x):
    """Of the left one, exp(-exp(x)); the right one is its mirror image."""
    return -exp(x)


def rest(x):
    """log(1 - exp(-x)) for x >= 0."""
    if x > 40:
        return -exp(-x) if x > 1e3 else m.log1p(-m.exp(-x))
    return log(-m.expm1(-x))


def laplace_below(x):
    return x - m.log(2) if x <= 0 else m.log1p(-exp(-x) / 2)


def student(x, df):
    if abs(x) == INF:
        return -INF
    return -(df + 1) / 2 * m.log1p(x * x / df) - betaln(df / 2, mpf(1) / 2) - m.log(df) / 2


# ---- of some -------------------------------------------------------------------------------------


def gamma_density(x, a):
    return times_log(a - 1, x) - x - lgamma(a) if 0 <= x < INF else -INF


def gamma_below(x, a):
    return log_of_share(*(gammainc(a, max(x, mpf(0)), which) for which in (0, 1)))


def gamma_above(x, a):
    return log_of_share(*(gammainc(a, max(x, mpf(0)), which) for which in (1, 0)))


def chi2_density(x, df):
    return gamma_density(x / 2, df / 2) - m.log(2)


def beta_density(x, a, b):
    if not 0 <= x <= 1:
        return -INF
    return times_log(a - 1, x) + times_log(b - 1, 1 - x) - betaln(a, b)


def beta_below(x, a, b):
    inside = min(max(x, mpf(0)), mpf(1))
    return log_of_share(betainc(a, b, inside), betainc(b, a, 1 - inside))


def beta_above(x, a, b):
    return beta_below(1 - min(max(x, mpf(0)), mpf(1)), b, a)


def pareto_density(x, b):
    return -INF if x < 1 or x == INF else m.log(b) - (b + 1) * m.log(x)


def pareto_above(x, b):
    return mpf(0) if x < 1 else -INF if x == INF else -b * m.log(x)


def pareto_below(x, b):
    return -INF if x < 1 else mpf(0) if x == INF else rest(b * m.log(x))


def pareto_quantile(q, b):
    return NAN if not 0 <= q <= 1 else INF if q == 1 else m.exp(-m.log1p(-q) / b)


def general_normal(x, beta):
    return m.log(beta / 2) - lgamma(1 / beta) - abs(x) ** beta


def general_normal_below(x, beta):
    tail = gammainc(1 / beta, abs(x) ** beta, 1) / 2
    return log(tail) if x <= 0 else m.log1p(-tail)


def vonmises(x, kappa):
    return kappa * (m.cos(x) - 1) - m.log(2 * m.pi * bessel(0, True)(kappa))


def wrapped_cauchy(x, c):
    if not 0 <= x <= 2 * m.pi:
        return -INF
    return m.log((1 - c * c) / (2 * m.pi * (1 + c * c - 2 * c * m.cos(x))))


def poisson(k, mu):
    return times_log(k, mu) - lgamma(k + 1) - mu if k >= 0 else -INF


def poisson_below(k, mu):
    return gamma_above(mu, k + 1) if k >= 0 else -INF


def choose(n, k):
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def binomial(k, n, p):
    if not 0 <= k <= n:
        return -INF
    return choose(n, k) + times_log(k, p) + times_log(n - k, 1 - p)


def negative_binomial(k, n, p):
    if k < 0:
        return -INF
    return lgamma(n + k) - lgamma(k + 1) - lgamma(n) + n * m.log(p) + times_log(k, 1 - p)


def beta_binomial(k, n, a, b):
    return choose(n, k) + betaln(k + a, n - k + b) - betaln(a, b) if 0 <= k <= n else -INF


def geometric(k, p):
    return times_log(k - 1, 1 - p) + m.log(p) if k >= 1 else -INF


def log_mass(a, b):
    """The logarithm of what the normal distribution has from a to b."""
    if a > 0:
        return log_mass(-b, -a)
    low, high = (log_normal(x) if abs(x) < INF else (-INF if x < 0 else mpf(0)) for x in (a, b))
    with m.workdps(80):
        return high if low == -INF else high + m.log(-m.expm1(low - high))


def cut_density(x, a, b):
    if not a < b:
        return NAN
    return normal_density(x) - log_mass(a, b) if a <= x <= b else -INF


def cut_below(x, a, b):
    if not a < b:
        return NAN
    return -INF if x <= a else mpf(0) if x >= b else log_mass(a, x) - log_mass(a, b)


def cut_above(x, a, b):
    return cut_below(-x, -b, -a)


def mirrored(function):
    return lambda x, *rest: function(-x, *rest)


def _several(name, density, below=None, above=None, **others):
    """The functions of a distribution, from three logarithms."""
    kind = "pmf" if name in DISCRETE else "pdf"
    found = {f"log{kind}": density, kind: lambda *args: exp(density(*args))}
    for short, function in (("cdf", below), ("sf", above)):
        if function:
            found[f"log{short}"] = function
            found[short] = lambda *args, function=function: exp(function(*args))
    return {f"stats.{name}.{key}": value for key, value in (found | others).items()}


def _of_probability(function):
    return lambda q: function(q) if 0 <= q <= 1 else NAN


def _cauchy_quantile(q):
    return -INF if q == 0 else INF if q == 1 else -m.cot(m.pi * q)


DISCRETE = {"poisson", "binom", "nbinom", "betabinom", "geom"}
STATS = {
    **_several(
        "norm",
        normal_density,
        log_normal,
        mirrored(log_normal),
        ppf=ndtri,
        isf=lambda q: -ndtri(q),
    ),
    **_several(
        "cauchy",
        lambda x: -m.log(m.pi) - m.log1p(x * x),
        cauchy_below,
        mirrored(cauchy_below),
        ppf=_of_probability(_cauchy_quantile),
        isf=_of_probability(lambda q: -_cauchy_quantile(q)),
    ),
    **_several("logistic", logistic_density, ppf=logit, isf=lambda q: -logit(q)),
    "stats.logistic.cdf": expit,
    "stats.logistic.sf": mirrored(expit),
    **_several(
        "gumbel_l",
        gumbel_density,
        lambda x: rest(exp(x)),
        gumbel_above,
        ppf=_of_probability(lambda q: log(-log(1 - q)) if q < 1 else INF),
    ),
    **_several(
        "gumbel_r",
        mirrored(gumbel_density),
        mirrored(gumbel_above),
        lambda x: rest(exp(-x)),
        ppf=_of_probability(lambda q: -log(-log(q)) if q > 0 else -INF),
    ),
    **_several("laplace", lambda x: -abs(x) - m.log(2), laplace_below),
    **_several(
        "expon",
        lambda x: -x if x >= 0 else -INF,
        lambda x: rest(x) if x > 0 else -INF,
        lambda x: -x if x > 0 else mpf(0),
        ppf=_of_probability(lambda q: -m.log1p(-q) if q < 1 else INF),
    ),
    **_several("t", student),
    **_several("gamma", gamma_density, gamma_below, gamma_above),
    **_several(
        "chi2",
        chi2_density,
        lambda x, df: gamma_below(x / 2, df / 2),
        lambda x, df: gamma_above(x / 2, df / 2),
    ),
    **_several("beta", beta_density, beta_below, beta_above),
    **_several("pareto", pareto_density, pareto_below, pareto_above, ppf=pareto_quantile),
    **_several("gennorm", general_normal, general_normal_below),
    **_several("vonmises", vonmises),
    **_several("wrapcauchy", wrapped_cauchy),
    **_several("poisson", poisson, poisson_below),
    **_several("binom", binomial),
    **_several("nbinom", negative_binomial),
    **_several("betabinom", beta_binomial),
    **_several("geom", geometric),
    **_several("truncnorm", cut_density, cut_below, cut_above),
}
