"""The alignment of two programs that differ in which of their parts are separate functions.

JAX calls a function for `jnp.where`, `jnp.clip` and the bodies of loops where other programs have
the operations themselves, and passes unchanged values through loops. Neither affects the
computation: the compiler inlines such calls.
"""

import re
import struct
from collections import Counter

from hlotools.ir.digests import Hashes, clean_attributes, digest, is_commutative
from hlotools.ir.graph_building import captures, several
from hlotools.ir.hlo import Computation, HloModule, Instruction

# Operations that only call a function.
_CALLS = frozenset({"call", "jit", "pjit", "closed_call", "core_call"})
# Attributes of calls that do not affect the callee's work.
_NAMES = frozenset({"metadata", "name", "inline", "keep_unused"})
_CONVERTS = frozenset({"convert", "convert_element_type"})
_FLOATS = {"f16": "e", "bf16": "f", "f32": "f", "f64": "d"}
_NUMBERED = re.compile(r"_\d+$")
_NUMBER = re.compile(r"-?\d+(\.\d*)?(e[+-]?\d+)?", re.IGNORECASE)


def align_calls(a: HloModule, b: HloModule) -> bool:
    """Inline, in place, the calls of two modules that have no counterpart in the other module.

    A function has a counterpart if the other module calls one of equal work equally often, or one
    of its name and signature. Inlined operations without a source line have the call's, literals
    that are only converted become literals of the other type, and loops capture the values that
    they pass on unchanged. Calls remain if inlining would make the module many times as long.

    Returns:
      True if a call was inlined.
    """
    changed = False
    while True:
        counts = _calls(a), _calls(b)
        names = [
            {_signature(c) for c in map(_callee, side.instructions()) if c is not None}
            for side in (a, b)
        ]
        alone = [
            {
                id(callee)
                for key, (number, callee) in mine.items()
                if others.get(key, (0, callee))[0] != number and _signature(callee) not in known
            }
            for mine, others, known in zip(counts, counts[::-1], names[::-1], strict=True)
        ]
        if not any(alone) or not all(map(_may_inline, (a, b), alone)):
            break
        for module, chosen in zip((a, b), alone, strict=True):
            if chosen:
                _inline(module, chosen)
        changed = True
    for module in (a, b) if changed else ():
        _simplify(module)
    return changed


def inline_all_calls(module: HloModule) -> bool:
    """Inline every call of a module in place, as in `align_calls`; return whether it is done."""
    chosen = {id(callee) for i in module.instructions() if (callee := _callee(i)) is not None}
    if not _may_inline(module, chosen):
        return False
    _inline(module, chosen)
    _simplify(module)
    return True


# Functions are inlined up to this number of operations, or to this multiple of the module's.
_MAX_OPERATIONS, _MAX_GROWTH = 2_000, 8


def _may_inline(module: HloModule, chosen: set[int]) -> bool:
    """Return whether a module stays short enough when the calls of chosen functions are inlined.

    Functions that call one another twice each would double its length at each level.
    """
    lengths: dict[int, int] = {}
    for computation in module.callees_first():
        callees = filter(None, map(_callee, computation.instructions))
        inlined = sum(lengths[id(callee)] for callee in callees if id(callee) in chosen)
        lengths[id(computation)] = len(computation) + inlined
    before = sum(map(len, module.computations))
    return sum(lengths.values()) <= max(_MAX_GROWTH * before, _MAX_OPERATIONS)


def _callee(instruction: Instruction) -> Computation | None:
    """Return the function that an operation calls, if inlining does not change the program."""
    if instruction.opcode not in _CALLS or not _NAMES.issuperset(instruction.attributes):
        return None
    callees = [computation for called in instruction.called.values() for computation in called]
    if len(callees) != 1 or len(callees[0].parameters) != len(instruction.operands):
        return None
    return callees[0]


def _signature(callee: Computation) -> tuple[str, ...]:
    name = _NUMBERED.sub("", callee.name)
    types = [instruction.shape.text for instruction in (*callee.parameters, callee.root)]
    return name, *types


def _calls(module: HloModule) -> dict[bytes, tuple[int, Computation]]:
    """Return the number of calls and the function, by the digest of a called function."""
    digests = Hashes(module)
    counts: Counter[bytes] = Counter()
    callees: dict[bytes, Computation] = {}
    for instruction in module.instructions():
        callee = _callee(instruction)
        if callee is not None:
            key = digests.computation(callee)
            counts[key] += 1
            callees[key] = callee
    return {key: (counts[key], callee) for key, callee in callees.items()}


# ---- inlining ------------------------------------------------------------------------------------


