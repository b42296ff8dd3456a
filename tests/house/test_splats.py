"""No literal is splatted, as in `f(*(a, b), c)`: its members stand by themselves."""

import ast
from collections.abc import Iterator

from tests.house.source import modules
from tests.house.test_imports import report


def splatted_literals(tree: ast.AST) -> Iterator[int]:
    """The lines of the starred tuples and lists that are written out."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            members = node.args
        elif isinstance(node, ast.Tuple | ast.List | ast.Set):
            members = node.elts
        else:
            continue
        for member in members:
            if isinstance(member, ast.Starred) and isinstance(member.value, ast.Tuple | ast.List):
                yield member.lineno


def test_no_literal_is_splatted():
    report(
        [
            f"{module.shown}:{line}"
            for module in modules()
            if "*(" in module.text or "*[" in module.text
            for line in splatted_literals(module.tree)
        ],
        "write the members by themselves, and arguments of many by their names",
    )


def test_splatted_literals_are_noticed():
    planted = "f(*(a, b), c)\nx = (*[1, 2], *names)\ny = [*map(f, xs)]"
    assert list(splatted_literals(ast.parse(planted))) == [1, 2]
