"""python -m hlofront find-miscompile: the report of a function in a file, and its exit status."""

import io
import json

import pytest

from hlofront.cli.main import main
from tests.inspect.miscompile.planted import FAULTS, planted

PROGRAM = """
from hlofront import lax

def step(x):
    y = lax.tanh(x)
    small = lax.lt(y, x)
    return lax.select(small, y, x)
"""


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.py"
    path.write_text(PROGRAM)
    return path


def run(*arguments):
    out = io.StringIO()
    return main(["find-miscompile", *map(str, arguments)], out), out.getvalue()


@pytest.mark.slow
def test_a_right_function(model):
    status, text = run(f"{model}:step", "--args", "f32[7]")
    assert status == 0 and text.startswith("XLA compiles step at ")


@pytest.mark.long
def test_a_wrong_function_its_files_and_its_json(model, tmp_path, capsys):
    fault = next(each for each in FAULTS if each.name == "changed comparison")
    files = tmp_path / "fault"
    with planted(fault):
        # This jaxlib in another process has no planted fault.
        status, text = run(
            f"{model}:step", "--args", "f32[7]", "--jaxlib", "current", "--out", files, "--json"
        )
        again, _ = run(f"{model}:step", "--args", "f32[7]", "--out", files)
    assert status == 1 and again == 2
    assert "is not empty" in capsys.readouterr().err
    report = json.loads(text)
    assert report["kind"] == "values" and report["jaxlibs"] == [[report["jaxlib"], "right"]]
    assert [operation["primitive"] for operation in report["operations"]][-1] in ("lt", "select_n")
    assert report["operations"][-1]["source_line"]["file"] == str(model)
    assert {"part.py", "part.mlir", "part.npz", "run_mlir.py"} <= {p.name for p in files.iterdir()}
