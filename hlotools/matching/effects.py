"""The effect of each change on a program: bytes that it moves, and operations that it computes."""

from collections.abc import Iterable, Iterator, Sequence

from hlotools.cost.costs import costs
from hlotools.ir.hlo import HloModule, Instruction
from hlotools.matching.changes import Change, Effect, OperationSite
from hlotools.matching.hlo_changes import rank
from hlotools.matching.match import Matching

# Findings, which name a cause and have its consequences as parts, come first.
_CAUSES = frozenset({"retyped", "refused", "exchanged"})


def by_effect(changes: Sequence[Change], matching: Matching) -> list[Change]:
    """Return changes with their effects: causes first, and of each rank those of most effect first.

    The effect of a change is the cost of the operations that it touches in the second program less
    that of those in the first, over all runs of loops. Operations inside of a fusion count as the
    fusion. Costs are those of `costs`: what an operation must read, write and compute.
    """
    sides = _Costs(matching.a.module), _Costs(matching.b.module)
    known = [change._replace(effect=_effect(change, sides)) for change in changes]
    return sorted(known, key=_order)


def _order(change: Change) -> tuple[bool, tuple[int, bool, int], int]:
    is_cause = change.kind in _CAUSES
    return not is_cause, (0, False, 0) if is_cause else rank(change), -_magnitude(change)


class _Costs:
    """The bytes and operations of a program's instructions, and the fusion around each."""

    def __init__(self, module: HloModule):
        self.callers = {id(i.fused): i for i in module.instructions() if i.fused is not None}
        self.rows = {
            (row.computation, row.name): (row.bytes, (row.flops or 0) + (row.transcendentals or 0))
            for row in costs(module).instructions
        }

    def total(self, sites: Iterable[OperationSite]) -> tuple[int, int]:
        """Return the bytes and operations of the instructions at some sites, each counted once."""
        outermost = {id(i): i for i in self._outermost(sites)}
        rows = [self.rows.get((i.computation.name, i.name), (0, 0)) for i in outermost.values()]
        return sum(moved for moved, _ in rows), sum(computed for _, computed in rows)

    def _outermost(self, sites: Iterable[OperationSite]) -> Iterator[Instruction]:
        for site in sites:
            instruction = site.at
            while instruction is not None and id(instruction.computation) in self.callers:
                instruction = self.callers[id(instruction.computation)]
            if instruction is not None:
                yield instruction


def _effect(change: Change, sides: tuple[_Costs, _Costs]) -> Effect:
    before, after = (
        known.total(site for each in (change, *change.parts) for site in (each.a, each.b)[side])
        for side, known in enumerate(sides)
    )
    return Effect(after[0] - before[0], after[1] - before[1])


def _magnitude(change: Change) -> int:
    return abs(change.effect.bytes) + abs(change.effect.operations) if change.effect else 0
