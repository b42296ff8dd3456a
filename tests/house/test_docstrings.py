"""Docstrings stand alone: each begins with its subject or verb, and not with a pronoun."""

import ast
import re
from collections.abc import Iterator

from tests.house.source import modules

# Such a beginning needs the name, the class or the neighbor beside it to be understood.
ELLIPTIC = re.compile(
    r"(The same|Those|These|That|This one|It|Its|They|Their|Them|As|Also|Likewise|Ours|Theirs|What|"
    r"Which|Who|Whose|Where|When|Why|How|How many|So many)\b"
)


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each docstring: of modules, classes, functions and fields."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for before, statement in zip([None, *node.body], node.body, strict=False):
            is_first = before is None
            is_of_field = isinstance(node, ast.ClassDef) and isinstance(
                before, ast.AnnAssign | ast.Assign
            )
            match statement:
                case ast.Expr(value=ast.Constant(value=str(text))) if is_first or is_of_field:
                    yield statement.lineno, text


def elliptic_docstrings(path: str, tree: ast.Module) -> list[str]:
    """Return the docstrings of a module that do not begin with their subject or verb."""
    return [
        f"{path}:{line}: {text.splitlines()[0]}"
        for line, text in docstrings(tree)
        if ELLIPTIC.match(text)
    ]


def test_docstrings_begin_with_their_subject_or_verb():
    elliptic = [line for m in modules() for line in elliptic_docstrings(m.shown, m.tree)]
    assert not elliptic, "begin these with what they describe:\n" + "\n".join(elliptic)


# ---- the rule itself, on planted faults ----------------------------------------------------------


def test_elliptic_docstrings_of_modules_classes_functions_and_fields_are_seen():
    source = (
        '"""What is told."""\n'
        "class Row:\n"
        '    """Those of a table."""\n'
        "    size: int\n"
        '    """How many there are."""\n'
        "    def half(self):\n"
        '        """As double."""\n'
    )
    assert elliptic_docstrings("a.py", ast.parse(source)) == [
        "a.py:1: What is told.",
        "a.py:3: Those of a table.",
        "a.py:5: How many there are.",
        "a.py:7: As double.",
    ]


def test_subjects_verbs_and_other_texts_are_not_elliptic():
    source = '"""Whatever is read."""\ndef f():\n    x = 1\n    "What"\n    return x\n'
    assert elliptic_docstrings("a.py", ast.parse(source)) == []
