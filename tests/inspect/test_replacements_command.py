"""`python -m hlofront replacements`: the table of what is lowered to other code than XLA's."""

import io
import json

import pytest

from hlofront.cli.main import main
from hlofront.lowering.min_sizes import MIN_SIZES


def command(*arguments):
    out = io.StringIO()
    return main(["replacements", *arguments], out), out.getvalue()


@pytest.fixture(scope="module")
def rows():
    status, text = command("--json")
    assert status == 0
    return json.loads(text)


def test_each_least_size_is_in_a_row(rows):
    shown = {row["min_size"] for row in rows if row["platform"] == "cpu"}
    assert shown == {size for kinds in MIN_SIZES.values() for size in kinds.values()}
    forms = {(row["primitive"], row["form"]): row["min_size"] for row in rows}
    assert forms["asin", "float64"] == MIN_SIZES["asin"]["float64"]
    assert forms["div", "int8"] == MIN_SIZES["div"]["integers"]
    assert forms["cumprod", "all"] == MIN_SIZES["cumsum"]["all"]


def test_rows_of_some_primitives_are_aligned_text():
    status, text = command("gather", "asin")
    header, *lines = text.splitlines()
    assert status == 0
    assert [line.split()[0] for line in lines] == ["asin", "asin", "gather"]
    column = header.index("replacement")
    assert all(line[column - 1] == " " and line[column].isupper() for line in lines)


def test_no_row_is_said_and_is_status_1():
    assert command("add") == (1, "no replacement of add\n")
