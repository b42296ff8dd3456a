"""The notebooks run, and show what they say: numbers may differ in their last digits."""

import importlib.util
import re

import numpy as np
import pytest

from hlofront.bridge.state import jaxlib_version
from tests.conventions.source import ROOT

FOLDER = ROOT / "notebooks"
NUMBER = re.compile(r"(?<![\w.%])-?\d+(?:\.\d*)?(?:e[+-]?\d+)?(?![\w.])")
# Colors of a terminal, folders of a machine, addresses of objects.
LOCAL = re.compile(r"\x1b\[|/(?:tmp|home|root|work)/|0x[0-9a-f]{9}")
LINK = re.compile(r"\]\(([^)\s#:]+)")


def load_module():
    spec = importlib.util.spec_from_file_location("execute", FOLDER / "execute.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


EXECUTE = load_module()
PATHS = sorted(FOLDER.glob("*.ipynb"))


def text_of(outputs):
    lines = []
    for output in outputs:
        lines += output.get("text") or output["data"]["text/plain"]
    return "".join(lines)


@pytest.mark.long
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_notebook_shows_what_it_computes(path):
    if missing := EXECUTE.missing(EXECUTE.load(path)):
        pytest.skip(f"{path.name} needs {', '.join(missing)}: pip install hlofront[learn]")
    for source, stored, now in EXECUTE.differences(path):
        before, after = text_of(stored), text_of(now)
        words = [re.sub(r"\s+", " ", NUMBER.sub("#", text)) for text in (before, after)]
        assert words[0] == words[1], source
        if jaxlib_version > (0, 10, 2):
            continue  # Of other XLAs, sizes and costs differ.
        numbers = [[float(x) for x in NUMBER.findall(text)] for text in (before, after)]
        np.testing.assert_allclose(*numbers, rtol=1e-2, atol=1e-3, err_msg=source)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_notebook_is_fit_for_a_repository(path):
    notebook = EXECUTE.load(path)
    assert path.stat().st_size < 500_000
    for number, cell in enumerate(EXECUTE.code_cells(notebook), start=1):
        assert cell["execution_count"] == number, "python notebooks/execute.py runs it again"
        for output in cell["outputs"]:
            text = "".join([text_of([output]), *output.get("data", {}).get("text/html", ())])
            assert not LOCAL.search(text), number
            assert len(output.get("data", {}).get("image/png", "")) < 60_000, number
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            for target in LINK.findall("".join(cell["source"])):
                assert (FOLDER / target).exists(), target
