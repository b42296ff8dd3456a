"""The `compare` function: one function under several jaxlibs, devices or git revisions."""

import json
import pathlib
from collections.abc import Callable, Iterable, Sequence

from hlofront.base.named_tuple import NamedTuple
from hlofront.inspect.comparison.columns import (
    Artifact,
    Column,
    at_revision,
    here,
    rates_of_column,
    side_of_column,
    under_jaxlib,
    with_autotuning,
)
from hlofront.inspect.jitted import jitted
from hlofront.inspect.target import other_jaxlibs_are_for_cpus
from hlotools.cost.costs import costs, time_text
from hlotools.html.diff_page import page
from hlotools.matching.difference import Diff, diff_of_sides
from hlotools.matching.markdown import code, table
from hlotools.profiles.compile_times import slower_passes


class Row(NamedTuple):
    """A row of the comparison's table: a figure, with its value in each column.

    `unit` is "ms" for seconds that are shown as milliseconds, "time" for seconds that are shown in
    a unit of their size, else "".
    """

    title: str
    values: tuple[float | None, ...]
    unit: str


class Comparison:
    """The columns of a comparison, and the differences of each from the first one that compiled."""

    def __init__(self, name: str, columns: Sequence[Column]):
        self.name = name
        self.columns = tuple(columns)
        compiled = [column for column in columns if column.hlo is not None]
        self.base = compiled[0].label if compiled else None
        self.diffs: dict[str, Diff] = {
            column.label: diff_of_sides(
                side_of_column(compiled[0], compiled[0].label), side_of_column(column, column.label)
            )
            for column in compiled[1:]
        }

    @property
    def slower_passes(self) -> dict[str, list[str]]:
        """For each column, the passes that make its compilation longer than the first one's."""
        base = next((column for column in self.columns if column.label == self.base), None)
        return {
            column.label: slower_passes(base.passes, column.passes)
            for column in self.columns
            if base is not None and base.passes and column.passes
        }

    @property
    def equal(self) -> bool:
        """True if all columns compiled, and to the same program."""
        return all(column.error is None for column in self.columns) and all(
            diff.equal for diff in self.diffs.values()
        )

    @property
    def errors(self) -> dict[str, str]:
        """The error messages of the columns that did not compile, by label."""
        return {column.label: column.error for column in self.columns if column.error is not None}

    def rows(self) -> list[Row]:
        """Return the rows of the table: one per figure, with a value per column."""
        bounds = tuple(map(_least_seconds, self.columns))
        return [
            Row(title, tuple(getattr(column, field) for column in self.columns), unit)
            for title, field, unit in (
                ("floating-point operations", "flops", ""),
                ("bytes accessed", "bytes_accessed", ""),
                ("bytes of arguments", "argument_bytes", ""),
                ("bytes of results", "output_bytes", ""),
                ("bytes of temporaries", "temporary_bytes", ""),
                ("bytes of code", "code_bytes", ""),
                ("compile time", "compile_seconds", "ms"),
                ("run time", "run_seconds", "ms"),
            )
        ] + [Row("least time by the bounds", bounds, "time")]

    def text(self, color: bool = False, limit: int | None = 100, verbose: bool = False) -> str:
        """Return the table and each column's differences as text, in the format of `Diff.text`."""
        labels = [column.label for column in self.columns]
        rows = [
            (row.title, [_shown(value, row.unit) for value in row.values]) for row in self.rows()
        ]
        first = max(len(title) for title, _ in rows)
        widths = [
            max(len(label), *(len(values[i]) for _, values in rows))
            for i, label in enumerate(labels)
        ]
        lines = [" " * first + "".join(f"  {x:>{w}}" for x, w in zip(labels, widths, strict=True))]
        for title, values in rows:
            if any(value != "-" for value in values):
                cells = "".join(f"  {x:>{w}}" for x, w in zip(values, widths, strict=True))
                lines.append(f"{title:<{first}}{cells}")
        for label, error in self.errors.items():
            lines += ["", f"{label}: not compiled: {error}"]
        for label, each in self.diffs.items():
            lines += ["", f"{self.base} -> {label}:"]
            summary = each.text(color, limit, verbose) if each.changes else "no difference"
            lines.append(_indented(summary))
            if slower := self.slower_passes.get(label):
                lines += ["  passes of XLA that take longer:", *(f"    {text}" for text in slower)]
        return "\n".join(lines)

    __str__ = text

    def markdown(self) -> str:
        """Return the table and each column's differences as Markdown, as for a pull request."""
        rows = [
            (row.title, *(_shown(value, row.unit) for value in row.values))
            for row in self.rows()
            if any(value is not None for value in row.values)
        ]
        lines = [f"## {code(self.name)}", ""]
        lines += table(("", *(code(column.label) for column in self.columns)), rows)
        for label, error in self.errors.items():
            lines += ["", f"{code(label)} was not compiled: {code(error)}"]
        for label, diff in self.diffs.items():
            lines += ["", diff.markdown()]
            if slower := self.slower_passes.get(label):
                lines += ["", "Passes of XLA that take longer:", ""]
                lines += [f"- {code(text)}" for text in slower]
        return "\n".join(lines)

    def exceeded(self, limits: Iterable[str]) -> list[str]:
        """Return the limits that a column exceeds, with its label: see `Diff.exceeded`.

        Raises:
          ValueError: if a text is not a limit, or names an unknown total.
        """
        limits = list(limits)
        return [
            f"{label}: {limit}"
            for label, each in self.diffs.items()
            for limit in each.exceeded(limits)
        ]

    def html(self) -> str:
        """Return an HTML page: the table, each program next to the first, and each on its own."""
        rows = [
            (row.title, [_shown(value, row.unit) for value in row.values])
            for row in self.rows()
            if any(value is not None for value in row.values)
        ]
        table = {
            "heads": [column.label for column in self.columns],
            "rows": rows,
            "errors": list(self.errors.items()),
            "notes": [
                [f"{label}: passes of XLA that take longer than in {self.base}", slower]
                for label, slower in self.slower_passes.items()
                if slower
            ],
        }
        diffs = {f"{self.base} → {label}": each for label, each in self.diffs.items()}
        programs = {
            column.label: (column.hlo, rates_of_column(column), column.kernels)
            for column in self.columns
            if column.hlo is not None
        }
        return page(diffs, self.name, table, programs)

    def json(self) -> str:
        """Return the comparison as JSON: name, equal, base, columns and diffs."""
        return json.dumps(
            {
                "name": self.name,
                "equal": self.equal,
                "base": self.base,
                "columns": [
                    {
                        **{k: v for k, v in column._asdict().items() if k not in _UNPRINTED},
                        "passes": [each._asdict() for each in column.passes],
                    }
                    for column in self.columns
                ],
                "diffs": {label: json.loads(each.json()) for label, each in self.diffs.items()},
            },
            indent=1,
        )


