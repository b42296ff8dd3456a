"""The fixtures and the marker that hlofront gives to other people's tests."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[2]

TESTS = """
import sys
import pytest

def test_jaxlib_is_not_loaded_by_the_plugin():
    assert "jaxlib" not in sys.modules

def test_fine(no_recompile):
    import hlofront as jax
    f = jax.jit(lambda x: x + 1)
    f(1.0), f(2.0)

def test_again(no_recompile):
    import hlofront as jax
    import numpy as np
    f = jax.jit(lambda x: x + 1)
    f(1.0), f(np.ones(3))

@pytest.mark.max_compiles(1)
def test_marked():
    import hlofront as jax
    jax.jit(lambda x: x + 1)(1.0)
    jax.jit(lambda x: x + 2)(1.0)
"""


def test_fixture_and_marker(tmp_path):
    (tmp_path / "test_them.py").write_text(TESTS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "pytest_hlofront", "-p", "no:cacheprovider", "-q"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
    )
    assert "2 failed, 2 passed" in done.stdout, done.stdout
    assert "test_them.py:17: <lambda> is compiled again: x: f32[] -> f32[3]" in done.stdout
    assert "at most 1 programs may be compiled here" in done.stdout
