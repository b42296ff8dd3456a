"""RBG: bits from the generator that XLA has for the device, which is fast and not the same on all.

Keys are made and split by Threefry; unsafe RBG uses the device's generator for that as well.
"""

import numpy as np

from hlofront.primitives.elementwise import bitwise_xor
from hlofront.primitives.keys import Generator
from hlofront.primitives.random_bits import rng_bit_generator
from hlofront.primitives.shaping import reshape, squeeze
from hlofront.primitives.slicing import concatenate, slice_in_dim
from hlofront.random import threefry
from hlofront.transforms.vmap import vmap

# How many keys the generator makes for each one that is used.
_APART = 10


def seed(value):
    """The key of an integer: Threefry's, twice."""
    half = threefry.seed(value)
    return concatenate([half, half], 0)


def split(key, shape):
    """Keys of this shape, from one key: of each of its halves by Threefry."""
    halves = vmap(lambda half: threefry.split(half, shape), out_axes=len(shape))(_halves(key))
    return reshape(halves, (*shape, 4))


def fold_in(key, data):
    """The key that depends on a key and on 32 bits more."""
    halves = vmap(threefry.fold_in, in_axes=(0, None))(_halves(key), data)
    return reshape(halves, (4,))


def _halves(key):
    return reshape(key, (2, 2))


def random_bits(key, bit_width, shape):
    """Unsigned integers of this width and shape."""
    return rng_bit_generator(key, shape, dtype=np.dtype(f"uint{bit_width}"))[1]


def unsafe_split(key, shape):
    """Keys of this shape, by the device's generator."""
    count = int(np.prod(shape))
    _, keys = rng_bit_generator(key, (_APART * count, 4), dtype=np.uint32)
    return reshape(slice_in_dim(keys, 0, _APART * count, _APART), (*shape, 4))


def unsafe_fold_in(key, data):
    """The key that depends on a key and on 32 bits more, by the device's generator."""
    _, keys = rng_bit_generator(seed(data), (_APART, 4), dtype=np.uint32)
    return bitwise_xor(key, squeeze(slice_in_dim(keys, _APART - 1, _APART), (0,)))


rbg = Generator((4,), seed, split, random_bits, fold_in, name="rbg", tag="rbg")
unsafe_rbg = Generator(
    (4,), seed, unsafe_split, random_bits, unsafe_fold_in, name="unsafe_rbg", tag="urbg"
)
