"""A function of a tree that the tests of exports share, and its arguments."""

import numpy as np

import hlofront.numpy as jnp

X = np.linspace(-1.0, 2.0, 6, dtype=np.float32).reshape(2, 3)
ARGUMENTS = {"a": X, "n": np.int32(3)}


def energy(x, scale=1.0):
    """A scalar of a tree of floats and an integer, which has no derivative by the integer."""
    return jnp.sum(jnp.sin(x["a"]) ** 2 * x["n"]) * scale
