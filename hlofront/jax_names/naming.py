"""Gives hlofront's definitions a `__module__` that begins with `jax`, while JAX's names are open.

Libraries choose between array libraries by the first word of `type(x).__module__`. Under JAX's
names, a class or function of `hlofront.numpy.arrays.creation` belongs to `jax.numpy` if it is
public there, else to `jax._src.hlofront.numpy.arrays.creation`, the same module by another name.
"""

# pyright: strict

import importlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import FunctionType, ModuleType
from typing import Any, ParamSpec, TypeVar, TypeVarTuple

from hlofront.base.module_names import ModuleName, home_of
from hlofront.jax_names import public

_OURS = "hlofront"
_ALIAS = "jax._src.hlofront"
# The renamed objects, whose names are restored when `import jax` no longer imports hlofront.
_renamed: list[Any] = []


def own_name(alias: str) -> str | None:
    """Return "hlofront.core" for "jax._src.hlofront.core", and None for other modules."""
    if alias == _ALIAS or alias.startswith(_ALIAS + "."):
        return _OURS + alias.removeprefix(_ALIAS)
    return None


class AliasLoader:
    """The loader of a module `jax._src.hlofront.*`, which is a module of hlofront itself."""

    def __init__(self, home: str):
        self._home = home

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        sys.modules[module.__name__] = importlib.import_module(self._home)


class _NamingFinder:
    """The finder of hlofront's own modules, whose definitions are renamed once they have run."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not name.startswith(_OURS + "."):
            return None
        spec = PathFinder.find_spec(name, path, target)
        loader: Any = None if spec is None else spec.loader
        if loader is not None and hasattr(loader, "exec_module"):
            execute = loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                _rename_definitions(module)

            loader.exec_module = exec_module
        return spec


_finder = _NamingFinder()


def rename_all() -> None:
    """Rename the definitions of hlofront's modules: now if loaded, the others when loaded."""
    if _finder in sys.meta_path:
        return
    sys.meta_path.insert(0, _finder)  # pyright: ignore[reportArgumentType]
    for name, module in [*sys.modules.items()]:
        if name == _OURS or name.startswith(_OURS + "."):
            _rename_definitions(module)


def restore_all() -> None:
    """Restore the own names of all renamed objects."""
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)  # pyright: ignore[reportArgumentType]
    for value in _renamed:
        value.__module__ = home_of(value)
    _renamed.clear()


def rename_public(module: str, key: str, value: object) -> None:
    """Set a value's `__module__` to the public module of JAX where it was found.

    If there are several, the first one counts. The value must have its own name there, so that
    pickles can refer to it.
    """
    name = getattr(value, "__module__", None)
    if (
        isinstance(name, ModuleName)
        and name.startswith(_ALIAS)
        and getattr(value, "__qualname__", None) == key
    ):
        home = name.home
        if getattr(sys.modules[home], key, None) is not value:
            home = _OURS + module.removeprefix("jax")
        _set_name(value, module, home)


def _rename_definitions(module: ModuleType) -> None:
    sys.modules.setdefault(f"jax._src.{module.__name__}", module)
    _rename(vars(module).values())


def _rename(values: Iterable[object]) -> None:
    for value in _with_wrapped([*values]):
        home: object = value.__module__
        if type(home) is str and home.startswith(_OURS + "."):
            public_name = "jax" + home.removeprefix(_OURS)
            name = public_name if public_name in public.MODULES else f"jax._src.{home}"
            _set_name(value, name, home)
            _renamed.append(value)
            if isinstance(value, type):
                _rename([member for member in vars(value).values() if not isinstance(member, type)])


# Objects of these classes have their own `__module__`; since Python 3.12 that of type variables
# is not in a `__dict__`.
_WITH_MODULE = FunctionType | type | TypeVar | ParamSpec | TypeVarTuple


def _with_wrapped(values: Iterable[object]) -> Iterator[Any]:
    """Yield the values that have their own `__module__`, each followed by those that it wraps."""
    for value in values:
        while isinstance(value, _WITH_MODULE) or "__module__" in getattr(value, "__dict__", ()):
            yield value
            if isinstance(value, type):
                break
            value = getattr(value, "__dict__", {}).get("__wrapped__")


def _set_name(value: Any, name: str, home: str) -> None:
    value.__module__ = ModuleName(name, home)
