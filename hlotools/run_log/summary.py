"""The totals of a run's log: times of stages, recompilations with their reasons, caches."""

import os
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from hlotools.cost.costs import time_text
from hlotools.html.page_model import cut
from hlotools.run_log.records import Record, RunRecords
from hlotools.terminal_text import counted, is_visible

STAGES = {
    "trace": "tracing",
    "lower": "lowering",
    "compile": "XLA's compilation",
    "disk_hit": "loading from disk",
}
# Longer reasons, such as the shardings of all arguments, are on the page.
_LONGEST_REASON = 160
_NOT_STORED = " is not in the cache on disk: "


@dataclass(slots=True)
class Recompiled:
    """The recompilations of one function."""

    name: str
    count: int = 0
    reasons: Counter[str] = field(default_factory=Counter[str])
    lines: Counter[str] = field(default_factory=Counter[str])
    seconds: float = 0.0
    """The time of tracing, lowering and compilation that they took."""


@dataclass(slots=True)
class Caches:
    """The hits and misses of the caches."""

    disk_hits: int = 0
    disk_misses: int = 0
    load_seconds: float = 0.0
    saved_seconds: float = 0.0
    """The time that XLA took for what was loaded, when it was compiled."""
    memory_hits: int = 0
    """The calls that Python answered with an executable in memory; C++'s are not counted."""
    bundled: int = 0
    miss_reasons: Counter[str] = field(default_factory=Counter[str])


class RunSummary:
    """The totals of a run's log."""

    def __init__(self, run: RunRecords):
        records = run.records
        self.run = run
        self.started = min(record.time - record.seconds for record in records)
        self.ended = max(record.time for record in records)
        self.processes = [record for record in records if record.event == "process"]
        ended = {record.process for record in records if record.event == "end"}
        self.without_end = sorted({record.process for record in records} - ended)
        self.stages = {stage: _seconds(records, stage) for stage in STAGES}
        self.counts = Counter(record.event for record in records)
        self.recompiled = _recompiled(records)
        self.slowest = sorted(
            (record for record in records if record.event in ("compile", "disk_hit")),
            key=lambda record: -record.seconds,
        )
        self.failed = [record for record in records if record.event == "compile_error"]
        self.unfinished = _unfinished(records)
        self.caches = _caches(records)
        traced = [record for record in records if record.event == "trace"]
        self.eager = {record.name for record in traced if record.facts.get("eager")} - {
            record.name for record in traced if not record.facts.get("eager")
        }

    @is_visible
    def text(self, most: int = 10) -> str:
        """Return the totals as text, listing at most `most` functions and compilations."""
        lines = [self.title()]
        for stage, title in STAGES.items():
            count = self.counts[stage]
            lines.append(
                f"  {time_text(self.stages[stage]):>10}  {title}, {counted(count, 'time')}"
            )
        lines.append(f"caches: {self.cache_text()}")
        again = sum(function.count for function in self.recompiled)
        functions = counted(len(self.recompiled), "function")
        lines.append(f"recompilations: {again:,} of {functions}")
        for function in self.recompiled[:most]:
            where = short_line(function.lines.most_common(1)[0][0])
            times = f"{counted(function.count, 'time')}, {time_text(function.seconds)}"
            lines.append(f"  {function.name}  {times}  {where}".rstrip())
            lines += [
                f"    {count:,}x  {cut(why, _LONGEST_REASON)}"
                for why, count in function.reasons.most_common(3)
            ]
        if self.slowest:
            lines.append("slowest:")
        for record in self.slowest[:most]:
            how = "loaded from disk" if record.event == "disk_hit" else "compiled"
            file = self.run.program_file(record, "hlo")
            lines.append(
                f"  {time_text(record.seconds):>10}  {record.name}, {how}  "
                + short_line(record.line)
                + (f"  {file}" if file else "")
            )
        for record in self.failed:
            lines.append(
                f"failed: {record.name}  {short_line(record.line)}  {record.text('error')}"
            )
        for record in self.unfinished:
            lines.append(
                f"did not end: the compilation of {record.name}  {short_line(record.line)}"
            )
        lines += [f"note: {note}" for note in self.notes()]
        return "\n".join(lines)

    def title(self) -> str:
        """Return the number of processes and the duration of the run as text."""
        count = len({record.process for record in self.run.records})
        processes = "1 process" if count == 1 else f"{count:,} processes"
        return f"{processes}, {time_text(self.ended - self.started)} from first to last event"

    def cache_text(self) -> str:
        """Return the hits and misses of the caches as text."""
        caches = self.caches
        text = (
            f"disk {caches.disk_hits:,} hits, {caches.disk_misses:,} misses, "
            f"{time_text(max(caches.saved_seconds - caches.load_seconds, 0.0))} saved; "
            f"memory {caches.memory_hits:,} hits besides those of C++"
        )
        return f"{text}; bundles {caches.bundled:,}" if caches.bundled else text

    def notes(self) -> list[str]:
        """Return sentences about gaps in the log: processes that died, and damaged lines."""
        notes = [f"{process} did not end, or still runs" for process in self.without_end]
        notes += [
            f"{count:,} {'line' if count == 1 else 'lines'} of {file} cannot be read"
            for file, count in self.run.unreadable.items()
        ]
        return notes


