# pyright: strict
"""The Python stacks of the threads of this process, as the user's lines."""

import os
import sys
import sysconfig
import threading
import types
from collections.abc import Mapping
from typing import cast

from hlofront.base import source
from hlofront.base.named_tuple import NamedTuple

# The maximum number of lines of a stack: the innermost ones.
_MAX_LINES = 10
_paths = sysconfig.get_paths()
_LIBRARIES = tuple(
    os.path.join(_paths[name], "") for name in ("stdlib", "platstdlib", "purelib", "platlib")
)
_package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# What hlofront does in the functions of a file.
_DOING = {
    os.path.join(_package, "pjrt", "compile.py"): "compiling",
    os.path.join(_package, "transforms", "stage.py"): "tracing",
}
_HOST_CALLS = os.path.join(_package, "runtime", "compilation", "host_calls.py")


class ThreadStack(NamedTuple):
    """The stack of a thread.

    Attributes:
      thread: the name of the thread.
      place: the user's innermost line, as in "load_batch at data.py:17 (in Queue.get)"; "" if the
        thread runs no line of the user's.
      lines: the user's lines, the outermost first.
      error: the exception that the thread is handling, such as in a `finally` block, or "".
      is_callback: whether it runs a callback of a compiled program.
    """

    thread: str
    place: str
    lines: list[str]
    error: str
    is_callback: bool


def thread_stacks(first: int | None = None) -> list[ThreadStack]:
    """Return the stacks of the threads that run lines of the user's.

    Args:
      first: the identifier of the thread whose stack comes first, even without such lines; by
        default, and if it has ended, the main thread.
    """
    frames = _frames()
    # From Python 3.12 on the values are exceptions, before tuples with them.
    errors: Mapping[int, object] = sys._current_exceptions()  # pyright: ignore[reportPrivateUsage]
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    if first not in frames:
        first = threading.main_thread().ident
    stacks: list[ThreadStack] = []
    for thread in sorted(frames, key=lambda thread: thread != first):
        stack = _stack(names.get(thread, "of XLA"), frames[thread], errors.get(thread))
        if thread == first or stack.lines:
            stacks.append(stack)
    return stacks


def current_place(thread: int | None = None) -> tuple[types.CodeType, int] | None:
    """Return the code and line number of the user's innermost frame of a thread, or None.

    Args:
      thread: the identifier of the thread; by default, and if it has ended, the main thread.
    """
    frames = _frames()
    if thread not in frames:
        thread = threading.main_thread().ident
    own, _ = _own_frames(frames.get(thread or 0))
    return (own[0].f_code, own[0].f_lineno) if own else None


def shown_place(code: types.CodeType, line: int) -> str:
    """Return a function and a line in it as text, as in "load_batch at data.py:17"."""
    shown = source.shown_line(code.co_filename, line)
    name = code.co_qualname.replace(".<locals>", "")
    return shown if name == "<module>" else f"{name} at {shown}"


def _frames() -> dict[int, types.FrameType]:
    return sys._current_frames()  # pyright: ignore[reportPrivateUsage]


def _own_frames(
    frame: types.FrameType | None,
) -> tuple[list[types.FrameType], list[types.FrameType]]:
    """Return the user's frames of a stack, and those inside of the innermost; innermost first.

    Frames of libraries count if there are no others.
    """
    frames: list[types.FrameType] = []
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    users = [f for f in frames if source.is_user_file(f.f_code.co_filename)]
    own = [f for f in users if not f.f_code.co_filename.startswith(_LIBRARIES)]
    if not own and any(f.f_code.co_name in ("_shutdown", "_bootstrap") for f in users):
        return [], frames  # A thread of a library, or the interpreter, which waits for threads.
    # Classes have generated methods there; of `python -c` it is all.
    own = [f for f in own if f.f_code.co_filename != "<string>"] or own or users
    return own, frames[: frames.index(own[0])] if own else frames


def _stack(name: str, frame: types.FrameType, error: object) -> ThreadStack:
    own, inside = _own_frames(frame)
    place = ""
    if own:
        place = f"{shown_place(own[0].f_code, own[0].f_lineno)}{_doing(inside)}"
    outer: types.FrameType | None = frame
    is_callback = False
    while outer is not None:
        is_callback |= outer.f_code.co_filename == _HOST_CALLS
        outer = outer.f_back
    lines = [_line(f) for f in reversed(own[:_MAX_LINES])]
    return ThreadStack(name, place, lines, _error_text(error), is_callback)


def _line(frame: types.FrameType) -> str:
    return source.describe_frame_with_line(source.Frame(frame.f_code, frame.f_lasti))


def _doing(inside: list[types.FrameType]) -> str:
    """Return what the user's innermost line has called, as in " (in Queue.get)"."""
    for frame in inside:
        doing = _DOING.get(frame.f_code.co_filename)
        if doing is not None:
            return f" ({doing} a program)"
    for frame in reversed(inside):
        code = frame.f_code
        if source.is_user_file(code.co_filename) and not code.co_filename.startswith("<"):
            return f" (in {code.co_qualname})"
    return ""


def _error_text(error: object) -> str:
    """Return an exception that is being handled as text, or ""."""
    if isinstance(error, tuple):
        error = cast(tuple[object, object, object], error)[1]
    return error_text(error) if isinstance(error, BaseException) else ""


def error_text(error: BaseException) -> str:
    """Return an exception with the line that raised it, as in "ValueError: odd at x.py:3"."""
    first_line = (str(error).splitlines() or [""])[0]
    text = f"{type(error).__name__}: {first_line}" if first_line else type(error).__name__
    line = ""
    traceback = error.__traceback__
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if source.is_user_file(file) and not file.startswith(_LIBRARIES):
            line = f" at {source.shown_line(file, traceback.tb_lineno)}"
        traceback = traceback.tb_next
    return text + line
