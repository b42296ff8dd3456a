"""Lines of a notebook's cells, in all that is printed: as "cell 4, line 1"."""

import sys
import types

import pytest

import hlofront as jax
import hlofront.numpy as jnp
import hlotools
from hlofront.base import source
from hlofront.base.config import options
from hlotools.source_lines import relative_line, short_line

# What ipykernel calls the file of a cell's code.
FILE = "/tmp/ipykernel_1234/2708968713.py"
CELL = """
def step(x):
    return jnp.tanh(x @ x).sum() + x.shape[0]

def wrong(x, y):
    return x + y
"""


@pytest.fixture
def cell(monkeypatch):
    """The functions of a cell that a notebook has run as its fourth."""
    labels = {FILE: ("Cell", "In[4]")}
    compiler = types.SimpleNamespace(format_code_name=labels.get)
    shell = types.SimpleNamespace(compile=compiler)
    notebook = types.SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    names = {"jnp": jnp}
    exec(compile(CELL, FILE, "exec"), names)
    return types.SimpleNamespace(**{name: names[name] for name in ("step", "wrong")})


def test_lines_are_named_by_their_cell(cell):
    assert short_line(FILE, 3) == relative_line(FILE, 3) == "cell 4, line 3"
    assert short_line("/home/me/model.py", 3) == "model.py:3"


def test_lines_of_files_are_relative_to_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert relative_line(str(tmp_path / "models" / "one.py"), 3) == "models/one.py:3"
    assert relative_line("/elsewhere/one.py", 3) == "/elsewhere/one.py:3"


def test_reports_about_programs_name_cells(cell):
    compiled = jax.jit(cell.step).lower(jnp.ones((8, 8))).compile()
    text = compiled.as_text()
    for printed in (
        hlotools.costs(text).text(by="line"),
        hlotools.memory_use(text).text(),
        hlotools.styled(text, "source"),
    ):
        assert "cell 4, line 3" in printed and "2708968713" not in printed
    assert '"name":"cell 4"' in hlotools.page(text)


def test_jaxprs_name_cells(cell):
    text = jax.make_jaxpr(cell.step)(jnp.ones((8, 8))).pretty_print(source_info=True)
    assert "# cell 4, line 3 (step)" in text and "2708968713" not in text


def test_errors_and_warnings_name_cells(cell, capsys):
    with pytest.raises(TypeError, match=r"at cell 4, line 6 in wrong"):
        jax.jit(cell.wrong)(jnp.ones(3), jnp.ones(4))
    assert source.describe_callable(cell.step) == "step at cell 4, line 2"
    names = {"jax": jax, "jnp": jnp, "step": cell.step}
    with options["hlofront_warn_recompiles"](1):
        exec(
            compile("f = jax.jit(step)\nfor n in (8, 9): f(jnp.ones((n, n)))", FILE, "exec"), names
        )
    assert "hlofront: cell 4, line 2: step is compiled again" in capsys.readouterr().err
