"""The report of a search for a NaN: operations, operands and source lines, also as text."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hlofront.inspect.stepwise.report_parts import (
    Inside,
    OperationStep,
    SourceLine,
    Values,
    folded,
    source_excerpt,
    surroundings,
    written,
)


@dataclass(frozen=True, slots=True)
class OperandReport:
    """An operand of a bad operation: its values, its element in the result, and its source."""

    values: Values
    element: np.generic | None
    """The element from which the first bad one was computed; None where there were several."""
    source: str
    """The origin of the operand: "argument x", "the constant 0.0", or an operation and its line."""
    source_line: SourceLine | None
    """The source line of the operation that made the operand."""
    before: tuple[str, ...] = ()
    """A line of text for each operation that led to the operand, the nearest first."""
    infinite_since: str = ""
    """The origin of the operand's infinities, if it has some and they come from elsewhere."""


@dataclass(frozen=True, slots=True)
class NanOrigin:
    """An operation that makes a bad value from operands that have none."""

    primitive: str
    parameters: dict[str, str]
    """The parameters of the operation except for programs, as texts."""
    kind: str
    """The kind of bad value that the operation makes: "nan" or "inf"."""
    expression: str
    """The operation on the elements that made the first bad one, as in "log(-0.3)"."""
    value: str
    """The first bad element of the result: "nan", "-inf", "(nan+nanj)"."""
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
    """The number of times that the operation made a bad value, in all searched iterations."""

    @property
    def index(self) -> tuple[int, ...] | None:
        """The index of the first bad element of the result."""
        return self.result.index

    def brief(self) -> str:
        """Return the operation, its value and its source line as one line of text."""
        at = f" at {written(self.source_line)}" if self.source_line else ""
        return f"{self.expression} = {self.value}{at}"

    def lines(self) -> list[str]:
        """Return the lines of the report: source, operation, result, scopes and operands."""
        lines = source_excerpt(self.source_line)
        lines += [f"  called at {written(each)}" for each in self.callers]
        lines.append(f"  {self.expression} = {self.value}")
        if self.result.shape:
            lines.append(f"  {self.result.type}: {self.result.bad_text(self.kind)}")
        lines += surroundings(
            self.primitive, self.parameters, self.name_stack, self.inside, self.times
        )
        if self.operands:
            lines.append("operands:")
        for number, operand in enumerate(self.operands):
            summary = operand.values.summary
            head = f"  {number}  {operand.values.type}" + (f" ({summary})" if summary else "")
            lines.append(f"{head} from {self._nearby(operand.source)}")
            lines += [f"       {self._nearby(each)}" for each in operand.before]
            if operand.infinite_since:
                lines.append(f"       infinite since {self._nearby(operand.infinite_since)}")
        if self.way:
            lines.append("on its way to the result:")
            lines += [f"  {step}" for step in folded(self.way)]
        return lines

    def _nearby(self, text: str) -> str:
        """Return a text with the source line of this operation replaced by "on that line"."""
        return (
            text.replace(f" at {written(self.source_line)}", " on that line")
            if self.source_line
            else text
        )


@dataclass(frozen=True, slots=True)
class NanReport:
    """The result of `find_nan`, which is true if a result of the function is bad.

    `str()` of the report is its full text.
    """

    function: str
    """The name of the function and its source line, as in "loss at model.py:12"."""
    kinds: tuple[str, ...]
    """The kinds of values that were searched for: "nan", "inf", or both."""
    has_nan: bool
    """Whether a result is bad."""
    operation: NanOrigin | None
    """The first operation that makes a bad value which reaches a result."""
    operations: tuple[NanOrigin, ...]
    """All operations that make a bad value which reaches a result, in the order of the run."""
    hidden: tuple[NanOrigin, ...]
    """The operations whose bad values reach no result, as behind a `where`."""
    arguments: tuple[Values, ...]
    """The arguments that are bad before the call."""
    results: tuple[Values, ...]
    """The results that are bad."""
    only_compiled: bool = False
    """Whether results are bad when the program is compiled as a whole, and not step by step."""
    inputs: tuple[str, ...] = ()
    """The bad inputs that reach a result: "argument x", or a captured constant."""

    def __bool__(self) -> bool:
        return self.has_nan

    def __str__(self) -> str:
        words = " or ".join({"nan": "NaN", "inf": "infinity"}[kind] for kind in self.kinds)
        lines: list[str] = []
        if not self.has_nan:
            lines.append(f"No {words} in the results of {self.function}")
        elif self.operation is not None:
            lines.append(f"{words} in {_named(self.results)} of {self.function}")
            lines.append("the first operation that makes one which gets there:")
            lines += self.operation.lines()
            for each in self.operations[1:4]:
                lines.append(f"also from {each.brief()}")
            if len(self.operations) > 4:
                lines.append(f"and from {len(self.operations) - 4} more operations")
        else:
            lines.append(f"{words} in {_named(self.results)} of {self.function}")
        if self.only_compiled:
            lines.append(
                "No operation makes one when they are run one by one: compiled as a whole, the "
                "program computes in another way."
            )
        for each in self.arguments:
            gets = ", which gets there" if each.name in self.inputs else ""
            lines.append(f"{each.name} is bad already: {each.type}, {_bad(each)}{gets}")
        listed = [each.name for each in self.arguments]
        lines += [f"from {each}, bad already" for each in self.inputs if each not in listed]
        if self.hidden:
            count = len(self.hidden)
            lines.append(
                f"{count} operation{'s make' if count > 1 else ' makes'} some that no result gets, "
                "as behind a where (its derivative may):"
            )
            lines += [f"  {each.brief()}" for each in self.hidden[:5]]
            if count > 5:
                lines.append(f"  and {count - 5} more")
        return "\n".join(lines)

    __repr__ = __str__


def _bad(values: Values) -> str:
    return values.bad_text("nan" if values.nans else "inf")


def _named(results: Sequence[Values]) -> str:
    names = [each.name for each in results[:3]]
    return ", ".join(names) + (f" and {len(results) - 3} more results" if results[3:] else "")
