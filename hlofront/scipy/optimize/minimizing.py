"""The minimization of smooth functions by BFGS and by limited-memory BFGS."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

import hlofront.numpy as jnp
from hlofront.base.dtypes import is_complex
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.higher_order.control_flow.library_loops import fori_loop, while_loop
from hlofront.numpy.linalg.norms import norm as norm_of
from hlofront.numpy.support.promotion import check_arraylike
from hlofront.primitives.elementwise import elementwise
from hlofront.runtime.dispatch.operation import operation
from hlofront.scipy.optimize.line_search import (
    LineSearchStep,
    Objective,
    line_search,
    precise_dot,
)
from hlofront.transforms.grad import value_and_grad


class OptimizeResults(NamedTuple):
    """The result of a minimization.

    Attributes:
      x: the point of the minimum.
      success: whether the search converged.
      status: 0 if the search converged, 1 after too many iterations. With BFGS: 3 if the line
        search failed in an interval that must contain a good step, 5 after too many trials of a
        step. With limited memory: 2 or 3 after too many evaluations of the function or the
        gradient, 4 if the value hardly decreased, 5 if the line search failed. Unless the search
        converged, `x` is the last point, which need not be the best.
      fun: the value at `x`.
      jac: the gradient at `x`.
      hess_inv: an approximation of the inverse of the Hessian, or None.
      nfev: the number of evaluations of the function.
      njev: the number of evaluations of the gradient.
      nit: the number of steps.
    """

    x: Array
    success: Array
    status: Array
    fun: Array
    jac: Array
    hess_inv: Array | None
    nfev: Array
    njev: Array
    nit: Array


@dataclass(frozen=True, slots=True)
class _Options:
    """The limits of a search; those of evaluations, `ftol` and `maxcor` are not for BFGS."""

    maxiter: int
    maxfun: int
    maxgrad: int
    line_search_maxiter: int
    norm: float
    gtol: float
    ftol: float
    maxcor: int


class _Pairs(NamedTuple):
    """The latest steps and gradient changes, and the inverses of their products; newest last."""

    moves: Array
    bends: Array
    factors: Array
    scale: Array | float


# The memory of past steps: an approximation of the inverse Hessian, or pairs of vectors.
_Memory = TypeVar("_Memory")


# The norm of a gradient, which is small where a search has converged.
_Norm = Callable[[Array], Array]


class _State(NamedTuple, Generic[_Memory]):
    x: Array
    value: Array
    gradient: Array
    memory: _Memory
    steps: Array | int
    evaluated: Array | int
    converged: Array | bool
    failed: Array | bool
    status: Array | int


# ---- BFGS ----------------------------------------------------------------------------------------


class _Dense(NamedTuple):
    """The memory of BFGS: an approximation of the inverse Hessian, and the value one step ago."""

    inverse: Array
    before: Array


def _bfgs(objective: Objective, x: Array, options: _Options, size_of: _Norm) -> OptimizeResults:
    """Minimize by BFGS, algorithm 6.1 of Nocedal and Wright, Numerical Optimization (2006)."""
    identity = jnp.eye(typeof(x).shape[0], dtype=typeof(x).dtype)

    def body(state: _State[_Dense]) -> _State[_Dense]:
        inverse, before = state.memory
        direction = -precise_dot(inverse, state.gradient)
        # The step is expected to lower the value as the last one did: (3.60) in the book.
        slope = precise_dot(state.gradient, direction)
        guess = 2.02 * (state.value - before) / slope
        first = jnp.where(guess > 1, 1.0, guess)
        step = _step(objective, state, direction, first, options)
        move = step.step * direction
        bend = step.gradient - state.gradient
        return _State(
            x=state.x + move,
            value=step.value,
            gradient=step.gradient,
            memory=_Dense(_updated(identity, inverse, move, bend), state.value),
            steps=state.steps + 1,
            evaluated=state.evaluated + step.evaluated,
            converged=size_of(step.gradient) < options.gtol,
            failed=step.failed,
            status=step.status,
        )

    def going(state: _State[_Dense]) -> Array:
        return jnp.logical_not(state.converged | state.failed) & (state.steps < options.maxiter)

    value, gradient = objective(x)
    converged = size_of(gradient) < options.gtol
    # The first step is sized as if an earlier one had lowered the value by half the gradient norm.
    memory = _Dense(identity, value + norm_of(gradient) / 2)
    end = while_loop(going, body, _State(x, value, gradient, memory, 0, 1, converged, False, 0))
    stopped = jnp.where(end.failed, 2 + end.status, -1)
    stopped = jnp.where(end.steps == options.maxiter, 1, stopped)
    status = jnp.where(end.converged, 0, stopped)
    return _results(end._replace(status=status), end.memory.inverse)


def _updated(identity: Array, inverse: Array, move: Array, bend: Array) -> Array:
    """Return the inverse Hessian after a step, or the previous one if the step has no curvature."""
    factor = 1 / precise_dot(bend, move)
    left = identity - factor * jnp.outer(move, bend)
    product = precise_dot(precise_dot(left, inverse), left.T)
    return jnp.where(jnp.isfinite(factor), product + factor * jnp.outer(move, move), inverse)


def _step(
    objective: Objective,
    state: _State[Any],
    direction: Array,
    first: Array | float,
    options: _Options,
) -> LineSearchStep:
    at = (state.x, direction, state.value, state.gradient)
    return line_search(objective, *at, first, options.line_search_maxiter)


def _results(end: _State[Any], inverse: Array | None) -> OptimizeResults:
    return OptimizeResults(
        x=end.x,
        success=end.converged & ~end.failed,
        status=end.status,
        fun=end.value,
        jac=end.gradient,
        hess_inv=inverse,
        nfev=end.evaluated,
        njev=end.evaluated,
        nit=end.steps,
    )


# ---- with limited memory -------------------------------------------------------------------------


def _lbfgs(objective: Objective, x: Array, options: _Options, size_of: _Norm) -> OptimizeResults:
    """Minimize by limited-memory BFGS, algorithm 7.5 of Nocedal and Wright (2006)."""
    count, size = options.maxcor, typeof(x).shape[0]
    dtype = typeof(x).dtype

    def direction_of(pairs: _Pairs, gradient: Array, steps: Array | int) -> Array:
        known = jnp.minimum(steps, count)

        def back(i: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            rest, shares = carry
            i = count - 1 - i
            share = pairs.factors[i] * precise_dot(pairs.moves[i], rest)
            return rest - share * pairs.bends[i], shares.at[i].set(share)

        def forth(i: Array, rest: Array) -> Array:
            i = count - known + i
            share = pairs.factors[i] * precise_dot(pairs.bends[i], rest)
            return rest + pairs.moves[i] * (shares[i] - share)

        start = (-gradient, jnp.zeros((count,), dtype))
        rest, shares = fori_loop(0, known, back, start)
        return fori_loop(0, known, forth, pairs.scale * rest)

    def body(state: _State[_Pairs]) -> _State[_Pairs]:
        pairs = state.memory
        direction = direction_of(pairs, state.gradient, state.steps)
        step = _step(objective, state, direction, 1.0, options)
        move = step.step * direction
        bend = step.gradient - state.gradient
        curvature = precise_dot(bend, move)
        converged = size_of(step.gradient) < options.gtol
        # Where several reasons apply, the one named last is reported.
        status = jnp.where(state.value - step.value < options.ftol, 4, 0)
        status = jnp.where(state.evaluated >= options.maxgrad, 3, status)
        status = jnp.where(state.evaluated >= options.maxfun, 2, status)
        status = jnp.where(state.steps >= options.maxiter, 1, status)
        status = jnp.where(step.failed, 5, status)
        return _State(
            x=state.x + move,
            value=step.value,
            gradient=step.gradient,
            memory=_Pairs(
                jnp.roll(pairs.moves, -1, 0).at[-1].set(move),
                jnp.roll(pairs.bends, -1, 0).at[-1].set(bend),
                jnp.roll(pairs.factors, -1).at[-1].set(1 / curvature),
                curvature / precise_dot(bend, bend),
            ),
            steps=state.steps + 1,
            evaluated=state.evaluated + step.evaluated,
            converged=converged,
            failed=(status > 0) & ~converged,
            status=jnp.where(converged, 0, status),
        )

    def going(state: _State[_Pairs]) -> Array:
        return jnp.logical_not(state.converged | state.failed)

    value, gradient = objective(x)
    pairs = jnp.zeros((count, size), dtype)
    memory = _Pairs(pairs, pairs, jnp.zeros((count,), dtype), 1.0)
    start = _State(x, value, gradient, memory, 0, 1, False, False, 0)
    return _results(while_loop(going, body, start), None)


# ---- the public function -------------------------------------------------------------------------

_LIMITED = "l-bfgs-experimental-do-not-rely-on-this"
# The function behind each method, and its options with their defaults.
_METHODS: dict[str, tuple[Callable[..., OptimizeResults], dict[str, Any]]] = {
    "bfgs": (_bfgs, {"maxiter": None, "norm": math.inf, "gtol": 1e-5, "line_search_maxiter": 10}),
    _LIMITED: (
        _lbfgs,
        {
            "maxiter": None,
            "norm": math.inf,
            "maxcor": 10,
            "ftol": 2.220446049250313e-09,
            "gtol": 1e-5,
            "maxfun": None,
            "maxgrad": None,
            "maxls": 20,
        },
    ),
}


@operation(static_argnames=("fun", "method", "options"))
def _run(
    fun: Callable[..., Array],
    x0: ArrayLike,
    args: tuple[object, ...],
    *,
    method: str,
    options: _Options,
) -> OptimizeResults:
    descend = _METHODS[method][0]

    def size_of(gradient: Array) -> Array:
        return norm_of(gradient, options.norm)

    if method != _LIMITED or not is_complex(typeof(x0).dtype):
        return descend(value_and_grad(lambda x: fun(x, *args)), x0, options, size_of)
    # A complex vector is searched as its real parts followed by its imaginary parts.
    count = typeof(x0).shape[0]

    def joined(parts: Array, sign: int = 1) -> Array:
        return elementwise.complex(parts[:count], sign * parts[count:])

    objective = value_and_grad(lambda parts: fun(joined(parts), *args))
    parts = jnp.concatenate([jnp.real(x0), jnp.imag(x0)])
    result = descend(objective, parts, options, lambda gradient: size_of(joined(gradient)))
    # The gradient with respect to a complex variable is conjugated.
    return result._replace(x=joined(result.x), jac=joined(result.jac, -1))


def minimize(
    fun: Callable[..., Array],
    x0: ArrayLike,
    args: tuple[object, ...] = (),
    *,
    method: str,
    tol: float | None = None,
    options: Mapping[str, object] | None = None,
) -> OptimizeResults:
    """Compute a local minimum of a smooth function of several variables.

    It can be called under jit and vmap. Calls with the same function object and shapes share a
    compiled program.

    Args:
      fun: `fun(x, *args)`, which returns a real scalar and has a derivative.
      x0: the first point: an array of shape (N,) of floats.
      args: more arguments of `fun`.
      method: must be "BFGS".
      tol: the bound on the norm of the gradient.
      options: the options of BFGS: `maxiter`, the greatest number of steps, N * 200 by default;
        `gtol`, the bound on the norm of the gradient, 1e-5 by default; `norm`, the order of that
        norm, infinity by default; `line_search_maxiter`, how many times a step may be doubled, 10
        by default.

    Returns:
      An OptimizeResults.

    Raises:
      ValueError: if there is no such method.
      TypeError: if `args` is not a tuple, an option is unknown, or `x0` has several axes or is of
        integers.
      IndexError: if `x0` is a scalar.
    """
    if not isinstance(args, tuple):
        raise TypeError(f"args argument to jax.scipy.optimize.minimize must be a tuple, got {args}")
    name = method.lower()
    if name not in _METHODS:
        raise ValueError(f"Method {method} not recognized: give 'BFGS'")
    chosen = dict(_METHODS[name][1])
    if tol is not None:
        chosen.update({key: tol for key in ("ftol", "gtol") if key in chosen})
    for key, value in (options or {}).items():
        if key not in chosen:
            raise TypeError(
                f"minimize with {method} got an unexpected option {key!r}: there are "
                f"{', '.join(chosen)}"
            )
        chosen[key] = value
    check_arraylike("minimize", x0)
    shape = typeof(x0).shape
    if not shape:
        raise IndexError("x0 of minimize must have shape (N,), got a scalar: give x0[None]")
    if len(shape) > 1:
        raise TypeError(
            f"x0 of minimize must have shape (N,), got {shape}: flatten it, and let fun reshape it"
        )
    limits = {key: chosen.get(key) for key in ("maxiter", "maxfun", "maxgrad")}
    if all(limit is None for limit in limits.values()):
        limits["maxiter"] = typeof(x0).size * 200
    no_limit = np.iinfo(np.int32).max
    settings = _Options(
        **{key: no_limit if limit is None else limit for key, limit in limits.items()},
        line_search_maxiter=chosen["line_search_maxiter" if name == "bfgs" else "maxls"],
        norm=chosen["norm"],
        gtol=chosen["gtol"],
        ftol=chosen.get("ftol", 0.0),
        maxcor=chosen.get("maxcor", 0),
    )
    return _run(fun, x0, args, method=name, options=settings)
