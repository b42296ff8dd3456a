"""No two public classes share a name."""

import ast
import collections
from collections.abc import Iterator

from tests.conventions.source import source_trees


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


def test_no_two_public_classes_share_a_name():
    trees = source_trees()
    shared: dict[str, list[str]] = {}
    for package in ("hlofront/", "hlotools/"):
        shared |= shared_class_names({p: t for p, t in trees.items() if p.startswith(package)})
    assert not shared, f"give each class a name of its own: {shared}"


def test_a_class_of_the_same_name_is_seen():
    one, other = ast.parse("class Entry: pass"), ast.parse("class Entry: pass\nclass _Own: pass")
    assert shared_class_names({"a.py": one, "b.py": other}) == {"Entry": ["a.py", "b.py"]}
    assert shared_class_names({"a.py": one, "b.py": ast.parse("class _Own: pass")}) == {}
