"""StableHLO as a page is given it: functions and regions as computations, read from the text."""

import re
from typing import NamedTuple

from hlofront.inspect.hlo_graph import Source
from hlofront.inspect.page_model import Files, ProgramData
from hlofront.inspect.stablehlo_text import Line, stablehlo_lines

_FUNCTION = re.compile(r"func\.func (?:(public|private|nested) )?@([\w$.\-]+|\"[^\"]*\")\(")
_ARGUMENT = re.compile(r"(%[\w$.\-]+): ((?:[^<>,(){}]|<[^<>]*(?:<[^<>]*>[^<>]*)*>)+)")
_OPERATION = re.compile(
    r"(?:(%[\w$.\-]+)(?::\d+)?((?:, %[\w$.\-]+(?::\d+)?)*) = )?\"?([a-z]\w*(?:\.\w+)+|[a-z]\w*)\"?"
)
_VALUE = re.compile(r"%[\w$.\-]+")
_USED = re.compile(r"\(?%[\w$.\-]+(?:#\d+)?(?:, )?(?:\),? ?)?")
_CALLEE = re.compile(r"^\s*@([\w$.\-]+)\(")
_ITERATED = re.compile(r"(%[\w$.\-]+) = (%[\w$.\-]+)")


class _Block:
    """A function's or region's operations, the values that can be seen in it, and who holds it."""

    def __init__(self, name: str, seen: dict[str, "_Operation"], entry: bool = False):
        self.name = name
        self.seen = seen
        self.entry = entry
        self.operations: list[_Operation] = []


class _Operation:
    def __init__(self, name: str, opcode: str, type_: str, operands: list["_Operation | str"]):
        self.name = name
        self.opcode = opcode
        self.type = type_
        self.operands = operands
        self.extra = self.inside = self.written = self.callee = ""
        self.place: Source | None = None
        self.regions: list[_Region] = []
        self.iterated: list[str] = []


class _Region(NamedTuple):
    label: str
    block: _Block


def stablehlo_data(text: str, files: Files) -> ProgramData:
    """The operations of a module, each region a computation that its operation calls."""
    blocks: list[_Block] = []
    # What is open: a module (None), or a block with the operation that it belongs to.
    open_: list[_Block | None] = []
    for line in stablehlo_lines(text, renamed=False):
        _read(line, blocks, open_)
    data = ProgramData("stablehlo", files)
    numbers: dict[int, int] = {}
    for block in blocks:
        for operation in block.operations:
            numbers[id(operation)] = len(numbers)
    places = {id(block): n for n, block in enumerate(blocks)}
    functions = {block.name: n for n, block in enumerate(blocks)}
    for block in blocks:
        data.computation(block.name, block.entry)
        for operation in block.operations:
            number = data.operation(
                operation.name,
                operation.opcode,
                operation.type,
                stack=[operation.place] if operation.place else [],
                inside=operation.inside,
                extra=operation.extra,
                hidden=operation.written,
            )
            data.operands[number] = [
                numbers[id(each)] for each in operation.operands if not isinstance(each, str)
            ]
            called = [(region.label, places[id(region.block)]) for region in operation.regions]
            if operation.callee in functions:
                called.append(("callee", functions[operation.callee]))
            if called:
                data.called[number] = called
            if operation.opcode == "return":
                data.roots.append(number)
    return data


