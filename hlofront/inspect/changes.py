"""What differs between two texts of a program: changes, each with the places it was found at."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from hlofront.inspect.estimates import is_collective
from hlofront.inspect.hashes import Hashes, clean_attributes, is_commutative, module_attributes
from hlofront.inspect.hlo_graph import HloModule, Instruction, Shape, nearest_source
from hlofront.inspect.match import TRIVIAL, Compared, Matching, Regrouped, content


class Place(NamedTuple):
    """An operation on one side: what it is and which of the user's lines it comes from."""

    name: str
    opcode: str
    type: str
    file: str = ""
    line: int = 0
    function: str = ""

    @property
    def source(self) -> str:
        """The file's own name and the line, "" where they are not known."""
        name = self.file.replace("\\", "/").rpartition("/")[2]
        return f"{name}:{self.line}" if name and self.line else name

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "opcode": self.opcode,
            "type": self.type,
            "file": self.file or None,
            "line": self.line or None,
            "function": self.function or None,
        }


class Change(NamedTuple):
    """One thing that differs, and all places where it does.

    `kind` is "added", "removed", "changed", "split", "merged", "regrouped" or "module". `what` says
    of what: "operation", "copy", "collective", "fusion", "dtype", "shape", "layout", "opcode",
    "constant", "operands" or the name of an attribute. `before` and `after` are its texts.
    """

    kind: str
    what: str
    before: str
    after: str
    a: tuple[Place, ...]
    b: tuple[Place, ...]

    @property
    def sentence(self) -> str:
        """The change in words, without the source lines."""
        names_a, names_b = listed(self.a), listed(self.b)
        match self.kind:
            case "split":
                plain = all(place.opcode != "fusion" for place in self.b)
                what = "is no longer fused but" if plain else "was split in"
                return f"{names_a} {what} {_number(len(self.b))}: {self.after}{_lost(self)}"
            case "merged":
                return f"{self.before} were merged into {names_b}{_lost(self)}"
            case "regrouped":
                return f"fusions were regrouped: {self.before} became {self.after}"
            case "added":
                return f"added {_many(self.what, len(self.b))}{names_b}: {self.after}"
            case "removed":
                return f"removed {_many(self.what, len(self.a))}{names_a}: {self.before}"
            case "module":
                return (
                    f"the module's {self.what}: {self.before or 'none'} -> {self.after or 'none'}"
                )
        names = names_a if names_a == names_b else f"{names_a} -> {names_b}"
        return f"{self.what} of {names}: {self.before or 'none'} -> {self.after or 'none'}"

    @property
    def sources(self) -> list[str]:
        """The user's lines that it comes from, each once."""
        places = [*self.a, *self.b] if self.kind != "changed" else (self.b or self.a)
        return list(dict.fromkeys(place.source for place in places if place.source))

    def as_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "what": self.what,
            "before": self.before or None,
            "after": self.after or None,
            "a": [place.as_dict() for place in self.a],
            "b": [place.as_dict() for place in self.b],
            "text": self.sentence,
        }


_NUMBERS = ("no parts", "one", "two", "three", "four", "five", "six")
_SHOWN = 6


def _number(count: int) -> str:
    return _NUMBERS[count] if count < len(_NUMBERS) else str(count)


def _many(what: str, count: int) -> str:
    return f"{what} " if count == 1 else f"{count} × {what}: "


def _lost(change: Change) -> str:
    """What a regrouping left out or took in: it follows the places, after a bar."""
    return f" ({change.what.partition('|')[2]})" if "|" in change.what else ""


def listed(places: Iterable[Place]) -> str:
    names = list(dict.fromkeys(place.name for place in places))
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def grouped(changes: Iterable[Change]) -> list[Change]:
    """Changes that say the same of several places as one."""
    found: dict[Any, Change] = {}
    for change in changes:
        key = (change.kind, change.what, change.before, change.after)
        if change.kind in ("split", "merged"):
            # Each tells of one fusion.
            key = (*key, len(found))
        known = found.get(key)
        if known is not None:
            change = known._replace(a=known.a + change.a, b=known.b + change.b)
        found[key] = change
    return list(found.values())


# ---- HLO ----------------------------------------------------------------------------------------


