"""Hypergeometric functions: Kummer's 1F1 and Gauss's 2F1."""

from collections.abc import Callable
from typing import Any

import hlofront.numpy as jnp
from hlofront.base.dtypes import finfo
from hlofront.core.aval import typeof
from hlofront.higher_order.custom_jvp import custom_jvp
from hlofront.higher_order.while_loop import while_loop
from hlofront.numpy.creation import asarray
from hlofront.primitives import special
from hlofront.runtime.operation import operation
from hlofront.scipy.special.arguments import in_float32, strong_floats
from hlofront.transforms.grad import jvp

# More terms than any argument needs that the series is used for.
_MOST = 2500


def _sum(ratio: Callable[[Any], Any], like: Any) -> Any:
    """The sum of terms from 1 on, of which ratio(k) is the quotient of the next and the k-th."""
    least = float(finfo(typeof(like).dtype).eps) / 64

    def unfinished(carry):
        k, _, _, small = carry
        # Derivatives are carried as well, and are a few terms late.
        return (k < _MOST) & jnp.any(small < 8)

    def step(carry):
        k, term, total, small = carry
        # What has ended stays so, also where a zero below follows the one above.
        term = jnp.where(term == 0, 0.0, term * ratio(k))
        total = total + term
        tiny = (jnp.abs(term) <= least * jnp.abs(total)) | ~jnp.isfinite(total)
        return k + 1, term, total, jnp.where(tiny, small + 1, 0)

    one = jnp.ones_like(like)
    counts = jnp.zeros(typeof(like).shape, int)
    start = (jnp.asarray(0, typeof(like).dtype), one, one, counts)
    return while_loop(unfinished, step, start)[2]


def _inverse_gamma(x: Any) -> Any:
    """1 / gamma(x): 0 at the poles."""
    pole = _is_pole(x)
    whole = jnp.floor(x)
    sign = jnp.where((x < 0) & (jnp.fmod(whole, 2) != 0), -1.0, 1.0)
    return jnp.where(pole, 0.0, sign * jnp.exp(-special.lgamma(jnp.where(pole, 1.0, x))))


def _gamma(x: Any) -> Any:
    return 1 / _inverse_gamma(x)


def _is_pole(x: Any) -> Any:
    return (x <= 0) & (x == jnp.floor(x))


def _by_parts(function: Callable[..., Any], slope: Callable[..., Any]) -> Any:
    """A function whose derivative in the last argument is `slope`, and in others is carried along.

    Loops that stop by themselves have forward derivatives alone: those in each argument are made
    that way, times the tangent, which reverse mode can transpose.
    """
    whole = custom_jvp(function)

    @whole.defjvp
    def _(primals, tangents):
        *parameters, x = primals
        moved = tangents[-1] * slope(*primals)
        for i, parameter in enumerate(parameters):

            def of_one(value, i=i):
                return function(*parameters[:i], value, *parameters[i + 1 :], x)

            share = jvp(of_one, (parameter,), (jnp.ones_like(parameter),))[1]
            moved = moved + tangents[i] * share
        return whole(*primals), moved

    return whole


# ---- Kummer's ------------------------------------------------------------------------------------


def _kummer(a: Any, b: Any, x: Any) -> Any:
    ends = _is_pole(a)
    # exp(x) 1F1(b - a; b; -x) has terms of one sign where the other's alternate.
    turned = (x < 0) & ~ends
    top = jnp.where(turned, b - a, a)
    size = jnp.where(turned, -x, x)
    far = (size > 50) & (size > 2 * (jnp.abs(a) + 1) * (jnp.abs(b) + 1)) & ~ends & ~_is_pole(b)
    near = jnp.where(far | (x != x), 0.0, size)
    series = _sum(lambda k: (top + k) / (b + k) * (near / (k + 1)), x)
    series = jnp.where(turned, jnp.exp(x), 1.0) * jnp.where(near == 0, 1.0, series)
    # DLMF 13.7.1 for x > 0, 13.7.2 for x < 0: the greater of its two parts.
    large = jnp.where(far, jnp.abs(x), 1e6)
    first, second = jnp.where(x < 0, a, 1 - a), jnp.where(x < 0, a - b + 1, b - a)
    total, term = jnp.ones_like(x), jnp.ones_like(x)
    for k in range(24):
        term = term * ((first + k) * (second + k) / ((k + 1) * large))
        total = total + term
    power = jnp.where(x < 0, -a, a - b) * jnp.log(large)
    denominator = _inverse_gamma(jnp.where(x < 0, b - a, a))
    growth = jnp.where(x < 0, 0.0, jnp.where(far, x, 0.0))
    asymptotic = total * denominator * _gamma(b) * jnp.exp(power + growth)
    found = jnp.where(far, asymptotic, series)
    found = jnp.where((a == b) & ~_is_pole(b), jnp.exp(x), found)
    found = jnp.where((x == 0) | (a == 0), 1.0, found)
    # At a pole of 1 / (b)_k that no zero of (a)_k comes before.
    undefined = _is_pole(b) & ~(ends & (a >= b)) & (a != 0) & (x != 0)
    found = jnp.where(undefined, jnp.inf, found)
    return jnp.where((a != a) | (b != b) | (x != x), jnp.nan, found)


