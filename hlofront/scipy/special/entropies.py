"""Entropies, products with logarithms, and the transformations logit, expit and Box-Cox."""

from __future__ import annotations

import math

import numpy as np

import hlofront.numpy as jnp
from hlofront.base.dtypes import finfo
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.higher_order.custom_rules.custom_jvp import as_custom_jvp, custom_jvp
from hlofront.primitives.elementwise import elementwise
from hlofront.primitives.elementwise.converting import strong
from hlofront.primitives.elementwise.weak_types import times_one
from hlofront.runtime.dispatch.operation import operation
from hlofront.scipy.special.arguments import define_slopes, floats, in_float32, inexact_arrays
from hlofront.scipy.special.series import polynomial


def log1p(x: Array) -> Array:
    """Return log(1 + x) to full precision; XLA's loses two digits in float64 for x in [-1/2, -0.3].

    In float32 XLA's errs by up to 1.6 units in the last place there, and log(1 + x) by 2.7.
    """
    if typeof(x).dtype != np.float64:
        return jnp.log1p(x)
    low = x < -0.25
    return jnp.where(low, jnp.log(1 + jnp.where(low, x, 0)), jnp.log1p(jnp.where(low, 0, x)))


def _quotient_or_zero(x: Array, y: Array) -> Array:
    """Return x / y, and zero where both are zero: there x log(y) is zero along y."""
    return x / jnp.where((x == 0) & (y == 0), 1, y)


@custom_jvp
def _x_log_y(x: Array, y: Array) -> Array:
    return jnp.where((x != 0) | (y != y), x * jnp.log(y), 0)


define_slopes(
    _x_log_y,
    lambda t, result, x, y: strong(t * jnp.log(y)),
    lambda t, result, x, y: strong(t * _quotient_or_zero(x, y)),
)


@as_custom_jvp
@operation
def xlogy(x: ArrayLike, y: ArrayLike) -> Array:
    """Compute elementwise x log(y), which is 0 where x is 0 and y is not NaN.

    Args:
      x, y: arrays of real or complex numbers that broadcast.

    Example:
      >>> jax.scipy.special.xlogy(jnp.array([0.0, 2.0]), jnp.array([0.0, 1.0]))
      Array([0., 0.], dtype=float32)
    """
    return _x_log_y(*inexact_arrays("xlogy", x, y))


@custom_jvp
def _x_log1p_y(x: Array, y: Array) -> Array:
    return jnp.where((x != 0) | (y != y), x * log1p(y), 0)


define_slopes(
    _x_log1p_y,
    lambda t, result, x, y: strong(t * jnp.log1p(y)),
    lambda t, result, x, y: strong(t * _quotient_or_zero(x, 1 + y)),
)


@as_custom_jvp
@operation
def xlog1py(x: ArrayLike, y: ArrayLike) -> Array:
    """Compute elementwise x log(1 + y), exact for small y; it is 0 where x is 0 and y is not NaN.

    Args:
      x, y: arrays of real or complex numbers that broadcast.

    Example:
      >>> jax.scipy.special.xlog1py(jnp.array([0.0, 2.0]), jnp.array([-1.0, 0.0]))
      Array([0., 0.], dtype=float32)
    """
    return _x_log1p_y(*inexact_arrays("xlog1py", x, y))


@custom_jvp
def _x_log_x(x: Array) -> Array:
    return _x_log_y(x, x)


_x_log_x.defjvps(lambda t, result, x: t * (jnp.log(x) + 1))


@operation
def entr(x: ArrayLike) -> Array:
    """Compute elementwise the entropy, -x log(x): 0 at 0, and minus infinity for negative x.

    Args:
      x: real numbers; integers and booleans are converted to the default float dtype.

    Returns:
      An array of the shape and floating-point dtype of x.

    Raises:
      ValueError: if x is complex.
    """
    (x,) = floats("entr", x)
    return jnp.where(x < 0, -jnp.inf, -_x_log_x(x))


@custom_jvp
def _relative_entropy(p: Array, q: Array) -> Array:
    inside = (p > 0) & (q > 0)
    known_p, known_q = jnp.where(inside, p, 1), jnp.where(inside, q, 1)
    outside = jnp.where((p == 0) & (q >= 0), 0.0, jnp.inf)
    return jnp.where(inside, known_p * _logarithm_of_ratio(known_p, known_q), outside)


def _logarithm_of_ratio(p: Array, q: Array) -> Array:
    """Return log(p / q) of positive numbers; log(p) - log(q) would lose digits where they are near.

    Numbers whose ratio may overflow or underflow are scaled by powers of two.
    """
    greatest = finfo(typeof(p).dtype).maxexp
    least, exponent = 2.0 ** (2 - greatest), greatest * 5 // 8
    # If one number is infinite, the other may be too large to scale.
    is_greater, is_less = (p * least > q) & (q < 4), (q * least > p) & (p < 4)

    def by_case(if_greater: float, if_less: float, if_near: float) -> Array:
        return jnp.where(is_greater, if_greater, jnp.where(is_less, if_less, if_near))

    up, down, both = 2.0**exponent, 2.0**-exponent, 2 * exponent * math.log(2)
    ratio = (p * by_case(down, up, 1.0)) / (q * by_case(up, down, 1.0))
    return jnp.log(ratio) + by_case(both, -both, 0.0)


def _ratio(p: Array, q: Array) -> Array:
    """Return p / q where both are positive, and 1 elsewhere."""
    inside = (p > 0) & (q > 0)
    return jnp.where(inside, p, 1) / jnp.where(inside, q, 1)


