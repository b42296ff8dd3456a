"""The pages of docs/howto run from top to bottom, and print what they say."""

import pathlib

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
