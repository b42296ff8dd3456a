"""The changes of arguments and results between two StableHLO modules."""

import re
from collections import Counter
from collections.abc import Iterator

from hlotools.ir.digests import clean_attributes
from hlotools.ir.hlo import HloModule, Instruction
from hlotools.matching.changes import Change, OperationSite
from hlotools.matching.match import Matching

_DONATION = frozenset({"tf.aliasing_output", "jax.buffer_donor"})
# Lowering names an array that it takes out of the program as an argument so.
_CAPTURED = re.compile(r"(?:constant\d*)?")
_AXES = re.compile(r"\[.*\]")

# The subject of a difference, and its texts before and after.
_Fact = tuple[str, str, str]


def argument_changes(matching: Matching) -> Iterator[tuple[Change, list[Instruction]]]:
    """Yield the changes of arguments, each with the parameters of both modules that it is about.

    Arguments that changed alike, such as two with a larger batch, are one change.
    """
    compared = matching.compared[0]
    alike: dict[_Fact, list[tuple[Instruction, Instruction]]] = {}
    for p, q in compared.pairs:
        if p.opcode == q.opcode == "parameter":
            for fact in _facts(p, q):
                alike.setdefault(fact, []).append((p, q))
    for (what, before, after), pairs in alike.items():
        types = {tuple(each.shape.without_layout() for each in pair) for pair in pairs}
        if what in ("dtype", "size") and len(types) == 1:
            what, (before, after) = "type", types.pop()
        a, b = (tuple(_site(pair[side]) for pair in pairs) for side in (0, 1))
        yield Change("argument", what, before, after, a, b), [p for pair in pairs for p in pair]
    for p in compared.removed:
        if p.opcode == "parameter":
            yield Change("argument", "removed", _type(p), "", (_site(p),), ()), [p]
    for p in compared.added:
        if p.opcode == "parameter":
            yield Change("argument", "added", "", _type(p), (), (_site(p),)), [p]


def _facts(p: Instruction, q: Instruction) -> Iterator[_Fact]:
    """Yield what differs in one argument; facts of arguments that changed alike are equal."""
    if p.shape.without_layout() != q.shape.without_layout():
        sizes = p.shape.dimensions, q.shape.dimensions
        if sizes[0] == sizes[1]:
            yield "dtype", p.shape.dtype, q.shape.dtype
        elif p.shape.dtype == q.shape.dtype and len(sizes[0]) == len(sizes[1]):
            pairs = dict.fromkeys((x, y) for x, y in zip(*sizes, strict=True) if x != y)
            before, after = (", ".join(str(pair[n]) for pair in pairs) for n in (0, 1))
            yield "size", before, after
        else:
            yield "type", _type(p), _type(q)
    is_captured = _CAPTURED.fullmatch(q.op_name) is not None
    if is_captured and not _CAPTURED.fullmatch(p.op_name):
        yield "captured", "", _type(q)
    attributes = clean_attributes(p), clean_attributes(q)
    donated = [any(key in each for key in _DONATION) for each in attributes]
    if donated[0] != donated[1]:
        yield "donation", *("yes" if each else "" for each in donated)
    for key in sorted((attributes[0].keys() | attributes[1].keys()) - _DONATION):
        before, after = (each.get(key, "") for each in attributes)
        if before != after:
            yield key.rpartition(".")[2], _axes(before), _axes(after)


def _axes(sharding: str) -> str:
    """Return the part of a sharding's text that says how each dimension is split."""
    axes = _AXES.search(sharding)
    return axes[0] if axes is not None else sharding


def _type(p: Instruction) -> str:
    return p.shape.without_layout()


def _site(p: Instruction) -> OperationSite:
    return OperationSite(p.op_name or p.name, p.opcode, _type(p))


def result_change(a: HloModule, b: HloModule) -> Change | None:
    """Return the change of the number of results, None if it is the same."""
    before, after = (
        Counter(each.without_layout() for each in module.entry.root.shape.leaves())
        for module in (a, b)
    )
    if before.total() == after.total():
        return None
    removed, added = (", ".join(each.elements()) for each in (before - after, after - before))
    return Change("result", "number", removed, added, (), ())
