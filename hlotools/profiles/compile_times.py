"""The time that XLA's compiler spends in each of its passes, from a profile of a compilation."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from hlotools.cost.costs import table_lines, time_text
from hlotools.profiles.xplane import Event, ProfileError, XSpace
from hlotools.terminal_text import is_visible

HLO, MLIR, LLVM, OTHER = "HLO", "MLIR", "LLVM", "other"
# The kinds of events outside of HLO's passes, and of events inside them. XLA compiles each fusion
# for CPUs by a pipeline of MLIR's passes, and the result by LLVM on other threads.
_KINDS = {"FusionCompiler::Compile": MLIR, "TaskDispatcher::dispatch": LLVM}
_PICOSECONDS = 1e12
# As a fraction of a compilation's time.
_LEAST_INCREASE = 0.05


class PassTime(NamedTuple):
    """The time of one of XLA's passes.

    Attributes:
      name: its name, such as "fusion"; for work outside of passes, XLA's name of it.
      kind: "HLO" for passes of the program; "MLIR" and "LLVM" for those of a CPU's kernels; "other"
          for work outside of passes, and for waiting until the threads of LLVM are done.
      runs: the number of its runs.
      seconds: the time that it took on all threads, without the passes that it ran.
    """

    name: str
    kind: str
    runs: int
    seconds: float


class CompileTimes:
    """The time of a compilation by pass, returned by `compile_times`.

    Attributes:
      name: the name of the function.
      seconds: the time of the compilation.
      passes: the passes, the longest first.
    """

    __slots__ = ("name", "passes", "seconds")

    def __init__(self, name: str, seconds: float, passes: list[PassTime]):
        self.name = name
        self.seconds = seconds
        self.passes = passes

    def as_dict(self) -> dict[str, Any]:
        """Return the times as a dictionary for JSON."""
        passes = [each._asdict() for each in self.passes]
        return {"name": self.name, "seconds": self.seconds, "passes": passes}

    def json(self) -> str:
        """Return the times as JSON, with the keys of `as_dict()`."""
        return json.dumps(self.as_dict(), indent=1)

    @is_visible
    def text(self, most: int = 20) -> str:
        """Return a table of the passes that take most of the time.

        Args:
          most: the number of passes to list.
        """
        by_kind: Counter[str] = Counter()
        for each in self.passes:
            by_kind[each.kind] += each.seconds
        total = sum(by_kind.values()) or 1.0
        kinds = ", ".join(f"{kind} {part / total:.0%}" for kind, part in by_kind.most_common())
        rows = [
            [time_text(part), f"{part / total:.1%}", f"{runs:,}", kind, name]
            for name, kind, runs, part in self.passes[:most]
        ]
        lines = [
            f"{self.name}: compiled in {time_text(self.seconds)}; by pass, on all threads: {kinds}",
            *table_lines(["time", "share", "runs", "kind"], rows),
        ]
        if len(self.passes) > most:
            rest = sum(row.seconds for row in self.passes[most:])
            lines.append(f"{len(self.passes) - most} others take {time_text(rest)}")
        if OTHER in by_kind:
            lines.append("other: what is in no pass, and waiting for the threads of LLVM")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.text()


def compile_times(space: XSpace, name: str, seconds: float) -> CompileTimes:
    """Return the times of XLA's passes in a recording of a compilation.

    Args:
      space: the recording, without events of Python functions.
      name: the name of the function that was compiled.
      seconds: the time of the compilation.

    Raises:
      ProfileError: if the recording has no pass.
    """
    passes = pass_times(space)
    if not any(each.kind == HLO for each in passes):
        raise ProfileError(
            "the recording has no pass of XLA: the compiler of this device does not tell its passes"
        )
    return CompileTimes(name, seconds, passes)


def pass_times(space: XSpace) -> list[PassTime]:
    """Return the times of all passes in a recording of a compilation, the longest first."""
    times: Counter[tuple[str, str]] = Counter()
    runs: Counter[tuple[str, str]] = Counter()
    for plane in space.planes:
        for line in plane.lines:
            for key, own in _own_times(line.events):
                times[key] += own
                runs[key] += 1
    return [PassTime(*key, runs[key], own / _PICOSECONDS) for key, own in times.most_common()]


def slower_passes(before: Iterable[PassTime], after: Iterable[PassTime]) -> list[str]:
    """Return texts about the passes that make a compilation longer, the largest increase first.

    It lists those that take 1.5 times as long as before, or are new, and make the compilation
    longer by a twentieth: times of a single compilation vary by less.
    """
    earlier, later = ({(p.name, p.kind): p for p in passes} for passes in (before, after))
    least = _LEAST_INCREASE * sum(each.seconds for each in earlier.values())
    found: list[tuple[float, str]] = []
    for key, each in later.items():
        known = earlier.get(key)
        seconds = known.seconds if known else 0.0
        increase = each.seconds - seconds
        if each.kind != OTHER and increase > least and each.seconds > 1.5 * seconds:
            old = time_text(seconds) if known else "new"
            found.append(
                (increase, f"{each.name} ({each.kind}): {old} -> {time_text(each.seconds)}")
            )
    return [text for _, text in sorted(found, reverse=True)]


def _own_times(events: Iterable[Event]) -> Iterator[tuple[tuple[str, str], int]]:
    """Yield the name and kind of each event of a thread, and its time without events inside it."""
    # The events around the current one, each with its kind and its own time.
    around: list[tuple[Event, str, list[int]]] = []
    found: list[tuple[tuple[str, str], list[int]]] = []
    for event in sorted(events, key=lambda each: (each.start, -each.end)):
        if event.end == event.start:
            continue
        while around and around[-1][0].end <= event.start:
            around.pop()
        kind = around[-1][1] if around else OTHER
        # The name of a pipeline of HLO passes has the module's at the end.
        name = event.name.removesuffix(f" ({event.stats.get('module')})")
        if name != event.name:
            kind = HLO
        own = [event.end - event.start]
        if around:
            around[-1][2][0] -= own[0]
        kind = _KINDS.get(name, kind)
        around.append((event, kind, own))
        found.append(((name, kind), own))
    return ((key, max(own[0], 0)) for key, own in found)
