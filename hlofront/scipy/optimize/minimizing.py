"""Minima of smooth functions: BFGS, and its form for many variables."""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

import hlofront.numpy as jnp
from hlofront.base import tree
from hlofront.base.dtypes import issubdtype
from hlofront.core.aval import typeof
from hlofront.higher_order.while_loop import fori_loop, while_loop
from hlofront.numpy.linalg.norms import norm as norm_of
from hlofront.numpy.promotion import check_arraylike
from hlofront.primitives import elementwise
from hlofront.runtime.dispatch.operation import operation
from hlofront.scipy.optimize.line_search import line_search
from hlofront.transforms.grad import value_and_grad


class OptimizeResults(NamedTuple):
    """What a minimization found.

    Attributes:
      x: the place of the minimum.
      success: whether it converged.
      status: 0 if it converged, 1 after too many iterations, 2 after too many evaluations, 3 or 5
        if there was no step that goes down: in an interval that should have one, or at all. Then
        `x` is the best one so far.
      fun: the value at `x`.
      jac: the gradient at `x`.
      hess_inv: an approximation of the inverse of the Hessian, or None.
      nfev: how often the function was evaluated.
      njev: how often its gradient was.
      nit: how many steps were taken.
    """

    x: Any
    success: Any
    status: Any
    fun: Any
    jac: Any
    hess_inv: Any
    nfev: Any
    njev: Any
    nit: Any


class _State(NamedTuple):
    x: Any
    value: Any
    gradient: Any
    # Of the step before, from which the length of the next one is guessed.
    before: Any
    memory: Any
    # Whether the memory is empty, so that the direction is that of steepest descent.
    fresh: Any
    # One over the curvature along the last step that was taken; 0 where none is known.
    inverse_curvature: Any
    steps: Any
    evaluated: Any
    status: Any


# Status of a search that goes on.
_GOING = -1


def _descend(
    objective: Callable[[Any], tuple[Any, Any]],
    x: Any,
    memory: Any,
    direction_of: Callable[[Any, Any], Any],
    updated: Callable[[Any, Any, Any], Any],
    options: Mapping[str, Any],
) -> _State:
    """Steps downhill until the gradient is small, the memory of past steps giving directions.

    Where no step along the direction goes down, rounding errors have spoilt the memory, as they do
    where variables are badly scaled: it is emptied, and the search goes on with steepest descent.
    """
    empty = memory
    value, gradient = objective(x)
    small = norm_of(gradient, options["norm"]) < options["gtol"]

    def body(state: _State) -> _State:
        direction = direction_of(state.memory, state.gradient)
        slope = jnp.dot(direction, state.gradient)
        uphill = (slope >= 0) & jnp.logical_not(state.fresh)
        direction = jnp.where(uphill, -state.gradient, direction)
        slope = jnp.where(uphill, jnp.dot(direction, state.gradient), slope)
        fresh = state.fresh | uphill
        # As much lower again as the step before, and whole steps in the end: Nocedal and Wright.
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
            options["line_search_maxiter"],
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
        converged = norm_of(gradient, options["norm"]) < options["gtol"]
        if options["ftol"] is not None:
            converged |= step.good & jnp.isfinite(value) & (fall <= options["ftol"] * sizes)
        status = jnp.where(
            step.good | jnp.logical_not(fresh), _GOING, jnp.where(step.zooming, 3, 5)
        )
        status = jnp.where(steps >= options["maxiter"], 1, status)
        status = jnp.where(evaluated >= options["maxfun"], 2, status)
        status = jnp.where(converged, 0, status)
        kept = _where(uphill, empty, state.memory)
        memory = _where(step.good, updated(kept, move, bend), empty)
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

    status = jnp.where(small, 0, 1 if options["maxiter"] <= 0 else _GOING)
    # As if the step before had gone down by half of the gradient's length.
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


def _where(which: Any, one: Any, other: Any) -> Any:
    """One of two trees of arrays."""
    return tree.tree_map(lambda a, b: jnp.where(which, a, b), one, other)


# ---- BFGS ----------------------------------------------------------------------------------------


