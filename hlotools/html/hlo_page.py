"""An HLO module as the data of an HTML page, with the cost of each operation."""

from typing import Any

from hlotools.cost.collectives import Collectives
from hlotools.cost.costs import Costs, costs
from hlotools.cost.estimates import Estimates, estimates_of, trip_count
from hlotools.cost.memory_use import MemoryUse
from hlotools.cost.peak import MemoryStats
from hlotools.cost.rates import DeviceRates
from hlotools.html.page_model import Files, ProgramData, cut
from hlotools.ir.hlo import CALLING, HloModule, Instruction, nearest_source
from hlotools.ir.kernel_parameters import kernel_text, title_of

# Attributes that are shown only on request, as they would fill the line of each operation.
_HIDDEN = frozenset({"backend_config", "frontend_attributes", "origin", "original_value",
                     "statistics", "metadata"})  # fmt: skip
_LONGEST_KERNEL = 200_000
_CONTAINERS = frozenset({"while", "conditional", "call", "async-start"})


def hlo_data(module: HloModule, files: Files, kind: str = "hlo") -> ProgramData:
    """Return the operations of an HLO module as page data, in the order of the text."""
    data = ProgramData(kind, files)
    positions = {id(computation): n for n, computation in enumerate(module.computations)}
    numbers = instruction_numbers(module)
    for computation in module.computations:
        data.computation(computation.name, computation.is_entry)
        for instruction in computation.instructions:
            number = _add(data, instruction, numbers)
            if (kernel := instruction.kernel) is not None:
                shown = cut(kernel_text(kernel), _LONGEST_KERNEL)
                data.kernels[number] = title_of(instruction, kernel), shown
            if instruction.is_root:
                data.roots.append(number)
            called = [
                (key, positions[id(callee)])
                for key, callees in instruction.called.items()
                for callee in callees
                if id(callee) in positions
            ]
            if called:
                data.called[number] = called
    return data


def instruction_numbers(module: HloModule) -> dict[int, int]:
    """Return the number of each instruction by its `id()`."""
    return {id(instruction): n for n, instruction in enumerate(module.instructions())}


def _add(data: ProgramData, instruction: Instruction, numbers: dict[int, int]) -> int:
    inside = ""
    if instruction.opcode == "constant":
        inside = " ".join(instruction.literal[:6000].split())
    elif instruction.opcode == "parameter":
        inside = str(instruction.number)
    shown: list[str] = []
    hidden: list[str] = []
    for key, value in instruction.attributes.items():
        if key == "metadata" or key in CALLING:
            continue
        text = f"{key}={value}"
        (hidden if key in _HIDDEN else shown).append(text)
    stack = instruction.stack()
    if not stack:
        nearest = nearest_source(instruction)
        stack = [nearest] if nearest else []
    name = instruction.name
    if instruction.opcode == "parameter" and instruction.op_name:
        # XLA's name of an argument is the user's with characters replaced: params__w__.1.
        name = instruction.op_name
        hidden.insert(0, f"name={instruction.name}")
    return data.operation(
        name,
        instruction.opcode,
        instruction.shape.short_text(),
        [numbers[id(operand)] for operand in instruction.operands],
        stack=stack,
        path=instruction.op_name,
        inside=inside,
        extra=", ".join(shown),
        hidden="\n".join(hidden),
    )


def add_costs(
    data: ProgramData,
    module: HloModule,
    rates: DeviceRates | None,
    memory: MemoryStats | None = None,
) -> Costs:
    """Add the costs of each operation and of each source line to page data, and return them.

    Costs cover all runs of an operation. A loop or branch has the sum of its computations' costs.
    Operations inside a fusion have only arithmetic: the fusion moves the bytes.
    """
    report = costs(module, rates, memory)
    estimates = estimates_of(module)
    count = len(data.names)
    work: list[int | None] = [0] * count
    moved: list[int | None] = [0] * count
    seconds: list[float | None] = [None] * count
    numbers = instruction_numbers(module)
    by_name = {
        (computation.name, instruction.name): numbers[id(instruction)]
        for computation in module.computations
        for instruction in computation.instructions
    }
    for row in report.instructions:
        number = by_name[row.computation, row.name]
        if row.flops is None:
            work[number] = None
        else:
            work[number] = (work[number] or 0) + row.flops + (row.transcendentals or 0)
        moved[number] = (moved[number] or 0) + row.bytes
        if row.seconds is not None:
            seconds[number] = (seconds[number] or 0.0) + row.seconds
        if row.runs != 1:
            data.runs[number] = row.runs
    _inside_fusions(module, estimates, numbers, work)
    for values in (work, moved, seconds):
        _sum_containers(module, numbers, values)
    add_line_costs(data, report, (_rounded(seconds), work, moved))
    return report


