"""The parts of reports about operations: source lines, surrounding programs, and summaries."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hlofront.base import source
from hlofront.base.dtypes import ExtendedDType, issubdtype
from hlofront.base.typing import ArrayLike, NumPyArray, Shape
from hlofront.core.jaxpr import Equation
from hlofront.core.programs.subprograms import subprograms_of
from hlofront.inspect.stepwise.operands import typed
from hlofront.transforms.stage import stage

# A boolean per element, True where it is bad; NumPy returns a scalar for an array of rank 0.
Mask = NumPyArray | np.bool_


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
        return f"{source.shown_line(self.file, self.line)}{inside}"


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


def written(line: SourceLine | None) -> str:
    """Return a source line with its text, or "" for None."""
    if line is None:
        return ""
    return f"{line}:  {source.shortened(line.text)}" if line.text else str(line)


_MAX_STEPS = 12


def source_excerpt(line: SourceLine | None) -> list[str]:
    """Return the lines of a report that show a source line, its expression underlined."""
    if line is None:
        return []
    lines = [f"  {line}"]
    if line.text:
        text = source.shortened(line.text, 92)
        lines.append(f"      {text}")
        at = text.find(line.expression) if line.expression else -1
        if at >= 0 and line.expression != text:
            lines.append("      " + " " * at + "^" * len(line.expression))
    return lines


def folded(way: Sequence[OperationStep]) -> list[str]:
    """Return one line of text for each source line of the steps, omitting the middle of many."""
    lines: list[tuple[str, list[str]]] = []
    for step in way:
        at = written(step.source_line)
        if lines and lines[-1][0] == at:
            if step.primitive not in lines[-1][1]:
                lines[-1][1].append(step.primitive)
        else:
            lines.append((at, [step.primitive]))
    texts = [f"{', '.join(names)} at {at}" if at else ", ".join(names) for at, names in lines]
    if len(texts) <= _MAX_STEPS:
        return texts
    half = _MAX_STEPS // 2
    return [*texts[:half], f"... {len(texts) - 2 * half} more lines ...", *texts[-half:]]


def parameters_of(equation: Equation) -> dict[str, str]:
    """Return an equation's parameters as text, without subprograms, callables and None."""
    texts: dict[str, str] = {}
    programs = {part.parameter for part in subprograms_of(equation)}
    for name, value in equation.params.items():
        if value is None or callable(value) or name in programs:
            continue
        if isinstance(value, tuple | list) and any(map(callable, value)):
            continue
        texts[name] = source.shortened(str(value))
    return texts


def callers(traceback: "source.Traceback | None") -> tuple[SourceLine, ...]:
    """Return the user's source lines inside the traced function, innermost first."""
    if traceback is None:
        return ()
    start = stage.__code__
    lines: list[SourceLine] = []
    for code, instruction in zip(*traceback.raw_frames(), strict=True):
        if code.co_name == start.co_name and code.co_filename == start.co_filename:
            break
        if source.is_user_file(code.co_filename):
            frame = source.Frame(code, instruction)
            lines.append(
                SourceLine(
                    frame.file,
                    frame.line,
                    frame.function,
                    source.line_text(frame),
                    source.expression_text(frame),
                    frame.column,
                )
            )
    if lines:
        return tuple(lines)
    # The frame is in a program that hlofront's own code traced: the user's line is further out.
    outer = source_line_of(traceback)
    return (outer,) if outer else ()


def facts(
    name: str,
    array: ArrayLike,
    index: Shape | None = None,
    mask: Mask | None = None,
) -> Values:
    """Return a summary of an array: its dtype, shape, range and bad elements.

    Args:
      index: the index of the first bad element; by default the first in `mask`, or not finite.
    """
    dtype, shape = typed(array)
    if isinstance(dtype, ExtendedDType):
        return Values(name, str(dtype), shape, 0, 0, None, None)
    host = np.asarray(array)
    nans = infinities = 0
    ordered = host
    if issubdtype(host.dtype, np.inexact):
        finite = np.isfinite(host)
        if not finite.all():
            nans, infinities = int(np.isnan(host).sum()), int(np.isinf(host).sum())
            ordered = host[finite]
            if index is None:
                selected = ~finite if mask is None else mask
                index = tuple(int(i) for i in np.unravel_index(int(selected.argmax()), host.shape))
    least = greatest = None
    if ordered.size and not issubdtype(host.dtype, np.complexfloating):
        least, greatest = ordered.min(), ordered.max()
    return Values(name, str(host.dtype), shape, nans, infinities, least, greatest, index)
