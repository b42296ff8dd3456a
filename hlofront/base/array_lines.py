"""The user's lines that made the arrays that are alive, while hlofront_array_lines is on."""

import weakref
from collections.abc import Iterable
from typing import TypeVar

from hlofront.base import source
from hlofront.base.config import options
from hlofront.base.source import Traceback

T = TypeVar("T")

array_lines = options["hlofront_array_lines"]

# By the id of an array: a reference to it, and the stack that made it.
_made: dict[int, tuple[weakref.ref[object], Traceback | None]] = {}


def remember(arrays: Iterable[object]) -> None:
    """Remember the current stack as the one that made these arrays, until they are collected.

    Arrays that are known, such as arguments returned unchanged, keep their line.
    """
    stack = source.current()
    for array in arrays:
        key = id(array)
        if key in _made:
            continue

        def forget(_: object, key: int = key) -> None:
            _made.pop(key, None)

        _made[key] = weakref.ref(array, forget), stack


def remembered(array: T) -> T:
    """Return an array, which the current stack made."""
    if array_lines.value:
        remember((array,))
    return array


def line_of(array: object) -> str:
    """Return the user's line that made an array, such as "train.py:31"; "" if it is not known."""
    _, stack = _made.get(id(array), (None, None))
    frame = source.user_frame(stack)
    return source.shown_line(frame.file, frame.line) if frame is not None else ""
