"""Helpers for searches through loops: their steps, and the rows and stacks of scans."""

from collections.abc import Callable, Sequence
from typing import Generic

import numpy as np

from hlofront.base.dtypes import ExtendedDType
from hlofront.base.typing import ArrayLike, ArrayLikes
from hlofront.core.aval import typeof
from hlofront.core.jaxpr import ClosedJaxpr, Equation
from hlofront.core.programs.subprograms import Subprogram, split_inputs
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


def run_scan(
    equation: Equation,
    body: Subprogram,
    operands: Sequence[V],
    part: Callable[[V, int], V],
    step: Callable[[int, list[V]], list[V]],
    joined: Callable[[list[V]], V],
) -> list[V]:
    """Return the results of a scan whose steps run one at a time.

    Args:
      equation: the scan.
      body: the program of a step.
      operands: the operands of the scan.
      part: returns the part of an operand at an index of its first axis.
      step: takes an index and the inputs of the program, and returns its outputs.
      joined: returns the outputs of all steps as one.
    """
    consts, carry, xs = split_inputs(body, operands)
    collected: list[list[V]] = [[] for _ in equation.outvars[len(carry) :]]
    order, is_reversed = range(body.iterations or 0), equation.params["reverse"]
    for index in reversed(order) if is_reversed else order:
        results = step(index, [*consts, *carry, *[part(x, index) for x in xs]])
        carry, outputs = results[: len(carry)], results[len(carry) :]
        for values, value in zip(collected, outputs, strict=True):
            values.append(value)
    return [*carry, *(joined(values[::-1] if is_reversed else values) for values in collected)]


def row(x: ArrayLike, i: int) -> ArrayLike:
    """Return an array at one index of its first axis."""
    if isinstance(typeof(x).dtype, ExtendedDType):
        return dynamic_index_in_dim(x, i, keepdims=False)
    return np.asarray(x)[i]


def stacked(arrays: ArrayLikes) -> ArrayLike:
    """Return arrays stacked along a new first axis."""
    if isinstance(typeof(arrays[0]).dtype, ExtendedDType):
        return stack(arrays)
    return np.stack([np.asarray(x) for x in arrays])
