"""The parser of StableHLO text of any version, in pure Python.

Functions and the regions of operations become computations. Values that a region captures become
parameters after its own, and operands of its operation.
"""

import re
from collections.abc import Sequence

from hlotools.ir.attribute_text import closing, dictionary, opened_attribute, parts_of, split_type
from hlotools.ir.custom_kernels import written_kernels
from hlotools.ir.graph_building import DEEPEST, GraphBuilder, array, several
from hlotools.ir.hlo import Computation, HloModule, HloSyntaxError, Instruction, Shape
from hlotools.ir.mlir_lines import Line, argument_names, stablehlo_lines

_STRING = r'"(?:[^"\\]++|\\.)*+"'
_GROUP = re.compile(_STRING + r"|->|<\{|\}>|[\[\](){}<>]")
_VALUE = re.compile(r"%[\w$.\-]+(?:#\d+)?")
_VALUES_AND_STRINGS = re.compile(_STRING + r"|(%[\w$.\-]+(?:#\d+)?)")
_RESULTS = re.compile(r"((?:%[\w$.\-]++(?::\d++)?(?:,\s*+)?)++)\s*+=\s*+")
_RESULT = re.compile(r"(%[\w$.\-]+)(?::(\d{1,6}))?")
_OPCODE = re.compile(r"\"?([A-Za-z_][\w.$]*)\"?")
_SYMBOL = re.compile(r"@(\"[^\"]*\"|[\w$.\-]+)")
_TENSOR = re.compile(r"tensor<((?:(?:\d{1,18}|\?)x)*)(.*)>$", re.DOTALL)
_PAIR = re.compile(r"(%[\w$.\-]+) = (%[\w$.\-]+(?:#\d+)?)")
_ARGUMENTS_AT_END = re.compile(r"\((%[\w$.\-]+: .*)\)\s*\{$")
# hlofront marks the private functions that implement an operation of a primitive.
_PRIMITIVE = re.compile(r' attributes \{.*\bhlofront\.primitive = "([^"\\]+)"')
_APPLIES = re.compile(r"applies (\S+)")
_REGIONS = {"while": ("condition", "body"), "if": ("then", "else")}
_BARE = {"compare": ("direction", "compare_type"), "slice": ("slice",)}


class _Block:
    """A block under construction: its values by name, and those that it captures."""

    def __init__(self, computation: Computation, parent: "_Block | None"):
        self.computation = computation
        self.parent = parent
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.names: dict[str, Instruction] = {}
        self.parts: dict[tuple[int, int], Instruction] = {}
        self.own = 0
        # By id of a value of the parent block: that value, and the parameter for it.
        self.captured: dict[int, tuple[Instruction, Instruction]] = {}


class _Open:
    """An operation whose regions are being parsed."""

    def __init__(self, line: Line, head: str, parameters: list[tuple[str, Shape]]):
        self.line = line
        self.head = head
        # The regions' parameters, where the regions' text lacks them.
        self.parameters = parameters
        self.blocks: list[_Block] = []


def read_stablehlo(text: str) -> HloModule:
    """Return the program of a StableHLO module's text as an HloModule.

    Raises:
      HloSyntaxError: if the text cannot be parsed.
    """
    module = _Reader(text).read()
    module.kernel_texts = written_kernels(text)
    return module


