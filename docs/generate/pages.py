"""Connects the generated pages and the repository's own files with Sphinx's build."""

import json
import pathlib
import re
import shutil
from typing import Any

from sphinx.addnodes import desc_signature, pending_xref

from generate import api, links

DOCS, ROOT = links.DOCS, links.ROOT
# Parts of pages that are copied from the repository, with links that hold on the site.
PARTS = DOCS / "_generated"
# What is published as it is, at the site's top.
EXTRA = PARTS / "extra"
NOTEBOOKS = DOCS / "tutorials"


def version() -> str:
    """Return the version of hlofront, without importing it."""
    text = (ROOT / "hlofront" / "base" / "version.py").read_text(encoding="utf-8")
    return re.findall(r'__version__ = "(.*)"', text)[0]


def write(path: pathlib.Path, text: str) -> None:
    """Write a file if its text is new, so that Sphinx reads again only what changed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def copy_parts(source_url: str) -> None:
    """Copy the repository's pages, which pages of the site include."""
    for name in links.PAGES:
        path = ROOT / name
        if path.exists():
            text = links.for_site(path.read_text(encoding="utf-8"), path.parent, source_url)
            # Not .md: these are parts of pages, and the tests of prose read the originals.
            write(PARTS / f"{path.stem.lower()}.txt", text)


def copy_notebooks(source_url: str) -> None:
    """Copy the notebooks with the outputs that they keep."""
    found = {path.name: path for path in (ROOT / "notebooks").glob("*.ipynb")}
    for path in NOTEBOOKS.glob("*.ipynb"):
        if path.name not in found:
            path.unlink()
    for name, path in found.items():
        notebook = json.loads(path.read_text(encoding="utf-8"))
        for cell in notebook["cells"]:
            if cell["cell_type"] == "markdown":
                text = "".join(cell["source"])
                cell["source"] = links.for_site(text, path.parent, source_url)
        write(NOTEBOOKS / name, json.dumps(notebook, indent=1))


def connect(app: Any, source_url: str) -> None:
    """Make the generated pages when Sphinx starts, and change links where it reads a page."""

    def make(app: Any) -> None:
        copy_parts(source_url)
        copy_notebooks(source_url)
        api.write_all(DOCS / "reference" / "api", write)

    def read(app: Any, name: str, source: list[str]) -> None:
        path = pathlib.Path(app.env.doc2path(name))
        if path.suffix == ".md":
            source[0] = links.for_site(source[0], path.parent, source_url)

    def flatten(app: Any, doctree: Any) -> None:
        # Sphinx would search all names for each type in a signature: they are left as text.
        for signature in doctree.findall(desc_signature):
            for reference in [*signature.findall(pending_xref)]:
                reference.replace_self(reference.children)

    app.connect("doctree-read", flatten)
    app.connect("builder-inited", make)
    app.connect("source-read", read)


def clean() -> None:
    """Remove what was generated."""
    shutil.rmtree(PARTS, ignore_errors=True)
