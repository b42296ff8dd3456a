"""The data model of HLO: modules, computations, instructions, shapes and sources."""

import functools
import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from hlotools.ir.custom_kernels import CustomKernel, kernel_of
from hlotools.ir.quoted_text import unquoted
from hlotools.ir.source_frames import Frames, Source
from hlotools.terminal_text import visible


class HloSyntaxError(ValueError):
    """The error that a text is not HLO, with the position of the error.

    `line` and `column` count from 1; `text` is the line, and `file` the path of its file if known.
    """

    def __init__(self, message: str, line: int, column: int, text: str, file: str = ""):
        self.message = message
        self.line = line
        self.column = column
        self.text = text
        self.file = file
        # A line of a module may have megabytes of constants: only the text near the error is shown.
        first = max(0, column - 61)
        shown = text[first : first + 120].replace("\t", " ")
        where = f"{file}, line {line}" if file else f"line {line}"
        super().__init__(
            visible(f"{where}, column {column}: {message}\n  {shown}\n")
            + f"  {' ' * (column - 1 - first)}^"
        )


_BITS = {
    "pred": 8, "token": 0, "opaque": 0, "bf16": 16, "f8e5m2": 8, "f8e4m3": 8, "f8e4m3fn": 8,
    "f8e4m3b11fnuz": 8, "f8e5m2fnuz": 8, "f8e4m3fnuz": 8, "f8e3m4": 8, "f8e8m0fnu": 8,
    "f4e2m1fn": 4,
}  # fmt: skip


def bits_of(dtype: str) -> int:
    """Return the number of bits of one element in memory, 0 for unknown dtypes."""
    known = _BITS.get(dtype)
    if known is not None:
        return known
    sized = re.fullmatch(r"[sufc](\d{1,4})", dtype)
    return int(sized[1]) if sized else 0


