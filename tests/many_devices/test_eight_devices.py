"""Runs the cases of this folder in processes that have eight CPU devices, some with sixteen."""

import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Sequence

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


CASES = sorted(path.name for path in HERE.glob("cases_*.py"))


def run_cases(files: Sequence[str], devices: int, config: pytest.Config):
    """Run files of cases in one process, with quick code where this process has it."""
    plugins = ["-p", QUICK_CODE] if config.pluginmanager.has_plugin(QUICK_CODE) else []
    options = ["-q", "-rfE", "-p", "no:cacheprovider", *plugins]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, *(str(HERE / name) for name in files)],
        cwd=ROOT,
        env={**os.environ, **EIGHT, "JAX_NUM_CPU_DEVICES": str(devices)},
        capture_output=True,
        text=True,
        timeout=3000,
    )


@pytest.fixture(scope="session")
def failed_with_eight(request):
    """Run all files in one process, and return its output by file, for those with failures."""
    if hasattr(request.config, "workerinput"):
        # Each process of pytest-xdist would run all files: it runs its own, one by one.
        return dict.fromkeys(CASES, "")
    files = [
        item.callspec.params["cases_file"]
        for item in request.session.items
        if item.function is test_with_eight_devices
    ]
    found = run_cases(files, 8, request.config)
    output = found.stdout[-6000:] + found.stderr[-2000:]
    if found.returncode == 0:
        return {}
    failed = set(re.findall(r"^(?:FAILED|ERROR) \S*/(cases_\w+\.py)", found.stdout, re.MULTILINE))
    # Where the process ended early, it is unknown in which file.
    return dict.fromkeys(failed or files, output)


@pytest.mark.each_part
@pytest.mark.parametrize("cases_file", CASES)
def test_with_eight_devices(cases_file, failed_with_eight, pytestconfig):
    if cases_file not in failed_with_eight:
        return
    alone = run_cases([cases_file], 8, pytestconfig)
    # A part of the tests may have none of the file.
    passed = pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED
    assert alone.returncode in passed, alone.stdout[-6000:] + alone.stderr[-2000:]
    output = failed_with_eight[cases_file]
    assert not output, (
        f"it passes by itself, but not in one process with the other files:\n{output}"
    )


@pytest.mark.long
@pytest.mark.each_part
def test_with_sixteen_devices(pytestconfig):
    found = run_cases(["cases_mapped_samples.py", "cases_samples.py"], 16, pytestconfig)
    assert found.returncode == 0, found.stdout[-6000:] + found.stderr[-2000:]


@pytest.mark.long
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