def _inline(module: HloModule, chosen: set[int]) -> None:
    """Replace the calls of chosen functions, by their ids, by the functions' operations."""
    for computation in module.callees_first():
        new: dict[int, Instruction] = {}
        # The results of inlined calls with several results.
        results: dict[int, list[Instruction]] = {}
        instructions: list[Instruction] = []
        for instruction in computation.in_order():
            instruction.operands = [new.get(id(o), o) for o in instruction.operands]
            callee = _callee(instruction)
            if callee is not None and id(callee) in chosen:
                copies = _copied(callee, instruction)
                root = callee.root
                if instruction.shape.is_tuple and root.opcode == "tuple":
                    results[id(instruction)] = [copies[id(o)] for o in root.operands]
                    copies.pop(id(root))
                else:
                    new[id(instruction)] = copies[id(root)]
                instructions += [
                    copies[id(i)]
                    for i in callee.in_order()
                    if i.opcode != "parameter" and id(i) in copies
                ]
            elif instruction.opcode == "get-tuple-element" and (
                parts := results.get(id(instruction.operands[0]))
            ):
                new[id(instruction)] = parts[int(instruction.attributes["index"])]
            else:
                instructions.append(instruction)
        _replace(computation, instructions, new)
    _drop_unused(module)


def _copied(callee: Computation, call: Instruction) -> dict[int, Instruction]:
    """Return the values of a function for the operands of a call, by the ids of its operations.

    Parameters are replaced by operands; other instructions are copied into the call's computation.
    """
    copies = {id(p): o for p, o in zip(callee.parameters, call.operands, strict=True)}
    for original in callee.in_order():
        if id(original) in copies:
            continue
        copy = Instruction(
            original.name,
            original.shape,
            original.opcode,
            dict(original.attributes),
            original.literal,
        )
        if original.source is None and "metadata" in call.attributes:
            copy.attributes["metadata"] = call.attributes["metadata"]
        copy.computation = call.computation
        copy.called = dict(original.called)
        copy.operands = [copies[id(o)] for o in original.operands]
        copies[id(original)] = copy
    return copies


def _replace(
    computation: Computation, instructions: list[Instruction], new: dict[int, Instruction]
) -> None:
    """Set the operations of a computation, whose root may have been replaced."""
    root = new.get(id(computation.root), computation.root)
    computation.root.is_root = False
    root.is_root = True
    computation.root = root
    computation.instructions = instructions


def _drop_unused(module: HloModule) -> None:
    """Remove the computations that nothing calls, and find the users of each operation again."""
    used = set(map(id, module.roots))
    for computation in reversed(module.callees_first()):
        if id(computation) in used:
            for instruction in computation.instructions:
                used.update(
                    id(c) for computations in instruction.called.values() for c in computations
                )
    module.computations = [c for c in module.computations if id(c) in used]
    for instruction in module.instructions():
        instruction.users = []
    for instruction in module.instructions():
        for operand in dict.fromkeys(instruction.operands):
            operand.users.append(instruction)


# ---- what inlining leaves ------------------------------------------------------------------------


def _simplify(module: HloModule) -> None:
    """Bring a module with inlined calls into the form of one written without them."""
    _fold(module)
    for computation in reversed(module.callees_first()):
        _recapture(computation)
    _drop_unused(module)
    _fold(module)


def _fold(module: HloModule) -> None:
    """Fold conversions of constants, and operations that return their operand, in place."""
    for computation in module.callees_first():
        new: dict[int, Instruction] = {}
        constants: dict[tuple[str, str], Instruction] = {}
        instructions: dict[int, Instruction] = {}
        for instruction in computation.in_order():
            instruction.operands = [new.get(id(o), o) for o in instruction.operands]
            value = _simpler(instruction)
            if value.opcode == "constant":
                value.literal = _shortest(value.literal, value.shape.dtype)
                value = constants.setdefault((value.literal, value.shape.text), value)
            if value is not instruction:
                new[id(instruction)] = value
            instructions[id(value)] = value
        _replace(computation, list(instructions.values()), new)
    _drop_unused(module)
    for computation in module.computations:
        computation.instructions = [
            i for i in computation.instructions if i.users or i.is_root or i.opcode != "constant"
        ]


def _simpler(instruction: Instruction) -> Instruction:
    """Return the value that an operation merely passes on or converts; else the operation."""
    if instruction.opcode == "broadcast_in_dim" and "dims" in instruction.attributes:
        operand = instruction.operands[0]
        if operand.shape == instruction.shape:
            return operand
        if operand.shape.size == instruction.shape.size > 0 and (
            instruction.numbers("dims") == tuple(sorted(instruction.numbers("dims")))
        ):
            instruction.opcode = "reshape"
            del instruction.attributes["dims"]
        return instruction
    if instruction.opcode not in _CONVERTS or len(instruction.operands) != 1:
        return instruction
    operand = instruction.operands[0]
    if operand.shape == instruction.shape and "sharding" not in instruction.attributes:
        return operand
    dtype = instruction.shape.dtype
    if operand.opcode == "constant" and _NUMBER.fullmatch(operand.literal) and dtype in _FLOATS:
        constant = Instruction(
            operand.name, instruction.shape, "constant", dict(operand.attributes), operand.literal
        )
        constant.computation = instruction.computation
        return constant
    return instruction


