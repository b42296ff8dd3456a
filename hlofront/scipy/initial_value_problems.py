# pyright: strict
"""Initial value problems of ordinary differential equations: odeint, and the parts of its steps.

Sources: J. R. Dormand and P. J. Prince, A family of embedded Runge-Kutta formulae, J. Comput. Appl.
Math. 6 (1980), for the method; L. F. Shampine, Some practical Runge-Kutta formulas, Math. Comp. 46
(1986), for the error estimate and the value in the middle of a step; E. Hairer, S. P. Norsett and
G. Wanner, Solving Ordinary Differential Equations I, section II.4, for the choice of step sizes.
"""

from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter

import numpy as np

import hlofront.numpy as jnp
from hlofront.base import tree
from hlofront.base.boundary import boundary
from hlofront.base.dtypes import issubdtype, result_type
from hlofront.base.elements import float0
from hlofront.base.tree import PyTree
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import is_value
from hlofront.higher_order.control_flow.library_loops import fori_loop, scan, while_loop
from hlofront.higher_order.custom_rules.custom_vjp import custom_vjp
from hlofront.numpy.arrays.raveling import ravel_pytree
from hlofront.primitives.elementwise.families import real_of
from hlofront.runtime.dispatch.eval_shape import eval_shape
from hlofront.runtime.dispatch.jit_function import jit
from hlofront.transforms.flatten import check_callable
from hlofront.transforms.grad import vjp
from hlofront.transforms.make_jaxpr import closure_convert
from hlofront.transforms.vmap import vmap

# (state, time, *args) -> the state's derivative by time; both as pytrees, or both as vectors.
Dynamics = Callable[..., PyTree]

# The tableau of Dormand and Prince. Stage i is computed at time t + _NODES[i] dt, from the slopes
# of the stages before, weighted by _WEIGHTS[i]; the last stage is the value of order 5.
_NODES = np.array([1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1])
_WEIGHTS = np.array(
    [
        [1 / 5, 0, 0, 0, 0, 0, 0],
        [3 / 40, 9 / 40, 0, 0, 0, 0, 0],
        [44 / 45, -56 / 15, 32 / 9, 0, 0, 0, 0],
        [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0, 0, 0],
        [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0, 0],
        [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0],
    ]
)
# The weights of Shampine's value of order 4, whose difference from the value estimates the error.
_EMBEDDED = np.array(
    [1951 / 21600, 0, 22642 / 50085, 451 / 720, -12231 / 42400, 649 / 6300, 1 / 60]
)
_ERROR = _WEIGHTS[-1] - _EMBEDDED
# The weights of Shampine's value in the middle of the step.
_MIDDLE = np.array(
    [
        6025192743 / 60171106304,
        0,
        51252292925 / 130801643196,
        -2691868925 / 90256659456,
        187940372067 / 3189068634112,
        -1776094331 / 39487288512,
        11237099 / 470086768,
    ]
)
# From (slope at 0, slope at 1, value at 0, value at 1, value at 1/2) to the coefficients, highest
# first, of the polynomial of degree 4 that has them.
_QUARTIC = np.array(
    [
        [-2, 2, -8, -8, 16],
        [5, -3, 18, 14, -32],
        [-4, 1, -11, -5, 16],
        [1, 0, 0, 0, 0],
        [0, 0, 1, 0, 0],
    ]
)


@boundary
def odeint(
    func: Dynamics,
    y0: PyTree,
    t: ArrayLike,
    *args: PyTree,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: float = np.inf,
    hmax: float = np.inf,
) -> PyTree:
    """Solve the initial value problem dy/dt = func(y, t, *args), y(t[0]) = y0.

    Steps are as long as their estimated error allows, and values at the times between are those of
    a polynomial of degree 4. Gradients are by the adjoint equation, which is solved backwards in
    time with the same tolerances: memory does not grow with the number of steps. There is no
    forward mode.

    Args:
      func: (y, t, *args) -> the derivative of y by time, a pytree like y. It may close over
        traced values.
      y0: a pytree of floating or complex arrays, the state at time t[0].
      t: the times, a vector of floats that increase.
      *args: pytrees of arrays, further arguments of `func`.
      rtol: the relative error that each step may have.
      atol: the absolute error that each step may have.
      mxstep: the greatest number of steps from one time to the next; after it, values are
        extrapolated.
      hmax: the greatest length of a step.

    Returns:
      A pytree like `y0`, of arrays with one more axis at the front, of the size of `t`.

    Raises:
      TypeError: if `t` is not a vector of floats, an array of `y0` is not floating or complex, an
        argument is not an array, or the result of `func` is not like `y0`.
      IndexError: if `t` is empty.
      ValueError: if a tolerance or bound is an array: it must be known while tracing.

    Example:
      >>> odeint(lambda y, t: -y, 1.0, jnp.array([0.0, 1.0]))
      Array([1.        , 0.36787942], dtype=float32)

    Sources: see the module; gradients: R. T. Q. Chen et al., Neural ordinary differential
    equations, NeurIPS 2018, algorithm 1.
    """
    check_callable(func, "odeint")
    for arg in tree.tree_leaves(args):
        if not is_value(arg):
            raise TypeError(
                f"The contents of odeint *args must be arrays or scalars, but got {arg}. Close "
                "over other values instead."
            )
    t = _times(t, y0)
    _check_like_state(eval_shape(func, y0, t[0], *args), y0)
    converted, captured = closure_convert(func, y0, t[0], *args)
    # A function that closes over no traced value is compiled once for all calls with it.
    dynamics = partial(_with_captured, converted, len(captured)) if captured else func
    return _solve_tree(dynamics, rtol, atol, mxstep, hmax, y0, t, *captured, *args)


