"""Each behavior that was reported to differ from JAX's has a test that is still there."""

import functools
from collections.abc import Iterator

from tests.against_jax.describe import names_of
from tests.conventions.source import ROOT

TESTS = ROOT / "tests"
TABLE = TESTS / "reported_differences.txt"


def rows(text: str) -> Iterator[list[str]]:
    """Yield the columns of each line of the table: what holds, a file, and a name in it."""
    for line in text.splitlines():
        if line and not line.startswith("#"):
            yield [column.strip() for column in line.split(" | ")]


@functools.cache
def searched(file: str) -> str:
    """Return the text of a file of tests, with the names of programs where it is a corpus."""
    path = TESTS / file
    if not path.is_file():
        return ""
    text = path.read_text(encoding="utf-8")
    if path.name.startswith("corpus_"):
        text += "\n".join(names_of(path.stem))
    return text


def missing_tests(text: str) -> list[list[str]]:
    """Return the rows whose file does not contain the name of their test."""
    return [row for row in rows(text) if len(row) != 3 or row[2] not in searched(row[1])]


def test_the_tests_of_reported_differences_are_there():
    assert not missing_tests(TABLE.read_text(encoding="utf-8"))


def test_a_test_or_a_file_that_is_not_there_is_missing():
    table = """# no row
        one | conventions/test_reported_differences.py | def rows
        two | conventions/test_reported_differences.py | test_of_%s
        three | conventions/no_such_file.py | def rows
        four | against_jax/corpus_name_stacks.py | grad_of_scan
        five | against_jax/corpus_name_stacks.py | grad_of_%s"""
    missing = missing_tests(table.replace("%s", "nothing"))
    assert [name for name, *_ in missing] == ["two", "three", "five"]


def test_no_behavior_is_listed_twice():
    names = [row[0] for row in rows(TABLE.read_text(encoding="utf-8"))]
    assert sorted(names) == sorted(set(names))
