"""Files are small, open with a sentence and swallow no errors; public modules hold no code."""

import ast

import pytest

from tests.conventions.source import LAYERS, ROOT, modules, nodes_with_lateness

LONGEST = 600


def report(found, rule):
    assert not found, rule + ":\n" + "\n".join(found)


def test_files_stay_small():
    report(
        [
            f"{module.shown}: {lines} lines"
            for module in modules()
            if (lines := module.text.count("\n")) >= LONGEST
        ],
        f"files have fewer than {LONGEST} lines: split by topic",
    )


def test_modules_open_with_one_sentence():
    found = []
    for module in modules():
        if module.is_package and not module.text.strip():
            continue
        docstring = ast.get_docstring(module.tree)
        first = (docstring or "").split("\n\n")[0]
        if not first.rstrip().endswith((".", "?", "!")):
            found.append(f"{module.shown}: {first or 'no docstring'}")
    report(found, "a module opens with a docstring whose first paragraph is a sentence")


def test_init_files_of_the_layers_are_empty():
    found = []
    for module in modules():
        if module.is_package and LAYERS.get(module.folder, 10) <= 8:
            if module.name in ("hlofront.core", "hlofront.pjrt"):
                # They are also public by these names, and re-export.
                found += code_in(module)
            elif module.text.strip():
                found.append(f"{module.shown} is not empty")
    report(found, "`__init__.py` holds nothing on layers 0 to 8, re-exports in core, pjrt")


def test_public_modules_only_re_export():
    report(
        [line for module in modules() if module.is_public_module for line in code_in(module)],
        "public modules hold a docstring, imports, __all__ and tables of `exports`, and no code",
    )


def code_in(module):
    """What a public module must not hold."""
    lazy_helpers = {
        alias.asname or alias.name
        for node in module.tree.body
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hlofront.base")
        for alias in node.names
    }
    return [
        f"{module.shown}:{node.lineno}: {ast.unparse(node).splitlines()[0]}"
        for node in module.tree.body
        if not _allowed(node, module, lazy_helpers)
    ]


def _allowed(node, module, lazy_helpers):
    match node:
        case ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant(value=str())):
            return True
        case ast.Delete():  # the lazy helper's own name, which is not for users
            return True
        case ast.Assign(targets=[ast.Name(id="__all__")]):
            return True
        case ast.AugAssign(target=ast.Name(id="__all__")):
            return True
        case ast.Assign(
            targets=[ast.Name(id="__getattr__") | ast.Tuple()], value=ast.Call(func=ast.Name() as f)
        ):
            names = [n.id for n in ast.walk(node.targets[0]) if isinstance(n, ast.Name)]
            return set(names) <= {"__getattr__", "__dir__", "__all__"} and f.id in lazy_helpers
        case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))) | ast.Expr(value=ast.Call()):
            return module.path.name == "__main__.py"
        case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING")):
            return all(isinstance(inner, ast.Import | ast.ImportFrom) for inner in node.body)
    return False


BROAD = ("Exception", "BaseException")


def swallowed_errors(tree):
    """Yield the lines at which an error of any class is dropped, and how."""
    for node, _ in nodes_with_lateness(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress"):
            if any(getattr(type_, "id", "") in BROAD for type_ in node.args):
                yield node.lineno, "suppresses every error"
        elif isinstance(node, ast.ExceptHandler):
            types = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
            broad = any(type_ is None or getattr(type_, "id", "") in BROAD for type_ in types)
            if broad and all(map(_does_nothing, node.body)):
                yield node.lineno, "does nothing with the error"
            elif node.type is None and not _raises(node):
                yield node.lineno, "a bare except that does not raise"


def _does_nothing(step):
    literal = isinstance(step, ast.Expr) and isinstance(step.value, ast.Constant)
    return literal or isinstance(step, ast.Pass | ast.Continue | ast.Break)


def _raises(handler):
    return any(isinstance(node, ast.Raise) for node in ast.walk(handler))


def test_no_swallowed_errors():
    report(
        [
            f"{module.shown}:{line}: {what}"
            for module in modules()
            for line, what in swallowed_errors(module.tree)
        ],
        "an except that takes everything must do something with it",
    )


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ("try:\n    f()\nexcept Exception:\n    pass", [3]),
        ("try:\n    f()\nexcept (ValueError, Exception):\n    ...", [3]),
        ("try:\n    f()\nexcept:\n    g()", [3]),
        ("while f():\n    try:\n        g()\n    except BaseException:\n        break", [4]),
        ("with contextlib.suppress(Exception):\n    f()", [1]),
        ("with contextlib.suppress(OSError):\n    f()", []),
        ("try:\n    f()\nexcept:\n    raise", []),
        ("try:\n    f()\nexcept Exception as error:\n    g(error)", []),
    ],
)
def test_swallowed_errors_are_noticed(code, lines):
    assert [line for line, _ in swallowed_errors(ast.parse(code))] == lines


def test_nothing_is_left_unimplemented():
    """A few calls are refused with NotImplementedError as JAX refuses them: marked on the line."""
    found = []
    for module in modules():
        lines = module.text.splitlines()
        for node, _ in nodes_with_lateness(module.tree):
            raised = node.exc if isinstance(node, ast.Raise) else None
            name = raised.func if isinstance(raised, ast.Call) else raised
            if getattr(name, "id", "") == "NotImplementedError" and not (
                isinstance(raised, ast.Call)
                and raised.args
                and lines[node.lineno - 1].endswith("# JAX raises this class.")
            ):
                found.append(f"{module.shown}:{node.lineno}")
    report(found, "NotImplementedError where a user could land")


@pytest.mark.parametrize("name", ["py.typed"])
def test_package_data_is_there(name):
    assert (ROOT / "hlofront" / name).is_file()


def test_every_folder_is_a_package():
    """A folder without `__init__.py` is left out of the wheel."""
    folders = {path.parent for path in (ROOT / "hlofront").rglob("*.py")}
    report(
        [
            str(folder.relative_to(ROOT))
            for folder in folders
            if not (folder / "__init__.py").exists()
        ],
        "folders of Python files without __init__.py",
    )
