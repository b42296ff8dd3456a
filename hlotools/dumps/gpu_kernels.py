"""The kernels of a GPU's program in a folder that XLA dumped: registers, memory, occupancy."""

import os
import pathlib
import re
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from hlotools.cost.costs import InstructionCost, costs, line_text, time_text
from hlotools.cost.memory_use import size_text
from hlotools.cost.rates import DeviceRates
from hlotools.dumps.dump_files import file_beside, optimized_programs, parsed_file
from hlotools.dumps.kernel_report import KernelReport
from hlotools.dumps.kernels import MissingToolError, find_tool, kernel_word, output_of
from hlotools.dumps.ptx import (
    Launch,
    Multiprocessor,
    Occupancy,
    PtxasReport,
    PtxEntry,
    code_of,
    entries_of,
    launches_of,
    multiprocessor_of,
    occupancy_of,
    ptxas_reports,
)
from hlotools.ir.hlo import HloModule, Instruction, nearest_source
from hlotools.terminal_text import counted

FORMAT = "hlofront.gpu_kernels/1"
# The endings of the files with the launches, their operations, and the properties of the GPU.
_BESIDE = (".thunk_sequence.txt", ".thunk_metadata.txt", ".gpu_target_config.pbtxt")
_ARCHITECTURE = re.compile(r"^\.target (\w+)", re.MULTILINE)
# The heads of columns that count instructions of a class; others are in the JSON only.
_COLUMNS = {
    "tensor": "tensor", "float": "float", "special": "special", "integer": "integer",
    "global": "ld/st", "shared": "ld/st shared", "sync": "sync",
}  # fmt: skip
_MOST_OTHERS = 5


class GpuKernel(NamedTuple):
    """A kernel of a GPU's program, and the bound of the time of all its calls.

    Attributes:
      name: the name of the kernel.
      operations: all operations that it computes: XLA compiles equal ones once.
      calls: the runs of these operations; a loop of the program whose trips are not known counts
          as one.
      grid: the blocks of a launch in each direction, None if XLA dumped no launch.
      threads: the threads of a block in each direction, None if they are not known.
      registers: the registers of a thread, None without ptxas.
      shared: the bytes of shared memory of a block.
      spill_stores: the bytes that a thread's instructions store where registers lack, None
          without ptxas.
      spill_loads: the bytes that such instructions load.
      occupancy: the share of a multiprocessor's threads that are resident at a time, None if it
          is not known.
      occupancy_limit: what limits it: "registers", "shared memory", "threads" or "blocks".
      waves: the blocks of a launch by those that are resident on the GPU at a time; None if they
          are not known.
      instructions: the number of instructions of PTX in each class, each counted once.
      flops: the operations of all its calls, as in `costs`.
      bytes: the bytes that all its calls move to and from memory.
      seconds: the lower bound of the time of all calls, None if the device's rates are not known.
      limit: the resource that bounds it: "HBM", "cache" or "computing"; "" if it is not known.
      file: the file of the user's source line.
      line: the number of that line.
      path: the file of its PTX.
    """

    name: str
    operations: tuple[str, ...]
    calls: int
    grid: tuple[int, int, int] | None
    threads: tuple[int, int, int] | None
    registers: int | None
    shared: int
    spill_stores: int | None
    spill_loads: int | None
    occupancy: float | None
    occupancy_limit: str
    waves: float | None
    instructions: Mapping[str, int]
    flops: int
    bytes: int
    seconds: float | None
    limit: str
    file: str | None
    line: int | None
    path: pathlib.Path

    def as_dict(self) -> dict[str, Any]:
        """Return the kernel as a dictionary for JSON, keyed by field names; None is unknown."""
        return self._asdict() | {"path": str(self.path)}

    @property
    def spills(self) -> int | None:
        """The bytes that a thread's instructions store and load where registers lack."""
        if self.spill_stores is None or self.spill_loads is None:
            return None
        return self.spill_stores + self.spill_loads

    @property
    def counts(self) -> dict[str, int]:
        """The instructions of its PTX of all classes, each counted once."""
        return {"instructions": sum(self.instructions.values())}

    def code(self) -> list[tuple[str, str]]:
        """Return the lines of its PTX, read from its file, each with the class of its instruction.

        The class is "" for moves, declarations and labels.
        """
        return code_of(_read(self.path), self.name)


