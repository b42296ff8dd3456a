"""The report of a search for lost precision: operations, operands and source lines, as text too."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hlofront.inspect.stepwise.operation_report import OperandReport, OperationReport
from hlofront.inspect.stepwise.report_parts import Values, written
from hlotools.html.report import text_html

# How an operation loses digits:
# - "cancellation": it subtracts, or adds up, terms that are much larger than the result;
# - "ill-conditioned": its result changes much more, relative to its size, than its operands do;
# - "rounding": its operands have their digits, but it does not compute or keep them all;
# - "overflow", "underflow": the result is outside of the range of the dtype;
# - "decision": an integer or boolean differs from the reference, and with it what follows.
Kind = Literal["cancellation", "ill-conditioned", "rounding", "overflow", "underflow", "decision"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OperandError(OperandReport):
    """An operand of an operation that loses digits."""

    error: float
    """The relative error of the operand; of integers and booleans the part that differs."""

    def facts(self) -> list[str]:
        return [*OperandReport.facts(self), f"error {written_error(self.error)}"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorOrigin(OperationReport):
    """An operation at which the relative error jumps."""

    kind: Kind
    error_before: float
    """The largest relative error of the operands."""
    error: float
    """The relative error of the result."""
    own_error: float
    """The error of the result if the operands had no error."""
    condition: float
    """The size of the added terms relative to the result; 1 for operations that are not sums."""
    reference: str
    """The worst element in the reference."""
    index: tuple[int, ...]
    """The index of the worst element."""
    differing: int
    """The number of integer or boolean elements that differ from the reference, at a decision."""

    def brief(self) -> str:
        at = f" at {written(self.source_line)}" if self.source_line else ""
        return f"{self.kind}: {self.expression} = {self.value}, not {self.reference}{at}"

    @property
    def explanation(self) -> str:
        """A clause about what happens to the error at the operation."""
        name, error = self.primitive, written_error(self.error)
        before = written_error(self.error_before)
        if self.kind == "cancellation":
            return (
                f"cancellation: {name} leaves 1 part in {_large(self.condition)} of its terms, "
                f"and the error grows from {before} to {error}"
            )
        if self.kind == "ill-conditioned":
            return (
                f"{name} is ill-conditioned here: the error of its operands, {before}, "
                f"becomes {error}"
            )
        if self.kind == "rounding":
            return f"rounding: {name} by itself has an error of {written_error(self.own_error)}"
        if self.kind == "decision":
            if not self.differing:
                return f"decision: {name} jumps between values, and the error becomes {error}"
            count, size = self.differing, self.result.size
            part = f" in {count:,} of {size:,} elements" if size > 1 else ""
            return f"decision: {name} is another one than in the reference{part}"
        return f"{self.kind}: the result of {name} is outside of the range of {self.result.dtype}"

    def statements(self) -> list[str]:
        where = f" at [{', '.join(map(str, self.index))}]" if self.index else ""
        return [
            self.explanation,
            f"{self.expression} = {self.value}, not {self.reference}{where}",
        ]


@dataclass(frozen=True, slots=True)
class ResultError:
    """A result of the function, with its error."""

    values: Values
    error: float
    """The relative error of the result; of integers and booleans the part that differs."""
    compiled_error: float | None
    """The error of the program compiled as a whole; None for programs with effects, which run once,
    and for results that depend on undetermined values.
    """
    tolerance: float
    """The error from which on digits count as lost; 0 for integers and booleans."""

    @property
    def is_lost(self) -> bool:
        """True if the error exceeds the tolerance, of the operations one by one or compiled."""
        return self.error > self.tolerance or (self.compiled_error or 0.0) > self.tolerance


@dataclass(frozen=True, slots=True)
class ErrorReport:
    """The result of `find_error`, which is true if a result of the function has lost its digits.

    `str()` of the report is its full text.
    """

    function: str
    """The name of the function and its source line, as in "loss at model.py:12"."""
    against: str
    """The name of the reference: "float64", or a device."""
    tolerance: float
    """The relative error from which on digits count as lost."""
    results: tuple[ResultError, ...]
    """All results, in order."""
    operation: ErrorOrigin | None
    """The operation with the largest error which reaches a result."""
    operations: tuple[ErrorOrigin, ...]
    """The operations whose errors reach a result, one per line and kind, the largest first."""
    hidden: tuple[ErrorOrigin, ...]
    """The operations whose errors reach no result, which does not depend on the lost digits."""
    undetermined: tuple[ErrorOrigin, ...]
    """The cancellations that leave no digits in the reference either."""
    own_dtypes: tuple[str, ...]
    """The operations that the reference computed in the dtypes of the program."""

    @property
    def lost(self) -> tuple[ResultError, ...]:
        """The results whose error exceeds the tolerance."""
        return tuple(result for result in self.results if result.is_lost)

    def __bool__(self) -> bool:
        return bool(self.lost)

    def __str__(self) -> str:
        lines: list[str] = []
        if not self.lost:
            most = max((result.error for result in self.results), default=0.0)
            lines.append(
                f"No result of {self.function} has lost its digits: the largest error against "
                f"{self.against} is {written_error(most)}, of {written_error(self.tolerance)} "
                "that are tolerated"
            )
        else:
            named = ", ".join(
                f"{lost.values.name} ({written_error(max(lost.error, lost.compiled_error or 0.0))})"
                for lost in self.lost[:3]
            )
            more = f" and {len(self.lost) - 3} more results" if self.lost[3:] else ""
            lines.append(f"Error against {self.against} in {named}{more} of {self.function}")
            lines += self._reasons()
        if self.own_dtypes and self.lost:
            lines.append(
                f"The reference computed in the program's own dtypes: {', '.join(self.own_dtypes)}"
            )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        title, _, text = str(self).partition("\n")
        return text_html(text, title)

    def _reasons(self) -> list[str]:
        lines: list[str] = []
        if self.operation is not None:
            lines.append("the operation where the most is lost:")
            lines += self.operation.lines()
            lines += [f"also {operation.brief()}" for operation in self.operations[1:4]]
            if len(self.operations) > 4:
                lines.append(f"and {len(self.operations) - 4} more operations")
        elif self.undetermined:
            lines.append("no single operation loses them, but these leave nothing to compare:")
            lines += [f"  {lost_result.brief()}" for lost_result in self.undetermined[:5]]
        elif all(lost_result.error <= lost_result.tolerance for lost_result in self.lost):
            lines.append(
                "No operation loses them when they are run one by one: compiled as a whole, the "
                "program computes in another way."
            )
        else:
            lines.append("No single operation loses them: the error grows from one to the next.")
        compiled = [lost_result.compiled_error for lost_result in self.lost]
        if all(
            error is not None and error <= each.tolerance
            for error, each in zip(compiled, self.lost, strict=True)
        ):
            most = max(error for error in compiled if error is not None)
            lines.append(
                f"Compiled as a whole, the program computes in another way, and the error is at "
                f"most {written_error(most)}."
            )
        return lines

    __repr__ = __str__


def written_error(error: float) -> str:
    """Return a relative error as short text, such as "6e-08" or "0"."""
    if error == 0 or np.isinf(error):
        return "0" if error == 0 else "infinite"
    return f"{error:.1e}" if error < 1e-2 or error >= 1e3 else f"{error:.2g}"


def _large(x: float) -> str:
    return f"{x:,.0f}" if x < 1e6 else f"{x:.1e}"


def largest_first(operations: Sequence[ErrorOrigin]) -> tuple[ErrorOrigin, ...]:
    """Return operations in the order of their errors, the largest first."""
    return tuple(sorted(operations, key=lambda each: -each.error))
