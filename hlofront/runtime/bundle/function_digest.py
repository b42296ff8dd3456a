"""Digests of Python functions, equal while their code and what it refers to are the same.

A digest covers bytecode, constants, defaults, closed-over values, and the globals that the code
names: functions and classes of the user's own modules with the globals that they name, to any
depth. Objects of Python or of an installed package enter with their name and the package's version.
Comments, line numbers and file names do not affect it.
"""

import enum
import functools
import hashlib
import re
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from hlofront.base.module_names import home_of
from hlofront.bridge.state import ArrayImpl
from hlofront.core.trace import Tracer

# Members of classes that record where these were defined, or that Python derives from the others.
_UNREAD_MEMBERS = frozenset(
    "__dict__ __weakref__ __doc__ __module__ __firstlineno__ __annotations__ __static_attributes__ "
    "__annotate_func__ __annotations_cache__ __dataclass_fields__ __match_args__ __slots__".split()
)
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...))
_CALLABLES = (types.FunctionType, types.MethodType, functools.partial)


def function_digest(function: Callable[..., object]) -> str:
    """Return the SHA-256 of a function in hexadecimal, which other processes compute equally."""
    writer = _Writer()
    writer.value(function)
    return hashlib.sha256("\x1f".join(writer.parts).encode("utf-8", "backslashreplace")).hexdigest()


class _Writer:
    """A writer that appends the canonical text of values to a list of strings."""

    __slots__ = ("_alive", "_numbers", "parts")

    def __init__(self):
        self.parts: list[str] = []
        # The number of each value that was written, by id; values may refer to each other.
        self._numbers: dict[int, int] = {}
        # Ids are unique while their values are alive.
        self._alive: list[object] = []

    def value(self, value: object, names: Iterable[str] = ()) -> None:
        """Write a value.

        Args:
          value: any Python value.
          names: the names in the code that refers to it; of a module, only these members count.
        """
        if isinstance(value, _PLAIN) and not isinstance(value, enum.Enum):
            self.parts.append(f"{type(value).__name__} {value!r}")
            return
        if isinstance(value, types.ModuleType):
            self._module(value, names)
            return
        number = self._numbers.setdefault(id(value), len(self._numbers))
        if number < len(self._alive):
            self.parts.append(f"value {number}")
            return
        self._alive.append(value)
        self._once(value)

    def _once(self, value: object) -> None:
        if isinstance(value, types.FunctionType):
            self._function(value)
        elif isinstance(value, types.CodeType):
            self._code(value)
        elif isinstance(value, types.MethodType):
            self._members("method", (value.__func__, value.__self__))
        elif isinstance(value, functools.partial):
            self._members("partial", (value.func, value.args, value.keywords))
        elif isinstance(value, property):
            self._members("property", (value.fget, value.fset, value.fdel))
        elif isinstance(value, staticmethod | classmethod):
            self._members(type(value).__name__, (value.__func__,))
        elif isinstance(value, types.CellType):
            self._members("cell", _content(value))
        elif isinstance(value, type):
            self._class(value)
        elif isinstance(value, np.ndarray | np.generic | ArrayImpl):
            array = np.asarray(value)
            data = repr(array.tolist()).encode() if array.dtype.hasobject else array.tobytes()
            digest = hashlib.sha256(data).hexdigest()
            self.parts.append(f"array {array.dtype}{array.shape} {digest}")
        elif isinstance(value, Tracer):
            self.parts.append(f"traced {value.aval}")
        else:
            self._instance(value)

    def _members(self, kind: str, values: Iterable[object]) -> None:
        self.parts.append(kind)
        for value in values:
            self.value(value)
        self.parts.append("end")

    # ---- functions and code

    def _function(self, function: types.FunctionType) -> None:
        owner = function.__globals__.get("__name__", "")
        self.parts.append("function")
        self._members("defaults", (function.__defaults__, function.__kwdefaults__))
        if _is_library(owner):
            # A wrapper from a package may close over a user's function.
            self.parts.append(f"{_versioned(owner)}.{function.__qualname__}")
        else:
            code = function.__code__
            self.value(code)
            names = sorted(set(_names_in(code)))
            for name in names:
                if name in function.__globals__:
                    self.parts.append(name)
                    self.value(function.__globals__[name], names)
        self._members("closure", function.__closure__ or ())

    def _code(self, code: types.CodeType) -> None:
        parameters = code.co_argcount + code.co_kwonlyargcount
        self.parts += (
            f"code {code.co_code.hex()} {code.co_flags}",
            f"{code.co_argcount} {code.co_kwonlyargcount}",
            f"{code.co_names} {code.co_varnames[:parameters]} {code.co_freevars}",
        )
        self._members("constants", code.co_consts)

    def _module(self, module: types.ModuleType, names: Iterable[str]) -> None:
        if _is_library(module.__name__):
            self.parts.append(f"module {_versioned(module.__name__)}")
            return
        names = tuple(names)
        key = (module.__name__, names)
        self.parts.append(f"module {module.__name__}")
        number = self._numbers.setdefault(hash(key), len(self._numbers))
        if number < len(self._alive):
            return
        self._alive.append(key)
        for name in names:
            if name in vars(module):
                self.parts.append(name)
                self.value(vars(module)[name], names)

    # ---- classes and their instances

    def _class(self, cls: type[Any]) -> None:
        self.parts.append(f"class {_versioned(home_of(cls))}.{cls.__qualname__}")
        if _is_library(home_of(cls)):
            return
        self._members("bases", cls.__bases__)
        for name, member in sorted(vars(cls).items()):
            if name not in _UNREAD_MEMBERS and not isinstance(member, types.MemberDescriptorType):
                self.parts.append(name)
                self.value(member)

    def _instance(self, value: object) -> None:
        cls = type(value)
        self.value(cls)
        if isinstance(value, enum.Enum):
            self.parts.append(value.name)
        elif isinstance(value, Mapping):
            for key in value:
                self._members("item", (key, value[key]))
        elif isinstance(value, set | frozenset):
            self._members("set", sorted(value, key=repr))
        elif isinstance(value, list | tuple):
            self._members(f"{len(value)} members", value)
        of_library = _is_library(home_of(cls))
        if of_library and not isinstance(value, Mapping | set | frozenset | list | tuple):
            self.parts.append(_ADDRESS.sub("", repr(value)))
        for name, member in _attributes_of(value):
            # The state of a package's objects is private, but they may hold the user's functions.
            if not of_library or isinstance(member, _CALLABLES):
                self.parts.append(name)
                self.value(member)


