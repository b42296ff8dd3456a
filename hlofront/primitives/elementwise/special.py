"""Primitives of special functions: gamma, beta, error function, Bessel, zeta."""

import inspect
import math
from collections.abc import Callable
from typing import ParamSpec

from hlofront.base.boundary import boundary
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.trace import process
from hlofront.primitives.arrays.creation import coefficient_like, constant_like, scalar_like
from hlofront.primitives.arrays.shaping import broadcast_like
from hlofront.primitives.elementwise.compare import eq, select_n
from hlofront.primitives.elementwise.converting import strong
from hlofront.primitives.elementwise.elementwise import (
    add,
    bitwise_and,
    div,
    exp,
    log,
    log1p,
    mul,
    neg,
    sign,
    square,
    sub,
)
from hlofront.primitives.elementwise.families import (
    FLOAT,
    elementwise_primitive,
    sections_of_operands,
    unary,
)
from hlofront.primitives.elementwise.rules import slope
from hlofront.primitives.rules.derivatives import (
    derivative,
    derivative_from_result,
    unknown_derivative,
)

_Operands = ParamSpec("_Operands")

erf_p, erf = unary("erf", FLOAT, "Compute elementwise the error function.")
erfc_p = elementwise_primitive("erfc", FLOAT)
erf_inv_p, erf_inv = unary(
    "erf_inv", FLOAT, "Compute elementwise the inverse of the error function."
)
lgamma_p, lgamma = unary("lgamma", FLOAT, "Compute elementwise the logarithm of |gamma(x)|.")
digamma_p, digamma = unary(
    "digamma",
    FLOAT,
    "Compute elementwise the digamma function, the derivative of the logarithm of gamma.",
)
bessel_i0e_p, bessel_i0e = unary(
    "bessel_i0e",
    FLOAT,
    "Compute elementwise exp(-|x|) times the modified Bessel function of the first kind, order 0.",
)
bessel_i1e_p, bessel_i1e = unary(
    "bessel_i1e",
    FLOAT,
    "Compute elementwise exp(-|x|) times the modified Bessel function of the first kind, order 1.",
)


derivative(erf_p, lambda t, x: _scaled_bell(t, x, 2 / math.sqrt(math.pi)))
derivative(erfc_p, lambda t, x, **_: _scaled_bell(t, x, -2 / math.sqrt(math.pi)))
derivative_from_result(
    erf_inv_p,
    lambda t, result, x: mul(
        coefficient_like(x, math.sqrt(math.pi) / 2), mul(t, exp(square(result)))
    ),
)
slope(lgamma_p, lambda result, x: digamma(x))
slope(digamma_p, lambda result, x: polygamma(coefficient_like(x, 1), x))
slope(bessel_i0e_p, lambda result, x: sub(bessel_i1e(x), mul(sign(x), result)))


def _scaled_bell(t: ArrayLike, x: ArrayLike, scale: float) -> Array:
    return mul(coefficient_like(x, scale), mul(t, exp(neg(square(x)))))


def _slope_of_bessel_i1e(result: ArrayLike, x: ArrayLike) -> Array:
    # Divide by 1 where x is zero, so that the derivative of the slope has no NaN there.
    is_zero = eq(x, scalar_like(x, 0))
    divisor = select_n(is_zero, x, constant_like(x, 1))
    slope = sub(sub(bessel_i0e(x), mul(sign(x), result)), div(result, divisor))
    return select_n(is_zero, slope, constant_like(x, 0.5))


slope(bessel_i1e_p, _slope_of_bessel_i1e)

polygamma_p = elementwise_primitive("polygamma", FLOAT, 2)
zeta_p = elementwise_primitive("zeta", FLOAT, 2)
igamma_p = elementwise_primitive("igamma", FLOAT, 2)
igammac_p = elementwise_primitive("igammac", FLOAT, 2)
igamma_grad_a_p = elementwise_primitive("igamma_grad_a", FLOAT, 2)
random_gamma_grad_p = elementwise_primitive("random_gamma_grad", FLOAT, 2)
regularized_incomplete_beta_p = elementwise_primitive("regularized_incomplete_beta", FLOAT, 3)


def _with_sections(function: Callable[_Operands, Array]) -> Callable[_Operands, Array]:
    """Add the sections on operands, result and errors to the docstring of a function of floats."""
    names = ", ".join(inspect.signature(function).parameters)
    docstring = (function.__doc__ or "").rstrip()
    function.__doc__ = docstring + sections_of_operands(FLOAT, names=names)
    return function


@boundary
def erfc(x: ArrayLike, *, accuracy: object = None) -> Array:
    """Compute elementwise the complementary error function, `1 - erf(x)`.

    Args:
      x: an array of floats.
      accuracy: with AccuracyMode.HIGHEST, errors are at most 4 ulp in float32 and float64, instead
        of 70 and 8 by default. A Tolerance has no effect.

    Raises:
      TypeError: if `x` is of another dtype.
    """
    return process(erfc_p, (x,), {} if accuracy is None else {"accuracy": accuracy})


@_with_sections
def polygamma(m: ArrayLike, x: ArrayLike) -> Array:
    """Compute elementwise the m-th derivative of the digamma function, for whole numbers m >= 0."""
    return process(polygamma_p, (m, x), {})


