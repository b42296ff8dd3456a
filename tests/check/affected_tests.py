"""Which test files a change most likely breaks, the likeliest first.

    python -m tests.check.affected_tests hlofront/transforms/jvp.py

A changed test file comes first; then tests named for a changed module, in the folder that mirrors
its layer; then tests that import a changed module; then the other tests of that folder. A change of
a helper of tests is followed to the tests that import it.
"""

import ast
import functools
import keyword
import pathlib
import re
import sys
from collections.abc import Iterable

ROOT = pathlib.Path(__file__).parents[2]
TESTS = ROOT / "tests"
# These have steps of their own in `./check quick`.
ALWAYS_RUN = ("tests/conventions/", "tests/smoke/")
# Folders of the packages.
ABOUT_DEVICES = {"collectives", "shard_map", "sharding"}
# Tests that take minutes are chosen by -k: see `words_of`.
LARGE = (
    "tests/against_jax/test_corpora.py",
    "tests/systematic/test_samples.py",
)


def dotted(path: str) -> str:
    """Return the name of the module in a file."""
    parts = pathlib.PurePosixPath(path).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def imports_of(path: str) -> frozenset[str]:
    """Return the modules of this repository that a file of the tests imports, by name."""
    names = set()
    for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(n for n in names if n.startswith(("hlofront.", "hlotools.", "tests.")))


@functools.cache
def files_of_tests() -> tuple[str, ...]:
    return tuple(sorted(str(path.relative_to(ROOT)) for path in TESTS.rglob("*.py")))


def is_test(path: str) -> bool:
    return pathlib.PurePosixPath(path).name.startswith("test_")


def importers(modules: Iterable[str]) -> set[str]:
    """Return the files of the tests that import these modules, directly or by helpers of tests."""
    waiting, reached = set(modules), set()
    while waiting:
        module = waiting.pop()
        for path in files_of_tests():
            if path not in reached and module in imports_of(path):
                reached.add(path)
                if not is_test(path):
                    waiting.add(dotted(path))
    return reached


def mirrored_folders(path: str) -> list[str]:
    """Return the folders of the tests that mirror the folder of a file of the packages."""
    parts = pathlib.PurePosixPath(path).parts
    layer = parts[1] if len(parts) > 2 else ""
    if parts[0] == "hlotools" or layer in ("cli", "inspect"):
        return ["tests/inspect/"]
    # Whatever is about several devices is mostly tested with eight.
    folders = ["many_devices", layer] if ABOUT_DEVICES & set(parts) else [layer]
    return [f"tests/{folder}/" for folder in folders if folder and (TESTS / folder).is_dir()]


def affected_tests(changed: Iterable[str]) -> list[str]:
    """Return the test files that changes of these files most likely break, the likeliest first."""
    ranks: dict[str, int] = {}

    def add(paths: Iterable[str], rank: int) -> None:
        for path in paths:
            if is_test(path) and not path.startswith(ALWAYS_RUN) and path not in LARGE:
                ranks[path] = min(rank, ranks.get(path, rank))

    present = set(files_of_tests())
    for path in (p for p in changed if p.endswith(".py")):
        stem = pathlib.PurePosixPath(path).stem
        if path.startswith("tests/"):
            add({path} & present, 0)
            add(importers([dotted(path)]), 1)
            continue
        add((t for t in present if pathlib.PurePosixPath(t).stem == f"test_{stem}"), 2)
        for folder in mirrored_folders(path):
            nearby = [t for t in present if t.startswith(folder)]
            add((t for t in nearby if stem in pathlib.PurePosixPath(t).stem), 1)
            add(nearby, 4)
        add(importers([dotted(path)]), 3)
    return sorted(ranks, key=lambda path: (ranks[path], path))


def primitives_of(path: str) -> set[str]:
    """Return the primitives of a module: those that it defines, or has rules of."""
    found: set[str] = set()
    for file in {ROOT / path, ROOT / path.replace("_rules.py", ".py")}:
        if file.exists():
            text = file.read_text(encoding="utf-8")
            found |= set(re.findall(r"^(?:@.*\W)?([a-z]\w*)_p\b", text, re.MULTILINE))
    return {name for name in found if not keyword.iskeyword(name)}


def words_of(changed: Iterable[str]) -> list[str]:
    """Return the words by which pytest's -k chooses samples and corpora of changed modules."""
    paths = [
        pathlib.PurePosixPath(path)
        for path in changed
        if path.startswith(("hlofront/", "tests/samples/", "tests/against_jax/corpus_"))
    ]
    # The rules of a folder's subject, and those of another module's.
    words = {
        path.parent.name if path.stem == "rules" else path.stem.removesuffix("_rules")
        for path in paths
    }
    words |= {name for path in paths for name in primitives_of(str(path))}
    return sorted(word for word in words if word.isidentifier() and not word.startswith("__"))


if __name__ == "__main__":
    if sys.argv[1] == "--words":
        print(" or ".join(words_of(sys.argv[2:])))
    else:
        print("\n".join(affected_tests(sys.argv[1:])))
