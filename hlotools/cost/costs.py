"""Where a compiled program spends operations, bytes and time: by instruction and by source line."""

import json
import linecache
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from hlotools.cost.estimates import ELEMENTWISE, Estimates, Work, is_collective, trip_count
from hlotools.ir.hlo import Computation, HloModule, Instruction, nearest_source
from hlotools.ir.hlo_parser import parse
from hlotools.ir.program_text import is_path, program_of_file

FORMAT = "hlofront.costs/1"
_UNPLACED = "(no line)"
# What stands for other values and has no buffer of its own.
_VIEWS = frozenset({"bitcast", "tuple", "get-tuple-element", "while", "opt-barrier", "copy-done",
                    "async-done", "all-reduce-done", "all-gather-done", "collective-permute-done",
                    "add-dependency", "domain"})  # fmt: skip
# Of what these call, one computation is in memory at a time.
_RUNNING = frozenset({"while", "conditional", "call", "async-start"})


class DeviceRates(Protocol):
    """The published numbers of a device: what bounds from below the time of a program on it."""

    @property
    def name(self) -> str:
        """The name by which the device is asked for, such as "cuda:h100"."""
        ...

    @property
    def title(self) -> str:
        """The maker's name of the device."""
        ...

    @property
    def bandwidth(self) -> float | None:
        """The bandwidth of the device's memory in bytes per second, None if it is not known."""
        ...

    @property
    def peak_flops(self) -> Mapping[str, float]:
        """The operations per second by dtype, dense; empty where they are not known."""
        ...


class InstructionCost(NamedTuple):
    """The cost of one instruction, over all the times that it runs.

    `runs` is how often it runs, None where a loop around it has no known number of steps; then
    the numbers are those of one step. `flops` and `transcendentals` are None where a custom call
    does not say them. `seconds` is the least time that the target's rates allow, None without a
    target whose rates are known.
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


class LineCost(NamedTuple):
    """The cost of the instructions that come from one line of source.

    A fusion's operations belong to their own lines, its bytes to the line of its result; what XLA
    put in belongs to the line of the value that it is for.
    `unknown` is how many instructions of the line have an unknown part.
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


class BufferCost(NamedTuple):
    """A value that is in memory when the most memory is taken."""

    name: str
    type: str
    bytes: int
    kind: str  # "argument", "constant", "result" or "temporary"
    file: str | None
    line: int | None


