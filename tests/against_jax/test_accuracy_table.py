"""The table of errors of functions notices wrong digits, and results that depend on neighbors."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from tests.against_jax.accuracy import table


def test_a_function_is_as_exact_as_it_is():
    row = table.measured("exp2", "float32")
    assert max(row.ulps) < 4 and not any(row.infinite) and not row.depends


def test_a_wrong_digit_is_found(monkeypatch):
    monkeypatch.setattr(table, "_function", lambda name: lambda x: jnp.exp2(x) * 1.00001)
    row = table.measured("exp2", "float32")
    assert min(row.ulps) > 50


@pytest.mark.parametrize("share", [0, 1e-3])
def test_results_that_depend_on_neighbors_are_found(share):
    function = jax.jit(lambda x: x + share * jnp.max(x))
    changed = table.neighbors_change(function, [np.arange(8, dtype=np.float32)])
    assert (changed > 0) == (share > 0)


def test_rows_replace_those_of_the_same_function(tmp_path, monkeypatch):
    monkeypatch.setattr(table, "PATH", tmp_path / "TABLE.md")
    row = table.Row("exp2", "float32", (1.0, 1, 1, 1), (0, 0, 0, 2), 0)
    table.write([row, row._replace(name="sin")])
    table.write([row._replace(ulps=(3.0, 1, 1, 1))])
    text = table.PATH.read_text()
    assert text.endswith("| exp2 | float32 | 3 | 1 | 1 | 1 (2 inf) |  |\n")
    assert text.count("| float32 |") == 2
