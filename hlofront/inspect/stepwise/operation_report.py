"""The report of one operation at which values go bad: its source, operands and result, as text."""

from dataclasses import dataclass

import numpy as np

from hlofront.inspect.stepwise.report_parts import (
    Inside,
    OperationStep,
    SourceLine,
    Values,
    folded,
    source_excerpt,
    written,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperandReport:
    """An operand of an operation: its values, its element in the result, and its source."""

    values: Values
    element: np.generic | None
    """The element from which the first bad one was computed; None where there were several."""
    source: str
    """The origin of the operand: "argument x", "the constant 0.0", or an operation and its line."""
    source_line: SourceLine | None
    """The source line of the operation that made the operand."""
    before: tuple[str, ...] = ()
    """A line of text for each operation that led to the operand, the nearest first."""

    def facts(self) -> list[str]:
        """Return the report's text about the operand's values."""
        return [self.values.summary] if self.values.summary else []

    def lines(self, number: int) -> list[str]:
        """Return the lines of the report on this operand, which is operand `number`."""
        facts = ", ".join(self.facts())
        head = f"  {number}  {self.values.type}" + (f" ({facts})" if facts else "")
        return [f"{head} from {self.source}", *(f"       {line}" for line in self.before)]


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationReport:
    """An operation whose result is bad though its operands are not."""

    primitive: str
    parameters: dict[str, str]
    """The parameters of the operation except for programs, as texts."""
    kind: str
    """The kind of what is bad: see the subclasses."""
    expression: str
    """The operation on the elements that made the bad one, as in "log(-0.3)"."""
    value: str
    """The bad element of the result."""
    source_line: SourceLine | None
    """The user's source line of the operation."""
    callers: tuple[SourceLine, ...]
    """The lines that called the source line, inside the traced function, innermost first."""
    name_stack: tuple[str, ...]
    """The named scopes around the operation, outermost first."""
    inside: tuple[Inside, ...]
    """The loops, branches and calls that surround the operation, outermost first."""
    operands: tuple[OperandReport, ...]
    result: Values
    way: tuple[OperationStep, ...] = ()
    """The operations that passed the bad value on to a result, first to last."""
    times: int = 1
    """The number of times that the operation was bad, in all searched iterations."""

    def statements(self) -> list[str]:
        """Return the sentences about what the operation computed, and what is bad about it."""
        raise TypeError(f"{type(self).__name__} does not say what is bad")

    def brief(self) -> str:
        """Return the operation, its value and its source line as one line of text."""
        raise TypeError(f"{type(self).__name__} has no short text")

    def operand_lines(self) -> list[str]:
        """Return the lines of the report about the operands."""
        return [line for number, each in enumerate(self.operands) for line in each.lines(number)]

    def lines(self) -> list[str]:
        """Return the lines of the report: source, operation, result, scopes and operands."""
        lines = source_excerpt(self.source_line)
        lines += [f"  called at {written(caller)}" for caller in self.callers]
        lines += [f"  {statement}" for statement in self.statements()]
        if self.parameters:
            shown = ", ".join(f"{name}={text}" for name, text in self.parameters.items())
            lines.append(f"  {self.primitive}[{shown}]")
        if self.name_stack:
            lines.append(f"  scope {'/'.join(self.name_stack)}")
        lines += [f"  in {enclosing}" for enclosing in reversed(self.inside)]
        if self.times > 1:
            lines.append(f"  and {self.times - 1:,} more times")
        if self.operands:
            lines += ["operands:", *self.operand_lines()]
        if self.way:
            lines += ["on its way to the result:", *(f"  {step}" for step in folded(self.way))]
        return lines
