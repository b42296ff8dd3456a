"""The gamma function, its logarithm, and functions defined by them: factorials, beta, zeta."""

from __future__ import annotations

import math
import operator
from fractions import Fraction

import numpy as np

import hlofront.numpy as jnp
from hlofront.base.dtypes import is_complex, issubdtype
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.higher_order.custom_rules.custom_jvp import as_custom_jvp, custom_jvp
from hlofront.numpy.support.promotion import check_arraylike
from hlofront.primitives.elementwise import elementwise, special
from hlofront.primitives.elementwise.converting import strong
from hlofront.runtime.dispatch.operation import operation
from hlofront.scipy.special.arguments import (
    define_slopes,
    floats,
    in_float32,
    inexact_arrays,
    strong_floats,
)
from hlofront.scipy.special.series import STIRLING, polynomial
from hlofront.transforms.grad import jvp


def _stirling(x: Array) -> Array:
    """Return log(gamma(x)) - (x - 1/2) log(x) + x - log(2 pi) / 2 for x >= 10: DLMF 5.11.1."""
    inverse = 1 / x
    square = inverse * inverse
    return polynomial(STIRLING[::-1], square) * inverse


# ---- gamma ---------------------------------------------------------------------------------------


@operation
def gammaln(x: ArrayLike) -> Array:
    """Compute elementwise the logarithm of the gamma function's absolute value, of real numbers.

    Args:
      x: real numbers; integers and booleans are converted to the default float dtype.

    Returns:
      An array of the shape and floating-point dtype of x.

    Raises:
      TypeError: if x is complex.
    """
    return special.lgamma(*inexact_arrays("gammaln", x))


@operation
def loggamma(x: ArrayLike) -> Array:
    """Compute elementwise the principal branch of the logarithm of gamma.

    The result is NaN for negative real numbers. For complex ones it is analytic except on the
    negative real axis; the method is reflection, recurrence and Stirling's series, as in Hare,
    "Computing the principal branch of log-Gamma" (1997).

    Args:
      x: real or complex numbers; integers and booleans are converted to the default float dtype.

    Returns:
      An array of the shape and inexact dtype of x.
    """
    (x,) = inexact_arrays("loggamma", x)
    if is_complex(typeof(x).dtype):
        return strong(_complex_loggamma(x))
    return jnp.where(x >= 0, special.lgamma(x), jnp.nan)


@custom_jvp
def _complex_loggamma(z: Array) -> Array:
    reflected = jnp.real(z) < 0.5
    of_the_right = _loggamma_on_the_right(jnp.where(reflected, 1 - z, z))
    # Reflection is computed above the real axis; the value below is the conjugate.
    below = jnp.signbit(jnp.imag(z))
    above = jnp.where(below, jnp.conj(z), z)
    reflection = math.log(2 * math.pi) - 0.5j * math.pi + 1j * math.pi * above
    reflection = reflection - jnp.log1p(-_turn(above))
    reflection = jnp.where(below, jnp.conj(reflection), reflection)
    logarithm = jnp.where(reflected, reflection - of_the_right, of_the_right)
    real = jnp.real(z)
    is_pole = (jnp.imag(z) == 0) & (real <= 0) & (real == jnp.floor(real))
    return jnp.where(is_pole, jnp.nan, logarithm)


def _turn(z: Array) -> Array:
    """Return exp(2 pi i z) of complex z."""
    real = jnp.real(z)
    angle = 2 * math.pi * (real - jnp.round(real))
    size = jnp.exp(-2 * math.pi * jnp.imag(z))
    return elementwise.complex(size * jnp.cos(angle), size * jnp.sin(angle))


_SHIFT = 10


def _loggamma_on_the_right(z: Array) -> Array:
    """Return log(gamma(z)) for complex z with real part >= 1/2, by Hare's method (1997)."""
    small = jnp.abs(z) < _SHIFT
    # The logarithm of a product is more accurate than the sum of the logarithms. Each factor
    # turns the product by less than a quarter, so that a turn is completed where the product
    # crosses the real axis downwards.
    below = jnp.signbit(jnp.imag(z))
    above = jnp.where(small, jnp.where(below, jnp.conj(z), z), 1.0)
    product, rounds = above, jnp.zeros_like(jnp.real(z))
    for k in range(1, _SHIFT):
        last = jnp.imag(product) >= 0
        product = product * (above + k)
        rounds = jnp.where(last & (jnp.imag(product) < 0), rounds + 1, rounds)
    turns = elementwise.complex(jnp.zeros_like(rounds), 2 * math.pi * rounds)
    steps = jnp.log(product) + turns
    steps = jnp.where(below, jnp.conj(steps), steps)
    far = jnp.where(small, z + _SHIFT, z)
    main = (far - 0.5) * jnp.log(far) - far + 0.5 * math.log(2 * math.pi)
    logarithm = main + _stirling(far) - jnp.where(small, steps, 0.0)
    # Around the zeros at 1 and 2 a series is accurate.
    near_two = jnp.abs(z - 2) < 0.8
    near_one = ~near_two & (jnp.abs(z - 1) < 0.8)
    off = jnp.where(near_two, z - 2, jnp.where(near_one, z - 1, 0.0))
    series = _loggamma_around_two(off)
    return jnp.where(near_two, series, jnp.where(near_one, series - jnp.log1p(off), logarithm))


