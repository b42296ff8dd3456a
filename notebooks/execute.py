"""Runs notebooks and writes what their cells print, return and draw into them.

python notebooks/execute.py [NAME ...]          all notebooks of this folder, or these, in place
python notebooks/execute.py --check [NAME ...]  run them, and say where outputs differ from the file

It needs no Jupyter. Each notebook runs in a process and an empty folder of its own. Of IPython's
syntax, `%%writefile FILE` and lines that begin with `!` work. Tags of a cell say more:

  html    the HTML that its value shows in a notebook is kept, too
  varies  its output is not the same in each run, or on each machine
  kept    it is not run, as it takes minutes or needs the network, and keeps its output
"""

import argparse
import ast
import base64
import contextlib
import importlib
import importlib.util
import io
import json
import linecache
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

FOLDER = pathlib.Path(__file__).resolve().parent
WRITE_FILE = re.compile(r"%%writefile (\S+)\n")
SHELL_LINE = re.compile(r"^!(.*)$", re.MULTILINE)
CELL_LINE = re.compile(r"\b(cell \d+):(\d+)")
# Pictures of more pixels or colors than these would make the files large.
DOTS_PER_INCH = 80
COLORS = 256


def load(path):
    return json.loads(path.read_text(encoding="utf-8"))


def code_cells(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def missing(notebook):
    """What a notebook imports or its metadata names, packages and commands, if not installed."""
    names = set(notebook["metadata"].get("requires", ()))
    written = {"jax"}  # hlofront takes its place.
    for cell in code_cells(notebook):
        source = "".join(cell["source"])
        if match := WRITE_FILE.match(source):
            written.add(match[1].removesuffix(".py"))
            source = source[match.end() :] if match[1].endswith(".py") else ""
        for node in ast.walk(ast.parse(SHELL_LINE.sub("", source))):
            if isinstance(node, ast.Import):
                names.update(alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                names.add(node.module.partition(".")[0])
    return sorted(
        name
        for name in names - written
        if importlib.util.find_spec(name) is None and shutil.which(name) is None
    )


def shell(command):
    """Print what a command prints, on either stream."""
    done = subprocess.run(
        command,
        shell=True,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "COLUMNS": "120", "NO_COLOR": "1"},
    )
    print(done.stdout, end="")


def run_cell(source, names, number):
    """What a cell prints, and the value of its last expression or None."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        if match := WRITE_FILE.match(source):
            pathlib.Path(match[1]).write_text(source[match.end() :], encoding="utf-8")
            print(f"Writing {match[1]}")
            return printed.getvalue(), None
        source = SHELL_LINE.sub(lambda match: f"_shell({match[1]!r})", source)
        file = f"cell {number}"
        # As in Jupyter, tracebacks and reports find the lines of a cell.
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        program = ast.parse(source)
        last = None
        if program.body and isinstance(program.body[-1], ast.Expr) and not source.endswith(";"):
            last = ast.Expression(program.body.pop().value)
        exec(compile(program, file, "exec"), names)
        value = None if last is None else eval(compile(last, file, "eval"), names)
    return printed.getvalue(), value


def pictures():
    """The open figures of matplotlib as PNG, in base64; they are closed."""
    if (pyplot := sys.modules.get("matplotlib.pyplot")) is None:
        return []
    image = importlib.import_module("PIL.Image")  # matplotlib depends on it.
    found = []
    for number in pyplot.get_fignums():
        drawn, small = io.BytesIO(), io.BytesIO()
        pyplot.figure(number).savefig(drawn, dpi=DOTS_PER_INCH, bbox_inches="tight")
        image.open(drawn).convert("RGB").quantize(COLORS).save(small, "PNG", optimize=True)
        found.append(base64.b64encode(small.getvalue()).decode())
    pyplot.close("all")
    return found


def as_in_jupyter(text):
    """A text whose lines of cells are named as hlofront names them in Jupyter."""
    return CELL_LINE.sub(r"\1, line \2", text)


def outputs_of(printed, value, tags, number):
    """Outputs as Jupyter stores them."""
    found = []
    if printed:
        lines = as_in_jupyter(printed).splitlines(keepends=True)
        found.append({"name": "stdout", "output_type": "stream", "text": lines})
    drawn = pictures()
    # What pyplot's functions return says nothing next to the picture.
    if value is not None and not drawn:
        data = {"text/plain": as_in_jupyter(repr(value)).splitlines(keepends=True)}
        if "html" in tags:
            # Its stack frames name this file.
            page = value._repr_html_().replace(f"{FOLDER}{os.sep}", "")
            data["text/html"] = page.splitlines(keepends=True)
        found.append(
            {
                "data": data,
                "execution_count": number,
                "metadata": {},
                "output_type": "execute_result",
            }
        )
    for picture in drawn:
        data = {"image/png": picture, "text/plain": ["<Figure>"]}
        found.append({"data": data, "metadata": {}, "output_type": "display_data"})
    return found


def execute_here(path):
    """The notebook with the outputs that its cells have now, in this process and folder."""
    notebook = load(path)
    names = {"__name__": "__main__", "_shell": shell}
    sys.path.insert(0, "")  # As in Jupyter, a notebook finds the files that it writes.
    for number, cell in enumerate(code_cells(notebook), start=1):
        source = "".join(cell["source"])
        tags = cell["metadata"].get("tags", ())
        cell["execution_count"] = number
        if "kept" in tags:
            continue
        try:
            printed, value = run_cell(source, names, number)
        except BaseException as error:
            error.add_note(f"in cell {number} of {path.name}:\n{source}")
            raise
        cell["outputs"] = outputs_of(printed, value, tags, number)
    return notebook


def execute(path):
    """The notebook with the outputs that its cells have in a process of its own."""
    root = str(FOLDER.parent)
    # pytest's goldens are only written where `CI` is not set, as on a reader's machine.
    inherited = {name: value for name, value in os.environ.items() if name != "CI"}
    with tempfile.TemporaryDirectory() as folder:
        result = pathlib.Path(folder) / "executed.ipynb"
        (work := pathlib.Path(folder) / "work").mkdir()
        subprocess.run(
            [sys.executable, __file__, "--into", str(result), str(path)],
            cwd=work,
            env={
                **inherited,
                "PYTHONPATH": os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")])),
                "MPLBACKEND": "Agg",
                # What takes more than a second differs between machines.
                "HLOFRONT_PROGRESS": "0",
                "NO_COLOR": "1",
            },
            check=True,
            timeout=600,
        )
        return load(result)


def differences(path):
    """The cells whose outputs are others than those stored: (source, stored, now)."""
    return [
        ("".join(old["source"]), old["outputs"], new["outputs"])
        for old, new in zip(code_cells(load(path)), code_cells(execute(path)), strict=True)
        if old["outputs"] != new["outputs"] and "varies" not in old["metadata"].get("tags", ())
    ]


def write(notebook, path):
    text = json.dumps(notebook, indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="by default all notebooks of this folder")
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--into", type=pathlib.Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.into:
        write(execute_here(pathlib.Path(options.names[0])), options.into)
        return 0
    paths = [FOLDER / f"{name}.ipynb" for name in options.names]
    changed = False
    for path in paths or sorted(FOLDER.glob("*.ipynb")):
        if absent := missing(load(path)):
            print(f"{path.name} is not run without {', '.join(absent)}")
            continue
        if not options.check:
            write(execute(path), path)
            continue
        for source, before, now in differences(path):
            changed = True
            print(f"{path.name}:\n{source}\nstored: {before}\nnow: {now}\n")
    return int(changed)


if __name__ == "__main__":
    sys.exit(main())
