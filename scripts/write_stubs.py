"""Writes the stubs of hlofront's public modules: `python scripts/write_stubs.py [FOLDER]`.

Most functions are C++ objects or are made by makers, and modules load on first use, so that type
checkers and editors see little in the sources. This asks the running package what it offers, with
which parameters. Stubs are not in the repository: installing hlofront and `./check` write them next
to the modules or, with FOLDER, to the same places below it.
"""

import ast
import contextlib
import functools
import importlib
import inspect
import os
import pathlib
import re
import sys
import types
from collections.abc import Iterator
from typing import Any, get_args

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
# The package of this checkout, also while it is being installed.
sys.path.insert(0, str(ROOT))
# One array is made, to see its members.
os.environ["JAX_PLATFORMS"] = "cpu"

import stub_types as known

from hlofront.base.lazy import names_in
from hlofront.base.typing import DTypeLike
from hlofront.primitives.linalg.dot_general import PrecisionLike

MODULES = (
    *("", "numpy", "numpy.linalg", "numpy.fft", "lax", "lax.linalg", "random", "nn"),
    *("nn.initializers", "image", "ops", "scipy", "scipy.cluster", "scipy.linalg"),
    *("scipy.sparse", "scipy.spatial", "scipy.special", "scipy.stats"),
    *(
        f"scipy.stats.{name}"
        for name in "bernoulli beta betabinom binom cauchy chi2 expon gamma gennorm geom gumbel_l "
        "gumbel_r laplace logistic nbinom norm pareto poisson t truncnorm uniform vonmises "
        "wrapcauchy".split()
    ),
)
# Modules that only hand on what is defined with types elsewhere.
TABLES = (
    *("core", "inspect", "bundle", "tree", "tree_util", "dtypes", "api_util"),
    *("extend.core", "extend.core.primitives", "extend.backend", "extend.linear_util"),
    *("extend.source_info_util", "experimental.hijax", "experimental.jet", "experimental.sparse"),
    *("interpreters.ad", "interpreters.batching", "interpreters.mlir"),
    "interpreters.partial_eval",
)
_TYPING = "Any ClassVar IO Literal ParamSpec Protocol TypeAlias TypeVar Union overload".split()
_ABC = "Callable Collection Generator Hashable Iterable Iterator Mapping Sequence".split()
_BUILTIN = set("bool int float complex str bytes list tuple dict set type object slice".split())
# Names in annotations, and what stands for them in stubs.
_ALIASES = {
    "Shape": "Sequence[int]",
    "AxisName": "Any",
    "DType": "np.dtype[Any]",
}
# What jaxlib defines, without types.
_UNTYPED = {"Device", "Sharding", "NamedSharding", "PartitionSpec", "Layout", "Format"}
# Decorators that return a function of the type that they are given.
_TYPED_DECORATORS = {"operation"}
# Unions that annotations in the sources name: stubs say the name too.
_UNIONS: dict[Any, str] = {
    PrecisionLike: "PrecisionLike",
    DTypeLike: "DTypeLike",
    DTypeLike | None: "DTypeLike | None",
}
_HOMES = {
    **dict.fromkeys(("ArrayLike", "DTypeLike"), "hlofront.typing"),
    **dict.fromkeys(("Array", "Shard"), "hlofront"),
    **dict.fromkeys(("Traced", "Lowered", "Compiled"), "hlofront.runtime.dispatch.stages"),
    "PrecisionLike": "hlofront.primitives.linalg.dot_general",
    **dict.fromkeys(("ConvDimensionNumbers", "GatherScatterMode", "FftType"), "hlofront.lax"),
    "Initializer": "hlofront.nn.initializers",
    "_GeneratorContextManager": "contextlib",
    "GeneratorLike": "hlofront.random.keys",
    **dict.fromkeys(("PRNGSpec", "KeyDType"), "hlofront.random.keys"),
    "ResizeMethod": "hlofront.image",
    **{
        f"{name}Result": "hlofront.numpy.linalg.decompositions"
        for name in ("Eig", "Eigh", "QR", "SVD")
    },
    "SlogdetResult": "hlofront.numpy.linalg.determinants",
    **{
        f"_Unique{name}Result": "hlofront.numpy.arrays.sets"
        for name in ("All", "Counts", "Inverse")
    },
    "ufunc": "hlofront.numpy.elementwise.ufunc",
    "AbstractContextManager": "contextlib",
}


