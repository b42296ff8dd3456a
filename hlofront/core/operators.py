"""Operators and methods of arrays and tracers, loaded from hlofront.numpy on first use."""

import importlib
import threading
from collections.abc import Callable, Sequence
from typing import Any

# The module that defines the operators. It is loaded on the first use of an operator or array
# method and not by `import hlofront`, because it imports all of hlofront.numpy.
FILLED_BY = "hlofront.numpy.support.operators"

_NAMES = (
    "add sub mul truediv floordiv mod divmod pow matmul and or xor lshift rshift "
    "radd rsub rmul rtruediv rfloordiv rmod rdivmod rpow rmatmul rand ror rxor rlshift rrshift "
    "neg pos abs invert eq ne lt le gt ge getitem setitem iter reversed contains round "
    "array_namespace"
).split()

_lock = threading.RLock()
_plugged: set[type] = set()


def load_operators() -> None:
    """Load the module that sets the operators, unless it is loaded already."""
    with _lock:
        importlib.import_module(FILLED_BY)


def _waiting(name: str) -> Callable[..., Any]:
    """Return an operator that loads the operators on first use and then calls the loaded one."""

    def operator(self: object, *args: object, **kwargs: object) -> Any:
        load_operators()
        member = getattr(self.__class__, name, operator)
        if member is operator:
            return NotImplemented
        return member.__get__(self)(*args, **kwargs)

    operator.__name__ = operator.__qualname__ = name
    return operator


def _find(self: object, name: str) -> Any:
    """Return a missing attribute of an array or tracer after loading the operators.

    This is the `__getattr__` of classes whose operators are not loaded yet.
    """
    kind = self.__class__
    if not name.startswith("__") and not any(base in _plugged for base in kind.__mro__):
        load_operators()
        if hasattr(kind, name):
            return getattr(self, name)
    # This raises the original AttributeError, with the message of a property that raised it.
    return object.__getattribute__(self, name)


def await_operators(type_: type) -> None:
    """Make values of a type load the operators on first use of one of its operators or methods."""
    for name in _NAMES:
        dunder = f"__{name}__"
        if dunder not in vars(type_):
            setattr(type_, dunder, _waiting(dunder))
    type_.__getattr__ = _find


def await_class_members(type_: type) -> None:
    """Make a class load the operators on first use of a member of the class: `Array.sum`.

    The class must have its own metaclass, whose `__getattr__` and `__dir__` are set.
    """
    await_operators(type_)
    metaclass: Any = type(type_)
    metaclass.__getattr__ = _find_in_class
    metaclass.__dir__ = _names_in_class


def _names_in_class(type_: type) -> list[str]:
    load_operators()
    return sorted(type.__dir__(type_))


def _find_in_class(type_: type, name: str) -> Any:
    if not name.startswith("_") and type_ not in _plugged:
        load_operators()
        if name in vars(type_):
            return getattr(type_, name)
    raise AttributeError(f"type object {type_.__name__!r} has no attribute {name!r}")


class ArrayOperators:
    """The base class of tracers, with operators and array methods."""

    __slots__ = ()

    # NumPy's own operators must defer to these: `np.ones(3) + tracer` is traced.
    __array_priority__ = 100


await_operators(ArrayOperators)


def plug_in_operators(
    members: dict[str, Any], array_types: Sequence[type] = (), array_members: Any = None
) -> None:
    """Set the operators and methods of tracers and arrays: for numpy/support/operators.py, once.

    Args:
      members: functions by name, set on tracers.
      array_types: the classes of arrays.
      array_members: functions by name, set on these classes; by default `members`.
    """
    for name, member in members.items():
        setattr(ArrayOperators, name, member)
    _plugged.add(ArrayOperators)
    for array_type in array_types:
        for name, member in (array_members or members).items():
            setattr(array_type, name, member)
        _plugged.add(array_type)
