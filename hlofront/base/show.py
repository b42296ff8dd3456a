"""Pretty printing to a line width, of documents with optional line breaks.

A document is a string or an instance of one of the classes below, built by the functions below.
`render` prints a group on one line if it fits into the rest of the width, else each of its own
breaks becomes a new line, while nested groups are laid out independently. The algebra is Oppen's
("Prettyprinting", TOPLAS 1980) in Wadler's form ("A prettier printer", 2003). A group considers
only its own contents, not the text after it: documents store their width, so each decision takes
constant time and printing is linear. Nothing recurses, so depth is unlimited.
"""

from collections.abc import Iterable, Sequence


class Break:
    """A possible line break, printed as `flat` if its group is on one line."""

    __slots__ = ("flat", "width")

    def __init__(self, flat: str):
        self.flat = flat
        self.width = len(flat)


class Concat:
    """A sequence of documents, printed consecutively."""

    __slots__ = ("parts", "width")

    def __init__(self, parts: "Sequence[Document]"):
        self.parts = parts
        width = 0
        for part in parts:
            width += len(part) if isinstance(part, str) else part.width
        self.width = width


class Nest:
    """A document whose new lines are indented by `by` more columns."""

    __slots__ = ("by", "document", "width")

    def __init__(self, by: int, document: "Document"):
        self.by = by
        self.document = document
        self.width = width_of(document)


class Group:
    """A document that is printed on one line if it fits."""

    __slots__ = ("document", "width")

    def __init__(self, document: "Document"):
        self.document = document
        self.width = width_of(document)


class Styled:
    """A document with a terminal color and intensity; None inherits the enclosing one."""

    __slots__ = ("color", "document", "intensity", "width")

    def __init__(self, document: "Document", color: str | None, intensity: str | None):
        self.document = document
        self.color = color
        self.intensity = intensity
        self.width = width_of(document)


class Noted:
    """A document with notes, which are printed to the right of its first line."""

    __slots__ = ("document", "notes", "width")

    def __init__(self, document: "Document", notes: Sequence[str]):
        self.document = document
        self.notes = notes
        self.width = width_of(document)


Document = str | Break | Concat | Nest | Group | Styled | Noted


def width_of(document: Document) -> int:
    """Return the width of a document in columns when printed on one line."""
    return len(document) if isinstance(document, str) else document.width


concat = Concat
nest = Nest
group = Group
noted = Noted

LINE = Break(" ")
SOFT_LINE = Break("")
# A break in a group of its own: many of these fill lines, as in a paragraph.
FILL = Group(LINE)


def styled(document: Document, color: str | None = None, intensity: str | None = None) -> Styled:
    """Return a document in a color, such as "red", or intensity: "dim", "normal" or "bright"."""
    return Styled(document, color, intensity)


def join(separator: Document, documents: Iterable[Document]) -> Concat:
    """Return a document that joins several documents with a separator."""
    parts: list[Document] = []
    for document in documents:
        parts.append(document)
        parts.append(separator)
    return Concat(parts[:-1])


def fill(documents: Sequence[Document], separator: Document = FILL) -> Document:
    """Return a document that fills lines with as many documents as fit, and indents later ones."""
    return documents[0] if len(documents) == 1 else Nest(2, join(separator, documents))


def block(opening: Document, documents: Sequence[Document], closing: Document) -> Group:
    """Return a document of documents in brackets: on one line, or on indented lines."""
    inside = Nest(2, Concat((SOFT_LINE, join(LINE, documents))))
    return Group(Concat((opening, inside, SOFT_LINE, closing)))


# ---- layout ----------------------------------------------------------------------------------

# A style: a color and an intensity, both as numbers of ANSI escape codes.
_Style = tuple[int, int]
# A piece of a line: text, or a style to switch to.
_Piece = str | _Style
_PLAIN: _Style = (39, 22)
_COLORS = {
    name: 30 + code
    for code, name in enumerate(
        ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
    )
}
_INTENSITIES = {"dim": 2, "normal": 22, "bright": 1}


def render(
    document: Document, width: int = 80, *, color: bool = False, note_prefix: str = " # "
) -> str:
    """Return a document as text, in lines of at most `width` columns if its breaks permit.

    Args:
      document: the document to print.
      width: the columns of a line. Notes do not count: they are to the right of all text.
      color: whether to write the ANSI escape codes of styles.
      note_prefix: the text before each note.
    """
    # A line is its indentation, then text and, if colors are on, styles to switch to.
    line: list[_Piece] = [""]
    lines = [line]
    notes: dict[int, list[str]] = {}
    style = _PLAIN
    column = 0
    # Documents still to print, the next one last, each with its indentation and whether it is in a
    # group that fits on the line. A style on the stack is one to restore.
    stack: list[tuple[Document | _Style, int, bool]] = [(document, 0, False)]
    push, pop = stack.append, stack.pop
    while stack:
        piece, indentation, flat = pop()
        if isinstance(piece, tuple):
            style = piece
            line.append(style)
            continue
        document = piece
        if isinstance(document, str):
            line.append(document)
            column += len(document)
        elif isinstance(document, Concat):
            for part in reversed(document.parts):
                push((part, indentation, flat))
        elif isinstance(document, Break):
            if flat:
                line.append(document.flat)
                column += document.width
            else:
                line = [" " * indentation] if style is _PLAIN else [" " * indentation, style]
                lines.append(line)
                column = indentation
        elif isinstance(document, Group):
            push((document.document, indentation, flat or column + document.width <= width))
        elif isinstance(document, Nest):
            push((document.document, indentation + document.by, flat))
        elif isinstance(document, Noted):
            notes.setdefault(len(lines) - 1, []).extend(document.notes)
            push((document.document, indentation, flat))
        else:
            if color:
                push((style, 0, False))
                style = (
                    _COLORS[document.color] if document.color else style[0],
                    _INTENSITIES[document.intensity] if document.intensity else style[1],
                )
                line.append(style)
            push((document.document, indentation, flat))
    if notes:
        _write_notes(lines, notes, note_prefix, color)
    if color:
        _write_escapes(lines)
    return "\n".join(
        ["".join(piece for piece in pieces if isinstance(piece, str)) for pieces in lines]
    )


def _write_notes(
    lines: list[list[_Piece]], notes: dict[int, list[str]], prefix: str, color: bool
) -> None:
    """Append notes to lines, aligned in a column to the right of all text."""
    widths = [sum(len(piece) for piece in line if isinstance(piece, str)) for line in lines]
    margin = max(widths)
    on, off = ("\x1b[2m", "\x1b[22m") if color else ("", "")
    for number, of_line in notes.items():
        column = widths[number]
        remarks: list[str] = []
        for note in of_line:
            remarks.append(f"{on}{' ' * (margin - column)}{prefix}{note}{off}")
            column = 0
        if color:
            lines[number].append(_PLAIN)
        lines[number].append("\n".join(remarks))


def _write_escapes(lines: list[list[_Piece]]) -> None:
    """Replace styles in lines by ANSI escape codes, each as late as possible."""
    on = next_style = _PLAIN
    for line in lines:
        # The first piece is indentation, whose style is invisible.
        for index, piece in enumerate(line):
            if isinstance(piece, tuple):
                next_style = piece
                line[index] = ""
            elif piece and index and next_style != on:
                line[index] = _switch(on, next_style) + piece
                on = next_style
    if on != _PLAIN:
        lines[-1].append(_switch(on, _PLAIN))


def _switch(on: _Style, next_style: _Style) -> str:
    codes = ";".join(str(new) for old, new in zip(on, next_style, strict=True) if old != new)
    return f"\x1b[{codes}m"
