"""The differences of two programs as a page that stands alone."""

import html
import linecache
from collections.abc import Sequence

from hlofront.inspect.changes import Change

_STYLE = """
.hlofront-diff { color-scheme: light dark; --line: #d0d7de; --dim: #57606a; --text: #1f2328;
  --paper: #ffffff; --add: #1a7f37; --remove: #cf222e; --move: #9a6700; --shade: #f6f8fa;
  font: 14px/1.5 system-ui, sans-serif; color: var(--text); background: var(--paper);
  padding: 1rem; overflow-wrap: anywhere; }
@media (prefers-color-scheme: dark) { .hlofront-diff { --line: #30363d; --dim: #9198a1;
  --text: #e6edf3; --paper: #0d1117; --add: #3fb950; --remove: #f85149; --move: #d29922;
  --shade: #161b22; } }
.hlofront-diff h1 { font-size: 1.25rem; margin: 0 0 .5rem; }
.hlofront-diff .sides { color: var(--dim); margin: 0 0 1rem; }
.hlofront-diff table { border-collapse: collapse; margin: 0 0 1rem; max-width: 100%; }
.hlofront-diff th, .hlofront-diff td { border: 1px solid var(--line); padding: .3rem .6rem;
  text-align: left; vertical-align: top; background: transparent; color: inherit; }
.hlofront-diff th { background: var(--shade); }
.hlofront-diff td.number { text-align: right; font-variant-numeric: tabular-nums; }
.hlofront-diff code { font: 12px/1.5 ui-monospace, monospace; white-space: pre-wrap;
  background: transparent; color: inherit; }
.hlofront-diff .added { color: var(--add); } .hlofront-diff .removed { color: var(--remove); }
.hlofront-diff .split, .hlofront-diff .merged, .hlofront-diff .regrouped { color: var(--move); }
.hlofront-diff .where { color: var(--dim); }
"""


def fragment(
    title: str, a: str, b: str, totals: Sequence[tuple[str, int, int]], changes: Sequence[Change]
) -> str:
    """The differences as a piece of a page, such as a notebook shows."""
    parts = [
        f"<style>{_STYLE}</style>",
        f'<div class="hlofront-diff"><h1>{_text(title)}</h1>',
        f'<p class="sides">a: {_text(a)}<br>b: {_text(b)}</p>',
    ]
    if totals:
        parts.append("<table><tr><th>total</th><th>a</th><th>b</th><th>difference</th></tr>")
        for key, before, after in totals:
            parts.append(
                f'<tr><td>{_text(key.replace("_", " "))}</td><td class="number">{before:,}</td>'
                f'<td class="number">{after:,}</td><td class="number">{after - before:+,}</td></tr>'
            )
        parts.append("</table>")
    if changes:
        parts.append("<table><tr><th>change</th><th>a</th><th>b</th><th>source</th></tr>")
        parts += map(_row, changes)
        parts.append("</table>")
    return "\n".join([*parts, "</div>"])


def page(
    title: str, a: str, b: str, totals: Sequence[tuple[str, int, int]], changes: Sequence[Change]
) -> str:
    """The differences as a whole page: no scripts, nothing from elsewhere."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{_text(title)}</title><style>body {{ margin: 0; }}</style></head>\n<body>\n"
        f"{fragment(title, a, b, totals, changes)}\n</body></html>\n"
    )


def _row(change: Change) -> str:
    sources: dict[str, str] = {}
    for place in (*change.a, *change.b):
        if place.source and len(sources) < 5:
            code = linecache.getline(place.file, place.line).strip() if place.line else ""
            sources[place.source] = code
    where = "<br>".join(
        f'<span class="where">{_text(source)}</span>'
        + (f" <code>{_text(code)}</code>" if code else "")
        for source, code in sources.items()
    )
    return (
        f'<tr><td class="{_text(change.kind)}">{_text(change.sentence)}</td>'
        f"<td><code>{_text(change.before)}</code></td><td><code>{_text(change.after)}</code></td>"
        f"<td>{where}</td></tr>"
    )


def _text(text: str) -> str:
    return html.escape(text, quote=True)
