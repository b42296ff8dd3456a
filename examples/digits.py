"""Trains a small neural network on scikit-learn's handwritten digits, each step one jitted program.

Run it:   python examples/digits.py
See it:   python -m hlofront show examples/digits.py:step
"""

import itertools

import numpy as np
from sklearn.datasets import load_digits

import hlofront as jax
import hlofront.numpy as jnp

SIZES = (64, 128, 64, 10)
BATCH = 64
EPOCHS = 40
RATE = 0.2
TRAINED_ON = 1437  # the rest, 360 digits, is for testing


def initial(sizes=SIZES, seed=0):
    """The layers, as a list of dicts: weights f32[in, out] and biases f32[out]."""
    rng = np.random.default_rng(seed)
    return [
        {
            "weights": jnp.asarray(rng.normal(size=(n, m)) / np.sqrt(n), dtype=jnp.float32),
            "biases": jnp.zeros(m),
        }
        for n, m in itertools.pairwise(sizes)
    ]


def logits(layers, image):
    """What the network says of one image, f32[64]: a score per digit, f32[10]."""
    *hidden, last = layers
    activation = image
    for layer in hidden:
        activation = jnp.tanh(activation @ layer["weights"] + layer["biases"])
    return activation @ last["weights"] + last["biases"]


# The network is written for one image; vmap makes it one for many.
batched_logits = jax.vmap(logits, in_axes=(None, 0))


def loss(layers, images, digits):
    """The mean cross entropy of images f32[n, 64] that show these digits, i32[n]."""
    scores = batched_logits(layers, images)
    highest = scores.max(axis=1, keepdims=True)
    log_total = jnp.log(jnp.exp(scores - highest).sum(axis=1)) + highest[:, 0]
    right = jnp.take_along_axis(scores, digits[:, None], axis=1)[:, 0]
    return jnp.mean(log_total - right)


@jax.jit
def step(layers, images, digits):
    """One step of gradient descent: the loss before it, and the layers after it."""
    value, gradient = jax.value_and_grad(loss)(layers, images, digits)
    return value, jax.tree.map(lambda p, g: p - RATE * g, layers, gradient)


@jax.jit
def accuracy(layers, images, digits):
    """The share of images whose digit has the highest score, f32[]."""
    return jnp.mean(jnp.argmax(batched_logits(layers, images), axis=1) == digits)


def example_args():
    """What `python -m hlofront show examples/digits.py:step` calls `step` with."""
    images, digits = load()
    return initial(), images[:BATCH], digits[:BATCH]


def load():
    """Images f32[1797, 64] in [0, 1], in a random order, and the digits that they show, i32."""
    data = load_digits()
    order = np.random.default_rng(1).permutation(len(data.target))
    return (data.data[order] / 16).astype(np.float32), data.target[order].astype(np.int32)


def main():
    """Train, print how it goes, and return the accuracy on digits that were not trained on."""
    images, digits = load()
    test = slice(TRAINED_ON, None)
    layers = initial()
    rng = np.random.default_rng(2)
    for epoch in range(1, EPOCHS + 1):
        order = rng.permutation(TRAINED_ON)
        for start in range(0, TRAINED_ON - BATCH + 1, BATCH):
            chosen = order[start : start + BATCH]
            value, layers = step(layers, images[chosen], digits[chosen])
        if epoch % 10 == 0:
            tested = float(accuracy(layers, images[test], digits[test]))
            print(f"epoch {epoch}: loss {float(value):.4f}, test accuracy {tested:.1%}")
    return tested


if __name__ == "__main__":
    main()
