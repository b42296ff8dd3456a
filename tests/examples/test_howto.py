"""The pages of docs/howto run from top to bottom, and print what they say."""

import pathlib
import re
import subprocess

import pytest

import hlofront as jax
from tests.support import pages

ROOT = pathlib.Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "howto").rglob("*.md"))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder with the examples, which is left as the current one."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True)
def options_stay():
    before = dict(jax.config.values)
    yield
    for name, value in jax.config.values.items():
        if value != before[name]:
            jax.config.update(name, before[name])


@pytest.mark.long
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page(page, folder):
    differences = pages.run(page, folder)
    assert not differences, "".join(map(str, differences))


def test_forty_questions_are_answered_by_a_page():
    text = (ROOT / "docs" / "questions.md").read_text(encoding="utf-8")
    answers = re.findall(r"^\*\*[^*]+\?\*\* (.+?)(?=\n\n|\Z)", text, re.MULTILINE | re.DOTALL)
    assert len(answers) == 40
    assert all(re.search(r"\]\([\w./#-]+\)", answer) for answer in answers)


@pytest.mark.long
def test_the_workflow_of_goldens_hands_over_what_changed(folder):
    page = (ROOT / "docs" / "howto" / "goldens.md").read_text(encoding="utf-8")
    files = [block for block in pages.blocks(page) if block.file]
    before, after = (block.text for block in files if block.file == "tests/test_step.py")
    (workflow,) = (block.text for block in files if block.language == "yaml")
    steps = re.findall(r"run: (?:\|\n((?: {10}.*\n)+)|(.*)\n)", workflow)
    _, check, update = (re.sub(r"^ +", "", first or second, flags=re.M) for first, second in steps)

    def run(commands, **variables):
        variables = {**pages.environment(folder), **variables}
        done = subprocess.run(["bash", "-ec", commands], env=variables, capture_output=True)
        return done.returncode

    (folder / "tests").mkdir()
    file = folder / "tests" / "test_step.py"
    file.write_text(before)
    commit = "git -c user.name=x -c user.email=x@example.com commit -qm 'Add a step'"
    assert run(f"{check} && git init -q && git add tests && {commit}") == 0
    assert run(check, CI="true") == 0
    file.write_text(after)
    assert run(check, CI="true") == 1
    assert run(update, CI="true") == 0
    assert run("git checkout -q tests && git apply goldens.patch && " + check, CI="true") == 0
    assert file.read_text() == after


def test_few_blocks_are_not_run():
    blocks = [block for page in PAGES for block in pages.blocks(page.read_text(encoding="utf-8"))]
    assert sum(block.text.startswith("# needs: ") for block in blocks) < len(blocks) / 10


def test_what_may_differ_is_not_compared():
    assert pages.same("a.py:12: f took 3.1 ms", "/tmp/b.md:9: f took 12 us")
    assert pages.same("[0.5 , 1.25]", "[0.5 , 1.2500001]")
    assert pages.same("entry 9f3a44c01b22, 3 times ...", "entry 00aa44c01b22, 3 times and more")
    assert not pages.same("3 programs", "4 programs")
    assert not pages.same("loss 0.51", "loss 0.52")


PAGE = """
```python
import hlofront.numpy as jnp
x = jnp.arange(3)
int(x.sum())     # {sum}
x[0] = 1         # TypeError: ...
print(x)
```

```text
[0 1 2]
```

```python
# twice.py
print(2 * 21)
```

```sh
python twice.py
```

```text
{twice}
```

```python
# needs: a_package_that_nobody_has
import a_package_that_nobody_has
```
"""


@pytest.mark.parametrize(("sum", "twice", "lines"), [(3, 42, []), (4, 41, [5, 24])])
def test_a_page_says_what_is_true(sum, twice, lines, folder):
    page = folder / "page.md"
    page.write_text(PAGE.format(sum=sum, twice=twice))
    assert [difference.line for difference in pages.run(page, folder)] == lines
