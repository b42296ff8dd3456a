"""The building blocks of 1F1 and 2F1: series, quotients of gamma, derivative rules."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence

import numpy as np

import hlofront.numpy as jnp
from hlofront.base.dtypes import finfo
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.higher_order.control_flow.library_loops import fori_loop, while_loop
from hlofront.higher_order.custom_rules.custom_jvp import custom_jvp
from hlofront.higher_order.custom_rules.custom_rule import SymbolicZero
from hlofront.primitives.calls.barriers import optimization_barrier
from hlofront.primitives.elementwise import special
from hlofront.primitives.elementwise.converting import reduce_precision
from hlofront.scipy.special.series import STIRLING, polynomial
from hlofront.transforms.grad import jvp

# A function of k: the numerator and the denominator of the ratio of coefficient k + 1 to
# coefficient k.
Ratio = Callable[[Array], tuple[Array, Array]]
# The same for the terms of the series; the numerator is a product of two factors.
RatioOfThree = Callable[[Array], tuple[Array, Array, Array]]

# The maximum number of terms, which suffices for all arguments; and how many terms are brought to a
# common denominator, so that they cost one division.
_MOST, _TERMS = 4000, 4


class Sum(NamedTuple):
    """The sum of a series whose first term is 1, scaled so that it does not overflow."""

    total: Array
    """The sum divided by 2**exponent."""
    exponent: Array
    beside: Array
    """The sum of term k times factor / denominator of its ratio, divided by 2**exponent; or 0."""
    loss: Array
    """The quotient of the greatest term and the sum; infinite where the series does not end."""


def sum_of_terms(
    ratio: RatioOfThree,
    like: Array,
    has_beside: bool = False,
    has_loss: bool = False,
    freezes: bool = False,
) -> Sum:
    """Return the sum of a series; groups of _TERMS terms share a division and a test for the end.

    Barriers keep XLA from computing shared values once for each member of the loop's state.

    Args:
      ratio: a function of k, which returns (rising, factor, denominator): the quotient of the terms
        k + 1 and k is rising * factor / denominator. Where rising is zero the sum has ended.
      like: an array of the shape and dtype of the sum.
      has_beside: whether the second sum is needed; it is zero otherwise.
      has_loss: whether the loss is needed; it is zero otherwise.
      freezes: whether derivatives end where the sum has ended, also those in the parameters.
    """
    limits = finfo(typeof(like).dtype)
    least = float(limits.eps) / 64
    block = 200 if limits.nmant > 30 else 40
    large = 2.0**block

    def unfinished(carry: tuple[Array, ...]) -> Array:
        return (carry[0] < _MOST) & jnp.any(carry[1])

    def step(carry: tuple[Array, ...]) -> tuple[Array, ...]:
        k, going, term, total, blocks, *others = carry
        several = [_nonzero_ratio(ratio(k + j), freezes) for j in range(_TERMS)]
        inverse = 1 / functools.reduce(operator.mul, [part[2] for part in several])
        full = jnp.abs(total) > large
        inverse = optimization_barrier(inverse)
        product, partial, partial_beside = term, 0.0, 0.0
        numerator = denominator = inverse
        for rising, factor, denominator in several:
            partial_beside = partial_beside * denominator + product * factor
            numerator = rising * factor
            product = product * numerator
            partial = partial * denominator + product
        scale = jnp.where(full, 1 / large, 1.0)
        term = product * inverse * scale
        total = (total + partial * inverse) * scale
        term, total = optimization_barrier((term, total))
        after = []
        if has_beside:
            after.append((others[0] + partial_beside * inverse) * scale)
        if has_loss:
            after.append(jnp.maximum(others[-1] * scale, jnp.abs(term)))
        # The rest of the series is less than a geometric one.
        ahead, below = jnp.abs(numerator), jnp.abs(denominator)
        continues = jnp.abs(term) * ahead > least * jnp.abs(total) * (below - ahead)
        # Terms grow again where a denominator that is still negative passes zero.
        continues = continues | ((denominator < 0) & (k < _MOST - _TERMS))
        continues = going & continues & (term != 0) & jnp.isfinite(total)
        after = (total, blocks + full.astype(blocks.dtype), *after)
        # A sum that has ended is unchanged, however many terms the other elements need.
        after = [jnp.where(going, new, old) for new, old in zip(after, carry[3:], strict=True)]
        return k + _TERMS, continues, term, *after

    # The term after the first is exact, so that a sum of both is exactly zero where it should be.
    zero, one = (jnp.full((), value, typeof(like).dtype) for value in (0.0, 1.0))
    rising, factor, denominator = _nonzero_ratio(ratio(zero), freezes)
    term = rising * factor / denominator
    start = [one, jnp.ones_like(like, bool), term, 1 + term, jnp.zeros_like(like)]
    if has_beside:
        start.append(factor / denominator)
    if has_loss:
        start.append(jnp.maximum(jnp.abs(term), 1))
    _, continues, _, total, blocks, *others = while_loop(unfinished, step, tuple(start))
    beside = others[0] if has_beside else jnp.zeros_like(like)
    if not has_loss:
        return Sum(total, (blocks * block).astype(int), beside, jnp.zeros_like(like))
    size = jnp.where(total == 0, 1.0, jnp.abs(total))
    loss = jnp.where(~continues & jnp.isfinite(total), jnp.maximum(others[-1] / size, 1), jnp.inf)
    loss = jnp.where(loss == loss, loss, jnp.inf)
    return Sum(total, (blocks * block).astype(int), beside, loss)


def _nonzero_ratio(parts: tuple[Array, Array, Array], freezes: bool) -> tuple[Array, Array, Array]:
    """Return the parts of a ratio with a denominator that is not zero.

    Args:
      freezes: whether a numerator of zero has no derivative.
    """
    rising, factor, denominator = parts
    if freezes:
        rising = jnp.where(rising == 0, 0.0, rising)
    return rising, factor, jnp.where(denominator == 0, 1.0, denominator)


def power_of_two(x: Array) -> Array:
    """Return a power of two near the inverse of abs(x), or 1 if that is greater."""
    limits = finfo(typeof(x).dtype)
    return reduce_precision(1 / jnp.maximum(jnp.abs(x), 1.0), limits.nexp, 0)


def start_of_series(ratio: Ratio, x: Array) -> tuple[Array, Array]:
    """Return the sums of the first 40 terms of a power series and of its derivative, for small x.

    Args:
      ratio: a function of k, which returns the numerator and the denominator of the quotient of
        the coefficients k + 1 and k; the first coefficient is 1.
      x: the argument.
    """

    def step(k: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        last, total, slope = carry
        k = 1.0 * k
        above, below = ratio(k)
        # `last` has one power of x less than the derivative's term, which avoids a division.
        coefficient = last * (above / below)
        ahead = coefficient * x
        return ahead, total + ahead, slope + (k + 1) * coefficient

    one = jnp.ones_like(x)
    return fori_loop(0, 40, step, (one, one, jnp.zeros_like(x)))[1:]


def scaled(total: Array, exponent: ArrayLike, x: Array) -> Array:
    """Return total * 2**exponent * exp(x) without overflow of the factors."""
    half = jnp.exp(x / 2)
    wide = typeof(x).dtype.itemsize == 8
    logarithm = x + jnp.asarray(exponent, typeof(x).dtype) * math.log(2)
    fits = (jnp.abs(x) < (1400 if wide else 160)) & (logarithm - x / 2 < (500 if wide else 55))
    product = jnp.ldexp(total * jnp.where(fits, half, 1.0), jnp.where(fits, exponent, 0)) * half
    return jnp.where(fits, product, total * jnp.exp(jnp.where(fits, 0.0, logarithm)))


def is_pole(x: Array) -> Array:
    """Return a mask of the poles of gamma: 0 and the negative integers."""
    return (x <= 0) & (x == jnp.floor(x))


# ---- the gamma function --------------------------------------------------------------------------

# The least x for which Stirling's series is used without recurrence.
_STIRLING_FROM = 10


@custom_jvp
def _gamma(x: Array) -> Array:
    """Return gamma(x) to a few units in the last place, where it and its inverse are in range.

    The method is Stirling's formula, DLMF 5.11.3, with a power that loses no digits, recurrence for
    small x, and reflection for negative x, which must not be a pole.
    """
    reflected = x < 0.5
    right = jnp.where(reflected, 1 - x, x)
    small = right < _STIRLING_FROM
    product = jnp.where(small, right, 1.0)
    for k in range(1, _STIRLING_FROM):
        product = product * jnp.where(small, right + k, 1.0)
    far = jnp.where(small, right + _STIRLING_FROM, right)
    lost = jnp.where(small, right - (far - _STIRLING_FROM), 0.0)
    # The rounding error of 1 - x counts as well.
    change = right - 1
    lost = lost + jnp.where(reflected, (1 - (right - change)) - (x + change), 0.0)
    inverse = 1 / far
    terms = STIRLING if typeof(x).dtype.itemsize == 8 else STIRLING[:3]
    series = polynomial(terms[::-1], inverse * inverse)
    # The exponential of the small `correction` restores the series and the rounded digits.
    correction = series * inverse + lost * (jnp.log(far) - 0.5 * inverse)
    root = far ** (0.5 * far - 0.25)
    value = root * jnp.exp(-far) * root / product
    value = math.sqrt(2 * math.pi) * (value + value * jnp.expm1(correction))
    distance = x - jnp.round(x)
    sine = jnp.sin(math.pi * jnp.where(reflected, distance, 0.5))
    sine = jnp.where(reflected & (jnp.fmod(jnp.round(x), 2) != 0), -sine, sine)
    return jnp.where(reflected, math.pi / (sine * value), value)


_gamma.defjvps(lambda t, result, x: t * result * special.digamma(x))


def gamma_quotient(above: Sequence[Array], below: Sequence[Array]) -> Array:
    """Return gamma(above[0]) gamma(above[1]) / (gamma(below[0]) gamma(below[1])).

    It is 0 at poles of the denominator. Where a factor is out of range logarithms are added, so
    that none overflows.
    """
    # Numerators and denominators alternate, so that products stay in range.
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
    quotient = jnp.where(fits, direct, jnp.where(odd, -beyond, beyond))
    return jnp.where(ended, 0.0, quotient)


# ---- derivatives ---------------------------------------------------------------------------------


def by_parts(function: Callable[..., Array], slope: Callable[..., Array]) -> custom_jvp:
    """Return `function` with a JVP rule: its derivative in the last argument is `slope`.

    Loops whose number of steps depends on values have only forward derivatives. The derivative in
    each of the other arguments is therefore computed in forward mode, and multiplied by the
    tangent, which reverse mode can transpose.

    Args:
      function: a function of several parameters and an argument, with a flag `by_parameters`.
      slope: a function of the same parameters and argument.
    """

    @custom_jvp
    def whole(*args: Array) -> Array:
        return function(*args)

    def rule(
        primals: Sequence[Array], tangents: Sequence[Array | SymbolicZero]
    ) -> tuple[Array, Array]:
        # Derivatives in arguments without tangents are omitted, as the program is long.
        *parameters, x = primals
        shares = []
        for i, parameter in enumerate(parameters):
            if isinstance(tangents[i], SymbolicZero):
                continue

            def of_one(value: Array, i: int = i) -> Array:
                return function(*parameters[:i], value, *parameters[i + 1 :], x, by_parameters=True)

            share = jvp(of_one, (parameter,), (jnp.ones_like(parameter),))[1]
            shares.append(tangents[i] * share)
        if not isinstance(tangents[-1], SymbolicZero):
            shares.insert(0, tangents[-1] * slope(*primals))
        return whole(*primals), functools.reduce(operator.add, shares)

    whole.defjvp(rule, symbolic_zeros=True)
    return whole
