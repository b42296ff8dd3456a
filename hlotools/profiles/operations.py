"""The times of operations, from the events of a profile: each moment belongs to one operation."""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from hlotools.profiles.xplane import Event, EventLine, Plane, StatValue, XSpace
from hlotools.wire import signed

# Compilers for TPUs, and readers of profiles, write the operations of a device to this line.
_OPERATIONS_LINE = "XLA Ops"
_MODULES_LINE = "XLA Modules"
# The runtime of CPUs writes this event when an operation that continued in other threads is done.
_DONE = "end: "
_TASK_STARTS = "ThreadpoolListener::StartRegion"
_TASK_STOPS = "ThreadpoolListener::StopRegion"
# The number of a kernel in a graph that CUDA launches.
_GRAPH_NODE = "cuda_graph_node_id"
_WAITS = "ThunkExecutor::Execute (wait for completion)"


class Interval(NamedTuple):
    """An operation's time from its start to its end, in picoseconds."""

    start: int
    end: int
    name: str


@dataclass(slots=True)
class OperationTime:
    """The time of an operation over all runs of its program."""

    seconds: float = 0.0
    """The time in which it was the operation that had started last, of those that ran."""
    count: int = 0
    """The number of times that it ran."""


@dataclass(slots=True)
class ProgramTimes:
    """The times of one program's operations on all its devices, over all its runs."""

    number: int | None
    name: str
    runs: int = 0
    """The number of runs, each device for itself."""
    seconds: float = 0.0
    """The time in which at least one operation ran."""
    span: float = 0.0
    """The time from the first operation of each run to the end of its last one."""
    operations: dict[str, OperationTime] = field(default_factory=dict[str, OperationTime])
    each_run: list[dict[str, float]] = field(default_factory=list[dict[str, float]])
    """For each run whose events are known apart from others', the seconds of its operations."""


class _RunKey(NamedTuple):
    """The key of one run of a program on one device."""

    program: int | None
    name: str
    plane: str
    device: int
    run: int | None


def program_times(
    space: XSpace, inside: Mapping[str, Mapping[str, frozenset[str]]]
) -> list[ProgramTimes]:
    """Return the times of all programs with operations in a profile, the longest first.

    Operations overlap: a loop runs while those of its body do, and others run at the same time.
    Each moment counts for the operation that started last, so that the sum over operations is the
    time in which any ran, and a loop has the time that its body does not take.

    Args:
      space: the profile.
      inside: by the name of a program, and of a loop, branch or call in it, the names of the
        operations that run inside.
    """
    runs: dict[_RunKey, list[Interval]] = defaultdict(list)
    launches: dict[_RunKey, Counter[int]] = defaultdict(Counter)
    for plane in space.planes:
        _read_plane(plane, inside, runs, launches)
    programs: dict[tuple[int | None, str], ProgramTimes] = {}
    for key, intervals in runs.items():
        times = programs.setdefault((key.program, key.name), ProgramTimes(key.program, key.name))
        runs_of_key = 1
        if key in launches:
            runs_of_key = min(launches[key].values())
        elif key.run is None:
            runs_of_key = _runs_in(intervals, inside.get(key.name, {}))
        _add_run(times, intervals, runs_of_key)
    return sorted(programs.values(), key=lambda times: -times.seconds)


def _add_run(times: ProgramTimes, intervals: list[Interval], runs: int) -> None:
    times.runs += runs
    for interval in intervals:
        times.operations.setdefault(interval.name, OperationTime()).count += 1
    seconds = {name: count * 1e-12 for name, count in own_times(intervals).items()}
    for name, own in seconds.items():
        times.operations[name].seconds += own
        times.seconds += own
    if runs == 1:
        times.each_run.append(seconds)
    start = min(interval.start for interval in intervals)
    times.span += (max(interval.end for interval in intervals) - start) * 1e-12


def _runs_in(intervals: Iterable[Interval], nested: Mapping[str, frozenset[str]]) -> int:
    """Return the number of runs of a program whose events do not have it.

    It is the number of times that most operations outside of loops, branches and calls ran.
    """
    held = frozenset[str]().union(*nested.values())
    counts = Counter(interval.name for interval in intervals)
    outside = Counter(count for name, count in counts.items() if name not in held)
    return min(outside or Counter(counts.values()), key=lambda count: (-outside[count], count))


def own_times(intervals: Iterable[Interval]) -> dict[str, int]:
    """Return each operation's own time in picoseconds.

    At any moment only the operation that started last counts, so the sum is the time in which any
    operation ran.
    """
    totals: dict[str, int] = defaultdict(int)
    running: list[Interval] = []
    now = 0

    def advance(until: int | None) -> None:
        nonlocal now
        while running and (until is None or now < until):
            last = running[-1]
            if last.end <= now:
                running.pop()
                continue
            end = last.end if until is None else min(last.end, until)
            totals[last.name] += end - now
            now = end

    for interval in sorted(intervals):
        advance(interval.start)
        now = max(now, interval.start)
        running.append(interval)
    advance(None)
    return totals


def _read_plane(
    plane: Plane,
    inside: Mapping[str, Mapping[str, frozenset[str]]],
    runs: dict[_RunKey, list[Interval]],
    launches: dict[_RunKey, Counter[int]],
) -> None:
    """Add the operations of a plane to the runs that they belong to.

    Args:
      plane: the plane.
      inside: the operations that run inside of others, as for `program_times`.
      runs: the operations by run, which this function adds to.
      launches: the number of launches of each node of a graph of kernels, likewise.
    """
    lines = [line for line in plane.lines if line.name == _OPERATIONS_LINE]
    modules = [line for line in plane.lines if line.name == _MODULES_LINE]
    if lines:
        within = _Modules(modules)
        for event in (event for line in lines for event in line.events):
            key = within.key(plane.name, event)
            runs[key].append(Interval(event.start, event.end, _operation_name(event)))
        return
    _HostOperations(plane, inside).add_to(runs, launches)


