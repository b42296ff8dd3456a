"""hlofront.scipy.stats: statistics, and distributions as modules loaded on first use."""

from hlofront.base.lazy import exports as _exports

__getattr__, __dir__ = _exports(
    __name__,
    submodules=(
        "bernoulli beta betabinom binom cauchy chi2 dirichlet expon gamma gennorm geom gumbel_l "
        "gumbel_r laplace logistic multinomial multivariate_normal nbinom norm pareto poisson t "
        "truncnorm uniform vonmises wrapcauchy"
    ),
    now={
        "hlofront.scipy.stats.density_estimates": "gaussian_kde",
        "hlofront.scipy.stats.summaries": "mode rankdata sem",
    },
)
