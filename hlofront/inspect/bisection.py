"""The `bisect` function: the first jaxlib, or git revision, at which a program changes."""

import operator
import pathlib
import re
import subprocess
import sys
from collections.abc import Callable, Sequence

from hlofront.base.named_tuple import NamedTuple
from hlofront.inspect.comparison.columns import (
    Artifact,
    Column,
    at_revision,
    side_of_column,
    under_jaxlib,
)
from hlofront.inspect.comparison.environments import NoEnvironment
from hlofront.inspect.jitted import jitted
from hlofront.inspect.target import other_jaxlibs_are_for_cpus
from hlotools.matching.difference import Diff, diff_of_sides

Tell = Callable[[str], object]
# Returns whether a program has changed; None if that cannot be judged.
Question = Callable[[Column], bool | None]

# The names of a column's figures in conditions, and the fields that hold them.
FIGURES = {
    "flops": "flops",
    "bytes": "bytes_accessed",
    "arguments": "argument_bytes",
    "results": "output_bytes",
    "temporaries": "temporary_bytes",
    "code": "code_bytes",
    "compile_seconds": "compile_seconds",
    "run_seconds": "run_seconds",
}
_COMPARISONS = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "==": operator.eq,
    "!=": operator.ne,
}
_CONDITION = re.compile(r"\s*(\w+)\s*(<=|>=|==|!=|<|>)\s*([\d_.]+(?:[eE][+-]?\d+)?)\s*")
# The exit status of a command that cannot judge a version, as for `git bisect run`.
_CANNOT_SAY = 125
# Each Python sees only the wheels of jaxlib that were built for it, so the lists of these two are
# merged.
_PYTHONS = ("3.11", "3.13")


class Tried(NamedTuple):
    """A version that was compiled."""

    label: str
    has_changed: bool | None
    """Whether the program has changed; None if that could not be said."""
    error: str | None
    """The reason for which the program did not compile; None if it did."""


class Bisection(NamedTuple):
    """The result of `bisect`."""

    before: Column | None
    """The last version before the change; None if there is no change."""
    after: Column | None
    """The first version with the change; None if there is no change."""
    skipped: tuple[str, ...]
    """The versions between these two, which could not be judged."""
    tried: tuple[Tried, ...]
    """All versions that were compiled, in the order in which they were."""
    reason: str
    """The reason for which there is no change; "" if there is one."""

    @property
    def difference(self) -> Diff | None:
        """The difference of the two programs; None if there is no change."""
        if self.before is None or self.after is None:
            return None
        return _difference(self.before, self.after)

    def text(self, color: bool = False, limit: int | None = 100, verbose: bool = False) -> str:
        """Return the versions tried, the first with the change, and the difference as text."""
        words = {True: "changed", False: "as before", None: "skipped"}
        width = max((len(version.label) for version in self.tried), default=0)
        lines = [
            f"{version.label:<{width}}  {words[version.has_changed]}"
            + (f": {version.error}" if version.error else "")
            for version in self.tried
        ]
        difference = self.difference
        if difference is None or self.after is None or self.before is None:
            return "\n".join([*lines, "", self.reason])
        lines += ["", f"first changed: {self.after.label} (not yet: {self.before.label})"]
        if self.skipped:
            lines.append(f"or one of these, which were skipped: {', '.join(self.skipped)}")
        body = difference.text(color, limit, verbose) if difference.changes else "no difference"
        return "\n".join([*lines, "", body])


