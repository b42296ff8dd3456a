"""Writes FILES.md, the map of the source tree: `python scripts/write_file_tree.py [--check]`.

Each line is a file and the first sentence of its docstring, in the order of the layers. `--check`
writes nothing, and fails where FILES.md is not what would be written.
"""

import ast
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = ROOT / "FILES.md"
# The layers from the lowest to the highest; folders that are not named here follow by name.
LAYERS = (
    *("bridge", "base", "core", "primitives", "transforms", "higher_order", "lowering", "pjrt"),
    *("runtime", "numpy", "random", "nn", "scipy", "image"),
)
HEADER = """# The files

Every source file with the first sentence of its docstring, layer by layer.
ARCHITECTURE.md says how the layers fit together.
`python scripts/write_file_tree.py` writes this page.
"""


def sentence(path: pathlib.Path) -> str:
    """Return the first paragraph of a module's docstring, as one line."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return " ".join(docstring.split("\n\n")[0].split())


def section(title: str, folder: pathlib.Path, recursive: bool) -> list[str]:
    """Return the lines of one folder: a heading, and a row per module that says something."""
    paths = sorted(folder.rglob("*.py") if recursive else folder.glob("*.py"))
    rows = [f"- `{path.relative_to(folder)}`: {text}" for path in paths if (text := sentence(path))]
    return [f"\n## {title}\n", *rows]


def tree() -> str:
    """Return the text of FILES.md for the sources as they are now."""
    package = ROOT / "hlofront"
    folders = {path.name for path in package.iterdir() if (path / "__init__.py").exists()}
    lines = [HEADER, *section("hlofront/", package, recursive=False)]
    for name in (*LAYERS, *sorted(folders - set(LAYERS))):
        lines += section(f"hlofront/{name}/", package / name, recursive=True)
    lines += section("hlotools/", ROOT / "hlotools", recursive=True)
    return "\n".join(lines).replace("\n\n\n", "\n\n") + "\n"


def main() -> None:
    text = tree()
    if "--check" not in sys.argv:
        TARGET.write_text(text, encoding="utf-8")
    elif not TARGET.exists() or TARGET.read_text(encoding="utf-8") != text:
        sys.exit("FILES.md is not what the docstrings say: run python scripts/write_file_tree.py")


if __name__ == "__main__":
    main()
