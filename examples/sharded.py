"""Trains a network that is split over several devices, and shows what they send to each other.

Run it on eight CPU devices:      python examples/sharded.py
See it for TPUs you do not have:  python examples/sharded.py tpu:v5e:2x4
"""

import collections
import os
import re
import sys

# Split the CPU into eight devices, unless the user sets another number.
os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")

import numpy as np

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.sharding import Mesh, NamedSharding
from hlofront.sharding import PartitionSpec as P

WIDTH, HIDDEN, BATCH = 64, 256, 512
RATE = 0.1

# How each array is split: examples along "data", the hidden layer along "model".
SPLIT = {"up": P(None, "model"), "down": P("model", None)}
EXAMPLES = P("data", None)


def loss(weights, inputs, wanted):
    """The mean squared error of inputs f32[BATCH, WIDTH]."""
    outputs = jnp.tanh(inputs @ weights["up"]) @ weights["down"]
    return jnp.mean((outputs - wanted) ** 2)


def step(weights, inputs, wanted):
    """One step of gradient descent: the loss before it, and the weights after it."""
    value, gradient = jax.value_and_grad(loss)(weights, inputs, wanted)
    return value, jax.tree.map(lambda w, g: w - RATE * g, weights, gradient)


def mesh_of(devices):
    """The devices in two columns: rows along "data", columns along "model"."""
    columns = 2 if len(devices) % 2 == 0 else 1
    return Mesh(np.array(devices).reshape(-1, columns), ("data", "model"))


def jitted(mesh):
    """The jitted step, whose results have the shardings of its weights."""
    weights = {name: NamedSharding(mesh, spec) for name, spec in SPLIT.items()}
    examples = NamedSharding(mesh, EXAMPLES)
    return jax.jit(step, in_shardings=(weights, examples, examples), out_shardings=(None, weights))


def shapes():
    weights = {"up": (WIDTH, HIDDEN), "down": (HIDDEN, WIDTH)}
    described = {name: jax.ShapeDtypeStruct(shape, np.float32) for name, shape in weights.items()}
    return described, *[jax.ShapeDtypeStruct((BATCH, WIDTH), np.float32)] * 2


def sent(compiled):
    """The number of collectives in a step, by kind."""
    kinds = r"\b(all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)(?:-start)?\("
    return dict(collections.Counter(re.findall(kinds, compiled.as_text())))


def main():
    if len(sys.argv) > 1:
        mesh = mesh_of(jax.target(sys.argv[1]).devices)
        compiled = jitted(mesh).lower(*shapes()).compile()
        print(f"{mesh.size} devices of {sys.argv[1]}, {mesh}")
        print(f"  they exchange {sent(compiled)} per step")
        print(f"  each keeps {compiled.memory_analysis().argument_size_in_bytes:,} bytes")
        return
    mesh = mesh_of(jax.devices())
    rng = np.random.default_rng(0)
    weights = {
        "up": rng.normal(size=(WIDTH, HIDDEN)).astype(np.float32) / WIDTH**0.5,
        "down": rng.normal(size=(HIDDEN, WIDTH)).astype(np.float32) / HIDDEN**0.5,
    }
    inputs = rng.normal(size=(BATCH, WIDTH)).astype(np.float32)
    wanted = np.sin(inputs @ rng.normal(size=(WIDTH, WIDTH)).astype(np.float32) / WIDTH**0.5)
    alone = jax.jit(step)(weights, inputs, wanted)[0]
    advance = jitted(mesh)
    print(f"{mesh.size} devices: {mesh}")
    for number in range(1, 201):
        value, weights = advance(weights, inputs, wanted)
        if number == 1:
            print(f"  the first loss is {value:.6f}, and {alone:.6f} on one device")
        if number % 50 == 0:
            print(f"  step {number}: loss {value:.4f}")
    print(f"  weights['up'] is split as {weights['up'].sharding.spec}")
    print(f"  they exchange {sent(advance.lower(*shapes()).compile())} per step")


if __name__ == "__main__":
    main()
