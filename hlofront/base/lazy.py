"""Lazy attributes of packages, which are imported on first use."""

import importlib
import sys
from collections.abc import Callable, Iterable
from typing import Any


def lazy(
    package: str, submodules: Iterable[str], names: dict[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package whose attributes are imported on first use.

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
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(home), name)
        # Later lookups do not call __getattr__.
        setattr(sys.modules[package], name, value)
        return value

    def __dir__() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules, *homes})

    return __getattr__, __dir__
