"""Samples of random bits."""

import numpy as np

from hlofront import lax
from tests.samples import sample

KEY = np.arange(4, dtype=np.uint32)
OTHERS = "from several keys it draws other bits than from each"
for shape in ((2, 3), (), (0, 3), 5):
    sample(lax.rng_bit_generator, KEY, shape, unlike_loop=OTHERS)
for dtype in ("uint8", "uint16", "uint32"):
    sample(lax.rng_bit_generator, KEY, (3,), dtype, unlike_loop=OTHERS)
for algorithm in lax.RandomAlgorithm:
    sample(lax.rng_bit_generator, KEY, (3,), algorithm=algorithm, unlike_loop=OTHERS)


def rng_uniform_shape(a, b, shape):
    """Whether all are within the bounds: the numbers themselves differ from run to run."""
    x = lax.rng_uniform(a, b, shape)
    return lax.bitwise_and(lax.ge(x, a), lax.lt(x, b))


for dtype in ("float32", "bfloat16", "int32"):
    low, high = np.array([1, 5]).astype(dtype)
    for shape in ((2, 3), ()):
        sample(
            rng_uniform_shape,
            low,
            high,
            shape,
            name=f"rng_uniform({dtype}, {shape})",
            reference=lambda a, b, shape: np.ones(shape, bool),
            not_differentiable=(NotImplementedError, "rng_uniform"),
            not_batched=(NotImplementedError, "rng_uniform"),
        )
