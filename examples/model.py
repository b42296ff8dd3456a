"""A training step of a small network, and a faster step with the same result, for trying commands.

    python -m hlofront show examples/model.py:step
    python -m hlofront diff examples/model.py:step examples/model.py:faster_step

`step` takes the mean of the images' gradients, `faster_step` the gradient of the mean loss: equal
by linearity, for a tenth of the bytes with jaxlib 0.10.2. Since 0.11.2, XLA finds this by itself.
"""

import numpy as np

import hlofront as jax
import hlofront.numpy as jnp

BATCH, PIXELS, HIDDEN, CLASSES = 256, 64, 128, 10
RATE = 0.1


def loss(params, image, label):
    """The cross entropy of one image, f32[PIXELS], that shows the digit `label`, i32[]."""
    hidden = jnp.tanh(image @ params["w1"] + params["b1"])
    logits = hidden @ params["w2"] + params["b2"]
    return -jax.nn.log_softmax(logits)[label]


def mean_loss(params, images, labels):
    return jnp.mean(jax.vmap(loss, in_axes=(None, 0, 0))(params, images, labels))


@jax.jit
def step(params, images, labels):
    """One step of gradient descent: the new parameters, from the mean of per-image gradients."""
    gradients = jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(params, images, labels)
    return jax.tree.map(lambda p, g: p - RATE * jnp.mean(g, axis=0), params, gradients)


@jax.jit
def faster_step(params, images, labels):
    """The same step, from the gradient of the mean loss."""
    gradient = jax.grad(mean_loss)(params, images, labels)
    return jax.tree.map(lambda p, g: p - RATE * g, params, gradient)


def example_args():
    """What the commands call `step` and `faster_step` with."""
    rng = np.random.default_rng(0)

    def normal(*shape):
        return (rng.normal(size=shape) / np.sqrt(shape[0])).astype(np.float32)

    params = {
        "w1": normal(PIXELS, HIDDEN),
        "b1": np.zeros(HIDDEN, np.float32),
        "w2": normal(HIDDEN, CLASSES),
        "b2": np.zeros(CLASSES, np.float32),
    }
    labels = rng.integers(0, CLASSES, BATCH).astype(np.int32)
    return params, rng.random((BATCH, PIXELS), np.float32), labels
