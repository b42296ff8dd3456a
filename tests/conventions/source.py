"""hlofront's source, parsed once: its modules, what each imports, and where."""

import ast
import dataclasses
import functools
import pathlib
from collections.abc import Iterator

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
    "numpy": 9,
    "random": 9,
    "nn": 9,
    "scipy": 9,
    "image": 9,
    "sparse": 9,
    "export": 10,
    "inspect": 10,
    "jax_names": 10,
    "cli": 11,
}
TOP = 11
# The folders of layer 8, from the lowest to the highest: each imports those before it.
RUNTIME = "sharding array checks compilation dispatch processes debugging export bundle".split()


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
        return self.is_package and LAYERS[self.folder] >= 9

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


@functools.cache
def modules() -> tuple[Module, ...]:
    found = []
    for path in (*sorted(PACKAGE.rglob("*.py")), *sorted(TOOLS.rglob("*.py"))):
        text = path.read_text(encoding="utf-8")
        parts = path.relative_to(ROOT).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        found.append(Module(name, path, text, ast.parse(text, str(path)), is_package))
    return tuple(found)


@functools.cache
def module_names() -> frozenset[str]:
    return frozenset(module.name for module in modules())


def nodes_with_lateness(tree: ast.AST) -> Iterator[tuple[ast.AST, bool]]:
    """Every node, and whether it is inside a function."""
    stack = [(tree, False)]
    while stack:
        node, late = stack.pop()
        yield node, late
        inside = late or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        stack.extend((child, inside) for child in ast.iter_child_nodes(node))


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