@_with_sections
def zeta(x: ArrayLike, q: ArrayLike) -> Array:
    """Compute elementwise the Hurwitz zeta function: the sum of (k + q) ** -x, k = 0, 1, 2, ..."""
    return process(zeta_p, (x, q), {})


@_with_sections
def igamma(a: ArrayLike, x: ArrayLike) -> Array:
    """Compute elementwise the regularized lower incomplete gamma function P(a, x).

    The result is NaN where a <= 0 or x < 0.
    """
    return process(igamma_p, (a, x), {})


@_with_sections
def igammac(a: ArrayLike, x: ArrayLike) -> Array:
    """Compute elementwise the regularized upper incomplete gamma function Q(a, x) = 1 - P(a, x).

    The result is 1 where a <= 0 or x < 0.
    """
    return process(igammac_p, (a, x), {})


@_with_sections
def igamma_grad_a(a: ArrayLike, x: ArrayLike) -> Array:
    """Compute elementwise the derivative of igamma(a, x) with respect to a."""
    return process(igamma_grad_a_p, (a, x), {})


@_with_sections
def random_gamma_grad(a: ArrayLike, x: ArrayLike) -> Array:
    """Compute elementwise the derivative of gamma samples x with respect to the shape a.

    A sample is a function x(a, u) with igamma(a, x) = u, where u is held fixed.
    """
    return process(random_gamma_grad_p, (a, x), {})


@_with_sections
def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Compute elementwise the regularized incomplete beta function I_x(a, b).

    The result is NaN where a or b is not positive, or x is not in [0, 1].
    """
    return process(regularized_incomplete_beta_p, (a, b, x), {})


# ---- derivatives of functions of several operands ------------------------------------------------


def _change_by_order(t: ArrayLike, m: ArrayLike, x: ArrayLike) -> Array:
    raise ValueError(  # JAX raises this class.
        "polygamma gradient with respect to m is not supported: m is the order of a derivative, a "
        "whole number. Differentiate with respect to x, or give lax.stop_gradient(m)."
    )


derivative(
    polygamma_p,
    _change_by_order,
    lambda t, m, x: strong(mul(t, polygamma(add(m, scalar_like(m, 1)), x))),
)
unknown_derivative(
    zeta_p,
    "use lax.polygamma, which has one, for whole x; or give lax.stop_gradient of both operands.",
)


def _replaced(x: ArrayLike, end: float, exponent: ArrayLike, other: float) -> Array:
    """Return x, but `other` where x is an end of the support and the exponent of its power is 0.

    The power's logarithm is 0 at `other`. Computed directly, it would be 0 times infinity there.
    """
    constant = bitwise_and(eq(x, scalar_like(x, end)), eq(exponent, scalar_like(exponent, 0)))
    # Under vmap, either may have size 1 along the batch axis.
    whole = broadcast_like(x, constant)
    return select_n(constant, whole, constant_like(whole, other))


def _gamma_density(a: ArrayLike, x: ArrayLike) -> Array:
    """Return the density of the gamma distribution, the derivative of igamma(a, x) in x."""
    exponent = _plus(a, scalar_like(a, -1))
    # At infinity only the exponential matters.
    base = select_n(eq(x, scalar_like(x, math.inf)), x, constant_like(x, 1))
    power = mul(exponent, log(_replaced(base, 0, exponent, 1)))
    return exp(sub(sub(power, x), lgamma(a)))


derivative(
    igamma_p,
    lambda t, a, x: mul(t, igamma_grad_a(a, x)),
    lambda t, a, x: mul(t, _gamma_density(a, x)),
)
derivative(
    igammac_p,
    lambda t, a, x: neg(mul(t, igamma_grad_a(a, x))),
    lambda t, a, x: neg(mul(t, _gamma_density(a, x))),
)
unknown_derivative(
    igamma_grad_a_p,
    "igamma is differentiable once in a. Give lax.stop_gradient(a) to the function inside.",
)


def _change_by_shape(t: ArrayLike, a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    raise ValueError(  # JAX raises this class.
        "Betainc gradient with respect to a and b not supported. Differentiate with respect to x, "
        "or give lax.stop_gradient(a) and lax.stop_gradient(b)."
    )


def _plus(x: ArrayLike, y: ArrayLike) -> ArrayLike:
    """Return x + y, computed eagerly for Python and NumPy scalars, so that it stays a literal."""
    return add(x, y) if hasattr(x, "aval") or hasattr(y, "aval") else x + y


def _beta_density(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Return the density of the beta distribution, the derivative of betainc(a, b, x) in x."""
    first, second = _plus(a, scalar_like(a, -1)), _plus(b, scalar_like(b, -1))
    powers = add(
        mul(second, log1p(neg(_replaced(x, 1, second, 0)))),
        mul(first, log(_replaced(x, 0, first, 1))),
    )
    return exp(sub(powers, sub(add(lgamma(a), lgamma(b)), lgamma(_plus(a, b)))))


derivative(
    regularized_incomplete_beta_p,
    _change_by_shape,
    _change_by_shape,
    lambda t, a, b, x: mul(t, _beta_density(a, b, x)),
)
