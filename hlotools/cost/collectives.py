"""The collectives of a program: their mesh axes, bytes and source lines."""

from typing import Any, NamedTuple

from hlotools.cost.costs import Step, hlo_module, running_steps, time_text
from hlotools.cost.estimates import estimates_of
from hlotools.cost.links import (
    device_count_of,
    groups_of,
    identity_of,
    is_collective,
    link_seconds,
    sent_bytes,
)
from hlotools.cost.mesh_groups import (
    Groups,
    MeshAxes,
    axes_of_groups,
    axes_of_pairs,
    mesh_of_text,
)
from hlotools.cost.overlaps import Schedule
from hlotools.cost.rates import DeviceRates
from hlotools.ir.hlo import HloModule, Instruction, Shape, nearest_source
from hlotools.source_lines import relative_line
from hlotools.terminal_text import is_visible

# Operations of a single device, including transfers to the host.
_TRANSFERS = ("send", "recv")


class Collective(NamedTuple):
    """An operation by which devices communicate.

    Attributes:
      name: the name of the instruction.
      opcode: its kind, such as "all-reduce"; a start and its done are one.
      axes: the mesh axes that it is along; None if there are none, or there is no mesh.
      groups: the groups of devices that communicate, or the pairs that send and receive.
      group_size: the number of devices in a group.
      type: the type of its result on each device.
      operand_bytes: the bytes of its operands on each device.
      moved_bytes: the bytes that each device sends, by the algorithm that sends the fewest.
      runs: the number of its runs; None in a loop whose trip count is not known.
      file, line, function: the user's line that causes it, where it is known.
      op_name: the path of the operation in the program, or the argument, that it is for.
      seconds: the least time of the links for all runs, None without the rates of a device.
      beside: the names of the operations that run at the same time: those between its start and its
        done in the schedule. Their time hides the collective's.
      beside_seconds: the least time of these operations, None without rates.
    """

    name: str
    opcode: str
    axes: tuple[str, ...] | None
    groups: Groups
    group_size: int
    type: str
    operand_bytes: int
    moved_bytes: int
    runs: int | None
    file: str | None
    line: int | None
    function: str | None
    op_name: str = ""
    seconds: float | None = None
    beside: tuple[str, ...] = ()
    beside_seconds: float | None = None

    @property
    def total_bytes(self) -> int:
        """The bytes that each device sends in all runs; one run is counted if they are unknown."""
        return self.moved_bytes * (self.runs or 1)

    def along(self) -> str:
        """Return the mesh axes as text, or the size of the groups."""
        if self.axes is None:
            return f"groups of {self.group_size}"
        return ", ".join(self.axes) or "no axis"


