"""Writes verse with a small attention model, a character at a time, in programs of a few lengths.

The model learns lines of all lengths, and its text grows at each step: plain `jit` would compile
a program for each length. With `buckets`, lengths share the program of the next power of two.

Run it:   python examples/generate.py [epochs]
"""

import sys
from functools import partial

import numpy as np

import hlofront as jax
import hlofront.numpy as jnp

POEM = """Tyger Tyger, burning bright,
In the forests of the night;
What immortal hand or eye,
Could frame thy fearful symmetry?
In what distant deeps or skies.
Burnt the fire of thine eyes?
On what wings dare he aspire?
What the hand, dare seize the fire?
And what shoulder, & what art,
Could twist the sinews of thy heart?
And when thy heart began to beat,
What dread hand? & what dread feet?"""  # William Blake, 1794
LETTERS = sorted({*POEM})
LONGEST = 128
WIDTH = 64
HEADS = 4
# Lengths from 1 to LONGEST have one of four programs.
BUCKETS = {"tokens": (16, 32, 64, LONGEST)}


def initial(key):
    shapes = {
        "letters": (len(LETTERS), WIDTH),
        "places": (LONGEST, WIDTH),
        "query": (WIDTH, WIDTH),
        "key": (WIDTH, WIDTH),
        "value": (WIDTH, WIDTH),
        "hidden": (WIDTH, 2 * WIDTH),
        "out": (2 * WIDTH, len(LETTERS)),
    }
    keys = jax.random.split(key, len(shapes))
    return {
        name: jax.random.normal(k, shape) / np.sqrt(shape[0] if "s" != name[-1] else 4)
        for k, (name, shape) in zip(keys, shapes.items(), strict=True)
    }


def logits(params, tokens):
    """Scores for the tokens after i32[n], f32[n, letters]: row i sees the tokens up to i."""
    count = tokens.shape[0]  # the true length, in whichever bucket it is
    x = params["letters"][tokens] + params["places"][:count]
    query, key, value = (
        (x @ params[name]).reshape(count, HEADS, -1) for name in ("query", "key", "value")
    )
    scores = jnp.einsum("qhd,khd->hqk", query, key) / np.sqrt(WIDTH / HEADS)
    scores = jnp.where(jnp.tri(count, dtype=bool), scores, -jnp.inf)
    mixed = jnp.einsum("hqk,khd->qhd", jax.nn.softmax(scores), value)
    x = x + mixed.reshape(count, -1)
    x = (x - x.mean(1, keepdims=True)) / (x.std(1, keepdims=True) + 1e-3)
    return jax.nn.gelu(x @ params["hidden"]) @ params["out"]


def loss(params, tokens):
    likely = jax.nn.log_softmax(logits(params, tokens[:-1]))
    return -jnp.mean(jnp.take_along_axis(likely, tokens[1:, None], axis=1))


@partial(jax.jit, buckets=BUCKETS)
def step(params, tokens, moments, rate):
    """One step of Adam without bias correction, and the loss before it."""
    value, slopes = jax.value_and_grad(loss)(params, tokens)
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments[0], slopes)
    second = jax.tree.map(lambda m, g: 0.99 * m + 0.01 * g * g, moments[1], slopes)
    params = jax.tree.map(
        lambda p, m, v: p - rate * m / (jnp.sqrt(v) + 1e-4), params, first, second
    )
    return params, (first, second), value


@partial(jax.jit, buckets=BUCKETS)
def next_letter(params, tokens):
    return jnp.argmax(logits(params, tokens)[-1])


def main(epochs=15):
    codes = {letter: code for code, letter in enumerate(LETTERS)}
    verses = [np.array([codes[c] for c in verse], np.int32) for verse in POEM.splitlines(True)]
    params = initial(jax.random.key(0))
    zeros = jax.tree.map(jnp.zeros_like, params)
    moments = zeros, zeros
    for epoch in range(epochs):
        losses = []
        for verse in verses:
            params, moments, value = step(params, verse, moments, 0.003)
            losses.append(float(value))
        if epoch % 5 == 4 or epoch == epochs - 1:
            print(f"epoch {epoch + 1}: {np.mean(losses):.3f} nats per letter")

    text = "What"
    lengths = set()
    while len(text) < 70 and not text.endswith("\n"):
        tokens = np.array([codes[c] for c in text], np.int32)
        lengths.add(len(tokens))
        text += LETTERS[int(next_letter(params, tokens))]
    print(text.strip())
    learned = {len(verse) for verse in verses}
    print(f"learned {len(learned)} lengths in {len(step.cache_report().entries)} programs")
    print(f"wrote {len(lengths)} lengths in {len(next_letter.cache_report().entries)} programs")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
