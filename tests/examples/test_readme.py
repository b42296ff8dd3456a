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

# Install packages, or are run by other tests: examples by test_examples.py, programs of other
# jaxlibs by .ci/run.
ELSEWHERE = re.compile(r"pip install|\./check|python examples/|train\.py|--jaxlib")

COMMANDS = [
    command
    for line in re.findall(r"^ {4}(\S*python .*)$", TEXT, re.MULTILINE)
    if (command := line.partition("  #")[0].rstrip()) and not ELSEWHERE.search(command)
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A repository with two commits of examples/model.py."""
    folder = tmp_path_factory.mktemp("readme")
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.com", "-C", str(folder)]
    subprocess.run([*git, "init", "-q"], check=True)
    (folder / "examples").mkdir()
    text = (ROOT / "examples" / "model.py").read_text(encoding="utf-8")
    for number, source in enumerate((text.replace("RATE = 0.1", "RATE = 0.2"), text)):
        (folder / "examples" / "model.py").write_text(source, encoding="utf-8")
        subprocess.run([*git, "add", "examples/model.py"], check=True)
        subprocess.run([*git, "commit", "-qm", f"Step {number}"], check=True)
    return folder


def test_the_readme_has_commands():
    assert len(COMMANDS) >= 9 and TEXT.count("\n") <= 120
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
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    names = {}
    exec(compile(code, "README.md", "exec"), names)
    shown = re.findall(r"^(\S.*?) +# (Array\(.*\))$", code, re.MULTILINE)
    assert len(shown) == 2
    for statement, printed in shown:
        assert repr(eval(statement, names)) == printed
    assert "stablehlo.tanh" in eval("gradient.lower(w, xs[0]).as_text()", names)


def test_the_table_has_figures_that_were_measured():
    measured = (ROOT / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8")
    rows = {
        "import and first result": "import, and the first result",
        "trace value_and_grad of a GPT": "trace `value_and_grad`",
        "eager x[index]": "`x[index]`",
        "jit call, arrays": "a call of a jitted function",
    }
    for name, begin in rows.items():
        ours, theirs = re.search(
            rf"^{re.escape(name)}.*? ([\d.]+) [mu]s +([\d.]+) [mu]s", measured, re.MULTILINE
        ).groups()
        cells = re.search(
            rf"^\| {re.escape(begin)}.*?\| ([\d.]+) .*?\| ([\d.]+) ", TEXT, re.MULTILINE
        )
        # Shown with fewer digits.
        assert float(cells[1]) == pytest.approx(float(theirs), rel=0.02), name
        assert float(cells[2]) == pytest.approx(float(ours), rel=0.02), name
    assert "| 10^6 | 0.57 (aim 0.9) | 0.69" in measured and "mean of 126 | 1 | 0.69 |" in TEXT


def test_the_picture_is_small():
    (path,) = re.findall(r"^!\[.*\]\((.*)\)$", TEXT, re.MULTILINE)
    assert (ROOT / path).stat().st_size < 150_000


def test_find_nan_runs_on_a_loss():
    (call,) = re.findall(r"`(find_nan\(.*?\)\(.*?\))`", TEXT)
    names = {
        "find_nan": jax.inspect.find_nan,
        "grad": jax.grad,
        "loss": lambda params, x: (x @ params["w"]).sum(),
        "params": {"w": np.ones((3, 2), np.float32)},
        "x": np.ones((4, 3), np.float32),
    }
    assert str(eval(call, names)).startswith("No ")


def test_the_files_that_it_links_to_are_there():
    for target in re.findall(r"\]\(([^):]+)\)", TEXT):
        assert (ROOT / target).exists(), target