def hlo_changes(a: Hashes, b: Hashes) -> list[Change]:
    """What differs between two modules of HLO, the important first."""
    matching = Matching(a, b)
    changes: list[Change] = []
    for regrouped in matching.regrouped:
        changes.append(_regrouped(regrouped, matching))
    for found in matching.redistributed:
        changes.append(
            Change(
                *("regrouped", "fusion", _and(found.a), _and(found.b)),
                tuple(_place(i, "") for i in found.a),
                tuple(_place(i, "") for i in found.b),
            )
        )
    for compared in matching.compared:
        changes += _in_computation(compared, matching)
    changes += _module_changes(a.module, b.module, bool(changes))
    order = {
        "split": 0,
        "merged": 0,
        "regrouped": 0,
        "added": 1,
        "removed": 2,
        "changed": 3,
        "module": 5,
    }

    def rank(change: Change) -> tuple[int, bool]:
        opcodes = {place.opcode for place in (*change.a, *change.b)}
        return order[change.kind], bool(opcodes) and opcodes <= TRIVIAL - {"copy", "convert"}

    return sorted(grouped(changes), key=rank)


def _place(instruction: Instruction, path: str) -> Place:
    source = nearest_source(instruction)
    return Place(
        path + instruction.name,
        instruction.opcode,
        instruction.shape.short_text(),
        source.file if source else "",
        source.line if source else 0,
        source.function if source else "",
    )


def _regrouped(found: Regrouped, matching: Matching) -> Change:
    parts = _and(found.parts)
    whole = f"{found.whole.name} ({_summary(found.whole)})"
    tokens = matching.tokens(found.whole).copy()
    inside = sum((matching.tokens(part) for part in found.parts), type(tokens)())
    lost, gained = tokens - inside, inside - tokens
    extra: list[str] = []
    first, then = (lost, gained) if found.kind == "split" else (gained, lost)
    if first:
        extra.append("without " + _opcodes(first))
    if then:
        extra.append("also " + _opcodes(then))
    what = "fusion" + ("|" + ", ".join(extra) if extra else "")
    one = (_place(found.whole, ""),)
    many = tuple(_place(part, "") for part in found.parts)
    if found.kind == "split":
        return Change("split", what, whole, parts, one, many)
    return Change("merged", what, parts, whole, many, one)


def _and(instructions: list[Instruction]) -> str:
    """Operations with what they do, the first few by name."""
    named = [f"{i.name} ({_summary(i)})" for i in instructions[:_SHOWN]]
    more = len(instructions) - len(named)
    last = f"{more} more" if more else named.pop()
    return f"{', '.join(named)} and {last}" if named else last


def _opcodes(tokens: Any) -> str:
    return ", ".join(dict.fromkeys(opcode for opcode, _ in tokens))


def _summary(instruction: Instruction) -> str:
    """What a fusion does, in a few words; the opcode of another operation."""
    if instruction.fused is None:
        return instruction.opcode
    body = content(instruction)
    telling = [i for i in body if i.opcode not in TRIVIAL] or body
    opcodes = list(dict.fromkeys(i.opcode for i in telling))
    more = f" and {len(opcodes) - 5} more" if len(opcodes) > 5 else ""
    return ", ".join(opcodes[:5]) + more


def _what(instruction: Instruction) -> str:
    opcode = instruction.opcode
    if opcode in ("fusion", "parameter", "constant"):
        return opcode
    if opcode in ("copy", "copy-start", "copy-done"):
        return "copy"
    return "collective" if is_collective(opcode) else "operation"


def described(instruction: Instruction) -> str:
    """An operation in one line, for one who reads what was added or removed."""
    shape = instruction.shape.short_text()
    if instruction.opcode == "constant":
        literal = instruction.literal
        return f"{shape} constant({literal if len(literal) < 40 else literal[:37] + '...'})"
    if instruction.fused is not None:
        return f"{shape} fusion of {_summary(instruction)}"
    if instruction.opcode == "parameter":
        return f"{shape} parameter({instruction.number})"
    named = ", ".join(operand.name for operand in instruction.operands[:4])
    more = ", ..." if len(instruction.operands) > 4 else ""
    return f"{shape} {instruction.opcode}({named}{more})"


