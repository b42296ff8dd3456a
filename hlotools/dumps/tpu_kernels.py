"""The kernels of a TPU program in a folder that libtpu dumped: bundles, slots, memory, bounds."""

import os
import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from hlotools.cost.costs import InstructionCost, costs, line_text, time_text
from hlotools.cost.kernel_work import estimated_steps
from hlotools.cost.rates import DeviceRates
from hlotools.dumps.dump_files import parsed_file
from hlotools.dumps.kernel_report import KernelReport
from hlotools.dumps.llo import (
    Bundle,
    BundleProfile,
    SlotUse,
    allocated_bytes,
    bundles_of,
    duplicates_of,
    loops_of,
    profiles_of,
    slot_uses,
    times_run,
)
from hlotools.ir.hlo import HloModule, Instruction, nearest_source
from hlotools.ir.source_frames import Source
from hlotools.terminal_text import counted, is_visible

FORMAT = "hlofront.tpu_kernels/1"
BUNDLES = "final_bundles"
_ALLOCATIONS, _PROFILE = "post-delay-converter", "hlo-static-bundle-profile"
_DUPLICATES, _HLO = "deduplication-map", "hlo"
_USES = "final_hlo-static-per-bundle-utilization"
STAGES = (BUNDLES, _ALLOCATIONS, _PROFILE, _DUPLICATES, _USES)
# 1796000275706123535-fusion.1-72-final_bundles.txt: the time, the kernel, the stage; the program
# around the kernels has the name TLP, and its HLO has no number.
_FILE = re.compile(rf"(\d+)-(.+?)-(?:\d+-)?({'|'.join((*STAGES, _HLO))})\.txt")
_PROGRAM = "TLP"
_NAME = re.compile(r"HloModule ([^\s,]+)")
# A slot that is less full does not limit a kernel: instructions wait for each other.
_FULL = 0.5
STEPS_BY_ESTIMATE = (
    "the size of a grid is known only when the kernel runs (~): its steps are those that compute "
    "the flops of its CostEstimate"
)
# The columns of the table that are slots; another slot may be the fullest.
_COLUMNS = ("MXU", "XLU", "VALU", "EUP", "load", "store", "scalar")