class Costs:
    """The costs of a program; see `costs`."""

    __slots__ = ("buffers", "instructions", "lines", "peak_bytes", "program", "target", "total")

    def __init__(
        self,
        program: str,
        rates: DeviceRates | None,
        instructions: list[InstructionCost],
        lines: list[LineCost],
        buffers: list[BufferCost],
        peak_bytes: int,
    ):
        self.program = program
        self.target = rates
        self.instructions = instructions
        self.lines = lines
        self.buffers = buffers
        self.peak_bytes = peak_bytes
        flops = sum(row.flops for row in lines)
        transcendentals = sum(row.transcendentals for row in lines)
        moved = sum(row.bytes for row in lines)
        seconds = [row.seconds for row in instructions]
        known = [each for each in seconds if each is not None]
        self.total: dict[str, Any] = {
            "flops": flops,
            "transcendentals": transcendentals,
            "bytes": moved,
            "intensity": _ratio(flops + transcendentals, moved),
            "seconds": sum(known) if known and len(known) == len(seconds) else None,
            "unknown": sum(row.unknown for row in lines),
            "peak_bytes": peak_bytes,
        }

    def as_dict(self) -> dict[str, Any]:
        """Return the costs as `json.dumps` takes them; fields keep their names, None is unknown."""
        return {
            "format": FORMAT,
            "program": self.program,
            "target": self.target.name if self.target else None,
            "total": self.total,
            "lines": [row._asdict() for row in self.lines],
            "instructions": [row._asdict() for row in self.instructions],
            "buffers": [row._asdict() for row in self.buffers],
        }

    def json(self) -> str:
        """Return `as_dict()` as JSON."""
        return json.dumps(self.as_dict(), indent=1)

    def text(self, by: str = "line", most: int = 20) -> str:
        """Return a table, the costliest first.

        Args:
          by: "line", of source, or "instruction".
          most: how many rows.

        Raises:
          ValueError: if `by` is neither.
        """
        if by not in ("line", "instruction"):
            raise ValueError(f"costs are listed by 'line' or 'instruction': got {by!r}")
        total = self.total
        timed = total["seconds"] is not None or any(row.seconds for row in self.lines)
        head = ["flops", "transcendentals", "bytes", "per byte", *(["at least"] if timed else [])]
        rows: list[list[str]] = []
        notes: list[str] = []
        chosen = self.lines if by == "line" else self.instructions
        for row in chosen[:most]:
            numbers = [
                _count(row.flops),
                _count(row.transcendentals),
                _count(row.bytes),
                "?" if row.intensity is None else f"{row.intensity:,.2f}",
            ]
            rows.append(numbers + ([_time(row.seconds)] if timed else []))
            where = _where(row.file, row.line)
            if isinstance(row, LineCost):
                notes.append(f"{where}  {row.code}" if row.code else where)
            else:
                runs = "" if row.runs == 1 else f" × {'?' if row.runs is None else row.runs}"
                notes.append(f"{row.name} ({row.opcode}){runs}  {where}".rstrip())
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        lines = [self.program + (f" on {self.target.title}" if self.target else "")]
        for cells, note in zip([head, *rows], ["", *notes], strict=True):
            shown = (f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
            lines.append(("  ".join(shown) + "  " + note).rstrip())
        if len(chosen) > most:
            lines.append(f"and {len(chosen) - most} more")
        seconds = f", at least {_time(total['seconds'])}" if total["seconds"] is not None else ""
        lines.append(
            f"total: {total['flops']:,} flops, {total['transcendentals']:,} transcendentals, "
            f"{total['bytes']:,} bytes{seconds}"
        )
        if total["unknown"]:
            lines.append(f"{total['unknown']} instructions have parts whose cost is not known")
        lines.append(f"the most memory at once: {self.peak_bytes:,} bytes, of which")
        for buffer in self.buffers[: max(most // 4, 3)]:
            where = _where(buffer.file, buffer.line)
            lines.append(f"  {buffer.bytes:>14,}  {buffer.kind} {buffer.name}  {where}".rstrip())
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.text(most=10)

    def __rich_repr__(self) -> Any:
        yield "program", self.program
        yield from self.total.items()


def costs(program: object, rates: DeviceRates | None = None) -> Costs:
    """Return where a program spends operations, bytes and time.

    The numbers are estimates from shapes: a fusion moves its operands and its result, a loop runs
    as often as XLA wrote down. The time is a lower bound from the device's published rates: the
    greater of operations by its peak rate for their dtype and bytes by its memory's bandwidth.

    Args:
      program: text of HLO, the path of a file of it, what `parse` gave, or an object whose
        `as_text()` is HLO, such as what `compile` returns in jax and in hlofront.
      rates: the numbers of a device; None for no times.

    Raises:
      HloSyntaxError: if the text is not HLO.
      TypeError: if the program is nothing of these.
    """
    module = hlo_module(program)
    estimates = Estimates(module)
    instructions: list[InstructionCost] = []
    lines: dict[_LineKey, _LineTotal] = {}
    for step in _running(module, estimates):
        work = estimates.of(step.instruction).times(step.times)
        row = _row(step.instruction, work, step.runs, rates)
        if row is not None:
            instructions.append(row)
            _by_line(step, row, estimates, lines)
    instructions.sort(key=lambda row: (-(row.seconds or 0), -(row.flops or 0) - row.bytes))
    rows = [total.as_cost(*key) for key, total in lines.items()]
    rows.sort(key=lambda row: (-(row.seconds or 0), -row.flops - row.transcendentals - row.bytes))
    buffers, peak = _peaks(module)
    return Costs(module.name, rates, instructions, rows, buffers, peak)


def hlo_module(program: object) -> HloModule:
    """Return a program as a module of HLO; `costs` says which programs there are."""
    if isinstance(program, HloModule):
        return program
    if isinstance(program, os.PathLike) or (isinstance(program, str) and is_path(program)):
        program = program_of_file(os.fspath(program)).text
    as_text = getattr(program, "as_text", None)
    text = as_text() if callable(as_text) else program
    if isinstance(text, str):
        return parse(text)
    raise TypeError(
        "wanted a compiled or lowered function, text of HLO, or a module that `parse` read; got "
        f"{type(program).__name__}"
    )


@dataclass(frozen=True, slots=True)
class _Step:
    """An instruction that runs as an operation of its own."""

    instruction: Instruction
    runs: int | None
    """How often it runs; None where a loop does not say."""
    times: int
    """How often it runs at least: a loop that does not say counts as one iteration."""


def _running(module: HloModule, estimates: Estimates) -> list[_Step]:
    """Return what runs as operations of their own.

    Of the branches of a conditional, the one with most to do counts.
    """
    running: list[_Step] = []
    waiting: list[tuple[Computation, int | None, int]] = [(module.entry, 1, 1)]
    while waiting:
        computation, runs, times = waiting.pop()
        for instruction in computation.instructions:
            inside = runs, times
            if instruction.opcode == "while":
                steps = trip_count(instruction)
                known = None if runs is None or steps is None else runs * steps
                inside = known, times * (steps or 1)
            elif instruction.opcode not in ("conditional", "call", "async-start"):
                running.append(_Step(instruction, runs, times))
                continue
            callees = [c for listed in instruction.called.values() for c in listed]
            if instruction.opcode == "conditional" and callees:
                callees = [max(callees, key=lambda c: estimates.computation(c).most())]
            # Not more than a program has; the same one may be called often.
            if len(running) < 2_000_000:
                waiting += [(callee, *inside) for callee in callees]
    return running


def _row(
    instruction: Instruction, work: Work, runs: int | None, rates: DeviceRates | None
) -> InstructionCost | None:
    if not (work.flops or work.transcendentals or work.bytes):
        return None
    source = nearest_source(instruction)
    unknown = instruction.opcode == "custom-call" and not work.known
    total = work.flops + work.transcendentals
    return InstructionCost(
        instruction.name,
        instruction.computation.name,
        instruction.opcode,
        instruction.shape.short_text(),
        runs,
        None if unknown else work.flops,
        None if unknown else work.transcendentals,
        work.bytes,
        None if unknown else _ratio(total, work.bytes),
        None if unknown else _seconds(instruction, work, rates),
        source.file if source else None,
        source.line if source else None,
        source.function or None if source else None,
    )


def _seconds(instruction: Instruction, work: Work, rates: DeviceRates | None) -> float | None:
    """Return the least time by the target's rates; None for what they do not bound."""
    if rates is None or not rates.bandwidth or is_collective(instruction.opcode):
        return None
    peak = _peak_rate(rates.peak_flops, _dtype(instruction))
    computing = (work.flops + work.transcendentals) / peak if peak else 0.0
    return max(computing, work.bytes / rates.bandwidth)


def _dtype(instruction: Instruction) -> str:
    """Return the dtype of a matrix product's operands, in fusions too; else of the result."""
    inside = instruction.fused.instructions if instruction.fused else [instruction]
    for inner in inside:
        if inner.opcode in ("dot", "convolution") and inner.operands:
            return inner.operands[0].shape.dtype
    leaf = next(iter(instruction.shape.leaves()), None)
    return leaf.dtype if leaf else "f32"


def _peak_rate(peaks: Mapping[str, float], dtype: str) -> float | None:
    """Return the peak rate for a dtype, or the highest one, which is a bound too."""
    names = {"f32": "float32", "bf16": "bfloat16", "f16": "float16", "f64": "float64", "s8": "int8"}
    for name in (dtype, names.get(dtype, ""), f"tf32_{dtype}"):
        if name in peaks:
            return peaks[name]
    return max(peaks.values(), default=None)


# A file and a line of it; None where they are not known.
_LineKey = tuple[str | None, int | None]


@dataclass(slots=True)
class _LineTotal:
    """The costs of one line, which grow while instructions are added."""

    instructions: int = 0
    flops: int = 0
    transcendentals: int = 0
    bytes: int = 0
    seconds: float | None = None
    unknown: int = 0

    def as_cost(self, file: str | None, line: int | None) -> LineCost:
        """Return the costs with their line and its text."""
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
    step: _Step, row: InstructionCost, estimates: Estimates, lines: dict[_LineKey, _LineTotal]
) -> None:
    """Add an instruction to its line, a fusion's operations each to theirs."""
    own = lines.setdefault((row.file, row.line), _LineTotal())
    own.instructions += 1
    own.bytes += row.bytes
    own.unknown += row.flops is None
    if row.seconds is not None:
        own.seconds = (own.seconds or 0.0) + row.seconds
    fused = step.instruction.fused
    if fused is None:
        own.flops += row.flops or 0
        own.transcendentals += row.transcendentals or 0
        return
    for inner in fused.instructions:
        work = estimates.of(inner).times(step.times)
        if work.flops or work.transcendentals:
            source = nearest_source(inner)
            key = (source.file, source.line) if source else (row.file, row.line)
            total = lines.setdefault(key, _LineTotal())
            total.flops += work.flops
            total.transcendentals += work.transcendentals


# ---- memory -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Live:
    """A value in memory."""

    instruction: Instruction
    is_result: bool


@dataclass(frozen=True, slots=True)
class _Peak:
    """The values in memory when most bytes are, and the bytes."""

    bytes: int
    live: list[_Live]


def _peaks(module: HloModule) -> tuple[list[BufferCost], int]:
    """Return the values that are live when the most bytes are, the largest first; and the bytes."""
    known: dict[int, _Peak] = {}
    running = {id(module.entry)}
    for computation in reversed(module.callees_first()):
        for instruction in computation.instructions:
            if id(computation) in running and instruction.opcode in _RUNNING:
                callees = [c for listed in instruction.called.values() for c in listed]
                running.update(map(id, callees))
    for computation in module.callees_first():
        if id(computation) in running:
            known[id(computation)] = _peak(computation, known)
    most = known[id(module.entry)]
    live = sorted(most.live, key=lambda value: -value.instruction.shape.stored_bytes)
    return [_buffer(value) for value in live if value.instruction.shape.stored_bytes], most.bytes


def _peak(computation: Computation, known: Mapping[int, _Peak]) -> _Peak:
    """Return the most that a computation has in memory, beside what its caller gives and takes.

    In the order of the text, which is the schedule of a compiled program. A value is live from
    where it is made to where it, or a view of it, is last used; arguments always are. What a loop
    or a branch computes on the way is live while that runs; its results are its caller's.
    """
    order = computation.instructions
    position = {id(i): n for n, i in enumerate(order)}
    # What each value is a view of.
    owners: dict[int, set[int]] = {}
    for instruction in computation.in_order():
        own: set[int] = set()
        if instruction.opcode in _VIEWS or instruction.opcode.endswith("-done"):
            for operand in instruction.operands:
                own |= owners[id(operand)]
        else:
            own = {id(instruction)}
        owners[id(instruction)] = own
    last = {id(i): n for n, i in enumerate(order)}
    for instruction in order:
        for operand in instruction.operands:
            for owner in owners[id(operand)]:
                last[owner] = max(last[owner], position[id(instruction)])
    results = owners[id(computation.root)]
    for owner in results:
        last[owner] = len(order)
    is_entry = computation.is_entry
    always = [i for i in order if i.opcode == "constant" or (i.opcode == "parameter" and is_entry)]
    made = [
        i
        for i in order
        if owners[id(i)] == {id(i)}
        and i.opcode not in ("parameter", "constant")
        and (is_entry or id(i) not in results)
    ]
    inside: dict[int, _Peak] = {}
    for instruction in order:
        if instruction.opcode in _RUNNING:
            callees = [c for listed in instruction.called.values() for c in listed]
            peaks = [known[id(callee)] for callee in callees if id(callee) in known]
            if peaks:
                inside[position[id(instruction)]] = max(peaks, key=lambda peak: peak.bytes)
    changes: list[tuple[int, int, int]] = []
    # What gives its buffer to the operation that is the last to use it.
    reused: set[int] = set()
    for instruction in made:
        size = instruction.shape.stored_bytes
        changes.append((position[id(instruction)], 1, size))
        at = last[id(instruction)]
        if at < len(order) and _overwrites(order[at], size) and id(order[at]) not in reused:
            reused |= {id(instruction), id(order[at])}
            changes.append((at, 0, -size))
        else:
            changes.append((at, 2, -size))
    for at, peak in inside.items():
        changes.append((at, 1, peak.bytes))
        changes.append((at, 2, -peak.bytes))
    held = sum(i.shape.stored_bytes for i in always)
    most = now = held
    when = -1
    for at, _, size in sorted(changes):
        now += size
        if now > most:
            most, when = now, at
    live = [_Live(i, is_entry and id(i) in results) for i in always]
    live += [
        _Live(i, is_entry and id(i) in results)
        for i in made
        if position[id(i)] <= when < last[id(i)] or (when == last[id(i)] and id(i) not in reused)
    ]
    if when in inside:
        live += inside[when].live
    return _Peak(most, live)


def _overwrites(instruction: Instruction, size: int) -> bool:
    """Return whether an operation may write its result over an operand of a size."""
    opcode = instruction.opcode
    alike = opcode in ELEMENTWISE or opcode == "dynamic-update-slice"
    if opcode == "fusion":
        inside = instruction.fused.instructions if instruction.fused else []
        alike = all(i.opcode in ELEMENTWISE or i.opcode in _IN_PLACE for i in inside)
    return alike and instruction.shape.stored_bytes == size


_IN_PLACE = frozenset({"parameter", "constant", "bitcast", "dynamic-update-slice", "broadcast"})


def _buffer(value: _Live) -> BufferCost:
    instruction = value.instruction
    kinds = {"parameter": "argument", "constant": "constant"}
    kind = kinds.get(instruction.opcode, "result" if value.is_result else "temporary")
    source = nearest_source(instruction)
    return BufferCost(
        instruction.name,
        instruction.shape.short_text(),
        instruction.shape.stored_bytes,
        kind,
        source.file if source else None,
        source.line if source else None,
    )


# ---- numbers as text ----------------------------------------------------------------------------


def _ratio(work: int, moved: int) -> float | None:
    return work / moved if moved else None


def _count(number: int | None) -> str:
    return "?" if number is None else f"{number:,}"


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "?"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:,.2f} {unit}"
    return f"{seconds * 1e9:,.2f} ns"


def _where(file: str | None, line: int | None) -> str:
    return f"{os.path.basename(file)}:{line}" if file else _UNPLACED
