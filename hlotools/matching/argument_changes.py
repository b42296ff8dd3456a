"""The changes of arguments and results between two modules of StableHLO, or of optimized HLO."""

import re
from collections import Counter
from collections.abc import Iterator

from hlotools.ir.digests import clean_attributes
from hlotools.ir.hlo import HloModule, Instruction
from hlotools.matching.changes import Change, OperationSite
from hlotools.matching.match import Matching

_DONATION = frozenset({"tf.aliasing_output", "jax.buffer_donor"})
# The name that lowering gives to an array that it turns into an argument.
_CAPTURED = re.compile(r"(?:constant\d*)?")
_AXES = re.compile(r"\[.*\]")
# The numbers of HLO's parameters that share memory with results, and of other donated ones.
_ALIASED = re.compile(r": \((\d+),")
_DONATED = re.compile(r"\((\d+),")
# An attribute of HLO's parameters that does not affect the computation.
_REPLICATION = "parameter_replication"

# The subject of a difference, and its texts before and after.
_Fact = tuple[str, str, str]


def argument_changes(matching: Matching) -> Iterator[tuple[Change, list[Instruction]]]:
    """Yield the changes of arguments, each with the affected parameters of both modules.

    Arguments that changed in the same way, such as two with a larger batch, are one change.
    """
    compared = matching.compared[0]
    donated = _donated(matching.a.module), _donated(matching.b.module)
    alike: dict[_Fact, list[tuple[Instruction, Instruction]]] = {}
    for p, q in sorted(compared.pairs, key=lambda pair: pair[1].number):
        if p.opcode == q.opcode == "parameter":
            for fact in _facts(p, q, (p.number in donated[0], q.number in donated[1])):
                alike.setdefault(fact, []).append((p, q))
    for (what, before, after), pairs in alike.items():
        types = {tuple(parameter.shape.without_layout() for parameter in pair) for pair in pairs}
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


def _donated(module: HloModule) -> set[int]:
    """Return the numbers of the donated parameters, from an HLO module's header."""
    aliased = _ALIASED.findall(module.attributes.get("input_output_alias", ""))
    return {
        *map(int, aliased),
        *map(int, _DONATED.findall(module.attributes.get("buffer_donor", ""))),
    }


def _facts(p: Instruction, q: Instruction, in_header: tuple[bool, bool]) -> Iterator[_Fact]:
    """Yield the differences of one argument, equal for arguments that changed in the same way.

    Args:
      p: the parameter of the first module.
      q: the parameter of the second.
      in_header: for each module, whether its header has the parameter as donated.
    """
    attributes = clean_attributes(p), clean_attributes(q)
    if attributes[0].get("sharding") != attributes[1].get("sharding"):
        # Parameters of optimized HLO have the shapes of one device's shards.
        pass
    elif p.shape.without_layout() != q.shape.without_layout():
        sizes = p.shape.dimensions, q.shape.dimensions
        if sizes[0] == sizes[1]:
            yield "dtype", p.shape.dtype, q.shape.dtype
        elif p.shape.dtype == q.shape.dtype and len(sizes[0]) == len(sizes[1]):
            pairs = dict.fromkeys((x, y) for x, y in zip(*sizes, strict=True) if x != y)
            before, after = (", ".join(str(pair[n]) for pair in pairs) for n in (0, 1))
            yield "size", before, after
        else:
            yield "type", _type(p), _type(q)
    elif p.shape.layout is not None is not q.shape.layout and p.shape.layout != q.shape.layout:
        # Tiles are the device's, not the argument's.
        yield "layout", _order(p.shape.layout), _order(q.shape.layout)
    is_captured = _CAPTURED.fullmatch(q.op_name) is not None
    if is_captured and not _CAPTURED.fullmatch(p.op_name):
        yield "captured", "", _type(q)
    donated = [
        written or any(key in each for key in _DONATION)
        for written, each in zip(in_header, attributes, strict=True)
    ]
    if donated[0] != donated[1]:
        before, after = ("yes" if flag else "" for flag in donated)
        yield "donation", before, after
    for key in sorted((attributes[0].keys() | attributes[1].keys()) - _DONATION - {_REPLICATION}):
        before, after = (attribute.get(key, "") for attribute in attributes)
        if before != after:
            yield key.rpartition(".")[2], _axes(before), _axes(after)


def _order(layout: tuple[int, ...]) -> str:
    return "{" + ",".join(map(str, layout)) + "}"


def _axes(sharding: str) -> str:
    """Return the part of a sharding's text with the split of each dimension."""
    axes = _AXES.search(sharding)
    return axes[0] if axes is not None else sharding


def _type(p: Instruction) -> str:
    return p.shape.without_layout()


def _site(p: Instruction) -> OperationSite:
    return OperationSite(p.op_name or p.name, p.opcode, _type(p))


def result_change(a: HloModule, b: HloModule) -> Change | None:
    """Return the change of the number of results, None if it is the same."""
    before, after = (
        Counter(leaf.without_layout() for leaf in module.entry.root.shape.leaves())
        for module in (a, b)
    )
    if before.total() == after.total():
        return None
    removed, added = (", ".join(counter.elements()) for counter in (before - after, after - before))
    return Change("result", "number", removed, added, (), ())