class TpuKernel(NamedTuple):
    """A kernel of a TPU program, and the bound of the time of all its calls.

    Attributes:
      name: the name of the kernel, that of the first operation that it computes.
      operations: all operations that it computes: libtpu compiles equal ones once.
      calls: the runs of these operations; a loop of the program whose trips are not known counts
          as one.
      bundles: the VLIW instruction words of its code.
      trips: the trips of each loop in it, None if they are not constant.
      steps_by_estimate: the steps of a grid whose size is known only when the kernel runs, by the
          flops of its author's CostEstimate: the trips of its first loop; None for others.
      cycles: the cycles of one call: bundles times the trips of the loops around them, and waits
          for results. Waits for memory are not known before the program runs.
      slots: the share of each slot that the instructions take; empty if libtpu's profile lacks it.
      fills: the instructions that load spilled values.
      spills: the instructions that store values for which there were no registers.
      vmem: the bytes that it allocates in vector memory, in addition to operands and results.
      smem: the bytes that it allocates in scalar memory.
      flops: the operations of all its calls, without those that its branches skip, as in `costs`.
      bytes: the bytes that all its calls move to and from HBM.
      seconds: the bound of the time of all calls, None if the device's rates are not known: the
          greater of the times of their cycles and of the transfers of their bytes.
      limit: the cause of the bound: "HBM", the fullest slot, or "latency" if no slot is half full.
      compiler_cycles: libtpu's own estimate for all calls, None if the program has none.
      file: the file of the user's source line.
      line: the number of that line.
      path: the file of its bundles.
      uses_path: the file of the slots that each bundle uses, None without one.
    """

    name: str
    operations: tuple[str, ...]
    calls: int
    bundles: int
    trips: tuple[int | None, ...]
    cycles: int
    slots: Mapping[str, float]
    fills: int | None
    spills: int | None
    vmem: int
    smem: int
    flops: int
    bytes: int
    seconds: float | None
    limit: str
    compiler_cycles: int | None
    file: str | None
    line: int | None
    path: pathlib.Path
    uses_path: pathlib.Path | None = None
    steps_by_estimate: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the kernel as a dictionary for JSON, keyed by field names; None is unknown."""
        uses_path = None if self.uses_path is None else str(self.uses_path)
        return self._asdict() | {"path": str(self.path), "uses_path": uses_path}

    @property
    def counts(self) -> dict[str, int]:
        """The bundles of its code, and the cycles of all its calls."""
        return {"bundles": self.bundles, "cycles": self.cycles * self.calls}

    def bundle_list(self) -> list[Bundle]:
        """Return the bundles, read from their file."""
        return bundles_of(_read(self.path))

    def slot_uses(self) -> list[SlotUse]:
        """Return the share of each slot that each bundle takes, none if it was not dumped."""
        return slot_uses(_read(self.uses_path))


class TpuKernels(KernelReport[TpuKernel]):
    """The kernels of a TPU program, those that take most of its time first."""

    __slots__ = ("bundles", "others")

    def __init__(
        self,
        program: HloModule,
        rates: DeviceRates | None,
        kernels: list[TpuKernel],
        bundles: int,
        others: Sequence[str] = (),
    ):
        ordered = sorted(kernels, key=lambda row: (-(row.seconds or 0), -row.cycles))
        super().__init__(program, rates, ordered)
        # The bundles of the program's code around its kernels.
        self.bundles = bundles
        # The names of other programs with kernels in the folder.
        self.others = list(others)

    def as_dict(self) -> dict[str, Any]:
        """Return the kernels as a dictionary for JSON, keyed by field names; None is unknown."""
        around = {"bundles": self.bundles, "others": self.others}
        return {"format": FORMAT, **super().as_dict(), **around}

    @is_visible
    def code(self, name: str) -> str:
        """Return the bundles of a kernel below its lines of source.

        Each bundle has its address, the times that it runs in a call, its instructions, and in
        hand-written kernels its lines of source.

        Args:
          name: the name of the kernel, or of an operation that it computes.

        Raises:
          KeyError: if there is no such kernel.
        """
        for row in self.kernels:
            if name == row.name or name in row.operations:
                break
        else:
            names = ", ".join(row.name for row in self.kernels) or "the program has none"
            raise KeyError(f"there is no kernel {name!r}: {names}")
        bundles = row.bundle_list()
        times = times_run(bundles, loops_of(bundles))
        width = len(str(max(times, default=1)))
        return "\n".join(
            [
                f"{row.name}: {counted(row.calls, 'call')} of {row.bundles:,} bundles, "
                f"{row.cycles:,} cycles",
                *(
                    f"  {line_text(file, line)}  {', '.join(opcodes)}"
                    for (file, line), opcodes in self.fused_lines(row).items()
                ),
                *(
                    f"{bundle.address:#7x} x{count:<{width}}  {' ;; '.join(bundle.instructions)}"
                    + "".join(f"  {line_text(*place)}" for place in bundle.places)
                    for bundle, count in zip(bundles, times, strict=True)
                ),
            ]
        )

    def table(self, most: int | None = None) -> tuple[list[str], list[list[str]]]:
        """Return the heads of columns, and rows, each with its kernel and line at the end."""
        total = self.seconds
        timed = ["part", "bound"] if total else []
        head = [*timed, "limit", "bundles", "trips", "cycles", *_COLUMNS, "fills", "spills"]
        head += ["VMEM", "SMEM", "HBM"]
        rows: list[list[str]] = []
        for row in self.kernels[:most]:
            part = [f"{(row.seconds or 0) / total:.1%}", time_text(row.seconds)] if total else []
            slots = [f"{row.slots[slot]:.0%}" if row.slots else "?" for slot in _COLUMNS]
            rows.append(
                [
                    *part,
                    row.limit,
                    f"{row.bundles:,}",
                    _trips_text(row),
                    f"{row.cycles:,}",
                    *slots,
                    "?" if row.fills is None else f"{row.fills:,}",
                    "?" if row.spills is None else f"{row.spills:,}",
                    _size(row.vmem),
                    _size(row.smem),
                    _size(row.bytes),
                    f"{row.name}, {counted(row.calls, 'call')}  {line_text(row.file, row.line)}",
                ]
            )
        return head, rows

    def notes(self, most: int | None = None) -> list[str]:
        """Return the lines below a table of at most `most` rows: totals, and omitted kernels."""
        hidden = 0 if most is None else len(self.kernels) - most
        notes = [f"and {hidden} more"] if hidden > 0 else []
        cycles = sum(row.cycles * row.calls for row in self.kernels)
        bound = f", bound {time_text(self.seconds)}" if self.seconds else ""
        notes.append(
            f"total: {sum(row.bundles for row in self.kernels):,} bundles of "
            f"{counted(len(self.kernels), 'kernel')}, {cycles:,} cycles of all calls{bound}; "
            f"{self.bundles:,} bundles around them"
        )
        estimated = [row for row in self.kernels if row.compiler_cycles is not None]
        if estimated:
            theirs = sum(row.compiler_cycles or 0 for row in estimated)
            ours = sum(row.cycles * row.calls for row in estimated)
            notes.append(
                f"libtpu's estimate of {len(estimated)} of them: {theirs:,} cycles, "
                f"where their bundles take {ours:,}"
            )
        if any(trips is None for row in self.kernels for trips in row.trips):
            notes.append("a loop whose trips are not constant (?) counts as one trip")
        if any(row.steps_by_estimate is not None for row in self.kernels):
            notes.append(STEPS_BY_ESTIMATE)
        if self.others:
            notes.append(f"the folder has smaller programs as well: {', '.join(self.others)}")
        return notes


class _Program(NamedTuple):
    """The files of one program: its own by stage, and its kernels' by name."""

    files: dict[str, pathlib.Path]
    kernels: dict[str, dict[str, pathlib.Path]]

    @property
    def size(self) -> int:
        """The bytes of the bundles, by which the main program of a folder is chosen."""
        return sum(files[BUNDLES].stat().st_size for files in self.kernels.values())


