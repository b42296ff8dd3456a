"""The comparison of two profiles: which source lines take longer than their repeats explain."""

import json
import os
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from hlotools.cost.costs import line_text, table_lines, time_text
from hlotools.profiles.profile import LineRow, Profile
from hlotools.terminal_text import is_visible

FORMAT = "hlofront.profile_diff/1"
Verdict = Literal["slower", "faster", "same", "new", "gone", "unknown"]

# Among unchanged programs, one in this many has a line that is falsely reported as changed.
_ONE_IN = 100
# Fewer runs do not show well enough how much they vary.
_FEWEST_RUNS = 5


class LineChange(NamedTuple):
    """The times of a source line in two profiles, in seconds for one run of the program.

    Attributes:
      file, line: the line, as in the second profile; None for operations without one.
      code: its text.
      before, after: the means over the runs; 0.0 where it has no operations.
      noise: the difference of the means that the runs' variation explains; None for too few runs.
      verdict: "slower" or "faster" if the means differ by more, otherwise "same"; "unknown" without
        noise; "new" or "gone" for a line with operations in only one profile.
    """

    file: str | None
    line: int | None
    code: str | None
    before: float
    after: float
    noise: float | None
    verdict: Verdict

    @property
    def change(self) -> float:
        """The increase of the line's time in seconds."""
        return self.after - self.before


@dataclass(frozen=True, slots=True)
class ProfileDiff:
    """The differences between two profiles, returned by `compare_profiles`.

    Attributes:
      program: the name of the program.
      before, after: the means of the time in operations, in seconds.
      runs: the numbers of runs.
      lines: the source lines, those that changed most first.
    """

    program: str
    before: float
    after: float
    runs: tuple[int, int]
    lines: list[LineChange]

    @property
    def slower(self) -> list[LineChange]:
        """The lines that take longer than the repeats explain."""
        return [row for row in self.lines if row.verdict == "slower"]

    @property
    def faster(self) -> list[LineChange]:
        """The lines that take less time than the repeats explain."""
        return [row for row in self.lines if row.verdict == "faster"]

    @is_visible
    def text(self, most: int = 20) -> str:
        """Return a table of the lines whose time changed, and the number of the others.

        Args:
          most: the maximum number of lines.
        """
        changed = [row for row in self.lines if row.verdict != "same"]
        same = len(self.lines) - len(changed)
        rows = [
            [
                time_text(row.before),
                time_text(row.after),
                f"{'-' if row.change < 0 else '+'}{time_text(abs(row.change))}",
                "" if row.noise is None else time_text(row.noise),
                row.verdict,
                f"{line_text(row.file, row.line)}  {row.code or ''}".rstrip(),
            ]
            for row in changed[:most]
        ]
        title = (
            f"{self.program}: {time_text(self.before)} -> {time_text(self.after)} in operations, "
            f"means of {self.runs[0]} and {self.runs[1]} runs"
        )
        table = table_lines(["before", "after", "change", "noise", "is"], rows) if rows else []
        more = [f"and {len(changed) - most} more lines"] if len(changed) > most else []
        kept = [f"{same} lines differ by no more than their repeats do"] if same else []
        return "\n".join([title, *table, *more, *kept])

    __str__ = text

    @property
    def equal(self) -> bool:
        """Whether no line is known to take more or less time."""
        return all(row.verdict in ("same", "unknown") for row in self.lines)

    def json(self) -> str:
        """Return the comparison as JSON, with the keys of `as_dict()`."""
        return json.dumps(self.as_dict(), indent=1)

    def as_dict(self) -> dict[str, Any]:
        """Return the comparison as a dictionary for JSON, with times in seconds."""
        return {
            "format": FORMAT,
            "program": self.program,
            "before": self.before,
            "after": self.after,
            "runs": list(self.runs),
            "lines": [{**row._asdict(), "change": row.change} for row in self.lines],
        }


