"""The examples in the pages of docs/ give what the pages say."""

import doctest
import pathlib
import re

import pytest

PAGES = sorted((pathlib.Path(__file__).parents[2] / "docs").rglob("*.md"))
WITH_EXAMPLES = [page for page in PAGES if ">>> " in page.read_text(encoding="utf-8")]


def test_some_pages_have_examples():
    assert "lost_digits.md" in [page.name for page in WITH_EXAMPLES]


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: page.stem)
def test_examples(page):
    text = "\n".join(
        re.findall(r"^```python\n(>>> .*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
    )
    example = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    failures = []
    doctest.DocTestRunner(verbose=False).run(example, out=failures.append)
    assert not failures, "".join(failures)
