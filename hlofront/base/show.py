"""Width-aware pretty printing: documents that know where they may be broken into lines.

A document is a string or one of the classes below, built by the functions below. `render` lays
it out: a group is printed on one line if it fits into what is left of the width, else each of
its own breaks becomes a new line, while the groups inside it decide for themselves. The algebra
is Oppen's ("Prettyprinting", TOPLAS 1980) in Wadler's form ("A prettier printer", 2003). A group
looks at its own contents only, not at what follows it: documents carry their width, so that each
decision takes constant time and printing is linear. Nothing here recurses: depth is not limited.
"""

from collections.abc import Iterable, Sequence
from typing import Any

Document = Any


class Break:
    """A place for a new line; `flat` stands there where the group is on one line."""

    __slots__ = ("flat", "width")

    def __init__(self, flat: str):
        self.flat = flat
        self.width = len(flat)


class Concat:
    """Documents one after the other."""

    __slots__ = ("parts", "width")

    def __init__(self, parts: Sequence[Document]):
        self.parts = parts
        width = 0
        for part in parts:
            width += len(part) if type(part) is str else part.width
        self.width = width


class Nest:
    """A document whose new lines are indented by so many more columns."""

    __slots__ = ("by", "document", "width")

    def __init__(self, by: int, document: Document):
        self.by = by
        self.document = document
        self.width = width_of(document)


class Group:
    """A document that is printed on one line where it fits."""

    __slots__ = ("document", "width")

    def __init__(self, document: Document):
        self.document = document
        self.width = width_of(document)


class Styled:
    """A document in a colour or an intensity, on terminals; None: as around it."""

    __slots__ = ("colour", "document", "intensity", "width")

    def __init__(self, document: Document, colour: str | None, intensity: str | None):
        self.document = document
        self.colour = colour
        self.intensity = intensity
        self.width = width_of(document)


class Noted:
    """A document with remarks, which are printed to the right of the line that it begins on."""

    __slots__ = ("document", "notes", "width")

    def __init__(self, document: Document, notes: Sequence[str]):
        self.document = document
        self.notes = notes
        self.width = width_of(document)


def width_of(document: Document) -> int:
    """How many columns a document takes on one line."""
    return len(document) if type(document) is str else document.width


concat = Concat
nest = Nest
group = Group
noted = Noted

LINE = Break(" ")
SOFT_LINE = Break("")
# A break that decides for itself: many of these fill lines, as words fill a paragraph.
FILL = Group(LINE)


def styled(document: Document, colour: str | None = None, intensity: str | None = None) -> Styled:
    """A document in a colour ("black" ... "white") or intensity ("dim", "normal", "bright")."""
    return Styled(document, colour, intensity)


def join(separator: Document, documents: Iterable[Document]) -> Concat:
    """Documents with a separator between each two of them."""
    parts: list[Document] = []
    for document in documents:
        parts.append(document)
        parts.append(separator)
    return Concat(parts[:-1])


def fill(documents: Sequence[Document], separator: Document = FILL) -> Document:
    """As many documents on each line as fit there; lines after the first are indented by two."""
    return documents[0] if len(documents) == 1 else Nest(2, join(separator, documents))


def block(opening: Document, documents: Sequence[Document], closing: Document) -> Group:
    """Documents between brackets: on one line, or each on a line of its own, indented by two."""
    inside = Nest(2, Concat((SOFT_LINE, join(LINE, documents))))
    return Group(Concat((opening, inside, SOFT_LINE, closing)))


# ---- layout ----------------------------------------------------------------------------------

_COLOURS = {
    name: f"\x1b[{30 + code}m"
    for code, name in enumerate(
        ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
    )
} | {"reset": "\x1b[39m"}
_INTENSITIES = {"dim": "2", "normal": "22", "bright": "1"}
_PLAIN = ("reset", "normal")