def _shortest(literal: str, dtype: str) -> str:
    """Return the shortest text of a floating-point literal, other literals unchanged."""
    rounded = _rounded(literal, dtype)
    if rounded is None:
        return literal
    return next(
        (
            repr(float(text))
            for digits in range(1, 17)
            if _rounded(text := f"{rounded:.{digits}g}", dtype) == rounded
        ),
        repr(rounded),
    )


def _rounded(literal: str, dtype: str) -> float | None:
    """Return the value of a literal in a floating-point dtype; None if it has none."""
    format_ = _FLOATS.get(dtype)
    if format_ is None or not _NUMBER.fullmatch(literal):
        return None
    try:
        (value,) = struct.unpack("<" + format_, struct.pack("<" + format_, float(literal)))
    except OverflowError:
        return None
    if dtype == "bf16":
        (bits,) = struct.unpack("<I", struct.pack("<f", value))
        bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
        (value,) = struct.unpack("<f", struct.pack("<I", bits))
    return value


def _recapture(computation: Computation) -> None:
    """Bring the values that a computation's regions capture into a canonical order.

    Loops capture the values that they carried unchanged. The order does not depend on the digests
    of regions; outer computations come first, as inner ones know captured values by parameter
    numbers.
    """
    keys: dict[int, bytes] = {}
    removed: set[int] = set()
    for instruction in computation.in_order():
        count = captures(instruction)
        if instruction.opcode == "while" and "body" in instruction.called:
            removed |= _capture(instruction, _unchanged(instruction, count), count, keys)
        elif count:
            _capture(instruction, [], count, keys)
        texts = [
            instruction.opcode,
            instruction.shape.text,
            instruction.literal,
            str(instruction.number),
            *(f"{key}={value}" for key, value in clean_attributes(instruction).items()),
        ]
        operands = [keys[id(o)] for o in instruction.operands]
        operands = sorted(operands) if is_commutative(instruction) else operands
        keys[id(instruction)] = digest(["\0".join(texts).encode(errors="replace"), *operands])
    if removed:
        staying = [i for i in computation.instructions if id(i) not in removed]
        computation.instructions = staying


def _unchanged(loop: Instruction, count: int) -> list[int]:
    """Return the numbers of the values that a loop of StableHLO only passes on."""
    body = loop.called["body"][0]
    carried = len(loop.operands) - count
    results, own = body.root.operands, body.parameters[:carried]
    if body.root.opcode != "tuple" or len(results) != carried:
        return []
    unchanged = [n for n in range(carried) if results[n] is own[n]]
    # A loop of a single value has no tuple.
    return unchanged if carried - len(unchanged) > 1 else []


def _capture(
    operation: Instruction, unchanged: list[int], count: int, keys: dict[int, bytes]
) -> set[int]:
    """Also capture some of a loop's own operands, and sort all captured values by their keys.

    Returns:
      The ids of the operations that took results which the loop no longer has.
    """
    values = operation.operands
    own = len(values) - count
    staying = [n for n in range(own) if n not in unchanged]
    numbers = sorted([*unchanged, *range(own, len(values))], key=lambda n: keys[id(values[n])])
    captured = [n for n in numbers if values[n].opcode != "constant"]
    for region in (computation for called in operation.called.values() for computation in called):
        parameters = region.parameters
        # Regions of operations other than loops have parameters that are not operands.
        missing = len(parameters) - len(values)
        front = [p for n, p in enumerate(parameters[: own + missing]) if n not in unchanged]
        for number, parameter in enumerate([*front, *(parameters[n + missing] for n in captured)]):
            parameter.number = number
        for n in set(numbers) - set(captured):
            # A region contains the constants that it uses.
            parameter = parameters[n + missing]
            parameter.opcode, parameter.number = "constant", -1
            parameter.literal, parameter.shape = values[n].literal, values[n].shape
        region.attributes["captured"] = str(len(captured))
    operation.operands = [values[n] for n in (*staying, *captured)]
    if not unchanged:
        return set()
    root = operation.called["body"][0].root
    root.operands = [root.operands[n] for n in staying]
    root.shape = operation.shape = several([operation.shape.elements[n] for n in staying])
    removed: set[int] = set()
    for element in operation.users:
        number = int(element.attributes["index"])
        if number in staying:
            element.attributes["index"] = str(staying.index(number))
            continue
        removed.add(id(element))
        for user in element.users:
            user.operands = [values[number] if o is element else o for o in user.operands]
        if element.is_root:
            operation.computation.root = values[number]
            values[number].is_root = True
    return removed
