"""The search for lost precision: each operation runs in the program and in the reference."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from hlofront.base.dtypes import ExtendedDType
from hlofront.base.typing import ArrayLike, NumPyArray, Shape
from hlofront.core.jaxpr import Equation
from hlofront.core.programs.subprograms import Subprogram, inputs_among
from hlofront.inspect.error.measure import (
    element_errors,
    epsilon,
    is_inexact,
    relative_error,
    wide_host,
    worst_element,
)
from hlofront.inspect.error.origins import JUMP, Loss, loss_at
from hlofront.inspect.error.references import Reference, compiled_call
from hlofront.inspect.error.report import ErrorOrigin, OperandError
from hlofront.inspect.stepwise.operands import ELEMENTWISE, typed
from hlofront.inspect.stepwise.report_parts import facts
from hlofront.inspect.stepwise.run import (
    Level,
    StepValue,
    StepwiseRun,
    operand_facts,
    operation_facts,
    results_of,
)
from hlofront.inspect.stepwise.trails import Start, Trail, one_per_start
from hlofront.random.keys import key_data
from hlofront.runtime.checks.program_walk import selected


class Pair(StepValue):
    """An array of the running program, with the reference's and its error."""

    __slots__ = ("error", "is_undetermined", "reference", "trails")

    def __init__(
        self,
        array: ArrayLike,
        origin: "Equation | str",
        reference: ArrayLike,
        error: float = 0.0,
        trails: tuple[Trail, ...] = (),
        is_undetermined: bool = False,
    ):
        super().__init__(array, origin)
        # The reference's array; the program's own where the two do not differ.
        self.reference = reference
        # The relative error; for integers and booleans, the fraction of elements that differ.
        self.error = error
        # The trails of an error that exceeds the tolerance.
        self.trails = trails
        # Whether it depends on a value that has no correct digits even in the reference.
        self.is_undetermined = is_undetermined


