"""The minimization of smooth functions by BFGS and by limited-memory BFGS."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

import hlofront.numpy as jnp
from hlofront.base import tree
from hlofront.base.dtypes import is_complex
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.higher_order.while_loop import fori_loop, while_loop
from hlofront.numpy.linalg.norms import norm as norm_of
from hlofront.numpy.promotion import check_arraylike
from hlofront.primitives import elementwise
from hlofront.runtime.dispatch.operation import operation
from hlofront.scipy.optimize.line_search import Objective, line_search
from hlofront.transforms.grad import value_and_grad


class OptimizeResults(NamedTuple):
    """The result of a minimization.

    Attributes:
      x: the point of the minimum.
      success: whether the search converged.
      status: 0 if the search converged, 1 after too many iterations, 2 after too many evaluations,
        3 or 5 if no step lowered the value, in an interval that should have one or anywhere. `x` is
        then the best point so far.
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
    """The limits of a search; `ftol` None means no limit, and BFGS has no `maxcor`."""

    maxiter: int
    maxfun: int
    line_search_maxiter: int
    norm: float
    gtol: float
    ftol: float | None
    maxcor: int


class _Pairs(NamedTuple):
    """The latest steps and gradient changes, and the inverses of their products; newest last."""

    moves: Array
    bends: Array
    factors: Array
    scale: Array


# The memory of past steps: an approximation of the inverse Hessian, or pairs of vectors.
_Memory = TypeVar("_Memory", Array, _Pairs)


class _State(NamedTuple, Generic[_Memory]):
    x: Array
    value: Array
    gradient: Array
    # The value before the last step, which predicts the length of the next step.
    before: Array
    memory: _Memory
    # True while the memory is empty: the direction is that of steepest descent.
    fresh: Array
    # One over the curvature along the last step; 0 where none is known.
    inverse_curvature: Array
    steps: Array | int
    evaluated: Array | int
    status: Array


# The status of a search that has not ended.
_GOING = -1


def _descend(
    objective: Objective,
    x: Array,
    memory: _Memory,
    direction_of: Callable[[_Memory, Array], Array],
    updated: Callable[[_Memory, Array, Array], _Memory],
    options: _Options,
) -> _State[_Memory]:
    """Minimize by line searches along directions computed from the memory of past steps.

    Where no step along the direction lowers the value, rounding errors have spoiled the memory, as
    happens where variables are badly scaled: it is emptied, and the search continues with steepest
    descent.

    Args:
      objective: the function and its gradient.
      x: the first point.
      memory: the memory before any step.
      direction_of: a function from a memory and a gradient to a direction.
      updated: a function from a memory, a step and the change of the gradient over it to the new
        memory.
      options: the limits of the search.
    """
    empty = memory
    value, gradient = objective(x)
    small = norm_of(gradient, options.norm) < options.gtol

    def body(state: _State[_Memory]) -> _State[_Memory]:
        direction = direction_of(state.memory, state.gradient)
        slope = jnp.dot(direction, state.gradient)
        uphill = (slope >= 0) & jnp.logical_not(state.fresh)
        direction = jnp.where(uphill, -state.gradient, direction)
        slope = jnp.where(uphill, jnp.dot(direction, state.gradient), slope)
        fresh = state.fresh | uphill
        # The step is expected to lower the value as the last one did: Nocedal and Wright (2006),
        # (3.60).
        guess = jnp.minimum(1.0, 2.02 * (state.value - state.before) / slope)
        guess = jnp.where(guess > 0, guess, jnp.ones_like(guess))
        guess = jnp.where(fresh & (state.inverse_curvature > 0), state.inverse_curvature, guess)
        step = line_search(
            objective,
            state.x,
            direction,
            state.value,
            state.gradient,
            guess,
            options.line_search_maxiter,
        )
        point = step.point
        move = jnp.where(step.good, point.step * direction, 0)
        bend = jnp.where(step.good, point.gradient - state.gradient, 0)
        x = state.x + move
        value = jnp.where(step.good, point.value, state.value)
        gradient = jnp.where(step.good, point.gradient, state.gradient)
        evaluated = state.evaluated + step.evaluated
        steps = state.steps + 1
        fall = state.value - value
        sizes = jnp.maximum(jnp.maximum(jnp.abs(state.value), jnp.abs(value)), 1)
        converged = norm_of(gradient, options.norm) < options.gtol
        if options.ftol is not None:
            converged |= step.good & jnp.isfinite(value) & (fall <= options.ftol * sizes)
        status = jnp.where(
            step.good | jnp.logical_not(fresh), _GOING, jnp.where(step.zooming, 3, 5)
        )
        status = jnp.where(steps >= options.maxiter, 1, status)
        status = jnp.where(evaluated >= options.maxfun, 2, status)
        status = jnp.where(converged, 0, status)
        memory = _where(uphill, empty, state.memory)
        memory = _where(step.good, updated(memory, move, bend), empty)
        fresh = jnp.logical_not(step.good)
        before = jnp.where(step.good, state.value, state.before)
        curvature = jnp.dot(bend, move)
        known = curvature > 0
        inverse_curvature = jnp.where(
            known, jnp.dot(move, move) / jnp.where(known, curvature, 1), state.inverse_curvature
        )
        return _State(
            x=x,
            value=value,
            gradient=gradient,
            before=before,
            memory=memory,
            fresh=fresh,
            inverse_curvature=inverse_curvature,
            steps=steps,
            evaluated=evaluated,
            status=status,
        )

    status = jnp.where(small, 0, 1 if options.maxiter <= 0 else _GOING)
    # The first step is sized as if an earlier one had lowered the value by half the gradient norm.
    before = value + norm_of(gradient) / 2
    never = jnp.zeros_like(before)
    start = _State(
        x=x,
        value=value,
        gradient=gradient,
        before=before,
        memory=memory,
        fresh=jnp.ones((), bool),
        inverse_curvature=never,
        steps=0,
        evaluated=1,
        status=status,
    )
    return while_loop(lambda state: state.status == _GOING, body, start)


