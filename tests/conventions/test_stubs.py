"""The stubs that are written for the public modules describe what the modules have."""

import ast
import importlib
import inspect
import pathlib
import subprocess
import sys
import tomllib

import pytest

from tests.conventions.source import PACKAGE

ROOT = PACKAGE.parent


@pytest.fixture(scope="module")
def stubs(tmp_path_factory):
    """The stubs as trees, by the names of their modules."""
    # In a process of its own: it loads every public module, and this one's tests ask what loads.
    folder = tmp_path_factory.mktemp("stubs")
    subprocess.run([sys.executable, "scripts/write_stubs.py", folder], cwd=ROOT, check=True)
    return {
        ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__"): (
            ast.parse(path.read_text(encoding="utf-8"))
        )
        for path in folder.rglob("*.pyi")
    }


@pytest.mark.parametrize("name", ["numpy", "lax", "nn"])
def test_stubs_leave_little_unsaid(stubs, name):
    tree = stubs[f"hlofront.{name}"]
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    parameters = [part for node in functions for part in node.args.args + node.args.kwonlyargs]
    vague = [part.arg for part in parameters if ast.unparse(part.annotation or ast.Pass()) == "Any"]
    assert len(vague) < 0.15 * len(parameters), sorted(set(vague))


def test_stubs_have_the_names_that_the_modules_show(stubs):
    for name in ("numpy", "nn", "random", "lax.linalg", "inspect", "interpreters.ad", "dtypes"):
        module = importlib.import_module(f"hlofront.{name}")
        # pytest adds names that are not identifiers to modules whose assertions it rewrites.
        shown = {name for name in dir(module) if name.isidentifier() and name[0] != "_"}
        assert shown <= _handed_out(stubs[module.__name__]), module.__name__


def _handed_out(tree):
    """Return the names that type checkers see in a stub: those of definitions and `x as x`."""
    found = set()
    for node in tree.body:
        match node:
            case ast.FunctionDef() | ast.ClassDef():
                found.add(node.name)
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                found.add(name)
            case ast.ImportFrom():
                found |= {alias.name for alias in node.names if alias.asname == alias.name}
    return found


def test_functions_that_no_source_defines_have_their_docstrings(stubs):
    import hlofront.numpy as jnp

    functions = {n.name: n for n in stubs["hlofront.numpy"].body if isinstance(n, ast.FunctionDef)}
    assert ast.get_docstring(functions["sin"]) == inspect.getdoc(jnp.sin)
    assert ast.get_docstring(functions["sinc"]) is None


def test_ways_to_call_are_those_of_the_running_package(stubs):
    import hlofront.numpy as jnp

    seen = 0
    for node in stubs["hlofront.numpy"].body:
        if isinstance(node, ast.FunctionDef) and not node.decorator_list:
            parameters = inspect.signature(getattr(jnp, node.name)).parameters.values()
            named = [part.name for part in parameters if part.kind is part.KEYWORD_ONLY]
            assert [part.arg for part in node.args.kwonlyargs] == named, node.name
            seen += 1
    assert seen > 250


def test_an_installation_can_write_the_stubs():
    """It imports hlofront, in an environment that has what pyproject.toml says a build requires."""
    settings = tomllib.loads(pathlib.Path(ROOT, "pyproject.toml").read_text(encoding="utf-8"))
    assert {*settings["project"]["dependencies"]} <= {*settings["build-system"]["requires"]}
