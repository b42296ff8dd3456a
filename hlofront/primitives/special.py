"""Primitives of special functions: gamma, beta, error function, Bessel, zeta."""

from hlofront.core.trace import process
from hlofront.primitives.families import FLOAT, elementwise_primitive, unary

erf_p, erf = unary("erf", FLOAT, "Elementwise error function.")
erfc_p, erfc = unary("erfc", FLOAT, "Elementwise complementary error function, `1 - erf(x)`.")
erf_inv_p, erf_inv = unary("erf_inv", FLOAT, "Elementwise inverse of the error function.")
lgamma_p, lgamma = unary("lgamma", FLOAT, "Elementwise logarithm of |gamma(x)|.")
digamma_p, digamma = unary(
    "digamma", FLOAT, "Elementwise digamma function, the derivative of the logarithm of gamma."
)
bessel_i0e_p, bessel_i0e = unary(
    "bessel_i0e",
    FLOAT,
    "Elementwise modified Bessel function of the first kind and order 0, times exp(-|x|).",
)
bessel_i1e_p, bessel_i1e = unary(
    "bessel_i1e",
    FLOAT,
    "Elementwise modified Bessel function of the first kind and order 1, times exp(-|x|).",
)

polygamma_p = elementwise_primitive("polygamma", FLOAT, 2)
zeta_p = elementwise_primitive("zeta", FLOAT, 2)
igamma_p = elementwise_primitive("igamma", FLOAT, 2)
igammac_p = elementwise_primitive("igammac", FLOAT, 2)
igamma_grad_a_p = elementwise_primitive("igamma_grad_a", FLOAT, 2)
random_gamma_grad_p = elementwise_primitive("random_gamma_grad", FLOAT, 2)
regularized_incomplete_beta_p = elementwise_primitive("regularized_incomplete_beta", FLOAT, 3)


def polygamma(m, x):
    """Elementwise derivative of order m of the digamma function; m holds whole numbers."""
    return process(polygamma_p, (m, x), {})


def zeta(x, q):
    """Elementwise Hurwitz zeta function: the sum of (k + q) ** -x over k = 0, 1, 2, ..."""
    return process(zeta_p, (x, q), {})


def igamma(a, x):
    """Elementwise regularized lower incomplete gamma function P(a, x).

    NaN where a <= 0 or x < 0.
    """
    return process(igamma_p, (a, x), {})


def igammac(a, x):
    """Elementwise regularized upper incomplete gamma function Q(a, x) = 1 - P(a, x).

    1 where a <= 0 or x < 0.
    """
    return process(igammac_p, (a, x), {})


def igamma_grad_a(a, x):
    """Elementwise derivative of igamma(a, x) in a."""
    return process(igamma_grad_a_p, (a, x), {})


def random_gamma_grad(a, x):
    """Elementwise derivative in a of samples x of the gamma distribution of shape a.

    The samples are seen as x(a, u) with igamma(a, x) = u held fixed.
    """
    return process(random_gamma_grad_p, (a, x), {})


def betainc(a, b, x):
    """Elementwise regularized incomplete beta function I_x(a, b).

    NaN where a or b is not positive, or x is not in [0, 1].
    """
    return process(regularized_incomplete_beta_p, (a, b, x), {})