def _zeta_less_one(k: int) -> float:
    """Return zeta(k) - 1, by the formula of Euler and Maclaurin, DLMF 25.2.9."""
    last = 60
    tail = last ** (1.0 - k) / (k - 1) - last**-k / 2 + k * last ** (-k - 1.0) / 12
    tail -= k * (k + 1) * (k + 2) * last ** (-k - 3.0) / 720
    tail += math.prod(range(k, k + 5)) * last ** (-k - 5.0) / 30240
    return math.fsum(n ** float(-k) for n in range(2, last + 1)) + tail


def _loggamma_around_two(w: Array) -> Array:
    """Return log(gamma(2 + w)) for abs(w) < 0.8, by the power series DLMF 5.7.3."""
    terms = 42 if typeof(w).dtype.itemsize > 8 else 22
    total: Array | float = 0.0
    for k in range(terms, 1, -1):
        total = (total + (-1) ** k * _zeta_less_one(k) / k) * w
    return (total + (1 - np.euler_gamma)) * w


def _complex_digamma(z: Array) -> Array:
    """Return digamma of complex z, by reflection, recurrence and the series DLMF 5.11.2."""
    reflected = jnp.real(z) < 0.5
    far = jnp.where(reflected, 1 - z, z)
    steps: Array | float = 0.0
    for k in range(_SHIFT):
        steps = steps + 1 / (far + k)
    far = far + _SHIFT
    square = 1 / (far * far)
    tail: Array | float = 0.0
    for k in reversed(range(len(STIRLING))):
        tail = (tail + STIRLING[k] * (2 * k + 1)) * square
    right = jnp.log(far) - 0.5 / far - tail - steps
    # pi cot(pi z) is computed above the real axis, and below it as the conjugate.
    below = jnp.signbit(jnp.imag(z))
    turn = _turn(jnp.where(below, jnp.conj(z), z))
    cotangent = 1j * math.pi * (turn + 1) / (turn - 1)
    cotangent = jnp.where(below, jnp.conj(cotangent), cotangent)
    return jnp.where(reflected, right - cotangent, right)


_complex_loggamma.defjvps(lambda t, result, z: t * _complex_digamma(z))


def _sign(x: Array) -> Array:
    whole = jnp.floor(x)
    negative = x < 0
    undefined = (negative & (x == whole)) | (x != x)
    odd = negative & (jnp.fmod(whole, 2) != 0)
    minus = odd | ((x == 0) & jnp.signbit(x))
    one = jnp.ones_like(x)
    return jnp.where(undefined, jnp.nan, jnp.where(minus, -one, one))


@operation
def gammasgn(x: ArrayLike) -> Array:
    """Compute elementwise the sign of the gamma function: 1 or -1, and NaN at its poles below zero.

    Args:
      x: real numbers; integers and booleans are converted to the default float dtype.

    Returns:
      An array of the shape and floating-point dtype of x.

    Raises:
      ValueError: if x is complex.

    Example:
      >>> jax.scipy.special.gammasgn(jnp.array([0.5, -0.5, -1.0]))
      Array([ 1., -1., nan], dtype=float32)
    """
    return _sign(*strong_floats("gammasgn", x))


@operation
def gamma(x: ArrayLike) -> Array:
    """Compute elementwise the gamma function of real or complex numbers.

    Args:
      x: real or complex numbers; integers and booleans are converted to the default float dtype.

    Returns:
      An array of the shape and inexact dtype of x.
    """
    (x,) = inexact_arrays("gamma", x)
    if is_complex(typeof(x).dtype):
        return strong(jnp.exp(_complex_loggamma(x)))
    x = strong(x)
    return _sign(x) * jnp.exp(special.lgamma(x))


