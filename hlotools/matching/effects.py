"""The effect of each change on a program: its time, and what it moves and computes."""

from collections.abc import Iterable, Iterator, Sequence

from hlotools.cost.costs import costs
from hlotools.cost.rates import DeviceRates
from hlotools.ir.hlo import HloModule, Instruction
from hlotools.matching.changes import Change, Effect, OperationSite
from hlotools.matching.hlo_changes import rank
from hlotools.matching.match import Matching

# Findings, which name a cause and have its consequences as parts, come first.
_CAUSES = frozenset({"retyped", "refused", "exchanged"})


# The rates of the devices of both programs; None where they are unknown.
Rates = tuple[DeviceRates | None, DeviceRates | None]


def by_effect(
    changes: Sequence[Change], matching: Matching, rates: Rates = (None, None)
) -> list[Change]:
    """Return changes with their effects: causes first, and of each rank those of most effect first.

    With the rates of both devices, effects are ordered by time, and by bytes and operations else.

    The effect of a change is the cost of the operations that it touches in the second program less
    that of those in the first, over all runs of loops. Operations inside of a fusion count as the
    fusion, in both programs if it is in both. Costs are those of `costs`: what an operation must
    read, write and compute.
    """
    if None in rates:
        rates = None, None
    sides = _Costs(matching.a.module, rates[0]), _Costs(matching.b.module, rates[1])
    known = [change._replace(effect=_effect(change, sides, matching)) for change in changes]
    return sorted(known, key=_order)


def _order(change: Change) -> tuple[bool, tuple[int, bool, int], float, int]:
    is_cause = change.kind in _CAUSES
    effect = change.effect or Effect(0, 0)
    return (
        not is_cause,
        (0, False, 0) if is_cause else rank(change),
        -abs(effect.seconds or 0),
        -(abs(effect.bytes) + abs(effect.operations)),
    )


class _Costs:
    """The effects of a program's instructions, and the fusion around each."""

    def __init__(self, module: HloModule, rates: DeviceRates | None):
        self.is_timed = rates is not None
        self.callers = {id(i.fused): i for i in module.instructions() if i.fused is not None}
        self.rows = {
            (row.computation, row.name): Effect(
                row.bytes, (row.flops or 0) + (row.transcendentals or 0), row.seconds
            )
            for row in costs(module, rates).instructions
        }

    def total(self, instructions: Iterable[Instruction]) -> Effect:
        """Return the sum of the costs of some instructions."""
        keys = ((i.computation.name, i.name) for i in instructions)
        rows = [self.rows[key] for key in keys if key in self.rows]
        return Effect(
            sum(row.bytes for row in rows),
            sum(row.operations for row in rows),
            sum(row.seconds or 0.0 for row in rows) if self.is_timed else None,
        )

    def outermost(self, sites: Iterable[OperationSite]) -> dict[int, Instruction]:
        """Return the instructions at some sites, or the fusions around them, by their ids."""
        return {id(instruction): instruction for instruction in self._outermost(sites)}

    def _outermost(self, sites: Iterable[OperationSite]) -> Iterator[Instruction]:
        for site in sites:
            instruction = site.at
            while instruction is not None and id(instruction.computation) in self.callers:
                instruction = self.callers[id(instruction.computation)]
            if instruction is not None:
                yield instruction


def _effect(change: Change, sides: tuple[_Costs, _Costs], matching: Matching) -> Effect:
    all_changes = (change, *change.parts)
    touched = sides[0].outermost(site for each in all_changes for site in each.a)
    others = sides[1].outermost(site for each in all_changes for site in each.b)
    # A change inside of a fusion may have sites in one program alone, where both have the fusion.
    partners = [matching.back[key] for key in others if key in matching.back]
    others |= {id(i): i for i in (matching.to[key] for key in touched if key in matching.to)}
    touched |= {id(i): i for i in partners}
    before, after = sides[0].total(touched.values()), sides[1].total(others.values())
    seconds = None
    if before.seconds is not None and after.seconds is not None:
        seconds = after.seconds - before.seconds
    return Effect(after.bytes - before.bytes, after.operations - before.operations, seconds)
