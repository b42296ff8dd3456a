"""A function that the tests of bundles save, and what it gives."""

import hlofront as jax
import hlofront.numpy as jnp

RATE = 0.5


def moved(w, x):
    return w - RATE * x.sum(0)


def step(weights, x, scale=1.0):
    """A training step of a tree of weights, which refers to another function and a constant."""
    w = moved(weights["w"], x)
    return {"w": w, "unused": weights["unused"]}, jnp.tanh(w * scale).sum()


def specs(rows):
    """The types of the arguments of `step` for some rows."""
    weights = {"w": jax.ShapeDtypeStruct((3,), "float32"), "unused": spec((2,))}
    return weights, jax.ShapeDtypeStruct((rows, 3), "float32")


def spec(shape, dtype="float32"):
    return jax.ShapeDtypeStruct(shape, dtype)