def _with_captured(converted: Dynamics, count: int, y: PyTree, t: Array, *args: PyTree) -> PyTree:
    return converted(y, t, *args[count:], *args[:count])


def _times(t: ArrayLike, y0: PyTree) -> Array:
    times = jnp.asarray(t)
    if not issubdtype(times.dtype, np.floating) or times.ndim != 1:
        raise TypeError(
            f"t must be an array of floats, but got {t}: odeint requires a vector of times of a "
            "floating dtype"
        )
    if not times.size:
        raise IndexError(
            "t is empty: odeint requires the time of y0, followed by the times of the results"
        )
    for leaf in tree.tree_leaves(y0):
        dtype = jnp.asarray(leaf).dtype
        if not issubdtype(dtype, np.inexact):
            raise TypeError(
                f"y0 must be of floating or complex arrays, but one is of {dtype}: convert it, as "
                "with hlofront.numpy.asarray(y0, float)"
            )
        # Times are sums of steps, which have as many digits as the state.
        times = times.astype(result_type(times.dtype, real_of(dtype)))
    return times


def _check_like_state(derivative: PyTree, y0: PyTree) -> None:
    shapes, own_shapes = (tree.tree_map(jnp.shape, x) for x in (y0, derivative))
    if [*map(jnp.size, tree.tree_leaves(y0))] != [*map(jnp.size, tree.tree_leaves(derivative))]:
        raise TypeError(
            "func must return the derivative of y, a pytree of its shapes: y has the shapes "
            f"{shapes}, the result {own_shapes}"
        )


@partial(jit, static_argnums=(0, 1, 2, 3, 4))
def _solve_tree(
    func: Dynamics,
    rtol: float,
    atol: float,
    mxstep: float,
    hmax: float,
    y0: PyTree,
    ts: Array,
    *args: PyTree,
) -> PyTree:
    """Solve the problem for a pytree, flattened to the vector of its elements."""
    vector, unravel = ravel_pytree(y0)

    def of_vector(y: Array, t: Array, *args: PyTree) -> Array:
        return ravel_pytree(func(unravel(y), t, *args))[0]

    return vmap(unravel)(_solve(of_vector, rtol, atol, mxstep, hmax, vector, ts, *args))


# ---- steps ---------------------------------------------------------------------------------------


def abs2(x: ArrayLike) -> Array:
    """Return the elementwise square of the absolute value."""
    return jnp.square(jnp.real(x)) + jnp.square(jnp.imag(x))


def initial_step_size(
    fun: Dynamics,
    t0: ArrayLike,
    y0: Array,
    order: int,
    rtol: float,
    atol: float,
    f0: Array,
) -> Array:
    """Return the length of a first step, from the slope at the start and after a small step.

    Args:
      fun: (vector, time) -> its slope.
      t0: the time of the start.
      y0: the vector at the start.
      order: the order of the method.
      rtol: the relative error that the step may have.
      atol: the absolute error that the step may have.
      f0: the slope at the start.

    Source: Hairer, Norsett and Wanner, Solving Ordinary Differential Equations I, section II.4.
    """
    allowed = atol + jnp.abs(y0) * rtol
    size, slope = jnp.linalg.norm(y0 / allowed), jnp.linalg.norm(f0 / allowed)
    flat = (size < 1e-5) | (slope < 1e-5)
    small = jnp.where(flat, 1e-6, 0.01 * size / slope)
    change = fun(y0 + small * f0, t0 + small) - f0
    bend = jnp.linalg.norm(change / allowed) / small
    straight = (slope <= 1e-15) & (bend <= 1e-15)
    by_bend = (0.01 / jnp.maximum(slope, bend)) ** (1 / (order + 1))
    return jnp.minimum(100 * small, jnp.where(straight, jnp.maximum(1e-6, small * 1e-3), by_bend))