class Shape:
    """The type of a value: an array's dtype, sizes and layout, or a tuple of shapes.

    `dtype` is HLO's name of the element type; "tuple" for tuples and "buffer" for buffers, whose
    `elements` are shapes. `dimensions` are sizes, -1 without a bound, and `dynamic` is true for
    sizes that are bounds only. `layout` has the dimensions from minor to major, or is None if the
    text has none; `tiles` are the tiles' sizes, `memory_space` is the number after S, and `extra`
    is the rest of the layout's text.
    """

    __slots__ = ("_bytes", "_canonical", "_size", "_stored", "dimensions", "dtype", "dynamic",
                 "elements", "extra", "layout", "memory_space", "text", "tiles")  # fmt: skip

    def __init__(
        self,
        text: str,
        dtype: str,
        dimensions: tuple[int, ...] = (),
        dynamic: tuple[bool, ...] = (),
        layout: tuple[int, ...] | None = None,
        tiles: tuple[str, ...] = (),
        memory_space: int = 0,
        extra: str = "",
        elements: "tuple[Shape, ...]" = (),
    ):
        self.text = text
        self.dtype = dtype
        self.dimensions = dimensions
        self.dynamic = dynamic
        self.layout = layout
        self.tiles = tiles
        self.memory_space = memory_space
        self.extra = extra
        self.elements = elements
        # Equal texts are one object, so sizes are computed once.
        self._canonical: str | None = None
        self._size = -1
        self._bytes = -1
        self._stored = -1

    @property
    def is_tuple(self) -> bool:
        return self.dtype == "tuple"

    @property
    def is_default_layout(self) -> bool:
        """Whether the layout has no tiles and the last dimension is the minor one."""
        descending = tuple(range(len(self.dimensions) - 1, -1, -1))
        plain = not (self.tiles or self.memory_space or self.extra)
        return plain and self.layout in (None, descending)

    def leaves(self) -> "Iterator[Shape]":
        """Yield the arrays in a shape, from left to right."""
        waiting = [self]
        while waiting:
            shape = waiting.pop()
            if shape.dtype in ("tuple", "buffer"):
                waiting.extend(reversed(shape.elements))
            else:
                yield shape

    @property
    def size(self) -> int:
        """The number of elements of all arrays in the shape; bounds count as sizes."""
        if self._size < 0:
            total = 0
            for leaf in self.leaves():
                product = 1
                for size in leaf.dimensions:
                    product *= max(size, 0)
                total += product
            self._size = total
        return self._size

    @property
    def bytes(self) -> int:
        """The bytes of the elements, without the padding of tiles."""
        if self._bytes < 0:
            if self.elements:
                self._bytes = sum(leaf.bytes for leaf in self.leaves())
            else:
                self._bytes = (self.size * bits_of(self.dtype) + 7) // 8
        return self._bytes

    @property
    def stored_bytes(self) -> int:
        """The bytes of the shape in memory, including the padding of tiles."""
        if self._stored < 0:
            self._stored = self._with_tiles()
        return self._stored

    def _with_tiles(self) -> int:
        if self.elements:
            return sum(leaf.stored_bytes for leaf in self.leaves())
        tile = self.tiles[0].split(",") if self.tiles and self.layout else []
        if not tile or len(tile) > len(self.dimensions) or not all(map(str.isdecimal, tile)):
            return self.bytes
        elements = 1
        # The last size of a tile applies to the most minor dimension.
        for n, dimension in enumerate(self.layout or ()):
            size = max(self.dimensions[dimension], 0)
            step = int(tile[-1 - n]) if n < len(tile) else 1
            elements *= -(-size // max(step, 1)) * max(step, 1)
        return (elements * bits_of(self.dtype) + 7) // 8

    def without_layout(self) -> str:
        if self.dtype == "buffer":
            return f"b({self.elements[0].without_layout()})"
        if self.is_tuple:
            return tuple_text([e.without_layout() for e in self.elements])
        return f"{self.dtype}[{self.sizes_text()}]"

    def sizes_text(self) -> str:
        return ",".join(
            "?" if size < 0 else f"<={size}" if dynamic else str(size)
            for size, dynamic in zip(self.dimensions, self.dynamic, strict=True)
        )

    def short_text(self) -> str:
        """Return the shape's text with only non-default layouts."""
        if self.dtype == "buffer":
            return f"b({self.elements[0].short_text()})"
        if self.is_tuple:
            return tuple_text([e.short_text() for e in self.elements])
        return self.without_layout() if self.is_default_layout else self.text

    def layout_text(self) -> str:
        """Return the layouts' text, {2,1,0} where the text has none."""
        if self.dtype in ("tuple", "buffer"):
            return "(" + ", ".join(e.layout_text() for e in self.elements) + ")"
        if self.layout is None:
            descending = ",".join(map(str, range(len(self.dimensions) - 1, -1, -1)))
            return "{" + descending + "}"
        return self.text[len(self.without_layout()) :]

    def canonical_text(self) -> str:
        """Return the shape's text with the layout of every array that has dimensions."""
        if self._canonical is None:
            if self.dtype == "buffer":
                self._canonical = f"b({self.elements[0].canonical_text()})"
            elif self.is_tuple:
                inside = ", ".join(e.canonical_text() for e in self.elements)
                self._canonical = f"({inside})"
            elif not self.dimensions and self.is_default_layout:
                self._canonical = self.without_layout()
            else:
                self._canonical = self.without_layout() + self.layout_text()
        return self._canonical

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Shape) and self.canonical_text() == other.canonical_text()

    def __hash__(self) -> int:
        return hash(self.canonical_text())

    def __repr__(self) -> str:
        return f"Shape({self.text!r})"

    def __str__(self) -> str:
        return self.text


def tuple_text(parts: list[str]) -> str:
    """Return texts in parentheses, each fifth with an index comment in XLA's format."""
    return "(" + indexed(parts) + ")"


def indexed(parts: list[str]) -> str:
    """Return texts joined by commas, each fifth with an index comment in XLA's format."""
    if len(parts) <= 5:
        return ", ".join(parts)
    return ", ".join(
        f"/*index={i}*/{part}" if i and i % 5 == 0 else part for i, part in enumerate(parts)
    )


# Attributes that name computations; the values of others remain text.
CALLING = (
    "calls", "to_apply", "body", "condition", "branch_computations", "called_computations",
    "true_computation", "false_computation", "select", "scatter", "async_computation",
)  # fmt: skip
_FIELD = re.compile(r'([\w\-]+)=("(?:[^"\\]++|\\.)*+"|\{[^{}]*\}|[^\s{}"]+)')
_NUMBER = re.compile(r"-?\d+")


