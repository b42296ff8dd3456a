"""Random bits in kernels of TPUs: prng_seed and prng_random_bits.

A core of a TPU has a generator with a state, which the steps of a grid change in order. Interpreted
kernels have the state in a scratch buffer: a key of Threefry, and how many times it has been used.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hlofront.base.elements import int32, uint32
from hlofront.base.typing import Array, ArrayLike, ArrayLikes, Shape, ShapeLike
from hlofront.core import rules
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.jaxpr import Equation
from hlofront.core.primitive import Primitive
from hlofront.core.references import AbstractRef, read_effect, write_effect
from hlofront.core.sizes.dimensions import canonical_shape
from hlofront.core.trace import Tracer
from hlofront.pallas.grid_indices import own_reference
from hlofront.pallas.memory import TpuMemorySpace
from hlofront.primitives.arrays.creation import full, iota
from hlofront.primitives.arrays.shaping import reshape, squeeze
from hlofront.primitives.arrays.slicing import slice_in_dim, stack
from hlofront.primitives.elementwise.converting import bitcast_convert_type, convert
from hlofront.primitives.elementwise.elementwise import add, bitwise_xor
from hlofront.primitives.random.bits import THREEFRY_PARITY, THREEFRY_ROTATIONS, threefry2x32
from hlofront.primitives.references.rules import Discharged
from hlofront.primitives.rules.derivatives import no_derivative

# Operands: the reference to the state, and integers.
prng_seed_p = Primitive("prng_seed", multiple_results=True)
# The operand is the reference to the state; the result has the parameter `shape`.
prng_random_bits_p = Primitive("prng_random_bits")

for _primitive in (prng_seed_p, prng_random_bits_p):
    _primitive.ref_primitive = True
    rules.effects(_primitive)(lambda *_, **__: frozenset((read_effect, write_effect)))
no_derivative(prng_seed_p, prng_random_bits_p)

# The two words of a key, and how many times it has been used.
_STATE = AbstractRef(ShapedArray((3,), uint32), TpuMemorySpace.SMEM)


def _state() -> Tracer:
    return own_reference("the random numbers of a kernel", _STATE)


def prng_seed(*seeds: ArrayLike) -> None:
    """Seed the generator of the core on which the kernel runs.

    To draw numbers that do not depend on the order of the steps of a grid, seed it by their
    indices, too, as in `prng_seed(seed, pl.program_id(0))`.

    Args:
      *seeds: integer scalars, which are combined.

    Raises:
      ValueError: without seeds, for a seed that is not an integer scalar, and outside of kernels.
    """
    for seed in seeds:
        aval = typeof(seed)
        if aval.shape or not np.issubdtype(aval.dtype, np.integer):
            raise ValueError(
                f"prng_seed: All seed data must be scalar integers. Got {aval.str_short()}"
            )
    if not seeds:
        raise ValueError("prng_seed takes one or more integers, and got none")
    prng_seed_p.bind(_state(), *[convert(seed, int32, False) for seed in seeds])


def prng_random_bits(shape: ShapeLike) -> Array:
    """Return random bits from the core's generator, as int32.

    The bits that follow from a seed depend on the device: interpreted kernels differ from TPUs.

    Args:
      shape: the shape of the result.

    Raises:
      ValueError: outside of kernels.
    """
    return prng_random_bits_p.bind(_state(), shape=canonical_shape(shape))


# Arrays of uint32, traced or of NumPy.
Words = Any


def threefry(key: Sequence[Words], x: Words, y: Words) -> list[Words]:
    """Return two arrays of uint32, traced or of NumPy, encrypted by Threefry-2x32 in 20 rounds.

    Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3" (2011).
    """
    keys = (key[0], key[1], key[0] ^ key[1] ^ np.uint32(THREEFRY_PARITY))
    x, y = x + keys[0], y + keys[1]
    for number in range(5):
        for bits in THREEFRY_ROTATIONS[number % 2]:
            x = x + y
            y = (y << np.uint32(bits) | y >> np.uint32(32 - bits)) ^ x
        x = x + keys[(number + 1) % 3]
        y = y + keys[(number + 2) % 3] + np.uint32(number + 1)
    return [x, y]


@rules.infer(prng_seed_p)
def _(state: AbstractRef, *seeds: ShapedArray) -> list[ShapedArray]:
    return []


@rules.infer(prng_random_bits_p)
def _(state: AbstractRef, *, shape: Shape) -> ShapedArray:
    return ShapedArray(shape, int32)


# ---- discharge -----------------------------------------------------------------------------------


def _words(state: ArrayLike) -> list[Array]:
    return [squeeze(slice_in_dim(state, i, i + 1), (0,)) for i in range(3)]


@rules.discharge(prng_seed_p)
def _(equation: Equation, operands: ArrayLikes) -> Discharged:
    key: list[Words] = [np.uint32(0), np.uint32(0)]
    for place, seed in enumerate(operands[1:]):
        key = threefry2x32(key, (bitcast_convert_type(seed, uint32), np.uint32(place)))
    state = stack([*key, np.uint32(0)])
    return [state, *[None] * len(operands[1:])], []


@rules.discharge(prng_random_bits_p)
def _(equation: Equation, operands: ArrayLikes) -> Discharged:
    shape: Shape = equation.params["shape"]
    *key, used = _words(operands[0])
    size = ShapedArray(shape, int32).size
    counts = (full((size,), used, uint32), iota(uint32, size))
    bits = bitwise_xor(*threefry2x32(key, counts))
    state = stack([*key, add(used, np.uint32(1))])
    return [state], bitcast_convert_type(reshape(bits, shape), int32)