def render(
    document: Document, width: int = 80, *, colour: bool = False, note_prefix: str = " # "
) -> str:
    """Lay a document out in lines of at most `width` columns, where its breaks allow that.

    Args:
      document: what to print.
      width: the columns of a line. Notes do not count: they stand to the right of all text.
      colour: whether to write the ANSI escape codes of styles.
      note_prefix: what stands before each note.
    """
    lines = _Lines()
    out = lines.write
    style = _PLAIN
    column = 0
    # What is still to be printed, the next at the end, with its indentation and whether it is
    # part of a line that was found to fit. A style on the stack is one to go back to.
    stack: list[tuple[Document, int, bool]] = [(document, 0, False)]
    push, pop = stack.append, stack.pop
    while stack:
        document, indentation, flat = pop()
        kind = type(document)
        if kind is str:
            out(document)
            column += len(document)
        elif kind is Concat:
            for part in reversed(document.parts):
                push((part, indentation, flat))
        elif kind is Break:
            if flat:
                out(document.flat)
                column += document.width
            else:
                lines.end(indentation)
                column = indentation
        elif kind is Group:
            fits = flat or column + document.width <= width
            push((document.document, indentation, fits))
        elif kind is Nest:
            push((document.document, indentation + document.by, flat))
        elif kind is Noted:
            lines.notes.extend(document.notes)
            push((document.document, indentation, flat))
        elif kind is Styled:
            push((document.document, indentation, flat))
            if colour:
                stack.insert(-1, (style, 0, False))
                style = (document.colour or style[0], document.intensity or style[1])
                out(style)
        else:
            style = document
            out(style)
    return lines.text(colour, note_prefix)


class _Lines:
    """The text so far: its pieces, in which a style stands as a tuple, and the notes of lines."""

    __slots__ = ("annotated", "notes", "pieces", "write")

    def __init__(self):
        self.pieces: list[Any] = []
        self.write = self.pieces.append
        self.notes: list[str] = []
        # Index in pieces of the end of a line that has notes -> the notes.
        self.annotated: dict[int, list[str]] = {}

    def end(self, indentation: int) -> None:
        if self.notes:
            self.annotated[len(self.pieces)] = self.notes
            self.notes = []
        self.write("\n" + " " * indentation)

    def text(self, colour: bool, note_prefix: str) -> str:
        if not colour and not self.annotated and not self.notes:
            return "".join(self.pieces)
        if self.notes:
            self.annotated[len(self.pieces)] = self.notes
        if self.annotated:
            self._write_notes(note_prefix, colour)
        return "".join(_with_escapes(self.pieces) if colour else self.pieces)

    def _write_notes(self, prefix: str, colour: bool) -> None:
        ends = [
            index
            for index, piece in enumerate(self.pieces)
            if type(piece) is str and piece.startswith("\n")
        ]
        ends.append(len(self.pieces))
        starts = [0, *ends]
        widths = []
        for start, end in zip(starts, ends):
            text = "".join(piece for piece in self.pieces[start:end] if type(piece) is str)
            widths.append(len(text.removeprefix("\n")))
        margin = max(widths)
        out: list[Any] = []
        for start, end, width in zip(starts, ends, widths):
            out += self.pieces[start:end]
            for number, note in enumerate(self.annotated.get(end, ())):
                pad = " " * (margin - (0 if number else width))
                out.append("\n" if number else "")
                text = f"{pad}{prefix}{note}"
                out += [(None, "dim"), text, (None, None)] if colour else [text]
        self.pieces = out


def _with_escapes(pieces: Iterable[Any]) -> Iterable[str]:
    """The pieces with the codes that switch styles, each as late as can be."""
    on = wanted = _PLAIN
    for piece in pieces:
        if type(piece) is tuple:
            wanted = piece
            continue
        # White space at the start of a line has no colour to show.
        if wanted != on and piece and not piece.startswith("\n"):
            yield _switch(on, wanted)
            on = wanted
        yield piece
    if on != _PLAIN:
        yield _switch(on, _PLAIN)


def _switch(on: tuple[str, str], wanted: tuple[str, str]) -> str:
    return ""
