"""The run of a program one operation at a time, also in float64 and with random roundings."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from time import monotonic

import numpy as np

from hlofront.base import source
from hlofront.base.dtypes import ExtendedDType
from hlofront.base.typing import ArrayLike, ArrayLikes, NumPyArray
from hlofront.core.aval import typeof
from hlofront.core.jaxpr import ClosedJaxpr, Equation, Var
from hlofront.core.programs.subprograms import (
    Subprogram,
    equation_count,
    inputs_among,
    split_inputs,
)
from hlofront.inspect.error.measure import is_inexact
from hlofront.inspect.error.references import Reference, compiled_call
from hlofront.inspect.error.widening import is_foreign
from hlofront.inspect.miscompile.bounds import (
    TRUSTED,
    Rounding,
    Sampled,
    by_numpy,
    exceeds_rounding,
    has_numpy,
    is_product,
    is_sum,
    moved,
    stored,
    wrong_elements,
)
from hlofront.inspect.miscompile.parts import ProgramPart
from hlofront.inspect.miscompile.trials import Kind, Outcome
from hlofront.inspect.stepwise.loops import SHORT, row, run_scan, stacked
from hlofront.inspect.stepwise.operands import typed
from hlofront.inspect.stepwise.report_parts import Inside, source_line_of
from hlofront.inspect.stepwise.run import Level, StepwiseRun, inside, results_of
from hlofront.numpy import where
from hlofront.runtime.checks.program_walk import selected

# The number of steps of a long loop that also run one operation at a time.
_STEPS_LOOKED_AT = 4


@dataclass(frozen=True, slots=True)
class WrongPart:
    """A part of the program that was found to be wrong while it ran."""

    equation: Equation
    inside: tuple[Inside, ...]
    operands: tuple[ArrayLike, ...]
    found: ArrayLike | None
    """The result that XLA computes; None if the operation ends the process."""
    expected: Sampled | None
    position: int = 0
    """The number of the result."""
    program: ClosedJaxpr | None = None
    """The body of a loop, which is wrong as a whole."""
    kind: Kind = "values"
    failure: str = ""


class OperationFailed(Exception):
    """The error that an operation, compiled on its own, ends the process or is refused by XLA."""

    def __init__(self, part: WrongPart):
        super().__init__(part.failure)
        self.part = part


# Compiles a program of one operation and runs it, in a process of its own.
Single = Callable[[ClosedJaxpr, ArrayLikes], Outcome]


class BoundedRun(StepwiseRun[Sampled]):
    """An interpreter that runs each operation with several roundings.

    Args:
      reference: the operations in float64.
      samples: the number of runs with random roundings.
      seed: the seed of the random roundings.
      is_coarse: whether products are rounded to fewer digits than their dtype has.
      single: runs an operation first that may end the process; None if none may.
      seconds: the time limit of a loop that does not end when compiled and runs step by step.
    """

    def __init__(
        self,
        reference: Reference,
        samples: int,
        seed: int,
        is_coarse: bool,
        single: Single | None = None,
        seconds: float = 0.0,
    ):
        super().__init__()
        self.is_coarse = is_coarse
        self.reference = reference
        self.single = single
        self.seconds = seconds
        self.random = [np.random.default_rng((seed, i)) for i in range(samples)]
        # The first operation, or body of a loop, that is wrong on its own.
        self.wrong: WrongPart | None = None
        # The operations that have run in a separate process.
        self.tried: set[Equation] = set()
        # For the programs of long loops, by id: the steps that ran one operation at a time.
        self.looked_at: dict[int, int] = {}

    # ---- values

    def input_value(self, array: ArrayLike, name: str) -> Sampled:
        return Sampled(array, name)

    literal_value = input_value

    def sampled(self, value: Sampled, number: int) -> ArrayLike:
        """Return a value as an operand of a sample's operations."""
        x = value.sample(number)
        return self.reference.lift(x) if number == 0 and x is value.array else x

    def record(self, level: Level[Sampled], program: ClosedJaxpr, args: Sequence[Sampled]) -> None:
        """Run a program as `run` does, but keep the values of all variables in its level."""
        level.values.update(self.captured(program))
        level.values.update(zip(program.jaxpr.invars, args, strict=True))
        for equation in program.jaxpr.eqns:
            operands = [self.read(level, atom) for atom in equation.invars]
            results = self.enter(equation, operands, level)
            if results is None:
                results = self.operation(level, equation, operands)
            level.values.update(zip(equation.outvars, results, strict=True))

    # ---- operations

    def _failure_apart(
        self, level: Level[Sampled], equation: Equation, operands: Sequence[Sampled]
    ) -> OperationFailed | None:
        """Return the failure of an operation, or of a loop, in a separate process; else None."""
        if self.single is None or equation in self.tried:
            return None
        self.tried.add(equation)
        program = ProgramPart((equation,), tuple(equation.outvars)).program
        pairs = zip(equation.invars, operands, strict=True)
        arrays = {atom: v.array for atom, v in pairs if isinstance(atom, Var)}
        outcome = self.single(program, list(arrays.values()))
        if outcome.kind == "values":
            return None
        return OperationFailed(
            WrongPart(
                equation, level.inside, tuple(v.array for v in operands), None, None,
                kind=outcome.kind, failure=outcome.failure,
            )
        )  # fmt: skip

    def operation(
        self, level: Level[Sampled], equation: Equation, operands: list[Sampled]
    ) -> list[Sampled]:
        failure = self._failure_apart(level, equation, operands)
        if failure is not None:
            raise failure
        results = results_of(equation, operands)
        varies = any(v.samples for v in operands)
        if is_foreign(equation) or not (varies or any(map(is_inexact, results))):
            values = [Sampled(x, equation) for x in results]
            if self.wrong is None and has_numpy(equation):
                self._check(level, equation, operands, values)
            return values
        exact = self.reference.bind(equation, [self.sampled(v, 0) for v in operands])
        arrays = [v.array for v in operands]
        rounding = Rounding(equation, arrays, results, exact, self.is_coarse)
        samples: list[ArrayLikes] = [exact]
        for number, random in enumerate(self.random, 1):
            mine = [v.sample(number) for v in operands]
            changed = rounding.moved_operands(mine, random)
            if varies or changed is not mine:
                primitive = equation.primitive
                bound = primitive.bind(*changed, **equation.params)
                bound = bound if primitive.multiple_results else (bound,)
            else:
                bound = results
            samples.append(rounding.moved_results(bound, random))
        values = [
            Sampled(x, equation, self._kept(x, others))
            for x, others in zip(results, zip(*samples, strict=True), strict=True)
        ]
        is_trusted = equation.primitive.name in TRUSTED
        if self.is_coarse and is_product(equation):
            is_trusted = False
        if self.wrong is None and is_trusted:
            self._check(level, equation, operands, values)
        return values

    def _kept(self, array: ArrayLike, samples: ArrayLikes) -> ArrayLikes:
        """Return samples of an array, or none if all are equal to it."""
        host = stored(array)
        for x in samples:
            other = x if x is array else stored(x)
            if other is not array and not np.array_equal(host, other, equal_nan=is_inexact(array)):
                return samples
        return ()

    def _check(
        self,
        level: Level[Sampled],
        equation: Equation,
        operands: Sequence[Sampled],
        values: Sequence[Sampled],
    ) -> None:
        """Record an operation that is wrong even on its own, according to float64 or NumPy."""
        arrays = [v.array for v in operands]
        numpy = by_numpy(equation, arrays)
        for position, value in enumerate(values):
            if numpy is None:
                if not value.samples or not is_inexact(value.array):
                    continue
                random = Sampled(value.array, equation, value.samples[1:])
                if not wrong_elements(value.samples[0], random).any():
                    continue
            # Its operands may already be wrong, or have lost their digits.
            exact = self.reference.bind(equation, list(map(self.reference.lift, arrays)))
            sizes = [self.reference.lift(_size(x)) for x in arrays]
            largest = self.reference.bind(equation, sizes) if is_sum(equation) else exact
            exact = exact if numpy is None else [numpy]
            if exceeds_rounding(
                equation, arrays, value.array, exact[position], largest[position]
            ).any():
                self.wrong = WrongPart(
                    equation,
                    level.inside,
                    tuple(arrays),
                    value.array,
                    self._expected(equation, arrays, value.array, exact, position),
                    position,
                )
                return

    def _expected(
        self,
        equation: Equation,
        arrays: ArrayLikes,
        wrong: ArrayLike,
        exact: ArrayLikes,
        position: int,
    ) -> Sampled:
        """Return the right value of a wrong result: that of float64 or NumPy, rounded."""
        dtype = typed(wrong)[0]
        rounding = Rounding(equation, arrays, [wrong] * len(exact), exact)
        samples = [exact[position]]
        for random in self.random:
            changed = rounding.moved_operands(arrays, random)
            if has_numpy(equation):
                again = [by_numpy(equation, changed)]
            else:
                again = self.reference.bind(equation, list(map(self.reference.lift, changed)))
            samples.append(np.asarray(again[position]).astype(dtype))
        return Sampled(np.asarray(exact[position]).astype(dtype), equation, samples)

    # ---- branches

    def in_branches(
        self,
        equation: Equation,
        branches: Sequence[Subprogram],
        operands: Sequence[Sampled],
        context: Level[Sampled],
    ) -> list[Sampled] | None:
        results = super().in_branches(equation, branches, operands, context)
        index = operands[0]
        if results is None or not index.samples:
            return results
        ours = selected(index.array, len(branches))
        for number in range(len(self.random) + 1):
            theirs = selected(index.sample(number), len(branches))
            if theirs == ours:
                continue
            part = branches[theirs]
            inputs = [self.sampled(v, number) for v in inputs_among(part, operands)]
            self._replace(results, number, self._called(number, part.closed, inputs))
        return results

    def _called(self, number: int, program: ClosedJaxpr, inputs: ArrayLikes) -> ArrayLikes:
        """Return the results of a program, compiled as a whole, in a sample."""
        return (self.reference.call if number == 0 else compiled_call)(program, inputs)

    def _replace(self, values: list[Sampled], number: int, arrays: Iterable[ArrayLike]) -> None:
        """Replace one sample's arrays of several values."""
        for position, x in enumerate(arrays):
            value = values[position]
            samples = [self.sampled(value, i) for i in range(len(self.random) + 1)]
            samples[number] = x
            values[position] = Sampled(value.array, value.origin, samples)

    # ---- loops

    def in_step(
        self,
        level: Level[Sampled],
        equation: Equation,
        program: ClosedJaxpr,
        inputs: list[Sampled],
        index: int,
        is_short: bool,
    ) -> list[Sampled]:
        """Return the outputs of one step of a loop, which long loops compile as a whole."""
        *around, here = inside(level, equation, program)
        place = (*around, Inside(here.operation, here.function, here.source_line, index))
        if is_short:
            return self.run(program, inputs, place)
        results = compiled_call(program, [v.array for v in inputs])
        samples: list[ArrayLikes] = []
        size = float(np.sqrt(equation_count(program.jaxpr)))
        for number in range(len(self.random) + 1):
            outputs = self._called(number, program, [self.sampled(v, number) for v in inputs])
            if number:
                random = self.random[number - 1]
                outputs = [
                    x if not is_inexact(x) or _is_one_of(x, inputs, number)
                    else moved(x, 2.0 * size, random)
                    for x in outputs
                ]  # fmt: skip
            samples.append(outputs)
        values = [
            Sampled(x, equation, others)
            for x, others in zip(results, zip(*samples, strict=True), strict=True)
        ]
        looked_at = self.looked_at.get(id(program), 0)
        if looked_at < _STEPS_LOOKED_AT and self.wrong is None:
            self.looked_at[id(program)] = looked_at + 1
            # From its true inputs, one operation at a time.
            expected = self.run(program, [Sampled(v.array, v.origin) for v in inputs], place)
            for x, value in zip(results, expected, strict=True):
                if self.wrong is None and wrong_elements(x, value).any():
                    arrays = tuple(v.array for v in inputs)
                    self.wrong = WrongPart(equation, place, arrays, x, value, program=program)
        return values

    def in_scan(
        self,
        level: Level[Sampled],
        equation: Equation,
        body: Subprogram,
        operands: list[Sampled],
    ) -> list[Sampled]:
        length = body.iterations or 0
        if not length:
            return self.operation(level, equation, operands)
        failure = self._failure_apart(level, equation, operands)
        if failure is not None:
            raise failure
        program = body.closed
        is_short = length * equation_count(program.jaxpr) <= SHORT
        return run_scan(
            equation,
            body,
            operands,
            _row,
            lambda index, inputs: self.in_step(level, equation, program, inputs, index, is_short),
            lambda values: self._stacked(equation, values),
        )

    def _stacked(self, equation: Equation, values: Sequence[Sampled]) -> Sampled:
        array = stacked([v.array for v in values])
        if not any(v.samples for v in values):
            return Sampled(array, equation)
        samples = [
            stacked([self.sampled(v, i) for v in values]) for i in range(len(self.random) + 1)
        ]
        return Sampled(array, equation, samples)

    def in_while(
        self,
        level: Level[Sampled],
        equation: Equation,
        body: Subprogram,
        condition: Subprogram,
        operands: list[Sampled],
    ) -> list[Sampled]:
        read = split_inputs(condition, operands)[0]
        consts, carry, _ = split_inputs(body, operands)
        cost = equation_count(body.jaxpr) + equation_count(condition.jaxpr)
        failure = self._failure_apart(level, equation, operands)
        if failure is not None and failure.part.kind != "hang":
            raise failure
        started, time = monotonic(), 0
        while True:
            if failure is not None and monotonic() - started > self.seconds:
                raise self._endless(equation, time)
            is_short = time * cost <= SHORT
            inputs = [*read, *carry]
            (goes_on,) = self.in_step(level, equation, condition.closed, inputs, time, is_short)
            ours = np.asarray(goes_on.array)
            if not ours.any():
                break
            new = self.in_step(level, equation, body.closed, [*consts, *carry], time, is_short)
            carry = [self._merged(goes_on, x, old) for x, old in zip(new, carry, strict=True)]
            time += 1
        if failure is not None:
            # The loop ends when it runs step by step.
            raise failure
        # With other roundings the loop may take more iterations.
        for number in range(len(self.random) + 1):
            if np.asarray(goes_on.sample(number)).any():
                rest = [self.sampled(v, number) for v in (*read, *consts, *carry)]
                self._replace(carry, number, self._looped(number, equation, rest))
        return carry

    def _endless(self, equation: Equation, steps: int) -> TimeoutError:
        line = source_line_of(equation.traceback)
        place = f" at {source.shown_line(line.file, line.line)}" if line else ""
        return TimeoutError(
            f"the while_loop{place} does not end in {self.seconds:g} seconds when it is compiled, "
            f"nor one step at a time ({steps} steps): its condition may never be false. If it has "
            "many steps, give find_miscompile more seconds=, or fewer steps"
        )

    def _looped(self, number: int, equation: Equation, operands: ArrayLikes) -> ArrayLikes:
        if number == 0:
            return self.reference.bind(equation, operands)
        return equation.primitive.bind(*operands, **equation.params)

    def _merged(self, goes_on: Sampled, new: Sampled, old: Sampled) -> Sampled:
        """Return a part of the carry after a step, old where the condition is false."""
        ours = np.asarray(goes_on.array)
        if not ours.ndim and not goes_on.samples:
            return new
        array = _chosen(ours, new.array, old.array)
        if not (goes_on.samples or new.samples or old.samples):
            return Sampled(array, new.origin)
        samples = [
            _chosen(
                np.asarray(goes_on.sample(number)),
                self.sampled(new, number),
                self.sampled(old, number),
            )
            for number in range(len(self.random) + 1)
        ]
        return Sampled(array, new.origin, samples)


def _chosen(mask: NumPyArray, new: ArrayLike, old: ArrayLike) -> ArrayLike:
    if not mask.ndim:
        return new if mask else old
    rank = len(typeof(new).shape)
    mask = mask.reshape(mask.shape + (1,) * (rank - mask.ndim))
    if isinstance(typeof(new).dtype, ExtendedDType):
        return where(mask, new, old)
    return np.where(mask, np.asarray(new), np.asarray(old))


def _row(value: Sampled, index: int) -> Sampled:
    """Return one index of the first axis of a value."""
    samples = [row(x, index) for x in value.samples]
    return Sampled(row(value.array, index), value.origin, samples)


def _size(x: ArrayLike) -> ArrayLike:
    """Return the absolute values of an inexact array, and any other array unchanged."""
    return np.abs(np.asarray(x)) if is_inexact(x) else x


def _is_one_of(x: ArrayLike, inputs: Sequence[Sampled], number: int) -> bool:
    """Return whether an output is an unchanged input, or an unrounded part of one."""
    host = np.asarray(x)
    return any(
        np.array_equal(host, np.asarray(v.sample(number)), equal_nan=True)
        for v in inputs
        if is_inexact(v.array)
    )
