"""Programs with the same operations in another dtype: the cast values, and both dtypes."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from hlotools.ir.hlo import Instruction
from hlotools.matching.cause_text import counted, plain
from hlotools.matching.changes import Change, listed
from hlotools.matching.match import CONVERTS

# Operations that only prepare others, which a lowering to another dtype may add.
_PREPARING = frozenset({
    "constant", "broadcast_in_dim", "broadcast", "reshape", "get-tuple-element", "tuple", "iota",
    "convert", "convert_element_type", "parameter", "transpose", "optimization_barrier", "bitcast",
    "opt-barrier", "copy",
})  # fmt: skip


class Cast(NamedTuple):
    """A change from one dtype to another, with the converts and operations that it affects."""

    before: str
    after: str
    changes: list[Change]

    @property
    def has_operations(self) -> bool:
        """Whether operations other than converts changed their dtype."""
        return any(_convert(change) is None for change in self.changes)

    @property
    def heading(self) -> Change:
        """The change that stands for all: the dtypes, the cast arguments, and the operations."""
        converts = [change for change in self.changes if _convert(change) is not None]
        others = [change for change in self.changes if _convert(change) is None]
        note = counted([site for change in others for site in change.b])
        if not note:
            words = (
                (word, [c for c in converts if c.kind == word]) for word in ("added", "removed")
            )
            note = ", ".join(
                f"{sum(map(_count, each))} × convert {word}" for word, each in words if each
            )
        names = listed(
            site._replace(name=operand.op_name or operand.name)
            for change in converts
            for site in (*change.a, *change.b)
            for operand in (site.at.operands if site.at is not None else ())
            if operand.opcode == "parameter" and operand.computation.is_entry
        )
        a = plain(site for change in self.changes for site in change.a)
        b = plain(site for change in self.changes for site in change.b)
        what = f"dtype of {names}" if names else "dtype"
        return Change("retyped", what, self.before, self.after, a, b, note=note)

    def prepares(self, change: Change) -> bool:
        """Return whether a change is of operations that prepare others, in one of the dtypes."""
        sites = (*change.a, *change.b)
        return change.kind in ("added", "removed") and all(
            site.opcode in _PREPARING
            and site.at is not None
            and site.at.shape.dtype in (self.before, self.after)
            for site in sites
        )


def casts(changes: Iterable[Change]) -> list[Cast]:
    """Return the casts among changes, each in the direction of most of its operations.

    Operations of equal kind and size that the two programs have in different dtypes are the same
    operation; converts between the two dtypes were added or removed for it.
    """
    changes = list(changes)
    members: dict[frozenset[str], list[Change]] = {}
    votes: Counter[tuple[str, str]] = Counter()
    converts: dict[frozenset[str], list[Change]] = {}
    for change in changes:
        if change.kind == "changed" and change.what == "dtype":
            pair = change.before, change.after
            members.setdefault(frozenset(pair), []).append(change)
            votes[pair] += len(change.a)
        elif (between := _convert(change)) is not None:
            converts.setdefault(frozenset(between), []).append(change)
    paired: set[frozenset[str]] = set()
    for removed, added, pair in counterparts(changes):
        members.setdefault(frozenset(pair), []).extend((removed, added))
        votes[pair] += _count(removed)
        paired.add(frozenset(pair))
    casts: list[Cast] = []
    for pair in converts.keys() | paired:
        if len(pair) != 2:
            continue
        both = [*converts.get(pair, ()), *members.get(pair, ())]
        unique = list({id(change): change for change in both}.values())
        first, second = sorted(pair)
        balance = votes[first, second] - votes[second, first]
        if balance == 0 and pair in converts:
            balance = 1 if _direction(converts[pair]) == (first, second) else -1
        before, after = (first, second) if balance > 0 else (second, first)
        casts.append(Cast(before, after, unique))
    casts.sort(key=lambda cast: (-sum(map(_count, cast.changes)), cast.before))
    return casts


def counterparts(changes: Sequence[Change]) -> list[tuple[Change, Change, tuple[str, str]]]:
    """Return removed and added changes of equal operations in two dtypes, with the dtypes."""
    sides: dict[str, dict[tuple[str, int], list[tuple[str, Change]]]] = {"removed": {}, "added": {}}
    for change in changes:
        kinds = {_kind(site.at) for site in (*change.a, *change.b) if site.at is not None}
        if change.kind in sides and len(kinds) == 1:
            opcode, size, dtype = kinds.pop()
            if opcode not in _PREPARING and opcode != "fusion":
                sides[change.kind].setdefault((opcode, size), []).append((dtype, change))
    pairs: list[tuple[Change, Change, tuple[str, str]]] = []
    for key, removed in sides["removed"].items():
        for (before, one), (after, other) in zip(
            removed, sides["added"].get(key, ()), strict=False
        ):
            if before != after:
                pairs.append((one, other, (before, after)))
    return pairs


def _kind(at: Instruction) -> tuple[str, int, str]:
    """Return an operation's opcode, its number of elements, and the dtype that it computes in."""
    shape = at.operands[0].shape if at.operands else at.shape
    return at.opcode, at.shape.size, shape.dtype


def _convert(change: Change) -> tuple[str, str] | None:
    """Return the dtypes of a convert that was added or removed, from and to; else None."""
    sites = [site.at for site in (*change.a, *change.b) if site.at is not None]
    if change.kind not in ("added", "removed") or not sites:
        return None
    pairs = {(at.operands[0].shape.dtype, at.shape.dtype) for at in sites if _is_convert(at)}
    return pairs.pop() if len(pairs) == 1 and all(map(_is_convert, sites)) else None


def _is_convert(at: Instruction) -> bool:
    return at.opcode in CONVERTS and len(at.operands) == 1


def _direction(converts: Sequence[Change]) -> tuple[str, str]:
    """Return the dtypes before and after, as shown by converts, preferably those of arguments."""

    def is_of_argument(change: Change) -> bool:
        sites = [site.at for site in (*change.a, *change.b) if site.at is not None]
        return any(i.operands[0].opcode == "parameter" for i in sites)

    first = next(filter(is_of_argument, converts), converts[0])
    before, after = _convert(first) or ("", "")
    return (before, after) if first.kind == "added" else (after, before)


def _count(change: Change) -> int:
    return max(len(change.a), len(change.b))
