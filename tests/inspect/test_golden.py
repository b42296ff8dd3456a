"""Goldens of programs in pytest: written, compared, rewritten, and told what they came from."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.inspect import golden

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


def test_the_fixture(tmp_path):
    file = tmp_path / "test_model.py"

    def run(operation, *arguments):
        file.write_text(TESTS.replace("OPERATION", operation))
        done = subprocess.run(
            [
                sys.executable,
                *"-m pytest -p pytest_hlofront -q -p no:cacheprovider".split(),
                *arguments,
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
                "PYTHONDONTWRITEBYTECODE": "1",
            },
        )
        return done.returncode, done.stdout

    assert run("tanh")[0] == 0
    folder = tmp_path / "goldens" / "test_model"
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["by_name.txt", "test_step_4.txt", "test_step_4_-2.txt"]
    assert run("tanh")[0] == 0
    code, out = run("sin")
    assert code == 1 and "differs from its golden" in out and "tanh" in out
    assert run("sin", "--hlo-update")[0] == 0
    first = folder / "by_name.txt"
    first.write_text(first.read_text().replace("numpy ", "numpy 1.", 1))
    code, out = run("sin")
    assert code == 0 and "1 program(s) are as their goldens say, although the versions" in out
