"""What differs between two programs: jaxprs, StableHLO or HLO, read as structure, not as lines."""

import json
import os
from collections.abc import Callable
from typing import Any, NamedTuple

from hlofront.core.jaxpr import ClosedJaxpr, Jaxpr
from hlofront.inspect.diff_page import fragment, page
from hlofront.runtime.dispatch.jit import jit
from hlofront.runtime.dispatch.stages import Compiled, Lowered, Traced
from hlotools.cost.estimates import Estimates
from hlotools.diff.changes import Change, grouped
from hlotools.diff.findings import findings
from hlotools.diff.hlo_changes import hlo_changes
from hlotools.diff.match import Matching
from hlotools.diff.schedules import is_scheduled, same_schedule, schedule_changes
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
from hlotools.ir.program_text import KINDS, TITLES, is_path, program_of_file, program_of_text
from hlotools.ir.stablehlo_parser import read_stablehlo

FORMAT = "hlofront.diff/1"
_COLOURS = {
    "added": "\x1b[32m",
    "removed": "\x1b[31m",
    "split": "\x1b[33m",
    "merged": "\x1b[33m",
    "regrouped": "\x1b[33m",
    "reordered": "\x1b[33m",
    "exchanged": "\x1b[33m",
    "refused": "\x1b[33m",
    "scheduled": "\x1b[33m",
}
_BOLD, _DIM, _RESET = "\x1b[1m", "\x1b[2m", "\x1b[0m"


class Side(NamedTuple):
    """One of two programs: what kind of text it is, what it is called, and the text."""

    kind: str
    label: str
    text: str
    module: HloModule | None = None


class Diff:
    """What differs between two programs.

    `equal` says whether they are the same program: nothing differs but names, places, and orders
    that mean nothing. `changes` are the differences, each with its places; what has one cause is
    one of them and has `parts`. `kind` is "jaxpr", "stablehlo" or "hlo"; `totals` are counts and
    estimates of both sides, of HLO alone.
    `same_schedule` says of scheduled HLO that is equal whether it runs in one order, else None.
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
        # What was read and matched, for the page.
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
            return f"{TITLES[self.kind]}: the same program"
        count = len(self.changes)
        return f"{TITLES[self.kind]}: {count} {'change' if count == 1 else 'changes'}"

    def total_rows(self) -> list[tuple[str, int, int]]:
        """What the totals differ in: (name, of a, of b)."""
        if self.totals is None:
            return []
        first, second = self.totals
        return [(key, first[key], second[key]) for key in first if first[key] != second[key]]

    def text(self, color: bool = False, limit: int | None = 100, verbose: bool = False) -> str:
        """The differences in words, a line each, with the user's source lines.

        Args:
          color: whether to colour them for a terminal.
          limit: the most changes that are listed; None: all.
          verbose: whether the parts of changes that have some are listed under them.
        """

        def paint(style: str, text: str) -> str:
            return f"{style}{text}{_RESET}" if color and style else text

        lines = [paint(_BOLD, self.title), f"  a: {self.a.label}", f"  b: {self.b.label}"]
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
            line = paint(_COLOURS.get(change.kind, ""), change.sentence)
            lines.append(margin + line + (paint(_DIM, f"  at {where}") if where else ""))
            for part in change.parts if verbose else ():
                tell(part, margin + "  ")

        for change in self.changes[:limit]:
            tell(change, "")
        more = len(self.changes) - (len(self.changes) if limit is None else limit)
        if more > 0:
            lines.append(f"and {more} more")
        folded = sum(len(change.parts) for change in self.changes)
        if folded and not verbose:
            lines.append(
                paint(
                    _DIM,
                    f"{folded} changes are folded: verbose=True (--verbose at the shell) lists "
                    "them",
                )
            )
        return "\n".join(lines)

    def json(self) -> str:
        """`as_dict()` as JSON."""
        return json.dumps(self.as_dict(), indent=1)

    def as_dict(self) -> dict[str, Any]:
        """The differences as what `json.dumps` takes; the names of fields stay as they are.

        Returns:
          `format` ("hlofront.diff/1"), `kind`, `equal`, `same_schedule`, `a` and `b` (each with
          `label`, and `totals` or None), and `changes`: each with `kind`, `what`, `before`,
          `after`, `text`, `a` and `b`, lists of places with `name`, `opcode`, `type`, `file`,
          `line` and `function`, and `parts`, the changes that it is made of. What is not known
          is None.
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

    def html(self) -> str:
        """Both programs side by side as one page that needs nothing else, not even a network."""
        return page({"": self})

    def _repr_html_(self) -> str:
        return fragment(self.title, self.a.label, self.b.label, self.total_rows(), self.changes)

    def __repr__(self) -> str:
        return self.text(limit=20)

    def __rich_repr__(self) -> Any:
        yield "kind", self.kind
        yield "equal", self.equal
        yield "changes", [change.sentence for change in self.changes[:20]]

    def __bool__(self) -> bool:
        raise TypeError("a Diff is neither true nor false: ask for its .equal")


