"""MLIR locations with the user's source lines, which HLO then shows."""

# The stubs of jaxlib do not name the types of all arguments and results.
# pyright: reportUnknownMemberType=false

import re
import types
from collections.abc import Callable

from hlofront.base.config import options
from hlofront.base.source import is_user_file, user_frame
from hlofront.bridge.fast_parts import Traceback
from hlofront.bridge.mlir import TracebackToLocationCache, context, ir

_full_tracebacks = options["jax_include_full_tracebacks_in_locations"]
_frame_limit = options["jax_traceback_in_locations_limit"]
_removed_from_files = options["jax_hlo_source_file_canonicalization_regex"]

# A negative limit means all frames; Python's default recursion limit allows no more than this.
_ALL_FRAMES = 1000


class Locations:
    """A cache of a module's MLIR locations, each made of a traceback, a name, or both.

    The options are read at construction, so all operations of a module have the same kind of
    locations.
    """

    __slots__ = ("_at", "_frames_of", "_last", "_last_frames", "_last_named", "unknown")

    _frames_of: Callable[[Traceback | None], ir.Location]

    def __init__(self):
        if _full_tracebacks.value:
            limit = _frame_limit.value
            self._frames_of = TracebackToLocationCache(
                code_to_filename=_shown_user_file,
                frame_limit=limit if limit >= 0 else _ALL_FRAMES,
                context=context,
            ).get
        else:
            self._frames_of = _innermost_frame
        self.unknown = ir.Location.unknown(context)
        # For each location of frames, the locations of its operations by name.
        self._at: dict[ir.Location, dict[str, ir.Location]] = {}
        # The last traceback, the location of its frames, and the locations of its operations.
        self._last: Traceback | None = None
        self._last_frames: ir.Location = self.unknown
        self._last_named: dict[str, ir.Location] = {}

    def of(self, name: str, traceback: Traceback | None) -> ir.Location:
        """Return the location of an operation: its name, and the user's source lines."""
        if traceback is None:
            return ir.Location.name(name, context=context)
        # Consecutive operations often come from the same line of the user's code.
        if traceback is not self._last:
            self._last, self._last_frames = traceback, self._frames_of(traceback)
            self._last_named = self._at.setdefault(self._last_frames, {})
        location = self._last_named.get(name)
        if location is None:
            location = ir.Location.name(name, self._last_frames, context=context)
            self._last_named[name] = location
        return location

    def named(self, name: str) -> ir.Location:
        return ir.Location.name(name, context=context)


def _shown_user_file(code: types.CodeType) -> str | None:
    """Return the file name to print for a code object, or None for library code."""
    return _shown_file(code.co_filename) if is_user_file(code.co_filename) else None


def _shown_file(file: str) -> str:
    pattern = _removed_from_files.value
    return re.sub(pattern, "", file) if pattern else file


def _innermost_frame(traceback: Traceback | None) -> ir.Location:
    """Return the line and column of the user's innermost frame as a location, without functions."""
    frame = user_frame(traceback)
    if frame is None:
        return ir.Location.unknown(context)
    return ir.Location.file(_shown_file(frame.file), frame.line, frame.column or 0, context)
