"""The operations of a core that are not on arrays: random bits, delays, profiles."""

from collections.abc import Sequence

import numpy as np

from hlofront.base.typing import NumPyArray
from hlofront.core.jaxpr import Equation
from hlofront.higher_order.checkify.checking import check_p
from hlofront.pallas.debug_checks import makes_checks, message_of
from hlofront.pallas.hints import delay_p, touch_p, trace_value_p
from hlofront.pallas.interpret.tpu.memory import Buffer
from hlofront.pallas.interpret.tpu.steps import GridStep, Value, line_of, step
from hlofront.pallas.prng import prng_random_bits_p, prng_seed_p, threefry


@step(delay_p, touch_p, trace_value_p)
def _(self: GridStep, equation: Equation, operand: Value) -> Sequence[Value]:
    return []


@step(prng_seed_p)
def _(self: GridStep, equation: Equation, state: Buffer, *seeds: NumPyArray) -> Sequence[Value]:
    key: Sequence[NumPyArray] = (np.zeros(1, np.uint32), np.zeros(1, np.uint32))
    for place, seed in enumerate(seeds):
        word = np.asarray(seed, np.int32).reshape(1).view(np.uint32)
        key = threefry(key, word, np.full(1, place, np.uint32))
    self.write(state, (), np.concatenate([*key, np.zeros(1, np.uint32)]), line_of(equation))
    return []


@step(prng_random_bits_p)
def _(self: GridStep, equation: Equation, state: Buffer) -> Sequence[Value]:
    shape, line = equation.params["shape"], line_of(equation)
    words = self.read(state, (), line)
    places = np.arange(np.prod(shape, dtype=np.int64), dtype=np.uint32)
    x, y = threefry((words[0:1], words[1:2]), np.full_like(places, words[2]), places)
    self.write(state, (), words + np.array([0, 0, 1], np.uint32), line)
    return [(x ^ y).view(np.int32).reshape(shape)]


@step(check_p)
def _(self: GridStep, equation: Equation, failed: Value, *operands: Value) -> Sequence[Value]:
    if failed and makes_checks():
        raise RuntimeError(f"{message_of(equation)}: debug_check failed at {line_of(equation)}")
    return []
