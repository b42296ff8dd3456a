"""A short run that compiles more often than it must, for the log of a run."""

import hlofront as jax
import hlofront.numpy as jnp


@jax.jit
def loss(w, x):
    return jnp.mean(jnp.tanh(x @ w) ** 2)


@jax.jit
def step(w, x):
    return w - 0.1 * jax.grad(loss)(w, x)


@jax.jit
def normalized(x):
    return (x - x.mean(0)) / (x.std(0) + 1e-6)


def main():
    w = jnp.ones((16, 4))
    # The last batch is smaller: another shape is another program.
    for size in (32, 32, 32, 20):
        x = normalized(jnp.ones((size, 16)))
        w = step(w, x)
    # A new function at each turn is compiled at each turn.
    for scale in (1.0, 2.0, 3.0):
        jax.jit(lambda x, scale=scale: jnp.sin(x * scale))(w)
    for power in range(2, 5):
        jax.jit(jnp.linalg.matrix_power, static_argnums=1)(w @ w.T, power)
    return loss(w, x)


if __name__ == "__main__":
    print(main())
