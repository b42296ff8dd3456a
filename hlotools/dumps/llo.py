"""The texts that libtpu dumps of a TPU kernel: its bundles, loops, allocations, use of slots."""

import operator
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

# "0x10 LB: >> { ... }": an address, what begins there, and a ">" for each loop around the bundle.
_BUNDLE = re.compile(r"^ *(?:0x)?([0-9a-f]+) +([A-Z]{2})? *: (>*) ?\{", re.MULTILINE)
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
# The text that --xla_mosaic_enable_llo_source_annotations adds to instructions of Mosaic's kernels.
_LOCATION = re.compile(r" /\* loc\(.*?\) \*/")
_PLACE = re.compile(r'"([^"\n]+)":(\d{1,9}):\d')
_REGION = re.compile(r"Start region (\d+)\b")
_BRANCH = re.compile(r"sbr\.rel \((!?)(%\w+)\) target = \$region(\d+)\b")
_COMPARISON = re.compile(r"scmp\.(ge|gt|lt|le)\.s32\.totalorder (%\w+), (-?\d+)\b")
_COMPARE = {"ge": operator.ge, "gt": operator.gt, "lt": operator.lt, "le": operator.le}
_JOINED = re.compile(r"(pneg|pnand|pand|por) (%\w+(?:, %\w+)?)")
_INCREMENT = re.compile(r"sadd\.s32 (?:(\d+), (%\w+)|(%\w+), (\d+))")
_PHI = re.compile(r"sphi (%\w+), (%\w+)")
_CONSTANT = re.compile(r"smov\.u32 (\d+)")
# The number of bundles after a branch that run before it is taken.
_DELAY_SLOTS = 4
_COPY = re.compile(r"smov\.u32 (%\w+)(?! *,)")
_FILL = re.compile(r"sld (\[smem:\[#allocation\d+_spill\]\])")
_MAX_COPIES = 8
# A pipelined loop loads for its first steps in earlier trips, and may store the results of its last
# steps in later trips.
_PIPELINED = "iteration index, stage"
_ALLOCATION = re.compile(
    r"^ *#allocation\S* \[.*?space=(\w+), size = (\w+), offset = (\w+), (\w+)", re.MULTILINE
)
_PROFILED = re.compile(r"^HLO: (?:%(\S+) = )?")
_ESTIMATE = re.compile(r'"estimated_cycles":"?(\d{1,18})')
_COUNTER = re.compile(r"^ - (.+): \((\d+)/(\d+)\)")
# The names of slots, and the counters of libtpu's profile that fill them; for an MXU there is one
# for the products of each format, which share it.
SLOTS = ("MXU", "XLU", "VALU", "EUP", "VPOP", "load", "store", "scalar")
_SLOT_OF = (
    ("MXU", re.compile(r"(MXU_\d+ mat(?:mul|push)).*")),
    ("XLU", re.compile(r"(XLU_\d+ all)")),
    ("VALU", re.compile("(VECTOR_ALU)")),
    ("EUP", re.compile("(VECTOR_EUP)")),
    ("VPOP", re.compile("(VECTOR_POP)")),
    ("load", re.compile("(VECTOR_LOAD_AND_MISC)")),
    ("store", re.compile("(VECTOR_STORE(?:_AND_MISC)?)")),
    ("scalar", re.compile("(SCALAR_ALU)")),
)


class Bundle(NamedTuple):
    """A VLIW instruction word: its address, the loops around it, and its text with comments.

    `places` are the files and lines that its instructions come from, if libtpu writes them.
    """

    address: int
    depth: int
    is_loop_header: bool
    text: str
    places: tuple[tuple[str, int], ...] = ()

    @property
    def instructions(self) -> list[str]:
        """The instructions, without comments and braces."""
        code = _COMMENT.sub("", self.text).strip().removesuffix("}")
        return [" ".join(each.split()) for each in code.split(";;") if each.strip()]


