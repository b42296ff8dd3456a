"""The changes between two HLO modules, described in HLO's terms."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from hlotools.cost.links import is_collective
from hlotools.ir.custom_kernels import is_of_kernel
from hlotools.ir.digests import (
    clean_attributes,
    is_commutative,
    module_attributes,
)
from hlotools.ir.graph_building import captures
from hlotools.ir.hlo import Computation, HloModule, Instruction, Shape
from hlotools.ir.quoted_text import unquoted
from hlotools.matching.changes import Change, OperationSite, grouped, operand_name, site_of
from hlotools.matching.kernel_changes import are_decoded, kernel_change, why_not_decoded
from hlotools.matching.match import Compared, Matching
from hlotools.matching.regrouping import TRIVIAL, Regrouped, content
from hlotools.matching.reordering import reordered

_SHOWN = 6
# A fusion's body with this many removed and added operations counts as one change.
_REWRITTEN = 4
_VIEWS = frozenset({"bitcast", "get-tuple-element", "tuple"})
_FEW_VIEWS = 2
_ORDER = {
    "kernel": -1,
    "split": 0,
    "merged": 0,
    "regrouped": 0,
    "added": 1,
    "removed": 1,
    "reordered": 2,
    "changed": 3,
    "prefetched": 4,
    "configured": 4,
    "module": 5,
}


def hlo_changes(matching: Matching) -> list[Change]:
    """Return the changes between two HLO modules, the most important first."""
    return sorted(_consequences_together(grouped(single_changes(matching))), key=rank)


def single_changes(matching: Matching) -> list[Change]:
    """Return the changes between two HLO modules, before those of equal texts are grouped."""
    a, b = matching.a, matching.b
    changes = [_regrouped(group, matching) for group in matching.regrouped]
    for compared in matching.compared:
        changes += _in_computation(compared, matching)
    for kind, roots in (("removed", matching.roots.removed), ("added", matching.roots.added)):
        changes += [_of_function(kind, root) for root in roots]
    changes += _module_changes(a.module, b.module, bool(changes))
    if matching.regrouped:
        changes = list(_without_moved_constants(changes, a.module, b.module))
    return changes


def _of_function(kind: str, function: Computation) -> Change:
    """Return the change that only one of two modules has a certain public function."""
    taken = ", ".join(parameter.shape.short_text() for parameter in function.parameters)
    signature = f"({taken}) -> {function.root.shape.short_text()}"
    site = site_of(function.root, "")._replace(
        name=f"@{function.name}", opcode="function", type=signature, at=None
    )
    sides = ((site,), ()) if kind == "removed" else ((), (site,))
    return Change(kind, "function", signature, signature, *sides)


def rank(change: Change) -> tuple[int, bool, int]:
    """Return the rank of a change by its kind: less important changes have greater ranks."""
    if change.what == "views" or change.kind in ("prefetched", "configured"):
        return 4, True, 0
    opcodes = {site.opcode for site in (*change.a, *change.b)}
    trivial = bool(opcodes) and opcodes <= TRIVIAL - {"copy", "convert"}
    # Changes of computations come before those of layouts and backend configurations.
    late = ("operands", "layout", "backend_config", _CYCLES)
    what = change.what.partition(" ")[0] if change.what != _CYCLES else _CYCLES
    return _ORDER[change.kind], trivial, late.index(what) + 1 if what in late else 0


def _consequences_together(changes: list[Change]) -> list[Change]:
    """Return the changes, with consequences of others grouped by kind at the end."""
    views = [change for change in changes if _is_view(change)]
    count = sum(len(change.a) + len(change.b) for change in views)
    if count <= _FEW_VIEWS:
        views = [
            change
            for change in views
            if all(site.opcode != "bitcast" for site in (*change.a, *change.b))
        ]
    if views and len(views) < len(changes):
        together = Change(
            kind="changed",
            what="views",
            before=_counted(Counter(site.opcode for change in views for site in change.a)),
            after=_counted(Counter(site.opcode for change in views for site in change.b)),
            a=tuple(site for change in views for site in change.a),
            b=tuple(site for change in views for site in change.b),
        )
        changes = [*(change for change in changes if change not in views), together]
    cycles = [change for change in changes if change.what.endswith("." + _CYCLES_KEY)]
    if len(cycles) > 1 and all(_number(c.before) and _number(c.after) for c in cycles):
        sums = [
            sum(int(_number(text)) * len(c.a) for text, c in zip(texts, cycles, strict=True))
            for texts in ([c.before for c in cycles], [c.after for c in cycles])
        ]
        together = Change(
            kind="changed",
            what=_CYCLES,
            before=f"{sums[0]:,} in all",
            after=f"{sums[1]:,}",
            a=tuple(site for change in cycles for site in change.a),
            b=tuple(site for change in cycles for site in change.b),
        )
        changes = [*(change for change in changes if change not in cycles), together]
    return changes


def _without_moved_constants(changes: list[Change], a: HloModule, b: HloModule) -> Iterator[Change]:
    """Yield the changes except for constants that moved into or out of fusions."""
    known: list[set[str]] = []
    for module in (a, b):
        constants = (i for i in module.instructions() if i.opcode == "constant")
        known.append({described(i) for i in constants})
    for change in changes:
        moved = change.what == "constant" and (
            (change.kind == "added" and change.after in known[0])
            or (change.kind == "removed" and change.before in known[1])
        )
        if not moved:
            yield change


_CYCLES = "estimated cycles"
_CYCLES_KEY = "estimated_cycles"


def _number(text: str) -> str:
    digits = text.strip('"')
    return digits if digits.isdecimal() and len(digits) < 19 else ""


def _is_view(change: Change) -> bool:
    """Return whether a change is of operations that are only views of values."""
    views = all(site.opcode in _VIEWS for site in (*change.a, *change.b))
    return change.kind in ("added", "removed") and views


# ---- regrouped fusions --------------------------------------------------------------------------


def _regrouped(group: Regrouped, matching: Matching) -> Change:
    before, after = _opcodes(group.a, matching), _opcodes(group.b, matching)
    notes = [
        f"{word} {', '.join(o for o in one if o not in other)}"
        for word, one, other in (("without", before, after), ("also", after, before))
        if not one.keys() <= other.keys()
    ]
    return Change(
        kind=group.kind,
        what="fusion",
        before=_and(group.a),
        after=_and(group.b),
        a=tuple(site_of(i, "") for i in group.a),
        b=tuple(site_of(i, "") for i in group.b),
        note=", ".join(notes),
    )


def _and(instructions: list[Instruction]) -> str:
    """Return operations with their work as text, the first few by name."""
    named = [f"{i.name} ({_summary(i)})" for i in instructions[:_SHOWN]]
    more = len(instructions) - len(named)
    last = f"{more} more" if more else named.pop()
    return f"{', '.join(named)} and {last}" if named else last


def _opcodes(instructions: list[Instruction], matching: Matching) -> dict[str, None]:
    """Return the distinct opcodes inside operations, without trivial ones."""
    opcodes = [opcode for i in instructions for opcode in matching.opcodes(i)]
    return dict.fromkeys(opcode for opcode in opcodes if opcode not in TRIVIAL)


def _summary(instruction: Instruction) -> str:
    """Return the work of a fusion as short text, or the opcode of another operation."""
    if instruction.fused is None:
        return instruction.opcode
    body = content(instruction)
    telling = [i for i in body if i.opcode not in TRIVIAL] or body
    opcodes = list(dict.fromkeys(i.opcode for i in telling))
    more = f" and {len(opcodes) - 5} more" if len(opcodes) > 5 else ""
    return ", ".join(opcodes[:5]) + more


def _counted(opcodes: Counter[str]) -> str:
    """Return opcodes with their counts as text, the most significant first."""
    ordered = sorted(opcodes, key=lambda opcode: opcode in TRIVIAL)
    shown = [f"{opcodes[o]} × {o}" if opcodes[o] > 1 else o for o in ordered[:8]]
    more = sum(opcodes[opcode] for opcode in ordered[8:])
    return ", ".join(shown) + (f" and {more} more" if more else "")


# ---- pairs of computations ----------------------------------------------------------------------


def _what(instruction: Instruction) -> str:
    opcode = instruction.opcode
    if opcode in ("fusion", "parameter", "constant"):
        return opcode
    if opcode in ("copy", "copy-start", "copy-done"):
        return "copy"
    return "collective" if is_collective(opcode) else "operation"


def described(instruction: Instruction, caller: Instruction | None = None) -> str:
    """Return an operation as a line: shape, opcode, operands (those of `caller` for parameters)."""
    shape = instruction.shape.short_text()
    if instruction.opcode == "constant":
        literal = instruction.literal
        return f"{shape} constant({literal if len(literal) < 40 else literal[:37] + '...'})"
    if instruction.fused is not None:
        return f"{shape} fusion of {_summary(instruction)}"
    if instruction.opcode == "parameter":
        return f"{shape} parameter({instruction.number})"
    target = unquoted(instruction.attributes.get("custom_call_target", ""))
    named = ", ".join(operand_name(operand, caller) for operand in instruction.operands[:4])
    more = ", ..." if len(instruction.operands) > 4 else ""
    return f"{shape} {instruction.opcode} {target}".rstrip() + f"({named}{more})"


def _in_computation(compared: Compared, matching: Matching) -> Iterator[Change]:
    path = compared.paths[0] or ("" if compared.a.is_entry else f"{compared.a.name}/")
    path_b = compared.paths[1] or ("" if compared.b.is_entry else f"{compared.b.name}/")
    caller_a, caller_b = compared.callers or (None, None)
    moved: set[int] = set()
    for change, nodes in reordered(compared, matching, path, path_b):
        moved |= nodes
        yield change
    # A changed signature of a fusion follows from the changes of its body.
    fused = compared.callers is not None
    signature = fused or "captured" in compared.a.attributes or "captured" in compared.b.attributes
    added = [i for i in compared.added if not (signature and i.opcode == "parameter")]
    removed = [i for i in compared.removed if not (signature and i.opcode == "parameter")]
    added = [i for i in added if id(i) not in moved]
    removed = [i for i in removed if id(i) not in moved]
    rewritten = fused and len(added) + len(removed) >= _REWRITTEN
    if rewritten and caller_a is not None and caller_b is not None:
        yield Change(
            kind="changed",
            what="body",
            before=_counted(Counter(i.opcode for i in removed)),
            after=_counted(Counter(i.opcode for i in added)),
            a=(_body_site(caller_a, path, removed),),
            b=(_body_site(caller_b, path_b, added),),
        )
    else:
        for i in added:
            yield Change("added", _what(i), "", described(i, caller_b), (), (site_of(i, path_b),))
        for i in removed:
            yield Change("removed", _what(i), described(i, caller_a), "", (site_of(i, path),), ())
    for a, b in compared.pairs:
        if a.opcode == b.opcode == "parameter" and _as_in_callers(a, b, compared.callers):
            continue
        kernels = matching.a.own(a) != matching.b.own(b) and are_decoded(a, b)
        found = list(differences(a, b, matching, compared.callers))
        if not found and not kernels:
            continue
        sites = (site_of(a, path),), (site_of(b, path_b),)
        if kernels and (change := kernel_change(a, b, (sites[0][0], sites[1][0]))) is not None:
            yield change
        for what, before, after in found:
            if what == "operands" and (rewritten or id(a) in moved):
                continue
            key = _kinds_of_operands(a, b) if what == "operands" else ""
            note = why_not_decoded(a, b) if "<payload" in before + after else ""
            yield Change("changed", what, before, after, *sites, note=note, key=key)


def _kinds_of_operands(a: Instruction, b: Instruction) -> str:
    """Return a text about two operations' operands, equal for sites with equal changes."""
    kinds = [[f"{o.opcode} {o.shape.without_layout()}" for o in i.operands] for i in (a, b)]
    return f"{a.opcode}: {kinds[0]} -> {kinds[1]}"