class ErrorSearch(StepwiseRun[Pair]):
    """An interpreter that runs each operation twice, and records where the error jumps.

    Args:
      reference: the other way of computing the operations.
      tolerance: the relative error above which digits count as lost.
    """

    def __init__(self, reference: Reference, tolerance: float):
        super().__init__()
        self.reference = reference
        self.tolerance = tolerance
        self.starts: list[Start] = []
        self.undetermined: list[ErrorOrigin] = []
        self.own_dtypes: set[str] = set()
        # The number of times that the error jumped at each equation, by the equation's id.
        self.times: dict[int, int] = {}
        self.number = 0

    # ---- values

    def input_value(self, array: ArrayLike, name: str) -> Pair:
        return Pair(array, name, self.reference.lift(array) if is_inexact(array) else array)

    literal_value = input_value

    def exact(self, value: Pair) -> ArrayLike:
        """Return a value as an operand of the reference."""
        same = value.reference is value.array
        return self.reference.lift(value.array) if same else value.reference

    def pair(
        self,
        array: ArrayLike,
        exact: ArrayLike,
        origin: "Equation | str",
        sources: Sequence[Pair] = (),
    ) -> Pair:
        """Return an array of the program and the reference's counterpart as a pair.

        Args:
          array: the program's array.
          exact: the reference's.
          origin: the equation that makes it, or a description.
          sources: the values that it is computed from; if it has lost digits, it has their trails.
        """
        undetermined = any(v.is_undetermined for v in sources)
        error = _error(array, exact)
        if not error and not is_inexact(array):
            return Pair(array, origin, array, is_undetermined=undetermined)
        pair = Pair(array, origin, exact, error, (), undetermined)
        if self.is_lost(array, error):
            pair.trails = self.handed_on((t for v in sources for t in v.trails), origin)
        return pair

    def is_lost(self, array: ArrayLike, error: float) -> bool:
        """Return whether an array with this error has lost digits."""
        return error > (self.tolerance if is_inexact(array) else 0.0)

    def together(self, trails: Iterable[Trail]) -> tuple[Trail, ...]:
        """Return one trail per start; those of the largest errors if there are too many."""
        return one_per_start(trails, _by_error)

    # ---- operations

    def operation(self, level: Level[Pair], equation: Equation, operands: list[Pair]) -> list[Pair]:
        results = results_of(equation, operands)
        inexact = any(map(is_inexact, results))
        if not inexact and all(v.reference is v.array for v in operands):
            return [self.pair(x, x, equation, operands) for x in results]
        if equation.effects or self.reference.keeps_dtypes(equation):
            if inexact:
                self.own_dtypes.add(equation.primitive.name)
            if equation.effects or not any(v.error for v in operands):
                # It runs once: it has effects, is random, or is the same in the reference.
                return [self.pair(x, self.reference.lift(x), equation, operands) for x in results]
        exacts = self.reference.bind(equation, [self.exact(v) for v in operands])
        return [
            self._judged(level, equation, operands, position, x, exact)
            for position, (x, exact) in enumerate(zip(results, exacts, strict=True))
        ]

    def _judged(
        self,
        level: Level[Pair],
        equation: Equation,
        operands: list[Pair],
        position: int,
        x: ArrayLike,
        exact: ArrayLike,
    ) -> Pair:
        """Return a result of an operation as a pair, with the trails of its error if it is lost."""
        value = self.pair(x, exact, equation, operands)
        if not self.is_lost(x, value.error):
            return value
        inherited = [trail for v in operands for trail in v.trails]
        if not is_inexact(x):
            if not inherited:
                inherited = self._decision(level, equation, operands, x, exact)
            value.trails = self.handed_on(inherited, equation)
            return value
        floor = min((epsilon(typed(v.array)[0]) for v in operands if is_inexact(v.array)),
                    default=epsilon(typed(x)[0]))  # fmt: skip
        highest = max((v.error for v in operands if is_inexact(v.array)), default=0.0)
        if value.error > JUMP * max(highest, floor):
            decisions = [t for v in operands if not is_inexact(v.array) for t in v.trails]
            if decisions:
                for trail in decisions:
                    note_consequence(trail.start, value.error)
            else:
                start = self._start(level, equation, operands, position, value)
                if start is None:
                    # The reference is not more precise here: it continues with the program's
                    # values.
                    return Pair(x, equation, self.reference.lift(x), is_undetermined=True)
                inherited.append(Trail(start, equation, None))
        value.trails = self.handed_on(inherited, equation)
        return value

    def handed_on(self, trails: Iterable[Trail], origin: "Equation | str") -> tuple[Trail, ...]:
        """Return trails of operands as trails of a result."""
        if isinstance(origin, str):
            return self.together(trails)
        return self.together(trail.through(origin) for trail in trails)

    # ---- starts

    def _decision(
        self,
        level: Level[Pair],
        equation: Equation,
        operands: list[Pair],
        x: ArrayLike,
        exact: ArrayLike,
    ) -> list[Trail]:
        """Record that integers or booleans differ though the operands have their digits."""
        differing = _differs(x, exact)
        index = tuple(int(i) for i in np.unravel_index(int(differing.argmax()), differing.shape))
        loss = Loss("decision", 0.0, 1.0)
        value = Pair(x, equation, exact, float(differing.mean()))
        return [
            Trail(
                self.started(
                    equation,
                    self._described(level, equation, operands, value, index, loss,
                                    int(differing.sum())),
                ),
                equation,
                None,
            )
        ]  # fmt: skip

    def _start(
        self,
        level: Level[Pair],
        equation: Equation,
        operands: list[Pair],
        position: int,
        value: Pair,
    ) -> Start | None:
        """Record an operation at which the error jumps; return None if the reference has no digits.

        An element may have been wrong before, hidden among right ones: the recorded operation is
        then the earlier one that made that element wrong.
        """
        index = worst_element(value.array, value.reference)
        origin = self._where_it_began(level, equation, operands, value, index)
        equation, operands, value, index = origin
        loss = loss_at(
            self.reference,
            equation,
            [v.array for v in operands],
            [self.exact(v) for v in operands],
            position if value.origin is equation else 0,
            value.array,
            value.reference,
            index,
        )
        described = self._described(level, equation, operands, value, index, loss)
        if loss.leaves_nothing:
            self.undetermined.append(described)
            return None
        return self.started(equation, described)

    def started(self, equation: Equation, described: ErrorOrigin) -> Start:
        """Record an operation at which the error jumps."""
        self.times[id(equation)] = self.times.get(id(equation), 0) + 1
        self.number += 1
        start = Start(self.number, equation, described)
        self.starts.append(start)
        return start

    def _where_it_began(
        self,
        level: Level[Pair],
        equation: Equation,
        operands: list[Pair],
        value: Pair,
        index: Shape,
    ) -> tuple[Equation, list[Pair], Pair, Shape]:
        """Return the operation at which one element became wrong, and that element."""
        here = equation, operands, value, index
        while equation.primitive.name in ELEMENTWISE:
            error = element_errors(value.array, value.reference)[index]
            errors = [self._error_at(v, index) for v in operands]
            highest = max(range(len(errors)), key=errors.__getitem__)
            if error > JUMP * max(errors[highest], epsilon(typed(value.array)[0])):
                return equation, operands, value, index
            definition = level.definition(equation.invars[highest])
            if definition is None or len(definition.outvars) > 1:
                break
            atoms = definition.invars
            if not all(hasattr(a, "val") or a in level.values for a in atoms):
                break
            value = operands[highest]
            rank = len(typed(value.array)[1])
            index = tuple(
                0 if n == 1 else i
                for i, n in zip(index[len(index) - rank :], typed(value.array)[1], strict=True)
            )
            equation, operands = definition, [self.read(level, atom) for atom in atoms]
        if equation.primitive.name not in ELEMENTWISE and equation is not here[0]:
            error = element_errors(value.array, value.reference)[index]
            if error > JUMP * max((v.error for v in operands), default=0.0):
                return equation, operands, value, index
        return here

    def _error_at(self, value: Pair, index: Shape) -> float:
        """Return the relative error of a value's element from which a result's is computed."""
        if value.reference is value.array or not is_inexact(value.array):
            return 0.0
        errors = element_errors(value.array, value.reference)
        trailing = index[len(index) - errors.ndim :]
        at = tuple(0 if n == 1 else i for i, n in zip(trailing, errors.shape, strict=True))
        return float(errors[at])

    def _described(
        self,
        level: Level[Pair],
        equation: Equation,
        operands: list[Pair],
        value: Pair,
        index: Shape,
        loss: Loss,
        differing: int = 0,
    ) -> ErrorOrigin:
        return ErrorOrigin(
            **operation_facts(level, equation, operands, index),
            kind=loss.kind,
            error_before=max((v.error for v in operands if is_inexact(v.array)), default=0.0),
            error=value.error,
            own_error=loss.own_error,
            condition=loss.condition,
            value=str(np.asarray(value.array)[index]),
            reference=_digits(value, index),
            index=index,
            differing=differing,
            operands=tuple(
                OperandError(**known, error=operand.error)
                for _, operand, known in operand_facts(level, equation, operands, index)
            ),
            result=facts("", value.array),
        )

    # ---- branches

    def in_branches(
        self,
        equation: Equation,
        branches: Sequence[Subprogram],
        operands: Sequence[Pair],
        context: Level[Pair],
    ) -> list[Pair] | None:
        ours = selected(operands[0].array, len(branches))
        other = selected(operands[0].reference, len(branches))
        if ours == other:
            return super().in_branches(equation, branches, operands, context)
        # Each side takes its own branch, whose operations have no counterparts.
        mine, theirs = branches[ours], branches[other]
        results = compiled_call(mine.closed, [v.array for v in inputs_among(mine, operands)])
        exacts = self.reference.call(
            theirs.closed, [self.exact(v) for v in inputs_among(theirs, operands)]
        )
        pairs = [
            self.pair(x, exact, equation, operands)
            for x, exact in zip(results, exacts, strict=True)
        ]
        for trail in operands[0].trails:
            note_consequence(trail.start, max((v.error for v in pairs), default=0.0))
        return pairs


