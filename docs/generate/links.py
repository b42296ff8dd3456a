"""Links in the repository's Markdown, which lead to other places on the site than on disk."""

import os
import pathlib
import re
from collections.abc import Callable

DOCS = pathlib.Path(__file__).parents[1]
ROOT = DOCS.parent
# Files outside of docs/ that are also pages of the site.
PAGES = {
    "ARCHITECTURE.md": "/explanation/architecture.md",
    "CHANGELOG.md": "/reference/changelog.md",
    "CONTRIBUTING.md": "/explanation/contributing.md",
    "GLOSSARY.md": "/reference/glossary.md",
    "README.md": "/index.md",
    "SECURITY.md": "/explanation/trust.md",
    "benchmarks/RESULTS.md": "/explanation/measured.md",
}
_LINK = re.compile(r"(?<!`)(\]\()([^)\s#:]+)(#[^)\s]*)?(\))")


def for_site(text: str, folder: pathlib.Path, source_url: str) -> str:
    """Return Markdown whose links lead to pages of the site, or to the source on the web.

    Args:
      text: the Markdown.
      folder: the folder from which its relative links start.
      source_url: the address of the repository on the web.
    """

    def replaced(match: re.Match[str]) -> str:
        opening, target, anchor, closing = match.groups(default="")
        if target.startswith("/"):
            return match[0]
        path = pathlib.Path(os.path.normpath(folder / target))
        if not path.is_relative_to(ROOT) or not path.exists():
            return match[0]
        name = path.relative_to(ROOT).as_posix()
        if name in PAGES:
            target = PAGES[name]
        elif path.suffix == ".ipynb":
            target = f"/tutorials/{path.name}"
        elif path.is_relative_to(DOCS):
            target = f"/{path.relative_to(DOCS).as_posix()}" if path.suffix == ".md" else target
        else:
            kind = "tree" if path.is_dir() else "blob"
            return f"{opening}{source_url}/{kind}/main/{name}{anchor}{closing}"
        return f"{opening}{target}{anchor}{closing}"

    return outside_of_code(text, lambda part: _LINK.sub(replaced, part))


def outside_of_code(text: str, change: Callable[[str], str]) -> str:
    """Return Markdown in which all but the fenced blocks is changed by a function."""
    parts = re.split(r"(^```.*?^```[ ]*$)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("```") else change(part) for part in parts)