def _body_site(caller: Instruction, path: str, inside: list[Instruction]) -> OperationSite:
    """Return the site of a fusion, with the source line of a change inside it."""
    telling = [i for i in inside if i.opcode not in TRIVIAL and i.source] or inside or [caller]
    site = site_of(telling[0], "")
    return site._replace(
        name=path.rstrip("/"), opcode="fusion", type=caller.shape.short_text(), at=caller
    )


def _as_in_callers(
    a: Instruction, b: Instruction, callers: tuple[Instruction, Instruction] | None
) -> bool:
    """Return whether two parameters of fusions have the shapes of their callers' operands.

    A difference of these shapes is then reported at the callers.
    """
    if callers is None:
        return False
    as_operands = [
        parameter.number < len(caller.operands)
        and caller.operands[parameter.number].shape == parameter.shape
        for parameter, caller in zip((a, b), callers, strict=True)
    ]
    return all(as_operands)


def differences(
    a: Instruction,
    b: Instruction,
    matching: Matching,
    callers: tuple[Instruction, Instruction] | None = None,
) -> Iterator[tuple[str, str, str]]:
    """Yield the differences of two matching operations as (what, before, after)."""
    if matching.a.own(a) != matching.b.own(b):
        if a.opcode != b.opcode:
            yield "opcode", _opcode(a), _opcode(b)
        yield from _shape_differences(a.shape, b.shape)
        if a.literal.split() != b.literal.split():
            yield "constant", _clipped(a.literal, b.literal), _clipped(b.literal, a.literal)
        if a.number != b.number and callers is None and "captured" not in a.computation.attributes:
            yield "parameter", str(a.number), str(b.number)
        if a.opcode == b.opcode:
            yield from _attribute_differences(a, b)
        for key in sorted(a.called.keys() ^ b.called.keys()):
            # If one side calls nothing, the other calls a function that implements the operation.
            if a.opcode == b.opcode and a.called and b.called:
                yield key, _names(a, key), _names(b, key)
        for key in a.called.keys() & b.called.keys():
            if len(a.called[key]) != len(b.called[key]):
                yield key, _names(a, key), _names(b, key)
    if a.opcode not in ("tuple", "fusion") or len(a.operands) == len(b.operands):
        yield from _operand_differences(a, b, matching, callers)
    for x, y in ((a, b), (b, a)):
        for before in x.predecessors:
            other = matching.to.get(id(before)) or matching.back.get(id(before))
            if other is not None and other not in y.predecessors:
                if x is a:
                    yield "control predecessor", before.name, ""
                else:
                    yield "control predecessor", "", before.name


