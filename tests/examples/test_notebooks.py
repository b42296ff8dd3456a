"""The notebooks run, and show what they say: numbers may differ in their last digits."""

import importlib.util
import re

import numpy as np
import pytest

from tests.house.source import ROOT

FOLDER = ROOT / "notebooks"
NUMBER = re.compile(r"(?<![\w.%])-?\d+(?:\.\d*)?(?:e[+-]?\d+)?(?![\w.])")


def load():
    spec = importlib.util.spec_from_file_location("execute", FOLDER / "execute.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def text_of(outputs):
    lines = []
    for output in outputs:
        lines += output.get("text") or output["data"]["text/plain"]
    return "".join(lines)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebook(path):
    for source, stored, now in load().differences(path):
        before, after = text_of(stored), text_of(now)
        words = [re.sub(r"\s+", " ", NUMBER.sub("#", text)) for text in (before, after)]
        assert words[0] == words[1], source
        numbers = [[float(x) for x in NUMBER.findall(text)] for text in (before, after)]
        np.testing.assert_allclose(*numbers, rtol=1e-2, atol=1e-3, err_msg=source)