def _in_computation(compared: Compared, matching: Matching) -> Iterator[Change]:
    path = compared.path or ("" if compared.a.is_entry else f"{compared.a.name}/")
    path_b = compared.path or ("" if compared.b.is_entry else f"{compared.b.name}/")
    for i in compared.added:
        # The parts of a fusion's signature are not news beside what it computes.
        if not (compared.path and i.opcode == "parameter"):
            yield Change("added", _what(i), "", described(i), (), (_place(i, path_b),))
    for i in compared.removed:
        if not (compared.path and i.opcode == "parameter"):
            yield Change("removed", _what(i), described(i), "", (_place(i, path),), ())
    for a, b in compared.pairs:
        places = (_place(a, path),), (_place(b, path_b),)
        for what, before, after in differences(a, b, matching, bool(compared.path)):
            yield Change("changed", what, before, after, *places)


def differences(
    a: Instruction, b: Instruction, matching: Matching, fused: bool
) -> Iterator[tuple[str, str, str]]:
    """What two operations that stand for each other differ in: (what, before, after)."""
    if matching.a.own(a) != matching.b.own(b):
        if a.opcode != b.opcode:
            yield "opcode", _opcode(a), _opcode(b)
        yield from _shape_differences(a.shape, b.shape)
        if a.literal.split() != b.literal.split():
            yield "constant", _clipped(a.literal, b.literal), _clipped(b.literal, a.literal)
        if a.number != b.number and not fused:
            yield "parameter", str(a.number), str(b.number)
        attributes_a, attributes_b = clean_attributes(a), clean_attributes(b)
        if a.opcode == b.opcode:
            for key in sorted(attributes_a.keys() | attributes_b.keys()):
                before, after = attributes_a.get(key, ""), attributes_b.get(key, "")
                if before != after:
                    yield key, _clipped(before, after), _clipped(after, before)
        for key in sorted(a.called.keys() ^ b.called.keys()):
            if a.opcode == b.opcode:
                yield key, _names(a, key), _names(b, key)
        for key in a.called.keys() & b.called.keys():
            if len(a.called[key]) != len(b.called[key]):
                yield key, _names(a, key), _names(b, key)
    if a.opcode not in ("tuple", "fusion") or len(a.operands) == len(b.operands):
        yield from _operand_differences(a, b, matching)
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


def _operand_differences(
    a: Instruction, b: Instruction, matching: Matching
) -> Iterator[tuple[str, str, str]]:
    mine, theirs = list(a.operands), list(b.operands)
    if (is_commutative(a) and is_commutative(b)) or a.opcode == "fusion":
        # Only what has no partner on the other side at all.
        left = list(theirs)
        rest: list[Instruction] = []
        for x in mine:
            partner = next((y for y in left if matching.same(x, y)), None)
            if partner is None:
                rest.append(x)
            else:
                left.remove(partner)
        mine, theirs = rest, left
    if a.opcode == "tuple" and len(mine) != len(theirs):
        return
    changed = [
        (x, y)
        for x, y in zip(mine, theirs, strict=False)
        # What was added or removed is told where it stands.
        if not matching.same(x, y) and id(x) in matching.to and id(y) in matching.back
    ]
    if changed:
        yield (
            "operands",
            ", ".join(x.name for x, _ in changed[:4]),
            ", ".join(y.name for _, y in changed[:4]),
        )


def _shape_differences(a: Shape, b: Shape) -> Iterator[tuple[str, str, str]]:
    if a == b:
        return
    leaves_a, leaves_b = list(a.leaves()), list(b.leaves())
    if len(leaves_a) != len(leaves_b) or a.is_tuple != b.is_tuple:
        yield "shape", a.without_layout(), b.without_layout()
        return
    seen: set[tuple[str, str, str]] = set()
    for x, y in zip(leaves_a, leaves_b, strict=True):
        found: list[tuple[str, str, str]] = []
        if x.dtype != y.dtype:
            found.append(("dtype", x.dtype, y.dtype))
        if (x.dimensions, x.dynamic) != (y.dimensions, y.dynamic):
            found.append(("shape", f"[{x.sizes_text()}]", f"[{y.sizes_text()}]"))
        elif x.layout_text() != y.layout_text() and (
            x.dimensions or not (x.is_default_layout and y.is_default_layout)
        ):
            found.append(("layout", x.layout_text(), y.layout_text()))
        for one in found:
            if one not in seen:
                seen.add(one)
                yield one


def _clipped(text: str, other: str) -> str:
    """A long text from where it begins to differ from another."""
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
        # The entry's layouts are those of its parameters and result, which are told already.
        if key == "entry_computation_layout" and explained:
            continue
        before, after = first.get(key, ""), second.get(key, "")
        if before != after:
            yield Change("module", key, _clipped(before, after), _clipped(after, before), (), ())
