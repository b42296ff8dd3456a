"""Prints every source file with the first sentence of its docstring, in the order of the layers.

`python scripts/list_files.py [FOLDER...]`, such as `runtime` or `numpy/linalg`, prints those below
these folders of hlofront.
"""

import ast
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The layers from the lowest to the highest; folders that are not named here follow by name.
LAYERS = (
    *("bridge", "base", "core", "primitives", "transforms", "higher_order", "lowering", "pjrt"),
    *("runtime", "pallas", "numpy", "random", "nn", "scipy", "image"),
)


def sentence(path: pathlib.Path) -> str:
    """Return the first paragraph of a module's docstring, as one line."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return " ".join(docstring.split("\n\n")[0].split())


def show(title: str, folder: pathlib.Path, *, recursive: bool) -> None:
    """Print a heading, and a line for each module of a folder."""
    print(f"\n{title}")
    for path in sorted(folder.rglob("*.py") if recursive else folder.glob("*.py")):
        if text := sentence(path):
            print(f"  {path.relative_to(folder)}: {text}")


def main(folders: list[str]) -> None:
    package = ROOT / "hlofront"
    if folders:
        for name in folders:
            show(f"hlofront/{name}", package / name, recursive=True)
        return
    show("hlofront", package, recursive=False)
    names = {path.name for path in package.iterdir() if (path / "__init__.py").exists()}
    for name in (*LAYERS, *sorted(names - set(LAYERS))):
        show(f"hlofront/{name}", package / name, recursive=True)
    show("hlotools", ROOT / "hlotools", recursive=True)


if __name__ == "__main__":
    main(sys.argv[1:])
