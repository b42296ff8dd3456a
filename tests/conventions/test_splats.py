"""No literal is splatted, as in `f(*(a, b), c)`: its members stand by themselves."""

import ast
from collections.abc import Iterator

from tests.conventions.source import source_trees, walk
from tests.conventions.test_imports import report


def splatted_literals(tree: ast.AST) -> Iterator[int]:
    """Yield the lines of the starred tuples, lists and dictionaries of names that are written out.

    A dictionary whose keys cannot be written as names, as in `f(**{f"{kind}_axes": axes})`, has no
    plainer form.
    """
    for node in walk(tree):
        if isinstance(node, ast.Call):
            members = node.args
            for keyword in node.keywords:
                literal = keyword.value
                if keyword.arg is None and isinstance(literal, ast.Dict):
                    if all(is_name(key) for key in literal.keys):
                        yield literal.lineno
        elif isinstance(node, ast.Tuple | ast.List | ast.Set):
            members = node.elts
        else:
            continue
        for member in members:
            if isinstance(member, ast.Starred) and isinstance(member.value, ast.Tuple | ast.List):
                yield member.lineno


def is_name(key: ast.expr | None) -> bool:
    """Return whether the key of a dictionary is a text that can name an argument."""
    return isinstance(key, ast.Constant) and str(key.value).isidentifier()


def test_no_literal_is_splatted():
    report(
        [
            f"{path}:{line}"
            for path, tree in source_trees().items()
            for line in splatted_literals(tree)
        ],
        "write the members by themselves, and arguments of many by their names",
    )


def test_splatted_literals_are_noticed():
    planted = """f(*(a, b), c)
x = (*[1, 2], *names)
y = [*map(f, xs)]
f(**{'a': 1})
f(**{key: 1, 'b.c': 1})"""
    assert list(splatted_literals(ast.parse(planted))) == [1, 2, 4]
