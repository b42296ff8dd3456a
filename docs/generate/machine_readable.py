"""llms.txt and llms-full.txt: the site's table of contents, and its whole text, for programs."""

import json
import pathlib
import re
from collections.abc import Callable
from typing import Any

_SECTIONS = {
    "howto": "How-to guides",
    "tutorials": "Tutorials",
    "reference": "Reference",
    "explanation": "Explanation",
    "gallery": "Gallery",
}


def write_all(app: Any, write: Callable[[pathlib.Path, str], None]) -> None:
    """Write llms.txt, and llms-full.txt with the source of each page but those of the API."""
    base = app.config.html_baseurl
    titles = {name: node.astext() for name, node in app.env.titles.items() if name != "404"}
    top = (
        "A front-end over XLA through PJRT with the API of JAX 0.10.2; each stage can be inspected."
    )
    lines = ["# hlofront", "", f"> {top}", ""]
    for folder, heading in _SECTIONS.items():
        names = sorted(name for name in titles if name.startswith(f"{folder}/"))
        lines += [f"## {heading}", ""]
        lines += [f"- [{titles[name]}]({base}{name}.html)" for name in names]
        lines.append("")
    out = pathlib.Path(app.outdir)
    write(out / "llms.txt", "\n".join(lines))
    parts = []
    for name in sorted(titles, key=lambda name: (name != "index", name)):
        path = pathlib.Path(app.env.doc2path(name))
        if path.suffix == ".ipynb":
            text = _notebook(path)
        else:
            text = path.read_text(encoding="utf-8")
            text = re.sub(
                r"```\{include\} \.\./(\S+)\n```",
                lambda match: (app.srcdir / match[1]).read_text(encoding="utf-8"),
                text,
            )
        parts.append(f"<!-- {base}{name}.html -->\n\n{text.strip()}\n")
    write(out / "llms-full.txt", "\n".join(parts))


def _notebook(path: pathlib.Path) -> str:

    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    texts = []
    for cell in cells:
        text = "".join(cell["source"])
        texts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
    return "\n\n".join(texts)
