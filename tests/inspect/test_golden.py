"""Goldens of programs in pytest: written, compared, rewritten, and told what they came from."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
import pytest_hlofront
from hlotools import golden

ROOT = pathlib.Path(__file__).parents[2]
x = np.ones((4, 8), np.float32)


def lowered(operation=jnp.tanh):
    def step(x):
        return operation(x @ x.T).sum(0)

    return jax.jit(step).lower(x)


@pytest.mark.parametrize("stage", ["stablehlo", "hlo"])
def test_written_compared_and_rewritten(stage, tmp_path):
    path = tmp_path / "goldens" / "step.txt"
    make = lowered if stage == "stablehlo" else lambda *a: lowered(*a).compile()
    assert golden.check(make(), path).written
    assert golden.check(make(), path) == golden.GoldenCheck(path, False, None)
    assert f"golden of hlofront: {stage}; hlofront" in path.read_text()
    assert "test_golden" not in path.read_text(), "no paths, no lines"
    with pytest.raises(golden.GoldenMismatch, match=r"(?s)differs from its golden.*--hlo-update"):
        golden.check(make(jnp.sin), path)
    assert golden.check(make(jnp.sin), path, update=True).written
    golden.check(make(jnp.sin), path)


def test_a_verbose_message_lists_all_changes(tmp_path):
    path = tmp_path / "step.txt"
    golden.check(lowered(), path)
    changed = lowered(lambda x: jnp.tanh(x.astype(jnp.bfloat16)))
    with pytest.raises(golden.GoldenMismatch, match="folded") as folded:
        golden.check(changed, path)
    with pytest.raises(golden.GoldenMismatch) as listed:
        golden.check(changed, path, verbose=True)
    assert "folded" not in str(listed.value)
    assert len(str(listed.value).splitlines()) > len(str(folded.value).splitlines())


def test_other_versions_are_told(tmp_path):
    path = tmp_path / "step.txt"
    golden.check(lowered(), path)
    path.write_text(path.read_text().replace("jaxlib ", "jaxlib 0.9.", 1))
    found = golden.check(lowered(), path)
    assert "jaxlib 0.9." in found.other_versions and not found.written
    with pytest.raises(golden.GoldenMismatch, match=r"The versions differ too: jaxlib 0\.9\."):
        golden.check(lowered(jnp.sin), path)


def test_bad_input(tmp_path):
    path = tmp_path / "step.txt"
    with pytest.raises(TypeError, match="lower the function first"):
        golden.check(lambda x: x, path)
    path.write_text("something else")
    with pytest.raises(golden.GoldenMismatch, match="not a golden"):
        golden.check(lowered(), path)


def test_a_jaxpr_has_a_golden(tmp_path):
    path = tmp_path / "step.txt"
    golden.check(jax.make_jaxpr(jnp.tanh)(x), path)
    assert "golden of hlofront: jaxpr; hlofront" in path.read_text()
    golden.check(jax.make_jaxpr(lambda renamed: jnp.tanh(renamed))(x), path)
    with pytest.raises(golden.GoldenMismatch, match="tanh"):
        golden.check(jax.make_jaxpr(jnp.sin)(x), path)
    with pytest.raises(golden.GoldenMismatch, match="is jaxpr, and the program is stablehlo"):
        golden.check(lowered(), path)


def run_pytest(folder, *arguments, python=sys.executable, **environment):
    """Run the tests in a folder with the plugin; return the exit status and what was printed."""
    done = subprocess.run(
        [python, *"-m pytest -p pytest_hlofront -q -p no:cacheprovider".split(), *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        env={
            **{name: value for name, value in os.environ.items() if name != "CI"},
            "PYTHONPATH": str(ROOT),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            **environment,
        },
    )
    return done.returncode, done.stdout


TESTS = """
import numpy as np, pytest
import hlofront as jax, hlofront.numpy as jnp

@pytest.mark.parametrize("size", [4])
def test_step(hlo_golden, size):
    x = np.ones((size, 8), np.float32)
    lowered = jax.jit(lambda x: jnp.OPERATION(x @ x.T)).lower(x)
    hlo_golden.check(lowered)
    hlo_golden.check(lowered.compile())
    hlo_golden.check(lowered, "by name")
