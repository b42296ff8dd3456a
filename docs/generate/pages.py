"""Connects the generated pages and the repository's own files with Sphinx's build."""

import json
import pathlib
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from sphinx.addnodes import desc_signature, pending_xref

from generate import api, command_line, gallery, links, machine_readable

DOCS, ROOT = links.DOCS, links.ROOT
# Parts of pages that are copied from the repository, with links that hold on the site.
PARTS = DOCS / "_generated"
# What is published as it is, at the site's top.
EXTRA = PARTS / "extra"
NOTEBOOKS = DOCS / "tutorials"
REFERENCE = DOCS / "reference"
# Pages that no one edits, by how their names begin.
GENERATED = ("reference/api/", "reference/command_line", "reference/options")


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
        # Of cells that begin with ! or %, too.
        notebook["metadata"]["language_info"] = {"name": "python", "pygments_lexer": "ipython3"}
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
        digest = gallery.digest_of_sources()
        # Most of this is waiting for other processes.
        with ThreadPoolExecutor(2) as threads:
            drawn = threads.submit(gallery.draw, EXTRA / "gallery" / "pages", digest)
            printed = threads.submit(command_line.printed, PARTS / "commands.json", digest, write)
            api.write_all(REFERENCE / "api", write)
            drawn.result()
            command_line.write_all(REFERENCE, printed.result(), write)

    def read(app: Any, name: str, source: list[str]) -> None:
        path = pathlib.Path(app.env.doc2path(name))
        if path.suffix == ".md":
            source[0] = links.for_site(source[0], path.parent, source_url)

    def flatten(app: Any, doctree: Any) -> None:
        # Sphinx would search all names for each type in a signature: they are left as text.
        for signature in doctree.findall(desc_signature):
            for reference in [*signature.findall(pending_xref)]:
                reference.replace_self(reference.children)

    def address(app: Any, name: str, template: str, context: dict[str, Any], doctree: Any) -> None:
        edit = f"{source_url}/edit/main"
        if name.startswith(GENERATED) or name in ("404", "search", "genindex"):
            context["page_source_suffix"] = ""
        elif name.startswith("tutorials/") and name != "tutorials/index":
            file = f"notebooks/{pathlib.Path(name).name}.ipynb"
            context["theme_source_edit_link"] = f"{edit}/{file}"
            context["theme_source_view_link"] = f"{source_url}/blob/main/{file}"
        if name == "404":
            # It is shown at any address, so its links start from the site's.
            base = f'<base href="{app.config.html_baseurl}">'
            context["metatags"] = context.get("metatags", "") + base

    def finish(app: Any, error: Exception | None) -> None:
        if error is None and app.builder.name == "html":
            machine_readable.write_all(app, write)

    app.connect("html-page-context", address, priority=900)
    app.connect("build-finished", finish)
    app.connect("doctree-read", flatten)
    app.connect("builder-inited", make)
    app.connect("source-read", read)


def clean() -> None:
    """Remove what was generated."""
    shutil.rmtree(PARTS, ignore_errors=True)