def public_names(package: str) -> dict[str, tuple[str, str] | None]:
    """What a module says that it offers: what it defines, hands on, or loads on first use.

    Returns:
      the module and name that each is handed on from, None where it is the module's own.
    """
    module = importlib.import_module(package)
    source = pathlib.Path(str(module.__file__))
    found: dict[str, tuple[str, str] | None] = {}
    for node in ast.parse(source.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = None
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if alias.asname == alias.name or (alias.asname and source.name == "__init__.py"):
                    found[alias.asname] = (str(node.module), alias.name)
        elif isinstance(node, ast.Assign):
            (target,) = node.targets
            if isinstance(target, ast.Tuple):
                names = [name.id for name in target.elts if isinstance(name, ast.Name)]
                if "__getattr__" in names and isinstance(node.value, ast.Call):
                    found.update(_exported(package, node.value))
                found.update((name, None) for name in names)
            elif isinstance(target, ast.Name):
                found[target.id] = None
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] = None
    return {name: home for name, home in sorted(found.items()) if not name.startswith("_")}


def _exported(package: str, call: ast.Call) -> dict[str, tuple[str, str]]:
    """The names that a call of `exports` hands on, each with its module and its name there."""
    given = {part.arg: part.value for part in call.keywords}
    found: dict[str, tuple[str, str]] = {}
    if "submodules" in given:
        submodules = ast.literal_eval(given["submodules"])
        found.update((name, (package, name)) for name in submodules.split())
    for table in ("now", "later"):
        rows = ast.literal_eval(given[table]) if table in given else {}
        for home, row in rows.items():
            found.update((name, (home, there)) for name, there in names_in(row).items())
    return found


def table_text(package: str) -> str:
    """The stub of a module that only hands on names."""
    lines: list[str] = []
    for name, found in public_names(package).items():
        home, there = found or (package, name)
        if there == name:
            lines.append(f"from {home} import {there} as {name}\n")
        else:
            # In a stub only `import x as x` hands a name on.
            lines.append(f"from {home} import {there} as _{name}\n{name} = _{name}\n")
    return f"{_HEAD}\n{''.join(lines)}"


