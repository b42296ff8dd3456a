"""The rows of two programs side by side: which operations match, and which changes they have."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from hlotools.cost.rates import DeviceRates
from hlotools.html.hlo_page import add_costs, hlo_data, instruction_numbers
from hlotools.html.page_model import Files, cut
from hlotools.ir.digests import Hashes
from hlotools.ir.hlo import Computation, HloModule, Instruction
from hlotools.ir.mlir_lines import Line, aligned
from hlotools.ir.source_frames import Source
from hlotools.matching.changes import Change
from hlotools.matching.match import Compared, Matching
from hlotools.matching.regrouping import Regrouped
from hlotools.matching.roots import root_pairs

# The states of a row: the same, changed, removed, added, part of a regrouping.
SAME, CHANGED, REMOVED, ADDED, REGROUPED = "=", "~", "-", "+", "%"
# The maximum number of rows of unchanged bodies on a page.
_MAX_ROWS = 400_000


class PairedRows:
    """The rows of two computations: numbers of operations, -1 for a side without one."""

    def __init__(self, title: str):
        self.title = title
        self.a: list[int] = []
        self.b: list[int] = []
        self.states: list[str] = []
        # By row: the indices of its changes; the sections of the computations called, with labels.
        self.changes: dict[int, list[int]] = {}
        self.calls: dict[int, list[tuple[str, int]]] = {}

    def add(self, a: int, b: int, state: str, changes: Iterable[int] = ()) -> int:
        row = len(self.states)
        self.a.append(a)
        self.b.append(b)
        self.states.append(state)
        numbers = sorted(set(changes))
        if numbers:
            self.changes[row] = numbers
        return row

    def as_dict(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "a": self.a,
            "b": self.b,
            "states": "".join(self.states),
            "changes": self.changes,
            "calls": self.calls,
        }


# ---- HLO ----------------------------------------------------------------------------------------


def hlo_pairs(
    a: HloModule,
    b: HloModule,
    changes: Sequence[Change],
    matching: Matching | None,
    files: Files,
    rates: tuple[DeviceRates | None, DeviceRates | None] | None = None,
) -> dict[str, Any]:
    """Return the page data of two HLO modules, with matching instructions in one row.

    Args:
      changes: the differences of the modules, from `hlo_changes`.
      matching: the matching of the modules, None if it is not computed yet.
      rates: for the costs of HLO operations, the rates of both devices where they are known.
    """
    sides: list[dict[str, Any]] = []
    for number, module in enumerate((a, b)):
        data = hlo_data(module, files)
        if rates is not None:
            add_costs(data, module, rates[number])
        sides.append(data.as_dict())
    paired = _HloRows(a, b, changes, matching)
    return {"a": sides[0], "b": sides[1], "sections": [s.as_dict() for s in paired.sections]}


class _HloRows:
    """The sections of two modules, the entry's first, then those of called computations."""

    def __init__(
        self, a: HloModule, b: HloModule, changes: Sequence[Change], matching: Matching | None
    ):
        self.numbers = instruction_numbers(a), instruction_numbers(b)
        self.changes_of = (
            _changes_by_instruction(changes, 0, self.numbers[0]),
            _changes_by_instruction(changes, 1, self.numbers[1]),
        )
        self.compared: dict[tuple[int, int], Compared] = {}
        self.groups: dict[int, Regrouped] = {}
        # Equal computations in one order are paired by position.
        roots = root_pairs(a, b)
        if matching is None and any(_opcodes(x) != _opcodes(y) for x, y in roots.pairs):
            matching = Matching(Hashes(a), Hashes(b))
        if matching is not None:
            self.compared = {(id(c.a), id(c.b)): c for c in matching.compared}
            for group in matching.regrouped:
                self.groups.update((id(i), group) for i in (*group.a, *group.b))
        self.sections: list[PairedRows] = []
        self.section_numbers: dict[tuple[int, int], int] = {}
        self.waiting: list[tuple[PairedRows, Computation | None, Computation | None]] = []
        self.count = 0
        for first, second in roots.pairs:
            self._section(first, second)
        for first in roots.removed:
            self._section(first, None)
        for second in roots.added:
            self._section(None, second)
        while self.waiting:
            section, first, second = self.waiting.pop()
            self._fill(section, first, second)

    def _section(self, a: Computation | None, b: Computation | None) -> int:
        key = id(a), id(b)
        if key not in self.section_numbers:
            self.section_numbers[key] = len(self.sections)
            names = dict.fromkeys(c.name for c in (a, b) if c is not None)
            section = PairedRows(" → ".join(names))
            self.sections.append(section)
            self.waiting.append((section, a, b))
        return self.section_numbers[key]

    def _fill(self, section: PairedRows, a: Computation | None, b: Computation | None) -> None:
        if a is None or b is None:
            for i in a or b or ():
                self._row(section, i if b is None else None, i if a is None else None)
            return
        compared = self.compared.get((id(a), id(b)))
        if compared is None:
            # The computations are equal: they have rows only if their order is equal, too.
            if _opcodes(a) == _opcodes(b):
                for x, y in zip(a, b, strict=True):
                    self._row(section, x, y)
            return
        partner = {id(x): y for x, y in compared.pairs}
        back = {id(y) for _, y in compared.pairs}
        # Operations that only b has follow the operation that precedes them in b.
        behind: dict[int, list[Instruction]] = defaultdict(list)
        last = 0
        for i in b:
            if id(i) in back or id(i) in self.groups:
                last = id(self.groups[id(i)]) if id(i) in self.groups else id(i)
            else:
                behind[last].append(i)
        done: set[int] = set()

        def follow(key: int) -> None:
            for i in behind.pop(key, ()):
                self._row(section, None, i)

        follow(0)
        for i in a:
            group = self.groups.get(id(i))
            if group is not None:
                if id(group) in done:
                    continue
                done.add(id(group))
                for n in range(max(len(group.a), len(group.b))):
                    x = group.a[n] if n < len(group.a) else None
                    y = group.b[n] if n < len(group.b) else None
                    self._row(section, x, y, REGROUPED)
                follow(id(group))
                continue
            other = partner.get(id(i))
            self._row(section, i, other)
            if other is not None:
                follow(id(other))
        for key in list(behind):
            follow(key)

    def _row(
        self, section: PairedRows, a: Instruction | None, b: Instruction | None, state: str = ""
    ) -> None:
        first = self.numbers[0][id(a)] if a is not None else -1
        second = self.numbers[1][id(b)] if b is not None else -1
        changes = [*self.changes_of[0].get(first, ()), *self.changes_of[1].get(second, ())]
        if not state:
            both = a is not None and b is not None
            state = (CHANGED if changes else SAME) if both else REMOVED if b is None else ADDED
        row = section.add(first, second, state, changes)
        self.count += 1
        if self.count < _MAX_ROWS:
            calls = self._calls(a, b, state)
            if calls:
                section.calls[row] = calls

    def _calls(
        self, a: Instruction | None, b: Instruction | None, state: str
    ) -> list[tuple[str, int]]:
        sections: list[tuple[str, int]] = []
        mine = a.called if a is not None else {}
        others = b.called if b is not None else {}
        for key in dict.fromkeys((*mine, *others)):
            ours, theirs = mine.get(key, []), others.get(key, [])
            for n in range(max(len(ours), len(theirs))):
                x = ours[n] if n < len(ours) else None
                y = theirs[n] if n < len(theirs) else None
                together = x is not None and y is not None and state != REGROUPED
                if together:
                    sections.append((key, self._section(x, y)))
                else:
                    # Sections of computations that do not match follow each other.
                    both = a is not None and b is not None
                    names = (f"{key} of a", f"{key} of b") if both else (key, key)
                    sections += [(names[0], self._section(x, None))] if x is not None else []
                    sections += [(names[1], self._section(None, y))] if y is not None else []
        return sections


