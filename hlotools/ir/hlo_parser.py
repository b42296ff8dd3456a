"""The parser of HLO text, in pure Python, as XLA's own parser may abort the process.

The text is read in one pass and without recursion, so that time and memory are linear in its
length for all inputs.
"""

import re
from collections.abc import Iterator
from typing import NoReturn

from hlotools.collection import paused_collection
from hlotools.ir.binary_modules import module_text
from hlotools.ir.custom_kernels import written_kernels
from hlotools.ir.hlo import (
    CALLING,
    Computation,
    HloModule,
    HloSyntaxError,
    Instruction,
    Shape,
    callees_of,
    tuple_text,
)
from hlotools.ir.quoted_text import unquoted
from hlotools.ir.source_frames import FileLocation, StackFrame

_CALLING = frozenset(CALLING)
# The maximum depth of brackets: deeper text is not a program.
DEEPEST = 100
DEEPEST_TUPLE = 20
# The maximum length of a list: a longer one is not a program's.
LONGEST = 1_000_000
LONGEST_SIZES = 10_000

_SPACE = re.compile(r"(?:\s++|/\*[^*]*+\*/)*+")
# Comments by people; XLA's own, which number operands and the rows of literals, are kept.
_HAS_COMMENTS = re.compile(r"//|/\*(?!(?:index|i\d+)=)")
_STRING_OR_COMMENT = re.compile(
    r'"(?:[^"\\]++|\\.)*+(?:"|\Z)|/\*(?:index|i\d+)=\d+\*/|(/\*.*?(?:\*/|\Z)|//[^\n\r]*+)',
    re.DOTALL,
)
_NO_SPACE = re.compile(r"[^\s]")
_NAME = re.compile(r"%?([\w.\-]+)")
_MODULE = re.compile(r"HloModule\s+([^\s,]+)")
_WITHOUT_HEAD = re.compile(r"ENTRY\s|%?[\w.\-]+\s*[({]")
_COMPUTATION = re.compile(r"(ENTRY\s+)?%?([\w.\-]+)(?=[\s({,])")
_INSTRUCTION = re.compile(r"(ROOT\s+)?%?([\w.\-]+)\s*=\s*")
# A layout may follow after spaces, where a computation's body may follow, too.
_ARRAY = re.compile(
    r"([a-z][a-z0-9]*)\s*\[([^\[\]]*)\](?:(?:\{|\s+\{(?=\s*\d[\d,\s]*[:}]))([^{}\n]*)\})?"
)
_NESTED_LAYOUT = re.compile(r"[a-z][a-z0-9]*\s*\[[^\[\]]*\](?=\{)")
_OPCODE = re.compile(r"\s*([a-z][\w\-]*)\s*\(")
_PLAIN_OPERANDS = re.compile(r"[^()\[\]{}\"]*+\)")
_ATTRIBUTE = re.compile(r"\s*,\s*([\w.\-]+)=")


def _braces(depth: int) -> str:
    """Return a pattern of text in braces, with `depth` levels of brackets inside."""
    inside = r'[^(){}\[\]"/]++|/(?!\*)|"(?:[^"\\]++|\\.)*+"'
    for _ in range(depth):
        inside += rf"|\((?:{inside})*+\)|\[(?:{inside})*+\]|\{{(?:{inside})*+\}}"
    return rf"\{{(?:{inside})*+\}}"


