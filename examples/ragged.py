"""Learns from sequences of different lengths, packed end to end, in programs of a few lengths.

Each walk in the plane turns left or right, and has 5 to 60 steps; a batch has the steps of 16 walks
end to end, each with the number of its walk. The number of steps differs between batches, and the
last batch has fewer walks. `buckets` gives both numbers a few sizes; sums over the steps of a walk,
and the mean over walks, ignore the padding.

Run it:   python examples/ragged.py [epochs]
"""

import sys
from functools import partial

import numpy as np

import hlofront as jax
import hlofront.numpy as jnp

BATCH = 16
WIDTH = 32


def walks(count, rng):
    """Return walks, f32[steps, 2] each, and whether each turns left, i32[count]."""
    left = rng.integers(0, 2, count)
    found = []
    for turns_left in left:
        steps = rng.integers(5, 61)
        turn = rng.normal(0.1 if turns_left else -0.1, 0.6, steps)
        angle = rng.uniform(0, 2 * np.pi) + np.cumsum(turn)
        found.append(np.stack([np.cos(angle), np.sin(angle)], 1).astype(np.float32))
    return found, left.astype(np.int32)


def packed(found):
    """Return the pairs of steps of walks end to end, f32[n, 4], and the walk of each, i32[n]."""
    pairs = [np.concatenate([walk[:-1], walk[1:]], 1) for walk in found]
    owners = np.repeat(np.arange(len(found), dtype=np.int32), [len(walk) for walk in pairs])
    return np.concatenate(pairs), owners


def initial(key):
    first, second, third = jax.random.split(key, 3)
    return {
        "in": jax.random.normal(first, (4, WIDTH)) / 2,
        "middle": jax.random.normal(second, (WIDTH, WIDTH)) / np.sqrt(WIDTH),
        "out": jax.random.normal(third, (WIDTH, 2)) / np.sqrt(WIDTH),
    }


def logits(params, pairs, owners, walk_count):
    """Return f32[walks, 2]: a network of each pair of steps, and one of their mean."""
    each = jax.nn.gelu(jax.nn.gelu(pairs @ params["in"]) @ params["middle"])
    sums = jnp.zeros((walk_count, WIDTH)).at[owners].add(each)
    counts = jnp.zeros(walk_count).at[owners].add(1)
    return sums / counts[:, None] @ params["out"]


def loss(params, pairs, owners, labels):
    likely = jax.nn.log_softmax(logits(params, pairs, owners, labels.shape[0]))
    return -jnp.mean(jnp.take_along_axis(likely, labels[:, None], axis=1))


# Pairs and owners share one length, padded to powers of two; labels have another.
@partial(jax.jit, buckets={("pairs", "owners"): "auto", "labels": (4, BATCH)})
def step(params, pairs, owners, labels, rate):
    value, slopes = jax.value_and_grad(loss)(params, pairs, owners, labels)
    return jax.tree.map(lambda p, g: p - rate * g, params, slopes), value


@partial(jax.jit, buckets={("pairs", "owners"): "auto", "labels": "auto"})
def share_right(params, pairs, owners, labels):
    guesses = jnp.argmax(logits(params, pairs, owners, labels.shape[0]), axis=1)
    return jnp.mean(guesses == labels)


def main(epochs=15):
    rng = np.random.default_rng(0)
    found, labels = walks(16 * BATCH + 3, rng)
    held_out, their_labels = walks(200, rng)
    params = initial(jax.random.key(0))
    lengths = set()
    for epoch in range(epochs):
        order = rng.permutation(len(found))
        losses = []
        for start in range(0, len(found), BATCH):
            chosen = order[start : start + BATCH]
            pairs, owners = packed([found[i] for i in chosen])
            lengths.add(len(pairs))
            params, value = step(params, pairs, owners, labels[chosen], 0.5)
            losses.append(float(value))
        if epoch % 5 == 4 or epoch == epochs - 1:
            print(f"epoch {epoch + 1}: loss {np.mean(losses):.3f}")
    right = float(share_right(params, *packed(held_out), their_labels))
    print(f"{right:.0%} of {len(held_out)} other walks are told right")
    print(f"{len(lengths)} numbers of steps, {len(step.cache_report().entries)} programs")
    print(step.cache_report().entries[0].why)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