def _where(which: Array, one: _Memory, other: _Memory) -> _Memory:
    """Return `one` where `which` is true, and `other` elsewhere, leaf by leaf."""
    return tree.tree_map(lambda a, b: jnp.where(which, a, b), one, other)


# ---- BFGS ----------------------------------------------------------------------------------------


def _bfgs(objective: Objective, x: Array, options: _Options) -> OptimizeResults:
    """Minimize by BFGS, with update (6.17) of Nocedal and Wright, Numerical Optimization (2006)."""
    identity = jnp.eye(typeof(x).shape[0], dtype=typeof(x).dtype)

    def direction_of(inverse: Array, gradient: Array) -> Array:
        return -jnp.dot(inverse, gradient)

    def updated(inverse: Array, move: Array, bend: Array) -> Array:
        curvature = jnp.dot(bend, move)
        # Steps without positive curvature do not update the memory.
        known = curvature > 0
        factor = 1 / jnp.where(known, curvature, 1)
        left = identity - factor * jnp.outer(move, bend)
        new = left @ inverse @ left.T + factor * jnp.outer(move, move)
        return jnp.where(known, new, inverse)

    end = _descend(objective, x, identity, direction_of, updated, options)
    return _results(end, end.memory)


def _results(end: _State, inverse: Array | None) -> OptimizeResults:
    return OptimizeResults(
        x=end.x,
        success=(end.status == 0).astype(bool),
        status=end.status,
        fun=end.value,
        jac=end.gradient,
        hess_inv=inverse,
        nfev=end.evaluated,
        njev=end.evaluated,
        nit=end.steps,
    )


# ---- with limited memory -------------------------------------------------------------------------


