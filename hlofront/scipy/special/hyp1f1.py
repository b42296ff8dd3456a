"""The Kummer confluent hypergeometric function, 1F1."""

from __future__ import annotations

import hlofront.numpy as jnp
from hlofront.base.dtypes import finfo
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.higher_order.control_flow.library_loops import fori_loop
from hlofront.higher_order.custom_rules.custom_jvp import as_custom_jvp
from hlofront.numpy.arrays.creation import asarray
from hlofront.runtime.dispatch.operation import operation
from hlofront.scipy.special.arguments import in_float32, strong_floats
from hlofront.scipy.special.hypergeometric_sums import (
    Sum,
    by_parts,
    gamma_quotient,
    is_pole,
    power_of_two,
    scaled,
    start_of_series,
    sum_of_terms,
)
from hlofront.scipy.special.some_elements import apply_where

# Steps along the differential equation: the number of Taylor coefficients of each, and the greatest
# number of steps.
_ORDER, _MAX_STEPS = 22, 20000
# The least abs(x) for which the asymptotic series is used, and the number of its terms, by
# the width of the dtype.
_FAR = {4: (40.0, 16), 8: (100.0, 32)}


def _kummer_series(top: Array, b: Array, x: Array, freezes: bool = False) -> Sum:
    # Numerators and denominators are divided by the size of b, so that products stay in range.
    scale = power_of_two(b)
    first, scaled_x = b * scale, x * scale

    def ratio(k: Array) -> tuple[Array, Array, Array]:
        return top + k, scaled_x * (1 / (k + 1)), first + k * scale

    return sum_of_terms(ratio, x, has_beside=True, freezes=freezes)


