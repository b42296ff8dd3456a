"""Reports in notebooks, as small HTML fragments."""

import html
from collections.abc import Sequence

from hlotools.terminal_text import visible


def report_html(
    title: str, head: Sequence[str], rows: Sequence[Sequence[str]], text: str = ""
) -> str:
    """Return a report as an HTML fragment: a table, whose last column is code, and text below."""
    right = 'style="text-align: right"'
    cells = [f"<th {right}>{html.escape(cell)}</th>" for cell in head]
    lines = [f"<tr>{''.join(cells)}<th></th></tr>"]
    for *numbers, code in rows:
        cells = [f"<td {right}>{html.escape(visible(number))}</td>" for number in numbers]
        cells.append(f'<td style="text-align: left"><code>{html.escape(visible(code))}</code></td>')
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return f"<b>{html.escape(visible(title))}</b><table>{''.join(lines)}</table>{text_html(text)}"


def text_html(text: str, title: str = "") -> str:
    """Return text as an HTML fragment, its columns aligned, with a title above."""
    heading = f"<b>{html.escape(visible(title))}</b>" if title else ""
    return f'{heading}<pre style="overflow-x: auto">{html.escape(visible(text))}</pre>'