def _read(line: Line, blocks: list[_Block], open_: list[_Block | None]) -> None:
    text = line.written
    block = next((each for each in reversed(open_) if each is not None), None)
    if text.startswith("module"):
        open_.append(None)
        return
    function = _FUNCTION.match(text)
    if function:
        made = _Block(function[2], {}, function[1] != "private")
        blocks.append(made)
        open_.append(made)
        _arguments(made, text[function.end() : _signature_end(text, function.end())])
        return
    if text.startswith("}"):
        closed = open_.pop() if open_ else None
        holder = next((each for each in reversed(open_) if each is not None), None)
        rest = text[1:].strip()
        if closed is None or holder is None or not holder.operations:
            return
        owner = holder.operations[-1]
        if rest.endswith("{"):
            # `} do {` of a loop, `}, {` of a branch: another region of the same operation.
            _open_region(rest, owner, holder, blocks, open_)
        elif "->" in rest or " : " in f" {rest}":
            owner.type = _type_of(rest)
        return
    if text.startswith("^") and block is not None:
        _arguments(block, text)
        return
    if block is None:
        return
    if text.rstrip("{ ") in ("cond", "do") and block.operations:
        _open_region(text, block.operations[-1], block, blocks, open_)
        return
    if text.startswith("reducer(") and block.operations:
        # The function of a reduction with several results.
        made = _open_region(text, block.operations[-1], block, blocks, open_)
        _arguments(made, text)
        return
    found = _OPERATION.match(text)
    if found is None:
        return
    operation = _operation(found, line, block)
    if text.endswith("{"):
        _open_region(text, operation, block, blocks, open_)


def _signature_end(text: str, start: int) -> int:
    depth = 1
    for place in range(start, len(text)):
        depth += (text[place] == "(") - (text[place] == ")")
        if depth == 0:
            return place
    return len(text)


def _arguments(block: _Block, text: str) -> None:
    for name, type_ in _ARGUMENT.findall(text):
        argument = _Operation(name, "argument", type_.strip(), [])
        block.seen[name] = argument
        block.operations.append(argument)


def _open_region(
    text: str, owner: _Operation, block: _Block, blocks: list[_Block], open_: list[_Block | None]
) -> _Block:
    words = text.strip("{}(, ").split()
    label = words[0].partition("(")[0] if words else ""
    if label not in ("cond", "do", "reducer"):
        label = f"region {len(owner.regions)}"
    made = _Block(f"{owner.name or owner.opcode} {label}", dict(block.seen))
    types = owner.type.split(", ")
    for place, name in enumerate(owner.iterated):
        type_ = types[place] if len(types) == len(owner.iterated) else ""
        made.seen[name] = _Operation(name, "argument", type_, [])
        made.operations.append(made.seen[name])
    owner.regions.append(_Region(label, made))
    blocks.append(made)
    open_.append(made)
    return made


def _operation(found: re.Match[str], line: Line, block: _Block) -> _Operation:
    rest = line.written[found.end() :]
    opcode = found[3].removeprefix("stablehlo.").removeprefix("func.")
    name = found[1] or ""
    body, type_ = rest, ""
    if not rest.endswith("{"):
        place = rest.rfind(" : ")
        if place >= 0:
            body, type_ = rest[:place], _type_of(rest[place:])
            if found[1] and not found[2] and "->" not in rest[place:]:
                # Where operands' types are listed, the result is of the last one.
                type_ = type_.rpartition(", ")[2]
    operation = _Operation(name, opcode, type_, [])
    iterated = _ITERATED.findall(body) if opcode == "while" else []
    if iterated:
        operation.iterated = [inner for inner, _ in iterated]
        used = [outer for _, outer in iterated]
        type_ = rest[rest.rfind(" : ") + 3 :] if " : " in rest else ""
        operation.type = type_.rstrip("{ ")
        body = ""
    else:
        used = _VALUE.findall(body)
    operation.operands = [block.seen.get(value, value) for value in used]
    if opcode == "constant":
        operation.inside = body.strip()
    else:
        callee = _CALLEE.match(body)
        if callee and opcode == "call":
            operation.callee = callee[1]
        elif body:
            operation.extra = _USED.sub("", body).strip("({, ").removeprefix(")").strip(", ")
    operation.written = line.written
    if line.place.file:
        operation.place = Source(line.place.file, line.place.line)
    block.operations.append(operation)
    for value in (found[1], *_VALUE.findall(found[2] or "")):
        if value:
            block.seen[value] = operation
    return operation


def _type_of(text: str) -> str:
    """The type of the results, from what stands behind an operation."""
    arrow = text.rfind("-> ")
    type_ = text[arrow + 3 :] if arrow >= 0 else text.rpartition(" : ")[2]
    return type_.strip(" :(){")