def _opcode(instruction: Instruction) -> str:
    opcode = instruction.opcode
    return f"fusion of {_summary(instruction)}" if opcode == "fusion" else opcode


def _names(instruction: Instruction, key: str) -> str:
    return ", ".join(c.name for c in instruction.called.get(key, ()))


# ---- attributes ---------------------------------------------------------------------------------


def _attribute_differences(a: Instruction, b: Instruction) -> Iterator[tuple[str, str, str]]:
    attributes_a, attributes_b = clean_attributes(a), clean_attributes(b)
    for key in sorted(attributes_a.keys() | attributes_b.keys()):
        before, after = attributes_a.get(key, ""), attributes_b.get(key, "")
        if before == after:
            continue
        # A call of a function that implements the operation lacks the operation's attributes.
        if bool(a.called) != bool(b.called) and not (before if a.called else after):
            continue
        if key == "index" and a.operands and b.operands:
            # The index of an element in a tuple that became another tuple.
            if a.operands[0].shape.without_layout() != b.operands[0].shape.without_layout():
                continue
        if are_decoded(a, b) and is_of_kernel(key, a.kernel):
            continue
        in_config = _config_differences(before, after) if key == "backend_config" else []
        if in_config:
            for path, x, y in in_config:
                if not (are_decoded(a, b) and is_of_kernel(path, a.kernel)):
                    yield f"{key} {path}", x, y
        else:
            yield key, _clipped(before, after), _clipped(after, before)


