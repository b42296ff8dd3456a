"""The named scopes that are open: `named_scope("attention")` labels what is traced inside."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_stack: ContextVar[tuple[str, ...]] = ContextVar("names", default=())
current_name_stack = _stack.get


@contextmanager
def named_scope(name: str) -> Iterator[None]:
    """Label the operations traced inside with `name`, in HLO metadata and profiles.

    Also a decorator: `@named_scope("attention")`.

    Raises:
      TypeError: if `name` is not a string.
    """
    if not isinstance(name, str):
        raise TypeError(f"named_scope wants a string, got {name!r} of type {type(name).__name__}")
    token = _stack.set((*_stack.get(), name))
    try:
        yield
    finally:
        _stack.reset(token)


@contextmanager
def named_scopes(names: tuple[str, ...]) -> Iterator[None]:
    """Label with these names, outermost first, inside the scopes that are open."""
    token = _stack.set((*_stack.get(), *names))
    try:
        yield
    finally:
        _stack.reset(token)
