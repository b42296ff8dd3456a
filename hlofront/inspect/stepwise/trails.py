"""The trails of bad values: where they start, and the operations that hand them on."""

from typing import Protocol

from hlofront.core.jaxpr import Equation
from hlofront.inspect.stepwise.report_parts import OperationStep, source_line_of


class Origin(Protocol):
    """The description of an operation that makes bad values."""

    def brief(self) -> str:
        """Return the operation, its value and its source line as one line of text."""
        ...


class Start:
    """The origin of bad values: an argument, a constant, or an operation."""

    __slots__ = ("argument", "equation", "number", "operation")

    def __init__(
        self,
        number: int,
        equation: Equation | None = None,
        operation: Origin | None = None,
        argument: str = "",
    ):
        self.number = number
        self.equation = equation
        self.operation = operation
        self.argument = argument

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