def bisect(
    function: Callable[..., object],
    *args: object,
    jaxlib: str | None = None,
    at: str | None = None,
    target: str | None = None,
    when: str | None = None,
    command: str | None = None,
    file: str | None = None,
    specs: str | None = None,
    tell: Tell = lambda text: None,
) -> Bisection:
    """Return the first version of jaxlib, or git revision, at which a function's program changes.

    The program has changed if its optimized HLO differs structurally from the first version's, or
    according to `when` or `command`. Versions in which it does not compile are skipped.

    Args:
      function: a function of arrays, jitted or not.
      args: arrays, or anything with a shape and dtype.
      jaxlib: a range of versions, as in "0.8.3..0.12.0.1", which pip lists, or a list, as in
        "0.10.2,0.11.2". Each compiles in its own environment, which is created once.
      at: a range of git revisions of the function's file, as in "v1..HEAD".
      target: the device to compile for at these revisions, attached or not.
      when: a condition on one of `FIGURES`, as in "flops>1e9". The first version must not meet
        it.
      command: a shell command that reads the optimized HLO from standard input; an exit status
        other than 0 means that the program has changed, 125 that this version is to be skipped.
      file: the function's file and name as "FILE:FUNCTION"; `at` needs it.
      specs: the arguments at those revisions, as text; by default its file's example_args.
      tell: called with a line of text before each slow step.

    Raises:
      ValueError: if there is not one range, `at` lacks `file`, both `when` and `command` are
        given, the condition is unknown, or a range has fewer than two versions.
      NoEnvironment: if git or pip does not know the range.
    """
    if (jaxlib is None) == (at is None):
        raise ValueError("bisect requires one range: of jaxlib versions, or of git revisions")
    if when is not None and command is not None:
        raise ValueError("bisect takes a condition or a command, not both")
    if jaxlib is not None and target is not None:
        raise ValueError(other_jaxlibs_are_for_cpus(target))
    question = _question_of(when, command)
    if jaxlib is not None:
        names = versions_between(jaxlib)
        artifact = Artifact(jitted(function).lower(*args))
        timed = when is not None and when.strip().startswith("run_seconds")

        def compiled(name: str) -> Column:
            return under_jaxlib(artifact, name, run=timed, tell=say)

    else:
        if file is None:
            raise ValueError("bisect of git revisions requires file='FILE:FUNCTION'")
        path, _, function_name = file.rpartition(":")
        names = revisions_between(pathlib.Path(path), str(at))

        def compiled(name: str) -> Column:
            return at_revision(pathlib.Path(path), function_name, specs, name, say, target)

    if len(names) < 2:
        raise ValueError(f"bisect requires at least two versions: {jaxlib or at} has {len(names)}")
    search = _Search(names, compiled, question)

    def say(text: str) -> None:
        # Both ends are tried, then each version halves those between; skipped versions are extra.
        most = 2 + (len(names) - 2).bit_length()
        tell(f"{text} ({len(search.tried) + 1} of about {most})")

    return search.run()


class _Search:
    """A binary search for the first version at which the program has changed."""

    def __init__(
        self, names: Sequence[str], compiled: Callable[[str], Column], question: Question | None
    ):
        self.names = names
        self.compiled = compiled
        self.question = question
        self.columns: dict[int, Column] = {}
        self.tried: list[Tried] = []

    def changed(self, number: int) -> bool | None:
        """Return whether a version's program has changed; None if it cannot be judged."""
        column = self.columns[number] = self.compiled(self.names[number])
        answer = None
        if column.hlo is not None:
            if self.question is not None:
                answer = self.question(column)
            else:
                answer = number > 0 and not _difference(self.columns[0], column).equal
        self.tried.append(Tried(column.label, answer, column.error))
        return answer

    def run(self) -> Bisection:
        """Return the result of the search, which begins with both ends."""
        low, high = 0, len(self.names) - 1
        for number, expected in ((low, False), (high, True)):
            answer = self.changed(number)
            if answer is not expected:
                return self._none(number, answer)
        skipped: set[int] = set()
        while between := [i for i in range(low + 1, high) if i not in skipped]:
            middle = min(between, key=lambda i: abs(2 * i - low - high))
            answer = self.changed(middle)
            if answer is None:
                skipped.add(middle)
            elif answer:
                high = middle
            else:
                low = middle
        left = tuple(self.names[i] for i in range(low + 1, high))
        return Bisection(self.columns[low], self.columns[high], left, tuple(self.tried), "")

    def _none(self, number: int, answer: bool | None) -> Bisection:
        name = self.names[number]
        if answer is None:
            reason = f"{name} cannot be judged, and a search needs both ends: give another range"
        elif answer:
            reason = f"{name}, the first version, has it already: give an earlier one"
        else:
            reason = f"nothing changes from {self.names[0]} to {name}"
        return Bisection(None, None, (), tuple(self.tried), reason)


