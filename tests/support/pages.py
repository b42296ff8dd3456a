"""Pages of documentation: their code and commands run in order, and print what the pages say.

The blocks of a page run in one folder, those of Python in one namespace:

- A comment behind an expression is what the expression returns or prints, and one behind any other
  statement at the top of a block is the error that it raises, such as `# TypeError: ...`.
- A block of `text` is what the block before it prints.
- A block that begins with the name of a file, as `# train.py`, is written to that file.
- A block of `sh` has commands, which end with status 0, or 1 if the block says what they print.
- A block that begins with `# needs: torch` runs where that module or program is installed.

`...` stands for any text. A time, a version, a digest, the line of a file, or a number such as
12,345 stands for any other; so do decimal numbers in a line with a time, where others may differ by
a thousandth.

    python -m tests.support.pages docs/howto/timing.md    # runs it, and fills in what is `?`
"""

import ast
import contextlib
import importlib.util
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import tokenize
from typing import NamedTuple

import numpy as np

ROOT = pathlib.Path(__file__).parents[2]
SECONDS = 240

_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"(?:#|<!--) ([\w./-]+\.\w+)(?: -->)?\n")
_NEEDS = re.compile(r"# needs: (.*)\n")
# What a command says on stderr while it works, if that takes more than a second.
_PROGRESS = re.compile(r"^ *hlofront: (?:compiling|importing|running|making) .*\n?", re.MULTILINE)
_ERROR = re.compile(r"(?:\w+\.)*\w*(?:Error|Exception|Exit|Mismatch)\b")
_PARTS = re.compile(
    r"""(?P<any>\.\.\.)
      | (?P<time>(?<![\w.])\d[\d.,]*\s?(?:ns|us|µs|ms|s|min|seconds?|minutes?)\b)
      | (?P<line>[\w./<>-]+\.(?:py|md):\d+)
      | (?P<digest>0x[0-9a-f]+|(?<!\w)(?=\w*\d)[0-9a-f]{8,}(?!\w))
      | (?P<version>(?<![\w.])\d+\.\d+\.\d+(?![\w.]))
      | (?P<measured>(?<![\w.])\d{1,3}(?:,\d{3})+(?![\w.]))
      | (?P<number>(?<![\w.])-?(?:\d+\.\d*|\.\d+)(?:e[+-]?\d+)?(?![\w.]))
      | (?P<space>\s+)""",
    re.VERBOSE,
)
_PATTERNS = {
    "any": ".*?",
    "time": r"\d[\d.,]*\s?(?:ns|us|µs|ms|s|min|seconds?|minutes?)",
    "line": r"[\w./<>-]+\.(?:py|md):\d+",
    "digest": "(?:0x[0-9a-f]+|[0-9a-f]{8,})",
    "number": r"(-?(?:\d+\.\d*|\.\d+)(?:e[+-]?\d+)?)",
    "version": r"\d+\.\d+\.\d+",
    "measured": r"[-\d.,e+]+",
    "space": r"\s+",
}


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str
    text: str
    line: int
    """The number of its first line in the page."""

    @property
    def file(self) -> str | None:
        """The name of the file that the block is, if its first line says so."""
        match = _FILE.match(self.text)
        return match[1] if match else None

    @property
    def absent(self) -> str | None:
        """The first thing that the block needs and that is not here."""
        match = _NEEDS.match(self.text)
        names = match[1].split(", ") if match else []
        return next((name for name in names if not _is_here(name)), None)


class Difference(NamedTuple):
    """What a page says, and what is true, at one of its lines."""

    line: int
    expected: str
    actual: str

    def __str__(self) -> str:
        return f"line {self.line}: the page says\n{self.expected}\nand it is\n{self.actual}\n"


def blocks(text: str) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    return [
        Block(match[1], match[2], text.count("\n", 0, match.start(2)) + 1)
        for match in _FENCE.finditer(text)
    ]


def same(expected: str, actual: str) -> bool:
    """Return whether an output is what a page says, except for what may differ."""
    pattern, numbers = "", []
    expected, actual = _PROGRESS.sub("", expected), _PROGRESS.sub("", actual)
    for line in expected.strip().splitlines():
        start = 0
        line = line.strip()
        parts = list(_PARTS.finditer(line))
        is_measured = any(part.lastgroup == "time" for part in parts)
        for part in parts:
            kind = part.lastgroup or ""
            if kind == "number" and is_measured:
                kind = "measured"
            elif kind == "number":
                numbers.append(float(part[0]))
            pattern += re.escape(line[start : part.start()]) + _PATTERNS[kind]
            start = part.end()
        pattern += re.escape(line[start:]) + r"\s+"
    match = re.fullmatch(pattern, actual.strip() + "\n", re.DOTALL)
    return bool(match) and np.allclose(numbers, [float(n) for n in match.groups()], 1e-3, 1e-7)


