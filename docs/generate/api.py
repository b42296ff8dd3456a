"""The reference of the public modules, from the names and docstrings of the running package."""

import ast
import enum
import importlib
import inspect
import pathlib
import pkgutil
import re
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from generate.docstrings import described, first_sentence, inline, rst
from hlofront.base.lazy import names_in

# Modules whose names are jaxlib's own bindings of MLIR, or that programs do not import.
LEFT_OUT = re.compile(r"hlofront\.(extend\.mlir\b|interpreters\b|as_jax)")
# Modules with a page each, in the order of the reference; others follow. Modules below these that
# are short are on the page of the module above them.
SHORT = 12
# A module with more names has a page for each of the modules that define them.
LONG = 200
_FEW = 4


def modules() -> dict[str, types.ModuleType]:
    """Return the public modules by name, from hlofront down."""
    found: dict[str, types.ModuleType] = {}

    def walk(name: str) -> None:
        module = found[name] = importlib.import_module(name)
        names = {n for n in dir(module) if not n.startswith("_")}
        if name.startswith(("hlofront.experimental", "hlofront.example_libraries")):
            names |= {each.name for each in pkgutil.iter_modules(getattr(module, "__path__", ()))}
        for each in sorted(names):
            below = f"{name}.{each}"
            if not LEFT_OUT.match(below) and below not in found and _is_module(module, each):
                walk(below)

    for top in ("hlofront", "hlofront.example_libraries", "hlotools"):
        walk(top)
    return found


def _is_module(module: types.ModuleType, name: str) -> bool:
    below = f"{module.__name__}.{name}"
    if module.__name__.startswith(("hlofront.experimental", "hlofront.example_libraries")):
        try:
            importlib.import_module(below)
        except ImportError:
            pass
    value = getattr(module, name, None)
    if module.__name__ == "hlotools":
        return False
    return isinstance(value, types.ModuleType) and value.__name__ == below


def names_of(module: types.ModuleType) -> dict[str, Any]:
    """Return the public names of a module, without submodules, and what they are."""
    names = getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]
    values = [(name, getattr(module, name)) for name in sorted(names, key=str.lower)]
    # The context managers of options come last: few readers look for them.
    values.sort(key=lambda pair: type(pair[1]).__name__ == "Option")
    return {n: v for n, v in values if not isinstance(v, types.ModuleType)}


# ---- one name --------------------------------------------------------------------------------


def _known_types() -> list[tuple[str, str]]:
    own = importlib.import_module("hlofront.base.typing")
    known = []
    for name in ("ArrayLike", "DTypeLike", "Shape", "StaticScalar"):
        if hasattr(own, name):
            known.append((inspect.formatannotation(getattr(own, name)), name))
    return sorted(known, key=lambda pair: -len(pair[0]))


_PATHS = re.compile(r"\b(?:[a-z_]\w*\.)+(?=[A-Z]\w*|ndarray|number|dtype|bool\b)")
_DEFAULT = re.compile(r"<(?:function|class|object) ?'?([\w.]*)'?[^>]*>")
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
known_types: list[tuple[str, str]] = []


