"""The Threefry-2x32 generator, whose bits are equal on every device.

Threefry-2x32 of Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3" (2011), encrypts pairs
of 32-bit words with a key of two such words. Random bits are encrypted counters.

With the option jax_threefry_partitionable (the default) each element is the encryption of its own
position, so that devices can compute their shards of an array independently. Without it, positions
are split in two halves that are encrypted together, which gives the bits of jax before 0.5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from hlofront.base.boundary import boundary
from hlofront.base.config import enable_x64, threefry_partitionable
from hlofront.base.elements import host_number, uint32, uint64
from hlofront.base.typing import Array, ArrayLike, Shape
from hlofront.core.aval import SymbolicSize, typeof
from hlofront.primitives.arrays.creation import broadcasted_iota, full, iota
from hlofront.primitives.arrays.shaping import broadcast_in_dim, reshape, squeeze
from hlofront.primitives.arrays.slicing import concatenate, slice_in_dim, stack
from hlofront.primitives.elementwise.converting import convert_element_type
from hlofront.primitives.elementwise.elementwise import (
    add,
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    mul,
    shift_left,
    shift_right_logical,
)
from hlofront.primitives.random.bits import threefry2x32
from hlofront.primitives.random.keys import Generator
from hlofront.runtime.dispatch.operation import operation

_MAX_COUNTED = 2**32 - 1


def words_of(key: Array) -> list[Array]:
    """Return the two uint32 words of a key, as scalars."""
    return [squeeze(slice_in_dim(key, i, i + 1), (0,)) for i in range(2)]


def seed(value: ArrayLike) -> Array:
    """Return the key of an integer seed: its upper and its lower 32 bits."""
    dtype = typeof(value).dtype
    if dtype.itemsize == 8:
        upper = shift_right_logical(value, host_number(32, dtype))
        upper = convert_element_type(upper, uint32)
        lower = convert_element_type(bitwise_and(value, host_number(0xFFFF_FFFF, dtype)), uint32)
    else:
        upper = full((), 0, uint32)
        lower = convert_element_type(value, uint32)
    return stack([upper, lower])


def positions(shape: Shape) -> tuple[ArrayLike, ArrayLike]:
    """Return the upper and lower 32 bits of each element's position in an array of a shape."""
    size = math.prod(shape)
    if not isinstance(size, SymbolicSize) and size <= _MAX_COUNTED:
        lower = full(shape, 0, uint32)
        stride = 1
        for axis in reversed(range(len(shape))):
            along = broadcasted_iota(uint32, shape, axis)
            lower = add(lower, along if stride == 1 else mul(along, np.uint32(stride)))
            stride *= shape[axis]
        return full(shape, 0, uint32), lower
    with enable_x64(True):
        position = full(shape, 0, uint64)
        for axis in range(len(shape)):
            stride = host_number(math.prod(shape[axis + 1 :]), uint64)
            position = add(position, mul(broadcasted_iota(uint64, shape, axis), stride))
        upper = convert_element_type(shift_right_logical(position, np.uint64(32)), uint32)
        return upper, convert_element_type(position, uint32)


def split(key: Array, shape: Shape) -> Array:
    """Return new keys from a key, as uint32 of shape (*shape, 2)."""
    if threefry_partitionable.value:
        bits = threefry2x32(words_of(key), positions(shape))
        return stack(bits, axis=len(shape))
    count = math.prod(shape)
    return reshape(encrypt(key, iota(uint32, 2 * count)), (*shape, 2))


def fold_in(key: Array, data: ArrayLike) -> Array:
    """Return a new key from a key and a uint32 scalar."""
    return encrypt(key, seed(data))


def encrypt(key: Array, counts: Array) -> Array:
    """Encrypt an array of uint32, pairing the first half of its elements with the second."""
    aval = typeof(counts)
    flat = reshape(counts, (aval.size,))
    if aval.size % 2:
        flat = concatenate([flat, full((1,), 0, uint32)], 0)
    half = (aval.size + 1) // 2
    pairs = slice_in_dim(flat, 0, half), slice_in_dim(flat, half, 2 * half)
    bits = concatenate(threefry2x32(words_of(key), pairs), 0)
    return reshape(slice_in_dim(bits, 0, aval.size), aval.shape)


def random_bits(key: Array, bit_width: int, shape: Shape) -> Array:
    """Return random bits from a key, as unsigned integers of a width and shape."""
    if threefry_partitionable.value:
        return _bits_of_positions(key, bit_width, shape)
    return _bits_of_halves(key, bit_width, shape)


def _bits_of_positions(key: Array, bit_width: int, shape: Shape) -> Array:
    upper, lower = threefry2x32(words_of(key), positions(shape))
    if bit_width == 64:
        return _joined(upper, lower)
    mixed = bitwise_xor(upper, lower)
    return convert_element_type(mixed, np.dtype(f"uint{bit_width}"))


def _joined(upper: ArrayLike, lower: ArrayLike) -> Array:
    upper = convert_element_type(upper, uint64)
    lower = convert_element_type(lower, uint64)
    return bitwise_or(shift_left(upper, host_number(32, uint64)), lower)


def _bits_of_halves(key: Array, bit_width: int, shape: Shape) -> Array:
    size = math.prod(shape)
    words = -(-bit_width * size // 32)
    if words > _MAX_COUNTED:
        raise ValueError(
            f"random bits of shape {shape} are {words:,} words, and without "
            f"jax_threefry_partitionable there are at most {_MAX_COUNTED:,} from one key"
        )
    bits = encrypt(key, iota(uint32, words))
    if bit_width == 64:
        bits = _joined(slice_in_dim(bits, 0, size), slice_in_dim(bits, size, 2 * size))
    elif bit_width < 32:
        # Each word becomes several elements, the lowest bits first.
        parts = 32 // bit_width
        shifts = mul(broadcasted_iota(uint32, (words, parts), 1), np.uint32(bit_width))
        repeated = broadcast_in_dim(bits, (words, parts), (0,))
        bits = convert_element_type(
            shift_right_logical(repeated, shifts), np.dtype(f"uint{bit_width}")
        )
        bits = slice_in_dim(reshape(bits, (words * parts,)), 0, size)
    return reshape(bits, shape)


@boundary
def threefry_2x32(keypair: Array | Sequence[ArrayLike], count: ArrayLike) -> Array:
    """Encrypt an array of uint32 with a key of two words of uint32, by Threefry-2x32.

    Args:
      keypair: two scalars of uint32, or an array of two.
      count: an array of uint32, of any shape. Its flattened elements are split in two halves, and
        elements at equal indices of the halves are encrypted together.

    Returns:
      An array of uint32 of the shape of `count`.

    Raises:
      TypeError: if the arrays are not of uint32.
    """
    key1, key2 = keypair
    if not all(typeof(x).dtype == uint32 for x in (key1, key2, count)):
        raise TypeError(
            "threefry_2x32 requires uint32 arguments, got "
            f"{[str(typeof(x).dtype) for x in (key1, key2, count)]}"
        )
    return _threefry_2x32(key1, key2, count)


def _threefry_2x32(key1: ArrayLike, key2: ArrayLike, count: ArrayLike) -> Array:
    return encrypt(stack([key1, key2]), count)


_threefry_2x32 = operation(_threefry_2x32, nested=True)

threefry = Generator((2,), seed, split, random_bits, fold_in, name="threefry2x32", tag="fry")
