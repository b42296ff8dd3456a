"""Runs the cases of this folder in processes that have eight CPU devices, some with sixteen."""

import os
import pathlib
import subprocess
import sys

import pytest

EIGHT = {"JAX_NUM_CPU_DEVICES": "8", "JAX_PLATFORMS": "cpu"}
SCRIPT = """
import numpy as np
import hlofront as jax, hlofront.numpy as jnp
from tests.many_devices.meshes import split
f = jax.jit(lambda a: jnp.sin(a) @ a.T, in_shardings=split("x", "y"), out_shardings=split("y"))
found = f(np.ones((8, 4), np.float32))
assert found.sharding == split("y")
times = f.timings()
print(times.compile > 0, times.load > 0, np.asarray(found).tobytes().hex())
"""

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
QUICK_CODE = "tests.support.quick_code"


def assert_passes(name, devices, config):
    """Run a file of cases in a process of its own, with quick code where this process has it."""
    plugins = ["-p", QUICK_CODE] if config.pluginmanager.has_plugin(QUICK_CODE) else []
    options = ["-q", "-p", "no:cacheprovider", *plugins]
    found = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(HERE / name)],
        cwd=ROOT,
        env={**os.environ, **EIGHT, "JAX_NUM_CPU_DEVICES": str(devices)},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert found.returncode == 0, found.stdout[-6000:] + found.stderr[-2000:]
    assert " passed" in found.stdout


@pytest.mark.parametrize("name", sorted(path.name for path in HERE.glob("cases_*.py")))
def test_with_eight_devices(name, pytestconfig):
    assert_passes(name, 8, pytestconfig)


@pytest.mark.parametrize("name", ["cases_mapped_samples.py", "cases_samples.py"])
def test_with_sixteen_devices(name, pytestconfig):
    assert_passes(name, 16, pytestconfig)


@pytest.mark.slow
def test_the_example_uses_eight_devices():
    environment = {name: value for name, value in os.environ.items() if name not in EIGHT}
    shown = subprocess.run(
        [sys.executable, "examples/sharded.py"],
        cwd=ROOT,
        env={**environment, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert shown.startswith("8 devices: ")
    assert "weights['up'] is split as P(None, 'model')" in shown


def test_executables_are_kept_on_disk(tmp_path):
    environment = {**os.environ, **EIGHT, "HLOFRONT_CACHE": "on", "PYTHONPATH": str(ROOT)}
    environment["HLOFRONT_CACHE_DIR"] = str(tmp_path / "cache")
    cold, warm = (
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for _ in range(2)
    )
    assert cold[:2] == ["True", "False"]
    assert warm[:2] == ["False", "True"]
    assert cold[2] == warm[2]
