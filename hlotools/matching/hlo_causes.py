"""The causes of the differences of optimized HLO, as far as its own text shows them.

Texts of HLO come without StableHLO, but have the types, shardings and donation of arguments, and
the name stack of the operation that each instruction comes from.
"""

from collections.abc import Iterable, Iterator, Sequence

from hlotools.cost.links import is_collective
from hlotools.ir.hlo import HloModule, Instruction, nearest_source
from hlotools.matching.argument_changes import argument_changes, result_change
from hlotools.matching.cause_text import steps_of
from hlotools.matching.causes import Cause, Line, OperationGraph
from hlotools.matching.changes import Change, OperationSite
from hlotools.matching.match import Matching

# Primitives that prepare operands: compilers drop them, or give them other operations' names.
_PREPARING = frozenset({
    "broadcast_in_dim", "reshape", "squeeze", "expand_dims", "iota", "copy", "slice", "pad",
    "convert_element_type", "transpose", "concatenate", "stop_gradient", "closed_call", "body",
    "cond", "select_n", "jit", "pjit", "checkpoint", "scan",
})  # fmt: skip
# Parts that a loop adds to the name stacks of its body; and operations that count its steps.
_OF_LOOPS = frozenset({"while", "body", "cond", "closed_call"})
_COUNTING = frozenset({"while", "lt", "add", "dynamic_slice", "dynamic_update_slice", "sub",
                       "dynamic_index_in_dim", "dynamic_update_index_in_dim"})  # fmt: skip
# The attributes that are the user's own, by their names in HLO.
_ATTRIBUTES = {
    "operand_precision": "precision", "algorithm": "algorithm", "dimensions": "dimensions",
    "direction": "direction", "window": "window", "feature_group_count": "feature_group_count",
    "padding": "padding",
}  # fmt: skip


def hlo_causes(matching: Matching, changes: Sequence[Change]) -> list[Cause]:
    """Return the differences of the compiler's input that the texts of two programs show.

    Args:
      matching: the matching operations of the two programs.
      changes: their differences.
    """
    a, b = matching.a.module, matching.b.module
    causes = [_cause(change) for change, _ in argument_changes(matching)]
    are_typed = any(cause.change.what in ("dtype", "type") for cause in causes)
    # Compilers also choose dtypes, so a cast is a cause only if one program was traced with it.
    are_cast = not are_typed and _casts(a) != _casts(b)
    for change in changes:
        if change.kind == "retyped" and are_cast:
            causes.append(_cause(change._replace(parts=(), effect=None)))
    result = result_change(a, b)
    if result is not None:
        causes.append(_cause(result))
    causes += [_cause(change) for change in changes if change.kind == "kernel"]
    removed, added = _unpaired(a, b)
    loops = [site for site in removed if site.opcode == "while"]
    if loops and not added and all(site.opcode in _COUNTING for site in removed):
        steps = steps_of(loops[0].at) if loops[0].at is not None else ""
        causes.append(_cause(Change("unrolled", "loop", steps, "", tuple(removed), ())))
        removed = []
    operations = [Change("removed", "operation", site.type, "", (site,), ()) for site in removed]
    operations += [Change("added", "operation", "", site.type, (), (site,)) for site in added]
    groups = OperationGraph(matching).groups(operations)
    causes += [group.as_cause() for group in groups]
    attributes = list(_attributes(changes))
    # If nothing but the attribute differs, it is the change itself.
    return [*causes, *map(_cause, attributes)] if causes or len(changes) > 1 else []


def _cause(change: Change) -> Cause:
    sites = (*change.a, *change.b)
    lines: frozenset[Line] = frozenset((site.file, site.line) for site in sites if site.file)
    return Cause(change, lines, frozenset())


def _unpaired(a: HloModule, b: HloModule) -> tuple[list[OperationSite], list[OperationSite]]:
    """Return the sites of operations that were traced in only one program."""
    before, after = _traced(a), _traced(b)
    if not before or not after:
        # A text without name stacks gives no answer.
        return [], []
    return (
        [_site(*before[name]) for name in before if name not in after],
        [_site(*after[name]) for name in after if name not in before],
    )


def _traced(module: HloModule) -> dict[str, tuple[Instruction, str]]:
    """Return the operation of each name stack of a module, without those that prepare operands.

    Each has the name of the traced operation.
    """
    found: dict[str, tuple[Instruction, str]] = {}
    # Many instructions have the same name stack.
    known: dict[str, str] = {}
    for instruction in module.instructions():
        if instruction.opcode == "parameter":
            continue
        op_name = instruction.op_name
        if op_name not in known:
            known[op_name] = _traced_name(op_name)
        name = known[op_name]
        last = name.rpartition("/")[2]
        if not name or (last == "while" and instruction.opcode != "while"):
            continue
        is_of_host = "is_host_transfer" in instruction.attributes
        if is_collective(instruction.opcode) and not is_of_host:
            opcode = instruction.opcode.removesuffix("-start").replace("-", "_")
            found[name] = instruction, opcode
        elif name not in found:
            found[name] = instruction, last
    return found


def _traced_name(op_name: str) -> str:
    """Return a name stack without the program's name and loops; "" if it prepares operands."""
    # The first of several operations in one instruction; the last of several callers' names.
    stack = op_name.partition(";")[0].split("/")
    start = len(stack) - 1 - stack[::-1].index(stack[0])
    stack = stack[start:]
    if len(stack) < 2 or stack[-1] in _PREPARING:
        return ""
    # The first part is the name of the program; an unrolled loop does not have its own.
    return "/".join(part for part in stack[1:-1] if part not in _OF_LOOPS) + "/" + stack[-1]


def _casts(module: HloModule) -> set[str]:
    """Return the name stacks of a module's conversions without the name of the program."""
    stacks = (
        instruction.op_name.partition(";")[0]
        for instruction in module.instructions()
        if "convert_element_type" in instruction.attributes.get("metadata", "")
    )
    return {stack.partition("/")[2] for stack in stacks if stack.endswith("/convert_element_type")}


def _site(instruction: Instruction, name: str) -> OperationSite:
    source = nearest_source(instruction)
    return OperationSite(
        name,
        name,
        instruction.shape.without_layout(),
        source.file if source else "",
        source.line if source else 0,
        source.function if source else "",
        instruction,
    )


def _attributes(changes: Iterable[Change]) -> Iterator[Change]:
    """Yield the changed attributes of the user's, at operations with their traced names."""
    for change in changes:
        yield from _attributes(change.parts)
        pairs = [
            (x.at, y.at)
            for x, y in zip(change.a, change.b, strict=False)
            if x.at is not None and y.at is not None and _is_as_traced(x.at) and _is_as_traced(y.at)
        ]
        # Where the ranks differ, a compiler has split the operation.
        pairs = [(x, y) for x, y in pairs if len(x.shape.dimensions) == len(y.shape.dimensions)]
        name = _ATTRIBUTES.get(change.what)
        if change.kind == "changed" and name is not None and pairs:
            a, b = (tuple(_site(pair[n], _primitive(pair[n])) for pair in pairs) for n in (0, 1))
            yield Change("changed", name, change.before, change.after, a, b)


def _primitive(instruction: Instruction) -> str:
    return instruction.op_name.rpartition("/")[2]


def _is_as_traced(instruction: Instruction) -> bool:
    """Return whether an instruction is the operation of its name stack, not a part of it."""
    opcode = instruction.opcode.replace("-", "_")
    return _primitive(instruction).startswith("conv" if opcode == "convolution" else opcode)
