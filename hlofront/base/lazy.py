"""The names that a module shows, and tables of the names that a package re-exports."""

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any

from hlofront.base.garbage_collection import collection_paused

_NOTHING: Mapping[str, str] = {}


def exports(
    package: str,
    *,
    submodules: str = "",
    now: Mapping[str, str] = _NOTHING,
    later: Mapping[str, str] = _NOTHING,
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package that re-exports names of other modules.

        __getattr__, __dir__ = exports(
            __name__,
            now={"hlofront.primitives.arrays.sorting": "sort sort_key_val"},
            later={"hlofront.primitives.linalg.fourier": "FftType fft"},
        )

    `dir(package)` and `from package import *` show these names and the package's own, but no other
    submodule, although the import system makes each imported submodule an attribute. Type checkers
    and editors do not see the names: scripts/write_stubs.py writes stubs for them.

    Args:
      package: its `__name__`.
      submodules: the names of submodules that are imported on first use.
      now: by module, the names that the package imports from it, as "name" or "name=other_name";
        empty for a module that is imported for its side effects.
      later: by module, names that are imported on first use.
    """
    own = vars(sys.modules[package])
    with collection_paused():
        for home, row in now.items():
            module = importlib.import_module(home)
            own.update({name: getattr(module, there) for name, there in names_in(row).items()})
    modules = frozenset(submodules.split())
    homes = {
        name: (home, there) for home, row in later.items() for name, there in names_in(row).items()
    }

    def __getattr__(name: str) -> Any:
        if name in modules:
            return importlib.import_module(f"{package}.{name}")
        found = homes.get(name)
        if found is None:
            # Star imports and `help` use the list of public names.
            if name == "__all__":
                return _public_names(package, (*modules, *homes))
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home, there = found
        value = getattr(importlib.import_module(home), there)
        # Later lookups do not call __getattr__.
        own[name] = value
        return value

    return __getattr__, dir_of(package, (*modules, *homes))


def names_in(row: str) -> dict[str, str]:
    """Return the names in a row of `exports`, each with its name in the module."""
    parts = [part.partition("=") for part in row.split()]
    return {name or there: there for there, _, name in parts}


def dir_of(module: str, later: Iterable[str] = ()) -> Callable[[], list[str]]:
    """Return the `__dir__` of a module: the names that `dir` and interactive completion show.

    They are those in its `__all__`, if it has one; else its attributes, except submodules that the
    import system made attributes. All names that begin with an underscore are included.

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
    # pytest adds "@py_builtins" to the modules of packages that have plugins.
    own = [
        name
        for name, value in attributes.items()
        if name.isidentifier()
        and not name.startswith("_")
        and not _is_submodule(value, f"{module}.{name}")
    ]
    return sorted({*own, *later})


def _is_submodule(value: object, name: str) -> bool:
    return isinstance(value, ModuleType) and value.__name__ == name
