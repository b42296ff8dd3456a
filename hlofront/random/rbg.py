"""The RBG generators: random bits from the device's own generator, which is fast.

The bits differ between kinds of devices. Keys are seeded and split by Threefry; unsafe RBG splits
them with the device's generator too.
"""

from __future__ import annotations

import numpy as np

from hlofront.base.typing import Array, ArrayLike, Shape
from hlofront.primitives.arrays.shaping import reshape, squeeze
from hlofront.primitives.arrays.slicing import concatenate, slice_in_dim
from hlofront.primitives.elementwise.elementwise import bitwise_xor
from hlofront.primitives.random.bits import rng_bit_generator
from hlofront.primitives.random.keys import Generator
from hlofront.random import threefry
from hlofront.transforms.vmap import vmap

# The number of keys that the device's generator makes for each new key.
_KEYS_PER_KEY = 10


def seed(value: ArrayLike) -> Array:
    """Return the RBG key of an integer seed: the Threefry key, repeated to four uint32 words."""
    half = threefry.seed(value)
    return concatenate([half, half], 0)


def split(key: Array, shape: Shape) -> Array:
    """Return new RBG keys from a key, whose halves are split by Threefry."""
    halves = vmap(lambda half: threefry.split(half, shape), out_axes=len(shape))(_halves(key))
    return reshape(halves, (*shape, 4))


def fold_in(key: Array, data: ArrayLike) -> Array:
    """Return a new RBG key from a key and a uint32 scalar, by Threefry."""
    halves = vmap(threefry.fold_in, in_axes=(0, None))(_halves(key), data)
    return reshape(halves, (4,))


def _halves(key: Array) -> Array:
    return reshape(key, (2, 2))


def random_bits(key: Array, bit_width: int, shape: Shape) -> Array:
    """Return random bits from an RBG key, as unsigned integers of a width and shape."""
    return rng_bit_generator(key, shape, dtype=np.dtype(f"uint{bit_width}"))[1]


def unsafe_split(key: Array, shape: Shape) -> Array:
    """Return new RBG keys from a key, by the device's generator."""
    count = int(np.prod(shape))
    _, keys = rng_bit_generator(key, (_KEYS_PER_KEY * count, 4), dtype=np.uint32)
    return reshape(slice_in_dim(keys, 0, _KEYS_PER_KEY * count, _KEYS_PER_KEY), (*shape, 4))


def unsafe_fold_in(key: Array, data: ArrayLike) -> Array:
    """Return a new RBG key from a key and a uint32 scalar, by the device's generator."""
    _, keys = rng_bit_generator(seed(data), (_KEYS_PER_KEY, 4), dtype=np.uint32)
    return bitwise_xor(key, squeeze(slice_in_dim(keys, _KEYS_PER_KEY - 1, _KEYS_PER_KEY), (0,)))


rbg = Generator((4,), seed, split, random_bits, fold_in, name="rbg", tag="rbg")
unsafe_rbg = Generator(
    (4,), seed, unsafe_split, random_bits, unsafe_fold_in, name="unsafe_rbg", tag="urbg"
)
