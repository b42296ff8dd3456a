"""The report of a jitted function's programs, their causes and times: `f.cache_report()`."""

from collections.abc import Mapping

from hlofront.base.named_tuple import NamedTuple
from hlofront.bridge.client import PjitFunction
from hlofront.bridge.members import call_cache_size
from hlofront.runtime.compilation.recompilation import shown_static
from hlofront.runtime.compilation.traced_program import TracedKey, TracedProgram, timings_of


class Timings(NamedTuple):
    """The seconds spent on the programs of one function."""

    trace: float
    lower: float
    compile: float
    load: float
    """The seconds of reading executables from disk, instead of lowering and compiling."""

    def __str__(self) -> str:
        return ", ".join(f"{name} {1e3 * value:.1f} ms" for name, value in self._asdict().items())


class CachedProgram(NamedTuple):
    """A cached program of a jitted function, as a row of its cache report."""

    arguments: str
    """The arguments that the program was made for, as in "x: f32[8], static n=3"."""
    why: str
    """The reason for which the program was made although there were others: what differed from the
    nearest of them.
    """
    hits: int
    """The number of times that Python used the program again. Calls that C++ answers are not
    counted.
    """
    timings: Timings


class CacheReport(NamedTuple):
    """A report of the programs that are cached for a function, which prints as a table."""

    name: str
    entries: tuple[CachedProgram, ...]
    executables: int
    """The number of executables that C++ can call for the function without asking Python."""

    @property
    def seconds_by_cause(self) -> dict[str, float]:
        """The seconds of tracing, lowering, compiling and loading, by cause."""
        seconds: dict[str, float] = {}
        for entry in self.entries:
            seconds[entry.why] = seconds.get(entry.why, 0.0) + sum(entry.timings)
        return seconds

    def __str__(self) -> str:
        count = len(self.entries)
        lines = [
            f"{self.name}: {count} program{'s' * (count != 1)}, "
            f"{sum(self.seconds_by_cause.values()):.3f} s; C++ calls {self.executables} directly"
        ]
        for entry in self.entries:
            lines.append(f"  {entry.arguments or 'no arguments'}")
            times = f"{entry.hits} time{'s' * (entry.hits != 1)}"
            lines.append(f"    {entry.why}; reused {times} by Python; {entry.timings}")
        return "\n".join(lines)

    __repr__ = __str__


def cache_report(
    name: str, table: Mapping[TracedKey, TracedProgram], function: PjitFunction
) -> CacheReport:
    """Return the report of the programs of a jitted function, in the order of their creation."""
    entries = [
        CachedProgram(_arguments(traced), _why(traced, i), traced.hits, _timings(traced))
        for i, traced in enumerate(list(table.values()))
    ]
    return CacheReport(name, tuple(entries), call_cache_size(function))


def timings(table: Mapping[TracedKey, TracedProgram]) -> Timings:
    """Return the seconds spent on all programs of a jitted function."""
    each = [_timings(traced) for traced in list(table.values())]
    return Timings(*(sum(column) for column in zip(*each, strict=True))) if each else NO_TIME


NO_TIME = Timings(0.0, 0.0, 0.0, 0.0)


def _timings(traced: TracedProgram) -> Timings:
    spent = timings_of(traced.program)
    return Timings(spent.trace, spent.lower, spent.compile, spent.load)


def _why(traced: TracedProgram, position: int) -> str:
    if traced.why is not None:
        return traced.why
    if traced.kind is None:
        return "called from a program that was being traced"
    return "the first" if position == 0 else "new"


def _arguments(traced: TracedProgram) -> str:
    kind = traced.kind
    if kind is None:
        info = traced.program.debug_info
        names = (info.arg_names if info else None) or ()
        avals, statics, positional = traced.program.in_avals, (), ()
    else:
        names, avals, statics, positional = kind.names, kind.avals, kind.statics, kind.positional
    arguments = [
        f"{name}: {aval.str_short(short_dtypes=True)}"
        for name, aval in zip(names, avals, strict=False)
    ]
    for static in statics:
        where = static.where
        known = isinstance(where, int) and where < len(positional)
        name = positional[where] if known else where
        arguments.append(f"static {name}={shown_static(static.value)}")
    return ", ".join(arguments)
