"""The names that a module shows, and attributes of packages that are imported on first use."""

import importlib
import sys
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any


def lazy(
    package: str, submodules: Iterable[str], names: dict[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package whose attributes are imported on first use.

    `dir(package)` and `from package import *` show these attributes and the package's own, but no
    other submodule, though the import system makes each imported submodule an attribute.

    Args:
      package: its `__name__`.
      submodules: names of submodules, which become attributes.
      names: other attributes, each with the module that defines it.
    """
    modules = frozenset(submodules)
    homes = names or {}

    def __getattr__(name: str) -> Any:
        if name in modules:
            return importlib.import_module(f"{package}.{name}")
        home = homes.get(name)
        if home is None:
            # Star imports and `help` use the list of public names.
            if name == "__all__":
                return _public_names(package, (*modules, *homes))
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(home), name)
        # Later lookups do not call __getattr__.
        setattr(sys.modules[package], name, value)
        return value

    return __getattr__, dir_of(package, (*modules, *homes))


def dir_of(module: str, later: Iterable[str] = ()) -> Callable[[], list[str]]:
    """Return the `__dir__` of a module: what `dir` and completion in an interpreter show of it.

    The names are those of its `__all__`, if it has one; else its attributes, but not the
    submodules that the import system made attributes. Names that begin with an underscore are all
    there.

    Args:
      module: its `__name__`.
      later: names of attributes that are imported on first use.
    """
    lazily_imported = tuple(later)

    def __dir__() -> list[str]:
        private = [name for name in vars(sys.modules[module]) if name.startswith("_")]
        return sorted({*private, *_public_names(module, lazily_imported)})

    return __dir__


def _public_names(module: str, later: tuple[str, ...]) -> list[str]:
    attributes = vars(sys.modules[module])
    if "__all__" in attributes:
        return list(attributes["__all__"])
    own = [
        name
        for name, value in attributes.items()
        if not name.startswith("_") and not _is_submodule(value, f"{module}.{name}")
    ]
    return sorted({*own, *later})


def _is_submodule(value: object, name: str) -> bool:
    return isinstance(value, ModuleType) and value.__name__ == name