def _operation_name(event: Event) -> str:
    """Return the name of an operation whose event is named by it or by its whole HLO text."""
    name = event.stats.get("hlo_op")
    if isinstance(name, str):
        return name
    return event.name.partition(" = ")[0].removeprefix("%")


def _number(value: StatValue | None) -> int | None:
    return signed(value) if isinstance(value, int) else None


class _Modules:
    """The runs of programs on a device, to which operations belong by their times."""

    def __init__(self, lines: list[EventLine]):
        self._events = sorted(
            (event for line in lines for event in line.events), key=lambda event: event.start
        )
        self._starts = [event.start for event in self._events]

    def key(self, plane: str, event: Event) -> _RunKey:
        """Return the run to which an operation belongs: the one during which it starts."""
        at = bisect_right(self._starts, event.start) - 1
        program = _number(event.stats.get("program_id"))
        if at < 0 or event.start > self._events[at].end:
            return _RunKey(program, str(event.stats.get("hlo_module", "")), plane, 0, None)
        run = self._events[at]
        # Its name is that of the module, with a number in parentheses.
        name, _, rest = run.name.partition("(")
        if program is None:
            program = _number(run.stats.get("program_id"))
        if program is None and rest.removesuffix(")").lstrip("-").isdigit():
            program = int(rest.removesuffix(")"))
        return _RunKey(program, name, plane, 0, at)


class _Mark(NamedTuple):
    """The mark of an operation's end: its line, the start of that line's task, and its time."""

    line: int
    begin: int
    time: int


class _HostOperations:
    """The operations in the lines of a host or GPU, whose events have their program.

    On a CPU some operations continue in other threads: their events end where the first thread
    leaves them. The thread that completes such an operation immediately runs the operations after
    it, and only then marks its end: so it has ended where the next operation starts in that thread.
    The last one ends with the run, and a loop with the last operation of its body.

    On a GPU, XLA launches kernels together as a graph: each has the graph's name as its operation,
    and its number as a node of the graph. Such a kernel counts under its own name.
    """

    def __init__(self, plane: Plane, inside: Mapping[str, Mapping[str, frozenset[str]]]):
        self._plane = plane.name
        self._inside = inside
        self._marks: dict[int, _Mark] = {}
        self._run_ends: dict[int | None, int] = {}
        self._operations: list[list[Event]] = []
        self._starts: list[list[int]] = []
        for number, line in enumerate(plane.lines):
            started: list[Event] = []
            # The tasks of the thread that have begun and not ended: one that waits runs others.
            tasks: list[int] = []
            for event in line.events:
                consumed = event.stats.get("_c")
                if event.name == _TASK_STARTS:
                    tasks.append(event.start)
                elif event.name == _TASK_STOPS:
                    del tasks[-1:]
                elif event.name == _WAITS:
                    self._run_ends[_number(event.stats.get("run_id"))] = event.end
                elif event.name.startswith(_DONE) and isinstance(consumed, int):
                    self._marks[consumed] = _Mark(number, tasks[-1] if tasks else 0, event.start)
                elif "hlo_op" in event.stats:
                    started.append(event)
            self._operations.append(started)
            self._starts.append([event.start for event in started])

    def add_to(
        self, runs: dict[_RunKey, list[Interval]], launches: dict[_RunKey, Counter[int]]
    ) -> None:
        """Add the operations to the runs that they belong to, and count launches of graphs."""
        loops: dict[_RunKey, list[tuple[Event, frozenset[str], int]]] = defaultdict(list)
        for number, line in enumerate(self._operations):
            for event in line:
                key = _RunKey(
                    _number(event.stats.get("program_id")),
                    str(event.stats.get("hlo_module", "")),
                    self._plane,
                    _number(event.stats.get("device_ordinal")) or 0,
                    _number(event.stats.get("run_id")),
                )
                name = str(event.stats["hlo_op"])
                node = event.stats.get(_GRAPH_NODE)
                if isinstance(node, int):
                    launches[key][node] += 1
                    name = event.name
                body = self._inside.get(key.name, {}).get(name)
                mark = self._mark_of(event, number)
                if mark is not None and body:
                    loops[key].append((event, body, mark.time))
                    continue
                end = event.end if mark is None else self._before_next(event, mark)
                end = max(min(end, self._run_ends.get(key.run, end)), event.start)
                runs[key].append(Interval(event.start, end, name))
        for key, listed in loops.items():
            within = sorted(runs[key])
            for event, body, marked in listed:
                first = bisect_left(within, (event.start,))
                last = bisect_left(within, (marked,))
                ends = [interval.end for interval in within[first:last] if interval.name in body]
                name = str(event.stats["hlo_op"])
                runs[key].append(Interval(event.start, max(ends, default=marked), name))

    def _mark_of(self, event: Event, line: int) -> _Mark | None:
        """Return the mark of an operation that continued in other threads; None for others."""
        produced = event.stats.get("_p")
        mark = self._marks.get(produced) if isinstance(produced, int) else None
        return None if mark is None or (mark.line == line and mark.time <= event.end) else mark

    def _before_next(self, event: Event, mark: _Mark) -> int:
        """Return the end of an operation: the start of the next one, or its mark."""
        starts = self._starts[mark.line]
        after = bisect_right(starts, max(event.start, mark.begin))
        return min(starts[after], mark.time) if after < len(starts) else mark.time