@operation
def digamma(x: ArrayLike) -> Array:
    """Compute elementwise the digamma function: the derivative of `gammaln`.

    Args:
      x: real numbers; integers and booleans are converted to the default float dtype.

    Returns:
      An array of the shape and floating-point dtype of x.

    Raises:
      TypeError: if x is complex.
    """
    return special.digamma(*inexact_arrays("digamma", x))


@operation
def polygamma(n: ArrayLike, x: ArrayLike) -> Array:
    """Compute elementwise the polygamma function: the derivative of order n of `digamma`.

    Args:
      n: nonnegative integers.
      x: real numbers.

    Raises:
      ValueError: if n is not of integers.
    """
    if not issubdtype(typeof(n).dtype, np.integer):
        raise ValueError(
            f"Argument `n` to polygamma must be of integer type. Got dtype {typeof(n).dtype}."
        )
    return special.polygamma(*inexact_arrays("polygamma", n, x))


@operation
def gammainc(a: ArrayLike, x: ArrayLike) -> Array:
    """Compute elementwise the regularized lower incomplete gamma function P(a, x).

    Args:
      a, x: arrays of real numbers that broadcast, a positive and x not negative.

    Raises:
      TypeError: if an argument is complex.
    """
    return special.igamma(*inexact_arrays("gammainc", a, x))


@operation
def gammaincc(a: ArrayLike, x: ArrayLike) -> Array:
    """Compute elementwise the regularized upper incomplete gamma function Q(a, x) = 1 - P(a, x).

    Args:
      a, x: arrays of real numbers that broadcast, a positive and x not negative.

    Raises:
      TypeError: if an argument is complex.
    """
    return special.igammac(*inexact_arrays("gammaincc", a, x))


def multigammaln(a: ArrayLike, d: ArrayLike) -> Array:
    """Compute elementwise the logarithm of the multivariate gamma function of dimension d.

    Args:
      a: real numbers, greater than (d - 1) / 2.
      d: the dimension, known while tracing.

    Raises:
      ConcretizationTypeError: if d is traced.
    """
    check_arraylike("multigammaln", a, d)
    return _multigammaln(a, d=int(d))


@operation(static_argnames=("d",))
def _multigammaln(a: ArrayLike, *, d: int) -> Array:
    (a,) = inexact_arrays("multigammaln", a)
    constant = 0.25 * d * (d - 1) * math.log(math.pi)
    halves = np.arange(d, dtype=typeof(a).dtype) / 2
    halves = halves.reshape((1,) * typeof(a).ndim + (-1,))
    return jnp.sum(special.lgamma(a[..., None] - halves), axis=-1) + constant


# ---- products of whole numbers -------------------------------------------------------------------


def factorial(n: ArrayLike, exact: bool = False) -> Array:
    """Compute elementwise the factorial, gamma(n + 1); 0 for negative n.

    Args:
      n: real numbers.
      exact: must be False.

    Raises:
      TypeError: if n is complex.
      NotImplementedError: if `exact` is True, as arrays hold no long integers.

    Example:
      >>> jax.scipy.special.factorial(jnp.array([0, 5, -1])).round()
      Array([  1., 120.,   0.], dtype=float32)
    """
    if exact:
        raise NotImplementedError(  # JAX raises this class.
            "factorial with exact=True: arrays hold no long integers. Use math.factorial."
        )
    return _factorial(n)


@operation
def _factorial(n: ArrayLike) -> Array:
    (n,) = inexact_arrays("factorial", n)
    size = jnp.exp(special.lgamma(n + 1))
    return jnp.where(n < 0, 0, size)


@operation(static_argnames=("repetition",))
def comb(N: ArrayLike, k: ArrayLike, *, repetition: bool = False) -> Array:
    """Compute elementwise the number of ways to choose k of N objects.

    It is 0 where k is greater than N, or one of them negative.

    Args:
      N, k: arrays of real numbers that broadcast.
      repetition: whether an object may be chosen several times.

    Raises:
      TypeError: if an argument is complex.

    Example:
      >>> jax.scipy.special.comb(jnp.array([5, 2]), jnp.array([2, 5])).round()
      Array([10.,  0.], dtype=float32)
    """
    n, k = inexact_arrays("comb", N, k)
    if not repetition:
        return in_float32(_binomial, n, k)
    nothing = (n == 0) & (k == 0)
    ways = in_float32(_binomial, n + k - 1, k)
    return jnp.where(n < 0, 0, jnp.where(nothing, jnp.ones_like(ways), ways))


