"""Programs in notebooks: the page itself in a frame, and the text for viewers that show none."""

import html

from hlotools.html.frame import frame
from hlotools.html.program_page import page
from hlotools.ir.styles import styled


def program_html(title: str, text: str, program: object | None = None) -> str:
    """Return a program as an HTML fragment for a notebook: its page, and its text folded.

    Args:
      title: the heading.
      text: the program's text.
      program: the program for the page, as for `page`; by default its text.
    """
    shown = html.escape(styled(text, "short"))
    folded = f'<pre style="max-height: 40em; overflow: auto">{shown}</pre>'
    return folded_html(title, folded) + frame(page(program or text))


def folded_html(title: str, fragment: str) -> str:
    """Return a heading that expands to an HTML fragment."""
    return f"<details><summary><code>{html.escape(title)}</code></summary>{fragment}</details>"
