"""The arguments of two programs: which ones correspond to each other."""

from collections import Counter
from collections.abc import Iterable

from hlotools.ir.hlo import Computation, Instruction


def numbered_pairs(a: Computation, b: Computation) -> list[tuple[int, int]] | None:
    """Return pairs of the numbers of two entries' arguments; None to pair them by number.

    Arguments of equal names are paired, whatever their numbers; then those of equal number and
    type, and then those of equal type, in order.
    """
    mine = sorted(a.parameters, key=lambda p: p.number)
    others = sorted(b.parameters, key=lambda p: p.number)
    names = [Counter(p.op_name for p in side) for side in (mine, others)]
    by_name = {p.op_name: p for p in others if p.op_name and names[1][p.op_name] == 1}
    pairs: list[tuple[Instruction, Instruction]] = []
    for p in mine:
        if names[0][p.op_name] == 1 and p.op_name in by_name:
            pairs.append((p, by_name[p.op_name]))
    if all(p.number == q.number for p, q in pairs) and len(mine) == len(others):
        return None

    def pair(fits: Iterable[tuple[Instruction, Instruction]]) -> None:
        used = {id(parameter) for both in pairs for parameter in both}
        for p, q in fits:
            if id(p) not in used and id(q) not in used:
                pairs.append((p, q))
                used.update((id(p), id(q)))

    def alike(p: Instruction, q: Instruction) -> bool:
        return p.shape.without_layout() == q.shape.without_layout()

    pair((p, q) for p in mine for q in others if p.number == q.number and alike(p, q))
    pair((p, q) for p in mine for q in others if alike(p, q))
    return [(p.number, q.number) for p, q in pairs]