define_slopes(
    _relative_entropy,
    lambda t, result, p, q: jnp.where((p > 0) & (q > 0), t * (jnp.log(_ratio(p, q)) + 1), 0),
    lambda t, result, p, q: jnp.where((p > 0) & (q > 0), -t * _ratio(p, q), 0),
)


@operation
def rel_entr(p: ArrayLike, q: ArrayLike) -> Array:
    """Compute elementwise the relative entropy, p log(p / q).

    It is 0 where p is 0 and q not negative, and infinity where either is negative, or only q is 0.

    Args:
      p, q: arrays of real numbers that broadcast.

    Raises:
      ValueError: if an argument is complex.

    Example:
      >>> jax.scipy.special.rel_entr(jnp.array([0.0, 1.0, 1.0]), jnp.array([2.0, 1.0, 0.0]))
      Array([ 0.,  0., inf], dtype=float32)
    """
    result = in_float32(_relative_entropy, *floats("rel_entr", p, q))
    return strong(result) if result.shape else result


@operation
def kl_div(p: ArrayLike, q: ArrayLike) -> Array:
    """Compute elementwise the Kullback-Leibler divergence, p log(p / q) - p + q.

    It is q where p is 0 and q not negative, and infinity where either is negative, or only q is 0.

    Args:
      p, q: arrays of real numbers that broadcast.

    Raises:
      ValueError: if an argument is complex.

    Example:
      >>> jax.scipy.special.kl_div(jnp.array([0.0, 1.0, 1.0]), jnp.array([2.0, 1.0, 0.0]))
      Array([ 2.,  0., inf], dtype=float32)
    """
    p, q = floats("kl_div", p, q)
    result = in_float32(_relative_entropy, p, q) - p + q
    return strong(result) if result.shape else result


# ---- transformations -----------------------------------------------------------------------------


@custom_jvp
def _logit(x: Array) -> Array:
    return jnp.log(x / (1 - x))


_logit.defjvps(lambda t, result, x: t / (x * (1 - x)))


@as_custom_jvp
@operation
def logit(x: ArrayLike) -> Array:
    """Compute elementwise log(x / (1 - x)), the inverse of `expit`.

    The result is NaN for real x outside [0, 1].

    Args:
      x: real or complex numbers; integers and booleans are converted to the default float dtype.

    Returns:
      An array of the shape and inexact dtype of x.

    Example:
      >>> jax.scipy.special.logit(jnp.array([0.0, 0.5, 1.0]))
      Array([-inf,   0.,  inf], dtype=float32)
    """
    result = _logit(*inexact_arrays("logit", x))
    return times_one(result) if result.shape else result


@operation
def expit(x: ArrayLike) -> Array:
    """Compute elementwise the logistic function, 1 / (1 + exp(-x)).

    Args:
      x: real or complex numbers; integers and booleans are converted to the default float dtype.

    Returns:
      An array of the shape and inexact dtype of x.
    """
    return elementwise.logistic(*inexact_arrays("expit", x))


@custom_jvp
def _power_transformation(logarithm: Array, exponent: Array) -> Array:
    """Return (exp(product) - 1) / exponent of the product of both, and its limit for exponent 0."""
    product = exponent * logarithm
    near = jnp.abs(product) < 1
    # The terms of the power series are enough for the dtype.
    terms = 11 if finfo(typeof(product).dtype).eps > 1e-10 else 19
    series = polynomial([1 / math.factorial(k + 1) for k in reversed(range(terms))], product)
    # Real exponentials of other products are far from 1.
    less = jnp.expm1(product) if jnp.iscomplexobj(product) else jnp.exp(product) - 1
    is_zero = near | (exponent == 0)
    quotient = less / jnp.where(is_zero, 1, exponent)
    return jnp.where(near, logarithm * series, jnp.where(is_zero, logarithm, quotient))


def _slope_along_exponent(logarithm: Array, exponent: Array) -> Array:
    product = exponent * logarithm
    near = (jnp.abs(product) < 1) | (exponent == 0)
    # Each branch receives only arguments of its own side, so that its derivative is finite.
    coefficients = [1 / (math.factorial(k) * (k + 2)) for k in reversed(range(24))]
    series = polynomial(coefficients, jnp.where(near, product, 0))
    divisor, far = jnp.where(near, 1, exponent), jnp.where(near, 1, logarithm)
    power = jnp.exp(divisor * far)
    quotient = (far * power - (power - 1) / divisor) / divisor
    return jnp.where(near, jnp.square(jnp.where(near, logarithm, 1)) * series, quotient)


define_slopes(
    _power_transformation,
    lambda t, result, logarithm, exponent: t * jnp.exp(exponent * logarithm),
    lambda t, result, logarithm, exponent: t * _slope_along_exponent(logarithm, exponent),
)


@operation
def boxcox(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """Compute elementwise the Box-Cox transformation, (x ** lmbda - 1) / lmbda.

    Where lmbda is 0 it is log(x).

    Args:
      x, lmbda: arrays that broadcast.
    """
    x, lmbda = inexact_arrays("boxcox", x, lmbda)
    return _power_transformation(jnp.log(x), lmbda)


@operation
def boxcox1p(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """Compute elementwise the Box-Cox transformation of 1 + x, exact for small x.

    Args:
      x, lmbda: arrays that broadcast.
    """
    x, lmbda = inexact_arrays("boxcox1p", x, lmbda)
    return _power_transformation(jnp.log1p(x), lmbda)
