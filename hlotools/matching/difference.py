"""The `diff` function: the differences of two jaxprs, StableHLO or HLO programs by structure."""

import inspect
import json
import os
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from hlotools.collection import paused_collection
from hlotools.cost.collectives import collectives
from hlotools.cost.estimates import estimates_of
from hlotools.cost.peak import peaks
from hlotools.cost.rates import DeviceRates
from hlotools.dumps.dump_files import flags_beside, text_before
from hlotools.html.diff_page import fragment, page
from hlotools.html.frame import frame
from hlotools.html.notebook import folded_html
from hlotools.ir.digests import Hashes, module_attributes
from hlotools.ir.hlo import HloModule, HloSyntaxError
from hlotools.ir.hlo_parser import parse
from hlotools.ir.hlo_printer import write
from hlotools.ir.jaxpr_parser import read_jaxpr
from hlotools.ir.mlir_lines import (
    bounded,
    jaxpr_lines,
    line_changes,
    stablehlo_lines,
)
from hlotools.ir.nested_calls import align_calls, inline_all_calls
from hlotools.ir.program_text import (
    TITLES,
    ProgramText,
    is_path,
    kind_of,
    name_in,
    program_of_file,
    program_of_text,
)
from hlotools.ir.stablehlo_parser import read_stablehlo
from hlotools.matching.attribution import under_arguments, under_causes
from hlotools.matching.causes import Cause, causes
from hlotools.matching.changes import Change, grouped
from hlotools.matching.effects import by_effect
from hlotools.matching.findings import findings
from hlotools.matching.flags import Flags, flag_changes
from hlotools.matching.hlo_causes import hlo_causes
from hlotools.matching.hlo_changes import hlo_changes
from hlotools.matching.kernel_changes import hashes_of
from hlotools.matching.limits import limit_of
from hlotools.matching.markdown import diff_markdown
from hlotools.matching.match import Matching
from hlotools.matching.roots import root_pairs
from hlotools.matching.schedules import is_scheduled, same_schedule, schedule_changes
from hlotools.terminal_text import on_one_line, visible

FORMAT = "hlofront.diff/1"
_COLORS = {
    "added": "\x1b[32m",
    "removed": "\x1b[31m",
    "split": "\x1b[33m",
    "merged": "\x1b[33m",
    "regrouped": "\x1b[33m",
    "reordered": "\x1b[33m",
    "exchanged": "\x1b[33m",
    "refused": "\x1b[33m",
    "flag": "\x1b[33m",
    "scheduled": "\x1b[33m",
}
# The number of effects that are listed with their causes.
_SHOWN = 8
_BOLD, _DIM, _RESET = "\x1b[1m", "\x1b[2m", "\x1b[0m"


class Side(NamedTuple):
    """One of two compared programs; what is unknown is None.

    Attributes:
      flags: the compiler's flags by name.
      rates: the rates of the device.
      source: a function that returns the StableHLO that a program was compiled from.
      compiler: what identifies the program's compiler and device.
    """

    kind: str
    label: str
    text: str
    module: HloModule | None = None
    flags: Flags | None = None
    rates: DeviceRates | None = None
    source: Callable[[], str] | None = None
    compiler: str | None = None


