"""Lines of source as text: "model.py:12", and in a notebook "cell 4, line 1"."""

import os
import re
import sys
from typing import Any

from hlotools.terminal_text import on_one_line

_NUMBER = re.compile(r"\d+")


def cell_of(file: str) -> str | None:
    """Return the notebook cell whose code has this file name, as in "cell 4"; None for others."""
    ipython: Any = sys.modules.get("IPython")
    compiler = getattr(ipython and ipython.get_ipython(), "compile", None)
    # IPython, from version 8 on, labels the code of a cell as ("Cell", "In[4]").
    label_of = getattr(compiler, "format_code_name", None)
    label = label_of and label_of(file)
    number = label and label[0] == "Cell" and _NUMBER.search(label[1])
    return f"cell {number[0]}" if number else None


def short_line(file: str, line: int | None) -> str:
    """Return a source line without its folder."""
    return _line(file, os.path.basename(file.replace("\\", "/")), line)


def relative_line(file: str, line: int | None) -> str:
    """Return a source line, relative to the working directory if the file is below it."""
    return _line(file, file.removeprefix(os.path.join(os.getcwd(), "")), line)


def _line(file: str, name: str, line: int | None) -> str:
    cell = cell_of(file)
    return f"{cell}, line {line}" if cell else on_one_line(f"{name}:{line}")
