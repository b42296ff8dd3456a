"""The Gauss hypergeometric function, 2F1."""

from __future__ import annotations

import math

import numpy as np

import hlofront.numpy as jnp
from hlofront.base.dtypes import finfo
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.higher_order.control_flow.library_loops import fori_loop
from hlofront.higher_order.custom_rules.custom_jvp import as_custom_jvp
from hlofront.numpy.arrays.creation import asarray
from hlofront.primitives.elementwise import special
from hlofront.runtime.dispatch.operation import operation
from hlofront.scipy.special.arguments import in_float32, strong_floats
from hlofront.scipy.special.hypergeometric_sums import (
    by_parts,
    gamma_quotient,
    is_pole,
    power_of_two,
    scaled,
    start_of_series,
    sum_of_terms,
)
from hlofront.scipy.special.some_elements import apply_where


def _gauss_sum(a: Array, b: Array, c: Array, x: Array) -> tuple[Array, Array, Array]:
    # Numerators and denominators are divided by the size of c, so that products stay in range.
    scale = power_of_two(c)
    first, scaled_x = c * scale, x * scale

    def ratio(k: Array) -> tuple[Array, Array, Array]:
        return (a + k) * (b + k), scaled_x * (1 / (k + 1)), first + k * scale

    series = sum_of_terms(ratio, x, has_loss=True)
    return series.total, series.exponent, series.loss


def _near_one(
    used: Array,
    by_logarithm: Array | None,
    parameters: tuple[Array, Array, Array],
    others: tuple[Array, Array],
    excess: Array,
    rest: Array,
) -> tuple[Array, Array]:
    """Return 2F1 near x = 1, by DLMF 15.8.4 or 15.8.10, and the loss of digits.

    At 1 itself the former is Gauss's sum, DLMF 15.4.20.

    Args:
      used: a mask of where the result is needed.
      by_logarithm: a mask of where DLMF 15.8.10 is used, for c = a + b + m with m in 0, ..., 4; or
        None for nowhere.
      parameters: (a, b, c).
      others: (c - a, c - b).
      excess: c - a - b.
      rest: 1 - x.

    Returns:
      (the value, the quotient of the absolute values of its greater part and of itself).
    """
    a, b, c = parameters
    above, below = (excess, -excess), others
    if by_logarithm is not None:
        # One call computes the gamma functions of both formulas.
        m = jnp.round(excess)
        c = jnp.where(by_logarithm, a + b + m, c)
        above = tuple(
            jnp.where(by_logarithm, x, y)
            for x, y in zip((jnp.maximum(m, 1), jnp.ones_like(m)), above, strict=True)
        )
        below = tuple(jnp.where(by_logarithm, x + m, y) for x, y in zip((a, b), below, strict=True))
        used = used & ~by_logarithm
    quotients = gamma_quotient(
        (jnp.stack([c, c]), jnp.stack(above)),
        [jnp.stack(pair) for pair in zip(below, (a, b), strict=True)],
    )
    # One loop computes both series.
    safe = [(a, others[0]), (b, others[1]), (1 - excess, 1 + excess), (rest, rest)]
    top = [jnp.where(used, jnp.stack(pair), 0.5) for pair in safe]
    total, exponent, _ = _gauss_sum(*top)
    sums = jnp.ldexp(total, exponent)
    power = jnp.where(rest == 0, 0.0, jnp.where(rest == 0, 1.0, rest) ** excess)
    first, second = quotients[0] * sums[0], quotients[1] * power * sums[1]
    total = first + second
    size = jnp.maximum(jnp.abs(first), jnp.abs(second))
    loss = size / jnp.where(total == 0, 1.0, jnp.abs(total))
    if by_logarithm is None:
        return total, loss
    of_logarithm = _near_one_by_logarithm(a, b, m, rest, quotients)  # pyrefly: ignore[unbound-name]
    return jnp.where(by_logarithm, of_logarithm, total), loss


# The number of terms of DLMF 15.8.10, and the largest c - a - b for which it is used.
_LOG_TERMS, _LOG_MOST = 80, 4


