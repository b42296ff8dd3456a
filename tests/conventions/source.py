"""hlofront's source, parsed once: its modules, what each imports, and where."""

import ast
import dataclasses
import functools
import gc
import pathlib
from collections.abc import Iterable, Iterator

from hlofront.base.lazy import names_in

ROOT = pathlib.Path(__file__).parents[2]
PACKAGE = ROOT / "hlofront"
# The tools that read programs as text, which other front-ends use too: they import neither
# hlofront nor jaxlib.
TOOLS = ROOT / "hlotools"

LAYERS = {
    "bridge": 0,
    "base": 1,
    "core": 2,
    "primitives": 3,
    "transforms": 4,
    "higher_order": 5,
    "lowering": 6,
    "pjrt": 7,
    "runtime": 8,
    "pallas": 9,
    "numpy": 10,
    "random": 10,
    "nn": 10,
    "scipy": 10,
    "image": 10,
    "sparse": 10,
    "export": 11,
    "inspect": 11,
    "jax_names": 11,
    "cli": 12,
}
TOP = 12
# The folders of layer 8, from the lowest to the highest: each imports those before it.
RUNTIME = (
    "sharding array checks compilation buckets dispatch processes debugging export bundle".split()
)


@dataclasses.dataclass(frozen=True)
class Import:
    """One imported name: the module that defines it if that is ours, else the name as written."""

    target: str
    line: int
    # Inside a function, so that it happens at a call instead of at import.
    late: bool

    @property
    def top(self) -> str:
        return self.target.partition(".")[0]


@dataclasses.dataclass(frozen=True)
class Module:
    name: str
    path: pathlib.Path
    text: str
    tree: ast.Module
    is_package: bool

    @property
    def shown(self) -> str:
        return str(self.path.relative_to(ROOT))

    @property
    def folder(self) -> str:
        """The layer's folder; '' for a file of the root."""
        parts = self.path.relative_to(ROOT).parts[1:]
        return parts[0] if len(parts) > 1 else ""

    @property
    def is_tool(self) -> bool:
        """Whether the module belongs to hlotools."""
        return self.name.partition(".")[0] == TOOLS.name

    @property
    def is_public_module(self) -> bool:
        """Only re-exports: root files, folders that are not layers, and the users' packages."""
        if self.is_tool:
            return self.is_package
        if self.folder not in LAYERS:
            return True
        return self.is_package and LAYERS[self.folder] >= 10

    @functools.cached_property
    def imports(self) -> list[Import]:
        return list(_imports(self, module_names()))

    def __hash__(self):
        return hash(self.name)


def layer_of(module_name: str) -> tuple[int, int]:
    """The layer of a module of ours, by its dotted name, and in runtime/ its folder's place."""
    parts = module_name.split(".")
    if parts[0] == TOOLS.name:
        return -1, 0
    layer = LAYERS.get(parts[1], TOP) if len(parts) > 1 else TOP
    place = RUNTIME.index(parts[2]) if parts[1:2] == ["runtime"] and len(parts) > 2 else 0
    return layer, place


def parsed(paths: Iterable[pathlib.Path]) -> Iterator[tuple[pathlib.Path, str, ast.Module]]:
    """Yield paths, texts and syntax trees, which the collector of garbage will not visit."""
    gc.disable()
    for path in paths:
        text = path.read_text(encoding="utf-8")
        yield path, text, ast.parse(text, str(path))
    gc.freeze()
    gc.enable()


@functools.cache
def modules() -> tuple[Module, ...]:
    found = []
    for path, text, tree in parsed((*sorted(PACKAGE.rglob("*.py")), *sorted(TOOLS.rglob("*.py")))):
        parts = path.relative_to(ROOT).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        found.append(Module(name, path, text, tree, is_package))
    return tuple(found)


@functools.cache
def source_trees() -> dict[str, ast.Module]:
    """Return the syntax trees of the packages, the tests and the examples, by their paths."""
    trees = {module.shown: module.tree for module in modules()}
    paths = (path for folder in ("tests", "examples") for path in (ROOT / folder).rglob("*.py"))
    for path, _, tree in parsed(sorted(paths)):
        trees[path.relative_to(ROOT).as_posix()] = tree
    return trees


@functools.cache
def module_names() -> frozenset[str]:
    return frozenset(module.name for module in modules())


@functools.cache
def _walked(tree: ast.AST) -> tuple[list[ast.AST], list[bool]]:
    """All nodes, and of each whether it is inside a function: looked for once, for all tests."""
    nodes, lateness = [tree], [False]
    # Both lists grow as the loop goes through them.
    for node, late in zip(nodes, lateness, strict=True):
        inside = late or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        children = list(ast.iter_child_nodes(node))
        nodes += children
        lateness += [inside] * len(children)
    return nodes, lateness


def walk(tree: ast.AST) -> list[ast.AST]:
    """As `ast.walk`, but kept: for trees of modules, which several tests go through."""
    return _walked(tree)[0]


def nodes_with_lateness(tree: ast.AST) -> Iterator[tuple[ast.AST, bool]]:
    """Every node, and whether it is inside a function."""
    return zip(*_walked(tree), strict=True)


def _imports(module: Module, known: frozenset[str]) -> Iterator[Import]:
    for node, late in nodes_with_lateness(module.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno, late)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(module, node)
            for alias in node.names:
                whole = f"{base}.{alias.name}"
                yield Import(whole if whole in known else base, node.lineno, late)
        elif isinstance(node, ast.Call) and _is_import_call(node.func):
            argument = node.args[0] if node.args else None
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                yield Import(argument.value, node.lineno, late)
        elif isinstance(node, ast.Call):
            for home, names in table_of_exports(node, "now").items():
                for whole in [f"{home}.{there}" for there in names.values()] or [home]:
                    yield Import(whole if whole in known else home, node.lineno, late)


def table_of_exports(call: ast.Call, table: str) -> dict[str, dict[str, str]]:
    """What a call of `base.lazy.exports` hands on: by module, names and what they are there."""
    if getattr(call.func, "id", "") != "_exports":
        return {}
    rows = [ast.literal_eval(part.value) for part in call.keywords if part.arg == table]
    return {home: names_in(row) for home, row in rows[0].items()} if rows else {}


def _absolute(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    package = module.name.split(".")
    up = node.level - 1 if module.is_package else node.level
    if up:
        package = package[:-up]
    return ".".join([*package, node.module] if node.module else package)


def _is_import_call(function: ast.expr) -> bool:
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in ("import_module", "__import__")
