"""User contexts (make_user_context): users' values on which traced programs depend."""

import itertools
from typing import Any

from hlofront.base.option import Option, OptionKind, Override

_numbers = itertools.count()
_ANY = OptionKind("any value that can be hashed", lambda value: value, lambda text: text)


class UserContext:
    """A user's value for a block within a thread; it is part of jit's cache key.

    `with context(value):` sets it until the block ends, and `context.value` reads it.
    """

    __slots__ = ("_option",)

    def __init__(self, default: object):
        name = f"user_context_{next(_numbers)}"
        self._option = Option(name, default, _ANY, "is the user's own", affects_trace=True)

    @property
    def value(self) -> Any:
        """The current value of the context: this thread's if set, else the process's."""
        return self._option.value

    def get_global(self) -> Any:
        """Return the context's value for the process."""
        return self._option.cell.get_global()

    def set_global(self, value: object) -> None:
        """Set the context's value for the process; `with context(...)` overrides it."""
        self._option.set(_hashable(value))

    def __call__(self, value: object) -> Override:
        return Override(self._option, _hashable(value))

    def __repr__(self) -> str:
        return f"<user context {self.value!r}>"


def make_user_context(default_value: object = None) -> UserContext:
    """Return a new user context, which holds a value that is part of jit's cache key.

    Args:
      default_value: the value when nothing sets it.

    Returns:
      A UserContext `context`: `with context(value):` sets it for a block of code, as a decorator
      for the calls of a function, and `context.value` reads it.

    Raises:
      TypeError: if a value cannot be hashed.

    Example::

        precision = make_user_context("low")

        @jit
        def f(x):
            return slow(x) if precision.value == "high" else quick(x)

        with precision("high"):
            f(1.0)
    """
    return UserContext(_hashable(default_value))


def _hashable(value: object) -> object:
    try:
        hash(value)
    except TypeError as error:
        raise TypeError(
            f"the value of a user context must be hashable, as programs are kept by it: got "
            f"{value!r} of type {type(value).__name__}"
        ) from error
    return value
