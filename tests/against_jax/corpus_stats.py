"""hlofront.scipy.stats against the reference."""

import importlib

import numpy as np

from tests.against_jax.describe import Anything, Corpus

F = np.float32
X = F([-1, 0.25, 0.5, 1.25, 2, 6.5, np.nan])
Q = F([0.01, 0.3, 0.5, 0.75, 0.99, -0.5, 1.5, np.nan])
K = F([-1, 0, 1, 2, 5, 7])
# Module -> its functions, what they are given first, and the parameters.
CONTINUOUS = {
    "beta": ("logpdf pdf cdf logcdf sf logsf", (1.5, 2.5)),
    "cauchy": ("logpdf pdf cdf logcdf sf logsf", ()),
    "chi2": ("logpdf pdf cdf logcdf sf logsf", (3.0,)),
    "expon": ("logpdf pdf cdf logcdf sf logsf", ()),
    "gamma": ("pdf cdf logcdf sf logsf", (2.5,)),
    "gumbel_l": ("logpdf pdf cdf logcdf sf logsf", ()),
    "gumbel_r": ("logpdf pdf cdf logcdf sf logsf", ()),
    "laplace": ("logpdf pdf cdf", ()),
    "logistic": ("logpdf pdf cdf sf", ()),
    "norm": ("logpdf pdf cdf logcdf sf logsf", ()),
    "pareto": ("logpdf pdf cdf logcdf sf logsf", (1.5,)),
    "t": ("logpdf pdf", (3.0,)),
    "truncnorm": ("logpdf pdf cdf logcdf sf logsf", (-1.0, 2.5)),
    "uniform": ("logpdf pdf cdf", ()),
}
UNSCALED = {
    "gennorm": ("logpdf pdf cdf", (1.5,)),
    "vonmises": ("logpdf pdf", (1.5,)),
    "wrapcauchy": ("logpdf pdf", (0.3,)),
}
DISCRETE = {
    "bernoulli": ("logpmf pmf", (0.3,)),
    "betabinom": ("logpmf pmf", (5, 1.5, 2.5)),
    "binom": ("logpmf pmf", (5, 0.3)),
    "geom": ("logpmf pmf", (0.3,)),
    "nbinom": ("logpmf pmf", (5, 0.3)),
    "poisson": ("logpmf pmf cdf", (1.5,)),
}
QUANTILES = {
    "cauchy": ("ppf isf", ()),
    "expon": ("ppf", ()),
    "gumbel_l": ("ppf", ()),
    "gumbel_r": ("ppf", ()),
    "logistic": ("ppf isf", ()),
    "norm": ("ppf isf", ()),
    "pareto": ("ppf", (1.5,)),
    "uniform": ("ppf", ()),
}
# Where NaN is given, theirs is not NaN.
NOT_NAN = {"truncnorm", "uniform", "gamma", "wrapcauchy"}


def programs(jax, jnp, lax):
    corpus = Corpus(("value",))
    stats = jax
    if not isinstance(jax, Anything):
        stats = importlib.import_module(f"{jax.__name__}.scipy.stats")

    def module(name):
        if isinstance(jax, Anything):
            return jax
        return importlib.import_module(f"{jax.__name__}.scipy.stats.{name}")

    # All functions of a distribution are one program, so that little is compiled.
    for name, (functions, parameters) in CONTINUOUS.items():
        x = X[:-1] if name in NOT_NAN else X
        moved = (*parameters, 0.25, 2.0)
        add(corpus, module(name), name, functions, x, (parameters, moved))
    for name, (functions, parameters) in (UNSCALED | DISCRETE).items():
        x = K if name in DISCRETE else X[:-1]
        add(corpus, module(name), name, functions, x, (parameters,))
    for name, (functions, parameters) in QUANTILES.items():
        # Theirs goes on where the tangent does; its tails end at what rounding leaves of pi.
        q = Q[:5] if name == "cauchy" else Q
        moved = (*parameters, 1.0, 2.0)
        add(corpus, module(name), f"{name}_quantiles", functions, q, (parameters, moved))
    derivatives(corpus, jax, jnp, module)
    complex_numbers(corpus, module)
    others(corpus, jnp, module)
    summaries(corpus, jnp, stats)
    estimates(corpus, jax, jnp, stats)
    return corpus


