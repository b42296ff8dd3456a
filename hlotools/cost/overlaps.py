"""The operations that run during an asynchronous one: those between its start and its done."""

from collections.abc import Sequence

from hlotools.cost.bounds import Bounds
from hlotools.cost.estimates import Estimates
from hlotools.cost.links import is_collective
from hlotools.cost.rates import DeviceRates
from hlotools.ir.hlo import HloModule, Instruction

# Opcodes that take no time of the compute units.
_TIMELESS = frozenset({
    "parameter", "constant", "get-tuple-element", "tuple", "bitcast", "after-all",
    "opt-barrier", "partition-id", "replica-id",
})  # fmt: skip


class Schedule:
    """The order in which a module's operations run, with their least times."""

    def __init__(self, module: HloModule, estimates: Estimates, rates: DeviceRates | None):
        self._bounds = None if rates is None else Bounds(module, estimates, rates)
        self._positions: dict[int, dict[int, int]] = {}
        # By id of a computation that an asynchronous start runs: the start.
        self._starts = {
            id(callee): instruction
            for instruction in module.instructions()
            if instruction.opcode == "async-start"
            for callees in instruction.called.values()
            for callee in callees
        }

    def beside(self, pieces: Sequence[tuple[Instruction, Instruction]]) -> list[Instruction]:
        """Return the operations that run while a collective does.

        Args:
          pieces: the collective, or each of its copies if a TPU runs it in pieces, with the
            operation, such as a fusion, that contains it.
        """
        outer = [self._starts.get(id(i.computation), i) for _, i in pieces]
        first = outer[0]
        order = first.computation.instructions
        positions = self._positions.get(id(first.computation))
        if positions is None:
            positions = {id(i): n for n, i in enumerate(order)}
            self._positions[id(first.computation)] = positions
        ends = [positions[id(i)] for i in outer if id(i) in positions]
        if first.opcode.endswith("-start"):
            ends += [positions[id(user)] for user in first.users if id(user) in positions]
        begin, end = min(ends), max(ends)
        # A fusion that has a piece of the collective and other work counts, too.
        return [i for i in order[begin : end + 1] if i is not first and _computes(i)]

    def seconds(self, instructions: Sequence[Instruction], times: int) -> float | None:
        """Return the least time of all runs of operations, None without rates."""
        if self._bounds is None:
            return None
        bounds = (self._bounds.of(instruction, times, False) for instruction in instructions)
        return sum(max(bound.computing, bound.memory + bound.cache) for bound in bounds if bound)


def _computes(instruction: Instruction) -> bool:
    """Return whether an operation has work besides collectives and copies."""
    opcode = instruction.opcode
    if opcode in _TIMELESS or opcode.endswith(("-start", "-done", "-update")):
        return False
    if instruction.fused is None:
        return not is_collective(opcode)
    return any(
        i.opcode not in _TIMELESS and i.opcode != "custom-call" and not is_collective(i.opcode)
        for i in instruction.fused.instructions
    )