def has_tpu_kernels(folder: str | os.PathLike[str]) -> bool:
    """Return whether libtpu dumped kernels into a folder, with `--xla_jf_dump_to`."""
    return any(match[3] == BUNDLES for match, _ in _files(folder))


def kernel_counts(folder: str | os.PathLike[str]) -> dict[str, int]:
    """Return the number of kernels that libtpu dumped into a folder, by the name of the program."""
    found = [each for each in _programs(folder) if each.kernels]
    return {_NAME.findall(_read(each.files[_HLO]))[0]: len(each.kernels) for each in found}


def tpu_kernels(folder: str | os.PathLike[str], rates: DeviceRates | None = None) -> TpuKernels:
    """Return the kernels of the largest program in a folder that libtpu dumped.

    The folder is that of the flags `--xla_jf_dump_to=FOLDER --xla_jf_dump_llo_text=true` in the
    variable LIBTPU_INIT_ARGS, which libtpu reads when it is loaded.

    Args:
      folder: the folder.
      rates: the rates of the device, None for no times.

    Raises:
      ValueError: if no kernels were dumped into the folder.
    """
    found = [each for each in _programs(folder) if each.kernels]
    if not found:
        raise ValueError(
            f"there are no dumps of a TPU program's kernels in {folder}: libtpu writes them with "
            "--xla_jf_dump_to=FOLDER --xla_jf_dump_llo_text=true in LIBTPU_INIT_ARGS"
        )
    main = max(found, key=lambda each: each.size)
    module = parsed_file(main.files[_HLO])
    priced = {row.name: row for row in costs(module, rates).instructions}
    profiles = profiles_of(_read(main.files.get(_PROFILE)))
    duplicates = duplicates_of(_read(main.files.get(_DUPLICATES)))
    operations = _operations(module)
    callers = _callers(module)
    rows = [
        _kernel(
            [
                operations[each]
                for each in dict.fromkeys([name, *duplicates.get(name, [])])
                if each in operations
            ],
            files,
            priced,
            profiles,
            callers,
            rates,
        )
        for name, files in main.kernels.items()
        if name in operations
    ]
    around = len(bundles_of(_read(main.files.get(BUNDLES))))
    others = [_NAME.findall(_read(each.files[_HLO]))[0] for each in found if each is not main]
    return TpuKernels(module, rates, rows, around, others)