def _kummer_by_steps(used: Array, top: Array, b: Array, x: Array) -> Array:
    """Return 1F1 where it oscillates, for x > 0 and top < -x / 4, by Taylor steps.

    The steps solve the equation DLMF 13.2.1, as in Pearson, Olver and Porter (2017).
    The first point is near 0, where the series is exact; points are equally spaced in the square
    root of x, as the zeros are.
    """
    start, steps = _steps(used, top, b, x)

    def point(j: Array) -> Array:
        return x * jnp.square(j / steps)

    def along(j: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        value, slope = carry
        j = start + 1.0 * j
        here = point(j)
        step = x * ((2 * j + 1) / jnp.square(steps))
        share = (2 * j + 1) / jnp.square(j)

        def term(k: Array, carry: tuple[Array, ...]) -> tuple[Array, ...]:
            # Taylor coefficients include the power of the step.
            before, last, value, slope = carry
            ahead = (k + top) * before * step - (k + b - here) * (k + 1) * last
            ahead = ahead * (share / ((k + 1) * (k + 2)))
            return last, ahead, value + ahead, slope + (k + 2) * ahead

        first = (value, slope * step, value + slope * step, slope * step)
        sums = fori_loop(0, _ORDER, lambda k, c: term(1.0 * k, c), first)
        # An element that has arrived keeps its value while others need more steps.
        going = j < steps
        return jnp.where(going, sums[2], value), jnp.where(going, sums[3] / step, slope)

    first = point(start)
    value, slope = start_of_series(lambda k: (top + k, (b + k) * (k + 1)), first)
    # No steps run where no element needs them.
    most = jnp.max(steps - start, initial=0).astype(int)
    return fori_loop(0, most, along, (value, slope))[0]


def _steps(used: Array, top: Array, b: Array, x: Array) -> tuple[Array, Array]:
    """Return the numbers of the first and last step, which grow with b and with the zeros."""
    start = 12 + 2 * jnp.ceil(jnp.abs(b))
    waves = jnp.sqrt(jnp.where(used, -top * x, 0.0))
    return start, jnp.where(used, jnp.ceil(start * (1 + waves)), start)


def _kummer_downwards(
    first: Array, values: tuple[Array, Array], b: Array, x: Array, degree: Array
) -> Array:
    """Return 1F1(first - degree; b; x) of 1F1(first + 1) and 1F1(first), by DLMF 13.3.1."""

    def step(k: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        before, here = carry
        order = k - first
        ahead = ((2 * order + b - x) * here - order * before) / (b + order)
        return jnp.where(k < degree, here, before), jnp.where(k < degree, ahead, here)

    end = jnp.max(degree, initial=0).astype(int)
    return fori_loop(0, end, lambda k, carry: step(1.0 * k, carry), values)[1]


def _kummer_far_out(a: Array, b: Array, x: Array) -> Array:
    """Return 1F1 for large abs(x), by DLMF 13.7.1 for x > 0, else by the larger part of 13.7.2."""
    large = jnp.abs(x)
    first, second = _far_parameters(a, b, x)
    one = jnp.ones_like(x)

    def step(k: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        term, total = carry
        k = 1.0 * k
        term = term * ((first + k) * (second + k) / ((k + 1) * large))
        return term, total + term

    _, total = fori_loop(0, _FAR[typeof(x).dtype.itemsize][1], step, (one, one))
    total = total * gamma_quotient((b, one), (jnp.where(x < 0, b - a, a), one))
    exponent = jnp.where(x < 0, -a, a - b)
    growth = jnp.maximum(x, 0.0)
    power = large**exponent
    limits = finfo(typeof(x).dtype)
    # A factor that overflows or underflows is applied as its logarithm, which costs digits.
    fits = (power > float(limits.tiny)) & (power < float(limits.max) ** 0.25)
    beyond = total * jnp.exp(jnp.where(fits, 0.0, exponent * jnp.log(large) + growth))
    return jnp.where(fits, scaled(total * jnp.where(fits, power, 1.0), 0, growth), beyond)


def _far_parameters(a: Array, b: Array, x: Array) -> tuple[Array, Array]:
    """Return the two parameters of the rising factorials in the terms of DLMF 13.7.1 or 13.7.2."""
    return jnp.where(x < 0, a, 1 - a), jnp.where(x < 0, a - b + 1, b - a)


def _kummer(a: Array, b: Array, x: Array, by_parameters: bool = False) -> Array:
    ends = is_pole(a) & ~(is_pole(b) & (a < b))
    size = jnp.abs(x)
    # Where terms of the series alternate, those of exp(x) 1F1(b - a; b; -x), DLMF 13.2.39, have one
    # sign. It is not used where terms alternate late, when they are small.
    late = (a < 0) & (b > 0) & (size <= b - a)
    turned = ((x < 0) & ~ends & ~late) | ((a == b) & ~is_pole(b))
    top = jnp.where(turned, b - a, a)
    upper = turned | (x > 0)
    first, second = (jnp.abs(value) for value in _far_parameters(a, b, x))
    least = 4 * (first + second) + _FAR[typeof(x).dtype.itemsize][0]
    far = (size > least) & (size > 2 * (first + 1) * (second + 1))
    far = far & ~ends & ~is_pole(top) & ~is_pole(b)
    undefined = (a != a) | (b != b) | (x != x)
    # In this region terms alternate at first, and far exceed their sum.
    regular = upper & (top < 0) & ~is_pole(b) & ~undefined & ~far
    # The recurrence is stable for polynomials of any x, for others only if it starts below a zero
    # of 1 / gamma(top) that grows with x. Polynomials have no derivatives in the parameters.
    whole = is_pole(top) & (not by_parameters)
    downwards = regular & (b > 0) & (top > -5000) & (size * -top > b)
    downwards = downwards & (whole | ((size <= 30) & (size < -8 * top)))
    waves = regular & (size * -top > 12 * jnp.abs(b) + 25) & (size < 8 * -top)
    longest = (12 + 2 * jnp.abs(b)) * jnp.sqrt(size * jnp.abs(top))
    by_steps = waves & ~downwards & (longest < _MAX_STEPS)
    plain = ~(far | by_steps | undefined)
    degree = jnp.where(whole, -top, jnp.floor(-top - size / 8))
    degree = jnp.where(downwards, degree, 0.0)
    start = top + degree
    # The recurrence starts with 1F1(start + 1) and 1F1(start): 1 and any number if start is 0.
    series = _kummer_series(
        jnp.where(plain, jnp.where(downwards & ~whole, start + 1, start), 1.0),
        jnp.where(plain, b, 1.0),
        jnp.where(plain, jnp.where(turned, size, x), 0.0),
        freezes=by_parameters,
    )
    one = jnp.ldexp(jnp.ones_like(x), -series.exponent)
    lower = jnp.where(downwards & ~whole, one + start * series.beside, series.total)
    safe = [jnp.where(downwards, value, 1.0) for value in (b, size)]
    result = _kummer_downwards(start, (series.total, lower), *safe, degree)
    operands = ((top, 1.0), (b, 1.0), (size, 1.0))
    (result,) = apply_where(
        by_steps, lambda used, *values: [_kummer_by_steps(used, *values)], operands, [result]
    )
    result = scaled(result, series.exponent, jnp.where(turned & ~far, x, 0.0))
    operands = ((a, 1.5), (b, 2.5), (x, 1e3))
    (result,) = apply_where(
        far, lambda used, *values: [_kummer_far_out(*values)], operands, [result]
    )
    result = jnp.where((x == 0) | (a == 0), 1.0, result)
    # The function is infinite at a pole of 1 / (b)_k that no zero of (a)_k precedes.
    infinite = is_pole(b) & ~ends & (a != 0) & (x != 0)
    result = jnp.where(infinite, jnp.inf, result)
    return jnp.where(undefined, jnp.nan, result)


_hyp1f1 = by_parts(_kummer, lambda a, b, x: a / b * _hyp1f1(a + 1, b + 1, x))


@as_custom_jvp
@operation
def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Compute elementwise the Kummer confluent hypergeometric function, M(a, b, x).

    The method is its series, Kummer's transformation and, for large x, the asymptotic series of
    DLMF 13.7. Where the function oscillates, it is the recurrence DLMF 13.3.1 downwards from
    parameters at which the series is exact, and for larger x Taylor series along its differential
    equation, as in Pearson, Olver and Porter, "Numerical methods for the computation of the
    confluent and Gauss hypergeometric functions" (2017).

    Args:
      a, b, x: arrays of real numbers that broadcast.

    Raises:
      ValueError: if an argument is complex.
    """
    values = [asarray(value) for value in (a, b, x)]
    return in_float32(_hyp1f1, *strong_floats("hyp1f1", *values))
