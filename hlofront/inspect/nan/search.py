"""The search for a NaN: a program runs one operation at a time, and its values are inspected."""

from collections.abc import Iterable, Sequence

import numpy as np

from hlofront.base.typing import ArrayLike, NumPyArray
from hlofront.core.jaxpr import Equation
from hlofront.inspect.nan.report import NanOperand, NanOrigin
from hlofront.inspect.stepwise.operands import ELEMENTWISE
from hlofront.inspect.stepwise.report_parts import Mask, facts
from hlofront.inspect.stepwise.run import (
    Level,
    StepValue,
    StepwiseRun,
    operand_facts,
    operation_facts,
    results_of,
)
from hlofront.inspect.stepwise.trails import Start, Trail, one_per_start
from hlofront.runtime.checks.nan_search import NanSearch, nonfinite

# The maximum number of described operations; later ones are only counted.
_MAX_DESCRIBED = 100


class Value(StepValue):
    """An array of the running program, with its origin and the trails of its bad elements."""

    __slots__ = ("bad", "infinite")

    def __init__(
        self,
        array: ArrayLike,
        origin: "Equation | str",
        bad: tuple[Trail, ...] = (),
        infinite: tuple[Trail, ...] = (),
    ):
        super().__init__(array, origin)
        self.bad = bad
        # The trails of infinities, while NaNs are searched for: infinities may become NaNs.
        self.infinite = infinite


class TrailSearch(StepwiseRun[Value], NanSearch[Value, list[Value], "Level[Value]"]):
    """An interpreter that runs programs and records the origins of bad values."""

    def __init__(self, kinds: Sequence[str]):
        StepwiseRun.__init__(self)
        NanSearch.__init__(self, kinds)
        # The attributes of `Value` with the trails to follow. A search for NaNs follows infinities
        # too, as they may become NaNs.
        self.followed = ("bad", "infinite") if self.kinds == ("nan",) else ("bad",)
        self.starts: list[Start] = []
        self.number = 0
        self.described = 0
        # The ids of equations whose bad values are in the final carry of a long loop.
        self.carried: set[int] = set()
        # How many times each equation was a start, by the equation's id.
        self.times: dict[int, int] = {}

    # ---- masks of bad elements

    def mask(self, array: NumPyArray, which: str = "bad") -> Mask:
        """Return a boolean mask of the bad elements, or of infinite ones, depending on `which`."""
        return np.isinf(array) if which == "infinite" else self.bad_elements(array)

    def part(self, array: ArrayLike, whole: Value) -> Value:
        """Return a part of an array as a value, with the whole's trails if it has bad elements."""
        if not whole.bad and not whole.infinite:
            return Value(array, whole.origin)
        host = nonfinite(array)
        if host is None:
            return Value(array, whole.origin)
        value = Value(array, whole.origin)
        for which in self.followed:
            if self.mask(host, which).any():
                setattr(value, which, getattr(whole, which))
        return value

    def input_value(self, array: ArrayLike, name: str) -> Value:
        """Return an argument or constant as a value, with a new trail if it has bad elements."""
        host = nonfinite(array)
        if host is None:
            return Value(array, name)
        value = Value(array, name)
        trail = (Trail(Start(self._next(), argument=name), None, None),)
        for which in self.followed:
            if self.mask(host, which).any():
                setattr(value, which, trail)
        return value

    def literal_value(self, array: ArrayLike, name: str) -> Value:
        return Value(array, name)

    def _next(self) -> int:
        self.number += 1
        return self.number

    # ---- running

    def operation(
        self, level: Level[Value], equation: Equation, operands: list[Value]
    ) -> list[Value]:
        """Run one operation on its operands' arrays, and return its results as values."""
        results = results_of(equation, operands)
        return [self.judged(level, equation, operands, x) for x in results]

    def judged(
        self, level: Level[Value], equation: Equation, operands: list[Value], x: ArrayLike
    ) -> Value:
        """Return a result of an operation as a value, with the trails of its bad elements."""
        host = nonfinite(x)
        if host is None:
            return Value(x, equation)
        bad: tuple[Trail, ...] = ()
        infinite: tuple[Trail, ...] = ()
        if (mask := self.mask(host)).any():
            bad = self._trails(level, equation, operands, host, mask, "bad")
        if "infinite" in self.followed and (mask := np.isinf(host)).any():
            infinite = self._trails(level, equation, operands, host, mask, "infinite")
        return Value(x, equation, bad, infinite)

    def _trails(
        self,
        level: Level[Value],
        equation: Equation,
        operands: list[Value],
        host: NumPyArray,
        mask: Mask,
        which: str,
    ) -> tuple[Trail, ...]:
        """Return the trails of a result's bad elements: those of operands, or a new one."""
        name = equation.primitive.name
        new = mask
        trails: list[Trail] = []
        for position, operand in enumerate(operands):
            theirs: tuple[Trail, ...] = getattr(operand, which)
            if not theirs:
                continue
            if name in ELEMENTWISE:
                array = np.asarray(operand.array)
                shared = np.broadcast_to(self.mask(array, which), host.shape) & mask
                if name == "select_n":
                    shared = shared & (
                        np.asarray(operands[0].array).astype(np.int32) == position - 1
                    )
                if not shared.any():
                    continue
                new = new & ~shared
            trails += theirs
        if not trails or (name in ELEMENTWISE and new.any()):
            start = self.start(level, equation, operands, host, new, which)
            trails.append(Trail(start, equation, None))
        return self.together(trail.through(equation) for trail in trails)

    def together(self, trails: Iterable[Trail]) -> tuple[Trail, ...]:
        """Return one trail per start, the earliest start first."""
        return one_per_start(trails, lambda trail: trail.start.number)

    # ---- starts

    def start(
        self,
        level: Level[Value],
        equation: Equation,
        operands: list[Value],
        host: NumPyArray,
        mask: Mask,
        which: str = "bad",
    ) -> Start:
        """Record an operation that makes bad values from operands that have none."""
        key = id(equation)
        operation = None
        if which == "bad":
            self.times[key] = self.times.get(key, 0) + 1
        if self.described < _MAX_DESCRIBED or self.times.get(key, 0) == 1:
            self.described += 1
            elements = host[mask] if host.shape else host
            kind = "inf" if which == "infinite" else self.kind_of(elements)
            operation = self._described(level, equation, operands, host, mask, kind)
        start = Start(self._next(), equation, operation)
        if which == "bad":
            self.starts.append(start)
        return start

    def _described(
        self,
        level: Level[Value],
        equation: Equation,
        operands: list[Value],
        host: NumPyArray,
        mask: Mask,
        kind: str,
    ) -> NanOrigin:
        index = tuple(int(i) for i in np.unravel_index(int(mask.argmax()), host.shape))
        return NanOrigin(
            **operation_facts(level, equation, operands, index),
            kind=kind,
            value=str(host[index]),
            operands=tuple(
                NanOperand(**known, infinite_since=_infinite_since(operand, level.definition(atom)))
                for atom, operand, known in operand_facts(level, equation, operands, index)
            ),
            result=facts("", host, index, mask),
        )


def _infinite_since(operand: Value, definition: Equation | None) -> str:
    """Return the origin of an operand's infinities, or "" if the operation made them."""
    for trail in operand.infinite[:1]:
        start = trail.start
        if start.equation is None:
            return f"{start.argument}, where it is so already"
        if start.equation is not definition:
            return start.brief()
    return ""