# The values of most attributes; `value` reads all others.
_PLAIN_VALUE = re.compile(
    rf'[^\s,(){{}}\[\]"]++(?=[,\n}}]|\s*(?:\n|$))|{_braces(3)}(?=[,\n])', re.DOTALL
)
# A string, a comment or a bracket; a quote that is never closed matches alone.
_BRACKET = re.compile(r'"(?:[^"\\]++|\\.)*+"|/\*.*?\*/|[()\[\]{}"]', re.DOTALL)
# A string, a comment, a bracket or a comma.
_PART = re.compile(r'"(?:[^"\\]++|\\.)*+"|/\*.*?\*/|[()\[\]{}",]', re.DOTALL)
_VALUE_END = re.compile(r'"(?:[^"\\]++|\\.)*+"|[()\[\]{}",\s]', re.DOTALL)
_MESH_AXES = re.compile(r"(?:, device_ids=\((?:[^()]|\([^()]*\))*\))?[ \t]+(?=\{)")
_CLOSES = {")": "(", "]": "[", "}": "{"}
_TABLE = re.compile(r"(FileNames|FunctionNames|FileLocations|StackFrames)[ \t]*\n")
_TABLE_ENTRY = re.compile(r'(\d{1,9})\s+("(?:[^"\\\n]++|\\.)*+"|\{[^{}\n]*\})[ \t]*(?:\n|$)')
_ENTRY_FIELD = re.compile(r"(\w+)=(-?\d{1,9})\b")
_LOCATION = ("file_name_id", "function_name_id", "line", "end_line", "column", "end_column")
_LAYOUT = re.compile(r"([\d,\s]*)(?::(.*))?$", re.DOTALL)
_TILE = re.compile(r"\([\d,*\s\-]*\)")
_MEMORY_SPACE = re.compile(r"S\((\d{1,9})\)")


@paused_collection()
def parse(text: object) -> HloModule:
    """Return the HloModule that HLO text describes.

    Args:
      text: a result of `compile`; HLO text from `Lowered.as_text("hlo")` or XLA's dumps, of any
        platform, with or without percent signs, operand shapes, metadata, layouts or schedules; or
        HLO as people write it, with comments, free lines, and without the line `HloModule NAME`:
        the module is then named after its entry, as XLA names it; or the bytes of a protocol
        buffer with a module, such as those of XLA's files `.hlo.pb`.

    Raises:
      ValueError: if there is no module in the bytes, or it cannot be read.
      HloSyntaxError: if the text is not HLO, with the line, the column and the expected syntax.
      TypeError: if it is neither text nor bytes, nor an object with text.
    """
    as_text = getattr(text, "as_text", None)
    written = as_text() if callable(as_text) else text
    written = module_text(written, "the text") if isinstance(written, bytes) else written
    if not isinstance(written, str):
        kind = type(text).__name__
        raise TypeError(f"expected HLO text, or a compiled function; got {kind}: pass the text")
    module = _Reader(written).module()
    module.kernel_texts = written_kernels(written)
    return module