def signature(value: Any) -> str:
    """Return the signature of a function or class as one line, or "" if it has none."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    if not known_types:
        known_types.extend(_known_types())
    parameters = []
    for each in found.parameters.values():
        if each.name.startswith("_") and each.default is not each.empty:
            continue
        default = each.default
        if default is not each.empty and not _is_plain(default):
            each = each.replace(default=_Shown(default))
        parameters.append(each)
    text = str(found.replace(parameters=parameters)).replace("'", '"')
    # Annotations that are text have quotes.
    text = re.sub(r'(: |-> )"([^"]*)"', r"\1\2", text)
    for long, short in known_types:
        text = text.replace(long, short)
    return _PATHS.sub("", text).replace("\n", " ")


def _is_plain(value: object) -> bool:
    if isinstance(value, (tuple, list, frozenset)):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (bool, int, float, complex, str, bytes))


class _Shown:
    """A default that is shown by the name of its class or function."""

    def __init__(self, value: object) -> None:
        self.text = getattr(value, "__name__", None) or type(value).__name__

    def __repr__(self) -> str:
        return self.text


def _doc(value: Any) -> str:
    """Return the docstring of an object, and only its first sentence if others wrote it."""
    doc = (vars(value).get("__doc__") if isinstance(value, type) else inspect.getdoc(value)) or ""
    return doc if _is_ours(value) else first_sentence(doc)


def _is_ours(value: Any) -> bool:
    home = getattr(value, "__module__", None) or type(value).__module__
    return home.partition(".")[0] in ("hlofront", "hlotools", "jaxlib")


def entry(name: str, value: Any) -> list[str]:
    """Return the description of one public name."""
    if hasattr(value, "__origin__"):
        return _described("data", name, "", f"A type: `{_PATHS.sub('', str(value))}`.")
    if isinstance(value, type):
        members = _members(value) if _is_ours(value) else []
        return _described("class", name, _class_signature(value), _doc(value), members)
    if callable(value) and not _is_value(value):
        return _described("function", name, signature(value) or "(...)", _doc(value))
    doc = "" if _is_plain(value) else _doc(value)
    shown = [f":value: {value!r}", ""] if _is_plain(value) else []
    return _described("data", name, "", doc or f"A value: {name}.", first=shown)


def _is_value(value: Any) -> bool:
    """Return whether a callable object is shown as a value: dtypes of jnp, primitives."""
    return not hasattr(value, "__name__") and not hasattr(value, "__wrapped__")


def _class_signature(value: type) -> str:
    if issubclass(value, (BaseException, enum.Enum)):
        return ""
    return re.sub(r" -> .*$", "", signature(value))


def _described(
    kind: str,
    name: str,
    signature: str,
    doc: str,
    members: Sequence[str] = (),
    first: Sequence[str] = (),
) -> list[str]:
    body = rst(doc) if doc else []
    lines = [f".. py:{kind}:: {name}{signature}", *first, *body, "", *members]
    return ["", lines[0], *(f"   {line}" if line else "" for line in lines[1:])]


def _members(value: type) -> list[str]:
    """Return the descriptions of a class's own methods and properties that have docstrings."""
    lines: list[str] = []
    for name, member in vars(value).items():
        if name.startswith("_") or isinstance(member, type):
            continue
        if isinstance(member, property) or inspect.isdatadescriptor(member):
            if doc := _doc(member):
                if not doc.startswith("Alias for field number"):
                    lines += _described("property", name, "", doc)
            continue
        kind = "classmethod" if isinstance(member, classmethod) else "method"
        function = getattr(value, name, None)
        if callable(function) and (doc := _doc(function)):
            text = re.sub(r"^\((?:self|cls)(?:, )?(?:/, )?", "(", signature(function) or "(...)")
            lines += _described(kind, name, text, doc)
    return lines


# ---- pages -----------------------------------------------------------------------------------


def heading(text: str, mark: str) -> list[str]:
    return ["", text, mark * max(len(text), 3), ""]


def _home(value: Any) -> str:
    """Return the module that defines what a name stands for."""
    return getattr(value, "__module__", None) or type(value).__module__


def _title(home: str) -> str:
    return home.rpartition(".")[2].replace("_", " ").capitalize()


def _entries(module: str, names: dict[str, Any]) -> list[str]:
    primitives = [n for n, value in names.items() if type(value).__name__ == "Primitive"]
    lines: list[str] = []
    for name, value in names.items():
        if name not in primitives:
            lines += entry(name, value)
    if primitives:
        shown = ", ".join(f"``{name}``" for name in primitives)
        lines += ["", f"Primitives, which rules are registered for: {shown}.", ""]
    return lines


