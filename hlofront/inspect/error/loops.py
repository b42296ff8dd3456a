"""The search for lost precision inside loops.

Short loops run one operation at a time. In long ones each step is a compiled program, in the
program's precision and in the reference's, and only steps at whose end the error has jumped run
one operation at a time.
"""

from collections.abc import Sequence

import numpy as np

from hlofront.base.typing import ArrayLike, NumPyArray
from hlofront.core.aval import typeof
from hlofront.core.jaxpr import ClosedJaxpr, Equation
from hlofront.core.programs.subprograms import Subprogram, equation_count, split_inputs
from hlofront.inspect.error.measure import epsilon, is_inexact
from hlofront.inspect.error.origins import JUMP
from hlofront.inspect.error.references import compiled_call
from hlofront.inspect.error.search import ErrorSearch, Pair, note_consequence
from hlofront.inspect.stepwise.loops import SHORT, LoopRun, row, run_scan, stacked
from hlofront.inspect.stepwise.operands import typed
from hlofront.inspect.stepwise.run import Level
from hlofront.inspect.stepwise.trails import Trail
from hlofront.numpy import where


class _Loop(LoopRun[Pair]):
    """A run of a loop."""

    def __init__(
        self, search: ErrorSearch, level: Level[Pair], equation: Equation, program: ClosedJaxpr
    ):
        super().__init__(level, equation, program)
        self.search = search
        # The step with the greatest growth of the error, with its inputs.
        self.greatest: tuple[float, int, list[Pair]] | None = None

    def step(self, index: int, inputs: list[Pair], is_short: bool) -> list[Pair]:
        """Return the outputs of one step.

        Args:
          index: the number of the step; of a scan, the index along the first axis.
          inputs: the inputs of the loop's program.
          is_short: whether the loop is short, so that each step runs one operation at a time.
        """
        search = self.search
        if is_short:
            return search.run(self.program, inputs, self.inside(index))
        results = compiled_call(self.program, [v.array for v in inputs])
        exacts = search.reference.call(self.program, [search.exact(v) for v in inputs])
        outputs = [
            search.pair(x, exact, self.equation, inputs)
            for x, exact in zip(results, exacts, strict=True)
        ]
        growth = self._growth(inputs, outputs)
        if self.greatest is None or growth > self.greatest[0]:
            self.greatest = growth, index, inputs
        jumps = growth > JUMP and any(search.is_lost(v.array, v.error) for v in outputs)
        if jumps and self.left > 0:
            self.left -= 1
            return self._alike(outputs, search.run(self.program, inputs, self.inside(index)))
        return outputs

    def _alike(self, outputs: list[Pair], stepwise: list[Pair]) -> list[Pair]:
        """Return the outputs of a compiled step with the trails that its operations found."""
        for value, other in zip(outputs, stepwise, strict=True):
            if self.search.is_lost(value.array, value.error):
                value.trails = self.search.together((*other.trails, *value.trails))
            value.is_undetermined |= other.is_undetermined
        return outputs

    def _growth(self, inputs: Sequence[Pair], outputs: Sequence[Pair]) -> float:
        """Return how many times larger the error of the outputs is than that of the inputs.

        Integers and booleans that begin to differ count as infinitely larger.
        """
        if any(v.error for v in outputs if not is_inexact(v.array)) and not any(
            v.error for v in inputs if not is_inexact(v.array)
        ):
            return float("inf")
        had = [v.error for v in inputs if is_inexact(v.array)]
        floors = [epsilon(typed(v.array)[0]) for v in inputs if is_inexact(v.array)]
        now = max((v.error for v in outputs if is_inexact(v.array)), default=0.0)
        return now / max((*had, min(floors, default=1.0)))

    def finished(self, results: list[Pair]) -> list[Pair]:
        """Return the results of the loop; look for the origin of an error that grew slowly.

        If each step adds a little to the error, it is large at some operation inside a step, though
        small in the step's outputs.
        """
        search = self.search
        lost = [v for v in results if search.is_lost(v.array, v.error) and not v.trails]
        if lost and self.greatest is not None:
            _, index, inputs = self.greatest
            known = len(search.starts)
            search.run(self.program, inputs, self.inside(index))
            trails = [Trail(start, self.equation, None) for start in search.starts[known:]]
            for value in lost:
                value.trails = search.together(trails)
        return results


# ---- scans ---------------------------------------------------------------------------------------


def _in_scan(
    search: ErrorSearch,
    level: Level[Pair],
    equation: Equation,
    body: Subprogram,
    operands: Sequence[Pair],
) -> list[Pair]:
    """Run a scan, and return its results with their errors."""
    length = body.iterations or 0
    if not length:
        return search.operation(level, equation, list(operands))
    program = body.closed
    loop = _Loop(search, level, equation, program)
    is_short = bool(program.effects) or length * equation_count(program.jaxpr) <= SHORT
    results = run_scan(
        equation,
        body,
        operands,
        lambda x, index: _row(search, x, index),
        lambda index, inputs: loop.step(index, inputs, is_short),
        lambda values: _stacked(search, values, equation),
    )
    return loop.finished(results)