def _lbfgs(objective: Objective, x: Array, options: _Options) -> OptimizeResults:
    """Minimize by limited-memory BFGS, algorithm 7.4 of Nocedal and Wright (2006)."""
    count, size = options.maxcor, typeof(x).shape[0]
    dtype = typeof(x).dtype
    # Pairs that are not stored yet have the factor 0.
    empty = _Pairs(
        jnp.zeros((count, size), dtype),
        jnp.zeros((count, size), dtype),
        jnp.zeros((count,), dtype),
        jnp.ones((), dtype),
    )

    def direction_of(pairs: _Pairs, gradient: Array) -> Array:
        def back(i: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            rest, shares = carry
            i = count - 1 - i
            share = pairs.factors[i] * jnp.dot(pairs.moves[i], rest)
            return rest - share * pairs.bends[i], shares.at[i].set(share)

        def forth(i: Array, rest: Array) -> Array:
            share = pairs.factors[i] * jnp.dot(pairs.bends[i], rest)
            return rest + pairs.moves[i] * (shares[i] - share)

        rest, shares = fori_loop(0, count, back, (gradient, jnp.zeros((count,), dtype)))
        return -fori_loop(0, count, forth, pairs.scale * rest)

    def updated(pairs: _Pairs, move: Array, bend: Array) -> _Pairs:
        curvature = jnp.dot(bend, move)
        known = curvature > 0
        factor = 1 / jnp.where(known, curvature, 1)
        new = _Pairs(
            jnp.roll(pairs.moves, -1, 0).at[-1].set(move),
            jnp.roll(pairs.bends, -1, 0).at[-1].set(bend),
            jnp.roll(pairs.factors, -1).at[-1].set(factor),
            curvature / jnp.where(known, jnp.dot(bend, bend), 1),
        )
        return _Pairs(*[jnp.where(known, a, b) for a, b in zip(new, pairs, strict=True)])

    return _results(_descend(objective, x, empty, direction_of, updated, options), None)


# ---- the door ------------------------------------------------------------------------------------

_LIMITED = "l-bfgs-experimental-do-not-rely-on-this"
# The function behind each method, and its options with their defaults.
_METHODS: dict[str, tuple[Callable[..., OptimizeResults], dict[str, Any]]] = {
    "bfgs": (_bfgs, {"maxiter": None, "norm": math.inf, "gtol": 1e-5, "line_search_maxiter": 20}),
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
    if method != _LIMITED or not is_complex(typeof(x0).dtype):
        return descend(value_and_grad(lambda x: fun(x, *args)), x0, options)
    # A complex vector is searched as its real parts followed by its imaginary parts.
    count = typeof(x0).shape[0]

    def joined(parts: Array, sign: int = 1) -> Array:
        return elementwise.complex(parts[:count], sign * parts[count:])

    objective = value_and_grad(lambda parts: fun(joined(parts), *args))
    result = descend(objective, jnp.concatenate([jnp.real(x0), jnp.imag(x0)]), options)
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

    It can be called under jit and vmap. Called again with the same function object and shapes, it
    is not compiled again.

    Args:
      fun: `fun(x, *args)`, which returns a real scalar and has a derivative.
      x0: the first point: an array of shape (N,) of floats.
      args: more arguments of `fun`.
      method: must be "BFGS".
      tol: the bound on the norm of the gradient.
      options: the options of BFGS: `maxiter`, the greatest number of steps, N * 200 by default;
        `gtol`, the bound on the norm of the gradient, 1e-5 by default; `norm`, the order of that
        norm, infinity by default; `line_search_maxiter`, the number of trials of each step, 20 by
        default.

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
    limits = [chosen.get("maxfun"), chosen.get("maxgrad")]
    whole = np.iinfo(np.int32).max
    most_steps = typeof(x0).size * 200 if name == "bfgs" else whole
    settings = _Options(
        maxiter=most_steps if chosen["maxiter"] is None else chosen["maxiter"],
        maxfun=min([limit for limit in limits if limit is not None], default=whole),
        line_search_maxiter=chosen["line_search_maxiter" if name == "bfgs" else "maxls"],
        norm=chosen["norm"],
        gtol=chosen["gtol"],
        ftol=chosen.get("ftol"),
        maxcor=chosen.get("maxcor", 0),
    )
    return _run(fun, x0, args, method=name, options=settings)
