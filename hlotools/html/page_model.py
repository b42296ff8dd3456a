"""The data model of a page's program: columns of operations, and tables of repeated values."""

from collections.abc import Hashable, Iterable
from typing import Any

from hlotools.ir.source_frames import Source

# Longer attributes and constants are cut: a module may have megabytes of them.
LONGEST = 4000


class ValueTable:
    """A table of distinct values, which are referred to by number."""

    def __init__(self):
        self.values: list[Any] = []
        self._numbers: dict[Hashable, int] = {}

    def number(self, value: Any) -> int:
        key = tuple(value) if isinstance(value, list) else value
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.values)
            self.values.append(value)
        return number


class Files:
    """The source files that operations come from, and the line numbers in use."""

    def __init__(self):
        self.paths = ValueTable()
        self.functions = ValueTable()
        self.used: list[set[int]] = []

    def number(self, path: str, lines: Iterable[int] = ()) -> int:
        number = self.paths.number(path)
        if number == len(self.used):
            self.used.append(set())
        self.used[number].update(lines)
        return number

    def stack(self, sources: Iterable[Source]) -> list[int]:
        """Return source lines as numbers: file, line and function of each, innermost first."""
        numbers: list[int] = []
        for source in sources:
            if source.file:
                numbers += [
                    self.number(source.file, [source.line]),
                    source.line,
                    self.functions.number(source.function),
                ]
        return numbers


class ProgramData:
    """The columns of one program; `as_dict` returns them as data for the page's script.

    An operation's number is its index in the columns; a computation has those from its first up to
    and excluding its end.
    """

    def __init__(self, kind: str, files: Files):
        self.kind = kind
        self.files = files
        self.computations: list[dict[str, Any]] = []
        self.names: list[str] = []
        self.opcodes: list[int] = []
        self.types: list[int] = []
        self.operands: list[list[int]] = []
        self.stacks: list[int] = []
        self.paths: list[int] = []
        # By operation: the text in parentheses if it is more than operands; the text that follows;
        # the text shown on request.
        self.inside: dict[int, str] = {}
        self.mixed: dict[int, list[int | str]] = {}
        self.extra: dict[int, str] = {}
        self.hidden: dict[int, str] = {}
        self.called: dict[int, list[tuple[str, int]]] = {}
        # By operation: the compiler's passes that made or changed it, in order.
        self.histories: dict[int, list[str]] = {}
        # By operation: the title and the text of the kernel in its payload.
        self.kernels: dict[int, tuple[str, str]] = {}
        self.runs: dict[int, int | None] = {}
        self.roots: list[int] = []
        # The memory over time, None if it is not known.
        self.memory: dict[str, Any] | None = None
        # The collectives as rows, and the bytes along each combination of mesh axes.
        self.collectives: dict[str, Any] | None = None
        # The kernels of a TPU's or GPU's program as rows, with their code.
        self.compiled_kernels: dict[str, Any] | None = None
        self.metrics: list[dict[str, Any]] = []
        self.lines: list[list[Any]] = []
        self._tables = {name: ValueTable() for name in ("opcodes", "types", "stacks", "paths")}

    def computation(self, name: str, entry: bool = False) -> None:
        """Begin a computation, to which the following operations belong."""
        first = len(self.names)
        self.computations.append({"name": name, "entry": entry, "first": first, "end": first})

    def operation(
        self,
        name: str,
        opcode: str,
        type_: str = "",
        operands: Iterable[int] = (),
        *,
        stack: Iterable[Source] = (),
        path: str = "",
        inside: str = "",
        extra: str = "",
        hidden: str = "",
    ) -> int:
        """Add an operation to the last computation, and return its number."""
        number = len(self.names)
        tables = self._tables
        self.names.append(name)
        self.opcodes.append(tables["opcodes"].number(opcode))
        self.types.append(tables["types"].number(cut(type_)))
        self.operands.append(list(operands))
        sources = self.files.stack(stack)
        self.stacks.append(tables["stacks"].number(sources) if sources else -1)
        self.paths.append(tables["paths"].number(path) if path else -1)
        for known, text in ((self.inside, inside), (self.extra, extra), (self.hidden, hidden)):
            if text:
                known[number] = cut(text)
        self.computations[-1]["end"] = number + 1
        return number

    def metric(self, key: str, label: str, values: list[Any], total: float | None) -> None:
        """Add a metric of all operations, with None for unknown values."""
        self.metrics.append({"key": key, "label": label, "values": values, "total": total})

    def as_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "computations": self.computations,
            "names": self.names,
            "opcodes": self.opcodes,
            "types": self.types,
            "operands": self.operands,
            "stacks": self.stacks,
            "paths": self.paths,
            "inside": self.inside,
            "mixed": self.mixed,
            "extra": self.extra,
            "hidden": self.hidden,
            "called": self.called,
            "histories": self.histories,
            "kernels": self.kernels,
            "runs": self.runs,
            "roots": self.roots,
            "memory": self.memory,
            "collectives": self.collectives,
            "compiledKernels": self.compiled_kernels,
            "metrics": self.metrics,
            "lines": self.lines,
            "tables": {name: table.values for name, table in self._tables.items()},
        }


def cut(text: str, longest: int = LONGEST) -> str:
    if len(text) <= longest:
        return text
    return f"{text[:longest]} … and {len(text) - longest:,} more characters"
