"""The peak of a program's memory use: the values that are live at it, from the schedule."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol, cast

from hlotools.cost.estimates import ELEMENTWISE
from hlotools.cost.traffic import made_bytes
from hlotools.ir.hlo import Computation, HloModule, Instruction, nearest_source

# Opcodes whose results are views of other values and have no buffers.
_VIEWS = frozenset({"bitcast", "tuple", "get-tuple-element", "while", "opt-barrier", "copy-done",
                    "async-done", "all-reduce-done", "all-gather-done", "collective-permute-done",
                    "add-dependency", "domain"})  # fmt: skip
# Opcodes of whose called computations only one is in memory at a time.
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
    """A value in memory, and whether it is in the computation's result."""

    instruction: Instruction
    is_result: bool


@dataclass(frozen=True, slots=True)
class _Peak:
    """The values in memory at the peak of memory use, and their bytes."""

    bytes: int
    live: list[_Live]


class MemoryStats(Protocol):
    """The sizes of a program's buffers as XLA assigned them: a record of jaxlib has these."""

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

    What arguments and results share, by donation, counts once.
    """
    return (
        stats.argument_size_in_bytes
        + stats.output_size_in_bytes
        + stats.temp_size_in_bytes
        - stats.alias_size_in_bytes
    )


def without_unassigned(buffers: list[BufferCost], stats: MemoryStats) -> list[BufferCost]:
    """Return the buffers without temporaries that XLA has no memory for: it shares their bytes."""
    temporary = stats.temp_size_in_bytes
    assigned: list[BufferCost] = []
    for buffer in buffers:
        if buffer.kind == "temporary":
            if buffer.bytes > temporary:
                continue
            temporary -= buffer.bytes
        assigned.append(buffer)
    return assigned


def peaks(module: HloModule) -> tuple[list[BufferCost], int]:
    """Return the values live at the peak of memory use, the largest first, and the peak's bytes."""
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
    live = sorted(most.live, key=lambda value: -made_bytes(value.instruction))
    return [_buffer(value) for value in live if made_bytes(value.instruction)], most.bytes


def _peak(computation: Computation, known: Mapping[int, _Peak]) -> _Peak:
    """Return the peak memory of a computation, without its caller's operands and results.

    The order is that of the text, which is the schedule of a compiled program. A value is live from
    its definition to the last use of it or of a view of it; arguments are always live. Temporary
    values of a loop or branch are live while it runs; its results belong to its caller.
    """
    order = computation.instructions
    position = {id(i): n for n, i in enumerate(order)}
    # By id of a value: the ids of the values that it is a view of.
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
    # The ids of operands whose buffers are overwritten, and of the operations that do so.
    reused: set[int] = set()
    for instruction in made:
        size = made_bytes(instruction)
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
    held = sum(made_bytes(i) for i in always)
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


# Opcodes whose first operand XLA updates in place where nothing else needs it.
_UPDATES = frozenset({"dynamic-update-slice", "scatter", "sort"})
_IN_PLACE = frozenset({"parameter", "constant", "bitcast", "dynamic-update-slice", "broadcast"})


def _buffer(value: _Live) -> BufferCost:
    instruction = value.instruction
    kinds = {"parameter": "argument", "constant": "constant"}
    kind = kinds.get(instruction.opcode, "result" if value.is_result else "temporary")
    source = nearest_source(instruction)
    return BufferCost(
        instruction.name,
        instruction.shape.short_text(),
        made_bytes(instruction),
        kind,
        source.file if source else None,
        source.line if source else None,
    )
