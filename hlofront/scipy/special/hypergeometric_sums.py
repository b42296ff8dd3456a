"""What both hypergeometric functions are made of: sums, quotients of gamma, derivatives."""

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import hlofront.numpy as jnp
from hlofront.base.dtypes import finfo
from hlofront.core.aval import typeof
from hlofront.higher_order.custom_jvp import custom_jvp
from hlofront.higher_order.custom_rule import SymbolicZero
from hlofront.higher_order.while_loop import fori_loop, while_loop
from hlofront.primitives import special
from hlofront.transforms.grad import jvp

# More terms than any argument needs that the series is used for.
_MOST = 4000


def sum_of_terms(ratio: Callable[[Any], tuple[Any, Any]], like: Any) -> tuple[Any, Any, Any]:
    """The sum of terms from 1 on, which does not overflow.

    ratio(k) are numerator and denominator of the quotient of the next term and the k-th; where the
    numerator is zero the sum has ended.

    Returns:
      (the sum over 2**exponent, exponent, how much greater the greatest term is than the sum).
    """
    limits = finfo(typeof(like).dtype)
    least = float(limits.eps) / 64
    block = 200 if limits.nmant > 30 else 40
    large = 2.0**block

    def unfinished(carry):
        # Derivatives are carried as well, and are a few terms late.
        return (carry[0] < _MOST) & jnp.any(carry[-1] < 8)

    def step(carry):
        k, term, total, most, blocks, small = carry
        above, below = ratio(k)
        ended = (term == 0) | (above == 0)
        term = jnp.where(ended, 0.0, term * (above / jnp.where(ended, 1.0, below)))
        total = total + term
        most = jnp.maximum(most, jnp.abs(term))
        full = (most > large) & jnp.isfinite(total)
        term, total, most = (jnp.where(full, x * (1 / large), x) for x in (term, total, most))
        tiny = (jnp.abs(term) <= least * jnp.abs(total)) | ~jnp.isfinite(total)
        blocks = jnp.where(full, blocks + 1, blocks)
        return k + 1, term, total, most, blocks, jnp.where(tiny, small + 1, 0)

    one = jnp.ones_like(like)
    counts = jnp.zeros(typeof(like).shape, int)
    start = (jnp.asarray(0, typeof(like).dtype), one, one, one, counts, counts)
    _, _, total, most, blocks, small = while_loop(unfinished, step, start)
    size = jnp.where(total == 0, 1.0, jnp.abs(total))
    loss = jnp.where((small >= 8) & jnp.isfinite(total), jnp.maximum(most / size, 1), jnp.inf)
    return total, blocks * block, jnp.where(loss == loss, loss, jnp.inf)


def start_of_series(ratio: Callable[[Any], tuple[Any, Any]], x: Any) -> tuple[Any, Any]:
    """The sum of a power series and that of its derivative, for so small an x that 40 terms do.

    ratio(k) are numerator and denominator of the quotient of the coefficients k + 1 and k.
    """

    def step(k, carry):
        last, total, slope = carry
        k = 1.0 * k
        above, below = ratio(k)
        # Coefficients are carried with a power less, so that x need not divide.
        coefficient = last * (above / below)
        ahead = coefficient * x
        return ahead, total + ahead, slope + (k + 1) * coefficient

    one = jnp.ones_like(x)
    return fori_loop(0, 40, step, (one, one, jnp.zeros_like(x)))[1:]


def scaled(total: Any, exponent: Any, x: Any) -> Any:
    """total 2**exponent exp(x), where the parts need not fit but the product may."""
    half = jnp.exp(x / 2)
    wide = typeof(x).dtype.itemsize == 8
    logarithm = x + jnp.asarray(exponent, typeof(x).dtype) * math.log(2)
    fits = (jnp.abs(x) < (1400 if wide else 160)) & (logarithm - x / 2 < (500 if wide else 55))
    product = jnp.ldexp(total * jnp.where(fits, half, 1.0), jnp.where(fits, exponent, 0)) * half
    return jnp.where(fits, product, total * jnp.exp(jnp.where(fits, 0.0, logarithm)))


def is_pole(x: Any) -> Any:
    """Where gamma has one: 0 and negative whole numbers."""
    return (x <= 0) & (x == jnp.floor(x))


# ---- the gamma function --------------------------------------------------------------------------

# Of Stirling's series for the logarithm, DLMF 5.11.1, from 1 / x on.
_STIRLING = (
    1 / 12,
    -1 / 360,
    1 / 1260,
    -1 / 1680,
    1 / 1188,
    -691 / 360360,
    1 / 156,
    -3617 / 122400,
)
_STIRLING_FROM = 10