def _combined(weights: np.ndarray, slopes: Array) -> Array:
    return jnp.tensordot(jnp.asarray(weights, slopes.dtype), slopes, 1, precision="highest")


def runge_kutta_step(
    func: Dynamics, y0: Array, f0: Array, t0: ArrayLike, dt: ArrayLike
) -> tuple[Array, Array, Array, Array]:
    """Make one step of the method of Dormand and Prince.

    Args:
      func: (vector, time) -> its slope.
      y0: the vector at the start of the step.
      f0: the slope there.
      t0: the time there.
      dt: the length of the step.

    Returns:
      (vector at the end, slope there, estimated error of the vector, slopes of the 7 stages).
    """
    weights = jnp.asarray(_WEIGHTS, f0.dtype)
    nodes = jnp.asarray(_NODES, real_of(f0.dtype))

    def stage(i: Array, slopes: Array) -> Array:
        y = y0 + dt * jnp.tensordot(weights[i], slopes, 1, precision="highest")
        return slopes.at[i + 1].set(func(y, t0 + dt * nodes[i]))

    slopes = jnp.zeros((len(_NODES) + 1, *f0.shape), f0.dtype).at[0].set(f0)
    slopes = fori_loop(0, len(_NODES), stage, slopes)
    dt = jnp.asarray(dt)
    y1 = y0 + dt * _combined(_WEIGHTS[-1], slopes)
    return y1, slopes[-1], dt * _combined(_ERROR, slopes), slopes


def mean_error_ratio(
    error_estimate: Array, rtol: float, atol: float, y0: Array, y1: Array
) -> Array:
    """Return the root of the mean square of a step's errors, divided by the allowed errors."""
    allowed = atol + rtol * jnp.maximum(jnp.abs(y0), jnp.abs(y1))
    return jnp.sqrt(jnp.mean(abs2(error_estimate / allowed)))


def optimal_step_size(
    last_step: Array,
    mean_error_ratio: Array,
    safety: float = 0.9,
    ifactor: float = 10.0,
    dfactor: float = 0.2,
    order: float = 5.0,
) -> Array:
    """Return the length of the next step.

    Args:
      last_step: the length of the last one.
      mean_error_ratio: its error over the allowed error.
      safety: the fraction that is taken of the length with the allowed error.
      ifactor: the greatest factor by which a step is longer than the last.
      dfactor: the least factor; steps get shorter only where the error was greater than allowed.
      order: the order of the error of one step.
    """
    least = jnp.where(mean_error_ratio < 1, 1.0, dfactor)
    factor = jnp.maximum(mean_error_ratio ** (-1 / order) * safety, least)
    factor = jnp.where(mean_error_ratio == 0, ifactor, jnp.minimum(ifactor, factor))
    return last_step * factor


def fit_4th_order_polynomial(
    y0: Array, y1: Array, y_mid: Array, dy0: Array, dy1: Array, dt: ArrayLike
) -> tuple[Array, ...]:
    """Return the coefficients of a step's polynomial of degree 4, the highest power first.

    Args:
      y0: the value at the start, where the polynomial's variable is 0.
      y1: the value at the end, where it is 1.
      y_mid: the value in the middle.
      dy0: the slope by time at the start.
      dy1: the slope by time at the end.
      dt: the length of the step.
    """
    return tuple(_quartic(y0, y1, y_mid, dy0, dy1, dt))


def _quartic(y0: Array, y1: Array, y_mid: Array, dy0: Array, dy1: Array, dt: ArrayLike) -> Array:
    return _combined(_QUARTIC, jnp.stack([dt * dy0, dt * dy1, y0, y1, y_mid]))


def interp_fit_dopri(y0: Array, y1: Array, k: Array, dt: ArrayLike) -> Array:
    """Return the coefficients of the polynomial of a step of Dormand and Prince, highest first.

    Args:
      y0: the vector at the start.
      y1: the vector at the end.
      k: the slopes of the 7 stages.
      dt: the length of the step.
    """
    return _quartic(y0, y1, y0 + dt * _combined(_MIDDLE, k), k[0], k[-1], dt)


# ---- the solution and its adjoint ----------------------------------------------------------------