def _content(cell: types.CellType) -> tuple[Any, ...]:
    try:
        return (cell.cell_contents,)
    except ValueError:  # It is still empty.
        return ()


def _names_in(code: types.CodeType) -> Iterator[str]:
    """Yield the names of globals and attributes in code, and in the functions inside of it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names_in(constant)


def _attributes_of(value: object) -> list[tuple[str, Any]]:
    """Return the attributes of an instance by name, those in slots too, in order."""
    attributes: dict[str, Any] = dict(getattr(value, "__dict__", {}))
    for cls in type(value).__mro__:
        for name, member in vars(cls).items():
            if isinstance(member, types.MemberDescriptorType) and hasattr(value, name):
                attributes[name] = getattr(value, name)
    wrapped = getattr(value, "__wrapped__", None)
    if wrapped is not None:
        attributes["__wrapped__"] = wrapped
    return sorted(attributes.items())


# ---- packages ------------------------------------------------------------------------------------

_OURS = ("hlofront", "hlotools", "jaxlib")


@functools.cache
def _is_library(module: str) -> bool:
    """Return whether a module belongs to Python or to an installed package."""
    top = module.partition(".")[0]
    if top == "__main__":
        return False
    if top in _OURS or top in sys.stdlib_module_names or top in sys.builtin_module_names:
        return True
    spec = getattr(sys.modules.get(top), "__spec__", None)
    origin = getattr(spec, "origin", None) or ""
    return "site-packages" in origin or "dist-packages" in origin


def _versioned(module: str) -> str:
    """Return a module's name, followed by the version of its package if that is a library."""
    top = module.partition(".")[0]
    version = getattr(sys.modules.get(top), "__version__", "") if _is_library(module) else ""
    return f"{module} {version}" if version else module