def _near_one_by_logarithm(a: Array, b: Array, m: Array, rest: Array, quotients: Array) -> Array:
    """Return 2F1 near x = 1 for c = a + b + m with m in 0, ..., 4, by DLMF 15.8.10."""
    one, total = jnp.ones_like(rest), jnp.zeros_like(rest)
    term, later_term = quotients
    factorial, harmonic = one, total
    for k in range(_LOG_MOST):
        total = total + jnp.where(k < m, term, 0.0)
        later = (a + k) * (b + k) * -rest / ((k + 1) * jnp.maximum(m - k - 1, 1))
        term = term * later
        factorial = factorial * jnp.where(k < m, k + 1, 1)
        harmonic = harmonic + jnp.where(k < m, 1 / (k + 1), 0.0)
    term = later_term * (-rest) ** m / factorial
    # From one term to the next the four digammas of the bracket grow by inverses of integers.
    digammas = special.digamma(jnp.stack([a + m, b + m]))
    bracket = digammas[0] + digammas[1] + jnp.log(rest) + 2 * np.euler_gamma - harmonic

    def step(k: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        term, bracket, total = carry
        total = total - term * bracket
        bracket = bracket + 1 / (a + m + k) + 1 / (b + m + k) - 1 / (k + 1) - 1 / (k + m + 1)
        term = term * ((a + m + k) * (b + m + k) * rest / ((k + 1) * (k + m + 1)))
        return term, bracket, total

    return fori_loop(0, _LOG_TERMS, lambda k, c: step(1.0 * k, c), (term, bracket, total))[2]


# A later form is used only if it loses this many times less precision: the first ones need no
# power.
_LESS = 8


def _gauss_of_others(
    used: Array,
    parameters: tuple[Array, Array, Array],
    x: Array,
    ends: Array,
    known: tuple[Array, Array],
) -> tuple[Array, Array]:
    """Return 2F1 by the series of DLMF 15.8.1 that cancels least, and the loss of digits.

    Args:
      used: a mask of where the result is needed; elsewhere the loop does not wait for the series.
      parameters: (a, b, c).
      x: the argument.
      ends: a mask of where the series is a polynomial.
      known: the value and the loss of the first form, which is the series of 2F1 itself.

    Returns:
      (the value, the loss: the quotient of the greatest term and the sum).
    """
    a, b, c = parameters
    base = 1 - x
    turned = x / -base
    other_ends = is_pole(c - a) | is_pole(c - b)
    regular = ~is_pole(c)
    # Each form has parameters, an argument, a power of 1 - x, and a mask of where it holds.
    ways = (
        (c - a, c - b, x, c - a - b, ((jnp.abs(x) < 1) | other_ends) & regular),
        (a, c - b, turned, -a, (x < 0.5) & regular),
        (c - a, b, turned, -b, (x < 0.5) & regular),
    )
    p, q, argument, power, valid = (jnp.stack(several) for several in zip(*ways, strict=True))
    valid = valid & used[None]
    p, q = (jnp.where(valid, value, 1.0) for value in (p, q))
    total, exponent, loss = _gauss_sum(p, q, c[None], jnp.where(valid, argument, 0.0))
    # A factor that overflows or underflows is applied as its logarithm, which costs digits.
    base = base[None]
    factor = base ** jnp.where(valid, power, 0.0)
    fits = (factor > float(finfo(typeof(x).dtype).tiny)) & (factor < jnp.inf)
    logarithm = jnp.where(fits, 0.0, power * jnp.log(base))
    beyond = scaled(total, exponent, logarithm)
    total = jnp.where(fits, jnp.ldexp(total * jnp.where(fits, factor, 1.0), exponent), beyond)
    loss = jnp.where(valid, jnp.where(fits, loss, 100 * loss), jnp.inf)
    # Where the series is 1, the form is exactly the power of 1 - x.
    loss_of_power = jnp.where(_is_power(a, b, c) & valid[0], 0.0, loss[0])
    without_digits = float(1 / finfo(typeof(x).dtype).eps)
    value, best = known
    for way, loss_here in enumerate((loss_of_power, loss[1], loss[2])):
        better = (loss_here * _LESS < best) & (loss_here < without_digits)
        best, value = jnp.where(better, loss_here, best), jnp.where(better, total[way], value)
    return value, best


def _is_power(a: Array, b: Array, c: Array) -> Array:
    return (c == a) | (c == b)


# Steps along the differential equation: the number of Taylor coefficients per step by the width of
# the dtype, the largest number of steps, and the least loss of precision of the other methods for
# which they are used.
_ORDER, _MAX_STEPS, _LOST = {4: 20, 8: 40}, 20000, 100.0


def _gauss_by_steps(used: Array, a: Array, b: Array, c: Array, x: Array) -> Array:
    """Return 2F1 where all series cancel, by Taylor steps along the equation DLMF 15.10.1.

    The method is that of Pearson, Olver and Porter (2017). The first point is near 0, where the
    series is exact. Points are equally spaced in log(abs(x)), for positive x in
    log(x / (1 - x)), so that each step is shorter than its distance from the singular points.
    """
    positive = x > 0
    share = jnp.where(positive, 1 - x, 1.0)
    end = jnp.log(jnp.abs(x) / share)
    near = 1 / (4 + 2 * (jnp.abs(a) + 1) * (jnp.abs(b) + 1) / (jnp.abs(c) + 1))
    start = jnp.minimum(jnp.log(near), end)
    count = jnp.ceil(jnp.where(used, (end - start) * _steps_of_unit(a, b, c), 0.0))

    def point(j: Array) -> Array:
        size = jnp.exp(start + (end - start) * (j / jnp.maximum(count, 1.0)))
        return jnp.where(j >= count, x, jnp.where(positive, size / (1 + size), -size))

    def along(j: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        here, value, slope = carry
        there = point(1.0 * j + 1)
        step = there - here
        # Coefficients include powers of the step, so that the sums need no powers.
        scale = step / (here * (1 - here))
        middle, last = (1 - 2 * here) * scale, c - (a + b + 1) * here

        def term(k: Array, carry: tuple[Array, ...]) -> tuple[Array, ...]:
            k = 1.0 * k
            before, here, value, slope = carry
            ahead = (k + a) * (k + b) * (step * scale) * before
            ahead = ahead - (k + 1) * (k * middle + last * scale) * here
            ahead = ahead / ((k + 1) * (k + 2))
            return here, ahead, value + ahead, slope + (k + 2) * ahead

        linear = slope * step
        order = _ORDER[typeof(x).dtype.itemsize]
        sums = fori_loop(0, order, term, (value, linear, value + linear, linear))
        # An element that has arrived keeps its value while others need more steps.
        going = j < count
        value, slope = jnp.where(going, sums[2], value), jnp.where(going, sums[3] / step, slope)
        return there, value, slope

    first = point(jnp.zeros_like(count))
    value, slope = start_of_series(lambda k: ((a + k) * (b + k), (c + k) * (k + 1)), first)
    # No steps run where no element needs them.
    most = jnp.max(count, initial=0).astype(int)
    return fori_loop(0, most, along, (first, value, slope))[1]


def _steps_of_unit(a: Array, b: Array, c: Array) -> Array:
    """Return the number of steps per unit of the logarithm, which grows with the parameters."""
    return 3 + jnp.sqrt(jnp.abs(a * b)) / 2 + (jnp.abs(c) + jnp.abs(a + b + 1)) / 6


def _gauss(a: Array, b: Array, c: Array, x: Array, by_parameters: bool = False) -> Array:
    ends = (is_pole(a) & ~(is_pole(c) & (a < c))) | (is_pole(b) & ~(is_pole(c) & (b < c)))
    other_ends = (is_pole(c - a) | is_pole(c - b)) & ~is_pole(c)
    # For negative x the formulas near 1 hold for x / (x - 1), DLMF 15.8.1; a and b are chosen so
    # that c - a - b is positive.
    turned = x < 0
    argument = jnp.where(turned, x / (x - 1), x)
    complement = jnp.where(turned, 1 / (1 - x), 1 - x)
    # Exactly known parameters are not recomputed from rounded ones.
    least, greatest = jnp.minimum(a, b), jnp.maximum(a, b)
    mended = ~turned & (c - a - b < 0)
    p = jnp.where(turned, least, jnp.where(mended, c - a, a))
    q = jnp.where(turned, c - greatest, jnp.where(mended, c - b, b))
    others = (jnp.where(mended, a, c - p), jnp.where(mended, b, jnp.where(turned, greatest, c - b)))
    excess = jnp.where(turned, greatest - least, jnp.abs(c - a - b))
    power = jnp.where(turned, least, jnp.where(mended, -excess, 0.0))
    # The logarithm of the factor by which terms must fall to become negligible.
    least_fall = -math.log(float(finfo(typeof(x).dtype).eps))
    near = (argument > 0.9) & (argument < 1) & ~ends & ~is_pole(c)
    decay = -jnp.log1p(-jnp.where(near, complement, 0.5))
    long = (least_fall > math.log(400.0) * (excess + 1)) | (
        (x > 0) & (other_ends | (mended & (jnp.minimum(p, q) < -1)))
    )
    polynomial = is_pole(p) | is_pole(q)
    near = near & (least_fall > 400 * decay) & (long | turned) & (~polynomial | (x > 0))
    whole = jnp.abs(excess - jnp.round(excess)) < (1e-9 if least_fall > 30 else 1e-4)
    by_logarithm = near & whole & (excess < _LOG_MOST + 0.5) & ~polynomial
    if by_parameters:
        # DLMF 15.8.10 holds only for c = a + b + m, and has no derivatives in the parameters.
        by_logarithm = by_logarithm & False
    # Of a polynomial the series DLMF 15.8.7 ends before its own denominators vanish.
    degree = jnp.minimum(jnp.where(is_pole(p), -p, jnp.inf), jnp.where(is_pole(q), -q, jnp.inf))
    ended = polynomial & (degree < excess)
    close = near & (~whole | ended)
    inside = (x < 1) | ends
    plain = inside & ~close & ~by_logarithm & (x == x)
    simple = plain & ((jnp.abs(x) < 1) | ends)
    safe = [jnp.where(simple, value, 1.0) for value in (a, b, c)]
    total, exponent, loss = _gauss_sum(*safe, jnp.where(simple, x, 0.0))
    result, loss = jnp.ldexp(total, exponent), jnp.where(simple, loss, jnp.inf)
    result, loss = apply_where(
        plain & ((loss > _LESS) | _is_power(a, b, c)),
        lambda used, a, b, c, x, ends, *known: _gauss_of_others(used, (a, b, c), x, ends, known),
        ((a, 1.0), (b, 1.0), (c, 1.0), (x, 0.0), (ends, False), (result, 1.0), (loss, 1.0)),
        (result, loss),
    )
    at_one = (x == 1) & ~ends

    def near_one(used: Array, *values: Array) -> tuple[Array, Array]:
        p, q, c, *others, excess, complement, power, by_logarithm = values
        mask = None if by_parameters else by_logarithm
        near, loss = _near_one(used, mask, (p, q, c), (others[0], others[1]), excess, complement)
        factor = jnp.where(
            complement == 0, 1.0, jnp.where(complement == 0, 1.0, complement) ** power
        )
        return near * factor, loss

    operands = ((p, 0.3), (q, 0.4), (c, 1.1), (others[0], 0.8), (others[1], 0.7), (excess, 0.4))
    operands = (*operands, (complement, 0.05), (power, 0.0), (by_logarithm, False))
    result, loss = apply_where(close | by_logarithm | at_one, near_one, operands, (result, loss))
    by_steps = (plain | close) & ~(loss <= _LOST) & jnp.isfinite(result)
    by_steps = by_steps & ~ends & ~other_ends & ~is_pole(c) & (x != 0) & (x < 1)
    by_steps = by_steps & (jnp.abs(x) < 1e6) & (_steps_of_unit(a, b, c) < _MAX_STEPS / 30)
    (result,) = apply_where(
        by_steps,
        lambda used, *values: [_gauss_by_steps(used, *values)],
        ((a, 1.0), (b, 1.0), (c, 2.0), (x, 0.01)),
        [result],
    )
    divergent = at_one & ~(c - a - b > 0)
    result = jnp.where((inside | at_one) & ~divergent, result, jnp.inf)
    result = jnp.where((x == 0) | (a == 0) | (b == 0), 1.0, result)
    undefined = is_pole(c) & ~ends & (x != 0) & (a != 0) & (b != 0)
    result = jnp.where(undefined, jnp.inf, result)
    return jnp.where((a != a) | (b != b) | (c != c) | (x != x), jnp.nan, result)


_hyp2f1 = by_parts(_gauss, lambda a, b, c, x: a * b / c * _hyp2f1(a + 1, b + 1, c + 1, x))


@as_custom_jvp
@operation
def hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, x: ArrayLike) -> Array:
    """Compute elementwise the Gauss hypergeometric function, F(a, b; c; x).

    The method is its series, in the one of four forms, DLMF 15.8.1, whose terms cancel least, and
    near 1 the series DLMF 15.8.4 and 15.8.10; where terms cancel in all of them, it is Taylor
    series along its differential equation, as in Pearson, Olver and Porter, "Numerical methods for
    the computation of the confluent and Gauss hypergeometric functions" (2017). The result is
    infinite for x > 1, on its branch cut, unless the function is a polynomial.

    Args:
      a, b, c, x: arrays of real numbers that broadcast.

    Raises:
      ValueError: if an argument is complex.
    """
    values = [asarray(value) for value in (a, b, c, x)]
    return in_float32(_hyp2f1, *strong_floats("hyp2f1", *values))
