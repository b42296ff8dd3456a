"""JAX's names in processes of their own: how they are opened, what that costs, what is refused."""

import ast
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture
def installed_jax(tmp_path):
    """A folder with a package jax that says when it is imported."""
    package = tmp_path / "jax"
    package.mkdir()
    (package / "__init__.py").write_text("print('the installed jax')\n")
    metadata = tmp_path / "jax-0.9.1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: jax\nVersion: 0.9.1\n")
    return tmp_path


def python(*arguments, path=(), **environment):
    """Run Python; return its exit status, output and errors."""
    folders = os.pathsep.join(map(str, (*path, ROOT)))
    result = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": folders, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return result.returncode, result.stdout, result.stderr


def test_an_installed_jax_is_neither_imported_nor_touched(installed_jax):
    program = """
import hlofront.as_jax, sys
assert "jax" not in sys.modules
import jax, jax.numpy as jnp, importlib.metadata
from hlofront.pjrt.clients import clients
assert not clients()  # no device was started
print(jnp.arange(2) + 1, jax.__version__, importlib.metadata.version("jax"))
"""
    assert python("-c", program, path=[installed_jax]) == (0, "[1 2] 0.10.2 0.10.2\n", "")


def test_it_says_what_to_do_where_jax_was_imported_before(installed_jax):
    status, output, errors = python("-c", "import jax, hlofront.as_jax", path=[installed_jax])
    assert (status, output) == (1, "the installed jax\n")
    assert "put `import hlofront.as_jax` before their imports" in errors


SCRIPT = """
import sys
import jax
assert __name__ == "__main__"
print(sys.argv[1:], jax.numpy.arange(2))
if "fail" in sys.argv:
    raise ValueError("the script's own")
if "leave" in sys.argv:
    sys.exit(7)
"""


@pytest.mark.long
def test_a_script_runs_by_the_command_line(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = ["-m", "hlofront", "as-jax"]
    assert python(*command, script, "--steps", "leave") == (7, "['--steps', 'leave'] [0 1]\n", "")
    assert python(*command, "-m", "script", "x", path=[tmp_path]) == (0, "['x'] [0 1]\n", "")
    status, _, errors = python(*command, script, "fail")
    lines = errors.splitlines()
    assert status == 1
    assert lines[1].startswith(f'  File "{script}", line 7') and lines[-1].startswith("ValueError")
    assert not any("runpy" in line for line in lines)


def test_pytest_runs_on_hlofront_by_an_option(tmp_path):
    (tmp_path / "test_it.py").write_text(
        "import jax, hlofront\ndef test_it(): assert jax.jit is hlofront.jit\n"
    )
    status, output, _ = python("-m", "pytest", "-q", "-p", "hlofront.as_jax", tmp_path)
    assert status == 0 and "1 passed" in output


@pytest.mark.parametrize("value", ["1", "0"])
def test_the_environment_variable_reaches_processes_where_the_startup_line_is_installed(
    tmp_path, value
):
    setup = (ROOT / "setup.py").read_text()
    line = ast.literal_eval(re.search("^STARTUP = (.*)$", setup, re.MULTILINE)[1])
    (tmp_path / "hlofront_as_jax.pth").write_text(line)
    # Python reads the file itself where it lies in site-packages.
    program = f"import site; site.addsitedir({str(tmp_path)!r}); import sys; print([*sys.modules])"
    status, output, _ = python("-c", program, HLOFRONT_AS_JAX=value)
    assert status == 0
    assert ("'hlofront.as_jax'" in output) == (value == "1")


def test_opening_the_names_imports_nothing_but_their_tables():
    """The modules of JAX's names are made when a program imports them, not when the door opens."""
    program = """
import sys, hlofront
before = {*sys.modules}
import hlofront.as_jax
print(*sorted({*sys.modules} - before))
"""
    status, output, _ = python("-c", program)
    assert status == 0
    imported = {name.rpartition(".")[0] for name in output.split()}
    # `importlib.util` is not among them where an editable installation has imported it.
    assert imported - {"importlib"} == {"hlofront", "hlofront.jax_names"}


STEP = """
import jax

@jax.jit
def step(x):
    return jax.numpy.tanh(x)

example_args = (jax.ShapeDtypeStruct((4,), "float32"),)
"""


def test_commands_load_files_that_import_jax(tmp_path):
    (tmp_path / "model.py").write_text(STEP)
    step = f"{tmp_path / 'model.py'}:step"
    status, output, errors = python("-m", "hlofront", "show", step, "--stage", "jaxpr")
    assert status == 0 and "tanh" in output, errors
    # `compare --at` and `bisect --at` load revisions of the file in processes of their own.
    answer = tmp_path / "answer.json"
    worker = "hlofront.inspect.comparison.column_worker"
    status, _, errors = python("-m", worker, answer, "label", step, "")
    assert status == 0 and "tanh" in json.loads(answer.read_text())["hlo"], errors
