"""The differences of two programs as a self-contained HTML page, or as a notebook fragment."""

import contextlib
import html
import linecache
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hlotools.collection import paused_collection
from hlotools.cost.rates import DeviceRates
from hlotools.html.kernels_tab import KernelTab, add_kernels
from hlotools.html.page_file import standing_alone
from hlotools.html.page_model import Files
from hlotools.html.program_page import Facts, program_data
from hlotools.html.side_by_side import hlo_pairs, line_pairs
from hlotools.ir.jaxpr_parser import read_jaxpr
from hlotools.ir.mlir_lines import jaxpr_lines, stablehlo_lines
from hlotools.ir.stablehlo_parser import read_stablehlo
from hlotools.matching.changes import Change

ValueTable = Mapping[str, Any]
# The text of a program, the rates of its device, and its kernels; None for unknown ones.
Program = tuple[str, DeviceRates | None, KernelTab | None]

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
.hlofront-diff .part { padding-left: 2rem; }
.hlofront-diff .where { color: var(--dim); }
"""


def fragment(
    title: str, a: str, b: str, totals: Sequence[tuple[str, int, int]], changes: Sequence[Change]
) -> str:
    """Return the differences as an HTML fragment for a notebook."""
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
        for change in changes:
            parts.append(_row(change))
            parts += [_row(part, "part") for part in _all_parts(change)]
        parts.append("</table>")
    return "\n".join([*parts, "</div>"])


@paused_collection()
def page(
    diffs: Mapping[str, Any],
    title: str = "",
    table: ValueTable | None = None,
    programs: Mapping[str, Program] | None = None,
) -> str:
    """Return differences as a self-contained HTML page, with both programs side by side.

    Args:
      diffs: results of `diff` by their names; the page shows one at a time.
      title: the title of the page; by default that of the first diff.
      table: a table above the diffs: column headings, rows of a title and texts, and below it
        errors and notes.
      programs: texts of programs by their names, which the page also shows, with the rates of
        their devices, and their kernels for TPUs.
    """
    files = Files()
    listed = [
        {
            "label": label,
            "title": diff.title,
            "kind": diff.kind,
            "sides": [diff.a.label, diff.b.label],
            "totals": diff.total_rows(),
            "changes": [
                {**_listed_change(change, files), "under": under}
                for change, under in zip(*_unfolded(diff.changes), strict=True)
            ],
            **_pairs(diff, files),
        }
        for label, diff in diffs.items()
    ]
    shown = title or (listed[0]["title"] if listed else "compared")
    data = {"view": "diff", "diffs": listed, "table": table}
    data["programs"] = [
        _listed_program(label, *each, files) for label, each in (programs or {}).items()
    ]
    return standing_alone(shown, data, files)


def _listed_program(
    label: str, text: str, rates: DeviceRates | None, kernels: KernelTab | None, files: Files
) -> dict[str, Any]:
    facts: Facts = []
    data, _ = program_data(text, files, rates, facts)
    if kernels is not None:
        add_kernels(data, kernels)
    return {"label": label, "title": label, "program": data.as_dict(), "facts": facts}


def _unfolded(changes: Sequence[Change]) -> tuple[list[Change], list[int]]:
    """Return changes followed by their parts, and for each the index of its heading.

    Parts of parts, such as those of a finding under a cause, are under the same heading.
    """
    unfolded: list[Change] = []
    under: list[int] = []
    for change in changes:
        heading = len(unfolded)
        parts = list(_all_parts(change))
        unfolded += [change, *parts]
        under += [-1, *[heading] * len(parts)]
    return unfolded, under


def _all_parts(change: Change) -> Iterator[Change]:
    for part in change.parts:
        yield part
        yield from _all_parts(part)


def _pairs(diff: Any, files: Files) -> dict[str, Any]:
    changes, _ = _unfolded(diff.changes)
    modules = diff._modules
    if modules is None and diff.a.text == diff.b.text:
        read = read_stablehlo if diff.kind == "stablehlo" else read_jaxpr
        with contextlib.suppress(ValueError):
            modules = (read(diff.a.text),) * 2
    if modules is not None:
        rates = (diff.a.rates, diff.b.rates) if diff.kind == "hlo" else None
        return hlo_pairs(*modules, changes, diff._matching, files, rates)
    # Texts that cannot be parsed are compared by lines, as in `diff`.
    lines_of = stablehlo_lines if diff.kind == "stablehlo" else jaxpr_lines
    before, after = (lines_of(side.text) for side in (diff.a, diff.b))
    return line_pairs(before, after, changes, files)


def _listed_change(change: Change, files: Files) -> dict[str, Any]:
    """Return a change as data for the page: its sentence, and its lines on both sides."""
    lines = [
        sorted({(files.number(p.file, [p.line]), p.line) for p in side if p.file})[:6]
        for side in (change.a, change.b)
    ]
    return {"kind": change.kind, "text": change.sentence, "a": lines[0], "b": lines[1]}


def _row(change: Change, style: str = "") -> str:
    sources: dict[str, str] = {}
    for site in (*change.a, *change.b):
        if site.source and len(sources) < 5:
            code = linecache.getline(site.file, site.line).strip() if site.line else ""
            sources[site.source] = code
    where = "<br>".join(
        f'<span class="where">{_text(source)}</span>'
        + (f" <code>{_text(code)}</code>" if code else "")
        for source, code in sources.items()
    )
    return (
        f'<tr><td class="{_text(change.kind)} {style}">{_text(change.sentence)}</td>'
        f"<td><code>{_text(change.before)}</code></td><td><code>{_text(change.after)}</code></td>"
        f"<td>{where}</td></tr>"
    )


def _text(text: str) -> str:
    return html.escape(text, quote=True)
