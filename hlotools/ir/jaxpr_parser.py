"""The parser of jaxprs' text, from hlofront or JAX, in pure Python."""

import re

from hlotools.ir.graph_building import DEEPEST, GraphBuilder, array, several
from hlotools.ir.hlo import Computation, HloModule, HloSyntaxError, Instruction, Shape

_NOTE = re.compile(r"(?<![ \t])[ \t]++# (.*)$", re.MULTILINE)
_SOURCE = re.compile(r"(\S.*?):(\d{1,9})\b")
_SPACE = re.compile(r"\s*")
_LET = re.compile(r"let\s+([\w.]+)\s*=\s*(?=\{\s*lambda\b)")
_LAMBDA = re.compile(r"\{\s*lambda\b\s*")
_TYPE = r"(?:[\w.!]+(?:<[^<>\s]*>)?(?:\{[^{}]*\})?(?:\[[^\[\]]*\])?(?:\{[^{}]*\})?)"
_BINDER = re.compile(rf"([a-z]+|_):({_TYPE})")
_LITERAL = re.compile(rf"(\([^()\s]*\)|[^\s:,()\[\]{{}};]+):({_TYPE})")
# An unused result, which JAX writes as "_".
_NOTHING = re.compile(r"(_)()(?=[,\s)])")
_VARIABLE = re.compile(r"[a-z]++(?![\w:(\[])")
_PRIMITIVE = re.compile(r"[A-Za-z_][\w\-.]*")
_KEY = re.compile(r"(\w+)=")
_ARRAY = re.compile(r"([\w.<>!]+)\[([^\[\]]*)\](.*)", re.DOTALL)
_END = re.compile(r"in\s+\(")
# The tokens of a parameter's value; a word before `=` begins the next parameter.
_PIECE = re.compile(
    r"\{\s*lambda\b|'(?:[^'\\\n]|\\.)*+'|\"(?:[^\"\\\n]|\\.)*+\"|[\[\](){}]"
    r"|(?<!\s)\s++(?=\w+=|\])"
)
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
# Primitives whose parameter `name` does not affect the computation.
_NAMED_CALLS = frozenset(
    {"jit", "pjit", "closed_call", "core_call", "remat", "remat2", "checkpoint", "custom_jvp_call",
     "custom_vjp_call", "custom_vjp_call_jaxpr", "scan", "cond", "while"}
)  # fmt: skip


def read_jaxpr(text: str) -> HloModule:
    """Return the program of a jaxpr's text as an HloModule.

    Raises:
      HloSyntaxError: if the text cannot be parsed.
    """
    return _Reader(text).read()