@custom_jvp
def _gamma(x: Any) -> Any:
    """To a few units in the last place, where neither it nor its inverse overflows; x no pole.

    By Stirling's formula, in whose power the digits of the logarithm are not lost; by recurrence
    for what is small, and by reflection for what is negative.
    """
    reflected = x < 0.5
    right = jnp.where(reflected, 1 - x, x)
    small = right < _STIRLING_FROM
    product: Any = jnp.where(small, right, 1.0)
    for k in range(1, _STIRLING_FROM):
        product = product * jnp.where(small, right + k, 1.0)
    far = jnp.where(small, right + _STIRLING_FROM, right)
    lost = jnp.where(small, right - (far - _STIRLING_FROM), 0.0)
    # What 1 - x was rounded by.
    change = right - 1
    lost = lost + jnp.where(reflected, (1 - (right - change)) - (x + change), 0.0)
    inverse = 1 / far
    series: Any = 0.0
    for coefficient in reversed(_STIRLING if typeof(x).dtype.itemsize == 8 else _STIRLING[:3]):
        series = series * (inverse * inverse) + coefficient
    # exp(series / x + lost digamma(x)), of something small.
    correction = series * inverse + lost * (jnp.log(far) - 0.5 * inverse)
    root = far ** (0.5 * far - 0.25)
    value = root * jnp.exp(-far) * root / product
    value = math.sqrt(2 * math.pi) * (value + value * jnp.expm1(correction))
    apart = x - jnp.round(x)
    sine = jnp.sin(math.pi * jnp.where(reflected, apart, 0.5))
    sine = jnp.where(reflected & (jnp.fmod(jnp.round(x), 2) != 0), -sine, sine)
    return jnp.where(reflected, math.pi / (sine * value), value)


_gamma.defjvps(lambda t, result, x: t * result * special.digamma(x))


def gamma_quotient(above: Sequence[Any], below: Sequence[Any]) -> Any:
    """gamma(above[0]) gamma(above[1]) / (gamma(below[0]) gamma(below[1])).

    It is 0 at poles of the latter. Logarithms are added up, so that none overflows, where not all
    fit.
    """
    # Rows in turn, so that products stay small; reductions, so that each row is computed once.
    values = jnp.stack([above[0], below[0], above[1], below[1]])
    inverted = np.arange(4).reshape((4,) + (1,) * (typeof(values).ndim - 1)) % 2 == 1
    poles = is_pole(values)
    ended = jnp.any(poles & inverted, axis=0)
    values = jnp.where(poles, 1.0, values)
    most = 140 if typeof(values).dtype.itemsize == 8 else 33
    near = jnp.abs(values) < most
    size = _gamma(jnp.where(near, values, 1.0))
    direct = jnp.prod(jnp.where(inverted, 1 / size, size), axis=0)
    logarithms = special.lgamma(values)
    logarithm = jnp.sum(jnp.where(inverted, -logarithms, logarithms), axis=0)
    negative = (values < 0) & (jnp.fmod(jnp.floor(values), 2) != 0)
    odd = jnp.sum(negative, axis=0) % 2 != 0
    fits = jnp.all(near, axis=0) & jnp.isfinite(direct) & (direct != 0)
    beyond = jnp.exp(jnp.where(fits, 0.0, logarithm))
    found = jnp.where(fits, direct, jnp.where(odd, -beyond, beyond))
    return jnp.where(ended, 0.0, found)


# ---- derivatives ---------------------------------------------------------------------------------


def by_parts(function: Callable[..., Any], slope: Callable[..., Any]) -> Any:
    """A function whose derivative in the last argument is `slope`, and in others is carried along.

    Loops that stop by themselves have forward derivatives alone: those in each argument are made
    that way, times the tangent, which reverse mode can transpose.
    """

    @custom_jvp
    def whole(*args):
        return function(*args)

    def rule(primals, tangents):
        # What is not differentiated is not to be in the program: it is long as it is.
        *parameters, x = primals
        shares = []
        for i, parameter in enumerate(parameters):
            if isinstance(tangents[i], SymbolicZero):
                continue

            def of_one(value, i=i):
                return function(*parameters[:i], value, *parameters[i + 1 :], x, by_parameters=True)

            share = jvp(of_one, (parameter,), (jnp.ones_like(parameter),))[1]
            shares.append(tangents[i] * share)
        if not isinstance(tangents[-1], SymbolicZero):
            shares.insert(0, tangents[-1] * slope(*primals))
        return whole(*primals), functools.reduce(operator.add, shares)

    whole.defjvp(rule, symbolic_zeros=True)
    return whole
