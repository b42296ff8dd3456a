"""The costs of a compiled program: operations, bytes and time by instruction and source line."""

import itertools
import json
import linecache
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from hlotools.cost.bounds import Bound, Bounds, compiler_seconds, program_seconds
from hlotools.cost.estimates import Estimates, Work, estimates_of, trip_count
from hlotools.cost.kernel_work import Contradiction, contradictions
from hlotools.cost.peak import (
    BufferCost,
    MemoryStats,
    assigned_bytes,
    memory_of,
    peaks,
    without_unassigned,
)
from hlotools.cost.rates import DeviceRates
from hlotools.cost.traffic import self_allocating, uncounted_text
from hlotools.html.report import report_html
from hlotools.ir.hlo import HloModule, Instruction, nearest_source
from hlotools.ir.hlo_parser import parse
from hlotools.ir.program_text import is_path, program_of_file
from hlotools.source_lines import short_line
from hlotools.terminal_text import is_visible

FORMAT = "hlofront.costs/1"
_UNPLACED = "(no line)"


class InstructionCost(NamedTuple):
    """The cost of one instruction, over all its runs.

    `runs` is the number of runs, None where a loop around the instruction has no known trip count;
    the numbers are then those of one step. `flops` and `transcendentals` are None for custom calls
    of unknown cost. `seconds` is a lower bound from the device's rates, None if these are unknown;
    `compiler_seconds` is the compiler's own estimate, None where it wrote none.
    `is_asynchronous` is whether other instructions run at the same time. `limit` is the resource
    that takes `seconds`: "computing", "HBM", "cache" or "links".
    """

    name: str
    computation: str
    opcode: str
    type: str
    runs: int | None
    flops: int | None
    transcendentals: int | None
    bytes: int
    intensity: float | None
    seconds: float | None
    file: str | None
    line: int | None
    function: str | None
    compiler_seconds: float | None = None
    is_asynchronous: bool = False
    limit: str | None = None


class LineCost(NamedTuple):
    """The cost of the instructions that come from one line of source.

    A fusion's operations belong to their own lines, its bytes to the line of its result;
    instructions that XLA inserted belong to the line of the value that they are for.
    `unknown` is the number of the line's instructions whose cost is partly unknown.
    """

    file: str | None
    line: int | None
    code: str | None
    instructions: int
    flops: int
    transcendentals: int
    bytes: int
    intensity: float | None
    seconds: float | None
    unknown: int