class Stub:
    """The stub of one module while it is being written."""

    def __init__(self, name: str):
        self.name = name
        self.package = f"hlofront.{name}" if name else "hlofront"
        self.module = importlib.import_module(self.package)
        self.public = public_names(self.package)
        self.imports: set[tuple[str, str, str]] = set()
        self.lines: list[str] = []
        self.by_hand: set[str] = set()
        self.needed: set[str] = set()
        # The module of the function that is being written down: its types may have names there.
        self.home = ""

    def hand_on(self, home: str, there: str, here: str) -> None:
        """Import a name, which is handed on if it is one of the module's public ones."""
        self.imports.add((home, there, here))

    def type_text(self, annotation: Any) -> str:
        """An annotation as it is written in a stub."""
        if isinstance(annotation, types.UnionType):
            annotation = _UNIONS.get(annotation, annotation)
        text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
        text = _spelled_out(text, self.home)
        text = text.replace("~", "").replace("NoneType", "None").replace("numpy.", "np.")
        text = re.sub(r"\b(?:typing|collections\.abc|types|builtins)\.", "", text)
        text = re.sub(r"\b(?:jaxlib\._jax\.)+Array\b", "Array", text)
        for home, name in re.findall(r"\b(hlofront(?:\.\w+)*)\.([A-Z]\w*)", text):
            text = text.replace(f"{home}.{name}", name)
            _HOMES.setdefault(name, home)
        text = re.sub(r"\bArray \| np\.ndarray\b.*?\| np\.bool\b.*?\| complex\b", "ArrayLike", text)
        if not re.fullmatch(r"[\w\[\]|., \"']+", text) or "jaxlib" in text:
            return "Any"
        self.needed.update(re.findall(r"(?<![\w.])[A-Za-z_]\w*", text))
        return text

    def parameter_type(self, function: str, parameter: inspect.Parameter) -> str:
        name = parameter.name
        if parameter.annotation not in (inspect.Parameter.empty, Any, "Any"):
            return self.type_text(parameter.annotation)
        for of in (function, "*"):
            found = known.ELSEWHERE.get((self.name, of, name))
            if found is not None:
                break
        else:
            if parameter.kind is parameter.VAR_POSITIONAL:
                return "Any"
            kinds = {bool: "bool", str: "str"}
            found = kinds.get(type(parameter.default)) or known.PARAMETER.get(name, "Any")
        if parameter.default is None and found != "Any" and "None" not in found:
            found = f"{found} | None"
        return self.type_text(found)

    def parameters(self, function: str, signature: inspect.Signature, skip: int = 0) -> str:
        shown: list[str] = []
        before: Any = None
        for parameter in list(signature.parameters.values())[skip:]:
            kind = parameter.kind
            if before is parameter.POSITIONAL_ONLY and kind is not before:
                shown.append("/")
            if kind is parameter.KEYWORD_ONLY and before not in (kind, parameter.VAR_POSITIONAL):
                shown.append("*")
            before = kind
            stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(kind, "")
            text = f"{stars}{parameter.name}: {self.parameter_type(function, parameter)}"
            if parameter.default is not parameter.empty:
                text += f" = {_default(parameter.default)}"
            shown.append(text)
        if before is inspect.Parameter.POSITIONAL_ONLY:
            shown.append("/")
        return ", ".join(shown)

    def result_type(self, function: str, signature: inspect.Signature) -> str:
        found = known.RESULT.get((self.name, function))
        if found is None:
            said = signature.return_annotation
            if _makes_context_manager(getattr(self.module, function, None)):
                said = f"_GeneratorContextManager[{inspect.formatannotation(get_args(said)[0])}]"
            if said not in (inspect.Signature.empty, Any):
                return self.type_text(said)
            found = "Array" if self.name in known.OF_ARRAYS else "Any"
        return self.type_text(found)

    def declare(self, name: str) -> None:
        """Write down one name."""
        value = getattr(self.module, name)
        home = self.public[name]
        if isinstance(value, types.ModuleType):
            above, _, there = value.__name__.rpartition(".")
            self.hand_on(above, there, name)
        elif value is _array_type():
            self.hand_on("hlofront", "Array", name)
        elif type(value).__name__ == "ScalarType":
            self.hand_on("hlofront.numpy.scalars", "ScalarType", "ScalarType")
            self.lines.append(f"{name}: ScalarType\n")
        elif isinstance(value, type) and value.__module__ == "numpy":
            self.hand_on("numpy", value.__name__, name)
        elif callable(value) and _signature(value) is not None and _is_function(value):
            typed = _typed_home(value)
            by_flag = (self.name, name) in known.BY_FLAG
            if typed is not None and typed != self.package and not by_flag:
                self.hand_on(typed, value.__name__, name)
            else:
                self.define(name, value)
        elif type(value).__name__ == "ufunc":
            self.hand_on("hlofront.numpy.elementwise.ufunc", "ufunc", "ufunc")
            self.lines.append(f"{name}: {'_Unary' if value.nin == 1 else '_Binary'}\n")
        elif home is not None:
            self.hand_on(*home, name)
        elif isinstance(value, type):
            self.lines.append(_class_text(name, value))
        else:
            self.lines.append(f"{name}: {self.type_of_value(value)}\n")

    def define(self, name: str, value: Any) -> None:
        """Write down a function."""
        said = known.DECLARED.get((self.name, name))
        if said is not None:
            self.lines.append(said)
            return
        signature = _signature(value)
        assert signature is not None
        self.home = inspect.unwrap(value).__module__
        inside = self.parameters(name, signature)
        by_flag = known.BY_FLAG.get((self.name, name))
        if by_flag is None:
            result = self.result_type(name, signature)
            # Of a function that is written out, editors find the docstring in the source.
            doc = None if _definition(value) else inspect.getdoc(value)
            body = f"\n    {doc!r}\n    ..." if doc else " ..."
            self.lines.append(f"def {name}({inside}) -> {result}:{body}\n")
            return
        flag, *results = by_flag
        default = signature.parameters[flag].default
        before, after = inside.split(f"{flag}: bool = {default}")
        star = "" if "*, " in before else "*, "
        self.lines += [
            f"@overload\ndef {name}({before}{flag}: Literal[{default}] = {default}{after}) -> "
            f"{results[default]}: ...\n",
            f"@overload\ndef {name}({before}{star}{flag}: Literal[{not default}]"
            f"{after.replace(', *, ', ', ')}) -> {results[not default]}: ...\n",
            f"@overload\ndef {name}({before}{flag}: bool = {default}{after}) -> Any: ...\n",
        ]

    def type_of_value(self, value: Any) -> str:
        kind = type(value)
        if value is None or kind in (bool, int, float, str):
            return "None" if value is None else kind.__name__
        if kind.__module__.startswith("hlofront"):
            self.hand_on(kind.__module__, kind.__qualname__, kind.__qualname__)
            return kind.__qualname__
        self.needed.add("Any")
        return "Any"

    def text(self) -> str:
        """The whole of it."""
        body = "".join(self.lines)
        if "_Unary" in body or "_Binary" in body:
            body = _UFUNCS + body
            self.needed |= {"ArrayLike", "Array"}
        for variable in ("_Carry", "_T", "_Tree"):
            if re.search(rf"\b{variable}\b", body):
                body = f'{variable} = TypeVar("{variable}")\n{body}'
        words = re.sub(r'"""[^"]*"""|#.*', "", body)
        self.needed.update(re.findall(r"(?<![\w.])[A-Za-z_]\w*", words))
        defined = set(re.findall(r"^(?:class |def )?(\w+)", body, re.MULTILINE))
        defined |= {here for _, _, here in self.imports}
        for name in sorted(self.needed - defined):
            if name in _ALIASES:
                body = f"{name}: TypeAlias = {_ALIASES[name]}\n{body}"
                self.needed |= set(re.findall(r"[A-Za-z_]\w*", _ALIASES[name])) | {"TypeAlias"}
            elif name in _UNTYPED:
                body = f"{name}: TypeAlias = Any\n{body}"
                self.needed |= {"TypeAlias", "Any"}
            elif name in _HOMES and _HOMES[name] != self.package:
                if name == "Array" and not self.name:
                    continue
                self.imports.add((_HOMES[name], name, name))
        for group, home in ((_TYPING, "typing"), (_ABC, "collections.abc")):
            for name in group:
                if name in self.needed and name not in defined:
                    self.imports.add((home, name, name))
        lines: set[str] = set()
        for home, there, here in self.imports:
            if here in self.public and there != here:
                # In a stub only `import x as x` hands a name on.
                lines.add(f"from {home} import {there} as _{here}\n")
                body = f"{here} = _{here}\n{body}"
            elif here in self.public or there != here:
                lines.add(f"from {home} import {there} as {here}\n")
            else:
                lines.add(f"from {home} import {there}\n")
        for name in sorted(_BUILTIN & defined):
            # Said of types: `bool` is also the name of a dtype here.
            body = re.sub(rf"(?<=[:>|\[] ){name}\b(?!:)|(?<=\[){name}\b", f"builtins.{name}", body)
            lines.add("import builtins\n")
        for module, line in (("np", "import numpy as np\n"), ("os", "import os\n")):
            if re.search(rf"\b{module}\.", body):
                lines.add(line)
        return f"{_HEAD}\n{''.join(sorted(lines))}\n{body}"


