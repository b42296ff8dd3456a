"""Random numbers in kernels: from the generator of a TPU's core, or from keys that blocks share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hlofront.base.dtypes import canonicalize_dtype, issubdtype
from hlofront.base.elements import float32, int32, uint32
from hlofront.base.typing import Array, ArrayLike, DType, DTypeLike, Shape
from hlofront.core.aval import typeof
from hlofront.pallas.grid_indices import program_id
from hlofront.pallas.prng import prng_random_bits
from hlofront.primitives.arrays.creation import full_like
from hlofront.primitives.arrays.shaping import reshape
from hlofront.primitives.arrays.slicing import concatenate
from hlofront.primitives.elementwise.compare import lt
from hlofront.primitives.elementwise.converting import bitcast_convert_type, convert
from hlofront.primitives.elementwise.elementwise import (
    add,
    bitwise_or,
    bitwise_xor,
    max,
    mul,
    shift_left,
    shift_right_logical,
    sub,
)
from hlofront.primitives.elementwise.special import erf_inv
from hlofront.primitives.random.bits import threefry2x32
from hlofront.primitives.random.keys import Generator, random_bits, register
from hlofront.random import keys
from hlofront.random.threefry import positions, words_of

# ---- the generator of the core -------------------------------------------------------------------


def stateful_bits(shape: Sequence[int] = (), dtype: DTypeLike | None = None) -> Array:
    """Return random bits from the core on which the kernel runs: see `prng_seed`.

    Args:
      shape: the shape of the result.
      dtype: uint32.

    Raises:
      ValueError: for another dtype, and outside of kernels.
    """
    if dtype is not None and canonicalize_dtype(dtype) != uint32:
        raise ValueError(f"stateful_bits: Bit width must be 32, got dtype {dtype}: give uint32")
    return bitcast_convert_type(prng_random_bits(shape), uint32)


def stateful_uniform(
    shape: Sequence[int] = (),
    dtype: DTypeLike | None = None,
    minval: ArrayLike = 0.0,
    maxval: ArrayLike = 1.0,
) -> Array:
    """Return floats from the core on which the kernel runs, uniform in [minval, maxval).

    Args:
      shape: the shape of the result.
      dtype: a floating dtype; by default float32.
      minval: the lower bound.
      maxval: the upper bound.

    Raises:
      ValueError: for a dtype that is not floating, and outside of kernels.
    """
    return convert(_uniform(shape, minval, maxval), _floating("stateful_uniform", dtype), False)


def _floating(name: str, dtype: DTypeLike | None) -> DType:
    result = float32 if dtype is None else canonicalize_dtype(dtype)
    if not issubdtype(result, np.floating):
        raise ValueError(f"dtype argument to `{name}` must be a float dtype, got {result}")
    return result


def _uniform(shape: Sequence[int], minval: ArrayLike, maxval: ArrayLike) -> Array:
    """Return numbers of float32 in [minval, maxval)."""
    bits = stateful_bits(shape)
    # 23 random bits behind the exponent of 1: numbers in [1, 2).
    ones = full_like(bits, 0x3F800000)
    mantissa = bitwise_or(shift_right_logical(bits, full_like(bits, 9)), ones)
    floats = bitcast_convert_type(mantissa, float32)
    fraction = sub(floats, full_like(floats, 1))
    low = full_like(floats, convert(minval, float32, False))
    width = sub(full_like(floats, convert(maxval, float32, False)), low)
    return max(low, add(mul(fraction, width), low))


def stateful_bernoulli(p: ArrayLike = 0.5, shape: Sequence[int] | None = None) -> Array:
    """Return booleans from the core on which the kernel runs, which are True with a probability.

    Args:
      p: the probability.
      shape: the shape of the result; None for that of `p`.

    Raises:
      ValueError: outside of kernels.
    """
    floats = _uniform(typeof(p).shape if shape is None else shape, 0.0, 1.0)
    return lt(floats, full_like(floats, convert(p, float32, False)))


def stateful_normal(shape: Sequence[int] = (), dtype: DTypeLike | None = None) -> Array:
    """Return floats from the core on which the kernel runs, with the standard normal distribution.

    Args:
      shape: the shape of the result.
      dtype: a floating dtype; by default float32.

    Raises:
      ValueError: for a dtype that is not floating, and outside of kernels.
    """
    above = np.nextafter(np.float32(-1), np.float32(0))
    floats = erf_inv(_uniform(shape, above, 1.0))
    normals = mul(full_like(floats, math.sqrt(2)), floats)
    return convert(normals, _floating("stateful_normal", dtype), False)


# ---- keys of the generator -----------------------------------------------------------------------


def _seed(value: ArrayLike) -> Array:
    word = reshape(convert(value, uint32, False), (1, 1))
    return concatenate([word, word], 1)


def _split(key: ArrayLike, shape: Shape) -> Array:
    raise NotImplementedError(  # JAX raises this class.
        "Cannot split a Pallas key. Use fold_in instead to generate new keys."
    )


def _words(key: Array) -> list[Array]:
    return words_of(reshape(key, (2,)))


def _random_bits(key: Array, bit_width: int, shape: Shape) -> Array:
    if bit_width != 32:
        raise ValueError(f"Bit width must be 32 for Pallas keys, got {bit_width}")
    return bitwise_xor(*threefry2x32(_words(key), positions(shape)))


def _fold_in(key: Array, data: ArrayLike) -> Array:
    first, second = _words(key)
    second = add(second, data)
    # One round of Threefry.
    first = add(first, second)
    upper = shift_left(second, np.uint32(13))
    second = bitwise_xor(bitwise_or(upper, shift_right_logical(second, np.uint32(19))), first)
    return concatenate([reshape(first, (1, 1)), reshape(second, (1, 1))], 1)


PALLAS_KEYS = register(Generator((1, 2), _seed, _split, _random_bits, _fold_in, "pallas_tpu", "pl"))


def to_pallas_key(key: Array) -> Array:
    """Return keys of the generator "pallas_tpu", made of others.

    Args:
      key: a random key, or an array of keys.
    """
    typed, _ = keys.typed_key(key)
    return keys.wrap(random_bits(typed, 32, PALLAS_KEYS.key_shape), PALLAS_KEYS)


# ---- numbers that do not depend on blocks --------------------------------------------------------


def sample_block(
    sampler_fn: Callable[..., Array],
    global_key: Array,
    block_size: tuple[int, ...],
    tile_size: tuple[int, ...],
    total_size: tuple[int, ...],
    block_index: tuple[ArrayLike, ...] | None = None,
    **kwargs: Any,
) -> Array:
    """Return random numbers for a block of an array, which do not depend on the shape of blocks.

    Each tile of the array has its own key, made from the array's key and the tile's number.

    Args:
      sampler_fn: a function of a key and `shape=...`, such as `jax.random.uniform`.
      global_key: the key of the array.
      block_size: the shape of the block.
      tile_size: the shape of a tile, which must divide all blocks that should have equal numbers.
      total_size: the shape of the array.
      block_index: the index of the block along each axis; by default that of the kernel's step.
      **kwargs: more arguments of the function.

    Raises:
      ValueError: if sizes have different lengths, or tiles do not divide the block.
    """
    if len(block_size) != len(tile_size):
        raise ValueError(
            f"block_size ({len(block_size)}) and tile_size ({len(tile_size)}) must have the same "
            f"length: got {block_size} and {tile_size}"
        )
    if any(size % tile for size, tile in zip(block_size, tile_size, strict=True)):
        raise ValueError(
            f"sample_block: tiles of {tile_size} do not divide a block of {block_size}"
        )
    axes = range(len(block_size))
    if block_index is None:
        block_index = tuple(map(program_id, axes))
    counts = [size // tile for size, tile in zip(block_size, tile_size, strict=True)]
    strides = [
        math.prod([-(-n // tile) for n, tile in zip(total_size, tile_size, strict=True)][i + 1 :])
        for i in axes
    ]

    def tiles(place: tuple[int, ...]) -> Array:
        """Return the tiles of the block whose first indices are `place`."""
        axis = len(place)
        if axis < len(counts):
            parts = [tiles((*place, i)) for i in range(counts[axis])]
            return parts[0] if len(parts) == 1 else concatenate(parts, axis)
        number: ArrayLike = np.int32(0)
        for i in axes:
            first = mul(convert(block_index[i], int32, False), np.int32(counts[i]))
            along = add(first, np.int32(place[i]))
            number = add(number, mul(along, np.int32(strides[i])))
        return sampler_fn(keys.fold_in(global_key, number), shape=tuple(tile_size), **kwargs)

    return tiles(())