# The fields of a column that are left out of its JSON.
_UNPRINTED = ("stablehlo", "kernels")


def _least_seconds(column: Column) -> float | None:
    """Return the least time of a column's program, None without the rates of its device."""
    rates = rates_of_column(column)
    if rates is None or column.hlo is None:
        return None
    seconds: float | None = costs(column.hlo, rates).total["seconds"]
    return seconds


def _shown(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    if unit == "time":
        return time_text(value)
    return f"{1e3 * value:,.2f} ms" if unit == "ms" else f"{value:,.0f}"


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" if line else line for line in text.splitlines())


def check_targets(jaxlib: Sequence[str], target: Sequence[str], at: Sequence[str]) -> None:
    """Raise a ValueError if targets cannot be compared together with jaxlibs or revisions."""
    if at and len(target) > 1:
        raise ValueError(
            f"compare takes one target together with git revisions, got {', '.join(target)}: "
            "compare the revisions once for each of them"
        )
    for name in target if jaxlib else ():
        if not name.startswith("cpu"):
            raise ValueError(other_jaxlibs_are_for_cpus(name))


def compare(
    function: Callable[..., object],
    *args: object,
    jaxlib: Iterable[str] = (),
    target: Iterable[str] = (),
    at: Iterable[str] = (),
    autotuning: Iterable[str] = (),
    run: bool = True,
    file: str | None = None,
    specs: str | None = None,
    tell: Callable[[str], object] = lambda text: None,
    kernels: bool = False,
) -> Comparison:
    """Compile a function under several jaxlibs, for several devices, and at several git revisions.

    Each version of jaxlib compiles in its own environment, which is created once. The function
    is lowered once, in this process, to a portable StableHLO artifact.

    Args:
      function: a function of arrays, jitted or not.
      args: arrays, or anything with a shape and dtype.
      jaxlib: versions, as in "0.8.3"; "current" is this process's.
      target: devices, attached or not, as `hlofront.target` takes them: "cpu", "tpu:v5e:2x2". With
        `at` it is one device, for which the function is compiled at each revision.
      at: git revisions of the file that the function is in.
      autotuning: files of autotuning results for NVIDIA GPUs, with each of which the function is
        compiled for each target, by default for this process's GPU.
      run: whether programs compiled for this machine are run and timed.
      file: the function's file and name as "FILE:FUNCTION"; `at` and `autotuning`
        need it.
      specs: the arguments of the function in other processes, as text; by default its file's
        example_args().
      tell: called with a line of text before each slow step.
      kernels: whether the page shows the kernels for TPUs that are not attached, for which the
        function is compiled again.

    Raises:
      ValueError: if there is nothing to compare, `file` is missing, the program has callbacks, or
        `target` does not go with the other arguments.
    """
    jaxlib, target, at, autotuning = list(jaxlib), list(target), list(at), list(autotuning)
    if not (jaxlib or target or at or autotuning):
        raise ValueError("compare requires versions of jaxlib, targets or git revisions to compare")
    if (at or autotuning) and file is None:
        raise ValueError(
            "compare at git revisions, or with autotuning results, requires file='FILE:FUNCTION'"
        )
    check_targets(jaxlib, target, at)
    at_target = target[0] if at and target else None
    columns: list[Column] = []
    tuned = [(name, results) for name in target or [None] for results in autotuning]
    alone = target if not tuned and at_target is None else []
    most = len(jaxlib) + len(tuned) + len(alone) + len(at)

    def say(text: str) -> None:
        tell(f"{text} ({len(columns) + 1} of {most})" if most > 1 else text)

    if jaxlib:
        artifact = Artifact(jitted(function).lower(*args))
        for version in jaxlib:
            columns.append(under_jaxlib(artifact, version, run=run, tell=say))
    for target_name, results in tuned:
        columns.append(with_autotuning(str(file), specs, target_name, results, say))
    for target_name in alone:
        columns.append(here(target_name, function, args, target_name, say, kernels))
    path, _, name = str(file).rpartition(":")
    for revision in at:
        columns.append(at_revision(pathlib.Path(path), name, specs, revision, say, at_target))
    if len(columns) == 1:
        columns.insert(0, here("here", function, args, at_target, tell))
    return Comparison(getattr(function, "__name__", "function"), columns)
