"""Trains a transformer whose parameters, batch and hidden layers are split over a mesh of devices.

Each parameter is split along "data" where it is kept, and gathered for use (FSDP); heads and the
inner layer are split along "model" (tensor parallelism). All axes are Explicit: types say how each
value is split, and `print(jax.typeof(x))` inside the step shows it. You see the loss fall on a toy
task, rows of counting numbers. At the end, you see what the devices send to each other in a step:
which lines cause it, along which axis of the mesh, and how many bytes.

Run it on eight CPU devices:      python examples/transformer_sharded.py [STEPS]
"""

import collections
import linecache
import os
import sys

# Split the CPU into eight devices, unless the user sets another number.
os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")

import numpy as np

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.sharding import PartitionSpec as P
from hlofront.sharding import reshard

LAYERS, WIDTH, HEADS, TOKENS, LENGTH, BATCH = 2, 64, 4, 64, 32, 32
RATE = 0.3

# The specs of each parameter: as stored, and as used in a layer.
KEPT = {
    "qkv": P("data", None, "model", None),
    "out": P("model", None, "data"),
    "up": P("data", "model"),
    "down": P("model", "data"),
}
USED = {
    "qkv": P(None, None, "model", None),
    "out": P("model", None, None),
    "up": P(None, "model"),
    "down": P("model", None),
}
ROWS = P("data", None, None)


def parameters(rng):
    """Return the parameters as NumPy arrays: f32[TOKENS, WIDTH] and a dictionary per layer."""

    def normal(*shape):
        return (rng.normal(size=shape) / np.sqrt(WIDTH)).astype(np.float32)

    layers = [
        {
            "qkv": normal(WIDTH, 3, HEADS, WIDTH // HEADS),
            "out": normal(HEADS, WIDTH // HEADS, WIDTH),
            "up": normal(WIDTH, 4 * WIDTH),
            "down": normal(4 * WIDTH, WIDTH),
        }
        for _ in range(LAYERS)
    ]
    return {"embedding": normal(TOKENS, WIDTH), "layers": layers}


def norm(x):
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6)


def layer(x, kept):
    """One layer on f32[BATCH, LENGTH, WIDTH]; `out_sharding=ROWS` sums over "model"."""
    p = {name: reshard(value, USED[name]) for name, value in kept.items()}
    qkv = jnp.einsum("btw,wnhd->nbthd", norm(x), p["qkv"])
    scores = jnp.einsum("bqhd,bkhd->bhqk", qkv[0], qkv[1]) / np.sqrt(WIDTH // HEADS)
    scores = jnp.where(np.tril(np.ones((LENGTH, LENGTH), bool)), scores, -1e9)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, axis=-1), qkv[2])
    x = x + jnp.einsum("bthd,hdw->btw", mixed, p["out"], out_sharding=ROWS)
    return x + jnp.einsum(
        "bti,iw->btw", jax.nn.gelu(norm(x) @ p["up"]), p["down"], out_sharding=ROWS
    )


def loss(params, tokens):
    """The mean cross entropy of each token of i32[BATCH, LENGTH + 1] after those before it."""
    embedding = reshard(params["embedding"], P())
    x = jax.nn.one_hot(tokens[:, :-1], TOKENS) @ embedding
    for kept in params["layers"]:
        x = layer(x, kept)
    logits = jax.nn.log_softmax(norm(x) @ embedding.T)
    return -jnp.mean(jnp.sum(logits * jax.nn.one_hot(tokens[:, 1:], TOKENS), axis=-1))


@jax.jit
def step(params, tokens):
    """One step of gradient descent: the loss before it, and the parameters after it."""
    value, gradient = jax.value_and_grad(loss)(params, tokens)
    return value, jax.tree.map(lambda p, g: p - RATE * g, params, gradient)


def main(steps=60):
    """Train, print how it goes, and return the first loss, the last one, and the collectives."""
    rng = np.random.default_rng(0)
    params = parameters(rng)
    # Each row counts from a random start in steps of one to three.
    starts, gaps = rng.integers(0, TOKENS, (BATCH, 1)), rng.integers(1, 4, (BATCH, 1))
    tokens = ((starts + gaps * np.arange(LENGTH + 1)) % TOKENS).astype(np.int32)
    mesh = jax.make_mesh((len(jax.devices()) // 2, 2), ("data", "model"))
    with jax.set_mesh(mesh):
        specs = {"embedding": P("data"), "layers": [KEPT] * LAYERS}
        params = jax.tree.map(jax.device_put, params, specs)
        tokens = jax.device_put(tokens, P("data"))
        print(f"{mesh.size} devices: {mesh}")
        print(f"  'up' is {jax.typeof(params['layers'][0]['up'])}, tokens are {jax.typeof(tokens)}")
        losses = []
        for number in range(1, steps + 1):
            value, params = step(params, tokens)
            losses.append(float(value))
            if number == 1 or number % 20 == 0:
                print(f"  step {number}: loss {value:.4f}")
        sent = jax.inspect.collectives(step.lower(params, tokens).compile())
    by_line = collections.Counter()
    for row in sent.rows:
        by_line[row.line, row.opcode, row.axes[0]] += row.total_bytes
    print(f"each device sends {sent.moved_bytes:,} bytes per step:")
    for (line, opcode, axis), count in by_line.most_common():
        print(
            f"  {count:8,} by {opcode} along {axis:5}  {linecache.getline(__file__, line).strip()}"
        )
    return losses[0], losses[-1], sent


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
