"""The jax.random module: random numbers from keys, which are split and never used twice."""

from hlofront.base.lazy import exports as _exports

__getattr__, __dir__ = _exports(
    __name__,
    now={
        "hlofront.base.typing": "Key",
        "hlofront.higher_order.random_gamma": "random_gamma_p",
        "hlofront.random.continuous": (
            "bits cauchy exponential gumbel laplace logistic lognormal maxwell normal pareto "
            "rayleigh triangular truncated_normal uniform wald weibull_min"
        ),
        "hlofront.random.counts": "binomial multinomial poisson",
        "hlofront.random.discrete": "bernoulli categorical geometric rademacher randint",
        "hlofront.random.gammas": (
            "ball beta chisquare dirichlet double_sided_maxwell f gamma generalized_normal "
            "loggamma t"
        ),
        "hlofront.random.keys": (
            "PRNGKey clone fold_in key key_data key_dtype key_impl split wrap_key_data"
        ),
        "hlofront.random.matrices": "multivariate_normal orthogonal",
        "hlofront.random.permuting": "choice permutation",
    },
)
