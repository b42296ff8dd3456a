"""The effect of each change on a program: on its time, bytes and operations."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from hlotools.cost.costs import instruction_costs
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
    """Return changes with their effects: causes first, and the largest effects first in each rank.

    With the rates of both devices, effects are ordered by time, otherwise by bytes and operations.

    The effect of a change is the cost of the operations that it touches in the second program minus
    the cost of those in the first, over all runs of loops. Operations inside a fusion count as the
    fusion, in both programs if it is in both. Costs are those of `costs`: the minimum that an
    operation reads, writes and computes. An operation counts for the first change that touches it,
    so that the effects of all changes add up.
    """
    if None in rates:
        rates = None, None
    effects = _Effects(matching, rates)
    ordered = sorted(
        (change._replace(effect=effects.of(effects.touched(change))) for change in changes),
        key=_order,
    )
    counted: set[int] = set()
    counting: list[tuple[set[int], set[int]]] = []
    for change in ordered:
        first, second = effects.touched(change)
        counting.append((first - counted, second - counted))
        counted.update(*counting[-1])
    numbers = {key: n for n, touched in enumerate(counting) for ids in touched for key in ids}
    for one, other in effects.untouched(counted):
        # Operands of another size change the cost of an operation that is otherwise the same.
        near = (numbers.get(id(i)) for i in (*other.operands, *one.operands, *other.users))
        number = next((n for n in near if n is not None), 0)
        if counting:
            counting[number][0].add(id(one))
            counting[number][1].add(id(other))
    return [
        change._replace(effect=effects.of(touched))
        for change, touched in zip(ordered, counting, strict=True)
    ]


def _order(change: Change) -> tuple[bool, bool, tuple[int, bool, int], float, int]:
    is_cause = change.kind in _CAUSES
    effect = change.effect or Effect(0, 0)
    return (
        not is_cause,
        # Fusions differ because dtypes do.
        change.kind != "retyped",
        (0, False, 0) if is_cause else rank(change),
        -abs(effect.seconds or 0),
        -(abs(effect.bytes) + abs(effect.operations)),
    )


class _Costs:
    """The effects of a program's instructions, and the fusion around each."""

    def __init__(self, module: HloModule, rates: DeviceRates | None):
        self.is_timed = rates is not None
        self.callers = {id(i.fused): i for i in module.instructions() if i.fused is not None}
        # By id of an instruction that runs: its cost.
        self.rows = {
            id(instruction): Effect(
                row.bytes, (row.flops or 0) + (row.transcendentals or 0), row.seconds
            )
            for instruction, row in instruction_costs(module, rates)
        }
        self.running = [i for i in module.instructions() if id(i) in self.rows]

    def total(self, instructions: Iterable[int]) -> Effect:
        """Return the sum of the costs of instructions, given by their ids."""
        rows = [self.rows[key] for key in instructions if key in self.rows]
        return Effect(
            sum(row.bytes for row in rows),
            sum(row.operations for row in rows),
            sum(row.seconds or 0.0 for row in rows) if self.is_timed else None,
        )

    def running_at(
        self, sites: Iterable[OperationSite], partners: Mapping[int, Instruction]
    ) -> dict[int, Instruction]:
        """Return the instructions at some sites, or the fusions around them, by their ids.

        A loop, branch or call that the other program lacks represents everything inside it.
        """
        running: dict[int, Instruction] = {}
        waiting = [site.at for site in sites if site.at is not None]
        while waiting:
            instruction = waiting.pop()
            while id(instruction.computation) in self.callers:
                instruction = self.callers[id(instruction.computation)]
            if id(instruction) in running:
                continue
            running[id(instruction)] = instruction
            if instruction.opcode in _CONTAINERS and id(instruction) not in partners:
                waiting += [
                    inside
                    for callees in instruction.called.values()
                    for callee in callees
                    for inside in callee.instructions
                ]
        return running


_CONTAINERS = frozenset({"while", "conditional", "call", "async-start"})


class _Effects:
    """The effects of changes, in which each operation of the programs counts once."""

    def __init__(self, matching: Matching, rates: Rates):
        self._matching = matching
        self._sides = (
            _Costs(matching.a.module, rates[0]),
            _Costs(matching.b.module, rates[1]),
        )

    def touched(self, change: Change) -> tuple[set[int], set[int]]:
        """Return the ids of the operations of both programs that a change touches."""
        matching = self._matching
        every = list(_with_parts(change))
        first = self._sides[0].running_at((s for each in every for s in each.a), matching.to)
        second = self._sides[1].running_at((s for each in every for s in each.b), matching.back)
        # A change inside of a fusion may have sites in only one program, although both have the
        # fusion.
        mine = {id(matching.back[key]) for key in second if key in matching.back}
        others = {id(matching.to[key]) for key in first if key in matching.to}
        return first.keys() | mine, second.keys() | others

    def of(self, touched: tuple[set[int], set[int]]) -> Effect:
        """Return the cost of the second program's operations minus that of the first's."""
        before, after = (s.total(ids) for s, ids in zip(self._sides, touched, strict=True))
        seconds = None
        if before.seconds is not None and after.seconds is not None:
            seconds = after.seconds - before.seconds
        return Effect(after.bytes - before.bytes, after.operations - before.operations, seconds)

    def untouched(self, counted: set[int]) -> Iterator[tuple[Instruction, Instruction]]:
        """Yield matching operations that no change touches, though their costs differ."""
        for first in self._sides[0].running:
            second = self._matching.to.get(id(first))
            if second is None or id(first) in counted or id(second) in counted:
                continue
            if self._sides[0].rows[id(first)] != self._sides[1].rows.get(id(second)):
                yield first, second


def _with_parts(change: Change) -> Iterator[Change]:
    yield change
    for part in change.parts:
        yield from _with_parts(part)
