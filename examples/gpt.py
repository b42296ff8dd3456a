"""Trains a small character-level GPT on the documentation that ships with Python.

The text is what `help("topics")` reads from, some 460,000 characters. You see the loss on held-out
text fall below the entropy of character pairs, and then what the model writes. At the end the cost
of the compiled step is split by source line: operations, bytes, and peak memory.

Run it:   python examples/gpt.py [STEPS]
See it:   python -m hlofront cost examples/gpt.py:step
"""

import pydoc_data.topics
import sys

import numpy as np

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.example_libraries.optimizers import adam

LAYERS, WIDTH, HEADS, LENGTH, BATCH = 2, 64, 4, 64, 16
CHARACTERS = "\n" + "".join(map(chr, range(32, 127)))
OPTIMIZER = adam(5e-3)


def load():
    """The text as indices into CHARACTERS, i32[n]; other characters are left out."""
    text = "\n".join(pydoc_data.topics.topics.values())
    number = {character: i for i, character in enumerate(CHARACTERS)}
    return np.array([number[c] for c in text if c in number], np.int32)


def initial(seed=0):
    """The parameters: embeddings, and a dictionary per layer."""
    keys = iter(jax.random.split(jax.random.key(seed), 2 + 4 * LAYERS))

    def normal(*shape):
        return jax.random.normal(next(keys), shape) / np.sqrt(shape[0])

    layers = [
        {
            "qkv": normal(WIDTH, 3 * WIDTH),
            "out": normal(WIDTH, WIDTH) / LAYERS,
            "up": normal(WIDTH, 4 * WIDTH),
            "down": normal(4 * WIDTH, WIDTH) / LAYERS,
        }
        for _ in range(LAYERS)
    ]
    embedding = normal(len(CHARACTERS), WIDTH)
    return {"embedding": embedding, "position": normal(LENGTH, WIDTH), "layers": layers}


def norm(x):
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6)


def layer(p, x):
    """Causal attention and a two-layer network per position, on f32[LENGTH, WIDTH]."""
    q, k, v = (norm(x) @ p["qkv"]).reshape(-1, 3, HEADS, WIDTH // HEADS).swapaxes(0, 1)
    mixed = jax.nn.dot_product_attention(q, k, v, is_causal=True)
    x = x + mixed.reshape(x.shape) @ p["out"]
    return x + jax.nn.gelu(norm(x) @ p["up"]) @ p["down"]


def logits(params, tokens):
    """Scores of the character that follows each of i32[LENGTH], f32[LENGTH, len(CHARACTERS)]."""
    x = params["embedding"][tokens] + params["position"]
    for p in params["layers"]:
        x = layer(p, x)
    return norm(x) @ params["embedding"].T


def loss(params, windows):
    """The mean cross entropy, in nats per character, of windows i32[n, LENGTH + 1] of the text."""
    scores = jax.nn.log_softmax(jax.vmap(logits, (None, 0))(params, windows[:, :-1]))
    return -jnp.mean(jnp.take_along_axis(scores, windows[:, 1:, None], axis=-1))


@jax.jit
def step(state, windows):
    """One step of Adam: the optimizer's state after it, and the loss before it."""
    value, gradient = jax.value_and_grad(loss)(OPTIMIZER.params_fn(state), windows)
    return OPTIMIZER.update_fn(0, gradient, state), value


@jax.jit
def write(params, key, tokens):
    """Continue the text i32[LENGTH] by 200 characters, drawn by their scores: i32[200]."""

    def one_more(tokens, key):
        drawn = jax.random.categorical(key, logits(params, tokens)[-1] / 0.7).astype(tokens.dtype)
        return jnp.append(tokens[1:], drawn), drawn

    return jax.lax.scan(one_more, tokens, jax.random.split(key, 200))[1]


def windows_of(text, rng, count=BATCH):
    starts = rng.integers(0, len(text) - LENGTH, count)
    return text[starts[:, None] + np.arange(LENGTH + 1)]


def example_args():
    """What `python -m hlofront cost examples/gpt.py:step` calls `step` with."""
    return OPTIMIZER.init_fn(initial()), windows_of(load(), np.random.default_rng(0))


def entropy_of_pairs(text):
    """The entropy of a character given the previous one, in nats."""
    pairs = np.zeros((len(CHARACTERS),) * 2)
    np.add.at(pairs, (text[:-1], text[1:]), 1)
    share = pairs / np.maximum(pairs.sum(axis=1, keepdims=True), 1)
    return -np.sum(pairs * np.log(np.where(pairs > 0, share, 1))) / pairs.sum()


def main(steps=800):
    """Train and write; return the loss on held-out text and the entropy of pairs, in nats."""
    text = load()
    training, unseen = np.split(text, [len(text) * 9 // 10])
    rng, state = np.random.default_rng(0), OPTIMIZER.init_fn(initial())
    pairs, held_out = entropy_of_pairs(text), windows_of(unseen, rng, 64)
    print(f"{len(text):,} characters; from pairs alone, {pairs:.2f} nats per character")
    for number in range(1, steps + 1):
        state, value = step(state, windows_of(training, rng))
        if number % max(steps // 4, 1) == 0:
            tested = float(jax.jit(loss)(OPTIMIZER.params_fn(state), held_out))
            print(f"step {number}: loss {float(value):.2f}, on held-out text {tested:.2f}")
    written = write(OPTIMIZER.params_fn(state), jax.random.key(1), held_out[0, :LENGTH])
    for title, tokens in (("given", held_out[0, :LENGTH]), ("written", np.asarray(written))):
        print(f"--- {title}\n" + "".join(CHARACTERS[token] for token in tokens))

    print("--- a step, by source line")
    print(jax.inspect.costs(step.lower(*example_args()).compile()))
    return tested, pairs


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