# ---- questions -----------------------------------------------------------------------------------


def _difference(before: Column, after: Column) -> Diff:
    return diff_of_sides(side_of_column(before, before.label), side_of_column(after, after.label))


def _question_of(when: str | None, command: str | None) -> Question | None:
    if command is not None:
        return lambda column: _status_says(command, column)
    if when is None:
        return None
    match = _CONDITION.fullmatch(when)
    if match is None or match[1] not in FIGURES:
        raise ValueError(
            f"{when!r} is not a condition: give a figure, a comparison and a number, as "
            f"'flops>1e9'. The figures are {', '.join(FIGURES)}"
        )
    figure, compare, limit = FIGURES[match[1]], _COMPARISONS[match[2]], float(match[3])

    def holds(column: Column) -> bool | None:
        value = getattr(column, figure)
        return None if value is None else bool(compare(value, limit))

    return holds


def _status_says(command: str, column: Column) -> bool | None:
    done = subprocess.run(command, shell=True, input=column.hlo, text=True, check=False)
    return None if done.returncode == _CANNOT_SAY else done.returncode != 0


# ---- ranges --------------------------------------------------------------------------------------


def versions_between(text: str) -> list[str]:
    """Return the versions of jaxlib of a range "A..B", in order, or of a list "A,B,C".

    Raises:
      NoEnvironment: if pip does not know both ends of the range.
      ValueError: if the text is neither.
    """
    ends = text.split("..")
    names = ends if len(ends) == 2 else [name.strip() for name in text.split(",")]
    if not all(map(_is_version, names)):
        raise ValueError(
            f"{text!r} is not a range of versions: give one such as 0.8.3..0.12.0.1, or a list"
        )
    if len(ends) != 2:
        return names
    published = published_versions()
    for end in ends:
        if end not in published:
            raise NoEnvironment(f"pip does not find jaxlib {end}; the newest is {published[-1]}")
    first, last = map(_order, ends)
    return [name for name in published if first <= _order(name) <= last]


def published_versions() -> list[str]:
    """Return the versions of jaxlib that pip can install, in order.

    Raises:
      NoEnvironment: if pip cannot list them.
    """
    versions: set[str] = set()
    error = "nothing"
    for python in _PYTHONS:
        done = subprocess.run(
            [sys.executable, "-m", "pip", "index", "versions", "jaxlib", "--only-binary", ":all:",
             "--python-version", python],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        listed = re.search(r"Available versions: (.*)", done.stdout)
        if listed is not None:
            versions.update(filter(_is_version, re.split(r",\s*", listed[1].strip())))
        elif done.stderr.strip():
            error = done.stderr.strip().splitlines()[-1]
    if not versions:
        raise NoEnvironment(
            f"pip cannot list the versions of jaxlib: give them, as 0.10.2,0.11.2. It said: {error}"
        )
    return sorted(versions, key=_order)


def _is_version(text: str) -> bool:
    return re.fullmatch(r"\d+\.\d+\.\d+(\.\d+)?", text) is not None


def _order(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def revisions_between(path: pathlib.Path, text: str) -> list[str]:
    """Return the commits of a range "A..B", A first, along the first parents of B.

    Raises:
      NoEnvironment: if git does not know the range.
      ValueError: if the text is not a range.
    """
    first, dots, last = text.partition("..")
    if not (first and dots and last):
        raise ValueError(f"{text!r} is not a range of revisions: give one such as v1..HEAD")
    start = _git(path, "rev-parse", "--short", "--verify", f"{first}^{{commit}}")
    listed = _git(
        path, "rev-list", "--reverse", "--first-parent", "--abbrev-commit", f"{first}..{last}"
    )
    return [*start, *listed]


def _git(path: pathlib.Path, *arguments: str) -> list[str]:
    folder = str(path.resolve().parent)
    done = subprocess.run(
        ["git", "-C", folder, *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise NoEnvironment(f"git {arguments[0]} in {folder}: {lines[-1] if lines else 'failed'}")
    return done.stdout.split()