class Instruction:
    """An operation of a computation, with its operands, attributes and users.

    `attributes` follow the operands in the text, each with its text as value. `literal` is the text
    in the parentheses of a constant, `number` that of a parameter. `users` are the distinct
    instructions of the computation that have the instruction as an operand.
    """

    __slots__ = ("_metadata", "attributes", "called", "computation", "is_root", "literal", "name",
                 "number", "opcode", "operands", "predecessors", "shape", "users")  # fmt: skip

    computation: "Computation"
    operands: "list[Instruction]"
    users: "list[Instruction]"
    predecessors: "list[Instruction]"
    called: "dict[str, list[Computation]]"

    def __init__(
        self,
        name: str,
        shape: Shape,
        opcode: str,
        attributes: dict[str, str] | None = None,
        literal: str = "",
        number: int = -1,
        is_root: bool = False,
    ):
        self.name = name
        self.shape = shape
        self.opcode = opcode
        self.attributes = {} if attributes is None else attributes
        self.literal = literal
        self.number = number
        self.is_root = is_root
        self.operands = []
        self.users = []
        self.predecessors = []
        self.called = {}
        self._metadata: dict[str, str] | None = None

    @property
    def metadata(self) -> dict[str, str]:
        """The fields of `metadata={...}`, each value without its quotes."""
        if self._metadata is None:
            text = self.attributes.get("metadata", "")
            self._metadata = {
                key: unquoted(value) for key, value in _FIELD.findall(text[1:-1] if text else "")
            }
        return self._metadata

    @property
    def op_name(self) -> str:
        """The name stack of the traced operation, such as jit(f)/dot_general."""
        return self.metadata.get("op_name", "")

    @property
    def source(self) -> Source | None:
        """The user's source line of the operation, None if unknown."""
        stack = self.stack()
        return stack[0] if stack else None

    def stack(self) -> list[Source]:
        """Return the user's source line and those of its callers, innermost first."""
        metadata = self.metadata
        frame = metadata.get("stack_frame_id", "")
        if frame.isdecimal() and len(frame) < 10:
            sources = self.computation.module.frames.sources(int(frame))
            if sources:
                return sources
        if metadata.get("source_file"):
            line = metadata.get("source_line", "")
            number = int(line) if line.isdecimal() and len(line) < 10 else 0
            return [Source(metadata["source_file"], number)]
        return []

    @property
    def dimensions(self) -> tuple[int, ...]:
        """The numbers in `dimensions={...}`."""
        return self.numbers("dimensions")

    def numbers(self, attribute: str) -> tuple[int, ...]:
        """Return the integers in an attribute's text, () if the attribute is missing."""
        return tuple(map(int, _NUMBER.findall(self.attributes.get(attribute, ""))))

    @property
    def backend_config(self) -> Any:
        """The backend's configuration as parsed JSON, as text if it is not JSON, or None."""
        text = self.attributes.get("backend_config")
        if text is None:
            return None
        inner = unquoted(text) if text.startswith('"') else text
        try:
            return json.loads(inner)
        except (ValueError, RecursionError):
            return inner

    @property
    def kernel(self) -> CustomKernel | None:
        """The kernel in the payload of a custom call, None for other operations."""
        is_custom_call = self.opcode in ("custom-call", "custom_call")
        if not is_custom_call:
            return None
        texts = self.computation.module.kernel_texts
        return kernel_of(self.attributes, self.name, len(self.operands), texts)

    @property
    def fused(self) -> "Computation | None":
        """The computation of a fusion, None for other instructions."""
        calls = self.called.get("calls") if self.opcode == "fusion" else None
        return calls[0] if calls else None

    def __repr__(self) -> str:
        return f"<{self.name} = {self.shape.without_layout()} {self.opcode}>"


def nearest_source(instruction: Instruction) -> Source | None:
    """Return an instruction's source line; for an inserted one that of the value that it is for."""
    fused = instruction.fused
    source = instruction.source or (fused.root.source if fused else None)
    if instruction.opcode in ("parameter", "constant"):
        return source
    value = instruction
    for _ in range(4):
        if source is not None or not value.operands:
            break
        value = value.operands[0]
        source = value.source
    if source is None and instruction.users:
        source = instruction.users[0].source
    return source


def _needed(instruction: Instruction) -> "list[Instruction]":
    return instruction.operands + instruction.predecessors


def callees_of(computation: "Computation") -> "list[Computation]":
    """Return the computations that a computation's instructions call, with repetitions."""
    return [
        callee
        for instruction in computation.instructions
        for callees in instruction.called.values()
        for callee in callees
    ]


_Node = TypeVar("_Node", Instruction, "Computation")


def _sorted(
    starts: Iterable[_Node], needs: Callable[[_Node], list[_Node]], complaint: str
) -> list[_Node]:
    """Return nodes in topological order, needed ones first; raise ValueError for a cycle."""
    done: set[int] = set()
    open_: set[int] = set()
    order: list[_Node] = []
    for start in starts:
        waiting = [(start, False)]
        while waiting:
            node, finished = waiting.pop()
            key = id(node)
            if finished:
                open_.discard(key)
                done.add(key)
                order.append(node)
            elif key not in done:
                open_.add(key)
                waiting.append((node, True))
                for needed in reversed(needs(node)):
                    if id(needed) in open_:
                        what = "" if isinstance(needed, Instruction) else "the computation "
                        raise ValueError(f"{what}{needed.name}{complaint}")
                    if id(needed) not in done:
                        waiting.append((needed, False))
    return order