class Diff:
    """The differences between two programs.

    `equal` is True if only names, source lines and orders without meaning differ; differing flags
    are among the changes, even of equal programs. `changes` are the differences with their sites;
    those with one cause are the `parts` of one change. Changes of HLO have an `effect`; causes come
    first, and among changes of one kind those with the largest effect. `kind` is
    "jaxpr", "stablehlo" or "hlo"; `totals` are counts and estimates of both HLO programs.
    `same_schedule` is whether equal scheduled HLO programs have equal schedules, else None.
    """

    __slots__ = (
        "_matching", "_modules", "a", "b", "changes", "equal", "kind", "same_schedule", "totals",
    )  # fmt: skip

    def __init__(
        self,
        a: Side,
        b: Side,
        equal: bool,
        changes: list[Change],
        totals: tuple[dict[str, int], dict[str, int]] | None,
        same_schedule: bool | None = None,
        modules: tuple[HloModule, HloModule] | None = None,
        matching: Matching | None = None,
    ):
        # The parsed modules and their matching, for the page.
        self._modules = modules
        self._matching = matching
        self.a = a
        self.b = b
        self.kind = a.kind
        self.equal = equal
        self.changes = changes
        self.totals = totals
        self.same_schedule = same_schedule

    @property
    def title(self) -> str:
        if self.equal:
            others = ", compiled with other flags" if self._other_flags else ""
            return f"{TITLES[self.kind]}: the same program{others}"
        causes = sum(change.is_cause for change in self.changes)
        count = sum(
            len(change.parts) if change.is_cause or change.kind == "shared" else 1
            for change in self.changes
        )
        of = f" of {_counted(causes, 'cause')}" if causes else ""
        return f"{TITLES[self.kind]}: {_counted(count, 'change')}{of}"

    @property
    def _other_flags(self) -> bool:
        return any(change.kind == "flag" for change in self.changes)

    def total_rows(self) -> list[tuple[str, int, int]]:
        """Return the totals that differ, as (name, total of a, total of b)."""
        if self.totals is None:
            return []
        first, second = self.totals
        return [(key, first[key], second[key]) for key in first if first[key] != second[key]]

    def exceeded(self, limits: Iterable[str]) -> list[str]:
        """Return the limits that the second program exceeds, such as "bytes>1%".

        A limit is the name of a total, ">", and the growth of the total that is allowed, a number
        or a percentage: "peak>0", "flops>5%", "copies>2". Only HLO programs have totals.

        Raises:
          ValueError: if a text is not a limit, or names an unknown total.
        """
        read = [limit_of(text) for text in limits]
        if self.totals is None:
            if read and not self.equal:
                raise ValueError(f"{TITLES[self.kind]} has no totals to limit: compare HLO")
            return []
        return [limit.text for limit in read if limit.is_exceeded(*self.totals)]

    def text(self, color: bool = False, limit: int | None = 100, verbose: bool = False) -> str:
        """Return the differences as text, one per line, with the user's source lines.

        Args:
          color: whether to color the text for a terminal.
          limit: the maximum number of listed changes; None for all.
          verbose: whether to list the parts of each change below it.
        """

        def paint(style: str, text: str) -> str:
            text = visible(text)
            return f"{style}{text}{_RESET}" if color and style else text

        lines = [
            paint(_BOLD, self.title),
            *(
                f"  {name}: {on_one_line(side.label)}"
                for name, side in (("a", self.a), ("b", self.b))
            ),
        ]
        if self.equal and self.same_schedule is False:
            lines.append(
                "  in another order: schedule=True (--schedule at the shell) says what moved"
            )
        rows = self.total_rows()
        if rows:
            lines.append("")
            width = max(len(key) for key, *_ in rows)
            digits = max(len(f"{n:,}") for _, *both in rows for n in both)
            for key, before, after in rows:
                share = f", {(after - before) / before:+.1%}" if before > 99 else ""
                lines.append(
                    f"  {key.replace('_', ' '):<{width}}  {before:>{digits},} -> "
                    f"{after:>{digits},}  ({after - before:+,}{share})"
                )
        if self.changes:
            lines.append("")

        def tell(change: Change, margin: str) -> None:
            sources = change.sources
            where = ", ".join(sources[:3]) + (", ..." if len(sources) > 3 else "")
            line = paint(_COLORS.get(change.kind, ""), change.sentence)
            if change.effect and str(change.effect):
                line += f"  [{change.effect}]"
            lines.append(margin + line + (paint(_DIM, f"  at {where}") if where else ""))
            shown = change.parts if verbose else change.parts[:most] if change.is_cause else ()
            for part in shown:
                tell(part, margin + "  ")
            if shown and len(shown) < len(change.parts):
                lines.append(f"{margin}  and {len(change.parts) - len(shown)} more")

        # The largest effects of a few causes are listed with them.
        most = max(_SHOWN // max(sum(change.is_cause for change in self.changes), 1), 1)
        for change in self.changes[:limit]:
            tell(change, "")
        more = len(self.changes) - (len(self.changes) if limit is None else limit)
        if more > 0:
            lines.append(f"and {more} more")
        folded = sum(_folded(change, most) for change in self.changes)
        if folded and not verbose:
            lines.append(
                paint(
                    _DIM,
                    f"{_counted(folded, 'change')} {'is' if folded == 1 else 'are'} folded: "
                    "verbose=True (--verbose at the shell) lists them",
                )
            )
        return "\n".join(lines)

    def json(self) -> str:
        """Return the differences as JSON, with the keys of `as_dict()`."""
        return json.dumps(self.as_dict(), indent=1)

    def as_dict(self) -> dict[str, Any]:
        """Return the differences as a dictionary for `json.dumps`, in a stable format.

        Returns:
          `format` ("hlofront.diff/1"), `kind`, `equal`, `same_schedule`, `a` and `b` (each with
          `label`, and `totals` or None), and `changes`: each with `kind`, `what`, `before`,
          `after`, `text`, `a` and `b`, lists of sites with `name`, `opcode`, `type`, `file`,
          `line` and `function`, `effect` (of HLO: by how many `bytes` and `operations`, and by how
          many `seconds` of time bounds, the operations that it touches increased), and `parts`,
          the changes that it consists of. Unknown values are None.
        """
        totals = self.totals or (None, None)
        return {
            "format": FORMAT,
            "kind": self.kind,
            "equal": self.equal,
            "same_schedule": self.same_schedule,
            "a": {"label": self.a.label, "totals": totals[0]},
            "b": {"label": self.b.label, "totals": totals[1]},
            "changes": [change.as_dict() for change in self.changes],
        }

    def markdown(self) -> str:
        """Return the differences as Markdown, such as for the comment of a pull request."""
        labels = self.a.label, self.b.label
        return diff_markdown(self.title, labels, self.total_rows(), self.changes)

    def html(self) -> str:
        """Return a self-contained HTML page with both programs side by side."""
        return page({"": self})

    def _repr_html_(self) -> str:
        labels = self.a.label, self.b.label
        listed = fragment(self.title, *labels, self.total_rows(), self.changes)
        return folded_html(self.title, listed) + frame(self.html())

    def __repr__(self) -> str:
        return self.text(limit=20)

    def __rich_repr__(self) -> Any:
        yield "kind", self.kind
        yield "equal", self.equal
        yield "changes", [change.sentence for change in self.changes[:20]]

    def __bool__(self) -> bool:
        raise TypeError("a Diff is neither true nor false: use its .equal")


def _folded(change: Change, most: int) -> int:
    """Return the number of a change's parts that are listed only on request."""
    if not change.is_cause:
        return len(change.parts)
    return max(len(change.parts) - most, 0) + sum(len(part.parts) for part in change.parts[:most])


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def diff(
    a: object, b: object, *, schedule: bool = False, labels: tuple[str, str] | None = None
) -> Diff:
    """Return the differences between two programs.

    Names, source lines, install paths and irrelevant orders do not count as differences; nor does
    the schedule of a compiled program, unless `schedule` is True.

    Args:
      a: text of a jaxpr, StableHLO or HLO; the path of a file of such text; a result of
        `parse`; or an object whose `as_text()` is one of these, such as jax's stages.
      b: the other program, of the same kind.
      schedule: whether operations that run earlier or later in a compiled program differ, with
        one change per computation, which names the moved operations.
      labels: the names of the two programs; by default taken from the programs.

    Raises:
      HloSyntaxError: if HLO text cannot be parsed.
      TypeError: if an argument is not a program.
      ValueError: if the programs are of two kinds, or a text is not a program.
    """
    return diff_of_sides(side_of(a), side_of(b), schedule, labels)


@paused_collection()
def diff_of_sides(
    a: Side, b: Side, schedule: bool = False, labels: tuple[str, str] | None = None
) -> Diff:
    """Return the differences between two programs whose kinds are known.

    Raises:
      HloSyntaxError: if HLO text cannot be parsed.
      ValueError: if the programs are of two kinds.
    """
    if labels is not None:
        a, b = a._replace(label=labels[0]), b._replace(label=labels[1])
    if a.kind != b.kind:
        raise ValueError(
            f"{a.label} is {TITLES[a.kind]} and {b.label} is {TITLES[b.kind]}: compare programs "
            "at one stage"
        )
    if a.kind != "hlo":
        return _of_text_kinds(a, b)
    modules = _parsed(a), _parsed(b)
    totals = _totals(modules[0]), _totals(modules[1])
    difference = _of_modules(a, b, modules, totals, schedule)
    flags = flag_changes(a.flags, b.flags)
    if difference.equal:
        difference.changes = [*(flag._replace(is_cause=True) for flag in flags)]
        return difference
    known = [Cause(flag, frozenset(), frozenset()) for flag in flags]
    if a.compiler is not None and b.compiler is not None and a.compiler != b.compiler:
        other = Change("compiler", "compiler", a.compiler, b.compiler, (), ())
        known.append(Cause(other, frozenset(), frozenset()))
    matching = difference._matching
    # Programs that were read from text or a file have no StableHLO.
    are_all = a.source is not None and b.source is not None
    if are_all:
        known += _causes(a, b)
    elif matching is not None:
        known += hlo_causes(matching, difference.changes)
    difference.changes = under_causes(known, difference.changes, are_all)
    return difference


def _causes(a: Side, b: Side) -> list[Cause]:
    """Return the differences of the sources of two programs, if known and parsable."""
    if a.source is None or b.source is None:
        return []
    texts = a.source(), b.source()
    try:
        return [] if texts[0] == texts[1] else causes(*map(_read_source, texts))
    except ValueError:
        # The parser does not know all syntax of StableHLO: the diff is then without causes.
        return []


def _read_source(text: str) -> HloModule:
    """Parse the compiler's input: StableHLO, or HLO in XLA's dumps."""
    return parse(text) if kind_of(text) == "hlo" else read_stablehlo(text)


def _totals(module: HloModule) -> dict[str, int]:
    """Return the counts and estimates of an HLO program.

    They include the bytes that each device sends, and the peak of memory by the schedule.
    """
    totals = estimates_of(module).totals()
    totals["sent_bytes"] = collectives(module).moved_bytes if totals["collectives"] else 0
    return totals | {"peak_bytes": peaks(module)[1]}


def _of_text_kinds(a: Side, b: Side) -> Diff:
    """Return the differences of StableHLO or jaxprs, by lines if the texts cannot be parsed."""
    if a.text == b.text:
        return Diff(a, b, True, [], None)
    a, b = a._replace(text=bounded(a.text)), b._replace(text=bounded(b.text))
    read = read_stablehlo if a.kind == "stablehlo" else read_jaxpr
    try:
        modules = read(a.text), read(b.text)
    except ValueError:
        pass
    else:
        return _with_aligned_calls(a, b, modules, read)
    lines_of = stablehlo_lines if a.kind == "stablehlo" else jaxpr_lines
    lines = lines_of(a.text), lines_of(b.text)
    if [line.text for line in lines[0]] == [line.text for line in lines[1]]:
        return Diff(a, b, True, [], None)
    changes = grouped(line_changes(*lines))
    return Diff(a, b, not changes, changes, None)


def _with_aligned_calls(
    a: Side,
    b: Side,
    modules: tuple[HloModule, HloModule],
    read: Callable[[str], HloModule],
) -> Diff:
    """Return the differences of two modules that may split equal work into different functions."""
    as_written = _of_modules(a, b, modules)
    if as_written.equal:
        return as_written
    modules = read(a.text), read(b.text)
    if not align_calls(*modules):
        return as_written
    difference = _of_modules(a, b, modules)
    if difference.equal:
        return difference
    difference = min(difference, as_written, key=lambda each: len(each.changes))
    # Functions that both have, but call a different number of times, may hide equal work.
    modules = read(a.text), read(b.text)
    if not all(map(inline_all_calls, modules)):
        return difference
    without_calls = _of_modules(a, b, modules)
    return min(without_calls, difference, key=lambda each: len(each.changes))


def _of_modules(
    a: Side,
    b: Side,
    modules: tuple[HloModule, HloModule],
    totals: tuple[dict[str, int], dict[str, int]] | None = None,
    schedule: bool = False,
) -> Diff:
    hashes = hashes_of(*modules)
    scheduled = is_scheduled(modules[0]) and is_scheduled(modules[1])
    moved = list(schedule_changes(*hashes)) if schedule and scheduled else []
    if _same(*hashes):
        in_order = same_schedule(*hashes) if scheduled else None
        return Diff(a, b, not moved, moved, totals, in_order, modules)
    matching = Matching(*hashes)
    changes = findings(hlo_changes(matching), matching)
    if totals is not None:
        changes = by_effect(changes, matching, (a.rates, b.rates))
    elif a.kind == "stablehlo":
        changes = under_arguments(changes, matching)
    changes += moved
    if not changes:
        # The digests differ although no specific change was found: report an unspecific one.
        changes = [
            Change(kind="module", what="structure", before="as in a", after="as in b", a=(), b=())
        ]
    return Diff(a, b, False, changes, totals, None, modules, matching)


def _parsed(side: Side) -> HloModule:
    if side.module is not None:
        return side.module
    try:
        return parse(side.text)
    except HloSyntaxError as error:
        raise HloSyntaxError(
            error.message, error.line, error.column, error.text, side.label
        ) from None


def _same(a: Hashes, b: Hashes) -> bool:
    """Return whether two modules have equal digests and attributes."""
    if module_attributes(a.module) != module_attributes(b.module):
        return False
    roots = root_pairs(a.module, b.module)
    if roots.removed or roots.added:
        return False
    return all(a.computation(x) == b.computation(y) for x, y in roots.pairs)


# ---- what one can compare -----------------------------------------------------------------------


def with_dump(program: ProgramText, path: str) -> Side:
    """Return the program of a file as a side, with the flags and the module dumped next to it."""
    side = Side(*program)
    if side.kind != "hlo":
        return side
    before = text_before(path)
    source = None if before is None else lambda: before
    return side._replace(flags=flags_beside(path), source=source)


def side_of(value: object) -> Side:
    """Return a program of any type that `diff` accepts as a Side.

    Raises:
      TypeError: if the value is not a program.
      ValueError: if its text is not a program.
    """
    if isinstance(value, HloModule):
        return Side("hlo", f"module {value.name}", write(value), value)
    if isinstance(value, os.PathLike) or (isinstance(value, str) and is_path(value)):
        path = os.fspath(value)
        return with_dump(program_of_file(path), path)
    if isinstance(value, str):
        side = Side(*program_of_text(value, "text"))
        name = name_in(value)
        return side._replace(label=f"text: {name}") if name else side
    as_text = getattr(value, "as_text", None)
    if callable(as_text):
        # JAX's lowered programs have source lines only on request.
        takes_lines = "debug_info" in inspect.signature(as_text).parameters
        text = as_text(debug_info=True) if takes_lines else as_text()
        return Side(*program_of_text(text, type(value).__name__))
    if callable(value):
        raise TypeError(
            f"to compare {getattr(value, '__name__', value)!r} give it with its arguments, as a "
            "tuple: (f, x, y)"
        )
    raise TypeError(
        "expected text, a file's path, a Traced, Lowered or Compiled, a jaxpr, or a function with "
        f"its arguments as a tuple; got {type(value).__name__}"
    )