def _config_differences(before: str, after: str) -> list[tuple[str, str, str]]:
    """Return the keys in which two JSON configurations differ as (path, before, after)."""
    try:
        waiting: list[tuple[str, Any, Any]] = [("", json.loads(before), json.loads(after))]
    except (ValueError, RecursionError):
        return []
    differing: list[tuple[str, str, str]] = []
    while waiting:
        path, x, y = waiting.pop()
        if x == y:
            continue
        if isinstance(x, dict) and isinstance(y, dict):
            for key in sorted(x.keys() | y.keys(), reverse=True):
                waiting.append((f"{path}.{key}" if path else key, x.get(key), y.get(key)))
        else:
            texts = ["" if v is None else json.dumps(v, separators=(",", ":")) for v in (x, y)]
            if not path:
                return []
            differing.append((path, _clipped(*texts), _clipped(*reversed(texts))))
    return differing


# ---- operands -----------------------------------------------------------------------------------


def _operand_differences(
    a: Instruction,
    b: Instruction,
    matching: Matching,
    callers: tuple[Instruction, Instruction] | None,
) -> Iterator[tuple[str, str, str]]:
    # Ordered operands first, then values that regions capture, which have no order.
    ends = len(a.operands) - captures(a), len(b.operands) - captures(b)
    if (is_commutative(a) and is_commutative(b)) or a.opcode == "fusion" or ends[0] != ends[1]:
        ends = 0, 0
    # Remaining operands are reported only if they have no partner on the other side.
    left = b.operands[ends[1] :]
    rest: list[Instruction] = []
    for x in a.operands[ends[0] :]:
        partner = next((y for y in left if matching.same(x, y)), None)
        if partner is None:
            rest.append(x)
        else:
            left.remove(partner)
    mine, theirs = a.operands[: ends[0]] + rest, b.operands[: ends[1]] + left
    if a.opcode == "tuple" and len(mine) != len(theirs):
        return
    changed = [
        (x, y)
        for x, y in zip(mine, theirs, strict=False)
        # Added and removed operands are reported at their own operations.
        if not matching.same(x, y)
        and (id(x) in matching.to or _is_captured(x))
        and (id(y) in matching.back or _is_captured(y))
    ]
    if changed:
        caller_a, caller_b = callers or (None, None)
        yield (
            "operands",
            ", ".join(operand_name(x, caller_a) for x, _ in changed[:4]),
            ", ".join(operand_name(y, caller_b) for _, y in changed[:4]),
        )