_hyp1f1 = _by_parts(_kummer, lambda a, b, x: a / b * _hyp1f1(a + 1, b + 1, x))


@operation
def hyp1f1(a: Any, b: Any, x: Any) -> Any:
    """Elementwise Kummer's confluent hypergeometric function, M(a, b, x).

    By its series, Kummer's transformation and, far out, the asymptotic series of DLMF 13.7.

    Args:
      a, b, x: arrays of real numbers that broadcast.

    Raises:
      ValueError: if one is complex.
    """
    values = [asarray(value) for value in (a, b, x)]
    return in_float32(_hyp1f1, *strong_floats("hyp1f1", *values))


# ---- Gauss's -------------------------------------------------------------------------------------


def _gauss_series(a: Any, b: Any, c: Any, x: Any) -> Any:
    found = _sum(lambda k: (a + k) * (b + k) / (c + k) * (x / (k + 1)), x)
    return jnp.where(x == 0, 1.0, found)


def _near_one(a: Any, b: Any, c: Any, x: Any) -> Any:
    """For 0.9 < x < 1 and c - a - b no integer, DLMF 15.8.4."""
    rest = 1 - x
    excess = c - a - b
    first = _gamma(c) * _gamma(excess) * _inverse_gamma(c - a) * _inverse_gamma(c - b)
    second = _gamma(c) * _gamma(-excess) * _inverse_gamma(a) * _inverse_gamma(b)
    second = second * jnp.exp(excess * jnp.log(rest))
    return first * _gauss_series(a, b, 1 - excess, rest) + second * _gauss_series(
        c - a, c - b, 1 + excess, rest
    )


def _gauss(a: Any, b: Any, c: Any, x: Any) -> Any:
    ends = _is_pole(a) | _is_pole(b)
    # DLMF 15.8.1 takes negative arguments to (0, 1).
    turned = (x < 0) & ~(ends & (x > -1))
    second = jnp.where(turned, c - b, b)
    base = 1 - jnp.where(turned, x, 0.0)
    argument = jnp.where(turned, x / -base, x)
    terminates = ends & ~turned | (turned & (_is_pole(a) | _is_pole(second)))
    excess = c - a - second
    whole = jnp.abs(excess - jnp.round(excess)) < 1e-6
    inside = (argument < 1) & (argument >= -1) | terminates
    close = (argument > 0.9) & inside & ~whole & ~terminates
    plain = jnp.where(inside & ~close, argument, 0.0)
    found = _gauss_series(a, second, c, plain)
    of_close = _near_one(
        *(jnp.where(close, value, other) for value, other in ((a, 0.3), (second, 0.4), (c, 1.1))),
        jnp.where(close, argument, 0.95),
    )
    found = jnp.where(close, of_close, found)
    found = found * jnp.exp(-a * jnp.log(base))
    # Gauss's sum, DLMF 15.4.20.
    positive = excess > 0
    of_one = _gamma(c) * _gamma(jnp.where(positive, excess, 1.0))
    of_one = of_one * _inverse_gamma(c - a) * _inverse_gamma(c - b)
    of_one = jnp.where(positive, of_one, jnp.inf)
    found = jnp.where((x == 1) & ~ends, of_one, jnp.where(inside, found, jnp.inf))
    found = jnp.where((x == 0) | (a == 0) | (b == 0), 1.0, found)
    stopped = (_is_pole(a) & (a >= c)) | (_is_pole(b) & (b >= c))
    undefined = _is_pole(c) & ~stopped & (x != 0) & (a != 0) & (b != 0)
    found = jnp.where(undefined, jnp.inf, found)
    return jnp.where((a != a) | (b != b) | (c != c) | (x != x), jnp.nan, found)


_hyp2f1 = _by_parts(_gauss, lambda a, b, c, x: a * b / c * _hyp2f1(a + 1, b + 1, c + 1, x))


@operation
def hyp2f1(a: Any, b: Any, c: Any, x: Any) -> Any:
    """Elementwise Gauss's hypergeometric function, F(a, b; c; x).

    By its series and the linear transformations of DLMF 15.8; infinite for x > 1, on its branch
    cut, unless it is a polynomial.

    Args:
      a, b, c, x: arrays of real numbers that broadcast.

    Raises:
      ValueError: if one is complex.
    """
    values = [asarray(value) for value in (a, b, c, x)]
    return in_float32(_hyp2f1, *strong_floats("hyp2f1", *values))