class GpuKernels(KernelReport[GpuKernel]):
    """The kernels of a GPU's program, those that take most of its time first."""

    __slots__ = ("others", "problem")

    def __init__(
        self,
        program: HloModule,
        rates: DeviceRates | None,
        kernels: list[GpuKernel],
        others: Sequence[InstructionCost] = (),
        problem: str = "",
    ):
        ordered = sorted(kernels, key=lambda row: (-(row.seconds or 0), -row.flops - row.bytes))
        super().__init__(program, rates, ordered)
        # The operations whose code XLA did not dump, such as those of libraries.
        self.others = list(others)
        # The reason why ptxas says nothing of some kernels, "" if it does.
        self.problem = problem

    def as_dict(self) -> dict[str, Any]:
        """Return the kernels as a dictionary for JSON, keyed by field names; None is unknown."""
        missing = {"problem": self.problem, "others": [row.name for row in self.others]}
        return {"format": FORMAT, **super().as_dict(), **missing}

    def notes(self, most: int | None = None) -> list[str]:
        """Return the lines below a table of at most `most` rows: totals, and what is missing."""
        hidden = 0 if most is None else len(self.kernels) - most
        notes = [f"and {hidden} more"] if hidden > 0 else []
        bound = f", bound {time_text(self.seconds)}" if self.seconds else ""
        calls = sum(row.calls for row in self.kernels)
        notes.append(
            f"total: {counted(len(self.kernels), 'kernel')}, {counted(calls, 'call')}{bound}"
        )
        if self.others:
            names = [f"{row.name} ({row.opcode})" for row in self.others[:_MOST_OTHERS]]
            more = len(self.others) - len(names)
            names += [f"{more} more"] if more else []
            seconds = sum(row.seconds or 0 for row in self.others)
            bound = f", bound {time_text(seconds)}" if seconds else ""
            notes.append(f"without code in the dumps: {', '.join(names)}{bound}")
        if self.problem:
            notes.append(self.problem)
        return notes

    def table(self, most: int | None = None) -> tuple[list[str], list[list[str]]]:
        """Return the heads of columns, and rows, each with its kernel and line at the end."""
        total = self.seconds
        timed = ["part", "bound", "limit"] if total else []
        head = [*timed, "grid", "threads", "registers", "spills", "shared", "occupancy", "waves"]
        head += [*_COLUMNS.values(), "HBM"]
        rows: list[list[str]] = []
        for row in self.kernels[:most]:
            part = [f"{(row.seconds or 0) / total:.1%}", time_text(row.seconds)] if total else []
            rows.append(
                [
                    *part,
                    *([row.limit or "?"] if total else []),
                    _sizes(row.grid),
                    _sizes(row.threads),
                    "?" if row.registers is None else str(row.registers),
                    "?" if row.spills is None else size_text(row.spills) if row.spills else "0",
                    size_text(row.shared) if row.shared else "0",
                    _occupancy_text(row),
                    "?" if row.waves is None else f"{row.waves:.2g}",
                    *(f"{row.instructions[kind]:,}" for kind in _COLUMNS),
                    size_text(row.bytes),
                    f"{row.name}, {counted(row.calls, 'call')}  {line_text(row.file, row.line)}",
                ]
            )
        return head, rows


def _sizes(sizes: Sequence[int] | None) -> str:
    """Return sizes in three directions as text, such as "8x2", without ones at the end."""
    if sizes is None:
        return "?"
    last = max((n for n, size in enumerate(sizes) if size > 1), default=0)
    return "x".join(map(str, sizes[: last + 1]))


def _occupancy_text(row: GpuKernel) -> str:
    if row.occupancy is None:
        return "?"
    return f"{row.occupancy:.0%}" + (f" {row.occupancy_limit}" if row.occupancy < 1 else "")


def has_gpu_kernels(folder: str | os.PathLike[str]) -> bool:
    """Return whether XLA dumped a GPU's program and the PTX of its kernels into a folder."""
    return any(files for _, files in _programs(folder))


def gpu_kernels(folder: str | os.PathLike[str], rates: DeviceRates | None = None) -> GpuKernels:
    """Return the kernels of the program with the most PTX in a folder that XLA dumped.

    The folder is that of `XLA_FLAGS=--xla_dump_to=FOLDER`. Registers, spills and occupancy are
    what ptxas says, which compiles the PTX again; the report has a note if it is not installed.

    Args:
      folder: the folder.
      rates: the rates of the device, None for no times.

    Raises:
      ValueError: if the folder has no PTX with its program.
    """
    programs = [each for each in _programs(folder) if each[1]]
    if not programs:
        raise ValueError(
            f"there is no program for a GPU with its PTX in {folder}: XLA writes them with "
            "--xla_dump_to=FOLDER in XLA_FLAGS"
        )
    path, files = max(programs, key=lambda each: sum(file.stat().st_size for file in each[1]))
    module = parsed_file(path)
    # Some files have only constants.
    entries = {file: found for file in files if (found := entries_of(_read(file)))}
    reports, problem = _assembled(list(entries))
    sequence, metadata, config = (_read(file_beside(path, ending)) for ending in _BESIDE)
    launches: dict[str, list[Launch]] = {}
    for launch in launches_of(sequence, metadata):
        launches.setdefault(launch.kernel, []).append(launch)
    has = multiprocessor_of(config)
    by_word = {kernel_word(each.name): each for each in module.instructions()}
    by_name = {each.name: each for each in module.instructions()}
    priced = {row.name: row for row in costs(module, rates).instructions}
    rows: list[GpuKernel] = []
    for file, listed in entries.items():
        for entry in listed:
            launched = launches.get(entry.name, [])
            names = dict.fromkeys(launch.operation for launch in launched)
            computed = [by_name[each] for each in names if each in by_name]
            if not computed and entry.name in by_word:
                computed = [by_word[entry.name]]
            report = reports.get(entry.name)
            rows.append(_kernel(entry, computed, launched[:1], report, has, priced, file))
    covered = {name for row in rows for name in row.operations}
    others = [row for row in priced.values() if row.name not in covered and _is_work(row)]
    return GpuKernels(module, rates, rows, others, problem)