def _by_error(trail: Trail) -> tuple[float, int]:
    operation = trail.start.operation
    return -(operation.error if isinstance(operation, ErrorOrigin) else 0.0), trail.start.number


def note_consequence(start: Start, error: float) -> None:
    """Record the error that follows from a decision."""
    operation = start.operation
    if isinstance(operation, ErrorOrigin) and operation.kind == "decision":
        start.operation = replace(operation, error=max(operation.error, error))


def _differs(x: ArrayLike, exact: ArrayLike) -> NumPyArray:
    """Return which elements of an array of integers, booleans or keys differ."""
    if isinstance(typed(x)[0], ExtendedDType):
        stored = [np.asarray(key_data(keys)) for keys in (x, exact)]
        return np.asarray(stored[0] != stored[1]).any(
            tuple(range(len(typed(x)[1]), stored[0].ndim))
        )
    return np.asarray(np.asarray(x) != np.asarray(exact))


def _error(x: ArrayLike, exact: ArrayLike) -> float:
    if x is exact:
        return 0.0
    if is_inexact(x):
        return relative_error(x, exact)
    differing = _differs(x, exact)
    return float(differing.mean()) if differing.size else 0.0


def _digits(value: Pair, index: Shape) -> str:
    """Return an element of the reference as text, with enough digits to show the difference."""
    if not is_inexact(value.array):
        return str(np.asarray(value.reference)[index])
    return f"{wide_host(value.reference)[index]:.10g}"