"""


@pytest.mark.long
def test_the_fixture(tmp_path):
    file = tmp_path / "test_model.py"

    def run(operation, *arguments, **environment):
        file.write_text(TESTS.replace("OPERATION", operation))
        return run_pytest(tmp_path, *arguments, **environment)

    folder = tmp_path / "goldens" / "test_model"
    code, out = run("tanh", CI="true")
    assert code == 1 and "there is no golden" in out and not folder.exists()
    code, out = run("tanh")
    assert code == 0 and out.count(f"hlo_golden: wrote {folder}") == 3
    by_name = pytest_hlofront.file_name("by name")
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        [by_name, "test_step-4.txt", "test_step-4-2.txt"]
    )
    code, out = run("tanh", CI="true")
    assert code == 0 and "hlo_golden" not in out
    code, out = run("tanh(x.astype(jnp.bfloat16) @ x.T) + jnp.sin", "-vv")
    assert code == 1 and "differs from its golden" in out and "tanh" in out
    assert "added operation" in out and "are folded" not in out
    assert "golden" in out and "now" in out
    assert "pytest_hlofront.py" not in out and "golden.py" not in out, "our own source is shown"
    assert run("sin", "--hlo-update")[0] == 0
    first = folder / by_name
    first.write_text(first.read_text().replace("numpy ", "numpy 1.", 1))
    code, out = run("sin")
    assert code == 0 and "1 program(s) are as their goldens say, although the versions" in out
    (folder / "test_removed.txt").write_text("")
    code, out = run("sin", "--hlo-unused")
    assert code == 0 and out.count("no test of this run asked for") == 1
    assert str(folder / "test_removed.txt") in out


SAME_NAMES = """
import numpy as np, pytest
import hlofront as jax, hlofront.numpy as jnp

def lower(operation):
    return jax.jit(operation).lower(np.ones(4, np.float32))

class TestSine:
    def test_program(self, hlo_golden):
        hlo_golden.check(lower(jnp.sin))

class TestCosine:
    def test_program(self, hlo_golden):
        hlo_golden.check(lower(jnp.cos))

@pytest.mark.parametrize("name", ["a b", "a_b", "A_B"])
def test_named(hlo_golden, name):
    hlo_golden.check(lower(jnp.tan if name == "a b" else jnp.exp))
"""


@pytest.mark.long
def test_each_test_has_a_file_of_its_own(tmp_path):
    (tmp_path / "test_model.py").write_text(SAME_NAMES)
    for _ in range(2):
        code, out = run_pytest(tmp_path)
        # A_B and a_b are one file where case does not matter, so that their goldens are refused.
        assert code == 1 and "1 failed, 4 passed" in out
        assert "test_named[a_b] and test_model.py::test_named[A_B] ask for one golden" in out
    names = {path.name for path in (tmp_path / "goldens" / "test_model").iterdir()}
    assert {"TestSine.test_program.txt", "TestCosine.test_program.txt"} < names and len(names) == 4


OF_JAX = """
import jax, jax.numpy as jnp

def test_step(hlo_golden):
    lowered = jax.jit(lambda x: jnp.OPERATION(x @ x)).lower(jnp.ones((4, 4)))
    hlo_golden.check(lowered)
    hlo_golden.check(lowered.compile())
    hlo_golden.check(jax.make_jaxpr(jnp.OPERATION)(1.0))
"""


@pytest.mark.long
@pytest.mark.skipif("HLOFRONT_ORACLE_PYTHON" not in os.environ, reason="no Python that has jax")
def test_programs_of_jax_in_its_own_process(tmp_path):
    for operation, status in (("tanh", 0), ("tanh", 0), ("sin", 1)):
        (tmp_path / "test_model.py").write_text(OF_JAX.replace("OPERATION", operation))
        code, out = run_pytest(tmp_path, python=os.environ["HLOFRONT_ORACLE_PYTHON"])
        assert code == status, out
    assert "differs from its golden" in out
    text = (tmp_path / "goldens" / "test_model" / "test_step-2.txt").read_text()
    assert "golden of hlofront: hlo; jax 0.10.2; jaxlib 0.10.2; numpy" in text
    assert "platform cpu" in text
