"""The line search for a step that meets the strong Wolfe conditions."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import hlofront.numpy as jnp
from hlofront.base.dtypes import finfo
from hlofront.base.typing import Array
from hlofront.core.aval import typeof
from hlofront.higher_order.while_loop import while_loop

# The constants that Nocedal and Wright recommend for quasi-Newton methods.
_ENOUGH_DECREASE = 1e-4
_FLAT_ENOUGH = 0.9
# New points keep at least this fraction of an interval's width from its ends.
_MARGIN = 0.1


# A function and its gradient: x -> (value, gradient).
Objective = Callable[[Array], tuple[Array, Array]]


class _Point(NamedTuple):
    """A step length, with the value, directional slope and gradient at its end."""

    step: Array
    value: Array
    slope: Array
    gradient: Array


class _State(NamedTuple):
    evaluated: Array | int
    trial: Array
    # True if an interval between `low` and `high` with an acceptable step is known.
    zooming: Array
    low: _Point
    high: _Point
    done: Array


class LineSearchStep(NamedTuple):
    """The result of a line search: a point, the number of evaluations, and flags.

    `good` says whether the value goes down, `zooming` whether an interval had to contain a good
    step.
    """

    point: _Point
    evaluated: Array
    good: Array
    zooming: Array


def _choose(which: Array, one: _Point, other: _Point) -> _Point:
    return _Point(*[jnp.where(which, a, b) for a, b in zip(one, other, strict=True)])


def _between(low: _Point, high: _Point) -> Array:
    """Return the step at the minimum of the cubic through two points, or their midpoint.

    The cubic is formula (3.59) of Nocedal and Wright (2006). The middle is taken where the minimum
    is too close to an end of the interval.
    """
    width = high.step - low.step
    d1 = low.slope + high.slope - 3 * (high.value - low.value) / width
    square = d1 * d1 - low.slope * high.slope
    d2 = jnp.sign(width) * jnp.sqrt(jnp.maximum(square, 0))
    share = 1 - (high.slope + d2 - d1) / (high.slope - low.slope + 2 * d2)
    # The midpoint is also used where the fraction is NaN, as the value at one end may be.
    helps = (square >= 0) & (share >= _MARGIN) & (share <= 1 - _MARGIN)
    return low.step + width * jnp.where(helps, share, 0.5)


def line_search(
    value_and_grad: Objective,
    x: Array,
    direction: Array,
    value: Array,
    gradient: Array,
    first: Array,
    maxiter: int,
) -> LineSearchStep:
    """Return the step along a direction that meets the strong Wolfe conditions.

    The method is that of algorithms 3.5 and 3.6 of Nocedal and Wright, Numerical Optimization
    (2006), with cubic interpolation (3.59), as one loop that evaluates the function once. Where
    values are equal up to rounding, slopes decide: the approximate Wolfe conditions of Hager and
    Zhang (2005).

    Args:
      value_and_grad: the function and its gradient.
      x: the point to start at.
      direction: the direction of the step.
      value: the function's value at `x`.
      gradient: the function's gradient at `x`.
      first: the step that is tried first.
      maxiter: the greatest number of evaluations of the function.
    """
    slope = jnp.dot(direction, gradient)
    noise = 4 * float(finfo(typeof(value).dtype).eps) * jnp.abs(value)
    start = _Point(jnp.zeros_like(first), value, slope, gradient)

    def body(state: _State) -> _State:
        low, high = state.low, state.high
        trial_value, gradient = value_and_grad(x + state.trial * direction)
        here = _Point(state.trial, trial_value, jnp.dot(direction, gradient), gradient)
        # Negated comparisons make the conditions hold for NaN.
        high_up = jnp.logical_not(trial_value <= value + _ENOUGH_DECREASE * here.step * slope)
        above = jnp.logical_not(trial_value < low.value) & (low.step > 0)
        flat = jnp.abs(here.slope) <= -_FLAT_ENOUGH * slope
        alike = (jnp.abs(trial_value - value) <= noise) & flat
        alike &= here.slope <= (2 * _ENOUGH_DECREASE - 1) * slope
        too_far = (high_up | above | (state.zooming & jnp.logical_not(trial_value < low.value))) & (
            jnp.logical_not(alike)
        )
        done = alike | (jnp.logical_not(too_far) & flat)
        turned = jnp.where(state.zooming, here.slope * (high.step - low.step), here.slope) >= 0
        zooming = state.zooming | too_far | turned
        high = _choose(too_far, here, _choose(turned, low, high))
        low = _choose(too_far & jnp.logical_not(done), low, here)
        trial = jnp.where(zooming, _between(low, high), 2 * here.step)
        return _State(state.evaluated + 1, trial, zooming, low, high, done)

    def going(state: _State) -> Array:
        return jnp.logical_not(state.done) & (state.evaluated < maxiter)

    never = jnp.zeros((), bool)
    state = while_loop(going, body, _State(0, first, never, start, start, never))
    # If no step meets the conditions, one that lowers the value is returned.
    down = (state.low.step > 0) & (state.low.value < value)
    return LineSearchStep(state.low, state.evaluated, state.done | down, state.zooming)
