"""The memory of a program over time: the live values at each operation of the schedule."""

import itertools
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from hlotools.cost.costs import hlo_module
from hlotools.cost.peak import (
    BufferCost,
    Lifetimes,
    MemoryStats,
    assigned_bytes,
    buffer_of,
    memory_of,
    peak_bytes,
    running_callees,
)
from hlotools.cost.traffic import self_allocating, uncounted_text
from hlotools.html.report import text_html
from hlotools.ir.hlo import Computation, HloModule, Instruction, nearest_source
from hlotools.source_lines import short_line
from hlotools.terminal_text import is_visible, visible

FORMAT = "hlofront.memory/1"
# Opcodes that take no time.
_TIMELESS = frozenset({"parameter", "constant", "get-tuple-element", "tuple", "bitcast"})
_BLOCKS = " ▁▂▃▄▅▆▇█"


class Moment(NamedTuple):
    """An operation of the schedule, and the bytes in memory while it runs."""

    name: str
    computation: str
    opcode: str
    bytes: int
    file: str | None
    line: int | None


class LiveBuffer(NamedTuple):
    """A value in memory from one moment up to and including another, given by number."""

    buffer: BufferCost
    computation: str
    first: int
    last: int


class MemoryUse:
    """The memory of a program over time, returned by the function `memory_use`.

    Attributes:
      program: the name of the program.
      moments: the operations that run, in order; those of a loop's body once.
      buffers: the values, in the order in which they are made.
      peak: the number of the moment with the most bytes.
      assigned: XLA's record of its buffers, None for texts.
      uncounted: the library calls that may allocate more memory while they run, and their counts.
      is_scheduled: whether the program is compiled, so that it runs in this order.
    """

    __slots__ = (
        "assigned", "buffers", "is_scheduled", "moments", "peak", "program", "uncounted",
    )  # fmt: skip

    def __init__(
        self,
        program: str,
        moments: Sequence[Moment],
        buffers: Sequence[LiveBuffer],
        assigned: MemoryStats | None,
        is_scheduled: bool = True,
        uncounted: Mapping[str, int] | None = None,
    ):
        self.program = program
        self.is_scheduled = is_scheduled
        self.uncounted = Counter(uncounted or {})
        self.moments = tuple(moments)
        self.buffers = tuple(buffers)
        self.assigned = assigned
        self.peak = max(range(len(moments)), key=lambda n: (moments[n].bytes, -n), default=0)

    @property
    def peak_bytes(self) -> int:
        """The peak number of bytes according to the schedule."""
        return self.moments[self.peak].bytes if self.moments else 0

    @property
    def assigned_bytes(self) -> int | None:
        """The bytes of XLA's buffers, None where they are not known."""
        return None if self.assigned is None else assigned_bytes(self.assigned)

    def live(self, moment: int | None = None) -> list[LiveBuffer]:
        """Return the buffers that are live at a moment, by default the peak; the largest first."""
        when = self.peak if moment is None else moment
        live = [buffer for buffer in self.buffers if buffer.first <= when <= buffer.last]
        return sorted(live, key=lambda each: -each.buffer.bytes)

    def as_dict(self) -> dict[str, Any]:
        """Return the memory over time as a dictionary for JSON."""
        return {
            "format": FORMAT,
            "program": self.program,
            "peak": self.peak,
            "peak_bytes": self.peak_bytes,
            "assigned_bytes": self.assigned_bytes,
            "uncounted": dict(self.uncounted),
            "moments": [moment._asdict() for moment in self.moments],
            "buffers": [
                {**buffer.buffer._asdict(), "first": buffer.first, "last": buffer.last}
                for buffer in self.buffers
            ],
        }

    def json(self) -> str:
        """Return the memory over time as JSON, with the keys of `as_dict()`."""
        return json.dumps(self.as_dict(), indent=1)

    @is_visible
    def text(self, width: int = 72, height: int = 8, most: int = 10) -> str:
        """Return a chart of the bytes over the schedule, and the buffers at the peak, as text.

        Args:
          width: the width of the chart in characters.
          height: the height of the chart in lines.
          most: the maximum number of buffers.
        """
        if not self.moments:
            return f"{self.program}: no operation runs"
        first, *buffers = self.peak_lines(most)
        order = "" if self.is_scheduled else " (before XLA's optimizations)"
        lines = [f"{self.program}{order}: {first}"]
        if self.assigned is not None:
            lines.append(
                f"XLA's buffers: {size_text(assigned_bytes(self.assigned))}: arguments "
                f"{size_text(self.assigned.argument_size_in_bytes)}, results "
                f"{size_text(self.assigned.output_size_in_bytes)}, temporaries "
                f"{size_text(self.assigned.temp_size_in_bytes)}, shared by donation "
                f"{size_text(self.assigned.alias_size_in_bytes)}"
            )
        if self.uncounted:
            lines.append(uncounted_text(self.uncounted))
        return "\n".join([*lines, "", *self._chart(width, height), "", *buffers])

    def peak_lines(self, most: int = 10) -> list[str]:
        """Return the peak memory as a line, followed by lines for the largest buffers at that time.

        Args:
          most: the maximum number of buffers.
        """
        if not self.moments:
            return ["no operation runs"]
        peak = self.moments[self.peak]
        where = f" at {short_line(peak.file, peak.line)}" if peak.file else ""
        lines = [
            f"the peak memory is {size_text(peak.bytes)}, while operation {self.peak + 1} "
            f"of {len(self.moments)} runs: {peak.opcode} {peak.name}{where}",
            *buffer_lines([lifetime.buffer for lifetime in self.live()], most),
        ]
        return list(map(visible, lines))

    def _chart(self, width: int, height: int) -> list[str]:
        """Return the lines of a chart; each column shows the maximum of its moments."""
        count = len(self.moments)
        columns = min(width, count)
        starts = [column * count // columns for column in range(columns + 1)]
        tops = [
            max(moment.bytes for moment in self.moments[start:end])
            for start, end in itertools.pairwise(starts)
        ]
        # A few moments are drawn as wide as many are.
        wide = max(width // columns, 1)
        most = max(max(tops), 1)
        label = size_text(most)
        lines: list[str] = []
        for row in range(height, 0, -1):
            cells = "".join(_BLOCKS[_level(top / most, row, height)] * wide for top in tops)
            left = label if row == height else "0" if row == 1 else ""
            lines.append(f"{left:>{len(label)}} |{cells}".rstrip())
        column = next(n for n in range(columns) if starts[n] <= self.peak < starts[n + 1])
        lines.append(f"{'':>{len(label)}} +{'-' * (columns * wide)}")
        lines.append(f"{'':>{len(label)}}  {' ' * (column * wide)}^ peak")
        return lines

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        title, _, text = self.text().partition("\n")
        return text_html(text.strip("\n"), title)


def _level(share: float, row: int, height: int) -> int:
    """Return the eighths of a chart's row that are filled by a share of the whole height."""
    eighths = round(share * height * 8)
    level = min(max(eighths - 8 * (row - 1), 0), 8)
    return max(level, 1) if row == 1 and share > 0 else level


def buffer_lines(buffers: Sequence[BufferCost], most: int) -> list[str]:
    """Return lines of text that list buffers: size, kind, type and source line."""
    shown = buffers[:most]
    sizes = [size_text(buffer.bytes) for buffer in shown]
    width = max(map(len, sizes), default=0)
    lines = [
        f"  {size:>{width}}  {buffer.kind} {buffer.type} {buffer.name}"
        + (f"  at {short_line(buffer.file, buffer.line)}" if buffer.file else "")
        for size, buffer in zip(sizes, shown, strict=True)
    ]
    hidden_buffers = buffers[most:]
    if hidden_buffers:
        more = size_text(sum(buffer.bytes for buffer in hidden_buffers))
        lines.append(f"  {more:>{width}}  in {len(hidden_buffers)} more")
    return lines


def size_text(count: float) -> str:
    """Return a number of bytes as text with a unit, such as `1.5 MiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024:
            return f"{count:,.0f} {unit}" if unit == "B" else f"{count:,.1f} {unit}"
        count /= 1024
    return f"{count:,.1f} TiB"


def memory_use(program: object, memory: MemoryStats | None = None) -> MemoryUse:
    """Return the memory of a program over time: the values that are live at each operation.

    The order is that of the text, which is the schedule of a compiled program. Values are live from
    their definition to their last use; arguments and constants always are. An operation that XLA
    computes in place takes the buffer of its operand, and a result that of the argument which was
    donated for it. A computation is expanded once, where the most memory is live around it. XLA's
    own assignment may share more, or pad: `assigned_bytes` is what it reserves. The memory that
    library calls allocate while they run is in neither; `uncounted` names these calls.

    Args:
      program: HLO: text, the path of a file, a result of `parse`, or an object whose
        `as_text()` is HLO, such as a result of `compile` in jax or hlofront.
      memory: XLA's record of the program's memory, by default that of the program itself.

    Raises:
      HloSyntaxError: if the text is not HLO.
      TypeError: if the program is of another type.
    """
    module = hlo_module(program)
    timeline = _Timeline(module)
    return MemoryUse(
        module.name,
        timeline.moments,
        timeline.buffers,
        memory or memory_of(program),
        module.attributes.get("is_scheduled") == "true",
        self_allocating(module),
    )


class _Timeline:
    """The moments and buffers of a module, those of loops and branches where they run.

    The operations of a computation that is called from several places are listed at the call where
    the most memory is live outside of it; each other call is a single moment, with the
    computation's peak.
    """

    def __init__(self, module: HloModule):
        self.moments: list[Moment] = []
        self.buffers: list[LiveBuffer] = []
        self._peaks = peak_bytes(module)
        self._lifetimes = {id(c): Lifetimes(c) for c in module.computations if id(c) in self._peaks}
        # By the id of a computation: the most bytes live outside of it, and at which call.
        self._calls: dict[int, tuple[int, Instruction]] = {}
        held = {id(module.entry): 0}
        for computation in reversed(module.callees_first()):
            if id(computation) not in held:
                continue
            for _, instruction, now in self._walk(computation, held[id(computation)]):
                for callee in running_callees(instruction):
                    if now > held.get(id(callee), -1):
                        held[id(callee)] = now
                        self._calls[id(callee)] = now, instruction
        self._run(module.entry, 0)

    def _walk(self, computation: Computation, held: int) -> Iterator[tuple[int, Instruction, int]]:
        """Yield the positions and operations of a computation, with the bytes live at each."""
        lifetimes = self._lifetimes[id(computation)]
        now = held + sum(map(lifetimes.bytes_of, lifetimes.always))
        changes = sorted(lifetimes.changes())
        n = 0
        for position, instruction in enumerate(lifetimes.order):
            while n < len(changes) and changes[n][:2] < (position, 2):
                now += changes[n][2]
                n += 1
            yield position, instruction, now
            while n < len(changes) and changes[n][:2] == (position, 2):
                now += changes[n][2]
                n += 1

    def _run(self, computation: Computation, held: int) -> None:
        """Add the moments of a computation that runs while `held` bytes are live outside of it."""
        lifetimes = self._lifetimes[id(computation)]
        begin = len(self.moments)
        starts: list[int] = []
        ends: list[int] = []
        for _, instruction, now in self._walk(computation, held):
            starts.append(len(self.moments))
            if instruction.opcode not in _TIMELESS:
                self._operation(instruction, now)
            ends.append(max(len(self.moments) - 1, starts[-1]))
        end = max(len(self.moments) - 1, begin)
        is_entry = computation.is_entry
        for i in (*lifetimes.always, *lifetimes.made):
            size = lifetimes.bytes_of(i)
            if not size:
                continue
            is_always = i.opcode in ("parameter", "constant")
            position, last = lifetimes.position[id(i)], lifetimes.last[id(i)]
            if id(i) in lifetimes.reused:
                # From then on the buffer belongs to the operation that overwrites it.
                last -= 1
            self.buffers.append(
                LiveBuffer(
                    buffer_of(i, size, is_entry and id(i) in lifetimes.results),
                    computation.name,
                    begin if is_always else starts[position],
                    end if is_always or last >= len(ends) else ends[last],
                )
            )

    def _operation(self, instruction: Instruction, now: int) -> None:
        """Add the moment of an operation, or those of the computations that it runs."""
        callees = dict.fromkeys(running_callees(instruction))
        here = [c for c in callees if self._calls[id(c)][1] is instruction]
        for callee in here:
            self._run(callee, now)
        if len(here) < max(len(callees), 1):
            inside = (self._peaks[id(c)] for c in callees if c not in here)
            self._add(instruction, now + max(inside, default=0))

    def _add(self, instruction: Instruction, count: int) -> None:
        source = nearest_source(instruction)
        self.moments.append(
            Moment(
                instruction.name,
                instruction.computation.name,
                instruction.opcode,
                count,
                source.file if source else None,
                source.line if source else None,
            )
        )
