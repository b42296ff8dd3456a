"""The peak of a program's memory use, from the schedule, and the values that are live then."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol, cast

from hlotools.cost.estimates import ELEMENTWISE
from hlotools.cost.traffic import bytes_in_memory, continues, made_bytes
from hlotools.ir.hlo import (
    Computation,
    HloModule,
    Instruction,
    nearest_source,
    once_per_module,
)

# Opcodes whose results are views of other values and have no buffers.
_VIEWS = frozenset({"bitcast", "tuple", "get-tuple-element", "while", "opt-barrier", "copy-done",
                    "async-done", "all-reduce-done", "all-gather-done", "collective-permute-done",
                    "add-dependency", "domain"})  # fmt: skip
# Opcodes that call several computations, only one of them in memory at a time.
_RUNNING = frozenset({"while", "conditional", "call", "async-start"})


class BufferCost(NamedTuple):
    """A value that is in memory at the peak of memory use."""

    name: str
    type: str
    bytes: int
    kind: str  # "argument", "constant", "result" or "temporary"
    file: str | None
    line: int | None


@dataclass(frozen=True, slots=True)
class _Live:
    """A value in memory, its bytes, and whether it is in the computation's result."""

    instruction: Instruction
    bytes: int
    is_result: bool


@dataclass(frozen=True, slots=True)
class _Peak:
    """The values in memory at the peak of memory use, and their bytes."""

    bytes: int
    live: list[_Live]


class MemoryStats(Protocol):
    """The sizes of a program's buffers as XLA assigned them, as in jaxlib's record."""

    argument_size_in_bytes: int
    output_size_in_bytes: int
    temp_size_in_bytes: int
    alias_size_in_bytes: int


def memory_of(program: object) -> MemoryStats | None:
    """Return XLA's record of a compiled program's memory; None for texts and other programs."""
    analysis = getattr(program, "memory_analysis", None)
    return cast("MemoryStats | None", analysis()) if callable(analysis) else None


def assigned_bytes(stats: MemoryStats) -> int:
    """Return the bytes of all buffers of a program: arguments, results and temporaries.

    Memory that arguments and results share by donation counts once.
    """
    return (
        stats.argument_size_in_bytes
        + stats.output_size_in_bytes
        + stats.temp_size_in_bytes
        - stats.alias_size_in_bytes
    )


def without_unassigned(buffers: list[BufferCost], stats: MemoryStats) -> list[BufferCost]:
    """Return the buffers without temporaries that XLA did not allocate: it shares their bytes."""
    temporary = stats.temp_size_in_bytes
    assigned: list[BufferCost] = []
    for buffer in buffers:
        if buffer.kind == "temporary":
            if buffer.bytes > temporary:
                continue
            temporary -= buffer.bytes
        assigned.append(buffer)
    return assigned


@once_per_module
def peaks(module: HloModule) -> tuple[list[BufferCost], int]:
    """Return the values live at the peak of memory use, the largest first, and the peak's bytes."""
    most = _running_peaks(module)[id(module.entry)]
    live = sorted(most.live, key=lambda value: -value.bytes)
    sized = (value for value in live if value.bytes)
    return [
        buffer_of(buffer.instruction, buffer.bytes, buffer.is_result) for buffer in sized
    ], most.bytes


def peak_bytes(module: HloModule) -> dict[int, int]:
    """Return the most bytes of each running computation's own values, by the computation's id."""
    return {key: peak.bytes for key, peak in _running_peaks(module).items()}


def _running_peaks(module: HloModule) -> dict[int, _Peak]:
    known: dict[int, _Peak] = {}
    running = {id(module.entry)}
    callees_first = module.callees_first()
    for computation in reversed(callees_first):
        for instruction in computation.instructions:
            if id(computation) in running and instruction.opcode in _RUNNING:
                callees = [c for listed in instruction.called.values() for c in listed]
                running.update(map(id, callees))
    for computation in callees_first:
        if id(computation) in running:
            known[id(computation)] = _peak(computation, known)
    return known


class Lifetimes:
    """The values of one computation, and when each is in memory.

    The order is that of the text, which is the schedule of a compiled program. A value is live from
    its definition to the last use of it or of a view of it; arguments are always live. The result
    of a loop or branch belongs to its caller.

    Attributes:
      order: the operations in order.
      always: the constants, and the arguments of an entry, which are live all the time.
      made: the operations that make other values.
      last: the position of the last use of each value, by the operation's id; for results, the
        position after the last operation.
      results: the ids of the operations that make the result.
    """

    def __init__(self, computation: Computation):
        order = self.order = computation.instructions
        position = self.position = {id(i): n for n, i in enumerate(order)}
        # By id of a value: the ids of the values that it is a view of.
        owners: dict[int, set[int]] = {}
        for instruction in computation.in_order():
            owned: set[int] = set()
            if instruction.opcode in _VIEWS or instruction.opcode.endswith("-done"):
                for operand in instruction.operands:
                    owned |= owners[id(operand)]
            elif continues(instruction):
                owned = owners[id(instruction.operands[0])]
            else:
                owned = {id(instruction)}
            owners[id(instruction)] = owned
        last = self.last = {id(i): n for n, i in enumerate(order)}
        for instruction in order:
            for operand in instruction.operands:
                for owner in owners[id(operand)]:
                    last[owner] = max(last[owner], position[id(instruction)])
        self.results = owners[id(computation.root)]
        for owner in self.results:
            last[owner] = len(order)
        is_entry = computation.is_entry
        self.always = [
            i for i in order if i.opcode == "constant" or (i.opcode == "parameter" and is_entry)
        ]
        self.made = [
            i
            for i in order
            if owners[id(i)] == {id(i)}
            and i.opcode not in ("parameter", "constant")
            and (is_entry or id(i) not in self.results)
        ]
        # By the id of an operation: the bytes of its results that are in buffers of arguments.
        self._donated = _donated_bytes(computation) if is_entry else {}
        # The ids of operands whose buffers are overwritten.
        self.reused: set[int] = set()
        overwriting: set[int] = set()
        for instruction in self.made:
            at = last[id(instruction)]
            if at == len(order) or id(order[at]) in overwriting or id(order[at]) in self._donated:
                continue
            if _overwrites(order[at], self.bytes_of(instruction)):
                overwriting.add(id(order[at]))
                self.reused.add(id(instruction))

    def bytes_of(self, instruction: Instruction) -> int:
        """Return the bytes of a value's buffers, without the buffers of donated arguments."""
        return made_bytes(instruction) - self._donated.get(id(instruction), 0)

    def changes(self) -> list[tuple[int, int, int]]:
        """Return what is allocated and freed, as (position, when, bytes), unsorted.

        `when` is 0 before an operation runs, 1 as it starts, and 2 after it.
        """
        changes: list[tuple[int, int, int]] = []
        for instruction in self.made:
            size = self.bytes_of(instruction)
            changes.append((self.position[id(instruction)], 1, size))
            is_reused = id(instruction) in self.reused
            changes.append((self.last[id(instruction)], 0 if is_reused else 2, -size))
        return changes

    def live_at(self, when: int) -> list[Instruction]:
        """Return the operations, except those of `always`, whose values are live at a position."""
        return [
            i
            for i in self.made
            if self.position[id(i)] <= when < self.last[id(i)]
            or (when == self.last[id(i)] and id(i) not in self.reused)
        ]