class Costs:
    """The costs of a program, returned by the function `costs`."""

    __slots__ = (
        "buffers", "contradictions", "instructions", "lines", "peak_bytes", "program", "target",
        "total", "uncounted",
    )  # fmt: skip

    def __init__(
        self,
        program: str,
        rates: DeviceRates | None,
        instructions: list[InstructionCost],
        lines: list[LineCost],
        buffers: list[BufferCost],
        peak_bytes: int,
        seconds: float | None = None,
        uncounted: Mapping[str, int] | None = None,
        contradictions: Sequence[Contradiction] = (),
    ):
        self.program = program
        # Library calls that may allocate memory in addition to the peak's, and their counts.
        self.uncounted = Counter(uncounted or {})
        # The figures of kernels' cost estimates that their code contradicts.
        self.contradictions = list(contradictions)
        self.target = rates
        self.instructions = instructions
        self.lines = lines
        self.buffers = buffers
        self.peak_bytes = peak_bytes
        flops = sum(row.flops for row in lines)
        transcendentals = sum(row.transcendentals for row in lines)
        moved = sum(row.bytes for row in lines)
        estimated = [row.compiler_seconds for row in instructions]
        known = [estimate for estimate in estimated if estimate is not None]
        self.total: dict[str, Any] = {
            "flops": flops,
            "transcendentals": transcendentals,
            "bytes": moved,
            "intensity": _ratio(flops + transcendentals, moved),
            "seconds": seconds,
            "compiler_seconds": sum(known) if known else None,
            "unknown": sum(row.unknown for row in lines),
            "peak_bytes": peak_bytes,
        }

    def as_dict(self) -> dict[str, Any]:
        """Return the costs as a dictionary for JSON, keyed by field names; None is unknown."""
        return {
            "format": FORMAT,
            "program": self.program,
            "target": self.target.name if self.target else None,
            "total": self.total,
            "lines": [row._asdict() for row in self.lines],
            "instructions": [row._asdict() for row in self.instructions],
            "buffers": [row._asdict() for row in self.buffers],
            "uncounted": dict(self.uncounted),
            "contradictions": [row._asdict() for row in self.contradictions],
        }

    def json(self) -> str:
        """Return the costs as JSON, with the keys of `as_dict()`."""
        return json.dumps(self.as_dict(), indent=1)

    @is_visible
    def text(self, by: str = "line", most: int = 20) -> str:
        """Return a table of the costs as text, the costliest rows first.

        Args:
          by: "line", for source lines, or "instruction".
          most: the maximum number of rows.

        Raises:
          ValueError: if `by` is neither "line" nor "instruction".
        """
        head, rows = self._table(by, most)
        return "\n".join([self._title(), *table_lines(head, rows), *self._totals(by, most)])

    def _title(self) -> str:
        return self.program + (f" on {self.target.title}" if self.target else "")

    def _table(self, by: str, most: int) -> tuple[list[str], list[list[str]]]:
        """Return the heads of columns, and rows, each with its source line at the end."""
        if by not in ("line", "instruction"):
            raise ValueError(f"costs are listed by 'line' or 'instruction': got {by!r}")
        total = self.total
        timed = total["seconds"] is not None or any(row.seconds for row in self.lines)
        head = ["flops", "transcendentals", "bytes", "per byte", *(["at least"] if timed else [])]
        rows: list[list[str]] = []
        chosen = self.lines if by == "line" else self.instructions
        for row in chosen[:most]:
            numbers = [
                _count(row.flops),
                _count(row.transcendentals),
                _count(row.bytes),
                "?" if row.intensity is None else f"{row.intensity:,.2f}",
            ]
            where = line_text(row.file, row.line)
            if isinstance(row, LineCost):
                note = f"{where}  {row.code}" if row.code else where
            else:
                runs = "" if row.runs == 1 else f" × {'?' if row.runs is None else row.runs}"
                note = f"{row.name} ({row.opcode}){runs}  {where}".rstrip()
            rows.append([*numbers, *([time_text(row.seconds)] if timed else []), note])
        return head, rows

    def _totals(self, by: str, most: int) -> list[str]:
        """Return the lines below the table."""
        total = self.total
        lines: list[str] = []
        hidden_count = len(self.lines if by == "line" else self.instructions) - most
        if hidden_count > 0:
            lines.append(f"and {hidden_count} more")
        seconds = (
            f", at least {time_text(total['seconds'])}" if total["seconds"] is not None else ""
        )
        lines.append(
            f"total: {total['flops']:,} flops, {total['transcendentals']:,} transcendentals, "
            f"{total['bytes']:,} bytes{seconds}"
        )
        if total["compiler_seconds"] is not None:
            count = sum(row.compiler_seconds is not None for row in self.instructions)
            lines.append(
                f"the compiler's own estimate of {count} of {len(self.instructions)} instructions: "
                f"{time_text(total['compiler_seconds'])}"
            )
        if seconds and any(row.is_asynchronous for row in self.instructions):
            lines.append(
                "asynchronous copies and collectives overlap other operations, so the total may "
                "be less than the sum"
            )
        if total["unknown"]:
            lines.append(f"{total['unknown']} instructions have parts whose cost is not known")
        lines += map(str, self.contradictions)
        lines.append(f"peak memory: {self.peak_bytes:,} bytes, including")
        for buffer in self.buffers[: max(most // 4, 3)]:
            where = line_text(buffer.file, buffer.line)
            lines.append(f"  {buffer.bytes:>14,}  {buffer.kind} {buffer.name}  {where}".rstrip())
        if self.uncounted:
            lines.append(uncounted_text(self.uncounted))
        return lines

    def __repr__(self) -> str:
        return self.text(most=10)

    def _repr_html_(self) -> str:
        head, rows = self._table("line", 10)
        return report_html(self._title(), head, rows, "\n".join(self._totals("line", 10)))

    def __rich_repr__(self) -> Any:
        yield "program", self.program
        yield from self.total.items()


def costs(
    program: object, rates: DeviceRates | None = None, memory: MemoryStats | None = None
) -> Costs:
    """Return the operations, bytes and time of a program, by instruction and by source line.

    The operations and bytes follow from shapes: a fusion reads what it needs of its operands and
    writes its result, and values that are on the chip move nothing; a loop counts once per trip.
    The time of an instruction is a lower bound from the device's published rates: the maximum of
    its operations by the peak rates of the units that compute them, its bytes by the bandwidth of
    the memory, and the bytes that it sends by that of the links: see docs/reference/costs.md.

    Args:
      program: HLO text, the path of an HLO file, a result of `parse`, or an object whose
        `as_text()` is HLO, such as a result of `compile` in jax or hlofront. If it has a
        `memory_analysis()`, the peak is that of XLA's buffers.
      rates: the rates of a device; None for no times.
      memory: XLA's record of the program's memory, by default that of the program itself.

    Raises:
      HloSyntaxError: if the text is not HLO.
      TypeError: if the program is of another type.
    """
    module = hlo_module(program)
    estimates = estimates_of(module)
    known: list[Bound] = []
    instructions: list[InstructionCost] = []
    lines: dict[_LineKey, _LineTotal] = {}
    contradicted: list[Contradiction] = []
    for step, bound, row in _priced(module, estimates, rates):
        if step.instruction.opcode == "custom-call":
            moved = estimates.of(step.instruction).bytes
            contradicted += contradictions(step.instruction, moved)
        known += [bound] if bound is not None else []
        if row is not None:
            instructions.append(row)
            _by_line(step, row, estimates, lines)
    instructions.sort(key=lambda row: (-(row.seconds or 0), -(row.flops or 0) - row.bytes))
    rows = [total.as_cost(*key) for key, total in lines.items()]
    rows.sort(key=lambda row: (-(row.seconds or 0), -row.flops - row.transcendentals - row.bytes))
    buffers, peak = peaks(module)
    memory = memory or memory_of(program)
    if memory is not None:
        # XLA's own assignment of buffers, which is not in the text.
        peak = assigned_bytes(memory)
        buffers = without_unassigned(buffers, memory)
    seconds = program_seconds(known) if known else None
    uncounted = self_allocating(module)
    return Costs(
        module.name, rates, instructions, rows, buffers, peak, seconds, uncounted, contradicted
    )


def instruction_costs(
    module: HloModule, rates: DeviceRates | None = None
) -> Iterator[tuple[Instruction, InstructionCost]]:
    """Yield the instructions of a module that cost something, with their costs, as in `costs`."""
    for step, _, row in _priced(module, estimates_of(module), rates):
        if row is not None:
            yield step.instruction, row


def _priced(
    module: HloModule, estimates: Estimates, rates: DeviceRates | None
) -> Iterator[tuple["Step", Bound | None, InstructionCost | None]]:
    """Yield each step of a module, the bound of its time, and its costs if it has any."""
    bounds = Bounds(module, estimates, rates) if rates is not None else None
    clock = rates.clock if rates is not None else None
    for step in running_steps(module, estimates):
        work = estimates.of(step.instruction).times(step.times)
        bound = None
        if bounds is not None:
            bound = bounds.of(step.instruction, step.times, step.is_asynchronous)
        yield step, bound, _row(step, work, bound, clock)


def hlo_module(program: object) -> HloModule:
    """Return a program in any form that `costs` accepts as an HloModule."""
    if isinstance(program, HloModule):
        return program
    if isinstance(program, os.PathLike) or (isinstance(program, str) and is_path(program)):
        program = program_of_file(os.fspath(program)).text
    as_text = getattr(program, "as_text", None)
    text = as_text() if callable(as_text) else program
    if isinstance(text, str):
        return parse(text)
    raise TypeError(
        "expected a compiled or lowered function, text of HLO, or a module that `parse` read; got "
        f"{type(program).__name__}"
    )


@dataclass(frozen=True, slots=True)
class Step:
    """An instruction that runs as a separate operation, with the number of its runs."""

    instruction: Instruction
    runs: int | None
    """The number of runs of the instruction; None where a loop does not say."""
    times: int
    """The least number of runs: a loop that does not say counts as one iteration."""
    is_asynchronous: bool = False
    """Whether an asynchronous start called it, so that others run at the same time."""


def running_steps(module: HloModule, estimates: Estimates) -> list[Step]:
    """Return the instructions that run as separate operations, outside fusions.

    Each is listed once, with the runs by all callers of its computation; twice if some callers are
    asynchronous. Of a conditional's branches, the one with the most work is counted.
    """
    running: list[Step] = []
    # By the id of a computation, and whether it runs asynchronously: its runs, as in a step.
    entered: dict[tuple[int, bool], tuple[int | None, int]] = {(id(module.entry), False): (1, 1)}
    for computation, beside in itertools.product(reversed(module.callees_first()), (False, True)):
        if (id(computation), beside) not in entered:
            continue
        runs, times = entered[id(computation), beside]
        for instruction in computation.instructions:
            steps: int | None = 1
            if instruction.opcode == "while":
                steps = trip_count(instruction)
            elif instruction.opcode not in ("conditional", "call", "async-start"):
                running.append(Step(instruction, runs, times, beside))
                continue
            callees = [c for listed in instruction.called.values() for c in listed]
            if instruction.opcode == "conditional" and callees:
                callees = [max(callees, key=lambda c: estimates.computation(c).most())]
            for callee in callees:
                key = id(callee), beside or instruction.opcode == "async-start"
                before = entered.get(key, (0, 0))
                known = None
                if runs is not None and steps is not None and before[0] is not None:
                    known = before[0] + runs * steps
                entered[key] = known, before[1] + times * (steps or 1)
    return running


def _row(
    step: Step, work: Work, bound: Bound | None, clock: float | None
) -> InstructionCost | None:
    instruction = step.instruction
    if not (work.flops or work.transcendentals or work.bytes or (bound and bound.seconds)):
        return None
    source = nearest_source(instruction)
    unknown = instruction.opcode == "custom-call" and not work.known
    total = work.flops + work.transcendentals
    estimated = compiler_seconds(instruction, clock)
    return InstructionCost(
        instruction.name,
        instruction.computation.name,
        instruction.opcode,
        instruction.shape.short_text(),
        step.runs,
        None if unknown else work.flops,
        None if unknown else work.transcendentals,
        work.bytes,
        None if unknown else _ratio(total, work.bytes),
        bound.seconds if bound is not None else None,
        source.file if source else None,
        source.line if source else None,
        source.function or None if source else None,
        None if estimated is None else estimated * step.times,
        bound.is_asynchronous if bound is not None else step.is_asynchronous,
        bound.limit if bound is not None else None,
    )


# A file and a line number; None where they are unknown.
_LineKey = tuple[str | None, int | None]


@dataclass(slots=True)
class _LineTotal:
    """The costs of one source line, accumulated over instructions."""

    instructions: int = 0
    flops: int = 0
    transcendentals: int = 0
    bytes: int = 0
    seconds: float | None = None
    unknown: int = 0

    def as_cost(self, file: str | None, line: int | None) -> LineCost:
        """Return the accumulated costs as a LineCost, with the text of the source line."""
        code = linecache.getline(file, line).strip() if file and line else ""
        return LineCost(
            file,
            line,
            code or None,
            self.instructions,
            self.flops,
            self.transcendentals,
            self.bytes,
            _ratio(self.flops + self.transcendentals, self.bytes),
            self.seconds,
            self.unknown,
        )


def _by_line(
    step: Step, row: InstructionCost, estimates: Estimates, lines: dict[_LineKey, _LineTotal]
) -> None:
    """Add an instruction's costs to its source line, a fusion's to its operations' lines."""
    line_total = lines.setdefault((row.file, row.line), _LineTotal())
    line_total.instructions += 1
    line_total.bytes += row.bytes
    line_total.unknown += row.flops is None
    if row.seconds is not None:
        line_total.seconds = (line_total.seconds or 0.0) + row.seconds
    fused = step.instruction.fused
    if fused is None:
        line_total.flops += row.flops or 0
        line_total.transcendentals += row.transcendentals or 0
        return
    for inner in fused.instructions:
        work = estimates.arithmetic(inner).times(step.times)
        if work.flops or work.transcendentals:
            source = nearest_source(inner)
            key = (source.file, source.line) if source else (row.file, row.line)
            total = lines.setdefault(key, _LineTotal())
            total.flops += work.flops
            total.transcendentals += work.transcendentals


# ---- numbers as text ----------------------------------------------------------------------------


def _ratio(work: int, moved: int) -> float | None:
    return work / moved if moved else None


def _count(number: int | None) -> str:
    return "?" if number is None else f"{number:,}"


def time_text(seconds: float | None) -> str:
    """Return a time with its unit, such as "1.25 ms"; "?" for None."""
    if seconds is None:
        return "?"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:,.2f} {unit}"
    return f"{seconds * 1e9:,.2f} ns"


def table_lines(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table of numbers, with a text at the end of each row but the head."""
    widths = [
        max(map(len, column))
        for column in zip(head, *(numbers for *numbers, _ in rows), strict=True)
    ]
    return [
        ("  ".join(f"{c:>{w}}" for c, w in zip(cells, widths, strict=True)) + "  " + note).rstrip()
        for *cells, note in [[*head, ""], *rows]
    ]


def line_text(file: str | None, line: int | None) -> str:
    """Return a source line as text, such as "model.py:12", or a note that it is unknown."""
    return short_line(file, line) if file else _UNPLACED
