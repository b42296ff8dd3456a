"""The counter-based generators Philox-2x32, Philox-4x32 and Threefry-4x32.

Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3" (2011), gives the ciphers, here with
the numbers of rounds that it recommends. Philox multiplies words of 32 bits and keeps both halves
of the product; Threefry adds, rotates and mixes them. Each encrypts a block of words with a key.

All generators use their cipher in one way: the position of an element is written into the first two
words of a block for random bits, and into the last two for new keys.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np

from hlofront.base.elements import host_number, uint32, uint64
from hlofront.base.typing import Array, ArrayLike, Shape
from hlofront.core.aval import typeof
from hlofront.primitives.arrays.creation import full
from hlofront.primitives.arrays.shaping import broadcast_in_dim, squeeze
from hlofront.primitives.arrays.slicing import slice_in_dim, stack
from hlofront.primitives.elementwise.converting import convert_element_type
from hlofront.primitives.elementwise.elementwise import (
    add,
    bitwise_or,
    bitwise_xor,
    mul,
    mulhi,
    shift_left,
    shift_right_logical,
)
from hlofront.primitives.random.keys import Generator
from hlofront.random import threefry

# The uint32 words of a key or block, each an array or a scalar.
Words: TypeAlias = "Sequence[ArrayLike]"
# A cipher: (words of a key, words of a block) -> words of the encrypted block.
Cipher: TypeAlias = "Callable[[Words, Words], Words]"
# The indices of the words that make the upper and the lower half of 64 random bits.
Halves: TypeAlias = "tuple[Sequence[int], Sequence[int]]"

# ---- ciphers: (words of a key, words of a block) -> words of the encrypted block ----------------

_PHILOX_ROUNDS = 10
# The increments of the key's words per round: golden ratio - 1 and sqrt(3) - 1, times 2**32.
_WEYL = (np.uint32(0x9E3779B9), np.uint32(0xBB67AE85))
_MULTIPLIER = np.uint32(0xD256D193)
_MULTIPLIERS = (np.uint32(0xD2511F53), np.uint32(0xCD9E8D57))


def _product(x: ArrayLike, multiplier: np.uint32) -> tuple[Array, Array]:
    """Return the upper and the lower half of the 64-bit product of each element with a constant."""
    factor = full(typeof(x).shape, multiplier, uint32)
    return mulhi(x, factor), mul(x, factor)


def philox_2x32(key: Words, block: Words) -> Words:
    """Encrypt a block of two uint32 words by Philox-2x32, with a key of one word."""
    (k,) = key
    left, right = block
    for round_number in range(_PHILOX_ROUNDS):
        if round_number:
            k = add(k, _WEYL[0])
        upper, lower = _product(left, _MULTIPLIER)
        left, right = bitwise_xor(bitwise_xor(upper, k), right), lower
    return left, right


def philox_4x32(key: Words, block: Words) -> Words:
    """Encrypt a block of four uint32 words by Philox-4x32, with a key of two words."""
    for round_number in range(_PHILOX_ROUNDS):
        if round_number:
            key = [add(k, step) for k, step in zip(key, _WEYL, strict=True)]
        products = [_product(block[2 * i], _MULTIPLIERS[i]) for i in range(2)]
        block = (
            bitwise_xor(bitwise_xor(products[1][0], block[1]), key[0]),
            products[1][1],
            bitwise_xor(bitwise_xor(products[0][0], block[3]), key[1]),
            products[0][1],
        )
    return block


_THREEFRY_ROUNDS = 20
_PARITY = np.uint32(0x1BD11BDA)
# The bits by which the words of the two pairs are rotated in each of eight rounds.
_ROTATIONS = ((10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20))


def _rotated(x: ArrayLike, bits: int) -> Array:
    left = shift_left(x, np.uint32(bits))
    return bitwise_or(left, shift_right_logical(x, np.uint32(32 - bits)))


def threefry_4x32(key: Words, block: Words) -> Words:
    """Encrypt a block of four uint32 words by Threefry-4x32, with a key of four words."""
    parity = full(typeof(key[0]).shape, _PARITY, uint32)
    for k in key:
        parity = bitwise_xor(parity, k)
    schedule = [*key, parity]
    words = [add(x, k) for x, k in zip(block, key, strict=True)]
    for round_number in range(_THREEFRY_ROUNDS):
        rotations = _ROTATIONS[round_number % len(_ROTATIONS)]
        # The rotated words are exchanged after each round.
        partners = (3, 1) if round_number % 2 else (1, 3)
        for even, odd, bits in zip((0, 2), partners, rotations, strict=True):
            words[even] = add(words[even], words[odd])
            words[odd] = bitwise_xor(_rotated(words[odd], bits), words[even])
        injection, is_between = divmod(round_number + 1, 4)
        if not is_between:
            for i in range(4):
                words[i] = add(words[i], schedule[(injection + i) % 5])
            words[3] = add(words[3], np.uint32(injection))
    return tuple(words)


# ---- generators ----------------------------------------------------------------------------------


def _encrypted(cipher: Cipher, key: Array, block: Words) -> Words:
    """Encrypt blocks, whose words are scalars or arrays of equal shape, with a key of words."""
    shape = next((typeof(word).shape for word in block if typeof(word).shape), ())
    count = typeof(key).shape[0]
    words = [squeeze(slice_in_dim(key, i, i + 1), (0,)) for i in range(count)]
    if shape:
        words = [broadcast_in_dim(word, shape, ()) for word in words]
    return cipher(words, block)


def _zeros(shape: Shape, count: int) -> list[ArrayLike]:
    return [full(shape, 0, uint32)] * count


def _words_of_seed(value: ArrayLike) -> list[Array]:
    """Return the upper and the lower 32 bits of an integer; raise TypeError for booleans."""
    aval = typeof(value)
    if aval.dtype == np.bool_:
        raise TypeError(f"PRNG key seed must be an integer; got {aval.str_short()}")
    return threefry.words_of(threefry.seed(value))


def _seed_of_block(value: ArrayLike, *, cipher: Cipher, key_size: int, block_size: int) -> Array:
    """Return the key of an integer seed: the seed encrypted with an all-zero key."""
    block = [*_words_of_seed(value), *_zeros((), block_size - 2)]
    return stack(cipher(_zeros((), key_size), block)[:key_size])


def _seed_of_key(value: ArrayLike, *, cipher: Cipher, key_size: int, block_size: int) -> Array:
    """Return the key of an integer seed: zeros encrypted with the seed as the key."""
    key = [*_words_of_seed(value), *_zeros((), key_size - 2)]
    return stack(cipher(key, _zeros((), block_size)))


def _split(key: Array, shape: Shape, *, cipher: Cipher, block_size: int) -> Array:
    """Return new keys from a key, as uint32 of shape (*shape, key_size)."""
    block = [*_zeros(shape, block_size - 2), *threefry.positions(shape)]
    words = _encrypted(cipher, key, block)
    return stack(words[: typeof(key).shape[0]], axis=len(shape))


def _fold_in(key: Array, data: ArrayLike, *, cipher: Cipher, block_size: int) -> Array:
    """Return a new key from a key and a uint32 scalar."""
    words = _encrypted(cipher, key, [*_zeros((), block_size - 1), data])
    return stack(words[: typeof(key).shape[0]])


def _random_bits(
    key: Array, bit_width: int, shape: Shape, *, cipher: Cipher, block_size: int, halves: Halves
) -> Array:
    """Return random bits from a key, as unsigned integers of a width and shape."""
    block = [*threefry.positions(shape), *_zeros(shape, block_size - 2)]
    words = _encrypted(cipher, key, block)
    if bit_width < 64:
        return convert_element_type(_mixed(words), np.dtype(f"uint{bit_width}"))
    upper, lower = (
        convert_element_type(_mixed([words[i] for i in half]), uint64) for half in halves
    )
    return bitwise_or(shift_left(upper, host_number(32, uint64)), lower)


def _mixed(words: Words) -> Array:
    """Return the bitwise exclusive or of all words."""
    mixed, *rest = words
    for word in rest:
        mixed = bitwise_xor(mixed, word)
    return mixed


def _generator(
    cipher: Cipher,
    key_size: int,
    block_size: int,
    seed: Callable[..., Array],
    halves: Halves,
    name: str,
    tag: str,
) -> Generator:
    """Return the generator that runs a cipher in counter mode.

    Args:
      cipher: encrypts a block of words with a key.
      key_size, block_size: the number of uint32 words of a key and of a block.
      seed: returns the key of an integer seed.
      halves: selects the words that form the halves of 64-bit numbers.
      name, tag: the generator's name, and its short name in dtypes.
    """
    sizes = {"cipher": cipher, "block_size": block_size}
    return Generator(
        (key_size,),
        partial(seed, key_size=key_size, **sizes),
        partial(_split, **sizes),
        partial(_random_bits, halves=halves, **sizes),
        partial(_fold_in, **sizes),
        name=name,
        tag=tag,
    )


philox2x32 = _generator(
    philox_2x32, 1, 2, _seed_of_block, ((0,), (1,)), name="philox2x32", tag="phx2"
)
philox4x32 = _generator(
    philox_4x32, 2, 4, _seed_of_block, ((0,), (1,)), name="philox4x32", tag="phx4"
)
threefry4x32 = _generator(
    threefry_4x32, 4, 4, _seed_of_key, ((0, 2), (1, 3)), name="threefry4x32", tag="fry4"
)