def diff(
    a: Any,
    b: Any,
    *,
    stage: str | None = None,
    schedule: bool = False,
    labels: tuple[str, str] | None = None,
) -> Diff:
    """What differs between two programs.

    Names, source lines, install paths and orders that mean nothing are no differences; nor is the
    order in which a compiled program is scheduled, unless that is asked for.

    Args:
      a: text of a jaxpr, of StableHLO or HLO; the path of a file of such text; what `trace`,
        `lower` or `compile` returned; a ClosedJaxpr; a module that `parse` read; or a function
        with its arguments as a tuple, (f, x, y).
      b: the other one, of the same kind.
      stage: what functions are compared as: "jaxpr", "stablehlo" or "hlo"; by default what the
        other side is, and "hlo" where both are functions.
      schedule: whether operations that run earlier or later in a compiled program differ: one
        change per computation, which says what has moved.
      labels: what the two are called; by default what they are.

    Raises:
      HloSyntaxError: if a text of HLO cannot be read.
      TypeError: if an argument is nothing that can be compared.
      ValueError: if they are of two kinds, or a text is of none.
    """
    if stage is not None and stage not in KINDS:
        raise ValueError(f"a stage is one of {', '.join(KINDS)}: got {stage!r}")
    wanted = stage
    if wanted is None:
        known = [_side(side, None).kind for side in (a, b) if not _is_call(side)]
        wanted = known[0] if known else "hlo"
    sides = _side(a, wanted), _side(b, wanted)
    if labels is not None:
        sides = sides[0]._replace(label=labels[0]), sides[1]._replace(label=labels[1])
    if sides[0].kind != sides[1].kind:
        raise ValueError(
            f"{sides[0].label} is {TITLES[sides[0].kind]} and {sides[1].label} is "
            f"{TITLES[sides[1].kind]}: compare programs at one stage"
        )
    if sides[0].kind == "hlo":
        modules = _parsed(sides[0]), _parsed(sides[1])
        totals = Estimates(modules[0]).totals(), Estimates(modules[1]).totals()
        return _of_modules(*sides, modules, totals, schedule)
    return _of_text_kinds(*sides)


def _of_text_kinds(a: Side, b: Side) -> Diff:
    """The differences of StableHLO or jaxprs: of lines, where their structure cannot be read."""
    if a.text == b.text:
        return Diff(a, b, True, [], None)
    a, b = a._replace(text=bounded(a.text)), b._replace(text=bounded(b.text))
    read = read_stablehlo if a.kind == "stablehlo" else read_jaxpr
    try:
        modules = read(a.text), read(b.text)
    except ValueError:
        pass
    else:
        return _of_modules(a, b, modules)
    lines_of = stablehlo_lines if a.kind == "stablehlo" else jaxpr_lines
    lines = lines_of(a.text), lines_of(b.text)
    if [line.text for line in lines[0]] == [line.text for line in lines[1]]:
        return Diff(a, b, True, [], None)
    changes = grouped(line_changes(*lines))
    return Diff(a, b, not changes, changes, None)