def run(path: pathlib.Path, folder: pathlib.Path) -> list[Difference]:
    """Run the blocks of a page in a folder, and return what is not as the page says."""
    page = _Page(path, folder)
    found = blocks(path.read_text(encoding="utf-8"))
    for block, following in zip(found, [*found[1:], None]):
        output = following if following and following.language == "text" else None
        if block.language == "text" or block.absent:
            continue
        if block.file:
            target = folder / block.file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text)
        elif block.language == "python":
            page.python(block, output)
        elif block.language == "sh":
            page.shell(block, output)
    return page.differences


class _Page:
    """A page while it runs."""

    def __init__(self, path: pathlib.Path, folder: pathlib.Path):
        self.folder = folder
        # The code so far, as a file, so that lines in messages are those of a program.
        self.source = folder / f"{path.stem}.py"
        self.names = {"__name__": "__main__", "__file__": str(self.source)}
        self.code = ""
        self.differences: list[Difference] = []

    def expect(self, line: int, expected: str, actual: str) -> None:
        actual = actual.replace(f"{self.folder}/", "")
        if not same(expected, actual):
            self.differences.append(Difference(line, expected.strip(), actual.strip()))

    def python(self, block: Block, output: Block | None) -> None:
        start = self.code.count("\n")
        tree = ast.parse("\n" * start + block.text)
        comments = _comments(block.text)
        self.code += block.text + "\n"
        self.source.write_text(self.code)
        printed = ""
        for statement in tree.body:
            value, shown, error = self._execute(statement)
            last = (statement.end_lineno or 0) - start
            expected = comments.get(last, "")
            if _ERROR.match(expected) or (error and expected):
                self.expect(block.line + last - 1, expected, error or "(no error)")
            elif expected and isinstance(statement, ast.Expr):
                result = shown if value is None else repr(value)
                self.expect(block.line + last - 1, expected, result)
                printed += "" if value is None else shown
            else:
                printed += shown + error
        if output or printed:
            said = output.text if output else "(nothing printed)"
            self.expect(output.line if output else block.line, said, printed)

    def _execute(self, statement: ast.stmt) -> tuple[object, str, str]:
        """Run a statement; return an expression's value, what it prints, and its error."""
        shown = io.StringIO()
        value, error = None, ""
        with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
            try:
                if isinstance(statement, ast.Expr):
                    code = compile(ast.Expression(statement.value), str(self.source), "eval")
                    value = eval(code, self.names)
                else:
                    exec(compile(ast.Module([statement], []), str(self.source), "exec"), self.names)
                if "hlofront" in sys.modules:
                    sys.modules["hlofront"].effects_barrier()
            except Exception as raised:
                error = f"{type(raised).__name__}: {raised}\n"
        return value, shown.getvalue(), error

    def shell(self, block: Block, output: Block | None) -> None:
        done = subprocess.run(
            ["bash", "-euc", block.text],
            cwd=self.folder,
            env=environment(self.folder),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
        )
        if done.returncode not in ((0, 1) if output else (0,)) or "Traceback (" in done.stdout:
            text = f"status {done.returncode}:\n{done.stdout}"
            self.differences.append(Difference(block.line, block.text, text))
        elif output:
            self.expect(output.line, output.text, done.stdout)


def environment(folder: pathlib.Path) -> dict[str, str]:
    """Return the environment variables of commands in a folder."""
    unset = ("CI", "HLOFRONT_CACHE", "PYTEST_ADDOPTS", "PYTHONDONTWRITEBYTECODE")
    return {
        **{name: value for name, value in os.environ.items() if name not in unset},
        "PATH": f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "PYTHONPYCACHEPREFIX": str(folder.parent / "bytecode"),
        "HLOFRONT_CACHE_DIR": str(folder / "cache"),
        "COLUMNS": "100",
    }


def _comments(code: str) -> dict[int, str]:
    """Return the comments behind code by their lines."""
    return {
        token.start[0]: token.string.removeprefix("#").strip()
        for token in tokenize.generate_tokens(io.StringIO(code).readline)
        if token.type == tokenize.COMMENT and token.line[: token.start[1]].strip()
    }


def _is_here(name: str) -> bool:
    # hlofront's import hook raises the error for jax, where that is not installed.
    with contextlib.suppress(ModuleNotFoundError):
        return bool(shutil.which(name)) or importlib.util.find_spec(name) is not None
    return False


def fill(path: pathlib.Path, differences: list[Difference]) -> None:
    """Write what is true into a page, where it says `?`, or `ValueError: ?`."""
    lines = path.read_text(encoding="utf-8").split("\n")
    for each in reversed(differences):
        at = each.line - 1
        if lines[at].strip() == "?":
            lines[at : at + 1] = each.actual.split("\n")
        elif each.expected == "?":
            lines[at] = lines[at].removesuffix("?") + " ".join(each.actual.split())
        elif each.expected.endswith(": ?"):
            first, _, more = each.actual.partition("\n")
            lines[at] = lines[at].removesuffix(each.expected) + first + " ..." * bool(more)
    path.write_text("\n".join(lines), encoding="utf-8")


def main() -> None:
    path = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "examples").symlink_to(ROOT / "examples")
        os.chdir(folder)
        differences = run(path, folder)
    fill(path, differences)
    for each in differences:
        if not each.expected.endswith("?"):
            print(each)


if __name__ == "__main__":
    main()
