"""The log of a run as one HTML page without scripts."""

import html
import os
import pathlib
import urllib.parse
from collections.abc import Sequence

from hlotools.cost.costs import time_text
from hlotools.html.page_file import THEME, asset
from hlotools.run_log.records import Record, RunRecords
from hlotools.run_log.summary import STAGES, RunSummary, reason_of, short_line

# The maximum number of rows; further ones are only counted.
_MAX_ROWS = 5000
# The events of the timeline.
_EVENTS = {
    "process": "begin",
    "trace": "trace",
    "recompile": "recompile",
    "disk_miss": "disk miss",
    "disk_hit": "disk hit",
    "lower": "lower",
    "compile": "compile",
    "compile_error": "error",
    "bundle": "bundle",
    "stuck": "stuck",
    "end": "end",
}
_FILES = {"html": "page", "hlo": "HLO", "mlir": "StableHLO", "txt": "report"}
# No script, and nothing from elsewhere; bars are placed by style attributes.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def log_page(run: RunRecords, path: str | os.PathLike[str], title: str = "") -> str:
    """Return the log of a run as one HTML page, which needs no network and runs no script.

    Args:
      run: a result of `read_log`.
      path: the file of the page, to which its links to the files of programs are relative.
      title: the title of the page; by default the folder's name.
    """
    summary = RunSummary(run)
    name = title or f"log of {run.folder.name or run.folder}"
    links = _Links(run, pathlib.Path(path))
    notes = [f'<p class="bad">{_text(note)}</p>' for note in summary.notes()]
    head = (
        f'<header class="top"><h1>{_text(name)}</h1><span class="kind">run</span>'
        f"<p>{_text(summary.title())}</p></header>"
    )
    body = [
        *notes,
        _stages(summary),
        _recompilations(summary),
        _slowest(summary, links),
        _caches(summary),
        _timeline(summary, links),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_text(name)}</title>\n<style>{asset((THEME, 'page_log.css'))[0]}</style></head>\n"
        f"<body>{head}\n<main>\n" + "\n".join(body) + "\n</main></body></html>\n"
    )


class _Links:
    """The links from a page to the files of programs."""

    def __init__(self, run: RunRecords, page: pathlib.Path):
        self._run = run
        self._from = page.absolute().parent

    def of(self, record: Record) -> str:
        """Return the links to the files of the program that a record made."""
        links: list[str] = []
        for suffix, label in _FILES.items():
            file = self._run.program_file(record, suffix)
            if file is not None:
                where = pathlib.Path(os.path.relpath(file.absolute(), self._from)).as_posix()
                links.append(f'<a href="{_text(_quoted(where))}">{label}</a>')
        return " ".join(links)


def _quoted(path: str) -> str:
    """Return a relative path as a URL."""
    return urllib.parse.quote(path)


def _stages(summary: RunSummary) -> str:
    rows = [
        (title, f"{summary.counts[stage]:,}", time_text(summary.stages[stage]))
        for stage, title in STAGES.items()
    ]
    return _table("Stages", ("stage", "times", "time"), rows, numbers=(1, 2))


def _recompilations(summary: RunSummary) -> str:
    rows: list[Sequence[str]] = []
    for function in summary.recompiled:
        for number, (why, count) in enumerate(function.reasons.most_common(20)):
            first = number == 0
            lines = ", ".join(line for line, _ in function.lines.most_common(3))
            rows.append(
                (
                    function.name if first else "",
                    f"{function.count:,}" if first else "",
                    time_text(function.seconds) if first else "",
                    lines if first else "",
                    f"{count:,}",
                    why,
                )
            )
    heads = ("function", "times", "time", "called at", "times", "reason")
    return _table("Recompilations", heads, rows, numbers=(1, 2, 4), texts=(5,))


def _slowest(summary: RunSummary, links: _Links) -> str:
    rows = [
        _cells(
            (record.name, STAGES[record.event], time_text(record.seconds), record.line),
            numbers=(2,),
        )
        + f"<td>{links.of(record)}</td>"
        for record in summary.slowest[:50]
    ]
    rows += [
        _cells((record.name, "did not end", "", record.line)) + "<td></td>"
        for record in summary.unfinished
    ]
    heads = ("function", "how", "time", "called at", "program")
    return _whole("Slowest compilations", heads, [f"<tr>{row}</tr>" for row in rows])


def _caches(summary: RunSummary) -> str:
    rows = [(f"{count:,}", why) for why, count in summary.caches.miss_reasons.most_common(50)]
    table = _table("Misses of the cache on disk", ("times", "reason"), rows, (0,), (1,))
    return f"<h2>Caches</h2><p>{_text(summary.cache_text())}</p>{table}"


def _timeline(summary: RunSummary, links: _Links) -> str:
    shown = [record for record in summary.run.records if record.event in _EVENTS]
    whole = max(summary.ended - summary.started, 1e-9)
    rows: list[str] = []
    several = len({record.process for record in shown}) > 1
    for record in shown[:_MAX_ROWS]:
        start = record.time - record.seconds - summary.started
        left, width = (min(max(100 * part / whole, 0.0), 100.0) for part in (start, record.seconds))
        bar = f"margin-left:{left:.2f}%;width:{min(width, 100 - left):.2f}%"
        what = reason_of(record) or record.text("error") or record.text("arguments")
        kind = record.event if record.event in STAGES else "other"
        style = ' class="eager"' if record.name in summary.eager else ""
        rows.append(
            f"<tr{style}>"
            + _cells((f"{start:.3f} s", *([record.process] if several else [])), numbers=(0,))
            + f'<td class="bar"><div class="{kind}" style="{bar}"></div></td>'
            + _cells(
                (
                    _EVENTS[record.event],
                    record.name,
                    time_text(record.seconds) if record.seconds else "",
                    short_line(record.line),
                    what,
                ),
                numbers=(2,),
                texts=(4,),
            )
            + f"<td>{links.of(record)}</td></tr>"
        )
    heads = ("at", *(["process"] if several else []), "", "event", "function", "time")
    heads += ("called at", "reason, arguments", "program")
    hidden_count = len(shown) - len(rows)
    more = (
        f"<p>and {hidden_count:,} more events, which are in the files of the log</p>"
        if hidden_count
        else ""
    )
    return _whole("Timeline", heads, rows) + more


def _table(
    title: str,
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    numbers: Sequence[int] = (),
    texts: Sequence[int] = (),
) -> str:
    return _whole(title, heads, [f"<tr>{_cells(row, numbers, texts)}</tr>" for row in rows])


def _whole(title: str, heads: Sequence[str], rows: Sequence[str]) -> str:
    if not rows:
        return f"<h2>{_text(title)}</h2><p>none</p>"
    head = "".join(f"<th>{_text(each)}</th>" for each in heads)
    return (
        f'<h2>{_text(title)}</h2><div class="wide"><table><tr>{head}</tr>'
        + "\n".join(rows)
        + "</table></div>"
    )


def _cells(cells: Sequence[str], numbers: Sequence[int] = (), texts: Sequence[int] = ()) -> str:
    written: list[str] = []
    for n, cell in enumerate(cells):
        kind = ' class="number"' if n in numbers else ' class="text"' if n in texts else ""
        written.append(f"<td{kind}>{_text(cell)}</td>")
    return "".join(written)


def _text(text: str) -> str:
    return html.escape(text, quote=True)
