"""The text of a module depends on the function, its inputs and the versions, and nothing else."""

import os
import pathlib
import shutil
import subprocess
import sys
import threading

import numpy as np
import pytest

import hlofront
from hlofront import lax

ROOT = pathlib.Path(hlofront.__file__).parents[1]

PROGRAM = """
import sys
import numpy as np
import hlofront
from hlofront import lax

table = np.arange(600, dtype=np.float32)
inner = hlofront.jit(lambda x, y: lax.add(lax.sin(x), y))
other = hlofront.jit(lambda x: inner(x, x))


def program(params, x):
    for name in sorted(params):
        x = inner(lax.mul(x, params[name]), lax.slice(table, (0,), (4,)))
    x = lax.sort(lax.concatenate([x, other(x)], 0))
    return {"out": lax.reduce_sum(x, (0,)), "unused": lax.cumsum(x), "x": lax.exp(x)}


if "busy" in sys.argv:  # much is traced and lowered before
    for n in range(1, 9):
        hlofront.jit(lambda x: lax.mul(inner(x, x), 3.0)).lower(np.ones(n, np.float32))
params = {name: np.ones(4, np.float32) for name in ("w", "b", "gamma", "beta")}
lowered = hlofront.jit(program).lower(params, np.ones(4, np.float32))
print(lowered.as_text())
print(lowered.compile().as_text() if "compile" in sys.argv else "")
"""


def text_of(tmp_path, *, seed="0", root=ROOT, arguments=()):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(root)}
    return subprocess.run(
        [sys.executable, str(script), *arguments],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
        cwd=tmp_path,
    ).stdout


@pytest.mark.long
def test_hash_seed_history_and_install_path_leave_no_trace(tmp_path):
    first = text_of(tmp_path)
    assert "func.func private" in first
    assert text_of(tmp_path, seed="4242") == first
    assert text_of(tmp_path, arguments=("busy",)) == first
    elsewhere = tmp_path / "elsewhere" / "site-packages"
    shutil.copytree(
        ROOT / "hlofront", elsewhere / "hlofront", ignore=shutil.ignore_patterns("__pycache__")
    )
    assert text_of(tmp_path, root=elsewhere, arguments=("compile",)) == text_of(
        tmp_path, arguments=("compile",)
    )


def test_threads_leave_no_trace():
    def lowered():
        f = hlofront.jit(lambda x: lax.add(lax.sin(x), lax.mul(x, 2.0)))
        return f.lower(np.ones(3, np.float32)).as_text()

    texts = [lowered()]
    threads = [threading.Thread(target=lambda: texts.append(lowered())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(texts) == 5 and len(set(texts)) == 1


def test_debug_info_names_the_users_lines_and_not_ours():
    def layer(x):
        return lax.sin(x)

    lowered = hlofront.jit(lambda x: layer(x)).lower(1.0)
    text = lowered.as_text(debug_info=True)
    assert "test_determinism.py" in text and '"jit(<lambda>)/sin"' in text
    assert "hlofront/primitives" not in text and "hlofront/runtime" not in text
    assert "loc(" not in lowered.as_text()
    hlo = lowered.compile().as_text()
    assert "test_determinism.py" in hlo and 'op_name="jit(<lambda>)/sin"' in hlo
