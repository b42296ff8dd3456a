"""Helpers for searches through loops: their steps, and the rows and stacks of scans."""

from collections.abc import Callable, Iterable, Sequence
from typing import Generic

import numpy as np

from hlofront.base.dtypes import ExtendedDType
from hlofront.base.typing import ArrayLike
from hlofront.core.aval import typeof
from hlofront.core.jaxpr import ClosedJaxpr, Equation
from hlofront.inspect.stepwise.report_parts import Inside
from hlofront.inspect.stepwise.run import Level, V, inside
from hlofront.primitives.arrays.dynamic_slicing import dynamic_index_in_dim
from hlofront.primitives.arrays.slicing import stack

# Loops of at most this many operations over all steps run one operation at a time.
SHORT = 2_000
# The maximum number of steps of a long loop that run one operation at a time.
_MAX_STEPS = 16


class LoopRun(Generic[V]):
    """A run of a loop."""

    def __init__(self, level: Level[V], equation: Equation, program: ClosedJaxpr):
        self.level = level
        self.equation = equation
        self.program = program
        self.path = inside(level, equation, program)
        # How many more steps may run one operation at a time, after running compiled.
        self.left = _MAX_STEPS

    def inside(self, index: int) -> tuple[Inside, ...]:
        """Return the loops, branches and calls that surround the operations of a step.

        Args:
          index: the number of the step; of a scan, the index along the first axis.
        """
        *around, here = self.path
        return (*around, Inside(here.operation, here.function, here.source_line, index))


def run_steps(
    step: Callable[[int, list[V]], list[V]],
    numbers: Iterable[int],
    carry: Sequence[V],
    collected: int,
) -> tuple[list[V], list[list[V]]]:
    """Run the steps of a scan.

    Args:
      step: a function of a step's number and the carry that returns the new carry and the outputs.
      numbers: the numbers of the steps, in the order in which they run.
      carry: the carry before the first step.
      collected: the number of outputs of a step.

    Returns:
      The last carry, and the values of each output in the order of the steps.
    """
    carry = list(carry)
    outputs: list[list[V]] = [[] for _ in range(collected)]
    for number in numbers:
        results = step(number, carry)
        carry, new = results[: len(carry)], results[len(carry) :]
        for values, value in zip(outputs, new, strict=True):
            values.append(value)
    return carry, outputs


def row(x: ArrayLike, i: int) -> ArrayLike:
    """Return an array at one index of its first axis."""
    if isinstance(typeof(x).dtype, ExtendedDType):
        return dynamic_index_in_dim(x, i, keepdims=False)
    return np.asarray(x)[i]


def stacked(arrays: Sequence[ArrayLike]) -> ArrayLike:
    """Return arrays stacked along a new first axis."""
    if isinstance(typeof(arrays[0]).dtype, ExtendedDType):
        return stack(arrays)
    return np.stack([np.asarray(x) for x in arrays])