def _is_work(row: InstructionCost) -> bool:
    return row.opcode not in ("copy-start", "copy-done") and bool(row.seconds or row.bytes)


def _kernel(
    entry: PtxEntry,
    operations: Sequence[Instruction],
    launched: Sequence[Launch],
    report: PtxasReport | None,
    has: Multiprocessor | None,
    priced: Mapping[str, InstructionCost],
    path: pathlib.Path,
) -> GpuKernel:
    launch = launched[0] if launched else None
    threads = launch.threads if launch is not None else entry.threads
    shared = report.shared if report is not None else entry.shared
    shared += launch.shared if launch is not None else 0
    occupancy: Occupancy | None = None
    if has is not None and report is not None and threads is not None:
        occupancy = occupancy_of(has, _product(threads), report.registers, shared)
    waves = None
    if has is not None and occupancy is not None and occupancy.blocks and launch is not None:
        waves = _product(launch.grid) / (occupancy.blocks * has.count)
    known = [priced[each.name] for each in operations if each.name in priced]
    seconds = [row.seconds for row in known if row.seconds is not None]
    slowest = max(known, key=lambda row: row.seconds or 0, default=None)
    source = next(filter(None, map(nearest_source, operations)), None)
    return GpuKernel(
        name=entry.name,
        operations=tuple(each.name for each in operations),
        calls=sum(row.runs or 1 for row in known) + len(operations) - len(known),
        grid=launch.grid if launch is not None else None,
        threads=threads,
        registers=report.registers if report is not None else None,
        shared=shared,
        spill_stores=report.spill_stores if report is not None else None,
        spill_loads=report.spill_loads if report is not None else None,
        occupancy=occupancy.share if occupancy is not None else None,
        occupancy_limit=occupancy.limit if occupancy is not None else "",
        waves=waves,
        instructions=entry.instructions,
        flops=sum(row.flops or 0 for row in known),
        bytes=sum(row.bytes for row in known),
        seconds=sum(seconds) if seconds else None,
        limit=(slowest.limit or "") if slowest is not None else "",
        file=source.file if source else None,
        line=source.line if source else None,
        path=path,
    )


def _product(sizes: tuple[int, int, int]) -> int:
    return sizes[0] * sizes[1] * sizes[2]


def _programs(
    folder: str | os.PathLike[str],
) -> list[tuple[pathlib.Path, list[pathlib.Path]]]:
    """Return the optimized programs in a folder, each with the files of its PTX."""
    files = sorted(pathlib.Path(folder).glob("*.ptx"))
    return [
        (path, [file for file in files if file.name.partition(f"{name}.")[1]])
        for name, path in (optimized_programs(folder) if files else {}).items()
    ]


def _assembled(files: Sequence[pathlib.Path]) -> tuple[dict[str, PtxasReport], str]:
    """Return what ptxas says of each kernel in files of PTX, and why it says nothing of others."""
    unknown = "registers, spills and occupancy are not known"
    try:
        ptxas = find_tool(("ptxas",), "pip install nvidia-cuda-nvcc")
    except MissingToolError as error:
        return {}, f"{error}; without it {unknown}, the rest is from PTX"

    def assembled(file: pathlib.Path) -> dict[str, PtxasReport] | str:
        architecture = _ARCHITECTURE.search(_read(file))
        target = [f"-arch={architecture[1]}"] if architecture else []
        out = os.path.join(folder, file.name + ".cubin")
        try:
            return ptxas_reports(output_of([ptxas, "-v", *target, str(file), "-o", out]))
        except RuntimeError as error:
            reason = " ".join(str(error).splitlines()[1:2])
            return f"ptxas refuses {file.name}, so its {unknown}: {reason}"

    reports: dict[str, PtxasReport] = {}
    problems: list[str] = []
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        for found in pool.map(assembled, files):
            if isinstance(found, str):
                problems.append(found)
            else:
                reports |= found
    more = f", and {len(problems) - 1} more files" if len(problems) > 1 else ""
    return reports, problems[0] + more if problems else ""


def _read(path: pathlib.Path | None) -> str:
    return "" if path is None else path.read_text(encoding="utf-8", errors="replace")