def add(corpus, module, name, functions, x, parameters):
    several = [getattr(module, function) for function in functions.split()]

    def all_of(x):
        return [f(x, *given) for given in parameters for f in several]

    corpus.add(name, all_of, x, modes=("jit",), tolerance=2e-5)
    for function, f in zip(functions.split(), several, strict=True):
        corpus.add(f"{name}_{function}_of_a_list", lambda f=f: f([0.5], *parameters[0]))
        corpus.add(
            f"{name}_{function}_of_kinds",
            lambda f=f: [
                f(1.0, *parameters[0]),
                f(np.float16(1), *map(np.float16, parameters[0])),
                f(F(1), *map(np.float64, parameters[0])),
            ],
            modes=("shape",),
        )


# Where a branch that is not taken has a derivative that is no number, and where values are exact.
SLOPES = {
    "binom_logpmf": (([0, 2, 5], [5, 5, 5], [0.3, 0.3, 0.3]), (0, 1, 2)),
    "nbinom_logpmf": (([0, 2, 5], [5, 5, 5], [0.3, 0.3, 0.3]), (0, 1, 2)),
    "betabinom_logpmf": (([0, 2, 5], [5, 5, 5], [1.5, 1.5, 1.5], [2.5, 2.5, 2.5]), (1, 2, 3)),
    "gamma_logcdf": (([-1, 0.5, 2], [1, 1, 1], [0, 0, 0], [2, 2, 2]), (0, 2, 3)),
    "chi2_logcdf": (([-1, 0.5, 2], [3, 3, 3], [0, 0, 0], [2, 2, 2]), (0, 2, 3)),
    "pareto_sf": (([-1, 0.5, 3], [1.5, 1.5, 1.5], [0, 0, 0], [1, 1, 1]), (0, 2, 3)),
    "laplace_cdf": (([-1, 0.25, 3], [0.25, 0.25, 0.25], [2, 2, 2]), (0, 1, 2)),
    "uniform_cdf": (([-1, 0.25, 1, 9], [0.25] * 4, [2] * 4), (0, 1, 2)),
}


def derivatives(corpus, jax, jnp, module):
    for name, (args, places) in SLOPES.items():
        distribution, function = name.split("_")
        function = getattr(module(distribution), function)

        def slopes(*args, function=function, places=places):
            return jax.grad(lambda *args: jnp.sum(function(*args)), places)(*args)

        corpus.add(f"{name}_slopes", slopes, *map(F, args), modes=("jit",), tolerance=1e-4)
    norm, betabinom = module("norm"), module("betabinom")
    wide = {"x64": True, "tolerance": 1e-6}
    corpus.add("norm_quantiles_wide", lambda q: [norm.ppf(q), norm.isf(q, 1, 2)], Q[:2], **wide)
    corpus.add("betabinom_between", lambda k: betabinom.pmf(k, 5, 1.5, 2.5, 0.5), F([1, 3, 6]))


def complex_numbers(corpus, module):
    refused = "bernoulli_cdf expon_cdf geom_pmf gumbel_l_sf gumbel_r_pdf laplace_cdf pareto_logsf"
    for name in (*refused.split(), "uniform_cdf", "wrapcauchy_pdf", "norm_pdf", "cauchy_cdf"):
        distribution, _, function = name.rpartition("_")
        parameters = (CONTINUOUS | UNSCALED | DISCRETE)[distribution][1]
        corpus.add(
            f"{name}_of_complex",
            lambda f=getattr(module(distribution), function), p=parameters: f(1j, *p),
            modes=("shape",),
        )