def _of_modules(
    a: Side,
    b: Side,
    modules: tuple[HloModule, HloModule],
    totals: tuple[dict[str, int], dict[str, int]] | None = None,
    schedule: bool = False,
) -> Diff:
    hashes = Hashes(modules[0]), Hashes(modules[1])
    scheduled = is_scheduled(modules[0]) and is_scheduled(modules[1])
    moved = list(schedule_changes(*hashes)) if schedule and scheduled else []
    if _same(*hashes):
        in_order = same_schedule(*hashes) if scheduled else None
        return Diff(a, b, not moved, moved, totals, in_order, modules)
    matching = Matching(*hashes)
    changes = findings(hlo_changes(matching), matching) + moved
    if not changes:
        # Nothing stands out though the digests differ: say so rather than nothing.
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
    """Whether two modules compute the same in the same way."""
    if module_attributes(a.module) != module_attributes(b.module):
        return False
    return a.computation(a.module.entry) == b.computation(b.module.entry)


# ---- what one can compare -----------------------------------------------------------------------


def _is_call(value: Any) -> bool:
    return isinstance(value, tuple) and bool(value) and callable(value[0])


def _side(value: Any, stage: str | None) -> Side:
    if isinstance(value, HloModule):
        return Side("hlo", f"module {value.name}", write(value), value)
    if _is_call(value):
        return _of_call(value[0], value[1:], stage or "hlo")
    if isinstance(value, Traced):
        return _staged(value, stage, f"{value.fun_name}, traced")
    if isinstance(value, Lowered):
        if stage == "hlo":
            return Side("hlo", "a lowered function, before optimization", value.as_text("hlo"))
        return Side("stablehlo", "a lowered function", value.as_text(debug_info=True))
    if isinstance(value, Compiled):
        return Side("hlo", "a compiled function", value.as_text() or "")
    if isinstance(value, ClosedJaxpr | Jaxpr):
        text = value.pretty_print(source_info=True, use_color=False)
        return Side("jaxpr", "a jaxpr", text)
    if isinstance(value, os.PathLike) or (isinstance(value, str) and is_path(value)):
        return Side(*program_of_file(os.fspath(value)))
    if isinstance(value, str):
        given = Side(*program_of_text(value, "text"))
        name = value.lstrip()[len("HloModule") : 200].replace(",", " ").split()
        return given._replace(label=f"text: {name[0]}") if given.kind == "hlo" and name else given
    if hasattr(value, "as_text"):
        # Such as another library's stages.
        return Side(*program_of_text(value.as_text(), type(value).__name__))
    if callable(value):
        raise TypeError(
            f"to compare {getattr(value, '__name__', value)!r} give it with its arguments, as a "
            "tuple: (f, x, y)"
        )
    raise TypeError(
        "wanted text, a file's path, a Traced, Lowered or Compiled, a jaxpr, or a function with "
        f"its arguments as a tuple; got {type(value).__name__}"
    )


def _of_call(function: Callable[..., Any], args: tuple[Any, ...], stage: str) -> Side:
    staged = function if hasattr(function, "trace") else jit(function)
    name = getattr(function, "__name__", "a function")
    return _staged(staged.trace(*args), stage, name)  # type: ignore[attr-defined]


def _staged(traced: Traced, stage: str | None, label: str) -> Side:
    if stage in (None, "jaxpr"):
        text = traced.jaxpr.pretty_print(source_info=True, use_color=False)
        return Side("jaxpr", label, text)
    lowered = traced.lower()
    if stage == "stablehlo":
        return Side("stablehlo", label, lowered.as_text(debug_info=True))
    return Side("hlo", label, lowered.compile().as_text() or "")