class Loop(NamedTuple):
    """A loop over bundles: the positions of its first and after its last bundle, and its trips.

    `trips` is None if they are not constant. For a pipelined loop they are the steps of its grid,
    without the trips that only load or store.
    """

    start: int
    stop: int
    trips: int | None


def bundles_of(text: str) -> list[Bundle]:
    """Return the bundles of a dump `final_bundles`."""
    starts = list(_BUNDLE.finditer(text))
    ends = [match.start() for match in starts[1:]] + [len(text)]
    return [
        Bundle(int(match[1], 16), len(match[3]), match[2] == "LB", *_with_places(text, match, end))
        for match, end in zip(starts, ends, strict=True)
    ]


def _with_places(
    text: str, start: re.Match[str], end: int
) -> tuple[str, tuple[tuple[str, int], ...]]:
    """Return the text of a bundle without its locations, and their places."""
    inside = text[start.end() : end]
    if "loc(" not in inside:
        return inside, ()
    found = [place for each in _LOCATION.findall(inside) for place in _PLACE.findall(each)]
    places = dict.fromkeys((file, int(line)) for file, line in found)
    return _LOCATION.sub("", inside), tuple(places)


def loops_of(bundles: Sequence[Bundle]) -> list[Loop]:
    """Return the loops of a kernel, in the order of their headers."""
    defined = _Definitions(bundles)
    headers: dict[str, int] = {}
    loops: dict[int, Loop] = {}
    for position, bundle in enumerate(bundles):
        if bundle.is_loop_header:
            headers |= dict.fromkeys(_REGION.findall(bundle.text), position)
        for negated, predicate, region in _BRANCH.findall(bundle.text):
            if region not in headers:
                continue
            start = headers[region]
            counter = _counter(defined, predicate, bool(negated))
            trips = None
            if counter is not None:
                trips = counter.trips
                if counter.is_pipelined:
                    trips = _steps(defined, bundles[start : position + 1], counter)
            stop = min(position + 1 + _DELAY_SLOTS, len(bundles))
            loops[start] = Loop(start, stop, trips)
    return [loops[start] for start in sorted(loops)]


def times_run(bundles: Sequence[Bundle], loops: Sequence[Loop]) -> list[int]:
    """Return how many times each bundle runs; a loop of unknown length counts as one trip.

    Code that a predicate skips counts as if it ran.
    """
    times = [1] * len(bundles)
    for loop in loops:
        for position in range(loop.start, loop.stop):
            times[position] *= loop.trips or 1
    return times


class _Counter(NamedTuple):
    """The register that counts the trips of a loop, its value in the first trip, and the trips."""

    register: str
    first: int
    trips: int
    is_pipelined: bool


