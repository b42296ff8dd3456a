"""Names say what they name: no two public classes share one, and vague words stay out of them."""

import ast
import collections
import functools
import pathlib
import re
from collections.abc import Iterator

from tests.house.source import ROOT, modules

VAGUE_WORDS = frozenset(
    (
        "apart asked drawn found given kept marks otherwise place places spread stuff thing things "
        "told trying"
    ).split()
)
# NumPy's own term for an update that writes to its operand.
TERMS = re.compile(r"in_?place")
# NumPy's function `place`.
NAMES_OF_NUMPY = {"hlofront/numpy/taking.py: place"}


def public_classes(tree: ast.Module) -> Iterator[str]:
    """Yield the names of the public classes at the top of a module."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name


def shared_class_names(trees: dict[str, ast.Module]) -> dict[str, list[str]]:
    """Return the names that more than one module gives to a public class, with these modules."""
    paths: dict[str, list[str]] = collections.defaultdict(list)
    for path, tree in trees.items():
        for name in public_classes(tree):
            paths[name].append(path)
    return {name: where for name, where in paths.items() if len(where) > 1}


def is_vague(name: str) -> bool:
    """Return whether a name in snake case or camel case has a vague word."""
    words = re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", TERMS.sub("", name))
    return not VAGUE_WORDS.isdisjoint(word.lower() for word in words)


def vague_names(path: str, tree: ast.Module) -> list[str]:
    """Return the vague names of a module: its own, its classes' and its functions'.

    Names of tests are sentences, which may have any word.
    """
    definitions = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    names = [pathlib.PurePath(path).stem]
    names += [
        node.name
        for node in ast.walk(tree)
        if isinstance(node, definitions) and not node.name.startswith("test_")
    ]
    vague = [f"{path}: {name}" for name in names if is_vague(name)]
    return [line for line in vague if line not in NAMES_OF_NUMPY]


def vague_variables(path: str, tree: ast.Module) -> list[str]:
    """Return the vague names of a module's variables and arguments, with their lines."""
    names = [
        (node.lineno, node.id if isinstance(node, ast.Name) else node.arg)
        for node in ast.walk(tree)
        if isinstance(node, ast.arg)
        or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    ]
    return [f"{path}:{line}: {name}" for line, name in sorted(names) if name in VAGUE_WORDS]


@functools.cache
def source_trees() -> dict[str, ast.Module]:
    """Return the syntax trees of the packages and of the tests, by their paths."""
    trees = {module.shown: module.tree for module in modules()}
    for path in sorted((ROOT / "tests").rglob("*.py")):
        trees[str(path.relative_to(ROOT))] = ast.parse(path.read_text(encoding="utf-8"))
    return trees


def test_no_two_public_classes_share_a_name():
    trees = source_trees()
    shared: dict[str, list[str]] = {}
    for package in ("hlofront/", "hlotools/"):
        shared |= shared_class_names({p: t for p, t in trees.items() if p.startswith(package)})
    assert not shared, f"give each class a name of its own: {shared}"


def test_no_name_is_vague():
    vague = [name for path, tree in source_trees().items() for name in vague_names(path, tree)]
    assert not vague, "say what these are in other words:\n" + "\n".join(vague)


def test_no_variable_of_the_packages_is_vague():
    trees = {path: tree for path, tree in source_trees().items() if not path.startswith("tests/")}
    vague = [line for path, tree in trees.items() for line in vague_variables(path, tree)]
    assert not vague, "name these for what they hold:\n" + "\n".join(vague)


# ---- the rules themselves, on planted faults -----------------------------------------------------


def test_a_class_of_the_same_name_is_seen():
    one, other = ast.parse("class Entry: pass"), ast.parse("class Entry: pass\nclass _Own: pass")
    assert shared_class_names({"a.py": one, "b.py": other}) == {"Entry": ["a.py", "b.py"]}
    assert shared_class_names({"a.py": one, "b.py": ast.parse("class _Own: pass")}) == {}


def test_vague_names_of_modules_classes_and_functions_are_seen():
    source = "class KeptArray:\n    def place_of(self): pass\n\ndef _found(): pass\n"
    assert vague_names("hlofront/base/told.py", ast.parse(source)) == [
        "hlofront/base/told.py: told",
        "hlofront/base/told.py: KeptArray",
        "hlofront/base/told.py: _found",
        "hlofront/base/told.py: place_of",
    ]


def test_vague_variables_and_arguments_are_seen():
    source = "def search(place):\n    found = place + 1\n    placed = found\n    return placed\n"
    assert vague_variables("a.py", ast.parse(source)) == ["a.py:1: place", "a.py:2: found"]


def test_names_that_hold_a_vague_word_as_a_part_are_not_vague():
    source = (
        "def replace(): pass\ndef in_place(): pass\ndef inplace(): pass\nclass Placement: pass\n"
    )
    assert vague_names("hlofront/base/placement.py", ast.parse(source)) == []


def test_a_name_of_a_test_is_a_sentence():
    assert vague_names("tests/base/test_x.py", ast.parse("def test_what_is_found(): pass")) == []