def _opcodes(computation: Computation) -> list[str]:
    return [instruction.opcode for instruction in computation]


def _changes_by_instruction(
    changes: Sequence[Change], side: int, numbers: dict[int, int]
) -> dict[int, list[int]]:
    """Return the indices of the changes about each instruction, by the instruction's number."""
    numbers_of: dict[int, list[int]] = defaultdict(list)
    for number, change in enumerate(changes):
        for site in () if change.parts else (change.a, change.b)[side]:
            if id(site.at) in numbers:
                numbers_of[numbers[id(site.at)]].append(number)
    return numbers_of


# ---- texts of lines -----------------------------------------------------------------------------


def line_pairs(
    a: Sequence[Line], b: Sequence[Line], changes: Sequence[Change], files: Files
) -> dict[str, Any]:
    """Return the page data of two programs as lines of StableHLO or jaxprs."""
    changes_by_line = _changes_by_line(changes, 0), _changes_by_line(changes, 1)
    section = PairedRows("")

    def changes_of(line: Line, side: int) -> list[int]:
        return changes_by_line[side].get((line.written, line.site.file, line.site.line), [])

    def one(n: int, m: int) -> None:
        ids = [*changes_of(a[n], 0), *changes_of(b[m], 1)]
        section.add(n, m, CHANGED if ids or a[n].shape != b[m].shape else SAME, ids)

    def add_unpaired(n: int, n_end: int, m: int, m_end: int) -> None:
        """Add lines of only one side, in one row where one change has both sides."""
        for row in range(n, n_end):
            ids = set(changes_of(a[row], 0))
            partner = next(
                (other for other in range(m, m_end) if ids.intersection(changes_of(b[other], 1))),
                None,
            )
            if partner is None:
                section.add(row, -1, REMOVED, ids)
                continue
            for other in range(m, partner):
                section.add(-1, other, ADDED, changes_of(b[other], 1))
            one(row, partner)
            m = partner + 1
        for other in range(m, m_end):
            section.add(-1, other, ADDED, changes_of(b[other], 1))

    def gap(n: int, n_end: int, m: int, m_end: int) -> None:
        """Add lines between equal ones, pairing those of equal shape or opcode."""
        start = (n, m)
        ours, theirs = a[n:n_end], b[m:m_end]
        alike = aligned([i.shape for i in ours], [i.shape for i in theirs])
        for x, y in [*((n + x, m + y) for x, y in alike), (n_end, m_end)]:
            rest = aligned(
                [i.site.opcode or i.written for i in a[start[0] : x]],
                [i.site.opcode or i.written for i in b[start[1] : y]],
            )
            at = start
            for k, l in [*((start[0] + k, start[1] + l) for k, l in rest), (x, y)]:
                add_unpaired(at[0], k, at[1], l)
                if k < x:
                    one(k, l)
                at = (k + 1, l + 1)
            if x < n_end:
                one(x, y)
            start = (x + 1, y + 1)

    start = (0, 0)
    meant = aligned([line.digest for line in a], [line.digest for line in b])
    for n, m in [*meant, (len(a), len(b))]:
        gap(start[0], n, start[1], m)
        if n < len(a):
            section.add(n, m, SAME)
        start = (n + 1, m + 1)
    sides = [
        {
            "texts": [cut(_indent(line) + line.written) for line in side],
            "stacks": [_line_stack(line, files) for line in side],
        }
        for side in (a, b)
    ]
    return {"a": sides[0], "b": sides[1], "sections": [section.as_dict()]}


def _changes_by_line(changes: Sequence[Change], side: int) -> dict[Any, list[int]]:
    numbers: dict[Any, list[int]] = defaultdict(list)
    for number, change in enumerate(changes):
        text = (change.before, change.after)[side]
        for site in (change.a, change.b)[side]:
            numbers[text, site.file, site.line].append(number)
    return numbers


def _indent(line: Line) -> str:
    return line.text[: len(line.text) - len(line.text.lstrip())]


def _line_stack(line: Line, files: Files) -> list[int]:
    site = line.site
    return files.stack([Source(site.file, site.line, site.function)])