def _counter(defined: "_Definitions", predicate: str, ends: bool) -> _Counter | None:
    """Return the counter of a loop that ends when a predicate holds, or when it no longer does.

    The result is None if the trips are not constant.
    """
    test = defined[predicate]
    if ends and test.startswith("pmov 1"):
        return _Counter("", 0, 1, False)
    compared = _COMPARISON.match(test)
    if compared is None or (compared[1] in ("ge", "gt")) != ends:
        return None
    counter = defined.origin(compared[2])
    limit = int(compared[3]) + (compared[1] in ("gt", "le"))
    added = _INCREMENT.match(defined[counter])
    if added is None:
        return None
    step, before = int(added[1] or added[4]), defined.origin(added[2] or added[3])
    phi = _PHI.match(defined[before])
    if phi is None or defined.origin(phi[2]) != counter or step < 1:
        return None
    first = _CONSTANT.match(defined[defined.origin(phi[1])])
    if first is None:
        return None
    trips = max(-(-(limit - int(first[1])) // step), 1)
    return _Counter(before, int(first[1]), trips, step == 1 and _PIPELINED in defined[counter])


def _steps(defined: "_Definitions", loop: Sequence[Bundle], counter: _Counter) -> int:
    """Return the trips of a pipelined loop that do not skip the longest part of its code."""
    longest, steps = 0, counter.trips
    for start, bundle in enumerate(loop):
        for negated, predicate, region in _BRANCH.findall(bundle.text):
            lands = re.compile(rf"\bregion {region}\b")
            skipped = [at for at in range(start + 1, len(loop)) if lands.search(loop[at].text)]
            if skipped and skipped[0] - start > longest:
                trips = _trips_where(defined, predicate, bool(negated), counter)
                if trips is not None:
                    longest, steps = skipped[0] - start, trips
    return max(steps, 1)


def _trips_where(
    defined: "_Definitions", predicate: str, wanted: bool, counter: _Counter
) -> int | None:
    """Return the number of trips of a loop in which a predicate has a value, None if unknown."""
    end = counter.first + counter.trips
    # Comparisons with constants change only at these values of the counter.
    edges = {
        int(limit) + more for _, _, limit in _COMPARISON.findall(defined.text) for more in (0, 1)
    }
    values = sorted({counter.first, *(edge for edge in edges if counter.first < edge < end)})
    trips = 0
    for value, following in zip(values, [*values[1:], end], strict=True):
        holds = _holds(defined, predicate, counter.register, value)
        if holds is None:
            return None
        trips += (following - value) * (holds == wanted)
    return trips


def _holds(
    defined: "_Definitions", predicate: str, counter: str, value: int, depth: int = 0
) -> bool | None:
    """Return whether a predicate holds for a value of a loop's counter, None if unknown."""
    text = defined[predicate]
    if compared := _COMPARISON.match(text):
        if defined.origin(compared[2]) != counter:
            return None
        return _COMPARE[compared[1]](value, int(compared[3]))
    joined = _JOINED.match(text)
    if joined is None or depth > _MAX_COPIES:
        return None
    holds = [_holds(defined, each, counter, value, depth + 1) for each in joined[2].split(", ")]
    if None in holds:
        return None
    return {"pneg": not holds[0], "pnand": not all(holds), "pand": all(holds), "por": any(holds)}[
        joined[1]
    ]


class _Definitions:
    """The instructions of a kernel by the registers that they define, "" for others."""

    def __init__(self, bundles: Sequence[Bundle]):
        self.text = "".join(bundle.text for bundle in bundles)

    def __getitem__(self, register: str) -> str:
        match = re.search(re.escape(register) + r" = ([^\n;}]*)", self.text)
        return match[1] if match else ""

    def origin(self, register: str) -> str:
        """Return the register that a register is a copy of, also through spills."""
        for _ in range(_MAX_COPIES):
            instruction = self[register]
            if copied := _COPY.match(instruction):
                register = copied[1]
            elif filled := _FILL.match(instruction):
                stored = re.findall(re.escape(f"sst {filled[1]} ") + r"(%\w+)", self.text)
                if len(stored) != 1:
                    break
                (register,) = stored
            else:
                break
        return register


def allocated_bytes(text: str) -> dict[str, int]:
    """Return the bytes that a kernel allocates by memory space, from `post-delay-converter`'s dump.

    Operands and results that the program keeps in a memory space are not counted.
    """
    used: dict[str, int] = {}
    for space, size, offset, kind in _ALLOCATION.findall(text):
        if kind == "scoped":
            used[space] = max(used.get(space, 0), int(offset, 0) + int(size, 0))
    return used


def duplicates_of(text: str) -> dict[str, list[str]]:
    """Return the operations that each kernel computes, by its name, from a `deduplication-map`."""
    listed: dict[str, list[str]] = {}
    names: list[str] = []
    for line in text.splitlines():
        if line.startswith("key:"):
            names = listed.setdefault(line.removeprefix("key:"), [])
        elif line.startswith("  "):
            names.append(line.strip())
    return listed


class SlotUse(NamedTuple):
    """The share of a slot that each bundle of a kernel takes, in the order of the bundles."""

    slot: str
    shares: list[float]


# The names of slots for libtpu's names in the utilization of each bundle, where they differ; the
# use of the MXU is that of the fuller of its two.
_USED = {"MATMUL": "MXU", "MATPUSH": "MXU", "VLOAD": "load", "VSTORE": "store", "SALU": "scalar",
         "VLOAD:FILL": "fills", "VSTORE:SPILL": "spills"}  # fmt: skip
_HEAD = re.compile(r"^MATMUL,.*$", re.MULTILINE)
_NUMBERS = re.compile(r"^ *\d+(?: +\d+)+ *$", re.MULTILINE)


def slot_uses(text: str) -> list[SlotUse]:
    """Return the use of each slot from a dump `final_hlo-static-per-bundle-utilization`.

    The slots "fills" and "spills" are the parts of loads and stores that fill and spill registers.
    """
    head = _HEAD.search(text)
    if head is None:
        return []
    names = [_USED.get(name.strip(), name.strip()) for name in head[0].split(",")]
    rows = [list(map(int, row.split())) for row in _NUMBERS.findall(text, head.end())]
    rows = [row for row in rows if len(row) == len(names)]
    if not rows:
        return []
    capacities, *bundles = rows
    uses = {name: [0.0] * len(bundles) for name in names}
    for name, capacity, column in zip(names, capacities, zip(*bundles, strict=True), strict=True):
        if capacity:
            uses[name] = [max(u, c / capacity) for u, c in zip(uses[name], column, strict=True)]
    return [SlotUse(name, shares) for name, shares in uses.items()]


class BundleProfile(NamedTuple):
    """The profile of an operation in libtpu's `hlo-static-bundle-profile`.

    `counters` are uses of its units and their capacities; `estimated_cycles` is libtpu's estimate
    of its time from before code generation, None if there is none.
    """

    counters: Mapping[str, tuple[int, int]]
    estimated_cycles: int | None = None

    @property
    def slots(self) -> dict[str, float]:
        """The share of each slot in `SLOTS` that instructions take, for its fullest unit."""
        shares = dict.fromkeys(SLOTS, 0.0)
        for slot, pattern in _SLOT_OF:
            units: dict[str, float] = {}
            for name, (used, capacity) in self.counters.items():
                if (match := pattern.fullmatch(name)) and capacity:
                    units[match[1]] = units.get(match[1], 0.0) + used / capacity
            shares[slot] = max(units.values(), default=0.0)
        return shares

    @property
    def cycles(self) -> int:
        """The cycles of one run without loops: bundles, and waits for results of units."""
        return self.counters.get("VECTOR_EUP", (0, 0))[1]

    def count(self, what: str) -> int:
        """Return the number of "FILL" or "SPILL" instructions, of vectors and scalars."""
        names = (f"VMEM_{what}_COUNT", f"SMEM_{what}_COUNT")
        return sum(self.counters.get(name, (0, 0))[0] for name in names)


def profiles_of(text: str) -> dict[str, BundleProfile]:
    """Return the profile of each operation, by name, from a dump `hlo-static-bundle-profile`."""
    counted: dict[str, dict[str, tuple[int, int]]] = {}
    estimates: dict[str, int] = {}
    counters: dict[str, tuple[int, int]] | None = None
    for line in text.splitlines():
        if heading := _PROFILED.match(line):
            name = heading[1]
            counters = counted.setdefault(name, {}) if name else None
            if estimate := _ESTIMATE.search(line):
                estimates[name] = int(estimate[1])
        elif counters is not None and (match := _COUNTER.match(line)):
            used, capacity = counters.get(match[1], (0, 0))
            counters[match[1]] = used + int(match[2]), capacity + int(match[3])
    return {name: BundleProfile(each, estimates.get(name)) for name, each in counted.items()}