def _homes(module: types.ModuleType, names: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the names of a long module by the modules that its table has them from."""
    tree = ast.parse(pathlib.Path(module.__file__ or "").read_text(encoding="utf-8"))
    tables = [
        ast.literal_eval(keyword.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "_exports"
        for keyword in node.keywords
        if keyword.arg in ("now", "later")
    ]
    home_of = {
        name: home for table in tables for home, row in table.items() for name in names_in(row)
    }
    grouped: dict[str, dict[str, Any]] = {}
    for name, value in names.items():
        home = home_of.get(name) or _home(value)
        grouped.setdefault(home, {})[name] = value
    return grouped


def pages() -> Iterator[tuple[str, list[str]]]:
    """Yield the names and lines of the pages of the reference; the first is the index."""
    found = modules()
    names = {name: names_of(module) for name, module in found.items()}
    for module, group in names.items():
        short = module.removeprefix("hlofront.")
        described.update({f"{module}.{name}": f"{module}.{name}" for name in group})
        described.update({f"{short}.{name}": f"{module}.{name}" for name in group})
        for alias in _ALIASES.get(module, ()):
            described.update({f"{alias}.{name}": f"{module}.{name}" for name in group})
    described.update({name: f"hlofront.{name}" for name in _OF_THE_TOP})
    alone = [n for n in found if len(names[n]) >= SHORT or n.count(".") == 1 or n in _TOPS]
    index = ["", "The modules", "===========", "", *_INTRODUCTION, ""]
    listed: list[str] = []
    for name in sorted(alone, key=lambda n: (n.startswith("hlotools"), n)):
        module = found[name]
        below = [n for n in found if n.startswith(f"{name}.") and _page_of(n, alone) == name]
        if not names[name] and not any(names[n] for n in below):
            continue
        listed.append(name)
        summary = first_sentence(module.__doc__ or "")
        lines = [f".. py:module:: {name}", *heading(name, "="), inline(summary), ""]
        if len(names[name]) > LONG:
            groups = _homes(module, names[name])
            few = [home for home, group in groups.items() if len(group) < _FEW]
            more = {n: v for home in few for n, v in groups.pop(home).items()}
            parts = sorted((_title(home), home, group) for home, group in groups.items())
            lines += [".. toctree::", "   :maxdepth: 1", ""]
            lines += [f"   {name}/{_file(home)}" for _, home, _ in parts]
            lines += [f"   {name}/more"] if more else []
            for title, home, group in parts:
                about = first_sentence(importlib.import_module(home).__doc__ or "")
                yield f"{name}/{_file(home)}", _part(name, title, about, group)
            if more:
                yield f"{name}/more", _part(name, "More", "", dict(sorted(more.items())))
        else:
            lines += _entries(name, names[name])
        for each in below:
            if names[each]:
                lines += heading(each, "-")
                about = inline(first_sentence(found[each].__doc__ or ""))
                lines += [f".. py:module:: {each}", "", about]
                lines += _entries(each, names[each])
        yield name, lines
    index += [".. toctree::", "   :maxdepth: 1", "", *(f"   {name}" for name in listed)]
    yield "index", index


_TOPS = ("hlofront", "hlotools")
_ALIASES = {"hlofront": ("jax",), "hlofront.numpy": ("jnp",), "hlofront.random": ("jax.random",)}
_OF_THE_TOP = ("jit", "grad", "vmap", "checkpoint", "shard_map", "make_jaxpr", "value_and_grad")
_INTRODUCTION = [
    "Every public name, with its docstring. Names are those of JAX 0.10.2, where JAX has them; "
    "``import jax.numpy`` is ``import hlofront.numpy`` where "
    "``import hlofront.as_jax`` came first. `hlofront.inspect`, `hlofront.bundle` and "
    "`hlotools` are hlofront's own."
]


def _file(home: str) -> str:
    return home.removeprefix("hlofront.").replace(".", "_")


def _part(module: str, title: str, about: str, group: dict[str, Any]) -> list[str]:
    lines = heading(f"{module}: {title.lower()}", "=")
    return [*lines, inline(about), "", f".. py:currentmodule:: {module}", *_entries(module, group)]


def _page_of(name: str, alone: list[str]) -> str:
    """Return the nearest module above one that has a page of its own."""
    while name not in alone:
        name = name.rpartition(".")[0]
    return name


def write_all(folder: pathlib.Path, write: Callable[[pathlib.Path, str], None]) -> int:
    """Write the pages of the reference; return how many."""
    written = set()
    for name, lines in pages():
        path = folder / f"{name}.rst"
        write(path, "\n".join(lines) + "\n")
        written.add(path)
    for path in folder.rglob("*.rst"):
        if path not in written:
            path.unlink()
    return len(written)
