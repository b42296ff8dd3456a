"""Hypergeometric functions: Kummer's 1F1 and Gauss's 2F1."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import hlofront.numpy as jnp
from hlofront.base.dtypes import finfo
from hlofront.core.aval import typeof
from hlofront.higher_order.custom_jvp import custom_jvp
from hlofront.higher_order.while_loop import fori_loop, while_loop
from hlofront.numpy.creation import asarray
from hlofront.primitives import special
from hlofront.runtime.operation import operation
from hlofront.scipy.special.arguments import in_float32, strong_floats
from hlofront.transforms.grad import jvp

# More terms than any argument needs that the series is used for.
_MOST = 4000


def _sum(ratio: Callable[[Any], tuple[Any, Any]], like: Any) -> tuple[Any, Any, Any]:
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
        return k + 1, term, total, most, blocks + full, jnp.where(tiny, small + 1, 0)

    one = jnp.ones_like(like)
    counts = jnp.zeros(typeof(like).shape, int)
    start = (jnp.asarray(0, typeof(like).dtype), one, one, one, counts, counts)
    _, _, total, most, blocks, small = while_loop(unfinished, step, start)
    size = jnp.where(total == 0, 1.0, jnp.abs(total))
    loss = jnp.where((small >= 8) & jnp.isfinite(total), jnp.maximum(most / size, 1), jnp.inf)
    return total, blocks * block, jnp.where(loss == loss, loss, jnp.inf)


def _scaled(total: Any, exponent: Any, x: Any) -> Any:
    """total 2**exponent exp(x), where the parts need not fit but the product may."""
    half = jnp.exp(x / 2)
    wide = typeof(x).dtype.itemsize == 8
    logarithm = x + jnp.asarray(exponent, typeof(x).dtype) * math.log(2)
    fits = (jnp.abs(x) < (1400 if wide else 160)) & (logarithm - x / 2 < (500 if wide else 55))
    product = jnp.ldexp(total * jnp.where(fits, half, 1.0), jnp.where(fits, exponent, 0)) * half
    return jnp.where(fits, product, total * jnp.exp(jnp.where(fits, 0.0, logarithm)))


def _inverse_gamma(x: Any) -> Any:
    """1 / gamma(x): 0 at the poles."""
    pole = _is_pole(x)
    size = jnp.exp(-special.lgamma(jnp.where(pole, 1.0, x)))
    return jnp.where(pole, 0.0, _sign_of_gamma(x) * size)


def _sign_of_gamma(x: Any) -> Any:
    return jnp.where((x < 0) & (jnp.fmod(jnp.floor(x), 2) != 0), -1.0, 1.0)


def _gamma(x: Any) -> Any:
    return 1 / _inverse_gamma(x)


def _is_pole(x: Any) -> Any:
    return (x <= 0) & (x == jnp.floor(x))


def _by_parts(function: Callable[..., Any], slope: Callable[..., Any]) -> Any:
    """A function whose derivative in the last argument is `slope`, and in others is carried along.

    Loops that stop by themselves have forward derivatives alone: those in each argument are made
    that way, times the tangent, which reverse mode can transpose.
    """

    @custom_jvp
    def whole(*args):
        return function(*args)

    @whole.defjvp
    def _(primals, tangents):
        *parameters, x = primals
        moved = tangents[-1] * slope(*primals)
        for i, parameter in enumerate(parameters):

            def of_one(value, i=i):
                return function(*parameters[:i], value, *parameters[i + 1 :], x, by_parameters=True)

            share = jvp(of_one, (parameter,), (jnp.ones_like(parameter),))[1]
            moved = moved + tangents[i] * share
        return whole(*primals), moved

    return whole


# ---- Kummer's ------------------------------------------------------------------------------------

# Of the steps along the differential equation: how many Taylor coefficients each has, and how many
# there are at most.
_ORDER, _MOST_STEPS = 22, 20000
# From where on the asymptotic series is used, and how many terms it has.
_FAR, _FAR_TERMS = 700.0, 32


def _kummer_series(top: Any, b: Any, x: Any) -> tuple[Any, Any, Any]:
    return _sum(lambda k: ((top + k) * x, (b + k) * (k + 1)), x)


def _kummer_by_steps(top: Any, b: Any, x: Any, used: Any) -> Any:
    """1F1 where it oscillates: for x > 0 and top below -x / 4, by Taylor series at several places.

    They are the solution of the equation DLMF 13.2.1, started near 0 by the series; equally far
    apart in the root of x, as the zeros are.
    """
    start, steps = _steps(top, b, x, used)

    def place(j):
        return x * jnp.square(j / steps)

    def along(j, carry):
        value, slope = carry
        j = 1.0 * j
        here = place(j)
        step = x * ((2 * j + 1) / jnp.square(steps))
        share = (2 * j + 1) / jnp.square(j)

        def term(k, carry):
            # Taylor coefficients, times the power of the step.
            before, last, value, slope = carry
            ahead = (k + top) * before * step - (k + b - here) * (k + 1) * last
            ahead = ahead * (share / ((k + 1) * (k + 2)))
            return last, ahead, value + ahead, slope + (k + 2) * ahead

        first = (value, slope * step, value + slope * step, slope * step)
        found = fori_loop(0, _ORDER, lambda k, c: term(1.0 * k, c), first)
        return found[2], found[3] / step

    first = place(start)
    value = _kummer_series(top, b, first)[0]
    slope = top / b * _kummer_series(top + 1, b + 1, first)[0]
    # No steps where no element has use for them.
    return fori_loop(start.astype(int), steps.astype(int), along, (value, slope))[0]


def _steps(top: Any, b: Any, x: Any, used: Any) -> tuple[Any, Any]:
    """The first step and the last: short beside where they are, the more so for large b."""
    start = 12 + 2 * jnp.ceil(jnp.max(jnp.where(used, jnp.abs(b), 0.0), initial=0))
    waves = jnp.max(jnp.where(used, jnp.sqrt(-top * x), 0.0), initial=0)
    return start, jnp.where(jnp.any(used), jnp.ceil(start * (1 + waves)), start)


def _laguerre(degree: Any, b: Any, x: Any) -> Any:
    """1F1(-degree; b; x), a polynomial, by the recurrence DLMF 13.3.1: stable for x > 0."""

    def step(k, carry):
        before, here = carry
        order = 1.0 * k
        ahead = ((2 * order + b - x) * here - order * before) / (b + order)
        return jnp.where(order < degree, here, before), jnp.where(order < degree, ahead, here)

    one = jnp.ones_like(x)
    end = jnp.max(degree, initial=0).astype(int)
    return fori_loop(0, end, step, (one, one))[1]


def _kummer(a: Any, b: Any, x: Any, by_parameters: bool = False) -> Any:
    ends = _is_pole(a) & ~(_is_pole(b) & (a < b))
    # exp(x) 1F1(b - a; b; -x) has terms of one sign where the other's alternate.
    turned = (x < 0) & ~ends
    top = jnp.where(turned, b - a, a)
    size = jnp.abs(x)
    upper = turned | (x > 0)
    far = (size > _FAR) & (size > 2 * (jnp.abs(a) + 1) * (jnp.abs(b) + 1)) & ~ends & ~_is_pole(b)
    undefined = (a != a) | (b != b) | (x != x)
    # Where terms alternate at first, and are far greater than their sum.
    waves = (
        upper
        & (top < 0)
        & (size * -top > 12 * jnp.abs(b) + 25)
        & (size < 8 * -top)
        & ~_is_pole(b)
        & ~undefined
    )
    by_recurrence = waves & _is_pole(top) & (b > 0) & (top > -5000)
    if by_parameters:
        # Neighbours of polynomials are none.
        by_recurrence = by_recurrence & False
    longest = (12 + 2 * jnp.abs(b)) * jnp.sqrt(size * jnp.abs(top))
    by_steps = waves & ~by_recurrence & (longest < _MOST_STEPS)
    plain = ~(far | by_steps | by_recurrence | undefined)
    series, exponent, _ = _kummer_series(
        jnp.where(plain, top, 1.0),
        jnp.where(plain, b, 1.0),
        jnp.where(plain, jnp.where(turned, size, x), 0.0),
    )
    found = jnp.where(by_steps, 0.0, series)
    stepped = [jnp.where(by_steps, value, 1.0) for value in (top, b, size)]
    found = jnp.where(by_steps, _kummer_by_steps(*stepped, by_steps), found)
    if not by_parameters:
        degree = jnp.where(by_recurrence, -top, 0.0)
        safe = [jnp.where(by_recurrence, value, 1.0) for value in (b, size)]
        found = jnp.where(by_recurrence, _laguerre(degree, *safe), found)
    found = _scaled(found, exponent, jnp.where(turned & ~far, x, 0.0))
    # DLMF 13.7.1 for x > 0, 13.7.2 for x < 0: the greater of its two parts.
    large = jnp.where(far, size, 1e6)
    first, second = jnp.where(x < 0, a, 1 - a), jnp.where(x < 0, a - b + 1, b - a)
    total, term = jnp.ones_like(x), jnp.ones_like(x)
    for k in range(_FAR_TERMS):
        term = term * ((first + k) * (second + k) / ((k + 1) * large))
        total = total + term
    power = jnp.where(x < 0, -a, a - b) * jnp.log(large)
    denominator = _inverse_gamma(jnp.where(x < 0, b - a, a))
    growth = jnp.where(x < 0, 0.0, jnp.where(far, x, 0.0))
    asymptotic = total * denominator * _gamma(b) * jnp.exp(power + growth)
    found = jnp.where(far, asymptotic, found)
    found = jnp.where((a == b) & ~_is_pole(b), jnp.exp(x), found)
    found = jnp.where((x == 0) | (a == 0), 1.0, found)
    # At a pole of 1 / (b)_k that no zero of (a)_k comes before.
    infinite = _is_pole(b) & ~ends & (a != 0) & (x != 0)
    found = jnp.where(infinite, jnp.inf, found)
    return jnp.where(undefined, jnp.nan, found)


_hyp1f1 = _by_parts(_kummer, lambda a, b, x: a / b * _hyp1f1(a + 1, b + 1, x))


@operation
def hyp1f1(a: Any, b: Any, x: Any) -> Any:
    """Elementwise Kummer's confluent hypergeometric function, M(a, b, x).

    By its series, Kummer's transformation and, far out, the asymptotic series of DLMF 13.7; where
    it oscillates by Taylor series along its differential equation, as in Pearson, Olver and Porter,
    "Numerical methods for the computation of the confluent and Gauss hypergeometric functions"
    (2017).

    Args:
      a, b, x: arrays of real numbers that broadcast.

    Raises:
      ValueError: if one is complex.
    """
    values = [asarray(value) for value in (a, b, x)]
    return in_float32(_hyp1f1, *strong_floats("hyp1f1", *values))


# ---- Gauss's -------------------------------------------------------------------------------------


def _gauss_sum(a: Any, b: Any, c: Any, x: Any) -> tuple[Any, Any, Any]:
    return _sum(lambda k: ((a + k) * (b + k) * x, (c + k) * (k + 1)), x)


def _gauss_series(a: Any, b: Any, c: Any, x: Any) -> Any:
    total, exponent, _ = _gauss_sum(a, b, c, x)
    return jnp.ldexp(total, exponent)


def _gamma_quotient(above: tuple[Any, Any], below: tuple[Any, Any]) -> Any:
    """gamma(above[0]) gamma(above[1]) / (gamma(below[0]) gamma(below[1])).

    It is 0 at poles of the latter. Logarithms are added up, so that none overflows, where not all
    fit.
    """
    small = jnp.asarray(True)
    logarithm, sign = 0.0, 1.0
    ended = jnp.asarray(False)
    direct = 1.0
    for values, power in ((above, 1), (below, -1)):
        for value in values:
            pole = _is_pole(value)
            ended = ended | (pole if power < 0 else False)
            value = jnp.where(pole, 1.0, value)
            small = small & (jnp.abs(value) < 20)
            part = special.lgamma(value)
            logarithm = logarithm + power * part
            sign = sign * _sign_of_gamma(value)
            fits = jnp.exp(jnp.where(jnp.abs(value) < 20, part, 0.0))
            direct = direct * fits if power > 0 else direct / fits
    found = jnp.where(small, direct, jnp.exp(jnp.where(small, 0.0, logarithm)))
    return jnp.where(ended, 0.0, sign * found)


def _near_one(a: Any, b: Any, c: Any, x: Any) -> Any:
    """For x near 1 and c - a - b no integer, DLMF 15.8.4."""
    rest = 1 - x
    excess = c - a - b
    first = _gamma_quotient((c, excess), (c - a, c - b))
    second = _gamma_quotient((c, -excess), (a, b)) * rest**excess
    return first * _gauss_series(a, b, 1 - excess, rest) + second * _gauss_series(
        c - a, c - b, 1 + excess, rest
    )


# Terms of the logarithmic case, and the greatest integer that it is used for.
_LOG_TERMS, _LOG_MOST = 80, 4


def _near_one_by_logarithm(a: Any, b: Any, m: Any, x: Any) -> Any:
    """For x near 1 and c = a + b + m, m one of the integers 0, ..., 4: DLMF 15.8.10."""
    rest = 1 - x
    factorials = jnp.exp(special.lgamma(jnp.maximum(m, 1)))
    term = factorials * _gamma_quotient((a + b + m, jnp.ones_like(x)), (a + m, b + m))
    total = jnp.zeros_like(x)
    for k in range(_LOG_MOST):
        total = total + jnp.where(k < m, term, 0.0)
        later = (a + k) * (b + k) * -rest / ((k + 1) * jnp.maximum(m - k - 1, 1))
        term = term * later
    logarithm = jnp.log(rest)
    term = _gamma_quotient((a + b + m, jnp.ones_like(x)), (a, b)) * (-rest) ** m
    term = term * jnp.exp(-special.lgamma(m + 1))
    # Sums of 1 / k, by which the four digammas go on.
    bracket = special.digamma(a + m) + special.digamma(b + m) + logarithm
    bracket = bracket + np.euler_gamma - special.digamma(m + 1)

    def step(k, carry):
        term, bracket, total = carry
        total = total - term * bracket
        bracket = bracket + 1 / (a + m + k) + 1 / (b + m + k) - 1 / (k + 1) - 1 / (k + m + 1)
        term = term * ((a + m + k) * (b + m + k) * rest / ((k + 1) * (k + m + 1)))
        return term, bracket, total

    return fori_loop(0, _LOG_TERMS, lambda k, c: step(1.0 * k, c), (term, bracket, total))[2]


def _gauss_of_four(a: Any, b: Any, c: Any, x: Any, ends: Any, used: Any) -> Any:
    """By the series, as it is or transformed by DLMF 15.8.1: where terms cancel least."""
    base = 1 - x
    turned = x / -base
    other_ends = _is_pole(c - a) | _is_pole(c - b)
    regular = ~_is_pole(c)
    short = jnp.abs(x) < 1
    # Parameters, argument, power of 1 - x, and where it is one.
    ways = (
        (a, b, x, jnp.zeros_like(x), short | ends),
        (c - a, c - b, x, c - a - b, (short | other_ends) & regular),
        (a, c - b, turned, -a, (x < 0.5) & regular),
        (c - a, b, turned, -b, (x < 0.5) & regular),
    )
    p, q, argument, power, valid = (jnp.stack(several) for several in zip(*ways, strict=True))
    valid = valid & used
    p, q = (jnp.where(valid, value, 1.0) for value in (p, q))
    total, exponent, loss = _gauss_sum(
        p, q, jnp.where(used, c, 1.0), jnp.where(valid, argument, 0.0)
    )
    # What is no more than the logarithm is known of has fewer digits.
    factor = jnp.where(used, base, 1.0) ** jnp.where(valid, power, 0.0)
    fits = (factor > float(finfo(typeof(x).dtype).tiny)) & (factor < jnp.inf)
    logarithm = jnp.where(fits, 0.0, power * jnp.log(jnp.where(used, base, 1.0)))
    beyond = _scaled(total, exponent, logarithm)
    total = jnp.where(fits, jnp.ldexp(total * jnp.where(fits, factor, 1.0), exponent), beyond)
    loss = jnp.where(valid, jnp.where(fits, loss, 100 * loss), jnp.inf)
    best, found = loss[0], total[0]
    for way in range(1, 4):
        # Of ways that are nearly as good, the one that has no power to take.
        better = loss[way] * 8 < best
        best, found = jnp.where(better, loss[way], best), jnp.where(better, total[way], found)
    return found


def _gauss(a: Any, b: Any, c: Any, x: Any, by_parameters: bool = False) -> Any:
    ends = (_is_pole(a) & ~(_is_pole(c) & (a < c))) | (_is_pole(b) & ~(_is_pole(c) & (b < c)))
    other_ends = (_is_pole(c - a) | _is_pole(c - b)) & ~_is_pole(c)
    # Near 1, also where minus infinity is taken there: so that c - a - b is positive.
    turned = x < 0
    argument = jnp.where(turned, x / (x - 1), x)
    rest = jnp.where(turned, 1 / (1 - x), 1 - x)
    p, q = a, jnp.where(turned, c - b, b)
    power = jnp.where(turned, a, 0.0)
    mended = c - p - q < 0
    power = power + jnp.where(mended, c - p - q, 0.0)
    p, q = jnp.where(mended, c - p, p), jnp.where(mended, c - q, q)
    excess = c - p - q
    # How many terms the series has before they are nothing.
    wanted = -math.log(float(finfo(typeof(x).dtype).eps))
    near = (argument > 0.9) & (argument < 1) & ~ends & ~_is_pole(c)
    decay = -jnp.log1p(-jnp.where(near, rest, 0.5))
    long = (wanted > math.log(400.0) * (excess + 1)) | (
        (x > 0) & (other_ends | (mended & (jnp.minimum(p, q) < -1)))
    )
    polynomial = _is_pole(p) | _is_pole(q)
    near = near & (wanted > 400 * decay) & long & (~polynomial | (x > 0))
    whole = jnp.abs(excess - jnp.round(excess)) < (1e-9 if wanted > 30 else 1e-4)
    by_logarithm = near & whole & (excess < _LOG_MOST + 0.5) & ~polynomial
    if by_parameters:
        # The formula is for c = a + b + m alone.
        by_logarithm = by_logarithm & False
    close = near & ~whole
    inside = (x < 1) | ends
    plain = inside & ~close & ~by_logarithm & (x == x)
    safe = [jnp.where(plain, value, 1.0) for value in (a, b, c)]
    found = _gauss_of_four(*safe, jnp.where(plain, x, 0.0), ends, plain)
    of_close = _near_one(
        *(jnp.where(close, value, safe) for value, safe in ((p, 0.3), (q, 0.4), (c, 1.1))),
        jnp.where(close, argument, 0.95),
    )
    factor = jnp.where(near, rest, 1.0) ** jnp.where(near, power, 0.0)
    found = jnp.where(close, of_close * factor, found)
    if not by_parameters:
        of_logarithm = _near_one_by_logarithm(
            *(jnp.where(by_logarithm, value, 1.0) for value in (p, q, jnp.round(excess))),
            jnp.where(by_logarithm, argument, 0.95),
        )
        found = jnp.where(by_logarithm, of_logarithm * factor, found)
    # Gauss's sum, DLMF 15.4.20.
    excess = c - a - b
    positive = excess > 0
    of_one = _gamma_quotient((c, jnp.where(positive, excess, 1.0)), (c - a, c - b))
    of_one = jnp.where(positive, of_one, jnp.inf)
    found = jnp.where((x == 1) & ~ends, of_one, jnp.where(inside, found, jnp.inf))
    found = jnp.where((x == 0) | (a == 0) | (b == 0), 1.0, found)
    undefined = _is_pole(c) & ~ends & (x != 0) & (a != 0) & (b != 0)
    found = jnp.where(undefined, jnp.inf, found)
    return jnp.where((a != a) | (b != b) | (c != c) | (x != x), jnp.nan, found)


_hyp2f1 = _by_parts(_gauss, lambda a, b, c, x: a * b / c * _hyp2f1(a + 1, b + 1, c + 1, x))


@operation
def hyp2f1(a: Any, b: Any, c: Any, x: Any) -> Any:
    """Elementwise Gauss's hypergeometric function, F(a, b; c; x).

    By its series, in that of four forms, DLMF 15.8.1, whose terms cancel least, and near 1 by DLMF
    15.8.4 and 15.8.10; infinite for x > 1, on its branch cut, unless it is a polynomial.

    Args:
      a, b, c, x: arrays of real numbers that broadcast.

    Raises:
      ValueError: if one is complex.
    """
    values = [asarray(value) for value in (a, b, c, x)]
    return in_float32(_hyp2f1, *strong_floats("hyp2f1", *values))