def _bfgs(objective: Any, x: Any, options: Mapping[str, Any]) -> OptimizeResults:
    """Formula (6.17) of Nocedal and Wright: the inverse of the Hessian from gradients."""
    identity = jnp.eye(typeof(x).shape[0], dtype=typeof(x).dtype)

    def direction_of(inverse, gradient):
        return -jnp.dot(inverse, gradient)

    def updated(inverse, move, bend):
        curvature = jnp.dot(bend, move)
        # Without curvature along the step nothing is to be learnt from it.
        known = curvature > 0
        factor = 1 / jnp.where(known, curvature, 1)
        left = identity - factor * jnp.outer(move, bend)
        new = left @ inverse @ left.T + factor * jnp.outer(move, move)
        return jnp.where(known, new, inverse)

    end = _descend(objective, x, identity, direction_of, updated, options)
    return _results(end, end.memory)


def _results(end: _State, inverse: Any) -> OptimizeResults:
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


class _Pairs(NamedTuple):
    """The last steps, how gradients changed over them, and one over their products; newest last."""

    moves: Any
    bends: Any
    factors: Any
    scale: Any


def _lbfgs(objective: Any, x: Any, options: Mapping[str, Any]) -> OptimizeResults:
    """Algorithm 7.4 of Nocedal and Wright: the inverse is never written down."""
    count, size = options["maxcor"], typeof(x).shape[0]
    dtype = typeof(x).dtype
    # Factors of 0 are those of pairs that are not there yet.
    empty = _Pairs(
        jnp.zeros((count, size), dtype),
        jnp.zeros((count, size), dtype),
        jnp.zeros((count,), dtype),
        jnp.ones((), dtype),
    )

    def direction_of(pairs, gradient):
        def back(i, carry):
            rest, shares = carry
            place = count - 1 - i
            share = pairs.factors[place] * jnp.dot(pairs.moves[place], rest)
            return rest - share * pairs.bends[place], shares.at[place].set(share)

        def forth(place, rest):
            share = pairs.factors[place] * jnp.dot(pairs.bends[place], rest)
            return rest + pairs.moves[place] * (shares[place] - share)

        rest, shares = fori_loop(0, count, back, (gradient, jnp.zeros((count,), dtype)))
        return -fori_loop(0, count, forth, pairs.scale * rest)

    def updated(pairs, move, bend):
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
# Method -> how it is done, and its options.
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
def _run(fun, x0, args, *, method, options):
    descend, options = _METHODS[method][0], dict(options)
    if method != _LIMITED or not issubdtype(typeof(x0).dtype, np.complexfloating):
        return descend(value_and_grad(lambda x: fun(x, *args)), x0, options)
    # Of complex numbers real and imaginary parts are the variables, after one another.
    count = typeof(x0).shape[0]

    def joined(parts: Any, sign: int = 1) -> Any:
        return elementwise.complex(parts[:count], sign * parts[count:])

    objective = value_and_grad(lambda parts: fun(joined(parts), *args))
    found = descend(objective, jnp.concatenate([jnp.real(x0), jnp.imag(x0)]), options)
    # The gradient by a complex variable is the conjugate of the steepest ascent.
    return found._replace(x=joined(found.x), jac=joined(found.jac, -1))


def minimize(
    fun: Callable[..., Any],
    x0: Any,
    args: tuple[Any, ...] = (),
    *,
    method: str,
    tol: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> OptimizeResults:
    """A local minimum of a smooth function of several variables.

    It can be called under jit and vmap. Called again with the same function object and shapes, it
    is not compiled again.

    Args:
      fun: `fun(x, *args)`, which gives a real scalar and has a derivative.
      x0: where to start: an array of shape (N,) of floats.
      args: more arguments of `fun`.
      method: "BFGS".
      tol: how small the gradient must be.
      options: of BFGS: `maxiter`, how many steps to take, N * 200 by default; `gtol`, how small the
        gradient must be, 1e-5 by default; `norm`, the order of the norm that measures it, infinity
        by default; `line_search_maxiter`, how often a step is tried, 20 by default.

    Returns:
      An OptimizeResults.

    Raises:
      ValueError: if the method is another.
      TypeError: if `args` is no tuple, an option is another, or `x0` has several axes or integers.
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
    if name == _LIMITED:
        limits = [limit for limit in (chosen["maxfun"], chosen.pop("maxgrad")) if limit is not None]
        chosen["maxfun"] = min(limits, default=None)
        chosen["line_search_maxiter"] = chosen.pop("maxls")
    chosen.setdefault("ftol", None)
    whole = np.iinfo(np.int32).max
    chosen["maxfun"] = whole if chosen.get("maxfun") is None else chosen["maxfun"]
    if chosen["maxiter"] is None:
        chosen["maxiter"] = shape[0] * 200 if name == "bfgs" else whole
    settings = tuple(sorted(chosen.items()))
    return _run(fun, x0, args, method=name, options=settings)
