"""Optimizers by steepest descent, for pytrees of parameters: sgd, adam and others; schedules.

An optimizer is three functions: `init_fn(params)` returns its state, `update_fn(i, grads, state)`
returns the state after step i, and `params_fn(state)` returns the parameters.

    opt = adam(1e-3)
    state = opt.init_fn(params)
    for i in range(100):
        state = opt.update_fn(i, jax.grad(loss)(opt.params_fn(state)), state)
"""

import functools
from collections import namedtuple
from collections.abc import Callable, Sequence

import hlofront.numpy as jnp
from hlofront.base import tree
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.tree import PyTree, PyTreeDef
from hlofront.base.typing import Array, ArrayLike

# A pytree of arrays; the state of an optimizer for one of its arrays; a pytree of gradients.
Params = PyTree
State = PyTree
Updates = PyTree
# The number of a step, counted from 0.
Step = int
# A function from the number of a step to its size.
Schedule = Callable[[ArrayLike], ArrayLike]

# A step size for all steps, or a function of the step number.
StepSize = ArrayLike | Schedule

OptimizerState = namedtuple("OptimizerState", ["packed_state", "tree_def", "subtree_defs"])
OptimizerState.__doc__ = """The state of an optimizer for a pytree of parameters; itself a pytree.

Attributes:
  packed_state: per array of the parameters, the list of the arrays of its state.
  tree_def: the structure of the parameters.
  subtree_defs: per array of the parameters, the structure of its state.
"""
tree.register_pytree_node(
    OptimizerState,
    lambda state: ((state.packed_state,), (state.tree_def, state.subtree_defs)),
    lambda definitions, children: OptimizerState(children[0], *definitions),
)

InitFn = Callable[[Params], OptimizerState]
UpdateFn = Callable[[Step, Updates, OptimizerState], OptimizerState]
ParamsFn = Callable[[OptimizerState], Params]


class Optimizer(NamedTuple):
    """The three functions of an optimizer.

    Attributes:
      init_fn: parameters -> state.
      update_fn: (number of the step, gradients, state) -> state.
      params_fn: state -> parameters.
    """

    init_fn: InitFn
    update_fn: UpdateFn
    params_fn: ParamsFn


# (initial value -> state, (step, gradient, state) -> state, state -> value), of one array each.
ArrayOptimizer = tuple[
    Callable[[Array], State],
    Callable[[ArrayLike, Array, State], State],
    Callable[[State], Array],
]


def optimizer(opt_maker: Callable[..., ArrayOptimizer]) -> Callable[..., Optimizer]:
    """Decorate a maker of optimizers of one array to make optimizers of pytrees of arrays.

    Args:
      opt_maker: returns three functions of one array: init (array -> state), update (step,
        gradient, state -> state) and get (state -> array), with pytrees for states.
    """

    @functools.wraps(opt_maker)
    def make(*args: object, **kwargs: object) -> Optimizer:
        init, update, get = opt_maker(*args, **kwargs)

        def init_fn(params: Params) -> OptimizerState:
            leaves, tree_def = tree.tree_flatten(params)
            return _packed(tree_def, [init(leaf) for leaf in leaves])

        def update_fn(i: Step, grads: Updates, state: OptimizerState) -> OptimizerState:
            gradients, grads_def = tree.tree_flatten(grads)
            if grads_def != state.tree_def:
                raise TypeError(
                    "the gradients do not have the structure of the parameters that the optimizer "
                    f"was initialized with: gradients {grads_def}, parameters {state.tree_def}"
                )
            before = _states(state)
            after = _packed(
                state.tree_def, [update(i, g, s) for g, s in zip(gradients, before, strict=True)]
            )
            for old, new in zip(state.subtree_defs, after.subtree_defs, strict=True):
                if old != new:
                    raise TypeError(
                        "the optimizer's update returned a state of another structure than it was "
                        f"given: given {old}, returned {new}"
                    )
            return after

        def params_fn(state: OptimizerState) -> Params:
            return state.tree_def.unflatten(map(get, _states(state)))

        return Optimizer(init_fn, update_fn, params_fn)

    return make


def _packed(tree_def: PyTreeDef, states: Sequence[State]) -> OptimizerState:
    pairs = list(map(tree.tree_flatten, states))
    return OptimizerState(
        tuple([leaves for leaves, _ in pairs]), tree_def, tuple([own for _, own in pairs])
    )