def compare_profiles(before: Profile, after: Profile) -> ProfileDiff:
    """Return which source lines of a program take more or less time in a second profile.

    Lines are the same if their texts are, wherever they are in the file; lines of equal or unknown
    text are distinguished by their numbers. A line is slower or faster if the means differ by more
    than the runs' variation explains, by Welch's test at a level of one percent for all lines
    together.

    Args:
      before, after: two results of `profile`, or of `profiles_in`.
    """
    sides = [_times_by_line(each) for each in (before, after)]
    keys = _shared_keys(before.lines, after.lines)
    by_key: list[dict[object, LineRow]] = [
        {keys[side][_place(row)]: row for row in profile.lines}
        for side, profile in enumerate((before, after))
    ]
    lines: list[LineChange] = []
    both = dict.fromkeys([*by_key[1], *by_key[0]])
    for key in both:
        row = by_key[1].get(key) or by_key[0][key]
        times = [
            sides[side].get(_place(by_key[side][key]), []) if key in by_key[side] else []
            for side in (0, 1)
        ]
        rows = [by_key[side].get(key) for side in (0, 1)]
        lines.append(_change(row, times, rows, len(both)))
    lines.sort(key=lambda row: -abs(row.change))
    return ProfileDiff(
        after.program,
        before.seconds,
        after.seconds,
        (before.runs, after.runs),
        lines,
    )


Place = tuple[str | None, int | None]


def _place(row: LineRow) -> Place:
    return row.file, row.line


def _shared_keys(before: list[LineRow], after: list[LineRow]) -> list[dict[Place, object]]:
    """Return keys of each profile's lines that are equal for the same line in both."""

    def by_text(rows: Iterable[LineRow]) -> dict[object, list[LineRow]]:
        found: dict[object, list[LineRow]] = {}
        for row in rows:
            name = os.path.basename(row.file) if row.file else None
            found.setdefault((name, row.code), []).append(row)
        return found

    texts = by_text(before), by_text(after)
    keys: list[dict[Place, object]] = [{}, {}]
    for side in (0, 1):
        for text, rows in texts[side].items():
            is_only = len(rows) == 1 and len(texts[1 - side].get(text, rows)) == 1
            for row in rows:
                name = os.path.basename(row.file) if row.file else None
                keys[side][_place(row)] = text if is_only and row.code else (name, row.line)
    return keys


def _times_by_line(profile: Profile) -> dict[Place, list[float]]:
    """Return the seconds of each source line in each run that can be told from other runs."""
    places = {row.name: (row.file, row.line) for row in profile.operations}
    times: dict[Place, list[float]] = {
        place: [0.0] * len(profile.each_run) for place in places.values()
    }
    for number, run in enumerate(profile.each_run):
        for name, seconds in run.items():
            times[places[name]][number] += seconds
    return times


def _change(
    row: LineRow, times: list[list[float]], rows: list[LineRow | None], lines: int
) -> LineChange:
    before, after = (0.0 if own is None else own.seconds for own in rows)
    verdict: Verdict = "unknown"
    noise = None
    if rows[0] is None or rows[1] is None:
        verdict = "new" if rows[0] is None else "gone"
    else:
        noise = _noise(times, lines)
    if noise is not None:
        verdict = "same"
        if abs(after - before) > noise:
            verdict = "slower" if after > before else "faster"
    return LineChange(row.file, row.line, row.code, before, after, noise, verdict)


def _noise(times: list[list[float]], lines: int) -> float | None:
    """Return the difference of means that the variation of two lists explains; None if too short.

    It is the threshold of Welch's test, at a level that all lines of a program share.
    """
    if min(map(len, times)) < _FEWEST_RUNS:
        return None
    errors = [statistics.variance(each) / len(each) for each in times]
    total = sum(errors)
    if not total:
        return 0.0
    freedom = total**2 / sum(e**2 / (len(t) - 1) for e, t in zip(errors, times, strict=True))
    return student_t_exceeded(1 / (_ONE_IN * lines), freedom) * total**0.5


def student_t_exceeded(level: float, freedom: float) -> float:
    """Return the value that Student's t exceeds, on either side, with probability `level`.

    By the expansion of Abramowitz and Stegun, 26.7.5.
    """
    z = statistics.NormalDist().inv_cdf(1 - level / 2)
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return sum(term / freedom**power for power, term in enumerate(terms))
