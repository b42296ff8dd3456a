"""The `profile` function: measured time by source line and operation, with the bounds of cost."""

import json
import linecache
import os
import re
from dataclasses import dataclass
from typing import Any, NamedTuple

from hlotools.cost.costs import Costs, costs, hlo_module, line_text, table_lines, time_text
from hlotools.cost.peak import memory_of
from hlotools.cost.rates import DeviceRates
from hlotools.html.measured_times import add_measured
from hlotools.html.page_model import Files
from hlotools.html.program_page import Facts, page_of_data, program_data
from hlotools.html.report import report_html
from hlotools.ir.hlo import Computation, HloModule, nearest_source
from hlotools.profiles.operations import ProgramTimes, program_times
from hlotools.profiles.xplane import ProfileError, XSpace, read_xplane
from hlotools.terminal_text import is_visible

FORMAT = "hlofront.profile/1"

_NOT_IN_NAMES = re.compile(r"\W", re.ASCII)


class OperationRow(NamedTuple):
    """The measured time of one operation in one run of its program, as a mean over all runs.

    `count` is how many times it ran in a run. `bound` is the lower bound of the time by the
    device's rates, in seconds; None without rates. `flops` and `bytes` are those of `costs`, None
    if unknown. `opcode` is "" for operations that are not in the program.
    """

    name: str
    opcode: str
    seconds: float
    share: float
    count: float
    bound: float | None
    flops: int | None
    bytes: int | None
    file: str | None
    line: int | None


class LineRow(NamedTuple):
    """The measured time of the operations from one source line in one run of their program.

    The time of a fusion belongs to the line of its result. The figures are those of OperationRow.
    """

    file: str | None
    line: int | None
    code: str | None
    seconds: float
    share: float
    count: float
    bound: float | None
    flops: int
    bytes: int
    operations: int


