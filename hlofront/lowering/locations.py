"""The user's source lines as MLIR locations, so that HLO names them."""

from typing import Any

from hlofront.base.source import is_user_file
from hlofront.bridge.mlir import TracebackToLocationCache, context, ir

_FRAME_LIMIT = 10


def _file_of(code: Any) -> str | None:
    """The file of a code object as the module shows it; None for frames that are not the user's."""
    name = code.co_filename
    return name if is_user_file(name) else None


class Locations:
    """The locations of one module: each of a traceback, a name, or both, made once."""

    __slots__ = ("_frames", "_named", "unknown")

    def __init__(self):
        self._frames = TracebackToLocationCache(
            code_to_filename=_file_of, frame_limit=_FRAME_LIMIT, context=context
        )
        self._named: dict[Any, Any] = {}
        self.unknown = ir.Location.unknown(context)

    def of(self, name: str, traceback: Any) -> Any:
        """The location of an operation: its name, and the lines that it came from."""
        if traceback is None:
            return ir.Location.name(name, context=context)
        frames = self._frames.get(traceback)
        key = (name, frames)
        found = self._named.get(key)
        if found is None:
            found = self._named[key] = ir.Location.name(name, frames, context=context)
        return found

    def named(self, name: str) -> Any:
        return ir.Location.name(name, context=context)