def _states(state: OptimizerState) -> list[State]:
    return [
        own.unflatten(leaves)
        for own, leaves in zip(state.subtree_defs, state.packed_state, strict=True)
    ]


# ---- optimizers ----------------------------------------------------------------------------------


def _value(state: State) -> Array:
    return state[0]


@optimizer
def sgd(step_size: StepSize) -> ArrayOptimizer:
    """Make an optimizer that steps against the gradient.

    Args:
      step_size: a number, or a function from the number of a step to its size.
    """
    size = make_schedule(step_size)

    def update(i: ArrayLike, g: Array, x: Array) -> Array:
        return x - size(i) * g

    return (lambda x: x), update, (lambda x: x)


def _with_zeros(x: ArrayLike) -> tuple[ArrayLike, Array]:
    return x, jnp.zeros_like(x)


def _with_two_zeros(x: ArrayLike) -> tuple[ArrayLike, Array, Array]:
    return x, jnp.zeros_like(x), jnp.zeros_like(x)


@optimizer
def momentum(step_size: StepSize, mass: float) -> ArrayOptimizer:
    """Make an optimizer that steps along a decaying sum of gradients.

    Args:
      step_size: a number, or a function from the number of a step to its size.
      mass: the factor by which the sum decays.
    """
    size = make_schedule(step_size)

    def update(i: ArrayLike, g: Array, state: State) -> State:
        x, velocity = state
        velocity = mass * velocity + g
        return x - size(i) * velocity, velocity

    return _with_zeros, update, _value


@optimizer
def nesterov(step_size: StepSize, mass: float) -> ArrayOptimizer:
    """Make an optimizer with Nesterov's momentum, which looks one step ahead.

    Args:
      step_size: a number, or a function from the number of a step to its size.
      mass: the factor by which the sum of gradients decays.

    Source: I. Sutskever et al., On the importance of initialization and momentum, ICML 2013.
    """
    size = make_schedule(step_size)

    def update(i: ArrayLike, g: Array, state: State) -> State:
        x, velocity = state
        velocity = mass * velocity + g
        return x - size(i) * (mass * velocity + g), velocity

    return _with_zeros, update, _value


def _inverse_root(x: Array) -> Array:
    """Return the inverse square root where x is positive, else 0."""
    return jnp.where(x > 0, 1 / jnp.sqrt(x), 0.0)


@optimizer
def adagrad(step_size: StepSize, momentum: float = 0.9) -> ArrayOptimizer:
    """Make an optimizer that divides gradients by the root of the sum of their squares.

    Args:
      step_size: a number, or a function from the number of a step to its size.
      momentum: the factor by which the mean of the scaled gradients decays.

    Source: J. Duchi, E. Hazan and Y. Singer, Adaptive subgradient methods, JMLR 12 (2011).
    """
    size = make_schedule(step_size)

    def update(i: ArrayLike, g: Array, state: State) -> State:
        x, squares, mean = state
        squares = squares + jnp.square(g)
        mean = (1 - momentum) * (g * _inverse_root(squares)) + momentum * mean
        return x - size(i) * mean, squares, mean

    return _with_two_zeros, update, _value


@optimizer
def rmsprop(step_size: StepSize, gamma: float = 0.9, eps: float = 1e-8) -> ArrayOptimizer:
    """Make an optimizer that divides gradients by the root of the mean of their squares.

    Args:
      step_size: a number, or a function from the number of a step to its size.
      gamma: the factor by which the mean decays.
      eps: a number that is added to the mean.

    Source: T. Tieleman and G. Hinton, Neural networks for machine learning, lecture 6.5, 2012.
    """
    size = make_schedule(step_size)

    def update(i: ArrayLike, g: Array, state: State) -> State:
        x, squares = state
        squares = squares * gamma + jnp.square(g) * (1 - gamma)
        return x - size(i) * g / jnp.sqrt(squares + eps), squares

    return _with_zeros, update, _value


