"""The elements that a fusion needs of each value in it: slices read only a part of a value."""

from collections.abc import Iterator
from typing import NamedTuple

from hlotools.ir.hlo import Computation, Instruction

_WHOLE = frozenset({
    "dot", "convolution", "sort", "fft", "cholesky", "triangular-solve", "reduce-window",
    "select-and-scatter", "custom-call", "while", "conditional", "call", "topk",
})  # fmt: skip
# Opcodes that return a part of their first operand, at positions given by the other operands.
_PARTS = frozenset({"slice", "dynamic-slice", "gather"})


class Needs(NamedTuple):
    """The elements of a fusion's values that its results need.

    Attributes:
      elements: by the id of an operation in the fusion, the number of its elements.
      overwritten: the ids of updates whose first operand is written in place: the bytes of their
        results are those of the elements that they change.
    """

    elements: dict[int, int]
    overwritten: set[int]

    def share(self, instruction: Instruction) -> float:
        """Return the needed share of an operation's elements, from 0 to 1."""
        size = instruction.shape.size
        return self.elements.get(id(instruction), 0) / size if size else 1.0


def needs_of(fused: Computation, known: dict[int, Needs] | None = None) -> Needs:
    """Return the elements that a fused computation needs of each of its values.

    `known` caches the results by the ids of computations, so nested ones are visited once.
    """
    known = {} if known is None else known
    if id(fused) in known:
        return known[id(fused)]
    elements: dict[int, int] = {}
    overwritten = {id(i) for i in _results(fused.root) if written_elements(i) is not None}
    elements[id(fused.root)] = fused.root.shape.size
    for instruction in reversed(fused.in_order()):
        needed = elements.get(id(instruction), 0)
        if not needed:
            continue
        for operand, count in _reads(instruction, needed, id(instruction) in overwritten, known):
            before = elements.get(id(operand), 0)
            elements[id(operand)] = min(before + count, operand.shape.size)
    known[id(fused)] = Needs(elements, overwritten)
    return known[id(fused)]


def fused_computations(fusion: Instruction) -> list[tuple[Computation, int]]:
    """Return the computations of a fusion and of the fusions in it, callers first.

    Each is listed once, with the number of times that it is applied in one run of the fusion. For
    other operations the result is empty.
    """
    callees_first: dict[int, Computation] = {}
    waiting = [(called, False) for called in (fusion.fused,) if called is not None]
    while waiting:
        computation, is_done = waiting.pop()
        if is_done:
            callees_first[id(computation)] = computation
        elif id(computation) not in callees_first:
            waiting.append((computation, True))
            waiting += [(callee, False) for callee in _fused_in(computation)]
    counts = {id(fusion.fused): 1}
    order = list(reversed(callees_first.values()))
    for computation in order:
        for callee in _fused_in(computation):
            counts[id(callee)] = counts.get(id(callee), 0) + counts[id(computation)]
    return [(computation, counts[id(computation)]) for computation in order]


def _fused_in(computation: Computation) -> list[Computation]:
    return [i.fused for i in computation.instructions if i.fused is not None]


def written_elements(instruction: Instruction) -> int | None:
    """Return the number of elements that an update in place writes, None for other operations."""
    operands = instruction.operands
    if instruction.opcode == "dynamic-update-slice" and len(operands) > 1:
        return operands[1].shape.size
    if instruction.opcode == "scatter" and len(operands) == 3:
        return operands[2].shape.size
    return None


def _results(root: Instruction) -> list[Instruction]:
    """Return the operations that compute a fusion's results, below views."""
    results = root.operands if root.opcode == "tuple" else [root]
    return [_viewed(result) for result in results]


def _viewed(instruction: Instruction) -> Instruction:
    while instruction.opcode == "bitcast" and instruction.operands:
        instruction = instruction.operands[0]
    return instruction


def _reads(
    instruction: Instruction, needed: int, overwrites: bool, known: dict[int, Needs]
) -> Iterator[tuple[Instruction, int]]:
    """Yield an operation's operands and the elements of each that `needed` results require."""
    opcode, operands = instruction.opcode, instruction.operands
    size = max(instruction.shape.size, 1)
    if instruction.fused is not None:
        inside = needs_of(instruction.fused, known)
        for parameter in instruction.fused.parameters:
            if parameter.number < len(operands):
                yield operands[parameter.number], inside.elements.get(id(parameter), 0)
        return
    for position, operand in enumerate(operands):
        whole = operand.shape.size
        if opcode in _WHOLE or opcode == "tuple":
            yield operand, whole
        elif opcode in _PARTS:
            yield operand, min(needed, whole) if position == 0 else whole
        elif opcode in ("dynamic-update-slice", "scatter") and position == 0:
            written = written_elements(instruction) or 0
            yield operand, 0 if overwrites else max(min(needed, whole) - written, 0)
        elif opcode in ("dynamic-update-slice", "scatter"):
            yield operand, whole
        elif opcode in ("reduce", "bitcast", "reshape") and position < max(len(operands) // 2, 1):
            # A reduction reads as many elements for each result; views may regroup elements.
            yield operand, min(-(-needed * whole // size), whole)
        else:
            # Elementwise operations, and those whose operands have fewer elements.
            yield operand, min(needed, whole)
