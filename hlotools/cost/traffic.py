"""The bytes that an operation of a compiled program moves to and from its device's memory."""

import itertools
import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from hlotools.cost.fusion_needs import Needs, needs_of, written_elements
from hlotools.cost.kernel_work import KernelWork, work_of
from hlotools.ir.hlo import HloModule, Instruction, Shape
from hlotools.ir.quoted_text import unquoted

# Opcodes that move no bytes of their own.
_FREE = frozenset({
    "parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "add-dependency",
    "opt-barrier", "partition-id", "replica-id", "get-dimension-size", "domain", "while",
    "conditional", "call", "async-start", "async-update",
})  # fmt: skip
_PARTS = frozenset({"slice", "dynamic-slice", "gather"})
_LIBRARIES = ("__cublas", "__cudnn", "__onednn")


# Fusions that are computed by a library, which allocates its own workspace.
_LIBRARY_FUSION = re.compile(r"__(?:ynn|xnn|onednn)_fusion")
# Custom calls that XLA itself computes, or whose workspace is one of their results.
_WITHOUT_ALLOCATIONS = re.compile(
    r"AllocateBuffer|__cu|__triton|tpu_custom_call|Sharding|SPMD|X64|annotate_|MoveTo|xla\.|Layout"
    r"|Assume|Pin|Unpin|GlobalTo|LocalTo|Slice|PadTo|TopK|Eigh|Qr|LuDecomposition|inspect_sharding"
)


def self_allocating(module: HloModule) -> Counter[str]:
    """Return the names and counts of a program's library calls that may allocate memory inside.

    This memory is neither in the text nor in XLA's own record.
    """
    names: Counter[str] = Counter()
    for instruction in module.instructions():
        if instruction.opcode == "fusion" and instruction.attributes.get("kind") == "kCustom":
            library = _LIBRARY_FUSION.search(instruction.attributes.get("backend_config", ""))
            if library is not None:
                names[library[0].strip("_")] += 1
        elif instruction.opcode == "custom-call":
            target = unquoted(instruction.attributes.get("custom_call_target", ""))
            if not _WITHOUT_ALLOCATIONS.match(target):
                names[target or "custom-call"] += 1
    return names


def uncounted_text(names: Counter[str]) -> str:
    """Return a line about library calls whose own memory is not counted, "" for none."""
    if not names:
        return ""
    listed = ", ".join(f"{count} {name}" for name, count in names.most_common(3))
    more = f" and {len(names) - 3} more kinds" if len(names) > 3 else ""
    return f"not counted: what library calls allocate while they run ({listed}{more})"


class Transfer(NamedTuple):
    """A value that an operation reads from or writes to memory, and the number of bytes."""

    value: Instruction
    bytes: int
    is_write: bool


def bytes_in_memory(shape: Shape) -> int:
    """Return the bytes of a shape that are in the device's main memory, with the tiles' padding.

    A TPU's shapes have tiles, and their memory spaces other than 0 are on the chip (1 is the
    vector memory) or on the host (5); a GPU's space 1 is a part of its main memory.
    """
    if shape.memory_space == 0 and not shape.elements:
        return shape.stored_bytes
    total = 0
    for leaf in shape.leaves():
        if leaf.memory_space == 0 or (leaf.memory_space == 1 and not leaf.tiles):
            total += leaf.stored_bytes
    return total


def is_allocation(instruction: Instruction) -> bool:
    """Return whether a custom call only allocates a buffer, which others fill."""
    target = unquoted(instruction.attributes.get("custom_call_target", ""))
    return instruction.opcode == "custom-call" and target == "AllocateBuffer"


def moved_bytes(instruction: Instruction, known: dict[int, Needs] | None = None) -> int:
    """Return the bytes that an operation moves to and from the device's memory in one run."""
    return sum(transfer.bytes for transfer in transfers(instruction, known))


def transfers(
    instruction: Instruction, known: dict[int, Needs] | None = None
) -> Iterator[Transfer]:
    """Yield the values that an operation reads and writes, except those already on the chip.

    `known` caches the needs of fused computations by their ids, so each is visited once.
    """
    opcode, operands = instruction.opcode, instruction.operands
    if opcode in _FREE or opcode.endswith(("-done", "-update")):
        return
    if instruction.fused is not None:
        yield from _of_fusion(instruction, known)
    elif opcode.endswith("-start"):
        yield from _of_start(instruction)
    elif opcode == "custom-call":
        yield from _of_custom_call(instruction)
    elif opcode in _PARTS and operands:
        # Only the selected elements are read.
        read = _part(operands[0].shape, instruction.shape)
        yield Transfer(operands[0], read, False)
        for index in operands[1:] if opcode == "gather" else ():
            yield Transfer(index, bytes_in_memory(index.shape), False)
        yield Transfer(instruction, bytes_in_memory(instruction.shape), True)
    elif opcode in ("dynamic-update-slice", "scatter") and written_elements(instruction):
        for operand in operands[1:]:
            yield Transfer(operand, bytes_in_memory(operand.shape), False)
        update = operands[1] if opcode == "dynamic-update-slice" else operands[2]
        yield Transfer(instruction, _part(instruction.shape, update.shape), True)
    else:
        for operand in dict.fromkeys(operands):
            yield Transfer(operand, bytes_in_memory(operand.shape), False)
        yield Transfer(instruction, bytes_in_memory(instruction.shape), True)


