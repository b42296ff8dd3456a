"""The line search for a step that meets the strong Wolfe conditions."""

from __future__ import annotations

from collections.abc import Callable

import hlofront.numpy as jnp
from hlofront.base.dtypes import finfo
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import Array
from hlofront.core.aval import typeof
from hlofront.higher_order.control_flow.library_loops import while_loop
from hlofront.primitives.linalg.dot_general import Precision

# The constants that Nocedal and Wright recommend for quasi-Newton methods.
_ENOUGH_DECREASE = 1e-4
_FLAT_ENOUGH = 0.9
# A point of a cubic or a parabola keeps this fraction of an interval's width from its ends.
_CUBIC_MARGIN = 0.2
_PARABOLA_MARGIN = 0.1
_MAX_ZOOMS = 30


# A function and its gradient: x -> (value, gradient).
Objective = Callable[[Array], tuple[Array, Array]]


class _Point(NamedTuple):
    """A step length, with the value, directional slope and gradient at its end."""

    step: Array | float
    value: Array
    slope: Array
    gradient: Array


class _Zoom(NamedTuple):
    """An interval with an acceptable step, and the end of it that was replaced last."""

    low: _Point
    high: _Point
    last_step: Array
    last_value: Array
    best: _Point
    done: Array | bool
    failed: Array | bool
    count: Array | int


class _Search(NamedTuple):
    previous: _Point
    best: _Point
    done: Array | bool
    failed: Array | bool
    # The number of steps that were doubled, and one more, and the number of evaluations.
    count: Array | int
    evaluated: Array | int


class LineSearchStep(NamedTuple):
    """The result of a line search.

    Attributes:
      step: the length of the step.
      value: the function's value there.
      gradient: the function's gradient there.
      evaluated: the number of evaluations.
      failed: whether no step met the conditions. The other values are then those of a step that
        does not.
      status: 0; 1 if no good step was found in an interval that must contain one; 3 after too many
        trials.
    """

    step: Array
    value: Array
    gradient: Array
    evaluated: Array
    failed: Array
    status: Array


class _Line(NamedTuple):
    """The function along a direction, and the Wolfe conditions there."""

    objective: Objective
    x: Array
    direction: Array
    start: _Point

    def at(self, step: Array) -> _Point:
        value, gradient = self.objective(self.x + step.astype(self.x.dtype) * self.direction)
        return _Point(step, value, precise_dot(gradient, self.direction), gradient)

    def is_high(self, point: _Point) -> Array:
        """Return whether the value has not gone down enough: the negated first condition."""
        start = self.start
        return point.value > start.value + _ENOUGH_DECREASE * point.step * start.slope

    def is_flat(self, point: _Point) -> Array:
        """Return whether the slope is that of the second condition."""
        return jnp.abs(point.slope) <= -_FLAT_ENOUGH * self.start.slope


def precise_dot(a: Array, b: Array) -> Array:
    """Return the product of arrays, in the precision of their dtype on any device."""
    return jnp.dot(a, b, precision=Precision.HIGHEST)


def line_search(
    objective: Objective,
    x: Array,
    direction: Array,
    value: Array,
    gradient: Array,
    first: Array | float,
    maxiter: int,
) -> LineSearchStep:
    """Return the step along a direction that meets the strong Wolfe conditions.

    The method is that of algorithms 3.5 and 3.6 of Nocedal and Wright, Numerical Optimization
    (2006): the step is doubled until an interval must contain a good one, which is then narrowed by
    cubic and quadratic interpolation. It fails if the interval is not wider than 1e-5 (1e-10 in 64
    bits), or its better end is the longer step.

    Args:
      objective: the function and its gradient.
      x: the point to start at.
      direction: the direction of the step.
      value: the function's value at `x`.
      gradient: the function's gradient at `x`.
      first: the step that is tried first.
      maxiter: how many times the step may be doubled.
    """
    start = _Point(0.0, value, precise_dot(gradient, direction), gradient)
    line = _Line(objective, x, direction, start)

    def body(state: _Search) -> _Search:
        previous = state.previous
        here = line.at(jnp.where(state.count == 1, first, previous.step * 2.0))
        too_far = line.is_high(here) | ((here.value >= previous.value) & (state.count > 1))
        good = line.is_flat(here) & ~too_far
        turned = (here.slope >= 0) & ~too_far & ~good
        zooming = too_far | turned
        low = _choose(too_far, previous, here)
        zoom = _zoom(line, low, _choose(too_far, here, previous), zooming)
        best = _choose(good, here, _choose(zooming, zoom.best, state.best))
        return _Search(
            previous=here,
            best=best,
            done=good | zooming,
            failed=zooming & zoom.failed,
            count=state.count + 1,
            evaluated=state.evaluated + 1 + zoom.count,
        )

    def going(state: _Search) -> Array:
        return jnp.logical_not(state.done | state.failed) & (state.count <= maxiter)

    state = while_loop(going, body, _Search(start, start, False, False, 1, 0))
    step = state.best.step
    # In low precision, smaller steps would not move the point.
    if finfo(typeof(step).dtype).bits < 64:
        step = jnp.where(jnp.abs(step) < 1e-8, jnp.sign(step) * 1e-8, step)
    return LineSearchStep(
        step=step,
        value=state.best.value,
        gradient=state.best.gradient,
        evaluated=state.evaluated,
        failed=state.failed | ~state.done,
        status=jnp.where(state.failed, 1, jnp.where(state.count > maxiter, 3, 0)),
    )