class _Reader:
    """A reader of one text, with its current position."""

    def __init__(self, text: str):
        # The text that messages quote. In the parsed text, comments are replaced by spaces, so that
        # positions stay the same.
        self.written = text
        self.text = text
        self.at = 0
        self.shapes: dict[str, Shape] = {}
        # Instructions with their positions, whose callees are resolved at the end.
        self.calls: list[tuple[Instruction, int]] = []
        # Instructions with their positions, whose predecessors are resolved per computation.
        self.ordered: list[tuple[Instruction, int]] = []

    # ---- errors and tokens ----------------------------------------------------------------------

    def fail(self, message: str, at: int | None = None) -> NoReturn:
        at = self.at if at is None else at
        text = self.written
        first = text.rfind("\n", 0, at) + 1
        end = text.find("\n", first)
        line = text[first : len(text) if end < 0 else end]
        raise HloSyntaxError(message, text.count("\n", 0, at) + 1, at - first + 1, line)

    def blank(self, token: re.Match[str]) -> str:
        """Return a comment as spaces and line ends; strings and XLA's own comments unchanged."""
        comment = token[1]
        if comment is None:
            return token[0]
        if comment.startswith("/*") and (len(comment) < 4 or not comment.endswith("*/")):
            self.fail("a comment that is never closed", token.start())
        return _NO_SPACE.sub(" ", comment)

    def text_here(self, at: int | None = None) -> str:
        """Return the text at a position, shortened for messages."""
        at = self.at if at is None else at
        seen = re.compile(r"[\w.%\-]+|\S|$").match(self.text, at)
        return repr(seen[0][:40]) if seen and seen[0] else "the end of the line"

    def skip(self) -> None:
        space = _SPACE.match(self.text, self.at)
        if space:
            self.at = space.end()

    def closing(self, at: int) -> int:
        """Return the position after the bracket that closes the one at `at`."""
        waiting: list[tuple[str, int]] = []
        for bracket in _BRACKET.finditer(self.text, at):
            token = bracket[0]
            if token in _CLOSES:
                opened, where = waiting.pop()
                if opened != _CLOSES[token]:
                    if self.text.find("\n", where, bracket.start()) >= 0:
                        # The error is at the unclosed bracket, which may be lines earlier.
                        self.fail(f"{opened!r} is never closed", where)
                    self.fail(f"{token!r} closes nothing: {opened!r} is open", bracket.start())
                if not waiting:
                    return bracket.end()
            elif token in "([{":
                waiting.append((token, bracket.start()))
                if len(waiting) > DEEPEST:
                    self.fail(f"nested deeper than {DEEPEST} brackets", bracket.start())
            elif token == '"':
                self.fail("a string that is never closed", bracket.start())
        opened, where = waiting[-1] if waiting else (self.text[at], at)
        self.fail(f"{opened!r} is never closed", where)

    def parts(self, first: int, end: int) -> Iterator[tuple[str, int]]:
        """Yield the items of a comma-separated list with their positions, without comments."""
        text = self.text
        depth, start, count = 0, first, 0
        piece = ""
        for token in _PART.finditer(text, first, end):
            sign = token[0]
            if sign in "([{":
                depth += 1
            elif sign in ")]}":
                depth -= 1
            elif sign.startswith("/*"):
                piece += text[start : token.start()]
                start = token.end()
            elif sign == "," and depth == 0:
                yield (piece + text[start : token.start()]).strip(), start
                piece, start = "", token.end()
                count += 1
                if count > LONGEST:
                    self.fail(f"a list of more than {LONGEST:,} values", first)
        last = (piece + text[start:end]).strip()
        if last or count:
            yield last, start

    # ---- the module -----------------------------------------------------------------------------

    def module(self) -> HloModule:
        if _HAS_COMMENTS.search(self.text):
            self.text = _STRING_OR_COMMENT.sub(self.blank, self.text)
        self.at = self.text.startswith("\ufeff")
        self.skip()
        head = _MODULE.match(self.text, self.at)
        module = HloModule(head[1] if head else "")
        if head is not None:
            self.at = head.end()
            module.attributes = self.attributes()
            self.skip()
            self.tables(module)
        elif not _WITHOUT_HEAD.match(self.text, self.at):
            self.fail(f"expected 'HloModule NAME' or a computation, got {self.text_here()}")
        entries: list[Computation] = []
        names: dict[str, Computation] = {}
        first = None
        while True:
            self.skip()
            if self.at >= len(self.text):
                break
            first = self.at if first is None else first
            start = self.at
            computation = self.computation(module)
            if computation.name in names:
                self.fail(f"there are two computations {computation.name!r}", start)
            names[computation.name] = computation
            computation.module = module
            module.computations.append(computation)
            if computation.is_entry:
                if entries:
                    self.fail("there are two ENTRY computations", start)
                entries.append(computation)
        if not module.computations:
            self.fail("the module has no computations")
        # The text of a single computation may lack the word ENTRY.
        module.entry = entries[0] if entries else module.computations[-1]
        module.entry.is_entry = True
        module.name = module.name or f"module_{module.entry.name}"
        module.percent = self.text.startswith("%", first) or (
            self.text.startswith("ENTRY %", first)
        )
        self.link(names)
        try:
            ordered = module.callees_first()
        except ValueError as error:
            self.fail(str(error), first)
        depths: dict[int, int] = {}
        for computation in ordered:
            called = (depths[id(callee)] for callee in callees_of(computation))
            depths[id(computation)] = depth = 1 + max(called, default=0)
            if depth > DEEPEST:
                self.fail(f"computations call one another deeper than {DEEPEST}", first)
        return module

    def tables(self, module: HloModule) -> None:
        frames = module.frames
        while True:
            self.skip()
            heading = _TABLE.match(self.text, self.at)
            if heading is None:
                return
            self.at = heading.end()
            while entry := _TABLE_ENTRY.match(self.text, self.at):
                number, value = int(entry[1]), entry[2]
                if value[0] == '"':
                    names = frames.files if heading[1] == "FileNames" else frames.functions
                    names[number] = unquoted(value)
                else:
                    fields = {k: int(v) for k, v in _ENTRY_FIELD.findall(value)}
                    get = fields.get
                    if heading[1] == "StackFrames":
                        frames.stack[number] = StackFrame(
                            get("file_location_id", 0), get("parent_frame_id", 0)
                        )
                    else:
                        values = (get(name, 0) for name in _LOCATION)
                        frames.locations[number] = FileLocation(*values)
                self.at = entry.end()
            if self.text[self.at : self.at + 1].isdigit():
                self.fail(f'expected an entry of {heading[1]}, such as 1 "..." or 1 {{...}}')

    def attributes(self) -> dict[str, str]:
        """Return the attributes `, name=value` at the current position, with text as values."""
        text = self.text
        values: dict[str, str] = {}
        while True:
            name = _ATTRIBUTE.match(text, self.at)
            if name is None:
                return values
            self.at = name.end()
            plain = _PLAIN_VALUE.match(text, self.at)
            if plain:
                self.at = plain.end()
                values[name[1]] = plain[0]
            else:
                values[name[1]] = self.value()

    def value(self) -> str:
        """Return an attribute's value as text, up to the comma, bracket or space after it."""
        self.skip()
        start = self.at
        text = self.text
        while True:
            token = _VALUE_END.search(text, self.at)
            if token is None:
                self.at = len(text)
                break
            if token[0] in "([{":
                self.at = self.closing(token.start())
            elif token[0] == '"':
                self.fail("a string that is never closed", token.start())
            elif token[0][0] == '"':
                self.at = token.end()
            else:
                self.at = token.start()
                # A list of groups may be a mesh, the order of its devices, and its axes.
                axes = _MESH_AXES.match(text, self.at) if text.startswith("mesh[", start) else None
                if axes is None:
                    break
                self.at = axes.end()
        value = text[start : self.at]
        if not value:
            self.fail(f"expected an attribute's value, got {self.text_here()}", start)
        return value

    # ---- computations ---------------------------------------------------------------------------

    def computation(self, module: HloModule) -> Computation:
        text = self.text
        start = self.at
        head = _COMPUTATION.match(text, start)
        if head is None:
            self.fail(
                f"expected a computation, NAME (parameters) -> shape {{, got {self.text_here()}"
            )
        computation = Computation(head[2], head[1] is not None)
        self.at = head.end()
        self.skip()
        if text.startswith("(", self.at):
            self.at = self.closing(self.at)
            self.skip()
            if not text.startswith("->", self.at):
                self.fail(f"expected '->' and the shape of the result, got {self.text_here()}")
            self.at += 2
            self.skip()
            self.shape()
        computation.attributes = self.attributes()
        self.skip()
        if not text.startswith("{", self.at):
            self.fail(f"expected '{{' before the instructions, got {self.text_here()}")
        opened = self.at
        self.at += 1
        names: dict[str, Instruction] = {}
        # The positions of operands, which are resolved when all instructions are known.
        waiting: list[tuple[Instruction, int, int]] = []
        root = None
        while True:
            self.skip()
            if text.startswith("}", self.at):
                self.at += 1
                break
            if self.at >= len(text):
                self.fail("'{' is never closed", opened)
            begun = self.at
            instruction, first, end = self.instruction()
            if instruction.name in names:
                self.fail(f"there are two instructions {instruction.name!r}", begun)
            names[instruction.name] = instruction
            instruction.computation = computation
            computation.instructions.append(instruction)
            if end > first:
                waiting.append((instruction, first, end))
            if instruction.is_root:
                if root is not None:
                    self.fail("there are two ROOT instructions", begun)
                root = instruction
            if not _CALLING.isdisjoint(instruction.attributes):
                self.calls.append((instruction, begun))
            if "control-predecessors" in instruction.attributes:
                self.ordered.append((instruction, begun))
        if not computation.instructions:
            self.fail(f"the computation {computation.name} has no instructions", opened)
        computation.attributes.update(self.attributes())
        computation.root = root or computation.instructions[-1]
        computation.root.is_root = True
        self.link_operands(computation, names, waiting, module)
        try:
            computation.in_order()
        except ValueError as error:
            self.fail(str(error), start)
        return computation

    def link_operands(
        self,
        computation: Computation,
        names: dict[str, Instruction],
        waiting: list[tuple[Instruction, int, int]],
        module: HloModule,
    ) -> None:
        for instruction, at in self.ordered:
            for name in _NAME.findall(instruction.attributes["control-predecessors"]):
                before = names.get(name)
                if before is None:
                    self.fail(
                        f"{instruction.name} runs after {name!r}, which is not in "
                        f"{computation.name}",
                        at,
                    )
                instruction.predecessors.append(before)
        self.ordered.clear()
        text = self.text
        for instruction, first, end in waiting:
            operands = instruction.operands
            plain = text[first:end].replace("%", "").split(", ")
            if all(name in names for name in plain):
                operands += [names[name] for name in plain]
                continue
            for part, at in self.parts(first, end):
                name = (part.rsplit(None, 1) or [""])[-1].removeprefix("%")
                operand = names.get(name)
                if operand is None:
                    if not _NAME.fullmatch(name):
                        self.fail(f"expected an operand's name, got {part[:40]!r}", at)
                    self.fail(f"{name[:80]!r} is not an instruction of {computation.name}", at)
                if len(part) > len(name) + 1:
                    module.operand_shapes = True
                operands.append(operand)
        for instruction in computation.instructions:
            for operand in dict.fromkeys(instruction.operands):
                operand.users.append(instruction)

    def link(self, names: dict[str, Computation]) -> None:
        """Set the called computations of the instructions by their names."""
        for instruction, at in self.calls:
            for key in CALLING:
                value = instruction.attributes.get(key)
                if value is None:
                    continue
                callees: list[Computation] = []
                for name in _NAME.findall(value):
                    callee = names.get(name)
                    if callee is None:
                        self.fail(f"{key}={value[:80]}: there is no computation {name!r}", at)
                    callees.append(callee)
                instruction.called[key] = callees

    # ---- instructions ---------------------------------------------------------------------------

    def instruction(self) -> tuple[Instruction, int, int]:
        """Return the instruction at the current position, and the bounds of its operands' text."""
        text = self.text
        head = _INSTRUCTION.match(text, self.at)
        if head is None:
            self.fail(
                f"expected an instruction, NAME = shape opcode(operands), got {self.text_here()}"
            )
        self.at = head.end()
        shape = self.shape()
        opcode = _OPCODE.match(text, self.at)
        if opcode is None:
            self.skip()
            self.fail(f"expected an opcode and '(', got {self.text_here()}")
        self.at = first = opcode.end()
        name = opcode[1]
        instruction = Instruction(head[2], shape, name, None, "", -1, head[1] is not None)
        plain = _PLAIN_OPERANDS.match(text, first)
        end = plain.end() if plain else self.closing(first - 1)
        self.at = end
        operands = first, end - 1
        if name == "constant":
            instruction.literal = text[first : end - 1].strip()
            operands = 0, 0
        elif name == "parameter":
            number = text[first : end - 1].strip()
            if not (number.isdecimal() and len(number) < 10):
                self.fail(f"expected the parameter's number, got {number[:40]!r}", first)
            instruction.number = int(number)
            operands = 0, 0
        instruction.attributes = self.attributes()
        after = _LINE_END.match(text, self.at)
        if after is not None:
            self.at = after.end()
        else:
            self.skip()
            if not (text.startswith("}", self.at) or _INSTRUCTION.match(text, self.at)):
                self.fail(
                    f"expected ', NAME=VALUE' or the end of the instruction, got {self.text_here()}"
                )
        return instruction, *operands

    # ---- shapes ---------------------------------------------------------------------------------

    def shape(self, depth: int = 0) -> Shape:
        """Return the shape at the current position; equal texts return one object."""
        text = self.text
        start = self.at
        array = _ARRAY.match(text, start)
        if array and (array[3] is not None or not text.startswith("{", array.end())):
            self.at = array.end()
            return self.array(array, array[3], start)
        if text.startswith(("(", "b("), start):
            return self.tuple_shape(start, depth)
        nested = _NESTED_LAYOUT.match(text, start)
        if nested:
            array = _ARRAY.match(text, start)
            self.at = self.closing(nested.end())
            if array:
                return self.array(array, text[nested.end() + 1 : self.at - 1], start)
        self.fail(f"expected a shape, such as f32[2,3]{{1,0}}, got {self.text_here(start)}", start)

    def tuple_shape(self, start: int, depth: int) -> Shape:
        text = self.text
        if depth >= DEEPEST_TUPLE:
            self.fail(f"nested deeper than {DEEPEST_TUPLE} tuples", start)
        buffer = text.startswith("b", start)
        opened = start + buffer
        self.at = opened + 1
        elements: list[Shape] = []
        while True:
            self.skip()
            sign = text[self.at : self.at + 1]
            if sign == ")":
                self.at += 1
                break
            if elements:
                if sign != ",":
                    if self.at >= len(text):
                        self.fail("'(' is never closed", opened)
                    self.fail(f"expected ',' or ')' in a tuple's shape, got {self.text_here()}")
                self.at += 1
                self.skip()
            elements.append(self.shape(depth + 1))
            if len(elements) > LONGEST:
                self.fail(f"a list of more than {LONGEST:,} values", opened)
        if buffer and len(elements) != 1:
            self.fail("a buffer is of one array", start)
        whole = tuple_text([e.text for e in elements])
        whole = "b" + whole if buffer else whole
        known = self.shapes.get(whole)
        if known is None:
            known = Shape(whole, "buffer" if buffer else "tuple", elements=tuple(elements))
            self.shapes[whole] = known
        return known

    def array(self, array: re.Match[str], layout: str | None, start: int) -> Shape:
        text = self.text[start : self.at]
        known = self.shapes.get(text)
        if known is not None:
            return known
        written, text = text, "".join(text.split())
        sizes: list[int] = []
        dynamic: list[bool] = []
        if array.end(2) - array.start(2) > LONGEST_SIZES:
            self.fail("more dimensions than there can be", array.start(2))
        for part in array[2].split(",") if array[2].strip() else ():
            size = part.strip()
            bounded = size.startswith("<=")
            digits = size[2:] if bounded else size
            if not (size == "?" or (digits.isdecimal() and len(digits) < 20)):
                self.fail(f"expected a dimension's size, got {size!r}", array.start(2))
            sizes.append(-1 if size == "?" else int(digits))
            dynamic.append(bounded or size == "?")
        shape = Shape(text, array[1], tuple(sizes), tuple(dynamic))
        if layout is not None:
            self.layout(shape, layout, start)
        self.shapes[written] = shape
        return shape

    def layout(self, shape: Shape, layout: str, start: int) -> None:
        parts = _LAYOUT.match(layout)
        if parts is None:
            self.fail(f"expected a layout such as {{1,0}}, got {layout[:40]!r}", start)
        order = tuple(int(n) for n in parts[1].split(",") if n.strip() and len(n.strip()) < 10)
        if sorted(order) != list(range(len(shape.dimensions))) and order:
            self.fail(
                f"{{{parts[1]}}} is not an order of {len(shape.dimensions)} dimensions", start
            )
        shape.layout = order
        rest = parts[2] or ""
        # T(8,128)(2,1): tiles; S(1): the memory space; the rest is extra: E(32), L(4), D(D,C).
        tiles = re.search(r"T((?:\([\d,*\s\-]*\))+)", rest)
        if tiles:
            shape.tiles = tuple(part[1:-1] for part in _TILE.findall(tiles[1]))
            rest = rest[: tiles.start()] + rest[tiles.end() :]
        space = _MEMORY_SPACE.search(rest)
        if space:
            shape.memory_space = int(space[1])
            rest = rest[: space.start()] + rest[space.end() :]
        shape.extra = rest


_LINE_END = re.compile(r"[ \t]*(?:\r?\n|(?=\})|$)")