class _Reader:
    def __init__(self, text: str):
        self.lines = stablehlo_lines(text, renamed=False)
        # The user's names of the main function's arguments, by the names of their values.
        self.main_arguments = argument_names(text)
        self.builder = GraphBuilder("module")
        # By name; in nested and further modules prefixed with the modules' names.
        self.functions: dict[str, Computation] = {}
        self.public: list[str] = []
        self.modules: list[str] = []
        self.module_count = 0
        self.calls: list[tuple[Instruction, str, str]] = []
        # The primitives that functions implement, by the functions' names.
        self.primitives: dict[str, str] = {}
        self.stack: list[_Open | None] = []
        self.block: _Block | None = None
        self.types: dict[str, Shape] = {}
        self.shapes: dict[tuple[str, int], Shape] = {}
        self.known: dict[tuple[str, str], tuple[dict[str, str], list[tuple[str, str]]]] = {}
        # The meshes by name; the names are arbitrary.
        self.meshes: dict[str, str] = {}
        self.at = 0

    def fail(self, message: str) -> HloSyntaxError:
        line = self.lines[min(self.at, len(self.lines) - 1)].written if self.lines else ""
        return HloSyntaxError(message, self.at + 1, 1, line)

    def read(self) -> HloModule:
        for at, line in enumerate(self.lines):
            self.at = at
            self.line(line)
        if self.block is not None or self.stack:
            raise self.fail("the text ends inside of a function")
        if not self.functions:
            raise self.fail("there is no function")
        called: set[int] = set()
        for instruction, key, symbol in self.calls:
            callee = self.functions.get(symbol)
            if callee is not None:
                instruction.called.setdefault(key, []).append(callee)
                instruction.opcode = self.primitives.get(symbol, instruction.opcode)
                called.add(id(callee))
            else:
                instruction.attributes[key] = "@" + symbol.rpartition("/")[2]
        main = "main" if "main" in self.functions else [*self.public, *self.functions][0]
        entry = self.functions[main]
        others = [
            function
            for name, function in self.functions.items()
            if function is not entry and (name in self.public or id(function) not in called)
        ]
        return self.builder.finished(entry, others)

    def line(self, line: Line) -> None:
        text = line.written
        if self.block is None:
            if text.startswith("func.func"):
                self.function(line)
            elif text.startswith(("module", "builtin.module")):
                self.module(text)
            elif text.startswith("sdy.mesh") and (symbol := _SYMBOL.search(text)):
                self.meshes[symbol[0]] = text.partition(" = ")[2].partition(" {")[0]
            elif text == "}" and self.modules:
                self.modules.pop()
            elif text != "}" and not text.startswith("#"):
                self.builder.module.attributes[text.partition(" = ")[0][:60]] = text
        elif text.startswith("}"):
            self.close(line)
        elif text.startswith("^"):
            self.arguments(text[text.find("(") + 1 : text.rfind(")")])
        elif text.startswith("cond {"):
            self.region()
        elif text.startswith("reducer("):
            self.region()
            self.arguments(text[len("reducer(") : text.rfind(")")].replace(") (", ", "))
        elif text.startswith(("return", "func.return", "stablehlo.return", "sdy.return")):
            values = [self.value(self.block, name) for name in _VALUE.findall(text)]
            self.builder.returned(self.block.computation, values)
        else:
            self.operation(line)

    # ---- functions and regions

    def module(self, text: str) -> None:
        self.module_count += 1
        name = (_SYMBOL.findall(text.partition(" attributes ")[0]) or [str(self.module_count)])[0]
        # The name of the whole text's module is arbitrary.
        self.modules.append(f"{name}/" if self.module_count > 1 else "")
        start = text.find("attributes {")
        if start >= 0:
            inner = text[start + len("attributes {") :].rstrip("{ ").rstrip("}")
            self.builder.module.attributes.update(dictionary(inner))

    def function(self, line: Line) -> None:
        text = line.written
        symbol = _SYMBOL.search(text)
        if symbol is None:
            raise self.fail("a function has no name")
        name = "".join(self.modules) + symbol[1]
        computation = self.builder.computation(name.strip('"'))
        self.functions[name] = computation
        if " private " not in text[: symbol.start() + 1]:
            self.public.append(name)
        open_ = text.find("(", symbol.end())
        end = closing(text, open_)
        if primitive := _PRIMITIVE.search(text, end):
            self.primitives[name] = primitive[1]
        if not text.endswith("{"):
            # A declaration: the function has no body.
            self.builder.returned(computation, [])
            return
        self.block = _Block(computation, None)
        self.stack.append(None)
        self.arguments(text[open_ + 1 : end])

    def arguments(self, text: str) -> None:
        """Add the parameters of a function or region: `%arg0: tensor<f32> {a = b}, ...`."""
        block = self.current()
        for part in parts_of(text):
            name, _, rest = part.strip().partition(": ")
            if not name.startswith("%"):
                continue
            at = rest.find(" {")
            attributes = dictionary(rest[at + 2 :].strip()[:-1]) if at >= 0 else {}
            self.parameter(block, name, self.type(rest[:at] if at >= 0 else rest), attributes)

    def parameter(
        self, block: _Block, name: str, shape: Shape, attributes: dict[str, str] | None = None
    ) -> None:
        is_of_main = block.computation.name == "main"
        made = self.builder.add(
            block.computation, name, "parameter", shape, (), attributes, "", block.own,
            stack=self.main_arguments.get(name, "") if is_of_main else "",
        )  # fmt: skip
        block.own += 1
        block.names[name] = made

    def current(self) -> _Block:
        if self.block is None:
            raise self.fail("this is in no function")
        return self.block

    def region(self) -> None:
        """Add a region to the innermost open operation, and enter its block."""
        opened = self.stack[-1] if self.stack else None
        block = self.current()
        if opened is None:
            raise self.fail("a region belongs to no operation")
        if block.depth >= DEEPEST:
            raise self.fail(f"regions are more than {DEEPEST} deep")
        results = _RESULTS.match(opened.head)
        opcode = _opcode(opened.head[results.end() :] if results else opened.head)
        first = _RESULT.match(opened.head)
        number = len(opened.blocks)
        label = _region_label(opcode, number)
        part = label if opcode in _REGIONS else f"{label}{number}"
        made = self.builder.computation(f"{first[1] if first else opcode}.{part}")
        self.block = _Block(made, block)
        opened.blocks.append(self.block)
        for name, shape in opened.parameters:
            self.parameter(self.block, name, shape)

    def close(self, line: Line) -> None:
        text, block = line.written, self.current()
        if not hasattr(block.computation, "root"):
            self.builder.returned(block.computation, [])
        opened = self.stack[-1]
        self.block = block.parent
        if opened is None:
            self.stack.pop()
        elif text.endswith("{"):  # `} do {` and `}, {`
            self.region()
        else:
            self.stack.pop()
            self.made(opened, text.lstrip("})"), line)

    # ---- operations

    def operation(self, line: Line) -> None:
        text = line.written
        after = self.lines[self.at + 1].written if self.at + 1 < len(self.lines) else ""
        continued = after.startswith(("cond {", "reducer("))
        if not (text.endswith("{") or continued):
            self.made(_Open(line, text, []), "", line)
            return
        parameters: list[tuple[str, Shape]] = []
        pairs = _PAIR.findall(text[text.find("(") :]) if "while(" in text else []
        if pairs:
            types = split_type(text)[1].partition(" attributes {")[0]
            shapes = [self.type(part) for part in parts_of(types)]
            parameters = [(name, shape) for (name, _), shape in zip(pairs, shapes, strict=False)]
        head = text
        arguments = None
        if not continued and text.rstrip("{ ").endswith(")"):
            arguments = _ARGUMENTS_AT_END.search(text)
        if arguments is not None:
            head = text[: arguments.start()]
        opened = _Open(line, head.rstrip("{").rstrip(), parameters)
        self.stack.append(opened)
        if not continued:
            self.region()
            if arguments is not None:
                self.arguments(arguments[1])

    def made(self, opened: _Open, trailing: str, end: Line) -> None:
        """Add an operation whose regions are parsed, with the text after them and its last line."""
        block = self.current()
        text = opened.head
        if self.meshes and "@" in text:
            text = _SYMBOL.sub(
                lambda symbol_match: self.meshes.get(symbol_match[0], symbol_match[0]), text
            )
        results = _RESULTS.match(text)
        names: list[tuple[str, int]] = []
        if results is not None:
            names = [(name, int(count or 1)) for name, count in _RESULT.findall(results[1])]
            text = text[results.end() :]
        opcode = _opcode(text)
        body, types = split_type(text)
        if opened.blocks and trailing:
            more, types_behind = split_type(trailing)
            types = types_behind or types
            body = body.rstrip("( ") + " " + more
        body = _OPCODE.sub("", body, count=1)
        literal = ""
        operands: list[Instruction] = []
        if opcode == "constant":
            literal, body = body.strip(), ""
            if literal.startswith("dense<") and literal.endswith(">"):
                literal = literal[len("dense<") : -1]
        elif "%" in body:
            # `%iterArg = %c`: the left name is the region's parameter.
            body = _PAIR.sub(r"\2", body) if opcode == "while" else body
            symbol_match = [f[1] for f in _VALUES_AND_STRINGS.finditer(body) if f[1]]
            operands = [self.value(block, name) for name in symbol_match]
            body = _VALUES_AND_STRINGS.sub(lambda f: "" if f[1] else f[0], body)
        attributes, symbols = self.attributes(opcode, body) if body.strip(" (),") else ({}, [])
        count = sum(n for _, n in names)
        shape = self.shapes.get((types, count))
        if shape is None:
            shape = self.shapes[types, count] = several(self.result_types(types, count))
        regions = [self.closed(inner, opened) for inner in opened.blocks]
        operands += self.outer(opened)
        made = self.builder.add(
            block.computation,
            names[0][0] if names else opcode,
            opcode,
            shape,
            operands,
            attributes,
            literal,
            source=(end.site.file, end.site.line),
            stack=end.stack,
            identity=[self.builder.digests[id(computation.root)] for computation in regions]
            + [symbol.encode() for _, symbol in symbols],
        )
        for number, region in enumerate(regions):
            made.called.setdefault(_region_label(opcode, number), []).append(region)
        for key, symbol in symbols:
            self.calls.append((made, key, "".join(self.modules) + symbol))
        if made.shape.is_tuple:
            parts = [self.part(block, made, n) for n in range(count)]
            block.names.update(zip((name for name, _ in names), parts, strict=False))
        if len(names) == 1:
            block.names[names[0][0]] = made

    def attributes(self, opcode: str, body: str) -> tuple[dict[str, str], list[tuple[str, str]]]:
        """Return the result of `_attributes`, cached by text."""
        known = self.known.get((opcode, body))
        if known is None:
            known = self.known[opcode, body] = _attributes(opcode, body)
        return dict(known[0]), known[1]

    def result_types(self, types: str, count: int) -> list[Shape]:
        """Return the types of an operation's results from the text after its colon."""
        types = types.partition(" attributes {")[0]
        if "->" in types:
            types = types.rpartition("->")[2].strip()
            if types.startswith("("):
                types = types[1:-1]
        shapes = [self.type(part) for part in parts_of(types) if part.strip()] if count else []
        if len(shapes) < count:
            raise self.fail(f"{count} results have {len(shapes)} types")
        return shapes[len(shapes) - count :]

    def closed(self, block: _Block, opened: _Open) -> Computation:
        """Return a region as a computation, with a parameter for each value that it captures."""
        outer = self.outer(opened)
        parameters = [i for i in block.computation.instructions if i.opcode == "parameter"]
        for position, value in enumerate(outer):
            known = block.captured.get(id(value))
            if known is None:
                parameter = self.builder.add(
                    block.computation, value.name, "parameter", value.shape
                )
            else:
                parameter = known[1]
            parameter.number = block.own + position
            parameters.append(parameter)
        if outer:
            block.computation.attributes["captured"] = str(len(outer))
        return block.computation

    def outer(self, opened: _Open) -> list[Instruction]:
        """Return the values that an operation's regions capture, sorted by digest.

        The order is independent of the text's.
        """
        captured = {key: value for b in opened.blocks for key, (value, _) in b.captured.items()}
        return sorted(captured.values(), key=lambda value: self.builder.digests[id(value)])

    # ---- values and types

    def value(self, block: _Block, reference: str) -> Instruction:
        """Return the value of a name such as %0 or %0#1, captured by the blocks in between."""
        name, _, number = reference.partition("#")
        owner: _Block | None = block
        inner: list[_Block] = []
        while owner is not None and name not in owner.names:
            inner.append(owner)
            owner = owner.parent
        if owner is None:
            raise self.fail(f"{name} is not defined")
        value = owner.names[name]
        if value.shape.is_tuple:
            value = self.part(owner, value, int(number or 0))
        for enclosing in reversed(inner):
            value = self.taken(enclosing, value)
        return value

    def taken(self, block: _Block, value: Instruction) -> Instruction:
        """Return a value of the parent block as a parameter of a block, which captures it."""
        known = block.captured.get(id(value))
        if known is not None:
            return known[1]
        if value.opcode == "constant":
            made = self.builder.add(
                block.computation, value.name, "constant", value.shape, (), {}, value.literal
            )
            if "metadata" in value.attributes:
                made.attributes["metadata"] = value.attributes["metadata"]
            key = (id(value), -1)
            return block.parts.setdefault(key, made)
        made = self.builder.add(
            block.computation,
            value.name,
            "parameter",
            value.shape,
            identity=[b"captured", self.builder.digests[id(value)]],
        )
        block.captured[id(value)] = value, made
        return made

    def part(self, block: _Block, value: Instruction, number: int) -> Instruction:
        """Return the `number`-th result of an operation by a get-tuple-element, one per block."""
        if not value.shape.is_tuple:
            return value
        if number >= len(value.shape.elements):
            raise self.fail(f"{value.name} has {len(value.shape.elements)} results, not {number}")
        key = (id(value), number)
        element = block.parts.get(key)
        if element is None:
            element = block.parts[key] = self.builder.add(
                value.computation,
                f"{value.name}#{number}",
                "get-tuple-element",
                value.shape.elements[number],
                [value],
                {"index": str(number)},
            )
            if "metadata" in value.attributes:
                element.attributes["metadata"] = value.attributes["metadata"]
        return element

    def type(self, text: str) -> Shape:
        text = text.strip()
        shape = self.types.get(text)
        if shape is None:
            tensor = _TENSOR.match(text)
            if tensor is None:
                shape = Shape(text, text.removeprefix("!"))
            else:
                sizes = [-1 if n == "?" else int(n) for n in tensor[1].split("x")[:-1]]
                shape = array(tensor[2], sizes)
            self.types[text] = shape
        return shape


