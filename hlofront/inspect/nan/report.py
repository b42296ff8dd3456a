"""The report of a search for a NaN: operations, operands and source lines, also as text."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hlofront.base import source


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of the user's source."""

    file: str
    line: int
    function: str
    """The name of the function that contains the line; "<module>" outside of functions."""
    text: str
    """The text of the line, stripped; "" where the source is not available."""
    expression: str
    """The part of the line that was being evaluated, on one line; "" where it is not known."""
    column: int | None = None
    """The column at which the expression begins, from 0; None where it is not known."""

    def __str__(self) -> str:
        inside = "" if self.function == "<module>" else f" in {self.function}"
        return f"{source.shown_path(self.file)}:{self.line}{inside}"


def source_line_of(traceback: object) -> SourceLine | None:
    """Return the user's innermost source line of a C++ traceback, or None."""
    frame = source.user_frame(traceback)
    if frame is None:
        return None
    text = source.line_text(frame)
    expression = source.expression_text(frame)
    return SourceLine(frame.file, frame.line, frame.function, text, expression, frame.column)


@dataclass(frozen=True, slots=True)
class Inside:
    """A loop, branch or call that surrounds an operation, with its source line."""

    operation: str
    """The name of the operation: "scan", "while", "cond", "jit", "custom_vjp_call", ..."""
    function: str
    """The name of the function whose program the operation runs; "" where it is not known."""
    source_line: SourceLine | None
    """The source line that calls the operation."""
    iteration: int | None = None
    """The number of the loop's step, from 0; of a scan, the index along the first axis."""
    branch: int | None = None
    """The number of the branch of a cond or switch, from 0."""

    def __str__(self) -> str:
        step = "" if self.iteration is None else f"iteration {self.iteration} of "
        step = step if self.branch is None else f"branch {self.branch} of "
        of = f" of {self.function}" if self.function else ""
        at = f" at {self.source_line}" if self.source_line else ""
        return f"{step}{self.operation}{of}{at}"


@dataclass(frozen=True, slots=True)
class Values:
    """A summary of an array: its type, its range, and how much of it is bad."""

    name: str
    """The name of an argument or result, as in "params['w']"; "" for other values."""
    dtype: str
    shape: tuple[int, ...]
    nans: int
    infinities: int
    minimum: np.generic | None
    """The least and the greatest of the finite elements; None where there is none, or no order."""
    maximum: np.generic | None
    index: tuple[int, ...] | None = None
    """The index of the first bad element, in the order of rows; None where no element is bad."""

    @property
    def size(self) -> int:
        size = 1
        for n in self.shape:
            size *= n
        return size

    @property
    def type(self) -> str:
        """The dtype and shape of the value, as in "float32[3,4]"."""
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"

    @property
    def summary(self) -> str:
        """The range of the finite elements and the counts of NaNs and infinities, as text."""
        parts: list[str] = []
        if self.minimum is not None:
            # NumPy's str() of a scalar is as short as its dtype allows; its format() is not.
            low, high = str(self.minimum), str(self.maximum)
            parts.append(low if low == high else f"{low} to {high}")
        for count, word in ((self.nans, "nan"), (self.infinities, "inf")):
            if count:
                parts.append(word if self.size == 1 else f"{count} {word}")
        return ", ".join(parts)

    def bad_text(self, word: str) -> str:
        """Return the count of bad elements and the index of the first one as text."""
        bad = self.nans if word == "nan" else self.infinities
        bad = bad or self.nans + self.infinities
        if not self.shape:
            return word
        at = "" if self.index is None else f", the first at [{', '.join(map(str, self.index))}]"
        return f"{word} in {bad:,} of {self.size:,} elements{at}"


@dataclass(frozen=True, slots=True)
class OperationStep:
    """The name of an operation and its source line."""

    primitive: str
    source_line: SourceLine | None

    def __str__(self) -> str:
        return (
            f"{self.primitive} at {written(self.source_line)}"
            if self.source_line
            else self.primitive
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
        lines: list[str] = []
        if self.source_line is not None:
            lines.append(f"  {self.source_line}")
            if self.source_line.text:
                lines.append(f"      {source.shortened(self.source_line.text, 92)}")
                text, part = (
                    source.shortened(self.source_line.text, 92),
                    self.source_line.expression,
                )
                at = text.find(part) if part else -1
                if at >= 0 and part != text:
                    lines.append("      " + " " * at + "^" * len(part))
        lines += [f"  called at {written(each)}" for each in self.callers]
        lines.append(f"  {self.expression} = {self.value}")
        if self.result.shape:
            lines.append(f"  {self.result.type}: {self.result.bad_text(self.kind)}")
        if self.parameters:
            shown = ", ".join(f"{name}={text}" for name, text in self.parameters.items())
            lines.append(f"  {self.primitive}[{shown}]")
        if self.name_stack:
            lines.append(f"  scope {'/'.join(self.name_stack)}")
        lines += [f"  in {each}" for each in reversed(self.inside)]
        if self.times > 1:
            lines.append(f"  and {self.times - 1:,} more times")
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
            lines += [f"  {step}" for step in _folded(self.way)]
        return lines

    def _nearby(self, text: str) -> str:
        """Return a text with the source line of this operation replaced by "on that line"."""
        return (
            text.replace(f" at {written(self.source_line)}", " on that line")
            if self.source_line
            else text
        )


def written(line: SourceLine | None) -> str:
    """Return a source line with its text, or "" for None."""
    if line is None:
        return ""
    return f"{line}:  {source.shortened(line.text)}" if line.text else str(line)


_MOST_STEPS = 12


def _folded(way: Sequence[OperationStep]) -> list[str]:
    """Return steps as lines of text, one per source line; omit the middle of a long list."""
    lines: list[tuple[str, list[str]]] = []
    for step in way:
        at = written(step.source_line)
        if lines and lines[-1][0] == at:
            if step.primitive not in lines[-1][1]:
                lines[-1][1].append(step.primitive)
        else:
            lines.append((at, [step.primitive]))
    texts = [f"{', '.join(names)} at {at}" if at else ", ".join(names) for at, names in lines]
    if len(texts) <= _MOST_STEPS:
        return texts
    half = _MOST_STEPS // 2
    return [*texts[:half], f"... {len(texts) - 2 * half} more lines ...", *texts[-half:]]


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
