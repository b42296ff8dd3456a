"""Each test checks something, and all of its lines can run."""

import ast
import itertools
from collections.abc import Iterator

from tests.conventions.source import source_trees, walk
from tests.conventions.test_imports import report

# Functions and context managers of hlofront and pytest that raise where what they check is wrong.
CHECKS = frozenset("raises warns fail check_grads check_jvp check_jaxpr checking_leaks".split())
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
JUMPS = (ast.Return, ast.Raise, ast.Continue, ast.Break)


class SourcesOfTests:
    """The modules of tests: which functions each defines and imports from the others.

    Args:
      trees: the syntax trees, by the dotted names of the modules.
    """

    def __init__(self, trees: dict[str, ast.Module]):
        self.trees = trees
        self.imported = {module: dict(_imports_from_tests(tree)) for module, tree in trees.items()}
        # What a plain name means in a module, and what an attribute may mean: methods as well.
        self.named = {module: _by_name(tree.body) for module, tree in trees.items()}
        self.members = {
            module: _by_name(tree.body + [step for c in _classes(tree) for step in c.body])
            for module, tree in trees.items()
        }
        self._content: dict[int, tuple[bool, list[ast.Name | ast.Attribute]]] = {}

    def unchecked(self) -> list[str]:
        """Return the tests that no failure of the code could fail, as "module:line name"."""
        return [
            f"{module}:{node.lineno} {node.name}"
            for module, tree in self.trees.items()
            if module.rpartition(".")[2].startswith("test_")
            for node in walk(tree)
            if isinstance(node, FUNCTIONS) and node.name.startswith("test_")
            if not self.checks(module, node)
        ]

    def checks(self, module: str, function: ast.AST) -> bool:
        """Return whether a function asserts something, or a function that it names does."""
        seen: set[int] = set()
        waiting = [(module, function)]
        while waiting:
            home, node = waiting.pop()
            if id(node) not in seen:
                seen.add(id(node))
                is_check, names = self._content_of(node)
                if is_check:
                    return True
                waiting += [meaning for name in names for meaning in self._meanings(home, name)]
        return False

    def _content_of(self, node: ast.AST) -> tuple[bool, list[ast.Name | ast.Attribute]]:
        """Return whether there is a check in a node itself, and the names that it uses."""
        if id(node) not in self._content:
            parts = list(ast.walk(node))
            names = [part for part in parts if isinstance(part, ast.Name | ast.Attribute)]
            self._content[id(node)] = any(map(_is_check, parts)), names
        return self._content[id(node)]

    def _meanings(self, module: str, name: ast.Name | ast.Attribute) -> list[tuple[str, ast.AST]]:
        """Return the functions and classes of tests that a name may mean, with their modules."""
        imported = self.imported[module]
        if isinstance(name, ast.Name):
            home, wanted = imported.get(name.id, (module, name.id))
            return [(home, node) for node in self.named.get(home, {}).get(wanted, ())]
        homes = {module}
        for home, member in imported.values():
            homes |= {home, f"{home}.{member}"}
        return [
            (home, node)
            for home in homes & self.trees.keys()
            for node in self.members[home].get(name.attr, ())
        ]


def _imports_from_tests(tree: ast.Module) -> Iterator[tuple[str, tuple[str, str]]]:
    for node in walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("tests"):
            for alias in node.names:
                yield alias.asname or alias.name, (node.module, alias.name)


def _classes(tree: ast.Module) -> list[ast.ClassDef]:
    return [node for node in tree.body if isinstance(node, ast.ClassDef)]


def _by_name(body: list[ast.stmt]) -> dict[str, list[ast.AST]]:
    definitions: dict[str, list[ast.AST]] = {}
    for node in body:
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            definitions.setdefault(node.name, []).append(node)
    return definitions


def _is_check(node: ast.AST) -> bool:
    """Return whether a node asserts, names a check, or runs a process that must succeed."""
    if isinstance(node, ast.Name | ast.Attribute):
        name = node.id if isinstance(node, ast.Name) else node.attr
        return name in CHECKS or name.startswith("assert_")
    if isinstance(node, ast.keyword):
        return node.arg == "check" and ast.unparse(node.value) == "True"
    return isinstance(node, ast.Assert | ast.Raise)


def lines_that_never_run(tree: ast.Module) -> Iterator[int]:
    """Yield the lines after a jump in one block, and of assertions that are always true."""
    for node in walk(tree):
        for block in (getattr(node, field, None) for field in ("body", "orelse", "finalbody")):
            if isinstance(block, list):
                for step, following in itertools.pairwise(block):
                    if isinstance(step, JUMPS):
                        yield following.lineno
        if isinstance(node, ast.Assert) and isinstance(node.test, ast.Tuple | ast.Constant):
            yield node.lineno


def trees_of_tests() -> dict[str, ast.Module]:
    """Return the syntax trees of the modules of tests, by their dotted names."""
    return {
        path.removesuffix(".py").replace("/", "."): tree
        for path, tree in source_trees().items()
        if path.startswith("tests/")
    }


def test_each_test_checks_something():
    report(SourcesOfTests(trees_of_tests()).unchecked(), "what a test runs is asserted")


def test_no_line_of_a_test_is_skipped():
    report(
        [
            f"{module}:{line}"
            for module, tree in trees_of_tests().items()
            for line in lines_that_never_run(tree)
        ],
        "these lines follow a jump, or assert what is always true",
    )


def test_tests_without_a_check_are_noticed():
    helper = ast.parse("def agree(x):\n    assert x\n\ndef show(x):\n    print(x)")
    planted = ast.parse(
        "from tests.helper import agree, show\n"
        "def test_helper():\n    agree(1)\n"
        "def test_nothing():\n    show(1)\n"
        "def test_error():\n    with pytest.raises(ValueError):\n        show(1)\n"
        "def test_process():\n    subprocess.run(['a'])\n"
    )
    trees = {"tests.helper": helper, "tests.test_planted": planted}
    assert SourcesOfTests(trees).unchecked() == [
        "tests.test_planted:4 test_nothing",
        "tests.test_planted:9 test_process",
    ]


def test_lines_that_never_run_are_noticed():
    planted = (
        "for x in xs:\n    continue\n    assert x\n"
        "def f():\n    return 1\n    assert y\n"
        "assert (x, 'a message')\n"
    )
    assert sorted(lines_that_never_run(ast.parse(planted))) == [3, 6, 7]
