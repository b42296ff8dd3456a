"""The syntax colors for code on a terminal; other outputs have no colors."""

import os
import re
from typing import TextIO

from hlotools.terminal_text import visible

_RESET = "\x1b[0m"
_BOLD = "\x1b[1m"
_STYLES = {
    "comment": "\x1b[2m",
    "string": "\x1b[32m",
    "type": "\x1b[36m",
    "operation": "\x1b[33m",
    "keyword": "\x1b[35m",
    "name": "\x1b[34m",
}

# A file and line at the end of a row, with the line's text.
_SOURCE = re.compile(r"(?<=  )[^ ]+:\d+(?:  .*)?$|\(no line\)$")
_DIMMED = "\x1b[2m\\g<0>\x1b[0m"

# The patterns to color in each language, in matching order.
_PATTERNS = {
    "python": [
        ("comment", r"#[^\n]*"),
        ("string", r"\"\"\".*?\"\"\"|'[^'\n]*'|\"[^\"\n]*\""),
        ("keyword", r"\b(?:def|return|for|in|if|else|elif|lambda|while|with|import|from|as|not|and"
         r"|or|is|None|True|False|class|yield|raise|try|except|finally)\b"),
        ("operation", r"@[\w.]+"),
    ],
    "jaxpr": [
        ("keyword", r"\b(?:lambda|let|in)\b"),
        ("type", r"\b(?:bool|key|[a-z]+\d+\w*)\[[^\]\n]*\](?:\{[^}\n]*\})?"),
        ("operation", r"(?<== )[\w-]+"),
    ],
    "mlir": [
        ("string", r"\"[^\"\n]*\""),
        ("type", r"tensor<[^>\n]*>|!\w+\.\w+"),
        ("operation", r"\b(?:stablehlo|chlo|func|sdy)\.[\w.]+|\b(?:call|return|module)\b"),
        ("name", r"[%@][\w.]+"),
    ],
    "hlo": [
        ("comment", r"metadata=\{[^}\n]*\}|/\*.*?\*/"),
        ("string", r"\"[^\"\n]*\""),
        ("type", r"\b(?:pred|[a-z]+\d+\w*)\[[\d,<=]*\](?:\{[^}\n]*\})?"),
        ("keyword", r"\b(?:ENTRY|ROOT|HloModule)\b"),
        ("name", r"%[\w.-]+"),
    ],
}  # fmt: skip


class Painter:
    """A painter that colors text for one output stream, or returns it unchanged."""

    def __init__(self, out: TextIO, when: str = "auto"):
        if when == "auto":
            self.on = out.isatty() and "NO_COLOR" not in os.environ
        else:
            self.on = when == "always"

    def heading(self, title: str) -> str:
        line = f"== {visible(title)} "
        line += "=" * max(0, 80 - len(line))
        return f"{_BOLD}{line}{_RESET}" if self.on else line

    def table(self, text: str) -> str:
        """Return a table's text with its title and heads in bold, and source lines dim."""
        if not self.on:
            return text
        title, *lines = text.split("\n")
        heads = [f"{_BOLD}{line}{_RESET}" for line in (title, *lines[:1])]
        return "\n".join([*heads, *(_SOURCE.sub(_DIMMED, line) for line in lines[1:])])

    def code(self, text: str, language: str) -> str:
        """Return a program's text in colors, with characters that control a terminal as escapes."""
        text = visible(text)
        patterns = _PATTERNS.get(language)
        if not self.on or patterns is None:
            return text
        whole = "|".join(f"(?P<{style}_{i}>{p})" for i, (style, p) in enumerate(patterns))
        return re.sub(whole, _paint, text, flags=re.DOTALL)


def _paint(match: re.Match[str]) -> str:
    style = (match.lastgroup or "").rpartition("_")[0]
    return f"{_STYLES[style]}{match[0]}{_RESET}"
