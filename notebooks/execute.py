"""Runs notebooks and writes what their cells print and return into them.

python notebooks/execute.py                 every notebook of this folder, in place
python notebooks/execute.py --check         run them, and say where outputs are others than stored
"""

import argparse
import ast
import contextlib
import io
import json
import pathlib
import sys

FOLDER = pathlib.Path(__file__).parent


def run_cell(source, names):
    """What a cell prints, and the repr of its last expression or None."""
    program = ast.parse(source)
    last = None
    if program.body and isinstance(program.body[-1], ast.Expr):
        last = ast.Expression(program.body.pop().value)
    printed = io.StringIO()
    result = None
    with contextlib.redirect_stdout(printed):
        exec(compile(program, "<cell>", "exec"), names)
        if last is not None:
            result = eval(compile(last, "<cell>", "eval"), names)
    return printed.getvalue(), None if result is None else repr(result)


def outputs_of(printed, result, number):
    """Outputs as Jupyter stores them."""
    found = []
    if printed:
        lines = printed.splitlines(keepends=True)
        found.append({"name": "stdout", "output_type": "stream", "text": lines})
    if result is not None:
        found.append(
            {
                "data": {"text/plain": result.splitlines(keepends=True)},
                "execution_count": number,
                "metadata": {},
                "output_type": "execute_result",
            }
        )
    return found


def execute(path):
    """The notebook with the outputs that its cells have now."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    names = {"__name__": "__main__"}
    number = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        number += 1
        source = "".join(cell["source"])
        try:
            printed, result = run_cell(source, names)
        except Exception as error:
            error.add_note(f"in cell {number} of {path.name}:\n{source}")
            raise
        cell["execution_count"] = number
        cell["outputs"] = outputs_of(printed, result, number)
    return notebook


def differences(path):
    """The cells whose outputs are others than those stored: (source, stored, now)."""
    stored = json.loads(path.read_text(encoding="utf-8"))
    return [
        ("".join(old["source"]), old["outputs"], new["outputs"])
        for old, new in zip(stored["cells"], execute(path)["cells"], strict=True)
        if old["cell_type"] == "code" and old["outputs"] != new["outputs"]
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    changed = False
    for path in sorted(FOLDER.glob("*.ipynb")):
        if not check:
            text = json.dumps(execute(path), indent=1, ensure_ascii=False)
            path.write_text(text + "\n", encoding="utf-8")
            continue
        for source, before, now in differences(path):
            changed = True
            print(f"{path.name}:\n{source}\nstored: {before}\nnow: {now}\n")
    return int(changed)


if __name__ == "__main__":
    sys.exit(main())
