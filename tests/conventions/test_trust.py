"""Nothing of a file, the environment or the network is run as code, except where this table says.

docs/explanation/trust.md tells users what is trusted.
"""

import ast
from collections.abc import Iterator

import pytest

from tests.conventions.source import ROOT, modules
from tests.conventions.test_imports import report

# What runs code that it is given, or reads what can hold code, by the module that has it.
BUILTINS = {"eval", "exec", "compile", "__import__", "execfile"}
MEMBERS = {
    "pickle": {"load", "loads", "Unpickler"},
    "marshal": {"load", "loads"},
    "shelve": {"open"},
    "yaml": {"load", "unsafe_load", "full_load"},
    "os": {"system", "popen", "execv", "execve", "execvp", "execl", "startfile"},
    "subprocess": {"getoutput", "getstatusoutput"},
    "tempfile": {"mktemp"},
    "runpy": {"run_path", "run_module"},
    "ctypes": {"CDLL", "PyDLL", "WinDLL", "LoadLibrary"},
}
KEYWORDS = {"shell", "allow_pickle"}
# File and name -> why it may be there.
ALLOWED = {
    "hlofront/base/named_tuple.py: eval": "a constructor of names that are identifiers",
    "hlofront/bridge/failures.py: compile": "a constant text",
    "hlofront/bridge/failures.py: exec": "a constant text",
    "hlofront/bridge/plugins.py: ctypes.CDLL": "the plugin that the user installed or named",
    "hlofront/bridge/worker_script.py: pickle.Unpickler": "of plain data and layouts only",
    "hlofront/cli/as_jax.py: runpy.run_module": "the script that the user names",
    "hlofront/cli/as_jax.py: runpy.run_path": "the script that the user names",
    "hlofront/inspect/bisection.py: shell=": "the command that the user gives to `bisect`",
    "hlofront/numpy/arrays/saving.py: allow_pickle=": "for writing, as in NumPy",
    "hlofront/runtime/debugging/breakpoints.py: eval": "what the user types at a breakpoint",
}


def runs_code(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the lines that run, or read, what may be code, and how."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.attr in MEMBERS.get(node.value.id, ()):
                yield node.lineno, f"{node.value.id}.{node.attr}"
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if alias.name in MEMBERS.get(node.module or "", ()):
                    yield node.lineno, f"{node.module}.{alias.name}"
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id in BUILTINS:
                yield node.lineno, node.func.id
            for keyword in node.keywords:
                is_off = isinstance(keyword.value, ast.Constant) and keyword.value.value is False
                if keyword.arg in KEYWORDS and not is_off:
                    yield node.lineno, f"{keyword.arg}="


def sources() -> Iterator[tuple[str, ast.AST]]:
    for module in modules():
        yield module.path.relative_to(ROOT).as_posix(), module.tree
    for path in [*(ROOT / "hlotools").rglob("*.py"), ROOT / "pytest_hlofront.py"]:
        yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def test_code_is_run_only_where_the_table_says():
    found = {f"{path}: {what}": line for path, tree in sources() for line, what in runs_code(tree)}
    report(
        [f"{name}, line {line}" for name, line in found.items() if name not in ALLOWED],
        "this may run code of a stranger: read data instead, or add it to the table with a reason",
    )
    assert not set(ALLOWED) - set(found), "remove what is no longer there from the table"


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("eval(text)", "eval"),
        ("import pickle\npickle.loads(data)", "pickle.loads"),
        ("from pickle import loads", "pickle.loads"),
        ("read = marshal.load", "marshal.load"),
        ("subprocess.run(line, shell=True)", "shell="),
        ("np.load(path, allow_pickle=trusted)", "allow_pickle="),
        ("os.system(line)", "os.system"),
        ("__import__(name)", "__import__"),
    ],
)
def test_what_runs_code_is_noticed(code, what):
    assert [name for _, name in runs_code(ast.parse(code))] == [what]


@pytest.mark.parametrize(
    "code", ["np.load(path, allow_pickle=False)", "re.compile(x)", "model.eval()", "ast.parse(x)"]
)
def test_what_runs_no_code_is_not(code):
    assert not list(runs_code(ast.parse(code)))
