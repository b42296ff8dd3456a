"""Trains a variational autoencoder that encodes a black and white digit as eight numbers.

You see the bound on the log-likelihood of held-out digits rise above that of a model of independent
pixels, and digits decoded from random codes. At the end the loss is written the textbook way, with
`log(p)` and `log(1 - p)`: its gradient is NaN, and `find_nan` names the line and the operation.

Run it:   python examples/vae.py [STEPS]
"""

import sys

import numpy as np
from sklearn.datasets import load_digits

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.example_libraries.optimizers import adam

CODE, HIDDEN, BATCH, PER_CALL, TRAINED_ON = 8, 256, 128, 100, 1437
OPTIMIZER = adam(1e-3)


def initial(seed=0):
    """The weights and biases of the encoder and of the decoder, two layers each."""
    sizes = [(64, HIDDEN), (HIDDEN, 2 * CODE), (CODE, HIDDEN), (HIDDEN, 64)]
    keys = jax.random.split(jax.random.key(seed), len(sizes))
    initializer = jax.nn.initializers.glorot_normal()
    return [(initializer(k, size), jnp.zeros(size[1])) for k, size in zip(keys, sizes, strict=True)]


def apply(layers, x):
    (w1, b1), (w2, b2) = layers
    return jax.nn.gelu(x @ w1 + b1) @ w2 + b2


def encode(params, image):
    """The code of an image f32[64], a normal distribution: its mean and log-variance."""
    return jnp.split(apply(params[:2], image), 2)


def log_likelihood(logits, image):
    """The log-probability of black and white pixels, given the decoder's scores for white."""
    return jnp.sum(image * logits - jax.nn.softplus(logits))


def naive_log_likelihood(logits, image):
    """The same, written the textbook way."""
    p = jax.nn.sigmoid(logits)
    return jnp.sum(image * jnp.log(p) + (1 - image) * jnp.log(1 - p))


def bound(params, key, image, log_likelihood=log_likelihood):
    """The evidence lower bound of one image, estimated with one code."""
    mean, log_variance = encode(params, image)
    code = mean + jnp.exp(log_variance / 2) * jax.random.normal(key, mean.shape)
    divergence = jnp.sum(jnp.exp(log_variance) + mean**2 - 1 - log_variance) / 2
    return log_likelihood(apply(params[2:], code), image) - divergence


def loss(params, key, images, log_likelihood=log_likelihood):
    """The mean of the negative bounds of images f32[n, 64], in nats."""
    keys = jax.random.split(key, len(images))
    return -jnp.mean(
        jax.vmap(lambda k, image: bound(params, k, image, log_likelihood))(keys, images)
    )


@jax.jit
def train(state, first, images):
    """PER_CALL steps of Adam, counted from `first`: the state after them, and the mean loss."""

    def step(state, number):
        key = jax.random.fold_in(jax.random.key(1), number)
        chosen = images[jax.random.randint(key, (BATCH,), 0, len(images))]
        value, gradient = jax.value_and_grad(loss)(
            OPTIMIZER.params_fn(state), jax.random.fold_in(key, 1), chosen
        )
        return OPTIMIZER.update_fn(number, gradient, state), value

    state, losses = jax.lax.scan(step, state, first + jnp.arange(PER_CALL))
    return state, losses.mean()


def as_text(images):
    """Images f32[n, 64] in [0, 1] next to each other, as lines of characters."""
    shades = np.array(list(" .:-=+*#%@"))
    levels = np.clip(np.asarray(images).reshape(-1, 8, 8) * 10, 0, 9).astype(int)
    rows = levels.swapaxes(0, 1)
    return "\n".join("  ".join("".join(shades[image]) for image in row) for row in rows)


def main(steps=2000):
    """Train and draw; return the bound for held-out digits, and that of independent pixels."""
    images = (load_digits().data >= 8).astype(np.float32)
    images = np.random.default_rng(0).permutation(images)
    training, unseen = jnp.asarray(images[:TRAINED_ON]), images[TRAINED_ON:]
    shade = np.clip(images[:TRAINED_ON].mean(axis=0), 1e-3, 1 - 1e-3)
    of_pixels = float(
        np.sum(unseen @ np.log(shade) + (1 - unseen) @ np.log(1 - shade)) / len(unseen)
    )
    print(f"independent pixels: {of_pixels:.1f} nats per digit")
    state = OPTIMIZER.init_fn(initial())
    for first in range(0, steps, PER_CALL):
        state, value = train(state, first, training)
        if (first + PER_CALL) % max(steps // 4, PER_CALL) == 0:
            tested = -float(loss(OPTIMIZER.params_fn(state), jax.random.key(2), unseen))
            print(f"step {first + PER_CALL}: {-float(value):.1f} nats, held out {tested:.1f}")
    params = OPTIMIZER.params_fn(state)
    codes = jax.random.normal(jax.random.key(3), (8, CODE))
    print(as_text(jax.nn.sigmoid(apply(params[2:], codes))))

    # As after too large a step: scores so large that probabilities round to 1.
    *rest, (w, b) = params
    wild = [*rest, (30 * w, 30 * b)]
    naive = jax.grad(lambda p: loss(p, jax.random.key(4), unseen, naive_log_likelihood))
    print("the naive loss, on the same network after a wild step:")
    print(jax.inspect.find_nan(naive)(wild))
    return tested, of_pixels


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
