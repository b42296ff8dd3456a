"""A line on the terminal that shows long-running work, and its duration, until the work ends."""

import contextlib
import os
import sys
import time
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable
from typing import TextIO

from hlofront.base.config import options

# The seconds after which a line appears, and between its updates.
PATIENCE = 5.0
_UPDATE = 1.0
_NOTE = " (HLOFRONT_PROGRESS=0: off)"
_option = options["hlofront_progress"]


class _Terminal:
    """The lines that may be on the terminal; the last one is shown."""

    def __init__(self):
        self.lock = allocate_lock()
        self.lines: list[ProgressLine] = []
        self._width = 0

    def draw(self, stream: TextIO, text: str, seconds: str = "", note: str = "") -> None:
        """Replace the line; if the terminal cannot be written to, the work continues without."""
        with contextlib.suppress(OSError, ValueError):
            # A line that wraps in the terminal could not be replaced.
            room = (os.get_terminal_size(stream.fileno()).columns or 80) - 1
            text = text[: room - len(seconds)] + seconds
            if len(text) + len(note) <= room:
                text += note
            padding = " " * (self._width - len(text))
            stream.write(f"\r{text}{padding}" + ("" if text else "\r"))
            stream.flush()
            self._width = len(text)


_terminal = _Terminal()


class ProgressLine:
    """A context manager for work that may take long; it erases its line when the work ends.

    A thread draws the line while this one works. It is not a thread of `threading`, whose thread
    count affects how programs are compiled.

    Args:
      describe: returns a description of the work, such as "compiling model.py:step"; it is called
        in the other thread, once a second.
      patience: the seconds after which the line appears.
    """

    __slots__ = ("_describe", "_ended", "_patience", "_started", "_stream")

    def __init__(self, describe: Callable[[], str], patience: float):
        self._describe = describe
        self._patience = patience
        self._stream = sys.stderr
        self._ended = allocate_lock()

    def __enter__(self) -> None:
        self._started = time.monotonic()
        self._ended.acquire()
        start_new_thread(self._watch, ())

    def __exit__(self, *_: object) -> None:
        with _terminal.lock:
            self._ended.release()
            if self in _terminal.lines:
                _terminal.lines.remove(self)
                _terminal.draw(self._stream, "")

    def _watch(self) -> None:
        patience = self._patience
        while not self._ended.acquire(timeout=patience):
            with _terminal.lock:
                if not self._ended.locked():
                    return
                if self not in _terminal.lines:
                    _terminal.lines.append(self)
                    patience = _UPDATE
                if _terminal.lines[-1] is self:
                    seconds = f", {time.monotonic() - self._started:.0f} s"
                    _terminal.draw(self._stream, f"hlofront: {self._describe()}", seconds, _NOTE)


def is_enabled() -> bool:
    """Return whether the option `hlofront_progress` is on."""
    return _option.value


def is_shown() -> bool:
    """Return whether progress lines are shown: on a terminal, if the option is on."""
    return is_enabled() and sys.stderr is not None and sys.stderr.isatty()


def progress_line(describe: Callable[[], str]) -> contextlib.AbstractContextManager[None]:
    """Return a context manager that shows on a terminal what its block does, if it takes long."""
    return ProgressLine(describe, PATIENCE) if is_shown() else contextlib.nullcontext()
