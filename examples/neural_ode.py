"""Learns the motion of a pendulum as a differential equation whose right side is a network.

The solver takes as many steps as its tolerance requires, and is differentiated by solving the
adjoint equation backwards in time. You see the error on unseen pendulums, over twice the time span
of the training data. At the end, you see memory over time: of that gradient, and of the gradient
through all steps of a fixed-step solver, which keeps the values of each step.

Run it:   python examples/neural_ode.py [STEPS]
"""

import sys

import numpy as np

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.example_libraries.optimizers import adam, exponential_decay
from hlofront.experimental.ode import odeint

PENDULUMS, HIDDEN = 32, 32
SEEN = np.linspace(0, 5, 21, dtype=np.float32)
LONGER = np.linspace(0, 10, 41, dtype=np.float32)
OPTIMIZER = adam(exponential_decay(2e-2, 100, 0.5))


def pendulum(state, t):
    """The true rates of change of angles and speeds f32[n, 2], with friction."""
    angle, speed = state.T
    return jnp.stack([speed, -jnp.sin(angle) - 0.1 * speed], axis=1)


def network(state, t, params):
    """The learned rates of change."""
    for w, b in params[:-1]:
        state = jnp.tanh(state @ w + b)
    w, b = params[-1]
    return state @ w + b


def initial(seed=0):
    sizes = [(2, HIDDEN), (HIDDEN, HIDDEN), (HIDDEN, 2)]
    keys = jax.random.split(jax.random.key(seed), len(sizes))
    initializer = jax.nn.initializers.lecun_normal()
    return [(initializer(k, size), jnp.zeros(size[1])) for k, size in zip(keys, sizes, strict=True)]


def loss(params, path):
    """The mean squared distance to paths f32[times, n, 2], from their first states."""
    return jnp.mean((odeint(network, path[0], SEEN, params, rtol=1e-4, atol=1e-5) - path) ** 2)


def loss_by_fixed_steps(params, path):
    """The same, with ten Runge-Kutta steps from each time to the next."""

    def step(state, dt):
        a = network(state, 0, params)
        b = network(state + dt / 2 * a, 0, params)
        c = network(state + dt / 2 * b, 0, params)
        d = network(state + dt * c, 0, params)
        return state + dt / 6 * (a + 2 * b + 2 * c + d), None

    def until(state, dt):
        state = jax.lax.scan(step, state, jnp.full(10, dt / 10))[0]
        return state, state

    states = jax.lax.scan(until, path[0], np.diff(SEEN))[1]
    return jnp.mean((states - path[1:]) ** 2)


@jax.jit
def train(state, number, path):
    """A step of Adam: the state after it, and the loss before it."""
    value, gradient = jax.value_and_grad(loss)(OPTIMIZER.params_fn(state), path)
    return OPTIMIZER.update_fn(number, gradient, state), value


def starts(key):
    """Angles up to 2 and speeds up to 1, f32[PENDULUMS, 2]."""
    return jax.random.uniform(key, (PENDULUMS, 2), minval=-1, maxval=1) * jnp.array([2.0, 1.0])


def main(steps=400):
    """Train; return the root mean square error of unseen pendulums."""
    path = odeint(pendulum, starts(jax.random.key(1)), SEEN)
    truth = odeint(pendulum, starts(jax.random.key(2)), LONGER)
    size = float(jnp.sqrt(jnp.mean(truth**2)))
    print(f"errors of {PENDULUMS} unseen pendulums, whose states are {size:.2f} in size:")
    state = OPTIMIZER.init_fn(initial())
    for number in range(1, steps + 1):
        state, value = train(state, number, path)
        if number % max(steps // 4, 1) == 0:
            learned = odeint(network, truth[0], LONGER, OPTIMIZER.params_fn(state))
            error = jnp.sqrt(jnp.mean((learned - truth) ** 2, axis=(1, 2)))
            print(f"step {number}: loss {float(value):.2e}, error {float(error.mean()):.3f}")

    for f in (loss, loss_by_fixed_steps):
        compiled = jax.jit(jax.grad(f)).lower(OPTIMIZER.params_fn(state), path).compile()
        print(f"--- the gradient of {f.__name__}")
        print(jax.inspect.memory_use(compiled))
    return float(error.mean())


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