class Computation:
    """A function of a module: instructions in the order of the text, and a root."""

    __slots__ = ("attributes", "instructions", "is_entry", "module", "name", "root")

    module: "HloModule"
    root: Instruction

    def __init__(self, name: str, is_entry: bool = False):
        self.name = name
        self.is_entry = is_entry
        self.instructions: list[Instruction] = []
        self.attributes: dict[str, str] = {}

    @property
    def parameters(self) -> list[Instruction]:
        """The parameters in the order of their numbers."""
        parameters = [i for i in self.instructions if i.opcode == "parameter"]
        return sorted(parameters, key=lambda i: i.number)

    def __getitem__(self, name: str) -> Instruction:
        for instruction in self.instructions:
            if instruction.name == name:
                return instruction
        raise KeyError(f"computation {self.name} has no instruction {name!r}")

    def __iter__(self) -> Iterator[Instruction]:
        return iter(self.instructions)

    def __len__(self) -> int:
        return len(self.instructions)

    def in_order(self) -> list[Instruction]:
        """Return the instructions with operands and control predecessors before their users.

        Raises:
          ValueError: if an instruction depends on itself.
        """
        done: set[int] = set()
        for instruction in self.instructions:
            for needed in instruction.operands:
                if id(needed) not in done:
                    return _sorted(self.instructions, _needed, f" in {self.name} needs itself")
            for needed in instruction.predecessors:
                if id(needed) not in done:
                    return _sorted(self.instructions, _needed, f" in {self.name} needs itself")
            done.add(id(instruction))
        # XLA already writes instructions in such an order.
        return list(self.instructions)

    def __repr__(self) -> str:
        return f"<computation {self.name}: {len(self.instructions)} instructions>"


class HloModule:
    """A program in HLO: the `entry` computation and the computations that it calls.

    `attributes` follow the module's name in the text, each with its text as value; `frames` are the
    tables of source lines. `roots` are the computations that keep the others alive: the entry,
    and in StableHLO the other functions that are public or that nothing calls. `kernel_texts` are
    the kernels that a canonical text has in comments, by the digests of their payloads. `derived`
    are the results of functions with `once_per_module`, by their names.
    """

    __slots__ = ("attributes", "computations", "derived", "entry", "frames", "kernel_texts", "name",
                 "operand_shapes", "other_roots", "percent")  # fmt: skip

    entry: Computation

    def __init__(self, name: str):
        self.name = name
        self.attributes: dict[str, str] = {}
        self.frames = Frames()
        self.computations: list[Computation] = []
        self.other_roots: list[Computation] = []
        self.kernel_texts: dict[str, tuple[str, str]] = {}
        self.derived: dict[str, Any] = {}
        # The format of the text: whether it has `%` before names and shapes before operands.
        self.percent = True
        self.operand_shapes = False

    @property
    def roots(self) -> list[Computation]:
        return [self.entry, *self.other_roots]

    def __getitem__(self, name: str) -> Computation:
        for computation in self.computations:
            if computation.name == name:
                return computation
        raise KeyError(f"module {self.name} has no computation {name!r}")

    def instructions(self) -> Iterator[Instruction]:
        """Yield every instruction of every computation, in the order of the text."""
        for computation in self.computations:
            yield from computation.instructions

    def callees_first(self) -> list[Computation]:
        """Return the computations, each after those that it calls.

        Raises:
          ValueError: if a computation calls itself.
        """
        return _sorted(self.computations, callees_of, " calls itself")

    def __repr__(self) -> str:
        count = sum(len(c) for c in self.computations)
        return visible(
            f"<HLO module {self.name}: {len(self.computations)} computations, {count} operations>"
        )


_Result = TypeVar("_Result")


def once_per_module(function: Callable[[HloModule], _Result]) -> Callable[[HloModule], _Result]:
    """Return a function that computes its result once per module, and stores it in the module.

    The module must not change afterwards.
    """

    @functools.wraps(function)
    def known(module: HloModule) -> _Result:
        if function.__name__ not in module.derived:
            module.derived[function.__name__] = function(module)
        return module.derived[function.__name__]

    return known
