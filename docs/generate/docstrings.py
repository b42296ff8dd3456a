"""Docstrings in Google's style, turned into reStructuredText that cannot be misread."""

import inspect
import re
from collections.abc import Iterator

_SECTION = re.compile(r"(Args|Returns|Yields|Raises|Attributes|Example|Examples|Note|Notes):$")
_ITEM = re.compile(r"(\*{0,2}[\w.`*, /-]+?):(?: +(.*))?$")
_BULLET = re.compile(r"(- |\* |\d+\. )")
# A member of an enumeration, in its docstring.
_MEMBER = re.compile(r"([A-Z][A-Z_]+): ")
# What stands between backticks: a name becomes a link where the name has a description.
_CODE = re.compile(r"(``.+?``|`[^`\n]+`)")
_NAME = re.compile(r"[A-Za-z_][\w.]*")
_MARKUP = re.compile(r"([\\*|_`<>])")
_TITLES = {"Args": "Arguments", "Example": "Examples", "Notes": "Note"}


def first_sentence(docstring: str) -> str:
    """Return the first paragraph of a docstring as one line."""
    return " ".join(inspect.cleandoc(docstring).split("\n\n")[0].split())


# The full names of what has a description, by how docstrings write them; the generator fills it.
described: dict[str, str] = {}


def inline(text: str) -> str:
    """Return one line or paragraph of a docstring with its code marked and the rest escaped."""
    parts = []
    for part in _CODE.split(text):
        code = part.strip("`").strip()
        if not part.startswith("`") or not code:
            parts.append(_MARKUP.sub(r"\\\1", part))
        elif _NAME.fullmatch(code) and code in described:
            parts.append(f":py:obj:`{code} <{described[code]}>`")
        else:
            parts.append(f"``{code}``")
    # Markup ends only before a space or a mark of punctuation, and begins only after one.
    text = ""
    for part in parts:
        if text and part:
            is_code, was_code = part.startswith(("`", ":py:obj:")), text.endswith("`")
            if (is_code and text[-1].isalnum()) or (was_code and part[0].isalnum()):
                text += "\\ "
        text += part
    return text


def rst(docstring: str) -> list[str]:
    """Return the lines of a docstring as reStructuredText."""
    lines = inspect.cleandoc(docstring).split("\n")
    out: list[str] = []
    for title, body in _sections(lines):
        if title in ("Args", "Attributes", "Raises"):
            items = list(_items(body))
            if items:
                out += ["", f":{_TITLES.get(title, title)}:"]
                for name, text in items:
                    out += ["", f"    - ``{name}``" + (f": {inline(text)}" if text else "")]
                continue
        if title in ("Returns", "Yields") and body:
            flowed = _flowed(body)
            out += ["", f":{title}:", ""] + [f"    {line}" if line else "" for line in flowed]
            continue
        if title:
            out += ["", f"**{_TITLES.get(title, title)}**"]
        out += ["", *_flowed(body)]
    return out


def _sections(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the title and the dedented lines of each section; the first one has no title."""
    title, body = "", []
    for line in lines:
        if match := _SECTION.match(line):
            yield title, _dedented(body) if title else body
            title, body = match[1], []
        elif title and line and not line.startswith(" "):
            # Text after a section, at the margin again.
            yield title, _dedented(body)
            title, body = "", [line]
        else:
            body.append(line)
    yield title, _dedented(body) if title else body


def _dedented(lines: list[str]) -> list[str]:
    return inspect.cleandoc("\n" + "\n".join(lines)).split("\n")


def _items(body: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the names and texts of `name: text` with its further, indented lines."""
    name, text = "", ""
    for line in _dedented(body):
        if not line.startswith(" ") and (match := _ITEM.match(line)):
            if name:
                yield name, text
            name, text = match[1].replace("`", ""), match[2] or ""
        elif name:
            text = f"{text} {line.strip()}".strip()
        elif line.strip():
            name, text = line.strip().replace("`", ""), ""
    if name:
        yield name, text


def _flowed(lines: list[str]) -> list[str]:
    """Return prose, lists, examples and indented blocks, with the empty lines that they need."""
    out: list[str] = []
    kind = ""
    for line in lines:
        stripped = line.strip()
        if not stripped:
            if kind in ("example", "prose", "list"):
                kind = ""
            out.append("")
        elif stripped.startswith(">>>") or kind == "example":
            if kind != "example":
                out += ["", ".. code-block:: pycon", ""]
            kind = "example"
            out.append(f"    {line}")
        elif kind == "prose" and line.startswith(" "):
            out.append(inline(stripped))
        elif line.startswith(" ") and kind in ("", "block"):
            if kind != "block":
                out += ["", "::", ""]
            kind = "block"
            out.append(f"    {line}")
        elif member := _MEMBER.match(line):
            kind = "list"
            out += ["", f"- ``{member[1]}``: {inline(line[member.end() :])}"]
        elif bullet := _BULLET.match(line):
            if kind != "list":
                out.append("")
            kind = "list"
            end = bullet.end()
            out.append(line[:end] + inline(line[end:]))
        elif kind == "list" and line.startswith(" "):
            out.append(line[: len(line) - len(line.lstrip())] + inline(line.lstrip()))
        else:
            if kind in ("list", "block"):
                out.append("")
            kind = "prose"
            # Of `Example::`, as other styles write before a block.
            out.append(inline(re.sub("::$", ":", line)))
    return out