def _zoom(line: _Line, low: _Point, high: _Point, needed: Array) -> _Zoom:
    """Find a step between two that meets the Wolfe conditions, by algorithm 3.6, if one is needed.

    If the search fails, the best step is 1, with the value at `low` and the gradient at the start
    of the line.
    """
    narrow = 1e-5 if finfo(typeof(high.step).dtype).bits < 64 else 1e-10

    def body(state: _Zoom) -> _Zoom:
        low, high = state.low, state.high
        width = high.step - low.step
        here = line.at(_between(state, width))
        too_far = line.is_high(here) | (here.value >= low.value)
        good = line.is_flat(here) & ~too_far
        closer = ~too_far & ~good
        turned = closer & (here.slope * width >= 0)
        replaced = _choose(too_far | turned, high, _choose(closer, low, _last(state)))
        return _Zoom(
            low=_choose(closer, here, low),
            high=_choose(too_far, here, _choose(turned, low, high)),
            last_step=replaced.step,
            last_value=replaced.value,
            best=_choose(good, here, state.best),
            done=state.done | good,
            failed=state.failed | (width <= narrow) | (state.count + 1 >= _MAX_ZOOMS),
            count=state.count + 1,
        )

    def going(state: _Zoom) -> Array:
        return needed & jnp.logical_not(state.done | state.failed)

    middle = (low.step + high.step) / 2.0
    value = (low.value + high.value) / 2.0
    best = _Point(jnp.ones_like(middle), low.value, low.slope, line.start.gradient)
    start = _Zoom(low, high, middle, value, best, False, False, 0)
    return while_loop(going, body, start)


def _last(state: _Zoom) -> _Point:
    return state.low._replace(step=state.last_step, value=state.last_value)


def _between(state: _Zoom, width: Array) -> Array:
    """Return the step that is tried next between the ends of an interval.

    It is the minimum of a cubic through both ends and the end before; that of a parabola through
    both ends, where the cubic's is not well inside; or the middle.
    """
    low, high = state.low, state.high
    left, right = jnp.minimum(low.step, high.step), jnp.maximum(low.step, high.step)

    def inside(step: Array, margin: float) -> Array:
        return (step > left + margin * width) & (step < right - margin * width)

    cubic = _minimum_of_cubic(low, high, state.last_step, state.last_value)
    use_cubic = (state.count > 0) & inside(cubic, _CUBIC_MARGIN)
    bend = (high.value - low.value - low.slope * width) / width**2
    parabola = low.step - low.slope / (2.0 * bend)
    middle = (low.step + high.step) / 2.0
    without_cubic = jnp.where(inside(parabola, _PARABOLA_MARGIN), parabola, middle)
    return jnp.where(use_cubic, cubic, without_cubic)


def _minimum_of_cubic(low: _Point, high: _Point, step: Array, value: Array) -> Array:
    """Return where a cubic is least that has the slope of `low` and passes through three points.

    It is NaN where the cubic has no minimum.
    """
    to_high, to_last = high.step - low.step, step - low.step
    above_high = high.value - low.value - low.slope * to_high
    above_last = value - low.value - low.slope * to_last
    scale = (to_high * to_last) ** 2 * (to_high - to_last)
    third = (to_last**2 * above_high - to_high**2 * above_last) / scale
    second = (to_high**3 * above_last - to_last**3 * above_high) / scale
    root = jnp.sqrt(second * second - 3.0 * third * low.slope)
    return low.step + (root - second) / (3.0 * third)


def _choose(which: Array, one: _Point, other: _Point) -> _Point:
    return _Point(*[jnp.where(which, a, b) for a, b in zip(one, other, strict=True)])