@optimizer
def rmsprop_momentum(
    step_size: StepSize, gamma: float = 0.9, eps: float = 1e-8, momentum: float = 0.9
) -> ArrayOptimizer:
    """Make an optimizer that steps along a decaying sum of the steps of `rmsprop`.

    Args:
      step_size: a number, or a function from the number of a step to its size.
      gamma: the factor by which the mean of squares decays.
      eps: a number that is added to the mean.
      momentum: the factor by which the sum decays.
    """
    size = make_schedule(step_size)

    def update(i: ArrayLike, g: Array, state: State) -> State:
        x, squares, velocity = state
        squares = squares * gamma + jnp.square(g) * (1 - gamma)
        velocity = momentum * velocity + size(i) * g / jnp.sqrt(squares + eps)
        return x - velocity, squares, velocity

    return _with_two_zeros, update, _value


@optimizer
def adam(
    step_size: StepSize, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8
) -> ArrayOptimizer:
    """Make an optimizer that uses bias-corrected running means of gradients and of their squares.

    Args:
      step_size: a number, or a function from the number of a step to its size.
      b1: the factor by which the mean of gradients decays.
      b2: the factor by which the mean of squares decays.
      eps: a number that is added to the root of the mean of squares.

    Source: D. P. Kingma and J. Ba, Adam: a method for stochastic optimization, ICLR 2015.
    """
    size = make_schedule(step_size)

    def update(i: ArrayLike, g: Array, state: State) -> State:
        x, mean, squares = state
        mean = (1 - b1) * g + b1 * mean
        squares = (1 - b2) * jnp.square(g) + b2 * squares
        unbiased = mean / (1 - jnp.asarray(b1, mean.dtype) ** (i + 1))
        unbiased_squares = squares / (1 - jnp.asarray(b2, mean.dtype) ** (i + 1))
        return x - size(i) * unbiased / (jnp.sqrt(unbiased_squares) + eps), mean, squares

    return _with_two_zeros, update, _value


@optimizer
def adamax(
    step_size: StepSize, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8
) -> ArrayOptimizer:
    """Make an optimizer like `adam`, with a decaying maximum instead of the mean of squares.

    Args:
      step_size: a number, or a function from the number of a step to its size.
      b1: the factor by which the mean of gradients decays.
      b2: the factor by which the maximum of absolute values decays.
      eps: a number that is added to the maximum.

    Source: D. P. Kingma and J. Ba, Adam: a method for stochastic optimization, ICLR 2015,
    section 7.
    """
    size = make_schedule(step_size)

    def update(i: ArrayLike, g: Array, state: State) -> State:
        x, mean, largest = state
        mean = (1 - b1) * g + b1 * mean
        largest = jnp.maximum(b2 * largest, jnp.abs(g))
        unbiased = size(i) / (1 - jnp.asarray(b1, mean.dtype) ** (i + 1))
        return x - unbiased * mean / (largest + eps), mean, largest

    return _with_two_zeros, update, _value


@optimizer
def sm3(step_size: StepSize, momentum: float = 0.9) -> ArrayOptimizer:
    """Make an optimizer like `adagrad` that keeps a vector of squares per axis of an array.

    Args:
      step_size: a number, or a function from the number of a step to its size.
      momentum: the factor by which the mean of the scaled gradients decays.

    Source: R. Anil, V. Gupta, T. Koren and Y. Singer, Memory-efficient adaptive optimization,
    NeurIPS 2019.
    """
    size = make_schedule(step_size)

    def init(value: Array) -> State:
        shape = jnp.shape(value)
        x = jnp.atleast_1d(value)
        return x, jnp.zeros_like(x), [jnp.zeros(n, x.dtype) for n in x.shape], shape

    def update(i: ArrayLike, g: Array, state: State) -> State:
        x, mean, per_axis, shape = state
        other_axes = [tuple([a for a in range(x.ndim) if a != axis]) for axis in range(x.ndim)]
        broadcast = [jnp.expand_dims(v, axes) for v, axes in zip(per_axis, other_axes, strict=True)]
        squares = functools.reduce(jnp.minimum, broadcast) + jnp.square(g)
        mean = (1 - momentum) * (g * _inverse_root(squares)) + momentum * mean
        per_axis = [jnp.max(squares, axes) for axes in other_axes]
        return x - size(i) * mean, mean, per_axis, shape

    def get(state: State) -> Array:
        x, _, _, shape = state
        return jnp.reshape(x, shape)

    return init, update, get


# ---- sizes of steps ------------------------------------------------------------------------------


