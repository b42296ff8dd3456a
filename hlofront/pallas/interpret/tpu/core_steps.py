"""The operations of a core that are not on arrays: random bits, delays, profiles."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hlofront.base.typing import NumPyArray
from hlofront.core.jaxpr import Equation
from hlofront.higher_order.checking import check_p
from hlofront.pallas.debug_checks import makes_checks, message_of
from hlofront.pallas.hints import delay_p, touch_p, trace_value_p
from hlofront.pallas.interpret.tpu.memory import Buffer
from hlofront.pallas.interpret.tpu.steps import GridStep, at_once, line_of, step
from hlofront.pallas.prng import prng_random_bits_p, prng_seed_p

# The bits by which Threefry-2x32 rotates a word, in four rounds and in the next four.
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
# The constant word of the key schedule.
_PARITY = np.uint32(0x1BD11BDA)


@step(delay_p, touch_p, trace_value_p)
@at_once
def _(self: GridStep, equation: Equation, operand: Any) -> Sequence[Any]:
    return []


def threefry(key: Sequence[NumPyArray], x: NumPyArray, y: NumPyArray) -> Sequence[NumPyArray]:
    """Return two arrays of uint32, encrypted by Threefry-2x32 in 20 rounds.

    Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3" (2011).
    """
    words = (key[0], key[1], key[0] ^ key[1] ^ _PARITY)
    x, y = x + words[0], y + words[1]
    for group in range(5):
        for bits in _ROTATIONS[group % 2]:
            x = x + y
            y = (y << np.uint32(bits) | y >> np.uint32(32 - bits)) ^ x
        x = x + words[(group + 1) % 3]
        y = y + words[(group + 2) % 3] + np.uint32(group + 1)
    return x, y


@step(prng_seed_p)
@at_once
def _(self: GridStep, equation: Equation, state: Buffer, *seeds: NumPyArray) -> Sequence[Any]:
    key: Sequence[NumPyArray] = (np.zeros(1, np.uint32), np.zeros(1, np.uint32))
    for place, seed in enumerate(seeds):
        word = np.asarray(seed, np.int32).reshape(1).view(np.uint32)
        key = threefry(key, word, np.full(1, place, np.uint32))
    self.write(state, (), np.concatenate([*key, np.zeros(1, np.uint32)]), line_of(equation))
    return []


@step(prng_random_bits_p)
@at_once
def _(self: GridStep, equation: Equation, state: Buffer) -> Sequence[Any]:
    shape, line = equation.params["shape"], line_of(equation)
    words = self.read(state, (), line)
    places = np.arange(np.prod(shape, dtype=np.int64), dtype=np.uint32)
    x, y = threefry((words[0:1], words[1:2]), np.full_like(places, words[2]), places)
    self.write(state, (), words + np.array([0, 0, 1], np.uint32), line)
    return [(x ^ y).view(np.int32).reshape(shape)]


@step(check_p)
@at_once
def _(self: GridStep, equation: Equation, failed: Any, *operands: Any) -> Sequence[Any]:
    if failed and makes_checks():
        raise RuntimeError(f"{message_of(equation)}: debug_check failed at {line_of(equation)}")
    return []