@dataclass(frozen=True, slots=True)
class Profile:
    """The measured times of a program, returned by the function `profile`; times are in seconds.

    All are means over the runs. On several devices a run is that of one of them.
    """

    program: str
    source: object
    """The program as `profile` took it."""
    module: HloModule
    costs: Costs
    runs: int
    seconds: float
    """The time of a run in which at least one operation ran: the sum of the rows' times."""
    span: float
    """The time from the first operation of a run to the end of the last one."""
    wall: float | None
    """The time from the call to the results, where it was measured."""
    operations: list[OperationRow]
    lines: list[LineRow]
    each_run: list[dict[str, float]]
    """For each run that is known apart from others, the seconds of its operations, by name."""

    @is_visible
    def text(self, by: str = "line", most: int = 20) -> str:
        """Return a table of the measured times as text, the longest first.

        Args:
          by: "line", for source lines, or "operation".
          most: the maximum number of rows.

        Raises:
          ValueError: if `by` is neither "line" nor "operation".
        """
        head, rows = self._table(by, most)
        return "\n".join([self._title(), *table_lines(head, rows), *self._totals(by, most)])

    def _table(self, by: str, most: int) -> tuple[list[str], list[list[str]]]:
        """Return the heads of columns, and rows, each with its source line at the end."""
        if by not in ("line", "operation"):
            raise ValueError(f"times are listed by 'line' or 'operation': got {by!r}")
        chosen = self.lines if by == "line" else self.operations
        bounded = self.costs.target is not None
        head = ["measured", "share", *(["at least", "times"] if bounded else [])]
        head += ["GFLOP/s", "GB/s", "runs"]
        rows: list[list[str]] = []
        for row in chosen[:most]:
            cells = [time_text(row.seconds), f"{row.share:.1%}"]
            if bounded:
                cells += ["" if row.bound is None else time_text(row.bound), _times(row)]
            cells += [_rate(row.flops, row.seconds), _rate(row.bytes, row.seconds)]
            where = line_text(row.file, row.line)
            if isinstance(row, LineRow):
                note = f"{where}  {row.code}" if row.code else where
            else:
                kind = f" ({row.opcode})" if row.opcode else ""
                note = f"{row.name}{kind}  {where}"
            rows.append([*cells, f"{row.count:,.4g}", note])
        return head, rows

    def _title(self) -> str:
        device = f" on {self.costs.target.title}" if self.costs.target is not None else ""
        return f"{self.program}{device}, mean of {self.runs:,} runs"

    def _totals(self, by: str, most: int) -> list[str]:
        """Return the lines below the table."""
        hidden_rows = (self.lines if by == "line" else self.operations)[most:]
        seconds = sum(row.seconds for row in hidden_rows)
        more = [f"and {len(hidden_rows)} more, {time_text(seconds)}"] if hidden_rows else []
        whole = self.span if self.wall is None else self.wall
        rows = [("in operations", self.seconds), ("between operations", self.span - self.seconds)]
        if self.wall is not None:
            rows.append(("before and after them: dispatch, waiting", self.wall - self.span))
        name = "from the first operation to the last" if self.wall is None else "wall time"
        return [
            *more,
            f"{name}: {time_text(whole)}, including",
            *(
                f"  {time_text(max(seconds, 0.0)):>10}  {_share(seconds, whole):>6.1%}  {title}"
                for title, seconds in rows
            ),
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return the times as a dictionary for JSON, keyed by field names; None is unknown."""
        return {
            "format": FORMAT,
            "program": self.program,
            "target": self.costs.target.name if self.costs.target else None,
            "runs": self.runs,
            "wall": self.wall,
            "span": self.span,
            "seconds": self.seconds,
            "lines": [row._asdict() for row in self.lines],
            "operations": [row._asdict() for row in self.operations],
        }

    def json(self) -> str:
        """Return the times as JSON, with the keys of `as_dict()`."""
        return json.dumps(self.as_dict(), indent=1)

    def page(self, title: str | None = None) -> str:
        """Return the program as an HTML page, as `page` does, with measured times as colors."""
        files = Files()
        facts: Facts = []
        data, name = program_data(self.source, files, self.costs.target, facts)
        seconds_by_name = {row.name: row.seconds for row in self.operations}
        whole = dict(seconds_by_name)
        # A loop is shown with the time of its body.
        for container, names in operations_inside(self.module).items():
            if container in seconds_by_name:
                whole[container] += sum(seconds_by_name.get(inner, 0.0) for inner in names)
        by_line = {(row.file, row.line or 0): row.seconds for row in self.lines if row.file}
        add_measured(data, whole, by_line, self.seconds)
        facts.insert(0, ("measured", f"mean of {self.runs:,} runs"))
        return page_of_data(data, files, name, title, facts)

    def __repr__(self) -> str:
        return self.text(most=10)

    def _repr_html_(self) -> str:
        head, rows = self._table("line", 10)
        return report_html(self._title(), head, rows, "\n".join(self._totals("line", 10)))


def profile(
    recorded: str | os.PathLike[str] | XSpace,
    program: object,
    rates: DeviceRates | None = None,
    *,
    wall: float | None = None,
) -> Profile:
    """Return the measured times of a program, by source line and by operation.

    Operations that run at the same time do not count twice: each moment belongs to the operation
    that started last, so that a loop has the time that its body does not take.

    Args:
      recorded: a file of XLA's profiler, `HOST.xplane.pb`; a folder that a profile was written to,
        such as that of `jax.profiler.trace`; or a result of `read_xplane`.
      program: the program, as `costs` takes it: HLO text, the path of an HLO file, a result of
        `parse`, or of `compile` in jax or hlofront. If several have its name, the one whose
        operations took the most time is shown.
      rates: the rates of the device, for bounds of the times; None for no bounds.
      wall: the time of a run from the call to the results, in seconds, if it was measured.

    Raises:
      HloSyntaxError: if a text is not HLO.
      OSError: if a file cannot be read.
      ProfileError: if the file is not a profile, or has no operation of the program.
      TypeError: if the program is of another type.

    Example:
      >>> compiled = jax.jit(step).lower(x).compile()          # doctest: +SKIP
      >>> with jax.profiler.trace("/tmp/profile"):             # doctest: +SKIP
      ...     compiled(x).block_until_ready()
      >>> print(hlotools.profile("/tmp/profile", compiled))    # doctest: +SKIP
    """
    space = recorded if isinstance(recorded, XSpace) else read_xplane(recorded)
    module = hlo_module(program)
    measured = program_times(space, {module.name: operations_inside(module)})
    for times in measured:
        if times.name == module.name:
            return joined(times, program, module, rates, wall)
    raise ProfileError(
        f"{space.path} has no operation of {module.name}. {described_programs(measured)}"
    )


def described_programs(measured: list[ProgramTimes]) -> str:
    """Return a sentence that lists the programs with operations in a profile."""
    if not measured:
        return "It has no operation of any program: was a program run while it was recorded?"
    names = ", ".join(dict.fromkeys(times.name or "(no name)" for times in measured))
    return f"It has those of {names}."


def operations_inside(module: HloModule) -> dict[str, frozenset[str]]:
    """Return the names of the operations inside of each loop, branch or call of a program."""
    inside: dict[int, frozenset[str]] = {}

    def within(computations: list[Computation]) -> frozenset[str]:
        return frozenset().union(
            *(inside.get(id(computation), frozenset()) for computation in computations)
        )

    nested: dict[str, frozenset[str]] = {}
    for computation in module.callees_first():
        names: set[str] = set()
        for instruction in computation.instructions:
            names.add(instruction.name)
            callees = [each for listed in instruction.called.values() for each in listed]
            if callees and instruction.fused is None:
                nested[instruction.name] = within(callees)
                names |= nested[instruction.name]
        inside[id(computation)] = frozenset(names)
    return nested


def joined(
    times: ProgramTimes,
    program: object,
    module: HloModule,
    rates: DeviceRates | None = None,
    wall: float | None = None,
) -> Profile:
    """Return the times of a program's operations with their costs, as in `profile`."""
    report = costs(module, rates, memory_of(program))
    priced = {row.name: row for row in report.instructions}
    instructions = {instruction.name: instruction for instruction in module.instructions()}
    # The kernels of a graph are recognized by name: the letters and digits of their operation's.
    of_kernels = {_NOT_IN_NAMES.sub("_", name): name for name in reversed(instructions)}

    def known_as(recorded: str) -> str:
        return recorded if recorded in instructions else of_kernels.get(recorded, recorded)

    def summed(run: dict[str, float]) -> dict[str, float]:
        seconds: dict[str, float] = {}
        for recorded, own in run.items():
            seconds[known_as(recorded)] = seconds.get(known_as(recorded), 0.0) + own
        return seconds

    rows: list[OperationRow] = []
    for recorded, time in times.operations.items():
        name = known_as(recorded)
        instruction = instructions.get(name)
        source = nearest_source(instruction) if instruction is not None else None
        cost = priced.get(name)
        rows.append(
            OperationRow(
                name,
                instruction.opcode if instruction is not None else "",
                time.seconds / times.runs,
                _share(time.seconds, times.seconds),
                time.count / times.runs,
                cost.seconds if cost is not None else None,
                cost.flops if cost is not None else None,
                cost.bytes if cost is not None else None,
                source.file if source else None,
                source.line if source else None,
            )
        )
    rows.sort(key=lambda row: -row.seconds)
    return Profile(
        module.name,
        program,
        module,
        report,
        times.runs,
        times.seconds / times.runs,
        times.span / times.runs,
        wall,
        rows,
        _by_line(rows),
        [summed(run) for run in times.each_run],
    )


def _by_line(rows: list[OperationRow]) -> list[LineRow]:
    lines: dict[tuple[str | None, int | None], list[OperationRow]] = {}
    for row in rows:
        lines.setdefault((row.file, row.line), []).append(row)
    summed: list[LineRow] = []
    for (file, line), parts in lines.items():
        bounds = [part.bound for part in parts if part.bound is not None]
        code = linecache.getline(file, line).strip() if file and line else ""
        summed.append(
            LineRow(
                file,
                line,
                code or None,
                sum(part.seconds for part in parts),
                sum(part.share for part in parts),
                max(part.count for part in parts),
                sum(bounds) if bounds else None,
                sum(part.flops or 0 for part in parts),
                sum(part.bytes or 0 for part in parts),
                len(parts),
            )
        )
    return sorted(summed, key=lambda row: -row.seconds)


# ---- numbers as text ----------------------------------------------------------------------------


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _times(row: OperationRow | LineRow) -> str:
    """Return the ratio of the measured time to the bound as text."""
    return f"{row.seconds / row.bound:,.1f}" if row.bound else ""


def _rate(amount: int | None, seconds: float) -> str:
    return f"{amount / seconds * 1e-9:,.1f}" if amount and seconds else ""
