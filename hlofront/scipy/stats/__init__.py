"""hlofront.scipy.stats: statistics, and distributions as modules loaded on first use."""

from hlofront.base.lazy import lazy as _lazy
from hlofront.scipy.stats.density_estimates import gaussian_kde as gaussian_kde
from hlofront.scipy.stats.summaries import mode as mode
from hlofront.scipy.stats.summaries import rankdata as rankdata
from hlofront.scipy.stats.summaries import sem as sem

__getattr__, __dir__ = _lazy(
    __name__,
    (
        "bernoulli",
        "beta",
        "betabinom",
        "binom",
        "cauchy",
        "chi2",
        "dirichlet",
        "expon",
        "gamma",
        "gennorm",
        "geom",
        "gumbel_l",
        "gumbel_r",
        "laplace",
        "logistic",
        "multinomial",
        "multivariate_normal",
        "nbinom",
        "norm",
        "pareto",
        "poisson",
        "t",
        "truncnorm",
        "uniform",
        "vonmises",
        "wrapcauchy",
    ),
)