_HEAD = "# Written by scripts/write_stubs.py from the running package: do not edit.\n"
_UFUNCS = """
class _Unary(ufunc):
    def __call__(self, x: ArrayLike, /, out: None = None, where: None = None) -> Array: ...

class _Binary(ufunc):
    def __call__(
        self, x: ArrayLike, y: ArrayLike, /, out: None = None, where: None = None
    ) -> Array: ...

"""


@functools.cache
def _aliases(module: str) -> dict[str, str]:
    """Return the names that a module gives to types, and the types that they stand for."""
    found: dict[str, str] = {}
    if not module.startswith("hlofront"):
        return found
    for node in _statements(module):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            if ast.unparse(node.annotation) == "TypeAlias" and isinstance(node.value, ast.Constant):
                found[node.target.id] = str(node.value.value)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            if isinstance(node.value, ast.BinOp | ast.Subscript):
                found[node.targets[0].id] = ast.unparse(node.value)
    return found


def _spelled_out(text: str, home: str) -> str:
    """Return an annotation with the names of types that stubs cannot import replaced."""
    known_here: dict[str, str] = {}
    for module in ("hlofront.base.typing", "hlofront.numpy.support.annotations", home):
        known_here.update(_aliases(module))

    def spell(match: re.Match[str]) -> str:
        name = match[0]
        if name in _HOMES or name in _ALIASES or name not in known_here:
            return name
        whole = known_here[name]
        # One that is made of itself, as nested lists are, ends there.
        whole = re.sub(rf"\b{name}\b", "Any", whole)
        return _spelled_out(whole, home)

    return re.sub(r"(?<![\w.])[A-Za-z_]\w*", spell, text)


