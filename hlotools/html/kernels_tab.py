"""The kernels of a program on its page: their table, code and lines, and of TPUs the slots."""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from hlotools.dumps.gpu_kernels import GpuKernel, GpuKernels
from hlotools.dumps.llo import SLOTS, Loop, SlotUse, loops_of, times_run
from hlotools.dumps.ptx import CLASSES
from hlotools.dumps.tpu_kernels import TpuKernel, TpuKernels
from hlotools.html.page_model import ProgramData, ValueTable

# Of a kernel with more bundles, those that run most often are listed; the charts are of all.
_MOST_BUNDLES = 3000
_MOST_CHARACTERS = 2_000_000
_COLUMNS = 600
# Shares are written as letters, "a" for none.
_FULL = 25
Place = tuple[str, int]


class KernelLine(NamedTuple):
    """A source line of a kernel, and the bundles that come from it.

    `work` are the operations of the line that are fused into the kernel, `bundles` the number of
    its bundles, which libtpu writes for hand-written kernels, and `columns` the chart's columns
    with any of them.
    """

    place: Place
    work: str
    bundles: int
    columns: list[int]


class KernelListing(NamedTuple):
    """A kernel as shown on a page: its row of the table, chart, lines, and listed bundles.

    `code` and `places` are the instructions and source lines of the bundles from the first listed
    one on.
    """

    row: TpuKernel
    lines: list[KernelLine]
    loops: list[Loop]
    uses: list[SlotUse]
    first: int
    code: list[str]
    places: list[tuple[Place, ...]]


class GpuListing(NamedTuple):
    """A kernel of a GPU as shown on a page: its row of the table, lines, and PTX.

    `lines` are the source lines of the operations fused into it, with their opcodes; `code` has
    lines of PTX with the class of each instruction. It is empty if the page has no room for it.
    """

    row: GpuKernel
    lines: dict[Place, list[str]]
    code: list[tuple[str, str]]


class KernelTab(NamedTuple):
    """The kernels of a program as shown on a page, without the files that they are read from.

    They are all of a TPU, or all of a GPU.
    """

    seconds: float | None
    notes: list[str]
    kernels: list[KernelListing] | list[GpuListing]


def kernel_tab(report: TpuKernels | GpuKernels) -> KernelTab:
    """Return the kernels of a program as shown on a page, read from the files of their dumps.

    The code of the first kernels, which take most of the time, is listed up to a total length, and
    at most 3,000 bundles per kernel. The charts are of all bundles.
    """
    left = _MOST_CHARACTERS
    if isinstance(report, GpuKernels):
        gpu: list[GpuListing] = []
        for row in report.kernels:
            code = row.code()
            length = sum(len(line) for line, _ in code)
            gpu.append(GpuListing(row, report.fused_lines(row), code if length <= left else []))
            left -= length if length <= left else 0
        return KernelTab(report.seconds, report.notes(), gpu)
    kernels: list[KernelListing] = []
    for row in report.kernels:
        listing = _listing(row, report.fused_lines(row), left)
        left -= sum(map(len, listing.code))
        kernels.append(listing)
    return KernelTab(report.seconds, report.notes(), kernels)


def add_kernels(data: ProgramData, tab: KernelTab) -> None:
    """Add the kernels of a program to its page data, unless there are none."""
    if not tab.kernels:
        return
    numbers = {name: number for number, name in reversed(list(enumerate(data.names)))}

    def numbered(place: Place) -> list[int]:
        return [data.files.number(place[0], [place[1]]), place[1]]

    def common(row: TpuKernel | GpuKernel) -> dict[str, Any]:
        return {
            "name": row.name,
            "operations": len(row.operations),
            "calls": row.calls,
            "bytes": row.bytes,
            "seconds": row.seconds,
            "limit": row.limit,
            "op": next((numbers[each] for each in row.operations if each in numbers), None),
            "place": numbered((row.file, row.line or 0)) if row.file else None,
        }

    rows: list[dict[str, Any]] = []
    data.compiled_kernels = {"seconds": tab.seconds, "notes": tab.notes, "rows": rows}
    places = ValueTable()
    for listing in tab.kernels:
        if isinstance(listing, GpuListing):
            rows.append(common(listing.row) | _gpu_row(listing, numbered))
        else:
            rows.append(common(listing.row) | _tpu_row(listing, numbered, places))
    if isinstance(tab.kernels[0], GpuListing):
        data.compiled_kernels |= {"kind": "gpu", "classes": CLASSES}
    else:
        slots = [slot for slot in SLOTS if slot != "VPOP"]
        data.compiled_kernels |= {"kind": "tpu", "slots": slots, "places": places.values}