def _is_captured(instruction: Instruction) -> bool:
    """Return whether an operation only passes a captured value into a region."""
    return instruction.opcode == "parameter" and "captured" in instruction.computation.attributes


# ---- shapes and module attributes ---------------------------------------------------------------


def _shape_differences(a: Shape, b: Shape) -> Iterator[tuple[str, str, str]]:
    if a == b:
        return
    leaves_a, leaves_b = list(a.leaves()), list(b.leaves())
    if len(leaves_a) != len(leaves_b) or a.is_tuple != b.is_tuple:
        yield "shape", a.without_layout(), b.without_layout()
        return
    seen: set[tuple[str, str, str]] = set()
    for x, y in zip(leaves_a, leaves_b, strict=True):
        differing: list[tuple[str, str, str]] = []
        if x.dtype != y.dtype:
            differing.append(("dtype", x.dtype, y.dtype))
        if (x.dimensions, x.dynamic) != (y.dimensions, y.dynamic):
            differing.append(("shape", f"[{x.sizes_text()}]", f"[{y.sizes_text()}]"))
        elif x.layout_text() != y.layout_text() and (
            x.dimensions or not (x.is_default_layout and y.is_default_layout)
        ):
            differing.append(("layout", *_layouts(x, y)))
        for one in differing:
            if one not in seen:
                seen.add(one)
                yield one


def _layouts(a: Shape, b: Shape) -> tuple[str, str]:
    """Return the texts of two layouts, without tiles and memory spaces that are equal."""
    before, after = a.layout_text(), b.layout_text()
    orders = [text[1:-1].partition(":") for text in (before, after)]
    if orders[0][2] == orders[1][2]:
        return "{" + orders[0][0] + "}", "{" + orders[1][0] + "}"
    return before, after


def _clipped(text: str, other: str) -> str:
    """Return a long text from the position where it begins to differ from another."""
    if len(text) <= 60:
        return text
    same = next((n for n, (x, y) in enumerate(zip(text, other, strict=False)) if x != y), 0)
    start = max(0, same - 20)
    return (
        ("..." if start else "")
        + text[start : start + 60]
        + ("..." if start + 60 < len(text) else "")
    )


def _module_changes(a: HloModule, b: HloModule, explained: bool) -> Iterator[Change]:
    first, second = module_attributes(a), module_attributes(b)
    for key in sorted(first.keys() | second.keys()):
        # The entry's layouts are those of its parameters and result, which have their own changes.
        if key == "entry_computation_layout" and explained:
            continue
        before, after = first.get(key, ""), second.get(key, "")
        if before != after:
            yield Change("module", key, _clipped(before, after), _clipped(after, before), (), ())