def others(corpus, jnp, module):
    bernoulli, poisson = module("bernoulli"), module("poisson")
    corpus.add("bernoulli_cdf", lambda k: [bernoulli.cdf(k, 0.3), bernoulli.cdf(k, 1.3)], X)
    corpus.add("bernoulli_ppf", lambda q: [bernoulli.ppf(q, 0.3), bernoulli.ppf(q, -1.0)], Q)
    corpus.add("poisson_entropy", poisson.entropy, F([0, 0.5, 1, 5, 20, 150, 400]), tolerance=1e-5)
    corpus.add("poisson_of_the_middle", lambda k: poisson.logpmf(k, 2.0), F([0.5, 1.5]))
    x, alpha = F([0.2, 0.3, 0.5]), F([1, 2, 3])
    dirichlet, multinomial = module("dirichlet"), module("multinomial")
    corpus.add(
        "dirichlet",
        lambda x, alpha: [
            dirichlet.logpdf(x, alpha),
            dirichlet.pdf(x[:2], alpha),
            dirichlet.logpdf(x + F(0.1), alpha),
            dirichlet.pdf(np.stack([x, x], 1), alpha),
        ],
        x,
        alpha,
        tolerance=1e-5,
    )
    corpus.add("dirichlet_of_another_size", lambda x, a: dirichlet.logpdf(x[:1], a), x, alpha)
    corpus.add("dirichlet_of_a_matrix", lambda x, a: dirichlet.logpdf(x, a[None]), x, alpha)
    corpus.add(
        "multinomial",
        lambda x, p: [
            multinomial.logpmf(x, 6, p),
            multinomial.pmf(x, 5, p),
        ],
        np.int32([1, 2, 3]),
        x,
        tolerance=1e-5,
    )
    corpus.add("multinomial_of_floats", lambda x: multinomial.logpmf(x, 6, x), x)
    normal = module("multivariate_normal")
    points, spread = F([[1, 3], [2, 1], [4, 2]]), F([[2, 0.5], [0.5, 1]])
    corpus.add(
        "multivariate_normal",
        lambda x, c: [
            normal.logpdf(x, np.ones(2, F), c),
            normal.pdf(x, np.ones(2, F), 2.0),
            normal.logpdf(x, np.ones(2, F), np.stack([c, c, c])),
            normal.logpdf(x, 0.0, 2.0),
            normal.logpdf(1.0, 0.0, 2.0),
        ],
        points,
        spread,
        tolerance=1e-5,
    )
    corpus.add("multivariate_normal_badly", lambda x: normal.logpdf(x, x[0], np.eye(3)), points)
    corpus.add(
        "multivariate_normal_singular",
        lambda x, c: normal.logpdf(x, x[0], c, allow_singular=True),
        points,
        spread,
    )


def summaries(corpus, jnp, stats):
    x = np.int32([[1, 2, 2, 1], [3, 2, 3, 3]])
    y = F([[2, 1, 2, np.nan], [3, 3, 1, np.nan]])
    corpus.add(
        "mode",
        lambda x, y: [
            stats.mode(x),
            stats.mode(x, axis=1),
            stats.mode(x, axis=None),
            stats.mode(y, axis=1, keepdims=True),
            stats.mode(y[:, 3]),
            stats.mode(y[:0], axis=1),
            stats.mode(y[0, :0]),
            stats.mode(x > 1, axis=None, keepdims=True),
        ],
        x,
        y,
    )
    for method in ("average", "min", "max", "dense", "ordinal"):
        corpus.add(
            f"rankdata_{method}",
            lambda x, y, m=method: [
                stats.rankdata(x, m),
                stats.rankdata(x, m, axis=1),
                stats.rankdata(y[:, :3], m, axis=0),
                stats.rankdata(y, m, axis=1),
                stats.rankdata(2.0, m),
            ],
            x,
            y,
        )
    corpus.add(
        "sem",
        lambda x, y: [
            stats.sem(x),
            stats.sem(x, axis=None),
            stats.sem(x, 1, 0, keepdims=True),
            stats.sem(y, axis=1, nan_policy="omit"),
            stats.sem(y),
        ],
        x,
        y,
    )
    for name in ("mode", "rankdata", "sem"):
        function = getattr(stats, name)
        corpus.add(f"{name}_of_a_list", lambda f=function: f([1, 2]))
        corpus.add(f"{name}_raising", lambda f=function: f(F([1, 2]), nan_policy="raise"))
        corpus.add(f"{name}_of_another_policy", lambda f=function: f(F([1, 2]), nan_policy="x"))
        corpus.add(f"{name}_of_another_axis", lambda f=function: f(F([1, 2]), axis=2))
    corpus.add("rankdata_of_another_method", lambda: stats.rankdata(F([1, 2]), "other"))


