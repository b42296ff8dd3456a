"""The program of docs/howto/many_processes.md runs over processes as the page says."""

import io
import pathlib
import re
import sys

import pytest

from hlofront.cli.run import run_group

ROOT = pathlib.Path(__file__).parents[2]


@pytest.mark.long
def test_the_program_of_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    page = (ROOT / "docs" / "howto" / "many_processes.md").read_text()
    program = re.search(r"```python\n(.*?)```", page, re.DOTALL)[1]
    script = tmp_path / "train.py"
    script.write_text(program)
    out = io.StringIO()
    assert run_group([sys.executable, str(script)], 2, 2, out) == 0, out.getvalue()
    loss = re.search(r"2 processes, 4 devices: loss (\d\.\d+)", out.getvalue())
    assert loss is not None, out.getvalue()
    assert float(loss[1]) < 1.5  # It was 2 before the first step.
