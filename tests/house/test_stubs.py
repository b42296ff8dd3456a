"""The stubs next to the modules describe what the modules have."""

import ast
import inspect
import subprocess
import sys

import pytest

from tests.house.source import PACKAGE

ROOT = PACKAGE.parent


def test_stubs_are_what_the_package_offers():
    # In a process of its own: it loads every public module, and this one's tests ask what loads.
    command = [sys.executable, "scripts/write_stubs.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["numpy/__init__", "lax/__init__", "nn/__init__"])
def test_stubs_leave_little_unsaid(name):
    tree = ast.parse((PACKAGE / f"{name}.pyi").read_text(encoding="utf-8"))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    parameters = [part for node in functions for part in node.args.args + node.args.kwonlyargs]
    vague = [part.arg for part in parameters if ast.unparse(part.annotation or ast.Pass()) == "Any"]
    assert len(vague) < 0.15 * len(parameters), sorted(set(vague))


def test_ways_to_call_are_those_of_the_running_package():
    import hlofront.numpy as jnp

    tree = ast.parse((PACKAGE / "numpy/__init__.pyi").read_text(encoding="utf-8"))
    seen = 0
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not node.decorator_list:
            parameters = inspect.signature(getattr(jnp, node.name)).parameters.values()
            named = [part.name for part in parameters if part.kind is part.KEYWORD_ONLY]
            assert [part.arg for part in node.args.kwonlyargs] == named, node.name
            seen += 1
    assert seen > 250