class Collectives:
    """The collectives of a program, returned by the function `collectives`."""

    __slots__ = ("mesh", "program", "rows")

    def __init__(self, program: str, mesh: MeshAxes | None, rows: list[Collective]):
        self.program = program
        self.mesh = mesh
        self.rows = rows

    @property
    def moved_bytes(self) -> int:
        """The total bytes that each device sends."""
        return sum(row.total_bytes for row in self.rows)

    def by_axes(self) -> dict[str, int]:
        """Return the bytes that each device sends along each combination of mesh axes."""
        totals: dict[str, int] = {}
        for row in self.rows:
            totals[row.along()] = totals.get(row.along(), 0) + row.total_bytes
        return totals

    def as_dict(self) -> dict[str, Any]:
        """Return the collectives as a dictionary for JSON."""
        return {
            "program": self.program,
            "mesh": dict(self.mesh.axes) if self.mesh else None,
            "moved_bytes": self.moved_bytes,
            "collectives": [row._asdict() for row in self.rows],
        }

    @is_visible
    def text(self) -> str:
        """Return a table of the collectives, the most bytes first, and sums by mesh axes."""
        if not self.rows:
            return "no collectives: the devices do not communicate"
        timed = any(row.seconds for row in self.rows)
        head = (
            "collective",
            "along",
            "bytes moved",
            "runs",
            "at least",
            "overlapped by",
            "type",
            "source",
        )
        table = [head]
        for row in self.rows:
            source = relative_line(row.file, row.line) if row.file else "(no line)"
            runs = "?" if row.runs is None else str(row.runs)
            cells = (f"{row.total_bytes:,}", runs, time_text(row.seconds), _beside_text(row))
            table.append((row.opcode, row.along(), *cells, row.type, source))
        if not timed:
            table = [(*line[:4], *line[5:]) for line in table]
        numeric = (2, 3, 4) if timed else (2, 3)
        widths = [max(len(line[i]) for line in table) for i in range(len(table[0]))]
        lines = [
            "  ".join(
                f"{cell:>{width}}" if i in numeric else f"{cell:<{width}}"
                for i, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in table
        ]
        sums = ", ".join(f"{moved:,} along {axes}" for axes, moved in self.by_axes().items())
        alone = sum(row.total_bytes for row in self.rows if not row.beside)
        lines.append(f"Each device sends {self.moved_bytes:,} bytes: {sums}.")
        lines.append(
            f"No other operation runs while {alone:,} of these bytes are sent."
            if alone
            else "Other operations overlap each collective."
        )
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.text()


def _beside_text(row: Collective) -> str:
    """Return the number of operations that run during a collective, and their time, as text."""
    if not row.beside:
        return "nothing"
    count = f"{len(row.beside)} operation{'s' if len(row.beside) > 1 else ''}"
    return f"{count}, {time_text(row.beside_seconds)}" if row.beside_seconds else count


def collectives(
    program: object, mesh: MeshAxes | str | None = None, rates: DeviceRates | None = None
) -> Collectives:
    """Return the operations of a compiled program by which its devices communicate.

    The bytes are those that each device sends, by the algorithms that send the fewest: in a group
    of n devices with operands of b bytes each, an all-reduce sends 2 b (n - 1) / n, an all-gather
    b (n - 1), a reduce-scatter and an all-to-all b (n - 1) / n, a permutation b. An asynchronous
    collective runs during the operations that are scheduled between its start and its done.

    Args:
      program: optimized HLO: text, the path of a file, a result of `parse`, or an object whose
        `as_text()` is HLO, such as a result of `compile` in jax or hlofront.
      mesh: the mesh whose axes are named, also as text such as "data=4,model=2"; without one, the
        sizes of groups are shown.
      rates: the rates of the devices, for lower bounds of times.

    Raises:
      HloSyntaxError: if the text is not HLO.
      TypeError: if the program is of another type.
      ValueError: if the text is not that of a mesh, or the program is for more devices.
    """
    mesh = mesh_of_text(mesh) if isinstance(mesh, str) else mesh
    module = hlo_module(program)
    estimates = estimates_of(module)
    pieces: dict[object, list[tuple[Instruction, Step]]] = {}
    for step in running_steps(module, estimates):
        for instruction in _operations(step.instruction):
            if instruction.opcode not in _TRANSFERS and is_collective(instruction.opcode):
                pieces.setdefault(identity_of(instruction), []).append((instruction, step))
    device_count = _device_count(module, mesh)
    schedule = Schedule(module, estimates, rates)
    rows: list[Collective] = []
    for members in pieces.values():
        instruction, step = members[0]
        beside = schedule.beside([(inside, piece.instruction) for inside, piece in members])
        row = _row(instruction, step, mesh, device_count)
        seconds = None
        if rates is not None and rates.links is not None:
            seconds = link_seconds(instruction, rates.links, device_count) * step.times
        rows.append(
            row._replace(
                seconds=seconds,
                beside=tuple(i.name for i in beside),
                beside_seconds=schedule.seconds(beside, step.times),
            )
        )
    rows.sort(key=lambda row: -row.total_bytes)
    return Collectives(module.name, mesh, rows)


def _operations(instruction: Instruction) -> list[Instruction]:
    """Return an instruction, or those in a fusion: TPU compilers put collectives into fusions."""
    return [instruction] if instruction.fused is None else instruction.fused.instructions


def _device_count(module: HloModule, mesh: MeshAxes | None) -> int:
    """Return the number of devices of a program, from its header."""
    count = device_count_of(module)
    if mesh is not None and mesh.size != count:
        raise ValueError(
            f"{module.name} is for {count} devices, and a mesh of {mesh} has {mesh.size}"
        )
    return count


def _row(
    instruction: Instruction, step: Step, mesh: MeshAxes | None, device_count: int
) -> Collective:
    opcode = instruction.opcode.removesuffix("-start")
    pairs = instruction.attributes.get("source_target_pairs")
    groups = groups_of(instruction, device_count)
    group_size = max(map(len, groups))
    operand_bytes = sum(operand.shape.bytes for operand in instruction.operands)
    axes: tuple[str, ...] | None = None
    if mesh is not None:
        axes = axes_of_groups(groups, mesh) if pairs is None else axes_of_pairs(groups, mesh)
    # Compilers put collectives without source lines into fusions that have them.
    source = nearest_source(instruction) or nearest_source(step.instruction)
    return Collective(
        instruction.name,
        opcode,
        axes,
        groups,
        group_size,
        _result(instruction).short_text(),
        operand_bytes,
        sent_bytes(opcode, operand_bytes, group_size),
        step.runs,
        source.file if source else None,
        source.line if source else None,
        source.function or None if source else None,
        instruction.op_name,
    )


def _result(instruction: Instruction) -> Shape:
    """Return the shape of a collective's result: that of a start is (operands, results, ...)."""
    shape = instruction.shape
    parts = shape.elements
    if instruction.opcode.endswith("-start") and shape.is_tuple and len(parts) > 1:
        return parts[1]
    return shape