def _binomial(n: Array, k: Array) -> Array:
    valid = (k <= n) & (n >= 0) & (k >= 0)
    n, k = jnp.where(valid, n, 0.0), jnp.where(valid, k, 0.0)
    small = jnp.minimum(k, n - k)
    rest = n - small + 1
    # Gamma's quotient at rest is its quotient at rest + 10 times a quotient of products, which are
    # in range since rest is at least half of n. This is faster than two more logarithms of gamma.
    near = rest < _SHIFT
    above, below = (jnp.where(near, x, 1.0) for x in (rest, n + 1))
    quotient = jnp.where(near, _rising(above) / _rising(below), 1.0)
    growth = _log_gamma_ratio(jnp.where(near, rest + _SHIFT, rest), small)
    size = jnp.exp(growth - special.lgamma(small + 1)) * quotient
    return jnp.where(valid, size, 0.0)


def _rising(x: Array) -> Array:
    """Return gamma(x + _SHIFT) / gamma(x)."""
    product = x
    for k in range(1, _SHIFT):
        product = product * (x + k)
    return product


def _log_gamma_ratio(x: Array, step: Array) -> Array:
    """Return log(gamma(x + step) / gamma(x)) for x >= 10, without cancellation of large terms."""
    end = x + step
    main = (end - 0.5) * jnp.log1p(step / x) + step * (jnp.log(x) - 1)
    return main + (_stirling(end) - _stirling(x))


@custom_jvp
def _poch(z: Array, m: Array) -> Array:
    end = z + m
    from_pole, to_pole = ((x <= 0) & (x > -jnp.inf) & (x == jnp.floor(x)) for x in (z, end))
    both = from_pole & to_pole
    # Gamma has no limit at minus infinity, where poles alternate.
    endless = ((z == -jnp.inf) | (end == -jnp.inf)) & ~from_pole
    # Between two poles the quotient is that of the reflected arguments.
    start, stop = jnp.where(both, 1 - end, z), jnp.where(both, 1 - z, end)
    far = (start >= 10) & (stop >= 10)
    # Arguments that are not reflected have exactly this step.
    step = jnp.where(far, m, 1.0)
    of_far = _log_gamma_ratio(jnp.where(far, start, 10.0), step)
    size = jnp.exp(jnp.where(far, of_far, special.lgamma(stop) - special.lgamma(start)))
    odd = jnp.fmod(m, 2) != 0
    sign = jnp.where(both, jnp.where(odd, -1, 1), _sign(start) * _sign(stop))
    quotient = jnp.where(from_pole & ~both, 0, jnp.where(to_pole & ~both, jnp.inf, sign * size))
    return jnp.where(m == 0, 1, jnp.where(endless | jnp.isnan(end), jnp.nan, quotient))


define_slopes(
    _poch,
    lambda t, result, z, m: t * result * (special.digamma(z + m) - special.digamma(z)),
    lambda t, result, z, m: t * result * special.digamma(z + m),
)


@as_custom_jvp
@operation
def poch(z: ArrayLike, m: ArrayLike) -> Array:
    """Compute elementwise the Pochhammer symbol, gamma(z + m) / gamma(z).

    Args:
      z, m: arrays of real numbers that broadcast.

    Raises:
      ValueError: if an argument is complex.
    """
    return in_float32(_poch, *strong_floats("poch", z, m))


# ---- beta ----------------------------------------------------------------------------------------


@custom_jvp
def _betaln(a: Array, b: Array) -> Array:
    small, large = jnp.minimum(a, b), jnp.maximum(a, b)
    total = small + large
    near = special.lgamma(small) + (special.lgamma(large) - special.lgamma(total))
    far = special.lgamma(small) - _log_gamma_ratio(large, small)
    logarithm = jnp.where(large < 10, near, far)
    return jnp.where((small == 0) & (large >= 0), jnp.inf, logarithm)


define_slopes(
    _betaln,
    lambda t, result, a, b: t * (special.digamma(a) - special.digamma(a + b)),
    lambda t, result, a, b: t * (special.digamma(b) - special.digamma(a + b)),
)


@operation
def betaln(a: ArrayLike, b: ArrayLike) -> Array:
    """Compute elementwise the logarithm of the absolute value of the beta function.

    Large arguments are subtracted in Stirling's series, as in DiDonato and Morris, "Algorithm 708:
    Significant digit computation of the incomplete beta function ratios" (1992).

    Args:
      a, b: arrays of real numbers that broadcast.

    Raises:
      TypeError: if an argument is complex.
    """
    a, b = inexact_arrays("betaln", a, b)
    if is_complex(typeof(a).dtype):
        raise TypeError(f"betaln does not accept dtype {typeof(a).dtype}, only real numbers.")
    return in_float32(_betaln, a, b)