def _array_type() -> Any:
    return importlib.import_module("hlofront").Array


def _signature(value: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(value)
    except (TypeError, ValueError):
        return None


def _makes_context_manager(value: Any) -> bool:
    """Return whether a function is a generator decorated by `contextlib.contextmanager`."""
    code = getattr(value, "__code__", None)
    return code is not None and code.co_filename == contextlib.__file__


def _is_function(value: Any) -> bool:
    return inspect.isroutine(value) or type(value).__name__ == "PjitFunction"


def _definition(value: Any) -> ast.FunctionDef | None:
    """Return the statement that defines a function, None if it is made in another way."""
    function = inspect.unwrap(value)
    if not inspect.isfunction(function) or not function.__module__.startswith("hlofront"):
        return None
    for node in _statements(function.__module__):
        if isinstance(node, ast.FunctionDef) and node.name == function.__name__:
            return node
    return None


@functools.cache
def _statements(module: str) -> list[ast.stmt]:
    source = pathlib.Path(str(importlib.import_module(module).__file__))
    return ast.parse(source.read_text(encoding="utf-8")).body


def _typed_home(value: Any) -> str | None:
    """The module where it is written as a function with types, so that stubs can point there."""
    node = _definition(value)
    if node is None:
        return None
    home = inspect.unwrap(value).__module__
    if getattr(sys.modules[home], node.name, None) is not value:
        return None
    parts = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
    said = all(part.annotation for part in parts) and node.returns is not None
    vague = sum(_is_any(part.annotation) for part in parts) + _is_any(node.returns)
    decorators = {ast.unparse(part).partition("(")[0] for part in node.decorator_list}
    return home if said and not vague and decorators <= _TYPED_DECORATORS else None


def _class_text(name: str, type_: type) -> str:
    """A class that the module defines itself: its sources are hidden by the stub."""
    return f"class {name}(Any): ...\n"


def _is_any(annotation: ast.expr | None) -> bool:
    return isinstance(annotation, ast.Name) and annotation.id == "Any"


def _default(value: Any) -> str:
    if value is None or type(value) in (bool, int, str):
        return repr(value)
    if type(value) is float and value == value and abs(value) != float("inf"):
        return repr(value)
    if type(value) is tuple and all(type(part) is int for part in value):
        return repr(value)
    return "..."


def array_members() -> str:
    """The methods and properties of arrays."""
    stub = Stub("")
    type_ = _array_type()
    instance = importlib.import_module("hlofront.numpy").ones(3)
    _ = instance + instance  # the first operator gives arrays their members
    lines: list[str] = []
    for name in sorted(name for name in dir(type(instance)) if not name.startswith("_")):
        member = inspect.getattr_static(type(instance), name)
        if isinstance(member, property) or not callable(getattr(type_, name, member)):
            kind = known.PROPERTY.get(name, "Any")
            lines.append(f"    @property\n    def {name}(self) -> {kind}: ...\n")
            continue
        signature = _signature(getattr(type(instance), name))
        if signature is None:
            signature = inspect.Signature([inspect.Parameter("self", 0)])
        inside = stub.parameters(name, signature, skip=1)
        result = known.METHOD_RESULT.get(name, "Array")
        inside = ", ".join(filter(None, ("self", inside)))
        lines.append(f"    def {name}({inside}) -> {result}: ...\n")
    return "".join(lines)


def at_members() -> str:
    """The methods of `x.at[index]`."""
    stub = Stub("")
    type_ = importlib.import_module("hlofront.numpy.indexing.updating").AtIndex
    lines: list[str] = []
    for name in sorted(name for name in dir(type_) if not name.startswith("_")):
        signature = _signature(getattr(type_, name))
        if signature is not None and callable(getattr(type_, name)):
            inside = stub.parameters(name, signature, skip=1)
            lines.append(f"    def {name}(self, {inside}) -> Array: ...\n")
    return "".join(lines)


def root() -> Stub:
    """The stub of hlofront itself: parts are written by hand."""
    stub = Stub("")
    by_hand = (HERE / "stub_by_hand.txt").read_text(encoding="utf-8")
    by_hand = by_hand[by_hand.index("\n\n") + 2 :]

    def fill(found: re.Match[str]) -> str:
        name = found["name"]
        signature = _signature(getattr(stub.module, name))
        assert signature is not None
        rest = stub.parameters(name, signature, skip=1).removeprefix("/, ").removeprefix("*, ")
        return f"def {name}({found['before']}{rest})"

    pattern = r"def (?P<name>\w+)\((?P<before>[^\n]*?)__PARAMETERS__\)"
    by_hand = re.sub(pattern, fill, by_hand)
    by_hand = by_hand.replace(
        "    def __array_namespace__", f"{array_members()}    def __array_namespace__"
    )
    by_hand = by_hand.replace("    __AT__\n", at_members())
    stub.lines.append(by_hand)
    stub.by_hand = set(re.findall(r"^(?:class|def) (\w+)", by_hand, re.MULTILINE))
    return stub


def stubs() -> Iterator[tuple[pathlib.Path, str]]:
    """Every stub: where it lies, and its text."""
    for name in MODULES:
        stub = Stub(name) if name else root()
        for public in stub.public:
            if public not in stub.by_hand:
                stub.declare(public)
        yield _beside(stub.module), stub.text()
    for name in TABLES:
        package = f"hlofront.{name}"
        yield _beside(importlib.import_module(package)), table_text(package)


def _beside(module: types.ModuleType) -> pathlib.Path:
    return pathlib.Path(str(module.__file__)).with_suffix(".pyi")


def main(arguments: list[str]) -> None:
    folder = pathlib.Path(arguments[0]) if arguments else ROOT
    for path, text in stubs():
        target = folder / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        # Another process, such as an editor, may read it at any time.
        written = target.with_suffix(f".pyi.{os.getpid()}")
        written.write_text(text, encoding="utf-8")
        written.replace(target)


if __name__ == "__main__":
    main(sys.argv[1:])
