"""The report of the places where XLA changes how values are split."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hlofront.inspect.resharding.places import Cause, ReshardPlace
from hlofront.inspect.resharding.propagation import Origin
from hlotools.cost.collectives import Collective, Collectives
from hlotools.source_lines import relative_line
from hlotools.terminal_text import is_visible

_SHAPE = re.compile(r"\[([\d,]*)\]")
_REMADE, _BACKWARD = "rematted_computation", "transpose("


class Reshard(NamedTuple):
    """A value whose split XLA changes because an operation needs another one.

    Attributes:
      value: the value: "argument w", or the operation that makes it.
      type: the type of the whole value, such as "f32[128,256]".
      before, after: the PartitionSpecs as text.
      received: the bytes that each device receives at least, over all occurrences.
      is_whole: whether each device gathers all of the value to keep a part of it: XLA's
        "involuntary full rematerialization".
      operation: the operation that needs the value.
      file, line: the user's line of the operation, where it is known.
      phase: "forward", "backward", or "recomputed" by `jax.checkpoint`.
      made_so, needed_so: the arguments or constraints that cause the splits before and after.
      count: the number of occurrences.
    """

    value: str
    type: str
    before: str
    after: str
    received: int
    is_whole: bool
    operation: str
    file: str | None
    line: int | None
    phase: str
    made_so: str | None
    needed_so: str | None
    count: int = 1

    @is_visible
    def text(self) -> str:
        """Return the reshard as a paragraph of a few lines."""
        how = "which gathers it whole on each device first, " if self.is_whole else ""
        times = f", {self.count} times" if self.count > 1 else ""
        phase = "" if self.phase == "forward" else f" ({self.phase})"
        where = f" at {relative_line(self.file, self.line)}" if self.file else ""
        lines = [
            f"{self.value}, {self.type}: {self.before} -> {self.after}, {how}"
            f"{self.received:,} bytes to each device{times}",
            f"    for {self.operation}{where}{phase}",
        ]
        if self.made_so is not None and self.made_so != self.value:
            lines.append(f"    it is split this way by {self.made_so}")
        if self.needed_so is not None:
            lines.append(f"    needed this way because of {self.needed_so}")
        return "\n".join(lines)


class Cure(NamedTuple):
    """Another PartitionSpec, with which the program was also compiled.

    Attributes:
      of: the argument or constraint with this spec.
      before, after: the PartitionSpecs as text.
      sent_before, sent: the bytes that each device sends in the program, with each.
    """

    of: str
    before: str
    after: str
    sent_before: int
    sent: int

    @is_visible
    def text(self) -> str:
        """Return the change, and what it saves, as text."""
        return (
            f"{self.of}: {self.after} instead of {self.before}. Compiled this way, each device "
            f"sends {self.sent:,} bytes instead of {self.sent_before:,}."
        )


class Reshards:
    """The places where XLA changes how values are split, returned by `reshards`.

    Attributes:
      rows: the places, those of the most bytes first.
      cures: other specs that make the devices send less, the best first.
    """

    __slots__ = ("cures", "rows")

    def __init__(self, rows: list[Reshard], cures: list[Cure]):
        self.rows = rows
        self.cures = cures

    @is_visible
    def text(self) -> str:
        """Return the places and cures as text."""
        if not self.rows:
            return "Every operation gets its values split as it needs them."
        cures = "\n".join(f"  {cure.text()}" for cure in self.cures)
        tried = f"\n\nWhat would avoid it:\n{cures}" if cures else ""
        return "\n".join(row.text() for row in self.rows) + tried

    __str__ = text

    def __repr__(self) -> str:
        return f"Reshards(rows={len(self.rows)}, cures={len(self.cures)})"


def cause_text(cause: Cause | None) -> str | None:
    """Return a cause as text: an argument by its name, a constraint by its line and spec."""
    if cause is None:
        return None
    if cause.origin is None:
        return f"argument {cause.argument}"
    return f"the sharding constraint {cause.split}{_at(cause.origin)}"


def _at(origin: Origin) -> str:
    return f" at {relative_line(origin.file, origin.line)}" if origin.file else ""


def rows_of(places: Sequence[ReshardPlace], collectives: Collectives) -> list[Reshard]:
    """Return the rows of a report: equal places as one, those of the most bytes first."""
    counts: dict[Reshard, int] = {}
    for place in places:
        row = _row(place, collectives.rows)
        counts[row] = counts.get(row, 0) + 1
    rows = [
        row._replace(count=count, received=row.received * count) for row, count in counts.items()
    ]
    rows += _gathers_besides(places, collectives)
    return sorted(rows, key=lambda row: -row.received)


def _gathers_besides(places: Sequence[ReshardPlace], collectives: Collectives) -> Iterator[Reshard]:
    """Yield the arrays that XLA gathers by its own choice, although no split requires it.

    It cannot split a cumulative sum along the summed axis, for example.
    """
    lines = {
        (each.file, each.line)
        for place in places
        for each in (place.value, place.needed_by)
        if each is not None
    }
    for row in collectives.rows:
        operation = row.op_name.rpartition("/")[2]
        if row.opcode != "all-gather" or (row.file, row.line) in lines:
            continue
        # The user's own gather, or the beginning of a program, which has no lines.
        if operation == "all_gather" or row.file is None:
            continue
        yield Reshard(
            "an operand",
            row.type.partition("{")[0],
            f"split along {row.along()}",
            "gathered by XLA",
            row.total_bytes,
            False,
            operation,
            row.file,
            row.line,
            _phase(row.op_name),
            None,
            None,
        )


def _row(place: ReshardPlace, collectives: Sequence[Collective]) -> Reshard:
    needed = place.needed_by
    made_by = place.value.name if place.value else "a value"
    return Reshard(
        made_by if place.argument is None else f"argument {place.argument}",
        place.type,
        str(place.before),
        str(place.after),
        place.received,
        _is_whole(place, collectives),
        needed.name if needed else "the result",
        needed.file if needed else None,
        needed.line if needed else None,
        _phase(needed.path if needed else ""),
        cause_text(place.made_so),
        cause_text(place.needed_so),
    )


def _phase(path: str) -> str:
    if _REMADE in path:
        return "recomputed"
    return "backward" if _BACKWARD in path else "forward"


def _is_whole(place: ReshardPlace, collectives: Sequence[Collective]) -> bool:
    """Return whether the compiled program gathers all of a value to move parts of it."""
    if place.kind != "move":
        return False
    lines = {(each.file, each.line) for each in (place.value, place.needed_by) if each}
    shape = _shape(place.type)
    return any(
        row.opcode == "all-gather" and (row.file, row.line) in lines and _shape(row.type) == shape
        for row in collectives
    )


def _shape(kind: str) -> str | None:
    found = _SHAPE.search(kind)
    return found[1] if found else None
