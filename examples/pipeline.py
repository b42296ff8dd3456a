"""Trains a deep network whose layers are on different devices, as a pipeline of microbatches.

The function in `shard_map` is the program of one device: it applies its layers to the microbatch
that it holds and passes the result to the next device with `ppermute`. A scan repeats this until
all microbatches have passed all devices; its derivative passes cotangents in reverse.

Run it on eight CPU devices:      python examples/pipeline.py
"""

import os
from functools import partial

# Split the CPU into eight devices, unless the user sets another number.
os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")

import numpy as np

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.sharding import PartitionSpec as P

LAYERS_PER_STAGE, WIDTH, BATCH, MICROBATCHES = 2, 32, 256, 16
RATE = 0.2


def layers(weights, x):
    """Apply residual layers f32[n, WIDTH, WIDTH], one after another, to f32[rows, WIDTH]."""
    for w in weights:
        x = x + jnp.tanh(x @ w)
    return x


def stage(weights, microbatches):
    """Pass all microbatches through the stages; the program of one device.

    Args:
      weights: the stage's own layers, f32[LAYERS_PER_STAGE, WIDTH, WIDTH].
      microbatches: f32[MICROBATCHES, rows, WIDTH], the same on all devices.

    Returns:
      The microbatches after all stages, the same on all devices.
    """
    number, count = lax.axis_index("stage"), lax.axis_size("stage")
    following = [(i, (i + 1) % count) for i in range(count)]
    waiting = lax.pcast(microbatches, "stage", to="varying")

    def tick(carry, time):
        held, done = carry
        # The first stage takes a new microbatch, the others what was passed to them.
        held = jnp.where(number == 0, waiting[jnp.minimum(time, MICROBATCHES - 1)], held)
        held = layers(weights, held)
        # The last stage has finished the microbatch that entered count - 1 ticks ago.
        at = jnp.maximum(time - (count - 1), 0)
        done = done.at[at].set(jnp.where(number == count - 1, held, 0))
        return (lax.ppermute(held, "stage", following), done), None

    start = jnp.zeros_like(waiting[0]), jnp.zeros_like(waiting)
    (_, done), _ = lax.scan(tick, start, jnp.arange(MICROBATCHES + count - 1))
    return lax.psum(done, "stage")


def loss(apply, weights, inputs, wanted):
    """The mean squared error of f32[BATCH, WIDTH] after the layers."""
    return jnp.mean((apply(weights, inputs) - wanted) ** 2)


def piped(mesh):
    """Return the function that applies layers f32[n, WIDTH, WIDTH], split along "stage"."""

    @partial(jax.shard_map, mesh=mesh, in_specs=(P("stage"), P()), out_specs=P())
    def passed(weights, inputs):
        rows = inputs.reshape(MICROBATCHES, -1, WIDTH)
        return stage(weights, rows).reshape(inputs.shape)

    return passed


def step(apply, weights, inputs, wanted):
    """One step of gradient descent: the loss before it, and the weights after it."""
    value, gradient = jax.value_and_grad(partial(loss, apply))(weights, inputs, wanted)
    return value, weights - RATE * gradient


def main():
    mesh = jax.make_mesh((len(jax.devices()),), ("stage",))
    rng = np.random.default_rng(0)
    depth = mesh.size * LAYERS_PER_STAGE
    weights = (rng.normal(size=(depth, WIDTH, WIDTH)) / (2 * WIDTH**0.5)).astype(np.float32)
    inputs = rng.normal(size=(BATCH, WIDTH)).astype(np.float32)
    wanted = np.sin(inputs)
    alone = jax.jit(partial(step, layers))(weights, inputs, wanted)[0]
    advance = jax.jit(partial(step, piped(mesh)))
    print(f"{depth} layers on {mesh.size} devices: {mesh}")
    with jax.set_mesh(mesh):
        weights = jax.device_put(weights, P("stage"))
        inputs, wanted = jax.device_put((inputs, wanted), P())
        for number in range(1, 61):
            value, weights = advance(weights, inputs, wanted)
            if number == 1:
                print(f"  the first loss is {value:.6f}, and {alone:.6f} on one device")
            if number % 20 == 0:
                print(f"  step {number}: loss {value:.4f}")


if __name__ == "__main__":
    main()
