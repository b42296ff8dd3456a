"""Trains a convolutional network to classify handwritten digits, with Adam and one call per epoch.

An epoch is a `lax.scan` over shuffled batches, so Python calls one compiled program per epoch. You
see the loss, the accuracy on held-out digits, and which of them are confused. At the end it writes
an HTML page of the compiled step, with each source line next to the operations it became.

Run it:   python examples/digits.py [EPOCHS]
See it:   python -m hlofront show examples/digits.py:step
"""

import pathlib
import sys
import tempfile

import numpy as np
from sklearn.datasets import load_digits

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.example_libraries.optimizers import adam

BATCH, TRAINED_ON = 64, 1437  # the rest, 360 digits, is for testing
OPTIMIZER = adam(2e-3)


def initial(seed=0):
    """The parameters: kernels f32[3, 3, in, out] of two convolutions, and a dense layer."""
    keys = jax.random.split(jax.random.key(seed), 3)
    he = jax.nn.initializers.he_normal()
    return {
        "conv1": he(keys[0], (3, 3, 1, 16)),
        "conv2": he(keys[1], (3, 3, 16, 32)),
        "dense": he(keys[2], (4 * 4 * 32, 10)) / 4,
        "bias": jnp.zeros(10),
    }


def convolve(images, kernel, stride):
    """Convolve images f32[n, height, width, in], with zeros around them."""
    return jax.lax.conv_general_dilated(
        images, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def logits(params, images):
    """The scores of images f32[n, 8, 8, 1] per digit, f32[n, 10]."""
    x = jax.nn.relu(convolve(images, params["conv1"], stride=1))
    x = jax.nn.relu(convolve(x, params["conv2"], stride=2))
    return x.reshape(len(x), -1) @ params["dense"] + params["bias"]


def loss(params, images, digits):
    """The mean cross entropy of images that show these digits, i32[n]."""
    scores = jax.nn.log_softmax(logits(params, images))
    return -jnp.mean(jnp.take_along_axis(scores, digits[:, None], axis=1))


@jax.jit
def step(state, images, digits):
    """One step of Adam: the optimizer's state after it, and the loss before it."""
    value, gradient = jax.value_and_grad(loss)(OPTIMIZER.params_fn(state), images, digits)
    return OPTIMIZER.update_fn(0, gradient, state), value


@jax.jit
def epoch(state, key, images, digits):
    """Train on all images once, in random batches: the state after it, and the mean loss."""
    order = jax.random.permutation(key, len(images))
    batches = order[: len(order) // BATCH * BATCH].reshape(-1, BATCH)
    state, losses = jax.lax.scan(lambda s, i: step(s, images[i], digits[i]), state, batches)
    return state, losses.mean()


def load():
    """Images f32[1797, 8, 8, 1] in [0, 1], in a random order, and what they show, i32[1797]."""
    data = load_digits()
    order = np.random.default_rng(1).permutation(len(data.target))
    images = (data.images[order, ..., None] / 16).astype(np.float32)
    return images, data.target[order].astype(np.int32)


def example_args():
    """What `python -m hlofront show examples/digits.py:step` calls `step` with."""
    images, digits = load()
    return OPTIMIZER.init_fn(initial()), images[:BATCH], digits[:BATCH]


def main(epochs=10):
    """Train, print how it goes, and return the accuracy on digits that were not trained on."""
    images, digits = load()
    training = jnp.asarray(images[:TRAINED_ON]), jnp.asarray(digits[:TRAINED_ON])
    unseen, answers = images[TRAINED_ON:], digits[TRAINED_ON:]
    state = OPTIMIZER.init_fn(initial())
    for number, key in enumerate(jax.random.split(jax.random.key(2), epochs), 1):
        state, value = epoch(state, key, *training)
        guesses = np.asarray(logits(OPTIMIZER.params_fn(state), unseen).argmax(axis=1))
        accuracy = np.mean(guesses == answers)
        print(f"epoch {number}: loss {float(value):.4f}, test accuracy {accuracy:.1%}")
    wrong = [f"{a} as {g}" for a, g in zip(answers, guesses, strict=True) if a != g]
    print(f"confused: {', '.join(wrong) or 'none'}")

    page = jax.inspect.page(step.lower(*example_args()).compile())
    path = pathlib.Path(tempfile.gettempdir(), "digits_step.html")
    path.write_text(page, encoding="utf-8")
    print(f"a page of the step, each line next to its operations: {path}, {len(page) // 1024} KiB")
    return accuracy


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
