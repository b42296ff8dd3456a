"""The report of a search for a NaN: operations, operands and source lines, also as text."""

from collections.abc import Sequence
from dataclasses import dataclass

from hlofront.inspect.stepwise.operation_report import OperandReport, OperationReport
from hlofront.inspect.stepwise.report_parts import Values, written
from hlotools.html.report import text_html


@dataclass(frozen=True, slots=True, kw_only=True)
class NanOperand(OperandReport):
    """An operand of an operation that makes a bad value."""

    infinite_since: str = ""
    """The origin of the operand's infinities, if it has some and they come from elsewhere."""

    def lines(self, number: int) -> list[str]:
        lines = OperandReport.lines(self, number)
        if self.infinite_since:
            lines.append(f"       infinite since {self.infinite_since}")
        return lines


@dataclass(frozen=True, slots=True, kw_only=True)
class NanOrigin(OperationReport):
    """An operation that makes a bad value, a "nan" or an "inf", from operands without any."""

    @property
    def index(self) -> tuple[int, ...] | None:
        """The index of the first bad element of the result."""
        return self.result.index

    def brief(self) -> str:
        at = f" at {written(self.source_line)}" if self.source_line else ""
        return f"{self.expression} = {self.value}{at}"

    def statements(self) -> list[str]:
        said = [f"{self.expression} = {self.value}"]
        if self.result.shape:
            said.append(f"{self.result.type}: {self.result.bad_text(self.kind)}")
        return said

    def operand_lines(self) -> list[str]:
        lines = OperationReport.operand_lines(self)
        if self.source_line is None:
            return lines
        return [line.replace(f" at {written(self.source_line)}", " on that line") for line in lines]


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
            for operation in self.operations[1:4]:
                lines.append(f"also from {operation.brief()}")
            if len(self.operations) > 4:
                lines.append(f"and from {len(self.operations) - 4} more operations")
        else:
            lines.append(f"{words} in {_named(self.results)} of {self.function}")
        if self.only_compiled:
            lines.append(
                "No operation makes one when they are run one by one: compiled as a whole, the "
                "program computes in another way."
            )
        for argument in self.arguments:
            gets = ", which gets there" if argument.name in self.inputs else ""
            lines.append(f"{argument.name} is bad already: {argument.type}, {_bad(argument)}{gets}")
        listed = [argument.name for argument in self.arguments]
        lines += [
            f"from {input_name}, bad already"
            for input_name in self.inputs
            if input_name not in listed
        ]
        if self.hidden:
            count = len(self.hidden)
            lines.append(
                f"{count} operation{'s make' if count > 1 else ' makes'} some that no result gets, "
                "as behind a where (its derivative may):"
            )
            lines += [f"  {operation.brief()}" for operation in self.hidden[:5]]
            if count > 5:
                lines.append(f"  and {count - 5} more")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        title, _, text = str(self).partition("\n")
        return text_html(text, title)


def _bad(values: Values) -> str:
    return values.bad_text("nan" if values.nans else "inf")


def _named(results: Sequence[Values]) -> str:
    names = [result.name for result in results[:3]]
    return ", ".join(names) + (f" and {len(results) - 3} more results" if results[3:] else "")
