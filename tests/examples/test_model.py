"""The commands of the pages work on examples/model.py as they are written."""

import io
import runpy

import numpy as np
import pytest

import hlofront as jax
from hlofront.bridge.state import jaxlib_version
from hlofront.cli.main import main
from tests.conventions.source import ROOT

MODEL = ROOT / "examples" / "model.py"
STEP, FASTER = f"{MODEL}:step", f"{MODEL}:faster_step"


def printed(*command):
    out = io.StringIO()
    assert main(list(command), out) in (0, 1)
    return out.getvalue()


def test_the_faster_step_has_the_same_result():
    model = runpy.run_path(str(MODEL))
    results = [model[name](*model["example_args"]()) for name in ("step", "faster_step")]
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-6), *results)


def test_a_diff_says_what_the_faster_step_saves():
    text = printed("diff", STEP, FASTER)
    assert "at model.py:" in text
    # From jaxlib 0.12 on, XLA stores as little for the slower step.
    assert ("bytes" in text and "-91." in text) == (jaxlib_version < (0, 12))


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["show", STEP, "--style", "source"], "HloModule jit_step"),
        (["show", STEP, "--stage", "memory"], "^ peak"),
        (["cost", STEP], "total: "),
        (["profile", STEP], "wall time: "),
        (["compare", STEP, "--target", "cpu"], "cpu"),
    ],
)
def test_commands(command, expected):
    assert expected in printed(*command)


def test_a_bundle(tmp_path):
    path = str(tmp_path / "step.hlob")
    assert "executable for cpu" in printed("bundle", STEP, "-o", path)
    assert "labels: int32[256]" in printed("bundle", "ls", path)