def _seconds(records: Iterable[Record], event: str) -> float:
    """Return the time of a stage; nested events of one thread count once."""
    ends: dict[tuple[str, str], float] = {}
    total = 0.0
    spans = [
        (record.time - record.seconds, record.time, (record.process, record.thread))
        for record in records
        if record.event == event
    ]
    for start, end, thread in sorted(spans):
        before = ends.get(thread, start)
        total += max(end - max(start, before), 0.0)
        ends[thread] = max(end, before)
    return total


def _recompiled(records: Iterable[Record]) -> list[Recompiled]:
    functions: dict[str, Recompiled] = {}
    # The current recompilation of each thread.
    current: dict[tuple[str, str], Recompiled | None] = {}
    for record in records:
        thread = record.process, record.thread
        if record.event == "recompile":
            function = functions.setdefault(record.name, Recompiled(record.name))
            function.count += 1
            function.reasons[record.text("why")] += 1
            function.lines[record.line] += 1
            current[thread] = function
        elif record.event == "first":
            current[thread] = None
        elif record.event in STAGES:
            function = current.get(thread)
            if function is not None and function.name == record.name:
                function.seconds += record.seconds
    return sorted(functions.values(), key=lambda function: (-function.seconds, -function.count))


def _unfinished(records: Iterable[Record]) -> list[Record]:
    """Return the records of compilations that began, but neither ended nor failed."""
    begun: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in records:
        thread = record.process, record.thread
        if record.event == "compile_begin":
            begun[thread].append(record)
        elif record.event in ("compile", "compile_error"):
            del begun[thread][-1:]
    return [record for waiting in begun.values() for record in waiting]


def _caches(records: Iterable[Record]) -> Caches:
    caches = Caches()
    memory: dict[tuple[str, str], float] = {}
    for record in records:
        if record.event == "disk_hit":
            caches.disk_hits += 1
            caches.load_seconds += record.seconds
            caches.saved_seconds += record.number("saved")
        elif record.event == "disk_miss":
            caches.disk_misses += 1
            caches.miss_reasons[reason_of(record)] += 1
        elif record.event == "memory_hits":
            key = record.process, record.name
            memory[key] = max(memory.get(key, 0.0), record.number("count"))
        elif record.event == "bundle":
            caches.bundled += 1
    caches.memory_hits = int(sum(memory.values()))
    return caches


def reason_of(record: Record) -> str:
    """Return the reason of an event, "" if it has none; a miss's is shortened."""
    why = record.text("why")
    return why.partition(_NOT_STORED)[2] or why


def short_line(line: str) -> str:
    """Return a source line without its folder."""
    return os.path.basename(line)