@partial(custom_vjp, nondiff_argnums=(0, 1, 2, 3, 4))
def _solve(
    func: Dynamics,
    rtol: float,
    atol: float,
    mxstep: float,
    hmax: float,
    y0: Array,
    ts: Array,
    *args: PyTree,
) -> Array:
    """Return the vectors at the times `ts`, one row per time."""

    def slope(y: Array, t: Array) -> Array:
        return func(y, t, *args)

    def to_time(state: PyTree, target: Array) -> tuple[PyTree, Array]:
        def cond(counted: tuple[Array, PyTree]) -> Array:
            steps, (_, _, t, dt, _, _) = counted
            return (t < target) & (steps < mxstep) & (dt > 0)

        def step(counted: tuple[Array, PyTree]) -> tuple[Array, PyTree]:
            steps, (y, f, t, dt, start, polynomial) = counted
            next_y, next_f, error, slopes = runge_kutta_step(slope, y, f, t, dt)
            ratio = mean_error_ratio(error, rtol, atol, y, next_y)
            next_dt = jnp.clip(optimal_step_size(dt, ratio), 0, hmax)
            made = next_y, next_f, t + dt, next_dt, t, interp_fit_dopri(y, next_y, slopes, dt)
            failed = y, f, t, next_dt, start, polynomial
            return steps + 1, tree.tree_map(partial(jnp.where, ratio <= 1), made, failed)

        _, state = while_loop(cond, step, (jnp.asarray(0), state))
        _, _, t, _, start, polynomial = state
        passed = (target - start) / (t - start)
        return state, jnp.polyval(polynomial, passed.astype(dt.dtype))

    f0 = slope(y0, ts[0])
    dt = jnp.clip(initial_step_size(slope, ts[0], y0, 4, rtol, atol, f0), 0, hmax)
    state = y0, f0, ts[0], dt, ts[0], jnp.stack([y0] * len(_QUARTIC))
    _, ys = scan(to_time, state, ts[1:])
    return jnp.concatenate([y0[None], ys])


def _solve_forward(
    func: Dynamics,
    rtol: float,
    atol: float,
    mxstep: float,
    hmax: float,
    y0: Array,
    ts: Array,
    *args: PyTree,
) -> tuple[Array, tuple[Array, Array, Sequence[PyTree]]]:
    ys = _solve(func, rtol, atol, mxstep, hmax, y0, ts, *args)
    return ys, (ys, ts, args)


def _solve_backward(
    func: Dynamics,
    rtol: float,
    atol: float,
    mxstep: float,
    hmax: float,
    residuals: tuple[Array, Array, Sequence[PyTree]],
    cotangents: Array,
) -> tuple[PyTree, ...]:
    ys, ts, args = residuals
    leaves, structure = tree.tree_flatten(args)
    is_inexact = [issubdtype(jnp.asarray(leaf).dtype, np.inexact) for leaf in leaves]
    inexact = [jnp.asarray(leaf) for leaf, m in zip(leaves, is_inexact, strict=True) if m]

    def adjoint(state: PyTree, t: Array, *args: PyTree) -> PyTree:
        """Return the slopes, backwards in time, of the vector and of all cotangents."""
        y, y_cotangent, _, _ = state
        leaves = tree.tree_leaves(args)

        def of_inexact(y: Array, t: Array, inexact: Sequence[Array]) -> Array:
            rest = iter(inexact)
            whole = [next(rest) if m else leaf for leaf, m in zip(leaves, is_inexact, strict=True)]
            return func(y, t, *structure.unflatten(whole))

        inexact_args = [leaf for leaf, m in zip(leaves, is_inexact, strict=True) if m]
        derivative, pull_back = vjp(of_inexact, y, -t, inexact_args)
        return -derivative, *pull_back(y_cotangent)

    def to_time_before(carry: PyTree, i: Array) -> tuple[PyTree, Array]:
        y_cotangent, start_cotangent, moving_cotangents = carry
        product = jnp.sum(func(ys[i], ts[i], *args) * cotangents[i])
        t_cotangent = jnp.real(product).astype(ts.dtype)
        state = ys[i], y_cotangent, start_cotangent - t_cotangent, moving_cotangents
        backwards = jnp.stack([-ts[i], -ts[i - 1]])
        states = _solve_tree(adjoint, rtol, atol, mxstep, hmax, state, backwards, *args)
        _, y_cotangent, start_cotangent, moving_cotangents = tree.tree_map(itemgetter(1), states)
        y_cotangent = y_cotangent + cotangents[i - 1]
        return (y_cotangent, start_cotangent, moving_cotangents), t_cotangent

    zeros = [jnp.zeros_like(x) for x in inexact]
    carry = cotangents[-1], jnp.zeros((), ts.dtype), zeros
    (y_cotangent, start_cotangent, moving_cotangents), t_cotangents = scan(
        to_time_before, carry, jnp.arange(1, len(ts)), reverse=True
    )
    rest = iter(moving_cotangents)
    of_args = [
        next(rest) if m else np.zeros(jnp.shape(leaf), float0)
        for leaf, m in zip(leaves, is_inexact, strict=True)
    ]
    of_times = jnp.concatenate([start_cotangent[None], t_cotangents])
    return y_cotangent, of_times, *structure.unflatten(of_args)


_solve.defvjp(_solve_forward, _solve_backward)
