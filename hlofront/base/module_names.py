"""The name of the module where an object was defined, if `__module__` shows a different one."""

# pyright: strict

from __future__ import annotations


class ModuleName(str):
    """A module name for `__module__` that differs from the module where the object was defined.

    Libraries read `type(x).__module__` to see which library `x` belongs to. Pickles of protocol 4
    and later refer to the object by `home`, so that every process with hlofront can read them.
    """

    __slots__ = ("home",)
    home: str

    def __new__(cls, name: str, home: str) -> ModuleName:
        self = super().__new__(cls, name)
        self.home = home
        return self

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        # Pickle writes the module name of a class or function like any other value, and must read
        # back a plain string.
        return str, (self.home,)


def home_of(value: object) -> str:
    """Return the name of the module where a class or function was defined, or "" if it has none."""
    name: object = getattr(value, "__module__", None)
    return name.home if isinstance(name, ModuleName) else name if isinstance(name, str) else ""
