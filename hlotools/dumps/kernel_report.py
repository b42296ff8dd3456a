"""Reports on the kernels of a compiled program: by kernel and by source line."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from hlotools.cost.costs import line_text, table_lines, time_text
from hlotools.cost.memory_use import size_text
from hlotools.cost.rates import DeviceRates
from hlotools.html.report import report_html
from hlotools.ir.hlo import HloModule, Instruction, nearest_source
from hlotools.terminal_text import is_visible


class _Kernel(Protocol):
    """What a report reads of a kernel of any device."""

    @property
    def operations(self) -> tuple[str, ...]: ...
    @property
    def calls(self) -> int: ...
    @property
    def counts(self) -> Mapping[str, int]: ...
    @property
    def bytes(self) -> int: ...
    @property
    def seconds(self) -> float | None: ...
    @property
    def file(self) -> str | None: ...
    @property
    def line(self) -> int | None: ...
    def as_dict(self) -> dict[str, Any]: ...


KernelRow = TypeVar("KernelRow", bound=_Kernel)


class KernelLineTotal(NamedTuple):
    """The kernels of a source line in total: a fusion counts at its own line, that of its result.

    Attributes:
      file: the file, None for kernels without a known line.
      line: the number of the line.
      kernels: the number of kernels.
      calls: their calls.
      counts: their instructions: "bundles" and "cycles" of TPUs, "instructions" of GPUs.
      bytes: the bytes that all calls move to and from memory.
      seconds: the bound of the time of all calls, None if it is not known.
    """

    file: str | None
    line: int | None
    kernels: int
    calls: int
    counts: Mapping[str, int]
    bytes: int
    seconds: float | None


class KernelReport(ABC, Generic[KernelRow]):
    """A report on the kernels of a compiled program, which those on TPUs and GPUs extend.

    Args:
      program: the program.
      rates: the rates of the device, None if they are not known.
      kernels: the kernels, those that take most of the time first.
    """

    __slots__ = ("kernels", "program", "target")

    def __init__(self, program: HloModule, rates: DeviceRates | None, kernels: Sequence[KernelRow]):
        self.program = program
        self.target = rates
        self.kernels = list(kernels)

    @property
    def seconds(self) -> float | None:
        """The sum of the kernels' bounds, None if the device's rates are not known."""
        known = [row.seconds for row in self.kernels if row.seconds is not None]
        return sum(known) if known else None

    @property
    def lines(self) -> list[KernelLineTotal]:
        """The totals of the kernels by source line, those that take most of the time first."""
        return _line_totals(self.kernels)

    def as_dict(self) -> dict[str, Any]:
        """Return the kernels as a dictionary for JSON, keyed by field names; None is unknown."""
        return {
            "program": self.program.name,
            "target": self.target.name if self.target else None,
            "seconds": self.seconds,
            "kernels": [row.as_dict() for row in self.kernels],
            "lines": [total._asdict() for total in self.lines],
        }

    def json(self) -> str:
        """Return the kernels as JSON, with the keys of `as_dict()`."""
        return json.dumps(self.as_dict(), indent=1)

    @is_visible
    def text(self, most: int | None = None) -> str:
        """Return a table of the kernels, those that take most of the time first.

        Args:
          most: the maximum number of rows, None for all.
        """
        head, rows = self.table(most)
        return "\n".join([self._title(), *table_lines(head, rows), *self.notes(most)])

    @is_visible
    def line_text(self) -> str:
        """Return a table of the source lines, those whose kernels take most of the time first."""
        head, rows = _line_table(self.lines)
        return "\n".join([self._title(), *table_lines(head, rows), *self.notes()])

    @abstractmethod
    def table(self, most: int | None = None) -> tuple[list[str], list[list[str]]]:
        """Return the heads of columns, and rows, each with its kernel and line at the end."""

    @abstractmethod
    def notes(self, most: int | None = None) -> list[str]:
        """Return the lines below a table of at most `most` rows: totals, and what is missing."""

    def fused_lines(self, row: KernelRow) -> dict[tuple[str, int], list[str]]:
        """Return the source lines of the operations fused into a kernel, and their opcodes."""
        for instruction in self.program.instructions():
            if instruction.name in row.operations[:1]:
                return _fused_lines(instruction)
        return {}

    def _title(self) -> str:
        return self.program.name + (f" on {self.target.title}" if self.target else "")

    def __repr__(self) -> str:
        return self.text(most=20)

    def _repr_html_(self) -> str:
        head, rows = self.table(20)
        return report_html(self._title(), head, rows, "\n".join(self.notes(20)))


def _line_totals(kernels: Sequence[_Kernel]) -> list[KernelLineTotal]:
    by_line: dict[tuple[str | None, int | None], list[_Kernel]] = {}
    for kernel in kernels:
        by_line.setdefault((kernel.file, kernel.line), []).append(kernel)
    totals: list[KernelLineTotal] = []
    for (file, line), listed in by_line.items():
        known = [each.seconds for each in listed if each.seconds is not None]
        totals.append(
            KernelLineTotal(
                file,
                line,
                len(listed),
                sum(each.calls for each in listed),
                {name: sum(each.counts[name] for each in listed) for name in listed[0].counts},
                sum(each.bytes for each in listed),
                sum(known) if known else None,
            )
        )
    return sorted(totals, key=lambda each: (each.seconds or 0, *each.counts.values()), reverse=True)


def _line_table(totals: Sequence[KernelLineTotal]) -> tuple[list[str], list[list[str]]]:
    whole = sum(each.seconds or 0 for each in totals)
    counts = list(totals[0].counts) if totals else []
    head = [*(["part", "bound"] if whole else []), "kernels", "calls", *counts, "HBM"]
    rows = [
        [
            *([f"{(each.seconds or 0) / whole:.1%}", time_text(each.seconds)] if whole else []),
            f"{each.kernels:,}",
            f"{each.calls:,}",
            *(f"{each.counts[name]:,}" for name in counts),
            size_text(each.bytes),
            line_text(each.file, each.line),
        ]
        for each in totals
    ]
    return head, rows


def _fused_lines(operation: Instruction) -> dict[tuple[str, int], list[str]]:
    fused = operation.fused.instructions if operation.fused else [operation]
    lines: dict[tuple[str, int], list[str]] = {}
    for each in fused:
        source = nearest_source(each)
        if source is not None and each.opcode not in ("parameter", "constant", "bitcast"):
            opcodes = lines.setdefault((source.file, source.line), [])
            if each.opcode not in opcodes:
                opcodes.append(each.opcode)
    return lines