def _gpu_row(listing: GpuListing, numbered: Callable[[Place], list[int]]) -> dict[str, Any]:
    row = listing.row
    return {
        "grid": row.grid,
        "threads": row.threads,
        "registers": row.registers,
        "spills": row.spills,
        "shared": row.shared,
        "occupancy": row.occupancy,
        "occupancyLimit": row.occupancy_limit,
        "waves": row.waves,
        "instructions": [row.instructions[kind] for kind in CLASSES],
        "lines": [[*numbered(place), ", ".join(work)] for place, work in listing.lines.items()],
        "code": [line for line, _ in listing.code],
        "kinds": [CLASSES.index(kind) if kind else -1 for _, kind in listing.code],
    }


def _tpu_row(
    listing: KernelListing, numbered: Callable[[Place], list[int]], places: ValueTable
) -> dict[str, Any]:
    row = listing.row
    return {
        "bundles": row.bundles,
        "cycles": row.cycles,
        "slots": {slot: round(share, 3) for slot, share in row.slots.items()},
        "fills": row.fills,
        "spills": row.spills,
        "vmem": row.vmem,
        "smem": row.smem,
        "lines": [
            [*numbered(line.place), line.work, line.bundles, line.columns] for line in listing.lines
        ],
        "loops": [list(loop) for loop in listing.loops],
        "uses": {use.slot: _letters(use.shares) for use in listing.uses},
        "first": listing.first,
        "code": listing.code,
        "from": [
            places.number([n for place in each for n in numbered(place)]) for each in listing.places
        ],
    }


def _listing(row: TpuKernel, fused: Mapping[Place, Sequence[str]], left: int) -> KernelListing:
    bundles = row.bundle_list()
    loops = loops_of(bundles)
    count = len(bundles)
    at: dict[Place, list[int]] = {}
    for number, bundle in enumerate(bundles):
        for place in bundle.places:
            at.setdefault(place, []).append(number)
    lines = [
        KernelLine(
            place,
            ", ".join(fused.get(place, ())),
            len(numbers := at.get(place, [])),
            list(dict.fromkeys(number * min(count, _COLUMNS) // count for number in numbers)),
        )
        for place in {**fused, **at}
    ]
    first, end = _most_run(times_run(bundles, loops))
    code = [" ;; ".join(bundle.instructions) for bundle in bundles[first:end]]
    if sum(map(len, code)) > left:
        code, end = [], first
    places = [bundle.places for bundle in bundles[first:end]] if at else []
    return KernelListing(row, lines, loops, row.slot_uses(), first, code, places)


def _most_run(times: Sequence[int]) -> tuple[int, int]:
    """Return the range of the successive bundles that run most often, up to the maximum number."""
    width = min(len(times), _MOST_BUNDLES)
    before = [0, *accumulate(times)]
    first = max(
        range(len(times) - width + 1), key=lambda n: (before[n + width] - before[n], -n), default=0
    )
    return first, first + width


def _letters(shares: Sequence[float]) -> str:
    """Return the mean share of a slot in each column of the chart as a letter, "a" to "z"."""
    count = len(shares)
    columns = min(count, _COLUMNS)
    ends = [column * count // columns for column in range(columns + 1)]
    means = [sum(shares[n:m]) / (m - n) for n, m in pairwise(ends)]
    return "".join(chr(ord("a") + min(math.ceil(_FULL * mean), _FULL)) for mean in means)
