"""The source lines of a module's operations: its tables of files, functions and frames."""

from typing import NamedTuple


class Source(NamedTuple):
    """A position in the user's source, with "" or 0 for unknown fields."""

    file: str
    line: int
    function: str = ""
    column: int = 0

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        return f"{where} in {self.function}" if self.function else where


class FileLocation(NamedTuple):
    """An entry of the FileLocations table of a module."""

    file: int
    function: int
    line: int
    end_line: int
    column: int
    end_column: int


class StackFrame(NamedTuple):
    """An entry of the StackFrames table of a module; `parent` is the number in the text."""

    location: int
    parent: int


class Frames:
    """The tables of files, functions, locations and frames in the header of a module."""

    __slots__ = ("_shift", "_sources", "files", "functions", "locations", "stack")

    def __init__(self):
        self.files: dict[int, str] = {}
        self.functions: dict[int, str] = {}
        self.locations: dict[int, FileLocation] = {}
        self.stack: dict[int, StackFrame] = {}
        self._shift: int | None = None
        # By frame: the result of `sources`, as the operations of a line share a frame.
        self._sources: dict[int, list[Source]] = {}

    def __bool__(self) -> bool:
        return bool(self.files or self.functions or self.locations or self.stack)

    def sources(self, frame: int) -> list[Source]:
        """Return the source lines of a frame and of its callers, innermost first."""
        known = self._sources.get(frame)
        if known is None:
            known = self._sources[frame] = self._listed(frame)
        return known

    def _listed(self, frame: int) -> list[Source]:
        if self._shift is None:
            # XLA writes a parent's number plus one (jaxlib 0.10), where a frame without a parent
            # names itself. No frame is its own parent, so this distinguishes the two formats.
            self._shift = int(any(f.parent == number for number, f in self.stack.items()))
        sources: list[Source] = []
        seen: set[int] = set()
        while frame in self.stack and frame not in seen:
            seen.add(frame)
            location = self.locations.get(self.stack[frame].location)
            if location is not None:
                sources.append(
                    Source(
                        self.files.get(location.file, ""),
                        location.line,
                        self.functions.get(location.function, ""),
                        location.column,
                    )
                )
            frame = self.stack[frame].parent - self._shift
        return sources
