"""The HTML file of a page: data, scripts and styles in one file, without network requests."""

import base64
import functools
import hashlib
import json
import linecache
import os
import pathlib
from collections.abc import Iterable
from html import escape
from typing import Any

from hlotools.html.frame import Page
from hlotools.html.page_model import Files
from hlotools.source_lines import cell_of

FORMAT = "hlofront.page/1"
_FOLDER = pathlib.Path(__file__).parent / "assets"
THEME = "page_theme.css"
STYLES = (
    THEME,
    "page.css",
    "page_program.css",
    "page_memory.css",
    "page_kernels.css",
    "page_diff.css",
)
SCRIPTS = (
    "page_base.js",
    "page_sources.js",
    "page_list.js",
    "page_layout.js",
    "page_blocks.js",
    "page_plans.js",
    "page_graph.js",
    "page_memory.js",
    "page_links.js",
    "page_kernel_table.js",
    "page_tpu_kernels.js",
    "page_gpu_kernels.js",
    "page_program.js",
    "page_pairs.js",
    "page_diff.js",
    "page_start.js",
)
# Of a longer source file only lines near those in use are on the page.
_LONGEST_FILE = 4000
_NEAR = 40


@functools.cache
def asset(names: tuple[str, ...]) -> tuple[str, str]:
    """Return the text of asset files, joined, and its hash for a page's security policy."""
    text = "\n".join((_FOLDER / name).read_text(encoding="utf-8") for name in names)
    digest = base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode()
    return text, f"'sha256-{digest}'"


def standing_alone(title: str, data: dict[str, Any], files: Files) -> Page:
    """Return a self-contained HTML page that shows data.

    The data cannot run or load code: it is JSON in which no tag can begin, the scripts write it as
    text, and the page's security policy allows only its own script and style.

    Args:
      title: the page's title.
      data: the data for the scripts, a dictionary for `json.dumps`.
      files: the source files that the data refers to by number.
    """
    style, style_digest = asset(STYLES)
    script, script_digest = asset(SCRIPTS)
    policy = (
        f"default-src 'none'; style-src {style_digest}; script-src {script_digest}; "
        "base-uri 'none'; form-action 'none'"
    )
    data = {
        **data,
        "format": FORMAT,
        "title": title,
        "files": _texts(files),
        "functions": files.functions.values,
    }
    # In JSON these three characters occur only in strings, where their escapes are equivalent.
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Page(
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style></head>\n"
        "<body><noscript>A script in this page draws it: allow scripts to see it.</noscript>\n"
        f'<script type="application/json" id="data">{text}</script>\n'
        f"<script>{script}</script></body></html>\n"
    )


def _texts(files: Files) -> list[dict[str, Any]]:
    """Return the names of source files, with the lines of those that are Python files."""
    texts = []
    for path, used in zip(files.paths.values, files.used, strict=True):
        name = cell_of(path) or os.path.basename(path.replace("\\", "/")) or path
        texts.append({"path": path, "name": name, "lines": _lines(path, used)})
    return texts


def _lines(path: str, used: Iterable[int]) -> dict[int, str]:
    # HLO text may name any file on this machine, and a page may be sent to others.
    # A name without a file is a notebook cell's.
    if not (path.endswith(".py") or (path in linecache.cache and not os.path.exists(path))):
        return {}
    lines = linecache.getlines(path)
    if len(lines) <= _LONGEST_FILE:
        return {n: line.rstrip() for n, line in enumerate(lines, 1)}
    near = {n for line in used for n in range(line - _NEAR, line + _NEAR)}
    return {n: lines[n - 1].rstrip() for n in sorted(near) if 1 <= n <= len(lines)}
