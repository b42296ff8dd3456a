"""The commands and the code of the README run, in a folder with the files that they name."""

import os
import pathlib
import re
import shlex
import subprocess
import sys

import numpy as np
import pytest

import hlofront as jax

ROOT = pathlib.Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")

MODEL = """
import hlofront.numpy as jnp

def step(x):
    return jnp.tanh(x @ x.T).sum(0) {more}

def example_args():
    import numpy as np
    return (np.ones((8, 8), np.float32),)
"""

# Install packages, or are run by other tests: examples by test_examples.py, programs of other
# jaxlibs by .ci/run.
ELSEWHERE = re.compile(r"pip install|\./check|python examples/|python train\.py|--jaxlib")

COMMANDS = [
    command
    for line in re.findall(r"^ {4}(\S*python .*)$", TEXT, re.MULTILINE)
    if (command := line.partition("  #")[0].rstrip()) and not ELSEWHERE.search(command)
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A repository with two commits of model.py, and what else the commands read."""
    folder = tmp_path_factory.mktemp("readme")
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.com", "-C", str(folder)]
    subprocess.run([*git, "init", "-q"], check=True)
    for number in range(2):
        text = MODEL.format(more="+ 1" * number)
        (folder / "model.py").write_text(text)
        (folder / "train.py").write_text(text)
        program = jax.jit(lambda x, n=number: (x @ x).sum() + n).lower(np.ones((4, 4))).compile()
        (folder / ("after.hlo" if number else "before.hlo")).write_text(program.as_text())
        subprocess.run([*git, "add", "model.py"], check=True)
        subprocess.run([*git, "commit", "-qm", f"Step {number}"], check=True)
    (folder / "examples").symlink_to(ROOT / "examples")
    jax.config.update("hlofront_log", str(folder / "run"))
    jax.jit(lambda x: x + 1)(np.ones(3))
    jax.config.update("hlofront_log", None)
    return folder


def test_the_readme_has_commands():
    assert len(COMMANDS) >= 12
    assert sum("-m hlofront" in command for command in COMMANDS) == len(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_commands(command, folder):
    missing = {name.split(":")[0] for name in re.findall(r"--target (\S+)", command)} - {"cpu"}
    missing -= {target.name.split(":")[0] for target in jax.targets() if target.ready}
    if missing:
        pytest.skip(f"no compiler for {sorted(missing)} is installed")
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "HLOFRONT_CACHE": "on",
        "HLOFRONT_CACHE_DIR": str(folder / "cache"),
    }
    done = subprocess.run(
        [sys.executable, *shlex.split(command)[1:]],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    # Status 1 says that programs differ, or that what was looked for is not there.
    assert done.returncode in (0, 1), done.stderr
    assert "Traceback" not in done.stderr and "error:" not in done.stderr, done.stderr
    assert done.stdout.strip() or "wrote" in done.stderr


def test_the_code_prints_what_its_comments_say():
    code = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)[0]
    names = {}
    exec(compile(code, "README.md", "exec"), names)
    for statement, printed in re.findall(r"^(f\(.*?\)) +# (Array\(.*\))$", code, re.MULTILINE):
        assert repr(eval(statement, names)) == printed
    assert "stablehlo.sine" in names["f"].lower(np.arange(3.0)).as_text()


def test_the_searches_run_on_a_loss():
    calls = re.findall(r"`hlofront\.inspect\.(find_\w+\(.*?\)\(.*?\))`", TEXT)
    assert len(calls) == 2
    params, x = {"w": np.ones((3, 2), np.float32)}, np.ones((4, 3), np.float32)
    names = {
        "find_nan": jax.inspect.find_nan,
        "find_error": jax.inspect.find_error,
        "grad": jax.grad,
        "loss": lambda params, x: (x @ params["w"]).sum(),
        "params": params,
        "x": x,
    }
    for call in calls:
        assert not eval(call, names)
        assert str(eval(call, names)).startswith("No ")


def test_a_bundle_is_loaded_without_the_function(folder):
    code = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)[1]
    arguments = (np.ones((8, 8), np.float32),)
    names = {"arguments": arguments}
    subprocess.run(
        [sys.executable, "-m", "hlofront", "bundle", "model.py:step", "-o", "step.hlob"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
    )
    exec(code.replace("step.hlob", str(folder / "step.hlob")), names)
    np.testing.assert_allclose(names["step"](*arguments), np.full(8, 9.0), rtol=1e-6)
