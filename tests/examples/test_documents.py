"""The code in ARCHITECTURE.md does what the text says."""

import pathlib
import re

import numpy as np

import hlofront as jax

ROOT = pathlib.Path(__file__).parents[2]


def test_the_primitive_of_the_architecture_has_all_its_rules():
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert max(map(len, code.splitlines())) <= 100  # The linter accepts it where it is pasted.
    names = {"__name__": "architecture"}
    exec(compile(code, "ARCHITECTURE.md", "exec"), names)
    running_sum = names["running_sum"]
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert np.array_equal(running_sum(x, axis=1), np.cumsum(x, 1))
    assert np.array_equal(jax.jit(running_sum)(x), np.cumsum(x, 0))
    assert np.array_equal(jax.vmap(running_sum)(x), np.cumsum(x, 1))
    weights = np.array([1, 2, 4], np.float32)
    gradient = jax.grad(lambda row: (running_sum(row) * weights).sum())(x[0])
    assert np.array_equal(gradient, [7, 6, 4])


def test_the_files_that_the_architecture_names_are_there():
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert text.count("\n") <= 150
    for path in re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py|[a-z_]+/(?=`))`?", text):
        candidates = (ROOT / path, ROOT / "hlofront" / path)
        assert any(candidate.exists() for candidate in candidates), path
