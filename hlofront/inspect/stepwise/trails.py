"""The trails of bad values: where they start, and the operations that pass them on."""

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

from hlofront.core.jaxpr import Equation
from hlofront.inspect.stepwise.operation_report import OperationReport
from hlofront.inspect.stepwise.report_parts import OperationStep, source_line_of

# The maximum number of trails of one array.
_MAX_TRAILS = 8


@dataclasses.dataclass(slots=True, eq=False)
class Start:
    """The origin of bad values: an argument, a constant, or an operation."""

    number: int
    equation: Equation | None = None
    operation: OperationReport | None = None
    argument: str = ""

    def brief(self) -> str:
        """Return the origin as one line of text."""
        if self.operation is not None:
            return self.operation.brief()
        if self.equation is None:
            return f"{self.argument}, which is so already"
        return str(
            OperationStep(self.equation.primitive.name, source_line_of(self.equation.traceback))
        )


class Trail:
    """The path of bad values into an array: from a start, through operations in order."""

    __slots__ = ("equation", "previous", "start")

    def __init__(self, start: Start, equation: Equation | None, previous: "Trail | None"):
        self.start = start
        self.equation = equation
        self.previous = previous

    def through(self, equation: Equation) -> "Trail":
        """Return the trail into a result of an operation on an array with this trail."""
        return self if self.equation is equation else Trail(self.start, equation, self)

    def steps(self) -> tuple[OperationStep, ...]:
        """Return the operations that passed the bad values on, first to last."""
        equations: list[Equation] = []
        trail: Trail | None = self
        while trail is not None and trail.previous is not None:
            if trail.equation is not None and (
                not equations or equations[-1] is not trail.equation
            ):
                equations.append(trail.equation)
            trail = trail.previous
        return tuple(
            OperationStep(e.primitive.name, source_line_of(e.traceback))
            for e in reversed(equations)
        )


def one_per_start(trails: Iterable[Trail], order: Callable[[Trail], Any]) -> tuple[Trail, ...]:
    """Return one trail per start, sorted by `order`, and at most a maximum number of them."""
    by_start: dict[Start, Trail] = {}
    for trail in trails:
        by_start.setdefault(trail.start, trail)
    if len(by_start) <= 1:
        return tuple(by_start.values())
    return tuple(sorted(by_start.values(), key=order)[:_MAX_TRAILS])