def constant(step_size: ArrayLike) -> Schedule:
    """Return the schedule of steps of constant size."""
    return lambda i: step_size


def exponential_decay(
    step_size: ArrayLike, decay_steps: ArrayLike, decay_rate: ArrayLike
) -> Schedule:
    """Return the schedule of steps that shrink by `decay_rate` in each `decay_steps` steps."""
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(
    step_size: ArrayLike, decay_steps: ArrayLike, decay_rate: ArrayLike, staircase: bool = False
) -> Schedule:
    """Return the schedule of steps of size step_size / (1 + decay_rate * i / decay_steps).

    With `staircase`, i / decay_steps is rounded down.
    """
    if staircase:
        return lambda i: step_size / (1 + decay_rate * jnp.floor(i / decay_steps))
    return lambda i: step_size / (1 + decay_rate * i / decay_steps)


def polynomial_decay(
    step_size: Array | float,
    decay_steps: ArrayLike,
    final_step_size: Array | float,
    power: ArrayLike = 1.0,
) -> Schedule:
    """Return a schedule of steps that shrink to `final_step_size` by a power of the time left."""

    def schedule(i: ArrayLike) -> Array:
        left = 1 - jnp.minimum(i, decay_steps) / decay_steps
        return left**power * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(
    boundaries: ArrayLike | Sequence[float], values: ArrayLike | Sequence[float]
) -> Schedule:
    """Return the schedule of steps of `values[k]`, where k boundaries are less than the step.

    Raises:
      ValueError: if these are not sequences, or there is not one boundary less than values.
    """
    boundaries, values = jnp.asarray(boundaries), jnp.asarray(values)
    if boundaries.ndim != 1 or values.ndim != 1:
        raise ValueError(
            "boundaries and values must be sequences of numbers, got arrays of the shapes "
            f"{boundaries.shape} and {values.shape}"
        )
    if len(boundaries) != len(values) - 1:
        raise ValueError(
            "boundaries must be one fewer than values: got "
            f"{len(boundaries)} boundaries and {len(values)} values"
        )
    return lambda i: values[jnp.sum(i > boundaries)]


def make_schedule(scalar_or_schedule: StepSize) -> Schedule:
    """Return a schedule unchanged, and for a number the schedule of steps of that size.

    Raises:
      TypeError: if the argument is neither a schedule nor a number.
    """
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if jnp.ndim(scalar_or_schedule) == 0:
        return constant(scalar_or_schedule)
    raise TypeError(
        "a step size is a number or a function of the number of the step, got one of type "
        f"{type(scalar_or_schedule)}"
    )


# ---- norms ---------------------------------------------------------------------------------------


def l2_norm(tree: PyTree) -> Array:
    """Return the root of the sum of squares of all elements of a pytree."""
    return jnp.sqrt(sum(jnp.vdot(x, x) for x in _leaves(tree)))


_leaves = tree.tree_leaves


def clip_grads(grad_tree: PyTree, max_norm: ArrayLike) -> PyTree:
    """Return a pytree of gradients, scaled to the norm `max_norm` if their norm is larger."""
    norm = l2_norm(grad_tree)
    return tree.tree_map(lambda g: jnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)


# ---- states as pytrees of states -----------------------------------------------------------------


class JoinPoint:
    """A leaf of a pytree of parameters that holds the optimizer's state for that parameter.

    Attributes:
      subtree: the state, a pytree.
    """

    def __init__(self, subtree: State):
        self.subtree = subtree


def unpack_optimizer_state(opt_state: OptimizerState) -> PyTree:
    """Return a pytree like the parameters with a JoinPoint of its state for each array."""
    return opt_state.tree_def.unflatten(map(JoinPoint, _states(opt_state)))


def pack_optimizer_state(marked_pytree: PyTree) -> OptimizerState:
    """Return the state that `unpack_optimizer_state` made a pytree of.

    Raises:
      TypeError: if a leaf is not a JoinPoint.
    """
    leaves, tree_def = tree.tree_flatten(marked_pytree)
    for leaf in leaves:
        if not isinstance(leaf, JoinPoint):
            raise TypeError(f"expected a pytree of JoinPoint, got a leaf of type {type(leaf)}")
    return _packed(tree_def, [leaf.subtree for leaf in leaves])