class _Reader:
    def __init__(self, text: str):
        # The notes of source lines: their positions in the text without notes, and their sources.
        self.sources: list[tuple[int, str, int]] = []
        parts: list[str] = []
        end = length = 0
        for note in _NOTE.finditer(text):
            parts.append(text[end : note.start()])
            length += note.start() - end
            end = note.end()
            source = _SOURCE.match(note[1])
            if source is not None:
                self.sources.append((length, source[1], int(source[2])))
        parts.append(text[end:])
        self.text = "".join(parts)
        self.at = 0
        self.next_source = 0
        self.builder = GraphBuilder("jaxpr")
        self.named: dict[str, Computation] = {}
        self.depth = 0
        self.shapes: dict[str, Shape] = {}

    def fail(self, message: str) -> HloSyntaxError:
        line = self.text.count("\n", 0, self.at) + 1
        start = self.text.rfind("\n", 0, self.at) + 1
        shown = self.text[start : start + 4000].partition("\n")[0]
        return HloSyntaxError(message, line, self.at - start + 1, shown)

    def skip(self) -> None:
        self.at = _SPACE.match(self.text, self.at).end()

    def take(self, pattern: re.Pattern[str], what: str) -> re.Match[str]:
        self.skip()
        token = pattern.match(self.text, self.at)
        if token is None:
            raise self.fail(f"expected {what}")
        self.at = token.end()
        return token

    def read(self) -> HloModule:
        self.skip()
        while True:
            let = _LET.match(self.text, self.at)
            if let is None:
                break
            self.at = let.end()
            self.named[let[1]] = self.program(let[1])
            self.take(re.compile(r"in\b"), "'in' behind a named program")
            self.skip()
        entry = self.program("jaxpr")
        self.skip()
        if self.at < len(self.text):
            raise self.fail("there is more text behind the program")
        return self.builder.finished(entry)

    # ---- programs

    def program(self, name: str) -> Computation:
        self.take(_LAMBDA, "a program, { lambda ...")
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.fail(f"programs are more than {DEEPEST} deep")
        computation = self.builder.computation(name)
        names: dict[str, Instruction] = {}
        constants: dict[str, Instruction] = {}
        number = 0
        while True:
            self.skip()
            sign = self.text[self.at : self.at + 1]
            if sign in (";", "."):
                self.at += 1
                if sign == ".":
                    break
                continue
            binder = self.take(_BINDER, "a variable with its type")
            names[binder[1]] = self.builder.add(
                computation,
                name=binder[1],
                opcode="parameter",
                shape=self.shape(binder[2]),
                number=number,
            )
            number += 1
        self.take(re.compile(r"let\b"), "'let'")
        while True:
            self.skip()
            if _END.match(self.text, self.at):
                break
            if self.text.startswith(";", self.at):
                self.at += 1
                continue
            self.equation(computation, names, constants)
        self.at = _END.match(self.text, self.at).end()
        results = self.atoms(computation, names, constants, ("", 0))
        self.take(re.compile(r"\)\s*\}"), "')' and '}' at the end of a program")
        self.builder.returned(computation, results)
        self.depth -= 1
        return computation

    def equation(
        self,
        computation: Computation,
        names: dict[str, Instruction],
        constants: dict[str, Instruction],
    ) -> None:
        start = self.at
        binders: list[tuple[str, Shape]] = []
        while (binder := _BINDER.match(self.text, self.at)) is not None:
            binders.append((binder[1], self.shape(binder[2])))
            self.at = binder.end()
            self.skip()
        if self.text.startswith("=", self.at):
            self.at += 1
        elif binders:
            raise self.fail("expected '=' after the results of an operation")
        primitive = self.take(_PRIMITIVE, "the name of an operation")[0]
        label = next((name for name, _ in binders if name != "_"), primitive)
        source = self.source(start)
        attributes: dict[str, str] = {}
        called: dict[str, list[Computation]] = {}
        if self.text.startswith("[", self.at):
            self.at += 1
            attributes, called = self.parameters(label)
        operands = self.atoms(computation, names, constants, source)
        if called and primitive in _NAMED_CALLS:
            name = attributes.pop("name", "")
            for key, programs in called.items():
                if name and len(programs) == 1 and programs[0].name == f"{label}.{key}":
                    programs[0].name = f"{label}.{name}"
        made = self.builder.add(
            computation,
            name=label,
            opcode=primitive,
            shape=several([shape for _, shape in binders]),
            operands=operands,
            attributes=attributes,
            source=source,
        )
        made.called = called
        if len(binders) == 1:
            names[binders[0][0]] = made
            return
        for n, (name, shape) in enumerate(binders):
            part = self.builder.add(
                computation,
                name=name if name != "_" else f"{label}#{n}",
                opcode="get-tuple-element",
                shape=shape,
                operands=[made],
                attributes={"index": str(n)},
                source=source,
            )
            if name != "_":
                names[name] = part

    def atoms(
        self,
        computation: Computation,
        names: dict[str, Instruction],
        constants: dict[str, Instruction],
        source: tuple[str, int],
    ) -> list[Instruction]:
        """Return the variables and literals up to the next operation or bracket."""
        atoms: list[Instruction] = []
        while True:
            self.skip()
            if self.text.startswith(",", self.at):
                self.at += 1
                continue
            variable = _VARIABLE.match(self.text, self.at)
            if variable is not None and not _END.match(self.text, self.at):
                if variable[0] not in names:
                    if self.text.startswith("[", variable.end()):
                        return atoms
                    raise self.fail(f"{variable[0]} is not defined")
                atoms.append(names[variable[0]])
                self.at = variable.end()
                continue
            if _BINDER.match(self.text, self.at) and not self.is_literal():
                return atoms
            literal = _LITERAL.match(self.text, self.at) or _NOTHING.match(self.text, self.at)
            if literal is None:
                return atoms
            self.at = literal.end()
            key = literal[0]
            if key not in constants:
                constants[key] = self.builder.add(
                    computation,
                    name=literal[1],
                    opcode="constant",
                    shape=self.shape(literal[2] or ""),
                    operands=(),
                    attributes={},
                    literal=literal[1],
                    source=source,
                )
            atoms.append(constants[key])

    def is_literal(self) -> bool:
        """Return whether the text continues with a literal `nan:` or `inf:`, not a variable."""
        return re.match(r"(?:nan|inf):", self.text[self.at : self.at + 4]) is not None

    def source(self, start: int) -> tuple[str, int]:
        """Return the file and line of the first source note after a position, on its line."""
        while self.next_source < len(self.sources) and self.sources[self.next_source][0] < start:
            self.next_source += 1
        end = self.text.find("\n", start)
        # The note is at the end of the operation's first line.
        for position, file, line in self.sources[self.next_source : self.next_source + 1]:
            if position <= (len(self.text) if end < 0 else end):
                return file, line
        return "", 0

    # ---- parameters

    def parameters(self, label: str) -> tuple[dict[str, str], dict[str, list[Computation]]]:
        """Return an operation's parameters as text, and the programs in each."""
        attributes: dict[str, str] = {}
        called: dict[str, list[Computation]] = {}
        while True:
            self.skip()
            if self.text.startswith("]", self.at):
                self.at += 1
                return attributes, called
            key = self.take(_KEY, "a parameter")[1]
            value, programs = self.value(f"{label}.{key}")
            if not programs and key != "name" and value in self.named:
                programs = [self.named[value]]
            if programs:
                called[key] = programs
            else:
                attributes[key] = _ADDRESS.sub("", " ".join(value.split()))

    def value(self, label: str) -> tuple[str, list[Computation]]:
        """Return a parameter's value as text, and the programs in it."""
        programs: list[Computation] = []
        start = self.at
        depth = 0
        while True:
            piece = _PIECE.search(self.text, self.at)
            if piece is None:
                raise self.fail("a parameter does not end")
            token = piece[0]
            if token.startswith("{") and len(token) > 1:
                self.at = piece.start()
                programs.append(self.program(f"{label}{len(programs) or ''}"))
                continue
            if token == "]" and depth == 0:
                self.at = piece.start()
                break
            self.at = piece.end()
            if token in ("(", "[", "{"):
                depth += 1
            elif token in (")", "]", "}"):
                depth -= 1
            elif token.isspace() and depth == 0:
                break
        return self.text[start : self.at].strip(), programs

    # ---- types

    def shape(self, text: str) -> Shape:
        shape = self.shapes.get(text)
        if shape is None:
            parts = _ARRAY.fullmatch(text)
            sizes = [n.strip() for n in parts[2].split(",")] if parts and parts[2] else []
            if parts is None or not all(map(_is_size, sizes)):
                shape = Shape(text, text)
            else:
                shape = array(parts[1] + parts[3], [int(n) for n in sizes])
            self.shapes[text] = shape
        return shape


def _is_size(text: str) -> bool:
    return text.isdecimal() and len(text) < 19
