"""The changes of optimized HLO under the causes that they follow from."""

from collections.abc import Iterable, Sequence

from hlotools.ir.hlo import Instruction
from hlotools.matching.argument_changes import argument_changes
from hlotools.matching.causes import Cause, Line
from hlotools.matching.changes import Change, Effect, OperationSite
from hlotools.matching.match import Matching

# Subjects of changes that may have their own cause, which is not among the causes.
_OWN = frozenset({"constant", "opcode"})
_SIZES = frozenset({"size", "type"})


def under_causes(
    causes: Sequence[Cause], changes: Sequence[Change], are_all: bool = True
) -> list[Change]:
    """Return the causes, each with the changes that follow from it as parts and their effect.

    If there is one cause, all changes follow from it. Otherwise, a change follows from the one
    whose source lines or arguments it concerns; changes that could follow from several causes
    become one change.

    Args:
      causes: the differences of the compiler's input: of flags and of StableHLO.
      changes: the changes of optimized HLO with their effects, which add up.
      are_all: whether the causes are complete. If not, changed constants that no cause concerns
        remain next to the causes.
    """
    if not causes:
        return list(changes)
    parts: list[list[Change]] = [[] for _ in causes]
    shared: list[Change] = []
    others: list[Change] = []
    resized = any(c.change.kind == "argument" and c.change.what in _SIZES for c in causes)
    for change in changes:
        number = _cause_of(change, causes)
        if number is None and not are_all and not resized and change.what in _OWN:
            others.append(change)
            continue
        if len(causes) == 1:
            number = 0
        (shared if number is None else parts[number]).append(change)
    headings = [
        cause.change._replace(
            parts=_without_repetition(cause.change, each), effect=_sum(each), is_cause=True
        )
        for cause, each in zip(causes, parts, strict=True)
    ]
    first = ("flag", "compiler"), ("retyped",)
    headings.sort(
        key=lambda each: (*(each.kind not in kinds for kinds in first), *_size(each.effect))
    )
    if shared:
        headings.append(
            Change("shared", "effects", "", "", (), (), parts=tuple(shared), effect=_sum(shared))
        )
    return headings + others


def _without_repetition(cause: Change, parts: Sequence[Change]) -> tuple[Change, ...]:
    """Return the changes that follow from a cause, without a finding that only repeats it."""
    if cause.kind == "kernel":
        # Its own change is among those that follow, with the kernel's other differences.
        return tuple(
            part
            for each in parts
            for part in (each.parts if each.sentence == cause.sentence else (each,))
        )
    is_said = len(parts) == 1 and parts[0].sentence == cause.sentence
    return parts[0].parts if is_said else tuple(parts)


def under_arguments(changes: Sequence[Change], matching: Matching) -> list[Change]:
    """Return the changes of arguments first, by name, and then all other changes.

    Args:
      changes: the changes of two StableHLO modules.
      matching: the matching operations of the modules.
    """
    headings: list[Change] = []
    numbers: dict[tuple[str, str, str], int] = {}
    about: set[int] = set()
    for heading, parameters in argument_changes(matching):
        numbers[heading.what, heading.before, heading.after] = len(headings)
        headings.append(heading._replace(is_cause=True))
        about.update(map(id, parameters))
    others: list[Change] = []
    for change in changes:
        sites = [site.at for site in _sites(change) if site.at is not None]
        number = numbers.get((change.what, change.before, change.after))
        if number is not None:
            # Operations of the same dtypes or sizes follow.
            heading = headings[number]
            headings[number] = heading._replace(parts=(*heading.parts, change))
        elif not sites or not all(id(at) in about for at in sites):
            others.append(change)
    return [*headings, *others]


def _cause_of(change: Change, causes: Sequence[Cause]) -> int | None:
    """Return the number of the only cause that a change follows from; None if there are several."""
    sites = list(_sites(change))
    names = {site.at.op_name for site in sites if site.at is not None and _is_argument(site.at)}
    lines: frozenset[Line] = frozenset((site.file, site.line) for site in sites if site.file)
    about_arguments = [
        n
        for n, cause in enumerate(causes)
        if cause.change.kind == "argument"
        and names.intersection(site.name for site in (*cause.change.a, *cause.change.b))
    ]
    for fitting in (
        about_arguments,
        [n for n, cause in enumerate(causes) if lines & cause.lines],
        [n for n, cause in enumerate(causes) if lines & (cause.lines | cause.lines_after)],
    ):
        if len(fitting) == 1:
            return fitting[0]
    return None


def _is_argument(at: Instruction) -> bool:
    return at.opcode == "parameter" and at.computation.is_entry


def _sites(change: Change) -> Iterable[OperationSite]:
    yield from change.a
    yield from change.b
    for part in change.parts:
        yield from _sites(part)


def _sum(changes: Iterable[Change]) -> Effect:
    """Return the sum of the effects of changes."""
    effects = [change.effect for change in changes if change.effect is not None]
    seconds = [effect.seconds for effect in effects if effect.seconds is not None]
    return Effect(
        sum(effect.bytes for effect in effects),
        sum(effect.operations for effect in effects),
        sum(seconds) if seconds else None,
    )


def _size(effect: Effect | None) -> tuple[float, int]:
    """Return a key that sorts effects, the largest first."""
    if effect is None:
        return 0.0, 0
    return -abs(effect.seconds or 0.0), -abs(effect.bytes) - abs(effect.operations)