# ---- pieces of text -----------------------------------------------------------------------------


def _region_label(opcode: str, number: int) -> str:
    """Return the attribute's name by which an operation calls a region, such as `body`."""
    labels = _REGIONS.get(opcode, ())
    return labels[number] if number < len(labels) else "branch" if opcode == "case" else "region"


def _opcode(text: str) -> str:
    opcode = _OPCODE.match(text)
    name = opcode[1] if opcode else ""
    return "call" if name == "func.call" else name.removeprefix("stablehlo.")


def _attributes(opcode: str, body: str) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Return the attributes and the called functions of an operation's text without values."""
    attributes: dict[str, str] = {}
    rest: list[str] = []
    at = depth = 0
    opened = -1
    # Braces outside an attribute's value enclose attributes.
    for token in _GROUP.finditer(body):
        if token[0] in ("<{", "{", "(", "[", "<"):
            is_value = body[max(0, token.start() - 4) : token.start()].rstrip().endswith("=")
            if depth == 0 and token[0].endswith("{") and not is_value:
                rest.append(body[at : token.start()])
                opened = token.end()
            depth += 1
        elif token[0] in ("}>", "}", ")", "]", ">"):
            depth -= 1
            if depth == 0 and opened >= 0:
                attributes.update(dictionary(body[opened : token.start()]))
                at, opened = token.end(), -1
    rest.append(body[at:])
    bare: list[str] = []
    for part in parts_of(" ".join(rest).replace("init:", "")):
        applied = _APPLIES.search(part)
        if applied is not None:
            attributes["applies"] = applied[1].removeprefix("stablehlo.")
            part = part.replace(applied[0], "")
        key, equals, value = part.partition(" = ")
        if equals:
            words = key.replace("(", " ").replace(")", " ").split()
            attributes.update(opened_attribute(words[-1] if words else "value", value.strip()))
            bare += [word for word in words[:-1] if word.startswith("@")]
        elif part.strip(" (),"):
            bare.append(part.strip(" (),"))
    symbols: list[tuple[str, str]] = []
    named: Sequence[str] = _BARE.get(opcode, ())
    words: list[str] = []
    for n, text in enumerate(bare):
        symbol = _SYMBOL.match(text)
        if symbol is not None and opcode == "custom_call":
            attributes["call_target_name"] = symbol[1]
        elif symbol is not None:
            symbols.append(("to_apply", symbol[1]))
        elif n < len(named):
            attributes[named[n]] = text
        else:
            words.append(text)
    if words:
        attributes["arguments"] = ", ".join(words)
    for key in [key for key, value in attributes.items() if "@" in value and '"' not in value]:
        symbols += [(key, symbol) for symbol in _SYMBOL.findall(attributes.pop(key))]
    return attributes, symbols