# Buffers with a smaller share of the peak are not listed.
_MIN_SHARE = 1e-4


def add_memory(data: ProgramData, use: MemoryUse, module: HloModule) -> None:
    """Add the memory over time to page data: the bytes at each operation, and the buffers."""
    numbers = instruction_numbers(module)
    by_name = {(i.computation.name, i.name): numbers[id(i)] for i in module.instructions()}
    data.memory = {
        "moments": [by_name[moment.computation, moment.name] for moment in use.moments],
        "bytes": [moment.bytes for moment in use.moments],
        "buffers": [
            [by_name[live.computation, live.buffer.name], *live.buffer[2:4], live.first, live.last]
            for live in use.buffers
            if live.buffer.bytes >= _MIN_SHARE * use.peak_bytes
        ],
        "peak": use.peak,
        "assigned": use.assigned_bytes,
    }


def add_collectives(data: ProgramData, report: Collectives, module: HloModule) -> None:
    """Add the collectives of a program to page data, with the operations that run during each."""
    numbers = instruction_numbers(module)
    by_name = {i.name: numbers[id(i)] for i in module.instructions()}
    data.collectives = {
        "rows": [
            {
                "op": by_name[row.name],
                "along": row.along(),
                "bytes": row.total_bytes,
                "runs": row.runs,
                "seconds": row.seconds,
                "beside": [by_name[name] for name in row.beside],
                "besideSeconds": row.beside_seconds,
                "place": [data.files.number(row.file, [row.line or 0]), row.line or 0]
                if row.file
                else None,
            }
            for row in report.rows
        ],
        "axes": list(report.by_axes().items()),
    }


def add_line_costs(
    data: ProgramData, report: Costs, values: tuple[list[Any], list[Any], list[Any]] | None = None
) -> None:
    """Add seconds, flops and bytes of source lines to page data, and of operations if known."""
    seconds, work, moved = values or ([], [], [])
    total = report.total
    if total["seconds"] is not None:
        data.metric("seconds", "time bound", seconds, total["seconds"])
    data.metric("flops", "FLOPs", work, total["flops"] + total["transcendentals"])
    data.metric("bytes", "bytes", moved, total["bytes"])
    keys = [metric["key"] for metric in data.metrics]
    for line in report.lines:
        figures = {
            "seconds": line.seconds,
            "flops": line.flops + line.transcendentals,
            "bytes": line.bytes,
        }
        if line.file is not None:
            number = data.files.number(line.file, [line.line or 0])
            data.lines.append([number, line.line, [figures[key] for key in keys]])


def _inside_fusions(
    module: HloModule, estimates: Estimates, numbers: dict[int, int], work: list[int | None]
) -> None:
    """Add the arithmetic of operations inside fusions, times the number of the fusions' runs."""
    runs: dict[int, int] = {id(module.entry): 1}
    for computation in reversed(module.callees_first()):
        times = runs.get(id(computation), 0)
        for instruction in computation.instructions:
            inner = times
            if instruction.opcode == "while":
                inner = times * (trip_count(instruction) or 1)
            for callees in instruction.called.values():
                for callee in callees:
                    runs[id(callee)] = runs.get(id(callee), 0) + inner
    for instruction in module.instructions():
        fused = instruction.fused
        if fused is None:
            continue
        for inner in fused.instructions:
            inner_work = estimates.of(inner)
            work[numbers[id(inner)]] = runs.get(id(fused), 0) * (
                inner_work.flops + inner_work.transcendentals
            )


def _sum_containers(module: HloModule, numbers: dict[int, int], values: list[Any]) -> None:
    """Set the costs of loops, branches and calls to the sums over the computations they call."""
    callers: dict[int, int] = {}
    for instruction in module.instructions():
        if instruction.opcode in _CONTAINERS:
            for callees in instruction.called.values():
                for callee in callees:
                    callers[id(callee)] = callers.get(id(callee), 0) + 1
    sums: dict[int, Any] = {}
    for computation in module.callees_first():
        total: Any = None
        for instruction in computation.instructions:
            number = numbers[id(instruction)]
            if instruction.opcode in _CONTAINERS:
                parts = [
                    # A computation's costs are divided among its callers.
                    sums[id(callee)] / callers[id(callee)]
                    for callees in instruction.called.values()
                    for callee in callees
                    if sums.get(id(callee)) is not None
                ]
                values[number] = sum(parts) if parts else None
            if values[number] is not None:
                total = (total or 0) + values[number]
        sums[id(computation)] = total


def _rounded(values: list[Any]) -> list[Any]:
    return [None if value is None else float(f"{value:.4g}") for value in values]