def estimates(corpus, jax, jnp, stats):
    x, y = F([1, 2, 4, 7]), F([[1, 2, 4, 7], [3, 1, 2, 2]])
    w = np.int32([1, 2, 3, 4])
    near = {"tolerance": 2e-5}

    def both(x, y, w):
        return stats.gaussian_kde(x), stats.gaussian_kde(y, "silverman", weights=w)

    corpus.add("kde", lambda *a: [jax.tree_util.tree_leaves(k) for k in both(*a)], x, y, w, **near)
    corpus.add(
        "kde_evaluated",
        lambda *a: [
            [one(1.5), one(x), one.pdf(x), two.evaluate(y), two.logpdf(y[:, :1])]
            for one, two in [both(*a)]
        ],
        x,
        y,
        w,
        **near,
    )
    corpus.add(
        "kde_integrated",
        lambda *a: [
            [
                one.integrate_gaussian(1.0, 2.0),
                two.integrate_gaussian(np.ones(2, F), np.eye(2, dtype=F)),
                one.integrate_box_1d(0.0, 3.0),
                one.integrate_kde(one),
                two.integrate_kde(two),
            ]
            for one, two in [both(*a)]
        ],
        x,
        y,
        w,
        **near,
    )
    corpus.add(
        "kde_resampled",
        lambda *a: [k.resample(jax.random.key(0), (3,)) for k in both(*a)],
        x,
        y,
        w,
        **near,
    )
    corpus.add(
        "kde_of_other_widths",
        lambda x: [
            stats.gaussian_kde(x, 0.5)(1.0),
            stats.gaussian_kde(x, lambda k: k.n / 8 + k.d)(1.0),
            stats.gaussian_kde(np.arange(4))(1),
        ],
        x,
        **near,
    )
    for name, function in {
        "box": lambda x, y: stats.gaussian_kde(x).integrate_box(0, 1),
        "bandwidth": lambda x, y: stats.gaussian_kde(x).set_bandwidth("scott"),
        "flat_box": lambda x, y: stats.gaussian_kde(y).integrate_box_1d(0, 1),
        "mean": lambda x, y: stats.gaussian_kde(y).integrate_gaussian(x, y),
        "other": lambda x, y: stats.gaussian_kde(x).integrate_kde(stats.gaussian_kde(y)),
        "points": lambda x, y: stats.gaussian_kde(y)(np.ones((3, 2), F)),
        "method": lambda x, y: stats.gaussian_kde(x, bw_method="other"),
        "one": lambda x, y: stats.gaussian_kde(x[:1]),
        "weights": lambda x, y: stats.gaussian_kde(x, weights=y),
        "count": lambda x, y: stats.gaussian_kde(x, weights=x[:2]),
        "list": lambda x, y: stats.gaussian_kde([1.0, 2.0]),
        "complex": lambda x, y: stats.gaussian_kde(x + 1j),
    }.items():
        corpus.add(f"kde_refuses_{name}", function, x, y)