@operation
def beta(a: ArrayLike, b: ArrayLike) -> Array:
    """Compute elementwise the beta function, gamma(a) gamma(b) / gamma(a + b).

    Args:
      a, b: arrays of real numbers that broadcast.

    Raises:
      ValueError: if an argument is complex.
    """
    a, b = strong_floats("beta", a, b)
    return _sign(a) * _sign(b) * _sign(a + b) * jnp.exp(in_float32(_betaln, a, b))


@operation
def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Compute elementwise the regularized incomplete beta function I_x(a, b).

    Args:
      a, b, x: arrays of real numbers that broadcast, a and b positive, x from 0 to 1.

    Raises:
      ValueError: if an argument is complex, or if the function is differentiated with respect to a
        or b.
    """
    return special.betainc(*floats("betainc", a, b, x))


# ---- zeta ----------------------------------------------------------------------------------------


@custom_jvp
def _zeta(x: Array, q: Array) -> Array:
    return special.zeta(x, q)


def _zeta_by_summation(x: Array, q: Array) -> Array:
    """Return the Hurwitz zeta function for q > 0, by Euler and Maclaurin: DLMF 25.11.5."""
    total: Array | float = 0.0
    for k in range(_SHIFT):
        total = total + jnp.exp(-x * jnp.log(q + k))
    end = q + _SHIFT
    power = jnp.exp(-x * jnp.log(end))
    total = total + power * (end / (x - 1) + 0.5)
    factor = x * power / end
    for k, coefficient in enumerate(STIRLING):
        # The factor B(2k + 2) / (2k + 2)! is Stirling's coefficient divided by (2k)!.
        total = total + factor * (coefficient / math.factorial(2 * k))
        factor = factor * (x + (2 * k + 1)) * (x + (2 * k + 2)) / (end * end)
    return total


def _zeta_by_order(t: Array, result: Array, x: Array, q: Array) -> Array:
    return strong(t) * jvp(lambda x: _zeta_by_summation(x, q), (x,), (jnp.ones_like(x),))[1]


define_slopes(_zeta, _zeta_by_order, lambda t, result, x, q: strong(t) * -x * _zeta(x + 1, q))


@as_custom_jvp
@operation
def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Array:
    """Compute elementwise the Hurwitz zeta function: the sum of (k + q) ** -x over k = 0, 1, 2, ...

    Args:
      x: real numbers greater than 1.
      q: real numbers that broadcast with x; 1 gives Riemann's zeta function.

    Raises:
      TypeError: if an argument is complex.
      NotImplementedError: if q is not passed.
    """
    if q is None:
        raise NotImplementedError(  # JAX raises this class.
            "Riemann zeta function not implemented: give q = 1 to zeta for it, where x > 1."
        )
    result = _zeta(*inexact_arrays("zeta", x, q))
    return strong(result) if typeof(result).shape else result


def bernoulli(n: int) -> Array:
    """Compute the Bernoulli numbers B(0), B(1), ..., B(n), with B(1) = -1/2.

    They are computed exactly from the tangent numbers, and then rounded. The method is that of
    Brent and Harvey, "Fast computation of Bernoulli, Tangent and Secant numbers" (2011).

    Args:
      n: a nonnegative integer.

    Returns:
      An array of shape (n + 1,).

    Raises:
      TypeError: if n is not an integer.
      ValueError: if n is negative.

    Example:
      >>> jax.scipy.special.bernoulli(2).round(2)
      Array([ 1.  , -0.5 ,  0.17], dtype=float32)
    """
    n = operator.index(n)
    if n < 0:
        raise ValueError(f"n must be a non-negative integer, got {n}.")
    return jnp.asarray(_bernoulli(n)[: n + 1])


def _bernoulli(n: int) -> np.ndarray:
    values = np.zeros(max(n + 1, 2))
    values[:2] = 1, -0.5
    # Bernoulli numbers of greater index exceed float64.
    greatest = 258
    count = min(n, greatest) // 2
    tangent = [math.factorial(k) for k in range(count)]
    for k in range(1, count):
        for j in range(k, count):
            tangent[j] = (j - k) * tangent[j - 1] + (j - k + 2) * tangent[j]
    for k, number in enumerate(tangent, 1):
        power = 4**k
        values[2 * k] = (-1) ** (k - 1) * float(Fraction(2 * k * number, power * (power - 1)))
    for k in range(greatest + 2, n + 1, 2):
        values[k] = math.inf if k % 4 else -math.inf
    return values
