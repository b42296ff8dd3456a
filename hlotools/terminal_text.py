"""Text from files and programs of others, made safe for a terminal.

Names and source files may contain escape sequences, which move a terminal's cursor, set its title
or hide text, and characters that reverse the direction of text. They are shown as escapes instead.
"""

import functools
import re
from collections.abc import Callable
from typing import ParamSpec

_P = ParamSpec("_P")
# C0 and C1 controls except tabs and line ends; marks of direction; invisible characters and tags;
# lone surrogates, which cannot be printed.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]|\r(?!\n)"
)
_LINE_END = re.compile("[\r\n]")


def visible(text: str) -> str:
    """Return text with the characters that control a terminal as escapes, such as `\\x1b`."""
    return _UNSAFE.sub(_escape, text)


def on_one_line(text: str) -> str:
    """Return a name as `visible` does, but with line ends, which could forge lines, as escapes."""
    return _LINE_END.sub(_escape, visible(text))


def _escape(character: re.Match[str]) -> str:
    code = ord(character[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def counted(count: int, noun: str) -> str:
    """Return a number of things as text, such as "1 entry" or "1,200 entries"."""
    plural = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{count:,} {noun if count == 1 else plural}"


def is_visible(function: Callable[_P, str]) -> Callable[_P, str]:
    """Decorate a function that returns text for people, so that the text is `visible`."""

    @functools.wraps(function)
    def visible_text(*args: _P.args, **kwargs: _P.kwargs) -> str:
        return visible(function(*args, **kwargs))

    return visible_text