def _kernel(
    operations: list[Instruction],
    files: Mapping[str, pathlib.Path],
    priced: Mapping[str, InstructionCost],
    profiles: Mapping[str, BundleProfile],
    callers: Mapping[int, Instruction],
    rates: DeviceRates | None,
) -> TpuKernel:
    profile = profiles.get(operations[0].name)
    bundles = bundles_of(_read(files[BUNDLES]))
    loops = loops_of(bundles)
    steps = None
    if loops and loops[0].trips is None and (steps := estimated_steps(operations[0])) is not None:
        loops[0] = loops[0]._replace(trips=steps)
    runs = sum(times_run(bundles, loops))
    if profile is not None and bundles:
        # The profile also counts waits, in one trip of each loop.
        runs = round(runs * max(profile.cycles / len(bundles), 1))
    known = [priced[each.name] for each in operations if each.name in priced]
    calls = sum(row.runs or 1 for row in known) + len(operations) - len(known)
    moved = sum(row.bytes for row in known)
    slots = profile.slots if profile is not None else {}
    seconds, limit = _bound(runs * calls, moved, slots, rates)
    estimated = profile.estimated_cycles if profile is not None else None
    used = allocated_bytes(_read(files.get(_ALLOCATIONS)))
    source = _source_of(operations[0], callers)
    return TpuKernel(
        name=operations[0].name,
        operations=tuple(each.name for each in operations),
        calls=calls,
        bundles=len(bundles),
        trips=tuple(loop.trips for loop in loops),
        cycles=runs,
        slots=slots,
        fills=profile.count("FILL") if profile else None,
        spills=profile.count("SPILL") if profile else None,
        vmem=used.get("vmem", 0),
        smem=used.get("smem", 0),
        flops=sum(row.flops or 0 for row in known),
        bytes=moved,
        seconds=seconds,
        limit=limit,
        compiler_cycles=estimated * calls if estimated else None,
        file=source.file if source else None,
        line=source.line if source else None,
        path=files[BUNDLES],
        uses_path=files.get(_USES),
        steps_by_estimate=steps,
    )


def _source_of(operation: Instruction, callers: Mapping[int, Instruction]) -> Source | None:
    """Return the source line of an operation, else that of the loop or call around it."""
    inner: Instruction | None = operation
    while inner is not None:
        if (source := nearest_source(inner)) is not None:
            return source
        inner = callers.get(id(inner.computation))
    return None


def _callers(module: HloModule) -> dict[int, Instruction]:
    """Return the operation that calls a computation, by the computation's id."""
    return {
        id(callee): instruction
        for instruction in module.instructions()
        for callees in instruction.called.values()
        for callee in callees
    }


def _bound(
    cycles: int, moved: int, slots: Mapping[str, float], rates: DeviceRates | None
) -> tuple[float | None, str]:
    """Return the bound of all calls of a kernel, None if it is not known, and its limit."""
    fullest = max(slots, key=lambda slot: slots[slot], default="?")
    limit = fullest if slots.get(fullest, 1.0) >= _FULL else "latency"
    if rates is None or rates.clock is None or rates.bandwidth is None:
        return None, limit
    computing, memory = cycles / rates.clock, moved / rates.bandwidth
    return max(computing, memory), "HBM" if memory > computing else limit


def _programs(folder: str | os.PathLike[str]) -> list[_Program]:
    """Return the programs in a folder, in the order in which they were compiled.

    A kernel's file does not name its program, which is the last one that began before it and has an
    operation with its name.
    """
    programs: dict[int, _Program] = {}
    kernels: dict[tuple[int, str], dict[str, pathlib.Path]] = {}
    for match, path in _files(folder):
        number, name, stage = int(match[1]), match[2], match[3]
        if name == _PROGRAM:
            programs.setdefault(number, _Program({}, {})).files[stage] = path
        elif not name.startswith("<"):
            kernels.setdefault((number, name), {})[stage] = path
    programs = {number: each for number, each in programs.items() if _HLO in each.files}
    texts = {number: _read(each.files[_HLO]) for number, each in programs.items()}
    for (number, name), files in sorted(kernels.items()):
        for began in sorted(programs, reverse=True):
            if began <= number and f"%{name} = " in texts[began] and BUNDLES in files:
                programs[began].kernels[name] = files
                break
    return [programs[number] for number in sorted(programs)]


def _files(folder: str | os.PathLike[str]) -> list[tuple[re.Match[str], pathlib.Path]]:
    """Return the files of a folder that are dumps of kernels or of programs around them."""
    return [
        (match, path)
        for path in sorted(pathlib.Path(folder).iterdir())
        if (match := _FILE.fullmatch(path.name))
    ]


def _operations(module: HloModule) -> dict[str, Instruction]:
    return {instruction.name: instruction for instruction in module.instructions()}


def _read(path: pathlib.Path | None) -> str:
    return "" if path is None else path.read_text(encoding="utf-8", errors="replace")


def _trips_text(row: TpuKernel) -> str:
    texts = ["?" if trips is None else str(trips) for trips in row.trips]
    if row.steps_by_estimate is not None:
        texts[0] = f"~{texts[0]}"
    return ",".join(texts) or "-"


def _size(count: int) -> str:
    """Return a number of bytes as text, such as "64 KiB"."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} B" if count else "0"
