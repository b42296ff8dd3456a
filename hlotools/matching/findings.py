"""The findings: changes of two programs that have one cause, as one change with parts.

One changed dtype in the source adds converts and changes layouts; one flag for fusions regroups
hundreds of operations with equal work. Each is one change to the reader of a diff: the finding has
a sentence and counts, and its parts are the changes themselves.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hlotools.cost.links import is_collective
from hlotools.ir.hlo import HloModule, Instruction
from hlotools.matching.casts import counterparts
from hlotools.matching.changes import Change, OperationSite
from hlotools.matching.match import CONVERTS, Matching
from hlotools.matching.regrouping import TRIVIAL, WorkDigests, content

# Subjects of changes in how the backend computes something, not what.
_HOW = ("layout", "backend_config", "estimated cycles", "views")
_VIEWS = frozenset({"bitcast", "get-tuple-element", "tuple", "parameter"})
_STRUCTURAL = frozenset({"split", "merged", "regrouped"})
# Opcodes that a compiler does not duplicate for a fusion.
_HEAVY = frozenset({
    "dot", "convolution", "custom-call", "scatter", "sort", "fft", "cholesky", "triangular-solve",
    "while", "conditional", "call", "rng", "rng-bit-generator", "infeed", "outfeed", "send", "recv",
    "topk",
})  # fmt: skip
_PREFETCHES = frozenset({"copy-start", "copy-done", "slice-start", "slice-done"})
# The minimum number of changes for which regrouped fusions become one finding.
_FEW = 2
# The maximum distance of a change from its cause, in operations.
_FARTHEST = 50


def findings(changes: Sequence[Change], matching: Matching) -> list[Change]:
    """Return the changes in order, with those that have one cause as parts of a finding."""
    if len(changes) < 2:
        return list(changes)
    grouped = _exchanged(changes, matching)
    sides = _Side(matching.a.module), _Side(matching.b.module)
    grouped = _retyped(grouped, sides)
    grouped = _refused(grouped, sides, matching)
    grouped = _configured(_prefetched(grouped, matching))
    return sorted(grouped, key=lambda change: change.kind != "retyped")


class _Side:
    """The operations of one module, with the fusion that contains each and the dtypes in use."""

    def __init__(self, module: HloModule):
        self.callers = {id(i.fused): i for i in module.instructions() if i.fused is not None}
        self.dtypes: Counter[str] = Counter()
        # By opcode and number of elements: the dtypes; for converts, the pairs of dtypes.
        self.kinds: dict[tuple[str, int], set[str]] = {}
        for i in module.instructions():
            self.dtypes.update(leaf.dtype for leaf in i.shape.leaves())
            if i.opcode in CONVERTS and i.operands:
                dtype = f"{i.operands[0].shape.dtype} {i.shape.dtype}"
            elif i.opcode in TRIVIAL or i.opcode == "fusion":
                continue
            else:
                dtype = i.shape.dtype
            self.kinds.setdefault((i.opcode, i.shape.size), set()).add(dtype)

    def top(self, instruction: Instruction) -> Instruction:
        for _ in range(100):
            caller = self.callers.get(id(instruction.computation))
            if caller is None:
                break
            instruction = caller
        return instruction

    def tops(self, sites: Iterable[OperationSite]) -> dict[int, Instruction]:
        tops = (self.top(site.at) for site in sites if site.at is not None)
        return {id(i): i for i in tops}


_Sides = tuple[_Side, _Side]


def _together(
    changes: Sequence[Change],
    parts: Iterable[Change],
    core: Sequence[Change],
    heading: tuple[str, str, str, str],
    note: str = "",
) -> list[Change]:
    """Return the changes with a finding instead of its parts, at the position of the first part."""
    chosen = {id(part) for part in parts}
    ordered = tuple(change for change in changes if id(change) in chosen)
    note_text = ": ".join(filter(None, [note, _counted_parts(ordered)]))
    made = Change(*heading, _sites(core, 0), _sites(core, 1), note_text, parts=ordered)
    return [
        made if change is ordered[0] else change
        for change in changes
        if id(change) not in chosen or change is ordered[0]
    ]


def _sites(parts: Iterable[Change], side: int) -> tuple[OperationSite, ...]:
    return tuple(site for part in parts for site in (part.a, part.b)[side])


class _Near:
    """The operations that changes touch in both modules, and the neighbors of these operations."""

    def __init__(self, sides: _Sides, parts: Iterable[Change]):
        self.sides = sides
        self.near: tuple[set[int], set[int]] = set(), set()
        for part in parts:
            self.add(part)

    def add(self, change: Change) -> None:
        for side, near, sites in zip(self.sides, self.near, (change.a, change.b), strict=True):
            for instruction in side.tops(sites).values():
                near.add(id(instruction))
                near.update(map(id, (*instruction.operands, *instruction.users)))

    def __contains__(self, change: Change) -> bool:
        for side, near, sites in zip(self.sides, self.near, (change.a, change.b), strict=True):
            if near.intersection(side.tops(sites)):
                return True
        return False

    def following(self, changes: Sequence[Change], fits: Callable[[Change], bool]) -> list[Change]:
        """Return the changes that fit and are near this set, directly or through each other."""
        left = [change for change in changes if fits(change)]
        following: list[Change] = []
        for _ in range(_FARTHEST):
            beside = {id(change): change for change in left if change in self}
            if not beside:
                break
            left = [change for change in left if id(change) not in beside]
            following += beside.values()
            for change in beside.values():
                self.add(change)
        return following


def _is_how(change: Change) -> bool:
    """Return whether a change affects only layouts, configurations and views."""
    if change.kind == "changed" and change.what.partition(" ")[0] in _HOW:
        return True
    if change.what in _HOW:
        return True
    if change.kind in ("added", "removed"):
        return all(site.opcode in _VIEWS for site in (*change.a, *change.b))
    return change.what == "index"


def _gives_more(change: Change) -> bool:
    """Return whether a fusion only has a different number of results."""
    return change.what == "shape" and any(
        x.at is not None
        and y.at is not None
        and (x.at.shape.is_tuple or y.at.shape.is_tuple)
        and len(list(x.at.shape.leaves())) != len(list(y.at.shape.leaves()))
        for x, y in zip(change.a, change.b, strict=False)
    )


# ---- exchanged operands --------------------------------------------------------------------------


def _exchanged(changes: Sequence[Change], matching: Matching) -> list[Change]:
    """Return the changes, with two operations whose operands were exchanged as one change."""
    single: list[tuple[Change, Instruction, Instruction]] = []
    for change in changes:
        if change.what == "operands" and len(change.a) == len(change.b) == 1:
            a, b = change.a[0].at, change.b[0].at
            if a is not None and b is not None and len(a.operands) == len(b.operands):
                pairs = zip(a.operands, b.operands, strict=True)
                different = [(x, y) for x, y in pairs if not matching.same(x, y)]
                if len(different) == 1:
                    single.append((change, *different[0]))
    exchanged = list(changes)
    taken: set[int] = set()
    for n, (first, x1, y1) in enumerate(single):
        for second, x2, y2 in single[n + 1 :]:
            free = id(first) not in taken and id(second) not in taken
            if free and matching.same(x1, y2) and matching.same(x2, y1):
                taken |= {id(first), id(second)}
                names = f"{first.a[0].name} and {second.a[0].name}"
                both = Change(
                    kind="exchanged",
                    what="operands",
                    before=f"{x1.name}, {x2.name}",
                    after=f"{x2.name}, {x1.name}",
                    a=first.a + second.a,
                    b=first.b + second.b,
                    note=names,
                    parts=(first, second),
                )
                exchanged[exchanged.index(first)] = both
                exchanged.remove(second)
    return exchanged


# ---- dtypes --------------------------------------------------------------------------------------


def _convert_of(site: OperationSite) -> tuple[str, str] | None:
    """Return the (from, to) dtypes of a convert or a fusion of one convert, or None."""
    at = site.at
    if at is None:
        return None
    if at.fused is not None:
        converts = [i for i in content(at) if i.opcode in CONVERTS]
        others = [i for i in content(at) if i.opcode not in TRIVIAL]
        at = converts[0] if len(converts) == 1 and not others else at
    if at.opcode not in CONVERTS or not at.operands:
        return None
    return at.operands[0].shape.dtype, at.shape.dtype


def _dtypes_of(change: Change) -> frozenset[str]:
    """Return the two dtypes of a change from one to the other, or an empty set."""
    if change.kind == "changed" and change.what == "dtype":
        sites = zip(change.a, change.b, strict=False)
        sized = [(x.at, y.at) for x, y in sites if x.at is not None and y.at is not None]
        # Operations with different sizes match only accidentally.
        if all(x.shape.is_tuple or x.shape.size == y.shape.size for x, y in sized):
            return frozenset((change.before, change.after))
    if change.kind in ("added", "removed"):
        pairs = {_convert_of(site) for site in (*change.a, *change.b)}
        if len(pairs) == 1 and (pair := pairs.pop()) is not None:
            return frozenset(pair)
    return frozenset()


def _retyped(changes: list[Change], sides: _Sides) -> list[Change]:
    """Return the changes, with those from one dtype to another and their consequences as one."""
    by_pair: dict[frozenset[str], list[Change]] = {}
    for change in changes:
        pair = _dtypes_of(change)
        if len(pair) == 2:
            by_pair.setdefault(pair, []).append(change)
    for removed, added, both in counterparts(changes):
        by_pair.setdefault(frozenset(both), []).extend((removed, added))
    for pair, core in by_pair.items():
        if len(pair) != 2 or not _is_news(pair, sides):
            # No operation changes between these dtypes: the changes have another cause.
            continue

        core_ids = set(map(id, core))

        def follows(change: Change) -> bool:
            if id(change) in core_ids:  # noqa: B023
                return False
            if change.what == "body":
                return _same_opcodes(change)
            about = _dtypes_of(change)
            return (
                _is_how(change)
                or _gives_more(change)
                or _only_rounded(change, pair)  # noqa: B023
                or bool(about and about < pair)  # noqa: B023
            )

        parts = core + _Near(sides, core).following(changes, follows)
        if len(parts) < 2:
            continue
        x, y = sorted(pair)
        share = [side.dtypes[y] / max(side.dtypes[x] + side.dtypes[y], 1) for side in sides]
        before, after = (x, y) if share[1] >= share[0] else (y, x)
        changes = _together(changes, parts, core, ("retyped", "dtype", before, after))
    return changes


def _is_news(pair: frozenset[str], sides: _Sides) -> bool:
    """Return whether an operation changed between two dtypes, or a convert between them is new."""
    mine, others = sides[0].kinds, sides[1].kinds
    for key in mine.keys() | others.keys():
        converts = key[0] in CONVERTS
        if converts or (key in mine and key in others):
            different = mine.get(key, set()) ^ others.get(key, set())
            if any(pair.issuperset(dtypes.split()) for dtypes in different):
                return True
    return False


def _same_opcodes(change: Change) -> bool:
    """Return whether the operations of a change have equal work, without trivial operations."""
    sites = zip(change.a, change.b, strict=False)
    return all(
        x.at is not None and y.at is not None and _work(x.at) == _work(y.at) for x, y in sites
    )


# The maximum relative difference that rounding to a small dtype may cause.
_ROUNDED = 0.07


def _only_rounded(change: Change, pair: frozenset[str]) -> bool:
    """Return whether a constant differs by a rounding error between two dtypes only."""
    if change.kind != "changed" or change.what != "constant":
        return False
    try:
        before, after = float(change.before), float(change.after)
    except ValueError:
        return False
    return abs(before - after) <= _ROUNDED * abs(before) and all(
        x.at is not None and y.at is not None and {x.at.shape.dtype, y.at.shape.dtype} == pair
        for x, y in zip(change.a, change.b, strict=False)
    )


# ---- fusions -------------------------------------------------------------------------------------


def _work(instruction: Instruction) -> Counter[Any]:
    """Return the work inside an operation, regardless of layouts, as counts of (opcode, size)."""
    return Counter(
        (i.opcode, i.shape.size)
        for i in content(instruction)
        if i.opcode not in TRIVIAL and i.opcode != "transpose"
    )


def _is_structural(change: Change) -> bool:
    """Return whether a change affects the grouping of operations into fusions."""
    if change.kind in _STRUCTURAL:
        return True
    if change.kind in ("added", "removed"):
        return change.what == "fusion"
    return change.what == "opcode" and any(
        site.opcode == "fusion" for site in (*change.a, *change.b)
    )


class _Balance:
    """The work of all changed operations on both sides."""

    def __init__(self, changes: Iterable[Change], sides: _Sides):
        self.bags: tuple[Counter[Any], Counter[Any]] = Counter(), Counter()
        leaves = list(changes)
        for number, (side, bag) in enumerate(zip(sides, self.bags, strict=True)):
            for instruction in side.tops(_sites(leaves, number)).values():
                bag.update(_work(instruction))

    def elsewhere(self, token: Any) -> bool:
        """Return whether a piece of work is in the changes of both sides."""
        counts = self.bags[0][token], self.bags[1][token]
        if token[0] in _HEAVY or is_collective(token[0]):
            return counts[0] == counts[1]
        # Cheap work may be repeated in each fusion that uses it.
        return min(counts) > 0

    def holds(self, change: Change) -> bool:
        """Return whether all work that a change adds or removes is also on the other side."""
        if change.what in ("copy", "collective", "constant", "parameter"):
            return False
        if change.what == "opcode" and not _is_structural(change):
            return False
        at = [site.at for site in (*change.a, *change.b) if site.at is not None]
        return bool(at) and all(self.elsewhere(token) for i in at for token in _work(i))


def _refused(changes: list[Change], sides: _Sides, matching: Matching) -> list[Change]:
    """Return the changes, with regrouped fusions as one change if both sides do equal work."""
    leaves = [change for change in changes if not change.parts]
    if not any(map(_is_structural, leaves)):
        return changes
    balance = _Balance(leaves, sides)
    core = [change for change in leaves if _is_structural(change) and balance.holds(change)]
    if not core:
        return changes
    core_ids, swapped = set(map(id, core)), set(map(id, _swapped(leaves)))
    tops = [sides[n].tops(_sites(core, n)) for n in (0, 1)]

    def follows(change: Change) -> bool:
        if id(change) in core_ids or change.parts:
            return False
        if change.what == "operands":
            # The operand is the result of another fusion now.
            return all(
                id(top) in tops[n]
                for n, i in _other_operands(change, matching)
                for top in (sides[n].top(i),)
            )
        if _is_how(change) or _gives_more(change) or change.what == "kind" or id(change) in swapped:
            return True
        if change.kind in ("added", "removed") or change.what in ("shape", "dtype", "body"):
            return balance.holds(change)
        return False

    parts = core + _Near(sides, core).following(changes, follows)
    if len(parts) < _FEW:
        return changes
    is_same = _same_values(core, matching)
    heading = (
        "refused",
        "fusion",
        *(_fusions(list(tops[n].values())) for n in (0, 1)),
    )
    note = "over the same work" if is_same else "with operations of the same kinds and sizes"
    return _together(changes, parts, core, heading, note)


def _other_operands(change: Change, matching: Matching) -> list[tuple[int, Instruction]]:
    """Return the operands in which the operations of a change differ, with their sides."""
    operands: list[tuple[int, Instruction]] = []
    for x, y in zip(change.a, change.b, strict=False):
        if x.at is not None and y.at is not None:
            for p, q in zip(x.at.operands, y.at.operands, strict=False):
                if not matching.same(p, q):
                    operands += [(0, p), (1, q)]
    return operands


def _swapped(changes: Iterable[Change]) -> list[Change]:
    """Return changes of attributes that are exchanged between crosswise matched operations."""
    groups: dict[str, list[Change]] = {}
    for change in changes:
        attribute = change.what not in ("dtype", "shape", "operands", "layout", "opcode", "body")
        if change.kind == "changed" and attribute and len(change.a) == len(change.b):
            groups.setdefault(change.what, []).append(change)
    swapped: list[Change] = []
    for group in groups.values():
        # Texts that only one side has are dropped, until both sides have equal ones.
        while group:
            before: Counter[str] = Counter()
            after: Counter[str] = Counter()
            for change in group:
                before[change.before] += len(change.a)
                after[change.after] += len(change.a)
            rest = [c for c in group if c.after in before and c.before in after]
            if len(rest) == len(group):
                swapped += group if before == after else []
                break
            group = rest
    return swapped


def _same_values(core: Iterable[Change], matching: Matching) -> bool:
    """Return whether the other side also computes all values of the changed operations."""
    modules = matching.a.module, matching.b.module
    work = [
        WorkDigests(hashes, module.entry, {})
        for hashes, module in zip((matching.a, matching.b), modules, strict=True)
    ]
    known = [{piece for pieces in each.inside.values() for piece in pieces} for each in work]
    for change in core:
        for side, sites in enumerate((change.a, change.b)):
            for site in sites:
                pieces = work[side].inside.get(id(site.at))
                if pieces is None or not pieces.keys() <= known[1 - side]:
                    return False
    return True


def _fusions(instructions: Sequence[Instruction]) -> str:
    fusions = sum(i.opcode == "fusion" for i in instructions)
    others = len(instructions) - fusions
    text = f"{fusions} fusion" + ("" if fusions == 1 else "s")
    return text + (f" and {others} operation{'' if others == 1 else 's'}" if others else "")


# ---- details of compilers ------------------------------------------------------------------------


def _prefetched(changes: list[Change], matching: Matching) -> list[Change]:
    """Return the changes, with those of a TPU's copies to its on-chip memory as one."""
    about = [
        change
        for change in changes
        if (change.a or change.b)
        and not change.parts
        and all(site.opcode in _PREFETCHES for site in (*change.a, *change.b))
    ]
    if len(about) < 2:
        return changes
    counts = (
        sum(i.opcode in ("copy-start", "slice-start") for i in module.instructions())
        for module in (matching.a.module, matching.b.module)
    )
    heading = ("prefetched", "copies", *map(str, counts))
    return _together(changes, about, about, heading)


