# Written by scripts/write_stubs.py from the running package: do not edit.

from hlofront import Array
from hlofront.scipy.stats import bernoulli as bernoulli
from hlofront.scipy.stats import beta as beta
from hlofront.scipy.stats import betabinom as betabinom
from hlofront.scipy.stats import binom as binom
from hlofront.scipy.stats import cauchy as cauchy
from hlofront.scipy.stats import chi2 as chi2
from hlofront.scipy.stats import dirichlet as dirichlet
from hlofront.scipy.stats import expon as expon
from hlofront.scipy.stats import gamma as gamma
from hlofront.scipy.stats import gennorm as gennorm
from hlofront.scipy.stats import geom as geom
from hlofront.scipy.stats import gumbel_l as gumbel_l
from hlofront.scipy.stats import gumbel_r as gumbel_r
from hlofront.scipy.stats import laplace as laplace
from hlofront.scipy.stats import logistic as logistic
from hlofront.scipy.stats import multinomial as multinomial
from hlofront.scipy.stats import multivariate_normal as multivariate_normal
from hlofront.scipy.stats import nbinom as nbinom
from hlofront.scipy.stats import norm as norm
from hlofront.scipy.stats import pareto as pareto
from hlofront.scipy.stats import poisson as poisson
from hlofront.scipy.stats import t as t
from hlofront.scipy.stats import truncnorm as truncnorm
from hlofront.scipy.stats import uniform as uniform
from hlofront.scipy.stats import vonmises as vonmises
from hlofront.scipy.stats import wrapcauchy as wrapcauchy
from hlofront.scipy.stats.density_estimates import gaussian_kde as gaussian_kde
from hlofront.scipy.stats.summaries import ModeResult
from hlofront.typing import ArrayLike

def mode(
    a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False
) -> ModeResult: ...
def rankdata(
    a: ArrayLike, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate"
) -> Array: ...
def sem(
    a: ArrayLike,
    axis: int | None = 0,
    ddof: int = 1,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Array: ...
