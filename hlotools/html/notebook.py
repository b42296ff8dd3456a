"""Programs in notebooks: the page itself in a frame, and the text for viewers that show none."""

import html

from hlotools.html.program_page import page
from hlotools.ir.styles import styled

# A notebook keeps the page of each displayed result, and some viewers load all of them together.
_LARGEST = 6 << 20
_HEIGHT = 640


def program_html(title: str, text: str, program: object | None = None) -> str:
    """Return a program as an HTML fragment for a notebook: its page, and its text folded.

    Args:
      title: the heading.
      text: the program's text.
      program: the program for the page, if it is more than its text; as for `page`.
    """
    shown = html.escape(styled(text, "short"))
    folded = f'<pre style="max-height: 40em; overflow: auto">{shown}</pre>'
    return folded_html(title, folded) + frame(page(program or text))


def folded_html(title: str, fragment: str) -> str:
    """Return a heading that expands to an HTML fragment."""
    return f"<details><summary><code>{html.escape(title)}</code></summary>{fragment}</details>"


def frame(document: str) -> str:
    """Return a page in a frame, which has no access to the notebook; a note for too large ones."""
    if len(document) > _LARGEST:
        return (
            f"<p>The page has {len(document) >> 20} MiB: write it to a file, with "
            "<code>hlofront.inspect.page</code>, <code>hlotools.page</code> or "
            "<code>Diff.html()</code>.</p>"
        )
    return (
        f'<iframe srcdoc="{html.escape(document, quote=True)}" sandbox="allow-scripts" '
        f'style="width: 100%; height: {_HEIGHT}px; border: 1px solid #8885"></iframe>'
    )