def _part(whole: Shape, part: Shape) -> int:
    """Return the bytes of a part of a value, 0 where the value is not in the device's memory."""
    return min(part.stored_bytes, bytes_in_memory(whole))


def _of_fusion(fusion: Instruction, known: dict[int, Needs] | None) -> Iterator[Transfer]:
    fused = fusion.fused
    if fused is None:
        return
    needs = needs_of(fused, known)
    read: dict[Instruction, float] = {}
    for parameter in fused.parameters:
        if parameter.number < len(fusion.operands):
            operand = fusion.operands[parameter.number]
            share = needs.share(parameter)
            # For a bound, an operand that occurs twice is read once.
            read[operand] = max(read.get(operand, 0.0), share)
    for operand, share in read.items():
        yield Transfer(operand, round(bytes_in_memory(operand.shape) * share), False)
    results = fused.root.operands if fused.root.opcode == "tuple" else [fused.root]
    shapes = fusion.shape.elements if fused.root.opcode == "tuple" else (fusion.shape,)
    for result, shape in zip(results, shapes, strict=False):
        while result.opcode == "bitcast" and result.operands:
            result = result.operands[0]
        written = written_elements(result) if id(result) in needs.overwritten else None
        share = 1.0 if written is None else min(written / max(result.shape.size, 1), 1.0)
        yield Transfer(fusion, round(bytes_in_memory(shape) * share), True)


def continues(instruction: Instruction) -> bool:
    """Return whether an operation is an update of an asynchronous one that returns its result."""
    if instruction.opcode != "async-update" or not instruction.operands:
        return False
    return result_of_start(instruction.operands[0]).size > 0


def result_of_start(start: Instruction) -> Shape:
    """Return the shape of an asynchronous operation's result, from its start's tuple."""
    elements = start.shape.elements
    if len(elements) < 2 or start.opcode == "all-reduce-start":
        return start.shape
    # The tuple is (destination, source, context) for a copy, else (operands, results, ...).
    return elements[0 if start.opcode == "copy-start" else 1]


def made_bytes(instruction: Instruction) -> int:
    """Return the bytes of the buffers that an operation makes in the device's memory."""
    # An operation on another core takes its operands after its start, in an update.
    is_start = instruction.opcode.endswith("-start") or instruction.opcode == "async-update"
    return bytes_in_memory(result_of_start(instruction) if is_start else instruction.shape)


def _of_start(start: Instruction) -> Iterator[Transfer]:
    """Yield the transfers of an asynchronous operation."""
    written = result_of_start(start)
    for operand in dict.fromkeys(start.operands):
        if operand.shape.size > written.size and start.opcode in (
            "slice-start",
            "dynamic-slice-start",
        ):
            yield Transfer(operand, _part(operand.shape, written), False)
        else:
            yield Transfer(operand, bytes_in_memory(operand.shape), False)
    yield Transfer(start, bytes_in_memory(written), True)


def _of_custom_call(call: Instruction) -> Iterator[Transfer]:
    if is_allocation(call):
        return
    if (kernel := work_of(call)) is not None:
        yield from _of_kernel(call, kernel)
        return
    target = unquoted(call.attributes.get("custom_call_target", ""))
    for operand in dict.fromkeys(call.operands):
        yield Transfer(operand, bytes_in_memory(operand.shape), False)
    # The last result of a library call is its workspace, which it may not use at all.
    results = call.shape.elements or (call.shape,)
    if target.startswith(_LIBRARIES) and len(results) > 1:
        results = results[:-1]
    yield Transfer(call, sum(map(bytes_in_memory, results)), True)


def _of_kernel(call: Instruction, kernel: KernelWork) -> Iterator[Transfer]:
    """Yield the transfers of a TPU kernel: its blocks for each grid step, and its own copies.

    Arrays without blocks are read or written once, unless the kernel copies parts of them itself.
    """
    results = [(call, shape, True) for shape in call.shape.elements or (call.shape,)]
    values = [*((operand, operand.shape, False) for operand in call.operands), *results]
    windows = itertools.chain(kernel.windows, itertools.repeat(None))
    for (value, shape, is_write), blocks in zip(values, windows, strict=False):
        size = bytes_in_memory(shape)
        if size and blocks is not None:
            size = blocks
        elif kernel.copied:
            size = 0
        yield Transfer(value, size, is_write)
    yield Transfer(call, kernel.copied, False)