def _configured(changes: list[Change]) -> list[Change]:
    """Return the changes, with those of the backend's configurations of operations as one."""
    about = [
        change
        for change in changes
        if change.kind == "changed" and change.what.partition(" ")[0] == "backend_config"
    ]
    if len(about) < 3:
        return changes
    keys = list(
        dict.fromkeys(change.what.rpartition(" ")[2].rpartition(".")[2] for change in about)
    )
    more = f" and {len(keys) - 3} more" if len(keys) > 3 else ""
    heading = ("configured", "backend_config", "", ", ".join(keys[:3]) + more)
    return _together(changes, about, about, heading)


# ---- text ----------------------------------------------------------------------------------------


def _counted_parts(parts: Sequence[Change]) -> str:
    """Return the counts of a finding's parts by kind as text."""
    counts: Counter[str] = Counter()
    for part in parts:
        if part.kind in _STRUCTURAL:
            counts[f"{part.kind}"] += max(part.count, 1)
        elif part.kind in ("added", "removed"):
            opcodes = {site.opcode for site in (*part.a, *part.b)}
            what = opcodes.pop() if len(opcodes) == 1 else part.what
            counts[f"{what} {part.kind}"] += len(part.a) + len(part.b)
        elif part.what == "views":
            counts["views"] += 1
        else:
            counts[part.what.partition(" ")[0]] += max(len(part.a), len(part.b), 1)
    for what in list(counts):
        opcode, _, word = what.rpartition(" ")
        if word == "added" and (gone := counts.pop(f"{opcode} removed", 0)):
            # The same operations in another dtype.
            counts[opcode] = max(counts.pop(what), gone)
    return ", ".join(f"{count} × {what}" for what, count in counts.items())