_ALIAS = re.compile(r"\{([\d,\s]*)\}:\s*\(\d")


def _donated_bytes(entry: Computation) -> dict[int, int]:
    """Return the bytes of results that are in the buffers of donated arguments.

    The keys are the ids of the operations that make the results; `input_output_alias` of the module
    lists them.
    """
    donated: dict[int, int] = {}
    for listed in _ALIAS.findall(entry.module.attributes.get("input_output_alias", "")):
        index = [int(n) for n in listed.split(",") if n.strip()]
        shape = entry.root.shape
        for n in index:
            if n >= len(shape.elements):
                break
            shape = shape.elements[n]
        else:
            maker = _maker(entry.root, index)
            if maker.opcode != "parameter":
                donated[id(maker)] = donated.get(id(maker), 0) + bytes_in_memory(shape)
    return donated


def _maker(value: Instruction, index: list[int]) -> Instruction:
    """Return the operation that makes a part of a value, below views of it."""
    while value.operands:
        if value.opcode == "tuple" and index and index[0] < len(value.operands):
            value, index = value.operands[index[0]], index[1:]
        elif value.opcode == "get-tuple-element":
            index = [*value.numbers("index"), *index]
            value = value.operands[0]
        elif value.opcode in _VIEWS or continues(value):
            value = value.operands[0]
        else:
            break
    return value


def running_callees(instruction: Instruction) -> list[Computation]:
    """Return the computations that run during an operation, with their own values."""
    if instruction.opcode not in _RUNNING:
        return []
    return [callee for listed in instruction.called.values() for callee in listed]


def _peak(computation: Computation, known: Mapping[int, _Peak]) -> _Peak:
    """Return the peak memory of a computation, without its caller's operands and results.

    Temporary values of a loop or branch are live while it runs.
    """
    lifetimes = Lifetimes(computation)
    inside: dict[int, _Peak] = {}
    for position, instruction in enumerate(lifetimes.order):
        peaks = [known[id(c)] for c in running_callees(instruction) if id(c) in known]
        if peaks:
            inside[position] = max(peaks, key=lambda peak: peak.bytes)
    changes = lifetimes.changes()
    for at, peak in inside.items():
        changes.append((at, 1, peak.bytes))
        changes.append((at, 2, -peak.bytes))
    most = now = sum(map(lifetimes.bytes_of, lifetimes.always))
    when = -1
    for at, _, size in sorted(changes):
        now += size
        if now > most:
            most, when = now, at
    is_entry = computation.is_entry
    live = [
        _Live(i, lifetimes.bytes_of(i), is_entry and id(i) in lifetimes.results)
        for i in (*lifetimes.always, *lifetimes.live_at(when))
    ]
    if when in inside:
        live += inside[when].live
    return _Peak(most, live)


def _overwrites(instruction: Instruction, size: int) -> bool:
    """Return whether an operation may write its result over an operand with a number of bytes."""
    opcode = instruction.opcode
    alike = opcode in ELEMENTWISE or opcode in _UPDATES
    if instruction.fused is not None:
        inside = instruction.fused.instructions
        root = instruction.fused.root
        while root.fused is not None:
            root = root.fused.root
        alike = root.opcode in _UPDATES or all(
            i.opcode in ELEMENTWISE or i.opcode in _IN_PLACE for i in inside
        )
    return alike and made_bytes(instruction) == size


# Opcodes whose first operand XLA updates in place if nothing else needs it.
_UPDATES = frozenset({"dynamic-update-slice", "scatter", "sort"})
_IN_PLACE = frozenset({"parameter", "constant", "bitcast", "dynamic-update-slice", "broadcast"})


def buffer_of(instruction: Instruction, size: int, is_result: bool) -> BufferCost:
    """Return the value that an operation makes as a buffer of `size` bytes, with kind and line."""
    kinds = {"parameter": "argument", "constant": "constant"}
    kind = kinds.get(instruction.opcode, "result" if is_result else "temporary")
    source = nearest_source(instruction)
    return BufferCost(
        instruction.name,
        instruction.shape.short_text(),
        size,
        kind,
        source.file if source else None,
        source.line if source else None,
    )
