"""The operations of one dump of a module, read line by line."""

import re
from typing import NamedTuple

from hlotools.cost.estimates import count_operations

_COMPUTATION = re.compile(r"(?:ENTRY )?%?([\w.\-]+) .*\{$")
_OPERATION = re.compile(r"  (?:ROOT )?%?([\w.\-]+) = (.*)")
_OP_NAME = re.compile(r'op_name="((?:[^"\\]|\\.)*)"')
_CALLS = re.compile(r" fusion\(.*\bcalls=%?([\w.\-]+)")
_LAYOUT = re.compile(r"\{[^{}]*\}")
_COMMENT = re.compile(r"/\*.*?\*/")


class Operation(NamedTuple):
    """An operation of one dump, with the text of its line and the computation that it is in."""

    name: str
    text: str
    computation: str

    @property
    def shape_and_opcode(self) -> tuple[str, str]:
        """The type with its layout, and the name of the operation, such as `dot`."""
        text = _COMMENT.sub("", self.text)
        end = _end_of_shape(text)
        opcode = text[end:].lstrip().partition("(")[0]
        return text[:end], opcode

    @property
    def opcode(self) -> str:
        """The name of the operation, such as `dot`."""
        return self.shape_and_opcode[1]

    @property
    def op_name(self) -> str:
        """The path of names of the user's program, such as `jit(f)/layer/dot_general`."""
        match = _OP_NAME.search(self.text)
        return match[1] if match else ""

    @property
    def kind(self) -> tuple[str, str, str]:
        """The parts of an operation that its copies share: opcode, type and path of names."""
        shape, opcode = self.shape_and_opcode
        return opcode, _LAYOUT.sub("", shape), self.op_name


class Snapshot(NamedTuple):
    """All operations of one dump except parameters, by name, and the fusions by their callees."""

    operations: dict[str, Operation]
    fusions: dict[str, str]

    @property
    def operation_count(self) -> int:
        """The number of operations, as `count_operations` counts them."""
        return count_operations(operation.opcode for operation in self.operations.values())

    def fusion_of(self, operation: Operation) -> str:
        """Return the name of the fusion that an operation is inside of, or ""."""
        return self.fusions.get(operation.computation, "")


def snapshot(text: str) -> Snapshot:
    """Read the text of a dump: HLO with one operation in each line.

    The operations are not parsed, as a program has some sixty dumps; `parse` can read any of them.
    """
    operations: dict[str, Operation] = {}
    fusions: dict[str, str] = {}
    computation = ""
    for line in text.splitlines():
        if match := _OPERATION.match(line):
            name, rest = match.groups()
            operation = Operation(name, rest, computation)
            if (called := _CALLS.search(rest)) is not None:
                fusions[called[1]] = name
            if " parameter(" not in rest:
                operations[name] = operation
        elif match := _COMPUTATION.match(line):
            computation = match[1]
    return Snapshot(operations, fusions)


def _end_of_shape(text: str) -> int:
    """Return the end of the type at the start of an operation's text."""
    if not text.startswith("("):
        return text.find(" ")
    depth = 0
    for position, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return position + 1
    return len(text)
