"""What the corpora of Pallas call: the modules of one side, and kernels of one output."""

import importlib

import numpy as np

from tests.against_jax.describe import Anything


def kit_of(jax, jnp, lax):
    """The Kit of one side."""
    pallas = jax
    if not isinstance(jax, Anything):
        pallas = importlib.import_module(f"{jax.__name__}.experimental.pallas")
        importlib.import_module(f"{jax.__name__}.experimental.pallas.tpu")
    return Kit(jax, jnp, lax, pallas, pallas.tpu)


class Kit:
    """The namespaces of one side, and a shorter pallas_call."""

    def __init__(self, jax, jnp, lax, pl, pltpu):
        self.jax, self.jnp, self.lax, self.pl, self.pltpu = jax, jnp, lax, pl, pltpu

    def call(self, kernel, shape, *args, dtype=np.float32, **options):
        """The result of a kernel of one output, interpreted."""
        out = self.jax.ShapeDtypeStruct(shape, dtype)
        return self.pl.pallas_call(kernel, out, interpret=True, **options)(*args)