def _row(search: ErrorSearch, whole: Pair, index: int) -> Pair:
    """Return one index of the first axis of a value, with the trails if the row is lost."""
    array = row(whole.array, index)
    if whole.reference is whole.array:
        return search.pair(array, array, whole.origin, [whole])
    return search.pair(array, row(whole.reference, index), whole.origin, [whole])


def _stacked(search: ErrorSearch, values: Sequence[Pair], equation: Equation) -> Pair:
    """Return the outputs of all steps stacked along a new first axis, with their trails."""
    array = stacked([v.array for v in values])
    if all(v.reference is v.array for v in values):
        return search.pair(array, array, equation, values)
    return search.pair(array, stacked([v.reference for v in values]), equation, values)


# ---- while loops ---------------------------------------------------------------------------------


def _in_while(
    search: ErrorSearch,
    level: Level[Pair],
    equation: Equation,
    body: Subprogram,
    condition: Subprogram,
    operands: Sequence[Pair],
) -> list[Pair]:
    """Run a while loop, on each side as long as that side's condition holds; return its results."""
    loop = _Loop(search, level, equation, body.closed)
    read = split_inputs(condition, operands)[0]
    consts, carry, _ = split_inputs(body, operands)
    cost = equation_count(body.jaxpr) + equation_count(condition.jaxpr)
    effects = body.closed.effects | condition.closed.effects
    time, answer = 0, None
    while True:
        is_short = bool(effects) or time * cost <= SHORT
        answer = _answer(search, loop, condition.closed, [*read, *carry], time, is_short)
        ours, exact = np.asarray(answer.array), np.asarray(answer.reference)
        if not ours.any() or not exact.any():
            break
        new = loop.step(time, [*consts, *carry], is_short)
        carry = [_merged(search, ours, exact, x, y) for x, y in zip(new, carry, strict=True)]
        time += 1
    if ours.any() or exact.any():
        carry = _alone(search, loop, condition.closed, read, consts, carry, answer)
    return loop.finished(carry)


def _answer(
    search: ErrorSearch,
    loop: _Loop,
    condition: ClosedJaxpr,
    inputs: list[Pair],
    time: int,
    is_short: bool,
) -> Pair:
    """Return the value of a loop's condition: booleans, several where the loop is batched."""
    if is_short:
        return search.run(condition, inputs, loop.inside(time))[0]
    (ours,) = compiled_call(condition, [v.array for v in inputs])
    (exact,) = search.reference.call(condition, [search.exact(v) for v in inputs])
    value = search.pair(ours, exact, loop.equation)
    if not value.error:
        return value
    return search.run(condition, inputs, loop.inside(time))[0]


def _merged(search: ErrorSearch, ours: NumPyArray, exact: NumPyArray, new: Pair, old: Pair) -> Pair:
    """Return a part of the carry after a step, old where the condition of its side is false."""
    if not ours.ndim:
        return new
    if new.reference is new.array and old.reference is old.array and (ours == exact).all():
        merged = _chosen(ours, new.array, old.array)
        return search.pair(merged, merged, new.origin, [new, old])
    return search.pair(
        _chosen(ours, new.array, old.array),
        _chosen(exact, new.reference, old.reference),
        new.origin,
        [new, old],
    )


def _chosen(mask: NumPyArray, new: ArrayLike, old: ArrayLike) -> ArrayLike:
    rank = len(typeof(new).shape)
    return where(mask.reshape(mask.shape + (1,) * (rank - mask.ndim)), new, old)


def _alone(
    search: ErrorSearch,
    loop: _Loop,
    condition: ClosedJaxpr,
    read: Sequence[Pair],
    consts: Sequence[Pair],
    carry: list[Pair],
    answer: Pair,
) -> list[Pair]:
    """Return the results of a loop that one side has left: run the other side to its end."""
    ours_continues = bool(np.asarray(answer.array).any())

    def arrays_of(values: Sequence[Pair]) -> list[ArrayLike]:
        return [v.array if ours_continues else search.exact(v) for v in values]

    call = compiled_call if ours_continues else search.reference.call
    read_arrays, const_arrays, state = map(arrays_of, (read, consts, carry))
    while True:
        (continues,) = call(condition, [*read_arrays, *state])
        continues = np.asarray(continues)
        if not continues.any():
            break
        new = call(loop.program, [*const_arrays, *state])
        if continues.ndim:
            new = [_chosen(continues, x, y) for x, y in zip(new, state, strict=True)]
        state = list(new)
    pairs: list[Pair] = []
    for value, array in zip(carry, state, strict=True):
        ours, exact = (array, search.exact(value)) if ours_continues else (value.array, array)
        pairs.append(search.pair(ours, exact, loop.equation, [answer, *carry]))
    for trail in answer.trails:
        note_consequence(trail.start, max((v.error for v in pairs), default=0.0))
    return pairs


class LoopErrorSearch(ErrorSearch):
    """A search for lost precision that also searches loops."""

    in_scan = _in_scan
    in_while = _in_while
